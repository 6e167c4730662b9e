"""One number with everything needed to defend it: estimand, interval, counts, method, warnings.

An undefined number is None with a reason, never NaN or infinity. Intervals are 95 % confidence
intervals unless a function says otherwise. `t_estimate` makes an Estimate from a standard error,
`tidy` makes a table of many, `wide` puts the estimates for both populations of tasks side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Population = Literal["new", "same", "runs"]
"""What an interval speaks of. new: other tasks of the same kind (the tasks are a sample); same:
these tasks run again (only the repeats vary); runs: these very runs (only the judge errs)."""
NARROWER: tuple[Population, ...] = ("same", "runs")
"""Populations whose interval stands beside that for new tasks."""

LEVEL = 0.95
MIN_DF = 3
"""The fewest degrees of freedom of an interval. With fewer, a standard error may be near 0 by
chance, and its t interval says less than the scale does."""
MIN_RUNS = 10
"""The fewest runs that a group must have before it is compared with another."""
NO_LIMITS = (-math.inf, math.inf)
SHARE_LIMITS = (0.0, 1.0)
"""The range of a share; its intervals end there."""

ESTIMATE_SCHEMA: dict[str, Any] = {
    "estimand": pl.String,
    "population": pl.String,
    "value": pl.Float64,
    "se": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "p": pl.Float64,
    "df": pl.Float64,
    "n": pl.Int64,
    "n_clusters": pl.Int64,
    "method": pl.String,
    "reason": pl.String,
    "warnings": pl.List(pl.String),
}


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval.

    `reason` says why `value` is missing or, when only `se` is None, why the interval is.
    """

    estimand: str
    population: Population | None
    value: float | None
    se: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float | None = None
    """Two-sided, of the hypothesis that the true value is 0."""
    df: float | None = None
    n: int = 0
    """Runs behind the number."""
    n_clusters: int | None = None
    method: str = ""
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """This estimate as a row of a table; every number is finite or None."""
        row = {name: getattr(self, name) for name in ESTIMATE_SCHEMA}
        row["warnings"] = list(self.warnings)
        for name in ("value", "se", "lo", "hi", "p", "df"):
            row[name] = finite_or_none(row[name])
        return row


KeyedEstimates = list[tuple[dict[str, Any], Estimate]]
"""Rows of a table before `tidy`: the columns that name the subject of a row, and its estimate."""


def finite_or_none(value: float | np.floating[Any] | None) -> float | None:
    """The value as a float; None if it is missing, NaN or infinite."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t distribution; of the normal distribution for infinite `df`."""
    from scipy import stats

    if math.isinf(df):
        return float(stats.norm.ppf(probability))
    return float(stats.t.ppf(probability, df))


def minimum_detectable_effect(se: float, df: float) -> float:
    """The smallest true value that a two-sided 5 % t test detects with power .8 (MDE80).

    MDE = (t_.975 + t_.8) se.
    """
    return (t_quantile(0.975, df) + t_quantile(0.8, df)) * se


def error_for_new_tasks(se_new: float, df_new: float, se_same: float, df_same: float) -> float:
    """`se_new`, raised where the interval for new tasks would be narrower than that for the same.

    New tasks vary in all that the same tasks vary in, so Var(new) >= Var(same); an estimate below
    comes from too few tasks. The least error is se_same max(1, t_same / t_new), with the quantiles
    t_.975 of the two degrees of freedom. An error that has no interval (NaN, below one degree of
    freedom, or MIN_DF for the same tasks) raises none.
    """
    has_intervals = df_new >= 1 and df_same >= MIN_DF
    if not (has_intervals and math.isfinite(se_new) and math.isfinite(se_same)):
        return se_new
    probability = (1 + LEVEL) / 2
    ratio = t_quantile(probability, df_same) / t_quantile(probability, df_new)
    return max(se_new, se_same * max(1.0, ratio))


def too_few_units(population: Population | None, df: float, n_clusters: int | None) -> str:
    """Why an estimate with fewer than MIN_DF degrees of freedom has no interval.

    Units are counted as people count them. Each task more is taken to add a degree of freedom.
    """
    if population == "new" and n_clusters is not None:
        spread = " of several tracks or of unequal weight" if n_clusters > MIN_DF else ""
        enough = n_clusters + math.ceil(MIN_DF - df)
        tasks = f"1 task{spread} is" if n_clusters == 1 else f"{n_clusters} tasks{spread} are"
        return f"{tasks} too few for an interval for new ones, and at least {enough} are needed"
    count = math.floor(10 * df) / 10
    if population == "same":
        return (
            f"too few repeats for an interval: they count as {count:g} beyond the first of a cell,"
            f" and {MIN_DF} are needed"
        )
    noun = {"new": "tasks", "runs": "labels"}.get(population or "", "independent units")
    return (
        f"too few {noun} for an interval: they count as {count + 1:g}, and {MIN_DF + 1} are needed"
    )


def two_sided_p(t: float, df: float) -> float:
    """Two-sided p value of a t statistic; of a z statistic for infinite `df`."""
    from scipy import special

    if math.isinf(df):
        return math.erfc(abs(t) / math.sqrt(2))
    return float(2 * special.stdtr(df, -abs(t)))


