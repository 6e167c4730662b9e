"""What the public harness (AutoMedBench/AutoMedBench) says of a run, and what follows from it where
files say less."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis.statistics.ranking import failed
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.fired_codes import fired_codes
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from conversations import converse, python
from tiny_runs import of_kind

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"
BOXES = json.dumps({"boxes": [{"class": "rbc", "x1": 0, "y1": 0, "x2": 5, "y2": 5}]})
ANSWER = {
    "predicted_label": "A",
    "predicted_answer": "left",
    "raw_model_output": "left",
    "model_name": "m",
    "runtime_s": 1,
}
MODEL = "from tiny import VLM\nm = VLM.from_pretrained('/w')\nprint(m.generate(x))"


def run_of(folder: Path, track: str, *, report=None, files=None, printed="", code="", submit=None):
    """A run of `track` that executes `code`, sees `printed` and hands in, with these files and this
    report."""
    turns = [python(code or "print(cases)", printed)] if printed or code else []
    turns += [("submit", "", submit)] if submit is not None else []
    return converse(
        folder,
        *turns,
        "Done.",
        task=f"some-{track}-task",
        track=track,
        tier="lite",
        report=report,
        outputs=files,
    )


def steps(s4: float, s5: float, **more) -> dict:
    return {"step_scores": {"s1": None, "s2": None, "s3": None, "s4": s4, "s5": s5}, **more}


@pytest.mark.parametrize(
    ("track", "report", "s4", "s5", "task"),
    [
        (
            "segmentation",
            steps(1.0, 1.0, format={"masks_valid": True}, aggregate={"clinical_score": 0.4}),
            1.0,
            1.0,
            0.4,
        ),
        (
            "segmentation",
            steps(0.375, 0.0, format={"masks_valid": False}, aggregate={"clinical_score": 0.0}),
            0.375,
            0.0,
            0.0,
        ),
        ("segmentation", steps(0.0, 0.0), 0.0, 0.0, 0.0),
        (
            "detection",
            steps(0.5, 0.5, format={"predictions_valid": False}, metrics={"mAP": 0.3}),
            0.5,
            0.5,
            None,
        ),
        ("detection", steps(0.9, 0.5, format={"predictions_valid": False}), None, 0.5, None),
        (
            "detection",
            {"format": {"predictions_valid": False}, "metrics": {"mAP": 0.3}},
            None,
            0.5,
            None,
        ),
        (
            "report_generation",
            {"format": {"reports_valid": False, "completion_rate": 0.5}},
            0.25,
            0.5,
            0.0,
        ),
        (
            "report_generation",
            {"format": {"reports_valid": False, "completion_rate": 0.0}},
            0.0,
            0.0,
            0.0,
        ),
        ("vqa", steps(0.24, 0.5), 0.24, 0.5, None),
        (
            "vqa",
            steps(
                0.24,
                1.0,
                metrics={"completion_rate": 1.0, "parse_rate": 0.5, "model_call_detected": False},
            ),
            0.3,
            1.0,
            None,
        ),
        (
            "vqa",
            steps(0.0, 0.0, metrics={"counts": {"prediction_files": 0, "expected": 8}}),
            0.0,
            0.0,
            0.0,
        ),
    ],
    ids=[
        "all masks",
        "the gate is closed",
        "nothing delivered",
        "malformed boxes",
        "beyond what the flag allows",
        "no step scores",
        "one of two reports",
        "no report valid",
        "step scores alone",
        "parts go first",
        "no answer",
    ],
)
def test_a_report_without_files(tmp_path, track, report, s4, s5, task):
    check = check_outputs(run_of(tmp_path / "run", track, report=report))
    assert (check.s4, check.s5, check.task) == (s4, s5, task)
    assert check.s4_checks.source == "report"
    assert (
        check.s4_bounds == (s4, s4) if s4 is not None else check.s4_bounds[0] < check.s4_bounds[1]
    )


def test_scores_by_another_policy_are_not_taken_over(tmp_path):
    run = run_of(
        tmp_path / "run", "detection", report=steps(0.5, 0.5, format={"predictions_valid": False})
    )
    assert check_outputs(run, policy=Policy(malformed="zero")).s4 is None


def test_step_scores_go_before_the_submit_answer(tmp_path):
    submit = {"complete": True, "missing_files": [], "patients_checked": 2}
    check = check_outputs(
        run_of(tmp_path / "run", "detection", report=steps(0.5, 0.5), submit=submit)
    )
    assert (check.s4, check.s5, check.s4_checks.source) == (0.5, 0.5, "report")


def test_files_of_unknown_cases_leave_the_score_to_the_report(tmp_path):
    run = run_of(
        tmp_path / "run", "detection", files={"p1/prediction.json": BOXES}, report=steps(0.25, 0.0)
    )
    check = check_outputs(run)
    assert (check.s4, check.s5, check.s4_checks.source) == (0.25, 0.0, "files")


@pytest.mark.parametrize(
    ("submit", "printed", "completion", "s4"),
    [
        ({"missing_predictions": ["p_01/prediction.json"], "cases_total": 4}, "", 0.75, 0.375),
        (
            {"complete": False, "missing_files": ["p_01/prediction.json"]},
            "p_01\np_02\np_03\np_04\n",
            0.75,
            0.375,
        ),
        ({"complete": False, "missing_files": ["p_01/prediction.json"]}, "", None, None),
        ({"missing_predictions": ["p_01/prediction.json"], "cases_total": 1}, "", 0.0, 0.0),
        ({"complete": True, "missing_files": []}, "", 1.0, None),
    ],
    ids=["a count", "a listing", "missing files alone", "all missing", "complete"],
)
def test_the_submit_answer_alone(tmp_path, submit, printed, completion, s4):
    check = check_outputs(run_of(tmp_path / "run", "detection", submit=submit, printed=printed))
    assert (check.s4_checks.completion, check.s4) == (completion, s4)
    assert check.s5_checks.format_valid is (None if completion == 1 else False)


@pytest.mark.parametrize(
    "submit", [None, {"cases_total": 4, "missing_predictions": ["p_04/prediction.json"]}]
)
@pytest.mark.parametrize("extra", ["p_09", "p_01_copy"])
def test_an_extra_folder_is_no_expected_case(tmp_path, submit, extra):
    files = {f"{case}/prediction.json": BOXES for case in ("p_01", "p_02", "p_03", extra)}
    run = run_of(
        tmp_path / "run",
        "detection",
        files=files,
        printed="p_01\np_02\np_03\np_04\n",
        submit=submit,
    )
    check = check_outputs(run)
    assert (check.s4_checks.completion, check.s4_checks.expected_cases) == (0.75, 4)
    assert {fact.case for fact in of_kind(check, "extra")} == {extra}


def test_a_listing_that_was_cut_names_no_extra_folders(tmp_path):
    files = {f"p_{i:02d}/prediction.json": BOXES for i in range(1, 10)}
    check = check_outputs(
        run_of(tmp_path / "run", "detection", files=files, printed="p_01\np_02\np_03\n")
    )
    assert (check.s4_checks.completion, check.s4_checks.expected_cases) == (1.0, 9)


@pytest.mark.parametrize(
    ("accuracy", "codes"),
    [(0.0, {"S4:E3"}), (0.3, {"S4:E5"})],
    ids=["collapsed", "some are right"],
)
def test_an_accuracy_that_collapsed_goes_before_malformed_answers(tmp_path, accuracy, codes):
    files = {
        f"q_{i}/answer.json": json.dumps({**ANSWER, "question_id": f"q_{i}"}) for i in range(3)
    }
    files["q_3/answer.json"] = json.dumps({**ANSWER, "question_id": "q_3", "runtime_s": -1})
    report = {
        "n_patients": 4,
        "task_metrics": {"accuracy": accuracy},
        "task_score": {"score": accuracy},
    }
    run = run_of(tmp_path / "run", "vqa", files=files, report=report, code=MODEL)
    check = check_outputs(run)
    assert check.s4_checks.format_valid is False
    steps = fired_codes(code_context(run, segment(run), check.s4_checks), "harness")
    assert {f"{code.stage}:{code.code}" for code in steps} == codes


@pytest.mark.parametrize(
    ("f1", "likeness", "codes"),
    [(0.2, 0.2, {"S4:E3"}), (0.2, 0.3, set()), (0.25, 0.2, set()), (0.2, None, set())],
)
def test_weak_reports_are_a_logic_failure(tmp_path, f1, likeness, codes):
    report = {
        "format": {"reports_valid": True, "completion_rate": 1.0},
        "task_score": 0.2,
        "diagnostic_metrics": {"observation_f1": f1, "report_similarity": likeness},
    }
    run = run_of(tmp_path / "run", "report_generation", report=report, code="print(1)")
    steps = fired_codes(code_context(run, segment(run), check_outputs(run).s4_checks), "harness")
    assert {f"{code.stage}:{code.code}" for code in steps} == codes


@pytest.mark.parametrize("missing", [True, False], ids=["absent", "there"])
def test_artefacts_of_validation_lie_beside_the_answers(tmp_path, missing):
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "run")
    path = tmp_path / "run/process/conversation.json"
    conversation = json.loads(path.read_text())
    conversation["messages"][0]["content"] += (
        " S3 leaves `answer_postprocess.py` and `s3_calibration.json`."
    )
    path.write_text(json.dumps(conversation))
    if missing:
        (tmp_path / "run/outputs/s3_calibration.json").unlink()
    run = load_run(tmp_path / "run")
    check = check_outputs(run)
    assert {stage: cap.value for stage, cap in check.stage_caps.items()} == (
        {"S3": 0.5} if missing else {}
    )
    codes = {
        code.code
        for code in fired_codes(code_context(run, segment(run), check.s4_checks), "harness")
    }
    assert ("E8" in codes) is missing


@pytest.mark.parametrize("name", ["report_generation", "segmentation_stopped", "enhancement"])
def test_runs_in_the_harness_layouts_score_what_it_scored(name):
    run = load_run(LAYOUTS / name)
    check = check_outputs(run)
    assert (check.s4, check.s5) == (run.report.step_scores["S4"], run.report.step_scores["S5"])
    assert check.task == run.report.task_score


def test_items_of_report_generation_are_judged_alone():
    rubric = load_rubric("report_generation")
    assert not any(item.requires for stage in ("S1", "S2", "S3") for item in rubric.criteria(stage))


@pytest.mark.parametrize(
    ("track", "completed", "s5", "disqualified", "fails"),
    [
        ("vqa", False, 1.0, False, False),
        ("vqa", False, 0.5, False, True),
        ("vqa", True, 0.0, True, True),
        ("vqa", True, None, False, False),
        ("detection", False, 1.0, False, True),
        ("detection", True, 1.0, False, False),
    ],
    ids=[
        "one answer missing",
        "most are invalid",
        "breach",
        "S5 unknown",
        "detection, one missing",
        "detection",
    ],
)
def test_a_submission_of_answers_fails_when_half_are_invalid(
    track, completed, s5, disqualified, fails
):
    row = {
        "track": track,
        "completed": completed,
        "disqualified": disqualified,
        "S5": s5,
        "task_score": 0.4,
        "completion": 0.9,
    }
    table = pl.DataFrame([row], schema_overrides={"S5": pl.Float64})
    assert table.select(failed().alias("failed"))["failed"].to_list() == [fails]
