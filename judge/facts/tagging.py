"""Error codes of one run: what detectors find, what a reader said of the codes, and both made one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ...error_codes.context import CodeContext
from ...error_codes.detectors.answers import AnswerCode
from ...error_codes.diagnosis import Reading, merge
from ...error_codes.fired import Fired, context, fired, primary_failure, stage_failures
from ...error_codes.output_facts import OutputFacts
from ...error_codes.taxonomy import taxonomy
from ...trajectories.models import Run, Segmentation, Stage
from ..base import Reply
from ..card.fields import CodeReading, Contradiction, EpisodeInfo, PlanItem
from ..card.stage_results import CriterionResult, FiredCode
from ..checks.check_outputs import OutputCheck
from ..checks.vqa_answers import answer_findings, read_answers
from ..questions.items import PLAN_ITEM


@dataclass(frozen=True)
class Found:
    """What detectors of both taxonomies found in a run, without anybody reading it."""

    context: CodeContext
    paper: tuple[Fired, ...]
    steps: tuple[Fired, ...]
    """Of the harness's taxonomy: one a failed stage."""
    answers: tuple[AnswerCode, ...]
    """Codes of single answers, when answer files are there."""


@dataclass(frozen=True)
class Diagnosis:
    """What went wrong in a run. `codes` are of the paper's taxonomy, `failures` of the harness's."""

    codes: tuple[FiredCode, ...]
    unproven: tuple[FiredCode, ...]
    codes_read: Mapping[str, CodeReading]
    plan: tuple[PlanItem, ...]
    primary_failure: str | None
    failures: Mapping[Stage, str]
    """Stage -> harness code."""
    steps: tuple[FiredCode, ...]
    episodes: tuple[EpisodeInfo, ...]
    answers: tuple[AnswerCode, ...]
    """Codes of single answers, as checked."""
    answer_codes: Mapping[str, int]
    """Code -> answers that earn it; 1 for a code that only a reader saw."""
    conflicts: tuple[Contradiction, ...]
    """Where a reading and a fact disagree."""


def output_facts(check: OutputCheck) -> OutputFacts:
    """The result of checking a run's outputs, as detectors take it."""
    stage = check.s4_checks
    return OutputFacts(
        source=stage.source,
        expected_cases=stage.expected_cases,
        completion=stage.completion,
        format_valid=stage.format_valid,
        placeholder_rate=stage.placeholder_rate,
        model_call_found=stage.model_call_found,
        real_but_broken=check.real_but_broken,
        task_score=check.task,
        measures={case: dict(values) for case, values in check.measures.items()},
        facts=check.facts,
    )


def detect(
    run: Run, segmentation: Segmentation, check: OutputCheck, public: Path | None = None
) -> Found:
    """Run every detector once."""
    answers = read_answers(run)
    ctx = context(run, segmentation, output_facts(check))
    return Found(
        context=ctx,
        paper=fired(ctx),
        steps=fired(ctx, "harness"),
        answers=answer_findings(run, answers, public),
    )


def diagnose(
    run: Run,
    segmentation: Segmentation,
    found: Found,
    reply: Reply | None = None,
    judge: str = "",
    right: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Findings and the judge's reading made one (`error_codes.diagnosis` says how); without a
    reply, findings alone.

    `right`: by code, the share of this judge's readings that labels confirm.
    """
    results = {result.id: result for result in (reply.results if reply else ())}
    read = [
        reading
        for code in taxonomy("paper").codes
        if (reading := _reading(code.code, results.get(code.code)))
    ]
    merged = merge(run, segmentation, found.paper, read, f"judge:{judge}", right)
    counts = Counter(answer.code for answer in found.answers)
    for code in taxonomy("answers").codes:
        said = _reading(code.code, results.get(code.code))
        if said is not None and said.state == "present" and said.proven and not counts[code.code]:
            counts[code.code] = 1
    return Diagnosis(
        codes=_shown(sorted((*merged.found, *merged.read), key=lambda code: code.code)),
        unproven=_shown(merged.unproven),
        codes_read=merged.states,
        plan=_plan(results.get(PLAN_ITEM)),
        primary_failure=primary_failure(found.steps),
        failures=stage_failures(found.steps),
        steps=_shown(found.steps),
        episodes=tuple(
            EpisodeInfo(**episode.model_dump(include=set(EpisodeInfo.model_fields)))
            for episode in found.context.episodes
        ),
        answers=found.answers,
        answer_codes=dict(sorted(counts.items())),
        conflicts=tuple(
            Contradiction(
                criterion=c.code, fact=f"{c.what} ({c.between[0]}, {c.between[1]})", turns=c.turns
            )
            for c in merged.conflicts
        ),
    )


def _shown(codes: Iterable[Fired]) -> tuple[FiredCode, ...]:
    return tuple(FiredCode(**code.model_dump()) for code in codes)


def _reading(code: str, result: CriterionResult | None) -> Reading | None:
    """What the reader said of a code; None where it said nothing usable, which is not reading it."""
    if result is None or (result.status == "unscored" and result.reason != "no_evidence"):
        return None
    said = cast(dict[str, Any], result.answer) if isinstance(result.answer, dict) else {}
    state = "cannot_tell" if result.value is None else "present" if result.value > 0.5 else "absent"
    proof = [e for e in result.evidence if e.check != "not_found"]
    places = {e.actual_turn for e in proof}
    shown = proof or list(result.evidence)
    vote = next((v.probability for v in result.votes if v.probability is not None), None)
    turns = tuple(said.get("turns") or ()) or tuple(sorted(places - {0}))
    return Reading.model_validate(
        {
            "code": code,
            "state": state,
            "turns": turns,
            "facts": tuple(said.get("facts") or ()),
            "why": result.rationale,
            "confidence": said.get("confidence", 0.5 if vote is None else vote),
            "quote": shown[0] if shown else None,
        }
    )


def _plan(result: CriterionResult | None) -> tuple[PlanItem, ...]:
    """The commitments, each with its quote as checked."""
    said = (
        cast(dict[str, Any], result.answer)
        if result is not None and isinstance(result.answer, dict)
        else {}
    )
    checks = {(e.turn, e.quote): e for e in (result.evidence if result is not None else ())}
    return tuple(
        PlanItem(
            commitment=item["commitment"],
            state=item["state"],
            turns=tuple(item["turns"]),
            quote=checks.get((item["quote"]["turn"], item["quote"]["quote"])),
        )
        for item in said.get("commitments", ())
    )
