"""Delete-one-cluster jackknife, for regressions within cells and for functions of sums over runs.

One engine gives three things: CR3 standard errors (the delete-one-cluster jackknife centred at the
full estimate equals CR3), the influence of single tasks, and standard errors of any smooth
statistic, including the variation of the sample means that enter it.

Shapes: n runs, G clusters (tasks), p regressors, m outcomes, q sums, k statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .interval_estimates import (
    NO_LIMITS,
    Bools,
    Estimate,
    Floats,
    Ints,
    error_for_new_tasks,
    t_estimate,
)


def group_sums(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Sums of the rows of `values` (n x q) by group (numbers from 0): n_groups x q."""
    rows = values[:, None] if values.ndim == 1 else values
    sums = np.empty((n_groups, rows.shape[1]))
    for column in range(rows.shape[1]):
        sums[:, column] = np.bincount(group, rows[:, column], minlength=n_groups)
    return sums


def demean(values: Floats, group: Ints, n_groups: int) -> Floats:
    """`values` (n x q) minus the mean of their group."""
    size = np.maximum(np.bincount(group, minlength=n_groups), 1)
    means = group_sums(values, group, n_groups) / size[:, None]
    return np.asarray(values - means[group])


def group_ids(*columns: Ints) -> tuple[Ints, int]:
    """Numbers 0, 1, ... of the combinations of integer columns that occur, and how many occur."""
    combined = columns[0].astype(np.int64)
    for column in columns[1:]:
        combined = combined * (int(column.max(initial=0)) + 1) + column
    _, ids = np.unique(combined, return_inverse=True)
    return ids.astype(np.int64), int(ids.max(initial=-1)) + 1


@dataclass(frozen=True)
class CrossProducts:
    """X'X and X'Y summed within each cluster."""

    xx: Floats
    """G x p x p."""
    xy: Floats
    """G x p x m."""

    @property
    def n_clusters(self) -> int:
        return len(self.xx)


def cross_products(x: Floats, y: Floats, cluster: Ints, n_clusters: int) -> CrossProducts:
    """Cross-products of x (n x p) with itself and with y (n x m), summed within clusters."""
    p, m = x.shape[1], y.shape[1]
    order = np.argsort(cluster, kind="stable")
    x, y, sorted_cluster = x[order], y[order], cluster[order]
    bounds = np.searchsorted(sorted_cluster, np.arange(n_clusters + 1))
    xx = np.empty((n_clusters, p, p))
    xy = np.empty((n_clusters, p, m))
    for g in range(n_clusters):
        rows = slice(bounds[g], bounds[g + 1])
        x_g = x[rows]
        xx[g] = x_g.T @ x_g
        xy[g] = x_g.T @ y[rows]
    return CrossProducts(xx, xy)


def independent_columns(xx: Floats, tolerance: float = 1e-9) -> Bools:
    """Mask (p) of the columns that are no linear combination of selected ones to their left.

    Decided from X'X (p x p): a column is dropped if its residual sum of squares is negligible.
    """
    p = len(xx)
    selected: list[int] = []
    square = np.diag(xx).copy()
    for j in range(p):
        if square[j] <= tolerance:
            continue
        if selected:
            block = xx[np.ix_(selected, selected)]
            coefficients = np.linalg.lstsq(block, xx[selected, j], rcond=None)[0]
            residual_square = square[j] - xx[j, selected] @ coefficients
            if residual_square <= 1e-7 * square[j]:
                continue
        selected.append(j)
    mask = np.zeros(p, dtype=bool)
    mask[selected] = True
    return mask


def solve_normal_equations(xx: Floats, xy: Floats) -> Floats:
    """Solutions of a stack of normal equations; where one is singular, that of minimal norm.

    `xx`: ... x p x p, `xy`: ... x p x m. Columns are scaled to unit length first, for the condition
    number.
    """
    if xx.shape[-1] == 0:
        return np.zeros_like(xy)
    scale = np.sqrt(np.maximum(np.einsum("...ii->...i", xx), 1e-300))
    scaled = xx / scale[..., :, None] / scale[..., None, :]
    right = xy / scale[..., :, None]
    try:
        solution = np.linalg.solve(scaled, right)
    except np.linalg.LinAlgError:
        solution = np.full_like(right, np.nan)
    # A nearly singular matrix raises nothing, but its solution is absurdly large.
    largest = 1e9 * (1 + np.abs(right).max(initial=0))
    if not (np.isfinite(solution).all() and np.abs(solution).max(initial=0) < largest):
        solution = np.linalg.pinv(scaled, rcond=1e-9, hermitian=True) @ right
    return np.asarray(solution / scale[..., :, None])


def delete_one_regression(products: CrossProducts) -> tuple[Floats, Floats]:
    """OLS coefficients from all clusters (p x m), and without each cluster in turn (G x p x m)."""
    xx, xy = products.xx.sum(0), products.xy.sum(0)
    full = solve_normal_equations(xx, xy)
    deleted = solve_normal_equations(xx - products.xx, xy - products.xy)
    return full, deleted


