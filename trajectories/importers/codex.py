"""What the Codex CLI writes: rollouts, and the events of `codex exec --json` (`codex_events`).

A rollout is JSON Lines of `session_meta`, `turn_context`, `response_item` and `event_msg`. Response
items are those of the Responses API; older files hold them bare, one a line. Exit codes come from
the events of finished commands, from the metadata of a result, or from the header that Codex writes
before a command's output. Source: openai/codex `codex-rs/protocol/src/protocol.rs` (RolloutItem),
`core/src/tools/mod.rs`, `core/src/unified_exec`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import AnswerKind
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import is_file, number, text_or_none
from ..token_counts import CallTokens
from . import Importer
from .codex_events import draft_of_events, is_event
from .draft import Draft
from .fields import as_id, as_object, parse_object, unix_time
from .files import read_entries, source_name
from .openai_responses import Execution, ItemReader
from .recognise import has_keys, head_of
from .usage import usage_tokens

_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,10})$", re.MULTILINE)
_WALL_TIME = re.compile(r"^Wall time: (\d{1,6}(?:\.\d{1,9})?) seconds$", re.MULTILINE)
_MAX_FIRST_LINE = 4 * 1024 * 1024
_PAUSE_S = 0.25
"""Entries of a copy are written without a pause; a model's reply takes longer."""
_MAX_HEADER = 400
"""Characters before `Output:` in which Codex says how a command ended."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The session of the file, after the errors of its broken lines."""
    entries, errors = read_entries(path)
    yield from errors
    if any(map(is_event, entries)):
        yield draft_of_events(source_name(path), entries)
        return
    if not any(map(_response_item, entries)):
        raise InputError(
            "is not a Codex rollout",
            "expected lines with `type` response_item and a `payload`, or item.completed and an"
            " `item`",
            path,
        )
    yield _draft(path, entries)


def _draft(path: Path, entries: list[dict[str, Any]]) -> Draft:
    draft = Draft(source_name(path), "codex", agent="codex")
    meta = next(filter(None, map(_session_meta, entries)), {})
    _add_session(draft, meta)
    n_copied = _copied_entries(path, entries, as_id(meta.get("forked_from_id")))
    earlier = _Usage()
    for entry in entries[:n_copied]:
        _add_copied(draft, entry)
        earlier.read(entry)
    usage = _Usage()
    items = ItemReader(draft)
    for entry in entries[n_copied:]:
        _add(draft, items, entry)
        usage.read(entry)
    items.end_turn()
    usage.add_to(draft, earlier)
    return draft


def _copied_entries(path: Path, entries: list[dict[str, Any]], parent: str | None) -> int:
    """How many entries a forked session begins with that are a copy of its parent's.

    They are those that the parent's file has, too, if it lies beside; else those that were written
    at once when the session was forked. What the user asks then is the session's own.
    """
    if parent is None:
        return 0
    copied = _common_entries(entries, _parent_items(path, parent))
    if copied is None:
        copied = _first_batch(entries)
    while copied and _role(entries[copied - 1]) not in ("assistant", "tool"):
        if entries[copied - 1].get("type") not in ("turn_context", "response_item"):
            break
        copied -= 1
    return copied


def _parent_items(path: Path, parent: str) -> list[dict[str, Any]] | None:
    """The response items of the parent's file, if it lies beside; None without one."""
    file = _sessions(path.parent, path.parent.stat().st_mtime_ns).get(parent)
    if file is None or file == path:
        return None
    try:
        entries, _ = read_entries(file)
    except InputError:
        return None
    return [item for item in map(_response_item, entries) if item]


@lru_cache(maxsize=4)
def _sessions(folder: Path, _modified: int) -> dict[str, Path]:
    """The files of a folder by the session that their first line names."""
    sessions: dict[str, Path] = {}
    for file in sorted(folder.glob("*.jsonl*")):
        if not is_file(file):
            continue
        first_line = head_of(file, _MAX_FIRST_LINE).split(b"\n", 1)[0]
        meta = _session_meta(parse_object(first_line.decode("utf-8", "replace")))
        session = as_id(meta.get("id"))
        if session:
            sessions.setdefault(session, file)
    return sessions


def _common_entries(
    entries: list[dict[str, Any]], parent_items: list[dict[str, Any]] | None
) -> int | None:
    """The entries up to the last response item that both files begin with."""
    if parent_items is None:
        return None
    n_entries = n_items = 0
    for position, entry in enumerate(entries, 1):
        item = _response_item(entry)
        if item:
            if n_items >= len(parent_items) or item != parent_items[n_items]:
                break
            n_items += 1
            n_entries = position
        elif n_items and entry.get("type") == "event_msg" and n_entries == position - 1:
            n_entries = position
    return n_entries


def _first_batch(entries: list[dict[str, Any]]) -> int:
    """The entries that were written one right after the other at the beginning."""
    previous = None
    for position, entry in enumerate(entries):
        seconds = unix_time(entry.get("timestamp"))
        if seconds is None:
            continue
        if previous is not None and seconds - previous > _PAUSE_S:
            return position
        previous = seconds
    return len(entries)


def _role(entry: dict[str, Any]) -> str:
    """Who an entry is by: the role of a message, "tool" for results, "assistant" for the rest."""
    item = _response_item(entry)
    if not item:
        return "tool" if entry.get("type") == "event_msg" else ""
    if str(item.get("type")).endswith("_output"):
        return "tool"
    return str(item.get("role") or "assistant")


