"""Which runs are to be worked on, and the loop that works on each of them in order."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Generic, TypeVar

from ..errors import AmbjudgeError, ConfigError, InputError, JudgeError, StoreError, unexpected
from ..trajectories.reading.layout import find_conversations
from ..trajectories.reading.remote import RemotePath, find_runs, is_address
from .runner import BatchSummary, Progress, run_batch

R = TypeVar("R")

_MAX_LISTED = 100_000
"""Runs up to which a collection is listed before work begins, so that progress has a total."""
_LOOKUP_SIZE = 200
"""Runs that are looked up in the store at a time."""
_AHEAD = 4
"""Runs read ahead of the oldest unfinished one, in multiples of the concurrency: results are handed
on in order, and finished ones must not pile up behind a slow run."""


@dataclass(frozen=True)
class RunSource:
    """One run to work on: its conversation file, or a path without one and the error to report."""

    path: Path
    error: AmbjudgeError | None = None


def run_sources(paths: Iterable[str | Path | RunSource]) -> Iterator[RunSource]:
    """Every conversation file at or below the paths and addresses.

    A path without any yields one source with its error. A RunSource, or an address that was listed
    already, is passed on unchanged.
    """
    for path in paths:
        if isinstance(path, RunSource):
            yield path
        elif isinstance(path, RemotePath):
            yield RunSource(path)
        else:
            yield from _sources_below(path)


def _sources_below(path: str | Path) -> Iterator[RunSource]:
    remote = is_address(path)
    conversations = find_runs(str(path)) if remote else find_conversations(Path(path))
    try:
        for conversation in conversations:
            yield RunSource(conversation)
    except InputError as error:
        yield RunSource(RemotePath(path) if remote else Path(path), error)


async def for_each_run(
    paths: Iterable[str | Path | RunSource],
    work: Callable[[Path], Awaitable[R]],
    take: Callable[[Path, R | AmbjudgeError], None],
    *,
    concurrency: int,
    on_progress: Callable[[Progress], None] | None = None,
    signals: bool = True,
    look_up: Callable[[Sequence[Path]], Mapping[Path, R]] | None = None,
) -> BatchSummary:
    """Do `work` on every run at or below the paths and hand each result to `take`, in their order.

    `look_up` returns the results that exist already among some hundred paths at a time; no work is
    done on those runs. The paths are listed first, so that progress has a total, unless there are
    more than a hundred thousand.

    An error belongs to its run and is handed on as its result, except where a judge, a store or
    settings cannot be used: that ends everything. The first Ctrl-C waits for the runs under way;
    results behind an unfinished run are then handed on as they are.
    """
    sources = run_sources(paths)
    listed = list(islice(sources, _MAX_LISTED + 1))
    total = len(listed) if len(listed) <= _MAX_LISTED else None
    in_order = _InOrder(take, limit=concurrency * _AHEAD)
    reused = 0

    def report(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(replace(progress, done=progress.done + reused, reused=reused))

    async def jobs() -> AsyncIterator[tuple[int, RunSource]]:
        nonlocal reused
        numbered = enumerate(chain(listed, sources))
        while chunk := list(islice(numbered, _LOOKUP_SIZE)):
            existing: Mapping[Path, R] = {}
            if look_up is not None:
                existing = look_up([source.path for _, source in chunk if source.error is None])
            for number, source in chunk:
                # Waits here, not in `call`: a run that is not started takes no memory.
                await in_order.wait_for_room()
                if source.error is None and source.path in existing:
                    in_order.add(number, source.path, existing[source.path])
                    reused += 1
                else:
                    yield number, source
            if existing:
                report(Progress(0, total))
                await asyncio.sleep(0)  # so that a Ctrl-C is noticed

    async def call(job: tuple[int, RunSource]) -> R | AmbjudgeError:
        return await _result_or_error(job[1], work)

    def collect(job: tuple[int, RunSource], result: R | AmbjudgeError) -> None:
        number, source = job
        in_order.add(number, source.path, result)

    summary = await run_batch(
        jobs(),
        call,
        concurrency=concurrency,
        total=total,
        on_result=collect,
        on_progress=report,
        signals=signals,
    )
    in_order.flush()
    return replace(summary, done=summary.done + reused)


async def _result_or_error(
    source: RunSource, work: Callable[[Path], Awaitable[R]]
) -> R | AmbjudgeError:
    if source.error is not None:
        return source.error
    try:
        return await work(source.path)
    except (JudgeError, StoreError, ConfigError):
        raise
    except AmbjudgeError as error:
        return error
    except Exception as error:
        return unexpected(error, source.path)


class _InOrder(Generic[R]):
    """Hands results on in the order of their numbers, in whatever order they arrive."""

    def __init__(self, take: Callable[[Path, R | AmbjudgeError], None], limit: int) -> None:
        """`limit`: results that may wait for the oldest unfinished run."""
        self._take = take
        self._room = asyncio.Semaphore(limit)
        self._waiting: dict[int, tuple[Path, R | AmbjudgeError]] = {}
        self._next = 0

    async def wait_for_room(self) -> None:
        await self._room.acquire()

    def add(self, number: int, path: Path, result: R | AmbjudgeError) -> None:
        self._waiting[number] = (path, result)
        while self._next in self._waiting:
            self._take(*self._waiting.pop(self._next))
            self._next += 1
            self._room.release()

    def flush(self) -> None:
        """Hand on what waits behind an unfinished run."""
        for number in sorted(self._waiting):
            self._take(*self._waiting.pop(number))
