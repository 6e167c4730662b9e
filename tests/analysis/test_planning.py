"""Tasks, repeats and labels for a result, held against the textbook's power of the paired t
test."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis import code_effects, simulate, variance_components
from ambjudge.analysis.statistics.power_analysis import (
    ErrorComponents,
    LabelErrorComponents,
    difference_noise,
    effect_noise,
    plan_sentences,
    plan_sizes,
    power,
    t_test_power,
)
from ambjudge.cli import run
from ambjudge.errors import InputError
from scipy import stats
from statsmodels.stats.power import TTestPower

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


@pytest.fixture(scope="module")
def table():
    return simulate(seed=1).frame()


@pytest.mark.parametrize("tasks", [3, 24, 90])
@pytest.mark.parametrize("effect", [0.05, 0.2, 0.4])
def test_power_is_that_of_the_paired_t_test(tasks: int, effect: float) -> None:
    expected = TTestPower().power(effect, tasks, 0.05)
    assert t_test_power(effect, 1 / math.sqrt(tasks), tasks - 1) == pytest.approx(
        expected, abs=1e-6
    )


@pytest.mark.parametrize(("effect", "target"), [(0.3, 0.8), (0.5, 0.9), (1.2, 0.8), (0.01, 0.5)])
def test_tasks_are_those_of_the_textbook(effect: float, target: float) -> None:
    """Nothing varies within a task: the number of pairs that a paired t test needs."""
    found = plan_sizes(ErrorComponents(1.0, 0.0, 12, 5, 1), effect, target=target)
    assert found.tasks == math.ceil(TTestPower().solve_power(effect, None, 0.05, target))
    assert found.repeats in (None, 1), "repeats are no help, or none are needed"


def test_power_never_falls_with_more_tasks() -> None:
    """Where the noncentral t underflows it must not become NaN, which would send the search
    astray."""
    noise = ErrorComponents(100.0, 500.0, 24, 12, 2)
    found = [t_test_power(5, noise.se(tasks, 12), tasks - 1) for tasks in range(2, 3000, 7)]
    assert found == sorted(found)


def test_more_repeats_do_what_more_tasks_cannot_be_had_for(table) -> None:
    noise = difference_noise(variance_components(table))
    found = plan_sizes(noise, 6.0)
    for tasks, repeats in ((found.tasks, noise.repeats), (noise.tasks, found.repeats)):
        assert t_test_power(6, noise.se(tasks, repeats), tasks - 1) >= 0.8
    assert t_test_power(6, noise.se(found.tasks - 1, noise.repeats), found.tasks - 2) < 0.8
    at = power(noise, tasks=(noise.tasks,), repeats=(12,), size=6).row(0, named=True)
    assert at["power"] == pytest.approx(found.power_now)


@pytest.mark.slow
def test_the_effect_of_a_code_has_the_error_it_has_in_this_cohort(table) -> None:
    noise = effect_noise(table, "E3")
    row = code_effects(table).row(
        by_predicate=(pl.col("code") == "E3") & (pl.col("population") == "new"), named=True
    )
    assert noise.se(noise.tasks, noise.repeats) == pytest.approx(row["se"])
    assert noise.se(4 * noise.tasks, noise.repeats) == pytest.approx(row["se"] / 2)
    assert noise.se(noise.tasks, 10**9) < row["se"]


def test_labels_add_their_error() -> None:
    """Without noise between repeats: se^2 = between / T + 2 spread / labels."""
    noise, spread = ErrorComponents(24.0, 0.0, 24, 1, 1), 50.0
    judged = LabelErrorComponents("a mean", 0.0, spread, 100, "labelled runs of each agent")
    found = plan_sizes(noise, 4.0, judged=judged)
    assert found.labels is not None
    for labels, enough in ((found.labels, True), (found.labels - 1, False)):
        se = math.sqrt(1 + 2 * spread / labels)
        assert bool(TTestPower().power(4 / (se * math.sqrt(24)), 24, 0.05) >= 0.8) is enough
    assert "labelled runs of each agent" in plan_sentences(found, "A difference", "")[-1]
    assert plan_sizes(noise, 1.0, judged=judged).labels is None
    assert judged.half_width(10) == pytest.approx(stats.t.ppf(0.975, 9) * math.sqrt(5))
    assert (
        judged.half_width(judged.labels_for(1.0))
        <= 1
        < judged.half_width(judged.labels_for(1.0) - 1)
    )


def test_no_repeats_are_nothing_to_plan_from(table) -> None:

    once = table.filter((pl.col("repeat") == 1) & (pl.col("tier") == table["tier"][0]))
    with pytest.raises(InputError, match="no repeats"):
        plan_sizes(difference_noise(variance_components(once)), 5)
    with pytest.raises(InputError, match="no effect of E3"):
        effect_noise(once, "E3")


def test_the_command(table, tmp_path, capsys) -> None:
    cards = tmp_path / "pilot.parquet"
    table.write_parquet(cards)
    assert run(["power", str(cards), "--difference", "5"]) == 0
    text = capsys.readouterr().out
    assert "A difference of two agents in mean overall of 5 points: 24 tasks with 12 runs" in text
    assert "Power .8 takes" in text
    assert run(["power", str(cards), "--code", "E3", "--effect", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["code"], found["plan"]["noise"]["tasks"]) == ("E3", 24)
    assert {"tasks", "repeats", "power", "mde80"} <= set(found["rows"][0])


def test_labels_for_an_agreement_go_with_one_over_its_square(table, tmp_path, capsys) -> None:
    cards, labels = tmp_path / "pilot.parquet", tmp_path / "labels"
    table.write_parquet(cards)
    labels.mkdir()
    for i, row in enumerate(table.sample(100, seed=1).iter_rows(named=True)):
        said = row["E3"] != (i % 10 == 0)
        label = {
            "run": row["run_id"],
            "annotator": "gold",
            "codes": {"E3": {"turns": [], "why": ""}} if said else {},
        }
        (labels / f"{i}.json").write_text(json.dumps(label), "utf-8")
    need = []
    for size in ("0.04", "0.02"):
        asked = ("--labels", str(labels), "--agreement", "E3", "--half-width", size)
        assert run(["power", str(cards), *asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        need.append(found["labels"])
    assert "for the agreement on E3 takes" in found["sentences"][0]
    assert need[1] / need[0] == pytest.approx(4, rel=0.05)
    assert (
        run(
            [
                "power",
                str(cards),
                "--labels",
                str(labels),
                "--agreement",
                "E9",
                "--half-width",
                "0.1",
            ]
        )
        == 2
    )


WRONG = [
    pytest.param(
        ("--half-width", "1"), "the estimate that the labels correct is missing", id="no labels"
    ),
    pytest.param((), "the difference or effect to detect is missing", id="nothing"),
    pytest.param(("--code", "E3"), "the difference or effect to detect is missing", id="no effect"),
    pytest.param(
        ("--difference", "5", "--outcome", "S1"), "S1 goes from 0 to 1", id="off the scale"
    ),
    pytest.param(
        ("--difference", "5", "--labels", RECORDED / "labels"),
        "labelled runs have overall",
        id="few labels",
    ),
]


@pytest.mark.parametrize(("args", "message"), WRONG)
def test_what_cannot_be_planned_says_why(table, tmp_path, capsys, args, message: str) -> None:
    cards = tmp_path / "pilot.parquet"
    table.write_parquet(cards)
    assert run(["power", str(cards), *map(str, args)]) == 2
    assert message in capsys.readouterr().err
