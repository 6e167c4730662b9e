"""What a track's branch of the public harness does with stage scores, for cards with `like:
harness` (docs/harness.md)."""

from __future__ import annotations

from collections.abc import Mapping

from ...tracks import TRACKS, HarnessBranch
from ...trajectories.models import STAGES, Run, TrackName
from ..card.fields import Policy
from ..card.scoring import Bounds, Cap, Zeroed
from .workspace import USAGE, Workspace

DIGITS = 4
"""Decimals of Agentic and of Overall / 100."""
NO_ARTEFACTS = 0.5
"""Of S3 without calibration, before and after tool usage is blended in."""


def branch_of(policy: Policy, name: TrackName | None) -> HarnessBranch | None:
    """The branch that numbers go by; None by the paper's rules, and for tracks without one."""
    track = TRACKS.find(name) if name is not None and policy.like == "harness" else None
    return None if track is None else track.branch


def settled(policy: Policy, run: Run) -> Policy:
    """The policy with what its `like` decides for the run's track; `like: paper` where the harness
    has no branch for it."""
    branch = branch_of(policy, run.track)
    if policy.like == "paper" or branch is None:
        return policy.model_copy(update={"like": "paper"})
    return Policy(
        like="harness",
        missing=branch.missing,
        breach="ignored" if branch.breach_turns is None else "from-turn",
        strict_evidence=policy.strict_evidence,
    )


def penalty(branch: HarnessBranch | None, breach_turn: int | None) -> Zeroed:
    """Scores of a disqualified run: the stages before the breach, by its turn, are nobody's and 0
    in sums; all else is 0."""
    turns = () if branch is None or branch.breach_turns is None else branch.breach_turns
    first = sum(turn < (breach_turn or 0) for turn in turns) if any(turns) else len(turns)
    scores: dict[str, float | None] = {
        stage: None if n < first else 0.0 for n, stage in enumerate(STAGES)
    }
    return Zeroed(scores, dict.fromkeys(STAGES, (0.0, 0.0)), 0.0, STAGES)


def setup_facts(space: Workspace, completion: float | None) -> dict[str, float]:
    """The three facts whose mean stands for S2."""
    ready = completion is not None and completion > 0
    return {
        "env_ready": float(ready),
        "model_loaded": float(space.called),
        "smoke_forward": float(space.smoke),
    }


def setup_score(facts: Mapping[str, float]) -> float:
    """S2 of these facts."""
    return round(sum(facts.values()) / len(facts), DIGITS)


def usage_parts(
    space: Workspace, s3: float | None, s4: float | None, s4_caps: tuple[Cap, ...]
) -> dict[str, dict[str, float]]:
    """`counted`, `tool_usage` and `limit` of S3 and S4; nothing where a score or the usage is
    unknown."""
    found: dict[str, dict[str, float]] = {}
    limit = 1.0 if space.artefacts else NO_ARTEFACTS
    if s3 is not None and space.inspected is not None:
        found["S3"] = {"counted": s3, "tool_usage": float(space.inspected), "limit": limit}
    if s4 is not None and space.submitted is not None:
        limit = min((cap.value for cap in s4_caps), default=1.0)
        found["S4"] = {"counted": s4, "tool_usage": space.submitted, "limit": limit}
    return found


def reported(parts: Mapping[str, float], value: float) -> float:
    """A score as the branch reports it, with tool usage blended in."""
    blend = round((1.0 - USAGE) * value + USAGE * parts["tool_usage"], DIGITS)
    return min(blend, parts["limit"])


def reported_bounds(parts: Mapping[str, float], bounds: Bounds) -> Bounds:
    """The same of both ends."""
    return reported(parts, bounds[0]), reported(parts, bounds[1])
