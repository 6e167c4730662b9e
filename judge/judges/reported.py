"""A judge that repeats what the public harness's own judge said, from the run's report.

Branch eval_vqa and rejudged reports (`detail_report_new-rubrics.json`) hold a verdict on every
criterion (`llm_judge`); the others hold the scores of S1-S3 alone (`agentic_score.step_scores`).
Such a stage has the reported score and no verdicts. With it and `--policy harness`, published
folders give the published Agentic and Overall.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...rubrics.load import rubric_for
from ...rubrics.model import Rubric
from ...trajectories.models import Run, Stage, Tier
from ...trajectories.reading.harness_report import flat_report, step_scores
from ...trajectories.reading.json_bytes import number, read_json, text_or_none
from ...trajectories.reading.layout import REJUDGED_NAME, report_file, run_folder, side_file
from ...trajectories.turns.per_run_cache import once_a_run
from ..base import JUDGED_STAGES, Reply, Request
from ..card.fields import REPORTED
from ..card.stage_results import CriterionResult
from ..scoring.criteria import split_criteria
from ..scoring.run_scores import Verdicts

_CRITERION_FIELD = re.compile(r"s([1-3])([a-z])_\w{1,60}")
_S3_FIELD = "s3_validate_score"
"""The field of rubrics in which S3 is one criterion."""
_STAGE_FIELDS: Mapping[Stage, str] = {
    "S1": "s1_plan_score",
    "S2": "s2_setup_score",
    "S3": _S3_FIELD,
}


@dataclass(frozen=True)
class ReportedVerdicts:
    """What a report says of S1-S3."""

    file: str = ""
    """Name of the report; empty if there is none."""
    criteria: Mapping[str, float] = field(default_factory=dict)
    """Values by criterion."""
    stages: Mapping[Stage, float] = field(default_factory=dict)
    """Scores of S1-S3, those that the report states."""
    rationales: Mapping[str, str] = field(default_factory=dict)
    """The judge's reasons, by stage."""
    model: str | None = None
    """The harness's judge."""
    has_verdicts: bool = False
    """Whether there is an `llm_judge`."""
    unparsed: bool = False
    """Whether its values are the zeros that the harness writes if it cannot parse a reply."""
    comment: str | None = None
    problems: tuple[str, ...] = ()
    """A line for each field that is no value of its criterion."""


class ReportedJudge:
    """The verdicts in the harness's reports. It never raises for a run."""

    name = REPORTED
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {}

    def evidence_sha256(self, request: Request) -> str:
        """Hash of what the report says."""
        return hashlib.sha256(repr(_verdicts_or_none(request.run)).encode()).hexdigest()

    async def judge(self, request: Request) -> Reply:
        """The reported value of each criterion; without one it is unscored."""
        said = _verdicts_or_none(request.run)
        return Reply(tuple(_result(item.id, said, request.question) for item in request.criteria))


def reported_verdicts(run: Run) -> ReportedVerdicts:
    """What the report says; of a run that was judged twice, the later verdicts.

    InputError if the report cannot be read.
    """
    path = side_file(run.folder, REJUDGED_NAME) or report_file(run.folder)
    report = None if path is None else flat_report(read_json(path))
    if path is None or not isinstance(report, dict):
        return ReportedVerdicts()
    verdicts = report.get("llm_judge")
    if not isinstance(verdicts, dict):
        verdicts = {}
    rubric = rubric_for(run.track, run.task)
    unparsed = _is_unparsed(verdicts, rubric, run.tier)
    criteria, problems = ({}, []) if unparsed else _criteria(verdicts, rubric)
    return ReportedVerdicts(
        file=path.name,
        criteria=criteria,
        stages=_stage_scores(report, verdicts),
        rationales={
            stage: text
            for stage in JUDGED_STAGES
            if (text := text_or_none(verdicts.get(f"{stage.lower()}_rationale")))
        },
        model=text_or_none(verdicts.get("judge_model")),
        has_verdicts=bool(verdicts),
        unparsed=unparsed,
        comment=text_or_none(verdicts.get("overall_rationale")),
        problems=tuple(problems),
    )


@dataclass(frozen=True)
class ReportedScores:
    """What the report of a run says of whole stages, as scorecards need it."""

    stages: Mapping[str, float] = field(default_factory=dict)
    has_report: bool = False
    unparsed: bool = False
    """`ReportedVerdicts.unparsed`."""
    model: str | None = None
    """The harness's judge."""

    def in_place_of(
        self, verdicts: Verdicts, rubric: Rubric, tier: Tier | None, *, like_harness: bool
    ) -> dict[str, float | None]:
        """The scores of stages that verdicts on their criteria do not stand for.

        By the harness's policy the zeros of a reply that it could not parse count, and a stage
        that no report states is None, which its sums take as the branch does. Otherwise both are
        left out.
        """
        if not self.has_report or (self.unparsed and not like_harness):
            return {}
        scores: dict[str, float | None] = {}
        for name in rubric.judged_stages:
            scored = {result.id for result in verdicts[name] if result.status == "scored"}
            asked = split_criteria(rubric.stages[name], tier).to_judge
            is_judged = bool(asked) and all(item.id in scored for item in asked)
            if not is_judged and (name in self.stages or like_harness):
                scores[name] = self.stages.get(name)
        return scores


