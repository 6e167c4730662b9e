"""E3: what the delivered files contain when they are opened and measured.

Sizes of organs in ml, levels of images, numbers of boxes: a look at the files would have shown the
same, whether or not the run printed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ..context import CodeContext
from ..registry import Finding, detector
from .handover import hand_over
from .printed_cases import looked_into

TIGHT = 1.6
"""Largest ratio of sizes in one group: healthy organs of one cohort differ by so much."""
APART = 1.5
"""Ratio to the largest (or smallest) size of the group from which a size lies apart."""
MANY_LABELS_APART = 3.0
"""The same for structures of a multi-class task, some of which vary by nature (fat, effusions)."""
SHARE = 0.55
"""Smallest share of the cases in the group; at least four cases."""
_SAME = {
    "identical": "the same output for every case",
    "unchanged": "the input, unchanged",
    "constant": "constant outputs",
}


@detector("bad_content_delivered", code="E3", stage="S4", independence="from_files")
def bad_content_delivered(ctx: CodeContext) -> Iterable[Finding]:
    """The files hold content that a look would have shown to be wrong.

    Examples are placeholders, one output for all cases, and the unchanged input.
    """
    if ctx.facts is None or not ctx.handed_over:
        return
    turns = hand_over(ctx)
    rate = ctx.facts.placeholder_rate
    total = ctx.facts.expected_cases or len(ctx.run.outputs.cases)
    if rate is not None and rate > 0.05:
        yield Finding(turns, f"{rate:.0%} of the delivered answers are placeholders.", 0.9)
    for kind, words in _SAME.items():
        issues = ctx.facts.of(kind)
        if not issues:
            continue
        in_most_cases = bool(total) and len({issue.case for issue in issues}) > 0.5 * total
        few_suffice = kind in ("constant", "unchanged") and ctx.output == "images"
        if issues[0].case is None or few_suffice or in_most_cases:
            yield Finding(turns, f"The delivered files hold {words}, and were handed in.", 0.8)
    for fact in ctx.facts.of("class_absent", "repeated", "cut_off"):
        yield Finding(turns, f"In the delivered files, {fact.text}, and they were handed in.", 0.8)


@detector("unlike_files_accepted", code="E3", stage="S4", independence="from_files")
def unlike_files_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """A delivered file differs strongly from all others, and no execution looked into its case.

    Size or level of the same thing are compared. Lesions, findings and boxes differ by nature and
    are not compared, nor are images that keep the scale of their inputs.
    """
    for name, column in _columns(ctx).items():
        cases = _unlike_cases(ctx, name, column)
        if cases and not looked_into(ctx, cases, ctx.final_write or 0):
            values = ", ".join(f"{case} {column[case]:.3g}" for case in cases[:3])
            usual = median(value for case, value in column.items() if case not in cases)
            unit = f" {ctx.track.unit}" if ctx.track is not None and ctx.track.unit else ""
            why = (
                f"The delivered files differ in {name.replace('_', ' ')} ({values}{unit}; the"
                f" others about {usual:.3g}), and no execution looked into it."
            )
            yield Finding(tuple(sorted({ctx.final_write or ctx.last, ctx.last})), why, 0.7)
            return


def _unlike_cases(ctx: CodeContext, name: str, column: Mapping[str, float]) -> tuple[str, ...]:
    """Cases that lie far off in a quantity; none for quantities that differ by nature."""
    if ctx.output == "masks":
        if name == "lesion":
            return ()
        return size_outliers(column, APART if name == "organ" else MANY_LABELS_APART)
    if ctx.track is None or name not in ctx.track.levels:
        return ()
    return outliers(column) if ctx.run.output_format.has_absolute_scale else ()


@detector("empty_files_accepted", code="E3", stage="S4", independence="from_files")
def empty_files_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """Masks of what is always there are empty in some cases, and no execution went into one."""
    final = ctx.final_write
    if ctx.facts is None or final is None or not ctx.handed_over or len(ctx.run.outputs.cases) < 3:
        return
    empty = tuple(dict.fromkeys(fact.case for fact in ctx.facts.hollow if fact.case is not None))
    if empty and not looked_into(ctx, empty, final):
        why = f"The files of {joined(empty)} are empty, and no execution looked into one."
        yield Finding(tuple(sorted({final, ctx.last})), why, 0.7)


def _columns(ctx: CodeContext) -> dict[str, dict[str, float]]:
    """Quantity -> case -> number, of a run that handed in files."""
    columns: dict[str, dict[str, float]] = {}
    if ctx.facts is None or not ctx.handed_over:
        return columns
    for case, values in ctx.facts.measures.items():
        for name, value in values.items():
            columns.setdefault(name, {})[case] = value
    return columns


def size_outliers(column: Mapping[str, float], factor: float) -> tuple[str, ...]:
    """Cases `factor` times larger or smaller than all cases of the largest group of like sizes.

    A group holds the sizes within `TIGHT`. No outliers if it has fewer than four cases or no
    majority.
    """
    order = sorted(column, key=lambda case: column[case])
    values = [column[case] for case in order if column[case] > 0]
    largest, start = (0, 0, 0), 0
    for end, value in enumerate(values, 1):
        while value > TIGHT * values[start]:
            start += 1
        largest = max(largest, (end - start, start, end))
    count, start, end = largest
    if count < 4 or count < SHARE * len(column):
        return ()
    small, large = values[start], values[end - 1]
    return tuple(
        case for case in order if column[case] * factor <= small or column[case] >= factor * large
    )


def outliers(column: Mapping[str, float]) -> tuple[str, ...]:
    """Cases that lie far off an otherwise tight column.

    Far off is three times or a third of the median, or the other sign; or a seventh off it and five
    times further away than the range of the other cases. Needs at least five cases, at most two in
    five of them off; the others may scatter by a sixth of their median, so that a column which
    varies by nature (sizes of tumours) has no outliers.
    """
    if len(column) < 5:
        return ()
    middle = median(column.values())
    off = [case for case, value in column.items() if not _is_near(value, middle)]
    off = off or _beyond(column, middle)
    others = [value for case, value in column.items() if case not in off]
    if not off or not middle or len(off) > 0.4 * len(column) or len(others) < 4:
        return ()
    spread = median(abs(value - median(others)) for value in others) / abs(middle)
    return tuple(off) if spread <= 1 / 6 else ()


FAR = 5.0
"""Distance from all other cases, in multiples of their range, from which a case is far off."""


def _beyond(column: Mapping[str, float], middle: float) -> list[str]:
    """The furthest cases, at most two in five, if a wide gap separates them from all others."""
    order = sorted(column, key=lambda case: abs(column[case] - middle), reverse=True)
    for count in range(1, int(0.4 * len(order)) + 1):
        others = [column[case] for case in order[count:]]
        low, high = min(others), max(others)
        gap = min(max(low - column[case], column[case] - high) for case in order[:count])
        if len(others) >= 4 and gap >= 0.15 * abs(middle) and gap >= FAR * (high - low):
            return order[:count]
    return []


def _is_near(value: float, middle: float) -> bool:
    return value * middle > 0 and 1 / 3 < value / middle < 3


def joined(parts: Sequence[str], limit: int = 3) -> str:
    """The parts in one text, those beyond the limit as a number."""
    text = ", ".join(parts[:limit])
    return f"{text} and {len(parts) - limit} more" if len(parts) > limit else text
