"""E3: printed results held against what the brief says they must be: a count in each case, so many of each class, a range."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import counts_things, looked_into, owns_up
from .case_tables import columns, joined, rows_of
from .class_signs import classes, distributions

_NUMBER_WORDS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "ten": 10,
    "twelve": 12,
}
_N = rf"({'|'.join(_NUMBER_WORDS)}|\d{{1,3}})"
_IN_EACH = re.compile(
    rf"\b(?:each|every|all|per) (?:\w+ )?(?:cases?|images?|slices?|volumes?|patients?|films?|tiles?|scans?|stud(?:y|ies)|subjects?)\b[^.\n]{{0,30}}?"
    rf"\b(?:has|have|holds?|contains?|shows?|with|carr(?:y|ies))\b (?:exactly |precisely |always )?{_N} (?:\w+ ){{0,2}}?(\w{{3,20}})",
    re.IGNORECASE,
)
_EXACTLY = re.compile(
    rf"\b(?:exactly|precisely) {_N} (?:\w+ ){{0,2}}?(\w{{3,20}}) (?:in|per|for) (?:each|every|a|an|one)\b",
    re.IGNORECASE,
)
_OF_EACH = re.compile(
    rf"\b{_N} (?:(?:cases|images|tiles|patches|samples|scans) )?(?:of|per|for) (?:each|every)?\s?(?:class|label|category|of them|kind)?",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"(?:\bin|within|range|between|values?|clipped to)\s{0,2}(?:of |from )?[\[(]?\s{0,2}(-?\d{1,5}(?:\.\d+)?)\s{0,2}(?:,|to|and|\.\.|-)\s{0,2}(-?\d{1,5}(?:\.\d+)?)\s{0,2}[\])]?(?=[\s,.;:)]|$)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"[\[(]\s?(0|-1)(?:\.0)?\s?(?:\.\.|,|-|–|to)\s?(1|255|4095|65535)(?:\.0)?\s?[\])]")
FAINT = 0.02
"""Share of the stated range below which even the largest value of an image is next to nothing."""
_LARGEST = re.compile(r"^(?:max\w{0,4}|hi|high|p99\w{0,3}|peak|top|upper)$")
_TAKES_LARGEST = re.compile(r"\.(?:max|amax)\(|np\.(?:a?max|ptp)\(|percentile\([^)\n]{1,60}9[59]")
_FLOOR = re.compile(r"\bnon-?negative\b|>=\s?0\b|\bno negative\b", re.IGNORECASE)
_EXTREMES = re.compile(
    r"\bmin\w{0,4}['\"]?\s{0,2}[:=]?\s{0,2}(-?\d{1,7}(?:\.\d{1,6})?)[^\d\n-]{1,12}max\w{0,4}['\"]?\s{0,2}[:=]?\s{0,2}(-?\d{1,7}(?:\.\d{1,6})?)"
    r"|\brange['\"]?\s{0,2}[:=]?\s{0,2}[\[(]?\s{0,2}(-?\d{1,7}(?:\.\d{1,6})?)\s{0,2}(?:,|to|\.\.|-|\s)\s{0,2}(-?\d{1,7}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)


def _number(word: str) -> int:
    return _NUMBER_WORDS.get(word.lower(), 0) or (int(word) if word.isdigit() else 0)


@detector("stated_count_missed", code="E3", stage="S4", independence="from_trace")
def stated_count_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The brief says how many things each case holds, and the printed counts of several cases are others."""
    stated = _IN_EACH.search(ctx.run.brief[:200_000]) or _EXACTLY.search(ctx.run.brief[:200_000])
    if stated is None or ctx.run.track != "detection" or not ctx.handed_over or owns_up(ctx):
        return
    want, noun = _number(stated[1]), stated[2].lower().rstrip("s")
    for turn in reversed(ctx.after_write):
        for (name, place), column in columns(rows_of(ctx.run, turn)).items():
            whole = all(value >= 0 and value == int(value) for value in column.values())
            if place or len(column) < 4 or not whole or not (name.startswith(noun) or counts_things(name)):
                continue
            off = [case for case, value in column.items() if value != want]
            if want and len(off) >= max(2, 0.3 * len(column)) and not looked_into(ctx, off, turn):
                yield Finding(
                    tuple(sorted({turn, ctx.last})),
                    f"The brief gives {want} {noun} in each case, the log other counts in {joined(off)}.",
                    0.7,
                )
            return


