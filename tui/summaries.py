"""What the runs that are shown have in common: codes, the cliff, stage profiles, as bars of text; pure functions.

Plain shares and means of the rows at hand, for orientation. Intervals, corrections and effects are `ambjudge analyze`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ..trajectories.stages import STAGE_NAMES, STAGES
from .panels import Line, bar, line
from .rows import CODES, TAKES_READING, RunRow
from .table import decimals, grade

if TYPE_CHECKING:
    from .draft import Agreement


def summary_lines(rows: Sequence[RunRow]) -> list[Line]:
    """All summaries of the scored ones of these rows."""
    scored = [row for row in rows if row.state == "scored"]
    lines = [line((f"{len(scored):,} scored of {len(rows):,} shown runs", "head"))]
    if not scored:
        return lines
    if guessed := sum(row.presumed > 0 for row in scored):
        text = f"~ scores of {guessed:,} runs rest on presumed criteria, which nobody read"
        lines.append(line((text, "unknown")))
    return [
        *lines,
        line(""),
        *_codes(scored),
        line(""),
        *_cliff(scored),
        line(""),
        *_stages(scored),
        line(""),
        *_agents(scored),
    ]


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None when there is none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _codes(rows: Sequence[RunRow]) -> list[Line]:
    """Shares among the runs that were read for a code: where only what fires is known, every known run has it."""
    lines = [line(("Share of runs in which a code fired", "head"))]
    for code in CODES:
        sample = [row for row in rows if (row.read or code not in TAKES_READING) and code not in row.unknown]
        fired, everywhere = (sum(code in row.codes for row in some) for some in (sample, rows))
        unread = f"not read{f', fired in {everywhere}' if everywhere else ''}"
        lines.append(_share(code, fired, len(sample), len(rows), unread))
    sample = _known(rows)
    return [*lines, _share("none", sum(not row.codes for row in sample), len(sample), len(rows), "not read")]


def _share(name: str, count: int, known: int, runs: int, unread: str) -> Line:
    """One bar; among how many runs, where these are not all."""
    share = count / known if known else None
    words = unread if share is None else f"{share:6.1%}  {count}" + (f" of {known} read" if known < runs else "")
    return line((f" {name:<5}", "code" if name != "none" else "dim"), (bar(share, 24), ""), f" {words}")


def _known(rows: Sequence[RunRow]) -> list[RunRow]:
    """The runs of which every code is known."""
    return [row for row in rows if row.read and not row.unknown]


def _cliff(rows: Sequence[RunRow]) -> list[Line]:
    lines = [line(("Mean Overall by number of fired codes", "head"))]
    known = _known(rows)
    if len(known) < len(rows):
        lines.append(line((f" {len(known):,} of {len(rows):,} runs were read for all codes", "dim")))
    for label, holds in _COUNTS:
        group = [row.overall for row in known if holds(len(set(row.codes)))]
        value = mean(group)
        share = None if value is None else value / 100
        if group:
            lines.append(
                line(
                    (f" {label:<5}", "dim"), (bar(share, 24), grade(share)), f" {decimals(value, 1):>6}  n {len(group)}"
                )
            )
    return lines


_COUNTS: tuple[tuple[str, Callable[[int], bool]], ...] = (
    ("0", lambda n: n == 0), ("1", lambda n: n == 1), ("2", lambda n: n == 2), ("3+", lambda n: n >= 3),
)  # fmt: skip


def _stages(rows: Sequence[RunRow]) -> list[Line]:
    lines = [line(("Mean score of each stage", "head"))]
    for place, name in enumerate(STAGES):
        value = mean(row.stages[place] for row in rows)
        lines.append(
            line(
                (f" {name} {STAGE_NAMES[name]:<10}", name.lower()),
                (bar(value, 24), grade(value)),
                f" {decimals(value)}",
            )
        )
    return lines


def _agents(rows: Sequence[RunRow], most: int = 20) -> list[Line]:
    groups: dict[str, list[RunRow]] = {}
    for row in rows:
        groups.setdefault(row.agent or "unknown", []).append(row)
    ranked = sorted(groups.items(), key=lambda item: -(mean(r.overall for r in item[1]) or -1))
    lines = [line((f"{'Agents':<18}", "head"), ("   S1   S2   S3   S4   S5  Overall    n", "dim"))]
    for agent, runs in ranked[:most]:
        cells = "".join(f" {decimals(mean(r.stages[i] for r in runs)):>4}" for i in range(5))
        lines.append(
            line(
                f" {agent[:17]:<17}",
                cells,
                f"  {decimals(mean(r.overall for r in runs), 1):>7}",
                (f" {len(runs):>4}", "dim"),
            )
        )
    if len(ranked) > most:
        lines.append(line((f" … and {len(ranked) - most} more agents", "dim")))
    return lines


def agreement_lines(annotator: str, found: Sequence[Agreement]) -> list[Line]:
    """How this annotator's labels and the scorecards agree so far."""
    lines = [line((f"Labels of {annotator} against the scorecards", "head"))]
    if not found:
        return [*lines, line((" no labelled run among these yet (a on a run)", "dim"))]
    for what, pairs in (("criteria", [a.criteria for a in found]), ("stages", [a.stages for a in found])):
        same, all_ = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
        share = same / all_ if all_ else None
        lines.append(line((f" {what:<9}", "dim"), (bar(share, 24), grade(share)), f" {same} of {all_}"))
    worst: dict[str, int] = {}
    for item in found:
        for id, _, _ in item.differences:
            worst[id] = worst.get(id, 0) + 1
    if worst:
        ranked = sorted(worst.items(), key=lambda pair: (-pair[1], pair[0]))[:8]
        lines.append(line((" differ most on ", "dim"), ", ".join(f"{id} ({n})" for id, n in ranked), indent=4))
    lines.append(line((f" {len(found)} runs labelled; kappa and intervals: ambjudge agreement", "dim")))
    return lines
