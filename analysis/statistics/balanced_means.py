"""Means over groups of runs, weighted and with errors as on the leaderboard.

Cells of a task, tasks of a track, and tracks weigh the same within each agent, and agents by their
runs. For an agent's runs, value and errors are those of `agent_scores.agent_score`; groups of
several agents have the errors of the same linear statistic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from .agent_scores import METHOD, new_tasks_error
from .interval_estimates import Bools, Estimate, Floats, Ints, t_estimate
from .jackknife import group_ids
from .run_arrays import factorize, task_key


def balance_weights(table: pl.DataFrame) -> Floats:
    """Weights (n) under which a mean over an agent's runs is its score on the leaderboard.

    Cells of a task, tasks of a track, and tracks weigh the same within each agent. The weights of
    an agent add up to its number of runs; in a balanced cohort with equal tracks all are 1.
    """
    agent, track, task = ["agent"], ["agent", "track"], ["agent", "track", "task"]
    weights = table.select(
        1.0
        / pl.len().over([*task, "tier"])
        / pl.col("tier").n_unique().over(task)
        / pl.col("task").n_unique().over(track)
        / pl.col("track").n_unique().over(agent)
        * pl.len().over(agent)
    )
    return weights.to_series().to_numpy()


class BalancedMeans:
    """Means of one column over groups of the runs that have a value."""

    def __init__(self, table: pl.DataFrame, column: str) -> None:
        """`table` as `select_runs` leaves it."""
        values = table[column].cast(pl.Float64).to_numpy()
        self.has_value: Bools = np.isfinite(values)
        """Which rows of the table have one."""
        self.runs = table.filter(pl.Series(self.has_value, dtype=pl.Boolean))
        """These runs (n)."""
        self.y: Floats = values[self.has_value]
        self.task, tasks = factorize(self.runs.select(task_key()).to_series())
        track, _ = factorize(self.runs["track"])
        self.track_of_task: Ints = np.zeros(len(tasks), dtype=np.int64)
        self.track_of_task[self.task] = track
        agent, tier = (factorize(self.runs[name])[0] for name in ("agent", "tier"))
        self.cell, n_cells = group_ids(agent, self.task, tier)
        self.variance, self.repeat_df = _variance_within_cells(self.y, self.cell, n_cells)

    def estimates(
        self, group: Bools, label: str, *, notes: tuple[str, ...], limits: tuple[float, float]
    ) -> list[Estimate]:
        """The mean over a group (a mask of the table), for new tasks and for the same tasks.

        The group must have a run with a value.
        """
        use = group[self.has_value]
        y, task, cell = self.y[use], self.task[use], self.cell[use]
        weight = balance_weights(self.runs.filter(pl.Series(use, dtype=pl.Boolean)))
        weight = weight / weight.sum()
        residual, track_of = self._task_residuals(weight, y, task)
        cell_weight = np.bincount(cell, weight, minlength=len(self.variance))
        count = np.bincount(cell, minlength=len(self.variance))
        in_group = count > 0
        variance_same = float(
            (cell_weight[in_group] ** 2 * self.variance[in_group] / count[in_group]).sum()
        )
        error = new_tasks_error(residual, track_of, variance_same, self.repeat_df)
        has_repeats = self.repeat_df >= 1
        value = float((weight * y).sum())
        common: dict[str, Any] = {
            "n": len(y),
            "n_clusters": int((track_of >= 0).sum()),
            "test": False,
            "limits": limits,
        }
        new = t_estimate(
            label,
            "new",
            value,
            error.se,
            error.df,
            method=f"{METHOD}; tasks within tracks, t",
            reason=error.reason,
            warnings=(*notes, error.warning) if error.warning else notes,
            **common,
        )
        same = t_estimate(
            label,
            "same",
            value,
            math.sqrt(variance_same) if has_repeats else None,
            self.repeat_df,
            method=f"{METHOD}; repeats within cells, t",
            reason=None if has_repeats else "no repeats",
            warnings=notes,
            **common,
        )
        return [new, same]

    def _task_residuals(self, weight: Floats, y: Floats, task: Ints) -> tuple[Floats, Ints]:
        """What each task adds to the mean beyond the mean of its track, and its track.

        The track is -1 for a task without runs in the group.
        """
        n_tasks = len(self.track_of_task)
        task_weight = np.bincount(task, weight, minlength=n_tasks)
        task_sum = np.bincount(task, weight * y, minlength=n_tasks)
        track_weight = np.bincount(self.track_of_task, task_weight)
        track_sum = np.bincount(self.track_of_task, task_sum)
        track_mean = track_sum / np.where(track_weight > 0, track_weight, 1.0)
        residual = task_sum - task_weight * track_mean[self.track_of_task]
        return residual, np.where(task_weight > 0, self.track_of_task, -1)


def _variance_within_cells(y: Floats, cell: Ints, n_cells: int) -> tuple[Floats, float]:
    """The variance of a run in each cell, and the degrees of freedom, as `cell_means` has them.

    A cell without repeats has the pooled variance of the others; NaN without any repeats.
    """
    count = np.bincount(cell, minlength=n_cells)
    mean = np.bincount(cell, y, minlength=n_cells) / np.maximum(count, 1)
    squares = np.bincount(cell, (y - mean[cell]) ** 2, minlength=n_cells)
    repeat_df = float(np.maximum(count - 1, 0).sum())
    pooled = float(squares.sum()) / repeat_df if repeat_df else math.nan
    return np.where(count > 1, squares / np.maximum(count - 1, 1), pooled), repeat_df
