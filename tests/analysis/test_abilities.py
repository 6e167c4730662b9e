"""The Rasch fit against a logistic regression with the same prior, and its covers of planted
abilities."""

from __future__ import annotations

import numpy as np
import pytest
from ambjudge.analysis import simulate
from ambjudge.analysis.statistics.rasch import SD_ABILITY, SD_DIFFICULTY, abilities, rasch
from scipy import optimize


def made(seed: int, agents: int = 5, tasks: int = 30, repeats: int = 6):
    rng = np.random.default_rng(seed)
    ability, difficulty = np.linspace(-1, 1.5, agents), rng.normal(0, 1, tasks)
    p = 1 / (1 + np.exp(-(ability[:, None] - difficulty[None])))
    return (
        ability,
        difficulty,
        np.full(p.shape, float(repeats)),
        rng.binomial(repeats, p).astype(float),
    )


def test_the_mode_is_that_of_a_general_optimiser() -> None:
    _, _, runs, passed = made(1)
    runs[0, :5] = passed[0, :5] = 0  # tasks that an agent never ran
    passed[4] = runs[4]  # an agent that never fails

    def loss(x):
        z = x[:5, None] + x[None, 5:]
        fit = (runs * np.logaddexp(0, z) - passed * z).sum()
        return (
            fit + (x[:5] ** 2).sum() / SD_ABILITY**2 / 2 + (x[5:] ** 2).sum() / SD_DIFFICULTY**2 / 2
        )

    expected = optimize.minimize(loss, np.zeros(35), method="BFGS", options={"gtol": 1e-8}).x
    fit = rasch(runs, passed)
    mode = np.concatenate([fit.ability, -fit.difficulty])
    assert mode == pytest.approx(expected, abs=1e-4)


def test_intervals_cover_planted_differences() -> None:
    """z of ability differences over 60 made cohorts: mean near 0, spread near 1."""
    z = []
    for seed in range(60):
        ability, _, runs, passed = made(seed)
        fit = rasch(runs, passed)
        covariance = fit.ability_covariance
        se = np.sqrt(covariance[0, 0] + covariance[4, 4] - 2 * covariance[0, 4])
        difference = fit.ability[4] - fit.ability[0]
        z.append((difference - (ability[4] - ability[0])) / se)
    assert abs(np.mean(z)) < 0.6
    assert 0.7 < np.std(z) < 1.35


def test_the_table_ranks_agents_and_tasks() -> None:
    found = abilities(simulate(seed=1).frame())
    assert found["kind"].to_list() == ["agent"] * 6 + ["task"] * 24
    for kind, falling in (("agent", True), ("task", False)):
        part = found.filter(found["kind"] == kind)
        order = part.sort("passed", descending=falling)["name"].to_list()
        assert order[0] == part["name"][0], "balanced runs: as the shares say"
        assert part["lo"].null_count() == 0
    assert (
        "needs two of each"
        in abilities(simulate(seed=1, n_agents=1, ability=(0.0,)).frame())["reason"][0]
    )
