"""Whether effects of codes differ between groups, and how much of the scores the codes explain."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import Estimate, Floats, KeyedEstimates, adjust_p_values, tidy
from .jackknife import demean
from .overlap_weighting import effect_estimates
from .run_arrays import RunArrays, build_arrays

SEED = 20260601
MIN_GROUPS = 3
"""The fewest groups with an effect from which a variance between groups is estimated."""
FOLDS = 5


def effects_by(
    table: pl.DataFrame,
    by: str = "agent",
    outcome: str = "overall",
    *,
    source: str = "any",
    prepare: bool = True,
) -> pl.DataFrame:
    """Effects of each code within each agent, track or tier.

    `p_bh`: adjusted over all groups and codes (Benjamini and Hochberg). `shrunk`: the effect pulled
    to the code's mean; rank by it only. `i2`: the share of the variation between groups that
    exceeds noise (DerSimonian and Laird).
    """
    runs = build_arrays(table, outcome, source=source, prepare=prepare, need_codes=False)
    group_of_run, groups = runs.axis(by)
    label = f"effect of {{code}} on {outcome}"
    rows: KeyedEstimates = []
    for index, group in enumerate(groups):
        group_runs = runs.table.filter(pl.Series(group_of_run == index))
        estimates = effect_estimates(group_runs, outcome, source, label)
        for code, est in zip(CODES, estimates, strict=True):
            rows.append(({"by": by, "group": group, "code": code}, est))
    for code in CODES:
        _add_shrinkage([row for row in rows if row[0]["code"] == code])
    adjusted = adjust_p_values([est.p for _, est in rows], "fdr_bh")
    for (key, _), p in zip(rows, adjusted, strict=True):
        key["p_bh"] = p
    keys: dict[str, Any] = {
        "by": pl.String,
        "group": pl.String,
        "code": pl.String,
        "p_bh": pl.Float64,
        "shrunk": pl.Float64,
        "i2": pl.Float64,
    }
    return tidy(rows, keys)


def _add_shrinkage(rows: KeyedEstimates) -> None:
    """Set `shrunk` and `i2` of one code's rows, by a random-effects model.

    With weights w = 1 / s^2, their mean m and Q = sum w (v - m)^2 on k - 1 df (DerSimonian and
    Laird 1986): tau^2 = (Q - df) / (sum w - sum w^2 / sum w), I^2 = (Q - df) / Q, both at least 0,
    and shrunk = c + (v - c) tau^2 / (tau^2 + s^2), c the mean with weights 1 / (s^2 + tau^2).
    """
    rows = [(key, est) for key, est in rows if est.value is not None and est.se]
    if len(rows) < MIN_GROUPS:
        return
    value = np.array([est.value for _, est in rows], dtype=float)
    variance = np.array([est.se for _, est in rows], dtype=float) ** 2
    weight = 1 / variance
    mean = (weight * value).sum() / weight.sum()
    q = float((weight * (value - mean) ** 2).sum())
    df = len(rows) - 1
    tau2 = max(0.0, (q - df) / (weight.sum() - (weight**2).sum() / weight.sum()))
    total_variance = variance + tau2
    centre = (value / total_variance).sum() / (1 / total_variance).sum()
    shrunk = centre + (value - centre) * tau2 / (tau2 + variance)
    i2 = max(0.0, (q - df) / q) if q > 0 else 0.0
    for (key, _), shrunk_value in zip(rows, shrunk.tolist(), strict=True):
        key["shrunk"] = shrunk_value
        key["i2"] = i2


def explained_variance(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """Out-of-fold R2 of codes for scores within cells: a linear model, and boosted trees beside it.

    The share of the variation between repeats that the codes explain on tasks that the model was
    not fitted on (at most 1; below 0: worse than the mean).
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    runs = build_arrays(table, outcome, source=source, prepare=prepare)
    codes, y = runs.codes.astype(float), runs.y
    if runs.n:
        codes = demean(codes, runs.cell, runs.n_cells)
        y = demean(y[:, None], runs.cell, runs.n_cells)[:, 0]
    total_squares = float((y**2).sum())
    label = f"R2 of codes{runs.among_codes()} for {outcome} within cells, tasks left out"
    common: dict[str, Any] = {"n": runs.n, "n_clusters": runs.n_tasks}
    models = {
        "linear": LinearRegression(fit_intercept=False),
        "trees": HistGradientBoostingRegressor(max_iter=60, random_state=seed),
    }
    rows: KeyedEstimates = []
    for name, model in models.items():
        if runs.n_tasks < 3 or total_squares <= 1e-9 or not runs.codes.any():
            reason = "needs three tasks, repeats that differ, and fired codes"
            if runs.n < runs.n_scored:
                reason += f" ({runs.n} of {runs.n_scored} runs were read)"
            est = Estimate(label, "new", None, reason=reason, **common)
        else:
            est = Estimate(
                label,
                "new",
                1 - _out_of_fold_squares(model, codes, y, runs) / total_squares,
                method=f"grouped {FOLDS}-fold",
                reason="a point only",
                warnings=runs.notes,
                **common,
            )
        rows.append(({"model": name}, est))
    return tidy(rows, {"model": pl.String})


def _out_of_fold_squares(model: Any, codes: Floats, y: Floats, runs: RunArrays) -> float:
    """Sum of squared errors of predictions for tasks outside the fold of the fit."""
    from sklearn.model_selection import GroupKFold
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    squares = 0.0
    folds = GroupKFold(min(FOLDS, runs.n_tasks)).split(codes, y, runs.task)
    # The fits are small: threads cost more than they save, above all on a busy machine.
    with threadpool_limits(1):
        for train, test in folds:
            predicted = model.fit(codes[train], y[train]).predict(codes[test])
            squares += float(((y[test] - predicted) ** 2).sum())
    return squares
