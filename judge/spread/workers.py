"""Scoring and asking in several processes of this machine.

Each worker has a judge and a store connection of its own. It is given one task after another: a run
to score, or the verdicts that a plan lacks on a run.

A worker that dies (killed, out of memory) is replaced, and its unfinished tasks go to others; a run
that takes three workers with it is given up. All workers ask one budget before each call; what a
dead one had in progress counts as its worst case. `ray_workers` has the same workers on the
machines of a Ray cluster.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ...errors import AmbjudgeError, ConfigError, unexpected
from ..base import Usage
from ..card.scorecard import CardLine
from ..judges.limits import Allowance, Leave, PlannedCall, SharedBudget
from ..judges.rules import RULES
from ..select import JudgeOptions, make_judge
from ..session import AskTally, RunScorer, ScoreOptions, make_scorer

if TYPE_CHECKING:
    from ..rejudge.staleness import Need

_MAX_DEATHS = 3
"""A task is given up after it took so many workers with it."""
_GRACE_S = 5.0
"""How long an idle worker may take to end by itself."""

Task: TypeAlias = "Path | tuple[Need, ...]"
"""A run to score, or what a plan lacks on one run."""
Result = CardLine | AskTally
"""The run's card as a line, or what asking came to."""


@dataclass(frozen=True)
class WorkerSettings:
    """Everything that a worker must know besides its tasks."""

    options: ScoreOptions
    """`concurrency` and `max_cost` are for all workers together in the pool's settings."""
    judges: tuple[str, ...] = ()
    judge_options: JudgeOptions = field(default_factory=JudgeOptions)
    store: tuple[str, Path | None] | None = None
    """Address and root of the store, which must exist."""


@dataclass(frozen=True)
class WorkerTotals:
    """What a worker's calls have come to so far."""

    usage: Usage = field(default_factory=Usage)
    throttles: int = 0
    foreign_track_runs: int = 0

    @classmethod
    def of(cls, scorer: RunScorer) -> WorkerTotals:
        return cls(scorer.usage, scorer.throttles, scorer.foreign_track_runs)


class WorkerDied(Exception):
    """The worker is gone; its task may be given to another."""


class Worker(Protocol):
    """One of several workers."""

    totals: WorkerTotals

    @property
    def unfinished(self) -> int:
        """Number of tasks that it has not answered yet."""

    async def run(self, task: Task) -> Result:
        """The task's result.

        Raises AmbjudgeError if the run or the worker's settings are at fault. Raises WorkerDied if
        the worker died, after its `on_death` was called.
        """

    def dismiss(self) -> None:
        """Tell the worker that no more tasks will come."""

    def end(self) -> None:
        """Wait for the worker to end, and end it if it does not."""


class Engine(Protocol):
    """Where workers come from."""

    def start(self, settings: WorkerSettings, on_death: Callable[[Worker], None]) -> Worker:
        """A new worker, in a running event loop; `on_death` is called there when it dies."""

    def close(self) -> None:
        """Called after the last worker has ended."""


class WorkerPool:
    """Several workers that stand in for one scorer. To be entered in a running event loop."""

    def __init__(
        self,
        size: int,
        settings: WorkerSettings,
        make_engine: Callable[[WorkerSettings], Engine] | None = None,
    ) -> None:
        """`make_engine`: by default the workers are processes of this machine."""
        judge = make_judge(settings.judges, settings.judge_options)
        # The rules judge waits for nobody, so that one run at a time keeps a worker busy.
        runs_per_worker = 1
        if judge.name != RULES:
            runs_per_worker = -(-settings.options.concurrency // size)
        self.concurrency = size * runs_per_worker
        """Runs in progress at once in all workers."""
        options = replace(settings.options, concurrency=runs_per_worker)
        self.settings = replace(settings, options=options)
        """As each worker gets them."""
        self._size, self._closing = size, False
        self._make_engine = make_engine or ProcessEngine
        self._workers: list[Worker] = []
        self._totals_of_dead: list[WorkerTotals] = []

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of the workers' processes on this machine."""
        return tuple(
            worker.process.pid or 0
            for worker in self._workers
            if isinstance(worker, _ProcessWorker)
        )

    @property
    def usage(self) -> Usage:
        return sum((totals.usage for totals in self._totals()), Usage())

    @property
    def throttles(self) -> int:
        return sum(totals.throttles for totals in self._totals())

    @property
    def foreign_track_runs(self) -> int:
        return sum(totals.foreign_track_runs for totals in self._totals())

    def _totals(self) -> list[WorkerTotals]:
        return [*self._totals_of_dead, *(worker.totals for worker in self._workers)]

    async def __aenter__(self) -> WorkerPool:
        self._engine = await asyncio.to_thread(self._make_engine, self.settings)
        self._workers = [
            self._engine.start(self.settings, self._replace) for _ in range(self._size)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        for worker in self._workers:
            worker.dismiss()
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in self._workers))
        await asyncio.to_thread(self._engine.close)

    async def score(self, path: Path) -> CardLine:
        """Like `RunScorer.score`, by the worker with the fewest unfinished tasks."""
        card = await self._run(path)
        assert isinstance(card, CardLine)
        return card

    async def fill_needs(self, needs: tuple[Need, ...]) -> AskTally:
        """Like `RunScorer.fill_needs`, by the worker with the fewest unfinished tasks."""
        tally = await self._run(needs)
        assert isinstance(tally, AskTally)
        return tally

    async def _run(self, task: Task) -> Result:
        for _ in range(_MAX_DEATHS):
            worker = min(self._workers, key=lambda worker: worker.unfinished)
            with suppress(WorkerDied):
                return await worker.run(task)
        raise AmbjudgeError(
            f"{path_of(task)}: {_MAX_DEATHS} workers died on it",
            "score it alone to see the cause, such as too little memory",
        )

    def _replace(self, dead: Worker) -> None:
        if self._closing:
            return
        self._totals_of_dead.append(dead.totals)
        index = self._workers.index(dead)
        self._workers[index] = self._engine.start(self.settings, self._replace)


