"""Variance components of a score, and how likely a new set of tasks shows the same order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .jackknife import group_sums
from .run_arrays import build_arrays

SEED = 20260601


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of a score (squared units): between repeats, agent x task, and tasks; None with the
    reason when unknown."""

    repeat: float | None
    agent_task: float | None
    task: float | None
    n_tasks: int
    n_rep: float
    n_tiers: int
    reason: str | None = None


def variance_components(
    table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True
) -> VarianceComponents:
    """Variance components by the method of moments (ANOVA): repeats pooled within cells, agent x
    task and task from means."""
    d = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    tiers = max(1, len(d.tiers))
    if d.n == 0 or d.n_cells == d.n:
        reason = "no runs" if d.n == 0 else "no repeats: the spread between repeats is unknown"
        return VarianceComponents(None, None, None, len(d.tasks), 1.0, tiers, reason)
    size = np.bincount(d.cell, minlength=d.n_cells)
    means = group_sums(d.y[:, None], d.cell, d.n_cells)[:, 0] / size
    repeat = float(((d.y - means[d.cell]) ** 2).sum() / (size - 1).sum())
    pair = d.agent * len(d.tasks) + d.task
    shape = (len(d.agents), len(d.tasks))
    count = np.bincount(pair, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
    total = np.bincount(pair, d.y, minlength=shape[0] * shape[1]).reshape(shape)
    whole = (count > 0).all(0)
    a, t = shape[0], int(whole.sum())
    n_rep = float(size.mean())
    if a < 2 or t < 2:
        return VarianceComponents(
            repeat, None, None, len(d.tasks), n_rep, tiers, "needs two agents on two common tasks"
        )
    m = (total / np.where(count > 0, count, 1.0))[:, whole]
    noise = repeat * float((1 / count[:, whole]).mean())
    rest = m - m.mean(0) - m.mean(1, keepdims=True) + m.mean()
    mixed = float((rest**2).sum() / ((a - 1) * (t - 1)))
    agent_task = max(0.0, mixed - noise)
    task = max(0.0, float(m.mean(0).var(ddof=1)) - mixed / a)
    return VarianceComponents(repeat, agent_task, task, len(d.tasks), n_rep, tiers)


def order_probability(
    means: Sequence[float], components: VarianceComponents, *, draws: int = 20000, seed: int = SEED
) -> dict[str, float | None]:
    """Were these means the truth: how often a new set of as many tasks shows the same order, and
    the same first agent."""
    if (
        components.repeat is None
        or components.agent_task is None
        or len(means) < 2
        or components.n_tasks < 2
    ):
        return {"same_order": None, "same_first": None}
    t = components.n_tasks
    sd = math.sqrt(
        components.agent_task / t + components.repeat / (t * components.n_tiers * components.n_rep)
    )
    truth = np.sort(np.asarray(means, dtype=float))[::-1]
    seen = truth + sd * np.random.default_rng(seed).standard_normal((draws, len(truth)))
    order = np.argsort(-seen, axis=1)
    return {
        "same_order": float((order == np.arange(len(truth))).all(1).mean()),
        "same_first": float((order[:, 0] == 0).mean()),
    }
