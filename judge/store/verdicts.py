"""Verdicts, attempts, calls and raw replies in the store.

A verdict is found by its key (`verdict_keys.VerdictKey`), so caching, resuming and rejudging are
one look-up. Failures that another attempt may overcome are stored as attempts and are never taken
for verdicts:

- `judge_error` (provider down, timeout, rate limit): it says nothing about the run;
- `budget`: the call was never made;
- whatever the judge marks as transient in its reply (a reply cut at its token limit, say).

`unparsable`, `refused`, `no_evidence` and `truncated` (evidence left out) are this judge's answers
to exactly this input. To ask again would be to pay for the same answer, so they are verdicts until
something in the key changes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from ...errors import StoreError
from ...rubrics.model import Rubric
from ..base import RETRIABLE, Reply, Usage
from ..card.stage_results import CriterionResult, UnscoredReason
from ..questions.verdict_keys import VerdictKey
from . import schema
from .claims import end_claims
from .connection import EvidenceRow, StorePart, clean_row, now, to_json

_SELECT_VERDICTS = sa.select(
    schema.verdicts, schema.calls.c.run_ref, schema.calls.c.served_models
).join(schema.calls)
"""Every verdict, with the run and the models of the call that gave it."""
_VERDICTS_PAGE = 1_000
"""Verdicts that `iter_verdicts` reads at a time."""
_MAX_PAST_CALLS = 50_000
"""Calls that a forecast learns from."""


@dataclass(frozen=True)
class StoredVerdict:
    """A final verdict."""

    key: VerdictKey
    stage: str
    """The question's name: a stage, for criteria, or one of EXTRA_QUESTIONS."""
    result: CriterionResult
    call_id: str
    """The call that gave it."""
    run_ref: int
    """The run that it was given on; other runs with the same evidence share the verdict."""
    served_models: tuple[str, ...]
    """The models that answered, as the provider named them; empty if it did not."""
    created_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class NewReply:
    """A reply to store: `keys[i]` is the key of `reply.results[i]`."""

    run_ref: int
    rubric_sha256: str
    stage: str
    """The question's name."""
    keys: Sequence[VerdictKey]
    reply: Reply
    call_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """32 hexadecimal digits. A caller that chooses it gets a StoreError instead of a second call if
    it stores the same reply twice."""
    evidence_row: EvidenceRow | None = None
    """Its row of the evidence index."""


@dataclass(frozen=True)
class StoredCall:
    """One answered request."""

    criteria: int
    """Number of items that it answered."""
    usage: Usage
    """`calls` is 0 if no model was asked; cached tokens are None if the provider did not count
    them."""


class PastCall(NamedTuple):
    """What a billed call was about and took."""

    content_sha256: str
    """Of its run."""
    turns: int
    """Of its run."""
    question: str
    sample: int
    items: str
    """Ids of its items, as a JSON list."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int | None
    """None if the provider did not count them."""
    prompt_tokens: int | None
    """The tokens of its prompt by our estimate; None if there is none."""
    created_at: str


def is_final(result: CriterionResult, reply: Reply | None = None) -> bool:
    """Whether a result is a verdict to store, rather than a failure to try again."""
    if result.status == "credited":
        return False  # The tier decided it, not a judge.
    if result.status != "unscored":
        return True
    is_transient = reply is not None and result.id in reply.transient
    return result.reason not in RETRIABLE and not is_transient


class _ReplyRows:
    """The rows of several replies, by table."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.texts: dict[str, dict[str, Any]] = {}
        """Raw replies by hash, so that equal texts are stored once."""
        self.links: list[dict[str, Any]] = []
        """Which texts belong to which call."""
        self.verdicts: dict[str, dict[str, Any]] = {}
        """By verdict key; the first row if several have one key."""
        self.attempts: list[dict[str, Any]] = []

    def add(self, new: NewReply) -> None:
        """Add the rows of one reply; ValueError if keys and results differ in number."""
        if len(new.keys) != len(new.reply.results):
            raise ValueError(f"{len(new.keys)} keys for {len(new.reply.results)} results")
        created_at = now()
        self.calls.append(clean_row(_call_row(new, created_at)))
        for position, text in enumerate(new.reply.raw):
            body = text.encode("utf-8", "surrogatepass")
            sha256 = hashlib.sha256(body).hexdigest()
            row = {"sha256": sha256, "size": len(body), "body": zlib.compress(body)}
            self.texts[sha256] = row
            self.links.append({"call_id": new.call_id, "position": position, "sha256": sha256})
        for key, result in zip(new.keys, new.reply.results, strict=True):
            row = _key_row(key, new.stage) | {
                "detail": result.detail,
                "call_id": new.call_id,
                "created_at": created_at,
            }
            if is_final(result, new.reply):
                self.verdicts.setdefault(key.sha256, clean_row(row | _result_row(result)))
            elif result.status == "unscored":
                self.attempts.append(clean_row(row | {"reason": result.reason or "judge_error"}))


