"""Error codes of one run: facts on its outputs go to the detectors, what the judge proposed is merged in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..error_codes.fired import Fired, context, fired_in, primary_failure, stage_failures
from ..error_codes.merge import conflicts, merge
from ..error_codes.output_facts import output_facts
from ..error_codes.vqa_answers import AnswerCode
from ..trajectories.models import Run, Segmentation, Stage
from .answers import findings, read_answers
from .checks import OutputCheck
from .scorecard import Contradiction, EpisodeInfo, FiredCode


@dataclass(frozen=True)
class Diagnosis:
    """What went wrong in a run. `codes` are of the paper's taxonomy, `steps` of the harness's (one a failed stage)."""

    codes: tuple[FiredCode, ...]
    steps: tuple[FiredCode, ...]
    primary_failure: str | None
    failures: Mapping[Stage, str]
    """Stage -> harness code."""
    episodes: tuple[EpisodeInfo, ...]
    answers: tuple[AnswerCode, ...]
    """vqa: codes of single answers, when answer files are there."""
    conflicts: tuple[Contradiction, ...]
    """Where the judge's tags and a detector's facts disagree."""


def diagnose(
    run: Run,
    segmentation: Segmentation,
    check: OutputCheck,
    proposed: Sequence[FiredCode] = (),
    public: Path | None = None,
) -> Diagnosis:
    """Detectors of both taxonomies, merged with the codes that a judge proposed (`error_codes.merge` says how)."""
    answers = read_answers(run)
    facts = output_facts(check, answers)
    ctx = context(run, segmentation, facts)
    found = fired_in(ctx)
    steps = fired_in(context(run, segmentation, facts, "harness"))
    tags = [Fired(**code.model_dump()) for code in proposed]
    return Diagnosis(
        codes=tuple(map(_card_code, merge(found, tags))),
        steps=tuple(map(_card_code, steps)),
        primary_failure=primary_failure(steps),
        failures=stage_failures(steps),
        episodes=tuple(
            EpisodeInfo(**episode.model_dump(include=set(EpisodeInfo.model_fields))) for episode in ctx.episodes
        ),
        answers=findings(run, answers, public),
        # A judge that proposed nothing may not have been asked: only its words can disagree.
        conflicts=tuple(
            Contradiction(criterion=c.code, fact=f"{c.what} ({c.between[0]}, {c.between[1]})", turns=c.turns)
            for c in conflicts(found, tags, judged=bool(tags))
        ),
    )


def _card_code(code: Fired) -> FiredCode:
    return FiredCode(**code.model_dump())
