"""Many jobs at once: a bounded queue, a stop that loses nothing, and progress. Nothing here knows
what a job is.

`run_batch(jobs, call, ...)` works on any jobs (stage requests, runs) and any asynchronous call.
Limits on money and on the provider's patience are the judge's (`limits`). Jobs are read only a
little ahead of the calls, so that thousands of runs pass through flat memory. The first Ctrl-C
stops starting jobs and waits for the calls under way, whose results are kept; the second one
abandons those too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections import deque
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Progress:
    """How far a batch is; `total` is None where nobody knows."""

    done: int
    total: int | None


@dataclass(frozen=True)
class BatchSummary:
    """What a batch did. `interrupted`: jobs were left out, or abandoned under way, because of a
    stop."""

    done: int
    abandoned: int
    interrupted: bool
    elapsed_s: float
    peak: int
    """The most jobs that ran at once."""


async def run_batch(
    jobs: Iterable[T] | AsyncIterable[T],
    call: Callable[[T], Awaitable[R]],
    *,
    concurrency: int = 16,
    total: int | None = None,
    on_result: Callable[[T, R], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    signals: bool = True,
) -> BatchSummary:
    """Call every job, at most `concurrency` at once; `on_result` gets each result as it comes, not
    in order.

    As many jobs as may run wait in memory; a plain iterable is read in a thread, so that it may
    load files.

    What `call`, `on_result` or `jobs` raises stops the batch as a Ctrl-C does, and is raised when
    the calls under way have ended: failures that concern one job alone are results, not exceptions.
    """
    runner = _Runner(call, max(1, concurrency), total, on_result, on_progress)
    feed = asyncio.create_task(runner.feed(jobs, max(1, concurrency)))
    try:
        with _interrupts(runner) if signals else contextlib.nullcontext():
            return await runner.run()
    finally:
        feed.cancel()
        await asyncio.gather(feed, return_exceptions=True)


class _Runner(Generic[T, R]):
    def __init__(
        self,
        call: Callable[[T], Awaitable[R]],
        concurrency: int,
        total: int | None,
        on_result: Callable[[T, R], None] | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._call, self._concurrency, self._total = call, concurrency, total
        self._on_result, self._on_progress = on_result, on_progress
        self._queue: deque[T] = deque()
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._running: dict[asyncio.Task[R], T] = {}
        self._ended: deque[asyncio.Task[R]] = deque()
        self._exhausted = self._stopping = self._cut = False
        self._error: BaseException | None = None
        self._done = self._abandoned = self._peak = 0
        self._started = time.monotonic()

    def stop(self) -> None:
        """Start no more jobs; a second time, abandon those that run."""
        if self._stopping and not self._cut:
            self._cut = True
            for task in self._running:
                task.cancel()
        self._stopping = True
        self._wake.set()

    async def feed(self, jobs: Iterable[T] | AsyncIterable[T], ahead: int) -> None:
        try:
            async for job in _each(jobs):
                self._queue.append(job)
                self._wake.set()
                while len(self._queue) >= ahead:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:
            self._fail(error)
        self._exhausted = True
        self._wake.set()

    async def run(self) -> BatchSummary:
        try:
            while True:
                self._start_jobs()
                if not self._running and not self._ended and (self._stopping or self._idle()):
                    break
                await self._wake.wait()
                self._wake.clear()
                self._take_results()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
        if self._error is not None:
            raise self._error
        left = len(self._queue) > 0 or not self._exhausted
        return BatchSummary(
            done=self._done,
            abandoned=self._abandoned,
            interrupted=self._stopping and (left or self._abandoned > 0),
            elapsed_s=time.monotonic() - self._started,
            peak=self._peak,
        )

    def _idle(self) -> bool:
        return self._exhausted and len(self._queue) == 0

    def _start_jobs(self) -> None:
        while not self._stopping and self._queue and len(self._running) < self._concurrency:
            job = self._queue.popleft()
            self._room.set()
            task: asyncio.Task[R] = asyncio.ensure_future(self._call(job))
            self._running[task] = job
            self._peak = max(self._peak, len(self._running))
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[R]) -> None:
        self._ended.append(task)
        self._wake.set()

    def _take_results(self) -> None:
        while self._ended:
            task = self._ended.popleft()
            job = self._running.pop(task)
            if task.cancelled():
                self._abandoned += 1
                continue
            error = task.exception()
            if error is not None:
                self._abandoned += 1
                self._fail(error)
                continue
            self._done += 1
            try:
                if self._on_result is not None:
                    self._on_result(job, task.result())
                if self._on_progress is not None:
                    self._on_progress(Progress(self._done, self._total))
            except Exception as problem:
                self._fail(problem)

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        else:
            log.debug("a further failure while stopping: %s", error)
        self._stopping = True
        self._wake.set()


async def _each(jobs: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(jobs, AsyncIterable):
        async for job in jobs:
            yield job
    elif isinstance(jobs, Sequence):
        for job in jobs:
            yield job
    else:
        rest = iter(jobs)
        while (found := await asyncio.to_thread(_next, rest)) is not None:
            yield found[0]


def _next(rest: Iterator[T]) -> tuple[T] | None:
    for job in rest:
        return (job,)
    return None


def finished(work: Coroutine[Any, Any, R]) -> R:
    """What `work` comes to, waited for here; inside a running event loop (notebooks) too."""
    found: list[R] = []

    async def keep() -> None:
        found.append(await work)

    # Not as the task's result: when `asyncio.run` gives the interrupt signal back, `signal` writes
    # out the whole task.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(keep())
        return found[0]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, keep()).result()
    return found[0]


@contextlib.contextmanager
def _interrupts(runner: _Runner[Any, Any]) -> Iterator[None]:
    """Ctrl-C stops the runner while this lasts; where signals cannot be handled, they keep their
    usual meaning."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, runner.stop)
    except (NotImplementedError, RuntimeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
