"""E3: what measuring the delivered files shows when cases are compared, whether or not the run printed it.

Sizes of organs in ml, levels of images, numbers of boxes: a look at the files would have shown the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from statistics import median

from ...trajectories.briefs import absolute_scale
from ..context import CodeContext
from ..registry import Finding, detector
from .case_groups import same_split, two_clusters
from .case_signs import looked_into, may_be_empty, owns_up
from .case_tables import joined, outliers, rows_of

TIGHT = 1.6
"""Sizes whose largest is at most this many times the smallest belong together: what healthy organs of one cohort differ by."""
APART = 1.5
"""Times the largest (or the inverse, of the smallest) of those that belong together from which a size is another thing."""
MANY_LABELS_APART = 3.0
"""The same for structures of a multi-class task, some of which vary by nature (fat, effusions)."""
SHARE = 0.55
"""Share of the cases that have to belong together; at least four."""
LEVEL = 0.006
"""Range of the outputs' means, as a share of their own contrast (standard deviation), from which on they do not follow the input."""


@detector("unlike_files_accepted", code="E3", stage="S4", independence="from_files")
def unlike_files_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """A delivered file lies far off all others in size or level of the same thing, and no execution went into its case.

    Lesions, findings and boxes differ by nature and are not compared, nor are images that keep the scale of their inputs.
    """
    for name, column in _columns(ctx).items():
        if ctx.run.track == "segmentation":
            odd = () if _varies(ctx, name) else apart(column, APART if name == "organ" else MANY_LABELS_APART)
        else:
            compared = name in _LEVELS.get(ctx.run.track or "", ()) and absolute_scale(ctx.run.brief)
            odd = outliers(column) if compared else ()
        if odd and not looked_into(ctx, odd, ctx.final_write or 0):
            shown = ", ".join(f"{case} {column[case]:.3g}" for case in odd[:3])
            usual = median(value for case, value in column.items() if case not in odd)
            unit = " ml" if ctx.run.track == "segmentation" else ""
            yield Finding(
                tuple(sorted({ctx.final_write or ctx.last, ctx.last})),
                f"The delivered files differ in {name.replace('_', ' ')} ({shown}{unit}; the others about {usual:.3g}), and no execution looked into it.",
                0.7,
            )
            return


@detector("empty_files_accepted", code="E3", stage="S4", independence="from_files", sign=True)
def empty_files_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """Masks or lists of boxes are empty in cases that the brief gives no leave to be, and no execution went into one.

    As `empty_cases_accepted`, where the run printed no counts.
    """
    final = ctx.final_write
    if ctx.facts is None or final is None or not ctx.handed_over or owns_up(ctx):
        return
    if ctx.run.track not in ("segmentation", "detection") or may_be_empty(ctx):
        return
    empty = tuple(dict.fromkeys(fact.case for fact in ctx.facts.of("empty") if fact.case is not None))
    if empty and len(ctx.run.outputs.cases) >= 3 and not looked_into(ctx, empty, final) and not _gone_into(ctx, empty):
        yield Finding(
            tuple(sorted({final, ctx.last})),
            f"The files of {joined(empty)} are empty, the brief knows no empty cases, and no execution looked into one.",
            0.7,
        )


def _gone_into(ctx: CodeContext, empty: tuple[str, ...]) -> bool:
    """Whether the cases were seen empty before the last run, and inputs or values were inspected in between."""
    final = ctx.final_write or 0
    seen = next(
        (t for t in ctx.model_turns for row in rows_of(ctx.run, t) if row.case in empty and 0 in row.values.values()),
        final,
    )
    between = ctx.features[seen : max(seen, final - 1)]
    return any(
        f.executed and not f.writes_outputs and f.has("inspects_inputs", "inspects_values", "forward_pass")
        for f in between
    )