def reported_scores(run: Run) -> ReportedScores:
    """What the run's report says of whole stages; nothing if it cannot be read."""
    said = _verdicts_or_none(run)
    stages: dict[str, float] = {name: score for name, score in said.stages.items()}  # noqa: C416
    return ReportedScores(stages, bool(said.file), said.unparsed, said.model)


def any_reported(conversations: Iterable[Path]) -> bool:
    """Whether the report beside one of these conversations states S1-S3 or Agentic."""
    return any(map(_has_scores, conversations))


def _has_scores(conversation: Path) -> bool:
    folder = run_folder(conversation)
    path = side_file(folder, REJUDGED_NAME) or report_file(folder)
    try:
        report = None if path is None else flat_report(read_json(path))
    except InputError:
        return False
    if not isinstance(report, dict):
        return False
    scores = step_scores(report, [])
    if any(scores[stage] is not None for stage in JUDGED_STAGES):
        return True
    return bool(report.get("llm_judge")) or _states_agentic(report)


def _states_agentic(report: Mapping[str, Any]) -> bool:
    """Whether a branch without a judge (enhancement) added up the other stages."""
    total = report.get("aggregate")
    return isinstance(total, dict) and number(total.get("agentic_score")) is not None


@once_a_run
def _verdicts_or_none(run: Run) -> ReportedVerdicts:
    """What the report says; nothing if it cannot be read, which the run's warnings say."""
    try:
        return reported_verdicts(run)
    except InputError:
        return ReportedVerdicts()


def _result(id: str, said: ReportedVerdicts, stage: str) -> CriterionResult:
    value = said.criteria.get(id)
    if value is not None:
        rationale = said.rationales.get(stage, "")
        return CriterionResult(id=id, value=value, status="scored", rationale=rationale)
    if said.unparsed:
        detail = "the harness could not parse its judge's reply"
        return CriterionResult.unscored(id, "unparsable", detail)
    detail = "no report states it"
    if stage in said.stages:
        detail = "the report states the score of the stage alone"
    return CriterionResult.unscored(id, "no_evidence", detail)


def _stage_scores(report: dict[str, Any], verdicts: Mapping[str, Any]) -> dict[Stage, float]:
    """The judge's scores, else the report's, into which branch eval_vqa blends tool usage."""
    in_report = step_scores(report, [])
    scores: dict[Stage, float] = {}
    for stage, name in _STAGE_FIELDS.items():
        value = number(verdicts.get(name))
        if value is None or not 0 <= value <= 1:
            value = in_report[stage]
        if value is not None:
            scores[stage] = value
    return scores


def _is_unparsed(verdicts: Mapping[str, Any], rubric: Rubric, tier: Tier | None) -> bool:
    """Whether these are the zeros of a reply that the harness could not parse.

    Criteria that the tier credits are 1 even then.
    """
    if not verdicts:
        return False
    has_reason = any(
        text_or_none(value) for name, value in verdicts.items() if name.endswith("_rationale")
    )
    asked = {
        item.id
        for stage in rubric.judged_stages
        for item in split_criteria(rubric.stages[stage], tier).to_judge
    }
    values = [value for name, value in verdicts.items() if _criterion_id(name) in asked]
    values += [verdicts.get(name) for name in _STAGE_FIELDS.values()] if not values else []
    return not has_reason and not any(values)


def _criteria(verdicts: Mapping[str, Any], rubric: Rubric) -> tuple[dict[str, float], list[str]]:
    """Values by criterion id, and a line for each field that is not a value of its scale."""
    scales = {criterion.id: criterion.values for criterion in rubric.criteria()}
    values: dict[str, float] = {}
    unread = []
    for name, raw_value in verdicts.items():
        id = _criterion_id(name)
        if id is None or (name == _S3_FIELD and id not in scales):
            continue
        value = float(raw_value) if isinstance(raw_value, bool) else number(raw_value)
        if value is None or not any(math.isclose(value, level) for level in scales.get(id, ())):
            unread.append(
                f"{name} is {str(raw_value)[:40]!r}, no value of {id} in rubric {rubric.id}"
            )
        else:
            values[id] = value
    return values, unread


def _criterion_id(name: str) -> str | None:
    """The criterion that a field of the verdicts is about; None for other fields."""
    match = _CRITERION_FIELD.fullmatch(name)
    if match is not None:
        return f"S{match[1]}{match[2]}"
    return "S3" if name == _S3_FIELD else None
