"""The effect of a code on a score: runs that fired it against repeats of the same cell with the
same other codes.

Within every stratum (agent, task, tier, and which other codes fired) the mean difference is taken,
and strata are weighed by n p (1 - p), how much they have to compare: the overlap-weighted effect
(Li, Morgan and Zaslavsky 2018; what least squares with a dummy a stratum estimates, Angrist 1998).
No model of the score is assumed: it is right for what it names however effects differ by agent,
task, tier, or with the other codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import Bools, Estimate, Floats, Ints, Population, t_estimate
from .jackknife import group_ids, group_sums, jackknife_variance
from .run_arrays import RunArrays, arrays_by_code, reading_refusal

MIN_FIRED, MIN_CELLS = 50, 20
"""Firings with a repeat to compare with, and their cells: below either, an effect is printed but
called uninformative."""
REFUSE_FIRED, REFUSE_CELLS = 10, 5
"""Below either, none is printed."""


@dataclass(frozen=True)
class OverlapEffect:
    """The overlap-weighted effect of one code on m outcomes."""

    value: Floats
    deleted: Floats
    """Without each task that has something to compare (G x m)."""
    tasks: Ints
    """These tasks."""
    weight: Floats
    """What each of them has to compare: sum of n p (1 - p)."""
    se_same: Floats
    df_same: float
    iid_t: float
    """t of the first outcome's effect under iid errors, with `iid_df`: for the robustness value."""
    iid_df: int
    compared: int
    """Firings with a repeat to compare with."""
    cells: int
    """In how many cells."""

    @property
    def se_new(self) -> Floats:
        return np.asarray(np.sqrt(jackknife_variance(self.value, self.deleted)))

    @property
    def df_new(self) -> Floats:
        """Satterthwaite's degrees of freedom of m jackknife variances, minus one for the mean: what
        varies between the runs of a task enters with its weight, what varies between tasks with the
        square of it (a tenth of the tasks may carry the rest)."""
        share, square = self.weight / self.weight.sum(), self.weight**2 / (self.weight**2).sum()
        runs = np.minimum(self.se_same**2, self.se_new**2)[:, None]
        parts = runs * share + (self.se_new[:, None] ** 2 - runs) * square
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(parts.sum(1) ** 2 / (parts**2).sum(1)) - 1


