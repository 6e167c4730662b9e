"""A judge with a memory: it looks in the store before it judges, and stores what it gives.

`StoredJudge(judge, store)` asks the inner judge only for items without a verdict. It also stores
the evidence hashes, so that later planning need not render the records again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime

from ...rubrics.model import Criterion
from ...trajectories.models import Run
from ..base import Estimate, EstimatingJudge, Judge, JudgeWrapper, Reply, Request, shared_tokens
from ..card.stage_results import CriterionResult, UnscoredReason, unscored
from ..questions.verdict_keys import EvidenceContexts, VerdictKey, identity, key_maker
from . import Store, StoredVerdict
from .claims import Claims
from .connection import EvidenceRow
from .group_commit import GroupCommit
from .served_models import ServedModels
from .verdicts import NewReply, is_final

_MAX_CACHED_REFERENCES = 10_000
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 1.0
"""Seconds between two looks at what another command on the store is asking for."""


@dataclass(frozen=True)
class Lookup:
    """What the store has for a request."""

    keys: Mapping[str, VerdictKey]
    """The key of each of its items, by the item's id."""
    verdicts: Mapping[str, StoredVerdict]
    """The stored verdicts, by the item's id."""

    def missing(self, items: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        """The items without a verdict."""
        return tuple(item for item in items if item.id not in self.verdicts)


@dataclass(frozen=True)
class _PreparedRequest:
    """A request before its call."""

    lookup: Lookup
    evidence_row: EvidenceRow | None
    """The row that the evidence index lacks; None if it has it."""
    run_ref: int = 0
    """The store's number of the run."""


class StoredJudge(JudgeWrapper):
    """A judge with a memory; name, prompts and parameters are the inner judge's."""

    def __init__(self, judge: Judge, store: Store, waiting: Collection[str] = ()) -> None:
        """`waiting`: keys of verdicts that are not asked for, as they wait in open batches."""
        super().__init__(judge)
        self._store, self._waiting = store, waiting
        self._identity = identity(judge)
        self._run_refs: dict[tuple[str, str], int] = {}
        self._answered: Counter[int] = Counter()
        self._asked: dict[str, asyncio.Event] = {}
        """By verdict key, the items that are being asked for; set when the answer is stored."""
        self._claims = Claims(store)
        self._contexts = EvidenceContexts(self._identity)
        self._lookups = GroupCommit(self._look_up_group)
        self._runs = GroupCommit(self._add_runs)
        self._replies = GroupCommit(store.add_replies)
        self._served = ServedModels(store, judge.name)

    def estimate(self, request: Request) -> Estimate:
        """What judging would use beyond what the store has."""
        missing = self.look_up(request).missing(request.criteria)
        if not missing or not isinstance(self.inner, EstimatingJudge):
            return Estimate()
        return self.inner.estimate(replace(request, criteria=missing))

    # Looking up.

    def look_up(self, request: Request) -> Lookup:
        """Keys and stored verdicts of the request's items; the evidence hash is stored."""
        (prepared,) = self._look_up_group([(request, self.inner.evidence_sha256(request))])
        if prepared.evidence_row is not None:
            self._store.add_evidence([prepared.evidence_row])
        return prepared.lookup

    def _look_up_group(self, group: Sequence[tuple[Request, str]]) -> list[_PreparedRequest]:
        """Look up several requests, each with its evidence hash; writes nothing."""
        lookups = self._lookups_of(group)
        rows = [self._evidence_row(request, evidence) for request, evidence in group]
        # A request that will be answered writes its evidence row with the answer, whether or not
        # the index has it; so only those that need no call are looked up in the index.
        answered = [
            row
            for row, lookup in zip(rows, lookups, strict=True)
            if len(lookup.keys) == len(lookup.verdicts)
        ]
        indexed = self._store.evidence(
            {row.content_sha256 for row in answered}, {row.context for row in answered}
        )
        return [
            _PreparedRequest(lookup, None if (row.content_sha256, row.context) in indexed else row)
            for lookup, row in zip(lookups, rows, strict=True)
        ]

    def _lookups_of(self, group: Sequence[tuple[Request, str]]) -> list[Lookup]:
        keys_of_requests = [
            {
                item.id: key_maker(self._identity, item, request.sample).key(evidence)
                for item in request.criteria
            }
            for request, evidence in group
        ]
        verdicts = self._store.verdicts(
            key.sha256 for keys in keys_of_requests for key in keys.values()
        )
        return [
            Lookup(
                keys,
                {id: verdicts[key.sha256] for id, key in keys.items() if key.sha256 in verdicts},
            )
            for keys in keys_of_requests
        ]

    def _evidence_row(self, request: Request, evidence_sha256: str) -> EvidenceRow:
        run = request.run
        context = self._contexts.context(request.question, run.track, run.tier, request.public)
        tokens = shared_tokens(self.inner, request)
        return EvidenceRow(run.content_sha256, context, request.question, evidence_sha256, tokens)

    async def run_ref(self, run: Run, stamp: str | None = None) -> int:
        """The store's number of this version of the run; a `stamp` is stored for its files."""
        key = (str(run.path), run.content_sha256)
        if stamp is None and key in self._run_refs:
            return self._run_refs[key]
        if len(self._run_refs) > _MAX_CACHED_REFERENCES:
            self._run_refs.clear()
        run_ref = await self._runs.submit((run, stamp))
        self._run_refs[key] = run_ref
        return run_ref

    def _add_runs(self, group: Sequence[tuple[Run, str | None]]) -> list[int]:
        return self._store.add_runs([(self._store.describe(run), stamp) for run, stamp in group])

    # Judging.

    async def judge(self, request: Request) -> Reply:
        """Stored and new verdicts, in the order of the items.

        Usage and raw replies are those of the new verdicts alone. The inner judge's reply is in the
        store before this returns, so a crash later loses nothing.
        """
        prepared = await self._prepare_alone(request)
        wait_s = _FIRST_WAIT_S
        while True:
            async with self._asking(request, prepared) as is_ours:
                if is_ours:
                    reply = await self._judge_missing(request, prepared)
                    break
            # Another command on this store asks; what it does not get is asked for here.
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            prepared = await self._prepare_alone(request)
        self._answered[prepared.run_ref] += sum(is_final(result, reply) for result in reply.results)
        return reply

    def _missing_keys(self, request: Request, prepared: _PreparedRequest) -> list[str]:
        lookup = prepared.lookup
        return [lookup.keys[item.id].sha256 for item in lookup.missing(request.criteria)]

    def _asked_already(self, request: Request, prepared: _PreparedRequest) -> list[asyncio.Event]:
        """The answers under way to items that the store lacks."""
        keys = self._missing_keys(request, prepared)
        return [self._asked[key] for key in keys if key in self._asked]

    async def _prepare_alone(self, request: Request) -> _PreparedRequest:
        """The request before its call, once nobody in this process asks for what it lacks.

        Copies of a run have the same verdict keys: one of them is asked about.
        """
        prepared = await self._prepare(request)
        while asked := self._asked_already(request, prepared):
            for answer in asked:
                await answer.wait()
            prepared = await self._prepare(request)
        return prepared

    @asynccontextmanager
    async def _asking(self, request: Request, prepared: _PreparedRequest) -> AsyncIterator[bool]:
        """While items that the store lacks are asked for, nobody else asks for them.

        Yields whether they are ours to ask for: False if another command on the store does.
        """
        answered = asyncio.Event()
        keys = [key for key in self._missing_keys(request, prepared) if key not in self._waiting]
        self._asked |= dict.fromkeys(keys, answered)
        is_ours = False
        try:
            is_ours = not keys or await self._claims.take(keys)
            yield is_ours
        finally:
            for key in keys:
                self._asked.pop(key, None)
            answered.set()
            await self._claims.release(keys)

    def pop_answered(self, run_ref: int) -> int:
        """How many items of this run were answered since the last call of this method."""
        return self._answered.pop(run_ref, 0)

    async def _prepare(self, request: Request) -> _PreparedRequest:
        # The inner judge need not bear threads, so its evidence is asked for here; the store is
        # read in a thread.
        prepared = await self._lookups.submit((request, self.inner.evidence_sha256(request)))
        return replace(prepared, run_ref=await self.run_ref(request.run))

    async def _judge_missing(self, request: Request, prepared: _PreparedRequest) -> Reply:
        lookup = prepared.lookup
        missing = lookup.missing(request.criteria)
        if not missing:
            return await asyncio.to_thread(self._reply_from_store, request, prepared)
        waiting = tuple(item for item in missing if lookup.keys[item.id].sha256 in self._waiting)
        asked = tuple(item for item in missing if item not in waiting)
        reply = Reply(())
        if asked:
            reply = await self.inner.judge(replace(request, criteria=asked))
        reply = replace(
            reply,
            results=tuple(result for result in reply.results if result.id in lookup.keys),
            warnings=(*reply.warnings, *self._served.warnings(reply)),
        )
        stored: Sequence[CriterionResult] = ()
        if asked:
            stored = await self._replies.submit(
                NewReply(
                    run_ref=prepared.run_ref,
                    rubric_sha256=request.rubric.sha256,
                    stage=request.question,
                    keys=[lookup.keys[result.id] for result in reply.results],
                    reply=reply,
                    evidence_row=prepared.evidence_row,
                )
            )
            self._claims.forget(lookup.keys[result.id].sha256 for result in reply.results)
        by_id = {result.id: result for result in stored}
        by_id |= {
            result.id: result
            for result in unscored(waiting, "judge_error", "not asked: it waits in an open batch")
        }
        by_id |= {id: verdict.result for id, verdict in lookup.verdicts.items()}
        unanswered = [item for item in request.criteria if item.id not in by_id]
        by_id |= {
            result.id: result
            for result in unscored(unanswered, "judge_error", "the judge gave no result")
        }
        return replace(
            reply,
            results=tuple(by_id[item.id] for item in request.criteria),
            warnings=(*reply.warnings, *self._foreign_warnings(lookup.verdicts)),
            served_models=_served_models(reply.served_models, lookup.verdicts),
            verdict_keys={id: (key.sha256,) for id, key in lookup.keys.items()},
            stored_days=_days(lookup.verdicts) | reply.days,
        )

    def _reply_from_store(self, request: Request, prepared: _PreparedRequest) -> Reply:
        if prepared.evidence_row is not None:
            self._store.add_evidence([prepared.evidence_row])
        verdicts = prepared.lookup.verdicts
        return Reply(
            tuple(verdicts[item.id].result for item in request.criteria),
            warnings=self._foreign_warnings(verdicts),
            served_models=_served_models((), verdicts),
            verdict_keys={id: (verdict.key.sha256,) for id, verdict in verdicts.items()},
            stored_days=_days(verdicts),
        )

    def _foreign_warnings(self, verdicts: Mapping[str, StoredVerdict]) -> tuple[str, ...]:
        """A scorecard's warning about verdicts from a store that somebody else made."""
        if not verdicts or self._store.made_here:
            return ()
        warning = (
            f"{', '.join(verdicts)}: verdicts from a store that was not made here; nothing proves"
            f" that {self.name} gave them"
        )
        return (warning,)


def _days(verdicts: Mapping[str, StoredVerdict]) -> frozenset[date]:
    """The days of stored verdicts, those without a value left out as in `Reply.days`."""
    return frozenset(
        datetime.fromisoformat(verdict.created_at).date()
        for verdict in verdicts.values()
        if verdict.result.status != "unscored"
    )


class StoredOnly(StoredJudge):
    """A StoredJudge that never asks the inner judge.

    What the store lacks is unscored, with the reason of its last attempt if there was one.
    """

    async def judge(self, request: Request) -> Reply:
        lookup = await asyncio.to_thread(self.look_up, request)
        missing = lookup.missing(request.criteria)
        attempts = self._store.attempts(lookup.keys[item.id].sha256 for item in missing)
        by_id = {id: verdict.result for id, verdict in lookup.verdicts.items()}
        for item in missing:
            key = lookup.keys[item.id].sha256
            by_id[item.id] = last_attempt(item.id, attempts.get(key, ()))
        self._answered[await self.run_ref(request.run)] += len(lookup.verdicts)
        return Reply(
            tuple(by_id[item.id] for item in request.criteria),
            warnings=self._foreign_warnings(lookup.verdicts),
            served_models=_served_models((), lookup.verdicts),
            verdict_keys={id: (verdict.key.sha256,) for id, verdict in lookup.verdicts.items()},
            stored_days=_days(lookup.verdicts),
        )


class RecalledVerdicts(JudgeWrapper):
    """Answers from verdicts that were read beforehand; every one that is asked for is among them.

    It looks at nothing of a run but its content's hash, its track and its tier.
    """

    def __init__(
        self,
        judge: Judge,
        evidence: Mapping[tuple[str, str], str],
        verdicts: Mapping[str, StoredVerdict],
    ) -> None:
        """`evidence`: hashes by run content and context; `verdicts`: by their keys."""
        super().__init__(judge)
        self._evidence, self._verdicts = evidence, verdicts
        self._identity = identity(judge)
        self._contexts = EvidenceContexts(self._identity)

    def evidence_sha256(self, request: Request) -> str:
        run = request.run
        context = self._contexts.context(request.question, run.track, run.tier, request.public)
        return self._evidence[run.content_sha256, context]

    async def judge(self, request: Request) -> Reply:
        evidence = self.evidence_sha256(request)
        verdicts = {}
        for item in request.criteria:
            key = key_maker(self._identity, item, request.sample).sha256(evidence)
            verdicts[item.id] = self._verdicts[key]
        return _stored_reply(request, verdicts)


def _stored_reply(request: Request, verdicts: Mapping[str, StoredVerdict]) -> Reply:
    """The reply that these verdicts on all items make."""
    return Reply(
        tuple(verdicts[item.id].result for item in request.criteria),
        served_models=_served_models((), verdicts),
        verdict_keys={id: (verdict.key.sha256,) for id, verdict in verdicts.items()},
        stored_days=_days(verdicts),
    )


def _served_models(new: tuple[str, ...], verdicts: Mapping[str, StoredVerdict]) -> tuple[str, ...]:
    """The models that gave these stored verdicts or answered now, each once."""
    earlier = [model for verdict in verdicts.values() for model in verdict.served_models]
    return tuple(dict.fromkeys((*earlier, *new)))


def last_attempt(item_id: str, attempts: Sequence[tuple[UnscoredReason, str]]) -> CriterionResult:
    """The result of an item without a verdict: unscored as in its last attempt."""
    reason, detail = attempts[-1] if attempts else ("judge_error", "not asked yet")
    return CriterionResult.unscored(item_id, reason, detail)
