"""One chat completion: the request, its retries, and what a failure means.

An OpenAI-compatible address that the user named is called with one request of our own, which costs
a quarter of the CPU; everything else goes through litellm, silenced, without its retries and
without its prices. Failures are sorted by what helps against them (`CallFailed.kind`).

What was answered is read from the bytes that came (`answers`), whoever made the call: litellm's
reading is used only for providers whose answers have a form of their own. Every try is booked by
what the provider counted, also one that brought no completion.

litellm (1.83 or later) is imported on first use, with the environment that keeps it from opening
sockets or reading .env files.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import os
import re
import time
import warnings
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from ....errors import JudgeError
from ....sanitize import mask, sanitize_line
from ....trajectories.reading.json_bytes import without_lone_surrogates
from ..limits import CostLimitReached, throttled
from .answers import (
    UNCOUNTED,
    AnswerError,
    Completion,
    Counts,
    NotACompletion,
    completion_of,
    counts_of,
    error_in,
    parse_body,
)
from .http_clients import (
    RawAnswer,
    exclusive_client,
    keeping_answers,
    limit_litellm_clients,
    shared_client,
)

log = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 20_000
"""Characters of a provider's error that are looked at."""
_RATE_LIMIT_STATUSES = (429, 529)


@dataclass(frozen=True)
class Retry:
    """How often and how long one call is tried.

    The wait after try n is drawn from [0, min(longest_s, first_s * 2^n)] (full jitter).
    """

    attempts: int = 5
    total_s: float = 240.0
    first_s: float = 1.0
    longest_s: float = 30.0


FailureKind = Literal["provider", "parameter", "context", "policy", "unreachable"]


class CallFailed(Exception):
    """A call that brought no completion. `message` is one line without secrets.

    kind: `provider` (down, overloaded, incomprehensible), `parameter` (an option is not taken),
    `context` (the prompt is too long), `policy` (refused), `unreachable` (no connection).
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.calls = 0
        """Requests that were made for it, of a provider batch; an account books those of others."""
        self.counts: Counts | None = None
        """Tokens that the provider counted in a batch's answer; None if it billed nothing."""


class CallAccount(Protocol):
    """Where each try of a call is reserved before it is made and booked after it (`accounts`)."""

    async def reserve(self) -> int:
        """The most output tokens that the try may take; CostLimitReached if it may not be made."""

    async def book(self, counts: Counts | None, completion: Completion | None = None) -> None:
        """Book the try: its tokens, unknown ones included; None if nothing was billed."""

    async def abandon(self) -> None:
        """Book a try that was interrupted."""


def litellm() -> Any:
    """The litellm module, silenced."""
    # A second Ctrl-C abandons a call for which litellm has made a coroutine in a thread, and Python
    # warns of it. pydantic warns of litellm's own types; another thread may undo that filter, so it
    # is set each time.
    warnings.filterwarnings(
        "ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning
    )
    warnings.filterwarnings(
        "ignore", r".* using the `ReadOnly` qualifier|Pydantic serializer warnings", UserWarning
    )
    return _import_litellm()


@cache
def _import_litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        import litellm as module
    except ImportError as error:
        raise JudgeError(
            f"litellm cannot be imported: {error}", "pip install litellm, or use --judge rules"
        ) from None
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = False
    # litellm's aiohttp sessions outlive the event loop that they belong to; httpx clients do not.
    module.disable_aiohttp_transport = True
    limit_litellm_clients()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return module


def redact(text: str, *secrets: str | None) -> str:
    """One line of at most 200 characters without the secrets and anything that looks like a key."""
    line = " ".join(text[:_MAX_ERROR_CHARS].split())
    return sanitize_line(mask(line, *secrets))[:200]


