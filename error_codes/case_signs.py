"""E3: what the numbers of a run's own per-case tables show when cases, turns, inputs and outputs are compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import comb
from statistics import median

from .case_tables import Row, columns, cross_counts, joined, outliers, rows_of
from .class_signs import classes
from .context import CodeContext
from .reactions import names_case
from .registry import Finding, detector

COUNTED = re.compile(
    r"^(?:detected|detections?|found|reported|kept|predicted|predictions?|boxes|box|candidates?|components?|instances?|objects?|hits?"
    r"|counts?|n|nodules?|lesions?|tumou?rs?|polyps?|cells?|masks?|voxels?|pixels?|px|foreground|fg|positives?|segments?|area|peaks|spots)$"
)
_EMPTY_LIST = re.compile(
    r"\b(?:empty|no[ _](?:box(?:es)?|detections?|masks?|lesions?|foreground|predictions?)|zero[ _](?:box(?:es)?|voxels?|detections?)|without(?: \w{1,20})?)\b"
    r"[^\[(\n]{0,30}[\[(]([^\])\n]{1,400})[\])]", re.IGNORECASE)  # fmt: skip
MAY_BE_EMPTY = re.compile(
    r"\b(?:may|can|could|might) (?:be (?:left )?empty|have (?:no|none|zero)|hold (?:no|none)|contain (?:no|none|zero)|not (?:have|contain|show))"
    r"|\bis then empty\b|\bempty (?:list|masks?|boxes|files?) (?:is|are|means?|for|where|when|if|count)|\b(?:some|not (?:all|every)|several) [^.\n]{0,40}\b(?:no|none|without|contain|have|empty|healthy|normal)\b"
    r"|\bif (?:any|present|there (?:is|are) (?:any|one))\b|\bwithout (?:a |any )?(?:lesion|tumou?r|nodule|finding|object|polyp)|\bzero or more\b|\b(?:no|0)(?: \w+)? (?:to|or) (?:many|more|several)\b|\"boxes\": ?\[\]",
    re.IGNORECASE,
)
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

    Words alone explain; only an execution tests. The last write does not count, as it would have run anyhow.
    """
    for turn in ctx.run.turns[(ctx.model_turns or (since,))[0] - 1 :]:
        feature = ctx.feature(turn.index)
        if not feature.executed or feature.blocked or turn.index in (*ctx.failed_turns, ctx.final_write):
            continue
        again = feature.forward_pass and not feature.writes_outputs and not feature.dummy_forward
        if turn.index > since and any(case in turn.code[:200_000] for case in cases):
            return True
        if again and _names_any(cases, turn.text if turn.index <= since else turn.output):
            return True
    return False


def _names_any(cases: Sequence[str], words: str) -> bool:
    return any(names_case(case, words[-60_000:]) for case in cases)


def owns_up(ctx: CodeContext) -> bool:
    """Whether the closing words name a limitation of the results themselves."""
    return _LIMITATION.search(ctx.closing[-100_000:]) is not None


def _tables(ctx: CodeContext, turns: Iterable[int]) -> dict[int, tuple[Row, ...]]:
    found = {}
    for turn in turns:
        table = rows_of(ctx.run, turn)
        if len({row.case for row in table}) >= 3:
            found[turn] = table
    return found


def _late(ctx: CodeContext) -> tuple[int, ...]:
    """The last write and the turns after it that printed something of the outputs or ran a model."""
    final = ctx.final_write
    return () if final is None else tuple(
        f.turn for f in ctx.features
        if f.turn >= final and f.executed and not f.blocked and (f.turn == final or f.has("reads_outputs", "forward_pass", "checks_outputs"))
    )  # fmt: skip


@detector("empty_cases_accepted", code="E3", stage="S4", independence="from_trace")
def empty_cases_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """Cases came out without anything found, the brief gives no such cases, and no execution looked into one."""
    if ctx.run.track not in ("detection", "segmentation") or not ctx.handed_over or owns_up(ctx):
        return
    if MAY_BE_EMPTY.search(ctx.run.brief[:200_000]):
        return
    for turn in _late(ctx):
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


def _empty_cases(ctx: CodeContext, turn: int) -> tuple[str, ...]:
    """Cases with next to nothing (none, or a fiftieth of the others) among others that have some, or listed as empty."""
    table, output = rows_of(ctx.run, turn), ctx.turn(turn).output
    named = {row.case for row in table}
    for match in _EMPTY_LIST.finditer("\n".join(line[:1_000] for line in output.splitlines()[-3_000:])):
        listed = re.findall(r"[A-Za-z][A-Za-z_-]{0,20}_?\d{1,10}", match[1])
        if listed:
            return tuple(listed)
    for (name, place), column in columns(table).items():
        if place or not counts_things(name) or len(column) < 4 or len(column) < len(named):
            continue
        values = list(column.values())
        zero = tuple(case for case, value in column.items() if value * 50 < median(values) or value == 0)
        if zero and len(zero) <= 0.5 * len(values) and all(value >= 0 and value == int(value) for value in values):
            return zero
    return ()


