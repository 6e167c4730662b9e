"""Signs of trouble that a run printed: zero counts, constants, NaN, fallbacks, one class only, weights not loaded.

A sign is only what stood in the environment's answer; whether somebody reacted to it is `reactions.answered`.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from ...trajectories.any_case import AnyCase
from ..context import CodeContext
from .class_signs import balanced, classes, never_given, one_class

MAX_LINES = 3_000
"""Lines read per turn: from the end, where the results are."""


TINY = 50
"""Sizes differ tenfold by nature; a fiftieth of the typical count is next to nothing."""
SAME_PIXEL = 1.0
"""Boxes whose corners differ by no more (pixels) are the same box."""


class Sign(NamedTuple):
    """`subject` are case ids (or names) that the sign is about; `words` is what was printed, shortened."""

    kind: str
    turn: int
    words: str
    subject: tuple[str, ...] = ()
    confidence: float = 0.7


_THING = (
    r"(?:voxels?|tumou?rs?|lesions?|organs?|masks?|foreground|box(?:es)?|detections?|nodules?|objects?|kidneys?|livers?"
    r"|pancreas|positives?|polyps?|cells?|peaks?|pixels?|regions?|predictions?|findings?|words?|chars?|characters|tokens?)"
)
_COUNT = re.compile(
    rf"\b({_THING})['\"]?(?:[ _](?:voxels?|count|n|px))?\s{{0,6}}[:=]?\s{{0,6}}(\d{{1,9}})(?![\d.,:])", re.IGNORECASE
)
_COUNT_BEFORE = re.compile(rf"(?<![\d.:])(\d{{1,9}})\s{{1,3}}({_THING})\b", re.IGNORECASE)
_CASE = re.compile(r"\b([A-Za-z][A-Za-z_-]{0,20}?[_-]?0*(\d{1,8}))\b")
_DIGIT = re.compile(r"\d")
_FALLBACK = AnyCase(
    r"\b(fall-?backs?|defaulted|default answers?|un(?:mapped|parsed|matched|parseable)|placeholders?|parse (?:failures?|errors?)"
    r"|no match(?:es)?|skipped|failed|errors?)\b\W{0,3}(?:count|answers?|used|n)?\s{0,3}[:=]?\s{0,3}(\d{1,6})\b(?!\s{0,2}[/%.])"
)
_FALLBACK_LINE = re.compile(r"\b(?:fallback|placeholder|dummy|mock|stub|heuristic):\s{0,2}\w", re.IGNORECASE)
_NAN = AnyCase(
    r"\b(?:mean|std|min|max|loss|score|dice|acc(?:uracy)?|auc|psnr|ssim|f1|metric|prob\w{0,10}|value)\s{0,4}[:=(]?\s{0,4}[-+]?(?:nan|inf)\b"
    r"(?!\s{0,2}[=:]?\s{0,2}(?:0|False))")  # fmt: skip
_ONE_CLASS = re.compile(r"\{\s{0,2}['\"]?([\w .-]{1,40})['\"]?\s{0,2}:\s{0,2}(\d{1,7})\s{0,2}\}")
_UNLOADED = re.compile(
    r"newly initialized|weights of .{1,200} were not initialized|missing_keys=\[['\"]|_IncompatibleKeys\(missing_keys=\[['\"]"
    r"|size mismatch for .{1,120} ignor|\bmissing(?:[ _]keys)?\W{0,4}[1-9]\d{0,4}\b[^\n]{0,20}\bunexpected"
)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?(?![\w])")
_VARYING = re.compile(
    r"(?:token\w{0,3}|mean|std|sigma|score|prob\w{0,8}|conf\w{0,8}|area|volume|dice|acc\w{0,6}|loss|voxels?|ssim|psnr|words?|chars?|len(?:gth)?|margin)"
    r"\W{0,4}$", re.IGNORECASE)  # fmt: skip

_COMPARES = re.compile(r"\bdiff\w{0,8}|\bdelta|\bres(?:id\w{0,6})?\b|\berr(?:or)?s?\b|\bchange|\bvs\b", re.IGNORECASE)
_BOUNDED = re.compile(r"(?:score|prob\w{0,8}|conf\w{0,8}|dice|acc\w{0,6}|ssim|margin)\W{0,4}$", re.IGNORECASE)
_CASE_MARK = re.compile(r"^[^A-Za-z0-9#]{0,4}@")
_FLAT = re.compile(
    r"\bmin\w{0,4}\W{1,4}(-?\d{1,6}(?:\.\d{1,6})?)\W{1,4}max\w{0,4}\W{1,4}\1(?![\d.])|\b(?:std|sd|sigma|var(?:iance)?)\W{1,4}0(?:\.0{1,6})?(?![\d.])"
    r"|\bunique\W{1,4}1\b(?!\s?,)",
    re.IGNORECASE,
)
_CORNER = r"['\"]?\s{0,2}[:=]\s{0,2}(-?\d{1,6}(?:\.\d{1,6})?)\s{0,2},\s{0,2}['\"]?"
_BOX = re.compile(rf"\bx1{_CORNER}y1{_CORNER}x2{_CORNER}y2['\"]?\s{{0,2}}[:=]\s{{0,2}}(-?\d{{1,6}}(?:\.\d{{1,6}})?)")
_FOUR = re.compile(r"[\[(]\s?(-?\d{1,5}(?:\.\d{1,6})?(?:,?\s{1,3}-?\d{1,5}(?:\.\d{1,6})?){3})\s?[\])]")
_PROSE = re.compile(r"\b(?:is|are|was|there|no|of|the|seen)\b", re.IGNORECASE)
_NORMAL_STUDY = re.compile(
    r"\b(?:no acute|unremarkable|within normal limits|(?:is|are) normal|normal (?:chest|study|heart|size))\b",
    re.IGNORECASE,
)
_TRAINS = re.compile(r"\.backward\(|\bTrainer\(|TrainingArguments|optim(?:izer)?\.step\(|\.train\(\)[^\n]{0,80}loss")
_PER_ITEM = re.compile(
    r"\b(?:tokens?|words?|char\w{0,7}|voxels?|pixels?|boxes|cells)\b\W{0,3}(?:count)?\W{0,4}$", re.IGNORECASE
)
_REPEATS = AnyCase(
    r"\b(?:again|re-?run|re-?load\w{0,3}|re-?read|read back|repeat\w{0,4}|second|2nd|pass|twice|saved|stored|file|disk|memory|expected|reference|determin\w{1,8}|affine|header|spacing)\b"
)
"""Rows that are meant to be equal: a second pass, what was read back, a header beside the input's."""
_TOKENS = re.compile(
    r"(?<![\w.])(\d{2,4}) (?:new |output |generated )?tok(?:ens?|s)?\b|(?<!\w)(?<!image )(?<!input )(?<!prompt )(?:new_|out_|n_|output |generated )?tok(?:en)?s?['\"]?\s?[:=]\s?(\d{2,4})\b",
    re.IGNORECASE,
)
_EXTREME = re.compile(
    r"\b(?:min|max|range)\b\W{0,4}(-?\d+(?:\.\d+)?)(?:\s?(?:\.\.|,|to|/|-)\s?(-?\d+(?:\.\d+)?))?", re.IGNORECASE
)


