"""Work of one kind that many ask for at the same time, done in one go: the answers of a moment
share a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ...errors import StoreError

T = TypeVar("T")
R = TypeVar("R")

_MOST = 100
"""At once, so that a transaction stays short."""


class Together(Generic[T, R]):
    """`work` takes everything that was asked for while it was last under way, in a thread, and
    gives a result for each.

    Where it fails for several, each is tried alone: nobody's work is lost for the fault of
    another's.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]]) -> None:
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def do(self, one: T) -> R:
        """The result for one, when it is done."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, done))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._go())
        return await done

    async def _go(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            results = await asyncio.to_thread(self._all, [one for one, _ in now])
            for (_, done), result in zip(now, results, strict=True):
                if done.done():  # who asked has gone
                    continue
                if isinstance(result, Exception):
                    done.set_exception(result)
                else:
                    done.set_result(result)

    def _all(self, many: Sequence[T]) -> Sequence[R | Exception]:
        try:
            return self._work(many)
        except StoreError as error:
            return (
                [error]
                if len(many) == 1
                else [result for one in many for result in self._all([one])]
            )
        except Exception as error:
            return [error] * len(many)
