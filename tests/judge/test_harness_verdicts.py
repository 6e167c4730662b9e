"""The benchmark's own verdicts as labels of an annotator, and a judge held against them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ambjudge.cli import run as command
from ambjudge.judge.trust.harness_verdicts import harness_labels
from ambjudge.judge.trust.human_labels import read_labels
from ambjudge.trajectories.reading.load import load_run

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"
VERDICT = {
    "s1a_plan_md": 1,
    "s1b_plan_pipeline": 0,
    "s1_plan_score": 0.5,
    "s1_rationale": "a plan",
    "s1_failure": "E1",
    "s2a_checkpoint_downloaded": 1,
    "s2_setup_score": 1.0,
    "s3_validate_score": 0.5,
    "s4_inference_score": 1.0,
    "judge_model": "opus",
    "overall_rationale": "fair",
}


UNPARSED = {name: 0 if isinstance(value, int | float) else "" for name, value in VERDICT.items()}
"""What the harness writes for a reply that it cannot parse."""


def rejudged(tmp_path: Path, verdict) -> Path:
    """A segmentation run with the file that the harness's rejudging writes."""
    shutil.copytree(LAYOUTS / "segmentation_stopped", tmp_path / "seg")
    report = {"header": {"task": "kidney"}, "llm_judge": verdict}
    (tmp_path / "seg/detail_report_new-rubrics.json").write_text(json.dumps(report))
    return tmp_path / "seg"


def test_criteria_of_a_rejudged_report(tmp_path):
    labels, problems = harness_labels(load_run(rejudged(tmp_path, VERDICT)))
    assert labels.criteria == {"S1a": 1, "S1b": 0, "S2a": 1, "S3": 0.5}
    assert (labels.annotator, labels.notes, problems) == ("harness", "opus\nfair", [])
    assert "codes" not in labels.model_fields_set


@pytest.mark.parametrize(
    ("change", "criteria", "n_problems"),
    [
        ({"s3_validate_score": 0.2}, {"S1a", "S1b", "S2a"}, 1),
        ({"s1a_plan_md": None, "s2z_more": 1}, {"S1b", "S2a", "S3"}, 2),
        ({"s1_rationale": "", "overall_rationale": ""}, {"S1a", "S1b", "S2a", "S3"}, 0),
        ({"s1a_plan_md": True, "s1b_plan_pipeline": False}, {"S1a", "S1b", "S2a", "S3"}, 0),
        (UNPARSED, None, 1),
    ],
)
def test_what_is_no_verdict_is_left_out_and_said(tmp_path, change, criteria, n_problems):
    labels, problems = harness_labels(load_run(rejudged(tmp_path, {**VERDICT, **change})))
    assert (None if labels is None else set(labels.criteria)) == criteria
    assert len(problems) == n_problems


@pytest.mark.parametrize("name", ["report_generation", "enhancement", "detection"])
def test_reports_without_verdicts_on_criteria(name):
    labels, problems = harness_labels(load_run(LAYOUTS / name))
    assert (labels, len(problems)) == (None, 1)


def test_a_judge_is_compared_with_the_harness(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMBJUDGE_STORE", "none")
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "runs/vqa")
    assert command(["-q", "label", "harness", "runs", "--out", "labels"]) == 0
    labels = read_labels("labels/harness/vqa.json")
    assert labels.criteria["S1a"] == 1
    assert len(labels.criteria) >= 11
    assert command(["-q", "score", "runs", "--out", "cards.jsonl"]) in (0, 1)
    capsys.readouterr()
    assert (
        command(
            ["agreement", "cards.jsonl", "--labels", "labels", "--annotator", "harness", "--json"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["rows"]
