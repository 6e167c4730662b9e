"""One chat completion: at an OpenAI-compatible address that was named by one request of ours, which
costs a quarter of the CPU; anywhere else through litellm, quiet, without its retries and without
its prices. Errors are sorted by what helps.

litellm (1.83 or later) is imported on first use, with the environment that keeps it from opening
sockets or reading .env files. What it returns for missing data is undone here: usage of 0 and 0 is
an absent usage.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
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
from .session import bound_litellm, client, own_client

log = logging.getLogger(__name__)

_MOST_TOKENS = 10**9
"""Of one call: a server that counts more has not counted."""
_MOST_SAID = 20_000
"""Characters of a provider's error that are looked at."""
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}


@dataclass(frozen=True)
class Retry:
    """How often and how long one call is tried. Waits are drawn from [0, min(longest_s, first_s *
    2^n)] (full jitter)."""

    attempts: int = 5
    total_s: float = 240.0
    first_s: float = 1.0
    longest_s: float = 30.0


@dataclass(frozen=True)
class Completion:
    """One answer. Tokens are None when the provider did not count them, or not believably."""

    text: str | None
    finish: str
    refusal: str | None
    input_tokens: int | None
    """All input, cached or not: litellm adds what providers count apart."""
    output_tokens: int | None
    cached_tokens: int | None = None
    """Of the input, what was read from the provider's cache; 0 where it counts tokens and says
    nothing of a cache."""
    cache_write_tokens: int | None = None
    """Of the input, what was written into it."""


class CallFailed(Exception):
    """A call that gave no answer. `kind` says what to make of it; `message` is one line without
    secrets."""

    def __init__(
        self,
        kind: Literal["provider", "parameter", "context", "policy", "unreachable"],
        message: str,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.calls = 0
        """Requests that were made for it."""


def litellm() -> Any:
    """The module, silenced."""
    # It makes a coroutine in a thread; a call that is abandoned meanwhile (a second Ctrl-C) leaves
    # it behind. And pydantic
    # speaks of litellm's own types, whose silencing in one thread another thread may undo: so each
    # time.
    warnings.filterwarnings(
        "ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning
    )
    warnings.filterwarnings(
        "ignore", r".* using the `ReadOnly` qualifier|Pydantic serializer warnings", UserWarning
    )
    return _imported()


@cache
def _imported() -> Any:
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
    # aiohttp sessions of litellm outlive the event loop they belong to; httpx clients do no harm
    # there.
    module.disable_aiohttp_transport = True
    bound_litellm()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return module


def redact(text: str, *secrets: str | None) -> str:
    """One line of at most 200 characters, without anything that looks like a key and without the
    given secrets."""
    return sanitize_line(mask(" ".join(text[:_MOST_SAID].split()), *secrets))[:200]


async def complete(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    retry: Retry,
    api_key: str | None = None,
    name: str = "",
) -> tuple[Completion, int]:
    """The completion and how many requests it took. Raises CallFailed, or JudgeError when no call
    can succeed.

    The content of a message is text or a list of blocks: `{"type": "text", "text": ...}`, with
    `"cache_control": {"type": "ephemeral"}` where a cached prefix ends (`takes_cache_control`), and
    `{"type": "image_url", ...}` (`takes_images`). `options` go to litellm as they are (timeout,
    api_base, temperature, response_format, ...); `name` is what messages call the model, when that
    differs.
    """
    import tenacity

    direct = api_key is not None and "api_base" in options and model.startswith("openai/")
    attempts = 0
    try:
        async for attempt in tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(retry.attempts),
            wait=lambda state: _wait(state, retry),
            retry=tenacity.retry_if_exception(
                lambda error: _status(error) in _RETRIED and not _hopeless(error)
            ),
            before_sleep=_say,
            reraise=True,
        ):
            with attempt:
                attempts += 1
                left = retry.total_s - (attempt.retry_state.seconds_since_start or 0.0)
                if direct:
                    call = _post(model, messages, options, str(api_key))
                else:
                    call = _through_litellm(
                        model=model,
                        messages=list(messages),
                        max_retries=0,
                        num_retries=0,
                        api_key=api_key,
                        **options,
                    )
                # A server that drips keeps each of its client's waits short: the time of a try
                # counts as a whole.
                most = max(1.0, min(left, options.get("timeout", left) + 1.0))
                return await asyncio.wait_for(call, most), attempts
    except Exception as error:
        cause = error.cause if isinstance(error, _GaveUp) else error
        sorted_out = (
            cause if isinstance(cause, CallFailed) else _sort(cause, name or model, model, api_key)
        )
        if isinstance(sorted_out, CallFailed):
            sorted_out.calls = attempts
        raise sorted_out from None
    raise AssertionError("unreachable")


