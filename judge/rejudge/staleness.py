"""What is stale, why, and what mending it would take: planned without a single call, then executed
exactly.

`plan` compares, for every run, question and item, the key of the verdict that would be made now
with the verdicts in the store. A verdict is stale when its key is missing; the closest stored
verdict says why (criterion, evidence, prompt, judge, parameters). Weights, tiers' credits and
requirements are in no key: editing them stales nothing.

Unchanged runs are not read: their files' stamps and the store's evidence index stand for them
(`verify=True` reads all).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...errors import AmbjudgeError, InputError
from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Tier, TrackName
from ...trajectories.reading.load import load_conversation
from ..base import Estimate, EstimatingJudge, Judge, QuestionName, Request, answers
from ..questions.question_keys import QuestionKeys
from ..questions.verdict_keys import JudgeIdentity, canonical_json, identity
from ..scope import Scope
from ..store import Store, stamps

StaleReason = Literal[
    "new", "failed", "criterion", "evidence", "prompt", "judge", "parameters", "sample"
]
"""new: never judged; failed: every attempt failed; the others: the part of the key that changed."""

_CHUNK = 500
_READ_AT_ONCE = 16
"""Runs in memory while planning; their notes share one commit."""
_TRUSTED_CALLS = 20
"""From so many past calls on, their lowest and highest use stand for a run that need not be read.
"""


@dataclass(frozen=True)
class Need:
    """One call to make: the stale items of one question on one run, each with its reasons."""

    path: Path
    rubric_id: str
    question: QuestionName
    reasons: Mapping[str, tuple[StaleReason, ...]]

    def of(self, asked: Request) -> Request:
        """Of the whole question, what is stale."""
        return replace(asked, criteria=tuple(c for c in asked.criteria if c.id in self.reasons))


@dataclass(frozen=True)
class RejudgePlan:
    """What would be judged. `current` verdicts stand; `read` of the `runs` had to be read to know
    that."""

    judge: JudgeIdentity
    scope: Scope
    needs: tuple[Need, ...]
    runs: int
    read: int
    current: int
    errors: tuple[tuple[Path, AmbjudgeError], ...]
    estimate: Estimate
    """What the calls would use, at the least and at the most."""
    apart: int = 0
    """Runs of another track than the scope's rubric; they are judged by their own."""

    @property
    def calls(self) -> int:
        """Questions, one call each unless a reply needs a retry or repair."""
        return len(self.needs)

    @property
    def stale(self) -> int:
        """Verdicts to make."""
        return sum(len(need.reasons) for need in self.needs)

    @property
    def never(self) -> int:
        """Those of them that this judge never made of this run."""
        return sum(
            "new" in why or "judge" in why for need in self.needs for why in need.reasons.values()
        )


@dataclass
class _Facts:
    """What planning must know of one run."""

    path: Path
    content_sha256: str
    track: TrackName | None
    tier: Tier | None
    rubric: Rubric
    evidence: dict[QuestionName, str]
    requests: dict[QuestionName, Request] | None = None
    """Of a run that was read; so is what the store is to remember of it."""
    described: tuple[Mapping[str, Any], str | None] = ({}, None)
    settled: bool = False
    """The store knows that every criterion has a verdict."""


