"""What tests of the store put into it, in their own process and in others."""

from __future__ import annotations

from pathlib import Path

from ambjudge.judge.questions.keys import VerdictKey
from ambjudge.judge.scorecard import CriterionResult
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUBRIC = load_rubric("segmentation")


def recorded_run() -> Run:
    return load_run(RECORDED / "runs" / "kidney-lite-02")


def key(number: int, *, criterion: str = "S1a", evidence: str = "e") -> VerdictKey:
    return VerdictKey(
        criterion_id=criterion, criterion_sha256="c" * 64, evidence_sha256=evidence, judge="tester",
        prompt_sha256=None, parameters="{}", sample=0, sha256=f"{number:064x}",
    )  # fmt: skip


def scored(value: float = 1.0, id: str = "S1a", **more) -> CriterionResult:
    return CriterionResult(id=id, value=value, status="scored", **more)
