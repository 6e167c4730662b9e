"""Scoring many runs: several at a time, results in order; one bad run never stops the others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import AmbjudgeError
from ..rubrics.load import load_rubric
from ..rubrics.model import Rubric
from ..trajectories.models import Run, Tier, TrackName
from ..trajectories.reading.layout import is_run
from ..trajectories.reading.load import load_conversation
from ..trajectories.reading.remote import RemotePath, staged
from ..version import __version__
from .base import (
    Judge,
    JudgeWrapper,
    QuestionName,
    Reply,
    Request,
    Usage,
    extra_questions,
    total_usage,
)
from .card.fields import Policy
from .card.scorecard import CardLine, ScoreCard
from .engine import Prepared, ask_all, assemble
from .judges.limits import Allowance, Budget, GuardedJudge, Pacer
from .judges.rules import RULES
from .questions.items import QuestionSet
from .run_sources import RunSource, for_each_run
from .runner import BatchSummary, Progress
from .scope import Scope

if TYPE_CHECKING:
    from .questions.verdict_keys import CardKeys
    from .rejudge.staleness import Need
    from .store import Store
    from .store.card_cache import CardCache


@dataclass(frozen=True)
class ScoreOptions:
    """How runs are scored."""

    rubric: Rubric | str | Path | None = None
    policy: Policy = field(default_factory=Policy)
    public: Path | None = None
    """Folder with the public inputs."""
    track: TrackName | None = None
    """Of runs whose files do not say."""
    tier: Tier | None = None
    """Of runs whose files do not say."""
    concurrency: int = 8
    """Runs, and calls of the judge, under way at once."""
    max_cost: float | None = None
    """USD for the whole session; what does not fit any more is `unscored: budget`."""
    calls_per_minute: float | None = None
    tokens_per_minute: float | None = None
    stored_only: bool = False
    """Ask no judge: scorecards from the verdicts that the store has."""
    questions: QuestionSet = field(default_factory=QuestionSet)
    """What a judge that reads is asked."""

    def budget(self) -> Budget | None:
        """A new budget with these limits; None without any."""
        limits = self.max_cost, self.calls_per_minute, self.tokens_per_minute
        return None if limits == (None, None, None) else Budget(*limits)

    def scope(self) -> Scope:
        """The scope that a rejudge plan for the same runs has."""
        rubric = load_rubric(self.rubric) if self.rubric else None
        return Scope(rubric, self.track, self.tier, self.questions, self.public)


@dataclass(frozen=True)
class ScoreOutcome:
    """What became of one run: a scorecard, or the error that stopped it."""

    path: Path
    scored: ScoreCard | CardLine | None = None
    error: AmbjudgeError | None = None

    @property
    def card(self) -> ScoreCard | None:
        """The scorecard, parsed if it came as a line."""
        return self.scored.card if isinstance(self.scored, CardLine) else self.scored


@dataclass(frozen=True)
class Session:
    """Totals of one session."""

    summary: BatchSummary
    usage: Usage
    throttles: int
    """Rate limits met."""
    foreign_track_runs: int = 0
    """Runs of another track than the rubric that was given; they are judged by their own."""


@dataclass(frozen=True)
class AskTally:
    """What asking about one run came to."""

    usage: Usage
    scored: int
    """Items with a verdict."""
    unscored: Counter[str]
    """Failed items by reason; what rules leave to a reader is no failure."""


class Scorer(Protocol):
    """Scores runs, or asks for their missing verdicts: this process, or several workers."""

    @property
    def usage(self) -> Usage:
        """So far."""

    @property
    def throttles(self) -> int:
        """Rate limits met so far."""

    @property
    def foreign_track_runs(self) -> int:
        """As of a Session, so far."""

    @property
    def concurrency(self) -> int:
        """Runs under way at once."""

    async def score(self, path: Path) -> ScoreCard | CardLine:
        """The scorecard of the run at a path."""

    async def fill_needs(self, needs: tuple[Need, ...]) -> AskTally:
        """Ask for the verdicts that a plan lacks on one run."""


async def run_session(
    paths: Iterable[str | Path | RunSource],
    judge: Judge,
    options: ScoreOptions,
    take: Callable[[ScoreOutcome], None],
    *,
    store: Store | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> Session:
    """Score every run in this process and hand each outcome to `take`, in the order of the paths.

    With a store, verdicts that it has are not asked for again, new ones are in it before they
    count, and scorecards are kept. A judge, a store or settings that cannot be used end the whole
    session; every other error belongs to its run.
    """
    return await collect_cards(
        make_scorer(judge, options, store),
        paths,
        take,
        unchanged=None if store is None else unchanged_cards(store, judge, options),
        on_progress=on_progress,
        signals=signals,
    )


async def collect_cards(
    scorer: Scorer,
    paths: Iterable[str | Path | RunSource],
    take: Callable[[ScoreOutcome], None],
    *,
    unchanged: CardCache | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> Session:
    """Score every run with this scorer, unless it has an `unchanged` card (see `run_session`)."""

    def take_result(path: Path, result: ScoreCard | CardLine | AmbjudgeError) -> None:
        if isinstance(result, AmbjudgeError):
            take(ScoreOutcome(path, error=result))
        else:
            take(ScoreOutcome(path, result))

    def report(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(progress, scorer.usage)

    summary = await for_each_run(
        paths,
        scorer.score,
        take_result,
        concurrency=scorer.concurrency,
        on_progress=report,
        signals=signals,
        look_up=None if unchanged is None else unchanged.current_cards,
    )
    reused_foreign = 0 if unchanged is None else unchanged.foreign_track_runs
    foreign_track_runs = scorer.foreign_track_runs + reused_foreign
    return Session(summary, scorer.usage, scorer.throttles, foreign_track_runs)


def make_scorer(
    judge: Judge, options: ScoreOptions, store: Store | None, budget: Allowance | None = None
) -> RunScorer:
    """The scorer of this process. `budget`: one that others share; default: the options' own."""
    if store is None:
        return RunScorer(judge, options, budget)
    return StoringScorer(judge, options, store, budget)


