"""Variance components, how sure an order is, and which runs people should label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.human_labels import Drawn, Labels
from .design import code_columns, design, prepared
from .jackknife import group_sums

SEED = 20260601
RARE_FIRST = ("E1", "E2", "E4", "E3", "E5")
UNREAD = "not read"
"""The stratum of runs without a fired code that were not read for all five: nobody knows that they
have none."""


@dataclass(frozen=True)
class Components:
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
) -> Components:
    """Variance components by the method of moments (ANOVA): repeats pooled within cells, agent x
    task and task from means."""
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    tiers = max(1, len(d.tiers))
    if d.n == 0 or d.n_cells == d.n:
        reason = "no runs" if d.n == 0 else "no repeats: the spread between repeats is unknown"
        return Components(None, None, None, len(d.tasks), 1.0, tiers, reason)
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
        return Components(
            repeat, None, None, len(d.tasks), n_rep, tiers, "needs two agents on two common tasks"
        )
    m = (total / np.where(count > 0, count, 1.0))[:, whole]
    noise = repeat * float((1 / count[:, whole]).mean())
    rest = m - m.mean(0) - m.mean(1, keepdims=True) + m.mean()
    mixed = float((rest**2).sum() / ((a - 1) * (t - 1)))
    agent_task = max(0.0, mixed - noise)
    task = max(0.0, float(m.mean(0).var(ddof=1)) - mixed / a)
    return Components(repeat, agent_task, task, len(d.tasks), n_rep, tiers)


def order_probability(
    means: Sequence[float], components: Components, *, draws: int = 20000, seed: int = SEED
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


def label_plan(
    table: pl.DataFrame,
    budget: int = 300,
    *,
    target: int = 40,
    already: Sequence[str] = (),
    seed: int = SEED,
    source: str = "any",
) -> pl.DataFrame:
    """Which runs to label within a budget: stratified by tags, rare codes first, with inclusion
    probabilities.

    A run belongs to the stratum of its rarest tag (order E1, E2, E4, E3, E5, not read, none). Each
    stratum gets up to `target` runs, the rest goes in proportion to size. Columns: order, run_id,
    agent, task, tier, stratum, stratum_size, probability (weigh a label by 1/probability). Runs in
    `already` are labelled and left out.
    """
    runs, _ = prepared(table)
    runs = runs.filter(~pl.col("run_id").is_in(list(already)))
    columns = code_columns(runs, source)
    unread = pl.any_horizontal(columns[code].is_null() for code in RARE_FIRST)
    stratum = pl.when(unread).then(pl.lit(UNREAD)).otherwise(pl.lit("none"))
    for code in reversed(RARE_FIRST):
        stratum = pl.when(columns[code].fill_null(False)).then(pl.lit(code)).otherwise(stratum)
    runs = runs.with_columns(stratum=stratum)
    names = [*RARE_FIRST, UNREAD, "none"]
    sizes = {name: runs.filter(pl.col("stratum") == name).height for name in names}
    budget = max(0, min(budget, runs.height))
    wanted = {name: min(size, target) for name, size in sizes.items()}
    if sum(wanted.values()) > budget:
        scale = budget / sum(wanted.values())
        wanted = {name: math.floor(n * scale) for name, n in wanted.items()}
    left = budget - sum(wanted.values())
    while left > 0:
        room = {name: sizes[name] - wanted[name] for name in names if sizes[name] > wanted[name]}
        share = {
            name: min(room[name], max(1, math.floor(left * room[name] / sum(room.values()))))
            for name in room
        }
        for name in sorted(share, key=lambda s: -share[s]):
            give = min(share[name], left)
            wanted[name] += give
            left -= give
    rng = np.random.default_rng(seed)
    parts = []
    for name in names:
        group = runs.filter(pl.col("stratum") == name).sort("run_id")
        if wanted[name]:
            picked = np.sort(rng.choice(group.height, wanted[name], replace=False))
            parts.append(
                group[picked.tolist()].select(
                    "run_id",
                    "agent",
                    "task",
                    "tier",
                    "stratum",
                    pl.lit(sizes[name]).alias("stratum_size"),
                    pl.lit(wanted[name] / sizes[name]).alias("probability"),
                )
            )
    schema: dict[str, Any] = {
        "order": pl.UInt32,
        "run_id": pl.String,
        "agent": pl.String,
        "task": pl.String,
        "tier": pl.String,
        "stratum": pl.String,
        "stratum_size": pl.Int32,
        "probability": pl.Float64,
    }
    if not parts:
        return pl.DataFrame(schema=schema)
    plan = pl.concat(parts)
    # A random order, so that stopping early leaves a sample of each stratum.
    shuffled: pl.DataFrame = plan[rng.permutation(plan.height).tolist()].with_row_index(
        "order", offset=1
    )
    return shuffled.select(pl.col(name).cast(kind) for name, kind in schema.items())


def drawn_labels(plan: pl.DataFrame, annotator: str) -> list[Labels]:
    """A label plan as labels still to be made, in its order: each says how its run was drawn."""
    return [
        Labels(
            run=row["run_id"],
            annotator=annotator,
            drawn=Drawn(
                probability=row["probability"], stratum=row["stratum"], size=row["stratum_size"]
            ),
        )
        for row in plan.iter_rows(named=True)
    ]
