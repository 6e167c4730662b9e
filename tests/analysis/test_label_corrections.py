"""Corrections by labels, and the self-check's gates at small size."""

from __future__ import annotations

import numpy as np
import polars as pl
import polars.testing
import pytest
from ambjudge.analysis import (
    code_effects,
    cohort,
    corrected_code_effects,
    corrected_leaderboard,
    judged_mean,
    simulate,
)
from ambjudge.analysis.simulated.simulated_cards import simulated_scorecards
from ambjudge.analysis.statistics.corrected_means import human_scores
from ambjudge.analysis.tables.codes_read import CODES
from ambjudge.analysis.tables.label_tables import read_labels


def human_codes(table, n, seed=1):
    return table.sample(n, seed=seed).select(
        "run_id",
        *(pl.col(f"{c}_human").alias(c) for c in CODES),
        weight=pl.lit(table.height / max(n, 1)),
    )


@pytest.fixture(scope="module")
def halo():
    return simulate("halo", seed=1).frame()


def test_difference_estimator_by_hand():
    judge = np.array([0.5, 0.5, 0.5, 0.5, 1.0, 0.0, 1.0, 0.0])
    human = np.array([1.0, 0.5, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    labelled = np.arange(8) < 4
    found = judged_mean(judge, human, labelled)
    differences = [0.5, 0.0, 0.5, 0.0]
    assert found.value == pytest.approx(0.5 + 0.25)
    assert found.se == pytest.approx(np.std(differences, ddof=1) / np.sqrt(4) * np.sqrt(0.5))
    assert found.df == 3
    assert judged_mean(judge, human, np.arange(8) < 3).value is None


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


def test_labels_change_nothing_for_a_judge_without_errors():
    frame = simulate(n_agents=5, n_rep=8, cell_sd=1.2, seed=2).frame()
    labels = human_codes(frame, 400).join(frame.select("run_id", human="overall"), on="run_id")
    found = corrected_code_effects(frame, labels)
    columns = ["code", "value", "lo", "hi"]
    judge, corrected = (
        found.filter((pl.col("kind") == kind) & (pl.col("human_positives") >= 10)).select(columns)
        for kind in ("judge", "corrected")
    )
    assert corrected.height >= 4
    polars.testing.assert_frame_equal(judge, corrected)
    by_runs = code_effects(frame).filter(pl.col("population") == "new").select(columns)
    polars.testing.assert_frame_equal(
        judge, by_runs.filter(pl.col("code").is_in(judge["code"].implode()))
    )


def test_points_that_a_judge_takes_with_each_tag_are_no_effect():
    table = simulate("null", n_agents=4, n_rep=8, seed=4).frame()
    people = table.select("run_id", human="overall")
    judged = table.with_columns(overall=pl.col("overall") - 8.0 * pl.col("E3"))
    labels = human_codes(judged, 500).join(people, on="run_id")
    for verdicts, is_hidden in ((labels, False), (labels.drop("human"), True)):
        row = corrected_code_effects(judged, verdicts).filter(
            (pl.col("code") == "E3") & (pl.col("kind") == "corrected")
        )
        assert (row["hi"].item() < 0) == is_hidden
        assert ("not the score" in str(row["warnings"].item().to_list())) == is_hidden


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


def test_inclusion_probabilities_undo_oversampling(halo):
    rare = pl.when(pl.col("E2")).then(0.8).otherwise(0.1)
    chosen = halo.with_columns(probability=rare).filter(
        pl.Series(np.random.default_rng(5).random(halo.height)) < pl.col("probability")
    )
    labels = chosen.select(
        "run_id", *(pl.col(f"{c}_human").alias(c) for c in CODES), weight=1 / pl.col("probability")
    )
    found = corrected_code_effects(halo, labels).filter(
        (pl.col("kind") == "corrected") & (pl.col("code") == "E3")
    )
    assert -35 < found["value"].item() < -19


def test_corrected_leaderboard_takes_the_bias_out():
    sim = simulate("judge", seed=3)
    table = sim.frame()
    agentic = sim.true.stages @ np.array([0.25, 0.15, 0.35, 0.15, 0.10])
    truth = table.select("run_id").with_columns(human=pl.Series(50 * agentic + 50 * sim.true.task))
    found = corrected_leaderboard(table, truth.sample(360, seed=2).with_columns(weight=pl.lit(9.6)))
    same = found.filter((pl.col("kind") == "corrected") & (pl.col("population") == "runs"))
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
    few = corrected_leaderboard(table, truth.sample(60, seed=2).with_columns(weight=pl.lit(57.6)))
    few = few.filter((pl.col("kind") == "corrected") & (pl.col("population") == "runs"))
    assert few["se"].mean() > 1.8 * same["se"].mean(), "few labels of an agent give a wide interval"
    chosen = corrected_leaderboard(table, truth.sample(360, seed=2)).filter(
        pl.col("kind") == "corrected"
    )
    assert chosen["lo"].null_count() == chosen.height
    assert all("convenience sample" in notes[0] for notes in chosen["warnings"])


def test_a_favoured_agent_is_found_by_its_own_labels():
    rng = np.random.default_rng(1)
    table = simulate(seed=1).frame()
    true = table.select("run_id", human="overall", agent="agent")
    lifted = (pl.col("agent") == "agent-2") & pl.Series(rng.random(table.height) < 0.5)
    judged = table.with_columns(
        overall=pl.col("overall") + pl.when(lifted).then(8.75).otherwise(0.0)
    )
    labels = true.sample(120, seed=3).select("run_id", "human", weight=pl.lit(table.height / 120))
    found = corrected_leaderboard(judged, labels).filter(
        (pl.col("kind") == "corrected") & (pl.col("population") == "runs")
    )
    right = dict(true.group_by("agent").agg(pl.col("human").mean()).iter_rows())
    row = found.filter(pl.col("agent") == "agent-2").row(0, named=True)
    assert row["lo"] < right["agent-2"] + 1 < row["hi"] + 1.5
    others = found.filter(pl.col("agent") != "agent-2")
    assert (others["hi"] - others["lo"]).min() > 0.5, "never differing is no certainty"


def test_human_scores_from_label_files():
    """Credited and unlabelled criteria do not move a judge; the labelled ones of a stage speak for
    it."""
    sim = simulate(n_tasks=5, n_rep=1, seed=1)
    whole = cohort(simulated_scorecards(sim))
    run = whole.runs.filter(pl.col("tier") == "lite").row(0, named=True)
    mine = whole.criteria.filter(pl.col("run_id").cast(pl.String) == run["run_id"])
    values = {
        row["criterion"]: row["value"] for row in mine.to_dicts() if row["status"] == "scored"
    }
    drawn = {"probability": 0.5, "stratum": "none", "size": 20}
    same = {
        "run": run["run_id"],
        "annotator": "gold",
        "criteria": {k: values[k] for k in ("S1a", "S2a", "S2b", "S3")},
        "drawn": drawn,
    }
    found, notes = human_scores(whole, read_labels([same]), "gold")
    assert found.rows() == [(run["run_id"], pytest.approx(run["overall"]), 20.0)]
    assert notes == ()
    other = same | {"criteria": {**same["criteria"], "S1a": 1 - values["S1a"]}, "drawn": None}
    moved, notes = human_scores(whole, read_labels([other]), "gold")
    shift = 50 * 0.25 * (1 - 2 * values["S1a"]) * 3 / 6
    assert moved["human"].to_list() == [pytest.approx(run["overall"] + shift)], (
        "three of six criteria are credited in lite"
    )
    assert "convenience" in notes[0]
    assert human_scores(whole, read_labels([]), "gold")[0].is_empty()


def test_a_faultless_judge_is_not_moved():
    rng = np.random.default_rng(0)
    judge = rng.normal(60, 20, 400)
    labelled = rng.random(400) < 0.2
    found = judged_mean(
        judge, np.where(labelled, judge, np.nan), labelled, tuned=True, value_range=100
    )
    assert found.value == pytest.approx(judge.mean())
