"""Items of OpenAI's Responses API: stored responses, requests with `input`, lists of items.

Lists of items are the sessions of the Agents SDK. Reasoning, message and calls up to the next
result or user message are one turn. A call's result is the item with its `call_id`; tools that the
server runs carry theirs in themselves. Source: OpenAI API reference, Responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ..models import FAILED_KINDS, AnswerKind
from ..reading.answer_marks import kind_of_word, stated_kind
from ..reading.json_bytes import number, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects, parse_object
from .files import read_runs
from .recognise import has_keys
from .usage import sum_tokens, usage_cost, usage_tokens

_EXPECTED = "expected responses (`output`), requests (`input`), or lists of items with `type`"
_SERVER_RESULT_KEYS = ("output", "outputs", "result", "results", "error")
"""Where the item of a tool that the server runs keeps its result."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every run of the file: one for each value, or one of all lines if each is an item."""
    return read_runs(path, _is_item, _draft)


def _is_item(value: Any) -> bool:
    item = as_object(value)
    return bool(text_or_none(item.get("type")) or text_or_none(item.get("role")))


def _draft(value: Any, name: str, path: Path, location: str) -> Draft:
    header = as_object(value)
    response = _response(header)
    items = as_objects(value) or [*_input(header, response), *as_objects(response.get("output"))]
    if not any(map(_is_item, items)):
        raise InputError(f"{location}holds no items of the Responses API", _EXPECTED, path)
    run_name = as_id(header.get("custom_id")) or as_id(response.get("id")) or name
    draft = Draft(run_name, "responses", model=text_or_none(response.get("model")))
    draft.system(response.get("instructions"))
    reader = ItemReader(draft)
    for item in items:
        reader.add(item)
    usage = as_object(response.get("usage"))
    reader.end_turn(usage)
    if not any(map(_is_reply, _input(header, response))):
        # All turns are of this response, between calls that the server answered.
        draft.add_totals(**sum_tokens([usage_tokens(usage)]))
    draft.add_outcomes(as_object(response.get("metadata")), "metadata")
    if response.get("tools"):
        draft.has_tools = True
        draft.lost["list of tool definitions"] += 1
    return draft


def _response(header: dict[str, Any]) -> dict[str, Any]:
    """The response itself, which a batch's output or a log of requests wraps."""
    wrapped = as_object(header.get("response"))
    return as_object(wrapped.get("body")) or wrapped or header