async def complete(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    retry: Retry,
    api_key: str | None = None,
    name: str = "",
    account: CallAccount | None = None,
) -> Completion:
    """The completion of one call.

    The content of a message is text or a list of blocks: `{"type": "text", "text": ...}`, with
    `"cache_control": {"type": "ephemeral"}` where a cached prefix ends (`takes_cache_control`), and
    `{"type": "image_url", ...}` (`takes_images`). `options` are litellm's (timeout, api_base,
    temperature, response_format, ...); `name` is what error messages call the model, by default
    `model`. `account` books every try, and may lower the limit of the reply.

    Raises CallFailed; CostLimitReached if the account has no room; JudgeError if no call can
    succeed.
    """
    import tenacity

    waits: list[float] = []
    """Seconds spent on waiting for leave, which is no fault of the provider's."""
    try:
        async for attempt in tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(retry.attempts),
            wait=lambda state: _wait_before_retry(state, retry, sum(waits)),
            retry=tenacity.retry_if_exception(_may_pass),
            before_sleep=_report_retry,
            reraise=True,
        ):
            with attempt:
                before = time.monotonic()
                limit = None if account is None else await account.reserve()
                waits.append(time.monotonic() - before)
                elapsed_s = (attempt.retry_state.seconds_since_start or 0.0) - sum(waits)
                remaining_s = retry.total_s - max(0.0, elapsed_s)
                # The client's timeout restarts with every byte, so a server that drips its answer
                # never exceeds it: the whole try has a limit too.
                limit_s = max(1.0, min(remaining_s, options.get("timeout", remaining_s) + 1.0))
                call = _call_once(model, messages, with_reply_limit(options, limit), api_key)
                return await _booked(asyncio.wait_for(call, limit_s), account)
    except CostLimitReached:
        raise
    except Exception as error:
        cause = error.cause if isinstance(error, _RetriesExhausted) else error
        if isinstance(cause, CallFailed):
            raise cause from None
        raise _classify(cause, name or model, model, api_key) from None
    raise AssertionError("unreachable")


_LIMIT_OPTIONS = ("max_tokens", "max_completion_tokens")
"""The names under which models take the limit of a reply."""


def with_reply_limit(options: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
    """The options with this limit in place of theirs, if they have one."""
    if limit is None:
        return dict(options)
    return {name: limit if name in _LIMIT_OPTIONS else value for name, value in options.items()}


async def _booked(call: Awaitable[Completion], account: CallAccount | None) -> Completion:
    """Make one try, and book it however it ends."""
    failure: Exception
    try:
        completion = await call
        if account is not None:
            await account.book(completion.counts, completion)
        return completion
    except asyncio.CancelledError:
        if account is not None:
            await asyncio.shield(account.abandon())
        raise
    except Exception as error:
        if account is not None:
            await account.book(_counts_of_failure(error))
        failure = error.cause if isinstance(error, _LitellmFailed) else error
    # Outside the clause, so that the error keeps the causes by which it is told what failed.
    raise failure


def _counts_of_failure(error: Exception) -> Counts | None:
    """The tokens of a try that brought no completion; None if nothing can have been billed."""
    if isinstance(error, _HttpError | _LitellmFailed):
        return error.counts
    return UNCOUNTED if isinstance(error, TimeoutError) else None


async def _call_once(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    api_key: str | None,
) -> Completion:
    # At an address that the user named litellm would add nothing but its own CPU time.
    if api_key is not None and "api_base" in options and model.startswith("openai/"):
        return await _post(model, messages, options, api_key)
    module = litellm()
    module.aclient_session = shared_client()
    with keeping_answers() as answers:
        try:
            answer = await module.acompletion(
                model=model,
                messages=list(messages),
                max_retries=0,
                num_retries=0,
                api_key=api_key,
                **options,
            )
        except Exception as error:
            return _completion_despite(error, answers)
    return _completion(answer, answers)


class _LitellmFailed(Exception):
    """A call of litellm's that failed: its error, and what was billed all the same."""

    def __init__(self, cause: Exception, counts: Counts | None) -> None:
        super().__init__(str(cause))
        self.cause, self.counts = cause, counts


class _HttpError(Exception):
    """A request that brought no completion.

    `status_code` is the one of the answer, or stands for what went wrong without one.
    """

    def __init__(
        self,
        status_code: int,
        text: str,
        code: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        counts: Counts | None = None,
    ) -> None:
        super().__init__(text)
        self.status_code, self.code, self.headers = status_code, code, headers
        self.counts = counts
        """Tokens that were billed, unknown ones included; None if nothing was."""


async def _post(
    model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], api_key: str
) -> Completion:
    import httpx

    body = json.dumps(request_body(model, messages, options)).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}
    url = f"{options['api_base'].rstrip('/')}/chat/completions"
    try:
        with exclusive_client() as client:
            response = await client.post(
                url, content=body, headers=headers, timeout=options.get("timeout")
            )
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise _HttpError(408, f"no answer in time ({type(error).__name__})") from error
    except httpx.ConnectError as error:
        raise _HttpError(503, f"connection error: {error}") from error
    # From here on the provider has the request, and may bill an answer that did not arrive.
    except httpx.TimeoutException as error:
        text = f"no answer in time ({type(error).__name__})"
        raise _HttpError(408, text, counts=UNCOUNTED) from error
    except httpx.HTTPError as error:
        raise _HttpError(503, f"connection error: {error}", counts=UNCOUNTED) from error
    return _read_answer(RawAnswer(response.status_code, response.headers, response.content))