def signs(ctx: CodeContext) -> tuple[Sign, ...]:
    """Signs in the outputs of turns that ran a model, wrote or checked outputs (S3 on), in order."""
    found: list[Sign] = []
    wanted = _classes(ctx.run.brief) if ctx.run.track == "detection" else ()
    names = classes(ctx.run.brief) if ctx.run.track == "classification" else ()
    even = balanced(ctx.run.brief)
    trains = any(f.training for f in ctx.features) or any(_TRAINS.search(t.code[:400_000]) for t in ctx.run.turns)
    for turn in ctx.run.turns:
        feature = ctx.feature(turn.index)
        late = ctx.stage(turn.index) in ("S3", "S4", "S5")
        if feature.blocked or not (late and (feature.executed or feature.reads_outputs)):
            continue
        lines = [line[:600] for line in turn.output.splitlines()[-MAX_LINES:] if line.strip()]
        if lines:
            found.extend(_zero(turn.index, lines))
            found.extend(_never(turn.index, lines, wanted))
            found.extend(_labels(ctx, turn.index, lines, names, even))
            if ctx.stage(turn.index) == "S3" and feature.forward_pass:
                found.extend(_empty_pilot(turn.index, lines))
            found.extend(_fallback(ctx, turn.index, lines))
            found.extend(_nan(turn.index, lines))
            found.extend(_one_class(ctx, turn.index, lines))
            if not trains:  # a fresh head is meant to be there when it is trained
                found.extend(_unloaded(turn.index, lines))
            found.extend(_constant(turn.index, lines))
            found.extend(_linear(turn.index, lines))
            if ctx.run.track in ("report_generation", "vqa"):
                found.extend(_at_limit(turn.index, lines))
            found.extend(_twins(turn.index, lines))
            if ctx.run.track in ("enhancement", "synthesis"):
                found.extend(_flat(turn.index, lines))
            if ctx.run.track == "detection":
                found.extend(_same_box(turn.index, lines))
            if ctx.run.track == "report_generation":
                found.extend(_same_text(turn.index, lines))
    found.extend(_units(ctx))
    return tuple(found)


