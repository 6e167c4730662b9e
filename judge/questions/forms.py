"""The form of each question's reply: how its items are put, what an entry on one of them must look
like, what it means.

A reply is one JSON object with an entry for each item, by its id. Adding a question is adding a
form here and its prompt.
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
MAX_CITED = 20
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
_VERDICTS: dict[str, float | None] = {"present": 1.0, "absent": 0.0, "cannot_tell": None}


class Doubtful(ValueError):
    """Something in a reply that must not be taken for an answer; the message is for the repair
    round."""


@dataclass(frozen=True)
class Stated:
    """What a reply literally says about one item. `state`: a value (or an answer), not applicable,
    or cannot tell."""

    id: str
    state: Literal["said", "not_applicable", "cannot_tell"]
    value: float | None = None
    reason: str = ""
    evidence: tuple[tuple[int, str], ...] = ()
    answer: JsonValue = None


class Form(Protocol):
    """One question's form. `prompt` names the prompt file."""

    prompt: str

    def line(self, item: Criterion) -> str:
        """The item as the reader sees it."""

    def schema(self, item: Criterion) -> dict[str, Any]:
        """JSON Schema of its entry. Only keywords that structured-output implementations share."""

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Stated:
        """What an entry that fits the schema says, for a run of so many turns. Doubtful when it
        says nothing usable."""


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_TURN = {"type": "integer"}
_QUOTE = closed({"turn": _TURN, "quote": _TEXT})
_QUOTES = {"type": "array", "items": _QUOTE}
_TURNS = {"type": "array", "items": _TURN}


class CriteriaForm:
    """Criteria of a rubric: evidence and reason stand before the value."""

    prompt = "criteria"

    def line(self, item: Criterion) -> str:
        lines = [f"{item.id} ({item.title})", item.text.strip()]
        lines += [f"  value {level.value:g}: {level.text.strip()}" for level in item.scale]
        if item.conditional is not None:
            lines.append(f'  value "{NOT_APPLICABLE}": unless {item.conditional.strip()}')
        return "\n".join(lines)

    def schema(self, item: Criterion) -> dict[str, Any]:
        values: dict[str, Any] = {"type": "number", "enum": [plain(v) for v in item.values]}
        if item.conditional is not None:
            values = {"anyOf": [values, {"type": "string", "enum": [NOT_APPLICABLE]}]}
        return closed({"evidence": _QUOTES, "reason": _TEXT, "value": values})

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Stated:
        value = entry["value"]
        if isinstance(value, bool):  # in Python True == 1, in a reply it is something else
            raise Doubtful("value: a boolean is not on the scale")
        cited = _cited(entry["evidence"])
        if value == NOT_APPLICABLE:
            return Stated(
                item.id, "not_applicable", reason=entry["reason"][:MAX_TEXT], evidence=cited
            )
        return Stated(item.id, "said", float(value), entry["reason"][:MAX_TEXT], cited)


class DiagnosisForm:
    """Error codes: turns, a quote and the facts stand before the verdict; the plan's commitments
    beside them."""

    prompt = "diagnosis"

    def line(self, item: Criterion) -> str:
        return f"{item.id} ({item.title})\n{item.text.strip()}"

    def schema(self, item: Criterion) -> dict[str, Any]:
        if item.id == PLAN_ITEM:
            state = {"type": "string", "enum": ["kept", "broken", "dropped"]}
            entry = closed({"commitment": _TEXT, "turns": _TURNS, "quote": _QUOTE, "state": state})
            return closed({"commitments": {"type": "array", "items": entry}})
        return closed(
            {
                "turns": _TURNS,
                "quote": _QUOTE,
                "facts": {"type": "array", "items": _TEXT},
                "why": _TEXT,
                "verdict": {"type": "string", "enum": list(_VERDICTS)},
                "confidence": {"type": "number"},
            }
        )

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Stated:
        if item.id == PLAN_ITEM:
            kept: list[JsonValue] = []
            quotes: list[tuple[int, str]] = []
            for one in entry["commitments"][:MAX_COMMITMENTS]:
                cited = _cited([one["quote"]])
                quotes += [quote for quote in cited if quote[1].strip()]
                words: JsonValue = {"turn": cited[0][0], "quote": cited[0][1]}
                what = one["commitment"][:MAX_TEXT]
                kept.append(
                    {
                        **one,
                        "commitment": what,
                        "turns": _inside(one["turns"], turns),
                        "quote": words,
                    }
                )
            return Stated(item.id, "said", evidence=tuple(quotes), answer={"commitments": kept})
        confidence = entry["confidence"]
        if isinstance(confidence, bool) or not 0 <= confidence <= 1:
            raise Doubtful("confidence: not a number from 0 to 1")
        cited = _cited([entry["quote"]] if entry["quote"]["quote"].strip() else [])
        value = _VERDICTS[entry["verdict"]]
        answer: JsonValue = {
            "turns": _inside(entry["turns"], turns),
            "facts": [str(fact)[:16] for fact in entry["facts"][:MAX_CITED]],
            "confidence": float(confidence),
        }
        state: Literal["said", "cannot_tell"] = "cannot_tell" if value is None else "said"
        return Stated(item.id, state, value, entry["why"][:MAX_TEXT], cited, answer)


