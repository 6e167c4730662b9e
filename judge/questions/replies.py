"""From a model's reply to verdicts: a schema made from the items, a strict parser, and the rules of
what counts.

The parser is a security boundary. A verdict is taken only from the entry under the item's own id,
only when the entry is whole and of its form; everything else leaves that item unscored with a
reason. Nothing here can turn a missing, doubtful or failed answer into a grade.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...rubrics.model import Criterion
from ...trajectories.reading.json_bytes import without_lone_surrogates
from ...trajectories.record import Record
from ...trajectories.record.quotes import Evidence, QuoteIndex, normalise
from ..base import QuestionName, is_criteria
from ..card.stage_results import CriterionResult
from .forms import Doubtful, Stated, closed, form_of

MAX_REPLY = 200_000
"""Characters; a longer reply is no answer to our question."""
MAX_DEPTH = 64
"""Levels of a reply; our forms have six, an answer by the user's own schema a few more."""
_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\r?\n```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """Usable entries by id, and for the others what is wrong."""

    stated: dict[str, Stated]
    problems: dict[str, str]
    ignored: tuple[str, ...] = field(default=())
    """Things in the reply that were not asked for, in words."""

    @property
    def problem(self) -> str:
        """All problems in one line, for the repair round; "" when there are none."""
        return "; ".join(f"{name}: {what}" for name, what in self.problems.items())[:1_500]


def reply_schema(question: QuestionName, items: Sequence[Criterion]) -> dict[str, Any]:
    """JSON Schema of a reply: one entry an item, by its id, all of them required."""
    form = form_of(question)
    return closed({item.id: form.schema(item) for item in items})


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its pairs; Doubtful for one that has a key twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Doubtful("an object has the same key twice")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise Doubtful(f"{text[:40]} is beyond every number that JSON keeps exact")
    return number


def _whole(text: str) -> int:
    if len(text) > 32:
        raise Doubtful(f"{text[:40]} is beyond every number that can be counted with")
    return int(text)


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            part
            for v in level
            if isinstance(v, dict | list)
            for part in (v.values() if isinstance(v, dict) else v)
        ]
    return bool(level)


def _constant(name: str) -> Any:
    raise Doubtful(f"{name} is no JSON number")


def parse_reply(
    text: str | None, question: QuestionName, items: Sequence[Criterion], turns: int
) -> Parsed:
    """What `text` states about each item, for a run of so many turns.

    The whole reply must be one JSON object, at most inside one fence.
    """
    try:
        data = _read(text)
    except Doubtful as error:
        return Parsed({}, {item.id: str(error) for item in items})
    stated: dict[str, Stated] = {}
    problems: dict[str, str] = {}
    for item in items:
        try:
            stated[item.id] = _entry(data, question, item, turns)
        except Doubtful as error:
            problems[item.id] = str(error)
    strange = len(data.keys() - {item.id for item in items})
    ignored = (
        (f"{strange} entr{'y' if strange == 1 else 'ies'} on nothing that was asked",)
        if strange
        else ()
    )
    return Parsed(stated, problems, ignored)


def _decode(text: str) -> Any:
    return json.loads(
        text,
        object_pairs_hook=each_key_once,
        parse_constant=_constant,
        parse_float=_finite,
        parse_int=_whole,
    )


def _read(text: str | None) -> dict[str, Any]:
    body = (text or "").strip().removeprefix("\ufeff").strip()
    if not body:
        raise Doubtful("the reply is empty")
    if len(body) > MAX_REPLY:
        raise Doubtful(f"the reply has {len(body):,} characters")
    if fence := _FENCE.fullmatch(body):
        body = fence.group(1)
    try:
        data = _decode(body)
        if not body.isascii() or "\\u" in body:
            # Halves of surrogate pairs, which no scorecard can be written with.
            data = _decode(without_lone_surrogates(json.dumps(data, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise Doubtful(
            str(error)
            if isinstance(error, Doubtful)
            else f"the reply is not one JSON object: {error}"
        ) from None
    if not isinstance(data, dict):
        raise Doubtful("the reply is not one JSON object")
    if _too_deep(data):
        raise Doubtful(f"the reply is nested deeper than {MAX_DEPTH} levels")
    return data


def _entry(data: dict[str, Any], question: QuestionName, item: Criterion, turns: int) -> Stated:
    """One entry, held against its own part of the schema. Extra keys are refused: they may be a
    second answer."""
    if item.id not in data:
        raise Doubtful("no entry")
    error = next(_validator(question, item).iter_errors(data[item.id]), None)
    if error is not None:
        where = ".".join(str(p) for p in error.absolute_path)
        raise Doubtful(f"{where + ': ' if where else ''}{error.message}"[:200])
    return form_of(question).read(item, data[item.id], turns)


@lru_cache(maxsize=1_024)
def _validator(question: QuestionName, item: Criterion) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(form_of(question).schema(item))


def to_results(
    parsed: Parsed,
    question: QuestionName,
    items: Sequence[Criterion],
    record: Record,
    quotes: QuoteIndex,
) -> tuple[CriterionResult, ...]:
    """Verdicts in the order of `items`, their quotes checked against the run.

    A criterion's lowest value given on truncated evidence stands only with a quote that was found:
    absence cannot be seen in what was not shown, so that it is unscored as `truncated` otherwise.
    """
    return tuple(_result(parsed, question, item, record, quotes) for item in items)


def _result(
    parsed: Parsed, question: QuestionName, item: Criterion, record: Record, quotes: QuoteIndex
) -> CriterionResult:
    said = parsed.stated.get(item.id)
    if said is None:
        detail = parsed.problems.get(item.id, "no entry")
        return CriterionResult.unscored(item.id, "unparsable", detail)
    evidence = tuple(_check(turn, quote, record, quotes) for turn, quote in said.evidence)
    answer = said.answer
    if (
        isinstance(answer, dict)
        and question == "diagnosis"
        and isinstance(named := answer.get("facts"), list)
    ):
        answer = {**answer, "facts": [fact for fact in named if fact in record.fact_ids]}
    if said.state == "not_applicable":
        return CriterionResult(
            id=item.id,
            value=None,
            status="not_applicable",
            detail=item.conditional or "",
            rationale=said.reason,
            evidence=evidence,
        )
    if said.state == "cannot_tell":
        return CriterionResult.unscored(
            item.id,
            "no_evidence",
            "the reader cannot tell from the record",
            rationale=said.reason,
            evidence=evidence,
            answer=answer,
        )
    proven = any(e.check != "not_found" for e in evidence)
    if is_criteria(question) and record.truncated and said.value == min(item.values) and not proven:
        detail = f"judged not met without proof, while {describe_omissions(record)}"
        return CriterionResult.unscored(
            item.id, "truncated", detail, rationale=said.reason, evidence=evidence
        )
    return CriterionResult(
        id=item.id,
        value=said.value,
        status="scored",
        rationale=said.reason,
        evidence=evidence,
        answer=answer,
    )


def _check(turn: int, quote: str, record: Record, quotes: QuoteIndex) -> Evidence:
    """Turn 0 is the plan, the brief and the facts; the facts are ours and stand in no turn."""
    found = quotes.check(turn, quote)
    if (
        found.check != "verified"
        and turn == 0
        and len(quote.strip()) >= 4
        and normalise(quote) in normalise(record.facts)
    ):
        return Evidence(turn=0, quote=quote, check="verified")
    return found


def describe_omissions(record: Record) -> str:
    """What was left out of the record, in words: `turns 7, 9 were left out or cut (12,480
    characters)`."""
    gone = [o for o in record.left_out if o.relevant]
    names = ", ".join("plan.md or brief" if o.turn == 0 else f"turn {o.turn}" for o in gone[:8]) + (
        " …" if len(gone) > 8 else ""
    )
    return f"{names} left out or cut ({sum(o.chars for o in gone):,} characters)"
