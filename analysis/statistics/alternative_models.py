"""Other ways to relate codes and scores, beside the default: what changes when the model changes.

Each has a trap that is guarded and named in `warnings`; none replaces `code_effects`.
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


def robustness(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    models: tuple[str, ...] = ("cell_ols", "additive_ols", "logit", "permutation", "wild"),
    source: str = "any",
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """Code effects under other models, one row a code and model.

    cell_ols: cell effects, codes additive, CR3. additive_ols: agent + task + tier, HC3 by task
    (biased when agents differ by task). logit: fractional logit with cell means of codes (Mundlak).
    permutation: within cells (same tasks, sharp null). wild: restricted wild cluster bootstrap,
    below 15 tasks.
    """
    unknown = [name for name in models if name not in _MODELS]
    if unknown:
        raise ConfigError(f"unknown model {unknown[0]!r}", f"choose from {', '.join(_MODELS)}")
    rows: KeyedEstimates = []
    parts = [
        (d, codes, fit_code_effects(d))
        for d, codes in arrays_by_code(table, outcome, source=source, prepare=prepare)
    ]
    for name in models:
        for d, codes, found_by in parts:
            rows += _rows(d, codes, found_by, name, seed)
    return tidy(rows, KEYS)


def _rows(
    d: RunArrays, codes: tuple[str, ...], found_by: FittedEffects, model: str, seed: int
) -> KeyedEstimates:
    """The rows of one model for `codes`, all of which a design has."""
    reasons = {code: found_by.refusal(k) for k, code in enumerate(d.code_names)}
    if all(reasons[code] for code in codes):
        return [({"code": code, "model": model}, _none(d, model, reasons[code])) for code in codes]
    with np.errstate(all="ignore"), python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")
        found = [(key, est) for key, est in _MODELS[model](d, seed) if key["code"] in codes]
    return [
        (
            (key, _none(d, model, reasons[key["code"]]))
            if reasons[key["code"]]
            else (key, replace(est, warnings=(*_partial(d), *est.warnings)))
        )
        for key, est in found
    ]


def _partial(d: RunArrays) -> tuple[str, ...]:
    """What the design leaves out, where not every run was read for every code."""
    return () if d.n == d.n_scored and len(d.code_names) == len(CODES) else d.notes


def _none(d: RunArrays, name: str, reason: str | None) -> Estimate:
    return Estimate(
        f"effect of a code on {d.outcome}",
        None,
        None,
        n=d.n,
        n_clusters=d.n_tasks,
        method=name,
        reason=reason,
    )


def _without(d: RunArrays, name: str, target: str, reason: str) -> KeyedEstimates:
    """The rows of a model that cannot be had here."""
    return [
        ({"code": code, "model": name, "target": target}, _none(d, name, reason))
        for code in d.code_names
    ]


def _block(
    d: RunArrays,
    name: str,
    target: str,
    value: Floats,
    se: Floats,
    df: float,
    method: str,
    **more: Any,
) -> KeyedEstimates:
    common: dict[str, Any] = {"n": d.n, "n_clusters": d.n_tasks, "method": method, **more}
    return [
        (
            {"code": code, "model": name, "target": target},
            t_estimate(f"effect of {code} on {d.outcome}", "new", value[k], se[k], df, **common),
        )
        for k, code in enumerate(d.code_names)
    ]


def _within(d: RunArrays) -> tuple[Floats, Floats]:
    """Codes and outcome, free of their cells' means."""
    return (
        demean(d.codes.astype(float), d.cell, d.n_cells),
        demean(d.y[:, None], d.cell, d.n_cells)[:, 0],
    )


def _by_task(d: RunArrays, influence: Floats, task: Ints | None = None) -> Floats:
    """Standard errors from each run's influence (n x k) on the estimates, summed by task; or that
    of runs of one `task`."""
    sums = group_sums(influence, d.task if task is None else task, d.n_tasks)
    return np.asarray(np.sqrt((sums**2).sum(0) * d.n_tasks / max(d.n_tasks - 1, 1)))


