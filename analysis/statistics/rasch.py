"""A second opinion on ranks: how able agents and how difficult tasks are, by a Rasch model of
success.

logit P(success) = ability - difficulty (Rasch 1960), with normal priors, so that an agent that
never fails has a finite ability. Unlike a mean it allows for tasks that an agent never ran; unlike
a mean it assumes that tasks are hard or easy for all alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from .agent_scores import cell_means
from .interval_estimates import Estimate, Floats, KeyedEstimates, t_estimate, tidy
from .ranking import failed
from .run_arrays import build_arrays, select_runs

SD_ABILITY, SD_DIFFICULTY = 3.0, 1.5
"""Of the priors, in logits: all but flat, and a spread that tasks usually have."""
MOST_TASKS = 2000


def abilities(table: pl.DataFrame, *, prepare: bool = True) -> pl.DataFrame:
    """Agents' abilities and tasks' difficulties in logits (kind agent, task); success is no failure
    by the rule of the track.

    Errors of abilities come from the spread between tasks (sandwich), as an agent may be better at
    some; those of difficulties from the curvature, for these agents. Both are the model's, and no
    claim about new tasks. More than MOST_TASKS tasks, or fewer than two agents or tasks: a reason.
    """
    data, notes = select_runs(table) if prepare else (table, [])
    data = data.with_columns((~failed()).cast(pl.Float64).alias("passed"))
    d = build_arrays(data, "passed", keep_breach=True, prepare=False, need_codes=False)
    keys: dict[str, Any] = {"kind": pl.String, "name": pl.String, "passed": pl.Float64}
    g = cell_means(d)
    a, t = len(g.agents), len(g.tasks)
    if not (a > 1 and 1 < t <= MOST_TASKS):
        reason = f"{a} agents on {t} tasks: needs two of each, and no more than {MOST_TASKS} tasks"
        return tidy([({}, Estimate("ability", None, None, n=d.n, reason=reason))], keys)
    runs, passed = g.count.sum(2), g.total.sum(2)
    theta, covariance, spread = rasch(runs, passed)
    rows: KeyedEstimates = []
    for kind, names, at, sign, axis in (("agent", g.agents, 0, 1, 1), ("task", g.tasks, a, -1, 0)):
        n, share = runs.sum(axis), passed.sum(axis) / np.maximum(runs.sum(axis), 1)
        for k, name in enumerate(names):
            variance = (spread if kind == "agent" else covariance)[at + k, at + k]
            est = t_estimate(
                "ability" if kind == "agent" else "difficulty",
                None,
                sign * float(theta[at + k]),
                float(np.sqrt(variance)),
                t - 1,
                n=int(n[k]),
                n_clusters=t if kind == "agent" else None,
                test=False,
                method="Rasch, normal priors; "
                + ("sandwich over tasks, t" if kind == "agent" else "curvature, t"),
                warnings=[*notes, *d.notes],
            )
            rows.append(({"kind": kind, "name": name, "passed": float(share[k])}, est))
    return tidy(sorted(rows, key=lambda row: (row[0]["kind"], -(row[1].value or 0.0))), keys)


def rasch(runs: Floats, passed: Floats) -> tuple[Floats, Floats, Floats]:
    """Abilities and easinesses (minus difficulties) at the posterior's mode, by Newton's method,
    from counts (agents x tasks); the inverse curvature, and the sandwich over tasks."""
    a, t = runs.shape
    prior = np.concatenate([np.full(a, SD_ABILITY**-2), np.full(t, SD_DIFFICULTY**-2)])
    theta = np.zeros(a + t)
    inverse = gap = np.zeros((0, 0))
    for _ in range(100):
        p = 1 / (1 + np.exp(-(theta[:a, None] + theta[None, a:])))
        gap, weight = passed - runs * p, runs * p * (1 - p)
        curvature = np.diag(np.concatenate([weight.sum(1), weight.sum(0)]) + prior)
        curvature[:a, a:], curvature[a:, :a] = weight, weight.T
        inverse = np.linalg.inv(curvature)
        step = inverse @ (np.concatenate([gap.sum(1), gap.sum(0)]) - prior * theta)
        # The posterior is concave; a step of more than two logits would be Newton's leap over its
        # mode.
        theta = theta + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-10:
            break
    scores = np.vstack([gap, np.diag(gap.sum(0) - prior[a:] * theta[a:])])
    return theta, inverse, np.asarray(t / (t - 1) * inverse @ (scores @ scores.T) @ inverse)
