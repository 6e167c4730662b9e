"""E3: groups of cases (camera, scanner, site, two kinds of inputs) that fared otherwise than the rest, and nobody went into it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import comb

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import MEASURED, counts_things, late_tables, looked_into, owns_up, same_quantity, tables
from .case_tables import Row, columns, cross_counts, joined, rows_of
from .class_signs import classes


@detector("subgroup_one_answer", code="E3", stage="S4", independence="from_trace", sign=True)
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
    for turn in late_tables(ctx):
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


def two_clusters(column: Mapping[str, float], least: int = 4, gap: float = GAP) -> dict[str, str] | None:
    """Case -> "from A to B" where the numbers of a column fall into two clusters with nothing in between; None otherwise.

    `least` cases in each; further apart than `gap` times the wider one's range.
    """
    values = sorted(column.values())
    if len(values) < 8 or values[0] == values[-1]:
        return None
    widest, cut = max((b - a, i) for i, (a, b) in enumerate(pairwise(values), 1))
    low, high = values[:cut], values[cut:]
    if (
        min(len(low), len(high)) < least
        or widest < gap * max(low[-1] - low[0], high[-1] - high[0])
        or len(set(values)) < 4
    ):
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


@detector("subgroup_nothing_found", code="E3", stage="S4", independence="from_trace", sign=True)
def subgroup_nothing_found(ctx: CodeContext) -> Iterable[Finding]:
    """Nothing was found in any case of one group (orientation, scanner, size, polarity), in most others something was."""
    if ctx.run.track not in ("detection", "segmentation") or not ctx.handed_over or owns_up(ctx):
        return
    groups = _groups(ctx, ())
    for turn in late_tables(ctx) if groups else ():
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


_OF_INPUTS = re.compile(
    r"^(?:mean|std|sd|min|max|median|range|p\d{1,2}|intensity|brightness|contrast|spacing|background|input|noise|hu)$"
)


@detector("two_kinds_treated_alike", code="E3", stage="S4", independence="from_trace", sign=True)
def two_kinds_treated_alike(ctx: CodeContext) -> Iterable[Finding]:
    """The inputs are of two kinds by a printed number, the outputs fall apart into the very same two groups, and nothing was done.

    Eight cases or more, three of each kind; a split that agrees by chance in two unlike columns is then rarer than 1 in 50.
    """
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track not in (*MEASURED, "classification") or owns_up(ctx):
        return
    kinds: list[tuple[int, str, dict[str, float], dict[str, str]]] = []
    for turn, table in tables(ctx, range(1, ctx.last)).items():
        shows_outputs = ctx.feature(turn).forward_pass or turn >= final
        for (name, _), column in islice(columns(table).items(), MAX_GROUPS):
            if (not shows_outputs or _OF_INPUTS.match(name)) and (split := two_clusters(column, 3)):
                kinds.append((turn, name, column, split))
    for turn, table in tables(ctx, late_tables(ctx)).items() if kinds else ():
        for (name, _), column in islice(columns(table).items(), MAX_GROUPS):
            split = two_clusters(column, 3) if name and not _OF_INPUTS.match(name) else None
            for first, kind, other, before in kinds[:MAX_GROUPS] if split else ():
                if not same_split(split or {}, before) or same_quantity(column, other):
                    continue
                fewer = Counter(before.values()).most_common()[-1][0]
                members = [case for case, part in before.items() if part == fewer]
                if not looked_into(ctx, members, turn):
                    yield Finding(
                        tuple(sorted({first, turn, ctx.last})),
                        f"{joined(members)} stand apart from the rest in their inputs ({kind or 'value'}) and in the outputs alike ({name}), and no execution looked into it.",
                        0.7,
                    )
                    return


def same_split(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Whether two splits of the same cases in two put the same ones together."""
    return left.keys() == right.keys() and len({(left[case], right[case]) for case in left}) == 2
