"""The OpenAI-compatible endpoints of provider batches over HTTP: files, batches, contents. Nothing
here knows judges.

    POST /files   POST /batches   GET /batches   GET /batches/{id}   GET /files/{id}/content

Reading and uploading are tried again as often as `Retry` says. Creating a batch is paid for, so it
is never simply repeated: after an answer that leaves it open (a lost connection, a server error)
the provider's list is searched first.

Ours, over httpx: litellm's `create_batch` tries again by itself unless told otherwise and does not
say whether a lost request may have been carried out, and its `file_content` reads a file of any
size into memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
)

from ...errors import JudgeError
from ...trajectories.reading.json_bytes import loads
from ..judges.api.http_clients import MAX_BYTES_EXTENSION, limit_response
from ..judges.api.transport import Retry, redact, retry_after, wait_seconds

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

T = TypeVar("T")

MARK = "ambjudge_batch"
"""Key of our own id in a batch's metadata."""
FINAL = frozenset({"completed", "failed", "expired", "cancelled"})
_OTHER_NAMES = {"succeeded": "completed", "canceled": "cancelled"}
_TIMEOUT_S = 120.0
_LONGEST_S = 1800.0
"""Of one request with its answer, however it drips: an upload or an output may have hundreds of
megabytes."""
_PAGES = 10
_PAGE = 100


class NotThere(Exception):
    """404, 405 or 501: no such thing, or no such endpoint."""


class InDoubt(JudgeError):
    """A batch was perhaps created: the answer was lost, and the provider's list cannot be searched."""


class _Busy(Exception):
    """Worth another try. `unclear`: the request may have been carried out all the same."""

    def __init__(self, message: str, after_s: float | None = None, unclear: bool = False) -> None:
        super().__init__(message)
        self.message, self.after_s, self.unclear = message, after_s, unclear


def _reasons(errors: Any) -> tuple[str, ...]:
    lines = errors.get("data") if isinstance(errors, dict) else errors
    said = [
        redact(
            str(entry.get("message") or entry.get("code") or "")
            if isinstance(entry, dict)
            else str(entry)
        )
        for entry in (lines if isinstance(lines, list) else ())
    ]
    return tuple(filter(None, said))[:5]


_Word = Annotated[
    str | None, BeforeValidator(lambda value: value if isinstance(value, str) and value else None)
]


class ProviderBatch(BaseModel):
    """What the provider says about a batch. `status` is one of FINAL, or anything else while it is
    under way."""

    model_config = ConfigDict(frozen=True)

    id: Annotated[StrictStr, Field(min_length=1)]
    status: Annotated[
        StrictStr, AfterValidator(lambda said: redact(_OTHER_NAMES.get(said, said))[:40])
    ]
    input_file_id: _Word = None
    output_file_id: _Word = None
    error_file_id: _Word = None
    mark: Annotated[_Word, Field(validation_alias=AliasPath("metadata", MARK))] = None
    errors: Annotated[tuple[str, ...], BeforeValidator(_reasons)] = ()
    """Why a batch failed as a whole, one line each."""

    @property
    def final(self) -> bool:
        return self.status in FINAL


@asynccontextmanager
async def endpoint(
    base: str, key: str | None, name: str, retry: Retry
) -> AsyncIterator[BatchEndpoint]:
    """A provider's batch endpoints while they are used. `name` is how messages call the judge."""
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it notes every address
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    async with httpx.AsyncClient(
        headers=headers, timeout=_TIMEOUT_S, event_hooks={"response": [limit_response]}
    ) as client:
        yield BatchEndpoint(client, base, key, name, retry)


