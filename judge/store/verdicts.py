"""Verdicts, attempts, calls and raw replies in the store.

A verdict is found again by its key (`keys.VerdictKey`), so caching, resuming and rejudging are one
look-up. Failures that another attempt may mend are kept as attempts and never count as known:

- `judge_error` (provider down, timeout, rate limit): says nothing about the run;
- `budget`: the call was never made;
- whatever the judge marks as transient in its reply (a reply cut short by the token limit, say).

`unparsable`, `refused`, `no_evidence` and `truncated` (evidence left out) are what this judge has
to say on exactly this input; asking again would pay for the same answer, so they are verdicts until
something in the key changes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from ...errors import StoreError
from ...rubrics.model import Rubric
from ..base import RETRIABLE, Estimate, Reply, Usage
from ..card.stage_results import CriterionResult, UnscoredReason
from ..questions.verdict_keys import VerdictKey
from . import schema
from .connection import StorePart, clean_row, now, to_json

_VERDICTS = sa.select(schema.verdicts, schema.calls.c.run_ref).join(schema.calls)


@dataclass(frozen=True)
class StoredVerdict:
    """A final verdict: its key with all parts, the result, the call that gave it, and when (ISO
    8601, UTC)."""

    key: VerdictKey
    stage: str
    """The question's name, a stage or another."""
    result: CriterionResult
    call_id: str
    run_ref: int
    """The run that it was judged for; others that show the same evidence share it."""
    created_at: str


@dataclass(frozen=True)
class Answered:
    """A reply to keep: `keys[i]` is the key of `reply.results[i]`."""

    run_ref: int
    rubric_sha256: str
    stage: str
    keys: Sequence[VerdictKey]
    reply: Reply
    call_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """32 hexadecimal digits. With one of one's own, keeping the same reply twice is a StoreError
    instead of a second call."""
    packed: tuple[str, str, str, str] | None = None
    """A row for the evidence index (`add_evidence`) that goes with it."""


@dataclass(frozen=True)
class StoredCall:
    """One answered request: how many items it answered, and what it used in all."""

    criteria: int
    usage: Usage
    """`calls` is 0 when no model was asked; cached tokens are None where nobody counted them."""


def is_final(result: CriterionResult, reply: Reply | None = None) -> bool:
    """Whether a result is a verdict to keep, rather than a failure to mend."""
    if result.status == "credited":
        return False  # A rule of the tier, not something a judge said.
    if result.status != "unscored":
        return True
    return result.reason not in RETRIABLE and (reply is None or result.id not in reply.transient)


