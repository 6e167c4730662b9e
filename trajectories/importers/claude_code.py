"""Sessions of Claude Code: JSON Lines of entries, most with a `message` of the Messages API.

One reply of the model is written as several lines with the same `message.id`, one block each, with
results of calls between them: they are one turn. `toolUseResult` beside a result splits a command's
output into its streams. A failed command states its exit code in the first line of its result; for
others none is recorded. Entries of sub-agents (`isSidechain`) are runs of their own in their own
files, and are left out elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import FAILED_KINDS, AnswerKind
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from . import Importer
from .anthropic_messages import add_assistant, add_user
from .draft import Draft
from .fields import as_id, as_object, as_objects
from .files import read_entries
from .recognise import has_keys

_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (\d{1,5})\b")
_REFUSAL = "User rejected tool use"
_SYNTHETIC_MODEL = "<synthetic>"

Entry = dict[str, Any]


def read(path: Path) -> Iterator[Draft | InputError]:
    """The session of the file, after the errors of its broken lines."""
    entries, errors = read_entries(path)
    yield from errors
    messages = [
        entry
        for entry in entries
        if entry.get("type") in ("user", "assistant") and isinstance(entry.get("message"), dict)
    ]
    if not messages:
        raise InputError(
            "is not a Claude Code session",
            "expected lines with `type` user or assistant and a `message`",
            path,
        )
    yield _draft(path, entries, messages)


def _draft(path: Path, entries: list[Entry], messages: list[Entry]) -> Draft:
    draft = Draft(path.stem, "claude-code", agent="claude-code")
    for key, name in (("sessionId", "session"), ("version", "version")):
        if as_id(messages[0].get(key)):
            draft.origin[name] = messages[0][key]
    main_messages = [entry for entry in messages if entry.get("isSidechain") is not True]
    if main_messages and len(main_messages) < len(messages):
        draft.lost["messages of sub-agents"] += len(messages) - len(main_messages)
    for entry in _join_replies(_unique_messages(draft, main_messages or messages)):
        ts = draft.elapsed(entry.get("timestamp"))
        if entry["type"] == "assistant":
            add_assistant(draft, entry["message"], ts)
        else:
            _add_user(draft, entry, ts)
    if any(_is_compaction(entry) for entry in entries):
        draft.lost["boundary of compaction"] += 1
    return draft


def _unique_messages(draft: Draft, entries: list[Entry]) -> list[Entry]:
    """The entries without repeated ones, and without notices that no model wrote."""
    unique: list[Entry] = []
    uuids: set[str] = set()
    for entry in entries:
        uuid = as_id(entry.get("uuid"))
        if uuid is not None and uuid in uuids:
            continue
        uuids.add(uuid or "")
        if entry["type"] == "assistant" and _is_notice(entry):
            draft.lost["notices that no model wrote"] += 1
        else:
            unique.append(entry)
    return unique


def _is_notice(entry: Entry) -> bool:
    is_error = entry.get("isApiErrorMessage") is True
    return is_error or entry["message"].get("model") == _SYNTHETIC_MODEL


def _is_compaction(entry: Entry) -> bool:
    return entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"


def _join_replies(entries: list[Entry]) -> list[Entry]:
    """The entries, with the lines of each reply joined at the position of its first line.

    Time and tokens of a reply are those of its last line. Results of calls between its lines do not
    end a reply; other user messages do.
    """
    joined: list[Entry] = []
    reply: Entry | None = None
    content: list[Any] = []
    content_keys: set[str] = set()
    for entry in entries:
        message = entry["message"]
        if entry["type"] != "assistant":
            if not _has_results(message):
                reply = None
            joined.append(entry)
            continue
        if reply is None or not _is_same_reply(reply, message):
            reply, content, content_keys = {}, [], set()
            joined.append(reply)
        # A later line may repeat blocks of an earlier one.
        for block in _content_blocks(message):
            key = json.dumps(block, sort_keys=True)
            if key not in content_keys:
                content_keys.add(key)
                content.append(block)
        reply.update({**entry, "message": {**message, "content": content}})
    return joined


def _has_results(message: dict[str, Any]) -> bool:
    blocks = as_objects(message.get("content"))
    return any(block.get("type") == "tool_result" for block in blocks)


def _is_same_reply(reply: Entry, message: dict[str, Any]) -> bool:
    return bool(as_id(message.get("id"))) and message["id"] == reply["message"].get("id")


def _content_blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if text_or_none(content) else []


def _add_user(draft: Draft, entry: Entry, ts: float | None) -> None:
    content = entry["message"].get("content")
    results = [block for block in as_objects(content) if block.get("type") == "tool_result"]
    if not results:
        add_user(draft, content, ts)
        return
    # What lies beside several results does not say which one it belongs to.
    beside = entry.get("toolUseResult") if len(results) == 1 else None
    for block in results:
        _add_result(draft, block, beside, ts)
    add_user(draft, [block for block in content if block not in results], ts)


def _add_result(draft: Draft, block: dict[str, Any], beside: Any, ts: float | None) -> None:
    """Add a result; `beside` is what Claude Code itself notes of it: streams, or an error."""
    text, streams = content_text(block.get("content")), as_object(beside)
    kind, call_id = _kind(block, beside), as_id(block.get("tool_use_id"))
    stdout, stderr = content_text(streams.get("stdout")), content_text(streams.get("stderr"))
    failed = kind in FAILED_KINDS
    full_text = "" if failed else stdout + stderr
    if full_text and _without_white_space(full_text) == _without_white_space(text):
        draft.result(call_id, stdout, stderr=stderr, kind=kind, ts=ts)
        return
    if len(full_text) > len(text):
        draft.lost["outputs in full (kept as the model saw them)"] += 1
    exit_code = _EXIT_CODE.match(text) if failed else None
    draft.result(
        call_id,
        block.get("content"),
        exit_code=exit_code[1] if exit_code else None,
        kind=kind,
        ts=ts,
    )


def _kind(block: dict[str, Any], beside: Any) -> AnswerKind | None:
    """How a call went: by the result's mark, and by the notice of a refusal or interruption."""
    if beside == _REFUSAL:
        return "blocked"
    if as_object(beside).get("interrupted") is True:
        return "cancelled"
    return stated_kind(block)


def _without_white_space(text: str) -> str:
    return "".join(text.split())


IMPORTER = Importer(read, (".jsonl",), has_keys("message.role sessionId", "message.role uuid"))
