"""Agents' scores as means of cells, their variance, and paired differences between agents.

A cell is one agent on one task and tier. Repeats are averaged by cell, tiers by task, tasks by
track, then tracks, so that tasks weigh the same however often they were repeated. For new tasks the
error comes from the variation of tasks within tracks; for the same tasks, of repeats within cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .interval_estimates import (
    MIN_DF,
    Bools,
    Estimate,
    Floats,
    Ints,
    error_for_new_tasks,
    minimum_detectable_effect,
    t_estimate,
    too_few_units,
)
from .run_arrays import RunArrays

METHOD = "mean of runs by cell, of tiers by task, of tasks by track, of tracks"
ONE_TASK_PER_TRACK = "one task a track: the variation between tasks is unknown"


@dataclass(frozen=True)
class CellMeans:
    """An outcome by cell: arrays of agents x tasks x tiers."""

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    track: Ints
    """The track of each task (tasks)."""
    count: Floats
    """Runs of each cell."""
    total: Floats
    """Sum of the outcome over the runs of each cell."""
    variance: Floats
    """Variance of a run within each cell; in a cell without repeats the pooled variance of the
    others (NaN without any repeats)."""
    repeat_df: float
    """Degrees of freedom within cells, sum of count - 1; 0 without repeats."""
    difference_limits: tuple[float, float]
    """The range of differences of two values."""

    @cached_property
    def mean(self) -> Floats:
        """Mean of each cell; NaN where it has no run."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.total / self.count)


def cell_means(runs: RunArrays) -> CellMeans:
    """The outcome of the runs by cell."""
    shape = (len(runs.agents), len(runs.tasks), len(runs.tiers))
    n_cells = math.prod(shape)
    cell = (runs.agent * max(shape[1], 1) + runs.task) * max(shape[2], 1) + runs.tier
    count = np.bincount(cell, minlength=n_cells).astype(float)
    total = squares = count
    if runs.n:
        total = np.bincount(cell, runs.y, minlength=n_cells)
        residual = runs.y - (total / np.maximum(count, 1))[cell]
        squares = np.bincount(cell, residual**2, minlength=n_cells)
    repeat_df = float(np.maximum(count - 1, 0).sum())
    pooled = squares.sum() / repeat_df if repeat_df else math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(count > 1, squares / (count - 1), pooled)
    track = np.zeros(len(runs.tasks), dtype=np.int64)
    track[runs.task] = runs.track
    return CellMeans(
        agents=runs.agents,
        tasks=runs.tasks,
        track=track,
        count=count.reshape(shape),
        total=np.reshape(total, shape),
        variance=np.reshape(variance, shape),
        repeat_df=repeat_df,
        difference_limits=runs.difference_limits,
    )


@dataclass(frozen=True)
class AgentScore:
    """An agent's score on some cells, with what its errors are made of."""

    value: float
    residual: Floats
    """Of each task, (mean of task - mean of track) / (tasks of track · tracks); 0 without runs."""
    variance_same: float
    """Variance for the same tasks run again."""
    n_tracks: int
    n_runs: int
    track_of: Ints
    """The track of each task; -1 if the agent has no run of it."""


def agent_score(cells: CellMeans, agent: int, use: Bools) -> AgentScore | None:
    """The score of an agent on the cells `use` (tasks x tiers, or tasks); None without runs.

    score = mean over tracks of mean over tasks of mean over tiers of the cell means.
    """
    if use.ndim == 1:
        use = use[:, None]
    used = use & (cells.count[agent] > 0)
    n_tiers = used.sum(1)
    has_task = n_tiers > 0
    if not has_task.any():
        return None
    task_mean = np.where(used, cells.mean[agent], 0.0).sum(1) / np.maximum(n_tiers, 1)
    cell_variance = cells.variance[agent] / np.maximum(cells.count[agent], 1)
    task_variance = np.where(used, cell_variance, 0.0).sum(1) / np.maximum(n_tiers, 1) ** 2
    tracks = np.unique(cells.track[has_task])
    residual = np.zeros(len(has_task))
    value = variance_same = 0.0
    for track in tracks:
        in_track = has_task & (cells.track == track)
        n_tasks = int(in_track.sum())
        track_mean = task_mean[in_track].mean()
        value += float(track_mean) / len(tracks)
        residual[in_track] = (task_mean[in_track] - track_mean) / n_tasks / len(tracks)
        variance_same += float(task_variance[in_track].sum()) / (n_tasks * len(tracks)) ** 2
    return AgentScore(
        value=value,
        residual=residual,
        variance_same=variance_same,
        n_tracks=len(tracks),
        n_runs=int(cells.count[agent][used].sum()),
        track_of=np.where(has_task, cells.track, -1),
    )


@dataclass(frozen=True)
class NewTasksError:
    """The error of a score, or of a difference of scores, for new tasks."""

    se: float | None
    """None if there are too few tasks, for the `reason`."""
    df: float
    reason: str | None = None
    warning: str | None = None


