"""The events of `codex exec --json`, one a line: `thread.started`, `item.completed` and others.

Items say what the agent wrote, ran and changed. The prompt is not among them. Items that began and
never ended have no result. Source: openai/codex `codex-rs/exec/src/exec_events.rs`; `item_type` and
`assistant_message` are from its first versions.
"""

from __future__ import annotations

import shlex
from typing import Any

from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import text_or_none
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects
from .usage import sum_tokens, usage_tokens

_EVENT_PREFIXES = ("thread.", "turn.", "item.")


def is_event(entry: dict[str, Any]) -> bool:
    """Whether a line is one of these events."""
    return str(entry.get("type")).startswith(_EVENT_PREFIXES) and "payload" not in entry


def draft_of_events(name: str, entries: list[dict[str, Any]]) -> Draft:
    """The run of a stream of events."""
    reader = _EventReader(Draft(name, "codex", agent="codex"))
    for entry in entries:
        reader.add(entry)
    reader.end()
    return reader.draft


class _EventReader:
    """Collects messages and reasoning up to the next call, which makes them a turn."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._messages: list[str] = []
        self._thoughts: list[str] = []
        self._open_items: dict[str, dict[str, Any]] = {}
        """Items that began and did not end so far, by id."""
        draft.lost["prompt, which this stream does not hold"] += 1

    def add(self, entry: dict[str, Any]) -> None:
        """Add the next event."""
        kind, item = entry.get("type"), as_object(entry.get("item"))
        item_id = as_id(item.get("id")) or ""
        if kind == "thread.started":
            self.draft.name = as_id(entry.get("thread_id")) or self.draft.name
        elif kind in ("item.started", "item.updated"):
            self._open_items[item_id] = item
        elif kind == "item.completed":
            self._open_items.pop(item_id, None)
            self._add_item(item, ended=True)
        elif kind == "turn.completed":
            # the sum of the thread so far
            self.draft.add_totals(**sum_tokens([usage_tokens(entry.get("usage"))]))
        elif kind == "turn.failed":
            message = as_object(entry.get("error")).get("message")
            self.draft.add_outcomes(message, "turn.failed", "error")

    def end(self) -> None:
        """Add what is still open at the end of the stream."""
        for item in self._open_items.values():
            self._add_item(item, ended=False)
        if self._messages or self._thoughts:
            self._end_turn([])

    def _add_item(self, item: dict[str, Any], *, ended: bool) -> None:
        kind = item.get("type") or item.get("item_type")
        text = text_or_none(item.get("text"))
        if kind in ("agent_message", "assistant_message", "plan"):
            self._messages += [text] if text else []
            return
        if kind == "reasoning":
            self._thoughts += [text] if text else []
            return
        call = _call(kind, item)
        if call is None:
            self.draft.lost[f"item {kind}"[:80]] += 1
            return
        self._end_turn([call])
        if ended:
            output, exit_code = _result(kind, item)
            kind = stated_kind(item) if exit_code is None else None
            self.draft.result(call.id, output, exit_code=exit_code, kind=kind)

    def _end_turn(self, calls: list[Call]) -> None:
        reasoning = "\n".join(self._thoughts)
        self.draft.assistant("\n".join(self._messages), calls, reasoning=reasoning)
        self._messages, self._thoughts = [], []


def _call(kind: Any, item: dict[str, Any]) -> Call | None:
    """The call that an item stands for; None if it is not one."""
    call_id = as_id(item.get("id"))
    if kind == "command_execution":
        command = split_command(text_or_none(item.get("command")) or "")
        return Call("shell", {"command": command}, call_id)
    if kind == "file_change":
        changes = as_objects(item.get("changes"))
        only_change = changes[0] if len(changes) == 1 else {}
        return Call("apply_patch", {"changes": changes, **only_change}, call_id)
    if kind == "mcp_tool_call":
        name = f"{item.get('server')}.{item.get('tool')}"[:200]
        return Call(name, item.get("arguments"), call_id)
    if kind == "web_search":
        return Call("web_search", {"query": item.get("query")}, call_id)
    if kind == "todo_list":
        return Call("update_plan", {"plan": item.get("items")}, call_id)
    return None


def _result(kind: Any, item: dict[str, Any]) -> tuple[Any, Any]:
    """The output of an item, and its exit code if it is a command."""
    if kind == "command_execution":
        return item.get("aggregated_output") or "", item.get("exit_code")
    if kind == "mcp_tool_call":
        error = as_object(item.get("error")).get("message")
        content = as_object(item.get("result")).get("content")
        return error or content or "", None
    return text_or_none(item.get("status")) or "", None


def split_command(command: str) -> list[str] | str:
    """The words that Codex joined for its log; the text itself if it is not such a line."""
    try:
        return shlex.split(command) or command
    except ValueError:
        return command