class RunScorer:
    """Scores one run at a time with what all of them share: judge, rubric, budget."""

    def __init__(
        self, judge: Judge, options: ScoreOptions, budget: Allowance | None = None
    ) -> None:
        """`budget`: one that others share; default: the options' own."""
        self.options = options
        self.scope = options.scope()
        self.pacer = Pacer(options.concurrency)
        self.judge: Judge = GuardedJudge(judge, self.pacer, budget or options.budget())
        # A judge without a model never waits: several runs at once would only share one core.
        self.concurrency = 1 if judge.name == RULES else options.concurrency
        self.precision: Mapping[str, float] = {}
        """By code, the share of this judge's readings that labels confirm."""
        self.usage = Usage()
        self.foreign_track_runs = 0
        self._turn = asyncio.Lock()

    @property
    def throttles(self) -> int:
        return self.pacer.throttles

    async def score(self, path: Path) -> ScoreCard:
        """The scorecard of the run at a path."""
        if isinstance(path, RemotePath):
            with ExitStack() as stack:
                local = await asyncio.to_thread(stack.enter_context, staged(path))
                async with self._computing():
                    run = load_conversation(local).model_copy(update={"path": path})
                return await self.make_card(run, path, path.stamp)
        async with self._computing():
            run, stamp = self._load(path)
        return await self.make_card(run, path, stamp)

    async def make_card(self, run: Run, path: Path, stamp: str | None = None) -> ScoreCard:
        """The scorecard of a run that was read; `stamp`: its files as they were then."""
        prepared, replies = await self.ask(run)
        return assemble(prepared, self.judge, replies, self.precision)

    async def ask(self, run: Run) -> tuple[Prepared, dict[QuestionName, Reply]]:
        """A run, prepared, and the judge's answers about it."""
        prepared = self.scope.prepare(self.scope.apply(run), self.options.policy)
        if self.scope.rubric is not None and prepared.rubric is not self.scope.rubric:
            self.foreign_track_runs += 1
        async with self._computing():
            requests = prepared.requests(self.judge)
        replies = await ask_all(self.judge, requests)
        self.usage += total_usage(replies.values())
        return prepared, replies

    async def fill_needs(self, needs: tuple[Need, ...]) -> AskTally:
        """Ask for the verdicts that a plan lacks on one run (`rejudge.staleness`).

        InputError where the run cannot be read any more.
        """
        # Loading and preparing a run takes long: in a thread, so that calls go on meanwhile.
        requests = await asyncio.to_thread(self._requests, needs)
        replies = (await ask_all(self._judge_of_needs(), requests)).values()
        results = [result for reply in replies for result in reply.results]
        failed = Counter[str](
            result.reason or "judge_error"
            for result in results
            if result.status == "unscored" and result.reason != "not_read"
        )
        scored = sum(result.status != "unscored" for result in results)
        return AskTally(total_usage(replies), scored, failed)

    def _requests(self, needs: tuple[Need, ...]) -> list[Request]:
        run = self.scope.apply(load_conversation(needs[0].path))
        requests = self.scope.requests(run, self.judge)
        return [
            need.restrict(requests[need.question]) for need in needs if need.question in requests
        ]

    def _judge_of_needs(self) -> Judge:
        return self.judge

    def _load(self, path: Path) -> tuple[Run, str | None]:
        """The run at a path, and the stamp of its files where somebody keeps it."""
        return load_conversation(path), None

    @asynccontextmanager
    async def _computing(self) -> AsyncIterator[None]:
        """Hold the turn to compute: one run at a time.

        The event loop runs between two turns, so that calls are made and answers received. Without
        that, the calls of a hundred runs that begin together would wait until the last run is read.
        """
        async with self._turn:
            await asyncio.sleep(0)
            yield


