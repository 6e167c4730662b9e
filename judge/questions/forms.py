"""The form of each question's reply: how items are listed, what an entry looks like, what it means.

A reply is one JSON object with an entry for each item, under the item's id. To add a question, add
a form here and its prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from ...rubrics.model import Criterion
from ...trajectories.models import STAGES
from ..base import QuestionName
from .items import PLAN_ITEM, Answer, AskItem

NOT_APPLICABLE = "not_applicable"
MAX_QUOTES = 20
"""Quotes and facts of one entry that are kept."""
MAX_COMMITMENTS = 40
MAX_DEMANDS = 40
MAX_DEMANDED_VALUES = 100
DEMAND_KINDS = (
    "case_file",
    "file",
    "validation_file",
    "dtype",
    "range",
    "unit",
    "labels",
    "classes",
    "every_class_occurs",
    "axes",
)
"""What a brief may demand of output files; `briefs` turns them into a format."""
MAX_TEXT = 2_000
"""Characters of a reason or a free answer that are kept."""
_VERDICT_VALUES: dict[str, float | None] = {"present": 1.0, "absent": 0.0, "cannot_tell": None}


class UnusableReply(ValueError):
    """Something in a reply that must not be taken for an answer.

    The message is shown to the model in the repair round.
    """


@dataclass(frozen=True)
class Entry:
    """What a reply literally says about one item."""

    id: str
    state: Literal["answered", "not_applicable", "cannot_tell"]
    value: float | None = None
    reason: str = ""
    quotes: tuple[tuple[int, str], ...] = ()
    """(turn, words) as the reply cites them; not checked yet."""
    answer: JsonValue = None


class Form(Protocol):
    """The form of one question's reply."""

    prompt: str
    """Name of the prompt file."""

    def line(self, item: Criterion) -> str:
        """The item as the prompt lists it."""

    def schema(self, item: Criterion) -> dict[str, Any]:
        """JSON Schema of the item's entry.

        It uses only keywords that implementations of structured output have in common.
        """

    def reply_tokens(self, item: Criterion, turns: int) -> int:
        """The most tokens that an entry about a run of this many turns takes, with room to spare.

        Twice what the longest of the recorded replies took (`tests/data/readings`).
        """

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Entry:
        """What an entry that fits the schema says about a run of this many turns.

        Raises UnusableReply if it says nothing usable.
        """


def closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_TURN = {"type": "integer"}
_QUOTE = closed_object({"turn": _TURN, "quote": _TEXT})
_QUOTES = {"type": "array", "items": _QUOTE}
_TURNS = {"type": "array", "items": _TURN}


class CriteriaForm:
    """Criteria of a rubric: evidence and reason come before the value."""

    prompt = "criteria"

    def line(self, item: Criterion) -> str:
        lines = [f"{item.id} ({item.title})", item.text.strip()]
        lines += [f"  value {level.value:g}: {level.text.strip()}" for level in item.scale]
        if item.conditional is not None:
            lines.append(f'  value "{NOT_APPLICABLE}": unless {item.conditional.strip()}')
        return "\n".join(lines)

    def schema(self, item: Criterion) -> dict[str, Any]:
        values: dict[str, Any] = {
            "type": "number",
            "enum": [_plain_number(value) for value in item.values],
        }
        if item.conditional is not None:
            values = {"anyOf": [values, {"type": "string", "enum": [NOT_APPLICABLE]}]}
        return closed_object({"evidence": _QUOTES, "reason": _TEXT, "value": values})

    def reply_tokens(self, item: Criterion, turns: int) -> int:
        return 520

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Entry:
        value = entry["value"]
        # In Python True equals 1, so that the schema's enum lets it pass.
        if isinstance(value, bool):
            raise UnusableReply("value: a boolean is not on the scale")
        inapplicable = value == NOT_APPLICABLE
        return Entry(
            id=item.id,
            state="not_applicable" if inapplicable else "answered",
            value=None if inapplicable else float(value),
            reason=entry["reason"][:MAX_TEXT],
            quotes=_read_quotes(entry["evidence"]),
        )


