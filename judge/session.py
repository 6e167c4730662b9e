"""Many runs: read a few at a time, judged at the same time, handed on in order; one bad run never
stops the others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..errors import AmbjudgeError, ConfigError, InputError, JudgeError, StoreError, unexpected
from ..rubrics.load import load_rubric
from ..rubrics.model import Rubric
from ..trajectories.models import Run, Tier, TrackName
from ..trajectories.reading.layout import find_conversations, is_run
from ..trajectories.reading.load import load_conversation
from ..trajectories.reading.remote import RemotePath, find_runs, is_address, staged
from ..version import __version__
from .base import Around, Judge, QuestionName, Reply, Request, Usage, answers, used
from .card.fields import Policy
from .card.scorecard import CardLine, ScoreCard
from .engine import Prepared, ask_all, assemble
from .judges.limits import Allowance, Budget, GuardedJudge, Pacer
from .judges.rules import RULES
from .questions.items import Wanted
from .runner import BatchSummary, Progress, run_batch
from .scope import Scope

if TYPE_CHECKING:
    from .questions.verdict_keys import CardKeys
    from .rejudge.staleness import Need
    from .store import Store
    from .store.card_cache import Unchanged

R = TypeVar("R")

_MOST_LISTED = 100_000
_ASKED_FOR = 200
"""Runs that are looked up in the store at a time."""

_AHEAD = 4
"""Runs read ahead of the oldest unfinished one, in multiples of the concurrency: results come in
order, and what is finished early must not pile up behind a slow run."""


@dataclass(frozen=True)
class Outcome:
    """What became of one conversation file (or of a path that holds none): a scorecard, or the
    error that stopped it."""

    path: Path
    scored: ScoreCard | CardLine | None = None
    error: AmbjudgeError | None = None

    @property
    def card(self) -> ScoreCard | None:
        """The scorecard, parsed where it came as a line."""
        return self.scored.card if isinstance(self.scored, CardLine) else self.scored


@dataclass(frozen=True)
class ScoreOptions:
    """How runs are scored. `track` and `tier` stand where the files do not say; `concurrency`
    counts runs and calls."""

    rubric: Rubric | str | Path | None = None
    policy: Policy = field(default_factory=Policy)
    public: Path | None = None
    track: TrackName | None = None
    tier: Tier | None = None
    concurrency: int = 8
    max_cost: float | None = None
    """USD for the whole session; what does not fit any more is `unscored: budget`."""
    calls_per_minute: float | None = None
    tokens_per_minute: float | None = None
    stored_only: bool = False
    """Ask nobody: scorecards from the verdicts that the store has."""
    wanted: Wanted = field(default_factory=Wanted)
    """What a judge that reads is asked."""

    def budget(self) -> Budget | None:
        """A new one with these limits; None without any."""
        limits = self.max_cost, self.calls_per_minute, self.tokens_per_minute
        return None if limits == (None, None, None) else Budget(*limits)


def scope_of(options: ScoreOptions) -> Scope:
    """The scope that a plan for the same runs has."""
    rubric = load_rubric(options.rubric) if options.rubric else None
    return Scope(rubric, options.track, options.tier, options.wanted, options.public)


def unchanged_in(store: Store, judge: Judge, options: ScoreOptions) -> Unchanged:
    """The scorecards in a store that are still what this judge would give under these options."""
    from .store.card_cache import Unchanged
    from .trust.judge_precision import shares_right

    rubric, keys = (
        scope_of(options).rubric,
        card_keys(judge, options, shares_right(store, judge.name)),
    )
    return Unchanged(store, judge.name, keys, rubric.sha256 if rubric else None)


def card_keys(
    judge: Judge, options: ScoreOptions, right: Mapping[str, float] | None = None
) -> CardKeys:
    """Makes the keys of the cards that this judge gives under these options; the public inputs are
    held for unchanged."""
    from .questions.verdict_keys import CardKeys, identity, inputs_stamp

    scope = scope_of(options)
    return CardKeys(
        identity(judge).model_dump(),
        repr(options.wanted),
        scope.rubric.sha256 if scope.rubric else None,
        options.policy.model_dump(),
        options.track,
        options.tier,
        inputs_stamp(options.public),
        right,
        __version__,
    )


@dataclass(frozen=True)
class Session:
    """What a session came to."""

    summary: BatchSummary
    usage: Usage
    throttles: int
    """Rate limits met."""
    apart: int = 0
    """Runs of another track than the rubric that was given; they are judged by their own."""


def conversations(paths: Iterable[str | Path | Outcome]) -> Iterator[Path | Outcome]:
    """Every conversation file at or below the paths and addresses; a path without any comes as an
    Outcome with its error, and what is a conversation or an Outcome already as it is."""
    for path in paths:
        if isinstance(path, Outcome | RemotePath):
            yield path
            continue
        there = is_address(path)
        try:
            yield from find_runs(str(path)) if there else find_conversations(Path(path))
        except InputError as error:
            yield Outcome(RemotePath(path) if there else Path(path), error=error)


def default_store(path: str | Path, settings_folder: Path | None = None) -> Path:
    """Where the store of a collection is: beside the settings file above it (that is the project's
    root), else the nearest store at or above the path, not in a run, else new in the collection's
    root: the folder given, or the folder above a single run.

    StoreError for one that is there and was not made by this user.
    """
    from .store import DEFAULT_STORE
    from .store.ownership import check_found

    place = _default_place(path, settings_folder, DEFAULT_STORE)
    return check_found(place) if place.is_symlink() or place.exists() else place


def _default_place(path: str | Path, settings_folder: Path | None, name: Path) -> Path:
    start = Path(path).absolute()
    if settings_folder is not None and start.is_relative_to(settings_folder.absolute()):
        return settings_folder / name
    record = start if start.is_dir() else start.parent
    folder = record.parent if record.name == "process" else record
    # a store in the folder of a run came with it
    root = folder.parent if is_run(folder) else folder
    for place in (root, *root.parents):
        if (place / name).is_file():
            return place / name
    return root / name


async def over_runs(
    paths: Iterable[str | Path | Outcome],
    work: Callable[[Path], Awaitable[R]],
    take: Callable[[Path, R | AmbjudgeError], None],
    *,
    concurrency: int,
    on_progress: Callable[[Progress], None] | None = None,
    signals: bool = True,
    known: Callable[[Sequence[Path]], Mapping[Path, R]] | None = None,
) -> BatchSummary:
    """Do `work` on every conversation file at or below the paths, and hand each result to `take`,
    in their order. `known` is asked for the results of some hundred paths at a time; there is no
    work on those that it has.

    An error belongs to its run and is handed on as the result, unless a judge, a store or settings
    cannot be used: that ends everything. The first Ctrl-C waits for the runs under way; what
    follows an unfinished run is handed on as it is. The paths are listed first, so that progress
    has a total, unless there are more than a hundred thousand.
    """
    found = conversations(paths)
    listed = list(islice(found, _MOST_LISTED + 1))
    total = len(listed) if len(listed) <= _MOST_LISTED else None
    room = asyncio.Semaphore(concurrency * _AHEAD)
    early: dict[int, tuple[Path, R | AmbjudgeError]] = {}
    due = reused = 0

    async def jobs() -> AsyncIterator[tuple[int, Path | Outcome]]:
        nonlocal reused
        every = enumerate(chain(listed, found))
        while some := list(islice(every, _ASKED_FOR)):
            have = (
                {} if known is None else known([item for _, item in some if isinstance(item, Path)])
            )
            for number, item in some:
                await room.acquire()
                if isinstance(item, Path) and item in have:
                    ordered((number, item), (item, have[item]))
                    reused += 1
                else:
                    yield number, item
            if have:
                tell(Progress(0, total))
                await asyncio.sleep(0)  # for Ctrl-C

    def tell(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(replace(progress, done=progress.done + reused))

    async def call(job: tuple[int, Path | Outcome]) -> tuple[Path, R | AmbjudgeError]:
        item = job[1]
        if isinstance(item, Outcome):
            return item.path, item.error or AmbjudgeError(f"{item.path}: cannot be read")
        try:
            return item, await work(item)
        except (JudgeError, StoreError, ConfigError):
            raise
        except AmbjudgeError as error:
            return item, error
        except Exception as error:
            return item, unexpected(error, item)

    def ordered(job: tuple[int, Path | Outcome], result: tuple[Path, R | AmbjudgeError]) -> None:
        nonlocal due
        early[job[0]] = result
        while due in early:
            take(*early.pop(due))
            due += 1
            room.release()

    summary = await run_batch(
        jobs(),
        call,
        concurrency=concurrency,
        total=total,
        on_result=ordered,
        on_progress=tell,
        signals=signals,
    )
    for number in sorted(early):
        take(*early.pop(number))
    return replace(summary, done=summary.done + reused)


async def score_many(
    paths: Iterable[str | Path | Outcome],
    judge: Judge,
    options: ScoreOptions,
    take: Callable[[Outcome], None],
    *,
    store: Store | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> Session:
    """Score every run and hand each outcome to `take`, in the order of the paths (`over_runs`).

    With a store, verdicts that it has are not asked for again, new ones are in it before they
    count, and scorecards are kept. A judge, a store or settings that cannot be used end the whole
    session; every other error belongs to its run.
    """
    kept = None if store is None else unchanged_in(store, judge, options)
    scorer = Scorer(judge, options, store)
    return await score_with(
        scorer, paths, take, unchanged=kept, on_progress=on_progress, signals=signals
    )


@dataclass(frozen=True)
class Made:
    """What asking about one run came to. `unscored` counts by reason; what rules leave to a reader
    is no failure."""

    usage: Usage
    scored: int
    unscored: Counter[str]


class Scores(Protocol):
    """What scores a run, or makes verdicts on it, and what that came to so far."""

    @property
    def usage(self) -> Usage: ...
    @property
    def throttles(self) -> int: ...
    @property
    def apart(self) -> int: ...
    @property
    def room(self) -> int:
        """Runs under way at once."""

    async def score(self, path: Path) -> ScoreCard | CardLine: ...
    async def make(self, needs: tuple[Need, ...]) -> Made: ...


async def score_with(
    scorer: Scores,
    paths: Iterable[str | Path | Outcome],
    take: Callable[[Outcome], None],
    *,
    unchanged: Unchanged | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> Session:
    """The same by a scorer that is there already (`workers.Workers`), for runs that have no
    `unchanged` card."""
    known = None if unchanged is None else unchanged.among

    def hand_on(path: Path, result: ScoreCard | CardLine | AmbjudgeError) -> None:
        take(
            Outcome(path, error=result)
            if isinstance(result, AmbjudgeError)
            else Outcome(path, result)
        )

    def told(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(progress, scorer.usage)

    summary = await over_runs(
        paths,
        scorer.score,
        hand_on,
        concurrency=scorer.room,
        on_progress=told,
        signals=signals,
        known=known,
    )
    apart = scorer.apart + (0 if unchanged is None else unchanged.apart)
    return Session(summary, scorer.usage, scorer.throttles, apart)


class _AtOnce(Around):
    """So many requests at once, from the look into the store until the answer is in it: kill -9
    costs no more calls."""

    def __init__(self, judge: Judge, most: int) -> None:
        super().__init__(judge)
        self._slots = asyncio.Semaphore(most)

    async def judge(self, request: Request) -> Reply:
        async with self._slots:
            return await self.inner.judge(request)


class Scorer:
    """Scores one run at a time with what all of them share: judge, rubric, budget, store."""

    def __init__(
        self,
        judge: Judge,
        options: ScoreOptions,
        store: Store | None,
        budget: Allowance | None = None,
    ) -> None:
        """`budget`: one that others share; else the options' own."""
        self.options, self.scope, self.store, self.usage = (
            options,
            scope_of(options),
            store,
            Usage(),
        )
        self.pacer = Pacer(options.concurrency)
        self.judge: Judge = GuardedJudge(judge, self.pacer, budget or options.budget())
        # Nobody waits for a judge without a model: several runs at once would take turns at one
        # core.
        self.room = 1 if judge.name == RULES else options.concurrency
        self.right: Mapping[str, float] = {}
        """By code, the share of this judge's readings that labels confirm."""
        if store is not None:
            from .questions.question_keys import Questions
            from .questions.verdict_keys import identity
            from .store.group_commit import Together
            from .store.reuse import StoredJudge, StoredOnly
            from .trust.judge_precision import shares_right

            who = identity(judge)
            self._ask = Questions(who, answers(judge), options.wanted, options.public)
            self._planned = _AtOnce(
                StoredJudge(self.judge, store, planned=True), options.concurrency
            )
            self._stored = (StoredOnly if options.stored_only else StoredJudge)(self.judge, store)
            self.judge = self._stored
            self.right = shares_right(store, judge.name)
            self._cards = Together(store.add_cards)
            self._keys = card_keys(judge, options, self.right)
        self._kept: set[str] = set()
        self._turn = asyncio.Lock()
        self.apart = 0

    @property
    def throttles(self) -> int:
        return self.pacer.throttles

    @asynccontextmanager
    async def _computing(self) -> AsyncIterator[None]:
        """One run's computing at a time, and between two of them calls are made and answers heard:
        else the calls of a hundred runs that begin together would wait until the last of them is
        read."""
        async with self._turn:
            await asyncio.sleep(0)
            yield

    async def score(self, path: Path) -> ScoreCard:
        """The card of the run at a path."""
        if isinstance(path, RemotePath):
            with ExitStack() as stack:
                here = await asyncio.to_thread(stack.enter_context, staged(path))
                async with self._computing():
                    run = load_conversation(here).model_copy(update={"path": path})
                return await self.score_run(run, path, path.stamp)
        async with self._computing():
            started = time.time_ns()
            run = load_conversation(path)
            stamp = None
            if self.store is not None:
                from .store import stamps

                stamp = stamps.take(run, started)
        return await self.score_run(run, path, stamp)

    async def make(self, needs: tuple[Need, ...]) -> Made:
        """Ask for the verdicts that a plan lacks on one run (`rejudge.staleness`), into the store;
        it has answered already what somebody asked meanwhile. InputError where the run cannot be
        read any more."""
        requests = await asyncio.to_thread(self._requests, needs)
        replies = (await ask_all(self._planned, requests)).values()
        results = [result for reply in replies for result in reply.results]
        failed = Counter[str](
            r.reason or "judge_error"
            for r in results
            if r.status == "unscored" and r.reason != "not_read"
        )
        return Made(used(replies), sum(result.status != "unscored" for result in results), failed)

    def _requests(self, needs: tuple[Need, ...]) -> list[Request]:
        run = self.scope.apply(load_conversation(needs[0].path))
        asked = self.scope.requests(run, self.judge)
        return [need.of(asked[need.question]) for need in needs if need.question in asked]

    async def ask(self, run: Run) -> tuple[Prepared, dict[QuestionName, Reply]]:
        """A run and the judge's answers about it."""
        ready = self.scope.prepare(self.scope.apply(run), self.options.policy)
        self.apart += self.scope.rubric is not None and ready.rubric is not self.scope.rubric
        async with self._computing():
            requests = ready.requests(self.judge)
        replies = await ask_all(self.judge, requests)
        self.usage += used(replies.values())
        return ready, replies

    async def score_run(self, run: Run, path: Path, stamp: str | None = None) -> ScoreCard:
        """The scorecard of a run; `stamp`: its files as they were when it was read."""
        run = self.scope.apply(run)
        reference = await self._stored.reference(run, stamp) if self.store is not None else None
        ready, replies = await self.ask(run)
        rubric = ready.rubric
        card = assemble(ready, self.judge, replies, self.right)
        if self.store is None or reference is None:
            return card
        from .store.scorecards import Concluded

        if rubric.sha256 not in self._kept:
            self._kept.add(rubric.sha256)
            self.store.add_rubric(rubric)
        asked = sum(len(request.criteria) for request in ready.requests(self.judge))
        settled = self._stored.take_answered(reference) == asked
        key = self._keys.of(run.path, run.content_sha256) if settled else None
        known = (
            (run.content_sha256, self._ask.name(rubric, run.tier, run.track), asked)
            if settled
            else None
        )
        await self._cards.do(Concluded(reference, path, card, key, known))
        return card