class VerdictTables(StorePart):
    """What judges said, found again by key."""

    def known_keys(self, keys: Iterable[str]) -> set[str]:
        """Which of these keys have a verdict."""
        query = sa.select(schema.verdicts.c.key)
        return {row[0] for row in self._in_chunks(query, schema.verdicts.c.key, keys)}

    def known(self, keys: Iterable[str]) -> dict[str, StoredVerdict]:
        """The verdicts under these keys, by key; keys without one are left out."""
        rows = self._in_chunks(_VERDICTS, schema.verdicts.c.key, keys)
        return {row.key: self._verdict(row) for row in rows}

    def add_reply(
        self,
        run_ref: int,
        rubric: Rubric,
        stage: str,
        keys: Sequence[VerdictKey],
        reply: Reply,
        call_id: str | None = None,
    ) -> tuple[CriterionResult, ...]:
        """Keep one reply (`add_replies`)."""
        call_id = call_id or uuid.uuid4().hex
        return self.add_replies([Answered(run_ref, rubric.sha256, stage, keys, reply, call_id)])[0]

    def add_replies(self, answers: Sequence[Answered]) -> list[tuple[CriterionResult, ...]]:
        """Keep replies, all in one transaction.

        Returns the results that now stand, in the same order: where another process stored a
        verdict under the same key first, that one, so that everyone who looks sees the same.
        """
        verdicts: dict[str, dict[str, Any]] = {}
        failed: list[dict[str, Any]] = []
        calls, texts, links = [], {}, []
        for answered in answers:
            reply, at, call = answered.reply, now(), answered.call_id
            if len(answered.keys) != len(reply.results):
                raise ValueError(f"{len(answered.keys)} keys for {len(reply.results)} results")
            calls.append(clean_row(_call_row(answered, at)))
            for position, text in enumerate(reply.raw):
                body = text.encode("utf-8", "surrogatepass")
                digest = hashlib.sha256(body).hexdigest()
                texts[digest] = {"sha256": digest, "size": len(body), "body": zlib.compress(body)}
                links.append({"call_id": call, "position": position, "sha256": digest})
            for key, result in zip(answered.keys, reply.results, strict=True):
                row = _key_row(key, answered.stage) | {
                    "detail": result.detail,
                    "call_id": call,
                    "created_at": at,
                }
                if is_final(result, reply):
                    verdicts.setdefault(key.sha256, clean_row(row | _result_row(result)))
                elif result.status == "unscored":
                    failed.append(clean_row(row | {"reason": result.reason or "judge_error"}))
        # In key order everywhere: two processes that store the same keys must not wait for each
        # other.
        statements: list[tuple[Any, list[dict[str, Any]]]] = [
            (schema.calls.insert(), calls),
            (
                self._insert(schema.replies).on_conflict_do_nothing(),
                [texts[digest] for digest in sorted(texts)],
            ),
            (schema.call_replies.insert(), links),
            (
                self._insert(schema.verdicts).on_conflict_do_nothing(index_elements=["key"]),
                [verdicts[key] for key in sorted(verdicts)],
            ),
            (schema.attempts.insert(), failed),
        ]
        table = schema.verdicts
        with self._write() as connection:
            for statement, rows in statements:
                if rows:
                    connection.execute(statement, rows)
            self._add_evidence(
                connection, sorted({a.packed for a in answers if a.packed is not None})
            )
            query = sa.select(table.c.key, table.c.call_id).where(table.c.key.in_(list(verdicts)))
            calls_by_key = {row.key: row.call_id for row in connection.execute(query)}
        others = self.known(
            key for key, row in verdicts.items() if calls_by_key[key] != row["call_id"]
        )
        standing = {key: self._result(row) for key, row in verdicts.items()}
        standing |= {key: verdict.result for key, verdict in others.items()}
        return [
            tuple(standing.get(k.sha256, r) for k, r in zip(a.keys, a.reply.results, strict=True))
            for a in answers
        ]

    def iter_verdicts(self) -> Iterator[StoredVerdict]:
        """All verdicts, in the order they were stored."""
        yield from map(self._verdict, self._pages(_VERDICTS, schema.verdicts.c.seq, 1_000))

    def verdicts_on(
        self, evidence_sha256: Collection[str]
    ) -> dict[tuple[str, str], list[VerdictKey]]:
        """Keys of all verdicts that rest on these evidence bytes, oldest first, by (evidence hash,
        criterion id)."""
        table = schema.verdicts
        found: dict[tuple[str, str], list[VerdictKey]] = {}
        query = sa.select(
            table.c.key,
            table.c.criterion_id,
            table.c.criterion_sha256,
            table.c.evidence_sha256,
            table.c.judge,
            table.c.prompt_sha256,
            table.c.parameters,
            table.c.sample,
        ).order_by(table.c.seq)
        for row in self._in_chunks(query, table.c.evidence_sha256, evidence_sha256):
            found.setdefault((row.evidence_sha256, row.criterion_id), []).append(_key(row))
        return found

    def evidence_of(self, paths: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
        """Every (question, evidence hash) that any version of the run at each stored path ever had."""
        runs, table = schema.runs, schema.evidence
        query = sa.select(runs.c.path, table.c.stage, table.c.evidence_sha256).join_from(
            runs, table, runs.c.content_sha256 == table.c.content_sha256
        )
        found: dict[str, set[tuple[str, str]]] = {}
        for row in self._in_chunks(query, runs.c.path, paths):
            found.setdefault(row.path, set()).add((row.stage, row.evidence_sha256))
        return found

    def attempts(self, keys: Iterable[str]) -> dict[str, list[tuple[UnscoredReason, str]]]:
        """Failed attempts under these keys, oldest first: (reason, detail)."""
        table = schema.attempts
        found: dict[str, list[tuple[UnscoredReason, str]]] = {}
        query = sa.select(table.c.key, table.c.reason, table.c.detail).order_by(table.c.seq)
        for row in self._in_chunks(query, table.c.key, keys):
            found.setdefault(row.key, []).append((row.reason, row.detail))
        return found

    # Calls and raw replies.

    def calls_of(self, call_ids: Iterable[str]) -> dict[str, StoredCall]:
        """What these calls used, by call."""
        c = schema.calls.c
        used = (
            c.calls,
            c.input_tokens,
            c.output_tokens,
            c.cost_usd,
            c.cached_tokens,
            c.cache_write_tokens,
        )
        query = sa.select(c.id, c.criteria, *used)
        rows: Iterator[Any] = self._in_chunks(query, c.id, call_ids)
        return {row.id: StoredCall(len(json.loads(row.criteria)), Usage(*row[2:])) for row in rows}

    def raw_replies(self, call_id: str) -> tuple[str, ...]:
        """The model's texts of one call, as received."""
        link, replies = schema.call_replies, schema.replies
        query = (
            sa.select(replies.c.body)
            .join(link, link.c.sha256 == replies.c.sha256)
            .where(link.c.call_id == call_id)
        )
        rows = self._read(query.order_by(link.c.position))
        return tuple(zlib.decompress(row.body).decode("utf-8", "surrogatepass") for row in rows)

    def history(self, judge: str, stage: str) -> tuple[int, Estimate]:
        """How many requests this judge has made on this question, and the lowest and highest use
        per call so far; None inside where no call said."""
        c = schema.calls.c
        ends = [
            end(of)
            for end in (sa.func.min, sa.func.max)
            for of in (c.input_tokens, c.output_tokens, c.cost_usd)
        ]
        query = sa.select(sa.func.sum(c.calls), *ends).where(
            c.judge == judge, c.stage == stage, c.calls > 0
        )
        row: Any = self._read(query)[0]
        return int(row[0] or 0), Estimate(Usage(1, *row[1:4]), Usage(1, *row[4:7]))

    def _verdict(self, row: sa.Row[Any]) -> StoredVerdict:
        return StoredVerdict(
            _key(row),
            row.stage,
            self._result(dict(row._mapping)),
            row.call_id,
            row.run_ref,
            row.created_at,
        )

    def _result(self, row: Mapping[str, Any]) -> CriterionResult:
        try:
            return CriterionResult(
                id=row["criterion_id"],
                value=row["value"],
                status=row["status"],
                reason=row["reason"],
                detail=row["detail"],
                rationale=row["rationale"],
                evidence=json.loads(row["evidence"]),
                votes=json.loads(row["votes"]),
                answer=None if row["answer"] is None else json.loads(row["answer"]),
            )
        except (ValidationError, ValueError) as error:
            raise StoreError(
                f"{self.where}: verdict {row['key'][:12]} cannot be read:"
                f" {' '.join(str(error).split())[:120]}",
                "restore a copy of the store",
            ) from error


def _call_row(answered: Answered, at: str) -> dict[str, Any]:
    keys, reply = answered.keys, answered.reply
    return {
        "id": answered.call_id,
        "run_ref": answered.run_ref,
        "stage": answered.stage,
        "judge": keys[0].judge if keys else "",
        "rubric_sha256": answered.rubric_sha256,
        "sample": keys[0].sample if keys else 0,
        "criteria": to_json([key.criterion_id for key in keys]),
        "warnings": to_json(list(reply.warnings)),
        "created_at": at,
        **vars(reply.usage),
    }


def _key_row(key: VerdictKey, stage: str) -> dict[str, Any]:
    return {"key": key.sha256, "stage": stage, **key.model_dump(exclude={"sha256"})}


def _result_row(result: CriterionResult) -> dict[str, Any]:
    return {
        "value": result.value,
        "status": result.status,
        "reason": result.reason,
        "rationale": result.rationale,
        "evidence": to_json([item.model_dump() for item in result.evidence]),
        "votes": to_json([vote.model_dump() for vote in result.votes]),
        "answer": None if result.answer is None else to_json(result.answer, sort_keys=True),
    }


def _key(row: sa.Row[Any]) -> VerdictKey:
    parts = {name: row._mapping[name] for name in VerdictKey.model_fields if name != "sha256"}
    return VerdictKey(**parts, sha256=row.key)
