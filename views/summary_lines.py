"""What the runs that are shown have in common: codes, the cliff, stage profiles, as bars of text;
pure functions.

Plain shares and means of the rows at hand, for orientation. Intervals, corrections and effects are
`ambjudge analyze`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from ..error_codes.paper_codes import BY_READING, CODES
from ..judge.card.view_parts import bar, grade, score_text
from ..trajectories.stages import STAGE_NAMES, STAGES
from .run_rows import RunRow
from .styled_lines import StyledLine, line


def summary_lines(rows: Sequence[RunRow]) -> list[StyledLine]:
    """All summaries of the scored ones of these rows."""
    scored = [row for row in rows if row.state == "scored"]
    lines = [line((f"{len(scored):,} scored of {len(rows):,} shown runs", "head"))]
    if guessed := sum(row.presumed > 0 for row in scored):
        text = f"~ scores of {guessed:,} runs rest on presumed criteria, which nobody read"
        lines.append(line((text, "unknown")))
    if unread := sum(row.span is not None and row.overall is None for row in scored):
        text = (
            f"{unread:,} runs have a range and no point, as too little of them was read: no mean"
            " holds them"
        )
        lines.append(line((text, "unknown")))
    if scored:
        for part in (_codes, _cliff, _stages):
            lines += [line(""), *part(scored)]
    return lines


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None when there is none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _codes(rows: Sequence[RunRow]) -> list[StyledLine]:
    """Shares among the runs that were read for a code: where only what fires is known, every known
    run has it."""
    lines = [line(("Share of runs in which a code fired", "head"))]
    for code in CODES:
        sample = [
            row for row in rows if (row.read or code not in BY_READING) and code not in row.unknown
        ]
        fired, everywhere = (sum(code in row.codes for row in some) for some in (sample, rows))
        unread = f"not read{f', fired in {everywhere}' if everywhere else ''}"
        lines.append(_share(code, fired, len(sample), len(rows), unread))
    sample = _known(rows)
    return [
        *lines,
        _share("none", sum(not row.codes for row in sample), len(sample), len(rows), "not read"),
    ]


def _share(name: str, count: int, known: int, runs: int, unread: str) -> StyledLine:
    """One bar; among how many runs, where these are not all."""
    share = count / known if known else None
    words = (
        unread
        if share is None
        else f"{share:6.1%}  {count}" + (f" of {known} read" if known < runs else "")
    )
    return line(
        (f" {name:<5}", "code" if name != "none" else "dim"), (bar(share, 24), ""), f" {words}"
    )


def _known(rows: Sequence[RunRow]) -> list[RunRow]:
    """The runs of which every code is known."""
    return [row for row in rows if row.read and not row.unknown]


def _cliff(rows: Sequence[RunRow]) -> list[StyledLine]:
    lines = [line(("Mean Overall by number of fired codes", "head"))]
    known = _known(rows)
    if len(known) < len(rows):
        lines.append(
            line((f" {len(known):,} of {len(rows):,} runs were read for all codes", "dim"))
        )
    for label, holds in _COUNTS:
        group = [row.overall for row in known if holds(len(set(row.codes)))]
        value = mean(group)
        share = None if value is None else value / 100
        if group:
            words = f" {score_text(value, digits=1):>6}  n {len(group)}"
            lines.append(line((f" {label:<5}", "dim"), (bar(share, 24), grade(share)), words))
    return lines


_COUNTS: tuple[tuple[str, Callable[[int], bool]], ...] = (
    ("0", lambda n: n == 0),
    ("1", lambda n: n == 1),
    ("2", lambda n: n == 2),
    ("3+", lambda n: n >= 3),
)


def _stages(rows: Sequence[RunRow]) -> list[StyledLine]:
    lines = [line(("Mean score of each stage", "head"))]
    for place, name in enumerate(STAGES):
        value = mean(row.stages[place] for row in rows)
        label = (f" {name} {STAGE_NAMES[name]:<10}", name.lower())
        lines.append(line(label, (bar(value, 24), grade(value)), f" {score_text(value)}"))
    return lines
