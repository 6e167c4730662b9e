"""Figures about answers beside the truth, as pure functions.

Shares, Cohen's kappa, F1, paired differences, and calibration.

Intervals are 95 %. Each figure names its method: `bootstrap` resamples whole runs (the verdicts on
one run are correlated), `wilson` is for shares of independent cases, `t` for the difference of two
judges, with runs as clusters. What cannot be computed (a denominator of 0, a spread that the data
cannot show) is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
DRAWS, SEED = 1000, 20260601
BINS = 10
_MIN_DEFINED = 0.9
"""Share of the resamples that must define a statistic for an interval."""

Method = Literal["wilson", "bootstrap", "t"]
Statistic = Callable[["Floats"], "Floats"]
"""From summed counts (... x k) to values (...); NaN where undefined."""


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval.

    `n` counts the cases behind it (verdicts, readings, turns or runs); `method` is the interval's.
    """

    value: float | None
    interval: tuple[float, float] | None
    n: int
    method: Method


# Shares


def wilson(count: float, total: float) -> tuple[float, float] | None:
    """Wilson score interval (Wilson 1927) of a proportion; None if `total` is 0."""
    if total <= 0:
        return None
    centre = (count + Z * Z / 2) / (total + Z * Z)
    half_width = Z / (total + Z * Z) * math.sqrt(count * (total - count) / total + Z * Z / 4)
    # At the ends of the scale the bound is the end itself, which rounding may miss.
    low = 0.0 if count <= 0 else centre - half_width
    high = 1.0 if count >= total else centre + half_width
    return low, high


def share(count: int, total: int) -> Figure:
    """A share of independent cases."""
    if not total:
        return Figure(None, None, 0, "wilson")
    return Figure(count / total, wilson(count, total), total, "wilson")


# Statistics of summed counts


def ratio(counts: Floats) -> Floats:
    """counts[0] / counts[1]."""
    return _divide(counts[..., 0], counts[..., 1])


def f1(counts: Floats) -> Floats:
    """F1 of (true positives, false positives, false negatives)."""
    return _divide(2 * counts[..., 0], 2 * counts[..., 0] + counts[..., 1] + counts[..., 2])


def cohen_kappa(table: Floats, weights: Floats | None = None) -> Floats:
    """Cohen's kappa (1960) of tables of counts (... x L x L), rows first rater.

    `weights` are disagreement weights (L x L), 1 off the diagonal by default. NaN if both raters
    give one value throughout.
    """
    import numpy as np

    if weights is None:
        weights = 1 - np.eye(table.shape[-1])
    total = table.sum((-1, -2))
    margins = table.sum(-1)[..., :, None] * table.sum(-2)[..., None, :]
    expected = _divide(margins, np.broadcast_to(total[..., None, None], margins.shape))
    chance = (expected * weights).sum((-1, -2))
    observed = (table * weights).sum((-1, -2))
    # Rounding may leave a chance disagreement of 0 slightly above it.
    return np.asarray(1 - _divide(observed, np.where(chance > 1e-12, chance, 0.0)))


def macro_f1(table: Floats) -> Floats:
    """Mean F1 of the categories that occur in the truth (rows of the ... x L x L tables)."""
    import numpy as np

    truth, predicted = table.sum(-1), table.sum(-2)
    by_category = _divide(2 * np.einsum("...ii->...i", table), truth + predicted)
    occurs = truth > 0
    return _divide(np.where(occurs, by_category, 0.0).sum(-1), occurs.sum(-1))


def on_tables(statistic: Statistic, size: int) -> Statistic:
    """A statistic of L x L tables, as one of rows of their L*L counts."""

    def on_rows(counts: Floats) -> Floats:
        return statistic(counts.reshape(*counts.shape[:-1], size, size))

    return on_rows


def _divide(numerator: Any, denominator: Any) -> Floats:
    """The quotient; NaN unless the denominator is above 0."""
    import numpy as np

    numerator = np.asarray(numerator, dtype=float)
    denominator = np.asarray(denominator, dtype=float)
    undefined = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=denominator > 0))


# Resampling


