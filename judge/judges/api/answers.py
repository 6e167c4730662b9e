"""What the body of a provider's answer says: an error, a completion, its tokens, who gave it.

Servers that call themselves OpenAI-compatible keep to the letter at best: content comes as a list
of parts, errors with status 200, tokens as strings, and whole answers as a stream that nobody asked
for. All of them are read here, for live calls and provider batches alike; `answer_shapes` has those
of other APIs. Nothing that is read raises anything but `NotACompletion`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ....trajectories.reading.json_bytes import loads, without_lone_surrogates
from ....trajectories.token_counts import CallTokens, call_tokens
from .answer_shapes import in_openai_form

MAX_TOKEN_COUNT = 10**9
"""Of one call: a server that reports more has not counted."""
_MAX_ERROR_CHARS = 20_000
"""Characters of a provider's error that are looked at."""
_MAX_NAME_CHARS = 200
_MAX_DIGITS = 12


class Counts(NamedTuple):
    """Tokens that a provider counted; None if it counted none, or an implausible number."""

    input_tokens: int | None = None
    """All input, cached or not."""
    output_tokens: int | None = None
    """All output, reasoning included."""
    cached_tokens: int | None = None
    """Input read from the provider's cache; 0 if it counts tokens and mentions no cache."""
    cache_write_tokens: int | None = None
    """Input written into the provider's cache."""
    reasoning_tokens: int | None = None
    """Output that the model thought and did not answer."""


UNCOUNTED = Counts()


@dataclass(frozen=True)
class Completion:
    """One answer."""

    text: str | None
    finish: str
    """The finish reason, in OpenAI's words where providers differ; `none` if the answer has no
    choice."""
    refusal: str | None = None
    counts: Counts = UNCOUNTED
    served_model: str | None = None
    """The model that answered, as the provider names it."""
    system_fingerprint: str | None = None
    """The provider's mark of the configuration that answered."""

    @property
    def is_cut(self) -> bool:
        """Whether the reply reached its token limit."""
        return self.finish == "length"


class AnswerError(NamedTuple):
    """An error in the body of an answer, whatever the answer's own status is."""

    status: int
    """HTTP status that stands for it."""
    text: str
    """The provider's words."""
    code: str


class NotACompletion(ValueError):
    """A body that is no chat completion."""


def parse_body(content: bytes) -> Any:
    """The JSON value of an answer's body; a stream of chunks becomes the answer that they make up.

    ValueError if it is neither.
    """
    text = content.decode("utf-8-sig", "replace")
    if text.lstrip().startswith(("data:", "event:", ":")):
        return _joined(list(_chunks(text)))
    try:
        return loads(text)
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return _joined([loads(line) for line in lines])


# Errors.

_STATUS_OF_CODE = {
    "insufficient_quota": 402,
    "insufficient_credits": 402,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "resource_exhausted": 429,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "context_length_exceeded": 400,
    "content_policy_violation": 400,
    "content_filter": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "timeout": 408,
    "unavailable": 503,
    "overloaded_error": 529,
}
"""HTTP statuses of the codes and types that providers name errors by, in lower case."""
_UNNAMED_ERROR = 502


def error_in(body: Any, status: int = 200) -> AnswerError | None:
    """The error in an answer of this status; None if it has none.

    An error status stands as it is; with a success, the error's own code says which one it is.
    """
    error = _error_of(body)
    if error is None:
        if status < 400:
            return None
        error = {"message": body}
    words = [error.get("message"), error.get("type"), error.get("code")]
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping):
        words.append(metadata.get("raw"))
    texts = [_text(word)[:_MAX_ERROR_CHARS] for word in words if word and _whole(word) is None]
    text = " ".join(dict.fromkeys(texts))
    code = _text(error.get("code") or error.get("type") or "")[:_MAX_NAME_CHARS]
    return AnswerError(status if status >= 400 else _status_of(error), text, code)


def _error_of(body: Any) -> Mapping[str, Any] | None:
    """The error object of a body, in any of its places."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    body = in_openai_form(body)
    if not isinstance(body, Mapping):
        return None
    if body.get("object") == "error":
        return body
    choice = _first_choice(body)
    for holder in (body, choice):
        error = holder.get("error")
        # Some servers send an error that says nothing beside a good answer.
        if isinstance(error, Mapping) and error and (any(error.values()) or not choice):
            return error
        if isinstance(error, str) and error.strip():
            return {"message": error}
    if choice.get("finish_reason") == "error":
        return {"message": "the answer ended with an error"}
    return None if "choices" in body else _unnamed_error(body)


def _unnamed_error(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error of a body that is no completion and has its words under another name."""
    errors = body.get("errors")
    if isinstance(errors, list) and errors:
        return errors[0] if isinstance(errors[0], Mapping) else {"message": errors[0]}
    for name in ("detail", "message", "msg"):
        if body.get(name):
            return {"message": body[name], "code": body.get("code")}
    return None


