"""OpenAI chat messages: one conversation a file, a list of them, or one a line (`messages`, or the
bare list).

Sets for training keep the same under other names: `conversations` of `from` and `value` (ShareGPT),
`trajectory` of `role` and `text`; all are read. What else a conversation brings along (`resolved`,
`score`) becomes outcomes. Batch requests (`body.messages`, `custom_id`) and logs of one message a
line are read too. Messages stay as they are; only what tools answered is put into the harness's
JSON. Source: OpenAI API reference, chat completions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import loads, text_or_none
from . import Importer
from .draft import Call, Draft, as_id, as_object, as_objects, parse_call
from .files import read_runs
from .recognise import has_keys

_EXPECTED = "expected objects with `messages`, or lists of messages with `role`"


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every conversation of the file."""
    return read_runs(path, _is_message, conversation_of)


TURNS = ("messages", "conversations", "conversation", "trajectory", "history", "turns")
"""What sets call the list of messages."""
_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "function_call": "assistant",
}
_KNOWN = {
    *TURNS,
    "id",
    "instance_id",
    "model",
    "model_name",
    "agent",
    "task",
    "tier",
    "tools",
    "functions",
    "system",
}


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "messages" not in value
        and isinstance(value.get("role", value.get("from")), str)
    )


def _message(value: Any) -> Any:
    """A message of ShareGPT's or another set's shape as one of chat."""
    if not isinstance(value, dict) or ("from" not in value and "content" in value):
        return value
    role = str(value.get("role", value.get("from")))
    said = next(
        (value[key] for key in ("content", "value", "text", "system_prompt") if value.get(key)),
        None,
    )
    rest = {
        k: v
        for k, v in value.items()
        if k not in ("role", "from", "content", "value", "text", "system_prompt")
    }
    return {"role": _ROLES.get(role, role), "content": said, **rest}


def listed(head: dict[str, Any]) -> Any:
    """The messages of a conversation, also where they are kept as JSON text; None without any."""
    found = next((head[name] for name in TURNS if isinstance(head.get(name), list | str)), None)
    if isinstance(found, str):
        try:
            found = loads(found)
        except ValueError:
            return None
    return [_message(item) for item in found] if isinstance(found, list) else None


def conversation_of(value: Any, name: str, path: Path, where: str) -> Draft:
    """One conversation, `where` being its place in the file. InputError for what is none."""
    head = as_object(value)
    request = "messages" not in head and isinstance(head.get("body"), dict)
    if request:
        head = {**head["body"], "id": head.get("custom_id")}
    messages = [_message(item) for item in value] if isinstance(value, list) else listed(head)
    if not isinstance(messages, list) or not any(_is_message(m) for m in messages):
        raise InputError(f"{where}is no chat conversation", _EXPECTED, path)
    instance = as_id(head.get("instance_id"))
    draft = Draft(as_id(head.get("id")) or instance or name, "openai")
    draft.model = text_or_none(head.get("model")) or text_or_none(head.get("model_name"))
    for key in ("agent", "task", "tier"):
        setattr(draft, key, text_or_none(head.get(key)))
    draft.task = draft.task or instance
    if not request:
        draft.add_outcomes({key: item for key, item in head.items() if key not in _KNOWN}, "")
    if text_or_none(head.get("system")):
        draft.system(head["system"])
    for message in messages:
        if _is_message(message):
            _add(draft, message, path, where)
        else:
            draft.lost["messages without a role"] += 1
    if head.get("tools") or head.get("functions"):
        draft.lost["list of tool definitions"] += 1
    return draft


def _add(draft: Draft, message: dict[str, Any], path: Path, where: str) -> None:
    role, content = message["role"], message.get("content")
    if any(block.get("type") in ("tool_use", "tool_result") for block in as_objects(content)):
        raise InputError(
            f"{where}has blocks of Anthropic's Messages API", "use the format `anthropic`", path
        )
    if role == "system" and set(message) == {"role", "content"}:
        draft.system(content)
    elif role == "assistant":
        draft.chat_assistant(message, list(chat_calls(message)))
    elif role in ("tool", "function"):
        extra = {
            key: value
            for key, value in message.items()
            if key not in ("content", "tool_call_id", "role")
        }
        draft.result(as_id(message.get("tool_call_id")), content, extra=extra)
        draft.messages[-1]["role"] = role
        if "tool_call_id" not in message:
            del draft.messages[-1]["tool_call_id"]
    else:
        draft.messages.append(message)


def chat_calls(message: dict[str, Any]) -> Iterator[Call]:
    """The tool calls of an assistant message."""
    for call in as_objects(message.get("tool_calls")):
        yield parse_call(call)
    if isinstance(legacy := message.get("function_call"), dict):
        yield parse_call(legacy)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys("messages.role", "body.messages.role", "role content", "conversations.from"),
)
