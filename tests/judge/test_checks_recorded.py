"""S4, S5 and Task of every recorded run, from its files, equal what the harness reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.judge.scoring.formulas import apply_breach
from ambjudge.trajectories.models import Outputs
from ambjudge.trajectories.reading.load import load_run
from tiny_runs import of_kind

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUNS = sorted(path.name for path in (RECORDED / "runs").iterdir())


def recorded(name: str):
    return load_run(RECORDED / "runs" / name)


@pytest.mark.parametrize("public", [None, RECORDED / "public"], ids=["alone", "with public inputs"])
@pytest.mark.parametrize("name", RUNS)
def test_recorded_scores_are_reproduced(name, public):
    run = recorded(name)
    check = check_outputs(run, public=public)
    scores, task = {"S4": check.s4, "S5": check.s5}, check.task
    if run.status.disqualified:
        zeroed = apply_breach(scores, {}, task, "zero-all", "S4")
        scores, task = zeroed.scores, zeroed.task
    assert scores["S4"] == pytest.approx(run.report.step_scores["S4"])
    assert scores["S5"] == pytest.approx(run.report.step_scores["S5"])
    assert task == run.report.task_score
    assert check.s4_checks.source == "files"
    assert check.warnings == ()
    if public is not None:
        assert check.s4_checks.cases_from == "public"


@pytest.mark.parametrize("name", RUNS)
def test_the_report_alone_gives_the_same_scores(name):
    run = recorded(name)
    with_files, without = (
        check_outputs(run),
        check_outputs(run.model_copy(update={"outputs": Outputs()})),
    )
    assert (without.s4, without.s5, without.task) == pytest.approx(
        (with_files.s4, with_files.s5, with_files.task)
    )
    assert without.s4_checks.source == "report"


@pytest.mark.parametrize("name", RUNS)
def test_without_a_report_files_still_score_s4_and_nothing_is_guessed(name):
    run = recorded(name)
    check, full = check_outputs(run.model_copy(update={"report": None})), check_outputs(run)
    assert check.s4 == pytest.approx(full.s4)
    assert check.s5_bounds[0] <= full.s5 <= check.s5_bounds[1]
    assert check.task_from in ({"policy"} if run.status.disqualified else {None, "gate"})


def test_submit_answers_alone_bound_s4():
    blind = {"report": None, "outputs": Outputs()}
    check = check_outputs(recorded("kidney-lite-01").model_copy(update=blind))
    assert (check.s4, check.s4_bounds, check.s4_checks.source) == (None, (0.5, 1.0), "trace")
    half = check_outputs(recorded("ldct-lite-03").model_copy(update=blind))
    assert (half.s4, half.s4_checks.completion) == (0.25, 0.5)
    assert {fact.case for fact in of_kind(half, "missing")} == {
        f"patient_{i:04d}" for i in range(6, 11)
    }
    nobody = check_outputs(recorded("vqa-std-01").model_copy(update=blind))
    assert (nobody.s4, nobody.s4_bounds, nobody.s4_checks.source) == (None, (0.0, 1.0), None)