def overlap_weighted_effect(
    codes: Bools, k: int, y: Floats, cell: Ints, task: Ints
) -> OverlapEffect | None:
    """The effect of code `k` of `codes` (n x K) on y (n x m); None where no firing has a repeat to
    compare with."""
    pattern = np.delete(codes, k, 1) @ (1 << np.arange(codes.shape[1] - 1))
    stratum, n_strata = group_ids(cell, pattern.astype(np.int64))
    fired = codes[:, k].astype(float)
    count, all_ = (
        np.bincount(stratum, fired, minlength=n_strata),
        np.bincount(stratum, minlength=n_strata),
    )
    use = ((count > 0) & (count < all_))[stratum]
    if not use.any():
        return None
    (stratum, n_strata), (_, n_cells), task = (
        group_ids(stratum[use]),
        group_ids(cell[use]),
        task[use],
    )
    e, y = fired[use], y[use]
    n1 = np.asarray(np.bincount(stratum, e, minlength=n_strata), dtype=np.float64)
    size: Floats = np.bincount(stratum, minlength=n_strata).astype(float)
    above = e - (n1 / size)[stratum]
    tasks, cluster = np.unique(task, return_inverse=True)
    sums = group_sums(np.column_stack([above[:, None] * y, above * e]), cluster, len(tasks))
    total = sums.sum(0)
    value = total[:-1] / total[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = total - sums
        deleted = rest[:, :-1] / rest[:, -1:]
    left = y - (group_sums(y, stratum, n_strata) / size[:, None])[stratum] - value * above[:, None]
    se_same, df_same = _same_tasks(above, left, stratum, size, total[-1])
    free = len(e) - n_strata - 1
    spread = float(left[:, 0] @ left[:, 0]) / (free * total[-1]) if free > 0 else np.nan
    t = float(value[0] / np.sqrt(spread)) if spread > 0 else np.nan
    return OverlapEffect(
        value, deleted, tasks, sums[:, -1], se_same, df_same, t, free, int(e.sum()), n_cells
    )


def _same_tasks(
    above: Floats, left: Floats, stratum: Ints, size: Floats, whole: float
) -> tuple[Floats, float]:
    """Errors for these tasks run again, and their degrees of freedom: HC2 of least squares with a
    dummy a stratum.

    `above` is a run's code minus its stratum's mean, `left` (n x m) what the fit leaves. The square
    of a residual is (n - 1) / n of the error's in a stratum of n (MacKinnon and White 1985).
    Degrees of freedom as if runs spread alike (Satterthwaite; Bell and McCaffrey 2002): residuals
    of a stratum correlate by -1 / (n - 1).
    """
    n = size[stratum]
    variance = ((above**2 * n / (n - 1))[:, None] * left**2).sum(0)
    mass, square = np.bincount(stratum, above**2), np.bincount(stratum, above**4)
    alike = (size - 1.0) ** -2
    df = float(mass.sum() ** 2 / (square * (1 - alike) + mass**2 * alike).sum())
    return np.asarray(np.sqrt(variance) / whole), df


def robustness_value(t: float, df: int) -> float | None:
    """Cinelli and Hazlett's RV: the partial R2 that an unobserved cause would need with both code
    and score to erase it."""
    if df < 1 or not np.isfinite(t):
        return None
    f2 = t * t / df
    return float(0.5 * (np.sqrt(f2 * f2 + 4 * f2) - f2))


def circular_codes(d: RunArrays) -> list[str]:
    """Codes most of whose firings rest on the score alone, by their recorded source."""
    return [code for code in d.code_names if d.n_from_score[code] > 0.5 * d.n_tagged[code]]


def refusal_reasons(d: RunArrays, circular: Sequence[str] | None = None) -> tuple[str | None, ...]:
    """For each code of a design why its effect cannot be estimated, or None: the one gate for all
    tables of effects.

    `circular` codes are refused, by default those that are by their recorded source.
    """
    circular = circular_codes(d) if circular is None else circular
    return tuple(_refusal(d, k, circular) for k in range(len(d.code_names)))


def _refusal(d: RunArrays, k: int, circular: Sequence[str]) -> str | None:
    fired = int(d.codes[:, k].sum())
    name = d.code_names[k]
    if d.n_scored == 0:
        return "no runs with this score"
    if unread := reading_refusal(name, d.n_read[name], d.n_scored):
        return unread
    within = "" if d.n == d.n_scored else f" ({d.n} of {d.n_scored} runs read)"
    if name in circular:
        return f"circular: {name} is defined by the score it would explain (source: score)"
    if d.n_cells == d.n:
        return "no repeats: every agent, task and tier has a single run to compare with"
    if fired == 0:
        return f"{name} never fired{within}"
    if fired == d.n:
        return f"{name} fired in every run{within}"
    if fired < REFUSE_FIRED:
        return (
            f"too few firings: {fired} runs with {name}{within}, at least {REFUSE_FIRED} are needed"
        )
    twins = [
        other
        for j, other in enumerate(d.code_names)
        if j != k and (d.codes[:, j] == d.codes[:, k]).all()
    ]
    if twins:
        return (
            f"{name} and {' and '.join(twins)} always fire together: one code by two names, no"
            " effect is its own"
        )
    return None


@dataclass(frozen=True)
class FittedEffects:
    """The effects of a design's codes on some outcomes, or why they cannot be had."""

    d: RunArrays
    refused: tuple[str | None, ...]
    fits: tuple[OverlapEffect | None, ...]

    def why_not(self, k: int) -> str | None:
        """Why code `k` has no effect, or None."""
        fit, name = self.fits[k], self.d.code_names[k]
        if self.refused[k] is not None:
            return self.refused[k]
        if fit is None or fit.compared < REFUSE_FIRED:
            n = fit.compared if fit else 0
            return (
                f"{n} of {int(self.d.codes[:, k].sum())} runs with {name} have a repeat with the"
                f" same other codes and without it, at least {REFUSE_FIRED} are needed"
            )
        if fit.cells < REFUSE_CELLS:
            return (
                f"{name} varies within {fit.cells} cells only, at least {REFUSE_CELLS} are needed"
            )
        return None

    def estimate(
        self, k: int, label: str, at: int = 0, population: Population = "new", **more: Any
    ) -> Estimate:
        """The effect of code `k` on outcome `at`; `more` as `estimate` takes it."""
        d, fit, why = self.d, self.fits[k], self.why_not(k)
        error = "jackknife over tasks" if population == "new" else "HC2"
        method = f"same cell and other codes, weighed by overlap; {error}"
        if why is not None or fit is None:
            return Estimate(
                label, population, None, n=d.n, n_clusters=d.n_tasks, method=method, reason=why
            )
        new = population == "new"
        se, units = (fit.se_new, len(fit.tasks)) if new else (fit.se_same, fit.cells)
        df = float(fit.df_new[at]) if new else fit.df_same
        common: dict[str, Any] = {
            "n": d.n,
            "n_clusters": units,
            "method": method,
            "warnings": d.notes,
            "limits": d.difference_limits,
            **more,
        }
        if new and len(fit.tasks) < 2:
            common["reason"] = "one task only: nothing says how the effect varies between tasks"
        return t_estimate(label, population, fit.value[at], se[at], df, **common)


def fit_code_effects(
    d: RunArrays, y: Floats | None = None, *, circular: Sequence[str] | None = None
) -> FittedEffects:
    """Effects of a design's codes on `y` (n x m; default the design's outcome)."""
    refused = refusal_reasons(d, circular)
    outcomes = d.y[:, None] if y is None else y
    fits = [
        None if why else overlap_weighted_effect(d.codes, k, outcomes, d.cell, d.task)
        for k, why in enumerate(refused)
    ]
    return FittedEffects(d, refused, tuple(fits))


def effect_estimates(table: pl.DataFrame, outcome: str, source: str, label: str) -> list[Estimate]:
    """The effect of each of E1..E5 on the runs of a prepared table; `label` is a template with
    {code}."""
    estimates: dict[str, Estimate] = {}
    for d, codes in arrays_by_code(table, outcome, source=source, prepare=False):
        found = fit_code_effects(d)
        estimates |= {
            code: found.estimate(d.code_names.index(code), label.format(code=code))
            for code in codes
        }
    return [estimates[code] for code in CODES]
