"""Do effects of codes differ between agents or tracks, and how much of the scores do codes account
for."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import Estimate, KeyedEstimates, adjust_p_values, tidy
from .jackknife import demean
from .overlap_weighting import effect_estimates
from .run_arrays import build_arrays

SEED = 20260601


def effects_by(
    table: pl.DataFrame,
    by: str = "agent",
    outcome: str = "overall",
    *,
    source: str = "any",
    prepare: bool = True,
) -> pl.DataFrame:
    """Effects of each code within each agent, track or tier; BH over the grid; `shrunk` pulls
    values to the code's mean.

    `i2` is the share of the spread between groups that is beyond noise (DerSimonian and Laird);
    rank by `shrunk` only.
    """
    d = build_arrays(table, outcome, source=source, prepare=prepare, need_codes=False)
    axis, names = d.axis(by)
    keys: dict[str, Any] = {
        "by": pl.String,
        "group": pl.String,
        "code": pl.String,
        "p_bh": pl.Float64,
        "shrunk": pl.Float64,
        "i2": pl.Float64,
    }
    rows: KeyedEstimates = []
    for at, name in enumerate(names):
        part = d.table.filter(pl.Series(axis == at))
        label = f"effect of {{code}} on {outcome}"
        for code, est in zip(CODES, effect_estimates(part, outcome, source, label), strict=True):
            rows.append(({"by": by, "group": name, "code": code}, est))
    for code in CODES:
        block = [
            (key, est)
            for key, est in rows
            if key["code"] == code and est.value is not None and est.se
        ]
        if len(block) >= 3:
            _shrink(block)
    for (key, _), p in zip(
        rows, adjust_p_values([est.p for _, est in rows], "fdr_bh"), strict=True
    ):
        key["p_bh"] = p
    return tidy(rows, keys)


def _shrink(block: KeyedEstimates) -> None:
    value = np.array([est.value for _, est in block], dtype=float)
    variance = np.array([est.se for _, est in block], dtype=float) ** 2
    w = 1 / variance
    mean = (w * value).sum() / w.sum()
    q = float((w * (value - mean) ** 2).sum())
    df = len(block) - 1
    tau2 = max(0.0, (q - df) / (w.sum() - (w**2).sum() / w.sum()))
    centre = (value / (variance + tau2)).sum() / (1 / (variance + tau2)).sum()
    for (key, _), v, s2 in zip(block, value, variance, strict=True):
        key["shrunk"] = float(centre + (v - centre) * tau2 / (tau2 + s2))
        key["i2"] = max(0.0, (q - df) / q) if q > 0 else 0.0


def explained_variance(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """Leave-task-out R2 of codes for scores above their cell's mean: linear, and boosted trees as a
    check of form.

    How much of the spread between repeats the codes account for on unseen tasks (0-1; below 0:
    worse than the mean).
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GroupKFold
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    d = build_arrays(table, outcome, source=source, prepare=prepare)
    keys: dict[str, Any] = {"model": pl.String}
    y = demean(d.y[:, None], d.cell, d.n_cells)[:, 0] if d.n else d.y
    x = demean(d.codes.astype(float), d.cell, d.n_cells) if d.n else d.codes.astype(float)
    rows: KeyedEstimates = []
    spread = float((y**2).sum()) if d.n else 0.0
    for name, model in (
        ("linear", LinearRegression(fit_intercept=False)),
        ("trees", HistGradientBoostingRegressor(max_iter=60, random_state=seed)),
    ):
        label = f"R2 of codes{d.among_codes()} for {outcome} within cells, tasks left out"
        if d.n_tasks < 3 or spread <= 1e-9 or not d.codes.any():
            reason = "needs three tasks, repeats that differ, and fired codes"
            reason += "" if d.n == d.n_scored else f" ({d.n} of {d.n_scored} runs were read)"
            rows.append(
                (
                    {"model": name},
                    Estimate(label, "new", None, n=d.n, n_clusters=d.n_tasks, reason=reason),
                )
            )
            continue
        lost = 0.0
        # Small fits: threads cost more than they give, above all on a busy machine.
        with threadpool_limits(1):
            for fit_rows, test_rows in GroupKFold(min(5, d.n_tasks)).split(x, y, d.task):
                predicted = model.fit(x[fit_rows], y[fit_rows]).predict(x[test_rows])
                lost += float(((y[test_rows] - predicted) ** 2).sum())
        rows.append(
            (
                {"model": name},
                Estimate(
                    label,
                    "new",
                    1 - lost / spread,
                    n=d.n,
                    n_clusters=d.n_tasks,
                    method="grouped 5-fold",
                    reason="a point only",
                    warnings=d.notes,
                ),
            )
        )
    return tidy(rows, keys)
