"""Code effects under other models than the default: what changes when the model changes.

None replaces `code_effects`; each has a pitfall that is guarded against and named in `warnings`.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ...errors import ConfigError
from ..tables.codes_read import CODES
from .corrected_effects import additive_dummies, weighted_least_squares
from .interval_estimates import Estimate, Floats, Ints, KeyedEstimates, t_estimate, tidy
from .jackknife import cr3, demean, group_ids, group_sums
from .overlap_weighting import FittedEffects, fit_code_effects
from .run_arrays import RunArrays, arrays_by_code

SEED = 20260601
KEYS: dict[str, Any] = {"code": pl.String, "model": pl.String, "target": pl.String}
MAX_PERMUTED = 60_000
"""Runs above which the permutation test would take too long."""
MAX_WILD_TASKS = 15
"""Tasks from which the jackknife is as good as the wild bootstrap."""


def robustness(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    models: tuple[str, ...] = ("cell_ols", "additive_ols", "logit", "permutation", "wild"),
    source: str = "any",
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """Code effects under other models, one row for each code and model.

    cell_ols: cell effects, codes additive, CR3 by task. additive_ols: agent + task + tier, HC3 by
    task (biased if agents differ by task). logit: fractional logit with cell means of codes
    (Mundlak 1978). permutation: within cells (same tasks, sharp null). wild: restricted wild
    cluster bootstrap, below 15 tasks. Raises ConfigError for an unknown model.
    """
    for name in models:
        if name not in _MODELS:
            raise ConfigError(f"unknown model {name!r}", f"choose from {', '.join(_MODELS)}")
    parts = [
        (runs, codes, fit_code_effects(runs))
        for runs, codes in arrays_by_code(table, outcome, source=source, prepare=prepare)
    ]
    rows: KeyedEstimates = []
    for name in models:
        for runs, codes, effects in parts:
            rows += _rows_of_model(runs, codes, effects, name, seed)
    return tidy(rows, KEYS)


def _rows_of_model(
    runs: RunArrays, codes: tuple[str, ...], effects: FittedEffects, model: str, seed: int
) -> KeyedEstimates:
    """The rows of one model for some of the codes; what `code_effects` refuses is refused here."""
    refusals = {code: effects.refusal(k) for k, code in enumerate(runs.code_names)}
    if all(refusals[code] for code in codes):
        return [
            ({"code": code, "model": model}, _no_effect(runs, model, refusals[code]))
            for code in codes
        ]
    with np.errstate(all="ignore"), python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")
        model_rows = _MODELS[model](runs, seed)
    partly_read = runs.n < runs.n_scored or len(runs.code_names) < len(CODES)
    reading_notes = runs.notes if partly_read else ()
    rows: KeyedEstimates = []
    for key, est in model_rows:
        if key["code"] not in codes:
            continue
        refusal = refusals[key["code"]]
        if refusal:
            rows.append((key, _no_effect(runs, model, refusal)))
        else:
            rows.append((key, replace(est, warnings=(*reading_notes, *est.warnings))))
    return rows


def _no_effect(runs: RunArrays, model: str, reason: str | None) -> Estimate:
    return Estimate(
        f"effect of a code on {runs.outcome}",
        None,
        None,
        n=runs.n,
        n_clusters=runs.n_tasks,
        method=model,
        reason=reason,
    )


def _no_effects(runs: RunArrays, model: str, target: str, reason: str) -> KeyedEstimates:
    """The rows of a model that is not defined for these runs."""
    return [
        ({"code": code, "model": model, "target": target}, _no_effect(runs, model, reason))
        for code in runs.code_names
    ]


def _effect_rows(
    runs: RunArrays,
    model: str,
    target: str,
    value: Floats,
    se: Floats,
    *,
    method: str,
    warnings: tuple[str, ...] = (),
) -> KeyedEstimates:
    """A row for each code, with values and standard errors (code_names each) clustered by task."""
    rows: KeyedEstimates = []
    for k, code in enumerate(runs.code_names):
        est = t_estimate(
            f"effect of {code} on {runs.outcome}",
            "new",
            value[k],
            se[k],
            runs.n_tasks - 1,
            n=runs.n,
            n_clusters=runs.n_tasks,
            method=method,
            warnings=warnings,
        )
        rows.append(({"code": code, "model": model, "target": target}, est))
    return rows


def _within_cells(runs: RunArrays) -> tuple[Floats, Floats]:
    """Codes (n x code_names) and outcome (n) minus their cells' means."""
    codes = demean(runs.codes.astype(float), runs.cell, runs.n_cells)
    y = demean(runs.y[:, None], runs.cell, runs.n_cells)[:, 0]
    return codes, y


def _clustered_se(runs: RunArrays, influence: Floats, task: Ints) -> Floats:
    """Standard errors (k) from influences (rows x k) on the estimates, clustered by task."""
    sums = group_sums(influence, task, runs.n_tasks)
    return np.asarray(np.sqrt((sums**2).sum(0) * runs.n_tasks / max(runs.n_tasks - 1, 1)))