def path_of(task: Task) -> Path:
    """The run that a task is about."""
    return task if isinstance(task, Path) else task[0].path


async def result_of(scorer: RunScorer, task: Task) -> Result | AmbjudgeError:
    """The task's result, or the error that stopped it."""
    try:
        if not isinstance(task, Path):
            return await scorer.fill_needs(task)
        card = await scorer.score(task)
        return CardLine(card.to_json(), card.gist)
    except AmbjudgeError as error:
        return error
    except Exception as error:
        return unexpected(error, path_of(task))


def open_scorer(stack: ExitStack, settings: WorkerSettings, budget: Allowance | None) -> RunScorer:
    """A worker's scorer; `stack` closes its store."""
    store = None
    if settings.store is not None:
        from ..store import open_store

        address, root = settings.store
        store = stack.enter_context(open_store(address, root=root, create=False))
    judge = make_judge(settings.judges, settings.judge_options)
    return make_scorer(judge, settings.options, store, budget)


# Messages between the pool's process and a worker's.


class _TaskMessage(NamedTuple):
    """To the worker: a task."""

    number: int
    task: Task


class _ReadyMessage(NamedTuple):
    """From the worker: it has a scorer, or the error that no scorer can be made with."""

    error: AmbjudgeError | None = None


class _ResultMessage(NamedTuple):
    """From the worker: the result of a task."""

    number: int
    result: Result | AmbjudgeError
    totals: WorkerTotals


class _ReserveMessage(NamedTuple):
    """From the worker: it asks the budget for a call."""

    number: int
    call: PlannedCall


class _ReservedMessage(NamedTuple):
    """To the worker: the budget's answer."""

    number: int
    leave: Leave


class _SettleMessage(NamedTuple):
    """From the worker: what a call used."""

    call: PlannedCall
    usage: Usage | None


# The pool's side.


class ProcessEngine:
    """Workers that are processes of this machine; their budget is kept in this process."""

    def __init__(self, settings: WorkerSettings) -> None:
        budget = settings.options.budget()
        self._budget = None if budget is None else SharedBudget(budget)
        self._numbers = count()

    def start(self, settings: WorkerSettings, on_death: Callable[[Worker], None]) -> Worker:
        return _ProcessWorker(settings, on_death, self._budget, name=str(next(self._numbers)))

    def close(self) -> None:
        pass