def counts_in(line: str) -> list[int]:
    """All counts of things that a line shows."""
    return [int(m[2]) for m in _COUNT.finditer(line)] + [int(m[1]) for m in _COUNT_BEFORE.finditer(line)]


def case_of(line: str) -> str | None:
    """The case id at the beginning of a line of a log, if it has one."""
    head = line[:60]
    match = _CASE.search(head) if _DIGIT.search(head) else None
    return match[1] if match else None


def _zero(turn: int, lines: list[str]) -> Iterator[Sign]:
    """A count that is zero, or next to nothing beside the others, for a case among several."""
    table: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for line in lines:
        case = case_of(line)
        if case is None:
            continue
        pairs = [(m[1].lower(), int(m[2])) for m in _COUNT.finditer(line)]
        pairs += [(m[2].lower(), int(m[1])) for m in _COUNT_BEFORE.finditer(line)] if not pairs else []
        for name, value in dict(pairs).items():
            table[name].append((case, value))
    for name, rows in table.items():
        cases = dict(rows)  # the last value a case was given
        if len(cases) < 3:
            continue
        typical = median(cases.values())
        low = [case for case, value in cases.items() if value * TINY < typical or value == 0]
        if (low and len(low) < len(cases)) or (low and typical == 0):
            zero = [case for case in low if cases[case] == 0]
            shown = ", ".join(f"{cases[c]} {name} in {c}" for c in low[:3])
            yield Sign("zero", turn, shown, tuple(low), 0.75 if zero else 0.6)


def _classes(brief: str) -> tuple[str, ...]:
    """Class names of a detection brief: "Detect rbc, wbc and platelets in 12 images"."""
    match = re.search(r"\bdetect ((?:[\w-]{2,30}(?:, | and |, and )?){2,12}) in\b", brief[:200_000], re.IGNORECASE)
    return tuple(name for name in re.split(r", and |, | and ", match[1]) if name) if match else ()


def _never(turn: int, lines: list[str], classes: tuple[str, ...]) -> Iterator[Sign]:
    """A class that was asked for and is found in no case at all."""
    for name in classes:
        pattern = re.compile(rf"\b{re.escape(name)}['\"]?\s{{0,3}}[:=]?\s{{0,3}}(\d{{1,6}})(?![\d.,:])", re.IGNORECASE)
        values = [int(m[1]) for line in lines if (m := pattern.search(line)) and case_of(line)]
        if len(values) >= 3 and not any(values):
            yield Sign("never", turn, f"no {name} in any of {len(values)} cases", (name,), 0.75)