def _read_answer(answer: RawAnswer) -> Completion:
    """The completion in an answer as it came; _HttpError if it holds none."""
    is_success = 200 <= answer.status < 300
    try:
        body = parse_body(answer.content)
    except ValueError:
        text = answer.content[:_MAX_ERROR_CHARS].decode("utf-8", "replace")
        status = 502 if answer.status < 400 else answer.status
        counts = UNCOUNTED if is_success else None
        raise _HttpError(status, text, headers=answer.headers, counts=counts) from None
    error = error_in(body, answer.status)
    if error is not None:
        raise _error_answer(error, answer, body)
    try:
        return completion_of(body)
    except NotACompletion as error:
        raise _HttpError(502, str(error), counts=counts_of(body)) from None


def _error_answer(error: AnswerError, answer: RawAnswer, body: Any) -> _HttpError:
    """An error that a provider reports. It is billed if the answer counts tokens beside it."""
    counts = counts_of(body)
    billed = None if counts == UNCOUNTED else counts
    return _HttpError(error.status, error.text, error.code, answer.headers, counts=billed)


# Retries.


class _RetriesExhausted(Exception):
    """The provider asks for a longer wait than there is time for."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


def wait_seconds(state: Any, retry: Retry, requested_s: float | None) -> float:
    """Seconds until the next try of a call; `state` is tenacity's.

    Drawn at random, in addition to the wait that the provider requested.
    """
    import tenacity

    jitter = tenacity.wait_random_exponential(multiplier=retry.first_s, max=retry.longest_s)(state)
    if requested_s is None:
        return jitter
    return requested_s + min(jitter, 1.0)


def _wait_before_retry(state: Any, retry: Retry, waited_s: float) -> float:
    """Seconds until the next try; `waited_s` were spent on waiting for leave, not on calls."""
    error = state.outcome.exception()
    elapsed_s = (state.seconds_since_start or 0.0) - waited_s
    wait = wait_seconds(state, retry, retry_after(_headers(error)))
    if elapsed_s + wait > retry.total_s:
        raise _RetriesExhausted(error)
    return wait


def _headers(error: BaseException) -> Mapping[str, str] | None:
    """The headers of the answer behind an error, ours or litellm's."""
    for attribute in ("headers", "litellm_response_headers"):
        headers: Mapping[str, str] | None = getattr(error, attribute, None)
        if headers:
            return headers
    return getattr(getattr(error, "response", None), "headers", None)


def _report_retry(state: Any) -> None:
    status = _status(state.outcome.exception())
    if status in _RATE_LIMIT_STATUSES:
        throttled()  # The batch around this call, if there is one, slows down.
    log.info("call failed (%s), next try in %.1f s", status, state.next_action.sleep)


def retry_after(headers: Mapping[str, str] | None, now: float | None = None) -> float | None:
    """Seconds that `Retry-After` asks for (a number or an HTTP date), at least 0.

    None if the header is absent or unreadable. `now`: Unix time, by default the present.
    """
    lower_case = {name.lower(): value for name, value in (headers or {}).items()}
    value = lower_case.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, time.time() if now is None else now)
    if math.isnan(seconds) or seconds == math.inf:
        return None
    return max(0.0, seconds)


def _seconds_until(http_date: str, now: float) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(http_date)
    except (TypeError, ValueError):
        return None
    return max(0.0, moment.timestamp() - now)


def _may_pass(error: BaseException) -> bool:
    """Whether another try may succeed: after a timeout, a rate limit or a server's error."""
    status = _status(error) or 0
    is_passing = status in (408, 429) or 500 <= status < 600
    return is_passing and not _is_out_of_funds(error) and not _lacks_option(error)


def _lacks_option(error: BaseException) -> bool:
    """Whether an error of the server says that it has not got an option of the request."""
    text = str(error).lower()
    is_lacking = re.search(r"not supported|unsupported|not implemented|not support ", text)
    return (_status(error) or 0) in (500, 501) and bool(is_lacking) and _names_parameter(text)


# What a failure means.


def _status(error: BaseException | None) -> int | None:
    if isinstance(error, TimeoutError):
        return 408
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _is_out_of_funds(error: BaseException) -> bool:
    """Whether the status suggests another try, but the text says no money or no key."""
    text = str(error).lower()
    return "insufficient_quota" in text or "exceeded your current quota" in text or _lacks_key(text)


