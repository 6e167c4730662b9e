"""One number with everything needed to defend it: estimand, population, interval, counts, method, warnings.

An undefined number is None with a reason, never NaN or infinity. Intervals are 95 % unless a function says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Population = Literal["new", "same"]
"""new: other tasks of the same kind (tasks are a sample); same: these tasks again (only repeats vary)."""

LEVEL = 0.95

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
    """A number with its interval. `reason` says why `value` (or, when only `se` is None, the interval) is missing."""

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
            out[name] = finite(out[name])
        return out


def finite(value: float | np.floating[Any] | None) -> float | None:
    """The value as float, or None where it is missing, NaN or infinite."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t; the normal's for infinite df."""
    from scipy import stats

    return float(stats.norm.ppf(probability) if math.isinf(df) else stats.t.ppf(probability, df))


def t_two_sided(t: float, df: float) -> float:
    """Two-sided p value of a t statistic."""
    from scipy import special

    return float(2 * special.stdtr(df, -abs(t))) if not math.isinf(df) else math.erfc(abs(t) / math.sqrt(2))


def estimate(
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
) -> Estimate:
    """An Estimate with the t interval of `se` and `df`; without them the interval is None and `reason` says why."""
    value, se = finite(value), finite(se)
    if value is None:
        return Estimate(
            estimand, population, None, n=n, n_clusters=n_clusters, method=method,
            reason=reason or "not defined for these runs", warnings=tuple(warnings),
        )  # fmt: skip
    if se is None or df is None or df < 1:
        return Estimate(
            estimand, population, value, n=n, n_clusters=n_clusters, method=method,
            reason=reason or "too few independent units for an interval", warnings=tuple(warnings),
        )  # fmt: skip
    if se < 1e-12 * max(1.0, abs(value)):
        se = 0.0
    half = t_quantile((1 + level) / 2, df) * se
    p = None
    if test:
        p = t_two_sided(value / se, df) if se > 0 else None
    if se == 0:
        reason = reason or "no variation between the units: the interval has no width, which is not certainty"
    return Estimate(
        estimand, population, value, se, value - half, value + half, p, float(df), n, n_clusters, method, reason,
        tuple(warnings),
    )  # fmt: skip


def tidy(
    rows: Sequence[tuple[Mapping[str, Any], Estimate]],
    keys: Mapping[str, Any],
) -> pl.DataFrame:
    """Rows as a table: `keys` (column name to polars type) first, then the columns of an Estimate."""
    schema = {**keys, **ESTIMATE_SCHEMA}
    return pl.DataFrame([{**dict.fromkeys(keys), **key, **est.row()} for key, est in rows], schema=schema)


SAID = frozenset({"status", "verdict", "note", "halo_note", "loo_task"})
"""Text columns that speak about a row rather than name its subject."""


def subject_keys(table: pl.DataFrame) -> list[str]:
    """Columns that name what a row is about: texts before `estimand`, and the estimand. What stands beside them (an
    adjusted p, a detectable difference, a remark) may differ between the rows of the two populations."""
    names = table.columns[: table.columns.index("estimand")]
    return [*(name for name in names if table.schema[name] == pl.String and name not in SAID), "estimand"]


def wide(table: pl.DataFrame) -> pl.DataFrame:
    """One row per subject: the numbers for new tasks, with `same_se`, `same_lo`, `same_hi` beside them.

    A table without a `population` column is returned as it is.
    """
    if "population" not in table.columns or table.is_empty():
        return table
    keys = subject_keys(table)
    new = table.filter((pl.col("population") != "same") | pl.col("population").is_null())
    same = table.filter(pl.col("population") == "same")
    if new.is_empty():
        return same
    return new.join(
        same.select(*keys, pl.col("se").alias("same_se"), pl.col("lo").alias("same_lo"), pl.col("hi").alias("same_hi")),
        on=keys, how="left", nulls_equal=True, maintain_order="left",
    )  # fmt: skip


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment; missing values stay missing and do not count to the family."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, i) in enumerate(known):
        running = max(running, min(1.0, (len(known) - rank) * p))
        out[i] = running
    return out


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjustment; missing values stay missing."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    running = 1.0
    for rank in range(len(known), 0, -1):
        p, i = known[rank - 1]
        running = min(running, p * len(known) / rank)
        out[i] = running
    return out