class StagesForm:
    """The stage of every turn, as runs of turns: each turn stands in exactly one."""

    prompt = "stages"

    def line(self, item: Criterion) -> str:
        return item.text.strip()

    def schema(self, item: Criterion) -> dict[str, Any]:
        stage = {"type": "string", "enum": list(STAGES)}
        segment = closed({"first_turn": _TURN, "last_turn": _TURN, "what": _TEXT, "stage": stage})
        return closed({"segments": {"type": "array", "items": segment}})

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Stated:
        labels: list[JsonValue] = []
        for part in sorted(entry["segments"], key=lambda p: p["first_turn"]):
            # 3.0 is an integer in JSON
            first, last = int(part["first_turn"]), int(part["last_turn"])
            if first != len(labels) + 1 or not first <= last <= turns:
                raise Doubtful(
                    f"segments: every turn from 1 to {turns} must stand in exactly one; see turn"
                    f" {min(first, len(labels) + 1)}"
                )
            labels += [part["stage"]] * (last - first + 1)
        if len(labels) != turns:
            raise Doubtful(f"segments: they end at turn {len(labels)} of {turns}")
        return Stated(item.id, "said", answer=labels)


class AskForm:
    """An ad-hoc question: evidence and reason stand before the answer; null is "the record does not
    say"."""

    prompt = "ask"

    def line(self, item: Criterion) -> str:
        return item.text.strip()

    def schema(self, item: Criterion) -> dict[str, Any]:
        wanted = item.answer if isinstance(item, AskItem) else Answer("yes_no")
        kinds: dict[str, Any] = {
            "yes_no": {"type": "boolean"},
            "choice": {"type": "string", "enum": list(wanted.options)},
            "number": {"type": "number"},
            "text": _TEXT,
            "json": wanted.schema or {},
        }
        return closed(
            {
                "evidence": _QUOTES,
                "reason": _TEXT,
                "answer": {"anyOf": [kinds[wanted.kind], {"type": "null"}]},
            }
        )

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Stated:
        cited, answer = _cited(entry["evidence"]), entry["answer"]
        if answer is None:
            return Stated(item.id, "cannot_tell", reason=entry["reason"][:MAX_TEXT], evidence=cited)
        kind = item.answer.kind if isinstance(item, AskItem) else "yes_no"
        if kind == "number" and (isinstance(answer, bool) or abs(answer) > 1e30):
            raise Doubtful("answer: no number that can be counted with")
        if isinstance(answer, str):
            answer = answer[:MAX_TEXT]
        elif len(json.dumps(answer)) > 10 * MAX_TEXT:
            raise Doubtful(f"answer: longer than {10 * MAX_TEXT:,} characters")
        value = float(answer) if kind == "yes_no" else None
        return Stated(item.id, "said", value, entry["reason"][:MAX_TEXT], cited, answer)


class BriefForm:
    """Demands of a brief on the output files, each with the words that state it."""

    prompt = "brief"

    def line(self, item: Criterion) -> str:
        return item.text.strip()

    def schema(self, item: Criterion) -> dict[str, Any]:
        kind = {"type": "string", "enum": list(DEMAND_KINDS)}
        values = {"type": "array", "items": _TEXT}
        demand = closed({"quote": _TEXT, "kind": kind, "values": values})
        return closed({"demands": {"type": "array", "items": demand}})

    def read(self, item: Criterion, entry: Mapping[str, Any], turns: int) -> Stated:
        demands: list[JsonValue] = [
            {
                "quote": demand["quote"][:MAX_TEXT],
                "kind": demand["kind"],
                "values": [value[:MAX_TEXT] for value in demand["values"][:MAX_DEMANDED_VALUES]],
            }
            for demand in entry["demands"][:MAX_DEMANDS]
        ]
        quotes = tuple((0, demand["quote"][:MAX_TEXT]) for demand in entry["demands"])
        return Stated(item.id, "said", evidence=quotes[:MAX_DEMANDS], answer={"demands": demands})


_CRITERIA = CriteriaForm()
_BESIDE: Mapping[QuestionName, Form] = {
    "diagnosis": DiagnosisForm(),
    "stages": StagesForm(),
    "ask": AskForm(),
    "brief": BriefForm(),
}


def form_of(question: QuestionName) -> Form:
    """The form of a question's reply."""
    return _BESIDE.get(question, _CRITERIA)


def _cited(items: list[Any]) -> tuple[tuple[int, str], ...]:
    cited = tuple((int(item["turn"]), item["quote"][:MAX_TEXT]) for item in items[:MAX_CITED])
    if any(abs(turn) > 2**53 for turn, _ in cited):  # 2e100 is an integer in JSON
        raise Doubtful("a turn is beyond every number that JSON keeps exact")
    return cited


def _inside(turns: list[int], last: int) -> list[JsonValue]:
    """Those that the run has, in order, once each."""
    return [*sorted({int(turn) for turn in turns if 1 <= turn <= last})]


def plain(value: float) -> float | int:
    return int(value) if value == int(value) else value
