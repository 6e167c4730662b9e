"""What the Codex CLI writes: rollouts, JSON Lines of `session_meta`, `turn_context`,
`response_item` and `event_msg`; and the events of `codex exec --json` (`codex_events`).

Response items are those of the Responses API; older files hold them bare, one a line. Exit codes
come from the events of finished commands, from the metadata of an answer, or from the head that
Codex itself puts before a command's output. Source: openai/codex
`codex-rs/protocol/src/protocol.rs` (RolloutItem), `core/src/tools/mod.rs`, `core/src/unified_exec`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import number, text_or_none
from . import Importer
from .codex_events import is_event, read_events
from .draft import Draft
from .fields import as_id, as_object
from .files import read_entries
from .openai_responses import Items
from .recognise import has_keys

_ENDED = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,10})$", re.MULTILINE)
_SPENT = re.compile(r"^Wall time: (\d{1,6}(?:\.\d{1,9})?) seconds$", re.MULTILINE)
_HEAD = 400
"""Characters before `Output:` in which Codex says how a command ended."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The session of the file; broken lines come first, as errors."""
    entries, broken = read_entries(path)
    yield from broken
    if any(map(is_event, entries)):
        yield read_events(path.stem, entries)
        return
    if not any(map(_item, entries)):
        raise InputError(
            "is no Codex rollout",
            "expected lines with `type` response_item and a `payload`, or item.completed and an"
            " `item`",
            path,
        )
    draft = Draft(path.stem, "codex", agent="codex")
    turns = Items(draft)
    for entry in entries:
        _entry(draft, turns, entry, draft.elapsed(entry.get("timestamp")))
    turns.end()
    yield draft


def _item(entry: dict[str, Any]) -> dict[str, Any]:
    """The response item of a line; nothing for other lines."""
    if "payload" in entry:
        return as_object(entry["payload"]) if entry.get("type") == "response_item" else {}
    kind = str(entry.get("type"))
    bare = kind in ("message", "reasoning") or kind.endswith(("_call", "_call_output"))
    return entry if bare else {}


def _entry(draft: Draft, turns: Items, entry: dict[str, Any], since: float | None) -> None:
    kind, payload = entry.get("type"), as_object(entry.get("payload"))
    if item := _item(entry):
        if str(item.get("type")).endswith("_output"):
            _ended(turns, item)
        turns.add(item, since)
    elif kind == "session_meta" or ("payload" not in entry and "instructions" in entry):
        meta = payload or entry
        draft.name = as_id(meta.get("id")) or draft.name
        draft.system(
            meta.get("instructions") or as_object(meta.get("base_instructions")).get("text")
        )
        draft.origin.update(
            {key: meta[key] for key in ("cli_version", "originator") if text_or_none(meta.get(key))}
        )
        draft.model = draft.model or text_or_none(meta.get("model"))
    elif kind == "turn_context":
        draft.model = text_or_none(payload.get("model")) or draft.model
    elif kind == "compacted":
        draft.lost["boundary of compaction"] += 1
    elif (
        kind == "event_msg"
        and payload.get("type") == "exec_command_end"
        and as_id(payload.get("call_id"))
    ):
        spent = as_object(payload.get("duration"))
        seconds = number(spent.get("secs"))
        seconds = None if seconds is None else seconds + (number(spent.get("nanos")) or 0) / 1e9
        turns.ran[str(payload["call_id"])] = (payload.get("exit_code"), seconds)
    elif kind == "event_msg" and payload.get("type") == "token_count":
        used = as_object(as_object(payload.get("info")).get("total_token_usage"))
        draft.add_totals(
            prompt_tokens=used.get("input_tokens"), completion_tokens=used.get("output_tokens")
        )


def _ended(turns: Items, item: dict[str, Any]) -> None:
    """Notes the exit code and the seconds that stand before the output itself."""
    output, call_id = item.get("output"), as_id(item.get("call_id"))
    if isinstance(output, str) and call_id and call_id not in turns.ran:
        head, output_follows, _ = output[:_HEAD].partition("\nOutput:")
        if output_follows and (found := _ENDED.search(head)):
            spent = _SPENT.search(head)
            turns.ran[call_id] = (int(found[1]), float(spent[1]) if spent else None)


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