def _cell_ols(runs: RunArrays, seed: int) -> KeyedEstimates:
    value, covariance = cr3(*_within_cells(runs), runs.task)
    return _effect_rows(
        runs,
        "cell_ols",
        "regression",
        value,
        np.sqrt(np.diag(covariance)),
        method="cell effects, CR3 by task",
    )


def _additive_ols(runs: RunArrays, seed: int) -> KeyedEstimates:
    x = np.hstack([runs.codes.astype(float), additive_dummies(runs)])
    value, influence = weighted_least_squares(x, runs.y, np.ones(runs.n), len(runs.code_names))
    return _effect_rows(
        runs,
        "additive_ols",
        "regression",
        value,
        _clustered_se(runs, influence, runs.task),
        method="agent + task + tier, HC3 by task",
        warnings=("agent x task differences confound it: a comparison, not a finding",),
    )


def _logit(runs: RunArrays, seed: int) -> KeyedEstimates:
    """Fractional logit (Papke and Wooldridge 1996) of y/scale with cell means of codes (Mundlak).

    Average marginal effect of code k: mean of p(code k set) - p(code k not set), in units of the
    outcome; its error by the delta method, clustered by task.
    """
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    scale = 100.0 if runs.outcome == "overall" else 1.0
    y = runs.y / scale
    if y.min() < 0 or y.max() > 1:
        return _no_effects(runs, "logit", "AME", f"{runs.outcome} is not within its scale")
    codes = runs.codes.astype(float)
    cell_means = codes - demean(codes, runs.cell, runs.n_cells)
    # Runs of a cell with the same codes are alike to the model: each group of them is one row with
    # their number as its weight.
    n_codes = len(runs.code_names)
    pattern = runs.codes @ (1 << np.arange(n_codes))
    _, first, group, count = np.unique(
        runs.cell * (1 << n_codes) + pattern,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    x = np.hstack([codes, cell_means, additive_dummies(runs)])[first]
    y, task = np.bincount(group, y) / count, runs.task[first]
    with python_warnings.catch_warnings(record=True) as raised:
        python_warnings.simplefilter("always")
        fit = GLM(y, x, family=Binomial(), freq_weights=count).fit(tol=1e-10)
    if any(issubclass(warning.category, PerfectSeparationWarning) for warning in raised):
        reason = "the model predicts every score: no effect can be estimated"
        return _no_effects(runs, "logit", "AME", reason)
    p = fit.fittedvalues
    curvature = x.T @ (x * (count * p * (1 - p))[:, None])
    scores = x * (count * (y - p))[:, None]
    influence = scores @ np.linalg.pinv(curvature, hermitian=True)
    value, se = np.zeros(n_codes), np.zeros(n_codes)
    for k in range(n_codes):
        effect, gradient = _marginal_effects(x, fit.params, k, count.astype(float))
        mean_effect = count @ effect / runs.n
        # Two sources of error: the coefficients, and which runs the effect is averaged over.
        total = influence @ gradient + count * (effect - mean_effect) / runs.n
        value[k] = scale * mean_effect
        se[k] = scale * _clustered_se(runs, total, task)[0]
    return _effect_rows(
        runs,
        "logit",
        "AME",
        value,
        se,
        method="fractional logit, Mundlak means, CR1 by task",
        warnings=("the link alone does not undo sub-additivity of codes",),
    )


def _marginal_effects(x: Floats, beta: Floats, k: int, count: Floats) -> tuple[Floats, Floats]:
    """Of column k of x: p(set) - p(not set) of each row, and the gradient of its weighted mean."""
    probability = {}
    gradient = np.zeros(x.shape[1])
    for level, sign in ((1.0, 1), (0.0, -1)):
        counterfactual = x.copy()
        counterfactual[:, k] = level
        p = 1 / (1 + np.exp(-np.clip(counterfactual @ beta, -30, 30)))
        probability[level] = p
        gradient += sign * (count * p * (1 - p)) @ counterfactual / count.sum()
    return probability[1.0] - probability[0.0], gradient


def _permutation(runs: RunArrays, seed: int, draws: int = 999) -> KeyedEstimates:
    """Freedman and Lane (1983): residuals without the code, permuted within cells.

    p only, for the same tasks: (1 + permutations at least as extreme) / (1 + draws).
    """
    if runs.n > MAX_PERMUTED:
        reason = f"more than {MAX_PERMUTED} runs: too slow"
        return _no_effects(runs, "permutation", "p", reason)
    rng = np.random.default_rng(seed)
    codes, y = _within_cells(runs)
    order = np.argsort(runs.cell, kind="stable")
    codes, y = codes[order], y[order]
    cells_by_size = _cells_by_size(runs)
    n_codes = len(runs.code_names)
    pure_code, residual = np.zeros_like(codes), np.zeros_like(codes)
    value = np.full(n_codes, np.nan)
    for k in range(n_codes):
        others = np.delete(codes, k, 1)
        pure_code[:, k] = _ols_residual(codes[:, k], others)
        residual[:, k] = _ols_residual(y, others)
        square = pure_code[:, k] @ pure_code[:, k]
        if square > 1e-9:
            value[k] = pure_code[:, k] @ y / square
    at_least_as_extreme = np.zeros(n_codes)
    actual = np.abs((pure_code * residual).sum(0))
    permutation = np.empty(runs.n, dtype=np.int64)
    for _ in range(draws):
        for cells in cells_by_size:
            permutation[cells] = rng.permuted(cells, axis=1)
        products = np.einsum("ij,ij->j", pure_code, residual.take(permutation, 0))
        at_least_as_extreme += np.abs(products) >= actual * (1 - 1e-12)
    p = (1 + at_least_as_extreme) / (1 + draws)
    rows: KeyedEstimates = []
    for k, code in enumerate(runs.code_names):
        est = Estimate(
            f"effect of {code} on {runs.outcome}",
            "same",
            float(value[k]) if np.isfinite(value[k]) else None,
            p=float(p[k]),
            n=runs.n,
            n_clusters=runs.n_cells,
            method=f"Freedman-Lane within cells, {draws} draws",
            reason="a permutation test gives no interval",
        )
        rows.append(({"code": code, "model": "permutation", "target": "p"}, est))
    return rows


def _cells_by_size(runs: RunArrays) -> list[Ints]:
    """For each size of cells the runs of its cells (cells x size), runs being sorted by cell."""
    sizes = np.bincount(runs.cell)
    ends = np.cumsum(sizes)
    return [(ends[sizes == size] - size)[:, None] + np.arange(size) for size in np.unique(sizes)]


def _ols_residual(y: Floats, x: Floats) -> Floats:
    """Residual of OLS of y (n) on x (n x p)."""
    return np.asarray(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])