@detector("lost_after_change", code="E3", stage="S4", independence="from_trace")
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


@detector("subgroup_one_answer", code="E3", stage="S4", independence="from_trace")
def subgroup_one_answer(ctx: CodeContext) -> Iterable[Finding]:
    """One group of cases (camera, scanner, site, shape) got one and the same label, the other cases several."""
    final = ctx.final_write
    if ctx.run.track not in ("classification", "vqa") or final is None or not ctx.handed_over or owns_up(ctx):
        return
    labels = classes(ctx.run.brief)
    if len(labels) < 3:
        return
    total = ctx.facts.expected_cases if ctx.facts is not None else None
    groups = _groups(ctx, labels)
    for turn in _late(ctx):
        output = ctx.turn(turn).output
        table = cross_counts(output.splitlines()[-3_000:], labels)
        if total is not None and sum(sum(c.values()) for c in table.values()) != total:
            table = {}
        given = _labels_given(rows_of(ctx.run, turn), labels)
        for part in (table, *(_crossed(group, given) for group in groups)):
            odd = one_answer_group(part)
            if odd is None or ((odd[0].startswith("from ") or odd[0].isdigit()) and not _elsewhere(part, odd)):
                continue
            members = [case for group in groups for case, name in group.items() if name == odd[0]]
            if not looked_into(ctx, members or ["\0"], turn):
                yield Finding(
                    tuple(sorted({turn, ctx.last})),
                    f"All {odd[2]} cases of group {odd[0]} got {odd[1]}, the others several labels, and nothing was changed.",
                    0.75,
                )
                return


def one_answer_group(table: Mapping[str, Mapping[str, int]]) -> tuple[str, str, int] | None:
    """Group, its only label, and its size, where chance is no explanation given what the other groups got (p < 0.001)."""
    if not 2 <= len(table) <= 6:
        return None
    for group, counts in table.items():
        used = {label: n for label, n in counts.items() if n}
        others = Counter[str]()
        for name, row in table.items():
            if name != group:
                others.update(row)
        rest = sum(others.values())
        if len(used) != 1 or rest < 5 or sum(1 for n in others.values() if n) < 2:
            continue
        ((label, n),) = used.items()
        share = (others[label] + 1) / (rest + 2)
        if n >= 4 and share**n < 1e-3:
            return group, label, n
    return None


def _elsewhere(part: Mapping[str, Mapping[str, int]], odd: tuple[str, str, int]) -> bool:
    """Whether the other groups got the label too, so that the number behind the groups is not what the label means."""
    return sum(counts.get(odd[1], 0) for name, counts in part.items() if name != odd[0]) >= 2


def _groups(ctx: CodeContext, labels: Sequence[str]) -> list[dict[str, str]]:
    """Case -> group (never by `labels`), from tables of inputs whenever they were printed: columns with few values, and numbers in two clusters."""
    found: list[dict[str, str]] = []
    for turn in range(1, ctx.last):
        table = rows_of(ctx.run, turn)
        if ctx.feature(turn).forward_pass or len(table) < 8 or len(found) >= MAX_GROUPS:
            continue
        cells = {row.case: re.split(r"[\s,;|]+", row.rest.strip(" ,;|:"))[:12] for row in table}
        width = min((len(c) for c in cells.values()), default=0)
        named = [{case: c[place].strip("()[]{}'\":=") for case, c in cells.items()} for place in range(width)]
        for group in (*named, *filter(None, map(two_clusters, islice(columns(table).values(), MAX_GROUPS)))):
            sizes = Counter(group.values())
            if (
                2 <= len(sizes) <= 4
                and min(sizes.values()) >= 3
                and not set(sizes) & set(labels)
                and group not in found
            ):
                found.append(group)
    return found[:MAX_GROUPS]


MAX_GROUPS = 20
"""Groupings of the cases, and columns of one table, that are looked at."""
GAP = 1.5
"""Two clusters lie further apart than this many times the wider one's range."""


def two_clusters(column: Mapping[str, float]) -> dict[str, str] | None:
    """Case -> "from A to B" where the numbers of a column fall into two clusters with nothing in between; None otherwise."""
    values = sorted(column.values())
    if len(values) < 8 or values[0] == values[-1]:
        return None
    gap, cut = max((b - a, i) for i, (a, b) in enumerate(pairwise(values), 1))
    low, high = values[:cut], values[cut:]
    if min(len(low), len(high)) < 4 or gap < GAP * max(low[-1] - low[0], high[-1] - high[0]) or len(set(values)) < 4:
        return None
    names = [f"from {part[0]:g} to {part[-1]:g}" for part in (low, high)]
    return {case: names[value > low[-1]] for case, value in column.items()}