def _cell_ols(d: RunArrays, seed: int) -> KeyedEstimates:
    b, v = cr3(*_within(d), d.task)
    return _block(
        d,
        "cell_ols",
        "regression",
        b,
        np.sqrt(np.diag(v)),
        d.n_tasks - 1,
        "cell effects, CR3 by task",
    )


def _additive(d: RunArrays, seed: int) -> KeyedEstimates:
    theta, influence = weighted_least_squares(
        np.hstack([d.codes.astype(float), additive_dummies(d)]),
        d.y,
        np.ones(d.n),
        len(d.code_names),
    )
    se = _by_task(d, influence)
    note = ("agent x task differences confound it: a comparison, not a finding",)
    return _block(
        d,
        "additive_ols",
        "regression",
        theta,
        se,
        d.n_tasks - 1,
        "agent + task + tier, HC3 by task",
        warnings=note,
    )


def _logit(d: RunArrays, seed: int) -> KeyedEstimates:
    """Fractional logit of y/scale with cell means of codes; AME by prediction, task-clustered delta
    method."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    scale = 100.0 if d.outcome == "overall" else 1.0
    y = d.y / scale
    if y.min() < 0 or y.max() > 1:
        return _without(d, "logit", "AME", f"{d.outcome} is not within its scale")
    codes = d.codes.astype(float)
    means = codes - demean(codes, d.cell, d.n_cells)
    # Runs of a cell with the same codes are alike to the model: each group of them is a row that
    # weighs their number.
    pattern = d.codes @ (1 << np.arange(len(d.code_names)))
    _, first, group, n = np.unique(
        d.cell * (1 << len(d.code_names)) + pattern,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    x = np.hstack([codes, means, additive_dummies(d)])[first]
    y, task = np.bincount(group, y) / n, d.task[first]
    with python_warnings.catch_warnings(record=True) as told:
        python_warnings.simplefilter("always")
        fit = GLM(y, x, family=Binomial(), freq_weights=n).fit(tol=1e-10)
    if any(issubclass(w.category, PerfectSeparationWarning) for w in told):
        return _without(d, "logit", "AME", "the model predicts every score: no effect can be told")
    beta, p = fit.params, fit.fittedvalues
    bread = np.linalg.pinv(x.T @ (x * (n * p * (1 - p))[:, None]), hermitian=True)
    score = x * (n * (y - p))[:, None]
    influence = score @ bread
    value, se = np.zeros(len(d.code_names)), np.zeros(len(d.code_names))
    for k in range(len(d.code_names)):
        ends, slope = [], np.zeros(x.shape[1])
        for level, sign in ((1.0, 1), (0.0, -1)):
            moved = x.copy()
            moved[:, k] = level
            q = 1 / (1 + np.exp(-np.clip(moved @ beta, -30, 30)))
            ends.append(q)
            slope += sign * (n * q * (1 - q)) @ moved / d.n
        gain = ends[0] - ends[1]
        mean = n @ gain / d.n
        value[k] = scale * mean
        total = influence @ slope + n * (gain - mean) / d.n
        se[k] = scale * _by_task(d, total, task)[0]
    note = ("the link alone does not undo sub-additivity of codes",)
    return _block(
        d,
        "logit",
        "AME",
        value,
        se,
        d.n_tasks - 1,
        "fractional logit, Mundlak means, CR1 by task",
        warnings=note,
    )


def _permutation(d: RunArrays, seed: int, draws: int = 999) -> KeyedEstimates:
    """Freedman and Lane: residuals without the code, permuted within cells; p only, for the same
    tasks."""
    if d.n > MAX_PERMUTED:
        return _without(d, "permutation", "p", f"more than {MAX_PERMUTED} runs: too slow")
    rng = np.random.default_rng(seed)
    x, y = _within(d)
    order = np.argsort(d.cell, kind="stable")
    x, y = x[order], y[order]
    ends = np.cumsum(sizes := np.bincount(d.cell))
    cells = [(ends[sizes == size] - size)[:, None] + np.arange(size) for size in np.unique(sizes)]
    """The runs of all cells of one size, a row a cell."""
    pure, rest, b = np.zeros_like(x), np.zeros_like(x), np.full(len(d.code_names), np.nan)
    for k in range(len(d.code_names)):
        others = np.delete(x, k, 1)
        pure[:, k] = x[:, k] - others @ np.linalg.lstsq(others, x[:, k], rcond=None)[0]
        rest[:, k] = y - others @ np.linalg.lstsq(others, y, rcond=None)[0]
        norm = pure[:, k] @ pure[:, k]
        if norm > 1e-9:
            b[k] = pure[:, k] @ y / norm
    beaten = np.zeros(len(d.code_names))
    actual = np.abs((pure * rest).sum(0))
    shuffled = np.empty(d.n, dtype=np.int64)
    for _ in range(draws):
        for alike in cells:
            shuffled[alike] = rng.permuted(alike, axis=1)
        beaten += np.abs(np.einsum("ij,ij->j", pure, rest.take(shuffled, 0))) >= actual * (
            1 - 1e-12
        )
    p = (1 + beaten) / (1 + draws)
    return [
        (
            {"code": code, "model": "permutation", "target": "p"},
            Estimate(
                f"effect of {code} on {d.outcome}",
                "same",
                float(b[k]) if np.isfinite(b[k]) else None,
                p=float(p[k]),
                n=d.n,
                n_clusters=d.n_cells,
                method=f"Freedman-Lane within cells, {draws} draws",
                reason="a permutation test gives no interval",
            ),
        )
        for k, code in enumerate(d.code_names)
    ]


def _wild(d: RunArrays, seed: int, draws: int = 1999) -> KeyedEstimates:
    """Restricted wild cluster bootstrap (Cameron, Gelbach and Miller; Rademacher weights), from
    cluster scores alone."""
    if d.n_tasks >= 15 or d.n_tasks < 3:
        why = (
            "15 tasks or more: the jackknife is as good" if d.n_tasks >= 15 else "needs three tasks"
        )
        return _without(d, "wild", "p", why)
    x, y = _within(d)
    rows: KeyedEstimates = []
    for k, code in enumerate(d.code_names):
        p, b = wild_p(x, y, d.task, k, draws, seed)
        rows.append(
            (
                {"code": code, "model": "wild", "target": "p"},
                Estimate(
                    f"effect of {code} on {d.outcome}",
                    "new",
                    b,
                    p=p,
                    n=d.n,
                    n_clusters=d.n_tasks,
                    method=f"restricted wild cluster bootstrap, {draws} draws",
                    reason="p only: few tasks",
                ),
            )
        )
    return rows


def wild_p(
    x: Floats, y: Floats, cluster: np.ndarray[Any, Any], k: int, draws: int, seed: int
) -> tuple[float | None, float | None]:
    """p of column k's coefficient being 0, and the coefficient; None when it is not identified."""
    dense, n_clusters = group_ids(cluster)
    used = np.flatnonzero((x**2).sum(0) > 1e-9)
    if k not in used:
        return None, None
    x, k = x[:, used], int(np.flatnonzero(used == k)[0])
    parts = [dense == g for g in range(n_clusters)]
    xx = np.array([x[part].T @ x[part] for part in parts])
    inverse = np.linalg.pinv(xx.sum(0), hermitian=True)
    others = np.delete(x, k, 1)
    residual = y - others @ np.linalg.lstsq(others, y, rcond=None)[0]
    score = np.array([x[part].T @ residual[part] for part in parts])

    def t(weights: Floats) -> Floats:
        shifted = np.einsum("bg,gp->bgp", weights, score)
        move = shifted.sum(1) @ inverse
        left = shifted - np.einsum("gpq,bq->bgp", xx, move)
        return np.asarray(move[:, k] / np.sqrt(((left @ inverse[:, k]) ** 2).sum(1)))

    actual = float(t(np.ones((1, n_clusters)))[0])
    sample = t(np.random.default_rng(seed).choice([-1.0, 1.0], (draws, n_clusters)))
    return float((1 + (np.abs(sample) >= abs(actual)).sum()) / (1 + draws)), float(
        (inverse @ (x.T @ y))[k]
    )


_MODELS: dict[str, Callable[[RunArrays, int], KeyedEstimates]] = {
    "cell_ols": _cell_ols,
    "additive_ols": _additive,
    "logit": _logit,
    "permutation": _permutation,
    "wild": _wild,
}