def _labels(ctx: CodeContext, turn: int, lines: list[str], names: tuple[str, ...], even: bool) -> Iterator[Sign]:
    """Classification: a class that no case got, or one class for every case of a pilot or log."""
    if not names:
        return
    total = ctx.facts.expected_cases if ctx.facts is not None else None
    absent = never_given(lines, names, total, even)
    if absent:
        yield Sign("never", turn, f"{', '.join(absent)} in none of {total} cases", absent, 0.75 if even else 0.6)
    alike = one_class(((case, line) for line in lines if (case := case_of(line))), names)
    if alike:
        yield Sign("one_class", turn, f"{alike[0]} in all {alike[1]} cases shown", names, 0.65)


def _same_box(turn: int, lines: list[str]) -> Iterator[Sign]:
    """The same box in every one of at least four cases: a detector that looks at nothing."""
    boxes: dict[str, tuple[tuple[str, ...], ...]] = {}
    for line in lines:
        case, found = case_of(line), box_corners(line)
        if case and found:
            boxes[case] = found
    alike = len({len(found) for found in boxes.values()}) == 1 and all(
        max(axis) - min(axis) <= SAME_PIXEL
        for place in zip(*boxes.values(), strict=False)
        for axis in zip(*(map(float, box) for box in place), strict=False)
    )
    if len(boxes) >= 4 and alike:
        corners = ", ".join(next(iter(boxes.values()))[0])
        yield Sign("same_box", turn, f"the box {corners} in all {len(boxes)} cases", (), 0.8)


def _same_text(turn: int, lines: list[str]) -> Iterator[Sign]:
    """Reports: one and the same text for most of at least five cases, and it is not that of a normal study."""
    texts = [" ".join(line.split()) for line in lines if len(line.split()) >= 8 and _PROSE.search(line)]
    texts = [text for text in texts if case_of(text) is None or not re.search(r"\d", text[:60])]
    if len(texts) < 5:
        return
    common = max(texts, key=texts.count)
    share = texts.count(common) / len(texts)
    if share >= 0.6 and not _NORMAL_STUDY.search(common):
        yield Sign("same_text", turn, f"{texts.count(common)} of {len(texts)} reports read {common[:60]}", (), 0.7)


def normal_study(text: str) -> bool:
    """Whether a report says that nothing is wrong: most studies may read like that."""
    return _NORMAL_STUDY.search(text) is not None


def box_corners(line: str) -> tuple[tuple[str, ...], ...]:
    """Corners (x1, y1, x2, y2) of all boxes that a line shows by name, or in brackets of four numbers."""
    return tuple(m.groups() for m in _BOX.finditer(line)) or tuple(
        tuple(re.split(r",?\s{1,3}", m[1])) for m in _FOUR.finditer(line)
    )


def _empty_pilot(turn: int, lines: list[str]) -> Iterator[Sign]:
    """A pilot that finds nothing at all of what is looked for."""
    counts = [(m[1], int(m[2])) for line in lines for m in _COUNT.finditer(line)]
    if counts and not any(value for _, value in counts) and len(counts) <= 3:
        yield Sign("zero", turn, f"{counts[0][0]} 0 in the pilot", (), 0.65)


def _fallback(ctx: CodeContext, turn: int, lines: list[str]) -> Iterator[Sign]:
    total = ctx.facts.expected_cases if ctx.facts is not None and ctx.facts.expected_cases else None
    for line in lines:
        for match in _FALLBACK.finditer(line):
            count = int(match[2])
            strict = match[1].lower().startswith(("fall", "default", "un", "placeholder", "parse"))
            if count and strict and (total is None or count > 0.05 * total) and case_of(line[: match.start()]) is None:
                yield Sign("fallback", turn, match[0].strip(), (), 0.85)
                return
    marked = [line for line in lines if _FALLBACK_LINE.search(line) and case_of(line)]
    if len(marked) > 0.05 * (total or len(lines)):
        yield Sign("fallback", turn, marked[0].strip()[:80], (), 0.8)


