"""Whether an agent succeeds every time, not once: pass^k and pass@k over the repeats of a cell, and
where runs break first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ...trajectories.models import STAGES
from .agent_scores import (
    METHOD,
    ONE_TASK_PER_TRACK,
    AgentScore,
    CellMeans,
    agent_score,
    cell_means,
    variance_between_tasks,
)
from .interval_estimates import SHARE_LIMITS, Bools, Floats, KeyedEstimates, t_estimate, tidy
from .jackknife import estimates_by_population, jackknife_of_sums, ratio_of_sums
from .ranking import failed
from .run_arrays import build_arrays, select_runs

KS = (1, 2, 3, 5, 10, 20)
BROKEN = 0.5
"""A stage below it broke."""


def pass_k(table: pl.DataFrame, *, prepare: bool = True) -> pl.DataFrame:
    """By agent and k: the chance that k runs of a task all succeed (pass^k), and that one of them
    does (pass@k).

    A success is a run that did not fail by the rule of its track (`ranking.failed`). Of n repeats
    with c successes, C(c, k) / C(n, k) and 1 - C(n - c, k) / C(n, k), which are unbiased; then
    averaged as scores are. Cells with fewer than k repeats are left out; a k that fewer than half
    of the cells have is not shown.
    """
    data, notes = select_runs(table) if prepare else (table, [])
    data = data.with_columns((~failed()).cast(pl.Float64).alias("passed"))
    d = build_arrays(data, "passed", keep_breach=True, prepare=False, need_codes=False)
    g = cell_means(d)
    rows: KeyedEstimates = []
    cells = g.count > 0
    for a, agent in enumerate(g.agents):
        for k in KS:
            there = g.count[a] >= k
            if 2 * there.sum() < cells[a].sum() or not there.any():
                continue
            left = int(cells[a].sum() - there.sum())
            warnings = [
                *notes,
                *d.notes,
                *([f"{left} cells with fewer than {k} repeats are left out"] if left else []),
            ]
            every = _all_of(g.total[a], g.count[a], k)
            some = 1 - _all_of(g.count[a] - g.total[a], g.count[a], k)
            score, other = (_score(g, agent, there, share) for share in (every, some))
            if score is None or other is None:
                continue
            variance, df, borrowed = variance_between_tasks(score.residual, score.track_of)
            est = t_estimate(
                f"pass^{k}",
                "new",
                score.value,
                math.sqrt(variance) if df else None,
                df,
                method=f"{METHOD}; tasks within tracks, t",
                n=int(g.count[a][there].sum()),
                n_clusters=int(there.any(1).sum()),
                reason=None if df else ONE_TASK_PER_TRACK,
                test=False,
                limits=SHARE_LIMITS,
                warnings=[*warnings, *([borrowed] if borrowed and df else [])],
            )
            rows.append(({"agent": agent, "k": k, "pass_at_k": other.value}, est))
    return tidy(rows, {"agent": pl.String, "k": pl.Int64, "pass_at_k": pl.Float64})


def _score(g: CellMeans, agent: str, there: Bools, share: Floats) -> AgentScore | None:
    """The agent's mean over the cells `there` of a share a cell (tasks x tiers)."""
    values = np.where(there, share, 0.0)[None]
    return agent_score(
        CellMeans(
            (agent,),
            g.tasks,
            g.track,
            there[None].astype(float),
            values,
            np.zeros_like(values),
            0.0,
            SHARE_LIMITS,
        ),
        0,
        there,
    )


def _all_of(successes: Floats, n: Floats, k: int) -> Floats:
    """C(successes, k) / C(n, k), as a product; 0 where n < k."""
    out = np.ones(n.shape)
    for i in range(k):
        out *= np.maximum(successes - i, 0.0) / np.maximum(n - i, 1.0)
    return np.asarray(np.where(n >= k, out, 0.0))


def first_breaks(table: pl.DataFrame, *, prepare: bool = True) -> pl.DataFrame:
    """By agent and stage: of the runs whose earlier stages all held, the share whose stage is below
    .5 (discrete-time hazard).

    `unbroken`: the share that holds up to and including the stage, the product of what the hazards
    leave (Kaplan and Meier 1958). A run leaves at its first stage without a score. Disqualified
    runs are left out, as a policy sets their stages.
    """
    data, notes = select_runs(table, keep_breach=False) if prepare else (table, [])
    d = build_arrays(
        data.with_columns(pl.lit(1.0).alias("_one")),
        "_one",
        keep_breach=True,
        prepare=False,
        need_codes=False,
    )
    scores = (
        d.table.select(STAGES)
        .cast(pl.Float64)
        .fill_null(math.nan)
        .to_numpy()
        .reshape(d.n, len(STAGES))
    )
    rows: KeyedEstimates = []
    groups = {
        "(all)": np.ones(d.n, dtype=bool),
        **{name: d.agent == a for a, name in enumerate(d.agents)},
    }
    for name, mine in groups.items():
        at_risk, unbroken = mine.copy(), 1.0
        for j, stage in enumerate(STAGES):
            at_risk = at_risk & np.isfinite(scores[:, j])
            broke = at_risk & (scores[:, j] < BROKEN)
            n = int(at_risk.sum())
            unbroken *= 1 - broke.sum() / n if n else math.nan
            key: dict[str, Any] = {
                "agent": name,
                "stage": stage,
                "at_risk": n,
                "broke": int(broke.sum()),
                "unbroken": unbroken if n else None,
            }
            if n:
                x = np.column_stack([broke[at_risk], np.ones(n)]).astype(float)
                found = jackknife_of_sums(x, ratio_of_sums, d.task[at_risk], d.cell[at_risk])
                ests = estimates_by_population(
                    "hazard of the stage",
                    found,
                    0,
                    n=n,
                    notes=(*notes, *d.notes),
                    limits=SHARE_LIMITS,
                )
                rows += [(key, est) for est in ests]
            at_risk = at_risk & ~broke
    keys: dict[str, Any] = {
        "agent": pl.String,
        "stage": pl.String,
        "at_risk": pl.Int64,
        "broke": pl.Int64,
        "unbroken": pl.Float64,
    }
    return tidy(rows, keys)