class _ProcessWorker:
    """A process and its unfinished tasks."""

    def __init__(
        self,
        settings: WorkerSettings,
        on_death: Callable[[Worker], None],
        budget: SharedBudget | None,
        name: str,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, worker_end = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_worker_main, args=(worker_end, settings), daemon=True
        )
        self.process.start()
        worker_end.close()
        self.totals = WorkerTotals()
        self._results: dict[int, asyncio.Future[Result]] = {}
        self._numbers = count()
        self._on_death, self._budget, self._name = on_death, budget, name
        self._budget_tasks: set[asyncio.Task[None]] = set()
        self._ready, self._dead = False, False
        self._fatal_error: AmbjudgeError | None = None
        self._reader = threading.Thread(
            target=self._read, args=(asyncio.get_running_loop(),), daemon=True
        )
        self._reader.start()

    @property
    def unfinished(self) -> int:
        return len(self._results)

    async def run(self, task: Task) -> Result:
        if self._fatal_error is not None:
            raise self._fatal_error
        number = next(self._numbers)
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._results[number] = result
        with suppress(OSError):  # The worker died; the reader thread sees that too.
            self._connection.send(_TaskMessage(number, task))
        try:
            return await result
        finally:
            self._results.pop(number, None)

    def dismiss(self) -> None:
        with suppress(OSError):
            self._connection.send(None)

    def end(self) -> None:
        # A worker with unfinished tasks was interrupted and would not end by itself.
        self.process.join(0.0 if self._results else _GRACE_S)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()
        self._reader.join()
        self._connection.close()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: pass messages on to the event loop until the worker is gone."""
        with suppress(EOFError, OSError, RuntimeError):  # RuntimeError: the loop is closed.
            while True:
                loop.call_soon_threadsafe(self._receive, self._connection.recv())
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._handle_death)

    def _receive(self, message: object) -> None:
        if isinstance(message, _ReserveMessage):
            self._run_in_background(self._reserve(message))
        elif isinstance(message, _SettleMessage):
            self._run_in_background(self._settle(message))
        elif isinstance(message, _ReadyMessage):
            self._ready, self._fatal_error = True, message.error
        elif isinstance(message, _ResultMessage):
            self._set_result(message)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._budget_tasks.add(task)
        task.add_done_callback(self._budget_tasks.discard)

    async def _reserve(self, message: _ReserveMessage) -> None:
        assert self._budget is not None
        leave = await self._budget.reserve(self._name, message.call)
        if leave.call is not None and self._dead:
            # The worker died before it heard of this, so the call was never made.
            await self._budget.settle(self._name, leave.call, Usage())
        with suppress(OSError):
            self._connection.send(_ReservedMessage(message.number, leave))

    async def _settle(self, message: _SettleMessage) -> None:
        assert self._budget is not None
        await self._budget.settle(self._name, message.call, message.usage)

    def _set_result(self, message: _ResultMessage) -> None:
        self.totals = message.totals
        result = self._results.get(message.number)
        if result is None or result.done():
            return
        if isinstance(message.result, AmbjudgeError):
            result.set_exception(message.result)
        else:
            result.set_result(message.result)

    def _handle_death(self) -> None:
        self._dead = True
        if self._budget is not None:
            self._run_in_background(self._budget.forfeit(self._name))
        if not self._ready:
            self._fatal_error = ConfigError(
                "a worker process ended before it could start",
                "run without --workers to see the cause",
            )
        # The pool replaces the worker before the tasks are told, so that they find the new one.
        if self._fatal_error is None:
            self._on_death(self)
        for result in self._results.values():
            if not result.done():
                result.set_exception(self._fatal_error or WorkerDied())


# The worker's side.


def _worker_main(connection: Connection, settings: WorkerSettings) -> None:
    """Run tasks until None is sent, or the pool's process is gone."""
    # Ctrl-C reaches the whole process group; the pool's process says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asyncio.run(_run_tasks(connection, settings))
    except AmbjudgeError as error:
        _send(connection, _ReadyMessage(error))


async def _run_tasks(connection: Connection, settings: WorkerSettings) -> None:
    with ExitStack() as stack:
        budget = None
        if settings.options.budget() is not None:
            budget = _RemoteBudget(connection, settings.options.max_cost)
        scorer = open_scorer(stack, settings, budget)
        _send(connection, _ReadyMessage())
        tasks: set[asyncio.Task[None]] = set()
        with suppress(EOFError, OSError):
            while True:
                message = await asyncio.to_thread(connection.recv)
                if message is None:
                    break
                if isinstance(message, _ReservedMessage):
                    assert budget is not None
                    budget.receive(message)
                    continue
                task = asyncio.create_task(_run_task(connection, scorer, message))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()


async def _run_task(connection: Connection, scorer: RunScorer, message: _TaskMessage) -> None:
    result = await result_of(scorer, message.task)
    _send(connection, _ResultMessage(message.number, result, WorkerTotals.of(scorer)))


class _RemoteBudget:
    """The budget as a worker sees it: at the other end of its connection."""

    def __init__(self, connection: Connection, cap: float | None) -> None:
        self.cap, self._connection, self._numbers = cap, connection, count()
        self._waiting: dict[int, asyncio.Future[Leave]] = {}

    async def reserve(self, call: PlannedCall) -> Leave:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._connection.send(_ReserveMessage(number, call))
        return await self._waiting[number]

    async def settle(self, call: PlannedCall, usage: Usage | None) -> None:
        _send(self._connection, _SettleMessage(call, usage))

    def receive(self, message: _ReservedMessage) -> None:
        answer = self._waiting.pop(message.number)
        if not answer.done():
            answer.set_result(message.leave)


def _send(connection: Connection, message: _ReadyMessage | _ResultMessage | _SettleMessage) -> None:
    # If the pool's process is gone, the next message that is to be received ends this process.
    with suppress(OSError):
        connection.send(message)
