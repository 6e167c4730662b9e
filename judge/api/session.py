"""The HTTP client of calls to OpenAI-compatible addresses: httpx, with a limit on what an answer may hold.

Any address can be named, so whoever listens there may send without end; `Retry.total_s` bounds the time, this the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer as sent; a long reply has a hundredth."""
MAX_PACKED = 256 * 1024
"""Of one that comes packed although that was not asked for: deflate shrinks up to a thousandfold."""


@cache
def _bounded() -> Any:
    import httpx

    class Bounded(httpx.AsyncByteStream):
        """The stream of an answer, ended with an error beyond `most` bytes."""

        def __init__(self, inner: Any, most: int) -> None:
            self.inner, self.most = inner, most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self.inner:
                self.most -= len(part)
                if self.most < 0:
                    raise httpx.RemoteProtocolError("the answer does not end")
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Bounded


async def _limit(response: Any) -> None:
    packed = response.headers.get("content-encoding", "identity").lower() != "identity"
    response.stream = _bounded()(response.stream, MAX_PACKED if packed else MAX_ANSWER)


@cache
def _certificates() -> Any:
    import httpx

    return httpx.create_ssl_context()


def _new() -> Any:
    import httpx

    return httpx.AsyncClient(
        event_hooks={"response": [_limit]}, headers={"Accept-Encoding": "identity"}, follow_redirects=True,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100), verify=_certificates(),
    )  # fmt: skip


_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
_IDLE: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Any]] = WeakKeyDictionary()


def client() -> Any:
    """The client of this event loop (connections belong to theirs), for litellm, which wants one for all."""
    loop = asyncio.get_running_loop()
    if loop not in _SHARED:
        _SHARED[loop] = _new()
    return _SHARED[loop]


@contextmanager
def own_client() -> Iterator[Any]:
    """A client of this event loop that nobody else uses meanwhile, so with one connection: one with a hundred looks at each
    of them at the beginning and the end of every request, which costs more than the request."""
    idle = _IDLE.setdefault(asyncio.get_running_loop(), [])
    mine = idle.pop() if idle else _new()
    try:
        yield mine
    finally:
        idle.append(mine)