def _lacks_key(lower_text: str) -> bool:
    pattern = (
        r"api[_ ]?key.{0,80}(?:must be set|not set|missing|required|not provided)"
        r"|missing .{0,40}(?:api key|credentials)"
    )
    return bool(re.search(pattern, lower_text, re.DOTALL))


def _classify(
    error: BaseException, model: str, target: str, api_key: str | None
) -> JudgeError | CallFailed:
    """What a failed call means: JudgeError if no call can succeed, else CallFailed.

    `model` is the name in messages, `target` the one that litellm knows.
    """
    status, error_type = _status(error), type(error).__name__
    text = str(error).split("Traceback (most recent call last)")[0]
    lower = text.lower()
    # litellm puts the names of its exceptions before the provider's words.
    reason = redact(
        re.sub(r"^(?:litellm\.)?(?:\w*(?:Error|Exception|Timeout): )*", "", text), api_key
    )
    code = getattr(error, "code", None)
    # The order matters: providers answer most of these with 400, and only code and text differ.
    if (
        error_type == "ContextWindowExceededError"
        or code == "context_length_exceeded"
        or status == 413
        or "maximum context length" in lower
    ):
        return CallFailed(
            "context", f"the evidence does not fit the model; lower the evidence budget: {reason}"
        )
    if error_type == "ContentPolicyViolationError" or code in (
        "content_policy_violation",
        "content_filter",
    ):
        return CallFailed("policy", f"refused by the provider: {reason}")
    if _lacks_key(lower):
        return JudgeError(f"{model}: no API key is set", f"set {_missing_variables(target)}")
    if status in (401, 403):
        return JudgeError(
            f"{model}: the provider refused the credentials ({status}): {reason}",
            f"set {_missing_variables(target)}",
        )
    if status == 402 or _is_out_of_funds(error):
        return JudgeError(
            f"{model}: the account's quota is used up: {reason}",
            "check the provider's billing, or use another judge",
        )
    if "llm provider not provided" in lower:
        return JudgeError(
            f"{model}: no provider is known for this model",
            "name it provider/model, or give --api-base",
        )
    if (status in (400, 404, 422) and _names_parameter(lower)) or _lacks_option(error):
        return CallFailed("parameter", reason)
    if status == 404:
        return JudgeError(
            f"{model}: the provider does not know this model or address: {reason}",
            "check the model's name and --api-base",
        )
    if status in (400, 405, 422):
        return JudgeError(
            f"{model}: the provider rejected the request ({status}): {reason}",
            "check the model's name and parameters",
        )
    if _never_connected(error):
        return CallFailed("unreachable", f"cannot connect: {reason}")
    return CallFailed("provider", f"provider failed ({status or error_type}): {reason}")


def _missing_variables(target: str) -> str:
    """The environment variables that the model's provider needs and that are not set, as text."""
    try:
        missing = litellm().validate_environment(model=target)["missing_keys"]
    except Exception:  # litellm raises many types for names that it does not know
        missing = []
    names = " and ".join(str(name) for name in missing)
    return names or "the provider's API key variable to a valid key"


def _never_connected(error: BaseException | None) -> bool:
    """Whether no connection was made (refused, unknown host), as opposed to one that broke."""
    connection_errors = ("ConnectError", "ConnectTimeout", "gaierror", "ConnectionRefusedError")
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        if type(error).__name__ in connection_errors:
            return True
        error = error.__cause__ or error.__context__
    return False


_PARAMETER_WORDS = (
    "response_format",
    "json_schema",
    "json_object",
    "temperature",
    "seed",
    "max_tokens",
    "structured",
    "grammar",
    "guided",
    "no endpoints found that",
)
"""Words of a message about an option that a model, or every server of a router, does not take."""


def _names_parameter(lower_text: str) -> bool:
    return any(word in lower_text for word in _PARAMETER_WORDS)


# Completions of providers that litellm speaks to.


def _completion_despite(error: Exception, answers: Sequence[RawAnswer]) -> Completion:
    """The completion that came although litellm could not read it.

    Raises _LitellmFailed if none came, _HttpError for an answer that holds none.
    """
    if answers and answers[-1].status < 300:
        return _read_answer(answers[-1])
    # litellm knows what each provider's error status means; only its tokens are read here.
    counts = None
    if answers:
        counts = _counts_in(answers[-1])
    elif not _never_connected(error) and ((_status(error) or 0) in (408, *range(500, 600))):
        counts = UNCOUNTED
    raise _LitellmFailed(error, counts)


