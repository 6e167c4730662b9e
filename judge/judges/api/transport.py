"""One chat completion: the request, its retries, and what a failure means.

An OpenAI-compatible address that the user named is called with one request of our own, which costs
a quarter of the CPU; everything else goes through litellm, silenced, without its retries and
without its prices. Failures are sorted by what helps against them (`CallFailed.kind`).

litellm (1.83 or later) is imported on first use, with the environment that keeps it from opening
sockets or reading .env files. It fills in what a provider left out; that is undone here, so that a
usage of 0 and 0 is no usage.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ....errors import JudgeError
from ....sanitize import mask, sanitize_line
from ....trajectories.reading.json_bytes import loads, without_lone_surrogates
from ..limits import throttled
from .http_clients import exclusive_client, limit_litellm_clients, shared_client

log = logging.getLogger(__name__)

_MAX_TOKEN_COUNT = 10**9
"""Of one call: a server that reports more has not counted."""
_MAX_ERROR_CHARS = 20_000
"""Characters of a provider's error that are looked at."""
_RETRIED_STATUSES = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
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


@dataclass(frozen=True)
class Completion:
    """One answer. A token count is None if the provider reported none or an implausible one."""

    text: str | None
    finish: str
    """The provider's finish reason; `none` if the answer has no choice."""
    refusal: str | None
    input_tokens: int | None
    """All input, cached or not: litellm adds up what providers count separately."""
    output_tokens: int | None
    cached_tokens: int | None = None
    """Input read from the provider's cache; 0 if it counts tokens and mentions no cache."""
    cache_write_tokens: int | None = None
    """Input written into the provider's cache."""


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
        """Requests that were made for it."""


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
) -> tuple[Completion, int]:
    """The completion, and the number of requests it took.

    The content of a message is text or a list of blocks: `{"type": "text", "text": ...}`, with
    `"cache_control": {"type": "ephemeral"}` where a cached prefix ends (`takes_cache_control`), and
    `{"type": "image_url", ...}` (`takes_images`). `options` are litellm's (timeout, api_base,
    temperature, response_format, ...); `name` is what error messages call the model, by default
    `model`.

    Raises CallFailed; JudgeError if no call can succeed.
    """
    import tenacity

    attempts = 0
    try:
        async for attempt in tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(retry.attempts),
            wait=lambda state: _wait_before_retry(state, retry),
            retry=tenacity.retry_if_exception(_may_pass),
            before_sleep=_report_retry,
            reraise=True,
        ):
            with attempt:
                attempts += 1
                elapsed_s = attempt.retry_state.seconds_since_start or 0.0
                remaining_s = retry.total_s - elapsed_s
                # The client's timeout restarts with every byte, so a server that drips its answer
                # never exceeds it: the whole try has a limit too.
                limit_s = max(1.0, min(remaining_s, options.get("timeout", remaining_s) + 1.0))
                call = _call_once(model, messages, options, api_key)
                return await asyncio.wait_for(call, limit_s), attempts
    except Exception as error:
        cause = error.cause if isinstance(error, _RetriesExhausted) else error
        if isinstance(cause, CallFailed):
            failure: CallFailed | JudgeError = cause
        else:
            failure = _classify(cause, name or model, model, api_key)
        if isinstance(failure, CallFailed):
            failure.calls = attempts
        raise failure from None
    raise AssertionError("unreachable")


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
    answer = await module.acompletion(
        model=model,
        messages=list(messages),
        max_retries=0,
        num_retries=0,
        api_key=api_key,
        **options,
    )
    return _completion(answer)


