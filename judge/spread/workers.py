"""Scoring and asking in several processes of this machine: each has a judge and the store of its
own and is handed one run after another, to be scored or to be asked what a plan lacks of it.

A worker that dies (killed, out of memory) is replaced, and what it had in hand goes to the next
one; a run that takes three workers with it is given up. All workers ask one budget before each
call; what a dead one had under way counts as its worst case. `ray_workers` has the same workers on
the machines of a Ray cluster.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ...errors import AmbjudgeError, ConfigError, unexpected
from ..base import Usage
from ..card.scorecard import CardLine
from ..judges.limits import PlannedCall, SharedBudget
from ..judges.rules import RULES
from ..select import JudgeOptions, make_judge
from ..session import AskTally, RunScorer, ScoreOptions, make_scorer

if TYPE_CHECKING:
    from ..rejudge.staleness import Need

_TRIES = 3
_GRACE_S = 5.0
_FATAL = -1
"""Number of a message that concerns no run: an error that no worker can work with."""


Task: TypeAlias = "Path | tuple[Need, ...]"
"""A run to score, or what a plan lacks of one."""
Result = CardLine | AskTally
"""Its card as a line, or what asking came to."""


@dataclass(frozen=True)
class Work:
    """All that a worker must know beside the paths."""

    options: ScoreOptions
    """`concurrency` and `max_cost` for all workers together."""
    judges: tuple[str, ...] = ()
    judge_options: JudgeOptions = field(default_factory=JudgeOptions)
    store: tuple[str, Path | None] | None = None
    """Address and root of the store, which must be there."""


@dataclass(frozen=True)
class Told:
    """What a worker has come to so far."""

    usage: Usage = field(default_factory=Usage)
    throttles: int = 0
    foreign_track_runs: int = 0


class WorkerDied(Exception):
    """What it had in hand may be given to another."""


class Worker(Protocol):
    """One of several that score."""

    told: Told

    @property
    def in_hand(self) -> int:
        """Runs that it was given and that it has not answered."""

    async def do(self, task: Task) -> Result:
        """AmbjudgeError where the run, or the worker's own setting, is at fault; WorkerDied, after
        `died` was called."""

    def dismiss(self) -> None:
        """No more will come."""

    def end(self) -> None:
        """Wait for it to end, and make it."""


class Engine(Protocol):
    """Where workers come from."""

    def start(self, work: Work, died: Callable[[Worker], None]) -> Worker:
        """A new worker, in a running event loop; `died` is called there when it is no more."""

    def close(self) -> None:
        """After the last worker has ended."""


class Workers:
    """Stands for a scorer: `score(path)`, and what it came to. To be entered in a running event
    loop."""

    def __init__(
        self, number: int, work: Work, engine: Callable[[Work], Engine] | None = None
    ) -> None:
        free = make_judge(work.judges, work.judge_options).name == RULES
        each = 1 if free else -(-work.options.concurrency // number)
        self.concurrency = number * each
        """Runs under way at once in all: one a worker where nobody waits for a model."""
        self.work = replace(work, options=replace(work.options, concurrency=each))
        """As each worker is given it."""
        self._number, self._closing = number, False
        self._engine_of = engine or Processes
        self._workers: list[Worker] = []
        self._gone: list[Told] = []

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the processes alive."""
        return tuple(
            worker.process.pid or 0 for worker in self._workers if isinstance(worker, _Process)
        )

    @property
    def usage(self) -> Usage:
        return sum((told.usage for told in self._told()), Usage())

    @property
    def throttles(self) -> int:
        return sum(told.throttles for told in self._told())

    @property
    def foreign_track_runs(self) -> int:
        return sum(told.foreign_track_runs for told in self._told())

    def _told(self) -> Iterable[Told]:
        return (*self._gone, *(worker.told for worker in self._workers))

    async def __aenter__(self) -> Workers:
        self._engine = await asyncio.to_thread(self._engine_of, self.work)
        self._workers = [self._engine.start(self.work, self._replace) for _ in range(self._number)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        for worker in self._workers:
            worker.dismiss()
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in self._workers))
        await asyncio.to_thread(self._engine.close)

    async def score(self, path: Path) -> CardLine:
        """As `RunScorer.score`, by the worker that has least to do."""
        card = await self._do(path)
        assert isinstance(card, CardLine)
        return card

    async def fill_needs(self, needs: tuple[Need, ...]) -> AskTally:
        """As `RunScorer.fill_needs`."""
        made = await self._do(needs)
        assert isinstance(made, AskTally)
        return made

    async def _do(self, task: Task) -> Result:
        for _ in range(_TRIES):
            with suppress(WorkerDied):
                return await min(self._workers, key=lambda worker: worker.in_hand).do(task)
        raise AmbjudgeError(
            f"{of(task)}: {_TRIES} workers died on it",
            "is there enough memory? score it alone to see",
        )

    def _replace(self, dead: Worker) -> None:
        if self._closing:
            return
        self._gone.append(dead.told)
        self._workers[self._workers.index(dead)] = self._engine.start(self.work, self._replace)


