"""E3: what the numbers of a run's own per-case tables show when cases, turns, inputs and outputs are compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from statistics import median

from ...trajectories.briefs import absolute_scale
from ..context import CodeContext
from ..registry import Finding, detector
from .case_tables import Row, columns, joined, outliers, rows_of
from .reactions import names_case

COUNTED = re.compile(
    r"^(?:detected|detections?|found|reported|kept|predicted|predictions?|boxes|box|candidates?|components?|instances?|objects?|hits?"
    r"|counts?|n|nodules?|lesions?|tumou?rs?|polyps?|cells?|masks?|voxels?|pixels?|px|foreground|fg|positives?|segments?|area|peaks|spots)$"
)
_EMPTY_LIST = re.compile(
    r"\b(?:empty|no[ _](?:box(?:es)?|detections?|masks?|lesions?|foreground|predictions?)|zero[ _](?:box(?:es)?|voxels?|detections?)|without(?: \w{1,20})?)\b"
    r"[^\[(\n]{0,30}[\[(]([^\])\n]{1,400})[\])]", re.IGNORECASE)  # fmt: skip
MAY_BE_EMPTY = re.compile(
    r"\b(?:may|can|could|might) (?:be (?:left )?empty|have (?:no|none|zero)|hold (?:no|none)|contain (?:no|none|zero)|not (?:have|contain|show))"
    r"|\bis then empty\b|\bempty (?:list|masks?|boxes|files?) (?:is|are|means?|for|where|when|if|count)|\b(?:some|not (?:all|every)|several) [^.\n]{0,40}\b(?:no|none|without|contain|ha(?:ve|s)|empty|healthy|normal)\b"
    r"|\ball[- ]?zeros? (?:where|if|when|for)\b|\b(?:where|if|when) there (?:is|are) none\b|\bif (?:any|present|there (?:is|are) (?:any|one))\b|\bwithout (?:a |any )?(?:lesion|tumou?r|nodule|finding|object|polyp)|\bzero or more\b|\b(?:no|0)(?: \w+)? (?:to|or) (?:many|more|several)\b|\"boxes\": ?\[\]",
    re.IGNORECASE,
)
MAX_CARD = 20_000
"""Characters of a card that are read."""


def may_be_empty(ctx: CodeContext) -> bool:
    """Whether the brief, or a card that the run read, says that cases without content occur."""
    read = (ctx.turn(f.turn).output[:MAX_CARD] for f in ctx.features if f.reads_docs)
    return any(MAY_BE_EMPTY.search(text) for text in (ctx.run.brief[:200_000], *read))


_SETTING = re.compile(
    r"scale|factor|gain|norm|zoom|spacing|shift|flip|divis|offset|slope|intercept|threshold|thr$|clip"
)
_LIMITATION = re.compile(
    r"\b(?:limitation|caveat|not (?:been )?(?:resolved|repaired|fixed|settled)|unreliable|should be (?:treated|read|taken) with|low confidence"
    r"|probably (?:wrong|missed)|may (?:well )?be (?:wrong|missed|misses)|could be (?:wrong|misses)|do not trust|cannot (?:vouch|say|tell) )",
    re.IGNORECASE,
)


def looked_into(ctx: CodeContext, cases: Sequence[str], since: int) -> bool:
    """Whether an execution went into these cases: one after turn `since` names a case in its code, or runs the model again
    without saving and shows it; or one before, announced by the agent's words on the case.

    Words alone explain; only an execution tests. The last write does not count, as it would have run anyhow, and neither does
    code that lists (nearly) all cases by name: it treats this one as the others.
    """
    everyone = set(ctx.run.outputs.cases) or {row.case for row in rows_of(ctx.run, since)}
    for turn in ctx.run.turns[(ctx.model_turns or (since,))[0] - 1 :]:
        feature = ctx.feature(turn.index)
        if not feature.executed or feature.blocked or turn.index in (*ctx.failed_turns, ctx.final_write):
            continue
        again = feature.forward_pass and not feature.writes_outputs and not feature.dummy_forward
        code = turn.code[:200_000]
        if turn.index > since and any(case in code for case in cases) and not _names_all(everyone, code):
            return True
        shown = turn.index > since or any(
            _names_any(cases, ctx.turn(t).output) for t in ctx.model_turns if t < turn.index
        )
        # A case that no output has shown yet is piloted, not looked into.
        if again and shown and _names_any(cases, turn.text if turn.index <= since else turn.output):
            return True
    return False


def _names_all(everyone: set[str], code: str) -> bool:
    return len(everyone) >= 5 and sum(case in code for case in everyone) >= 0.8 * len(everyone)


def _names_any(cases: Sequence[str], words: str) -> bool:
    return any(names_case(case, words[-60_000:]) for case in cases)


def owns_up(ctx: CodeContext) -> bool:
    """Whether the closing words name a limitation of the results themselves."""
    return _LIMITATION.search(ctx.closing[-100_000:]) is not None


def tables(ctx: CodeContext, turns: Iterable[int]) -> dict[int, tuple[Row, ...]]:
    found = {}
    for turn in turns:
        table = rows_of(ctx.run, turn)
        if len({row.case for row in table}) >= 3:
            found[turn] = table
    return found


def late_tables(ctx: CodeContext) -> tuple[int, ...]:
    """The last write and the turns after it that printed something of the outputs (or of the log) or ran a model."""
    final = ctx.final_write
    return () if final is None else tuple(
        f.turn for f in ctx.features
        if f.turn >= final and f.executed and not f.blocked and (f.turn == final or f.has("reads_outputs", "forward_pass", "checks_outputs", "watches_progress"))
    )  # fmt: skip


@detector("empty_cases_accepted", code="E3", stage="S4", independence="from_trace", sign=True)
def empty_cases_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """Cases came out without anything found, the brief gives no such cases, and no execution looked into one."""
    if ctx.run.track not in ("detection", "segmentation") or not ctx.handed_over or owns_up(ctx):
        return
    if may_be_empty(ctx):
        return
    for turn in late_tables(ctx):
        empty = _empty_cases(ctx, turn)
        if empty and not looked_into(ctx, empty, _first_shown(ctx, empty, turn)):
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"Nothing was found in {joined(empty)}, the brief knows no empty cases, and no execution looked into one.",
                0.7,
                ctx.stage(turn),
            )
            return


def _first_shown(ctx: CodeContext, cases: Sequence[str], turn: int) -> int:
    """The first model turn whose output shows one of these cases as empty; `turn` if none before."""
    for earlier in ctx.model_turns:
        if earlier < turn and set(cases) & set(_empty_cases(ctx, earlier)):
            return earlier
    return turn


def counts_things(name: str) -> bool:
    """Whether the word before a number says that things are counted: `boxes`, `n_boxes`, `lesions_found`, or no word."""
    return name == "" or any(COUNTED.match(part) for part in (name, *name.split("_")))


_OF_A_CLASS = re.compile(r"(?<![\w.])(\d{1,4}) ([A-Za-z]{3,30})\b")
"""`0 filling 5 caries`"""


def _of_some_class(row: str) -> bool:
    """Whether a row counts two or more kinds of things, and some of one."""
    found = _OF_A_CLASS.findall(row[:600])
    return len({word for _, word in found}) > 1 and any(int(n) for n, _ in found)


def _empty_cases(ctx: CodeContext, turn: int) -> tuple[str, ...]:
    """Cases with next to nothing (none, or a fiftieth of the others) among others that have some, or listed as empty."""
    table, output = rows_of(ctx.run, turn), ctx.turn(turn).output
    named = {row.case for row in table}
    for match in _EMPTY_LIST.finditer("\n".join(line[:1_000] for line in output.splitlines()[-3_000:])):
        listed = re.findall(r"[A-Za-z][A-Za-z_-]{0,20}_?\d{1,10}", match[1])
        if listed:
            return tuple(listed)
    some = {row.case for row in table if ctx.run.track == "detection" and _of_some_class(row.rest)}
    for (name, place), column in columns(table).items():
        if place or not counts_things(name) or len(column) < 4 or len(column) < len(named):
            continue
        values = list(column.values())
        few = (case for case, value in column.items() if value * 50 < median(values) or value == 0)
        zero = tuple(case for case in few if case not in some)
        if zero and len(zero) <= 0.5 * len(values) and all(value >= 0 and value == int(value) for value in values):
            return zero
    return ()


@detector("lost_after_change", code="E3", stage="S4", independence="from_trace", sign=True)
def lost_after_change(ctx: CodeContext) -> Iterable[Finding]:
    """A second run with other settings lost everything in cases that had detections before; nobody looked at these."""
    if ctx.run.track not in ("detection", "segmentation") or not ctx.handed_over or ctx.final_write is None:
        return
    tables = _tables_with_pilots(ctx)
    last = max((t for t in tables if t >= ctx.final_write), default=None)
    if last is None or owns_up(ctx):
        return
    after = _counts(tables[last])
    for turn in (t for t in tables if t < last):
        before = _counts(tables[turn])
        lost = [c for c in after if after[c] == 0 and before.get(c, 0) > 0]
        shared = [c for c in after if c in before]
        fewer = sum(after[c] for c in shared) < sum(before[c] for c in shared)
        words = ctx.text_from(turn + 1)[-200_000:]
        lost = [c for c in lost if not names_case(c, words)]
        if lost and fewer and len(lost) < len(after) and not looked_into(ctx, lost, turn):
            yield Finding(
                tuple(sorted({turn, last, ctx.last})),
                f"Turn {turn} found something in {joined(lost)}, turn {last} nothing any more, and it was not looked into.",
                0.75,
            )
            return


def _tables_with_pilots(ctx: CodeContext) -> dict[int, tuple[Row, ...]]:
    return {t: rows_of(ctx.run, t) for t in ctx.model_turns if t not in ctx.failed_turns}


def _counts(table: Sequence[Row]) -> dict[str, float]:
    """Case -> its count: the first number of a row where it stands alone or under a word that counts."""
    counts: dict[str, float] = {}
    for row in table:
        for (name, _), value in row.values.items():
            if counts_things(name) and value >= 0 and value == int(value):
                counts[row.case] = value
                break
    return counts


@detector("odd_cases_treated_alike", code="E3", stage="S4", independence="from_trace", sign=True)
def odd_cases_treated_alike(ctx: CodeContext) -> Iterable[Finding]:
    """Cases whose inputs lie far off the others gave outputs far off the others, and nothing was run again."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or not _one_scale(ctx) or owns_up(ctx):
        return
    inputs: dict[str, tuple[int, str, dict[str, float]]] = {}
    for turn, table in tables(ctx, range(1, final)).items():
        if not ctx.feature(turn).forward_pass:
            for (name, _), column in columns(table).items():
                for case in outliers(column):
                    inputs.setdefault(case, (turn, name, column))
    if not inputs:
        return
    for turn, table in tables(ctx, late_tables(ctx)).items():
        for (name, _), column in columns(regular(table)).items():
            apart = outliers(column)
            odd = [case for case in apart if case in inputs]
            if (
                not odd
                or _by_chance(len(odd), len(apart), sum(case in inputs for case in column), len(column)) > CHANCE
                or _SETTING.search(name)
                or _few(column)
                or any(same_quantity(column, inputs[c][2]) for c in odd)
            ):
                continue
            first = inputs[odd[0]][0]
            yield Finding(
                tuple(sorted({first, turn, ctx.last})),
                f"The inputs of {joined(odd)} differ from the rest in turn {first}, so do the outputs ({name or 'value'}), and nothing was run again.",
                0.75,
            )
            return


