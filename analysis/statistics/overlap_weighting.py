"""The effect of a code on a score: runs that fired it against repeats with the same other codes.

A stratum is the runs of one cell (agent, task, tier) in which the same other codes fired. Within
each stratum s of n_s runs, a share p_s of which fired the code, the difference of means d_s is
taken; strata are weighted by how much they can compare:

    effect = sum_s w_s d_s / sum_s w_s,   w_s = n_s p_s (1 - p_s)

This is the overlap-weighted effect (Li, Morgan and Zaslavsky 2018), which is what least squares
with a dummy for each stratum estimates (Angrist 1998). No model of the score is assumed: the effect
is unbiased for this average however effects differ by agent, task, tier or with the other codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import (
    MIN_DF,
    Bools,
    Estimate,
    Floats,
    Ints,
    Population,
    error_for_new_tasks,
    t_estimate,
)
from .jackknife import group_ids, group_sums, jackknife_variance
from .run_arrays import RunArrays, arrays_by_code, reading_refusal

MIN_FIRED, MIN_CELLS = 50, 20
"""Firings with a repeat to compare with, and their cells: with fewer of either, an effect is
reported but not tested."""
REFUSE_FIRED, REFUSE_CELLS = 10, 5
"""With fewer of either, no effect is reported."""


@dataclass(frozen=True)
class OverlapEffect:
    """The overlap-weighted effect of one code on m outcomes."""

    value: Floats
    """(m)."""
    deleted: Floats
    """The effect without each task that has something to compare (G x m)."""
    tasks: Ints
    """The numbers of these tasks (G)."""
    weight: Floats
    """How much each of them can compare, sum of n p (1 - p) over its strata (G)."""
    se_same: Floats
    df_same: float
    iid_t: float
    """t statistic of the first outcome's effect under iid errors, for the robustness value."""
    iid_df: int
    n_compared: int
    """Firings with a repeat to compare with."""
    n_cells: int
    """The cells of these firings."""

    @property
    def se_new(self) -> Floats:
        return np.asarray(np.sqrt(jackknife_variance(self.value, self.deleted)))

    @property
    def df_new(self) -> Floats:
        """Satterthwaite's degrees of freedom of the m jackknife variances, less one for the mean.

        The variance is split into one part a task: variation between the runs of a task enters in
        proportion to the task's weight, variation between tasks in proportion to its square, as a
        tenth of the tasks may carry most of the weight.
        """
        share = self.weight / self.weight.sum()
        squared_share = self.weight**2 / (self.weight**2).sum()
        variance = self.se_new**2
        between_runs = np.minimum(self.se_same**2, variance)[:, None]
        between_tasks = variance[:, None] - between_runs
        parts = between_runs * share + between_tasks * squared_share
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(parts.sum(1) ** 2 / (parts**2).sum(1)) - 1


