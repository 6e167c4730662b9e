"""Recompute every number of a scorecard from its own criteria and checks, without any model.

Serialised scores are rounded to 4 decimals (overall 2), so recomputed ones may differ by what
rounding their inputs and themselves explains: 1e-4 for stages and Agentic, 0.01 for Overall.
Anything more is a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError
from ...rubrics.load import load_rubric
from ...rubrics.model import Rubric
from ..checks.harness_branch import DIGITS, branch_of, reported, reported_bounds, setup_score
from .read_share import shares
from .scorecard import ScoreCard
from .scoring import Cap, aggregate, apply_caps, s4_bounds, s5_bounds, stage_score
from .scoring_rules import LIKE
from .stage_results import StageResult

STAGE_TOLERANCE = 1e-4 + 1e-9
OVERALL_TOLERANCE = 1e-2 + 1e-9


@dataclass(frozen=True)
class Difference:
    """One number (or list) of a scorecard that its own parts do not give."""

    field: str
    stated: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.field}: stated {_show(self.stated)}, recomputed {_show(self.recomputed)}"


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_show(v) for v in value) + "]"
    return "null" if value is None else str(value)


def parse_card(data: Any, where: str) -> ScoreCard:
    """A scorecard from JSON data; InputError naming the first field that breaks the schema."""
    if not isinstance(data, Mapping) or data.get("schema") != "ambjudge.scorecard/1":
        got = data.get("schema") if isinstance(data, Mapping) else type(data).__name__
        raise InputError(
            f"{where}: not a scorecard (schema is {got!r})", "expected schema ambjudge.scorecard/1"
        )
    try:
        return ScoreCard.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{where}: {field}: {first['msg']}", f"{error.error_count()} field(s) break the schema"
        ) from None


def rubric_of(card: ScoreCard, given: str | Path | None = None) -> Rubric:
    """The rubric that a scorecard names, or the one given; InputError when its hash is not the
    card's."""
    if not card.rubric.sha256.strip("0"):
        raise InputError(
            "drawn by no rubric (`ambjudge simulate`), so that there is nothing to recompute its"
            " scores from",
            "what was planted is in the .truth.json beside it",
        )
    rubric = load_rubric(given or card.rubric.id)
    if rubric.sha256 != card.rubric.sha256:
        raise InputError(
            f"rubric {rubric.id} {rubric.version} is not the one of the scorecard ({card.rubric.id}"
            f" {card.rubric.version}, sha256 {card.rubric.sha256[:12]}…)",
            "give the rubric file that was used with --rubric",
        )
    return rubric


def verify(card: ScoreCard, rubric: Rubric) -> list[Difference]:
    """Every difference between the scorecard and what its criteria, checks and policies give; empty
    when it holds."""
    found: list[Difference] = []
    scores: dict[str, float | None] = {}
    bounds: dict[str, tuple[float, float]] = {}
    for stage in sorted({*rubric.stages, *card.stages}):
        result = card.stages.get(stage)
        if result is None or stage not in rubric.stages:
            states = (
                ("absent", "a stage of the rubric")
                if result is None
                else ("there", "no stage of the rubric")
            )
            found.append(Difference(f"stages.{stage}", *states))
            continue
        score, span = _stage(stage, result, card, rubric, found)
        scores[stage], bounds[stage] = result.counted, result.bounds
        if "counted" in result.parts:
            _compare(found, f"stages.{stage}.parts.counted", result.counted, score, STAGE_TOLERANCE)
            bounds[stage] = span
            score, span = (
                None if score is None else reported(result.parts, score),
                reported_bounds(result.parts, span),
            )
        _compare(found, f"stages.{stage}.score", result.score, score, STAGE_TOLERANCE)
        _compare(found, f"stages.{stage}.bounds", result.bounds, span, STAGE_TOLERANCE)
    digits = None if card.policy.like == "paper" else DIGITS
    total = aggregate(scores, bounds, rubric.weights, card.task, card.policy.missing, digits)
    _compare(found, "agentic", card.agentic, total.agentic, STAGE_TOLERANCE)
    _compare(found, "agentic_bounds", card.agentic_bounds, total.agentic_bounds, STAGE_TOLERANCE)
    _compare(found, "overall", card.overall, total.overall, OVERALL_TOLERANCE)
    _compare(found, "overall_bounds", card.overall_bounds, total.overall_bounds, OVERALL_TOLERANCE)
    share = shares(card.stages, rubric)
    _compare(found, "read_share", card.read_share, share.read, STAGE_TOLERANCE)
    _compare(found, "presumed_share", card.presumed_share, share.presumed, STAGE_TOLERANCE)
    _structure(card, rubric, found)
    return found