def t_estimate(
    estimand: str,
    population: Population | None,
    value: float | None,
    se: float | None,
    df: float | None,
    *,
    n: int,
    n_clusters: int | None = None,
    method: str = "",
    reason: str | None = None,
    warnings: Sequence[str] = (),
    level: float = LEVEL,
    test: bool = True,
    limits: tuple[float, float] = NO_LIMITS,
    min_df: float = MIN_DF,
) -> Estimate:
    """An Estimate with the interval value ± t_(1+level)/2,df · se, cut at the scale's `limits`.

    The interval is None, and `reason` says why, if `se` or `df` is missing, if `df` is below
    `min_df`, or if the units do not vary at all, which is not certainty. `test`: whether to report
    p.
    """
    value = finite_or_none(value)
    se = finite_or_none(se)
    counts: dict[str, Any] = {
        "n": n,
        "n_clusters": n_clusters,
        "method": method,
        "warnings": tuple(warnings),
    }
    if value is None:
        reason = reason or "not defined for these runs"
        return Estimate(estimand, population, None, reason=reason, **counts)
    if se is None or df is None or df < min_df:
        few = "too few independent units for an interval"
        if df is not None and math.isfinite(df):
            few = too_few_units(population, df, n_clusters)
        reason = reason or few
        return Estimate(estimand, population, value, reason=reason, **counts)
    if se < 1e-9 * max(1.0, abs(value)):  # rounding error of units that are all equal
        reason = reason or "no variation between the units, which is not certainty: no interval"
        return Estimate(estimand, population, value, 0.0, df=float(df), reason=reason, **counts)
    half_width = t_quantile((1 + level) / 2, df) * se
    return Estimate(
        estimand,
        population,
        value,
        se,
        lo=max(value - half_width, limits[0]),
        hi=min(value + half_width, limits[1]),
        p=two_sided_p(value / se, df) if test else None,
        df=float(df),
        reason=reason,
        **counts,
    )


def back_transform(est: Estimate, inverse: Callable[[float], float]) -> Estimate:
    """Value and interval mapped back from the scale of estimation; `se` and `p` stay on it."""

    def mapped(end: float | None) -> float | None:
        return None if end is None else inverse(end)

    return replace(est, value=mapped(est.value), lo=mapped(est.lo), hi=mapped(est.hi))


def tidy(rows: KeyedEstimates, keys: Mapping[str, Any]) -> pl.DataFrame:
    """A table of estimates: first the `keys` (column name -> polars type), then ESTIMATE_SCHEMA.

    Keys that a row does not name are null.
    """
    schema = {**keys, **ESTIMATE_SCHEMA}
    no_keys = dict.fromkeys(keys)
    return pl.DataFrame([{**no_keys, **key, **est.row()} for key, est in rows], schema=schema)


REMARK_COLUMNS = frozenset({"status", "verdict", "note", "halo_note", "loo_task"})
"""Text columns that say something about a row rather than name its subject."""


def subject_keys(table: pl.DataFrame) -> list[str]:
    """The columns that name the subject of a row: texts before `estimand`, and `estimand` itself.

    The other columns (an adjusted p, a minimum detectable effect, a remark) may differ between the
    two rows of a subject, one for each population.
    """
    before_estimand = table.columns[: table.columns.index("estimand")]
    texts = [name for name in before_estimand if table.schema[name] == pl.String]
    return [*(name for name in texts if name not in REMARK_COLUMNS), "estimand"]


def wide(table: pl.DataFrame) -> pl.DataFrame:
    """One row a subject: the estimate for new tasks, and `same_se`, `same_lo`, `same_hi` beside it.

    The `same_` columns come from the row for the same tasks, which has the same subject; `runs_`
    columns likewise from that for these very runs. Numbers beside the estimate (p_holm, mde80) may
    differ and are those for new tasks. A row without a counterpart keeps nulls there. A table
    without two populations is returned unchanged.
    """
    if not {"population", "estimand", "se", "lo", "hi"} <= set(table.columns):
        return table
    keys = subject_keys(table)
    is_narrower = pl.col("population").is_in(NARROWER).fill_null(False)
    rows, narrower = table.filter(~is_narrower), table.filter(is_narrower)
    if rows.is_empty() or narrower.is_empty():
        return table
    if narrower.select(*keys, "population").is_duplicated().any():
        return table
    for (population,), counterparts in narrower.group_by("population", maintain_order=True):
        named = {f"{population}_{column}": column for column in ("se", "lo", "hi")}
        rows = rows.join(
            counterparts.select(*keys, **named),
            on=keys,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    return rows


def adjust_p_values(
    p_values: Sequence[float | None], method: Literal["holm", "fdr_bh"]
) -> list[float | None]:
    """p values adjusted over their family; a missing one stays missing and does not count.

    With the m present ones in ascending order: Holm (1979) max_{j<=i} (m - j + 1) p_(j), Benjamini
    and Hochberg (1995) min_{j>=i} m p_(j) / j, both at most 1.
    """
    positions = [i for i, p in enumerate(p_values) if p is not None]
    present = np.array([p_values[i] for i in positions], dtype=float)
    m = len(present)
    order = np.argsort(present)
    ascending = present[order]
    if method == "holm":
        adjusted = np.maximum.accumulate(ascending * np.arange(m, 0, -1))
    else:
        adjusted = np.minimum.accumulate((ascending * m / np.arange(1, m + 1))[::-1])[::-1]
    out: list[float | None] = [None] * len(p_values)
    for rank, p in zip(order.tolist(), adjusted.tolist(), strict=True):
        out[positions[rank]] = min(p, 1.0)
    return out
