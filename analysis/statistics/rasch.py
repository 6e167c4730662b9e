"""A second opinion on ranks: agents' abilities and tasks' difficulties by a Rasch model of success.

logit P(success) = ability - difficulty (Rasch 1960), with normal priors, so that an agent that
never fails has a finite ability. Unlike a mean it allows for tasks that an agent never ran; unlike
a mean it assumes that a task is equally hard for all agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from .agent_scores import cell_means
from .interval_estimates import Estimate, Floats, KeyedEstimates, t_estimate, tidy
from .ranking import failed
from .run_arrays import build_arrays, select_runs

SD_ABILITY, SD_DIFFICULTY = 3.0, 1.5
"""Standard deviations of the priors in logits: nearly flat, and a usual spread of tasks."""
MAX_TASKS = 2000
"""The matrix of the model has a row and a column for each task."""


@dataclass(frozen=True)
class RaschFit:
    """Posterior mode of a agents and t tasks, in logits."""

    ability: Floats
    """(a)."""
    difficulty: Floats
    """(t)."""
    ability_covariance: Floats
    """(a x a): sandwich over tasks, as an agent may be better at some tasks than at others."""
    difficulty_se: Floats
    """(t): from the curvature, for these agents."""


def abilities(table: pl.DataFrame, *, prepare: bool = True) -> pl.DataFrame:
    """Agents' abilities and tasks' difficulties in logits (`kind` agent, task).

    A success is a run that did not fail by the rule of its track (`ranking.failed`). The errors
    are those of the model, and no claim about new tasks. With more than MAX_TASKS tasks, or fewer
    than two agents or tasks, the table has one row with the reason.
    """
    data, notes = select_runs(table) if prepare else (table, [])
    data = data.with_columns((~failed()).cast(pl.Float64).alias("passed"))
    runs = build_arrays(data, "passed", keep_breach=True, prepare=False, need_codes=False)
    keys: dict[str, Any] = {"kind": pl.String, "name": pl.String, "passed": pl.Float64}
    cells = cell_means(runs)
    n_agents, n_tasks = len(cells.agents), len(cells.tasks)
    if n_agents < 2 or not 2 <= n_tasks <= MAX_TASKS:
        reason = (
            f"{n_agents} agents on {n_tasks} tasks: needs two of each, and no more than"
            f" {MAX_TASKS} tasks"
        )
        return tidy([({}, Estimate("ability", None, None, n=runs.n, reason=reason))], keys)
    count, passed = cells.count.sum(2), cells.total.sum(2)
    fit = rasch(count, passed)
    warnings = [*notes, *runs.notes]
    agent_rows = _rows(
        "agent",
        cells.agents,
        fit.ability,
        np.sqrt(np.diag(fit.ability_covariance)),
        count.sum(1),
        passed.sum(1),
        estimand="ability",
        df=n_tasks - 1,
        n_clusters=n_tasks,
        method="Rasch, normal priors; sandwich over tasks, t",
        warnings=warnings,
    )
    task_rows = _rows(
        "task",
        cells.tasks,
        fit.difficulty,
        fit.difficulty_se,
        count.sum(0),
        passed.sum(0),
        estimand="difficulty",
        df=n_tasks - 1,
        n_clusters=None,
        method="Rasch, normal priors; curvature, t",
        warnings=warnings,
    )
    return tidy(agent_rows + task_rows, keys)


def _rows(
    kind: str,
    names: Sequence[str],
    value: Floats,
    se: Floats,
    count: Floats,
    passed: Floats,
    *,
    estimand: str,
    df: float,
    **arguments: Any,
) -> KeyedEstimates:
    """A row for each agent or task, the highest value first."""
    rows: KeyedEstimates = []
    for k, name in enumerate(names):
        share = float(passed[k] / max(count[k], 1))
        est = t_estimate(
            estimand,
            None,
            float(value[k]),
            float(se[k]),
            df,
            n=int(count[k]),
            test=False,
            **arguments,
        )
        rows.append(({"kind": kind, "name": name, "passed": share}, est))
    return sorted(rows, key=lambda row: -(row[1].value or 0.0))


def rasch(count: Floats, passed: Floats) -> RaschFit:
    """The posterior mode by Newton's method, from runs and passed runs (agents x tasks).

    Parameters theta = (abilities, easinesses), easiness = -difficulty. Covariances: the inverse
    curvature H^-1, and the sandwich t/(t-1) H^-1 (sum over tasks of score score') H^-1.
    """
    n_agents, n_tasks = count.shape
    precision = np.concatenate(
        [np.full(n_agents, SD_ABILITY**-2), np.full(n_tasks, SD_DIFFICULTY**-2)]
    )
    theta = np.zeros(n_agents + n_tasks)
    inverse = residual = np.zeros((0, 0))
    for _ in range(100):
        p = 1 / (1 + np.exp(-(theta[:n_agents, None] + theta[None, n_agents:])))
        residual, weight = passed - count * p, count * p * (1 - p)
        curvature = np.diag(np.concatenate([weight.sum(1), weight.sum(0)]) + precision)
        curvature[:n_agents, n_agents:] = weight
        curvature[n_agents:, :n_agents] = weight.T
        inverse = np.linalg.inv(curvature)
        gradient = np.concatenate([residual.sum(1), residual.sum(0)]) - precision * theta
        step = inverse @ gradient
        # The log posterior is concave; a step of more than two logits would overshoot its mode.
        theta = theta + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-10:
            break
    easiness_scores = residual.sum(0) - precision[n_agents:] * theta[n_agents:]
    scores = np.vstack([residual, np.diag(easiness_scores)])
    sandwich = n_tasks / (n_tasks - 1) * inverse @ (scores @ scores.T) @ inverse
    return RaschFit(
        ability=theta[:n_agents],
        difficulty=-theta[n_agents:],
        ability_covariance=sandwich[:n_agents, :n_agents],
        difficulty_se=np.sqrt(np.diag(inverse)[n_agents:]),
    )
