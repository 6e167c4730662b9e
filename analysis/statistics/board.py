"""The cells of a board: what agents, models, or both scored, took and cost in each selection.

A selection is a track, a task and a tier, each of them one or all. Its numbers are those of
`leaderboard` with one measure as the outcome, of the runs of the selection alone; codes are those
of `code_prevalence` and `stages_by_code`, means over all runs those of `column_means`.

Measures and their units: `overall` 0-100; `agentic`, `task_score`, `S1`..`S5` and groups of a
rubric of one's own 0-1; `turns`; `wall_time_s` in seconds; `total_tokens` read and written;
`cost_usd`; `failed`, the share of failed runs (`ranking.failed`), 0-1; `outcome.NAME` in the unit
of the harness that reported it. A measure that no run has is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ..tables.cohorts import runs_in_force
from ..tables.frames import OUTCOME, stage_columns, with_total_tokens
from ..tables.grouping import ROWS, with_row_names
from .agent_scores import cell_means
from .descriptive import code_prevalence, column_means
from .interval_estimates import Estimate, wide
from .ranking import cell_coverage, count_tracks, failed, ranked_scores, score_estimates, side_means
from .run_arrays import (
    UNKNOWN,
    RunArrays,
    build_arrays,
    insufficiently_read,
    select_runs,
    task_key,
)
from .stages_by_code import stages_by_code

GROUPINGS = ROWS
"""What a row of the board stands for, and the columns that name it."""
RESOURCES = ("turns", "wall_time_s", "total_tokens", "cost_usd", "failed")
"""Measures of what a run took, and whether it failed."""
TOTALS = ("overall", "agentic", "task_score")
MAX_OUTCOMES = 6
"""Outcomes of another harness that are measures of a board."""
MAX_TASKS = 200
"""Tasks that can be selected one by one; a board of more offers tracks and tiers."""


@dataclass(frozen=True)
class Selection:
    """A track, task and tier; None is all of them."""

    track: str | None = None
    task: str | None = None
    tier: str | None = None

    def rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """The runs of the selection; a run without a name belongs to UNKNOWN."""
        for column in ("track", "task", "tier"):
            name = getattr(self, column)
            if name is not None:
                table = table.filter(pl.col(column).fill_null(UNKNOWN) == name)
        return table


@dataclass(frozen=True)
class BoardRow:
    """One agent, model, or agent with a model, in a selection."""

    label: str
    runs: int
    tasks: int
    agents: tuple[str, ...]
    models: tuple[str, ...]
    tiers: tuple[str, ...]
    """What the row's runs have; more than one is a mixture."""
    estimates: dict[str, tuple[Estimate, Estimate]]
    """Measure -> its mean for new tasks and for the same tasks; a measure of no run is missing."""
    ranges: dict[str, tuple[float, float]]
    """Overall and Agentic -> worst and best case over what nobody judged."""
    presumed: bool
    """Whether scores rest on presumed criteria."""
    unread: int
    """Runs with too few judged criteria for a point score."""
    ran_all: bool
    """Whether it has a score on every task and tier on which any row has one."""


@dataclass(frozen=True)
class BoardCell:
    """What a board shows of one selection."""

    runs: int
    notes: tuple[str, ...]
    """What was left out."""
    rows: dict[str, tuple[BoardRow, ...]]
    """Grouping -> its rows, the highest Overall first."""
    means: pl.DataFrame
    """Means over all runs: a row for each measure, in the units of the measures (`wide`)."""
    codes: dict[str, pl.DataFrame]
    """Grouping -> `code_prevalence` by label, first (all) (`wide`)."""
    stages_by_code: pl.DataFrame
    """`stages_by_code`, one row a subject (`wide`)."""


def board_runs(table: pl.DataFrame) -> pl.DataFrame:
    """The runs of a run frame that boards are about (`runs_in_force`), with all measures."""
    runs, _ = runs_in_force(table)
    return with_total_tokens(runs).with_columns(failed().cast(pl.Float64).alias("failed"))