def _stage(
    stage: str, result: StageResult, card: ScoreCard, rubric: Rubric, found: list[Difference]
) -> tuple[float | None, tuple[float, float]]:
    if result.method == "policy":
        if not card.status.disqualified:
            found.append(
                Difference(
                    f"stages.{stage}.method",
                    "policy",
                    "no policy zeroes a run that is not disqualified",
                )
            )
        return None if result.score is None else 0.0, (0.0, 0.0)
    if stage == "S2" and result.parts:
        return (score := setup_score(result.parts)), (score, score)
    branch = branch_of(card.policy, card.run.track)
    caps = [Cap(result.cap, result.cap_reason)] if result.cap is not None else []
    if stage in ("S4", "S5"):
        checks = result.checks
        if checks is None:
            return None, (0.0, 1.0)
        if stage == "S4":
            validity = checks.parse_rate if checks.parse_rate is not None else checks.format_valid
            span = s4_bounds(
                checks.completion, validity, caps, None if branch is None else branch.s4_digits
            )
        else:
            span = s5_bounds(checks.has_valid_results, checks.format_valid, card.policy.malformed)
        return (span[0] if span[0] == span[1] else None), span
    try:
        digits = None if branch is None else branch.judged_digits
        value, span = stage_score(
            result.criteria, rubric.stages[stage].criteria, card.policy.missing, digits
        )
    except ValueError as error:
        found.append(
            Difference(f"stages.{stage}.criteria", str(error), "results of the rubric's criteria")
        )
        return None, (0.0, 1.0)
    return apply_caps(value, span, caps, LIKE[card.policy.like].unscored_is_cap)


def _structure(card: ScoreCard, rubric: Rubric, found: list[Difference]) -> None:
    scales = {c.id: c.values for c in rubric.criteria()}
    for stage in card.stages.values():
        for c in stage.criteria:
            if (c.value is None) != (c.status in ("unscored", "not_applicable")):
                found.append(
                    Difference(f"{c.id}.value", c.value, f"what status {c.status} asks for")
                )
            if c.status == "unscored" and c.reason is None:
                found.append(Difference(f"{c.id}.reason", None, "a reason, as it is unscored"))
            if c.status == "presumed" and (c.votes or c.evidence):
                found.append(
                    Difference(f"{c.id}.evidence", "evidence or votes", "none, as it is presumed")
                )
            if (
                c.status in ("scored", "presumed")
                and len(c.votes) < 2
                and c.value not in scales.get(c.id, (c.value,))
            ):
                found.append(Difference(f"{c.id}.value", c.value, f"one of {scales[c.id]}"))
            found.extend(_turn_range(f"{c.id}.evidence", [e.turn for e in c.evidence], card))
    for code in card.codes:
        found.extend(_turn_range(f"codes.{code.code}.turns", code.turns, card))
    for code in card.unproven:
        found.extend(_turn_range(f"unproven.{code.code}.turns", code.turns, card))
    for item in card.plan:
        found.extend(_turn_range("plan.turns", item.turns, card))
    _readings(card, found)
    if len(card.turn_stages) != card.run.turns:
        found.append(
            Difference("turn_stages", f"{len(card.turn_stages)} turns", f"{card.run.turns} turns")
        )
    spelled = [s.stage for s in card.segments for _ in range(s.first_turn, s.last_turn + 1)]
    if spelled != list(card.turn_stages):
        found.append(
            Difference("segments", "other turns", "the runs of equal stages in turn_stages")
        )


def _readings(card: ScoreCard, found: list[Difference]) -> None:
    """Codes that are present are those that fired; readings without proof did not."""
    tagged = [code for code in card.codes if code.taxonomy == "paper"]
    listed, known = (
        {c.code for c in tagged},
        {c.code for c in tagged if c.independence != "from_score"},
    )
    for name in sorted(listed | card.codes_read.keys()):
        state = card.codes_read.get(name, "not_read")
        if name in known and state != "present":
            found.append(Difference(f"codes_read.{name}", state, "present, as it fired"))
        elif state == "present" and name not in listed:
            found.append(Difference(f"codes_read.{name}", state, "not present, as it did not fire"))
    said = {(code.code, code.by) for code in card.codes}
    for code in card.unproven:
        if (code.code, code.by) in said:
            found.append(Difference(f"unproven.{code.code}", "fired", "listed, not fired"))
        elif code.turns and code.quote is not None and code.quote.check != "not_found":
            found.append(
                Difference(f"unproven.{code.code}", "unproven", "fired, as its words were found")
            )


def _turn_range(field: str, turns: Any, card: ScoreCard) -> list[Difference]:
    # Turn 0 stands for what lies outside the turns: the brief and files.
    wrong = [t for t in turns if not 0 <= t <= card.run.turns]
    return [Difference(field, wrong, f"turns in 1..{card.run.turns}")] if wrong else []


def _compare(
    found: list[Difference], field: str, stated: Any, recomputed: Any, tolerance: float
) -> None:
    pairs = (
        zip(stated, recomputed, strict=True)
        if isinstance(stated, tuple)
        else ((stated, recomputed),)
    )
    for a, b in pairs:
        if (a is None) != (b is None) or (
            a is not None and b is not None and abs(a - b) > tolerance
        ):
            found.append(Difference(field, stated, recomputed))
            return
