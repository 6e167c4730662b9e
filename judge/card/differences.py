"""What a scorecard says item by item, and where two scorecards of one run differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...error_codes.models import FiredCode
from ...trajectories.record.quotes import Evidence
from .scorecard import ScoreCard
from .stage_results import CriterionResult

_DECIMALS = 4
"""Of values that are compared."""


class Opinion(NamedTuple):
    """What a judge says of a criterion or an error code."""

    question: str
    """The stage of a criterion; `diagnosis` of a code."""
    state: str
    """scored or not_applicable; of a code present or absent."""
    value: float | None
    """Of a criterion that is scored; of a code 1 if it is present and 0 if it is absent."""
    why: str = ""
    quotes: tuple[Evidence, ...] = ()
    confidence: float | None = None
    """Of a code that a reader stated it of; of a criterion with several votes the share of those
    that gave the value; of one by likelihood its probability."""

    def __str__(self) -> str:
        """The value of a criterion; else the state."""
        if self.state == "scored" and self.value is not None:
            return f"{self.value:g}"
        return self.state.replace("_", " ")


def opinions(card: ScoreCard) -> dict[str, Opinion]:
    """What the scorecard's judge says, by criterion or code; without what facts or a tier decided,
    and without what has no answer."""
    by_item: dict[str, Opinion] = {}
    for name, stage in card.stages.items():
        for result in stage.criteria:
            if result.status in ("scored", "not_applicable") and result.by is None:
                by_item[result.id] = _of_criterion(name, result)
    by_item.update(_of_codes(card))
    return by_item


def unanswered(card: ScoreCard) -> frozenset[str]:
    """The criteria and codes that nobody has an answer to."""
    criteria = {
        result.id
        for stage in card.stages.values()
        for result in stage.criteria
        if result.status in ("unscored", "presumed")
    }
    codes = {code for code, state in card.codes_read.items() if state == "not_read"}
    return frozenset(criteria | codes)


def differing(first: dict[str, Opinion], second: dict[str, Opinion]) -> list[str]:
    """The criteria and codes about which both say something, and not the same."""
    return [
        item
        for item, opinion in first.items()
        if item in second and _answer(opinion) != _answer(second[item])
    ]


def _answer(opinion: Opinion) -> tuple[str, float | None]:
    value = opinion.value
    return opinion.state, None if value is None else round(value, _DECIMALS)


def _of_criterion(stage: str, result: CriterionResult) -> Opinion:
    return Opinion(
        question=stage,
        state=result.status,
        value=result.value,
        why=result.rationale,
        quotes=result.evidence,
        confidence=_confidence(result),
    )


def _confidence(result: CriterionResult) -> float | None:
    """How sure a verdict is by its votes; None for a single reply that states no probability."""
    votes = result.votes
    agreeing = [vote for vote in votes if vote.value == result.value]
    if len(votes) > 1:
        return len(agreeing) / len(votes)
    return agreeing[0].probability if agreeing else None


def _of_codes(card: ScoreCard) -> Iterator[tuple[str, Opinion]]:
    readings: dict[str, FiredCode] = {}
    for code_reading in (*card.unproven, *card.codes):
        if code_reading.by.startswith("judge:"):
            readings[code_reading.code] = code_reading
    for code, state in card.codes_read.items():
        if state not in ("present", "absent"):
            continue
        reading = readings.get(code)
        if reading is None:
            yield code, Opinion("diagnosis", state, float(state == "present"))
            continue
        value = float(state == "present")
        quotes = () if reading.quote is None else (reading.quote,)
        yield code, Opinion("diagnosis", state, value, reading.why, quotes, reading.confidence)
