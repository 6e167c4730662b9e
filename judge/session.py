"""Scoring many runs: several at a time, results in order; one bad run never stops the others.

`run_session` scores runs in this process; `collect_cards` does so with any `Scorer`, such as a pool
of workers. `RunScorer` takes one run to its scorecard; `StoringScorer` reuses and keeps verdicts.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeGuard

from ..errors import AmbjudgeError
from ..rubrics.load import RubricNames, load_rubrics
from ..trajectories.models import Run, Tier, TrackName
from ..trajectories.reading.layout import is_run
from ..trajectories.reading.load import load_conversation
from ..trajectories.reading.remote import RemotePath, staged
from ..trajectories.reading.running import RunningRule
from ..version import __version__
from .base import (
    Judge,
    JudgeWrapper,
    QuestionName,
    Reply,
    Request,
    Usage,
    is_criteria,
    total_usage,
)
from .card.fields import Policy
from .card.scorecard import CardLine, ScoreCard
from .engine import PreparedRun, ask_all, assemble, assemble_with_basis
from .judges.limits import Allowance, Budget, GuardedJudge, Pacer
from .judges.panel import ask_first_alone, voters, with_voters
from .judges.rules import RULES
from .questions.items import QuestionSet
from .run_sources import RunSource, for_each_run
from .runner import BatchSummary, Progress
from .scope import Scope

if TYPE_CHECKING:
    from ..rubrics.model import Criterion
    from .basis import ScoreBasis
    from .questions.verdict_keys import CardKeys
    from .rejudge.staleness import Need
    from .store import Store
    from .store.card_cache import CardCache
    from .store.connection import EvidenceRow


@dataclass(frozen=True)
class ScoreOptions:
    """How runs are scored."""

    rubric: RubricNames = None
    """Rubrics, each for the runs of its track."""
    policy: Policy = field(default_factory=Policy)
    public: Path | None = None
    """Folder with the public inputs."""
    track: TrackName | None = None
    """The track of runs whose files do not name one."""
    tier: Tier | None = None
    """The tier of runs whose files do not name one."""
    concurrency: int = 8
    """Runs, and calls of the judge, under way at once."""
    max_cost: float | None = None
    """USD for the whole session; items beyond it are `unscored: budget`."""
    calls_per_minute: float | None = None
    tokens_per_minute: float | None = None
    replace_whole_cards: bool = False
    """Let a scorecard that lacks verdicts replace a stored one that lacks none."""
    some_items: bool = False
    """Only some items are asked, so a scorecard replaces none that has an answer that it lacks."""
    stored_only: bool = False
    """Ask no judge: make scorecards from the verdicts that the store has."""
    running: RunningRule = field(default_factory=RunningRule)
    """Which runs still go on."""
    questions: QuestionSet = field(default_factory=QuestionSet)
    """The questions that a model judge is asked."""

    def budget(self) -> Budget | None:
        """A new budget with these limits; None if there are none."""
        limits = (self.max_cost, self.calls_per_minute, self.tokens_per_minute)
        if limits == (None, None, None):
            return None
        return Budget(*limits)

    def scope(self) -> Scope:
        """The scope that a rejudge plan for the same runs has."""
        return Scope(
            load_rubrics(self.rubric),
            self.track,
            self.tier,
            self.questions,
            self.public,
            self.running,
        )


@dataclass(frozen=True)
class ScoreOutcome:
    """The result of one run: a scorecard, or the error that stopped it."""

    path: Path
    scored: ScoreCard | CardLine | None = None
    """The scorecard; a line of JSON if it came from the store or from a worker."""
    error: AmbjudgeError | None = None

    @property
    def card(self) -> ScoreCard | None:
        """The scorecard, parsed if it is a line."""
        if isinstance(self.scored, CardLine):
            return self.scored.card
        return self.scored


@dataclass(frozen=True)
class SessionTotals:
    """Totals of one session."""

    summary: BatchSummary
    usage: Usage
    throttles: int
    """How often a provider's rate limit was hit."""
    foreign_track_runs: int = 0
    """Runs of another track than the given rubric's; they are judged by their track's rubric."""