class _HttpError(Exception):
    """A request of our own that brought no completion.

    `status_code` is the one of the answer, or stands for what went wrong without one.
    """

    def __init__(
        self, status_code: int, text: str, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status_code, self.code, self.headers = status_code, code, headers


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
    except httpx.TimeoutException as error:
        raise _HttpError(408, f"no answer in time ({type(error).__name__})") from error
    except httpx.HTTPError as error:
        raise _HttpError(503, f"connection error: {error}") from error
    try:
        value = loads(response.text)
    except ValueError:
        status = response.status_code if response.is_error else 502
        text = response.text[:_MAX_ERROR_CHARS]
        raise _HttpError(status, text, headers=response.headers) from None
    if not response.is_success:
        text, code = _error_in_body(value)
        raise _HttpError(response.status_code, text, code, response.headers)
    try:
        return completion_from_body(value)
    except CallFailed as failed:
        raise _HttpError(502, failed.message) from None


def _error_in_body(value: Any) -> tuple[str, str]:
    """Text and code of the error in an OpenAI-compatible answer."""
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        error = {"message": value if error is None else error}
    parts = [error[key] for key in ("message", "type", "code") if error.get(key)]
    return " ".join(str(part)[:_MAX_ERROR_CHARS] for part in parts), str(error.get("code"))


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


def _wait_before_retry(state: Any, retry: Retry) -> float:
    error = state.outcome.exception()
    elapsed_s = state.seconds_since_start or 0.0
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
    """Whether another try may succeed."""
    return _status(error) in _RETRIED_STATUSES and not _is_out_of_funds(error)


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
            f"{model}: the provider refused the credentials ({status})",
            f"set {_missing_variables(target)}",
        )
    if status == 402 or _is_out_of_funds(error):
        return JudgeError(
            f"{model}: the account's quota is used up",
            "check the provider's billing, or use another judge",
        )
    if "llm provider not provided" in lower:
        return JudgeError(
            f"{model}: no provider is known for this model",
            "name it provider/model, or give --api-base",
        )
    if status in (400, 422) and _names_parameter(lower):
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
)


def _names_parameter(lower_text: str) -> bool:
    return any(word in lower_text for word in _PARAMETER_WORDS)


# Completions.


def _completion(answer: Any) -> Completion:
    """litellm's answer as a Completion; one without choices has no text and the finish `none`."""
    choice = answer.choices[0] if getattr(answer, "choices", None) else None
    message = getattr(choice, "message", None)
    content = getattr(message, "content", None)
    extra = getattr(message, "provider_specific_fields", None) or {}
    # litellm 1.110 moved the refusal to the message itself.
    refusal = getattr(message, "refusal", None) or extra.get("refusal")
    finish = "none"
    if choice is not None:
        finish = without_lone_surrogates(str(getattr(choice, "finish_reason", None) or "stop"))
    usage = getattr(answer, "usage", None)
    input_tokens = getattr(usage, "prompt_tokens", None)
    output_tokens = getattr(usage, "completion_tokens", None)
    # litellm reports 0 and 0 if the provider counted nothing.
    if not _plausible_counts(input_tokens, output_tokens):
        input_tokens = output_tokens = None
    cached, cache_write = None, None
    if input_tokens is not None:
        cached, cache_write = _cache_counts(usage, input_tokens)
    return Completion(
        text=without_lone_surrogates(content) if isinstance(content, str) else None,
        finish=finish,
        refusal=without_lone_surrogates(refusal) if isinstance(refusal, str) else None,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached,
        cache_write_tokens=cache_write,
    )


def _plausible_counts(input_tokens: Any, output_tokens: Any) -> bool:
    return (
        isinstance(input_tokens, int)
        and isinstance(output_tokens, int)
        and 0 < input_tokens <= _MAX_TOKEN_COUNT
        and 0 <= output_tokens <= _MAX_TOKEN_COUNT
    )


def _cache_counts(usage: Any, input_tokens: int) -> tuple[int | None, int | None]:
    """Tokens read from and written into the provider's cache.

    None and None if they cannot be parts of the input. litellm copies the providers' own fields to
    `prompt_tokens_details`; those that it does not know stay on the usage.
    """
    details = getattr(usage, "prompt_tokens_details", None)
    cached = _first_count(
        getattr(details, "cached_tokens", None), getattr(usage, "cache_read_input_tokens", None)
    )
    written = _first_count(
        getattr(details, "cache_creation_tokens", None),
        getattr(usage, "cache_creation_input_tokens", None),
    )
    if not (isinstance(cached, int) and isinstance(written, int)) or cached < 0 or written < 0:
        return None, None
    if cached + written > input_tokens:
        return None, None
    return int(cached), int(written)


def _first_count(*counts: Any) -> Any:
    """The first count that is not None, else 0."""
    for count in counts:
        if count is not None:
            return count
    return 0


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


def completion_from_body(body: Any) -> Completion:
    """The completion in the JSON body of an answer, from a live call or a provider batch.

    Raises CallFailed if the body is not a chat completion.
    """
    module = litellm()
    try:
        answer = module.utils.convert_to_model_response_object(
            response_object=body, model_response_object=module.ModelResponse()
        )
        return _completion(answer)
    except Exception:  # litellm raises many types, down to plain Exception
        raise CallFailed("provider", "the provider's answer is not a chat completion") from None
