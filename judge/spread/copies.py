"""Copies of a run are judged one after another, so that workers do not ask the same twice."""

from __future__ import annotations

import asyncio
import filecmp
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ...trajectories.reading.remote import RemotePath


class Copies:
    """The runs that are being judged. Verdicts of the first copy are in the store for the next."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[tuple[Path, asyncio.Event]]] = defaultdict(list)
        """Conversations by their size, each with the event that it is judged."""

    @asynccontextmanager
    async def turn(self, path: Path) -> AsyncIterator[None]:
        """Wait until no earlier copy of the run at a path is being judged.

        Conversations are compared only if their sizes are equal.
        """
        size = _size_of(path)
        if size is None:
            yield
            return
        same_size = self._by_size[size]
        earlier, own = list(same_size), (path, asyncio.Event())
        same_size.append(own)
        try:
            for other, judged in earlier:
                if not judged.is_set() and await asyncio.to_thread(_are_equal, path, other):
                    await judged.wait()
            yield
        finally:
            own[1].set()
            same_size.remove(own)


def _size_of(path: Path) -> int | None:
    """The size of a file of this machine; None if there is none."""
    try:
        return None if isinstance(path, RemotePath) else path.stat().st_size
    except OSError:
        return None


def _are_equal(first: Path, second: Path) -> bool:
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False
