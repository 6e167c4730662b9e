"""OpenAI chat messages: one conversation a file, a list of them, or one a line.

A conversation is an object with `messages`, or the bare list. Training datasets use other names for
the same, which are read too: `conversations` of `from` and `value` (ShareGPT), `trajectory` of
`role` and `text`. So are batch requests (`body.messages`, `custom_id`) and logs of one message a
line. Other fields of a conversation (`resolved`, `score`) become outcomes. Messages stay as they
are; only results of tools become the harness's JSON. Source: OpenAI API reference, chat
completions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import loads, number, text_or_none
from ..reading.messages import is_readable_call
from . import Importer
from .draft import IDENTITY_FIELDS, Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, first_nonempty, first_of
from .files import WrongFormat, read_runs
from .recognise import has_keys
from .usage import usage_tokens

MESSAGE_KEYS = ("messages", "conversations", "conversation", "trajectory", "history", "turns")
"""What datasets call the list of messages."""
_EXPECTED = "expected objects with `messages`, or lists of messages with `role`"
_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "function_call": "assistant",
}
_ROLE_KEYS = ("role", "from")
_TEXT_KEYS = ("content", "value", "text", "system_prompt")
_NOT_OUTCOMES = {
    *MESSAGE_KEYS,
    *IDENTITY_FIELDS,
    "id",
    "transcript_id",
    "instance_id",
    "task_id",
    "task_set",
    "task_repeat",
    "trial",
    "model_name",
    "tools",
    "functions",
    "system",
}
"""Fields of a conversation that are read, or that say nothing about the run."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every conversation of the file."""
    return read_runs(path, _is_message, conversation_draft)


def conversation_draft(value: Any, name: str, path: Path, location: str) -> Draft:
    """One conversation, at `location` in the file. InputError if `value` is not one."""
    header = as_object(value)
    is_request = "messages" not in header and isinstance(header.get("body"), dict)
    if is_request:
        header = {**header["body"], "id": header.get("custom_id")}
    messages = _messages(value if isinstance(value, list) else header)
    if not any(_is_message(message) for message in messages):
        raise InputError(f"{location}is not a chat conversation", _EXPECTED, path)
    instance = as_id(header.get("instance_id"))
    run_id = as_id(first_of(header, "id", "transcript_id")) or instance
    draft = Draft(run_id or name, "openai", source_id=as_id(header.get("transcript_id")))
    draft.model = text_or_none(header.get("model_name"))
    draft.task = _unit(header) or instance
    repeat = number(first_of(header, "task_repeat", "trial"))
    draft.repeat = int(repeat) if repeat is not None and repeat >= 0 else None
    draft.read_identity(header)
    if not is_request:
        outcomes = {key: item for key, item in header.items() if key not in _NOT_OUTCOMES}
        draft.add_outcomes(outcomes, "")
    if text_or_none(header.get("system")):
        draft.system(header["system"])
    for message in messages:
        if _is_message(message):
            _add(draft, message, path, location)
        else:
            draft.lost["messages without a role"] += 1
    if header.get("tools") or header.get("functions"):
        draft.has_tools = True
        draft.lost["list of tool definitions"] += 1
    return draft


def _unit(header: dict[str, Any]) -> str | None:
    """The task, of which the conversation is one try: `task_set` and `task_id`, as Scout has it."""
    parts = (as_id(header.get("task_set")), as_id(header.get("task_id")))
    return "/".join(part for part in parts if part) or None


def _messages(value: Any) -> list[Any]:
    """The messages of a conversation in chat shape; none if `value` is not a conversation."""
    if isinstance(value, dict):
        value = _message_list(value)
    return [_chat_message(item) for item in value] if isinstance(value, list) else []


def _message_list(header: dict[str, Any]) -> Any:
    """The field with the messages, parsed if it is JSON text."""
    for key in MESSAGE_KEYS:
        value = header.get(key)
        if isinstance(value, list):
            return value
        if isinstance(value, str):
            try:
                return loads(value)
            except ValueError:
                return None
    return None


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or "messages" in value:
        return False
    return isinstance(value.get("role", value.get("from")), str)


def _chat_message(value: Any) -> Any:
    """A message in chat shape, if it is one of ShareGPT or of another dataset."""
    if not isinstance(value, dict) or ("from" not in value and "content" in value):
        return value
    role = str(value.get("role", value.get("from")))
    others = {key: item for key, item in value.items() if key not in (*_ROLE_KEYS, *_TEXT_KEYS)}
    return {"role": _ROLES.get(role, role), "content": first_nonempty(value, *_TEXT_KEYS), **others}


def _add(draft: Draft, message: dict[str, Any], path: Path, location: str) -> None:
    role, content = message["role"], message.get("content")
    if any(block.get("type") in ("tool_use", "tool_result") for block in as_objects(content)):
        raise WrongFormat(f"{location}has blocks of Anthropic's Messages API", "anthropic", path)
    if role == "system" and set(message) == {"role", "content"}:
        draft.system(content)
    elif role == "assistant":
        draft.chat_assistant(message, list(chat_calls(message)))
        cost = first_of(message, "cost", "cost_usd")
        draft.add_usage(usage_tokens(message.get("usage")), cost)
        draft.add_finish(message.get("finish_reason"))
    elif role in ("tool", "function"):
        _add_result(draft, message)
    else:
        draft.message(message)


def _add_result(draft: Draft, message: dict[str, Any]) -> None:
    """A tool's result, with the role and the further fields of its message."""
    names = ("content", "tool_call_id", "role")
    extra = {key: value for key, value in message.items() if key not in names}
    call_id, kind = as_id(message.get("tool_call_id")), stated_kind(message)
    draft.result(call_id, message.get("content"), kind=kind, extra=extra)
    draft.messages[-1]["role"] = message["role"]
    if "tool_call_id" not in message:
        del draft.messages[-1]["tool_call_id"]


def chat_calls(message: dict[str, Any]) -> Iterator[Call]:
    """The tool calls of an assistant message."""
    for call in as_objects(message.get("tool_calls")):
        if is_readable_call(call):
            yield parse_call(call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield parse_call(legacy)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys("messages.role", "body.messages.role", "role content", "conversations.from"),
)
