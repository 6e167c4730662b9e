"""Items of OpenAI's Responses API: stored responses, requests with their `input`, lists of items
(Agents SDK sessions).

Reasoning, message and calls up to the next answer or user message are one turn. A call's answer is
the item with its `call_id`; tools that the server ran carry theirs in themselves. Source: OpenAI
API reference, Responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import number, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects, parse_object
from .files import read_runs
from .recognise import has_keys

_EXPECTED = "expected responses (`output`), requests (`input`), or lists of items with `type`"
_SERVED = ("output", "outputs", "result", "results", "error")
"""Where an item of a tool that the server ran keeps what came back."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every run of the file: one a value, or one of all lines where each line is an item."""
    return read_runs(path, _is_item, _draft)


def _is_item(value: Any) -> bool:
    return bool(
        text_or_none(as_object(value).get("type")) or text_or_none(as_object(value).get("role"))
    )


def _draft(value: Any, name: str, path: Path, where: str) -> Draft:
    head = as_object(value)
    whole = (
        as_object(as_object(head.get("response")).get("body"))
        or as_object(head.get("response"))
        or head
    )
    given = head.get("input", whole.get("input"))
    before = [{"role": "user", "content": given}] if isinstance(given, str) else as_objects(given)
    items = as_objects(value) or [*before, *as_objects(whole.get("output"))]
    if not any(map(_is_item, items)):
        raise InputError(f"{where}holds no items of the Responses API", _EXPECTED, path)
    draft = Draft(as_id(head.get("custom_id")) or as_id(whole.get("id")) or name, "responses")
    draft.model = text_or_none(whole.get("model"))
    draft.system(whole.get("instructions"))
    turns = Items(draft)
    for item in items:
        turns.add(item)
    turns.end(as_object(whole.get("usage")))
    draft.add_outcomes(as_object(whole.get("metadata")), "metadata")
    if whole.get("tools"):
        draft.lost["list of tool definitions"] += 1
    return draft


class Items:
    """Items put together to turns."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.ran: dict[str, tuple[Any, float | None]] = {}
        """Call id -> exit code and seconds, where a log says them beside the items."""
        self._texts: list[str] = []
        self._thoughts: list[dict[str, Any]] = []
        self._calls: list[Call] = []
        self._answers: list[tuple[str | None, Any, bool]] = []
        self._ts: float | None = None

    def add(self, item: dict[str, Any], ts: float | None = None) -> None:
        """The next item; `ts` is seconds since the start."""
        kind = text_or_none(item.get("type")) or "message"
        if kind.endswith("_output"):
            self.end()
            self._answer(item, ts)
        elif kind == "reasoning":
            if self._calls or self._texts:
                self.end()
            self._ts = ts
            self._thoughts += [{"type": "reasoning.text", "text": text} for text in _thoughts(item)]
        elif kind == "message" and item.get("role") == "assistant":
            self._ts = ts
            self._texts.append(content_text(_plain(item.get("content"))))
        elif kind == "message":
            self.end()
            system = item.get("role") in ("system", "developer")
            (self.draft.system if system else self.draft.user)(_plain(item.get("content")))
        elif kind.endswith("_call"):
            self._ts = ts
            self._call(kind, item)
        else:
            self.draft.lost[f"item of type {kind[:40]}"] += 1

    def end(self, usage: dict[str, Any] | None = None) -> None:
        """The turn is whole."""
        if self._texts or self._calls or self._thoughts:
            used = usage or {}
            self.draft.assistant(
                "\n\n".join(filter(None, self._texts)) or None,
                self._calls,
                ts=self._ts,
                reasoning=self._thoughts,
                input_tokens=used.get("input_tokens"),
                output_tokens=used.get("output_tokens"),
            )
            for call_id, text, failed in self._answers:
                self.draft.result(call_id, text, failed=failed)
        self._texts, self._thoughts, self._calls, self._answers, self._ts = [], [], [], [], None

    def _call(self, kind: str, item: dict[str, Any]) -> None:
        call_id = as_id(item.get("call_id")) or as_id(item.get("id"))
        name = content_text(item.get("name")) or kind.removesuffix("_call")
        arguments: Any = item.get("arguments")
        if kind == "custom_tool_call":
            arguments = {"input": item.get("input")}
        elif arguments is None:
            action = as_object(item.get("action"))
            arguments = action or {
                k: v for k, v in item.items() if k in ("code", "query", "queries", "input")
            }
        self._calls.append(Call(name, arguments, call_id))
        for key in _SERVED:
            if item.get(key):
                self._answers.append((call_id, _text(item[key]), key == "error"))
                break

    def _answer(self, item: dict[str, Any], ts: float | None) -> None:
        call_id = as_id(item.get("call_id")) or as_id(item.get("id"))
        output = item.get("output")
        code, seconds = self.ran.get(call_id or "", (None, None))
        body = parse_object(output)
        if isinstance(body.get("output"), str):  # what a shell answered, and beside it how it ended
            output, meta = body["output"], as_object(body.get("metadata"))
            code, seconds = (
                meta.get("exit_code", code),
                number(meta.get("duration_seconds")) or seconds,
            )
        self.draft.result(call_id, _text(output), exit_code=code, exec_time_s=seconds, ts=ts)


def _plain(content: Any) -> Any:
    """Blocks of text as one text where there is nothing but text."""
    blocks = as_objects(content)
    if blocks and all(str(b.get("type")).endswith(("text", "refusal")) for b in blocks):
        return "\n".join(content_text(b.get("text") or b.get("refusal")) for b in blocks)
    return content


def _thoughts(item: dict[str, Any]) -> Iterator[str]:
    for part in (*as_objects(item.get("summary")), *as_objects(item.get("content"))):
        if text := text_or_none(part.get("text")):
            yield text


def _text(value: Any) -> Any:
    blocks = as_objects(value)
    if blocks and any(isinstance(block.get("text"), str) for block in blocks):
        return _plain(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys(
        "output.type",
        "response.output.type",
        "response.body.output.type",
        "input.call_id",
        "type=function_call call_id",
        "type=function_call_output call_id",
    ),
)