class Processes:
    """Workers that are processes of this machine; the budget is asked here."""

    def __init__(self, work: Work) -> None:
        budget = work.options.budget()
        self._accounts = None if budget is None else SharedBudget(budget)
        self._names = count()

    def start(self, work: Work, died: Callable[[Worker], None]) -> Worker:
        return _Process(work, died, self._accounts, f"{next(self._names)}")

    def close(self) -> None:
        pass


class _Asked(NamedTuple):
    """A worker asks the budget."""

    number: int
    call: PlannedCall


class _Granted(NamedTuple):
    """The budget's answer to that."""

    number: int
    fits: bool


class _Settled(NamedTuple):
    """What became of a call."""

    call: PlannedCall
    usage: Usage | None


class _Process:
    """A process and what it has in hand. `died` is called in the event loop, before those who wait
    are told."""

    def __init__(
        self, work: Work, died: Callable[[Worker], None], accounts: SharedBudget | None, name: str
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()
        self.waiting: dict[int, asyncio.Future[Result]] = {}
        self.told = Told()
        self._accounts, self._name, self._dead = accounts, name, False
        self._asking: set[asyncio.Task[None]] = set()
        self._died, self._numbers, self._ready = died, count(), False
        self._broken: AmbjudgeError | None = None
        self._reader = threading.Thread(
            target=self._read, args=(asyncio.get_running_loop(),), daemon=True
        )
        self._reader.start()

    @property
    def in_hand(self) -> int:
        return len(self.waiting)

    async def do(self, task: Task) -> Result:
        if self._broken is not None:
            raise self._broken
        number = next(self._numbers)
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        with suppress(OSError):  # it died: the reader sees that too
            self._connection.send((number, task))
        try:
            return await answer
        finally:
            self.waiting.pop(number, None)

    def dismiss(self) -> None:
        with suppress(OSError):
            self._connection.send(None)

    def end(self) -> None:
        """Wait for it to end, and make it."""
        self.process.join(0.0 if self.waiting else _GRACE_S)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()
        self._reader.join()
        self._connection.close()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(EOFError, OSError, RuntimeError):  # RuntimeError: the loop is closed
            while True:
                loop.call_soon_threadsafe(self._hear, self._connection.recv())
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end)

    def _hear(self, message: Any) -> None:
        if isinstance(message, _Asked | _Settled):
            self._begin(
                self._grant(message) if isinstance(message, _Asked) else self._settle(message)
            )
        else:
            self._take(*message)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _grant(self, asked: _Asked) -> None:
        assert self._accounts is not None
        fits = await self._accounts.reserve(self._name, asked.call)
        if self._dead and fits:  # it never knew
            await self._accounts.settle(self._name, asked.call, Usage())
        with suppress(OSError):
            self._connection.send(_Granted(asked.number, fits))

    async def _settle(self, settled: _Settled) -> None:
        assert self._accounts is not None
        await self._accounts.settle(self._name, settled.call, settled.usage)

    def _take(self, number: int, result: Result | AmbjudgeError | None, told: Told) -> None:
        self._ready, self.told = True, told
        answer = self.waiting.get(number)
        if number == _FATAL and isinstance(result, AmbjudgeError):
            self._broken = result
        elif answer is None or answer.done():
            return
        elif isinstance(result, AmbjudgeError):
            answer.set_exception(result)
        elif result is not None:
            answer.set_result(result)

    def _end(self) -> None:
        self._dead = True
        if self._accounts is not None:
            self._begin(self._accounts.forfeit(self._name))
        if not self._ready:
            self._broken = ConfigError(
                "a worker ended before it began", "leave out --workers to see why"
            )
        if self._broken is None:
            self._died(self)
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(self._broken or WorkerDied())