def plan(
    store: Store,
    paths: Iterable[Path],
    judge: Judge,
    scope: Scope | None = None,
    *,
    verify: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> RejudgePlan:
    """The plan for the runs at these conversation files. Calls nothing; a run that cannot be read
    is in `errors`.

    `verify` reads every run instead of trusting sizes and times; `on_progress` gets the number of
    runs done so far.
    """
    planner = _Planner(store, judge, scope or Scope(), verify)
    rest = iter(paths)
    while chunk := list(islice(rest, _CHUNK)):
        planner.add(chunk)
        if on_progress is not None:
            on_progress(planner.count["runs"])
    return planner.plan()


def requests(plan: RejudgePlan, judge: Judge) -> Iterator[Request]:
    """The plan's requests in its order; each run is read once. InputError for one that cannot be
    read any more."""
    for path, needs in groupby(plan.needs, key=lambda need: need.path):
        asked = plan.scope.requests(plan.scope.apply(load_conversation(path)), judge)
        yield from (need.of(asked[need.question]) for need in needs if need.question in asked)


class _Wish(NamedTuple):
    """A verdict that there should be, and its key."""

    facts: _Facts
    question: QuestionName
    item: Criterion
    key: str


class _Planner:
    """Plans chunk by chunk, so that only what is stale is kept."""

    def __init__(self, store: Store, judge: Judge, scope: Scope, verify: bool) -> None:
        self.store, self.judge, self.scope, self.verify = store, judge, scope, verify
        self.who = identity(judge)
        self.needs: list[Need] = []
        self.errors: list[tuple[Path, AmbjudgeError]] = []
        self.estimate = Estimate()
        self.count = Counter[str]()
        self.ask = QuestionKeys(self.who, answers(judge), scope.questions, scope.public)
        self._histories: dict[QuestionName, tuple[int, Estimate]] = {}
        self._last: tuple[Path, dict[QuestionName, Request]] | None = None

    def plan(self) -> RejudgePlan:
        """The plan for all runs so far."""
        count = self.count
        return RejudgePlan(
            judge=self.who,
            scope=self.scope,
            needs=tuple(self.needs),
            runs=count["runs"],
            read=count["read"],
            current=count["current"],
            errors=tuple(self.errors),
            estimate=self.estimate,
            apart=count["apart"],
        )

    def add(self, paths: Sequence[Path]) -> None:
        """Plan these runs."""
        paths = [path if path.is_absolute() else path.absolute() for path in paths]
        known = {} if self.verify else self._from_stamps(paths)
        self.count["runs"] += len(paths)
        self._compare(list(known.values()))
        read: list[_Facts] = []
        for path in paths:
            if path in known:
                continue
            try:
                read.append(self._from_files(path))
            except InputError as error:
                self.errors.append((path, error))
            if len(read) == _READ_AT_ONCE:
                self._take(read)
                read = []
        self._take(read)

    def _take(self, read: Sequence[_Facts]) -> None:
        if read:
            self.store.add_runs([facts.described for facts in read])
            self.store.add_evidence(
                (facts.content_sha256, self._context(facts, question), question, sha)
                for facts in read
                for question, sha in facts.evidence.items()
            )
            self._compare(read)

    def _from_stamps(self, paths: Sequence[Path]) -> dict[Path, _Facts]:
        """Runs whose files are unchanged and whose evidence the store knows, or whose every
        verdict."""
        found: dict[Path, _Facts] = {}
        for path, seen in self.store.stamped(paths).items():
            if stamps.unchanged(str(path), seen.stamp):
                track, tier = seen.run.track or self.scope.track, seen.run.tier or self.scope.tier
                rubric = self.scope.rubric_of(track, seen.run.task)
                found[path] = _Facts(path, seen.run.content_sha256, track, tier, rubric, {})
        settled = self.store.settled(
            {f.content_sha256 for f in found.values()}, {self._question(f) for f in found.values()}
        )
        for facts in found.values():
            facts.settled = (facts.content_sha256, self._question(facts)) in settled
        open_ = {path: facts for path, facts in found.items() if not facts.settled}
        # whether a run is asked for its stages shows only when it is read
        if self.scope.questions.stages == "mixed":
            return {path: facts for path, facts in found.items() if facts.settled}
        contexts = {
            self._context(f, question) for f in open_.values() for question in self._items(f)
        }
        evidence = self.store.evidence({f.content_sha256 for f in open_.values()}, contexts)
        for path, facts in open_.items():
            for question in self._items(facts):
                known = evidence.get((facts.content_sha256, self._context(facts, question)))
                if known is None:
                    del found[path]
                    break
                facts.evidence[question] = known
        return found

    def _from_files(self, path: Path) -> _Facts:
        read_at = time.time_ns()
        loaded = load_conversation(path)
        self.count["read"] += 1
        described = self.store.describe(loaded), stamps.take(loaded, read_at)
        run = self.scope.apply(loaded)
        rubric = self.scope.rubric_of(run.track, run.task)
        asked = self.scope.requests(run, self.judge)
        facts = _Facts(path, run.content_sha256, run.track, run.tier, rubric, {}, asked, described)
        facts.evidence |= {
            question: self.judge.evidence_sha256(request) for question, request in asked.items()
        }
        return facts

    def _compare(self, all_facts: Sequence[_Facts]) -> None:
        wanted: list[_Wish] = []
        for facts in all_facts:
            self.count["apart"] += (
                self.scope.rubric is not None and facts.rubric is not self.scope.rubric
            )
            if facts.settled:
                self.count["current"] += self._count(facts)
                continue
            for question, items in self._items(facts).items():
                evidence = canonical_json(facts.evidence[question]).encode()
                wanted.extend(
                    _Wish(facts, question, item, self.ask.key_maker(item).sha256_of_json(evidence))
                    for item in items
                )
        have = self.store.known_keys(wish.key for wish in wanted)
        stale = [wish for wish in wanted if wish.key not in have]
        self.count["current"] += len(wanted) - len(stale)
        unsettled = {wish.facts.path for wish in stale}
        self.store.settle(
            (facts.content_sha256, self._question(facts), self._count(facts))
            for facts in all_facts
            if not facts.settled and facts.path not in unsettled
        )
        if not stale:
            return
        groups: dict[
            tuple[Path, QuestionName], tuple[_Facts, dict[str, tuple[StaleReason, ...]]]
        ] = {}
        for wish, why in zip(stale, self._reasons(stale), strict=True):
            group = groups.setdefault((wish.facts.path, wish.question), (wish.facts, {}))
            group[1][wish.item.id] = why
        before: Path | None = None
        for (path, question), (facts, why_by_id) in groups.items():
            need = Need(path, facts.rubric.id, question, why_by_id)
            self.needs.append(need)
            self.estimate += self._use(facts, need, warm=path == before)
            before = path

    def _reasons(self, stale: Sequence[_Wish]) -> list[tuple[StaleReason, ...]]:
        names = {wish.facts.path: self.store.relative(wish.facts.path) for wish in stale}
        evidence = self.store.evidence_of(set(names.values()))
        stored = self.store.verdicts_on({sha for pairs in evidence.values() for _, sha in pairs})
        failed = self.store.attempts(wish.key for wish in stale)
        found: list[tuple[StaleReason, ...]] = []
        for wish in stale:
            mine = self.ask.key_maker(wish.item).key(wish.facts.evidence[wish.question])
            old = [
                candidate
                for sha in dict.fromkeys(
                    sha
                    for of, sha in evidence.get(names[wish.facts.path], ())
                    if of == wish.question
                )
                for candidate in stored.get((sha, wish.item.id), ())
            ]
            if wish.key in failed:
                found.append(("failed",))
            elif old:
                found.append(
                    min(
                        (mine.changed_from(candidate) for candidate in old),
                        key=lambda parts: (len(parts), parts),
                    )
                )
            else:
                found.append(("new",))
        return found

    def _use(self, facts: _Facts, need: Need, *, warm: bool) -> Estimate:
        """Least and most use of one call: from the judge's own estimate, or from its past calls on
        this question.

        `warm`: another question on the same run is asked before it.
        """
        calls, past = self._history(need.question)
        if facts.requests is None and calls >= _TRUSTED_CALLS:
            return past
        if isinstance(self.judge, EstimatingJudge):
            request = (facts.requests or self._read_again(facts.path))[need.question]
            return self.judge.estimate(replace(need.of(request), warm=warm))
        return past if calls else Estimate()

    def _read_again(self, path: Path) -> dict[QuestionName, Request]:
        """The questions on a run that the stamps let pass; one run is kept, as its needs follow
        each other."""
        if self._last is None or self._last[0] != path:
            self._last = (
                path,
                self.scope.requests(self.scope.apply(load_conversation(path)), self.judge),
            )
        return self._last[1]

    def _history(self, question: QuestionName) -> tuple[int, Estimate]:
        if question not in self._histories:
            self._histories[question] = self.store.history(self.who.judge, question)
        return self._histories[question]

    def _items(self, facts: _Facts) -> Mapping[QuestionName, tuple[Criterion, ...]]:
        if facts.requests is not None:
            return {question: request.criteria for question, request in facts.requests.items()}
        return self.ask.items(facts.rubric, facts.tier, facts.track)

    def _count(self, facts: _Facts) -> int:
        return sum(map(len, self._items(facts).values()))

    def _question(self, facts: _Facts) -> str:
        return self.ask.sha256(facts.rubric, facts.tier, facts.track)

    def _context(self, facts: _Facts, question: QuestionName) -> str:
        return self.ask.context(question, facts.track, facts.tier)