def overlap_weighted_effect(
    codes: Bools, k: int, y: Floats, cell: Ints, task: Ints
) -> OverlapEffect | None:
    """The effect of code `k` of `codes` (n x K) on the outcomes `y` (n x m).

    None if no firing has a repeat to compare with.
    """
    others = np.delete(codes, k, axis=1)
    pattern = others @ (1 << np.arange(others.shape[1]))
    stratum, n_strata = group_ids(cell, pattern.astype(np.int64))
    fired = codes[:, k].astype(float)
    n_fired = np.bincount(stratum, fired, minlength=n_strata)
    size_all = np.bincount(stratum, minlength=n_strata)
    comparable = ((n_fired > 0) & (n_fired < size_all))[stratum]
    if not comparable.any():
        return None

    stratum, n_strata = group_ids(stratum[comparable])
    _, n_cells = group_ids(cell[comparable])
    task, fired, y = task[comparable], fired[comparable], y[comparable]
    n_fired = np.asarray(np.bincount(stratum, fired, minlength=n_strata), dtype=np.float64)
    size: Floats = np.bincount(stratum, minlength=n_strata).astype(float)

    # With e the code and e~ = e - p_s, sum of e~ y over a stratum is w_s d_s, and of e~ e is w_s.
    centred = fired - (n_fired / size)[stratum]
    tasks, cluster = np.unique(task, return_inverse=True)
    products = np.column_stack([centred[:, None] * y, centred * fired])
    sums = group_sums(products, cluster, len(tasks))
    total = sums.sum(0)
    value = total[:-1] / total[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = total - sums
        deleted = remaining[:, :-1] / remaining[:, -1:]

    stratum_mean = group_sums(y, stratum, n_strata) / size[:, None]
    residual = y - stratum_mean[stratum] - value * centred[:, None]
    se_same, df_same = _same_tasks_error(centred, residual, stratum, size, total[-1])
    iid_df = len(fired) - n_strata - 1
    return OverlapEffect(
        value=value,
        deleted=deleted,
        tasks=tasks,
        weight=sums[:, -1],
        se_same=se_same,
        df_same=df_same,
        iid_t=_iid_t(value[0], residual[:, 0], iid_df, total[-1]),
        iid_df=iid_df,
        n_compared=int(fired.sum()),
        n_cells=n_cells,
    )


def _same_tasks_error(
    centred: Floats, residual: Floats, stratum: Ints, size: Floats, total_weight: float
) -> tuple[Floats, float]:
    """Standard errors (m) for these tasks run again, and df: HC2 of OLS with a dummy a stratum.

    `centred` (n) is a run's code minus the mean of its stratum, `residual` (n x m) that of the fit,
    `size` (strata) the runs of each stratum. In a stratum of n runs the mean square of a residual
    is (n - 1) / n of that of the error (MacKinnon and White 1985). Degrees of freedom as if all
    runs had equal variance (Satterthwaite; Bell and McCaffrey 2002); residuals of a stratum
    correlate by -1 / (n - 1).
    """
    n = size[stratum]
    variance = ((centred**2 * n / (n - 1))[:, None] * residual**2).sum(0)
    sum_of_squares = np.bincount(stratum, centred**2)
    sum_of_fourth_powers = np.bincount(stratum, centred**4)
    squared_correlation = (size - 1.0) ** -2
    trace_of_square = (
        sum_of_fourth_powers * (1 - squared_correlation) + sum_of_squares**2 * squared_correlation
    ).sum()
    df = float(sum_of_squares.sum() ** 2 / trace_of_square)
    return np.asarray(np.sqrt(variance) / total_weight), df


def _iid_t(value: float, residual: Floats, df: int, total_weight: float) -> float:
    """t statistic under iid errors, from the residuals (n); NaN if undefined."""
    if df <= 0:
        return float("nan")
    variance = float(residual @ residual) / (df * total_weight)
    return float(value / np.sqrt(variance)) if variance > 0 else float("nan")


def robustness_value(t: float, df: int) -> float | None:
    """Robustness value of Cinelli and Hazlett (2020), in [0, 1]; None if undefined.

    The partial R2 that an unobserved cause would need with both the code and the score to reduce
    the effect to 0: RV = (sqrt(f^4 + 4 f^2) - f^2) / 2 with f^2 = t^2 / df.
    """
    if df < 1 or not np.isfinite(t):
        return None
    f2 = t * t / df
    return float(0.5 * (np.sqrt(f2 * f2 + 4 * f2) - f2))


def circular_codes(runs: RunArrays) -> list[str]:
    """Codes most of whose firings rest on the score alone, by their recorded source."""
    return [code for code in runs.code_names if runs.n_from_score[code] > 0.5 * runs.n_tagged[code]]


def refusal_reasons(
    runs: RunArrays, circular: Sequence[str] | None = None
) -> tuple[str | None, ...]:
    """For each code why its effect cannot be estimated, or None; all tables of effects use this.

    `circular` codes are refused; by default `circular_codes`.
    """
    if circular is None:
        circular = circular_codes(runs)
    return tuple(_refusal_reason(runs, k, circular) for k in range(len(runs.code_names)))


def _refusal_reason(runs: RunArrays, k: int, circular: Sequence[str]) -> str | None:
    name = runs.code_names[k]
    n_fired = int(runs.codes[:, k].sum())
    if runs.n_scored == 0:
        return "no runs with this score"
    unread = reading_refusal(name, runs.n_read[name], runs.n_scored)
    if unread:
        return unread
    of_read_runs = "" if runs.n == runs.n_scored else f" ({runs.n} of {runs.n_scored} runs read)"
    if name in circular:
        return f"circular: {name} is defined by the score it would explain (source: score)"
    if runs.n_cells == runs.n:
        return "no repeats: every agent, task and tier has a single run to compare with"
    if n_fired == 0:
        return f"{name} never fired{of_read_runs}"
    if n_fired == runs.n:
        return f"{name} fired in every run{of_read_runs}"
    if n_fired < REFUSE_FIRED:
        return (
            f"too few firings: {n_fired} runs with {name}{of_read_runs}, at least {REFUSE_FIRED}"
            " are needed"
        )
    same_firings = (runs.codes == runs.codes[:, [k]]).all(axis=0)
    duplicates = [other for j, other in enumerate(runs.code_names) if j != k and same_firings[j]]
    if duplicates:
        return (
            f"{name} and {' and '.join(duplicates)} always fire together: one code by two names, no"
            " effect is its own"
        )
    return None


@dataclass(frozen=True)
class FittedEffects:
    """The effects of the codes of some runs on m outcomes, or why there are none."""

    runs: RunArrays
    refused: tuple[str | None, ...]
    """For each code, its `refusal_reasons`."""
    fits: tuple[OverlapEffect | None, ...]

    def refusal(self, k: int) -> str | None:
        """Why code `k` has no effect, or None."""
        fit, name = self.fits[k], self.runs.code_names[k]
        if self.refused[k] is not None:
            return self.refused[k]
        n_compared = fit.n_compared if fit else 0
        if fit is None or n_compared < REFUSE_FIRED:
            n_fired = int(self.runs.codes[:, k].sum())
            return (
                f"{n_compared} of {n_fired} runs with {name} have a repeat with the same other"
                f" codes and without it, at least {REFUSE_FIRED} are needed"
            )
        if fit.n_cells < REFUSE_CELLS:
            return (
                f"{name} varies within {fit.n_cells} cells only, at least {REFUSE_CELLS} are needed"
            )
        return None

    def estimate(
        self,
        k: int,
        label: str,
        outcome: int = 0,
        population: Population = "new",
        **overrides: Any,
    ) -> Estimate:
        """The effect of code `k` on outcome number `outcome`; `overrides` go to `t_estimate`."""
        runs, fit, reason = self.runs, self.fits[k], self.refusal(k)
        error = "jackknife over tasks" if population == "new" else "HC2"
        method = f"same cell and other codes, weighted by overlap; {error}"
        if reason is not None or fit is None:
            return Estimate(
                label,
                population,
                None,
                n=runs.n,
                n_clusters=runs.n_tasks,
                method=method,
                reason=reason,
            )
        se, df, n_clusters = float(fit.se_same[outcome]), fit.df_same, fit.n_cells
        if population == "new":
            df_new = float(fit.df_new[outcome])
            se = error_for_new_tasks(float(fit.se_new[outcome]), df_new, se, df)
            df, n_clusters = df_new, len(fit.tasks)
        arguments: dict[str, Any] = {
            "n": runs.n,
            "n_clusters": n_clusters,
            "method": method,
            "warnings": runs.notes,
            "limits": runs.difference_limits,
            **overrides,
        }
        if population == "new" and len(fit.tasks) > MIN_DF:
            # Tasks of unequal weight leave fewer degrees of freedom than as many equal ones.
            arguments["min_df"] = 1
        if population == "new" and len(fit.tasks) < 2:
            arguments["reason"] = "one task only: the variation of the effect over tasks is unknown"
        return t_estimate(label, population, fit.value[outcome], se, df, **arguments)


def fit_code_effects(
    runs: RunArrays, y: Floats | None = None, *, circular: Sequence[str] | None = None
) -> FittedEffects:
    """Effects of the codes of `runs` on the outcomes `y` (n x m; default: the outcome of `runs`).

    `circular`: as in `refusal_reasons`.
    """
    refused = refusal_reasons(runs, circular)
    outcomes = runs.y[:, None] if y is None else y
    fits = [
        None if reason else overlap_weighted_effect(runs.codes, k, outcomes, runs.cell, runs.task)
        for k, reason in enumerate(refused)
    ]
    return FittedEffects(runs, refused, tuple(fits))


def effect_estimates(table: pl.DataFrame, outcome: str, source: str, label: str) -> list[Estimate]:
    """The effect of each of E1..E5 for new tasks, from a table after `select_runs`.

    `label` is a template with {code}.
    """
    estimates: dict[str, Estimate] = {}
    for runs, codes in arrays_by_code(table, outcome, source=source, prepare=False):
        effects = fit_code_effects(runs)
        for code in codes:
            k = runs.code_names.index(code)
            estimates[code] = effects.estimate(k, label.format(code=code))
    return [estimates[code] for code in CODES]
