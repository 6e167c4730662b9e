"""A judge that looks in the store before it judges, and keeps what it says: the same seam, so any caller can have it.

`StoredJudge(judge, store)` asks the inner judge only for criteria without a verdict. It also remembers the evidence
hashes, so that later planning need not pack them again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..rubrics.load import criterion_sha256
from ..rubrics.model import Criterion, Rubric
from ..trajectories.models import Run
from . import stamps
from .base import Around, Estimate, EstimatingJudge, Judge, StageReply, StageRequest
from .keys import JudgeIdentity, KeyMaker, VerdictKey, evidence_context, identity
from .scorecard import CriterionResult, FiredCode
from .store import Store, StoredVerdict


@dataclass(frozen=True)
class Lookup:
    """What the store knows about a request: the key of each of its criteria, and the verdicts found."""

    keys: Mapping[str, VerdictKey]
    found: Mapping[str, StoredVerdict]

    def missing(self, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        return tuple(c for c in criteria if c.id not in self.found)


@dataclass(frozen=True)
class _Begun:
    """A request before its call: the run's reference, what is known, and an evidence hash that the store lacks."""

    reference: int
    known: Lookup
    new_evidence: str | None


class StoredJudge(Around):
    """A judge with a memory. Name, prompts and parameters are those of the judge inside."""

    def __init__(self, judge: Judge, store: Store) -> None:
        super().__init__(judge)
        self._store = store
        self._who = identity(judge)
        self._refs: dict[tuple[str, str], int] = {}
        self._answered: Counter[int] = Counter()

    def evidence_sha256(self, request: StageRequest) -> str:
        """The inner judge's, from the store where this content was packed before."""
        known = self._stored_evidence(request)
        if known is None:
            known = self.inner.evidence_sha256(whole_stage(request))
            self._note_evidence(request, known)
        return known

    def _stored_evidence(self, request: StageRequest) -> str | None:
        at = (request.run.content_sha256, self._context(request))
        return self._store.evidence([at[0]], [at[1]]).get(at)

    def _note_evidence(self, request: StageRequest, evidence: str) -> None:
        self._store.add_evidence([(request.run.content_sha256, self._context(request), request.stage, evidence)])

    def _context(self, request: StageRequest) -> str:
        return evidence_context(self._who, request.rubric, request.stage, request.run.track, request.run.tier)

    def estimate(self, request: StageRequest) -> Estimate:
        """What judging would use beyond what the store has."""
        missing = self.look_up(request).missing(request.criteria)
        if not missing or not isinstance(self.inner, EstimatingJudge):
            return Estimate()
        return self.inner.estimate(replace(request, criteria=missing))

    def look_up(self, request: StageRequest) -> Lookup:
        """Keys and stored verdicts of the request's criteria."""
        return self._find(request, self.evidence_sha256(request))

    def _find(self, request: StageRequest, evidence: str) -> Lookup:
        keys = {c.id: _maker(self._who, c, request.sample).key(evidence) for c in request.criteria}
        stored = self._store.known(key.sha256 for key in keys.values())
        return Lookup(keys, {id: stored[key.sha256] for id, key in keys.items() if key.sha256 in stored})

    def reference(self, run: Run) -> int:
        """The store's reference of this version of the run."""
        key = (str(run.path), run.content_sha256)
        if key not in self._refs:
            if len(self._refs) > 10_000:
                self._refs.clear()
            self._refs[key] = self._store.add_run(run)
        return self._refs[key]

    async def judge(self, request: StageRequest) -> StageReply:
        """Stored verdicts and new ones, in the order of the criteria; usage and raw replies are the new ones' alone.

        What the inner judge says is in the store before this returns, so a crash later loses nothing. Codes are those
        of the newest call behind these verdicts.
        """
        begun = await self._before(request)
        reply = await self._judge(request, begun)
        self._answered[begun.reference] += sum(result.status != "unscored" for result in reply.results)
        return reply

    def take_answered(self, reference: int) -> int:
        """How many criteria of this run `judge` has answered since this was last asked."""
        return self._answered.pop(reference, 0)

    async def ask(self, request: StageRequest) -> StageReply:
        """The same for a request that a plan found stale: only verdicts made for this very run meanwhile (by another
        process) are reused, so that a plan's number of calls is what is called. Of two verdicts under one key, because
        two runs show the same evidence, the first stands.
        """
        begun = await self._before(request)
        own = {id: verdict for id, verdict in begun.known.found.items() if verdict.run_ref == begun.reference}
        return await self._judge(request, replace(begun, known=Lookup(begun.known.keys, own)))

    async def _judge(self, request: StageRequest, begun: _Begun) -> StageReply:
        known = begun.known
        missing = known.missing(request.criteria)
        if not missing:
            return await asyncio.to_thread(self._from_store, request, begun)
        reply = await self.inner.judge(replace(request, criteria=missing))
        reply = replace(reply, results=tuple(r for r in reply.results if r.id in known.keys))
        standing = await asyncio.to_thread(self._keep, request, begun, reply)
        results = {result.id: result for result in standing}
        results |= {id: verdict.result for id, verdict in known.found.items()}
        missed = CriterionResult(id="", value=None, status="unscored", reason="judge_error", detail="no result given")
        ordered = tuple(results.get(c.id) or missed.model_copy(update={"id": c.id}) for c in request.criteria)
        return replace(reply, results=ordered)

    async def _before(self, request: StageRequest) -> _Begun:
        """The store is asked in a thread; the judge, which need not bear threads, here."""
        reference, evidence, known = await asyncio.to_thread(self._open, request)
        if evidence is not None and known is not None:
            return _Begun(reference, known, None)
        evidence = self.inner.evidence_sha256(whole_stage(request))
        return _Begun(reference, await asyncio.to_thread(self._find, request, evidence), evidence)

    def _open(self, request: StageRequest) -> tuple[int, str | None, Lookup | None]:
        reference, evidence = self.reference(request.run), self._stored_evidence(request)
        return reference, evidence, None if evidence is None else self._find(request, evidence)

    def _keep(self, request: StageRequest, begun: _Begun, reply: StageReply) -> tuple[CriterionResult, ...]:
        keys = [begun.known.keys[result.id] for result in reply.results]
        new = begun.new_evidence
        packed = None if new is None else (request.run.content_sha256, self._context(request), request.stage, new)
        return self._store.add_reply(begun.reference, request.rubric, request.stage, keys, reply, packed=packed)

    def _from_store(self, request: StageRequest, begun: _Begun) -> StageReply:
        if begun.new_evidence is not None:
            self._note_evidence(request, begun.new_evidence)
        known = begun.known
        return StageReply(tuple(known.found[c.id].result for c in request.criteria), codes=self._codes(known))

    def _codes(self, known: Lookup) -> tuple[FiredCode, ...]:
        newest = max(known.found.values(), key=lambda verdict: verdict.created_at)
        return self._store.codes_of([newest.call_id]).get(newest.call_id, ())