class VerdictTables(StorePart):
    """Verdicts by key, and the calls and replies that they came from."""

    def keys_with_verdict(self, keys: Iterable[str]) -> set[str]:
        """The keys, out of these, that have a verdict."""
        query = sa.select(schema.verdicts.c.key)
        return {row[0] for row in self._in_chunks(query, schema.verdicts.c.key, keys)}

    def verdicts(self, keys: Iterable[str]) -> dict[str, StoredVerdict]:
        """The verdicts under these keys, by key; keys without one are left out."""
        rows = self._in_chunks(_SELECT_VERDICTS, schema.verdicts.c.key, keys)
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
        """Store one reply; returns the results that are now in force (`add_replies`)."""
        new = NewReply(
            run_ref=run_ref,
            rubric_sha256=rubric.sha256,
            stage=stage,
            keys=keys,
            reply=reply,
            call_id=call_id or uuid.uuid4().hex,
        )
        return self.add_replies([new])[0]

    def add_replies(self, replies: Sequence[NewReply]) -> list[tuple[CriterionResult, ...]]:
        """Store replies in one transaction.

        Returns the results that are now in force, in the same order. If another process has stored
        a verdict under the same key first, that verdict is in force for both.
        """
        rows = _ReplyRows()
        for new in replies:
            rows.add(new)
        evidence_rows = {new.evidence_row for new in replies if new.evidence_row is not None}
        with self._write() as connection:
            self._insert_rows(connection, rows)
            self._insert_evidence(connection, sorted(evidence_rows))
            end_claims(connection, (key.sha256 for new in replies for key in new.keys))
            existing_keys = self._keys_stored_by_other_calls(connection, rows.verdicts)
        # Made from the stored row, so that this caller gets exactly what later readers will get.
        in_force = {key: self._result(row) for key, row in rows.verdicts.items()}
        in_force |= {key: verdict.result for key, verdict in self.verdicts(existing_keys).items()}
        return [
            tuple(
                in_force.get(key.sha256, result)
                for key, result in zip(new.keys, new.reply.results, strict=True)
            )
            for new in replies
        ]

    def _insert_rows(self, connection: Connection, rows: _ReplyRows) -> None:
        """Insert all rows; a text or verdict whose key is stored already keeps its row."""
        # Texts and verdicts go in by the order of their keys, so that two processes that store the
        # same ones never wait for each other.
        statements: list[tuple[Any, list[dict[str, Any]]]] = [
            (schema.calls.insert(), rows.calls),
            (
                self._insert(schema.replies).on_conflict_do_nothing(),
                [rows.texts[sha256] for sha256 in sorted(rows.texts)],
            ),
            (schema.call_replies.insert(), rows.links),
            (
                self._insert(schema.verdicts).on_conflict_do_nothing(index_elements=["key"]),
                [rows.verdicts[key] for key in sorted(rows.verdicts)],
            ),
            (schema.attempts.insert(), rows.attempts),
        ]
        for statement, table_rows in statements:
            if table_rows:
                connection.execute(statement, table_rows)

    def _keys_stored_by_other_calls(
        self, connection: Connection, verdicts: Mapping[str, Mapping[str, Any]]
    ) -> list[str]:
        """The keys, out of these rows', under which another call's verdict is stored."""
        table = schema.verdicts
        query = sa.select(table.c.key, table.c.call_id).where(table.c.key.in_(list(verdicts)))
        return [
            row.key
            for row in connection.execute(query)
            if row.call_id != verdicts[row.key]["call_id"]
        ]

    def iter_verdicts(self) -> Iterator[StoredVerdict]:
        """All verdicts, in the order in which they were stored."""
        rows = self._pages(_SELECT_VERDICTS, schema.verdicts.c.seq, _VERDICTS_PAGE)
        yield from map(self._verdict, rows)

    def keys_by_evidence(
        self, evidence_sha256: Collection[str]
    ) -> dict[tuple[str, str], list[VerdictKey]]:
        """Keys of all verdicts on this evidence by (evidence hash, criterion id), oldest first."""
        table = schema.verdicts
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
        keys: dict[tuple[str, str], list[VerdictKey]] = {}
        for row in self._in_chunks(query, table.c.evidence_sha256, evidence_sha256):
            keys.setdefault((row.evidence_sha256, row.criterion_id), []).append(key_of(row))
        return keys

    def evidence_by_path(self, paths: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
        """By stored path, every (question, evidence hash) of any version of the run there."""
        runs, table = schema.runs, schema.evidence
        query = sa.select(runs.c.path, table.c.stage, table.c.evidence_sha256).join_from(
            runs, table, runs.c.content_sha256 == table.c.content_sha256
        )
        evidence: dict[str, set[tuple[str, str]]] = {}
        for row in self._in_chunks(query, runs.c.path, paths):
            evidence.setdefault(row.path, set()).add((row.stage, row.evidence_sha256))
        return evidence

    def attempts(self, keys: Iterable[str]) -> dict[str, list[tuple[UnscoredReason, str]]]:
        """(reason, detail) of the failed attempts under these keys, oldest first."""
        table = schema.attempts
        query = sa.select(table.c.key, table.c.reason, table.c.detail).order_by(table.c.seq)
        attempts: dict[str, list[tuple[UnscoredReason, str]]] = {}
        for row in self._in_chunks(query, table.c.key, keys):
            attempts.setdefault(row.key, []).append((row.reason, row.detail))
        return attempts

    # Calls and raw replies.

    def calls_of(self, call_ids: Iterable[str]) -> dict[str, StoredCall]:
        """These calls with their usage, by id."""
        table = schema.calls
        query = sa.select(
            table.c.id,
            table.c.criteria,
            table.c.calls,
            table.c.input_tokens,
            table.c.output_tokens,
            table.c.cost_usd,
            table.c.cached_tokens,
            table.c.cache_write_tokens,
            sa.func.coalesce(table.c.estimated_calls, 0),
        )
        calls = {}
        rows: Iterator[Any] = self._in_chunks(query, table.c.id, call_ids)
        for call_id, criteria, *usage in rows:
            calls[call_id] = StoredCall(len(json.loads(criteria)), Usage(*usage))
        return calls

    def raw_replies(self, call_id: str) -> tuple[str, ...]:
        """The model's texts of one call, as received."""
        link, replies = schema.call_replies, schema.replies
        query = (
            sa.select(replies.c.body)
            .join(link, link.c.sha256 == replies.c.sha256)
            .where(link.c.call_id == call_id)
            .order_by(link.c.position)
        )
        rows = self._read(query)
        return tuple(zlib.decompress(row.body).decode("utf-8", "surrogatepass") for row in rows)

    def past_calls(self, judge: str | None = None) -> list[PastCall]:
        """The billed calls of a judge, or of all judges; of each run by themselves, oldest first.

        Only those that brought an answer and whose tokens the provider counted: a call that failed
        says nothing about what the next one takes. At most the newest 50,000.
        """
        calls, runs = schema.calls, schema.runs
        is_counted = sa.func.coalesce(calls.c.estimated_calls, 0) == 0
        columns: tuple[Any, ...] = (
            runs.c.content_sha256,
            runs.c.turns,
            calls.c.stage,
            calls.c.sample,
            calls.c.criteria,
            calls.c.input_tokens,
            calls.c.output_tokens,
            calls.c.cached_tokens,
            calls.c.prompt_tokens,
            calls.c.created_at,
        )
        query = (
            sa.select(*columns)
            .join_from(calls, runs)
            .where(calls.c.input_tokens > 0, calls.c.output_tokens > 0, is_counted)
            .order_by(calls.c.created_at.desc(), calls.c.id)
            .limit(_MAX_PAST_CALLS)
        )
        if judge is not None:
            query = query.where(calls.c.judge == judge)
        past = [PastCall(*tuple(row)) for row in self._read(query)]
        past.sort(key=lambda call: (call.content_sha256, call.created_at))
        return past

    def spent(self, since: str = "") -> float:
        """USD of all calls since a time (ISO 8601 in UTC), as far as their price was known."""
        table = schema.calls
        query = sa.select(sa.func.sum(table.c.cost_usd)).where(table.c.created_at >= since)
        return float(self._read(query)[0][0] or 0.0)

    def served_models(self, judge: str) -> set[str]:
        """All models that answered calls of this judge, as the provider named them."""
        column = schema.calls.c.served_models
        query = sa.select(column).where(schema.calls.c.judge == judge).distinct()
        return {name for row in self._read(query) for name in _names(row.served_models)}

    def _verdict(self, row: sa.Row[Any]) -> StoredVerdict:
        return StoredVerdict(
            key=key_of(row),
            stage=row.stage,
            result=self._result(dict(row._mapping)),
            call_id=row.call_id,
            run_ref=row.run_ref,
            served_models=_names(row.served_models),
            created_at=row.created_at,
        )

    def _result(self, row: Mapping[str, Any]) -> CriterionResult:
        """The result in a row of verdicts; StoreError if the row is damaged."""
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
            reason = " ".join(str(error).split())[:120]
            raise StoreError(
                f"{self.location}: verdict {row['key'][:12]} cannot be read: {reason}",
                "restore a copy of the store",
            ) from error


def _call_row(new: NewReply, created_at: str) -> dict[str, Any]:
    """The row of the table of calls."""
    keys, reply = new.keys, new.reply
    return {
        "id": new.call_id,
        "run_ref": new.run_ref,
        "stage": new.stage,
        "judge": keys[0].judge if keys else "",
        "rubric_sha256": new.rubric_sha256,
        "sample": keys[0].sample if keys else 0,
        "criteria": to_json([key.criterion_id for key in keys]),
        "warnings": to_json(list(reply.warnings)),
        "created_at": created_at,
        "served_models": to_json(list(reply.served_models)),
        "system_fingerprints": to_json(list(reply.system_fingerprints)),
        "prompt_tokens": reply.prompt_tokens,
        **vars(reply.usage),
    }


def _names(column: str | None) -> tuple[str, ...]:
    """The names in a column that holds a JSON list or nothing."""
    return () if column is None else tuple(json.loads(column))


def _key_row(key: VerdictKey, stage: str) -> dict[str, Any]:
    """The columns that a verdict and a failed attempt have in common."""
    return {"key": key.sha256, "stage": stage, **key.model_dump(exclude={"sha256"})}


def _result_row(result: CriterionResult) -> dict[str, Any]:
    """The columns that only a verdict has."""
    return {
        "value": result.value,
        "status": result.status,
        "reason": result.reason,
        "rationale": result.rationale,
        "evidence": to_json([evidence.model_dump() for evidence in result.evidence]),
        "votes": to_json([vote.model_dump() for vote in result.votes]),
        "answer": None if result.answer is None else to_json(result.answer, sort_keys=True),
    }


def key_of(row: sa.Row[Any]) -> VerdictKey:
    """The key in a row of verdicts."""
    parts = {name: row._mapping[name] for name in VerdictKey.model_fields if name != "sha256"}
    return VerdictKey(**parts, sha256=row.key)