def _nan(turn: int, lines: list[str]) -> Iterator[Sign]:
    for line in lines:
        match = _NAN.search(line)
        if match:
            yield Sign("nan", turn, match[0].strip(), tuple(filter(None, [case_of(line)])), 0.7)
            return


def _one_class(ctx: CodeContext, turn: int, lines: list[str]) -> Iterator[Sign]:
    total = ctx.facts.expected_cases if ctx.facts is not None else None
    if ctx.run.track not in ("classification", "vqa") or total is None or total < 5:
        return
    for line in lines:
        match = _ONE_CLASS.search(line)
        if match and int(match[2]) == total:
            yield Sign("one_class", turn, f"every case is {match[1].strip()}", (match[1].strip(),), 0.75)
            return


def _units(ctx: CodeContext) -> Iterator[Sign]:
    """Tracks whose outputs keep the input's units: inputs reached hundreds (HU), and the outputs stay within a few units."""
    final = ctx.final_write
    if ctx.run.track not in ("enhancement", "synthesis") or final is None or not re.search(r"\bHU\b", ctx.run.brief):
        return

    def extremes(turns: Iterable[int]) -> list[float]:
        text = "\n".join(ctx.turn(t).output[-20_000:] for t in turns)
        return [abs(float(v)) for m in _EXTREME.finditer(text) for v in m.groups() if v is not None]

    before = extremes(t for t in range(1, final) if ctx.stage(t) in ("S1", "S2"))
    after = extremes((final, *(t for t in ctx.checks if t != final)))
    if before and len(after) >= 4 and max(before) >= 100 and max(after) <= 10:
        yield Sign("units", final, f"outputs within {max(after):g}, inputs up to {max(before):g}", (), 0.8)


def _unloaded(turn: int, lines: list[str]) -> Iterator[Sign]:
    for line in lines:
        if _UNLOADED.search(line):
            yield Sign("unloaded", turn, " ".join(line.split())[:100], (), 0.75)
            return


def _without_case(line: str) -> str:
    """A line of a log with its case id taken out, so that the lines of a table look alike."""
    case = case_of(line)
    return line.replace(case, "@", 1) if case and not case.isalpha() else line


