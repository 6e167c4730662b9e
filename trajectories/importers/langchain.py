"""Messages of LangChain and LangGraph: lists, states, snapshots, streams of updates.

A message is dumped in three ways: as it is (`type` human, ai, tool), with its fields in `data`,
and as a constructor (`lc`, `kwargs`). A state has them in `messages`; a snapshot has a state in
`values` or `channel_values`. A list of snapshots is the history of one thread: the one with most
messages counts. A stream of updates has them by the node that made them. Source: langchain-core
1.8.4 `messages`, `load/dump.py`; langgraph 1.2.24 `types.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import text_or_none
from ..reading.messages import is_readable_call
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, first_of, unwrap_text
from .files import read_runs
from .openai_chat import chat_calls
from .recognise import shape
from .usage import usage_tokens

_EXPECTED = "expected messages of LangChain (`type` human, ai, ...), or a state with `messages`"
_TYPES = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessage": "system",
    "SystemMessageChunk": "system",
    "developer": "system",
    "tool": "tool",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
    "FunctionMessage": "tool",
    "chat": "chat",
    "ChatMessage": "chat",
    "remove": "remove",
    "RemoveMessage": "remove",
}
"""Who a message is by, from its `type` or the name of its class."""
_STATES = ("values", "channel_values", "outputs", "output", "checkpoint")
_THOUGHTS = ("reasoning", "thinking", "redacted_thinking", "reasoning_content")
_CALL_BLOCKS = (
    "tool_use",
    "tool_call",
    "tool_call_chunk",
    "function_call",
    "invalid_tool_call",
    "server_tool_call",
)
"""Blocks that repeat the calls of their message."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every conversation of the file."""
    return read_runs(path, _is_part, _draft, _newest)


def _message(value: Any) -> dict[str, Any] | None:
    """The fields of a message with its `type`, however it is dumped; None for anything else."""
    fields = as_object(value)
    if fields.get("lc") and isinstance(fields.get("kwargs"), dict):
        names = fields.get("id")
        name = names[-1] if isinstance(names, list) and names else None
        fields = {**fields["kwargs"], "type": name}
    elif isinstance(fields.get("data"), dict) and "content" in fields["data"]:
        fields = {**fields["data"], "type": fields.get("type")}
    is_message = isinstance(fields.get("type"), str) and "content" in fields
    return fields if is_message and "role" not in fields else None


def _is_known(value: Any) -> bool:
    message = _message(value)
    return message is not None and message["type"] in _TYPES


def _is_part(value: Any) -> bool:
    """Whether a value is a message, or an update of one or more nodes."""
    return _is_known(value) or bool(_updates(value))


def _updates(value: Any) -> list[tuple[str, Any]]:
    """The messages of an update with the nodes that made them; none if it is not an update."""
    nodes = as_object(value)
    if not nodes or any(key in nodes for key in ("messages", "type", "role", *_STATES)):
        return []
    pairs = []
    for node, update in nodes.items():
        messages = as_object(update).get("messages")
        items = messages if isinstance(messages, list) else [messages]
        if messages is None or not all(map(_is_known, items)):
            return []
        pairs += [(node, item) for item in items]
    return pairs


def _state(value: Any) -> dict[str, Any]:
    """The object that has the messages, itself or in a field of a snapshot; empty without one."""
    state = as_object(value)
    for _ in range(3):
        if isinstance(state.get("messages"), list):
            return state
        state = next((as_object(state[key]) for key in _STATES if state.get(key)), {})
    return {}


def _newest(value: Any) -> Any:
    """The snapshot with most messages of a list of snapshots; any other value as it is."""
    snapshots = as_objects(value)
    is_history = len(snapshots) > 1 and all(
        _state(item) and ("values" in item or "checkpoint" in item) for item in snapshots
    )
    if not is_history:
        return value
    return max(snapshots, key=lambda item: len(_state(item)["messages"]))


def _draft(value: Any, name: str, path: Path, location: str) -> Draft:
    header = as_object(value)
    state = _state(value)
    if state:
        items = state["messages"]
        # A run of LangSmith has a list of messages for each prompt.
        if len(items) == 1 and isinstance(items[0], list):
            items = items[0]
        pairs = [("", item) for item in items]
    elif isinstance(value, list):
        pairs = [pair for item in value for pair in _updates(item) or [("", item)]]
    else:
        pairs = _updates(value)
    if not any(_is_known(item) for _, item in pairs):
        raise InputError(f"{location}is not a conversation of LangChain", _EXPECTED, path)
    configuration = as_object(as_object(header.get("config")).get("configurable"))
    thread = as_id(configuration.get("thread_id"))
    draft = Draft(thread or as_id(header.get("id")) or name, "langchain")
    speakers = {_speaker(node, item) for node, item in pairs} - {None}
    for node, item in pairs:
        message = _message(item)
        if message is None:
            draft.lost["messages of an unknown shape"] += 1
            continue
        speaker = _speaker(node, item) if len(speakers) > 1 else None
        _add(draft, message, speaker)
    others = {key: item for key, item in (state or {}).items() if key != "messages"}
    draft.add_outcomes(others, "state")
    for key in ("created_at", "next"):
        if header is not state and header.get(key):
            draft.origin[key] = header[key]
    return draft


