"""Plan which verdicts are stale, why, and what judging them again would take.

A plan makes no call; `execute` then makes exactly the planned ones.

`plan_rejudge` compares, for every run, question, item and voter (`judges.panel.voters`), the key of
the verdict that would be made now with the verdicts in the store. A verdict is stale if its key is
missing; the closest stored verdict shows why (criterion, evidence, prompt, judge, parameters).
Weights, tiers' credits and requirements are in no key: editing them makes nothing stale. Copies of
a run share their verdicts, so that a plan has each key once.

Unchanged runs are not read: their files' stamps and the store's evidence index stand for them
(`verify=True` reads all).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...errors import AmbjudgeError, InputError
from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Tier, TrackName
from ...trajectories.reading.load import load_conversation
from ..base import (
    Estimate,
    EstimatingJudge,
    Judge,
    QuestionName,
    Request,
    SizingJudge,
    Usage,
    shared_tokens,
)
from ..facts.decided import FACTS, ProvenValues, decode, encode, without_decided
from ..judges.panel import voters
from ..provider_batch.ledger import waiting_keys
from ..questions.question_keys import VoteKeys
from ..questions.verdict_keys import (
    JudgeIdentity,
    VerdictKey,
    canonical_json,
    identity,
    key_maker,
)
from ..scope import Scope
from ..store import Store, stamps
from ..store.connection import EvidenceRow, SettledRow
from .forecast import CallSize, Forecaster, ForecastSum
from .selection import ItemSelection

StaleReason = Literal[
    "new", "failed", "criterion", "evidence", "prompt", "judge", "parameters", "sample"
]
"""new: never judged; failed: every attempt failed; the others: the part of the key that changed."""
_NEVER_JUDGED: frozenset[StaleReason] = frozenset({"new", "judge", "sample"})
Requests = dict[QuestionName, Request]

_CHUNK = 500
"""Runs that are planned at a time."""
_READ_AT_ONCE = 16
"""Runs that are in memory at a time; what the store is told of them shares one commit."""


@dataclass(frozen=True)
class Need:
    """One call to make: the stale items of one question on one run, each with its reasons."""

    path: Path
    rubric_id: str
    question: QuestionName
    reasons: Mapping[str, tuple[StaleReason, ...]]
    voter: int = 0
    """Index of whoever is asked among the judge's voters (`judges.panel.voters`)."""
    sample: int = 0
    """The voter's number."""

    def restrict(self, request: Request) -> Request:
        """The voter's request, for the stale items alone, from the one on the whole question."""
        stale = tuple(item for item in request.criteria if item.id in self.reasons)
        return replace(request, criteria=stale, sample=self.sample)


class SecondOpinion(NamedTuple):
    """An item that is asked once more, by the keys of both verdicts."""

    path: Path
    question: QuestionName
    item: str
    in_force: str
    """The key of the verdict that stands, and counts."""
    further: str
    """The key of the one that is asked for."""


@dataclass(frozen=True)
class RejudgePlan:
    """What would be judged.

    `current` verdicts stand; `read` of the `runs` had to be read to know that.
    """

    judge: JudgeIdentity
    scope: Scope
    needs: tuple[Need, ...]
    runs: int
    read: int
    current: int
    errors: tuple[tuple[Path, AmbjudgeError], ...]
    """Runs that could not be read."""
    estimate: Estimate
    """What the calls would use (`forecast`)."""
    costs: tuple[float | None, ...] = ()
    """The expected cost of each call in USD; None if the price is unknown."""
    waiting: int = 0
    """Questions that wait in open batches and are not asked."""
    foreign_track_runs: int = 0
    """Runs of another track than the scope's rubric; they are judged by their own rubric."""
    contents: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    """Hashes of the contents and of the rubric of each run that could be read, by absolute path."""
    second_opinions: tuple[SecondOpinion, ...] = ()
    """Of the items that are asked though a verdict stands."""

    @property
    def calls(self) -> int:
        """How many calls are to be made, one for each sample and member of a panel."""
        return len(self.needs)

    @property
    def questions(self) -> int:
        """How many questions on runs are to be asked."""
        return len({(need.path, need.question) for need in self.needs})

    def calls_within(self, cost_usd: float) -> int:
        """How many of the calls, in their order, are expected to cost no more than this."""
        spent = 0.0
        for number, cost in enumerate(self.costs):
            spent += cost or 0.0
            if spent > cost_usd:
                return number
        return len(self.costs)

    @property
    def stale(self) -> int:
        """How many verdicts are to be made."""
        return sum(len(need.reasons) for need in self.needs)

    @property
    def never_judged(self) -> int:
        """How many of the stale verdicts their voters never made on these runs."""
        return sum(
            not _NEVER_JUDGED.isdisjoint(reasons)
            for need in self.needs
            for reasons in need.reasons.values()
        )