def _add_copied(draft: Draft, entry: dict[str, Any]) -> None:
    item = _response_item(entry)
    if not item:
        return
    kind = str(item.get("type"))
    if kind.endswith("_call"):
        draft.lost["calls of copied history"] += 1
    else:
        draft.lost[f"items of copied history ({_role(entry)})"] += 1


def _session_meta(entry: dict[str, Any]) -> dict[str, Any]:
    """The session that an entry is about; empty for other entries."""
    if entry.get("type") == "session_meta":
        return as_object(entry.get("payload"))
    return entry if "payload" not in entry and "instructions" in entry else {}


class _Usage:
    """The session's tokens so far, which Codex states again and again."""

    def __init__(self) -> None:
        self._tokens = CallTokens()

    def read(self, entry: dict[str, Any]) -> None:
        """Read an entry, if it states tokens."""
        event = as_object(entry.get("payload"))
        if event.get("type") == "token_count":
            usage = as_object(event.get("info")).get("total_token_usage")
            self._tokens = usage_tokens(usage) or self._tokens

    def add_to(self, draft: Draft, earlier: _Usage) -> None:
        """Add the tokens to a draft, less those of the copied history."""
        for name, number_now, number_before in (
            ("input_tokens", self._tokens.input, earlier._tokens.input),
            ("output_tokens", self._tokens.output, earlier._tokens.output),
        ):
            if number_now is not None and number_now >= (number_before or 0):
                draft.add_totals(**{name: number_now - (number_before or 0)})


def _response_item(entry: dict[str, Any]) -> dict[str, Any]:
    """The response item of a line; empty for other lines."""
    if "payload" in entry:
        return as_object(entry["payload"]) if entry.get("type") == "response_item" else {}
    kind = str(entry.get("type"))
    is_bare_item = kind in ("message", "reasoning") or kind.endswith(("_call", "_call_output"))
    return entry if is_bare_item else {}


def _add(draft: Draft, items: ItemReader, entry: dict[str, Any]) -> None:
    ts = draft.elapsed(entry.get("timestamp"))
    kind, payload = entry.get("type"), as_object(entry.get("payload"))
    item = _response_item(entry)
    if item:
        if str(item.get("type")).endswith("_output"):
            _read_output_header(items, item)
        items.add(item, ts)
    elif kind == "turn_context":
        draft.model = text_or_none(payload.get("model")) or draft.model
    elif kind == "compacted":
        draft.lost["boundary of compaction"] += 1
    elif kind == "event_msg":
        _add_event(items, payload)


def _add_session(draft: Draft, meta: dict[str, Any]) -> None:
    draft.name = as_id(meta.get("id")) or draft.name
    subagent = as_object(as_object(meta.get("source")).get("subagent"))
    parent = as_id(as_object(subagent.get("thread_spawn")).get("parent_thread_id"))
    if as_id(meta.get("forked_from_id")):
        draft.origin["forked_from"] = meta["forked_from_id"]
    elif parent:
        draft.part_of = parent
    base_instructions = as_object(meta.get("base_instructions")).get("text")
    draft.system(meta.get("instructions") or base_instructions)
    for key in ("cli_version", "originator"):
        if text_or_none(meta.get(key)):
            draft.origin[key] = meta[key]
    draft.model = draft.model or text_or_none(meta.get("model"))


def _add_event(items: ItemReader, event: dict[str, Any]) -> None:
    kind, call_id = event.get("type"), as_id(event.get("call_id"))
    if kind == "exec_command_end" and call_id:
        duration = as_object(event.get("duration"))
        seconds = number(duration.get("secs"))
        if seconds is not None:
            seconds += (number(duration.get("nanos")) or 0) / 1e9
        exit_code = event.get("exit_code")
        mark = stated_kind(event) if exit_code is None else None
        items.executions[call_id] = Execution(exit_code, seconds, mark)
    elif kind in ("patch_apply_end", "mcp_tool_call_end") and call_id:
        items.executions[call_id] = Execution(kind=_kind_of_end(event))


def _kind_of_end(event: dict[str, Any]) -> AnswerKind | None:
    """How a patch or a call of a server ended: `success`, or a result that is `Ok` or `Err`."""
    result = as_object(event.get("result"))
    if event.get("success") is False or "Err" in result:
        return "failed"
    return stated_kind(as_object(result.get("Ok"))) or stated_kind(event)


def _read_output_header(items: ItemReader, item: dict[str, Any]) -> None:
    """Note the exit code and the seconds that Codex states before the output itself."""
    output, call_id = item.get("output"), as_id(item.get("call_id"))
    if not isinstance(output, str) or not call_id or call_id in items.executions:
        return
    header, output_mark, _ = output[:_MAX_HEADER].partition("\nOutput:")
    exit_code = _EXIT_CODE.search(header)
    if output_mark and exit_code:
        wall_time = _WALL_TIME.search(header)
        seconds = float(wall_time[1]) if wall_time else None
        items.executions[call_id] = Execution(int(exit_code[1]), seconds)


IMPORTER = Importer(
    read,
    (".jsonl",),
    has_keys(
        "type=session_meta payload",
        "type=response_item payload.type",
        "type=turn_context payload",
        "instructions timestamp git",
        "type=thread.started thread_id",
        "type=item.completed item.type",
    ),
)