class StoringScorer(RunScorer):
    """A RunScorer with a store: it reuses verdicts, and keeps new ones and scorecards."""

    def __init__(
        self,
        judge: Judge,
        options: ScoreOptions,
        store: Store,
        budget: Allowance | None = None,
    ) -> None:
        from .questions.question_keys import QuestionKeys
        from .questions.verdict_keys import identity
        from .store.group_commit import GroupCommit
        from .store.reuse import StoredJudge, StoredOnly
        from .trust.judge_precision import precision_by_code

        super().__init__(judge, options, budget)
        self.store = store
        self.precision = precision_by_code(store, judge.name)
        guarded = self.judge
        self._needs_judge = _Limited(StoredJudge(guarded, store, planned=True), options.concurrency)
        stored_judge = StoredOnly if options.stored_only else StoredJudge
        self.judge = self._stored = stored_judge(guarded, store)
        self._questions = QuestionKeys(
            identity(judge), extra_questions(judge), options.questions, options.public
        )
        self._card_keys = card_keys(judge, options, self.precision)
        self._cards = GroupCommit(store.add_cards)
        self._stored_rubrics: set[str] = set()

    async def make_card(self, run: Run, path: Path, stamp: str | None = None) -> ScoreCard:
        run = self.scope.apply(run)
        reference = await self._stored.reference(run, stamp)
        prepared, replies = await self.ask(run)
        card = assemble(prepared, self.judge, replies, self.precision)
        await self._keep(card, prepared, reference, path)
        return card

    async def _keep(self, card: ScoreCard, prepared: Prepared, reference: int, path: Path) -> None:
        """Store a scorecard, with its key if every item has a final verdict."""
        from .store.connection import SettledRow
        from .store.scorecards import NewCard

        run, rubric = prepared.run, prepared.rubric
        if rubric.sha256 not in self._stored_rubrics:
            self._stored_rubrics.add(rubric.sha256)
            self.store.add_rubric(rubric)
        items = sum(len(request.criteria) for request in prepared.requests(self.judge))
        # Only a card whose every item is settled is what the same command would make again.
        key = settled = None
        if self._stored.take_answered(reference) == items:
            key = self._card_keys.key(run.path, run.content_sha256)
            questions = self._questions.sha256(rubric, run.tier, run.track)
            settled = SettledRow(run.content_sha256, questions, items)
        await self._cards.submit(NewCard(reference, path, card, key, settled))

    def _load(self, path: Path) -> tuple[Run, str | None]:
        from .store import stamps

        started = time.time_ns()
        run = load_conversation(path)
        return run, stamps.take(run, started)

    def _judge_of_needs(self) -> Judge:
        """Its answers go into the store, which has what somebody else asked meanwhile."""
        return self._needs_judge


class _Limited(JudgeWrapper):
    """At most so many requests at once, each from its look-up until its answer is in the store.

    A process that is killed has then no more calls to repeat than were under way.
    """

    def __init__(self, judge: Judge, limit: int) -> None:
        super().__init__(judge)
        self._slots = asyncio.Semaphore(limit)

    async def judge(self, request: Request) -> Reply:
        async with self._slots:
            return await self.inner.judge(request)


def unchanged_cards(store: Store, judge: Judge, options: ScoreOptions) -> CardCache:
    """The scorecards in a store that this judge would give again under these options."""
    from .store.card_cache import CardCache
    from .trust.judge_precision import precision_by_code

    rubric = options.scope().rubric
    keys = card_keys(judge, options, precision_by_code(store, judge.name))
    return CardCache(store, judge.name, keys, rubric.sha256 if rubric else None)


def card_keys(
    judge: Judge, options: ScoreOptions, precision: Mapping[str, float] | None = None
) -> CardKeys:
    """Makes the keys of the scorecards that this judge gives under these options.

    The public inputs are assumed to stay as they are.
    """
    from .questions.verdict_keys import CardKeys, identity, inputs_stamp

    rubric = options.scope().rubric
    return CardKeys(
        identity(judge).model_dump(),
        repr(options.questions),
        rubric.sha256 if rubric else None,
        options.policy.model_dump(),
        options.track,
        options.tier,
        inputs_stamp(options.public),
        precision,
        __version__,
    )


def default_store(path: str | Path, settings_folder: Path | None = None) -> Path:
    """Where the store of a collection is.

    Beside the settings file above it, which marks the project's root; else the nearest store at or
    above the path, not inside a run; else new in the collection's root: the folder given, or the
    folder above a single run. StoreError for a store there that was not made by this user.
    """
    from .store import DEFAULT_STORE
    from .store.ownership import check_found

    place = _store_place(path, settings_folder, DEFAULT_STORE)
    return check_found(place) if place.is_symlink() or place.exists() else place


def _store_place(path: str | Path, settings_folder: Path | None, name: Path) -> Path:
    start = Path(path).absolute()
    if settings_folder is not None and start.is_relative_to(settings_folder.absolute()):
        return settings_folder / name
    folder = start if start.is_dir() else start.parent
    if folder.name == "process":
        folder = folder.parent
    # A store inside a run's folder came with the run, so it is not searched for one.
    root = folder.parent if is_run(folder) else folder
    for parent in (root, *root.parents):
        if (parent / name).is_file():
            return parent / name
    return root / name
