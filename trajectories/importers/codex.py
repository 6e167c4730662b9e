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
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import AnswerKind
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import number, text_or_none
from . import Importer
from .codex_events import draft_of_events, is_event
from .draft import Draft
from .fields import as_id, as_object
from .files import read_entries
from .openai_responses import Execution, ItemReader
from .recognise import has_keys

_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,10})$", re.MULTILINE)
_WALL_TIME = re.compile(r"^Wall time: (\d{1,6}(?:\.\d{1,9})?) seconds$", re.MULTILINE)
_MAX_HEADER = 400
"""Characters before `Output:` in which Codex says how a command ended."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The session of the file, after the errors of its broken lines."""
    entries, errors = read_entries(path)
    yield from errors
    if any(map(is_event, entries)):
        yield draft_of_events(path.stem, entries)
        return
    if not any(map(_response_item, entries)):
        raise InputError(
            "is not a Codex rollout",
            "expected lines with `type` response_item and a `payload`, or item.completed and an"
            " `item`",
            path,
        )
    draft = Draft(path.stem, "codex", agent="codex")
    items = ItemReader(draft)
    for entry in entries:
        _add(draft, items, entry)
    items.end_turn()
    yield draft


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
    elif kind == "session_meta" or ("payload" not in entry and "instructions" in entry):
        _add_session(draft, payload or entry)
    elif kind == "turn_context":
        draft.model = text_or_none(payload.get("model")) or draft.model
    elif kind == "compacted":
        draft.lost["boundary of compaction"] += 1
    elif kind == "event_msg":
        _add_event(draft, items, payload)


def _add_session(draft: Draft, meta: dict[str, Any]) -> None:
    draft.name = as_id(meta.get("id")) or draft.name
    base_instructions = as_object(meta.get("base_instructions")).get("text")
    draft.system(meta.get("instructions") or base_instructions)
    for key in ("cli_version", "originator"):
        if text_or_none(meta.get(key)):
            draft.origin[key] = meta[key]
    draft.model = draft.model or text_or_none(meta.get("model"))


def _add_event(draft: Draft, items: ItemReader, event: dict[str, Any]) -> None:
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
    elif kind == "token_count":
        usage = as_object(as_object(event.get("info")).get("total_token_usage"))
        draft.add_totals(
            prompt_tokens=usage.get("input_tokens"), completion_tokens=usage.get("output_tokens")
        )


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
