"""Overall split into points for the stages, the Task and what these do not explain."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..tables.frames import WEIGHTS
from .interval_estimates import Floats
from .run_arrays import RunArrays

PARTS = ("S1", "S2", "S3", "S4", "S5", "task", "other")
"""Parts of Overall in points: 50 w_j S_j, 50 Task, and the remainder (0 in a consistent frame)."""


def overall_parts(table: pl.DataFrame) -> Floats:
    """Overall split into PARTS (n x 7), in points.

    An unscored stage follows the policy of its row: the weights of the others are rescaled, or it
    counts as 0.
    """
    stages = table.select(list(WEIGHTS)).to_numpy().astype(np.float64).reshape(-1, len(WEIGHTS))
    weights = np.broadcast_to(np.array(list(WEIGHTS.values())), stages.shape)
    scored = np.isfinite(stages)
    weighted = np.where(scored, weights * np.where(scored, stages, 0.0), 0.0)
    missing_is_zero = (table["missing_policy"].fill_null("renormalize") == "zero").to_numpy()
    total_weight = np.where(missing_is_zero, 1.0, (weights * scored).sum(1))
    stage_points = 50 * weighted / np.where(total_weight > 0, total_weight, 1.0)[:, None]
    task_points = 50 * np.nan_to_num(table["task_score"].to_numpy().astype(np.float64))
    overall = table["overall"].to_numpy().astype(np.float64)
    other = overall - stage_points.sum(1) - task_points
    # Scores are stored with six digits: a tiny remainder is rounding, not a part.
    other = np.where(np.abs(other) < 0.02, 0.0, other)
    return np.column_stack([stage_points, task_points, other])


def zero_task_loss(runs: RunArrays) -> Floats:
    """The points that runs lose by a Task of 0 (n values of 0 or below).

    A gate, nothing to score, or a worthless result: minus 50 times the mean Task above 0 of the
    run's cell (if there is none, of all runs). The remainder of 50 Task is how good a result is.
    """
    task = runs.table["task_score"].cast(pl.Float64).fill_null(0.0).to_numpy()
    positive = task > 0
    mean_of_all = float(task[positive].mean()) if positive.any() else 0.0
    n_positive = np.bincount(runs.cell, positive, minlength=runs.n_cells)
    total = np.bincount(runs.cell, task, minlength=runs.n_cells)
    mean_of_cell = np.where(n_positive > 0, total / np.maximum(n_positive, 1), mean_of_all)
    return np.asarray(np.where(positive, 0.0, -50 * mean_of_cell[runs.cell]))