def _serve(connection: Connection, work: Work) -> None:
    """A worker's life: until None is sent, or whoever sends is gone."""
    # Ctrl-C reaches the whole group; the parent says when to stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asyncio.run(_answer(connection, work))
    except AmbjudgeError as error:
        with suppress(OSError):
            connection.send((_FATAL, error, Told()))


async def _answer(connection: Connection, work: Work) -> None:
    with ExitStack() as stack:
        store = None
        if work.store is not None:
            from ..store import open_store

            store = stack.enter_context(open_store(work.store[0], root=work.store[1], create=False))
        budget = (
            None
            if work.options.budget() is None
            else _AskedBudget(connection, work.options.max_cost)
        )
        scorer = make_scorer(
            make_judge(work.judges, work.judge_options), work.options, store, budget
        )
        send = partial(_send, connection, scorer)
        send(_FATAL, None)  # ready
        tasks: set[asyncio.Task[None]] = set()
        with suppress(EOFError, OSError):
            while (asked := await asyncio.to_thread(connection.recv)) is not None:
                if isinstance(asked, _Granted):
                    assert budget is not None
                    budget.hear(asked)
                    continue
                task = asyncio.create_task(_one(scorer, send, *asked))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()


async def _one(scorer: RunScorer, send: Any, number: int, task: Task) -> None:
    send(number, await done(scorer, task))


def of(task: Task) -> Path:
    """The run that a task is about."""
    return task if isinstance(task, Path) else task[0].path


async def done(scorer: RunScorer, task: Task) -> Result | AmbjudgeError:
    """What the task came to, or what stopped it."""
    try:
        if not isinstance(task, Path):
            return await scorer.fill_needs(task)
        card = await scorer.score(task)
        return CardLine(card.to_json(), card.gist)
    except AmbjudgeError as error:
        return error
    except Exception as error:
        return unexpected(error, of(task))


class _AskedBudget:
    """The budget as a worker sees it: at the other end of its connection."""

    def __init__(self, connection: Connection, cap: float | None) -> None:
        self.cap, self._connection, self._numbers = cap, connection, count()
        self._waiting: dict[int, asyncio.Future[bool]] = {}

    async def reserve(self, call: PlannedCall) -> bool:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._connection.send(_Asked(number, call))
        return await self._waiting[number]

    async def settle(self, call: PlannedCall, usage: Usage | None) -> None:
        with suppress(OSError):  # nobody counts any more
            self._connection.send(_Settled(call, usage))

    def hear(self, granted: _Granted) -> None:
        waiting = self._waiting.pop(granted.number)
        if not waiting.done():
            waiting.set_result(granted.fits)


def _send(
    connection: Connection, scorer: RunScorer, number: int, result: Result | AmbjudgeError | None
) -> None:
    # nobody is there any more: the next message that does not come ends this
    with suppress(OSError):
        connection.send(
            (number, result, Told(scorer.usage, scorer.throttles, scorer.foreign_track_runs))
        )
