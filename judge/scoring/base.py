"""The protocol of scoring: what the engine asks for, whichever rules the numbers go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from ...rubrics.model import Criterion
from ...trajectories.models import Stage
from ..card.stage_results import CriterionResult
from .criteria import applies
from .formulas import (
    UNKNOWN_BOUNDS,
    Aggregate,
    Bounds,
    Cap,
    Missing,
    Zeroed,
    aggregate,
    apply_caps,
)

if TYPE_CHECKING:
    from ..card.fields import Policy, TaskFrom
    from ..checks.check_outputs import OutputCheck


@dataclass(frozen=True)
class StageScore:
    """The score of one stage in [0, 1], None if unknown, with its bounds."""

    score: float | None
    bounds: Bounds
    method: Literal[
        "judge", "reported", "deterministic", "policy", "unscored", "not_applicable", "withheld"
    ]
    cap: Cap | None = None
    """The lowest cap in force; it is applied already."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What a score consists of beside criteria and checks (`StageResult.parts`)."""


@dataclass(frozen=True)
class Scores:
    """The scores of a run before they are totalled."""

    stages: Mapping[str, StageScore]
    task: float | None
    task_from: TaskFrom | None

    @property
    def values(self) -> dict[str, float | None]:
        return {name: stage.score for name, stage in self.stages.items()}

    @property
    def bounds(self) -> dict[str, Bounds]:
        return {name: stage.bounds for name, stage in self.stages.items()}

    def after(self, breach: Zeroed) -> Scores:
        """The scores with what a breach sets."""
        stages = {
            name: replace(
                stage,
                score=breach.scores[name],
                bounds=breach.bounds[name],
                method="policy" if name in breach.stages else stage.method,
            )
            for name, stage in self.stages.items()
        }
        return Scores(stages, breach.task, "policy")


class Scoring(Protocol):
    """How scores follow from verdicts and checks. Nothing here reads a file or a run."""

    @property
    def policy(self) -> Policy:
        """The policy that the scorecard states."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the scorecard should know about the choice of rules."""

    @property
    def s4_digits(self) -> int | None:
        """Decimals of S4; None if it is not rounded."""

    def judged_stage(
        self,
        results: Sequence[CriterionResult],
        criteria: Sequence[Criterion],
        caps: Sequence[Cap] = (),
    ) -> StageScore:
        """The score of a judged stage; `results` have been through `apply_requires`."""

    def checked_stages(self, outputs: OutputCheck) -> dict[str, StageScore]:
        """The stages that the checks of the outputs decide."""

    def after_breach(self, scores: Scores, turn: int | None, stage: Stage | None) -> Scores:
        """The scores of a disqualified run; `turn` and `stage` of the breach, if known."""

    def total(
        self, stages: Mapping[str, StageScore], weights: Mapping[str, float], task: float | None
    ) -> Aggregate:
        """Agentic and Overall of these scores."""

    def reported(
        self, stages: Mapping[str, StageScore], outputs: OutputCheck
    ) -> Mapping[str, StageScore]:
        """The stages as the scorecard shows them, once they are totalled."""


def lowest(caps: Iterable[Cap]) -> Cap | None:
    """The cap that decides; None without any."""
    return min(caps, key=lambda cap: cap.value, default=None)


def judged_stage(
    score: float | None,
    bounds: Bounds,
    results: Sequence[CriterionResult],
    criteria: Sequence[Criterion],
    caps: Iterable[Cap],
) -> StageScore:
    """The score of a stage from its verdicts, with the caps that were applied.

    A stage none of whose criteria applies has neither a score nor a weight.
    """
    if not applies(results, criteria):
        return StageScore(None, UNKNOWN_BOUNDS, "not_applicable")
    return StageScore(score, bounds, "unscored" if score is None else "judge", lowest(caps))


def reported_stage(score: float | None, caps: Sequence[Cap]) -> StageScore:
    """The score of a stage as the harness's report states it, with the caps that were applied.

    One without a score is the harness's too: it has the value of its cap, if there is one.
    """
    bounds = UNKNOWN_BOUNDS if score is None else (score, score)
    capped, bounds = apply_caps(score, bounds, caps, unscored_is_cap=True)
    return StageScore(capped, bounds, "reported", lowest(caps))


def checked_stage(score: float | None, bounds: Bounds, caps: Iterable[Cap] = ()) -> StageScore:
    """The score that a check of the outputs gave, with the caps that it applied."""
    return StageScore(score, bounds, "unscored" if score is None else "deterministic", lowest(caps))


def total_score(
    stages: Mapping[str, StageScore],
    weights: Mapping[str, float],
    task: float | None,
    missing: Missing,
    digits: int | None = None,
) -> Aggregate:
    """`aggregate` for stage scores."""
    inapplicable = {name for name, stage in stages.items() if stage.method == "not_applicable"}
    scores = {name: stage.score for name, stage in stages.items()}
    bounds = {name: stage.bounds for name, stage in stages.items()}
    return aggregate(scores, bounds, weights, task, missing, digits, inapplicable=inapplicable)
