"""A judge that looks in the store before it judges, and keeps what it says: the same seam, so any
caller can have it.

`StoredJudge(judge, store)` asks the inner judge only for items without a verdict. It also remembers
the evidence hashes, so that later planning need not render the records again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...rubrics.model import Criterion
from ...trajectories.models import Run
from ..base import Around, Estimate, EstimatingJudge, Judge, Reply, Request
from ..card.stage_results import CriterionResult, UnscoredReason, unscored
from ..questions.verdict_keys import EvidenceContexts, VerdictKey, identity, key_maker
from . import Store, StoredVerdict
from .group_commit import Together
from .verdicts import Answered, is_final


@dataclass(frozen=True)
class Lookup:
    """What the store knows about a request: the key of each of its criteria, and the verdicts
    found."""

    keys: Mapping[str, VerdictKey]
    found: Mapping[str, StoredVerdict]

    def missing(self, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        return tuple(c for c in criteria if c.id not in self.found)


@dataclass(frozen=True)
class _Begun:
    """A request before its call: what is known, a row that the evidence index lacks, and the run's
    reference."""

    known: Lookup
    packed: tuple[str, str, str, str] | None
    reference: int = 0


class StoredJudge(Around):
    """A judge with a memory. Name, prompts and parameters are those of the judge inside."""

    def __init__(self, judge: Judge, store: Store, planned: bool = False) -> None:
        """`planned`: for requests that a plan found stale. Only verdicts made for this very run
        meanwhile (by another process) are reused, so that a plan's number of calls is what is
        called. Of two verdicts under one key, because two runs show the same evidence, the first
        stands."""
        super().__init__(judge)
        self._store, self._planned = store, planned
        self._who = identity(judge)
        self._refs: dict[tuple[str, str], int] = {}
        self._answered: Counter[int] = Counter()
        self._contexts = EvidenceContexts(self._who)
        self._looks = Together(self._look)
        self._runs = Together(self._note)
        self._replies = Together(store.add_replies)

    def estimate(self, request: Request) -> Estimate:
        """What judging would use beyond what the store has."""
        missing = self.look_up(request).missing(request.criteria)
        if not missing or not isinstance(self.inner, EstimatingJudge):
            return Estimate()
        return self.inner.estimate(replace(request, criteria=missing))

    def look_up(self, request: Request) -> Lookup:
        """Keys and stored verdicts of the request's criteria; the evidence is remembered for
        planning."""
        (begun,) = self._look([(request, self.inner.evidence_sha256(request))])
        if begun.packed is not None:
            self._store.add_evidence([begun.packed])
        return begun.known

    def _look(self, many: Sequence[tuple[Request, str]]) -> list[_Begun]:
        """The same for requests with their evidence, which is not written down yet: most look-ups
        write nothing."""
        keys = [
            {c.id: key_maker(self._who, c, r.sample).key(evidence) for c in r.criteria}
            for r, evidence in many
        ]
        stored = self._store.known(key.sha256 for of in keys for key in of.values())
        found = [
            {id: stored[key.sha256] for id, key in of.items() if key.sha256 in stored}
            for of in keys
        ]
        places = [
            (
                r.run.content_sha256,
                self._contexts.context(r.question, r.run.track, r.run.tier, r.public),
            )
            for r, _ in many
        ]
        # Whoever has an answer to write writes the evidence with it, known or not.
        read_only = [
            place for place, of, has in zip(places, keys, found, strict=True) if len(of) == len(has)
        ]
        indexed = self._store.evidence(
            {sha256 for sha256, _ in read_only}, {context for _, context in read_only}
        )
        return [
            _Begun(
                Lookup(of, has), None if place in indexed else (*place, request.question, evidence)
            )
            for (request, evidence), place, of, has in zip(many, places, keys, found, strict=True)
        ]

    async def reference(self, run: Run, stamp: str | None = None) -> int:
        """The store's reference of this version of the run; with a `stamp`, its files are noted
        anew."""
        key = (str(run.path), run.content_sha256)
        if stamp is None and key in self._refs:
            return self._refs[key]
        if len(self._refs) > 10_000:
            self._refs.clear()
        self._refs[key] = found = await self._runs.do((run, stamp))
        return found

    def _note(self, many: Sequence[tuple[Run, str | None]]) -> list[int]:
        return self._store.add_runs([(self._store.describe(run), stamp) for run, stamp in many])

    async def judge(self, request: Request) -> Reply:
        """Stored verdicts and new ones, in the order of the criteria; usage and raw replies are the
        new ones' alone.

        What the inner judge says is in the store before this returns, so a crash later loses
        nothing.
        """
        begun = await self._before(request)
        if self._planned:
            own = {
                id: verdict
                for id, verdict in begun.known.found.items()
                if verdict.run_ref == begun.reference
            }
            begun = replace(begun, known=Lookup(begun.known.keys, own))
        reply = await self._judge(request, begun)
        self._answered[begun.reference] += sum(is_final(r, reply) for r in reply.results)
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
        keys = [known.keys[result.id] for result in reply.results]
        answered = Answered(
            begun.reference,
            request.rubric.sha256,
            request.question,
            keys,
            reply,
            packed=begun.packed,
        )
        results = {result.id: result for result in await self._replies.do(answered)}
        results |= {id: verdict.result for id, verdict in known.found.items()}
        missed = unscored(
            (c for c in request.criteria if c.id not in results), "judge_error", "no result given"
        )
        results |= {result.id: result for result in missed}
        warnings = (*reply.warnings, *self._foreign(known.found))
        return replace(
            reply, results=tuple(results[c.id] for c in request.criteria), warnings=warnings
        )

    def _foreign(self, found: Mapping[str, StoredVerdict]) -> tuple[str, ...]:
        """What a scorecard says of verdicts from a store that somebody else made."""
        if not found or self._store.own:
            return ()
        return (
            (
                f"{', '.join(found)}: verdicts out of a store that was not made here; nothing shows"
                f" that {self.name} gave them"
            ),
        )

    async def _before(self, request: Request) -> _Begun:
        """The store is asked in a thread; the judge, which need not bear threads, here."""
        begun = await self._looks.do((request, self.inner.evidence_sha256(request)))
        return replace(begun, reference=await self.reference(request.run))

    def _from_store(self, request: Request, begun: _Begun) -> Reply:
        if begun.packed is not None:
            self._store.add_evidence([begun.packed])
        found = begun.known.found
        return Reply(
            tuple(found[c.id].result for c in request.criteria), warnings=self._foreign(found)
        )


class StoredOnly(StoredJudge):
    """The same without ever asking: what the store lacks is unscored, for the reason of its last
    attempt if there was one."""

    async def judge(self, request: Request) -> Reply:
        known = await asyncio.to_thread(self.look_up, request)
        missing = known.missing(request.criteria)
        tried = self._store.attempts(known.keys[c.id].sha256 for c in missing)
        results = {id: verdict.result for id, verdict in known.found.items()}
        results |= {
            c.id: last_attempt(c.id, tried.get(known.keys[c.id].sha256, ())) for c in missing
        }
        return Reply(
            tuple(results[c.id] for c in request.criteria), warnings=self._foreign(known.found)
        )


def last_attempt(id: str, tried: Sequence[tuple[UnscoredReason, str]]) -> CriterionResult:
    """What stands for an item without a verdict: the last of the attempts, if there was one."""
    reason, detail = tried[-1] if tried else ("judge_error", "not asked yet")
    return CriterionResult.unscored(id, reason, detail)
