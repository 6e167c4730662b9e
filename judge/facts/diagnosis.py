"""What went wrong in a run: the detectors' findings and a judge's readings of codes, merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...error_codes.context import CodeContext, code_context
from ...error_codes.detectors.answers import AnswerCode
from ...error_codes.fired_codes import fired_codes, primary_failure, stage_failures
from ...error_codes.merge import Reading, merge
from ...error_codes.models import CodeReading, Contradiction, EpisodeInfo, FiredCode
from ...error_codes.output_facts import OutputFacts
from ...error_codes.taxonomy import taxonomy
from ...trajectories.models import Run, Segmentation, Stage
from ..base import Reply
from ..card.fields import PlanItem
from ..card.stage_results import CriterionResult
from ..checks.vqa_answers import answer_findings, read_answers
from ..questions.items import PLAN_ITEM


@dataclass(frozen=True)
class Detected:
    """What the detectors of all taxonomies found in a run, without any reading."""

    context: CodeContext
    paper: tuple[FiredCode, ...]
    steps: tuple[FiredCode, ...]
    """Codes of the harness's taxonomy: one for each failed stage."""
    answers: tuple[AnswerCode, ...]
    """Codes of single answers; empty without answer files."""


@dataclass(frozen=True)
class Diagnosis:
    """What went wrong in a run: `codes` of the paper's taxonomy, `failures` of the harness's."""

    codes: tuple[FiredCode, ...]
    unproven: tuple[FiredCode, ...]
    """Readings *present* without proof: listed, not fired."""
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
    contradictions: tuple[Contradiction, ...]
    """Readings that a fact contradicts."""


def detect(
    run: Run, segmentation: Segmentation, outputs: OutputFacts, public: Path | None = None
) -> Detected:
    """Run every detector once; `outputs`: what was found out about the delivered files."""
    # Answers that are written while the run goes on are no deliverables yet.
    answers = () if run.status.ended == "running" else read_answers(run)
    context = code_context(run, segmentation, outputs)
    return Detected(
        context=context,
        paper=fired_codes(context),
        steps=fired_codes(context, "harness"),
        answers=answer_findings(run, answers, public),
    )


def diagnose(
    run: Run,
    segmentation: Segmentation,
    detected: Detected,
    reply: Reply | None = None,
    judge: str = "",
    precision: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Merge findings with the judge's readings (`error_codes.merge` has the rules).

    Without a reply the findings stand alone. `precision`: by code, the share of this judge's
    readings that labels confirm.
    """
    results = {result.id: result for result in (reply.results if reply else ())}
    readings = list(_readings("paper", results).values())
    merged = merge(run, segmentation, detected.paper, readings, f"judge:{judge}", precision)
    codes = sorted((*merged.findings, *merged.proven), key=lambda code: code.code)
    return Diagnosis(
        codes=tuple(codes),
        unproven=merged.unproven,
        codes_read=merged.states,
        plan=_plan(results.get(PLAN_ITEM)),
        primary_failure=primary_failure(detected.steps),
        failures=stage_failures(detected.steps),
        steps=detected.steps,
        episodes=detected.context.episodes,
        answers=detected.answers,
        answer_codes=_answer_codes(detected.answers, _readings("answers", results)),
        contradictions=merged.contradictions,
    )


def _answer_codes(
    answers: tuple[AnswerCode, ...], readings: Mapping[str, Reading]
) -> dict[str, int]:
    """How many answers earn each code; 1 for a code that was only read, and proven."""
    counts = Counter(answer.code for answer in answers)
    for code, reading in readings.items():
        if reading.state == "present" and reading.proven and not counts[code]:
            counts[code] = 1
    return dict(sorted(counts.items()))


def _readings(name: str, results: Mapping[str, CriterionResult]) -> dict[str, Reading]:
    """What the judge said of the codes of a taxonomy, by code."""
    readings = {}
    for code in taxonomy(name).codes:
        result = results.get(code.code)
        if result is not None and _is_read(result):
            readings[code.code] = _reading(result)
    return readings


def _is_read(result: CriterionResult) -> bool:
    """Whether the judge said anything usable; a failed reply is no reading."""
    return result.status != "unscored" or result.reason == "no_evidence"


def _reading(result: CriterionResult) -> Reading:
    answer: dict[str, Any] = result.answer if isinstance(result.answer, dict) else {}
    quotes = [quote for quote in result.evidence if quote.check != "not_found"]
    quote_turns = {quote.actual_turn for quote in quotes} - {0}
    turns = tuple(answer.get("turns") or ()) or tuple(sorted(quote_turns))
    probabilities = [vote.probability for vote in result.votes if vote.probability is not None]
    usual_confidence = probabilities[0] if probabilities else 0.5
    cited = quotes or list(result.evidence)
    return Reading.model_validate(
        {
            "code": result.id,
            "state": _state(result.value),
            "turns": turns,
            "facts": tuple(answer.get("facts") or ()),
            "why": result.rationale,
            "confidence": answer.get("confidence", usual_confidence),
            "quote": cited[0] if cited else None,
        }
    )


def _state(value: float | None) -> CodeReading:
    if value is None:
        return "cannot_tell"
    return "present" if value > 0.5 else "absent"


def _plan(result: CriterionResult | None) -> tuple[PlanItem, ...]:
    """The commitments of the plan, each with its quote as checked."""
    if result is None or not isinstance(result.answer, dict):
        return ()
    answer: dict[str, Any] = result.answer
    quotes = {(quote.turn, quote.quote): quote for quote in result.evidence}
    return tuple(
        PlanItem(
            commitment=item["commitment"],
            state=item["state"],
            turns=tuple(item["turns"]),
            quote=quotes.get((item["quote"]["turn"], item["quote"]["quote"])),
        )
        for item in answer.get("commitments", ())
    )
