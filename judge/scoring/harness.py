"""Scores as a track's branch of the public harness computes them (docs/harness.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...rubrics.model import Criterion, Rubric, has_all_stages
from ...tracks import TRACKS, HarnessBranch
from ...trajectories.models import STAGES, Stage, TrackName
from ..card.fields import Policy
from ..card.stage_results import CriterionResult
from .base import Scores, Scoring, StageScore, checked_stage, judged_stage, total_score
from .formulas import Aggregate, Bounds, Cap, Zeroed, apply_caps, stage_score
from .paper import PaperScoring
from .scoring_rules import LIKE
from .workspace import USAGE, Workspace

if TYPE_CHECKING:
    from ..checks.check_outputs import OutputCheck

DIGITS = 4
"""Decimals of Agentic and of Overall / 100."""
NO_ARTEFACTS = 0.5
"""Upper limit of S3 without calibration, before and after tool usage is blended in."""


def choose_scoring(policy: Policy, track: TrackName | None, rubric: Rubric) -> Scoring:
    """The scoring that a policy asks for.

    The paper's if the track has no branch of the harness, or the rubric has other stages than the
    benchmark's; the scorecard then says so.
    """
    branch = branch_of(track)
    benchmark_stages = has_all_stages(rubric.stages)
    if policy.like == "harness" and branch is not None and benchmark_stages:
        return HarnessScoring(_branch_policy(policy, branch), branch)
    if policy.like == "paper":
        return PaperScoring(policy)
    reason = "no branch of the public harness" if benchmark_stages else "a rubric of other stages"
    warning = f"track {track}: {reason}, scored by the paper's rules"
    return PaperScoring(policy.model_copy(update={"like": "paper"}), (warning,))


def scoring_of(policy: Policy, track: TrackName | None) -> Scoring:
    """The scoring behind a scorecard that states this policy."""
    branch = branch_of(track)
    if policy.like == "harness" and branch is not None:
        return HarnessScoring(policy, branch)
    return PaperScoring(policy)


def branch_of(track: TrackName | None) -> HarnessBranch | None:
    """The track's branch of the public harness; None for a track without one."""
    entry = None if track is None else TRACKS.find(track)
    return None if entry is None else entry.branch


def _branch_policy(policy: Policy, branch: HarnessBranch) -> Policy:
    """The policy with what the branch decides."""
    return Policy(
        like="harness",
        missing=branch.missing,
        breach="ignored" if branch.breach_turns is None else "from-turn",
        strict_evidence=policy.strict_evidence,
    )


@dataclass(frozen=True)
class HarnessScoring:
    """`Scoring` by a branch of the harness."""

    policy: Policy
    branch: HarnessBranch
    warnings: tuple[str, ...] = ()

    @property
    def s4_digits(self) -> int | None:
        return self.branch.s4_digits

    def judged_stage(
        self,
        results: Sequence[CriterionResult],
        criteria: Sequence[Criterion],
        caps: Sequence[Cap] = (),
    ) -> StageScore:
        score, bounds = stage_score(
            results, criteria, self.policy.missing, self.branch.judged_digits
        )
        score, bounds = apply_caps(score, bounds, caps, LIKE["harness"].unscored_is_cap)
        return judged_stage(score, bounds, results, criteria, caps)

    def checked_stages(self, outputs: OutputCheck) -> dict[str, StageScore]:
        """S4 and S5; for answers also S2, which the branch takes from the workspace.

        Where the workspace is not known, S2 is the judge's.
        """
        stages = {
            "S4": checked_stage(outputs.s4, outputs.s4_bounds, outputs.s4_caps),
            "S5": checked_stage(outputs.s5, outputs.s5_bounds),
        }
        parts = _setup_parts(outputs.workspace, outputs.s4_checks.completion)
        if parts:
            score = setup_score(parts)
            stages["S2"] = StageScore(score, (score, score), "deterministic", parts=parts)
        return stages

    def after_breach(self, scores: Scores, turn: int | None, stage: Stage | None) -> Scores:
        """Stages before the breach, by its turn, are unscored and 0 in sums; all others are 0."""
        if self.policy.breach == "ignored":
            return scores
        turns = self.branch.breach_turns or ()
        first = len(turns)
        if any(turns):
            # Each limit that lies before the breach leaves one more stage to nobody.
            first = sum(last_turn < (turn or 0) for last_turn in turns)
        values: dict[str, float | None] = dict.fromkeys(STAGES, 0.0)
        values |= dict.fromkeys(STAGES[:first], None)
        return scores.after(Zeroed(values, dict.fromkeys(STAGES, (0.0, 0.0)), 0.0, STAGES))

    def total(
        self, stages: Mapping[str, StageScore], weights: Mapping[str, float], task: float | None
    ) -> Aggregate:
        return total_score(stages, weights, task, self.policy.missing, DIGITS)

    def reported(
        self, stages: Mapping[str, StageScore], outputs: OutputCheck
    ) -> Mapping[str, StageScore]:
        """Tool usage is blended into S3 and S4 of answers after Agentic is computed."""
        if outputs.workspace is None:
            return stages
        blended = dict(stages)
        for name, parts in _usage_parts(outputs.workspace, stages, outputs.s4_caps).items():
            stage = stages[name]
            blended[name] = replace(
                stage,
                score=reported_score(parts, parts["counted"]),
                bounds=reported_bounds(parts, stage.bounds),
                parts=parts,
            )
        return blended


def _setup_parts(workspace: Workspace | None, completion: float | None) -> dict[str, float]:
    """The three facts whose mean replaces S2; empty if one of the workspace's is unknown."""
    if workspace is None or workspace.called is None or workspace.smoke is None:
        return {}
    ready = completion is not None and completion > 0
    return {
        "env_ready": float(ready),
        "model_loaded": float(workspace.called),
        "smoke_forward": float(workspace.smoke),
    }


def setup_score(parts: Mapping[str, float]) -> float:
    """S2 of these facts."""
    return round(sum(parts.values()) / len(parts), DIGITS)


def _usage_parts(
    workspace: Workspace, stages: Mapping[str, StageScore], s4_caps: Sequence[Cap]
) -> dict[str, dict[str, float]]:
    """`counted`, `tool_usage` and `limit` of S3 and S4, where score and usage are known."""
    parts: dict[str, dict[str, float]] = {}
    s3, s4 = stages["S3"].score, stages["S4"].score
    if s3 is not None and workspace.inspected is not None:
        limit = NO_ARTEFACTS if workspace.artefacts is False else 1.0
        parts["S3"] = {
            "counted": s3,
            "tool_usage": float(workspace.inspected),
            "limit": limit,
        }
    if s4 is not None and workspace.submitted is not None:
        limit = min((cap.value for cap in s4_caps), default=1.0)
        parts["S4"] = {"counted": s4, "tool_usage": workspace.submitted, "limit": limit}
    return parts


def reported_score(parts: Mapping[str, float], counted: float) -> float:
    """A score as the branch reports it, with tool usage blended in."""
    blend = round((1.0 - USAGE) * counted + USAGE * parts["tool_usage"], DIGITS)
    return min(blend, parts["limit"])


def reported_bounds(parts: Mapping[str, float], bounds: Bounds) -> Bounds:
    """Both bounds with tool usage blended in."""
    return reported_score(parts, bounds[0]), reported_score(parts, bounds[1])