def _wild(runs: RunArrays, seed: int, draws: int = 1999) -> KeyedEstimates:
    """Restricted wild cluster bootstrap (Cameron, Gelbach and Miller 2008); p only."""
    if runs.n_tasks >= MAX_WILD_TASKS:
        reason = f"{MAX_WILD_TASKS} tasks or more: the jackknife is as good"
        return _no_effects(runs, "wild", "p", reason)
    if runs.n_tasks < 3:
        return _no_effects(runs, "wild", "p", "needs three tasks")
    codes, y = _within_cells(runs)
    rows: KeyedEstimates = []
    for k, code in enumerate(runs.code_names):
        p, value = wild_p(codes, y, runs.task, k, draws, seed)
        est = Estimate(
            f"effect of {code} on {runs.outcome}",
            "new",
            value,
            p=p,
            n=runs.n,
            n_clusters=runs.n_tasks,
            method=f"restricted wild cluster bootstrap, {draws} draws",
            reason="p only: few tasks",
        )
        rows.append(({"code": code, "model": "wild", "target": "p"}, est))
    return rows


def wild_p(
    x: Floats, y: Floats, cluster: np.ndarray[Any, Any], k: int, draws: int, seed: int
) -> tuple[float | None, float | None]:
    """p of the hypothesis that coefficient k of y (n) on x (n x p) is 0, and the coefficient.

    Restricted wild cluster bootstrap with Rademacher weights, computed from the scores of clusters.
    None if the coefficient is not identified.
    """
    ids, n_clusters = group_ids(cluster)
    identified = np.flatnonzero((x**2).sum(0) > 1e-9)
    if k not in identified:
        return None, None
    x, k = x[:, identified], int(np.flatnonzero(identified == k)[0])
    in_cluster = [ids == g for g in range(n_clusters)]
    xx = np.array([x[rows].T @ x[rows] for rows in in_cluster])
    inverse = np.linalg.pinv(xx.sum(0), hermitian=True)
    restricted_residual = _ols_residual(y, np.delete(x, k, 1))
    scores = np.array([x[rows].T @ restricted_residual[rows] for rows in in_cluster])

    def t_statistic(weights: Floats) -> Floats:
        """t (draws) of coefficient k if cluster scores are multiplied by weights (draws x G)."""
        weighted_scores = np.einsum("bg,gp->bgp", weights, scores)
        coefficients = weighted_scores.sum(1) @ inverse
        residual_scores = weighted_scores - np.einsum("gpq,bq->bgp", xx, coefficients)
        variance = ((residual_scores @ inverse[:, k]) ** 2).sum(1)
        return np.asarray(coefficients[:, k] / np.sqrt(variance))

    actual = float(t_statistic(np.ones((1, n_clusters)))[0])
    rademacher = np.random.default_rng(seed).choice([-1.0, 1.0], (draws, n_clusters))
    sample = t_statistic(rademacher)
    p = float((1 + (np.abs(sample) >= abs(actual)).sum()) / (1 + draws))
    return p, float((inverse @ (x.T @ y))[k])


_MODELS: dict[str, Callable[[RunArrays, int], KeyedEstimates]] = {
    "cell_ols": _cell_ols,
    "additive_ols": _additive_ols,
    "logit": _logit,
    "permutation": _permutation,
    "wild": _wild,
}