CHANCE = 0.2
"""Probability from which odd outputs of odd inputs are no more than a coincidence."""


def _by_chance(both: int, left: int, right: int, total: int) -> float:
    """Probability that two random choices of `left` and `right` cases out of `total` share at least `both` (hypergeometric)."""
    return sum(comb(right, k) * comb(total - right, left - k) for k in range(both, min(left, right) + 1)) / comb(
        total, left
    )


def _few(column: Mapping[str, float]) -> bool:
    """Whether a column holds small whole numbers: counts and places that differ by nature."""
    return all(value == int(value) for value in column.values()) and max(map(abs, column.values())) < 30


def same_quantity(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Whether two columns show the same quantity: proportional to each other within 5 %, so only printed again."""
    ratios = [left[c] / right[c] for c in left if right.get(c)]
    return bool(ratios) and max(ratios) - min(ratios) <= 0.05 * abs(sum(ratios) / len(ratios))


@detector("odd_outputs_accepted", code="E3", stage="S4", independence="from_trace", sign=True)
def odd_outputs_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """A case lies far off two named, otherwise tight columns of the outputs' table, and no execution looked into it.

    Classes differ by nature, and so do rows that list as many values as things were found: neither is compared.
    """
    final = ctx.final_write
    if final is None or not ctx.handed_over or not _one_scale(ctx) or owns_up(ctx):
        return
    for turn, table in tables(ctx, late_tables(ctx)).items():
        odd: Counter[str] = Counter()
        for (name, _), column in columns(regular(table)).items():
            if name and not _SETTING.search(name) and not _few(column):
                odd.update(outliers(column))
        cases = [case for case, n in odd.items() if n >= 2]
        if cases and not looked_into(ctx, cases, turn):
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"{joined(cases)} lies far off all other cases in the printed table, and no execution looked into it.",
                0.65,
            )
            return


def _one_scale(ctx: CodeContext) -> bool:
    """Whether the outputs of all cases are quantities of one kind: images that keep the scale of their inputs are not."""
    images = ctx.run.track in ("enhancement", "synthesis")
    return ctx.run.track in MEASURED and (not images or absolute_scale(ctx.run.brief))


MEASURED = ("detection", "segmentation", "enhancement", "synthesis")
"""Tracks whose outputs are quantities of one kind for all cases."""


def regular(table: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of a table if they hold the same columns, but for one in five that are left out; none otherwise.

    Where rows list as many values as were found, the n-th number of one case is not the n-th number of another.
    """
    shapes = Counter(frozenset(row.values) for row in table)
    if not shapes:
        return ()
    usual, n = shapes.most_common(1)[0]
    return tuple(row for row in table if frozenset(row.values) == usual) if n * 5 >= 4 * len(table) else ()