@dataclass(frozen=True)
class AskTally:
    """Usage and results of the questions about one run."""

    usage: Usage
    scored: int
    """Items with a verdict."""
    unscored: Counter[str]
    """Failed items by reason. `not_read` is no failure: rules leave such items to a model."""


class KnownCards(Protocol):
    """Scorecards that take no scoring: those of the store, or what follows from it."""

    foreign_track_runs: int
    """`SessionTotals.foreign_track_runs` of the cards that were given out."""

    def current_cards(self, paths: Sequence[Path]) -> Mapping[Path, ScoreCard | CardLine]:
        """The scorecards of those of these runs that have one."""


class Scorer(Protocol):
    """Scores runs, or asks for their missing verdicts: this process, or several workers."""

    @property
    def usage(self) -> Usage:
        """Usage of all judging so far."""

    @property
    def throttles(self) -> int:
        """How often a provider's rate limit was hit so far."""

    @property
    def foreign_track_runs(self) -> int:
        """`SessionTotals.foreign_track_runs` so far."""

    @property
    def concurrency(self) -> int:
        """Runs under way at once."""

    async def score(self, path: Path) -> ScoreCard | CardLine:
        """The scorecard of the run at a path."""

    async def fill_needs(self, needs: tuple[Need, ...]) -> AskTally:
        """Ask for the verdicts on one run that are missing by a plan."""


