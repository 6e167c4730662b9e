"""Conversations of AutoGen 0.4 and later: results of a team, its state, logs of its messages.

Messages name their type and their speaker (`source`). What `user` says, or an agent that asked for
a person's input, is the user's; each reply of another agent is a turn of its own with the speaker.
Of a saved state, the thread of the group chat counts, or the context of the only agent. Messages of
AutoGen 0.2 have roles and are read as `openai`. Source: autogen-agentchat 0.7.5 `messages.py`,
`state/_states.py`; autogen-core 0.7.5 `models/_types.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects
from .files import read_runs
from .recognise import shape
from .usage import usage_tokens

_EXPECTED = "expected messages of AutoGen (`source`, `type`), a result with them, or a saved state"
_USER = "user"
_REPLIES = ("TextMessage", "MultiModalMessage", "AssistantMessage", "CodeGenerationEvent")
_HANDLERS = ("StopMessage", "HandoffMessage")
"""Messages that an agent's program makes: the text stays, without a turn."""
_LEFT_OUT = {
    "ToolCallSummaryMessage": "summaries that repeat the results of calls",
    "ModelClientStreamingChunkEvent": "pieces of replies that follow as a whole",
    "UserInputRequestedEvent": "requests for a person's input",
    "SelectSpeakerEvent": "choices of the next speaker",
    "SelectorEvent": "choices of the next speaker",
}
_STRUCTURED = "StructuredMessage"
_TYPES = {
    *_REPLIES,
    *_HANDLERS,
    *_LEFT_OUT,
    "ThoughtEvent",
    "ToolCallRequestEvent",
    "ToolCallExecutionEvent",
    "FunctionExecutionResultMessage",
    "CodeExecutionEvent",
    "MemoryQueryEvent",
    "UserMessage",
    "SystemMessage",
}


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every conversation of the file."""
    return read_runs(path, _is_line, _draft)


def _type(value: Any) -> str:
    """The type of a message; "" for anything else."""
    message = as_object(value)
    kind = message.get("type")
    has_content = "content" in message or "result" in message
    return kind if isinstance(kind, str) and has_content and "role" not in message else ""


def _is_known(value: Any) -> bool:
    kind = _type(value)
    return kind in _TYPES or kind.startswith(_STRUCTURED)


def _is_line(value: Any) -> bool:
    """Whether a value is a message, or the result that ends a stream of messages."""
    return _is_known(value) or _is_result(value)


def _is_result(value: Any) -> bool:
    header = as_object(value)
    return "stop_reason" in header and isinstance(header.get("messages"), list)


def _thread(value: dict[str, Any]) -> list[Any] | None:
    """The messages of a result or of a saved state; None without any.

    A team's state has those of its manager, and those of each agent, which repeat them.
    """
    for key in ("messages", "message_thread"):
        if isinstance(value.get(key), list) and value[key]:
            return list(value[key])
    if _is_known(value.get("chat_message")):  # the answer of one agent
        inner = value.get("inner_messages")
        return [*(inner if isinstance(inner, list) else []), value["chat_message"]]
    context = as_object(value.get("llm_context"))
    if isinstance(context.get("messages"), list):
        return list(context["messages"])
    states = as_objects(list(as_object(value.get("agent_states")).values()))
    states += as_objects([value.get("agent_state"), value.get("inner_team_state")])
    threads = [(state, _thread(state)) for state in states]
    of_managers = (thread for state, thread in threads if thread and "message_thread" in state)
    of_agents = [thread for _, thread in threads if thread]
    return next(of_managers, of_agents[0] if len(of_agents) == 1 else None)


def _draft(value: Any, name: str, path: Path, location: str) -> Draft:
    result = as_object(value)
    messages = _thread(result) if result else value
    if isinstance(value, list):  # one message a line; the result at the end has them again
        result = next((item for item in value if _is_result(item)), {})
        messages = [item for item in value if not _is_result(item)] or _thread(result)
    if not isinstance(messages, list) or not any(map(_is_known, messages)):
        raise InputError(f"{location}is not a conversation of AutoGen", _EXPECTED, path)
    draft = Draft(as_id(result.get("id")) or name, "autogen")
    _Conversation(draft, messages).add_all()
    draft.add_outcomes(result.get("stop_reason"), "", "stop_reason")
    return draft


class _Conversation:
    """Adds the messages of several speakers to one draft."""

    def __init__(self, draft: Draft, messages: list[Any]) -> None:
        self._draft = draft
        self._messages = messages
        self._thoughts: dict[str, list[str]] = {}
        """Thoughts that stand before the reply to which they belong, by speaker."""
        known = [message for message in messages if _is_known(message)]
        self._persons = {_USER} | {
            _source(message) for message in known if _type(message) == "UserInputRequestedEvent"
        }
        agents = {_source(message) for message in known} - self._persons - {""}
        self._has_speakers = len(agents) > 1

    def add_all(self) -> None:
        """Add every message; those of an unknown type are counted."""
        for message in self._messages:
            kind = _type(message)
            if _is_known(message):
                self._add(kind, message)
            else:
                self._draft.lost[f"messages of the type {kind[:40] or 'unknown'}"] += 1
        for texts in self._thoughts.values():
            self._draft.lost["thoughts without a reply"] += len(texts)

    def _add(self, kind: str, message: dict[str, Any]) -> None:
        draft, content = self._draft, message.get("content")
        ts = draft.elapsed(message.get("created_at"))
        source = _source(message)
        is_reply = kind in _REPLIES or kind.startswith(_STRUCTURED)
        if kind in _LEFT_OUT:
            draft.lost[_LEFT_OUT[kind]] += 1
        elif kind == "SystemMessage":
            draft.system(content)
        elif kind == "ThoughtEvent":
            self._thoughts.setdefault(source, []).append(content_text(content))
        elif kind == "UserMessage" or (is_reply and source in self._persons):
            self._add_user(message, ts)
        elif kind in _HANDLERS:
            draft.message({"role": "user", "name": source, "content": content})
        elif kind == "MemoryQueryEvent":
            for memory in as_objects(content):
                draft.context("memory", memory.get("content"))
        elif kind == "CodeExecutionEvent":
            self._add_execution(message, ts)
        elif kind in ("ToolCallExecutionEvent", "FunctionExecutionResultMessage"):
            for result in as_objects(content):
                _add_result(draft, result, ts)
        else:
            self._add_reply(kind, message, ts)

    def _add_user(self, message: dict[str, Any], ts: float | None) -> None:
        content, source = _chat_content(message.get("content")), _source(message)
        if source in self._persons or not source:
            self._draft.user(content, ts)
        else:  # another agent's words in the context of this one
            self._draft.message({"role": "user", "name": source, "content": content})

    def _add_reply(self, kind: str, message: dict[str, Any], ts: float | None) -> None:
        source, content = _source(message), message.get("content")
        thoughts = self._thoughts.pop(source, [])
        if text_or_none(message.get("thought")):
            thoughts.append(message["thought"])
        calls: list[Call] = []
        has_calls = kind == "ToolCallRequestEvent" or (
            kind == "AssistantMessage" and isinstance(content, list)
        )
        if has_calls:
            calls, content = self._calls(content), None
        elif kind == "CodeGenerationEvent":
            blocks = as_objects(message.get("code_blocks"))
            calls = [Call("execute_code", block) for block in blocks if block.get("code")]
        self._draft.assistant(
            _chat_content(content),
            calls,
            reasoning="\n\n".join(thoughts),
            ts=ts,
            tokens=usage_tokens(message.get("models_usage")),
            speaker=source if self._has_speakers else None,
        )

    def _calls(self, content: Any) -> list[Call]:
        calls = []
        for item in content if isinstance(content, list) else [content]:
            call = as_object(item)
            if text_or_none(call.get("name")) and "arguments" in call:
                calls.append(Call(call["name"], call["arguments"], as_id(call.get("id"))))
            else:
                self._draft.count_unread_call()
        return calls

    def _add_execution(self, message: dict[str, Any], ts: float | None) -> None:
        """The result of the code in the last reply: all blocks of it ran as one."""
        result = as_object(message.get("result"))
        self._draft.result(None, result.get("output"), exit_code=result.get("exit_code"), ts=ts)


def _source(message: dict[str, Any]) -> str:
    return text_or_none(message.get("source")) or ""


def _chat_content(content: Any) -> Any:
    """Content in chat shape: texts and images of a list become blocks, an object its JSON text."""
    if isinstance(content, list):
        return [_block(item) for item in content]
    if content is None or isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False)


def _block(item: Any) -> dict[str, Any]:
    return {"type": "text", "text": item} if isinstance(item, str) else {"type": "image"}


def _add_result(draft: Draft, result: dict[str, Any], ts: float | None) -> None:
    call_id = as_id(result.get("call_id"))  # some models have none
    draft.result(call_id, result.get("content"), kind=stated_kind(result), ts=ts)


def _recognises(head: bytes, name: str) -> bool:
    """By the types of messages that only AutoGen has, wherever they stand."""
    paths = shape(head)
    marks = {path.rsplit("type=", 1)[-1] for path in paths if "type=" in path}
    if marks & {"TeamState", "AssistantAgentState", "ChatAgentContainerState"}:
        return True
    has_source = any(path.rsplit(".", 1)[-1] == "source" for path in paths)
    return has_source and bool(marks & _TYPES)


IMPORTER = Importer(read, (".json", ".jsonl"), _recognises)
