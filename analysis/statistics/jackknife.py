"""Delete-one-cluster jackknife: for regressions within cells, and for functions of sums over runs.

One engine gives CR3 standard errors (the delete-one-cluster jackknife around the full estimate
equals CR3), the influence of single tasks, and standard errors of any functional, including how
sample means that enter it vary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .interval_estimates import NO_LIMITS, Bools, Estimate, Floats, Ints, t_estimate


def group_sums(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Sums of rows (n x q) by group (0..n_groups-1), as n_groups x q."""
    flat = values[:, None] if values.ndim == 1 else values
    out = np.empty((n_groups, flat.shape[1]))
    for column in range(flat.shape[1]):
        out[:, column] = np.bincount(group, flat[:, column], minlength=n_groups)
    return out


def demean(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Values (n x q) minus their group's mean."""
    size = np.maximum(np.bincount(group, minlength=n_groups), 1)
    means = group_sums(values, group, n_groups) / size[:, None]
    return np.asarray(values - means[group])


def group_ids(*columns: Ints) -> tuple[Ints, int]:
    """Dense group numbers 0.. of combinations of integer columns, and their count."""
    mixed = columns[0].astype(np.int64)
    for column in columns[1:]:
        mixed = mixed * (int(column.max(initial=0)) + 1) + column
    _, dense = np.unique(mixed, return_inverse=True)
    return dense.astype(np.int64), int(dense.max(initial=-1)) + 1


@dataclass(frozen=True)
class CrossProducts:
    """X'X and X'Y by cluster (G x p x p, G x p x m)."""

    xx: Floats
    xy: Floats

    @property
    def n_clusters(self) -> int:
        return len(self.xx)


def cross_products(x: Floats, y: Floats, cluster: Ints, n_clusters: int) -> CrossProducts:
    """Cross-products of x (n x p) with itself and with y (n x m), summed within clusters."""
    p, m = x.shape[1], y.shape[1]
    order = np.argsort(cluster, kind="stable")
    x, y, sorted_cluster = x[order], y[order], cluster[order]
    bounds = np.searchsorted(sorted_cluster, np.arange(n_clusters + 1))
    xx, xy = np.empty((n_clusters, p, p)), np.empty((n_clusters, p, m))
    for g in range(n_clusters):
        part = slice(bounds[g], bounds[g + 1])
        xg = x[part]
        xx[g] = xg.T @ xg
        xy[g] = xg.T @ y[part]
    return CrossProducts(xx, xy)


def independent_columns(xx: Floats, tolerance: float = 1e-9) -> Bools:
    """Columns, taken from the left, that are no linear combination of earlier kept ones; from X'X
    (p x p)."""
    p = len(xx)
    kept: list[int] = []
    scale = np.diag(xx).copy()
    for j in range(p):
        if scale[j] <= tolerance:
            continue
        if kept:
            block = xx[np.ix_(kept, kept)]
            rest = scale[j] - xx[j, kept] @ np.linalg.lstsq(block, xx[kept, j], rcond=None)[0]
            if rest <= 1e-7 * scale[j]:
                continue
        kept.append(j)
    mask = np.zeros(p, dtype=bool)
    mask[kept] = True
    return mask


def solve_normal_equations(xx: Floats, xy: Floats) -> Floats:
    """Solves a stack of normal equations; where one is singular, the solution of minimal norm."""
    if xx.shape[-1] == 0:
        return np.zeros_like(xy)
    scale = np.sqrt(np.maximum(np.einsum("...ii->...i", xx), 1e-300))
    scaled = xx / scale[..., :, None] / scale[..., None, :]
    right = xy / scale[..., :, None]
    try:
        solution = np.linalg.solve(scaled, right)
        if np.isfinite(solution).all() and np.abs(solution).max(initial=0) < 1e9 * (
            1 + np.abs(right).max(initial=0)
        ):
            return np.asarray(solution / scale[..., :, None])
    except np.linalg.LinAlgError:
        pass
    return np.asarray(
        (np.linalg.pinv(scaled, rcond=1e-9, hermitian=True) @ right) / scale[..., :, None]
    )


def delete_one_regression(products: CrossProducts) -> tuple[Floats, Floats]:
    """Coefficients of all clusters (p x m), and those without each cluster (G x p x m)."""
    xx, xy = products.xx.sum(0), products.xy.sum(0)
    return solve_normal_equations(xx, xy), solve_normal_equations(
        xx - products.xx, xy - products.xy
    )


def jackknife_variance(full: Floats, deleted: Floats) -> Floats:
    """(G-1)/G sum of (estimate without g - full estimate)^2; NaN below two clusters or where a
    deletion is undefined."""
    n_clusters = len(deleted)
    if n_clusters < 2:
        return np.full(np.shape(full), np.nan)
    return np.asarray((n_clusters - 1) / n_clusters * ((deleted - full) ** 2).sum(0))


def cr3(x: Floats, y: Floats, cluster: Ints) -> tuple[Floats, Floats]:
    """Coefficients and CR3 covariance of OLS of y (n) on x (n x p), both already free of fixed
    effects.

    Bell and McCaffrey's CR3 in its jackknife form, centred at the full estimate (MacKinnon, Nielsen
    and Webb).
    """
    dense, n_clusters = group_ids(cluster)
    full, deleted = delete_one_regression(cross_products(x, y[:, None], dense, n_clusters))
    gap = (deleted - full)[:, :, 0]
    return full[:, 0], (n_clusters - 1) / n_clusters * gap.T @ gap


Statistic = Callable[[Floats], Floats]
"""From sums (... x q) to statistics (... x k); NaN where undefined."""


@dataclass(frozen=True)
class Jackknifed:
    """Statistics (k), their standard errors for new tasks and for the same tasks (NaN: undefined),
    and all deletions."""

    value: Floats
    se_new: Floats
    se_same: Floats
    deleted: Floats
    n_clusters: int
    df_same: float


def jackknife_of_sums(x: Floats, statistic: Statistic, task: Ints, cell: Ints) -> Jackknifed:
    """A functional of the sums of x (n x q) over runs.

    New tasks: jackknife over tasks. Same tasks: the functional's linear part, its variation within
    cells (delta method with a numerical gradient); cells with one run lend no variation, and
    without any repeats it is undefined.
    """
    (cluster, n_clusters), (cells, n_cells) = group_ids(task), group_ids(cell)
    sums = group_sums(x, cluster, n_clusters)
    total = sums.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistic(total)
        deleted = statistic(total - sums)
        se_new = np.sqrt(jackknife_variance(value, deleted))
        step = 1e-5 * np.maximum(np.abs(total), 1e-3 * np.abs(total).max(initial=1e-12))
        nudges = np.diag(step)
        gradient = (statistic(total + nudges) - statistic(total - nudges)) / (2 * step[:, None])
        gradient[:, ~np.isfinite(gradient).all(0)] = np.nan
        influence = x @ gradient
    size = np.bincount(cells, minlength=n_cells)
    repeated = size > 1
    df = float((size - 1).sum())
    if df < 1:
        return Jackknifed(value, se_new, np.full_like(se_new, np.nan), deleted, n_clusters, 0.0)
    squares = group_sums(demean(influence, cells, n_cells) ** 2, cells, n_cells)
    variance = (squares[repeated] * (size[repeated] / (size[repeated] - 1))[:, None]).sum(0)
    lonely = int(size[~repeated].sum())
    if lonely:  # cells without repeats take the average variance of a run elsewhere
        variance = variance * (len(x) / (len(x) - lonely))
    return Jackknifed(value, se_new, np.sqrt(variance), deleted, n_clusters, df)


def ratio_of_sums(s: Floats) -> Floats:
    """The functional of a mean: the first sum over the second."""
    return np.asarray(s[..., :1] / s[..., 1:])


def estimates_by_population(
    label: str,
    j: Jackknifed,
    at: int,
    *,
    n: int,
    notes: tuple[str, ...],
    test: bool = False,
    limits: tuple[float, float] = NO_LIMITS,
) -> list[Estimate]:
    """The estimates for new and for the same tasks of one jackknifed statistic; intervals end at
    the scale's `limits`."""
    common: dict[str, Any] = {"n": n, "n_clusters": j.n_clusters, "warnings": notes, "test": test}
    one, none = "one task only" if j.n_clusters < 2 else None, None if j.df_same else "no repeats"
    new = t_estimate(
        label,
        "new",
        j.value[at],
        j.se_new[at],
        j.n_clusters - 1,
        method="jackknife over tasks",
        reason=one,
        limits=limits,
        **common,
    )
    same = t_estimate(
        label,
        "same",
        j.value[at],
        j.se_same[at],
        j.df_same,
        method="variation within cells",
        reason=none,
        limits=limits,
        **common,
    )
    return [new, same]