def _status_of(error: Mapping[str, Any]) -> int:
    for name in ("code", "status", "type"):
        value = error.get(name)
        number = _whole(value)
        if number is not None and 400 <= number <= 599:
            return number
        named = _STATUS_OF_CODE.get(_text(value).lower())
        if named is not None:
            return named
    return _UNNAMED_ERROR


# Completions.

_CUT_FINISHES = (
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
    "model_length",
    "token_limit",
    "incomplete",
)
"""Finish reasons of a reply that reached its limit, by providers."""


def completion_of(body: Any) -> Completion:
    """The completion in the JSON body of an answer that holds no error.

    Raises NotACompletion for anything else; an answer without choices is one without text.
    """
    body = in_openai_form(body)
    if not isinstance(body, Mapping) or "choices" not in body:
        raise NotACompletion("the provider's answer is not a chat completion")
    choices = body["choices"]
    if choices is not None and not isinstance(choices, list):
        raise NotACompletion("the provider's answer is not a chat completion")
    about = (counts_of(body), _name(body.get("model")), _name(body.get("system_fingerprint")))
    if not choices:
        return Completion(None, "none", None, *about)
    choice = next((each for each in choices if _text_of(each)), _first_choice(body))
    message = _message_of(choice)
    text = _text_of(choice)
    return Completion(text, _finish(choice.get("finish_reason")), _refusal(message), *about)


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _message_of(choice: Any) -> Mapping[str, Any]:
    """The message of a choice, under any of its names."""
    if not isinstance(choice, Mapping):
        return {}
    message = choice.get("message") or choice.get("delta")
    if isinstance(message, str):
        return {"content": message}
    return message if isinstance(message, Mapping) else {"content": choice.get("text")}


def _text_of(choice: Any) -> str | None:
    """The text of a choice: its content or, without any, what stands in place of it."""
    message = _message_of(choice)
    text = _content_text(message.get("content"))
    return text if text else _text_beside(message) or text


def _text_beside(message: Mapping[str, Any]) -> str | None:
    """The reply of a server that makes a function call of the form that it was asked for."""
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    function = call.get("function") if isinstance(call, Mapping) else message.get("function_call")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    for value in (arguments, message.get("parsed")):
        if isinstance(value, str) and value.strip():
            return without_lone_surrogates(value)
        if isinstance(value, Mapping) and value:
            return json.dumps(value)
    return None


def _content_text(content: Any) -> str | None:
    """The text of a message's content: text, or a list of parts; thoughts are no answer."""
    if isinstance(content, str):
        return without_lone_surrogates(content)
    if isinstance(content, Mapping):
        is_part = "type" in content or content.keys() == {"text"}
        if not is_part:  # the object that the text should have held
            return json.dumps(content) if content else None
        content = [content]
    if not isinstance(content, list):
        return None
    texts = [text for part in content if (text := _part_text(part)) is not None]
    return without_lone_surrogates("".join(texts)) if texts else None


