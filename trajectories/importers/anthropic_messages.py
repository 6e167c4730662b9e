"""Transcripts of Anthropic's Messages API: `system`, and messages of content blocks.

`tool_use` becomes a tool call, `tool_result` its result, thinking blocks `reasoning_details` with
their signatures. Tools that the server runs (`server_tool_use`, `*_tool_result`) are calls like any
other. Messages that are stored as complete responses also have their tokens. Source: Anthropic API
reference, Messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import kind_of_error, stated_kind
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Draft, parse_call
from .fields import as_id, as_object, as_objects, unwrap_text
from .files import WrongFormat, read_runs
from .recognise import has_keys
from .usage import usage_tokens

_EXPECTED = "expected objects with `messages` of `role` and `content`, and `system` beside them"
_CALL_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use")
_THINKING_TYPES = ("thinking", "redacted_thinking")


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every transcript of the file."""
    return read_runs(path, _is_message, _draft)


def _is_message(value: Any) -> bool:
    return "role" in as_object(value)


def _draft(value: Any, name: str, path: Path, location: str) -> Draft:
    header = as_object(value)
    messages = value if isinstance(value, list) else header.get("messages")
    if not isinstance(messages, list) or not any(map(_is_message, messages)):
        raise InputError(f"{location}is not a transcript of the Messages API", _EXPECTED, path)
    if any(map(_is_openai_message, messages)):
        raise WrongFormat(f"{location}has tool messages of OpenAI's chat shape", "openai", path)
    draft = Draft(
        as_id(header.get("id")) or name,
        "anthropic",
    )
    draft.read_identity(header)
    draft.system(unwrap_text(header.get("system")))
    for message in messages:
        role = as_object(message).get("role")
        if role == "assistant":
            add_assistant(draft, message)
        elif role == "user":
            add_user(draft, message.get("content"))
        elif role == "system":
            draft.system(message.get("content"))
        else:
            draft.lost["messages without a known role"] += 1
    if header.get("tools"):
        draft.has_tools = True
        draft.lost["list of tool definitions"] += 1
    return draft


def _is_openai_message(value: Any) -> bool:
    message = as_object(value)
    return message.get("role") == "tool" or bool(message.get("tool_calls"))


def add_assistant(draft: Draft, message: dict[str, Any], ts: float | None = None) -> None:
    """An assistant message with its calls, and the results of server tools that it contains."""
    content = message.get("content")
    texts, thoughts, calls, results = [], [], [], []
    for block in as_objects(content):
        kind = block.get("type")
        if kind in _CALL_TYPES:
            calls.append(parse_call(block))
        elif kind in _THINKING_TYPES:
            thoughts.append(block)
        elif isinstance(kind, str) and kind.endswith("_tool_result"):
            results.append(block)
        else:
            texts.append(block)
    draft.model = draft.model or text_or_none(message.get("model"))
    draft.assistant(
        content if isinstance(content, str) else unwrap_text(texts),
        calls,
        reasoning=thoughts,
        ts=ts,
        tokens=usage_tokens(message.get("usage"), cache="beside"),
        finish=message.get("stop_reason"),
    )
    for block in results:
        add_result(draft, block)


def add_user(draft: Draft, content: Any, ts: float | None = None) -> None:
    """A user message: first the results of calls, as the API wants them, then the other blocks."""
    if not isinstance(content, list):
        draft.user(content, ts)
        return
    others = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            add_result(draft, block, ts)
        else:
            others.append(block)
    draft.user(unwrap_text(others), None if len(others) < len(content) else ts)


def add_result(draft: Draft, block: dict[str, Any], ts: float | None = None) -> None:
    """The result of one call; that of Anthropic's code execution has streams and a return code."""
    content, call_id = block.get("content"), as_id(block.get("tool_use_id"))
    kind = stated_kind(block)
    if isinstance(content, dict) and "return_code" in content:
        draft.result(
            call_id,
            content_text(content.get("stdout")),
            stderr=content_text(content.get("stderr")),
            exit_code=content["return_code"],
            kind=kind,
            ts=ts,
        )
        return
    error_code = as_object(content).get("error_code")
    if block.get("type") not in ("tool_result", "mcp_tool_result") and not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False)
    draft.result(call_id, content, kind=kind or kind_of_error(error_code), ts=ts)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys(
        "messages.content.type=tool_use",
        "messages.content.type=tool_result",
        "system messages.role",
        "role content.type=tool_use",
        "role content.type=tool_result",
    ),
)