def new_tasks_error(
    residual: Floats, track_of: Ints, variance_same: float, repeat_df: float
) -> NewTasksError:
    """The error from the variation of tasks within tracks, at least that for the same tasks.

    `residual` and `track_of` (tasks) as of `AgentScore`. `variance_same`: the variance for the same
    tasks, with `repeat_df` degrees of freedom. Below MIN_DF there is no error.
    """
    variance, df, warning = variance_between_tasks(residual, track_of)
    n_tasks = int((track_of >= 0).sum())
    if not df:
        return NewTasksError(None, 0.0, reason=ONE_TASK_PER_TRACK)
    if df < MIN_DF:
        reason = too_few_units("new", df, n_tasks)
        return NewTasksError(None, df, reason=reason)
    se_same = math.sqrt(variance_same) if repeat_df else math.nan
    se = error_for_new_tasks(math.sqrt(variance), df, se_same, repeat_df)
    return NewTasksError(se, df, warning=warning)


def variance_between_tasks(residual: Floats, track_of: Ints) -> tuple[float, float, str | None]:
    """(variance for new tasks, df, warning) of a mean of k tracks from its task residuals.

    With s2_j the variance between the T_j tasks of track j: variance = sum_j s2_j / (T_j k^2). A
    track with a single task has no s2_j and is given the pooled variance of the others. The df are
    Satterthwaite's for tasks that vary equally in all tracks (the working model of Bell and
    McCaffrey 2002): unequal tracks leave fewer than tasks minus tracks.
    """
    tracks, n_tasks = np.unique(track_of[track_of >= 0], return_counts=True)
    k = len(tracks)
    has_variance = n_tasks > 1
    if not has_variance.any():
        return math.nan, 0, ONE_TASK_PER_TRACK
    n_single = int((~has_variance).sum())
    size = n_tasks[has_variance]
    df_of_track = size - 1
    residual_squares = np.array(
        [(residual[track_of == track] ** 2).sum() for track in tracks[has_variance]]
    )
    squares = residual_squares * (k * size) ** 2
    # Each track's s2 = squares / df enters with 1 / (T k^2), plus its share of the pooled variance
    # that tracks with a single task are given.
    weight = (1 / size + n_single * df_of_track / df_of_track.sum()) / k**2
    variance = float((weight * squares / df_of_track).sum())
    df = float(weight.sum() ** 2 / (weight**2 / df_of_track).sum())
    if not n_single:
        return variance, df, None
    tracks_have = "1 track has" if n_single == 1 else f"{n_single} tracks have"
    warning = f"{tracks_have} one task: the variation of tasks there is taken from the other tracks"
    return variance, df, warning


def balance_notes(cells: CellMeans) -> tuple[str, ...]:
    """A note on how runs are weighted if cells have unequal numbers of them, else nothing."""
    counts = cells.count[cells.count > 0]
    n_empty = int(cells.count.size - len(counts))
    if not len(counts) or (counts.min() == counts.max() and not n_empty):
        return ()
    low, high = int(counts.min()), int(counts.max())
    runs = "1 run" if high == 1 else f"{high} runs"
    if low < high:
        runs = f"{low} to {runs}"
    gaps = ""
    if n_empty:
        gaps = ", and 1 cell has none" if n_empty == 1 else f", and {n_empty} cells have none"
    return (f"{runs} a cell{gaps}: tasks weigh the same, however many runs they have",)


@dataclass(frozen=True)
class Contrast:
    """The difference between two agents on the cells that both have, paired by task."""

    a: int
    b: int
    value: float
    """Score of `a` minus score of `b`."""
    new: NewTasksError
    se_same: float
    n: int
    n_tasks: int


def agent_contrasts(cells: CellMeans) -> list[Contrast]:
    """The contrasts of all pairs of agents that have at least one cell in common."""
    contrasts = []
    for a in range(len(cells.agents)):
        for b in range(a + 1, len(cells.agents)):
            common = (cells.count[a] > 0) & (cells.count[b] > 0)
            first, second = agent_score(cells, a, common), agent_score(cells, b, common)
            if first is None or second is None:
                continue
            variance_same = first.variance_same + second.variance_same
            contrast = Contrast(
                a=a,
                b=b,
                value=first.value - second.value,
                new=new_tasks_error(
                    first.residual - second.residual,
                    first.track_of,
                    variance_same,
                    cells.repeat_df,
                ),
                se_same=math.sqrt(variance_same),
                n=first.n_runs + second.n_runs,
                n_tasks=int(common.any(1).sum()),
            )
            contrasts.append(contrast)
    return contrasts


def contrast_estimates(
    contrast: Contrast, cells: CellMeans, outcome: str, notes: Sequence[str]
) -> list[tuple[Estimate, float | None]]:
    """A contrast for new tasks and for the same tasks, each with its MDE80."""
    warnings = [*notes]
    if contrast.new.warning:
        warnings.append(contrast.new.warning)
    common: dict[str, Any] = {
        "n": contrast.n,
        "n_clusters": contrast.n_tasks,
        "limits": cells.difference_limits,
        "warnings": warnings,
    }
    label = f"difference in mean {outcome}"
    new = t_estimate(
        label,
        "new",
        contrast.value,
        contrast.new.se,
        contrast.new.df,
        method="paired by task within tracks, t",
        reason=contrast.new.reason,
        **common,
    )
    same = t_estimate(
        label,
        "same",
        contrast.value,
        contrast.se_same if cells.repeat_df >= 1 else None,
        cells.repeat_df,
        method="repeats within cells, t",
        **common,
    )
    return [(est, _mde80(est)) for est in (new, same)]


def _mde80(est: Estimate) -> float | None:
    if not est.se or not est.df:
        return None
    return minimum_detectable_effect(est.se, est.df)
