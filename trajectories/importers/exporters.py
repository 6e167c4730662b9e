"""Drafts to the shapes of other formats: OpenAI chat messages and Anthropic's Messages API.

What a tool answered goes back as plain text where only its text is known (exit code null, one
stream), and as the harness's JSON with exit code and both streams elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...plugins import Door
from ..reading.json_bytes import loads
from ..reading.messages import content_text
from .draft import Draft
from .fields import as_object, as_objects, parse_object, unwrap_text

Exporter = Callable[[Draft], dict[str, Any]]
"""The value to write as JSON; what the format has no place for is counted in `Draft.lost`."""
EXPORTERS: Door[Exporter] = Door(
    "exporters",
    "format",
    {"openai": f"{__name__}:to_openai", "anthropic": f"{__name__}:to_anthropic"},
    lambda name, loaded: "" if callable(loaded) else "it is no function",
)
_DATA = re.compile(r"data:([\w.+/-]{1,100});base64,", re.ASCII)


def to_openai(draft: Draft) -> dict[str, Any]:
    """`model` and chat `messages`, the system prompt as the first of them."""
    messages: list[dict[str, Any]] = []
    if draft.system_prompt is not None:
        messages.append({"role": "system", "content": draft.system_prompt})
    for message in draft.messages:
        if message.get("role") in ("tool", "function"):
            message = {**message, "content": plain_result(message.get("content"))[0]}
        elif isinstance(message.get("content"), list):
            message = {**message, "content": [_openai_block(block) for block in message["content"]]}
        messages.append(message)
    return {**({"model": draft.model} if draft.model else {}), "messages": messages}


def to_anthropic(draft: Draft) -> dict[str, Any]:
    """`model`, `system` and `messages` of content blocks; answers to calls are blocks of one user
    message.

    What that API has no place for is counted in `draft.lost`: later system messages become user
    messages.
    """
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    asked = 0
    """Calls so far, to name those without an id, which the API wants; answers without one follow in
    order."""
    waiting: list[str] = []
    if draft.system_prompt is not None:
        system.append({"type": "text", "text": draft.system_prompt})
    for message in draft.messages:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            thoughts = as_objects(message.get("reasoning_details"))
            blocks = [
                block
                for block in thoughts
                if block.get("type") in ("thinking", "redacted_thinking")
            ]
            if (
                message.get("reasoning_details") or message.get("reasoning_content")
            ) and not blocks:
                draft.lost["thoughts without a signature"] += 1
            blocks += _blocks(content, draft)
            waiting = []
            for call in as_objects(message.get("tool_calls")):
                asked += 1
                function = as_object(call.get("function"))
                waiting.append(call.get("id") or f"call-{asked}")
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": waiting[-1],
                        "name": content_text(function.get("name")),
                        "input": _input(function.get("arguments"), draft),
                    }
                )
            messages.append({"role": "assistant", "content": blocks})
        elif role in ("tool", "function"):
            text, failed = plain_result(content)
            call_id = message.get("tool_call_id") or (waiting[0] if waiting else None)
            if call_id in waiting:
                waiting.remove(call_id)
            result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
            _user(messages, [result | {"is_error": True} if failed else result])
        elif role in ("system", "developer") and not messages:
            system += _blocks(content, draft)
        else:
            if role in ("system", "developer"):
                draft.lost["later system messages, now user messages"] += 1
            _user(messages, _blocks(content, draft))
    head: dict[str, Any] = {"model": draft.model} if draft.model else {}
    if system:
        head["system"] = unwrap_text(system)
    for message in messages:
        if message["role"] == "user":
            message["content"] = unwrap_text(message["content"])
    return {**head, "messages": messages}


def plain_result(content: Any) -> tuple[Any, bool]:
    """A tool's answer without the harness's JSON where that says nothing more, and whether it was
    marked as an error."""
    body, keys = parse_object(content), {"exit_code", "stdout", "stderr"}
    if not keys <= set(body) <= {*keys, "is_error"}:
        return content, False
    failed, stdout, stderr = body.get("is_error") is True, body["stdout"], body["stderr"]
    texts = isinstance(stdout, str) and isinstance(stderr, str) and body["exit_code"] is None
    alone = texts and not (stdout and stderr) and (failed or not stderr)
    return stdout or stderr if alone else content, failed


def _user(messages: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> None:
    """Add to the user message that answers the last reply, or begin one; answers stand before
    words."""
    if (
        messages
        and messages[-1]["role"] == "user"
        and messages[-1]["content"][-1].get("type") == "tool_result"
    ):
        messages[-1]["content"] += blocks
    elif blocks:
        messages.append({"role": "user", "content": blocks})


def _blocks(content: Any, draft: Draft) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    found = []
    for block in as_objects(content):
        kind = block.get("type")
        source = (
            block.get("image") if kind == "image" else as_object(block.get("image_url")).get("url")
        )
        if isinstance(source, str):
            match = _DATA.match(source)
            image = {"type": "url", "url": source}
            if match:
                image = {"type": "base64", "media_type": match[1], "data": source[match.end() :]}
            found.append({"type": "image", "source": image})
        elif kind in ("input_audio", "file", "audio", "video", "data"):
            draft.lost["audio, video and file blocks"] += 1
        else:
            found.append(block)
    return found


def _openai_block(block: Any) -> Any:
    """Images of other formats as `image_url`; everything else as it is."""
    if not isinstance(block, dict) or block.get("type") != "image":
        return block
    source = as_object(block.get("source"))
    url = block.get("image") or source.get("url")
    if isinstance(source.get("data"), str):
        url = f"data:{source.get('media_type')};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url}} if isinstance(url, str) else block


def _input(arguments: Any, draft: Draft) -> dict[str, Any]:
    """Arguments as an object, which that API wants; broken ones are kept as text under `arguments`."""
    if isinstance(arguments, dict):
        return arguments
    text = content_text(arguments)
    try:
        value = loads(text) if text.strip() else {}
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    draft.lost["arguments that are no JSON object, kept as text"] += 1
    return {"arguments": text}
