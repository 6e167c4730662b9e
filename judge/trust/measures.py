"""Figures about answers beside the truth: shares, Cohen's kappa, F1, paired differences,
calibration; pure functions.

Intervals are 95 %. Each figure names its method: `bootstrap` resamples whole runs (what is said of
one run moves together), `wilson` is for shares of independent cases, `mcnemar` for two judges on
the same cases. What cannot be computed (nothing to divide by, a spread that the data cannot show)
is None.
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

Method = Literal["wilson", "bootstrap", "mcnemar"]
Statistic = Callable[["Floats"], "Floats"]
"""From summed counts (... x k) to values (...); NaN where undefined."""


@dataclass(frozen=True)
class Figure:
    """A value, its 95 % interval, the number of cases behind it (verdicts, readings, turns, runs),
    and the method."""

    value: float | None
    interval: tuple[float, float] | None
    n: int
    method: Method


# Shares
def wilson(count: float, total: float) -> tuple[float, float] | None:
    """Wilson score interval (Wilson 1927) of a proportion of `total` cases; None without any."""
    if total <= 0:
        return None
    centre = (count + Z * Z / 2) / (total + Z * Z)
    half = Z / (total + Z * Z) * math.sqrt(count * (total - count) / total + Z * Z / 4)
    # At the ends of the scale the bound is the end itself, which rounding may miss.
    return 0.0 if count <= 0 else centre - half, 1.0 if count >= total else centre + half


def share(count: int, total: int) -> Figure:
    """A share of independent cases."""
    if not total:
        return Figure(None, None, 0, "wilson")
    return Figure(count / total, wilson(count, total), total, "wilson")


def paired_gain(only_first: int, only_second: int, pairs: int) -> Figure:
    """How much more often the first of two judges is right than the second, on the same cases: in
    [-1, 1].

    `only_first`: cases on which the first alone is right. Normal approximation on McNemar's counts;
    cases are taken as independent, which items of one run are not quite, so that the interval is
    the narrow end of what is known.
    """
    if not pairs:
        return Figure(None, None, 0, "mcnemar")
    gain = (only_first - only_second) / pairs
    half = Z * math.sqrt(max(0.0, only_first + only_second - pairs * gain**2)) / pairs
    return Figure(gain, (max(-1.0, gain - half), min(1.0, gain + half)), pairs, "mcnemar")


# Statistics of summed counts
def ratio(counts: Floats) -> Floats:
    """counts[0] / counts[1]."""
    return _divide(counts[..., 0], counts[..., 1])


def f1(counts: Floats) -> Floats:
    """F1 of (true positives, false positives, false negatives)."""
    return _divide(2 * counts[..., 0], 2 * counts[..., 0] + counts[..., 1] + counts[..., 2])


def cohen_kappa(table: Floats, weights: Floats | None = None) -> Floats:
    """Cohen's kappa (1960) of tables of counts (... x L x L), rows first rater.

    `weights` are disagreement weights (L x L), 1 off the diagonal by default. NaN where both give
    one value throughout.
    """
    import numpy as np

    w = 1 - np.eye(table.shape[-1]) if weights is None else weights
    total = table.sum((-1, -2))
    margins = table.sum(-1)[..., :, None] * table.sum(-2)[..., None, :]
    expected = _divide(margins, np.broadcast_to(total[..., None, None], margins.shape))
    chance = (expected * w).sum((-1, -2))
    return np.asarray(1 - _divide((table * w).sum((-1, -2)), np.where(chance > 1e-12, chance, 0.0)))


def macro_f1(table: Floats) -> Floats:
    """Mean F1 of the categories that the truth (rows of the ... x L x L tables) has."""
    import numpy as np

    truth, said = table.sum(-1), table.sum(-2)
    each = _divide(2 * np.einsum("...ii->...i", table), truth + said)
    has = truth > 0
    return _divide(np.where(has, each, 0.0).sum(-1), has.sum(-1))


def on_tables(statistic: Statistic, size: int) -> Statistic:
    """A statistic of L x L tables as one of their L*L counts in a row."""
    return lambda counts: statistic(counts.reshape(*counts.shape[:-1], size, size))


def _divide(a: Any, b: Any) -> Floats:
    """NaN where there is nothing to divide by."""
    import numpy as np

    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(np.divide(a, b, out=np.full(np.broadcast(a, b).shape, np.nan), where=b > 0))


# Resampling
def over_runs(counts: Sequence[Sequence[float]], statistic: Statistic, n: int) -> Figure:
    """A statistic of counts summed over runs (one row a run), with a percentile bootstrap over
    runs.

    No interval from one run, where resamplings too often leave the statistic undefined, or where
    all of them give the same value: that is no certainty. A share of equal cases without spread
    gets Wilson's interval instead.
    """
    import numpy as np

    rows = np.asarray(counts, dtype=float)
    if not len(rows):
        return Figure(None, None, 0, "bootstrap")
    value = float(statistic(rows.sum(0)))
    if not math.isfinite(value):
        return Figure(None, None, n, "bootstrap")
    bounds = percentiles(statistic(resampled(rows))) if len(rows) > 1 else None
    low, high = bounds or (value, value)
    if low < high:
        return Figure(value, (low, high), n, "bootstrap")
    if statistic is ratio and len(rows) > 1 and value in (0.0, 1.0):
        return share(round(value * n), n)
    return Figure(value, None, n, "bootstrap")


def resampled(rows: Floats) -> Floats:
    """Sums (DRAWS x k) of as many rows (n x k) as there are, drawn with replacement."""
    import numpy as np

    weights = np.random.default_rng(SEED).multinomial(
        len(rows), np.full(len(rows), 1 / len(rows)), size=DRAWS
    )
    return np.asarray(weights @ rows)


def percentiles(sample: Floats) -> tuple[float, float] | None:
    """The central 95 % of resampled values; None where more than a tenth of them is undefined."""
    import numpy as np

    known = sample[np.isfinite(sample)]
    if len(known) < 0.9 * len(sample):
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


# Calibration
@dataclass(frozen=True)
class Bin:
    """Answers with a stated probability in [low, high): how many, their mean probability, and the
    share that was right."""

    low: float
    high: float
    n: int
    stated: float
    right: Figure


@dataclass(frozen=True)
class Calibration:
    """How well stated probabilities keep their word. `brier`: mean squared error (0 best; always .5
    gives .25); `ece`: expected calibration error, the mean distance of stated and right over the
    bins, weighted by their size."""

    n: int
    brier: Figure
    ece: float | None
    bins: tuple[Bin, ...]
    """Of equal width; empty ones are left out."""


def calibration(by_run: Sequence[Sequence[tuple[float, bool]]]) -> Calibration:
    """From (stated probability of being right, whether it was) of every answer, by run."""
    kept = [run for run in by_run if run]
    pairs = [pair for run in kept for pair in run]
    groups: dict[int, list[tuple[float, bool]]] = {}
    for pair in pairs:
        groups.setdefault(min(int(pair[0] * BINS), BINS - 1), []).append(pair)
    bins = tuple(
        Bin(
            i / BINS,
            (i + 1) / BINS,
            len(g),
            math.fsum(p for p, _ in g) / len(g),
            share(sum(right for _, right in g), len(g)),
        )
        for i, g in sorted(groups.items())
    )
    errors = [[math.fsum((p - right) ** 2 for p, right in run), len(run)] for run in kept]
    off = math.fsum(b.n * abs(b.stated - (b.right.value or 0.0)) for b in bins)
    return Calibration(
        len(pairs), over_runs(errors, ratio, len(pairs)), off / len(pairs) if pairs else None, bins
    )
