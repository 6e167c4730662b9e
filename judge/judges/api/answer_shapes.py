"""Answers in other shapes, as a chat completion of OpenAI's form.

A server behind an OpenAI-compatible address may answer as another API does (Responses, Anthropic,
Gemini, Ollama), wrap its answer in an envelope, or encode it twice. The tokens that it counts stay
where they are: `answers.counts_of` knows each API's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....trajectories.reading.json_bytes import loads

_ENVELOPES = ("result", "data", "response", "body")
_MARKS = ("choices", "candidates", "output", "promptFeedback")
"""Fields of which an answer of some API has at least one."""


def in_openai_form(body: Any) -> Any:
    """The body with `choices`, if it is an answer of any known shape; else the body as it is."""
    body = _unwrapped(body)
    if not isinstance(body, Mapping):
        return body
    if "choices" in body:
        choices = body["choices"]
        return {**body, "choices": [choices]} if isinstance(choices, Mapping) else body
    for read in (_responses, _gemini, _anthropic, _ollama):
        choice = read(body)
        if choice is not None:
            return {**body, "choices": [choice]}
    return body


def _unwrapped(body: Any) -> Any:
    """The answer in an envelope, or in a text that holds JSON once more."""
    if isinstance(body, str) and body.lstrip().startswith("{"):
        body = loads(body)
    if not isinstance(body, Mapping) or _has_mark(body):
        return body
    for name in _ENVELOPES:
        inner = body.get(name)
        if isinstance(inner, Mapping) and _has_mark(inner):
            return inner
    return body


def _has_mark(body: Mapping[str, Any]) -> bool:
    return any(name in body for name in _MARKS)


def _responses(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The choice in an answer of OpenAI's Responses API."""
    output = body.get("output")
    if not isinstance(output, list):
        return None
    parts: list[Any] = []
    for item in output:
        if isinstance(item, Mapping) and item.get("type") == "message":
            content = item.get("content")
            parts += content if isinstance(content, list) else [content]
    details = body.get("incomplete_details")
    finish = details.get("reason") if isinstance(details, Mapping) else None
    return {"message": {"content": parts or None}, "finish_reason": finish}


def _gemini(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The choice in an answer of Google's; a blocked prompt has no candidate."""
    candidates = body.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        feedback = body.get("promptFeedback")
        is_blocked = isinstance(feedback, Mapping) and feedback.get("blockReason")
        return {"message": {}, "finish_reason": "safety"} if is_blocked else None
    first = candidates[0] if isinstance(candidates[0], Mapping) else {}
    content = first.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    spoken = [
        part
        for part in (parts if isinstance(parts, list) else ())
        if not (isinstance(part, Mapping) and part.get("thought"))
    ]
    return {"message": {"content": spoken or None}, "finish_reason": first.get("finishReason")}


def _anthropic(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The choice in an answer of Anthropic's."""
    if body.get("type") != "message" or not isinstance(body.get("content"), list):
        return None
    return {"message": {"content": body["content"]}, "finish_reason": body.get("stop_reason")}


def _ollama(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The choice in an answer of Ollama's, or in one line of its stream."""
    if "done" not in body or not isinstance(body.get("message"), Mapping):
        return None
    finish = body.get("done_reason") or "stop" if body["done"] else None
    return {"message": body["message"], "finish_reason": finish}
