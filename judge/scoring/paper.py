"""Scores by the benchmark's text, and by ours where it is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...rubrics.model import Criterion
from ...trajectories.models import Stage
from ..card.fields import Policy
from ..card.stage_results import CriterionResult
from .base import Scores, StageScore, checked_stage, judged_stage, total_score
from .formulas import Aggregate, Breach, Cap, apply_breach, apply_caps, stage_score

if TYPE_CHECKING:
    from ..checks.check_outputs import OutputCheck


@dataclass(frozen=True)
class PaperScoring:
    """`Scoring` by the paper's rules."""

    policy: Policy
    warnings: tuple[str, ...] = ()
    s4_digits: int | None = None

    def judged_stage(
        self,
        results: Sequence[CriterionResult],
        criteria: Sequence[Criterion],
        caps: Sequence[Cap] = (),
    ) -> StageScore:
        score, bounds = stage_score(results, criteria, self.policy.missing)
        score, bounds = apply_caps(score, bounds, caps)
        return judged_stage(score, bounds, results, criteria, caps)

    def checked_stages(self, outputs: OutputCheck) -> dict[str, StageScore]:
        return {
            "S4": checked_stage(outputs.s4, outputs.s4_bounds, outputs.s4_caps),
            "S5": checked_stage(outputs.s5, outputs.s5_bounds),
        }

    def after_breach(self, scores: Scores, turn: int | None, stage: Stage | None) -> Scores:
        """Stages and Task that the policy sets to 0."""
        if self.policy.breach == "ignored":
            return scores
        policy: Breach = "from-stage" if self.policy.breach == "from-stage" else "zero-all"
        return scores.after(apply_breach(scores.values, scores.bounds, scores.task, policy, stage))

    def total(
        self, stages: Mapping[str, StageScore], weights: Mapping[str, float], task: float | None
    ) -> Aggregate:
        return total_score(stages, weights, task, self.policy.missing)

    def reported(
        self, stages: Mapping[str, StageScore], outputs: OutputCheck
    ) -> Mapping[str, StageScore]:
        return stages
