"""One number with everything needed to defend it: estimand, population, interval, counts, method,
warnings.

An undefined number is None with a reason, never NaN or infinity. Intervals are 95 % unless a
function says otherwise.
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
Population = Literal["new", "same"]
"""new: other tasks of the same kind (tasks are a sample); same: these tasks again (only repeats
vary)."""

LEVEL = 0.95
MIN_RUNS = 10
"""Of a group, before it is compared with another."""
NO_LIMITS = (-math.inf, math.inf)
SHARE_LIMITS = (0.0, 1.0)
"""Where intervals of shares end."""

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
    """A number with its interval. `reason` says why `value` (or, when only `se` is None, the
    interval) is missing."""

    estimand: str
    population: Population | None
    value: float | None
    se: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float | None = None
    """Two-sided, against 0."""
    df: float | None = None
    n: int = 0
    """Runs behind the number."""
    n_clusters: int | None = None
    method: str = ""
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """As a row of a table, every number finite or None."""
        out = {name: getattr(self, name) for name in ESTIMATE_SCHEMA}
        out["warnings"] = list(self.warnings)
        for name in ("value", "se", "lo", "hi", "p", "df"):
            out[name] = finite_or_none(out[name])
        return out


KeyedEstimates = list[tuple[dict[str, Any], Estimate]]
"""Rows of a table before `tidy`: what a row is about, and its number."""


def finite_or_none(value: float | np.floating[Any] | None) -> float | None:
    """The value as float, or None where it is missing, NaN or infinite."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t; the normal's for infinite df."""
    from scipy import stats

    return float(stats.norm.ppf(probability) if math.isinf(df) else stats.t.ppf(probability, df))


def minimum_detectable_effect(se: float, df: float) -> float:
    """The smallest true value that a test at 5 % finds with probability .8 (MDE80)."""
    return (t_quantile(0.975, df) + t_quantile(0.8, df)) * se


def two_sided_p(t: float, df: float) -> float:
    """Two-sided p value of a t statistic."""
    from scipy import special

    return (
        float(2 * special.stdtr(df, -abs(t)))
        if not math.isinf(df)
        else math.erfc(abs(t) / math.sqrt(2))
    )


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
) -> Estimate:
    """An Estimate with the t interval of `se` and `df`, ending at the scale's `limits`.

    Without them, and where units do not vary at all (which is not certainty), the interval is None
    and `reason` says why.
    """
    value, se = finite_or_none(value), finite_or_none(se)
    if value is None:
        return Estimate(
            estimand,
            population,
            None,
            n=n,
            n_clusters=n_clusters,
            method=method,
            reason=reason or "not defined for these runs",
            warnings=tuple(warnings),
        )
    if se is None or df is None or df < 1:
        return Estimate(
            estimand,
            population,
            value,
            n=n,
            n_clusters=n_clusters,
            method=method,
            reason=reason or "too few independent units for an interval",
            warnings=tuple(warnings),
        )
    if se < 1e-12 * max(1.0, abs(value)):
        se = 0.0
    common: dict[str, Any] = {
        "df": float(df),
        "n": n,
        "n_clusters": n_clusters,
        "method": method,
        "warnings": tuple(warnings),
    }
    if se == 0:
        reason = reason or "no variation between the units, which is not certainty: no interval"
        return Estimate(estimand, population, value, se, reason=reason, **common)
    half = t_quantile((1 + level) / 2, df) * se
    p = two_sided_p(value / se, df) if test else None
    lo, hi = max(value - half, limits[0]), min(value + half, limits[1])
    return Estimate(estimand, population, value, se, lo, hi, p, reason=reason, **common)


def back_transform(est: Estimate, back: Callable[[float], float]) -> Estimate:
    """Value and interval taken back from the scale on which they were estimated; se and p stay
    those of that scale."""
    ends = {name: getattr(est, name) for name in ("value", "lo", "hi")}
    moved: dict[str, Any] = {name: None if end is None else back(end) for name, end in ends.items()}
    return replace(est, **moved)


def tidy(rows: KeyedEstimates, keys: Mapping[str, Any]) -> pl.DataFrame:
    """Rows as a table: `keys` (column name to polars type) first, then the columns of an Estimate."""
    schema = {**keys, **ESTIMATE_SCHEMA}
    return pl.DataFrame(
        [{**dict.fromkeys(keys), **key, **est.row()} for key, est in rows], schema=schema
    )


REMARK_COLUMNS = frozenset({"status", "verdict", "note", "halo_note", "loo_task"})
"""Text columns that speak about a row rather than name its subject."""


def subject_keys(table: pl.DataFrame) -> list[str]:
    """Columns that name what a row is about: texts before `estimand`, and the estimand. What stands
    beside them (an adjusted p, a detectable difference, a remark) may differ between the rows of
    the two populations."""
    names = table.columns[: table.columns.index("estimand")]
    return [
        *(name for name in names if table.schema[name] == pl.String and name not in REMARK_COLUMNS),
        "estimand",
    ]


def wide(table: pl.DataFrame) -> pl.DataFrame:
    """One row a subject: the numbers for new tasks, with `same_se`, `same_lo`, `same_hi` of its
    twin for the same tasks.

    Twins share the estimand and all names; numbers beside the estimate (p_holm, mde80) may differ.
    Rows without a twin stay as they are, and so does a table that has no two populations.
    """
    if not {"population", "estimand", "se", "lo", "hi"} <= set(table.columns):
        return table
    keys = subject_keys(table)
    same = table.filter(pl.col("population") == "same")
    other = table.filter(pl.col("population").ne_missing("same"))
    if other.is_empty() or same.is_empty() or same.select(keys).is_duplicated().any():
        return table
    twins = same.select(*keys, same_se="se", same_lo="lo", same_hi="hi")
    return other.join(twins, on=keys, how="left", nulls_equal=True, maintain_order="left")


def adjust_p_values(
    p_values: Sequence[float | None], method: Literal["holm", "fdr_bh"]
) -> list[float | None]:
    """p values adjusted over their family, by Holm or Benjamini and Hochberg; missing ones stay
    missing and do not count."""
    at = [i for i, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[i] for i in at], dtype=float)
    order, m = np.argsort(p), len(p)
    if method == "holm":
        stepped = np.maximum.accumulate(p[order] * np.arange(m, 0, -1))
    else:
        stepped = np.minimum.accumulate((p[order] * m / np.arange(1, m + 1))[::-1])[::-1]
    out: list[float | None] = [None] * len(p_values)
    for i, value in zip(order.tolist(), stepped.tolist(), strict=True):
        out[at[i]] = min(value, 1.0)
    return out