@detector("stated_shares_missed", code="E3", stage="S4", independence="from_trace")
def stated_shares_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The brief says how many cases each class has, and the printed labels are spread quite otherwise."""
    names = classes(ctx.run.brief) if ctx.run.track == "classification" else ()
    stated = _OF_EACH.search(ctx.run.brief[:200_000])
    if len(names) < 3 or stated is None or not ctx.handed_over or owns_up(ctx):
        return
    want = _number(stated[1])
    for turn in reversed(ctx.after_write):
        for counts in distributions(ctx.lines(turn), names):
            total = sum(counts.values())
            if total != want * len(names) or want < 3:
                continue
            off = sum(max(0, counts.get(name, 0) - want) for name in names)
            if off >= 0.3 * total and not any(t > turn for t in ctx.model_turns):
                shown = ", ".join(f"{name} {counts.get(name, 0)}" for name in names)
                yield Finding(
                    tuple(sorted({turn, ctx.last})),
                    f"The brief gives {want} of each class, the labels are {shown}.",
                    0.7,
                )
            return


@detector("stated_range_missed", code="E3", stage="S5", independence="from_trace")
def stated_range_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The brief says in which range outputs lie, and the printed extremes of the outputs lie far outside."""
    if ctx.run.track not in ("enhancement", "synthesis") or not ctx.handed_over or owns_up(ctx):
        return
    bounds = _bounds(ctx.run.brief[:200_000])
    if bounds is None:
        return
    low, high = bounds
    for turn in reversed(ctx.after_write):
        if not ctx.feature(turn).has("writes_outputs", "reads_outputs", "checks_outputs"):
            continue
        out: list[tuple[str, float, float]] = []
        for row in rows_of(ctx.run, turn):
            low_high = [v for (n, _), v in row.values.items() if re.match(r"(?:min|max)\w{0,4}$", n)]
            pairs = [low_high] if [n for n, _ in row.values][:2] == ["min", "max"] else []
            pairs += [[float(g) for g in m.groups() if g] for m in _EXTREMES.finditer(row.rest[:400])]
            out += [(row.case, pairs[-1][0], pairs[-1][1])] if pairs and len(pairs[-1]) == 2 else []
        slack = 0.05 * (high - low) if high < float("inf") else 0.05 * max((abs(b) for _, _, b in out), default=1.0)
        off = [f"{case} {a:g} to {b:g}" for case, a, b in out if a < low - slack or b > high + slack]
        if len(out) >= 3 and len(off) >= max(2, 0.3 * len(out)):
            where = f"{low:g} to {high:g}" if high < float("inf") else f"{low:g} upward"
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"The brief wants values from {where}, the log shows {joined(off, 2)}.",
                0.7,
            )
        if out:
            return


@detector("stated_range_unused", code="E3", stage="S5", independence="from_trace")
def stated_range_unused(ctx: CodeContext) -> Iterable[Finding]:
    """The largest value of every output lies within a fiftieth of the range that the brief states: next to empty images."""
    bounds = _bounds(ctx.run.brief[:200_000]) if ctx.run.track in ("enhancement", "synthesis") else None
    if bounds is None or bounds[0] or bounds[1] == float("inf") or not ctx.handed_over or owns_up(ctx):
        return
    top = bounds[1]
    for turn in reversed(ctx.after_write):
        if not ctx.feature(turn).has("writes_outputs", "reads_outputs", "checks_outputs"):
            continue
        table = {key: c for key, c in columns(rows_of(ctx.run, turn)).items() if len(c) >= 4}
        fine = [c for c in table.values() if any(v != int(v) for v in c.values())]
        large = any(sum(FAINT * top < v <= 1.1 * top for v in c.values()) * 2 > len(c) for c in fine)
        largest = [
            c for (name, _), c in table.items()
            if c in fine and (_LARGEST.match(name) or _TAKES_LARGEST.search(ctx.turn(turn).code[:200_000]))
            and all(0 <= v <= FAINT * top for v in c.values())
        ]  # fmt: skip
        if largest and not large:
            most = max(max(c.values()) for c in largest)
            why = f"The brief wants values up to {top:g}, and no output shown goes beyond {most:g}: next to empty."
            yield Finding(tuple(sorted({turn, ctx.last})), why, 0.75)
            return
        if large:
            return


def _bounds(brief: str) -> tuple[float, float] | None:
    """Range of the delivered values as the OUTPUT lines of a brief state it."""
    for line in brief.splitlines():
        if not re.match(r"\s{0,4}(?:\W{0,3}OUTPUT|Deliver|Write|Save)", line, re.IGNORECASE):
            continue
        for match in _RANGE.finditer(line[:2_000]):
            low, high = float(match[1]), float(match[2])
            if (low < high and (low, high) in ((0, 1), (-1, 1), (0, 255), (0, 100))) or high - low >= 500:
                return low, high
        span = _SPAN.search(line[:2_000])
        if span:
            return float(span[1]), float(span[2])
        if _FLOOR.search(line[:2_000]):
            return 0.0, float("inf")
    return None