class BatchEndpoint:
    """A provider's batch endpoints (`endpoint`)."""

    def __init__(
        self, client: httpx.AsyncClient, base: str, key: str | None, name: str, retry: Retry
    ) -> None:
        self._client, self._base, self._key, self._name, self._retry = (
            client,
            base,
            key,
            name,
            retry,
        )

    async def upload(self, path: Path) -> str:
        """Upload an input file; returns the provider's id of it. JudgeError when there is no such
        endpoint."""

        async def send() -> Any:
            with path.open("rb") as stream:
                files = {"file": ("ambjudge.jsonl", stream, "application/jsonl")}
                return await self._once("POST", "files", files=files, data={"purpose": "batch"})

        try:
            answer = await self._retried(send)
        except NotThere:
            raise self._no_batches() from None
        if not isinstance(file_id := answer.get("id"), str) or not file_id:
            raise JudgeError(f"{self._name}: the provider's answer has no `id`", "check --api-base")
        return file_id

    async def create(self, file_id: str, mark: str, settle_s: float) -> ProviderBatch:
        """Create the batch with this mark, at most once. `settle_s`: how long the provider's list
        may lag behind.

        InDoubt when it cannot be known whether it was created; JudgeError when it was not.
        """
        body = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {MARK: mark},
        }

        async def send() -> ProviderBatch:
            try:
                # Providers that know the header answer a second request with the first batch.
                answer = await self._once(
                    "POST", "batches", json=body, headers={"Idempotency-Key": mark}
                )
                return _batch(answer)
            except (_Busy, ValueError) as busy:
                if isinstance(busy, _Busy) and not busy.unclear:
                    raise
                log.info("creating a batch ended in doubt (%s); looking for it", busy)
                await asyncio.sleep(settle_s)
                try:
                    found = await self.find(mark, file_id)
                except (NotThere, JudgeError):
                    raise InDoubt(
                        f"{self._name}: creating a batch ended in doubt: {busy}",
                        "run the same command again: it looks for the batch first",
                    ) from None
                if found is None:
                    raise _Busy(str(busy)) from None
                return found

        try:
            return await self._retried(send)
        except NotThere:
            raise self._no_batches() from None

    async def find(self, mark: str, file_id: str | None) -> ProviderBatch | None:
        """The batch with this mark or input file among the provider's newest; NotThere when it
        keeps no list."""
        after = ""
        for _ in range(_PAGES):
            page = await self._get(
                f"batches?limit={_PAGE}" + (f"&after={quote(after, safe='')}" if after else "")
            )
            entries = page.get("data")
            for entry in entries if isinstance(entries, list) else ():
                try:
                    batch = _batch(entry)
                except ValueError:
                    continue
                if batch.mark == mark or (file_id is not None and batch.input_file_id == file_id):
                    return batch
                after = batch.id
            if not page.get("has_more") or not entries:
                return None
        return None

    async def get(self, batch_id: str) -> ProviderBatch:
        """What has become of a batch; NotThere when the provider does not know it."""
        try:
            return _batch(await self._get(f"batches/{quote(batch_id, safe='')}"))
        except ValueError as error:
            raise JudgeError(
                f"{self._name}: the provider's answer is no batch: {error}", "check --api-base"
            ) from None

    async def delete_file(self, file_id: str) -> None:
        """Delete a file that is of no use; a failure is only logged."""
        try:
            await self._once("DELETE", f"files/{quote(file_id, safe='')}")
        except (NotThere, _Busy, JudgeError) as error:
            log.info("a file could not be deleted at the provider: %s", error)

    async def download(self, file_id: str, to: BinaryIO, most: int) -> None:
        """Write a file's content to `to`. NotThere when it is gone, JudgeError when it is longer
        than `most` bytes."""

        async def read() -> None:
            import httpx

            to.seek(0)
            to.truncate()
            path = f"files/{quote(file_id, safe='')}/content"
            try:
                async with self._client.stream(
                    "GET", f"{self._base}/{path}", extensions={MAX_BYTES_EXTENSION: most + 1}
                ) as response:
                    if response.status_code != 200:
                        await response.aread()
                    self._check(response)
                    size = 0
                    async for chunk in response.aiter_bytes():
                        size += len(chunk)
                        if size > most:
                            raise JudgeError(
                                f"{self._name}: the provider's output is longer than {most:,}"
                                " bytes",
                                "it cannot be the answer to this batch; ask the provider",
                            )
                        to.write(chunk)
            except httpx.HTTPError as error:
                raise self._lost(error) from None

        await self._retried(read)
        to.seek(0)

    async def _get(self, path: str) -> dict[str, Any]:
        return await self._retried(lambda: self._once("GET", path))

    async def _once(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        import httpx

        try:
            response = await self._client.request(method, f"{self._base}/{path}", **more)
        except httpx.InvalidURL as error:
            raise JudgeError(
                f"{self._name}: {redact(str(error), self._key)}", "check --api-base"
            ) from None
        except httpx.HTTPError as error:
            raise self._lost(error) from None
        self._check(response)
        try:
            data = loads(response.text)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise _Busy("the provider's answer is no JSON object", unclear=True)
        return data

    def _lost(self, error: Exception) -> _Busy | JudgeError:
        import httpx

        said = redact(f"{type(error).__name__}: {error}", self._key)
        if isinstance(error, httpx.UnsupportedProtocol):
            return JudgeError(f"{self._name}: {said}", "check --api-base")
        return _Busy(
            said,
            unclear=not isinstance(
                error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
            ),
        )

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status < 300:
            return
        said = redact(_message(response), self._key)
        if status in (404, 405, 501):
            raise NotThere(said)
        if status in (401, 403):
            raise JudgeError(
                f"{self._name}: the provider refused the credentials ({status})",
                "set OPENAI_API_KEY to a key that may use batches",
            )
        if "insufficient_quota" in said or status == 402:
            raise JudgeError(
                f"{self._name}: the account's quota is used up", "check the provider's billing"
            )
        if status in (408, 409, 425, 429) or status >= 500:
            unclear = status not in (425, 429)
            raise _Busy(
                f"provider failed ({status}): {said}", retry_after(response.headers), unclear
            )
        raise JudgeError(
            f"{self._name}: the provider rejected the request ({status}): {said}",
            "check the model's name, --api-base and the provider's limits for batches",
        )

    async def _retried(self, call: Callable[[], Awaitable[T]]) -> T:
        import tenacity

        retry = self._retry

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return wait_seconds(state, retry, error.after_s if isinstance(error, _Busy) else None)

        tries = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(retry.attempts)
            | tenacity.stop_before_delay(retry.total_s),
            wait=wait,
            retry=tenacity.retry_if_exception_type(_Busy),
            reraise=True,
        )

        # tenacity awaits what is declared as a coroutine, not what merely returns one
        async def run() -> T:
            try:
                return await asyncio.wait_for(call(), _LONGEST_S)
            except TimeoutError:
                raise _Busy(f"no whole answer within {_LONGEST_S:.0f} s", unclear=True) from None

        try:
            return await tries(run)
        except _Busy as busy:
            raise JudgeError(
                f"{self._name}: {busy.message}",
                "run the same command again later: nothing is lost or asked twice",
            ) from None

    def _no_batches(self) -> JudgeError:
        return JudgeError(
            f"{self._name}: the provider has no batch endpoint at this address",
            "leave out --batch, or give the --api-base of one that has",
        )


def _batch(data: Any) -> ProviderBatch:
    try:
        return ProviderBatch.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _message(response: httpx.Response) -> str:
    """The error's code and message, or the beginning of whatever was sent instead."""
    try:
        error = loads(response.text)["error"]
        return f"{error.get('code') or ''} {error['message']}".strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return response.text[:200]
