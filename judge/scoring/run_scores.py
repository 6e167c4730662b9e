"""The stages of one run, from the judge's replies and the checks of its outputs to scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...rubrics.model import Rubric, StageRubric
from ...trajectories.models import Segmentation, Stage, Status, Tier
from ..card.presumed import presume
from ..card.read_share import Shares, shares
from ..card.stage_results import CriterionResult, StageResult, unscored
from .base import Scores, Scoring, StageScore, reported_stage
from .criteria import apply_requires, split_criteria
from .formulas import Aggregate, Cap

if TYPE_CHECKING:
    from ..base import Reply
    from ..card.fields import TaskFrom
    from ..checks.check_outputs import OutputCheck

Verdicts = Mapping[str, Sequence[CriterionResult]]
"""The results of each judged stage, in the rubric's order."""


@dataclass(frozen=True)
class RunScores:
    """All numbers of a scorecard."""

    stages: dict[str, StageResult]
    total: Aggregate
    task: float | None
    task_from: TaskFrom | None
    shares: Shares


def stage_verdicts(
    rubric: Rubric,
    tier: Tier | None,
    replies: Mapping[str, Reply],
    decided: Mapping[str, CriterionResult],
) -> Verdicts:
    """The results of all criteria of the judged stages, before `with_requirements`.

    They come from the tier, which credits and excludes criteria, from facts (`decided`, by id),
    from the judge, or are presumed because nobody read them.
    """
    verdicts = {}
    for name in rubric.judged_stages:
        reply = replies.get(name)
        judged = () if reply is None else reply.results
        verdicts[name] = _verdicts(rubric.stages[name], tier, judged, decided)
    return verdicts


def without_tools(verdicts: Verdicts) -> Verdicts:
    """The results of the stages that take tools, for an agent that had none: not applicable."""
    detail = "the agent had no tools"
    return {
        stage: tuple(
            CriterionResult(id=result.id, value=None, status="not_applicable", detail=detail)
            for result in verdicts[stage]
        )
        for stage in STAGES_WITH_TOOLS
        if stage in verdicts
    }


def so_far(verdicts: Verdicts) -> Verdicts:
    """The results for a run that still goes on: what is not met yet, or only presumed, is open."""
    return {stage: tuple(map(_so_far, results)) for stage, results in verdicts.items()}


def _so_far(result: CriterionResult) -> CriterionResult:
    is_met = result.status == "scored" and result.value == 1
    is_open = result.status in ("scored", "presumed") and not is_met
    if not is_open and result.reason != "not_read":
        return result
    return CriterionResult.unscored(result.id, "running", _NOT_YET)


def with_requirements(verdicts: Verdicts, rubric: Rubric) -> Verdicts:
    """The results with each criterion set to 0 that requires one which is 0."""
    return {
        name: apply_requires(results, rubric.stages[name].criteria)
        for name, results in verdicts.items()
    }


def _verdicts(
    stage: StageRubric,
    tier: Tier | None,
    judged: Sequence[CriterionResult],
    decided: Mapping[str, CriterionResult],
) -> tuple[CriterionResult, ...]:
    split = split_criteria(stage, tier)
    by_id = {result.id: result for result in unscored(stage.criteria, "judge_error", _NO_RESULT)}
    by_id |= {result.id: result for result in (*split.credited, *split.not_applicable, *judged)}
    by_id |= decided
    return tuple(presume(by_id[criterion.id], criterion) for criterion in stage.criteria)


STAGES_WITH_TOOLS = ("S2", "S3")
"""Setting up and trying out: an agent that can only answer has neither to do."""
_NO_RESULT = "the judge gave no result"
_NOT_YET = "not seen so far, and the run still goes on"


def run_scores(
    scoring: Scoring,
    rubric: Rubric,
    verdicts: Verdicts,
    outputs: OutputCheck,
    status: Status,
    segmentation: Segmentation,
    failures: Mapping[Stage, str],
    reported: Mapping[str, float | None],
) -> RunScores:
    """Score every stage and total them.

    `outputs`: checked by the rules of this scoring. `failures`: the harness code of each stage that
    failed. `reported`: stages without verdicts whose score is the report's, None if it states none.
    """
    scores = _stage_scores(scoring, rubric, verdicts, outputs, reported)
    if status.ended == "running":
        scores = _withheld(scores, verdicts)
    if status.disqualified:
        turn = status.breach_turn
        stage = None if turn is None else segmentation.stage_of(turn)
        scores = scoring.after_breach(scores, turn, stage)
    # Totalled before `reported`: the harness blends tool usage in only after Agentic is computed.
    total = scoring.total(scores.stages, rubric.weights, scores.task)
    if status.ended == "running":
        total = replace(total, agentic=None, overall=None)
    failure_codes = {str(stage): code for stage, code in failures.items()}
    checks = {"S4": outputs.s4_checks, "S5": outputs.s5_checks}
    stages = {
        name: StageResult(
            score=stage.score,
            method=stage.method,
            bounds=stage.bounds,
            failure=failure_codes.get(name),
            cap=None if stage.cap is None else stage.cap.value,
            cap_reason="" if stage.cap is None else stage.cap.reason,
            criteria=tuple(verdicts.get(name, ())),
            checks=checks.get(name),
            parts=dict(stage.parts),
        )
        for name, stage in scoring.reported(scores.stages, outputs).items()
    }
    return RunScores(stages, total, scores.task, scores.task_from, shares(stages, rubric))


def _withheld(scores: Scores, verdicts: Verdicts) -> Scores:
    """The scores of a run that still goes on: only stages with nothing open have one."""
    stages = {}
    for name, stage in scores.stages.items():
        is_open = any(result.status == "unscored" for result in verdicts.get(name, ()))
        if name not in verdicts or is_open:
            stage = replace(stage, score=None, method="withheld")
        stages[name] = stage
    return replace(scores, stages=stages)


def _stage_scores(
    scoring: Scoring,
    rubric: Rubric,
    verdicts: Verdicts,
    outputs: OutputCheck,
    reported: Mapping[str, float | None],
) -> Scores:
    """The scores of the rubric's stages before a breach counts."""
    stages: dict[str, StageScore] = {}
    for name in rubric.judged_stages:
        caps: Sequence[Cap] = [cap for stage, cap in outputs.stage_caps.items() if stage == name]
        if name in reported:
            stages[name] = reported_stage(reported[name], caps)
        else:
            stages[name] = scoring.judged_stage(verdicts[name], rubric.stages[name].criteria, caps)
    stages |= scoring.checked_stages(outputs)
    in_order = {name: stages[name] for name in sorted(rubric.stages)}
    return Scores(in_order, outputs.task, outputs.task_from)
