"""Variance components of a score, and the probability that new tasks show the same order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from .interval_estimates import Floats, Ints
from .jackknife import group_sums
from .run_arrays import RunArrays, build_arrays

SEED = 20260601


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of a score in squared units; None if unknown, with the `reason`."""

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

    The variance between repeats is pooled within cells. With m the agent x task means of the tasks
    that all agents have, a the number of agents and MS the mean square of their interaction:
    agent_task = MS - noise of the means, task = Var(task means) - MS / a, both at least 0.
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
    repeat = _variance_within_cells(runs, cell_size)
    components = replace(unknown, repeat=repeat, n_rep=float(cell_size.mean()))

    means, counts = _common_task_means(runs)
    n_agents, n_common_tasks = means.shape
    if n_agents < 2 or n_common_tasks < 2:
        return replace(components, reason="needs two agents on two common tasks")
    noise_of_means = repeat * float((1 / counts).mean())
    interaction = means - means.mean(0) - means.mean(1, keepdims=True) + means.mean()
    interaction_df = (n_agents - 1) * (n_common_tasks - 1)
    interaction_ms = float((interaction**2).sum() / interaction_df)
    return replace(
        components,
        agent_task=max(0.0, interaction_ms - noise_of_means),
        task=max(0.0, float(means.mean(0).var(ddof=1)) - interaction_ms / n_agents),
    )


def _variance_within_cells(runs: RunArrays, cell_size: Ints) -> float:
    """The variance between repeats, pooled over cells."""
    cell_mean = group_sums(runs.y[:, None], runs.cell, runs.n_cells)[:, 0] / cell_size
    within_squares = ((runs.y - cell_mean[runs.cell]) ** 2).sum()
    return float(within_squares / (cell_size - 1).sum())


def _common_task_means(runs: RunArrays) -> tuple[Floats, Floats]:
    """Means and numbers of runs (agents x tasks) on the tasks that all agents have."""
    n_agents, n_tasks = len(runs.agents), runs.n_tasks
    pair = runs.agent * n_tasks + runs.task
    count = np.bincount(pair, minlength=n_agents * n_tasks).reshape(n_agents, n_tasks).astype(float)
    total = np.bincount(pair, runs.y, minlength=n_agents * n_tasks).reshape(n_agents, n_tasks)
    complete = (count > 0).all(0)
    return total[:, complete] / count[:, complete], count[:, complete]


def order_probability(
    means: Sequence[float],
    components: VarianceComponents,
    *,
    draws: int = 20000,
    seed: int = SEED,
) -> dict[str, float | None]:
    """The probability that a new set of as many tasks shows the same order of agents.

    `same_order` is None if the variances are unknown. Observed means spread more than true ones, so
    that taking them for the truth overstates it. Empirical Bayes (Efron and Morris 1975): with the
    error variance s2 = agent_task / T + repeat / (T · tiers · repeats) of a mean and the variance
    t2 of true ones, at least 0 and estimated by Var(means) - s2, true means are normal around the
    observed ones, shrunk by B = t2 / (t2 + s2) to their mean, with variance B s2; new means add s2
    again.
    """
    if components.repeat is None or components.agent_task is None:
        return {"same_order": None}
    if len(means) < 2 or components.n_tasks < 2:
        return {"same_order": None}
    n_tasks = components.n_tasks
    n_runs = n_tasks * components.n_tiers * components.n_rep
    error = components.agent_task / n_tasks + components.repeat / n_runs
    observed = np.sort(np.asarray(means, dtype=float))[::-1]
    spread = max(0.0, float(observed.var(ddof=1)) - error)
    shrinkage = spread / (spread + error) if error else 1.0
    expected = observed.mean() + shrinkage * (observed - observed.mean())
    sd = math.sqrt(shrinkage * error + error)
    noise = np.random.default_rng(seed).standard_normal((draws, len(observed)))
    order = np.argsort(-(expected + sd * noise), axis=1)
    return {"same_order": float((order == np.arange(len(observed))).all(1).mean())}
