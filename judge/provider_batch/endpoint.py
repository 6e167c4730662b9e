"""A provider's batch endpoint over HTTP (OpenAI-compatible); nothing here knows judges.

    POST /files   POST /batches   GET /batches   GET /batches/{id}   GET /files/{id}/content

Reading and uploading are tried again as often as `Retry` says. Creating a batch is paid for, so it
is never simply repeated: after an answer that leaves it open (a lost connection, a server error)
the provider's list is searched first.

This is httpx instead of litellm, whose `create_batch` tries again by itself unless told otherwise
and does not say whether a lost request may have been carried out, and whose `file_content` reads a
file of any size into memory.
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
FINAL_STATUSES = frozenset({"completed", "failed", "expired", "cancelled"})
_STATUS_SYNONYMS = {"succeeded": "completed", "canceled": "cancelled"}
_TIMEOUT_S = 120.0
_MAX_REQUEST_S = 1800.0
"""Of one request with its answer, even if it drips: an upload or an output may have hundreds of
megabytes."""
_MAX_PAGES = 10
_PAGE_SIZE = 100
_MAX_ERRORS = 5


class NotThere(Exception):
    """404, 405 or 501: no such thing, or no such endpoint."""


class BatchInDoubt(JudgeError):
    """A batch may have been created: the answer was lost, and the provider's list has no search."""