def measures_of(runs: pl.DataFrame) -> tuple[str, ...]:
    """The measures that some run of `board_runs` has, in the order in which they are shown.

    Overall and Agentic are among them if they have only a range.
    """
    outcomes = [
        name
        for name, kind in runs.schema.items()
        if name.startswith(OUTCOME) and (kind.is_numeric() or kind == pl.Boolean)
    ]
    measures = (*TOTALS, *stage_columns(runs), *outcomes[:MAX_OUTCOMES], *RESOURCES)
    with_range = {name for name in ("overall", "agentic") if runs[f"{name}_lo"].count()}
    if not runs["task_score"].count():
        with_range.discard("overall")
    return tuple(name for name in measures if runs[name].count() or name in with_range)


def selections(runs: pl.DataFrame) -> Iterator[Selection]:
    """Every selection that has runs: all, each track, and each task, in all tiers and in each.

    A part with a single value offers no choice, and more than MAX_TASKS tasks are not offered.
    """
    names = runs.select(pl.col("track", "task", "tier").fill_null(UNKNOWN))
    tasks = names.select("track", "task").unique().sort("track", "task").rows()
    tracks = sorted({track for track, _ in tasks})
    scopes: list[tuple[str | None, str | None]] = [(None, None)]
    if len(tracks) > 1:
        scopes += [(track, None) for track in tracks]
    if 1 < len(tasks) <= MAX_TASKS:
        scopes += tasks
    tiers = names["tier"].unique().sort().to_list()
    choices: list[str | None] = [None, *(tiers if len(tiers) > 1 else [])]
    occurring = set(names.unique().rows())
    for track, task in scopes:
        for tier in choices:
            if any(
                track in (None, run_track) and task in (None, run_task) and tier in (None, run_tier)
                for run_track, run_task, run_tier in occurring
            ):
                yield Selection(track, task, tier)


def board_cell(runs: pl.DataFrame, selection: Selection) -> BoardCell:
    """The numbers of a selection of `board_runs`."""
    measures = measures_of(runs)
    selected = selection.rows(runs)
    selected = selected.with_columns(
        with_row_names(selected, grouping)["agent"].fill_null(UNKNOWN).alias(f"_{grouping}")
        for grouping in GROUPINGS
    )
    table, notes = select_runs(selected)
    rows: dict[str, tuple[BoardRow, ...]] = {}
    codes: dict[str, pl.DataFrame] = {}
    for grouping in GROUPINGS:
        twin = _grouping_of_same_runs(selected, grouping, rows)
        if twin is None:
            labelled = select_runs(selected.with_columns(agent=pl.col(f"_{grouping}")))[0]
            rows[grouping] = _board_rows(labelled, table, grouping, measures)
            codes[grouping] = wide(code_prevalence(labelled, ("agent",), prepare=False))
            continue
        labels = dict(selected.select(f"_{twin}", f"_{grouping}").unique().rows())
        rows[grouping] = tuple(replace(row, label=labels[row.label]) for row in rows[twin])
        codes[grouping] = codes[twin].with_columns(pl.col("agent").replace(labels))
    return BoardCell(
        runs=table.height,
        notes=tuple(notes),
        rows=rows,
        means=wide(run_means(table, measures, prepare=False)),
        codes=codes,
        stages_by_code=wide(stages_by_code(table, prepare=False)),
    )


def run_means(
    runs: pl.DataFrame, measures: Iterable[str] | None = None, *, prepare: bool = True
) -> pl.DataFrame:
    """The mean of each measure over all runs of `board_runs`, in the measure's unit.

    Within each agent, tasks and tracks have equal weights; agents weigh by their runs. Without
    `measures`, all that some run has.
    """
    columns = {measure: measure for measure in measures or measures_of(runs)}
    return column_means(runs, columns, (), key="measure", label="mean {name}", prepare=prepare)


def _grouping_of_same_runs(
    selected: pl.DataFrame, grouping: str, done: Iterable[str]
) -> str | None:
    """One of the groupings `done` whose rows hold the same runs as those of `grouping`."""
    names = selected.select(f"_{name}" for name in GROUPINGS).unique()
    for other in done:
        if names[f"_{other}"].n_unique() == names.height == names[f"_{grouping}"].n_unique():
            return other
    return None


