"""Many jobs at once: a bounded queue, a stop that loses nothing, and progress.

`run_batch(jobs, call, ...)` works on any jobs (requests, runs) with any asynchronous call; nothing
here knows what a job is. Limits on money and on the provider's rate belong to the judge (`limits`).
Jobs are read only a little ahead of the calls, so that thousands of runs pass through constant
memory. The first Ctrl-C starts no more jobs and waits for the calls under way, whose results are
kept; the second one abandons those too.
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
    """How far a batch is; `total` is None if it is unknown."""

    done: int
    total: int | None
    reused: int = 0
    """How many of those that are done took no work."""


@dataclass(frozen=True)
class BatchSummary:
    """What a batch did."""

    done: int
    abandoned: int
    """Jobs that were stopped under way."""
    interrupted: bool
    """Whether a stop left jobs undone."""
    elapsed_s: float
    peak: int
    """Largest number of jobs that ran at once."""


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
    """Call every job, at most `concurrency` at once.

    `on_result` gets each result as it arrives, not in order. At most `concurrency` jobs wait in
    memory; a plain iterable is read in a thread, so that it may load files. An exception from
    `call`, `on_result` or `jobs` stops the batch like a Ctrl-C, and is raised when the calls under
    way have ended. A failure of one job alone must therefore be a result.
    """
    runner = _Runner(call, max(1, concurrency), total, on_result, on_progress)
    feed = asyncio.create_task(runner.feed(jobs, max(1, concurrency)))
    try:
        if on_progress is not None:
            on_progress(Progress(0, total))
        with _interrupts(runner) if signals else contextlib.nullcontext():
            return await runner.run()
    finally:
        feed.cancel()
        await asyncio.gather(feed, return_exceptions=True)


class _Runner(Generic[T, R]):
    """The state of one batch: `feed` fills its queue while `run` starts jobs and takes results."""

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
        self._exhausted = False
        """All jobs are in the queue."""
        self._stopping = False
        """No more jobs start."""
        self._cancelled = False
        """Jobs under way were cancelled."""
        self._error: BaseException | None = None
        self._done = self._abandoned = self._peak = 0
        self._started = time.monotonic()

    def stop(self) -> None:
        """Start no more jobs; a second time, abandon those that run."""
        if self._stopping and not self._cancelled:
            self._cancelled = True
            for task in self._running:
                task.cancel()
        self._stopping = True
        self._wake.set()

    async def feed(self, jobs: Iterable[T] | AsyncIterable[T], ahead: int) -> None:
        """Queue the jobs, at most `ahead` at a time."""
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
        """Work until all jobs are done or the batch was stopped."""
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
        undone = len(self._queue) > 0 or not self._exhausted or self._abandoned > 0
        return BatchSummary(
            done=self._done,
            abandoned=self._abandoned,
            interrupted=self._stopping and undone,
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
            except Exception as failure:
                self._fail(failure)

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
        remaining = iter(jobs)
        while (item := await asyncio.to_thread(_next, remaining)) is not None:
            yield item[0]


def _next(jobs: Iterator[T]) -> tuple[T] | None:
    """The next job in a tuple, as a job may itself be None; None at the end.

    StopIteration cannot be raised out of a thread's future.
    """
    for job in jobs:
        return (job,)
    return None


def run_sync(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine and return its result, also inside a running event loop (notebooks)."""
    results: list[R] = []

    async def keep_result() -> None:
        # Not returned as the task's result: when `asyncio.run` restores the handler of the
        # interrupt signal, `signal` writes out the whole task.
        results.append(await work)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(keep_result())
        return results[0]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, keep_result()).result()
    return results[0]


@contextlib.contextmanager
def _interrupts(runner: _Runner[Any, Any]) -> Iterator[None]:
    """Let Ctrl-C stop the runner; where that cannot be handled, it keeps its usual meaning."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, runner.stop)
    except (NotImplementedError, RuntimeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, previous)
