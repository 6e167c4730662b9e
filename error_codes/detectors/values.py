"""E3: what the delivered files hold when they are opened and measured, whether or not the run
printed it.

Sizes of organs in ml, levels of images, numbers of boxes: a look at the files would have shown the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ..context import CodeContext
from ..registry import Finding, detector
from .cases import looked_into
from .handover import hand_over

TIGHT = 1.6
"""Sizes whose largest is at most this many times the smallest belong together: what healthy organs
of one cohort differ by."""
APART = 1.5
"""Times the largest (or the inverse, of the smallest) of those that belong together from which a
size is another thing."""
MANY_LABELS_APART = 3.0
"""The same for structures of a multi-class task, some of which vary by nature (fat, effusions)."""
SHARE = 0.55
"""Share of the cases that have to belong together; at least four."""
_SAME = {
    "identical": "the same output for every case",
    "unchanged": "the input, unchanged",
    "constant": "constant outputs",
}


@detector("bad_content_delivered", code="E3", stage="S4", independence="from_files")
def bad_content_delivered(ctx: CodeContext) -> Iterable[Finding]:
    """The files hold what a look would have shown: placeholders, one output for all cases, the
    unchanged input."""
    if ctx.facts is None or not ctx.handed_over:
        return
    where = hand_over(ctx)
    rate, total = ctx.facts.placeholder_rate, ctx.facts.expected_cases or len(ctx.run.outputs.cases)
    if rate is not None and rate > 0.05:
        yield Finding(where, f"{rate:.0%} of the delivered answers are placeholders.", 0.9)
    for kind, words in _SAME.items():
        found = ctx.facts.of(kind)
        cases = len({f.case for f in found})
        few = kind in ("constant", "unchanged") and ctx.output == "images"
        if found and (found[0].case is None or few or (total and cases > 0.5 * total)):
            yield Finding(where, f"The delivered files hold {words}, and were handed in.", 0.8)
    for fact in ctx.facts.of("class_absent", "repeated", "cut_off"):
        yield Finding(where, f"In the delivered files, {fact.text}, and they were handed in.", 0.8)


@detector("unlike_files_accepted", code="E3", stage="S4", independence="from_files")
def unlike_files_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """A delivered file lies far off all others in size or level of the same thing, and no execution
    went into its case.

    Lesions, findings and boxes differ by nature and are not compared, nor are images that keep the
    scale of their inputs.
    """
    for name, column in _columns(ctx).items():
        if ctx.output == "masks":
            odd = (
                ()
                if name == "lesion"
                else apart(column, APART if name == "organ" else MANY_LABELS_APART)
            )
        else:
            compared = (
                ctx.track is not None
                and name in ctx.track.levels
                and ctx.run.output_format.has_absolute_scale
            )
            odd = outliers(column) if compared else ()
        if odd and not looked_into(ctx, odd, ctx.final_write or 0):
            shown = ", ".join(f"{case} {column[case]:.3g}" for case in odd[:3])
            usual = median(value for case, value in column.items() if case not in odd)
            unit = f" {ctx.track.unit}" if ctx.track is not None and ctx.track.unit else ""
            yield Finding(
                tuple(sorted({ctx.final_write or ctx.last, ctx.last})),
                f"The delivered files differ in {name.replace('_', ' ')} ({shown}{unit}; the others"
                f" about {usual:.3g}), and no execution looked into it.",
                0.7,
            )
            return


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
    """Quantity -> case -> number, where a run handed in files."""
    columns: dict[str, dict[str, float]] = {}
    if ctx.facts is None or not ctx.handed_over:
        return columns
    for case, values in ctx.facts.measures.items():
        for name, value in values.items():
            columns.setdefault(name, {})[case] = value
    return columns


def apart(column: Mapping[str, float], factor: float) -> tuple[str, ...]:
    """Cases whose size is at least `factor` times the largest, or at most its inverse of the
    smallest, of those that belong together.

    Those are the largest group within `TIGHT`; none where they are fewer than four or no majority.
    """
    order = sorted(column, key=lambda case: column[case])
    values = [column[case] for case in order if column[case] > 0]
    best, start = (0, 0, 0), 0
    for end, value in enumerate(values, 1):
        while value > TIGHT * values[start]:
            start += 1
        best = max(best, (end - start, start, end))
    n, start, end = best
    if n < 4 or n < SHARE * len(column):
        return ()
    small, large = values[start], values[end - 1]
    return tuple(
        case for case in order if column[case] * factor <= small or column[case] >= factor * large
    )


def outliers(column: Mapping[str, float]) -> tuple[str, ...]:
    """Cases apart from an otherwise tight column: three times, a third or the other sign of what
    the rest agrees on, or a seventh off it and five times further away than the rest reaches.

    At least five cases, at most two in five of them off; the rest may scatter by a sixth of its
    median, so that a column which varies by nature (sizes of tumours) has no outliers.
    """
    if len(column) < 5:
        return ()
    middle = median(column.values())
    off = [case for case, value in column.items() if not _near(value, middle)] or _beyond(
        column, middle
    )
    rest = [value for case, value in column.items() if case not in off]
    if not off or not middle or len(off) > 0.4 * len(column) or len(rest) < 4:
        return ()
    spread = median(abs(value - median(rest)) for value in rest) / abs(middle)
    return tuple(off) if spread <= 1 / 6 else ()


FAR = 5.0
"""Times the range of all other cases by which a case lies off them."""


def _beyond(column: Mapping[str, float], middle: float) -> list[str]:
    """The furthest cases, at most two in five, where a gap of that size lies between them and all
    others."""
    order = sorted(column, key=lambda case: abs(column[case] - middle), reverse=True)
    for n in range(1, int(0.4 * len(order)) + 1):
        rest = [column[case] for case in order[n:]]
        low, high = min(rest), max(rest)
        gap = min(max(low - column[case], column[case] - high) for case in order[:n])
        if len(rest) >= 4 and gap >= 0.15 * abs(middle) and gap >= FAR * (high - low):
            return order[:n]
    return []


def _near(value: float, middle: float) -> bool:
    return value * middle > 0 and 1 / 3 < value / middle < 3


def joined(parts: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(parts[:most])
    return f"{shown} and {len(parts) - most} more" if len(parts) > most else shown