def _counts_in(answer: RawAnswer) -> Counts | None:
    """The tokens that an error answer counts; None if it counts none."""
    try:
        counts = counts_of(parse_body(answer.content))
    except ValueError:
        return None
    return None if counts == UNCOUNTED else counts


def _completion(answer: Any, answers: Sequence[RawAnswer]) -> Completion:
    """The completion in litellm's answer, by the bytes that came where these have OpenAI's form."""
    body = None
    if answers:
        try:
            body = parse_body(answers[-1].content)
        except ValueError:
            body = None
    if isinstance(body, Mapping) and ("choices" in body or "error" in body):
        return _read_answer(answers[-1])
    return _litellm_completion(answer, body)


def _litellm_completion(answer: Any, body: Any) -> Completion:
    """litellm's reading of an answer in a provider's own form; `body` has the provider's counts."""
    choice = answer.choices[0] if getattr(answer, "choices", None) else None
    message = getattr(choice, "message", None)
    content = getattr(message, "content", None)
    extra = getattr(message, "provider_specific_fields", None) or {}
    # litellm 1.110 moved the refusal to the message itself.
    refusal = getattr(message, "refusal", None) or extra.get("refusal")
    finish = "none"
    if choice is not None:
        finish = without_lone_surrogates(str(getattr(choice, "finish_reason", None) or "stop"))
    counts = counts_of(body)
    if counts == UNCOUNTED:
        usage = getattr(answer, "usage", None)
        counts = counts_of({"usage": usage.model_dump() if usage is not None else None})
    served_model = body.get("model") if isinstance(body, Mapping) else None
    return Completion(
        text=without_lone_surrogates(content) if isinstance(content, str) else None,
        finish=finish,
        refusal=without_lone_surrogates(refusal) if isinstance(refusal, str) else None,
        counts=counts,
        served_model=served_model if isinstance(served_model, str) else None,
    )


# What a model takes.

_CLAUDE_HOSTS = ("bedrock", "vertex_ai", "azure_ai", "openrouter", "databricks")
"""Providers besides Anthropic that serve Claude and to which litellm passes a breakpoint on (read
in 1.106)."""


def takes_cache_control(model: str) -> bool:
    """Whether a block's `cache_control` makes the provider cache the prompt up to that block.

    True for Claude, at Anthropic and where others serve it. False where prefixes are cached without
    being asked (OpenAI, DeepSeek, Gemini, servers of one's own), some of which refuse the mark. For
    Gemini litellm makes of it a stored, separately billed object out of whole messages, the
    question included, by further requests that usage does not show.
    """
    provider, _, name = model.partition("/")
    if not name:
        try:
            name, provider, *_ = litellm().get_llm_provider(model=model)
        except Exception:  # litellm raises many types for names that it does not know
            return False
    return provider == "anthropic" or (provider in _CLAUDE_HOSTS and "claude" in name.lower())


def takes_images(model: str) -> bool:
    """Whether the model is known to read images; False for one that litellm's table lacks.

    litellm's own `supports_vision` asks a server for some providers, so its table is read instead:
    by the whole name first, then without the provider.
    """
    try:
        table = litellm().model_cost
    except JudgeError:
        return False
    parts = model.split("/", 3)
    for start in range(len(parts)):
        supported = table.get("/".join(parts[start:]), {}).get("supports_vision")
        if supported is not None:
            return supported is True
    return False


def is_known_to_reason(model: str) -> bool:
    """Whether litellm's table says that the model thinks before it answers."""
    try:
        table = litellm().model_cost
    except JudgeError:
        return False
    parts = model.split("/", 3)
    entries = [table.get("/".join(parts[start:]), {}) for start in range(len(parts))]
    return any(entry.get("supports_reasoning") is True for entry in entries)


def request_body(
    model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The JSON body that a live call sends to an OpenAI-compatible address.

    Raises CallFailed of kind `parameter` for an option that the model is known not to take.
    """
    module = litellm()
    name = model.removeprefix("openai/")
    parameters = {k: v for k, v in options.items() if k not in ("timeout", "api_base")}
    try:
        accepted = module.utils.get_optional_params(
            model=name, custom_llm_provider="openai", **parameters
        )
    except module.exceptions.UnsupportedParamsError as error:
        raise CallFailed("parameter", redact(str(error))) from None
    # litellm's client would merge the extra body, and send no `stream` for a plain call.
    accepted |= accepted.pop("extra_body", {})
    accepted.pop("stream", None)
    return {"model": name, "messages": list(messages), **accepted}