class StoredOnly(StoredJudge):
    """The same without ever asking: what the store lacks is unscored, for the reason of its last attempt if there was one."""

    async def judge(self, request: StageRequest) -> StageReply:
        known = await asyncio.to_thread(self.look_up, request)
        missing = known.missing(request.criteria)
        tried = self._store.attempts(known.keys[c.id].sha256 for c in missing)
        results = []
        for criterion in request.criteria:
            if criterion.id in known.found:
                results.append(known.found[criterion.id].result)
                continue
            last = next(
                iter(reversed(tried.get(known.keys[criterion.id].sha256, []))), ("judge_error", "not asked yet")
            )
            results.append(CriterionResult.model_validate(
                {"id": criterion.id, "value": None, "status": "unscored", "reason": last[0], "detail": last[1]}
            ))  # fmt: skip
        codes = await asyncio.to_thread(self._codes, known) if known.found else ()
        return StageReply(tuple(results), codes=codes)


def whole_stage(request: StageRequest) -> StageRequest:
    """The request with every criterion of its stage: evidence must not depend on which of them are still unknown."""
    return replace(request, criteria=request.rubric.criteria(request.stage))


def note_run(store: Store, run: Run, read_at_ns: int) -> int:
    """Note a run that was read from `read_at_ns` (`stamps.clock`) on, with its files' stamp; returns its reference."""
    return store.add_run(run, stamps.take(run, read_at_ns))


@lru_cache(maxsize=4_096)
def _maker(who: JudgeIdentity, criterion: Criterion, sample: int) -> KeyMaker:
    return KeyMaker(who, criterion.id, criterion_sha256(criterion), sample)


def makers(who: JudgeIdentity, rubric: Rubric, sample: int = 0) -> dict[str, KeyMaker]:
    """Key makers of all criteria of a rubric, by id."""
    return {c.id: _maker(who, c, sample) for c in rubric.criteria()}
