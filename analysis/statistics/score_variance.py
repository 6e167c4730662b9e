"""Variance components of a score, and how likely a new set of tasks shows the same order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from .jackknife import group_sums
from .run_arrays import build_arrays

SEED = 20260601


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of a score in squared units; None, with the reason, if unknown."""

    repeat: float | None
    """Between repeats within a cell."""
    agent_task: float | None
    """Agent x task interaction."""
    task: float | None
    """Between tasks."""
    n_tasks: int
    n_rep: float
    """Mean number of repeats of a cell."""
    n_tiers: int
    reason: str | None = None


def variance_components(
    table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True
) -> VarianceComponents:
    """Variance components by the method of moments (ANOVA).

    Repeats: pooled within cells. With m the agent x task means of tasks that all agents have, a
    agents and MS the mean square of their interaction: agent_task = MS - noise of the means,
    task = Var(task means) - MS / a, both at least 0.
    """
    runs = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    unknown = VarianceComponents(
        repeat=None,
        agent_task=None,
        task=None,
        n_tasks=runs.n_tasks,
        n_rep=1.0,
        n_tiers=max(1, len(runs.tiers)),
    )
    if runs.n == 0:
        return replace(unknown, reason="no runs")
    if runs.n_cells == runs.n:
        return replace(unknown, reason="no repeats: the variance between repeats is unknown")
    cell_size = np.bincount(runs.cell, minlength=runs.n_cells)
    cell_mean = group_sums(runs.y[:, None], runs.cell, runs.n_cells)[:, 0] / cell_size
    within_squares = ((runs.y - cell_mean[runs.cell]) ** 2).sum()
    repeat = float(within_squares / (cell_size - 1).sum())
    components = replace(unknown, repeat=repeat, n_rep=float(cell_size.mean()))

    a, n_tasks = len(runs.agents), runs.n_tasks
    pair = runs.agent * n_tasks + runs.task
    count = np.bincount(pair, minlength=a * n_tasks).reshape(a, n_tasks).astype(float)
    total = np.bincount(pair, runs.y, minlength=a * n_tasks).reshape(a, n_tasks)
    complete = (count > 0).all(0)
    t = int(complete.sum())
    if a < 2 or t < 2:
        return replace(components, reason="needs two agents on two common tasks")
    m = total[:, complete] / count[:, complete]
    noise_of_means = repeat * float((1 / count[:, complete]).mean())
    interaction = m - m.mean(0) - m.mean(1, keepdims=True) + m.mean()
    interaction_ms = float((interaction**2).sum() / ((a - 1) * (t - 1)))
    return replace(
        components,
        agent_task=max(0.0, interaction_ms - noise_of_means),
        task=max(0.0, float(m.mean(0).var(ddof=1)) - interaction_ms / a),
    )


def order_probability(
    means: Sequence[float],
    components: VarianceComponents,
    *,
    draws: int = 20000,
    seed: int = SEED,
) -> dict[str, float | None]:
    """How often a new set of as many tasks shows the same order, if these means were the truth.

    `same_order`: of all agents; `same_first`: the same first agent. None if the variances are
    unknown. Simulated with the standard deviation of a mean,
    sqrt(agent_task / T + repeat / (T · tiers · repeats)).
    """
    if components.repeat is None or components.agent_task is None:
        return {"same_order": None, "same_first": None}
    if len(means) < 2 or components.n_tasks < 2:
        return {"same_order": None, "same_first": None}
    t = components.n_tasks
    n_runs = t * components.n_tiers * components.n_rep
    sd = math.sqrt(components.agent_task / t + components.repeat / n_runs)
    truth = np.sort(np.asarray(means, dtype=float))[::-1]
    noise = np.random.default_rng(seed).standard_normal((draws, len(truth)))
    order = np.argsort(-(truth + sd * noise), axis=1)
    return {
        "same_order": float((order == np.arange(len(truth))).all(1).mean()),
        "same_first": float((order[:, 0] == 0).mean()),
    }
