"""From a model's reply to verdicts: a schema made from the criteria, a strict parser, and the rules of what counts.

The parser is a security boundary. A value is taken only from the entry that names the criterion, only when the entry is
whole and the value is on the criterion's scale; everything else leaves that criterion unscored with a reason. Nothing
here can turn a missing, doubtful or failed answer into a grade.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..rubrics.model import Criterion
from ..trajectories.models import Run, Stage
from .evidence import EvidencePack
from .quotes import QuoteIndex, normalise
from .scorecard import CriterionResult, Evidence, FiredCode, UnscoredReason

NOT_APPLICABLE = "not_applicable"
CODES = ("E1", "E2", "E3", "E4", "E5")
MAX_REPLY = 200_000
"""Characters; a longer reply is no answer to our question."""
_MAX_CITED = 20
_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\r?\n```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Stated:
    """What the reply literally says about one criterion. `value` None means `not_applicable`."""

    id: str
    value: float | None
    reason: str
    evidence: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Parsed:
    """Usable entries by id, for the others what is wrong, and well-formed proposed codes (code, turns, why)."""

    stated: dict[str, Stated]
    problems: dict[str, str]
    codes: tuple[tuple[str, tuple[int, ...], str], ...] = ()
    ignored: tuple[str, ...] = field(default=())
    """Things in the reply that were not asked for, in words."""

    @property
    def problem(self) -> str:
        """All problems in one line, for the repair round; "" when there are none."""
        return "; ".join(f"{name}: {what}" for name, what in self.problems.items())[:1_500]


def reply_schema(criteria: Sequence[Criterion]) -> dict[str, Any]:
    """JSON Schema of a reply on these criteria; evidence and reason stand before the value.

    One `anyOf` branch a criterion ties each id to its own scale. Only keywords that structured-output
    implementations share are used, so lengths and "each id once" are left to the parser.
    """
    evidence = _object({"turn": {"type": "integer"}, "quote": {"type": "string"}})
    entries = [
        _object({
            "id": {"type": "string", "enum": [c.id]},
            "evidence": {"type": "array", "items": evidence},
            "reason": {"type": "string"},
            "value": _value_schema(c),
        })
        for c in criteria
    ]  # fmt: skip
    code = _object({
        "code": {"type": "string", "enum": list(CODES)},
        "turns": {"type": "array", "items": {"type": "integer"}},
        "why": {"type": "string"},
    })  # fmt: skip
    return _object({
        "criteria": {"type": "array", "items": entries[0] if len(entries) == 1 else {"anyOf": entries}},
        "codes": {"type": "array", "items": code},
    })  # fmt: skip


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _value_schema(criterion: Criterion) -> dict[str, Any]:
    numbers = {"type": "number", "enum": [_plain(v) for v in criterion.values]}
    if criterion.conditional is None:
        return numbers
    return {"anyOf": [numbers, {"type": "string", "enum": [NOT_APPLICABLE]}]}


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


class _Doubtful(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Doubtful("an object has the same key twice")
    return found


def _constant(name: str) -> Any:
    raise _Doubtful(f"{name} is no JSON number")


def parse_reply(text: str | None, criteria: Sequence[Criterion]) -> Parsed:
    """What `text` states about each criterion. The whole reply must be one JSON object, at most inside one fence."""
    try:
        data = _read(text)
    except _Doubtful as error:
        return Parsed({}, {c.id: str(error) for c in criteria})
    stated: dict[str, Stated] = {}
    problems: dict[str, str] = {}
    entries = data["criteria"]
    ids = [e.get("id") if isinstance(e, dict) else None for e in entries]
    for criterion in criteria:
        own = [e for e, name in zip(entries, ids, strict=True) if name == criterion.id]
        if len(own) != 1:
            problems[criterion.id] = "no entry" if not own else f"{len(own)} entries instead of one"
            continue
        try:
            stated[criterion.id] = _entry(own[0], criterion)
        except _Doubtful as error:
            problems[criterion.id] = str(error)
    wanted = {c.id for c in criteria}
    strange = sum(not (isinstance(name, str) and name in wanted) for name in ids)
    ignored = (f"{strange} entr{'y' if strange == 1 else 'ies'} on nothing that was asked",) if strange else ()
    return Parsed(stated, problems, _codes(data.get("codes")), ignored)


def _read(text: str | None) -> dict[str, Any]:
    body = (text or "").strip().removeprefix("\ufeff").strip()
    if not body:
        raise _Doubtful("the reply is empty")
    if len(body) > MAX_REPLY:
        raise _Doubtful(f"the reply has {len(body):,} characters")
    if fence := _FENCE.fullmatch(body):
        body = fence.group(1)
    try:
        data = json.loads(body, object_pairs_hook=_pairs, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise _Doubtful(str(error) if isinstance(error, _Doubtful) else f"the reply is not one JSON object: {error}") from None  # fmt: skip
    if not isinstance(data, dict) or not isinstance(data.get("criteria"), list):
        raise _Doubtful('the reply is not an object with a list "criteria"')
    return data


def _entry(entry: dict[str, Any], criterion: Criterion) -> Stated:
    """One entry, validated against its own part of the schema. Extra keys are refused: they may be a second answer."""
    from jsonschema import Draft202012Validator

    schema = reply_schema([criterion])["properties"]["criteria"]["items"]
    error = next(iter(Draft202012Validator(schema).iter_errors(entry)), None)
    if error is not None:
        where = ".".join(str(p) for p in error.absolute_path)
        raise _Doubtful(f"{where + ': ' if where else ''}{error.message}"[:200])
    value = entry["value"]
    if isinstance(value, bool):  # in Python True == 1, in a reply it is something else
        raise _Doubtful("value: a boolean is not on the scale")
    cited = tuple((int(item["turn"]), item["quote"]) for item in entry["evidence"])
    if any(abs(turn) > 2**53 for turn, _ in cited):  # 2e100 is an integer in JSON
        raise _Doubtful("evidence: a turn is beyond every number that JSON keeps exact")
    return Stated(criterion.id, None if value == NOT_APPLICABLE else float(value), entry["reason"], cited[:_MAX_CITED])


def _codes(items: Any) -> tuple[tuple[str, tuple[int, ...], str], ...]:
    found = []
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or item.get("code") not in CODES:
            continue
        turns = item.get("turns")
        if not isinstance(turns, list) or not all(type(t) is int for t in turns):
            continue
        found.append((str(item["code"]), tuple(sorted(set(turns))), str(item.get("why") or "")))
    return tuple(found)


def unscored(criteria: Sequence[Criterion], reason: UnscoredReason, detail: str = "") -> tuple[CriterionResult, ...]:
    """Every criterion unscored for one reason."""
    return tuple(
        CriterionResult(id=c.id, value=None, status="unscored", reason=reason, detail=detail) for c in criteria
    )


def to_results(
    parsed: Parsed, criteria: Sequence[Criterion], pack: EvidencePack, quotes: QuoteIndex
) -> tuple[CriterionResult, ...]:
    """Verdicts in the order of `criteria`, their quotes checked against the run.

    A lowest value given on truncated evidence stands only with a quote that was found: absence cannot be seen in
    what was not shown, so that it is unscored as `truncated` otherwise.
    """
    return tuple(_result(parsed, c, pack, quotes) for c in criteria)


def _result(parsed: Parsed, criterion: Criterion, pack: EvidencePack, quotes: QuoteIndex) -> CriterionResult:
    said = parsed.stated.get(criterion.id)
    if said is None:
        detail = parsed.problems.get(criterion.id, "no entry")
        return CriterionResult(id=criterion.id, value=None, status="unscored", reason="unparsable", detail=detail)
    evidence = tuple(_check(turn, quote, pack, quotes) for turn, quote in said.evidence)
    if said.value is None:
        return CriterionResult(
            id=criterion.id, value=None, status="not_applicable", detail=criterion.conditional or "",
            rationale=said.reason, evidence=evidence,
        )  # fmt: skip
    proven = any(e.check != "not_found" for e in evidence)
    if pack.truncated and said.value == min(criterion.values) and not proven:
        return CriterionResult(
            id=criterion.id, value=None, status="unscored", reason="truncated", rationale=said.reason,
            detail="judged not met without proof, while " + describe_omissions(pack), evidence=evidence,
        )  # fmt: skip
    return CriterionResult(id=criterion.id, value=said.value, status="scored", rationale=said.reason, evidence=evidence)


def _check(turn: int, quote: str, pack: EvidencePack, quotes: QuoteIndex) -> Evidence:
    """Turn 0 is the plan and the facts; the facts are ours and stand in no turn."""
    found = quotes.check(turn, quote)
    if (
        found.check != "verified"
        and turn == 0
        and len(quote.strip()) >= 4
        and normalise(quote) in normalise(pack.facts)
    ):
        return Evidence(turn=0, quote=quote, check="verified")
    return found


def describe_omissions(pack: EvidencePack) -> str:
    """What relevant evidence was left out, in words: `turns 7, 9 were left out or cut (12,480 characters)`."""
    gone = [o for o in pack.left_out if o.relevant]
    names = ", ".join("plan.md" if o.turn == 0 else f"turn {o.turn}" for o in gone[:8]) + (
        " …" if len(gone) > 8 else ""
    )
    return f"{names} left out or cut ({sum(o.chars for o in gone):,} characters)"


def to_codes(parsed: Parsed, stage: Stage, run: Run, judge: str) -> tuple[FiredCode, ...]:
    """Proposed codes that name turns of the run; others are dropped, as a code without a place cannot be looked up.

    The confidence is a fixed 0.5: a model's own number would be no probability.
    """
    found = []
    for code, turns, why in parsed.codes:
        there = tuple(t for t in turns if 1 <= t <= len(run.turns))
        if there:
            found.append(FiredCode(
                code=code, taxonomy="paper", stage=stage, turns=there, why=why, by=f"judge:{judge}", confidence=0.5,
                independence="from_judge",
            ))  # fmt: skip
    return tuple(found)