def over_runs(counts: Sequence[Sequence[float]], statistic: Statistic, n: int) -> Figure:
    """A statistic of counts summed over runs, with a percentile bootstrap over runs.

    `counts` has one row per run, and `n` is the number of cases.

    There is no interval for one run, or if resamples too often leave the statistic undefined or all
    give the same value: that is not certainty. A share of 0 or 1 without spread gets Wilson's
    interval instead.
    """
    import numpy as np

    rows = np.asarray(counts, dtype=float)
    if not len(rows):
        return Figure(None, None, 0, "bootstrap")
    value = float(statistic(rows.sum(0)))
    if not math.isfinite(value):
        return Figure(None, None, n, "bootstrap")
    if len(rows) == 1:
        return Figure(value, None, n, "bootstrap")
    low, high = percentiles(statistic(resampled_sums(rows))) or (value, value)
    if low < high:
        return Figure(value, (low, high), n, "bootstrap")
    if statistic is ratio and value in (0.0, 1.0):
        return share(round(value * n), n)
    return Figure(value, None, n, "bootstrap")


def gain_over_runs(counts: Sequence[Sequence[float]]) -> Figure:
    """How much more often one judge is right than another on the same cases, in [-1, 1].

    `counts` has a row for each run: the cases on which the first alone is right less those on which
    the second alone is, and all cases. Linearised ratio with runs as clusters (Cochran 1977,
    chapter 6) and Student's t with one degree of freedom less than runs, which holds its level with
    few runs where a percentile bootstrap does not. No interval for one run, or without spread.
    """
    import numpy as np
    from scipy import stats

    rows = np.asarray(counts, dtype=float).reshape(-1, 2)
    n_runs, n_cases = len(rows), int(rows[:, 1].sum())
    if not n_cases:
        return Figure(None, None, 0, "t")
    gain = float(rows[:, 0].sum() / n_cases)
    residuals = rows[:, 0] - gain * rows[:, 1]
    squares = float((residuals**2).sum())
    if n_runs < 2 or squares < 1e-18:
        return Figure(gain, None, n_cases, "t")
    error = math.sqrt(n_runs / (n_runs - 1) * squares) / n_cases
    half_width = float(stats.t.ppf((1 + LEVEL) / 2, n_runs - 1)) * error
    return Figure(gain, (max(-1.0, gain - half_width), min(1.0, gain + half_width)), n_cases, "t")


def resampled_sums(rows: Floats) -> Floats:
    """Sums (DRAWS x k) of n rows drawn with replacement from the n rows (n x k)."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    times_drawn = generator.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=DRAWS)
    return np.asarray(times_drawn @ rows)


def percentiles(sample: Floats) -> tuple[float, float] | None:
    """The central 95 % of resampled values; None if more than a tenth of them is undefined."""
    import numpy as np

    defined = sample[np.isfinite(sample)]
    if len(defined) < _MIN_DEFINED * len(sample):
        return None
    low, high = np.quantile(defined, (0.025, 0.975))
    return float(low), float(high)


# Calibration


@dataclass(frozen=True)
class Bin:
    """Answers whose stated probability is in [low, high)."""

    low: float
    high: float
    n: int
    stated: float
    """Mean stated probability."""
    right: Figure
    """Share that was right."""


@dataclass(frozen=True)
class Calibration:
    """How well stated probabilities agree with the share of right answers."""

    n: int
    brier: Figure
    """Mean squared error: 0 is best, a constant .5 gives .25."""
    ece: float | None
    """Expected calibration error: mean distance of the stated and the right share over the bins,
    weighted by their size."""
    bins: tuple[Bin, ...]
    """Of equal width; empty ones are left out."""


def calibration(by_run: Sequence[Sequence[tuple[float, bool]]]) -> Calibration:
    """The calibration of answers, each a stated probability and whether it was right, by run."""
    runs = [run for run in by_run if run]
    answers = [answer for run in runs for answer in run]
    by_bin: dict[int, list[tuple[float, bool]]] = {}
    for answer in answers:
        index = min(int(answer[0] * BINS), BINS - 1)
        by_bin.setdefault(index, []).append(answer)
    bins = tuple(_bin(index, group) for index, group in sorted(by_bin.items()))
    squared_errors = [
        [math.fsum((stated - right) ** 2 for stated, right in run), len(run)] for run in runs
    ]
    ece = None
    if answers:
        distances = (group.n * abs(group.stated - (group.right.value or 0.0)) for group in bins)
        ece = math.fsum(distances) / len(answers)
    return Calibration(
        n=len(answers), brier=over_runs(squared_errors, ratio, len(answers)), ece=ece, bins=bins
    )


def _bin(index: int, answers: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(
        low=index / BINS,
        high=(index + 1) / BINS,
        n=len(answers),
        stated=math.fsum(stated for stated, _ in answers) / len(answers),
        right=share(sum(right for _, right in answers), len(answers)),
    )
