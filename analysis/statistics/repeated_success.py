"""Success every time (pass^k and pass@k over repeats), and the stage at which runs break first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ...trajectories.models import STAGES
from .agent_scores import (
    METHOD,
    AgentScore,
    CellMeans,
    agent_score,
    cell_means,
    new_tasks_error,
)
from .interval_estimates import (
    SHARE_LIMITS,
    Bools,
    Estimate,
    Floats,
    KeyedEstimates,
    t_estimate,
    tidy,
)
from .jackknife import estimates_by_population, jackknife_of_sums, ratio_of_sums
from .ranking import failed
from .run_arrays import build_arrays, select_runs

KS = (1, 2, 3, 5, 10, 20)
BROKEN_BELOW = 0.5
"""A stage with a lower score broke."""


def pass_k(table: pl.DataFrame, *, prepare: bool = True) -> pl.DataFrame:
    """By agent and k: the chance that k runs of a task all succeed (pass^k), or one does (pass@k).

    A success is a run that did not fail by the rule of its track (`ranking.failed`). With c
    successes in n repeats of a cell the unbiased estimates are C(c, k) / C(n, k) for pass^k and
    1 - C(n - c, k) / C(n, k) for pass@k (Chen et al. 2021); they are averaged as scores are. Cells
    with fewer than k repeats are left out; a k that fewer than half of the cells have is not shown.
    """
    data, notes = select_runs(table) if prepare else (table, [])
    data = data.with_columns((~failed()).cast(pl.Float64).alias("passed"))
    runs = build_arrays(data, "passed", keep_breach=True, prepare=False, need_codes=False)
    cells = cell_means(runs)
    rows: KeyedEstimates = []
    for a, agent in enumerate(cells.agents):
        count, passed = cells.count[a], cells.total[a]
        n_cells = int((count > 0).sum())
        for k in KS:
            use = count >= k
            n_used = int(use.sum())
            if not n_used or 2 * n_used < n_cells:
                continue
            all_succeed = _score(cells, agent, use, _chance_of_all(passed, count, k))
            one_succeeds = _score(cells, agent, use, 1 - _chance_of_all(count - passed, count, k))
            if all_succeed is None or one_succeeds is None:
                continue
            warnings = [*notes, *runs.notes]
            if n_used < n_cells:
                warnings.append(
                    f"{n_cells - n_used} cells with fewer than {k} repeats are left out"
                )
            est = _pass_estimate(k, all_succeed, int(count[use].sum()), use, warnings)
            rows.append(({"agent": agent, "k": k, "pass_at_k": one_succeeds.value}, est))
    return tidy(rows, {"agent": pl.String, "k": pl.Int64, "pass_at_k": pl.Float64})


def _pass_estimate(
    k: int, score: AgentScore, n_runs: int, use: Bools, warnings: list[str]
) -> Estimate:
    # The variance of pass^k within cells is unknown.
    error = new_tasks_error(score.residual, score.track_of, math.nan, 0.0)
    if error.warning:
        warnings = [*warnings, error.warning]
    return t_estimate(
        f"pass^{k}",
        "new",
        score.value,
        error.se,
        error.df,
        method=f"{METHOD}; tasks within tracks, t",
        n=n_runs,
        n_clusters=int(use.any(1).sum()),
        reason=error.reason,
        test=False,
        limits=SHARE_LIMITS,
        warnings=warnings,
    )


def _score(cells: CellMeans, agent: str, use: Bools, value: Floats) -> AgentScore | None:
    """The agent's mean over the cells `use` of a value of each cell (both tasks x tiers)."""
    values = np.where(use, value, 0.0)[None]
    one_run_a_cell = CellMeans(
        agents=(agent,),
        tasks=cells.tasks,
        track=cells.track,
        count=use[None].astype(float),
        total=values,
        variance=np.zeros_like(values),
        repeat_df=0.0,
        difference_limits=SHARE_LIMITS,
    )
    return agent_score(one_run_a_cell, 0, use)


def _chance_of_all(successes: Floats, n: Floats, k: int) -> Floats:
    """C(successes, k) / C(n, k), computed as a product; 0 where n < k."""
    chance = np.ones(n.shape)
    for i in range(k):
        chance *= np.maximum(successes - i, 0.0) / np.maximum(n - i, 1.0)
    return np.asarray(np.where(n >= k, chance, 0.0))


def first_breaks(table: pl.DataFrame, *, prepare: bool = True) -> pl.DataFrame:
    """By agent and stage: the share of the runs at risk whose stage scores below .5 (hazard).

    At risk are the runs whose earlier stages all reached .5 (a discrete-time hazard). `unbroken`:
    the share that holds up to and including the stage, the product of 1 - hazard (Kaplan and Meier
    1958). A run is censored at its first stage without a score. Disqualified runs are left out, as
    a policy sets their stages.
    """
    data, notes = select_runs(table, keep_breach=False) if prepare else (table, [])
    data = data.with_columns(pl.lit(1.0).alias("_one"))
    runs = build_arrays(data, "_one", keep_breach=True, prepare=False, need_codes=False)
    stage_scores = runs.table.select(STAGES).cast(pl.Float64).fill_null(math.nan).to_numpy()
    stage_scores = stage_scores.reshape(runs.n, len(STAGES))
    groups = {"(all)": np.ones(runs.n, dtype=bool)}
    groups |= {agent: runs.agent == a for a, agent in enumerate(runs.agents)}
    rows: KeyedEstimates = []
    for name, in_group in groups.items():
        at_risk, unbroken = in_group.copy(), 1.0
        for j, stage in enumerate(STAGES):
            at_risk = at_risk & np.isfinite(stage_scores[:, j])
            n_at_risk = int(at_risk.sum())
            if not n_at_risk:
                break
            broke = at_risk & (stage_scores[:, j] < BROKEN_BELOW)
            unbroken *= 1 - broke.sum() / n_at_risk
            key: dict[str, Any] = {
                "agent": name,
                "stage": stage,
                "at_risk": n_at_risk,
                "broke": int(broke.sum()),
                "unbroken": unbroken,
            }
            hazard = jackknife_of_sums(
                np.column_stack([broke[at_risk], np.ones(n_at_risk)]).astype(float),
                ratio_of_sums,
                runs.task[at_risk],
                runs.cell[at_risk],
            )
            estimates = estimates_by_population(
                "hazard of the stage",
                hazard,
                0,
                n=n_at_risk,
                notes=(*notes, *runs.notes),
                limits=SHARE_LIMITS,
            )
            rows += [(key, est) for est in estimates]
            at_risk = at_risk & ~broke
    keys: dict[str, Any] = {
        "agent": pl.String,
        "stage": pl.String,
        "at_risk": pl.Int64,
        "broke": pl.Int64,
        "unbroken": pl.Float64,
    }
    return tidy(rows, keys)
