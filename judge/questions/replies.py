"""From a model's reply to verdicts: a schema made from the items, a strict parser, and what counts.

The parser is a security boundary. A verdict is taken only from the entry under the item's own id,
and only if that entry is complete and of its form; everything else leaves the item unscored with a
reason. Nothing here can turn a missing, doubtful or failed answer into a grade.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...rubrics.model import Criterion
from ...trajectories.reading.json_bytes import without_lone_surrogates
from ...trajectories.record import Record
from ...trajectories.record.quotes import Evidence, QuoteIndex, normalise
from ...trajectories.record.strangers import quoted_words
from ..base import QuestionName, is_criteria
from ..card.stage_results import CriterionResult
from .forms import Entry, UnusableReply, closed_object, form_of

MAX_REPLY_CHARS = 200_000
"""A longer reply cannot be an answer to our question and is refused."""
MAX_DEPTH = 64
"""Nesting levels of a reply; our forms have six, an answer by the user's own schema a few more."""
_MAX_INTEGER_DIGITS = 32
_MAX_PROBLEM_CHARS = 1_500
_MAX_LISTED_OMISSIONS = 8
_MIN_FACT_QUOTE_CHARS = 4
"""Shorter quotes would be found in the facts by chance."""
_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*?)\s*```", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(
    r"</(?:think|thinking|thought|thoughts|reasoning|seed:think)>|\[/THINK\]|◁/think▷"
    r"|<\|channel\|>final<\|message\|>|<answer>|<\|begin_of_box\|>"
)
"""Marks of models behind which their answer stands."""
_ENDS_OF_ANSWER = (
    "</answer>",
    "</s>",
    "<|end_of_box|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|eot_id|>",
    "<|endoftext|>",
)
"""Marks of models that servers leave at the end of an answer."""
_MAX_THOUGHTS = 20
"""Ends of thoughts that are tried as the beginning of the answer."""


@dataclass(frozen=True)
class ParsedReply:
    """A reply, split into usable entries and problems; every item is in one of the two."""

    entries: dict[str, Entry]
    """By the item's id."""
    problems: dict[str, str]
    """Why the other items have no usable entry, by the item's id."""
    ignored: tuple[str, ...] = ()
    """Notes on parts of the reply that were not requested."""

    @property
    def problem(self) -> str:
        """All problems in one line, for the repair round; "" if there are none."""
        problems = [f"{item_id}: {problem}" for item_id, problem in self.problems.items()]
        return "; ".join(problems)[:_MAX_PROBLEM_CHARS]


def reply_schema(question: QuestionName, items: Sequence[Criterion]) -> dict[str, Any]:
    """JSON Schema of a reply: one required entry for each item, under the item's id."""
    form = form_of(question)
    return closed_object({item.id: form.schema(item) for item in items})


# Parsing.


def parse_reply(
    text: str | None, question: QuestionName, items: Sequence[Criterion], turns: int
) -> ParsedReply:
    """What the reply `text` says about each item, for a run of this many turns.

    The whole reply must be one JSON object, which may stand inside one code fence and behind the
    model's thoughts. Never raises: what cannot be used is in `problems`.
    """
    try:
        data = _parse_behind_thoughts(text)
    except UnusableReply as error:
        return ParsedReply({}, {item.id: str(error) for item in items})
    entries: dict[str, Entry] = {}
    problems: dict[str, str] = {}
    for item in items:
        try:
            entries[item.id] = _read_entry(data, question, item, turns)
        except UnusableReply as error:
            problems[item.id] = str(error)
    unrequested = len(data.keys() - {item.id for item in items})
    if not unrequested:
        return ParsedReply(entries, problems)
    noun = "entry" if unrequested == 1 else "entries"
    return ParsedReply(entries, problems, (f"{unrequested} {noun} on nothing that was asked",))


def _parse_behind_thoughts(text: str | None) -> dict[str, Any]:
    """The JSON object that the reply is, or that all of it behind the end of a thought is.

    Some servers leave out the mark where the thought begins. A thought may quote the mark of its
    end, so the answer is what stands behind one of them and is one object as a whole.
    """
    candidate = _without_end_marks(text or "")
    for _ in range(_MAX_THOUGHTS):
        mark = _END_OF_THOUGHT.search(candidate)
        if mark is None:
            break
        with suppress(UnusableReply):
            return _parse_object(candidate)
        candidate = candidate[mark.end() :]
    return _parse_object(candidate)


def _without_end_marks(text: str) -> str:
    """The text without marks at its end; a few may follow each other."""
    for _ in _ENDS_OF_ANSWER:
        text = text.rstrip()
        mark = next((mark for mark in _ENDS_OF_ANSWER if text.endswith(mark)), None)
        if mark is None:
            break
        text = text.removesuffix(mark)
    return text


def _parse_object(text: str | None) -> dict[str, Any]:
    """The JSON object that the whole reply is; UnusableReply if it is anything else."""
    body = (text or "").strip().removeprefix("\ufeff").strip()
    if not body:
        raise UnusableReply("the reply is empty")
    if len(body) > MAX_REPLY_CHARS:
        raise UnusableReply(f"the reply has {len(body):,} characters")
    fence = _FENCE.fullmatch(body)
    if fence is not None:
        body = fence.group(1)
    try:
        data = _decode(body)
        if not body.isascii() or "\\u" in body:
            # Halves of surrogate pairs cannot be encoded, so no scorecard could be written.
            data = _decode(without_lone_surrogates(json.dumps(data, ensure_ascii=False)))
    except UnusableReply:
        raise
    except (ValueError, RecursionError) as error:
        raise UnusableReply(f"the reply is not one JSON object: {error}") from None
    if not isinstance(data, dict):
        raise UnusableReply("the reply is not one JSON object")
    # Validating or writing a deeper object would overflow the stack.
    if _is_too_deep(data):
        raise UnusableReply(f"the reply is nested deeper than {MAX_DEPTH} levels")
    return data


def _decode(text: str) -> Any:
    """A JSON value without repeated keys, NaN, infinities or numbers out of range."""
    return json.loads(
        text,
        object_pairs_hook=object_without_duplicates,
        parse_constant=_refuse_constant,
        parse_float=_parse_float,
        parse_int=_parse_int,
    )


def object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its pairs; UnusableReply if it has a key twice."""
    data = dict(pairs)
    if len(data) != len(pairs):
        raise UnusableReply("an object has the same key twice")
    return data


def _refuse_constant(name: str) -> Any:
    raise UnusableReply(f"{name} is not a JSON number")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnusableReply(f"{text[:40]} is beyond every number that JSON keeps exact")
    return number


def _parse_int(text: str) -> int:
    if len(text) > _MAX_INTEGER_DIGITS:
        raise UnusableReply(f"{text[:40]} is beyond every number that can be counted with")
    return int(text)


def _is_too_deep(value: Any) -> bool:
    """Whether a value has more than MAX_DEPTH levels."""
    # Level by level instead of recursively: the reply must not exhaust our stack.
    level = [value]
    for _ in range(MAX_DEPTH):
        next_level: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                next_level += node.values()
            elif isinstance(node, list):
                next_level += node
        level = next_level
    return bool(level)


def _read_entry(data: dict[str, Any], question: QuestionName, item: Criterion, turns: int) -> Entry:
    """An item's entry, validated by its own part of the schema; UnusableReply if it is not valid.

    Extra keys are refused: they may be a second answer.
    """
    if item.id not in data:
        raise UnusableReply("no entry")
    error = next(_validator(question, item).iter_errors(data[item.id]), None)
    if error is not None:
        location = ".".join(str(step) for step in error.absolute_path)
        message = f"{location}: {error.message}" if location else str(error.message)
        raise UnusableReply(message[:200])
    return form_of(question).read(item, data[item.id], turns)


@lru_cache(maxsize=1_024)
def _validator(question: QuestionName, item: Criterion) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(form_of(question).schema(item))


# Verdicts.


def to_results(
    parsed: ParsedReply,
    question: QuestionName,
    items: Sequence[Criterion],
    record: Record,
    quotes: QuoteIndex,
) -> tuple[CriterionResult, ...]:
    """Turn parsed entries into verdicts, in the order of `items`, with quotes checked.

    A criterion's lowest value on a truncated record counts only with a quote that was found in the
    run: nobody can see an absence in what was not shown. Otherwise the criterion is unscored as
    `truncated`.
    """
    return tuple(_result(parsed, question, item, record, quotes) for item in items)


def _result(
    parsed: ParsedReply,
    question: QuestionName,
    item: Criterion,
    record: Record,
    quotes: QuoteIndex,
) -> CriterionResult:
    """The verdict on one item: unparsable, not applicable, no evidence, truncated, or scored."""
    entry = parsed.entries.get(item.id)
    if entry is None:
        detail = parsed.problems.get(item.id, "no entry")
        return CriterionResult.unscored(item.id, "unparsable", detail)
    evidence = tuple(_check_quote(turn, quote, record, quotes) for turn, quote in entry.quotes)
    answer = entry.answer
    if question == "diagnosis" and isinstance(answer, dict):
        answer = _with_facts_of_record(answer, record)
    if entry.state == "not_applicable":
        return CriterionResult(
            id=item.id,
            value=None,
            status="not_applicable",
            detail=item.conditional or "",
            rationale=entry.reason,
            evidence=evidence,
        )
    if entry.state == "cannot_tell":
        return CriterionResult.unscored(
            item.id,
            "no_evidence",
            "the judge cannot tell from the record",
            rationale=entry.reason,
            evidence=evidence,
            answer=answer,
        )
    is_lowest = is_criteria(question) and entry.value == min(item.values)
    has_found_quote = any(quote.check != "not_found" for quote in evidence)
    if is_lowest and record.truncated and not has_found_quote:
        omissions = describe_omissions(record)
        return CriterionResult.unscored(
            item.id,
            "truncated",
            f"judged not met without a quote that was found, while {omissions}",
            rationale=entry.reason,
            evidence=evidence,
        )
    return CriterionResult(
        id=item.id,
        value=entry.value,
        status="scored",
        rationale=entry.reason,
        evidence=evidence,
        answer=answer,
    )


def _with_facts_of_record(answer: dict[str, Any], record: Record) -> dict[str, Any]:
    """The answer to a diagnosis without fact ids that the record does not have."""
    fact_ids = answer.get("facts")
    if not isinstance(fact_ids, list):
        return answer
    return {**answer, "facts": [fact_id for fact_id in fact_ids if fact_id in record.fact_ids]}


def _check_quote(turn: int, quote: str, record: Record, quotes: QuoteIndex) -> Evidence:
    """The quote checked against its turn.

    Turn 0 stands for the plan, the brief and the facts. The facts are part of the record but not of
    the run that `quotes` indexes, so they are searched here. Words that a fact itself only quotes,
    such as the beginning of a file, are no fact: a quote of them must say where they stand.
    """
    evidence = quotes.check(turn, quote)
    may_quote_facts = turn == 0 and len(quote.strip()) >= _MIN_FACT_QUOTE_CHARS
    if evidence.check == "verified" or not may_quote_facts:
        return evidence
    words = normalise(quote)
    is_from_stranger = any(words in normalise(text) for text in quoted_words(record.facts))
    if words in normalise(record.facts) and not is_from_stranger:
        return Evidence(turn=0, quote=quote, check="verified")
    return evidence


def describe_omissions(record: Record) -> str:
    """A phrase on what the record lacks: `turn 7, turn 9 left out or cut (12,480 characters)`."""
    omissions = [omission for omission in record.left_out if omission.relevant]
    names = [
        "plan.md or brief" if omission.turn == 0 else f"turn {omission.turn}"
        for omission in omissions[:_MAX_LISTED_OMISSIONS]
    ]
    omitted = ", ".join(names)
    if len(omissions) > _MAX_LISTED_OMISSIONS:
        omitted += " …"
    chars = sum(omission.chars for omission in omissions)
    return f"{omitted} left out or cut ({chars:,} characters)"