async def _through_litellm(**call: Any) -> Completion:
    module = litellm()
    module.aclient_session = client()
    return _completion(await module.acompletion(**call))


class _NoAnswer(Exception):
    """A request that brought no completion: the status that it came back with, or stands for what
    went wrong."""

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
        with own_client() as session:
            answer = await session.post(
                url, content=body, headers=headers, timeout=options.get("timeout")
            )
    except httpx.TimeoutException as error:
        raise _NoAnswer(408, f"no answer in time ({type(error).__name__})") from error
    except httpx.HTTPError as error:
        raise _NoAnswer(503, f"connection error: {error}") from error
    try:
        value = loads(answer.text)
    except ValueError:
        raise _NoAnswer(
            answer.status_code if answer.is_error else 502,
            answer.text[:_MOST_SAID],
            headers=answer.headers,
        ) from None
    if answer.is_success:
        try:
            return completion_from_body(value)
        except CallFailed as failed:
            raise _NoAnswer(502, failed.message) from None
    told = value.get("error") if isinstance(value, dict) else None
    told = told if isinstance(told, dict) else {"message": value if told is None else told}
    text = " ".join(
        str(told[key])[:_MOST_SAID] for key in ("message", "type", "code") if told.get(key)
    )
    raise _NoAnswer(answer.status_code, text, str(told.get("code")), answer.headers)


