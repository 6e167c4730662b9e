"""Error codes of one run: facts on its outputs go to the detectors, what the judge proposed is merged in."""

from __future__ import annotations

from collections.abc import Sequence

from ..error_codes.fired import Fired, context, fired_in, primary_failure, stage_failures
from ..error_codes.output_facts import output_facts
from ..trajectories.models import Run, Segmentation, Stage
from .checks import OutputCheck
from .scorecard import CodeTaxonomy, FiredCode


def fire(
    run: Run, segmentation: Segmentation, check: OutputCheck, proposed: Sequence[FiredCode] = ()
) -> tuple[tuple[FiredCode, ...], str | None, dict[Stage, str]]:
    """(paper codes with the judge's, primary failure `S#:E#`, harness code a failed stage)."""
    codes = detect(run, segmentation, check, "paper")
    steps = detect(run, segmentation, check, "harness")
    return (*map(_card_code, codes), *proposed), primary_failure(steps), stage_failures(steps)


def detect(run: Run, segmentation: Segmentation, check: OutputCheck, taxonomy: CodeTaxonomy) -> tuple[Fired, ...]:
    """What the detectors find, in one taxonomy."""
    return fired_in(context(run, segmentation, output_facts(check), taxonomy))


def _card_code(code: Fired) -> FiredCode:
    return FiredCode(**code.model_dump())
