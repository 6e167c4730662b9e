"""Figures beside the truth, by hand-computed cases and by what must always hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ambjudge.judge.trust.measures import (
    calibration,
    cohen_kappa,
    f1,
    gain_over_runs,
    macro_f1,
    on_tables,
    over_runs,
    ratio,
    share,
)
from ambjudge.judge.trust.splits import split_of
from ambjudge.trajectories.models import Run
from hypothesis import given
from hypothesis import strategies as st

KAPPAS = [
    # 50 subjects, the textbook case: observed .70, chance .5 * .6 + .5 * .4 = .50
    pytest.param([[20, 5], [10, 15]], 0.4, id="two values"),
    pytest.param([[0, 3], [3, 0]], -1.0, id="always different"),
    pytest.param([[2, 2], [2, 2]], 0.0, id="chance"),
    # observed 6 / 9; chance (4 * 5 + 3 * 3 + 2 * 1) / 81 = 31 / 81
    pytest.param([[3, 1, 0], [1, 2, 0], [1, 0, 1]], (54 - 31) / (81 - 31), id="three values"),
    pytest.param([[5, 0], [0, 0]], math.nan, id="one value throughout"),
    pytest.param([[5, 0, 0], [0, 4, 0], [0, 0, 0]], 1.0, id="an unused category changes nothing"),
]


@pytest.mark.parametrize(("table", "value"), KAPPAS)
def test_kappa(table: list[list[int]], value: float) -> None:
    from sklearn.metrics import cohen_kappa_score

    kappa = float(cohen_kappa(np.array(table, dtype=float)))
    assert kappa == pytest.approx(value, nan_ok=True)
    pairs = [(a, b) for a, row in enumerate(table) for b, n in enumerate(row) for _ in range(n)]
    if not math.isnan(kappa):
        assert kappa == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


TABLES = st.integers(1, 4).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 30), min_size=size, max_size=size), min_size=size, max_size=size
    )
)


@given(TABLES)
def test_kappa_of_raters_who_always_agree_is_one_and_never_more(table: list[list[int]]) -> None:
    counts = np.array(table, dtype=float)
    alike = float(cohen_kappa(np.diag(np.diag(counts))))
    assert math.isnan(alike) or alike == pytest.approx(1.0)
    kappa = float(cohen_kappa(counts))
    assert math.isnan(kappa) or -1 - 1e-9 <= kappa <= 1 + 1e-9
    assert kappa == pytest.approx(float(cohen_kappa(counts.T)), nan_ok=True), (
        "raters may be swapped"
    )


def test_linear_weights_forgive_the_neighbour() -> None:
    table = np.array([[2.0, 1, 0], [0, 2, 0], [0, 1, 2]])
    weights = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) / 2
    assert cohen_kappa(table, weights) > cohen_kappa(table)


STATISTICS = [
    pytest.param(ratio, [3, 4], 0.75, id="ratio"),
    pytest.param(ratio, [0, 0], None, id="ratio of nothing"),
    pytest.param(f1, [6, 2, 4], 12 / 18, id="F1"),
    pytest.param(f1, [0, 3, 0], 0.0, id="F1, false alarms alone"),
    pytest.param(f1, [0, 0, 0], None, id="F1, nothing there and nothing found"),
    # rows label, columns said: F1 of the first 2*2/(3+2) = .8, of the second 2*1/(1+2) = 2/3, third
    # never labelled
    pytest.param(
        on_tables(macro_f1, 3), [2, 1, 0, 0, 1, 0, 0, 0, 0], (0.8 + 2 / 3) / 2, id="macro F1"
    ),
]


@pytest.mark.parametrize(("statistic", "counts", "value"), STATISTICS)
def test_statistics_of_counts(statistic: Any, counts: list[int], value: float | None) -> None:
    assert over_runs([counts], statistic, 1).value == (
        None if value is None else pytest.approx(value)
    )


def test_wilsons_interval() -> None:
    assert share(1, 10).interval == pytest.approx((0.0179, 0.4042), abs=1e-4)
    assert (share(0, 0).value, share(0, 0).interval) == (None, None)


GAINS = [
    pytest.param([[1, 9]] * 6 + [[-1, 9]] * 2, 4 / 72, True, id="mostly better"),
    pytest.param([[-2, 9], [0, 9], [-1, 9]], -3 / 27, True, id="worse"),
    pytest.param([[0, 9]] * 7, 0.0, False, id="the same everywhere"),
    pytest.param([[-9, 9]] * 7, -1.0, False, id="always worse: no spread"),
    pytest.param([[3, 9]], 3 / 9, False, id="one run"),
    pytest.param([], None, False, id="nothing labelled"),
]


@pytest.mark.parametrize(("counts", "value", "has_interval"), GAINS)
def test_gain_of_one_judge_over_another(
    counts: list[list[int]], value: float | None, has_interval: bool
) -> None:
    gain = gain_over_runs(counts)
    opposite = gain_over_runs([[-d, n] for d, n in counts])
    assert gain.value == (None if value is None else pytest.approx(value))
    assert (gain.interval is not None) == has_interval, "no spread is not certainty"
    if gain.interval is not None:
        assert gain.interval[0] < gain.value < gain.interval[1]
        assert opposite.interval == pytest.approx((-gain.interval[1], -gain.interval[0]))


def test_the_interval_of_a_gain_by_hand() -> None:
    """Differences 2, 0, 1 of 4 cases each: mean .25, s = 1, t(.975, 2) = 4.3027."""
    gain = gain_over_runs([[2, 4], [0, 4], [1, 4]])
    half_width = 4.302653 * math.sqrt(1 / 3) / 4
    assert gain.value == pytest.approx(0.25)
    assert gain.interval == pytest.approx((0.25 - half_width, 0.25 + half_width))


def test_judges_that_are_equally_good_are_rarely_called_different() -> None:
    """With six runs of nine criteria each, about one interval in 20 misses 0 (of 400 at most 31, at
    99 %)."""
    random = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        gains = random.binomial(9, 0.07, 6) - random.binomial(9, 0.07, 6)
        interval = gain_over_runs([[int(gain), 9] for gain in gains]).interval
        missed += interval is not None and not interval[0] <= 0 <= interval[1]
    assert missed <= 31


def test_intervals_resample_runs_not_verdicts() -> None:
    """Ten runs that are all right or all wrong know as much as ten verdicts, however many verdicts
    each has."""
    few = over_runs([[i % 2, 1] for i in range(10)], ratio, 10)
    many = over_runs([[i % 2 * 100, 100] for i in range(10)], ratio, 1_000)
    assert few.value == many.value == 0.5
    assert few.interval == many.interval
    assert many.interval[1] - many.interval[0] > 0.4
    uneven = [[i, 3 * i + 1] for i in range(10)]
    assert over_runs(uneven, ratio, 145) == over_runs(uneven, ratio, 145), "the seed is fixed"


def test_no_spread_is_no_certainty() -> None:
    assert over_runs([[4, 4]] * 5, ratio, 20) == share(20, 20)
    assert over_runs([[2, 4]] * 5, ratio, 20).interval is None
    assert over_runs([[2, 4]], ratio, 4).interval is None, "one run"
    assert over_runs([], ratio, 0).value is None
    assert over_runs([[1, 0, 0]] * 4, f1, 4).interval is None


def test_calibration_by_hand() -> None:
    result = calibration([[(0.9, True), (0.95, False)], [], [(0.55, True), (1.0, True)]])
    assert result.n == 4
    assert result.brier.value == pytest.approx((0.01 + 0.9025 + 0.2025 + 0) / 4)
    assert [(b.low, b.n, b.right.value) for b in result.bins] == [
        (0.5, 1, 1.0),
        (0.9, 3, pytest.approx(2 / 3)),
    ]
    assert result.bins[1].stated == pytest.approx((0.9 + 0.95 + 1.0) / 3)
    assert result.ece == pytest.approx((1 * 0.45 + 3 * (0.95 - 2 / 3)) / 4)
    assert (calibration([]).n, calibration([[]]).ece) == (0, None)


@given(st.lists(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=5), max_size=5))
def test_calibration_always_adds_up(runs: list[list[tuple[float, bool]]]) -> None:
    result = calibration(runs)
    assert sum(b.n for b in result.bins) == result.n == sum(map(len, runs))
    if result.n:
        assert 0 <= result.brier.value <= 1
        assert 0 <= result.ece <= 1
        assert all(b.low - 1e-9 <= b.stated <= b.high + 1e-9 for b in result.bins)


def run_of(content: str) -> Run:
    from ambjudge.judge.trust.example_runs import careless_run

    return careless_run()[0].model_copy(update={"content_sha256": content})


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_test_share_only_moves_runs_from_dev_to_test(
    content: str, first_share: float, second_share: float
) -> None:
    run = run_of(content)
    if split_of(run, min(first_share, second_share)) == "test":
        assert split_of(run, max(first_share, second_share)) == "test"
    assert (split_of(run, 0.0), split_of(run, 1.0)) == ("dev", "test")
    renamed = run.model_copy(update={"id": "another", "sha256": "0" * 64})
    assert split_of(renamed, first_share) == split_of(run, first_share), "the content decides"


def test_the_share_is_kept_over_many_runs() -> None:
    sides = [split_of(run_of(f"{i:064x}"), 0.3) for i in range(2_000)]
    assert 0.27 < sides.count("test") / 2_000 < 0.33
