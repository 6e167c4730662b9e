"""Many runs: read a few at a time, judged at the same time, handed on in order; one bad run never stops the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AmbjudgeError, ConfigError, InputError, JudgeError, StoreError, unexpected
from ..rubrics.load import load_rubric, rubric_for
from ..rubrics.model import Rubric
from ..trajectories.layout import find_conversations, is_run, run_folder
from ..trajectories.load import load_conversation
from ..trajectories.models import Tier, TrackName
from .base import Judge, Usage, answers
from .engine import ask_all, assemble, prepare
from .limits import Budget, GuardedJudge, Pacer
from .questions.items import Wanted
from .runner import BatchSummary, Progress, run_batch
from .scope import Scope
from .scorecard import Policy, ScoreCard

if TYPE_CHECKING:
    from .store import Store

_AHEAD = 4
"""Runs read ahead of the oldest unfinished one, in multiples of the concurrency: results come in order, and what is
finished early must not pile up behind a slow run."""


@dataclass(frozen=True)
class Outcome:
    """What became of one conversation file (or of a path that holds none): a scorecard, or the error that stopped it."""

    path: Path
    card: ScoreCard | None = None
    error: AmbjudgeError | None = None


@dataclass(frozen=True)
class ScoreOptions:
    """How runs are scored. `track` and `tier` stand where the files do not say; `concurrency` counts runs and calls."""

    rubric: str | Path | None = None
    policy: Policy = field(default_factory=Policy)
    public: Path | None = None
    track: TrackName | None = None
    tier: Tier | None = None
    concurrency: int = 8
    max_cost: float | None = None
    """USD for the whole session; what does not fit any more is `unscored: budget`."""
    stored_only: bool = False
    """Ask nobody: scorecards from the verdicts that the store has."""
    wanted: Wanted = field(default_factory=Wanted)
    """What a judge that reads is asked."""


def scope_of(options: ScoreOptions) -> Scope:
    """The scope that a plan for the same runs has."""
    rubric = load_rubric(options.rubric) if options.rubric else None
    return Scope(rubric, options.track, options.tier, options.wanted, options.public)


@dataclass(frozen=True)
class Session:
    """What a session came to."""

    summary: BatchSummary
    usage: Usage
    throttles: int
    """Rate limits met."""
    apart: int = 0
    """Runs of another track than the rubric that was given; they are judged by their own."""


def conversations(paths: Iterable[str | Path]) -> Iterator[Path | Outcome]:
    """Every conversation file at or below the paths; a path without any comes as an Outcome with its error."""
    for path in paths:
        try:
            yield from find_conversations(Path(path))
        except InputError as error:
            yield Outcome(Path(path), error=error)


def default_store(path: str | Path, settings_folder: Path | None = None) -> Path:
    """Where the store of a collection is: beside the settings file above it (that is the project's root), else the nearest
    store at or above the path, else new in the collection's root: the folder given, or the folder above a single run."""
    from .store import DEFAULT_STORE

    start = Path(path).absolute()
    if settings_folder is not None and start.is_relative_to(settings_folder.absolute()):
        return settings_folder / DEFAULT_STORE
    for folder in (start, *start.parents):
        if (folder / DEFAULT_STORE).is_file():
            return folder / DEFAULT_STORE
    if not start.is_dir():
        return run_folder(start).parent / DEFAULT_STORE
    single = start.name == "process" or is_run(start)
    root = (start.parent.parent if start.name == "process" else start.parent) if single else start
    return root / DEFAULT_STORE


async def score_many(
    paths: Iterable[str | Path],
    judge: Judge,
    options: ScoreOptions,
    take: Callable[[Outcome], None],
    *,
    store: Store | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> Session:
    """Score every run and hand each outcome to `take`, in the order of the paths.

    With a store, verdicts that it has are not asked for again, new ones are in it before they count, and scorecards are
    kept. The first Ctrl-C waits for the runs under way; what follows an unfinished run is handed on as it is.
    A judge, a store or settings that cannot be used end the whole session; every other error belongs to its run.
    """
    scorer = _Scorer(judge, options, store)
    order = _InOrder(take, options.concurrency * _AHEAD)

    async def call(job: tuple[int, Path | Outcome]) -> Outcome:
        if isinstance(job[1], Outcome):
            return job[1]
        try:
            return await scorer.score(job[1])
        except (JudgeError, StoreError, ConfigError):
            raise
        except AmbjudgeError as error:
            return Outcome(job[1], error=error)
        except Exception as error:
            return Outcome(job[1], error=unexpected(error, job[1]))

    def told(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(progress, scorer.usage)

    summary = await run_batch(
        order.numbered(conversations(paths)), call, concurrency=options.concurrency,
        on_result=lambda job, outcome: order.put(job[0], outcome), on_progress=told, signals=signals,
    )  # fmt: skip
    order.flush()
    return Session(summary, scorer.usage, scorer.pacer.throttles, scorer.apart)


class _Scorer:
    """Scores one run at a time with what all of them share: judge, rubric, budget, store."""

    def __init__(self, judge: Judge, options: ScoreOptions, store: Store | None) -> None:
        self.options, self.store, self.usage = options, store, Usage()
        self.pacer = Pacer(options.concurrency)
        budget = None if options.max_cost is None else Budget(options.max_cost)
        self.judge: Judge = GuardedJudge(judge, self.pacer, budget)
        self._right: Mapping[str, float] = {}
        if store is not None:
            from .questions.asked import Questions
            from .questions.keys import identity
            from .store.reuse import StoredJudge, StoredOnly
            from .trust.rightness import shares_right

            self._ask = Questions(identity(judge), answers(judge), options.wanted, options.public)
            self._stored = (StoredOnly if options.stored_only else StoredJudge)(self.judge, store)
            self.judge = self._stored
            self._right = shares_right(store, judge.name)
        self._kept: set[str] = set()
        self.rubric: Rubric | None = load_rubric(options.rubric) if options.rubric else None
        self.apart = 0

    async def score(self, path: Path) -> Outcome:
        from .store import stamps

        started = stamps.clock()
        try:
            run = load_conversation(path)
        except InputError as error:
            return Outcome(path, error=error)
        options = self.options
        run = run.model_copy(update={"track": run.track or options.track, "tier": run.tier or options.tier})
        reference = None
        if self.store is not None:
            from .store.reuse import note_run

            reference = note_run(self.store, run, started)
        rubric = rubric_for(run.track, run.task, self.rubric)
        self.apart += self.rubric is not None and rubric is not self.rubric
        ready = prepare(run, rubric=rubric, policy=options.policy, public=options.public, wanted=options.wanted)
        requests = ready.requests(self.judge)
        card = assemble(ready, self.judge, await ask_all(self.judge, requests), self._right)
        if self.store is not None and reference is not None:
            if rubric.sha256 not in self._kept:
                self._kept.add(rubric.sha256)
                self.store.add_rubric(rubric)
            self.store.add_card(reference, path, card)
            asked = sum(len(request.criteria) for request in requests)
            if self._stored.take_answered(reference) == asked:
                question = self._ask.name(rubric, run.tier, run.track)
                self.store.settle([(run.content_sha256, question, asked)])
        used = card.judge
        self.usage += Usage(
            used.calls, used.input_tokens, used.output_tokens, used.cost_usd, used.cached_tokens, used.cache_write_tokens
        )  # fmt: skip
        return Outcome(path, card=card)


class _InOrder:
    """Hands outcomes on in the order of their jobs, and lets jobs run only so far ahead of the oldest unfinished one."""

    def __init__(self, take: Callable[[Outcome], None], ahead: int) -> None:
        self._take, self._ahead = take, ahead
        self._next = 0
        self._early: dict[int, Outcome] = {}
        self._moved = asyncio.Event()

    async def numbered(self, items: Iterator[Path | Outcome]) -> AsyncIterator[tuple[int, Path | Outcome]]:
        for number, item in enumerate(items):
            while number - self._next >= self._ahead:
                self._moved.clear()
                await self._moved.wait()
            yield number, item

    def put(self, number: int, outcome: Outcome) -> None:
        self._early[number] = outcome
        while self._next in self._early:
            self._take(self._early.pop(self._next))
            self._next += 1
        self._moved.set()

    def flush(self) -> None:
        """After a stop some jobs never ran: what waits behind them is handed on."""
        for number in sorted(self._early):
            self._take(self._early.pop(number))
