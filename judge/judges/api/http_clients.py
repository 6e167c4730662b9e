"""The httpx clients of all calls, our own and litellm's, with a limit on the size of an answer.

Users may name any address, so whoever listens there may send without end. `Retry.total_s` bounds
the time of a call, this module the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ....trajectories.reading.json_bytes import loads

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Of an answer as sent; a long reply has a hundredth of it."""
MAX_COMPRESSED_BYTES = 64 * 1024
"""Of an answer that is compressed although we did not ask for that: deflate shrinks text up to a
thousandfold."""
MAX_ERROR_BYTES = 64 * 1024
"""Of an error: its beginning says what went wrong, and litellm searches all of it with slow
patterns."""
MAX_BYTES_EXTENSION = "ambjudge_max_bytes"
"""Extension of a request that raises `MAX_ANSWER_BYTES` for its answer."""


@cache
def _bounded_stream_class() -> Any:
    import httpx

    class BoundedStream(httpx.AsyncByteStream):
        """The stream of an answer, ended after `max_bytes`.

        `strict`: a longer answer is an error; else it is cut.
        """

        def __init__(self, inner: Any, max_bytes: int, strict: bool) -> None:
            self.inner, self.bytes_left, self.strict = inner, max_bytes, strict

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self.inner:
                self.bytes_left -= len(chunk)
                if self.bytes_left < 0 and self.strict:
                    raise httpx.RemoteProtocolError("the answer does not end")
                yield chunk
                if self.bytes_left < 0:
                    return

        async def aclose(self) -> None:
            await self.inner.aclose()

    return BoundedStream


async def limit_response(response: Any) -> None:
    """Response hook of an httpx client: an answer that is too long fails, an error page is cut."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    default = MAX_ANSWER_BYTES if encoding == "identity" else MAX_COMPRESSED_BYTES
    max_bytes = response.request.extensions.get(MAX_BYTES_EXTENSION, default)
    if response.is_error:
        max_bytes = min(max_bytes, MAX_ERROR_BYTES)
    response.stream = _bounded_stream_class()(
        response.stream, max_bytes, strict=not response.is_error
    )


class RawAnswer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    content: bytes


_ANSWERS: ContextVar[list[RawAnswer] | None] = ContextVar("ambjudge_answers", default=None)


@contextmanager
def keeping_answers() -> Iterator[list[RawAnswer]]:
    """The answers that litellm's clients receive meanwhile, in their order."""
    answers: list[RawAnswer] = []
    token = _ANSWERS.set(answers)
    try:
        yield answers
    finally:
        _ANSWERS.reset(token)


async def _limit_json_response(response: Any) -> None:
    """Response hook of litellm's clients: `limit_response`, and a success must be plain JSON.

    Its nesting depth and its number of values are bounded before litellm sees it. The answer is
    kept for `keeping_answers`.
    """
    import httpx

    await limit_response(response)
    if response.is_redirect:
        return
    content = await response.aread()
    answers = _ANSWERS.get()
    if answers is not None:
        answers.append(RawAnswer(response.status_code, response.headers, content))
    if not response.is_success:
        return
    try:
        loads(content.decode("utf-8", "replace"))
    except ValueError as error:
        raise httpx.DecodingError(
            f"the answer cannot be read: {str(error)[:100]}", request=response.request
        ) from None


@cache
def _ssl_context() -> Any:
    import httpx

    # Loading the certificates takes longer than a request, so all clients share them.
    return httpx.create_ssl_context()


def _new_client(hook: Callable[[Any], Awaitable[None]]) -> Any:
    import httpx

    return httpx.AsyncClient(
        event_hooks={"response": [hook]},
        headers={"Accept-Encoding": "identity"},
        follow_redirects=True,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        verify=_ssl_context(),
    )


# Connections belong to the event loop that opened them, so each loop has clients of its own.
_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
_IDLE: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Any]] = WeakKeyDictionary()


def shared_client() -> Any:
    """The one client of this event loop for litellm, which takes a single client for all calls."""
    loop = asyncio.get_running_loop()
    if loop not in _SHARED:
        _SHARED[loop] = _new_client(_limit_json_response)
    return _SHARED[loop]


@contextmanager
def exclusive_client() -> Iterator[Any]:
    """A client of this event loop that nobody else uses meanwhile, so that it has one connection.

    A client with a hundred connections looks at each of them at the beginning and at the end of
    every request, which costs more than the request.
    """
    idle = _IDLE.setdefault(asyncio.get_running_loop(), [])
    client = idle.pop() if idle else _new_client(limit_response)
    try:
        yield client
    finally:
        idle.append(client)


@cache
def limit_litellm_clients() -> None:
    """Bound the clients that litellm makes from now on, as for Anthropic, which needs its own.

    litellm takes no client of ours for such providers, so the place where it makes them is wrapped.
    """
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    create_unlimited = AsyncHTTPHandler.create_client

    def create_client(self: Any, *args: Any, **keywords: Any) -> Any:
        client = create_unlimited(self, *args, **keywords)
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [*hooks["response"], _limit_json_response]}
        client.headers["Accept-Encoding"] = "identity"
        return client

    AsyncHTTPHandler.create_client = create_client
