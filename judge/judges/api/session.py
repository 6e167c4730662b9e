"""The HTTP clients of all calls, ours and those that litellm makes: httpx, with a limit on what an
answer may hold.

Any address can be named, so whoever listens there may send without end; `Retry.total_s` bounds the
time, this the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from ....trajectories.reading.json_bytes import loads

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer as sent; a long reply has a hundredth."""
MAX_PACKED = 64 * 1024
"""Of one that comes packed although that was not asked for: deflate shrinks up to a thousandfold.
"""
MAX_ERROR = 64 * 1024
"""Of what is no success: its beginning says what went wrong, and litellm searches all of it with
slow patterns."""


@cache
def _bounded() -> Any:
    import httpx

    class Bounded(httpx.AsyncByteStream):
        """The stream of an answer, ended beyond `most` bytes, with an error where it must be
        `whole`."""

        def __init__(self, inner: Any, most: int, whole: bool) -> None:
            self.inner, self.most, self.whole = inner, most, whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self.inner:
                self.most -= len(part)
                if self.most < 0 and self.whole:
                    raise httpx.RemoteProtocolError("the answer does not end")
                yield part
                if self.most < 0:
                    return

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Bounded


MOST = "ambjudge_most"
"""Extension of a request whose answer may be longer than `MAX_ANSWER`: its bytes."""


async def limit(response: Any) -> None:
    """Hook of an httpx client for every answer: what is too long is an error, or cut where it is
    one already."""
    packed = response.headers.get("content-encoding", "identity").lower() != "identity"
    most = response.request.extensions.get(MOST, MAX_PACKED if packed else MAX_ANSWER)
    most = min(most, MAX_ERROR) if response.is_error else most
    response.stream = _bounded()(response.stream, most, not response.is_error)


async def _limit_json(response: Any) -> None:
    """`limit`, and what claims to be an answer is JSON of bounded depth and number of values before
    litellm sees it."""
    import httpx

    await limit(response)
    if response.is_success:
        try:
            loads((await response.aread()).decode("utf-8", "replace"))
        except ValueError as error:
            raise httpx.DecodingError(
                f"the answer cannot be read: {str(error)[:100]}", request=response.request
            ) from None


@cache
def _certificates() -> Any:
    import httpx

    return httpx.create_ssl_context()


def _new() -> Any:
    import httpx

    return httpx.AsyncClient(
        event_hooks={"response": [limit]},
        headers={"Accept-Encoding": "identity"},
        follow_redirects=True,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        verify=_certificates(),
    )


_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
_IDLE: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Any]] = WeakKeyDictionary()


def client() -> Any:
    """The client of this event loop (connections belong to theirs), for litellm, which wants one
    for all."""
    loop = asyncio.get_running_loop()
    if loop not in _SHARED:
        _SHARED[loop] = _new()
    return _SHARED[loop]


@contextmanager
def own_client() -> Iterator[Any]:
    """A client of this event loop that nobody else uses meanwhile, so with one connection: one with
    a hundred looks at each of them at the beginning and the end of every request, which costs more
    than the request."""
    idle = _IDLE.setdefault(asyncio.get_running_loop(), [])
    mine = idle.pop() if idle else _new()
    try:
        yield mine
    finally:
        idle.append(mine)


@cache
def bound_litellm() -> None:
    """Clients that litellm makes from now on (for Anthropic and others that do not speak as OpenAI
    does) are bounded too.

    It takes no client for all of its providers, so that the place where it makes them is wrapped.
    """
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    made = AsyncHTTPHandler.create_client

    def create(self: Any, *args: Any, **named: Any) -> Any:
        client = made(self, *args, **named)
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [*hooks["response"], _limit_json]}
        client.headers["Accept-Encoding"] = "identity"
        return client

    AsyncHTTPHandler.create_client = create