class _GaveUp(Exception):
    """The provider wants a longer wait than there is time for."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


def wait_s(state: Any, retry: Retry, asked: float | None) -> float:
    """Seconds until the next try of a call (a tenacity state): drawn at random, beyond those that
    the provider asks for."""
    import tenacity

    jitter = tenacity.wait_random_exponential(multiplier=retry.first_s, max=retry.longest_s)(state)
    return jitter if asked is None else asked + min(jitter, 1.0)


def _wait(state: Any, retry: Retry) -> float:
    error = state.outcome.exception()
    spent = state.seconds_since_start or 0.0
    told = (getattr(error, name, None) for name in ("headers", "litellm_response_headers"))
    asked = retry_after(
        next(filter(None, told), None) or getattr(getattr(error, "response", None), "headers", None)
    )
    wait = wait_s(state, retry, asked)
    if spent + wait > retry.total_s:
        raise _GaveUp(error)
    return wait


def _say(state: Any) -> None:
    error = state.outcome.exception()
    if _status(error) in (429, 529):
        throttled()  # the batch around this call, if any, slows down
    log.info("call failed (%s), next try in %.1f s", _status(error), state.next_action.sleep)


def retry_after(headers: Mapping[str, str] | None, now: float | None = None) -> float | None:
    """Seconds that `Retry-After` asks for (a number, or an HTTP date), at least 0; None when absent
    or unreadable."""
    value = next((v for k, v in (headers or {}).items() if k.lower() == "retry-after"), None)
    if value is None:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None
    except ValueError:
        pass
    try:
        when = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, when.timestamp() - (time.time() if now is None else now))


def _status(error: BaseException | None) -> int | None:
    if isinstance(error, TimeoutError):
        return 408
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _hopeless(error: BaseException) -> bool:
    """Errors that carry a passing status but will not pass: no money, no key."""
    text = str(error).lower()
    return "insufficient_quota" in text or "exceeded your current quota" in text or _no_key(text)


def _no_key(text: str) -> bool:
    said = (
        r"api[_ ]?key.{0,80}(?:must be set|not set|missing|required|not provided)|missing"
        r" .{0,40}(?:api key|credentials)"
    )
    return bool(re.search(said, text, re.DOTALL))


def _sort(
    error: BaseException, model: str, target: str, api_key: str | None
) -> JudgeError | CallFailed:
    """What a failed call means: JudgeError (nothing will work), or CallFailed with its kind."""
    status, kind = _status(error), type(error).__name__
    text = str(error).split("Traceback (most recent call last)")[0]
    lower = text.lower()
    said = redact(
        re.sub(r"^(?:litellm\.)?(?:\w*(?:Error|Exception|Timeout): )*", "", text), api_key
    )
    code = getattr(error, "code", None)
    if (
        kind == "ContextWindowExceededError"
        or code == "context_length_exceeded"
        or status == 413
        or "maximum context length" in lower
    ):
        return CallFailed(
            "context", f"the evidence does not fit the model; lower the evidence budget: {said}"
        )
    if kind == "ContentPolicyViolationError" or code in (
        "content_policy_violation",
        "content_filter",
    ):
        return CallFailed("policy", f"refused by the provider: {said}")
    if status in (401, 403) or _no_key(lower):
        what = (
            "no API key is set"
            if _no_key(lower)
            else f"the provider refused the credentials ({status})"
        )
        return JudgeError(f"{model}: {what}", f"set {_variables(target)}")
    if status == 402 or _hopeless(error):
        return JudgeError(
            f"{model}: the account's quota is used up",
            "check the provider's billing, or use another judge",
        )
    if "llm provider not provided" in lower:
        return JudgeError(
            f"{model}: no provider is known for this model",
            "name it provider/model, or give --api-base",
        )
    if status in (400, 422) and _parameter(lower):
        return CallFailed("parameter", said)
    if status == 404:
        return JudgeError(
            f"{model}: the provider does not know this model or address: {said}",
            "check the model's name and --api-base",
        )
    if status in (400, 405, 422):
        return JudgeError(
            f"{model}: the provider rejected the request ({status}): {said}",
            "check the model's name and parameters",
        )
    if _never_connected(error):
        return CallFailed("unreachable", f"cannot connect: {said}")
    return CallFailed("provider", f"provider failed ({status or kind}): {said}")


def _variables(target: str) -> str:
    """The environment variables that the model's provider needs and that are not set, in words."""
    try:
        missing = litellm().validate_environment(model=target)["missing_keys"]
    except Exception:  # for unknown names litellm raises many types
        missing = []
    return (
        " and ".join(str(name) for name in missing)
        or "the provider's API key variable to a valid key"
    )