def _constant(turn: int, lines: list[str]) -> Iterator[Sign]:
    """A quantity that should vary from case to case and is printed with one and the same value throughout."""
    groups: dict[str, list[list[str]]] = defaultdict(list)
    if len(lines) < 5:
        return
    for line in map(_without_case, lines):
        skeleton = NUMBER.sub("#", line)
        if "#" in skeleton and len(skeleton) < 200:
            groups[skeleton].append(NUMBER.findall(line))
    for skeleton, rows in groups.items():
        if len(rows) < 5:
            continue
        heads = skeleton.split("#")
        columns = list(zip(*rows, strict=False))
        if not _CASE_MARK.match(skeleton) and not any(len(set(column)) > len(rows) // 2 for column in columns):
            continue  # nothing varies: a repeated message, not a table of cases
        for head, column in zip(heads, columns, strict=False):
            digits = column[0].strip("-+%0").replace(".", "").rstrip("0")
            fine = len(digits) >= (4 if _BOUNDED.search(head) else 2)  # shares are often rounded to the same
            enough = fine if _CASE_MARK.match(skeleton) else len(column[0].strip("-+%").replace(".", "")) >= 2
            if len(set(column)) == 1 and _VARYING.search(head) and enough:
                label = head.strip(" :=,|([{").split()[-1:] or ["value"]
                yield Sign("constant", turn, f"{label[0].strip('=:')} {column[0]} in all {len(rows)} lines", (), 0.7)
                return


def _at_limit(turn: int, lines: list[str]) -> Iterator[Sign]:
    """Texts of exactly the same number of tokens in each of five cases or more: they end where a limit cuts them."""
    counts: dict[str, int] = {}
    for line in lines:
        found, case = _TOKENS.search(line[:300]), case_of(line)
        if found and case:
            counts[case] = int(found[1] or found[2])
    if len(counts) >= 5 and len(set(counts.values())) == 1:
        value = next(iter(counts.values()))
        yield Sign("constant", turn, f"exactly {value} tokens in all {len(counts)} cases", (), 0.7)


def _linear(turn: int, lines: list[str]) -> Iterator[Sign]:
    """A running total that grows by exactly the same amount per item: every item counted the same."""
    groups: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    if len(lines) < 8:
        return
    for line in lines:
        numbers = NUMBER.findall(line)
        skeleton = NUMBER.sub("#", line) if 2 <= len(numbers) <= 6 else ""
        if skeleton and len(skeleton) < 200 and not any("%" in n for n in numbers):
            groups[skeleton].append(tuple(map(float, numbers)))
    for skeleton, rows in groups.items():
        heads = skeleton.split("#")
        if len(rows) < 8:
            continue
        items, *totals = zip(*rows, strict=True)
        steps = [b - a for a, b in itertools.pairwise(items)]
        for head, column in zip(heads[1:], totals, strict=False):
            growth = [b - a for a, b in itertools.pairwise(column)]
            if _PER_ITEM.search(head) and min(steps) > 0 and growth[0] > steps[0]:
                rates = {round(g / s, 9) for g, s in zip(growth, steps, strict=True)}
                if len(rates) == 1:
                    yield Sign(
                        "constant",
                        turn,
                        f"exactly {growth[0] / steps[0]:g} per entry in all {len(rows)} lines",
                        (),
                        0.75,
                    )
                    return


def _either(turn: int, lines: list[str]) -> Iterator[Sign]:
    yield from _constant(turn, lines)
    yield from _linear(turn, lines)
    yield from _at_limit(turn, lines)


def _flat(turn: int, lines: list[str]) -> Iterator[Sign]:
    """Outputs without any content: the smallest value is the largest, or nothing varies."""
    flat = [case for line in lines if _FLAT.search(line) and not _COMPARES.search(line) and (case := case_of(line))]
    if len(set(flat)) >= 2:
        yield Sign("flat", turn, f"one value all over in {', '.join(flat[:3])}", tuple(dict.fromkeys(flat)), 0.7)


def _twins(turn: int, lines: list[str]) -> Iterator[Sign]:
    """Two differently named rows of results that agree in every one of at least three fine numbers."""
    seen: dict[tuple[str, ...], str] = {}
    for line in lines:
        if line.count(".") < 3 or _REPEATS.search(line):
            continue
        numbers = tuple(n for n in NUMBER.findall(line) if len(n.partition(".")[2]) >= 3)
        if len(numbers) < 3 or len(set(numbers)) < 3:
            continue
        name = " ".join(re.findall(r"[A-Za-z][\w-]{2,}", line[: line.find(numbers[0])]))[:60].lower()
        other = seen.setdefault(numbers, name)
        if name and other and other != name:
            yield Sign("twins", turn, f"{other} and {name} have the same values", (other, name), 0.65)
            return


def prints_sign(ctx: CodeContext, kind: str, turn: int, lines: list[str]) -> tuple[bool, bool]:
    """Whether these lines show a sign of this kind, and whether they could have: they print the same sort of thing."""
    repeats = {"zero": _zero, "nan": _nan, "constant": _either, "twins": _twins, "unloaded": _unloaded, "flat": _flat}
    found = repeats[kind](turn, lines) if kind in repeats else _fallback(ctx, turn, lines)
    return next(found, None) is not None, kind != "zero" or any(_COUNT.search(line) for line in lines)