def plan_rejudge(
    store: Store,
    paths: Iterable[Path],
    judge: Judge,
    scope: Scope | None = None,
    *,
    verify: bool = False,
    batch: bool = False,
    ask_open: bool = False,
    selection: ItemSelection | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> RejudgePlan:
    """The plan for the runs at these conversation files.

    Makes no call; a run that cannot be read is in `errors`.

    `verify` reads every run instead of trusting sizes and times; `batch` forecasts the cost of
    calls through the provider's batches; `selection` names the only items that are asked, and
    InputError is raised if none of the runs has one of them; `on_progress` gets the number of runs
    planned so far.

    What waits in an open batch is not planned, unless `batch` or `ask_open`: the first collects it
    before it asks.
    """
    forecaster = Forecaster(store, batch=batch)
    planner = _Planner(store, judge, scope or Scope(), verify, forecaster, selection)
    if not (batch or ask_open):
        planner.waiting = waiting_keys(store)
    unplanned = iter(paths)
    while chunk := list(islice(unplanned, _CHUNK)):
        planner.add(chunk)
        if on_progress is not None:
            on_progress(planner.counts["runs"])
    return planner.plan()


def planned_requests(
    plan: RejudgePlan, judge: Judge, asked: Judge | None = None
) -> Iterator[Request]:
    """The plan's requests in its order; each run is read once.

    `asked`: the judge of a voter, for its requests alone. InputError for a run that can no longer
    be read.
    """
    of_judge = [asked is None or voter.judge is asked for voter in voters(judge)]
    needs_of_judge = (need for need in plan.needs if of_judge[need.voter])
    for path, needs in groupby(needs_of_judge, key=lambda need: need.path):
        requests = plan.scope.requests(plan.scope.apply(load_conversation(path)), judge)
        for need in needs:
            if need.question in requests:
                yield need.restrict(requests[need.question])


_Vote = tuple[int, QuestionName]
"""A voter's index and a question."""


@dataclass
class _RunInfo:
    """What planning must know of one run."""

    path: Path
    content_sha256: str
    track: TrackName | None
    tier: Tier | None
    rubric: Rubric
    evidence: dict[_Vote, str]
    """Hash of what each voter would be shown for each question."""
    requests: Requests | None = None
    """The questions on a run that was read; None for one that was not."""
    proven: ProvenValues | None = None
    """What facts prove of the run, where the judge is not asked about that; None if unknown."""
    description: tuple[Mapping[str, Any], str | None] = ({}, None)
    """What the store is to remember of a run that was read, and the stamp of its files."""
    turns: int = 0
    tokens: dict[int, int] = field(default_factory=dict)
    """Of what each voter is shown, by its own estimate, as far as it is known."""
    settled: int | None = None
    """The number of items, if the store knows that every one has a verdict."""


class _ExpectedVerdict(NamedTuple):
    """A verdict that the store should have, and its key."""

    run: _RunInfo
    voter: int
    question: QuestionName
    item: Criterion
    key: str
    sample: int
    """The voter's number; of a second opinion the next one that has no verdict."""
    is_further: bool = False
    """Whether it is a second opinion."""


class _Planner:
    """Plans chunk by chunk, so that only what is stale is kept in memory."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        scope: Scope,
        verify: bool,
        forecaster: Forecaster,
        selection: ItemSelection | None,
    ) -> None:
        self.forecaster, self.selection = forecaster, selection
        self._used_names: set[str] = set()
        self._asked_items: set[str] = set()
        self.second_opinions: list[SecondOpinion] = []
        self.store, self.judge, self.scope, self.verify = store, judge, scope, verify
        self.keys = VoteKeys(judge, scope.questions, scope.public)
        self.leaves_to_facts = scope.questions.leaves_to_facts(judge.name)
        self.needs: list[Need] = []
        self.errors: list[tuple[Path, AmbjudgeError]] = []
        self.forecasts = ForecastSum()
        self.counts = Counter[str]()
        self.waiting: frozenset[str] = frozenset()
        """Keys of verdicts that wait in open batches, which are not asked for."""
        self.waiting_votes: set[tuple[Path, int, QuestionName]] = set()
        self._planned_keys: set[str] = set()
        self.contents: dict[Path, tuple[str, str]] = {}
        self._last_read: tuple[Path, Requests] | None = None

    def plan(self) -> RejudgePlan:
        """The plan for all runs that were added."""
        self._check_names()
        return RejudgePlan(
            judge=identity(self.judge),
            scope=self.scope,
            needs=tuple(self.needs),
            runs=self.counts["runs"],
            read=self.counts["read"],
            current=self.counts["current"],
            waiting=len(self.waiting_votes),
            errors=tuple(self.errors),
            estimate=self.forecasts.total,
            costs=tuple(self.forecasts.costs),
            foreign_track_runs=self.counts["foreign_track_runs"],
            contents=self.contents,
            second_opinions=tuple(self.second_opinions),
        )

    def _check_names(self) -> None:
        """InputError if the selection names something that none of the runs is asked."""
        if self.selection is None or not self.contents:
            return
        unused = sorted(self.selection.names - self._used_names)
        if unused:
            raise InputError(
                f"{', '.join(unused)}: not asked about any of these runs",
                f"choose from {', '.join(sorted(self._asked_items))}",
            )

    def add(self, paths: Sequence[Path]) -> None:
        """Plan these runs: from the store where their files are unchanged, else by reading them."""
        paths = [path if path.is_absolute() else path.absolute() for path in paths]
        unchanged = {} if self.verify else self._runs_from_stamps(paths)
        self.counts["runs"] += len(paths)
        self._compare_with_store(list(unchanged.values()))
        read: list[_RunInfo] = []
        for path in paths:
            if path in unchanged:
                continue
            try:
                read.append(self._read_run(path))
            except InputError as error:
                self.errors.append((path, error))
            if len(read) == _READ_AT_ONCE:
                self._add_read(read)
                read = []
        self._add_read(read)

    def _add_read(self, runs: Sequence[_RunInfo]) -> None:
        """Plan runs that were read, and let the store remember what was seen of them."""
        if not runs:
            return
        self.store.add_runs([run.description for run in runs])
        rows = {
            EvidenceRow(
                run.content_sha256,
                self._context(run, vote),
                vote[1],
                evidence,
                run.tokens.get(vote[0]),
            )
            for run in runs
            for vote, evidence in run.evidence.items()
        }
        for run in runs:
            if run.proven is not None:
                context = self._facts_context(run)
                rows.add(EvidenceRow(run.content_sha256, context, FACTS, encode(run.proven)))
        self.store.add_evidence(rows)
        self._compare_with_store(runs)

    # Runs from the store or from their files

    def _runs_from_stamps(self, paths: Sequence[Path]) -> dict[Path, _RunInfo]:
        """Runs that need not be read.

        Their files are unchanged, and the store knows that every verdict is there or what the judge
        would be shown.
        """
        runs = self._unchanged_runs(paths)
        if self.selection is not None:
            # Which items are stale is asked of each item.
            return {} if self.scope.questions.stages == "mixed" else self._with_evidence(runs)
        settled_pairs = self.store.settled(
            {run.content_sha256 for run in runs.values()},
            {self._questions_sha256(run) for run in runs.values()},
        )
        for run in runs.values():
            run.settled = settled_pairs.get((run.content_sha256, self._questions_sha256(run)))
        settled = {path: run for path, run in runs.items() if run.settled is not None}
        # Whether a run is asked for its stages shows only when it is read.
        if self.scope.questions.stages == "mixed":
            return settled
        unsettled = {path: run for path, run in runs.items() if run.settled is None}
        complete = self._with_evidence(unsettled)
        return {path: run for path, run in runs.items() if path in settled or path in complete}

    def _with_evidence(self, runs: Mapping[Path, _RunInfo]) -> dict[Path, _RunInfo]:
        """Those of the runs of which the store knows all that planning must know."""
        self._add_stored_evidence(list(runs.values()))
        return {path: run for path, run in runs.items() if self._is_complete(run)}

    def _is_complete(self, run: _RunInfo) -> bool:
        """Whether the store knows all that planning must know of a run."""
        if self.leaves_to_facts and run.proven is None:
            return False
        return all(vote in run.evidence for vote in self.keys.votes(self._items(run)))

    def _unchanged_runs(self, paths: Sequence[Path]) -> dict[Path, _RunInfo]:
        """Runs whose files are as the store last saw them."""
        runs: dict[Path, _RunInfo] = {}
        for path, file_stamp in self.store.stamped(paths).items():
            if stamps.unchanged(str(path), file_stamp.stamp):
                stored = file_stamp.run
                track, tier = stored.track or self.scope.track, stored.tier or self.scope.tier
                runs[path] = _RunInfo(
                    path=path,
                    content_sha256=stored.content_sha256,
                    track=track,
                    tier=tier,
                    rubric=self.scope.rubric_of(track, stored.task),
                    evidence={},
                    turns=stored.turns,
                )
        return runs

    def _add_stored_evidence(self, runs: Sequence[_RunInfo]) -> None:
        """Add the evidence hashes that the store knows, and what facts prove."""
        votes = {run.path: list(self.keys.votes(self._items(run))) for run in runs}
        contexts = {self._context(run, vote) for run in runs for vote in votes[run.path]}
        contexts |= {self._facts_context(run) for run in runs}
        evidence = self.store.evidence({run.content_sha256 for run in runs}, contexts)
        for run in runs:
            for vote in votes[run.path]:
                sha256 = evidence.get((run.content_sha256, self._context(run, vote)))
                if sha256 is not None:
                    run.evidence[vote] = sha256
            proven = evidence.get((run.content_sha256, self._facts_context(run)))
            if self.leaves_to_facts and proven is not None:
                run.proven = decode(proven)

    def _read_run(self, path: Path) -> _RunInfo:
        read_at = time.time_ns()
        loaded = self.scope.running.apply(load_conversation(path))
        self.counts["read"] += 1
        run = self.scope.apply(loaded)
        prepared = self.scope.prepare(run)
        requests = {request.question: request for request in prepared.requests(self.judge)}
        return _RunInfo(
            path=path,
            content_sha256=run.content_sha256,
            track=run.track,
            tier=run.tier,
            rubric=self.scope.rubric_of(run.track, run.task),
            evidence={
                (voter, question): self.keys.voters[voter].judge.evidence_sha256(request)
                for question, request in requests.items()
                for voter in self.keys.voters_on(question)
            },
            requests=requests,
            turns=len(run.turns),
            tokens=self._shared_tokens(requests),
            proven=prepared.proven_values if self.leaves_to_facts else None,
            description=(self.store.describe(loaded), stamps.take(loaded, read_at)),
        )

    # Expected verdicts against stored ones

    def _compare_with_store(self, runs: Sequence[_RunInfo]) -> None:
        """Count the current verdicts of these runs, and add a need for the others."""
        expected: list[_ExpectedVerdict] = []
        for run in runs:
            self.contents[run.path] = (run.content_sha256, run.rubric.sha256)
            if self.scope.is_foreign(run.rubric):
                self.counts["foreign_track_runs"] += 1
            if run.settled is not None:
                self.counts["current"] += run.settled
            else:
                expected += self._expected_verdicts(run)
        stored = self.store.keys_with_verdict(verdict.key for verdict in expected)
        stale = [verdict for verdict in expected if verdict.key not in stored]
        self.counts["current"] += len(expected) - len(stale)
        if self.selection is None:
            with_stale = {verdict.run.path for verdict in stale}
            self.store.settle(
                SettledRow(run.content_sha256, self._questions_sha256(run), self._item_count(run))
                for run in runs
                if run.settled is None and run.path not in with_stale
            )
        elif self.selection.again:
            stale += self._further([verdict for verdict in expected if verdict.key in stored])
        waiting = [verdict for verdict in stale if verdict.key in self.waiting]
        if waiting:
            stale = [verdict for verdict in stale if verdict.key not in self.waiting]
            self.waiting_votes.update(
                (verdict.run.path, verdict.voter, verdict.question) for verdict in waiting
            )
        unplanned = list(self._unplanned(stale))
        if unplanned:
            self._add_needs(unplanned)

    def _unplanned(self, stale: Iterable[_ExpectedVerdict]) -> Iterator[_ExpectedVerdict]:
        """The stale verdicts without those of copies, which have keys that are planned already."""
        for verdict in stale:
            if verdict.key not in self._planned_keys:
                self._planned_keys.add(verdict.key)
                yield verdict

    def _further(self, standing: Sequence[_ExpectedVerdict]) -> list[_ExpectedVerdict]:
        """The next samples of verdicts that stand: one of each voter's judge."""
        last = {id(voter.judge): index for index, voter in enumerate(self.keys.voters)}
        further = [
            self._next_sample(verdict)
            for verdict in standing
            if last[id(self.keys.voters[verdict.voter].judge)] == verdict.voter
        ]
        stored = self.store.keys_with_verdict(verdict.key for verdict in further)
        while taken := [n for n, verdict in enumerate(further) if verdict.key in stored]:
            for number in taken:
                further[number] = self._next_sample(further[number])
            stored = self.store.keys_with_verdict(further[number].key for number in taken)
        in_force = {(v.run.path, v.voter, v.question, v.item.id): v.key for v in standing}
        self.second_opinions += [
            SecondOpinion(
                v.run.path,
                v.question,
                v.item.id,
                in_force[v.run.path, v.voter, v.question, v.item.id],
                v.key,
            )
            for v in further
        ]
        return further

    def _next_sample(self, verdict: _ExpectedVerdict) -> _ExpectedVerdict:
        voter = self.keys.voters[verdict.voter]
        sample = verdict.sample + 1
        maker = key_maker(identity(voter.judge), verdict.item, sample)
        key = maker.sha256(verdict.run.evidence[verdict.voter, verdict.question])
        return verdict._replace(key=key, sample=sample, is_further=True)

    def _expected_verdicts(self, run: _RunInfo) -> Iterator[_ExpectedVerdict]:
        asked = self._items(run)
        for voter, question in self.keys.votes(asked):
            evidence = canonical_json(run.evidence[voter, question]).encode()
            sample = self.keys.voters[voter].sample
            for item in asked[question]:
                if self._is_selected(run, question, item):
                    key = self.keys[voter].key_maker(item).sha256_of_json(evidence)
                    yield _ExpectedVerdict(run, voter, question, item, key, sample)

    def _is_selected(self, run: _RunInfo, question: QuestionName, item: Criterion) -> bool:
        if self.selection is None:
            return True
        self._asked_items.add(item.id)
        name = self.selection.named(question, item.id)
        if name is not None:
            self._used_names.add(name)
        return self.selection.takes(run.path, question, item.id)

    def _add_needs(self, stale: Sequence[_ExpectedVerdict]) -> None:
        """Group stale verdicts into calls, and estimate what these would use."""
        runs: dict[Path, _RunInfo] = {}
        groups: dict[tuple[Path, int, QuestionName, int], dict[str, tuple[StaleReason, ...]]] = {}
        for verdict, reasons in zip(stale, self._reasons(stale), strict=True):
            path = verdict.run.path
            runs[path] = verdict.run
            group = (path, verdict.voter, verdict.question, verdict.sample)
            groups.setdefault(group, {})[verdict.item.id] = reasons
        self._add_tokens(runs.values())
        order = {path: number for number, path in enumerate(runs)}
        previous: tuple[Path, str] | None = None
        # The calls on one run follow each other, as they share its record.
        for (path, index, question, sample), reasons_by_item in sorted(
            groups.items(), key=lambda group: (order[group[0][0]], group[0][1])
        ):
            voter = self.keys.voters[index]
            need = Need(
                path,
                runs[path].rubric.id,
                question,
                reasons_by_item,
                voter=index,
                sample=sample,
            )
            self.needs.append(need)
            is_warm = previous == (path, voter.judge.name)
            estimate = self._estimate_call(runs[path], need, warm=is_warm)
            self.forecasts.add(estimate)
            previous = (path, voter.judge.name)

    def _reasons(self, stale: Sequence[_ExpectedVerdict]) -> list[tuple[StaleReason, ...]]:
        """Why each of these verdicts is stale."""
        names = {verdict.run.path: self.store.relative(verdict.run.path) for verdict in stale}
        evidence = self.store.evidence_by_path(set(names.values()))
        stored = self.store.keys_by_evidence(
            {sha256 for pairs in evidence.values() for _, sha256 in pairs}
        )
        failed = self.store.attempts(verdict.key for verdict in stale)
        reasons: list[tuple[StaleReason, ...]] = []
        for verdict in stale:
            candidates: list[VerdictKey] = []
            for question, sha256 in evidence.get(names[verdict.run.path], ()):
                if question == verdict.question:
                    candidates += stored.get((sha256, verdict.item.id), ())
            if verdict.is_further:
                reasons.append(("sample",))
            elif verdict.key in failed:
                reasons.append(("failed",))
            elif candidates:
                reasons.append(self._fewest_changes(verdict, candidates))
            else:
                reasons.append(("new",))
        return reasons

    def _fewest_changes(
        self, verdict: _ExpectedVerdict, candidates: Sequence[VerdictKey]
    ) -> tuple[StaleReason, ...]:
        """The parts of the key that differ from the closest stored verdict."""
        evidence = verdict.run.evidence[verdict.voter, verdict.question]
        key = self.keys[verdict.voter].key_maker(verdict.item).key(evidence)
        changes = (key.changed_from(candidate) for candidate in candidates)
        return min(changes, key=lambda parts: (len(parts), parts))

    # Estimates

    def _estimate_call(self, run: _RunInfo, need: Need, *, warm: bool) -> Estimate:
        """What one call would use.

        `warm`: another question on the same run is asked before it.
        """
        judge = self.keys.voters[need.voter].judge
        tokens = run.tokens.get(need.voter)
        if isinstance(judge, SizingJudge) and tokens is not None:
            items = self._items(run)[need.question]
            call = CallSize(
                content_sha256=run.content_sha256,
                turns=run.turns,
                question=need.question,
                items=tuple(item for item in items if item.id in need.reasons),
                shared_tokens=tokens,
                is_first=not warm,
            )
            return self.forecaster.estimate(judge, judge.name, call)
        if isinstance(judge, EstimatingJudge):
            request = (run.requests or self._read_again(run.path))[need.question]
            return judge.estimate(replace(need.restrict(request), warm=warm))
        free = Usage(1, None, None, 0.0)
        return Estimate(free, free)

    def _add_tokens(self, runs: Iterable[_RunInfo]) -> None:
        """Add the tokens of what each voter would be shown of runs that were not read."""
        unread = [run for run in runs if not run.tokens]
        for index, voter in enumerate(self.keys.voters):
            if not unread or not isinstance(voter.judge, SizingJudge):
                continue
            contexts = {
                self._context(run, vote)
                for run in unread
                for vote in run.evidence
                if vote[0] == index
            }
            tokens = self.store.evidence_tokens({run.content_sha256 for run in unread}, contexts)
            by_content = {content: count for (content, _), count in tokens.items()}
            for run in unread:
                count = by_content.get(run.content_sha256)
                if count is None:
                    count = self._shared_tokens(self._read_again(run.path)).get(index)
                if count is not None:
                    run.tokens[index] = count

    def _shared_tokens(self, requests: Requests) -> dict[int, int]:
        """The tokens of what all these questions on a run begin with, by voter."""
        by_voter = {}
        for request in requests.values():
            for index, voter in enumerate(self.keys.voters):
                tokens = shared_tokens(voter.judge, request)
                if tokens is not None:
                    by_voter[index] = tokens
            break
        return by_voter

    def _read_again(self, path: Path) -> Requests:
        """The questions on a run that was planned from its stamps.

        The last run is kept, as the needs of one run follow each other.
        """
        if self._last_read is None or self._last_read[0] != path:
            run = self.scope.apply(load_conversation(path))
            self._last_read = (path, self.scope.requests(run, self.judge))
        return self._last_read[1]

    # The questions on a run

    def _items(self, run: _RunInfo) -> Mapping[QuestionName, tuple[Criterion, ...]]:
        if run.requests is not None:
            return {question: request.criteria for question, request in run.requests.items()}
        items = self.keys.items(run.rubric, run.tier, run.track)
        return items if run.proven is None else without_decided(items, run.proven)

    def _item_count(self, run: _RunInfo) -> int:
        return self.keys.number_of_votes(self._items(run))

    def _questions_sha256(self, run: _RunInfo) -> str:
        return self.keys.sha256(run.rubric, run.tier, run.track)

    def _context(self, run: _RunInfo, vote: _Vote) -> str:
        voter, question = vote
        return self.keys[voter].context(question, run.track, run.tier)

    def _facts_context(self, run: _RunInfo) -> str:
        return self.keys.facts_context(run.track, run.tier)
