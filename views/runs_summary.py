"""What the shown runs have in common: codes, means by number of codes, stages, as bars of text.

Plain shares and means of the rows at hand, for orientation. Intervals, corrections and effects are
`ambjudge analyze`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean

from ..error_codes.paper_codes import BY_READING, CODES
from ..judge.card.view_parts import bar, grade, score_text
from ..trajectories.stages import STAGES, stage_title
from .run_rows import RunRow
from .styled_lines import StyledLine, line

_BAR = 24
"""Cells of a bar."""


def summary_lines(rows: Sequence[RunRow]) -> list[StyledLine]:
    """All summaries of those of these rows that are scored."""
    scored = [row for row in rows if row.state == "scored"]
    lines = [line((f"{len(scored):,} scored of {len(rows):,} shown runs", "head"))]
    presumed = sum(row.presumed > 0 for row in scored)
    if presumed:
        text = f"~ the scores of {presumed:,} runs rest on presumed criteria"
        lines.append(line((text, "unknown")))
    ranges = sum(row.span is not None and row.overall is None for row in scored)
    if ranges:
        text = (
            f"{ranges:,} runs have too few judged criteria for a point score, and are not part of"
            " the means"
        )
        lines.append(line((text, "unknown")))
    if scored:
        for part in (_code_shares, _means_by_code_count, _stage_means):
            lines += [line(""), *part(scored)]
    return lines


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None if there is none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _code_shares(rows: Sequence[RunRow]) -> Iterator[StyledLine]:
    """The share of runs in which a code fired, among the runs that were read for it.

    Of runs that were not read only those are known in which the code fired: a share over all runs
    would be too low, and one over the known runs always 100 %.
    """
    yield line(("Share of runs in which a code fired", "head"))
    for code in CODES:
        sample = [
            row for row in rows if (row.read or code not in BY_READING) and code not in row.unknown
        ]
        fired = sum(code in row.codes for row in sample)
        fired_anywhere = sum(code in row.codes for row in rows)
        if_unread = f"not read, fired in {fired_anywhere}" if fired_anywhere else "not read"
        yield _share_line(code, "code", fired, len(sample), len(rows), if_unread)
    sample = _wholly_read(rows)
    without_code = sum(not row.codes for row in sample)
    yield _share_line("none", "dim", without_code, len(sample), len(rows), "not read")


def _share_line(
    label: str, style: str, count: int, sample: int, runs: int, if_unread: str
) -> StyledLine:
    """One bar: `count` of the `sample` that was read, which may be fewer than all `runs`."""
    share = count / sample if sample else None
    text = if_unread
    if share is not None:
        text = f"{share:6.1%}  {count}"
        if sample < runs:
            text += f" of {sample} read"
    return line((f" {label:<5}", style), bar(share, _BAR), f" {text}")


def _wholly_read(rows: Sequence[RunRow]) -> list[RunRow]:
    """The runs of which every code is known."""
    return [row for row in rows if row.read and not row.unknown]


_CODE_COUNTS: tuple[tuple[str, Callable[[int], bool]], ...] = (
    ("0", lambda count: count == 0),
    ("1", lambda count: count == 1),
    ("2", lambda count: count == 2),
    ("3+", lambda count: count >= 3),
)


def _means_by_code_count(rows: Sequence[RunRow]) -> Iterator[StyledLine]:
    yield line(("Mean Overall by number of fired codes", "head"))
    sample = _wholly_read(rows)
    if len(sample) < len(rows):
        yield line((f" {len(sample):,} of {len(rows):,} runs were read for all codes", "dim"))
    for label, matches in _CODE_COUNTS:
        group = [row.overall for row in sample if matches(len(set(row.codes)))]
        if group:
            overall = mean(group)
            share = None if overall is None else overall / 100
            text = f" {score_text(overall, digits=1):>6}  n {len(group)}"
            yield line((f" {label:<5}", "dim"), (bar(share, _BAR), grade(share)), text)


def _stage_means(rows: Sequence[RunRow]) -> Iterator[StyledLine]:
    yield line(("Mean score of each stage", "head"))
    for place, stage in enumerate(STAGES):
        score = mean(row.stages[place] for row in rows)
        label = (f" {stage_title(stage):<13}", stage.lower())
        yield line(label, (bar(score, _BAR), grade(score)), f" {score_text(score)}")