def _input(header: dict[str, Any], response: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of a request."""
    request = header.get("input", response.get("input"))
    if isinstance(request, str):
        request = [{"role": "user", "content": request}]
    return as_objects(request)


def _is_reply(item: dict[str, Any]) -> bool:
    """Whether an item of a request is of an earlier response."""
    kind = text_or_none(item.get("type")) or ""
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


class Execution(NamedTuple):
    """How a call went."""

    exit_code: Any = None
    seconds: float | None = None
    kind: AnswerKind | None = None


class ItemReader:
    """Joins items to turns of a draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.executions: dict[str, Execution] = {}
        """How calls went by their ids, if a log states it beside the items."""
        self._start_turn()

    def _start_turn(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[dict[str, Any]] = []
        self._calls: list[Call] = []
        self._server_results: list[tuple[str | None, Any, AnswerKind | None]] = []
        """Call id, result and its mark."""
        self._ts: float | None = None

    def add(self, item: dict[str, Any], ts: float | None = None) -> None:
        """Add the next item; `ts` is seconds since the start."""
        kind = text_or_none(item.get("type")) or "message"
        if kind.endswith("_output"):
            self.end_turn()
            self._add_result(item, ts)
        elif kind == "reasoning":
            if self._calls or self._texts:
                self.end_turn()
            self._ts = ts
            thoughts = [{"type": "reasoning.text", "text": text} for text in _thoughts(item)]
            self._thoughts += thoughts
        elif kind == "message" and item.get("role") == "assistant":
            self._ts = ts
            self._texts.append(content_text(_plain(item.get("content"))))
        elif kind == "message":
            self.end_turn()
            content = _plain(item.get("content"))
            if item.get("role") in ("system", "developer"):
                self.draft.system(content)
            else:
                self.draft.user(content, ts)
        elif kind.endswith("_call"):
            self._ts = ts
            self._add_call(kind, item)
        else:
            self.draft.lost[f"item of type {kind[:40]}"] += 1

    def end_turn(self, usage: dict[str, Any] | None = None, cost_usd: Any = None) -> None:
        """Add the turn that the items since the last one make."""
        if self._texts or self._calls or self._thoughts:
            self.draft.assistant(
                "\n\n".join(text for text in self._texts if text) or None,
                self._calls,
                ts=self._ts,
                reasoning=self._thoughts,
                tokens=usage_tokens(usage),
                cost_usd=usage_cost(usage) if cost_usd is None else cost_usd,
            )
            for call_id, result, kind in self._server_results:
                self.draft.result(call_id, result, kind=kind)
        self._start_turn()

    def _add_call(self, kind: str, item: dict[str, Any]) -> None:
        call_id = as_id(item.get("call_id")) or as_id(item.get("id"))
        name = content_text(item.get("name")) or kind.removesuffix("_call")
        self._calls.append(Call(name, _arguments(kind, item), call_id))
        results = [item[key] for key in _SERVER_RESULT_KEYS if item.get(key)]
        mark = stated_kind(item)
        if results:
            self._server_results.append((call_id, _result_text(results[0]), mark))
        elif mark in FAILED_KINDS:
            self._server_results.append((call_id, "", mark))

    def _add_result(self, item: dict[str, Any], ts: float | None) -> None:
        call_id = as_id(item.get("call_id")) or as_id(item.get("id"))
        output = item.get("output")
        execution = self.executions.get(call_id or "", Execution())
        exit_code, seconds, kind = execution.exit_code, execution.seconds, execution.kind
        body = parse_object(output)
        if isinstance(body.get("output"), str):  # a shell's output, with metadata beside it
            output, metadata = body["output"], as_object(body.get("metadata"))
            exit_code = metadata.get("exit_code", exit_code)
            seconds = number(metadata.get("duration_seconds")) or seconds
        elif "success" in body:  # Codex wraps a result with its mark
            output = body.get("content", output)
            kind = kind or ("ok" if body["success"] is True else "failed")
        outcomes = [
            part["outcome"] for part in as_objects(output) if as_object(part.get("outcome"))
        ]
        if outcomes and exit_code is None:  # the API's own shell: one outcome a command
            exit_code = outcomes[-1].get("exit_code")
            kind = kind_of_word(outcomes[-1].get("type"))
            output = "\n".join(_streams(part) for part in as_objects(output))
        self.draft.result(
            call_id,
            _result_text(output),
            exit_code=exit_code,
            kind=kind or stated_kind(item),
            exec_time_s=seconds,
            ts=ts,
        )


def _arguments(kind: str, item: dict[str, Any]) -> Any:
    if kind == "custom_tool_call":
        return {"input": item.get("input")}
    if item.get("arguments") is not None:
        return item["arguments"]
    action = as_object(item.get("action"))
    names = ("code", "query", "queries", "input")
    return action or {key: value for key, value in item.items() if key in names}


def _plain(content: Any) -> Any:
    """The text of blocks that are all text; other content as it is."""
    blocks = as_objects(content)
    if blocks and all(str(block.get("type")).endswith(("text", "refusal")) for block in blocks):
        texts = (content_text(block.get("text") or block.get("refusal")) for block in blocks)
        return "\n".join(texts)
    return content


def _streams(part: dict[str, Any]) -> str:
    texts = (content_text(part.get(name)) for name in ("stdout", "stderr"))
    return "\n".join(text for text in texts if text)


def _thoughts(item: dict[str, Any]) -> Iterator[str]:
    for part in (*as_objects(item.get("summary")), *as_objects(item.get("content"))):
        text = text_or_none(part.get("text"))
        if text:
            yield text


def _result_text(value: Any) -> Any:
    """A result as text, or as content blocks."""
    if any(isinstance(block.get("text"), str) for block in as_objects(value)):
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