def _labels_given(table: Sequence[Row], labels: Sequence[str]) -> dict[str, str]:
    """Case -> the label that its row shows first after the case, or the only one that it shows."""
    word = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, labels))})(?![\w-])")
    given = {}
    for row in table:
        found = word.findall(row.rest[:400])
        first = word.match(row.rest.lstrip(" \t,|:=>-'\"([")[:60])
        if first or len(set(found)) == 1:
            given[row.case] = first[0] if first else found[0]
    return given


@detector("subgroup_nothing_found", code="E3", stage="S4", independence="from_trace")
def subgroup_nothing_found(ctx: CodeContext) -> Iterable[Finding]:
    """Nothing was found in any case of one group (orientation, scanner, size, polarity), in most others something was."""
    if ctx.run.track not in ("detection", "segmentation") or not ctx.handed_over or owns_up(ctx):
        return
    groups = _groups(ctx, ())
    for turn in _late(ctx) if groups else ():
        table = rows_of(ctx.run, turn)
        for (name, place), counts in columns(table).items():
            if (
                place
                or not counts_things(name)
                or len(counts) < 8
                or any(v != int(v) or v < 0 for v in counts.values())
            ):
                continue
            for group in groups:
                odd = barren_group(group, counts)
                if odd and not looked_into(ctx, odd[1], turn):
                    why = f"Nothing was found in any of the {len(odd[1])} cases of group {odd[0]}, in most others something was, and no execution looked into one."
                    yield Finding(tuple(sorted({turn, ctx.last})), why, 0.7)
                    return


def barren_group(group: Mapping[str, str], counts: Mapping[str, float]) -> tuple[str, list[str]] | None:
    """The group of at least three cases that hold nothing, and its cases, where chance is no explanation (p < 0.01)."""
    shared = {case: counts[case] for case in group if case in counts}
    empty = sum(1 for value in shared.values() if value == 0)
    for name in dict.fromkeys(group.values()):
        members = [case for case in shared if group[case] == name]
        rest = len(shared) - len(members)
        if len(members) < 3 or rest < 4 or any(shared[case] for case in members):
            continue
        if (empty - len(members)) * 3 <= rest and comb(empty, len(members)) < 0.01 * comb(len(shared), len(members)):
            return name, members
    return None


def _crossed(group: Mapping[str, str], given: Mapping[str, str]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for case, label in given.items():
        if case in group:
            counts = table.setdefault(group[case], {})
            counts[label] = counts.get(label, 0) + 1
    return table


@detector("odd_cases_treated_alike", code="E3", stage="S4", independence="from_trace")
def odd_cases_treated_alike(ctx: CodeContext) -> Iterable[Finding]:
    """Cases whose inputs lie far off the others gave outputs far off the others, and nothing was run again."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track is None or owns_up(ctx):
        return
    inputs: dict[str, tuple[int, str, dict[str, float]]] = {}
    for turn, table in _tables(ctx, range(1, final)).items():
        if not ctx.feature(turn).forward_pass:
            for (name, _), column in columns(table).items():
                for case in outliers(column):
                    inputs.setdefault(case, (turn, name, column))
    if not inputs:
        return
    for turn, table in _tables(ctx, _late(ctx)).items():
        for (name, _), column in columns(regular(table)).items():
            odd = [case for case in outliers(column) if case in inputs]
            if not odd or _SETTING.search(name) or _few(column) or any(_same(column, inputs[c][2]) for c in odd):
                continue
            first = inputs[odd[0]][0]
            yield Finding(
                tuple(sorted({first, turn, ctx.last})),
                f"The inputs of {joined(odd)} differ from the rest in turn {first}, so do the outputs ({name or 'value'}), and nothing was run again.",
                0.75,
            )
            return


def _few(column: Mapping[str, float]) -> bool:
    """Whether a column holds small whole numbers: counts and places that differ by nature."""
    return all(value == int(value) for value in column.values()) and max(map(abs, column.values())) < 30


def _same(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Whether two columns show the same quantity: proportional to each other within 5 %, so only printed again."""
    ratios = [left[c] / right[c] for c in left if right.get(c)]
    return bool(ratios) and max(ratios) - min(ratios) <= 0.05 * abs(sum(ratios) / len(ratios))


@detector("odd_outputs_accepted", code="E3", stage="S4", independence="from_trace")
def odd_outputs_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """A case lies far off two named, otherwise tight columns of the outputs' table, and no execution looked into it.

    Classes differ by nature, and so do rows that list as many values as things were found: neither is compared.
    """
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track not in MEASURED or owns_up(ctx):
        return
    for turn, table in _tables(ctx, _late(ctx)).items():
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
