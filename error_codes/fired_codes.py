"""From the detectors' findings on one run to its fired codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..plugins import is_ours, warn
from ..trajectories.models import STAGES, Stage
from .context import CodeContext
from .models import CodeTaxonomy, FiredCode
from .registry import Detector, Finding, detectors

MIN_CONFIDENCE = 0.5
"""Findings below this are hints for a reader of the trace, not fired codes."""


def fired_codes(ctx: CodeContext, taxonomy: CodeTaxonomy = "paper") -> tuple[FiredCode, ...]:
    """The codes that fire on a run, in code order; empty for a clean run and for one without turns.

    A run that still goes on has those of its trace alone. Circular codes (`from_score`) are among
    them; leave them out where codes explain scores.
    """
    if not ctx.last:
        return ()
    asked = detectors(taxonomy)
    if ctx.run.status.ended == "running":
        # Files may be half written, and scores are of the end.
        asked = tuple(detector for detector in asked if detector.independence == "from_trace")
    codes = tuple(code for detector in asked for code in _detect(detector, ctx))
    return codes if taxonomy == "paper" else _one_per_step(ctx, codes)


def _detect(detector: Detector, ctx: CodeContext) -> Iterator[FiredCode]:
    for finding in _findings(detector, ctx):
        # A detector of another package may name turns that the run does not have.
        turns = tuple(sorted({turn for turn in finding.turns if 1 <= turn <= ctx.last}))
        if turns and finding.confidence >= MIN_CONFIDENCE:
            yield FiredCode(
                code=detector.code,
                taxonomy=detector.taxonomy,
                stage=finding.stage or detector.stage,
                turns=turns,
                why=" ".join(finding.why.split()),
                by=detector.by,
                confidence=finding.confidence,
                independence=detector.independence,
            )


def _findings(detector: Detector, ctx: CodeContext) -> tuple[Finding, ...]:
    """What a detector finds; one of another package that raises is left out with a warning."""
    try:
        return tuple(detector.function(ctx))
    except Exception as error:
        if is_ours(detector.function.__module__):
            raise
        warn(f"detector {detector.name} left out of {ctx.run.id}: {type(error).__name__}: {error}")
        return ()


def _one_per_step(ctx: CodeContext, codes: Sequence[FiredCode]) -> tuple[FiredCode, ...]:
    """The surest code of each failed step, as the harness gives one; none for a good run."""
    from .detectors.harness import good_run

    if good_run(ctx):
        return ()
    surest: dict[Stage, FiredCode] = {}
    for code in codes:
        if code.stage not in surest or code.confidence > surest[code.stage].confidence:
            surest[code.stage] = code
    return tuple(surest[stage] for stage in STAGES if stage in surest)


def primary_failure(codes: Sequence[FiredCode]) -> str | None:
    """`S#:E#` of the earliest failed step in the harness taxonomy; None without one."""
    steps = [code for code in codes if code.taxonomy == "harness"]
    if not steps:
        return None
    first = min(steps, key=lambda code: (STAGES.index(code.stage), -code.confidence))
    return f"{first.stage}:{first.code}"


def stage_failures(codes: Sequence[FiredCode]) -> dict[Stage, str]:
    """The harness code of each stage that failed."""
    return {code.stage: code.code for code in codes if code.taxonomy == "harness"}