@detector("level_without_input", code="E3", stage="S4", independence="from_files", sign=True)
def level_without_input(ctx: CodeContext) -> Iterable[Finding]:
    """Every delivered image has the same mean to within a fraction of its own contrast: the level does not come from the input.

    A noise map, a residual or a net's resting value; images standardised to a mean near zero are not meant.
    """
    columns = _columns(ctx)
    means, spreads = columns.get("mean", {}), columns.get("std", {})
    if ctx.run.track not in ("enhancement", "synthesis") or min(len(means), len(spreads)) < 5:
        return
    contrast, level = median(spreads.values()), median(means.values())
    if contrast > 0 and abs(level) >= 0.5 * contrast and max(means.values()) - min(means.values()) <= LEVEL * contrast:
        yield Finding(
            tuple(sorted({ctx.final_write or ctx.last, *ctx.checks, ctx.last})),
            f"All {len(means)} delivered images have the mean {level:.4g}, whatever the input, and it was not noticed.",
            0.75,
        )


@detector("unlike_boxes_accepted", code="E3", stage="S4", independence="from_files", sign=True)
def unlike_boxes_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """Boxes fall into two kinds of cases, by score and by size alike with nothing in between, and nobody went into the fewer."""
    columns = _columns(ctx)
    sure = two_clusters(columns.get("score", {}), 3) if ctx.run.track == "detection" else None
    for name in ("width", "height") if sure else ():
        size = two_clusters(columns.get(name, {}), 3, gap=0.5)
        if size and same_split(sure or {}, size):
            fewer = min(set(size.values()), key=list(size.values()).count)
            cases = [case for case, part in size.items() if part == fewer]
            if not looked_into(ctx, cases, ctx.final_write or 0):
                yield Finding(
                    tuple(sorted({ctx.final_write or ctx.last, ctx.last})),
                    f"The boxes of {joined(cases)} stand apart from all others in score and {name} alike, and no execution looked into it.",
                    0.7,
                )
                return


_LEVELS = {"enhancement": ("mean", "std"), "synthesis": ("mean", "std", "max")}
"""Quantities that images of one kind agree in; the brightest spot of an input image is its own."""
_FINDINGS = r"(?:tumou?r|lesion|nodule|thromb|effusion|oedema|edema|necro|met(?:astas|s\b)|cyst|plaque|h(?:a?e)morrh|bleed|infarct|calcif|enhanc|core|polyp|stone|fluid|fat\b)"


def _varies(ctx: CodeContext, name: str) -> bool:
    """Whether a mask shows something that is absent or of any size by nature: a lesion, or a label that the brief gives such a name."""
    if name == "lesion":
        return True
    number = name.removeprefix("label_")
    named = rf"(?<![\d.]){number}(?![\d.])[\s=:()-]{{1,4}}[^,;.\n\d]{{0,40}}?{_FINDINGS}|{_FINDINGS}[a-z]{{0,10}}[\s=:(]{{1,4}}(?:label )?{number}(?![\d.])"
    return number.isdigit() and re.search(named, ctx.run.brief[:200_000], re.IGNORECASE) is not None


def _columns(ctx: CodeContext) -> dict[str, dict[str, float]]:
    """Quantity -> case -> number, where a finished run delivered files and claims no limitation of its results."""
    columns: dict[str, dict[str, float]] = {}
    if ctx.facts is None or not ctx.handed_over or owns_up(ctx):
        return columns
    for case, values in ctx.facts.measures.items():
        for name, value in values.items():
            columns.setdefault(name, {})[case] = value
    return columns


def apart(column: Mapping[str, float], factor: float) -> tuple[str, ...]:
    """Cases whose size is at least `factor` times the largest, or at most its inverse of the smallest, of those that belong together.

    Those are the largest group within `TIGHT`; none where they are fewer than four or no majority.
    """
    order = sorted(column, key=lambda case: column[case])
    values = [column[case] for case in order]
    best = max(
        ((end - start, start, end) for start in range(len(values)) for end in range(start + 1, len(values) + 1)
         if values[start] > 0 and values[end - 1] <= TIGHT * values[start]),
        default=(0, 0, 0),
    )  # fmt: skip
    n, start, end = best
    if n < 4 or n < SHARE * len(values):
        return ()
    small, large = values[start], values[end - 1]
    return tuple(case for case in order if column[case] * factor <= small or column[case] >= factor * large)
