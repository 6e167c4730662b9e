"""Scoring in several processes of this machine: each has a judge and the store of its own and is handed one path after
another; cards come back as JSON.

A worker that dies (killed, out of memory) is replaced, and what it had in hand goes to the next one; a run that takes three
workers with it is given up. A budget is divided among the workers, and what a dead one had left counts as spent, so that
the whole is never exceeded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ..errors import AmbjudgeError, ConfigError, unexpected
from .base import Usage
from .rules import RULES
from .runner import Progress
from .scorecard import ScoreCard
from .select import JudgeOptions, make_judge
from .session import Outcome, ScoreOptions, Scorer, Session, score_with

_TRIES = 3
_GRACE_S = 5.0
_FATAL = -1
"""Number of a message that concerns no run: an error that no worker can work with."""


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
class _Told:
    """What a worker has come to so far."""

    usage: Usage = field(default_factory=Usage)
    throttles: int = 0
    apart: int = 0


class _WorkerDied(Exception):
    pass


class Workers:
    """Stands for a scorer: `score(path)`, and what it came to. To be entered in a running event loop."""

    def __init__(self, number: int, work: Work) -> None:
        free, cost = make_judge(work.judges, work.judge_options).name == RULES, work.options.max_cost
        each = 1 if free else -(-work.options.concurrency // number)
        self.room = number * each
        """Runs under way at once in all: one a worker where nobody waits for a model."""
        mine = replace(work.options, concurrency=each, max_cost=None if cost is None else cost / number)
        self._number, self._closing = number, False
        self.work = replace(work, options=mine)
        """As each worker is given it: with its share of the budget."""
        self._workers: list[_Worker] = []
        self._gone: list[_Told] = []

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the processes alive."""
        return tuple(worker.process.pid or 0 for worker in self._workers)

    @property
    def usage(self) -> Usage:
        return sum((told.usage for told in self._told()), Usage())

    @property
    def throttles(self) -> int:
        return sum(told.throttles for told in self._told())

    @property
    def apart(self) -> int:
        return sum(told.apart for told in self._told())

    def _told(self) -> Iterable[_Told]:
        return (*self._gone, *(worker.told for worker in self._workers))

    async def __aenter__(self) -> Workers:
        self._workers = [_Worker(self.work, self._replace) for _ in range(self._number)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        for worker in self._workers:
            worker.dismiss()
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in self._workers))

    async def score(self, path: Path) -> ScoreCard:
        """As `Scorer.score`, by the worker that has least to do."""
        for _ in range(_TRIES):
            with suppress(_WorkerDied):
                return await min(self._workers, key=lambda worker: len(worker.waiting)).score(path)
        raise AmbjudgeError(f"{path}: {_TRIES} workers died on it", "is there enough memory? score it alone to see")

    def _replace(self, dead: _Worker) -> None:
        if self._closing:
            return
        self._gone.append(dead.told)
        free = self.work.options.max_cost is None
        work = self.work if free else replace(self.work, options=replace(self.work.options, max_cost=0.0))
        self._workers[self._workers.index(dead)] = _Worker(work, self._replace)


async def score_in_workers(
    number: int,
    work: Work,
    paths: Iterable[str | Path | Outcome],
    take: Callable[[Outcome], None],
    *,
    on_progress: Callable[[Progress, Usage], None] | None = None,
    signals: bool = True,
) -> Session:
    """`session.score_many` in so many processes."""
    async with Workers(number, work) as pool:
        return await score_with(pool, paths, take, concurrency=pool.room, on_progress=on_progress, signals=signals)


class _Worker:
    """A process and what it has in hand. `died` is called in the event loop, before those who wait are told."""

    def __init__(self, work: Work, died: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()
        self.waiting: dict[int, asyncio.Future[ScoreCard]] = {}
        self.told = _Told()
        self._died, self._numbers, self._ready = died, count(), False
        self._broken: AmbjudgeError | None = None
        self._reader = threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True)
        self._reader.start()

    async def score(self, path: Path) -> ScoreCard:
        if self._broken is not None:
            raise self._broken
        number = next(self._numbers)
        answer: asyncio.Future[ScoreCard] = asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        with suppress(OSError):  # it died: the reader sees that too
            self._connection.send((number, path))
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
                loop.call_soon_threadsafe(self._take, *self._connection.recv())
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end)

    def _take(self, number: int, result: str | AmbjudgeError | None, told: _Told) -> None:
        self._ready, self.told = True, told
        answer = self.waiting.get(number)
        if number == _FATAL and isinstance(result, AmbjudgeError):
            self._broken = result
        elif answer is None or answer.done():
            return
        elif isinstance(result, AmbjudgeError):
            answer.set_exception(result)
        else:
            answer.set_result(ScoreCard.model_validate_json(result or ""))

    def _end(self) -> None:
        if not self._ready:
            self._broken = ConfigError("a worker ended before it began", "leave out --workers to see why")
        if self._broken is None:
            self._died(self)
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(self._broken or _WorkerDied())


def _serve(connection: Connection, work: Work) -> None:
    """A worker's life: until None is sent, or whoever sends is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent says when to stop
    try:
        asyncio.run(_answer(connection, work))
    except AmbjudgeError as error:
        with suppress(OSError):
            connection.send((_FATAL, error, _Told()))


async def _answer(connection: Connection, work: Work) -> None:
    with ExitStack() as stack:
        store = None
        if work.store is not None:
            from .store import open_store

            store = stack.enter_context(open_store(work.store[0], root=work.store[1], create=False))
        scorer = Scorer(make_judge(work.judges, work.judge_options), work.options, store)
        send = partial(_send, connection, scorer)
        send(_FATAL, None)  # ready
        tasks: set[asyncio.Task[None]] = set()
        with suppress(EOFError, OSError):
            while (asked := await asyncio.to_thread(connection.recv)) is not None:
                task = asyncio.create_task(_one(scorer, send, *asked))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()


async def _one(scorer: Scorer, send: Any, number: int, path: Path) -> None:
    try:
        result: str | AmbjudgeError = (await scorer.score(path)).to_json()
    except AmbjudgeError as error:
        result = error
    except Exception as error:
        result = unexpected(error, path)
    send(number, result)


def _send(connection: Connection, scorer: Scorer, number: int, result: str | AmbjudgeError | None) -> None:
    with suppress(OSError):  # nobody is there any more: the next message that does not come ends this
        connection.send((number, result, _Told(scorer.usage, scorer.throttles, scorer.apart)))
