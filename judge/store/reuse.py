"""A judge that looks in the store before it judges, and keeps what it says: the same seam, so any caller can have it.

`StoredJudge(judge, store)` asks the inner judge only for items without a verdict. It also remembers the evidence
hashes, so that later planning need not render the records again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion
from ...trajectories.models import Run
from ..base import Around, Estimate, EstimatingJudge, Judge, Reply, Request
from ..questions.keys import EvidenceContexts, JudgeIdentity, KeyMaker, VerdictKey, identity
from ..scorecard import CriterionResult, UnscoredReason, unscored
from . import Store, StoredVerdict


@dataclass(frozen=True)
class Lookup:
    """What the store knows about a request: the key of each of its criteria, and the verdicts found."""

    keys: Mapping[str, VerdictKey]
    found: Mapping[str, StoredVerdict]

    def missing(self, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        return tuple(c for c in criteria if c.id not in self.found)


@dataclass(frozen=True)
class _Begun:
    """A request before its call: the run's reference, what is known, and a row that the evidence index lacks."""

    reference: int
    known: Lookup
    packed: tuple[str, str, str, str] | None


class StoredJudge(Around):
    """A judge with a memory. Name, prompts and parameters are those of the judge inside."""

    def __init__(self, judge: Judge, store: Store, planned: bool = False) -> None:
        """`planned`: for requests that a plan found stale. Only verdicts made for this very run meanwhile (by another
        process) are reused, so that a plan's number of calls is what is called. Of two verdicts under one key, because two
        runs show the same evidence, the first stands."""
        super().__init__(judge)
        self._store, self._planned = store, planned
        self._who = identity(judge)
        self._refs: dict[tuple[str, str], int] = {}
        self._answered: Counter[int] = Counter()
        self._contexts = EvidenceContexts(self._who)

    def evidence_sha256(self, request: Request) -> str:
        """The inner judge's, remembered for planning."""
        found = self.inner.evidence_sha256(request)
        if (row := self._missing_row(request, found)) is not None:
            self._store.add_evidence([row])
        return found

    def _missing_row(self, request: Request, evidence: str) -> tuple[str, str, str, str] | None:
        """The row of the evidence index for this request; None where the index has one: most look-ups write nothing."""
        run = request.run
        context = self._contexts.of(request.question, run.track, run.tier, request.public)
        if self._store.evidence([run.content_sha256], [context]):
            return None
        return run.content_sha256, context, request.question, evidence

    def estimate(self, request: Request) -> Estimate:
        """What judging would use beyond what the store has."""
        missing = self.look_up(request).missing(request.criteria)
        if not missing or not isinstance(self.inner, EstimatingJudge):
            return Estimate()
        return self.inner.estimate(replace(request, criteria=missing))

    def look_up(self, request: Request) -> Lookup:
        """Keys and stored verdicts of the request's criteria."""
        return self._find(request, self.evidence_sha256(request))

    def _find(self, request: Request, evidence: str) -> Lookup:
        keys = {c.id: maker(self._who, c, request.sample).key(evidence) for c in request.criteria}
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

    async def judge(self, request: Request) -> Reply:
        """Stored verdicts and new ones, in the order of the criteria; usage and raw replies are the new ones' alone.

        What the inner judge says is in the store before this returns, so a crash later loses nothing.
        """
        begun = await self._before(request)
        if self._planned:
            own = {id: verdict for id, verdict in begun.known.found.items() if verdict.run_ref == begun.reference}
            begun = replace(begun, known=Lookup(begun.known.keys, own))
        reply = await self._judge(request, begun)
        self._answered[begun.reference] += sum(r.status != "unscored" or r.reason == "not_read" for r in reply.results)
        return reply

    def take_answered(self, reference: int) -> int:
        """How many criteria of this run `judge` has answered since this was last asked."""
        return self._answered.pop(reference, 0)

    async def _judge(self, request: Request, begun: _Begun) -> Reply:
        known = begun.known
        missing = known.missing(request.criteria)
        if not missing:
            return await asyncio.to_thread(self._from_store, request, begun)
        reply = await self.inner.judge(replace(request, criteria=missing))
        reply = replace(reply, results=tuple(r for r in reply.results if r.id in known.keys))
        standing = await asyncio.to_thread(self._keep, request, begun, reply)
        results = {result.id: result for result in standing}
        results |= {id: verdict.result for id, verdict in known.found.items()}
        missed = unscored((c for c in request.criteria if c.id not in results), "judge_error", "no result given")
        results |= {result.id: result for result in missed}
        warnings = (*reply.warnings, *self._foreign(known.found))
        return replace(reply, results=tuple(results[c.id] for c in request.criteria), warnings=warnings)

    def _foreign(self, found: Mapping[str, StoredVerdict]) -> tuple[str, ...]:
        """What a scorecard says of verdicts from a store that somebody else made."""
        if not found or self._store.own:
            return ()
        return (
            f"{', '.join(found)}: verdicts out of a store that was not made here; nothing shows that {self.name} gave them",
        )

    async def _before(self, request: Request) -> _Begun:
        """The store is asked in a thread; the judge, which need not bear threads, here."""
        evidence = self.inner.evidence_sha256(request)
        return await asyncio.to_thread(self._open, request, evidence)

    def _open(self, request: Request, evidence: str) -> _Begun:
        row = self._missing_row(request, evidence)
        return _Begun(self.reference(request.run), self._find(request, evidence), row)

    def _keep(self, request: Request, begun: _Begun, reply: Reply) -> tuple[CriterionResult, ...]:
        keys = [begun.known.keys[result.id] for result in reply.results]
        return self._store.add_reply(
            begun.reference, request.rubric, request.question, keys, reply, packed=begun.packed
        )

    def _from_store(self, request: Request, begun: _Begun) -> Reply:
        if begun.packed is not None:
            self._store.add_evidence([begun.packed])
        found = begun.known.found
        return Reply(tuple(found[c.id].result for c in request.criteria), warnings=self._foreign(found))


class StoredOnly(StoredJudge):
    """The same without ever asking: what the store lacks is unscored, for the reason of its last attempt if there was one."""

    async def judge(self, request: Request) -> Reply:
        known = await asyncio.to_thread(self.look_up, request)
        missing = known.missing(request.criteria)
        tried = self._store.attempts(known.keys[c.id].sha256 for c in missing)
        results = {id: verdict.result for id, verdict in known.found.items()}
        results |= {c.id: last_attempt(c.id, tried.get(known.keys[c.id].sha256, ())) for c in missing}
        return Reply(tuple(results[c.id] for c in request.criteria), warnings=self._foreign(known.found))


def last_attempt(id: str, tried: Sequence[tuple[UnscoredReason, str]]) -> CriterionResult:
    """What stands for an item without a verdict: the last of the attempts, if there was one."""
    reason, detail = tried[-1] if tried else ("judge_error", "not asked yet")
    return CriterionResult.unscored(id, reason, detail)


@lru_cache(maxsize=4_096)
def maker(who: JudgeIdentity, item: Criterion, sample: int = 0) -> KeyMaker:
    """Makes the keys of an item's verdicts by this judge."""
    return KeyMaker(who, item.id, criterion_sha256(item), sample)