def _never_connected(error: BaseException | None) -> bool:
    """Whether no connection was made at all (refused, unknown host), as opposed to one that broke."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if type(error).__name__ in (
            "ConnectError",
            "ConnectTimeout",
            "gaierror",
            "ConnectionRefusedError",
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _parameter(text: str) -> bool:
    return any(
        word in text
        for word in (
            "response_format",
            "json_schema",
            "json_object",
            "temperature",
            "seed",
            "max_tokens",
            "structured",
        )
    )


def _completion(answer: Any) -> Completion:
    """What the provider said. Raises litellm-like errors for none of it: an answer without choices
    has text None."""
    choice = answer.choices[0] if getattr(answer, "choices", None) else None
    message = getattr(choice, "message", None)
    extra = getattr(message, "provider_specific_fields", None) or {}
    # its place since litellm 1.110; before it
    refusal = getattr(message, "refusal", None) or extra.get("refusal")
    content = getattr(message, "content", None)
    usage = getattr(answer, "usage", None)
    given, made = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    counted = (
        isinstance(given, int)
        and isinstance(made, int)
        and 0 < given <= _MOST_TOKENS
        and 0 <= made <= _MOST_TOKENS
    )
    read, written = _cached(usage, given) if counted and given is not None else (None, None)
    return Completion(
        text=without_lone_surrogates(content) if isinstance(content, str) else None,
        finish=(
            without_lone_surrogates(str(getattr(choice, "finish_reason", None) or "stop"))
            if choice is not None
            else "none"
        ),
        refusal=without_lone_surrogates(refusal) if isinstance(refusal, str) else None,
        input_tokens=given if counted else None,
        output_tokens=made if counted else None,
        cached_tokens=read,
        cache_write_tokens=written,
    )


def _cached(usage: Any, given: int) -> tuple[int | None, int | None]:
    """Tokens read from and written into the provider's cache; None and None when they cannot be
    parts of the input.

    litellm brings the providers' own fields to `prompt_tokens_details`; what it does not know stays
    on the usage.
    """
    details = getattr(usage, "prompt_tokens_details", None)
    named = (
        ("cached_tokens", "cache_read_input_tokens"),
        ("cache_creation_tokens", "cache_creation_input_tokens"),
    )
    read, written = (
        next(
            (
                v
                for v in (getattr(details, inner, None), getattr(usage, outer, None))
                if v is not None
            ),
            0,
        )
        for inner, outer in named
    )
    if not (isinstance(read, int) and isinstance(written, int) and read >= 0 and written >= 0):
        return None, None
    return (int(read), int(written)) if read + written <= given else (None, None)


_CLAUDE_HOSTS = ("bedrock", "vertex_ai", "azure_ai", "openrouter", "databricks")
"""Providers besides Anthropic that serve its models and to which litellm hands a breakpoint on
(read in 1.106)."""


def takes_cache_control(model: str) -> bool:
    """Whether a block's `cache_control` makes this model's provider cache the prompt up to that
    block.

    True for Claude, at Anthropic and where others serve it. False where prefixes are cached without
    being asked (OpenAI, DeepSeek, Gemini, servers of one's own), some of which refuse the mark. For
    Gemini litellm makes of it a stored, separately billed object out of whole messages, the
    question included, by further requests that usage does not show.
    """
    provider, _, name = model.partition("/")
    if not name:
        try:
            name, provider, *_ = litellm().get_llm_provider(model=model)
        except Exception:  # for unknown names litellm raises many types
            return False
    return provider == "anthropic" or (provider in _CLAUDE_HOSTS and "claude" in name.lower())


def takes_images(model: str) -> bool:
    """Whether the model is known to read images; False for one that litellm's table does not have.

    The table is read without litellm's own `supports_vision`, which for some providers asks a
    server; a name that it does not have with its provider is looked up without.
    """
    try:
        table = litellm().model_cost
    except JudgeError:
        return False
    parts = model.split("/", 3)
    said = (table.get("/".join(parts[n:]), {}).get("supports_vision") for n in range(len(parts)))
    return next((answer for answer in said if answer is not None), False) is True


def request_body(
    model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The JSON body that a live call to an OpenAI-compatible address would send, for sending it by
    other means.

    Raises CallFailed of kind `parameter` for an option that the model is known not to take.
    """
    module = litellm()
    name = model.removeprefix("openai/")
    asked = {k: v for k, v in options.items() if k not in ("timeout", "api_base")}
    try:
        sent = module.utils.get_optional_params(model=name, custom_llm_provider="openai", **asked)
    except module.exceptions.UnsupportedParamsError as error:
        raise CallFailed("parameter", redact(str(error))) from None
    sent |= sent.pop("extra_body", {})
    sent.pop("stream", None)
    return {"model": name, "messages": list(messages), **sent}


def completion_from_body(body: Any) -> Completion:
    """The completion in the body of an answer that came by other means. Raises CallFailed for what
    is none."""
    module = litellm()
    try:
        answer = module.utils.convert_to_model_response_object(
            response_object=body, model_response_object=module.ModelResponse()
        )
        return _completion(answer)
    except Exception:  # litellm raises many types, down to plain Exception
        raise CallFailed("provider", "the provider's answer is no chat completion") from None