async def run_session(
    paths: Iterable[str | Path | RunSource],
    judge: Judge,
    options: ScoreOptions,
    on_outcome: Callable[[ScoreOutcome], None],
    *,
    store: Store | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> SessionTotals:
    """Score every run in this process; `on_outcome` gets each outcome, in the order of the paths.

    With a store, verdicts that it has are not asked for again, new ones are in it before they
    count, and scorecards are kept. `signals`: handle Ctrl-C (see `runner`). A judge, a store or
    settings that cannot be used end the whole session; every other error belongs to its run.
    """
    return await collect_cards(
        make_scorer(judge, options, store),
        paths,
        on_outcome,
        unchanged=None if store is None else unchanged_cards(store, judge, options),
        on_progress=on_progress,
        signals=signals,
    )


async def collect_cards(
    scorer: Scorer,
    paths: Iterable[str | Path | RunSource],
    on_outcome: Callable[[ScoreOutcome], None],
    *,
    unchanged: KnownCards | None = None,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> SessionTotals:
    """Score every run with this scorer, unless it has an `unchanged` card (see `run_session`)."""

    def on_result(path: Path, result: ScoreCard | CardLine | AmbjudgeError) -> None:
        if isinstance(result, AmbjudgeError):
            on_outcome(ScoreOutcome(path, error=result))
        else:
            on_outcome(ScoreOutcome(path, result))

    def report(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(progress, scorer.usage)

    summary = await for_each_run(
        paths,
        scorer.score,
        on_result,
        concurrency=scorer.concurrency,
        on_progress=report,
        signals=signals,
        look_up=None if unchanged is None else unchanged.current_cards,
    )
    reused_foreign = 0 if unchanged is None else unchanged.foreign_track_runs
    foreign_track_runs = scorer.foreign_track_runs + reused_foreign
    return SessionTotals(summary, scorer.usage, scorer.throttles, foreign_track_runs)


def make_scorer(
    judge: Judge, options: ScoreOptions, store: Store | None, budget: Allowance | None = None
) -> RunScorer:
    """The scorer of this process, with a store or without.

    `budget`: one shared with other processes; by default a new one with the options' limits.
    """
    if store is None:
        return RunScorer(judge, options, budget)
    return StoringScorer(judge, options, store, budget)


class RunScorer:
    """Scores runs, one per call of `score`; all calls share judge, rubric and budget."""

    def __init__(
        self, judge: Judge, options: ScoreOptions, budget: Allowance | None = None
    ) -> None:
        """`budget`: see `make_scorer`."""
        self.options = options
        self.scope = options.scope()
        self.pacer = Pacer(options.concurrency)
        allowance = budget or options.budget()
        self.judge: Judge = with_voters(
            judge, lambda voting: GuardedJudge(voting, self.pacer, allowance)
        )
        self._voters = voters(self.judge)
        """Whoever `fill_needs` asks, by the index in a need."""
        # The rules judge never waits for a provider: several runs at once would only share a core.
        self.concurrency = 1 if judge.name == RULES else options.concurrency
        self.precision: Mapping[str, float] = {}
        """By code, the share of this judge's readings that labels confirm."""
        self.usage = Usage()
        self.foreign_track_runs = 0
        self.kept_cards = 0
        """Scorecards that lack verdicts and did not replace a stored one that lacks none."""
        self._compute_lock = asyncio.Lock()

    @property
    def throttles(self) -> int:
        """How often a provider's rate limit was hit so far."""
        return self.pacer.throttles

    async def score(self, path: Path) -> ScoreCard:
        """The scorecard of the run at a path."""
        if isinstance(path, RemotePath):
            return await self._score_remote(path)
        async with self._computing():
            run, stamp = self._load(path)
        return await self.make_card(run, path, stamp)

    async def _score_remote(self, path: RemotePath) -> ScoreCard:
        """The scorecard of a run at an address; its local copy lasts until the card is made."""
        with ExitStack() as stack:
            local_copy = await asyncio.to_thread(stack.enter_context, staged(path))
            async with self._computing():
                run = load_conversation(local_copy).model_copy(update={"path": path})
            return await self.make_card(run, path, path.stamp)

    async def make_card(self, run: Run, path: Path, stamp: str | None = None) -> ScoreCard:
        """The scorecard of a loaded run; `stamp`: the state of its files when it was loaded."""
        prepared, replies = await self.ask(run)
        return assemble(prepared, self.judge, replies, self.precision)

    async def ask(self, run: Run) -> tuple[PreparedRun, dict[QuestionName, Reply]]:
        """The prepared run, and the judge's reply to each question about it."""
        prepared = self.scope.prepare(self.scope.apply(run), self.options.policy)
        if self.scope.is_foreign(prepared.rubric):
            self.foreign_track_runs += 1
        async with self._computing():
            requests = prepared.requests(self.judge)
        replies = await ask_all(self.judge, requests)
        self.usage += total_usage(replies.values())
        return prepared, replies

    async def fill_needs(self, needs: tuple[Need, ...]) -> AskTally:
        """Ask for the verdicts on one run that are missing by a plan (`rejudge.staleness`).

        InputError if the run cannot be read any more.
        """
        # Loading and preparing a run takes long: in a thread, so that calls go on meanwhile.
        requests = await asyncio.to_thread(self._requests, needs)
        asked: dict[int, list[Request]] = {}
        for voter, request in requests:
            asked.setdefault(id(self._voters[voter].judge), []).append(request)
        judges = {id(voter.judge): voter.judge for voter in self._voters}
        by_judge = await asyncio.gather(
            *(ask_first_alone(judges[judge], of_judge) for judge, of_judge in asked.items())
        )
        replies = [reply for replies in by_judge for reply in replies]
        results = [result for reply in replies for result in reply.results]
        failed = Counter[str](
            result.reason or "judge_error"
            for result in results
            if result.status == "unscored" and result.reason != "not_read"
        )
        scored = sum(result.status != "unscored" for result in results)
        return AskTally(total_usage(replies), scored, failed)

    def _requests(self, needs: tuple[Need, ...]) -> list[tuple[int, Request]]:
        """The requests for the items of these needs, all on one run, with their voters' indexes."""
        run = self.scope.apply(load_conversation(needs[0].path))
        requests = self.scope.requests(run, self.judge)
        return [
            (need.voter, need.restrict(requests[need.question]))
            for need in needs
            if need.question in requests
        ]

    def _load(self, path: Path) -> tuple[Run, str | None]:
        """The run at a path, and the stamp of its files; None if there is no store to keep it."""
        return load_conversation(path), None

    @asynccontextmanager
    async def _computing(self) -> AsyncIterator[None]:
        """Compute for one run at a time.

        Between two runs the event loop makes calls and receives answers. Without that, the calls of
        a hundred runs that begin together would wait until the last run is read.
        """
        async with self._compute_lock:
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
        from .provider_batch.ledger import waiting_keys
        from .questions.question_keys import VoteKeys
        from .store.group_commit import GroupCommit
        from .store.reuse import StoredJudge, StoredOnly
        from .trust.judge_precision import precision_by_code

        super().__init__(judge, options, budget)
        self.store = store
        self.precision = precision_by_code(store, judge.name)
        guarded = self.judge
        slots = asyncio.Semaphore(options.concurrency)
        # These reuse what another process stored since the plan was made.
        self._voters = voters(
            with_voters(
                guarded,
                lambda voting: _LimitedJudge(StoredJudge(voting, store), slots),
            )
        )
        self._stored: list[StoredJudge] = []

        waiting = frozenset() if options.stored_only else waiting_keys(store)

        def remember(voting: Judge) -> Judge:
            if options.stored_only:
                self._stored.append(StoredOnly(voting, store))
            else:
                self._stored.append(StoredJudge(voting, store, waiting=waiting))
            return self._stored[-1]

        self.judge = with_voters(guarded, remember)
        self._votes = VoteKeys(judge, options.questions, options.public)
        self._card_keys = card_keys(judge, options, self.precision)
        self._cards = GroupCommit(store.add_cards)
        self._stored_rubrics: set[str] = set()
        self._stored_items: set[Criterion] = set()
        self._has_stored_prompts = False

    async def make_card(self, run: Run, path: Path, stamp: str | None = None) -> ScoreCard:
        """The scorecard of a loaded run; it is in the store before this returns."""
        run = self.scope.apply(run)
        run_ref = await self._stored[0].run_ref(run, stamp)
        prepared, replies = await self.ask(run)
        card, basis = assemble_with_basis(prepared, self.judge, replies, self.precision)
        of_items = (keys for reply in replies.values() for keys in reply.verdict_keys.values())
        keys = [key for keys in of_items for key in keys]
        await self._store_card(card, basis, prepared, run_ref, path, keys)
        return card

    async def _store_card(
        self,
        card: ScoreCard,
        basis: ScoreBasis,
        prepared: PreparedRun,
        run_ref: int,
        path: Path,
        verdict_keys: Sequence[str],
    ) -> None:
        """Store a scorecard, with its key if every item has a final verdict."""
        from .questions.verdict_keys import BASIS
        from .store.connection import SettledRow
        from .store.scorecards import CardBasis, NewCard

        run, rubric = prepared.run, prepared.rubric
        if rubric.sha256 not in self._stored_rubrics:
            self._stored_rubrics.add(rubric.sha256)
            self.store.add_rubric(rubric)
        requests = prepared.requests(self.judge)
        self._store_texts(requests)
        votes = self._votes.number_of_votes({each.question: each.criteria for each in requests})
        facts = self._facts_row(prepared)
        # Only a card with every final verdict behind it is what the same command would make again.
        key = None
        settled = None
        stored_basis = None
        if sum(stored.pop_answered(run_ref) for stored in self._stored) == votes:
            key = self._card_keys.key(run.path, run.content_sha256, rubric.sha256)
            questions = self._votes.sha256(rubric, run.tier, run.track)
            settled = SettledRow(run.content_sha256, questions, votes)
            basis_key = self._card_keys.key(run.path, run.content_sha256, BASIS)
            stored_basis = CardBasis(basis_key, zlib.compress(basis.to_json()))
        # What was stored of a run that goes on is out of date, whatever it has.
        may_replace = self.options.replace_whole_cards or run.status.ended == "running"
        new_card = NewCard(
            run_ref,
            path,
            card,
            key,
            settled,
            facts,
            may_replace,
            tuple(verdict_keys),
            self.options.some_items,
            stored_basis,
        )
        if not await self._cards.submit(new_card):
            self.kept_cards += 1

    def _requests(self, needs: tuple[Need, ...]) -> list[tuple[int, Request]]:
        requests = super()._requests(needs)
        self._store_texts(request for _, request in requests)
        return requests

    def _store_texts(self, requests: Iterable[Request]) -> None:
        """Store the judge's prompts, and the texts of items that no rubric holds."""
        from .questions.texts import item_texts, prompt_texts

        items = {
            item
            for request in requests
            if not is_criteria(request.question)
            for item in request.criteria
        }
        new = items - self._stored_items
        texts = item_texts(new)
        if not self._has_stored_prompts:
            texts += prompt_texts(self.judge)
        self.store.add_texts(texts)
        self._stored_items |= new
        self._has_stored_prompts = True

    def _facts_row(self, prepared: PreparedRun) -> EvidenceRow | None:
        """What facts prove of the run, so that a plan need not read it; None if nobody asks."""
        from .facts.decided import FACTS, encode
        from .store.connection import EvidenceRow

        if not self.options.questions.leaves_to_facts(self.judge.name):
            return None
        run = prepared.run
        context = self._votes.facts_context(run.track, run.tier)
        return EvidenceRow(run.content_sha256, context, FACTS, encode(prepared.proven_values))

    def _load(self, path: Path) -> tuple[Run, str | None]:
        from .store import stamps

        started = time.time_ns()
        run = self.scope.running.apply(load_conversation(path))
        return run, stamps.take(run, started)


class _LimitedJudge(JudgeWrapper):
    """Answers as many requests at once as there are slots, from their look-up until the store has
    the answer.

    A process that is killed therefore has no more calls to repeat than were under way.
    """

    def __init__(self, judge: Judge, slots: asyncio.Semaphore) -> None:
        super().__init__(judge)
        self._slots = slots

    async def judge(self, request: Request) -> Reply:
        async with self._slots:
            return await self.inner.judge(request)


def unchanged_cards(store: Store, judge: Judge, options: ScoreOptions) -> CardCache:
    """A look-up of the stored scorecards that this judge would make again under these options."""
    from .store.card_cache import CardCache
    from .trust.judge_precision import precision_by_code

    keys = card_keys(judge, options, precision_by_code(store, judge.name))
    return CardCache(store, judge.name, keys, options.scope())


def card_keys(
    judge: Judge, options: ScoreOptions, precision: Mapping[str, float] | None = None
) -> CardKeys:
    """The maker of the keys of all scorecards that this judge makes under these options.

    The public inputs are assumed to stay as they are.
    """
    from .questions.items import diagnosis_sha256
    from .questions.verdict_keys import CardKeys, identity, inputs_stamp

    # The order is part of the keys of stored scorecards.
    return CardKeys(
        identity(judge).model_dump(),
        repr(options.questions),
        options.policy.model_dump(),
        options.track,
        options.tier,
        inputs_stamp(options.public),
        precision,
        diagnosis_sha256(),
        __version__,
    )


def default_store(path: str | Path, settings_folder: Path | None = None) -> Path:
    """The path of a collection's store.

    It is beside the settings file above the collection, which marks the project's root; else the
    nearest store at or above the path, but not inside a run; else a new one in the collection's
    root: the given folder, or the folder above a single run. StoreError if the store there was not
    made by this user.
    """
    from .store import DEFAULT_STORE
    from .store.ownership import check_owner

    store = _store_path(path, settings_folder, DEFAULT_STORE)
    if store.is_symlink() or store.exists():
        return check_owner(store)
    return store


def is_store_there(place: str | Path | None) -> TypeGuard[str | Path]:
    """Whether there is a store at a place, a file or the URL of a database; False for no place."""
    return place is not None and ("://" in str(place) or Path(place).is_file())


def _store_path(path: str | Path, settings_folder: Path | None, name: Path) -> Path:
    """Where a store of this name is or would be made, by the rules of `default_store`."""
    start = Path(path).absolute()
    if settings_folder is not None and start.is_relative_to(settings_folder.absolute()):
        return settings_folder / name
    folder = start if start.is_dir() else start.parent
    if folder.name == "process":
        folder = folder.parent
    # A store inside a run's folder came with the run, so the search starts above it.
    root = folder.parent if is_run(folder) else folder
    for parent in (root, *root.parents):
        if (parent / name).is_file():
            return parent / name
    return root / name
