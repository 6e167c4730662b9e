"""Figures of a judge from what it said of labelled runs, and judges over real HTTP measured on
recorded runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.errors import InputError
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.scope import Scope
from ambjudge.judge.store import open_store
from ambjudge.judge.trust.against_labels import Selection, against_labels, labels_by_run
from ambjudge.judge.trust.comparison import (
    JudgedCodes,
    JudgedItem,
    RunComparison,
    compare_with_rules,
    figures,
)
from ambjudge.judge.trust.human_labels import import_labels
from ambjudge.trajectories.reading.load import load_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
GOLD = RECORDED / "labels" / "gold"


def item(id: str, label: float, value: float | None, rules: float = 1.0) -> JudgedItem:
    return JudgedItem(id, id[:2], label, value, value is None, rules, 1.0, presumed=id == "S3")


def codes(labelled: str, reading: str, facts: str = "", **more) -> JudgedCodes:
    read_codes, fact_codes = frozenset(reading.split()), frozenset(facts.split())
    return JudgedCodes(
        frozenset(labelled.split()),
        {"reading": read_codes, "facts": fact_codes, "both": read_codes | fact_codes},
        **more,
    )


def test_criteria_beside_labels_rules_and_always_met() -> None:
    result = figures(
        [
            RunComparison("a", (item("S1a", 1, 1), item("S1b", 0, 0), item("S3", 0.5, 0.5, 0.5))),
            RunComparison("b", (item("S1a", 0, 1, 0.0), item("S1b", 0, None), item("S3", 1, 0.5))),
            RunComparison("c"),
        ]
    ).criteria
    assert result.overall.equal.value == 3 / 6
    assert result.overall.equal.n == 6
    assert result.overall.unscored == 1
    # scored pairs (label, said): (1,1) (0,0) (.5,.5) (0,1) (1,.5): observed 3/5, chance (2*1 + 1*2
    # + 2*2) / 25
    assert result.overall.kappa.value == pytest.approx((3 / 5 - 8 / 25) / (1 - 8 / 25))
    assert result.overall.kappa.n == 5
    assert result.by_stage["S1"].equal.value == 2 / 4
    assert set(result.by_stage) == {"S1", "S3"}
    assert result.by_criterion["S3"].equal.value == 1 / 2
    assert result.rules.equal.value == 4 / 6
    assert (result.rules_scored.value, result.rules_scored.n) == (
        2 / 4,
        4,
    ), "what is presumed is told apart"
    assert result.over_rules.value == pytest.approx(-1 / 6)
    assert result.always_met.value == 2 / 6
    assert result.over_always_met.value == pytest.approx(1 / 6)
    assert result.calibration is None


HALF = (1, 1, 1, 0, 0, 0)
"""Of six criteria the rules judge is right about three."""
VERDICTS = [
    pytest.param((1, 1, 1, 1, 1, 0), 6, "better", id="better"),
    pytest.param((1, 0, 0, 0, 0, 0), 6, "worse", id="worse"),
    pytest.param((0, 0, 0, 1, 1, 1), 6, "undecided", id="as often, on others"),
    pytest.param((1, 1, 1, 1, 1, 0), 4, "undecided", id="too few runs"),
    pytest.param(HALF, 6, "undecided", id="the same everywhere"),
]


@pytest.mark.parametrize(("judge", "n_runs", "verdict"), VERDICTS)
def test_better_than_the_rules_judge_only_if_the_interval_says_so(
    judge: tuple[int, ...], n_runs: int, verdict: str
) -> None:
    runs = []
    for number in range(n_runs):
        # Runs differ in how many criteria are labelled, or there were no spread.
        size = 6 - number % 2
        items = [
            item(f"S1{letter}", 1, float(value), float(rules))
            for letter, value, rules in zip("abcdef", judge, HALF, strict=True)
        ]
        runs.append(RunComparison(str(number), tuple(items[:size])))
    result = figures(runs)
    assert compare_with_rules(result.criteria, result.runs) == verdict
    assert compare_with_rules(None, 100) == "undecided"


def test_codes_by_origin() -> None:
    result = figures(
        [
            RunComparison(
                "a", codes=codes("E3 E5", "E3", "E5", quotes=(True,), confidences=((0.9, True),))
            ),
            RunComparison(
                "b",
                codes=codes(
                    "",
                    "E3",
                    unproven=1,
                    quotes=(True, False),
                    confidences=((0.6, False),),
                    cannot_tell=2,
                ),
            ),
            RunComparison("c", codes=codes("", "")),
            RunComparison("nobody looked"),
        ]
    )
    reading, both = result.codes["reading"], result.codes["both"]
    assert (reading.micro.precision.value, reading.micro.recall.value, reading.micro.f1.value) == (
        1 / 2,
        1 / 2,
        1 / 2,
    )
    assert reading.by_code["E3"].f1.value == pytest.approx(2 / 3)
    assert reading.by_code["E5"].recall.value == 0
    assert reading.by_code["E1"].f1.value is None
    assert both.micro.f1.value == pytest.approx(4 / 5)
    assert (both.clean.value, both.clean.n) == (1 / 2, 2)
    assert result.codes["facts"].clean.value == 0
    assert (result.reading.unproven, result.reading.cannot_tell, result.reading.quotes.value) == (
        1,
        2,
        pytest.approx(2 / 3),
    )
    assert result.reading.calibration.brier.value == pytest.approx((0.01 + 0.36) / 2)


def test_nothing_labelled_is_nothing_measured() -> None:
    result = figures([])
    assert (result.runs, result.criteria, result.codes, result.reading, result.stages) == (
        0,
        None,
        None,
        None,
        None,
    )


def test_stages_by_reading_and_by_rules() -> None:
    turns = (("S1", "S1", "S1"), ("S2", "S2", "S1"), ("S2", "S1", "S2"), ("S5", "S5", "S5"))
    result = figures([RunComparison("a", stages=turns)]).stages
    assert result["reading"].accuracy.value == result["rules"].accuracy.value == 3 / 4
    assert result["reading"].macro_f1.value == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


def test_gold_stands_before_others_wherever_labels_come_from(tmp_path: Path) -> None:
    result = labels_by_run(RECORDED / "labels")
    assert {labels.annotator for labels in result.values()} == {"gold"}
    assert {x.annotator for x in labels_by_run(RECORDED / "labels", "a2").values()} == {"a2"}
    with open_store(tmp_path / "kept.db") as store:
        for labels in result.values():
            import_labels(store, labels)
    assert labels_by_run(tmp_path / "kept.db") == result
    with pytest.raises(InputError, match="no labels of nobody"):
        labels_by_run(RECORDED / "labels", "nobody")


async def test_a_reader_that_cries_wolf_and_one_that_does_not(judge_server) -> None:
    """bccd-std-01 has E5, crc-lite-01 is clean: a judge that says E5 of both is right about one."""
    judge = ApiJudge("m", judge_server.url, retry=Retry(attempts=1))
    runs = [load_run(RECORDED / "runs" / name) for name in ("crc-lite-01", "bccd-std-01")]
    labels = labels_by_run(GOLD)
    judge_server.script = ["codes:E5"]
    chosen = Selection(
        labels,
        Scope(public=RECORDED / "public", questions=QuestionSet(stages="judge", ask_all=True)),
    )
    result = (await against_labels(judge, runs, chosen)).all_runs
    assert result.usage.calls == judge_server.count == 2 * 5
    assert result.codes["reading"].micro.precision.value == 1 / 2
    assert result.reading.quotes.value == 1
    assert result.reading.calibration.n == 2 * 5
    assert result.criteria.over_always_met.value == 0, "it is always content"
    plan = sum(stage == "S1" for run in runs for stage in labels[run.id].stages.values())
    assert result.stages["reading"].accuracy.value == pytest.approx(
        plan / sum(len(run.turns) for run in runs)
    )
    judge_server.script = ["prose"]
    result = (await against_labels(judge, runs, chosen)).all_runs
    assert result.reading.unread == 2 * 5
    assert result.codes["both"] == result.codes["facts"], "who is not read is diagnosed by facts"
    assert result.criteria.overall.unscored == result.criteria.overall.equal.n
    assert result.criteria.overall.kappa.value is None


async def test_who_edits_prompts_looks_at_dev_only(judge_server) -> None:
    runs = [load_run(path) for path in sorted((RECORDED / "runs").iterdir())[:6]]
    labels = labels_by_run(GOLD)
    dev = await against_labels(RulesJudge(), runs, Selection(labels, splits=("dev",)))
    both = await against_labels(RulesJudge(), runs, Selection(labels))
    assert dev.columns["dev"] == both.columns["dev"] == dev.all_runs
    assert set(dev.columns) == {"dev"}
    assert both.columns["dev"].runs + both.columns["test"].runs == both.all_runs.runs == 6
    assert both.all_runs.codes.keys() == {"facts"}, "the rules read no codes"
    again = await against_labels(RulesJudge(), runs[::-1], Selection(labels))
    assert again == both