class DiagnosisForm:
    """Error codes and the commitments of the plan.

    Of a code, turns, a quote and facts come before the verdict.
    """

    prompt = "diagnosis"

    def line(self, item: Criterion) -> str:
        return f"{item.id} ({item.title})\n{item.text.strip()}"

    def schema(self, item: Criterion) -> dict[str, Any]:
        if item.id == PLAN_ITEM:
            state = {"type": "string", "enum": ["kept", "broken", "dropped"]}
            entry = closed_object(
                {"commitment": _TEXT, "turns": _TURNS, "quote": _QUOTE, "state": state}
            )
            return closed_object({"commitments": {"type": "array", "items": entry}})
        return closed_object(
            {
                "turns": _TURNS,
                "quote": _QUOTE,
                "facts": {"type": "array", "items": _TEXT},
                "why": _TEXT,
                "verdict": {"type": "string", "enum": list(_VERDICT_VALUES)},
                "confidence": {"type": "number"},
            }
        )

    def reply_tokens(self, item: Criterion, turns: int) -> int:
        # A plan has any number of commitments; a code has one quote and one reason.
        return 1_600 if item.id == PLAN_ITEM else 380

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Entry:
        if item.id == PLAN_ITEM:
            return self._read_commitments(entry["commitments"][:MAX_COMMITMENTS], turns)
        confidence = entry["confidence"]
        if isinstance(confidence, bool) or not 0 <= confidence <= 1:
            raise UnusableReply("confidence: not a number from 0 to 1")
        has_quote = bool(entry["quote"]["quote"].strip())
        value = _VERDICT_VALUES[entry["verdict"]]
        answer: JsonValue = {
            "turns": _existing_turns(entry["turns"], turns),
            "facts": [str(fact)[:16] for fact in entry["facts"][:MAX_QUOTES]],
            "confidence": float(confidence),
        }
        return Entry(
            id=item.id,
            state="cannot_tell" if value is None else "answered",
            value=value,
            reason=entry["why"][:MAX_TEXT],
            quotes=_read_quotes([entry["quote"]] if has_quote else []),
            answer=answer,
        )

    def _read_commitments(self, commitments: list[Any], turns: int) -> Entry:
        usable: list[JsonValue] = []
        quotes: list[tuple[int, str]] = []
        for commitment in commitments:
            ((turn, words),) = _read_quotes([commitment["quote"]])
            if words.strip():
                quotes.append((turn, words))
            usable.append(
                {
                    **commitment,
                    "commitment": commitment["commitment"][:MAX_TEXT],
                    "turns": _existing_turns(commitment["turns"], turns),
                    "quote": {"turn": turn, "quote": words},
                }
            )
        return Entry(PLAN_ITEM, "answered", quotes=tuple(quotes), answer={"commitments": usable})


class StagesForm:
    """The stage of every turn, as segments: each turn is part of exactly one."""

    prompt = "stages"

    def line(self, item: Criterion) -> str:
        return item.text.strip()

    def schema(self, item: Criterion) -> dict[str, Any]:
        stage = {"type": "string", "enum": list(STAGES)}
        segment = closed_object(
            {"first_turn": _TURN, "last_turn": _TURN, "what": _TEXT, "stage": stage}
        )
        return closed_object({"segments": {"type": "array", "items": segment}})

    def reply_tokens(self, item: Criterion, turns: int) -> int:
        # Every turn may be a segment of its own.
        return 400 + 60 * turns

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Entry:
        stages: list[JsonValue] = []
        for segment in sorted(entry["segments"], key=lambda each: each["first_turn"]):
            # 3.0 is an integer in JSON.
            first, last = int(segment["first_turn"]), int(segment["last_turn"])
            if first != len(stages) + 1 or not first <= last <= turns:
                raise UnusableReply(
                    f"segments: every turn from 1 to {turns} must stand in exactly one; see turn"
                    f" {min(first, len(stages) + 1)}"
                )
            stages += [segment["stage"]] * (last - first + 1)
        if len(stages) != turns:
            raise UnusableReply(f"segments: they end at turn {len(stages)} of {turns}")
        return Entry(item.id, "answered", answer=stages)