def _speaker(node: str, item: Any) -> str | None:
    """Who a reply is by: the name that it has, else the node that made it."""
    message = _message(item)
    if message is None or _TYPES.get(message["type"]) != "assistant":
        return None
    return text_or_none(message.get("name")) or node or None


def _add(draft: Draft, message: dict[str, Any], speaker: str | None) -> None:
    role, content = _TYPES.get(message["type"]), message.get("content")
    if role == "chat":
        role = {"assistant": "assistant", "system": "system"}.get(str(message.get("role")), "user")
    if role == "assistant" and message.get("example") is True:
        draft.context("assistant", content, len(as_objects(message.get("tool_calls"))))
    elif role == "assistant":
        _add_reply(draft, message, speaker)
    elif role == "system":
        draft.system(unwrap_text(content))
    elif role == "user" and text_or_none(message.get("name")):
        draft.message({"role": "user", "name": message["name"], "content": unwrap_text(content)})
    elif role == "user":
        draft.user(unwrap_text(content))
    elif role == "tool":
        _add_result(draft, message)
    elif role == "remove":
        draft.odd["messages that the agent removed later, which stay"] += 1
    else:
        draft.lost[f"messages of the type {message['type'][:40]}"] += 1


def _add_reply(draft: Draft, message: dict[str, Any], speaker: str | None) -> None:
    more, metadata = (as_object(message.get(key)) for key in _SIDES)
    draft.model = draft.model or text_or_none(first_of(metadata, "model_name", "model"))
    content, thoughts = _without_calls(message.get("content"))
    thought = text_or_none(more.get("reasoning_content"))
    invalid = as_objects(message.get("invalid_tool_calls"))
    draft.assistant(
        content,
        [*_calls(draft, message, more), *(parse_call(call) for call in invalid)],
        reasoning=thoughts or thought,
        tokens=usage_tokens(message.get("usage_metadata"))
        or usage_tokens(first_of(metadata, "token_usage", "tokenUsage", "usage")),
        finish=first_of(metadata, *_FINISH),
        speaker=speaker,
    )
    for call in invalid:  # they never reach a tool
        error = text_or_none(call.get("error")) or "the arguments cannot be parsed"
        draft.result(as_id(call.get("id")), error, kind="failed")


_FINISH = ("finish_reason", "finishReason", "stop_reason", "done_reason")
_SIDES = ("additional_kwargs", "response_metadata")


def _calls(draft: Draft, message: dict[str, Any], more: dict[str, Any]) -> list[Call]:
    """The calls of a reply; earlier versions have them only as the provider sent them."""
    stated_calls = message.get("tool_calls")
    if not isinstance(stated_calls, list) or not stated_calls:
        return list(chat_calls(more))
    calls = [parse_call(call) for call in stated_calls if is_readable_call(call)]
    for _ in range(len(stated_calls) - len(calls)):
        draft.count_unread_call()
    return calls


def _without_calls(content: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The content without blocks that repeat calls, and its blocks of reasoning."""
    if not isinstance(content, list):
        return content, []
    texts, thoughts = [], []
    for block in content:
        kind = as_object(block).get("type")
        if kind in _THOUGHTS:
            thoughts.append(block)
        elif isinstance(block, str):
            texts.append({"type": "text", "text": block})
        elif kind not in _CALL_BLOCKS:
            texts.append(block)
    return unwrap_text(texts), thoughts


def _add_result(draft: Draft, message: dict[str, Any]) -> None:
    if message.get("artifact") is not None:
        draft.lost["artifacts of tool results"] += 1
    draft.result(
        as_id(message.get("tool_call_id")), message.get("content"), kind=stated_kind(message)
    )


def _recognises(head: bytes, name: str) -> bool:
    """By the words human and ai as types of messages, or LangChain's constructors."""
    paths = shape(head)
    if any(path.endswith("kwargs.content") for path in paths) and any(
        path.endswith("type=constructor") for path in paths
    ):
        return True
    types = {path for path in paths if path.endswith(("type=human", "type=ai"))}
    return any(_stands_beside_content(path, paths) for path in types)


def _stands_beside_content(path: str, paths: frozenset[str]) -> bool:
    prefix = path[: path.rindex("type=")]
    return f"{prefix}content" in paths or f"{prefix}data.content" in paths


IMPORTER = Importer(read, (".json", ".jsonl"), _recognises)
