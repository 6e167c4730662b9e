"""Group commit: what many tasks ask for at the same time shares one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ...errors import StoreError

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_ITEMS = 100
"""Items of one group, so that a transaction stays short."""


class GroupCommit(Generic[Item, Result]):
    """Calls `work` with all items that were submitted while its last call ran.

    `work` runs in a thread and returns one result an item. If it fails for a group, each item is
    tried alone, so that no task fails because of another's item.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Result]]) -> None:
        self._work = work
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """The result for one item, once it is there; raises what `work` raised for it."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work_until_empty())
        return await result

    async def _work_until_empty(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:_MAX_ITEMS], self._waiting[_MAX_ITEMS:]
            outcomes = await asyncio.to_thread(self._outcomes, [item for item, _ in group])
            for (_, result), outcome in zip(group, outcomes, strict=True):
                if result.done():  # The task that submitted it was cancelled.
                    continue
                if isinstance(outcome, Exception):
                    result.set_exception(outcome)
                else:
                    result.set_result(outcome)

    def _outcomes(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        try:
            return self._work(items)
        except StoreError as error:
            if len(items) == 1:
                return [error]
            return [outcome for item in items for outcome in self._outcomes([item])]
        except Exception as error:
            return [error] * len(items)
