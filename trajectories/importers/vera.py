"""Rollouts of VERA (experimental): one workflow of Codex a track, one native turn a stage.

`track-rollouts/<track>/rollout.json` names the rollout; `turns/01-planning` to `05-review` beside
it have each a request (instructions and prompt) and a receipt (the events of the app server and the
state in which the turn ended). Reasoning is cut out of the receipts. A reply is what stands between
two results: calls that begin before the earlier ones ended are of one reply. Source: AutoMedBench,
repository VERA, `training/automedbench_lite/track_actor.py`, `eva_agent/codex_runtime/contracts.py`
and `runtime.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...tracks import TRACKS
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import number, read_json, text_or_none
from ..reading.layout import file_in
from ..reading.messages import content_text
from . import Importer
from .codex_events import split_command
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects
from .files import draft_or_error
from .recognise import has_keys

_ROLLOUT = "eva.automedbench-codex-track-rollout.v1"
_RECEIPT = "eva.codex-turn-receipt.v1"
_EXPECTED = f"expected a rollout.json ({_ROLLOUT}) with turns/*/receipt.json beside it"
_MS = 1000
_REDACTED = ("reasoning", "userMessage", "hookPrompt")
"""Items whose texts a receipt leaves out."""
_BEGAN, _ENDED = "item/started", "item/completed"


def read(path: Path) -> Iterator[Draft | InputError]:
    """The rollout of one track."""
    yield draft_or_error(_draft, as_object(read_json(path)), path)


def _draft(rollout: dict[str, Any], path: Path) -> Draft:
    receipts = sorted(path.parent.glob("turns/*/receipt.json*"))
    if rollout.get("schema") != _ROLLOUT:
        raise InputError("is not a rollout of VERA", _EXPECTED, path)
    if not receipts:
        raise InputError("has no receipt of any turn beside it", _EXPECTED, path)
    track = text_or_none(rollout.get("track")) or path.parent.name
    run_id = as_id(rollout.get("run_id"))
    requests = [file_in(receipt.parent, "request.json") for receipt in receipts]
    draft = Draft(
        f"{run_id}-{track}" if run_id else track,
        "vera",
        source_id=as_id(rollout.get("thread_id")),
        agent="codex",
        model=text_or_none(rollout.get("requested_model")),
        task=track,
        track=_track(track),
        has_tools=True,
        files_beside=(*receipts, *(request for request in requests if request is not None)),
    )
    for receipt, request in zip(receipts, requests, strict=True):
        if request is not None:
            _add_request(draft, as_object(read_json(request)))
        _add_receipt(draft, as_object(read_json(receipt)), receipt)
    completed = rollout.get("completed_requested_turns")
    draft.add_outcomes(completed, "rollout", "completed_requested_turns")
    for error in as_objects(rollout.get("errors")):
        draft.add_outcomes(error, "rollout", "error")
    for key in ("source_checkpoint", "thread_id"):
        if rollout.get(key):
            draft.origin[key] = rollout[key]
    return draft


def _track(name: str) -> str | None:
    """The benchmark's name of a track; None for any other."""
    name = "report_generation" if name == "report" else name
    return name if name in TRACKS.names else None


def _add_request(draft: Draft, request: dict[str, Any]) -> None:
    """Add the prompt of a turn; the instructions, which all turns share, only once."""
    if not draft.messages:
        keys = ("base_instructions", "developer_instructions")
        texts = [text_or_none(request.get(key)) for key in keys]
        draft.system("\n\n".join(text for text in texts if text))
    logical_input = as_object(request.get("logical_input"))
    draft.user(logical_input.get("public_text"))
    if logical_input.get("public_context"):
        draft.user(json.dumps(logical_input["public_context"], ensure_ascii=False))


def _add_receipt(draft: Draft, receipt: dict[str, Any], path: Path) -> None:
    events = receipt.get("events")
    if receipt.get("schema") != _RECEIPT or not isinstance(events, list):
        raise InputError("is not a receipt of a turn", _EXPECTED, path)
    reader = _Turn(draft)
    for position, event in enumerate(events):
        if not isinstance(event, dict) or not isinstance(event.get("method"), str):
            raise InputError(f"events[{position}] has no method", _EXPECTED, path)
        reader.add(event["method"], as_object(as_object(event.get("payload")).get("item")))
    reader.end()
    draft.add_outcomes(receipt.get("status"), path.parent.name, f"status.{path.parent.name}")
    if receipt.get("usage"):
        draft.lost["usage of a turn, whose scope is not documented"] += 1


class _Turn:
    """Collects the items of one native turn up to where a reply ends."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._texts: list[str] = []
        self._calls: list[Call] = []
        self._results: list[dict[str, Any]] = []
        self._running: dict[str, dict[str, Any]] = {}

    def add(self, method: str, item: dict[str, Any]) -> None:
        """Add an event; those that are no item that begins or ends say nothing of the run."""
        kind, item_id = text_or_none(item.get("type")), as_id(item.get("id")) or ""
        if method not in (_BEGAN, _ENDED) or kind is None:
            return
        if kind in _REDACTED:
            self._draft.lost[f"text of {kind} items, which receipts leave out"] += method == _ENDED
        elif kind == "agentMessage":
            if method == _ENDED and text_or_none(item.get("text")):
                self._end_reply_after_results()
                self._texts.append(item["text"])
        elif method == _BEGAN:
            self._begin_call(kind, item, item_id)
        else:
            if item_id not in self._running:
                self._begin_call(kind, item, item_id)
            self._running.pop(item_id, None)
            self._results.append(item)

    def end(self) -> None:
        """Add the last reply of the native turn."""
        if self._texts or self._calls:
            self._draft.assistant("\n".join(self._texts), self._calls)
        for item in self._results:
            _add_result(self._draft, item)
        self._texts, self._calls, self._results, self._running = [], [], [], {}

    def _begin_call(self, kind: str, item: dict[str, Any], item_id: str) -> None:
        if not self._running:
            self._end_reply_after_results()
        self._running[item_id] = item
        self._calls.append(_call(kind, item))

    def _end_reply_after_results(self) -> None:
        if self._results:
            self.end()


def _call(kind: str, item: dict[str, Any]) -> Call:
    """The call that an item stands for: a command, a tool by its name, else the kind of item."""
    call_id = as_id(item.get("id"))
    if kind == "commandExecution":
        command = split_command(content_text(item.get("command")))
        return Call("shell", {"command": command}, call_id)
    name = text_or_none(item.get("tool")) or kind
    arguments = item.get("arguments")
    if arguments is None:
        keys = ("changes", "query", "path", "prompt")
        arguments = {key: item[key] for key in keys if item.get(key) is not None}
    return Call(name, arguments, call_id)


def _add_result(draft: Draft, item: dict[str, Any]) -> None:
    result, error = as_object(item.get("result")), as_object(item.get("error"))
    output = item.get("aggregatedOutput") or result.get("content") or item.get("contentItems")
    if not content_text(output) and result.get("structuredContent") is not None:
        output = json.dumps(result["structuredContent"], ensure_ascii=False)
    duration = number(item.get("durationMs"))
    exit_code = item.get("exitCode")
    marks = {**item, "isError": result.get("isError")}
    draft.result(
        as_id(item.get("id")),
        output or content_text(error.get("message")),
        exit_code=exit_code,
        kind=stated_kind(marks) if exit_code is None else None,
        exec_time_s=None if duration is None else duration / _MS,
    )


IMPORTER = Importer(read, (".json",), has_keys(f"schema={_ROLLOUT}"))