def jackknife_variance(full: Floats, deleted: Floats) -> Floats:
    """(G-1)/G sum_g (estimate without g - full estimate)^2, centred at the full estimate.

    `deleted`: G x shape of `full`. NaN below two clusters or where a deletion is undefined.
    """
    n_clusters = len(deleted)
    if n_clusters < 2:
        return np.full(np.shape(full), np.nan)
    return np.asarray((n_clusters - 1) / n_clusters * ((deleted - full) ** 2).sum(0))


def cr3(x: Floats, y: Floats, cluster: Ints) -> tuple[Floats, Floats]:
    """Coefficients (p) and CR3 covariance (p x p) of OLS of y (n) on x (n x p).

    Both must be free of fixed effects already. Bell and McCaffrey's (2002) CR3 in its jackknife
    form, centred at the full estimate (MacKinnon, Nielsen and Webb 2023).
    """
    ids, n_clusters = group_ids(cluster)
    full, deleted = delete_one_regression(cross_products(x, y[:, None], ids, n_clusters))
    difference = (deleted - full)[:, :, 0]
    return full[:, 0], (n_clusters - 1) / n_clusters * difference.T @ difference


Statistic = Callable[[Floats], Floats]
"""From sums (... x q) to statistics (... x k); NaN where undefined."""


@dataclass(frozen=True)
class Jackknifed:
    """k statistics with standard errors for new and for the same tasks (NaN: undefined)."""

    value: Floats
    se_new: Floats
    se_same: Floats
    deleted: Floats
    """The statistics without each cluster (G x k)."""
    n_clusters: int
    df_same: float


def jackknife_of_sums(x: Floats, statistic: Statistic, task: Ints, cell: Ints) -> Jackknifed:
    """A statistic of the sums of x (n x q) over runs, with both its standard errors.

    New tasks: jackknife over tasks, at least the error for the same tasks (`error_for_new_tasks`).
    Same tasks: delta method, the variation within cells of the influence x · gradient; a cell with
    one run lends no variation, and without any repeats the error is undefined.
    """
    cluster, n_clusters = group_ids(task)
    sums = group_sums(x, cluster, n_clusters)
    total = sums.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistic(total)
        deleted = statistic(total - sums)
        se_new = np.sqrt(jackknife_variance(value, deleted))
        influence = x @ _numerical_gradient(statistic, total)
    se_same, df_same = _within_cell_error(influence, cell)
    floored = [
        error_for_new_tasks(new, n_clusters - 1, same, df_same)
        for new, same in zip(se_new.tolist(), se_same.tolist(), strict=True)
    ]
    se_new = np.array(floored)
    return Jackknifed(value, se_new, se_same, deleted, n_clusters, df_same)


def _numerical_gradient(statistic: Statistic, total: Floats) -> Floats:
    """Central differences of the statistic at `total` (q): q x k, NaN for one that is undefined."""
    step = 1e-5 * np.maximum(np.abs(total), 1e-3 * np.abs(total).max(initial=1e-12))
    nudges = np.diag(step)
    gradient = (statistic(total + nudges) - statistic(total - nudges)) / (2 * step[:, None])
    gradient[:, ~np.isfinite(gradient).all(0)] = np.nan
    return np.asarray(gradient)


def _within_cell_error(influence: Floats, cell: Ints) -> tuple[Floats, float]:
    """Standard errors (k) and df of sums of influences (n x k) that vary within cells."""
    cells, n_cells = group_ids(cell)
    size = np.bincount(cells, minlength=n_cells)
    repeated = size > 1
    df = float((size - 1).sum())
    if df < 1:
        return np.full(influence.shape[1], np.nan), 0.0
    squares = group_sums(demean(influence, cells, n_cells) ** 2, cells, n_cells)
    unbiased = (size[repeated] / (size[repeated] - 1))[:, None]
    variance = (squares[repeated] * unbiased).sum(0)
    unrepeated_runs = int(size[~repeated].sum())
    if unrepeated_runs:
        # Cells without repeats are given the average variance of a run elsewhere.
        n = len(influence)
        variance = variance * (n / (n - unrepeated_runs))
    return np.sqrt(variance), df


def ratio_of_sums(s: Floats) -> Floats:
    """The statistic of a (weighted) mean: the first sum over the second."""
    return np.asarray(s[..., :1] / s[..., 1:])


def estimates_by_population(
    label: str,
    jackknifed: Jackknifed,
    index: int,
    *,
    n: int,
    notes: tuple[str, ...],
    test: bool = False,
    limits: tuple[float, float] = NO_LIMITS,
) -> list[Estimate]:
    """The estimates of statistic `index` for new tasks and for the same tasks."""
    common: dict[str, Any] = {
        "n": n,
        "n_clusters": jackknifed.n_clusters,
        "warnings": notes,
        "test": test,
        "limits": limits,
    }
    new = t_estimate(
        label,
        "new",
        jackknifed.value[index],
        jackknifed.se_new[index],
        jackknifed.n_clusters - 1,
        method="jackknife over tasks",
        **common,
    )
    same = t_estimate(
        label,
        "same",
        jackknifed.value[index],
        jackknifed.se_same[index],
        jackknifed.df_same,
        method="variation within cells",
        reason=None if jackknifed.df_same else "no repeats",
        **common,
    )
    return [new, same]