class AskForm:
    """An ad-hoc question: evidence and reason come before the answer.

    An answer of null means that the record does not say.
    """

    prompt = "ask"

    def line(self, item: Criterion) -> str:
        return item.text.strip()

    def schema(self, item: Criterion) -> dict[str, Any]:
        requested = _requested_answer(item)
        answers: dict[str, Any] = {
            "yes_no": {"type": "boolean"},
            "choice": {"type": "string", "enum": list(requested.options)},
            "number": {"type": "number"},
            "text": _TEXT,
            "json": requested.schema or {},
        }
        return closed_object(
            {
                "evidence": _QUOTES,
                "reason": _TEXT,
                "answer": {"anyOf": [answers[requested.kind], {"type": "null"}]},
            }
        )

    def reply_tokens(self, item: Criterion, turns: int) -> int:
        answers = {"text": 800, "json": 4_000}
        return 600 + answers.get(_requested_answer(item).kind, 0)

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Entry:
        quotes, reason = _read_quotes(entry["evidence"]), entry["reason"][:MAX_TEXT]
        answer = entry["answer"]
        if answer is None:
            return Entry(item.id, "cannot_tell", reason=reason, quotes=quotes)
        kind = _requested_answer(item).kind
        if kind == "number" and (isinstance(answer, bool) or abs(answer) > 1e30):
            raise UnusableReply("answer: no number that can be counted with")
        if isinstance(answer, str):
            answer = answer[:MAX_TEXT]
        elif len(json.dumps(answer)) > 10 * MAX_TEXT:
            raise UnusableReply(f"answer: longer than {10 * MAX_TEXT:,} characters")
        value = float(answer) if kind == "yes_no" else None
        return Entry(item.id, "answered", value, reason, quotes, answer)


def _requested_answer(item: Criterion) -> Answer:
    return item.answer if isinstance(item, AskItem) else Answer("yes_no")


class BriefForm:
    """Demands of a brief on the output files, each with the words that state it."""

    prompt = "brief"

    def line(self, item: Criterion) -> str:
        return item.text.strip()

    def schema(self, item: Criterion) -> dict[str, Any]:
        kind = {"type": "string", "enum": list(DEMAND_KINDS)}
        values = {"type": "array", "items": _TEXT}
        demand = closed_object({"quote": _TEXT, "kind": kind, "values": values})
        return closed_object({"demands": {"type": "array", "items": demand}})

    def reply_tokens(self, item: Criterion, turns: int) -> int:
        return 100 * MAX_DEMANDS

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Entry:
        demands: list[JsonValue] = [
            {
                "quote": demand["quote"][:MAX_TEXT],
                "kind": demand["kind"],
                "values": [value[:MAX_TEXT] for value in demand["values"][:MAX_DEMANDED_VALUES]],
            }
            for demand in entry["demands"][:MAX_DEMANDS]
        ]
        quotes = tuple((0, demand["quote"][:MAX_TEXT]) for demand in entry["demands"])
        return Entry(item.id, "answered", quotes=quotes[:MAX_DEMANDS], answer={"demands": demands})


_CRITERIA_FORM = CriteriaForm()
_OTHER_FORMS: Mapping[QuestionName, Form] = {
    "diagnosis": DiagnosisForm(),
    "stages": StagesForm(),
    "ask": AskForm(),
    "brief": BriefForm(),
}


def form_of(question: QuestionName) -> Form:
    """The form of a question's reply."""
    return _OTHER_FORMS.get(question, _CRITERIA_FORM)


def _read_quotes(items: list[Any]) -> tuple[tuple[int, str], ...]:
    quotes = tuple((int(item["turn"]), item["quote"][:MAX_TEXT]) for item in items[:MAX_QUOTES])
    # 2e100 is an integer in JSON.
    if any(abs(turn) > 2**53 for turn, _ in quotes):
        raise UnusableReply("a turn is beyond every number that JSON keeps exact")
    return quotes


def _existing_turns(turns: list[int], last: int) -> list[JsonValue]:
    """The turns that the run has, in order, each once."""
    return [*sorted({int(turn) for turn in turns if 1 <= turn <= last})]


def _plain_number(value: float) -> float | int:
    """1 instead of 1.0, as the prompt writes it."""
    return int(value) if value == int(value) else value