def _board_rows(
    labelled: pl.DataFrame, table: pl.DataFrame, grouping: str, measures: tuple[str, ...]
) -> tuple[BoardRow, ...]:
    """The rows of a grouping, the highest Overall first, those without one last.

    As on the leaderboard, those that ran other tasks than the others stand below them.
    `labelled` has the labels as agents; `table` has the same runs with their own agents.
    """
    estimates: dict[str, dict[str, tuple[Estimate, Estimate]]] = {}
    complete: dict[str, set[str]] = {}
    for runs in _arrays_by_measure(labelled, measures):
        estimates[runs.outcome], complete[runs.outcome] = _scores(runs)
    ran_all = complete.get("overall", complete.get("agentic", set()))
    ranges = {outcome: side_means(labelled, outcome) for outcome in ("overall", "agentic")}
    rows = []
    names = ("agent", "model", "tier")
    parts = table.with_columns(
        pl.col("model").fill_null(UNKNOWN),
        _unread=insufficiently_read(),
        _task=task_key(),
        _presumed=(pl.col("presumed") > 0).fill_null(False),
    ).group_by(f"_{grouping}")
    for part in parts.agg(
        pl.len().alias("runs"),
        pl.col("_task").n_unique().alias("tasks"),
        pl.col("_presumed").any(),
        pl.col("_unread").sum(),
        *(pl.col(name).unique().sort() for name in names),
    ).iter_rows(named=True):
        label = part[f"_{grouping}"]
        row = BoardRow(
            label=label,
            runs=part["runs"],
            tasks=part["tasks"],
            agents=tuple(part["agent"]),
            models=tuple(part["model"]),
            tiers=tuple(part["tier"]),
            estimates={
                measure: scores[label] for measure, scores in estimates.items() if label in scores
            },
            ranges={
                outcome: bounds
                for outcome, means in ranges.items()
                if (bounds := _range(means["overall", "overall", label])) is not None
            },
            presumed=part["_presumed"],
            unread=part["_unread"],
            ran_all=label in ran_all,
        )
        rows.append(row)
    return tuple(sorted(rows, key=_place))


def _arrays_by_measure(labelled: pl.DataFrame, measures: Iterable[str]) -> Iterator[RunArrays]:
    """The arrays of each measure; those that all runs have share what is not the measure."""
    complete: RunArrays | None = None
    for measure in measures:
        is_complete = bool(labelled[measure].cast(pl.Float64).is_finite().fill_null(False).all())
        if is_complete and complete is not None:
            yield complete.with_outcome(measure)
            continue
        runs = build_arrays(labelled, measure, keep_breach=True, prepare=False, need_codes=False)
        if is_complete:
            complete = runs
        yield runs


def _scores(runs: RunArrays) -> tuple[dict[str, tuple[Estimate, Estimate]], set[str]]:
    """The means of a measure by label, for new tasks and for the same tasks, and the labels with a
    value on every task and tier on which any has one."""
    cells = cell_means(runs)
    all_tasks = np.ones(len(cells.tasks), dtype=bool)
    n_tracks = count_tracks(cells, all_tasks)
    scores = ranked_scores(cells, all_tasks)
    coverage = cell_coverage(cells, [a for a, _ in scores], all_tasks)
    estimates = {}
    complete = set()
    for a, score in scores:
        label = cells.agents[a]
        new, same = score_estimates(runs, cells, score, n_tracks)
        if coverage[a].is_complete:
            complete.add(label)
        estimates[label] = coverage[a].with_warning(new), same
    return estimates, complete


def _range(means: dict[str, float | None]) -> tuple[float, float] | None:
    """Worst and best case of a mean; None if they are unknown."""
    low, high = means["range_lo"], means["range_hi"]
    return None if low is None or high is None else (low, high)


def _place(row: BoardRow) -> tuple[bool, float, str]:
    """What rows are ordered by."""
    scores = row.estimates.get("overall") or row.estimates.get("agentic")
    value = scores[0].value if scores else None
    has_overall = "overall" in row.estimates
    order = (-value if value is not None else math.inf) - 1000 * has_overall
    return not row.ran_all, order, row.label
