"""What scores rest on beside a rubric and the verdicts on its criteria, and the scores from it.

A scorecard has two parts. One is the same whichever rubric judges the run: codes, stages of turns,
resources, checks of the outputs. The other (`by_rubric`) follows from the rubric, the verdicts and
a run's `ScoreBasis`, and nothing else. The basis is made once, when a run is read. A store keeps
it, so that a scorecard is renewed under an edited rubric without reading the run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ..error_codes.models import Contradiction
from ..rubrics.model import Rubric
from ..trajectories.models import Segmentation, Stage, Status, Tier, TrackName
from ..trajectories.record.facts import Fact, FactInfo
from .base import Judge, QuestionName, Reply
from .card.provenance import card_warnings, judge_info, rubric_info
from .card.stage_results import CriterionResult
from .checks.check_outputs import OutputCheck
from .facts.contradictions import Refutation, find_contradictions, strict_result
from .facts.decided import ProvenValues, decided_results, proofs, proven_criteria, proven_values
from .judges.reported import ReportedScores
from .judges.rules import RULES, Ruling
from .questions.items import QuestionSet
from .scoring.base import Scoring
from .scoring.run_scores import (
    Verdicts,
    run_scores,
    so_far,
    stage_verdicts,
    with_requirements,
    without_tools,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True)
class ScoreBasis:
    """All that scores need of a run that was read."""

    track: TrackName | None
    tier: Tier | None
    has_tools: bool
    status: Status
    warnings: tuple[str, ...]
    """Of the run."""
    outputs: OutputCheck
    """By the rules that the scores are computed by; without single cases."""
    failures: Mapping[Stage, str]
    """The harness code of each stage that failed."""
    rulings: Mapping[str, Ruling]
    """What facts prove that may decide criteria, by the name of the rule."""
    ruling_facts: Mapping[str, Fact]
    """The fact that each of them states."""
    facts: tuple[Fact, ...]
    """Those of the record that the scorecard may name, in its order."""
    shown_facts: frozenset[str]
    """Ids of those that it names whatever the rubric."""
    refutations: Mapping[str, Refutation]
    """What no verdict may claim of the run (`contradictions`)."""
    contradictions: tuple[Contradiction, ...]
    """Readings of codes that a fact contradicts."""
    reported: ReportedScores = field(default_factory=ReportedScores)
    """What the run's report says of S1-S3, if that is the judge."""

    @property
    def proven_values(self) -> ProvenValues:
        """The values of `rulings`."""
        return proven_values(self.rulings)

    def to_json(self) -> bytes:
        """The basis without what only a reader of the files looks at."""
        status = self.status.model_copy(update={"violation_records": ()})
        outputs = replace(self.outputs, cases=(), run_issues=())
        return _adapter().dump_json(replace(self, status=status, outputs=outputs))

    @staticmethod
    def from_json(text: bytes) -> ScoreBasis:
        """The basis that `to_json` wrote; ValueError for anything else."""
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[ScoreBasis]:
    from pydantic import TypeAdapter

    return TypeAdapter(ScoreBasis)


def by_rubric(
    basis: ScoreBasis,
    rubric: Rubric,
    scoring: Scoring,
    questions: QuestionSet,
    segmentation: Segmentation,
    judge: Judge,
    replies: Mapping[QuestionName, Reply],
) -> dict[str, Any]:
    """The fields of a scorecard that follow from the rubric and a judge's replies."""
    decided: Mapping[str, CriterionResult] = {}
    if questions.leaves_to_facts(judge.name):
        decided = decided_results(rubric, basis.tier, basis.rulings, basis.ruling_facts)
    verdicts, contradictions = _check_verdicts(basis, rubric, scoring, judge, replies, decided)
    reported = basis.reported.in_place_of(
        verdicts, rubric, basis.tier, like_harness=scoring.policy.like == "harness"
    )
    scores = run_scores(
        scoring,
        rubric,
        verdicts,
        basis.outputs,
        basis.status,
        segmentation,
        basis.failures,
        reported,
    )
    return {
        "rubric": rubric_info(rubric),
        "judge": judge_info(judge, replies.values(), basis.reported.model),
        "warnings": card_warnings(
            basis.warnings,
            rubric,
            scoring,
            basis.outputs,
            replies.values(),
            track=basis.track,
            tier=basis.tier,
            is_running=basis.status.ended == "running",
        ),
        "policy": scoring.policy,
        "stages": scores.stages,
        "read_share": scores.shares.read,
        "presumed_share": scores.shares.presumed,
        "agentic": scores.total.agentic,
        "agentic_bounds": scores.total.agentic_bounds,
        "task": scores.task,
        "task_from": scores.task_from,
        "overall": scores.total.overall,
        "overall_bounds": scores.total.overall_bounds,
        "facts": _card_facts(basis, rubric, verdicts),
        "contradictions": (*contradictions, *basis.contradictions),
    }


def _check_verdicts(
    basis: ScoreBasis,
    rubric: Rubric,
    scoring: Scoring,
    judge: Judge,
    replies: Mapping[QuestionName, Reply],
    decided: Mapping[str, CriterionResult],
) -> tuple[Verdicts, tuple[Contradiction, ...]]:
    """The verdicts by stage, and those of them that a fact contradicts.

    Contradictions are listed under every policy; under strict evidence, verdicts that it does not
    count are unscored too.
    """
    by_rules = judge.name == RULES
    verdicts = stage_verdicts(rubric, basis.tier, replies, decided)
    if not basis.has_tools:
        verdicts = {**verdicts, **without_tools(verdicts)}
    proven = {} if by_rules else proven_criteria(rubric, basis.tier, basis.rulings)
    contradictions = find_contradictions(basis.track, basis.refutations, verdicts, proven)
    if scoring.policy.strict_evidence:
        contradicted = {contradiction.criterion for contradiction in contradictions}
        verdicts = {
            stage: tuple(strict_result(result, contradicted, by_rules) for result in results)
            for stage, results in verdicts.items()
        }
    if basis.status.ended == "running":
        verdicts = so_far(verdicts)
    # Only now, as a 0 that strict evidence does not count must not zero other criteria.
    return with_requirements(verdicts, rubric), contradictions


def _card_facts(basis: ScoreBasis, rubric: Rubric, verdicts: Verdicts) -> tuple[FactInfo, ...]:
    """The facts that codes rest on, those that decided criteria, and those that say something by
    themselves."""
    deciding = {fact.id: fact for fact in _deciding_facts(basis, rubric, verdicts)}
    ids = basis.shown_facts | deciding.keys()
    selected = {fact.id: fact for fact in basis.facts if fact.id in ids}
    return tuple((selected | deciding).values())


def _deciding_facts(basis: ScoreBasis, rubric: Rubric, verdicts: Verdicts) -> Iterator[Fact]:
    """The facts that decided criteria of these results."""
    by_facts = {
        result.id for results in verdicts.values() for result in results if result.by == "facts"
    }
    if by_facts:
        criteria = [item for item in rubric.criteria() if item.id in by_facts]
        for name in proofs(criteria, basis.proven_values).values():
            yield basis.ruling_facts[name]


def nameable_facts(
    facts: Sequence[Fact], shown: frozenset[str], ruling_facts: Mapping[str, Fact]
) -> tuple[Fact, ...]:
    """Those of a record's facts that a scorecard may name under some rubric."""
    ids = shown | {fact.id for fact in ruling_facts.values()}
    return tuple(fact for fact in facts if fact.id in ids)