def _part_text(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type", "text") not in ("text", "output_text"):
        return None
    text = part.get("text")
    if isinstance(text, Mapping):
        text = text.get("value")
    return text if isinstance(text, str) else None


def _refusal(message: Mapping[str, Any]) -> str | None:
    """The words of a refusal, of the message or of one of its parts; None if there are none."""
    refusals = [message.get("refusal")]
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") == "refusal":
            refusals.append(part.get("refusal"))
    for refusal in refusals:
        if isinstance(refusal, str) and refusal.strip():
            return without_lone_surrogates(refusal)
    return None


def _finish(reason: Any) -> str:
    finish = without_lone_surrogates(_text(reason or "stop")).lower()
    return "length" if finish in _CUT_FINISHES else finish


def _name(value: Any) -> str | None:
    """A name that a provider gives, on one line."""
    if not isinstance(value, str) or not value.strip():
        return None
    return without_lone_surrogates(" ".join(value.split()))[:_MAX_NAME_CHARS]


# Tokens.


def counts_of(body: Any) -> Counts:
    """The tokens that a body counts; None where it counts none, or none that can be.

    It may be an answer that cannot be used otherwise: it is billed all the same.
    """
    usage = _usage_of(in_openai_form(body))
    if usage is None:
        return _gemini_counts(in_openai_form(body))
    read = _first(
        _detail(usage, "prompt_tokens_details", "cached_tokens"),
        _detail(usage, "input_tokens_details", "cached_tokens"),
        usage.get("cache_read_input_tokens"),
        usage.get("prompt_cache_hit_tokens"),
    )
    written = _first(
        _detail(usage, "prompt_tokens_details", "cache_write_tokens"),
        _detail(usage, "prompt_tokens_details", "cache_creation_tokens"),
        usage.get("cache_creation_input_tokens"),
    )
    reasoning = _first(
        _detail(usage, "completion_tokens_details", "reasoning_tokens"),
        _detail(usage, "output_tokens_details", "reasoning_tokens"),
        usage.get("reasoning_tokens"),
    )
    # Only Anthropic's own answers name their input so and have no total.
    is_anthropic = "input_tokens" in usage and "total_tokens" not in usage
    prompt = _whole(_first(usage.get("prompt_tokens"), usage.get("input_tokens")))
    output = _whole(_first(usage.get("completion_tokens"), usage.get("output_tokens")))
    total = _whole(usage.get("total_tokens"))
    if output is None and prompt is not None and total is not None and total > prompt:
        output = total - prompt
    tokens = call_tokens(
        prompt,
        output,
        total=total,
        cache_read=_whole(read),
        cache_write=_whole(written),
        reasoning=_whole(reasoning),
        cache_placement="beside" if is_anthropic else "inside",
    )
    return _counts(tokens, read, written)


def _usage_of(body: Any) -> Mapping[str, Any] | None:
    """The counts of a body in OpenAI's or Anthropic's names; None without any."""
    if not isinstance(body, Mapping):
        return None
    groq = body.get("x_groq")
    for holder in (body, groq if isinstance(groq, Mapping) else {}):
        usage = holder.get("usage")
        if isinstance(usage, Mapping):
            return usage
    if "eval_count" in body or "prompt_eval_count" in body:  # Ollama's
        return {
            "prompt_tokens": body.get("prompt_eval_count"),
            "completion_tokens": body.get("eval_count"),
        }
    return None


def _gemini_counts(body: Any) -> Counts:
    """The tokens in an answer of Google's own form."""
    usage = body.get("usageMetadata") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return Counts()
    read = usage.get("cachedContentTokenCount")
    tokens = call_tokens(
        _whole(usage.get("promptTokenCount")),
        _whole(usage.get("candidatesTokenCount")),
        total=_whole(usage.get("totalTokenCount")),
        cache_read=_whole(read),
        reasoning=_whole(usage.get("thoughtsTokenCount")),
        reasoning_placement="beside",
    )
    return _counts(tokens, read, None)


def _counts(tokens: CallTokens, read: Any, written: Any) -> Counts:
    """Plausible counts; `read` and `written` are what the provider said of its cache."""
    sums = (tokens.input, tokens.output)
    if not tokens.input or any(number is not None and number > MAX_TOKEN_COUNT for number in sums):
        return Counts(None, tokens.output if tokens.input is None else None)
    return Counts(
        tokens.input,
        tokens.output,
        0 if read is None else tokens.cache_read,
        0 if written is None else tokens.cache_write,
        tokens.reasoning,
    )


def _first(*values: Any) -> Any:
    """The first value that is not None."""
    return next((value for value in values if value is not None), None)


def _detail(usage: Mapping[str, Any], group: str, name: str) -> Any:
    details = usage.get(group)
    return details.get(name) if isinstance(details, Mapping) else None


def _whole(value: Any) -> int | None:
    """A whole number, which some servers write as text; None for anything else."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _MAX_DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) <= 2**53 and value == int(value) else None


def _text(value: Any) -> str:
    """A value as text; JSON for what is no text."""
    return value if isinstance(value, str) else json.dumps(value)


# Streams.


_BESIDE_CHOICES = (
    "model",
    "system_fingerprint",
    "usage",
    "x_groq",
    "usageMetadata",
    "prompt_eval_count",
    "eval_count",
    "error",
)


def _joined(values: Sequence[Any]) -> dict[str, Any]:
    """The answer that the chunks of a stream make up; ValueError if it has none."""
    chunks = [in_openai_form(value) for value in values if isinstance(value, dict)]
    if not chunks:
        raise NotACompletion("the provider's stream has no chunk")
    body: dict[str, Any] = {}
    texts: list[str] = []
    finish = refusal = None
    for chunk in chunks:
        for name in _BESIDE_CHOICES:
            if chunk.get(name) is not None:
                body[name] = chunk[name]
        choice = _first_choice(chunk)
        delta = _message_of(choice)
        texts.append(_content_text(delta.get("content")) or "")
        refusal = refusal or _refusal(delta)
        finish = choice.get("finish_reason") or finish
    # A stream that broke off has no finish reason, and its text is not the whole answer.
    message = {"content": "".join(texts), "refusal": refusal}
    body["choices"] = [{"message": message, "finish_reason": finish or "length"}]
    return body


def _chunks(text: str) -> Iterator[Any]:
    """The values of a stream of events; one that breaks off may end within a line."""
    # Not `splitlines`: JSON may hold other separators of lines than these.
    lines = [line.strip() for line in text.split("\n")]
    data = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    for number, value in enumerate(data, 1):
        if not value or value == "[DONE]":
            continue
        try:
            yield loads(value)
        except ValueError:
            if number < len(data):
                raise
