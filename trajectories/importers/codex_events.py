"""The events of `codex exec --json`, one a line: `thread.started`, `item.completed`,
`turn.completed` and their like.

Items say what the agent wrote, ran and changed. The prompt is not among them. Items that began and
never ended have no answer. Source: openai/codex `codex-rs/exec/src/exec_events.rs`; `item_type` and
`assistant_message` are of its first versions.
"""

from __future__ import annotations

import shlex
from typing import Any

from ..reading.json_bytes import text_or_none
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects

_EVENTS = ("thread.", "turn.", "item.")
_FAILED = ("failed", "declined")


def is_event(entry: dict[str, Any]) -> bool:
    """Whether a line is one of these events."""
    return str(entry.get("type")).startswith(_EVENTS) and "payload" not in entry


def read_events(name: str, entries: list[dict[str, Any]]) -> Draft:
    """The run of a stream."""
    stream = _Stream(Draft(name, "codex", agent="codex"))
    for entry in entries:
        stream.add(entry)
    return stream.end()


class _Stream:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.said: list[str] = []
        """Messages before the next call."""
        self.thought: list[str] = []
        self.begun: dict[str, dict[str, Any]] = {}
        draft.lost["prompt, which this stream does not hold"] += 1

    def add(self, entry: dict[str, Any]) -> None:
        kind, item = entry.get("type"), as_object(entry.get("item"))
        id = as_id(item.get("id")) or ""
        if kind == "thread.started":
            self.draft.name = as_id(entry.get("thread_id")) or self.draft.name
        elif kind in ("item.started", "item.updated"):
            self.begun[id] = item
        elif kind == "item.completed":
            self.begun.pop(id, None)
            self._item(item, ended=True)
        elif kind == "turn.completed":
            used = as_object(entry.get("usage"))  # the sum of the thread so far
            self.draft.add_totals(
                prompt_tokens=used.get("input_tokens"), completion_tokens=used.get("output_tokens")
            )
        elif kind == "turn.failed":
            self.draft.add_outcomes(
                as_object(entry.get("error")).get("message"), "turn.failed", "error"
            )

    def end(self) -> Draft:
        for item in self.begun.values():
            self._item(item, ended=False)
        if self.said or self.thought:
            self._turn([])
        return self.draft

    def _turn(self, calls: list[Call]) -> None:
        thought = "\n".join(self.thought)
        self.draft.assistant("\n".join(self.said), calls, reasoning=thought)
        self.said, self.thought = [], []

    def _item(self, item: dict[str, Any], *, ended: bool) -> None:
        kind = item.get("type") or item.get("item_type")
        text = text_or_none(item.get("text"))
        if kind in ("agent_message", "assistant_message", "plan"):
            self.said += [text] if text else []
        elif kind == "reasoning":
            self.thought += [text] if text else []
        elif call := _call(kind, item):
            self._turn([call])
            if ended:
                output, code = _answer(kind, item)
                self.draft.result(
                    call.id,
                    output,
                    exit_code=code,
                    failed=item.get("status") in _FAILED and code is None,
                )
        else:
            self.draft.lost[f"item {kind}"[:80]] += 1


def _call(kind: Any, item: dict[str, Any]) -> Call | None:
    """What the agent did by an item; None where it did nothing."""
    id = as_id(item.get("id"))
    if kind == "command_execution":
        return Call("shell", {"command": _argv(text_or_none(item.get("command")) or "")}, id)
    if kind == "file_change":
        changes = as_objects(item.get("changes"))
        return Call(
            "apply_patch", {"changes": changes, **(changes[0] if len(changes) == 1 else {})}, id
        )
    if kind == "mcp_tool_call":
        return Call(f"{item.get('server')}.{item.get('tool')}"[:200], item.get("arguments"), id)
    if kind == "web_search":
        return Call("web_search", {"query": item.get("query")}, id)
    if kind == "todo_list":
        return Call("update_plan", {"plan": item.get("items")}, id)
    return None


def _answer(kind: Any, item: dict[str, Any]) -> tuple[Any, Any]:
    """What came back, and the exit code of a command."""
    if kind == "command_execution":
        return item.get("aggregated_output") or "", item.get("exit_code")
    if kind == "mcp_tool_call":
        return (
            as_object(item.get("error")).get("message")
            or as_object(item.get("result")).get("content")
            or "",
            None,
        )
    return text_or_none(item.get("status")) or "", None


def _argv(command: str) -> list[str] | str:
    """The words that Codex joined for its log; the text itself where it is no such line."""
    try:
        return shlex.split(command) or command
    except ValueError:
        return command
