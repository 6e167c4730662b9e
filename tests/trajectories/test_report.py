"""detail_report.json: every old and new name of a field is read as the same thing."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.trajectories.reading.harness_report import (
    parse_report,
    report_identity,
    report_runtime,
    submit_answer,
)

PATH = Path("detail_report.json")


def read(data):
    warnings: list[str] = []
    return parse_report(data, PATH, warnings), warnings


NAMES = {
    # name: (report, field, value)
    "task_score": ({"task_score": 0.4}, "task_score", 0.4),
    "clinical_score": ({"clinical_score": 0.4}, "task_score", 0.4),
    "clinical_score object": ({"clinical_score": {"score": 0.4}}, "task_score", 0.4),
    "clinical.clinical": ({"clinical": {"clinical": 0.4}}, "task_score", 0.4),
    "aggregate.task_score": ({"aggregate": {"task_score": 0.4}}, "task_score", 0.4),
    "task_score before clinical": ({"clinical_score": 0.1, "task_score": 0.4}, "task_score", 0.4),
    "null is passed over": ({"task_score": None, "clinical_score": 0.4}, "task_score", 0.4),
    "agentic_score.score": ({"agentic_score": {"score": 0.7}}, "agentic", 0.7),
    "agentic_score number": ({"agentic_score": 0.7}, "agentic", 0.7),
    "aggregate.agentic_score": ({"aggregate": {"agentic_score": 0.7}}, "agentic", 0.7),
    "agentic_tier.overall_score": ({"agentic_tier": {"overall_score": 0.5}}, "overall", 50),
    "aggregate.overall_score": ({"aggregate": {"overall_score": 0.5}}, "overall", 50),
    "output_format_valid": ({"format": {"output_format_valid": True}}, "output_format_valid", True),
    "masks_valid": ({"masks_valid": False}, "output_format_valid", False),
    "masks_valid in metrics": ({"metrics": {"masks_valid": True}}, "output_format_valid", True),
    "submission_format_valid": ({"submission_format_valid": True}, "submission_format_valid", True),
    "submission_valid": ({"format": {"submission_valid": False}}, "submission_format_valid", False),
    "decision_csv_valid": ({"decision_csv_valid": True}, "decision_csv_valid", True),
    "csv_valid": ({"format": {"csv_valid": True}}, "decision_csv_valid", True),
    "n_valid": ({"n_valid": 3}, "n_valid", 3),
    "n_valid in scores": ({"scores": {"n_valid": 3}}, "n_valid", 3),
    "n_patients": ({"n_patients": 8}, "n_expected", 8),
    "completion_rate": ({"task_metrics": {"completion_rate": 0.5}}, "completion_rate", 0.5),
    "breached": ({"isolation_breach": {"breached": True, "turn": 4}}, "breached", True),
    "breach turn": ({"isolation_breach": {"breached": True, "turn": 4}}, "breach_turn", 4),
    "medal": ({"medal": "good"}, "medal", "good"),
    "medal_name in agentic_tier": ({"agentic_tier": {"medal_name": "okay"}}, "medal", "okay"),
    "medal_name in metrics": ({"metrics": {"medal_name": "fail"}}, "medal", "fail"),
    "medal_name without its tier": (
        {"metrics": {"medal_tier": 0, "medal_name": "good"}},
        "medal",
        "fail",
    ),
    "medal_name in task_score": (
        {"task_score": {"score": 0.4, "medal_name": "good"}},
        "medal",
        "good",
    ),
    "rating": ({"agentic_tier": {"rating": "B"}}, "rating", "B"),
    "rating in rating": (
        {"rating": {"rating": "C", "tier_name": "matches_classical"}},
        "rating",
        "C",
    ),
    "progress_rate": ({"agentic_score": {"score": 0.5, "progress_rate": 0.25}}, "progress", 0.25),
    "pass rate": ({"pass_rate": {"pass_rate": 0.25, "n_scored": 4}}, "pass_rate", 0.25),
    "control": ({"shuffle": {"mean_ssim": 0.2}}, "shuffled", {"mean_ssim": 0.2}),
    "predictions_valid": (
        {"format": {"predictions_valid": False, "submission_valid": True}},
        "output_format_valid",
        False,
    ),
    "reports_valid": ({"format": {"reports_valid": True}}, "output_format_valid", True),
    "breach by the orchestrator": ({"orchestrator": {"isolation_breach": True}}, "breached", True),
    "no breach by the orchestrator": (
        {"orchestrator": {"isolation_breach": False}},
        "breached",
        False,
    ),
    "disqualified by rating": (
        {"rating": {"rating": "F", "tier_name": "disqualified"}},
        "breached",
        True,
    ),
    "disqualified by medal": ({"agentic_tier": {"medal_name": "disqualified"}}, "breached", True),
    "aggregate before clinical": (
        {"clinical": {"clinical": 0.76}, "aggregate": {"clinical_score": 0.0}},
        "task_score",
        0.0,
    ),
    "where the task score stood": (
        {"clinical": {"clinical": 0.76}, "scores": {"mean_ssim": 0.9}},
        "task_score_from",
        "clinical.clinical",
    ),
    "nothing delivered by S4": ({"step_scores": {"s4": 0.0}}, "n_outputs", 0),
    "nothing delivered by completion": ({"format": {"completion_rate": 0.0}}, "n_outputs", 0),
    "S4 of a disqualified run": (
        {"step_scores": {"s4": 0.0}, "isolation_breach": {"breached": True}},
        "n_outputs",
        None,
    ),
    "files counted": ({"metrics": {"counts": {"prediction_files": 7}}}, "n_outputs", 7),
    "number as text": ({"task_score": "0.4"}, "task_score", 0.4),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    data, field, value = NAMES[name]
    report, warnings = read(data)
    assert getattr(report, field) == value
    assert warnings == []


@pytest.mark.parametrize("key", ["diagnostic_metrics", "task_metrics", "metrics", "scores"])
def test_metrics(key):
    assert read({key: {"lesion_dice": 0.3, "nested": {"a": 1}}})[0].metrics == {
        "lesion_dice": 0.3,
        "nested": {"a": 1},
    }


STEPS = {
    "new": {"agentic_score": {"step_scores": {"s1": 1, "s4": 0.5, "s5": None}}},
    "old": {"step_scores": {"S1": 1, "S4": 0.5}},
    "objects": {"step_scores": {"s1": {"score": 1}, "s4": {"score": 0.5}}},
}


@pytest.mark.parametrize("name", STEPS)
def test_step_scores(name):
    assert read(STEPS[name])[0].step_scores == {
        "S1": 1.0,
        "S2": None,
        "S3": None,
        "S4": 0.5,
        "S5": None,
    }


ODD = {
    "percentage": ({"task_score": 55}, "task_score"),
    "negative": ({"task_score": -0.1}, "task_score"),
    "word": ({"task_score": "high"}, "task_score"),
    "truth": ({"task_score": True}, "task_score"),
    "list": ({"task_score": [1]}, "task_score"),
    "overall in points": ({"overall_score": 55}, "overall"),
    "step above 1": ({"agentic_score": 1.01}, "agentic"),
}


@pytest.mark.parametrize("name", ODD)
def test_values_out_of_range_are_unknown_with_a_warning(name):
    data, field = ODD[name]
    report, warnings = read(data)
    assert getattr(report, field) is None
    assert len(warnings) == 1


HOSTILE = {
    "null": None,
    "list": [],
    "text": "x",
    "number": 3,
    "empty": {},
    "blocks of other kinds": {
        key: [1, "x"]
        for key in (
            "agentic_score",
            "step_scores",
            "metrics",
            "scores",
            "format",
            "isolation_breach",
            "runtime",
            "header",
            "aggregate",
            "clinical",
        )
    },
    "numbers everywhere": dict.fromkeys(
        (
            "agentic_score",
            "step_scores",
            "metrics",
            "format",
            "isolation_breach",
            "runtime",
            "header",
            "medal",
            "n_valid",
        ),
        -3,
    ),
    "truths": dict.fromkeys(
        ("n_valid", "n_patients", "medal", "task_score", "overall_score"), True
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_reports(name):
    data = HOSTILE[name]
    report, warnings = read(data)
    assert (report is None) == (not isinstance(data, dict))
    assert report is not None or warnings
    assert isinstance(report_identity(data), dict)
    assert set(report_runtime(data).values()) == {None}


def test_time_and_tokens_that_the_orchestrator_put_there():
    data = {
        "orchestrator": {"agent_wall_s": 61.25},
        "agent_summary": {"elapsed_s": 60, "prompt_tokens": 10, "completion_tokens": "2"},
    }
    assert report_runtime(data) == {
        "wall_time_s": 61.25,
        "input_tokens": 10,
        "output_tokens": 2,
        "cost_usd": None,
    }


ANSWERS = {
    # the branch's answer to submit_results: (files missing, cases, complete)
    "eval_seg": (
        {"missing_masks": ["p1/organ.nii.gz", "p2/lesion.nii.gz"], "complete": False},
        ["p2/lesion.nii.gz"],
        None,
        False,
    ),
    "eval_seg, only organs": (
        {"missing_masks": ["p1/organ.nii.gz"], "complete": False, "patients_checked": 2},
        [],
        2,
        True,
    ),
    "eval_det2d": (
        {"missing_predictions": ["p1/prediction.json"], "complete": False, "patients_checked": 3},
        ["p1/prediction.json"],
        3,
        False,
    ),
    "eval_report_gen": (
        {"cases_total": 4, "missing_cases": ["C1"], "completion_rate": 0.5},
        ["C1/report.txt"],
        4,
        False,
    ),
    "eval_image_enhancement": ({"n_valid": 4, "n_patients_expected": 4}, None, 4, True),
    "plain": ({"missing_files": [], "complete": True, "patients_checked": 1}, [], 1, True),
    "odd": (
        {"missing_masks": 3, "n_patients_expected": "x", "n_valid": [], "missing_cases": [1, None]},
        [],
        "x",
        None,
    ),
    "none": (None, None, None, None),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_to_a_submission(name):
    answer, missing, cases, complete = ANSWERS[name]
    unified = submit_answer(answer)
    assert unified.get("missing_files") == missing
    assert unified.get("patients_checked") == cases
    assert unified.get("complete") == complete
    assert submit_answer(unified) == unified


def test_runtime():
    data = {
        "runtime": {
            "wall_time_s": 3.5,
            "input_tokens": 10,
            "output_tokens": 2,
            "estimated_cost_usd": 0.1,
        }
    }
    assert report_runtime(data) == {
        "wall_time_s": 3.5,
        "input_tokens": 10,
        "output_tokens": 2,
        "cost_usd": 0.1,
    }
