"""The question `brief`: one verdict for all runs with the same brief, and what counts of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.errors import JudgeError
from ambjudge.judge.base import Reply, Request
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.questions.briefs import BRIEF_ITEM, brief_request, read_answer, read_brief
from ambjudge.judge.questions.replies import parse_reply, to_results
from ambjudge.judge.runner import run_sync
from ambjudge.rubrics.load import rubric_for
from ambjudge.trajectories.models import Run
from conversations import converse

BRIEF = (
    "Track: segmentation. OUTPUT. agents_outputs/<id>/dseg.nii.gz with labels 0-2, uint8 or int16,"
    " 2-D like the slice. Values in [0, 2]. Also agents_outputs/volumes.csv."
)


def demand(quote: str, kind: str, *values: str) -> dict:
    return {"quote": quote, "kind": kind, "values": list(values)}


def answered(run: Run, *demands: dict) -> CriterionResult:
    """The verdict that a reply with these demands becomes."""
    request, judge = brief_request(run, rubric_for(run.track, run.task)), ApiJudge("openai/any")
    text = json.dumps({"brief": {"demands": list(demands)}})
    parsed = parse_reply(text, "brief", request.criteria, 0)
    (result,) = to_results(
        parsed, "brief", request.criteria, judge.record(request), judge._quotes(request)
    )
    return result


def test_a_reply_becomes_a_format(tmp_path: Path) -> None:
    run = converse(tmp_path / "run", "Done.", brief=BRIEF)
    read = read_answer(
        answered(
            run,
            demand("agents_outputs/<id>/dseg.nii.gz", "case_file", "dseg.nii.gz"),
            demand("with labels 0-2", "labels", "0", "1", "2"),
            demand("2-D like the slice", "axes", "2"),
            demand("Also agents_outputs/volumes.csv", "file", "volumes.csv"),
            demand("Values in [0, 2]", "range", "0", "2"),
        )
    )
    assert read.rejected == ()
    assert read.output_format.model_dump(exclude_defaults=True) == {
        "case_files": ("dseg.nii.gz",),
        "files": ("volumes.csv",),
        "labels": (0, 1, 2),
        "axes": 2,
        "low": 0.0,
        "high": 2.0,
    }
    assert read.quotes["labels"] == "with labels 0-2"


REJECTED = [
    pytest.param([demand("labels 0 to 9", "labels", "0", "9")], "not in the brief", id="no quote"),
    pytest.param([demand("uint8 or int16", "dtype", "float")], "Input should be", id="no type"),
    pytest.param([demand("with labels 0-2", "labels", "0-2")], "invalid literal", id="no number"),
    pytest.param([demand("Values in [0, 2]", "range", "2")], "not enough values", id="one end"),
    pytest.param(
        [demand("uint8 or int16", "dtype", "uint8"), demand("uint8 or int16", "dtype", "int16")],
        "leaves a choice",
        id="choice",
    ),
]


@pytest.mark.parametrize(("demands", "reason"), REJECTED)
def test_what_does_not_count_is_named(tmp_path: Path, demands: list[dict], reason: str) -> None:
    read = read_answer(answered(converse(tmp_path / "run", "Done.", brief=BRIEF), *demands))
    assert read.output_format.model_dump(exclude_defaults=True) == {}
    assert len(read.rejected) == 1
    assert reason in read.rejected[0]


def test_runs_with_the_same_brief_share_one_question(tmp_path: Path) -> None:
    judge = ApiJudge("openai/any")
    first, second = (
        converse(tmp_path / name, text, brief=BRIEF) for name, text in (("a", "Yes."), ("b", "No."))
    )
    other = converse(tmp_path / "c", "Yes.", brief=BRIEF + " At once.")
    shas = [
        judge.evidence_sha256(brief_request(run, rubric_for(run.track, run.task)))
        for run in (first, second, other)
    ]
    assert shas[0] == shas[1] != shas[2]


class FailingJudge(ApiJudge):
    async def judge(self, request: Request) -> Reply:
        result = CriterionResult.unscored(BRIEF_ITEM.id, "refused", "the provider declined")
        return Reply((result,))


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        pytest.param(RulesJudge(), "cannot read a brief", id="rules"),
        pytest.param(FailingJudge("openai/any"), "refused the provider declined", id="refused"),
    ],
)
def test_a_failure_is_an_error_and_no_format(tmp_path: Path, judge: object, message: str) -> None:
    run = converse(tmp_path / "run", "Done.", brief=BRIEF)
    with pytest.raises(JudgeError, match=message):
        run_sync(read_brief(run, rubric_for(run.track, run.task), judge))
