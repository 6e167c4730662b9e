"""From a run to its fired codes: all detectors, one finding each, kept apart by where they were
read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ..plugins import is_ours, warn
from ..trajectories.models import STAGES, Frozen, Run, Segmentation, Stage
from ..trajectories.record.quotes import Evidence
from ..trajectories.turns.failures import failures
from ..trajectories.turns.features import features
from .context import CodeContext
from .episodes import episodes
from .output_facts import OutputFacts
from .registry import Detector, detectors

Taxonomy = Literal["paper", "harness"]
MIN_CONFIDENCE = 0.5
"""Findings below this are hints for a reader of the trace, not fired codes."""


class Fired(Frozen):
    """A fired code; field by field a scorecard's `FiredCode`."""

    code: str
    taxonomy: Taxonomy
    stage: Stage
    turns: tuple[int, ...]
    why: str
    by: str
    confidence: float
    independence: Literal["from_trace", "from_files", "from_score", "from_judge"]
    facts: tuple[str, ...] = ()
    quote: Evidence | None = None
    fact: bool = Field(default=False, exclude=True)
    """Its detector is marked as resting on facts (`registry.Detector.fact`). No field of a
    scorecard: left out of dumps."""


def context(run: Run, segmentation: Segmentation, facts: OutputFacts | None = None) -> CodeContext:
    """Everything that detectors look at, read from the run once."""
    facts_of_turns = features(run)
    failed = failures(run)
    return CodeContext(
        run=run,
        segmentation=segmentation,
        features=facts_of_turns,
        failures=failed,
        episodes=episodes(run, segmentation, facts_of_turns, failed),
        facts=facts,
    )


def fired(ctx: CodeContext, taxonomy: Taxonomy = "paper") -> tuple[Fired, ...]:
    """The codes that fire on a run, in code order; empty for a clean run and for a run without
    turns.

    Circular ones (`from_score`) are among them and say so; leave them out where codes explain
    scores.
    """
    if not ctx.last:
        return ()
    found = [code for detector in detectors(taxonomy) for code in _run(detector, ctx)]
    return tuple(found) if taxonomy == "paper" else _one_a_step(ctx, found)


def _run(detector: Detector, ctx: CodeContext) -> list[Fired]:
    codes = []
    try:
        findings = tuple(detector.function(ctx))
    except Exception as error:
        if is_ours(detector.function.__module__):
            raise
        warn(f"detector {detector.name} left out of {ctx.run.id}: {type(error).__name__}: {error}")
        return []
    for finding in findings:
        turns = tuple(sorted({t for t in finding.turns if 1 <= t <= ctx.last}))
        if turns and finding.confidence >= MIN_CONFIDENCE:
            codes.append(
                Fired(
                    code=detector.code,
                    taxonomy=detector.taxonomy,
                    stage=finding.stage or detector.stage,
                    turns=turns,
                    why=" ".join(finding.why.split()),
                    by=f"detector:{detector.name}",
                    confidence=finding.confidence,
                    independence=detector.independence,
                    fact=detector.fact is not None,
                )
            )
    return codes


def _one_a_step(ctx: CodeContext, found: list[Fired]) -> tuple[Fired, ...]:
    """The harness gives one code a failed step: of several the surest. A good run has none."""
    from .detectors.harness import good_run

    if good_run(ctx):
        return ()
    best: dict[Stage, Fired] = {}
    for code in found:
        if code.stage not in best or code.confidence > best[code.stage].confidence:
            best[code.stage] = code
    return tuple(best[stage] for stage in STAGES if stage in best)


def primary_failure(codes: Sequence[Fired]) -> str | None:
    """`S#:E#` of the earliest failed step in the harness taxonomy; None without one."""
    steps = [c for c in codes if c.taxonomy == "harness"]
    first = min(steps, key=lambda c: (STAGES.index(c.stage), -c.confidence), default=None)
    return f"{first.stage}:{first.code}" if first is not None else None


def stage_failures(codes: Sequence[Fired]) -> dict[Stage, str]:
    """Stage -> harness code, for the steps that failed."""
    return {c.stage: c.code for c in codes if c.taxonomy == "harness"}
