"""Corrections by labels, and the self-check's gates at small size."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis import cohort, corrected_code_effects, corrected_leaderboard, judged_mean, selfcheck, simulate
from ambjudge.analysis.codes_read import CODES
from ambjudge.analysis.judge_error import human_scores
from ambjudge.analysis.label_tables import read_labels
from ambjudge.analysis.simulated_cards import simulated_scorecards
from ambjudge.errors import ConfigError


def human_codes(table, n, seed=1):
    return table.sample(n, seed=seed).select("run_id", *(pl.col(f"{c}_human").alias(c) for c in CODES))


@pytest.fixture(scope="module")
def halo():
    return simulate("halo", seed=1).frame()


def test_difference_estimator_by_hand():
    judge, human = np.array([0.5, 0.5, 1.0, 0.0]), np.array([1.0, 0.5, 0.0, 0.0])
    labelled = np.array([True, True, False, False])
    found = judged_mean(judge, human, labelled)
    assert found.value == pytest.approx(0.5 + 0.25)
    assert found.se == pytest.approx(np.std([0.5, 0.0], ddof=1) / np.sqrt(2) * np.sqrt(0.5))
    assert found.df == 1


def test_judged_mean_covers_where_the_judge_alone_cannot():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        human = rng.choice([0, 0.2, 0.5, 1.0], 400)
        judge = np.clip(human + np.where(rng.random(400) < 0.25, 0.25, 0.0), 0, 1)
        labelled = np.zeros(400, dtype=bool)
        labelled[rng.choice(400, 60, replace=False)] = True
        found = judged_mean(judge, np.where(labelled, human, np.nan), labelled)
        covered += found.lo <= human.mean() <= found.hi
    assert covered >= 180


def test_a_judge_that_never_differed_is_not_certain():
    values = np.full(100, 0.5)
    found = judged_mean(values, values, np.arange(100) < 30)
    assert found.hi - found.lo == pytest.approx(2 * 3 / 30)
    assert judged_mean(values, values, np.arange(100) < 1).value is None


def test_predict_then_debias_moves_towards_the_truth(halo):
    found = corrected_code_effects(halo, human_codes(halo, 600))
    e3 = dict(found.filter(pl.col("code") == "E3").select("kind", "value").iter_rows())
    assert e3["judge"] > -20, "wrong tags hide the effect"
    assert -33 < e3["corrected"] < -21
    width = dict(found.filter(pl.col("code") == "E5").select("kind", "se").iter_rows())
    assert width["corrected"] < width["human"]


@pytest.mark.parametrize("method", ["mi", "simex"])
def test_the_other_corrections_run(halo, method):
    found = corrected_code_effects(halo, human_codes(halo, 400), method=method).filter(
        (pl.col("kind") == "corrected") & (pl.col("code") == "E3")
    )
    assert found["value"].item() < -18
    assert (found["se"].item() is None) == (method == "simex")


def test_rare_codes_are_not_corrected(halo):
    found = corrected_code_effects(halo, human_codes(halo, 200)).filter(
        (pl.col("code") == "E1") & (pl.col("kind") == "corrected")
    )
    assert found["value"].item() is None
    assert "human positives" in found["reason"].item()


def test_without_labels_only_reasons(halo):
    found = corrected_code_effects(halo, human_codes(halo, 0))
    assert found["value"].null_count() == found.height
    assert found["reason"].null_count() == 0
    with pytest.raises(ConfigError):
        corrected_code_effects(halo, human_codes(halo, 10), method="magic")


def test_inclusion_probabilities_undo_oversampling(halo):
    rare = pl.when(pl.col("E2")).then(0.8).otherwise(0.1)
    chosen = halo.with_columns(probability=rare).filter(
        pl.Series(np.random.default_rng(5).random(halo.height)) < pl.col("probability")
    )
    labels = chosen.select("run_id", *(pl.col(f"{c}_human").alias(c) for c in CODES), "probability")
    found = corrected_code_effects(halo, labels).filter((pl.col("kind") == "corrected") & (pl.col("code") == "E3"))
    assert -35 < found["value"].item() < -19


def test_corrected_leaderboard_takes_the_bias_out():
    sim = simulate("judge", seed=3)
    table = sim.frame()
    agentic = sim.true.stages @ np.array([0.25, 0.15, 0.35, 0.15, 0.10])
    truth = table.select("run_id").with_columns(human=pl.Series(50 * agentic + 50 * sim.true.task))
    found = corrected_leaderboard(table, truth.sample(360, seed=2))
    same = found.filter((pl.col("kind") == "corrected") & (pl.col("population") == "same"))
    assert same["pooled"].not_().all()
    true_means = (
        table.join(truth, on="run_id")
        .group_by("agent", "track")
        .agg(pl.col("human").mean())
        .group_by("agent")
        .agg(pl.col("human").mean())
    )
    both = same.join(true_means, on="agent")
    assert (both["value"] - both["human"]).abs().mean() < 0.6
    new = found.filter((pl.col("kind") == "corrected") & (pl.col("population") == "new"))
    assert (new["se"] > same["se"]).all()
    pooled = corrected_leaderboard(table, truth.sample(60, seed=2)).filter(pl.col("kind") == "corrected")
    assert pooled["pooled"].all()


def test_human_scores_from_label_files():
    sim = simulate(n_tasks=5, n_rep=1, seed=1)
    whole = cohort(simulated_scorecards(sim))
    run = whole.runs.row(0, named=True)
    label = {"run": run["run_id"], "annotator": "gold", "criteria": {"S1a": 1, "S1b": 1, "S2a": 0, "S2b": 1, "S3": 1.0}}
    found = human_scores(whole, read_labels([label]), "gold")
    shift = 50 * (0.25 * (1 - run["S1"]) + 0.15 * (0.5 - run["S2"]) + 0.35 * (1 - run["S3"]))
    assert found["human"].to_list() == [pytest.approx(run["overall"] + shift)]
    assert human_scores(whole, read_labels([]), "gold").is_empty()


def test_selfcheck_meets_its_targets_within_monte_carlo_error():
    found = selfcheck(40)
    assert found["within_error"].all(), found.filter(~pl.col("within_error"))
    assert found.filter(pl.col("part") == "parity")["value"].item() < 1e-8