class _TryAgain(Exception):
    """A failed request that is worth another try."""

    def __init__(
        self, message: str, after_s: float | None = None, maybe_done: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.after_s = after_s
        """The wait that the provider asks for."""
        self.maybe_done = maybe_done
        """Whether the provider may have carried the request out all the same."""


def _error_lines(errors: Any) -> tuple[str, ...]:
    """The errors of a batch as lines without secrets, whatever shape the provider gives them."""
    entries = errors.get("data") if isinstance(errors, dict) else errors
    if not isinstance(entries, list):
        return ()
    lines = []
    for entry in entries:
        if isinstance(entry, dict):
            entry = entry.get("message") or entry.get("code") or ""
        lines.append(redact(str(entry)))
    return tuple(line for line in lines if line)[:_MAX_ERRORS]


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _clean_status(status: str) -> str:
    return redact(_STATUS_SYNONYMS.get(status, status))[:40]


_OptionalText = Annotated[str | None, BeforeValidator(_text_or_none)]


class ProviderBatch(BaseModel):
    """A batch as the provider describes it."""

    model_config = ConfigDict(frozen=True)

    id: Annotated[StrictStr, Field(min_length=1)]
    status: Annotated[StrictStr, AfterValidator(_clean_status)]
    """One of FINAL_STATUSES, or anything else while the batch is in progress."""
    input_file_id: _OptionalText = None
    output_file_id: _OptionalText = None
    error_file_id: _OptionalText = None
    mark: Annotated[_OptionalText, Field(validation_alias=AliasPath("metadata", MARK))] = None
    errors: Annotated[tuple[str, ...], BeforeValidator(_error_lines)] = ()
    """Why the batch failed as a whole, one line each."""

    @property
    def final(self) -> bool:
        """Whether the batch has ended."""
        return self.status in FINAL_STATUSES


@asynccontextmanager
async def open_endpoint(
    address: str, key: str | None, judge_name: str, retry: Retry
) -> AsyncIterator[BatchEndpoint]:
    """A provider's batch endpoint at this address, while it is used.

    `key`: the API key, None for none. Error messages begin with `judge_name`.
    """
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # It logs every address.
    headers = {"Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    async with httpx.AsyncClient(
        headers=headers, timeout=_TIMEOUT_S, event_hooks={"response": [limit_response]}
    ) as client:
        yield BatchEndpoint(client, address, key, judge_name, retry)


class BatchEndpoint:
    """A provider's batch endpoint (`open_endpoint`)."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        address: str,
        key: str | None,
        judge_name: str,
        retry: Retry,
    ) -> None:
        self._client, self._address, self._key = client, address, key
        self._judge_name, self._retry = judge_name, retry

    async def upload(self, path: Path) -> str:
        """Upload an input file; returns the provider's id of it.

        Raises JudgeError if there is no such endpoint or the provider refuses.
        """

        async def send() -> Any:
            with path.open("rb") as stream:
                files = {"file": ("ambjudge.jsonl", stream, "application/jsonl")}
                return await self._request("POST", "files", files=files, data={"purpose": "batch"})

        try:
            answer = await self._with_retries(send)
        except NotThere:
            raise self._no_batches() from None
        file_id = answer.get("id")
        if not isinstance(file_id, str) or not file_id:
            raise JudgeError(
                f"{self._judge_name}: the provider's answer has no `id`", "check --api-base"
            )
        return file_id

    async def create(self, file_id: str, mark: str, settle_s: float) -> ProviderBatch:
        """Create the batch with this mark, at most once.

        `settle_s`: how long the provider's list may lag behind. Raises BatchInDoubt if it cannot be
        known whether the batch was created, JudgeError if it was not.
        """
        body = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {MARK: mark},
        }

        async def create_once() -> ProviderBatch:
            try:
                # Providers that know this header answer a second request with the first batch.
                headers = {"Idempotency-Key": mark}
                answer = await self._request("POST", "batches", json=body, headers=headers)
                return _parse_batch(answer)
            except _TryAgain as error:
                if not error.maybe_done:
                    raise
                return await self._find_created(mark, file_id, settle_s, str(error))
            except ValueError as error:
                return await self._find_created(mark, file_id, settle_s, str(error))

        try:
            return await self._with_retries(create_once)
        except NotThere:
            raise self._no_batches() from None

    async def _find_created(
        self, mark: str, file_id: str, settle_s: float, problem: str
    ) -> ProviderBatch:
        """The batch of a creation that ended in doubt; _TryAgain if it was not created."""
        log.info("creating a batch ended in doubt (%s); looking for it", problem)
        await asyncio.sleep(settle_s)
        try:
            batch = await self.find(mark, file_id)
        except (NotThere, JudgeError):
            raise BatchInDoubt(
                f"{self._judge_name}: creating a batch ended in doubt: {problem}",
                "run the same command again: it looks for the batch first",
            ) from None
        if batch is None:
            raise _TryAgain(problem)
        return batch

    async def find(self, mark: str, file_id: str | None) -> ProviderBatch | None:
        """The batch with this mark or input file among the provider's newest.

        Raises NotThere if the provider keeps no list.
        """
        after = ""
        for _ in range(_MAX_PAGES):
            path = f"batches?limit={_PAGE_SIZE}"
            if after:
                path += f"&after={quote(after, safe='')}"
            page = await self._get(path)
            entries = page.get("data")
            for entry in entries if isinstance(entries, list) else ():
                try:
                    batch = _parse_batch(entry)
                except ValueError:
                    continue
                if batch.mark == mark or (file_id is not None and batch.input_file_id == file_id):
                    return batch
                after = batch.id
            if not page.get("has_more") or not entries:
                return None
        return None

    async def get(self, batch_id: str) -> ProviderBatch:
        """The state of a batch; NotThere if the provider does not know it."""
        try:
            return _parse_batch(await self._get(f"batches/{quote(batch_id, safe='')}"))
        except ValueError as error:
            raise JudgeError(
                f"{self._judge_name}: the provider's answer is not a batch: {error}",
                "check --api-base",
            ) from None

    async def delete_file(self, file_id: str) -> str | None:
        """Delete a file that is of no use any more; the problem if that failed.

        A file that is not there is deleted.
        """
        import httpx

        url = f"{self._address}/files/{quote(file_id, safe='')}"
        try:
            self._check(await self._client.delete(url))
        except NotThere:
            return None
        except (_TryAgain, JudgeError) as error:
            return str(error)
        except httpx.HTTPError as error:
            return str(self._connection_failure(error))
        return None

    async def download(self, file_id: str, target: BinaryIO, max_bytes: int) -> None:
        """Write a file's content to `target`.

        Raises NotThere if it is gone, JudgeError if it is longer than `max_bytes`.
        """

        async def read() -> None:
            import httpx

            target.seek(0)
            target.truncate()
            url = f"{self._address}/files/{quote(file_id, safe='')}/content"
            extensions = {MAX_BYTES_EXTENSION: max_bytes + 1}
            try:
                async with self._client.stream("GET", url, extensions=extensions) as response:
                    if response.status_code != 200:
                        await response.aread()
                    self._check(response)
                    size = 0
                    async for chunk in response.aiter_bytes():
                        size += len(chunk)
                        if size > max_bytes:
                            raise JudgeError(
                                f"{self._judge_name}: the provider's output is longer than"
                                f" {max_bytes:,} bytes",
                                "it cannot be the answer to this batch; ask the provider",
                            )
                        target.write(chunk)
            except httpx.HTTPError as error:
                raise self._connection_failure(error) from None

        await self._with_retries(read)
        target.seek(0)

    # Requests.

    async def _get(self, path: str) -> dict[str, Any]:
        return await self._with_retries(lambda: self._request("GET", path))

    async def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """One request; returns the JSON object of its answer."""
        import httpx

        try:
            response = await self._client.request(method, f"{self._address}/{path}", **options)
        except httpx.InvalidURL as error:
            raise JudgeError(
                f"{self._judge_name}: {redact(str(error), self._key)}", "check --api-base"
            ) from None
        except httpx.HTTPError as error:
            raise self._connection_failure(error) from None
        self._check(response)
        try:
            data = loads(response.text)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise _TryAgain("the provider's answer is not a JSON object", maybe_done=True)
        return data

    def _connection_failure(self, error: Exception) -> _TryAgain | JudgeError:
        import httpx

        reason = redact(f"{type(error).__name__}: {error}", self._key)
        if isinstance(error, httpx.UnsupportedProtocol):
            return JudgeError(f"{self._judge_name}: {reason}", "check --api-base")
        never_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        return _TryAgain(reason, maybe_done=not isinstance(error, never_sent))

    def _check(self, response: httpx.Response) -> None:
        """Raise the error that an answer's status means; nothing for success."""
        status = response.status_code
        if status < 300:
            return
        reason = redact(_error_text(response), self._key)
        if status in (404, 405, 501):
            raise NotThere(reason)
        if status in (401, 403):
            raise JudgeError(
                f"{self._judge_name}: the provider refused the credentials ({status})",
                "set OPENAI_API_KEY to a key that may use batches",
            )
        if "insufficient_quota" in reason or status == 402:
            raise JudgeError(
                f"{self._judge_name}: the account's quota is used up",
                "check the provider's billing",
            )
        # 425 and 429 refuse a request before anything is done; the others may have done it.
        if status in (408, 409, 425, 429) or status >= 500:
            raise _TryAgain(
                f"provider failed ({status}): {reason}",
                after_s=retry_after(response.headers),
                maybe_done=status not in (425, 429),
            )
        raise JudgeError(
            f"{self._judge_name}: the provider rejected the request ({status}): {reason}",
            "check the model's name, --api-base and the provider's limits for batches",
        )

    async def _with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call again after every _TryAgain, as often as `Retry` says; then JudgeError."""
        import tenacity

        retry = self._retry

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            requested_s = error.after_s if isinstance(error, _TryAgain) else None
            return wait_seconds(state, retry, requested_s)

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(retry.attempts)
            | tenacity.stop_before_delay(retry.total_s),
            wait=wait,
            retry=tenacity.retry_if_exception_type(_TryAgain),
            reraise=True,
        )

        # tenacity awaits what is declared as a coroutine, not what merely returns one.
        async def call_within_limit() -> T:
            try:
                return await asyncio.wait_for(call(), _MAX_REQUEST_S)
            except TimeoutError:
                raise _TryAgain(
                    f"no complete answer within {_MAX_REQUEST_S:.0f} s", maybe_done=True
                ) from None

        try:
            return await retrying(call_within_limit)
        except _TryAgain as error:
            raise JudgeError(
                f"{self._judge_name}: {error.message}",
                "run the same command again later: nothing is lost or asked twice",
            ) from None

    def _no_batches(self) -> JudgeError:
        return JudgeError(
            f"{self._judge_name}: the provider has no batch endpoint at this address",
            "leave out --batch, or give the --api-base of one that has",
        )


def _parse_batch(data: Any) -> ProviderBatch:
    """A batch from the provider's JSON; ValueError if it is none."""
    try:
        return ProviderBatch.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"]))
        raise ValueError(f"{location}: {first['msg']}") from None


def _error_text(response: httpx.Response) -> str:
    """The error's code and message, or the beginning of whatever was sent instead."""
    try:
        error = loads(response.text)["error"]
        return f"{error.get('code') or ''} {error['message']}".strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return response.text[:200]
