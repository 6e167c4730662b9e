"""Sessions of Claude Code: JSON Lines of entries, most of them with a `message` of the Messages
API.

One reply of the model is written as several lines with the same `message.id`, one block each, with
answers to calls between them: they are one turn. `toolUseResult` beside an answer splits a
command's output into its streams. A failed command says its exit code in the first line of its
answer; of others none is recorded. Entries of sub-agents (`isSidechain`) are runs of their own in
files of their own, and left out elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from . import Importer
from .anthropic_messages import add_assistant, add_user
from .draft import Draft
from .fields import as_id, as_object, as_objects
from .files import read_entries
from .recognise import has_keys

_EXIT = re.compile(r"\s*(?:Error: )?Exit code (\d{1,5})\b")
_SYNTHETIC = "<synthetic>"


def read(path: Path) -> Iterator[Draft | InputError]:
    """The session of the file; broken lines come first, as errors."""
    entries, broken = read_entries(path)
    yield from broken
    talk = [
        e
        for e in entries
        if e.get("type") in ("user", "assistant") and isinstance(e.get("message"), dict)
    ]
    if not talk:
        raise InputError(
            "is no Claude Code session",
            "expected lines with `type` user or assistant and a `message`",
            path,
        )
    yield _draft(path, entries, talk)


def _draft(path: Path, entries: list[dict[str, Any]], talk: list[dict[str, Any]]) -> Draft:
    draft = Draft(path.stem, "claude-code", agent="claude-code")
    first = talk[0]
    for key, name in (("sessionId", "session"), ("version", "version")):
        if as_id(first.get(key)):
            draft.origin[name] = first[key]
    main = [entry for entry in talk if entry.get("isSidechain") is not True]
    if main and len(main) < len(talk):
        draft.lost["messages of sub-agents"] += len(talk) - len(main)
    kept: list[dict[str, Any]] = []
    seen: set[str] = set()
    for entry in main or talk:
        uuid = as_id(entry.get("uuid"))
        if uuid is not None and uuid in seen:
            continue
        seen.add(uuid or "")
        if entry["type"] == "assistant" and _not_the_model(entry):
            draft.lost["notices that no model wrote"] += 1
        else:
            kept.append(entry)
    for entry in _whole_replies(kept):
        since = draft.elapsed(entry.get("timestamp"))
        if entry["type"] == "assistant":
            add_assistant(draft, entry["message"], since)
        else:
            _add_user(draft, entry, since)
    if any(
        entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"
        for entry in entries
    ):
        draft.lost["boundary of compaction"] += 1
    return draft


def _not_the_model(entry: dict[str, Any]) -> bool:
    return entry.get("isApiErrorMessage") is True or entry["message"].get("model") == _SYNTHETIC


def _whole_replies(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries with the pieces of each reply put together where its first piece stands, timed and
    counted by its last."""
    whole: list[dict[str, Any]] = []
    reply: dict[str, Any] = {}
    blocks: dict[str, Any] = {}
    for entry in entries:
        message = entry["message"]
        if entry["type"] != "assistant":
            if not any(
                block.get("type") == "tool_result" for block in as_objects(message.get("content"))
            ):
                reply = {}
            whole.append(entry)
            continue
        if not (reply and as_id(message.get("id")) and message["id"] == reply["message"].get("id")):
            blocks, reply = {}, {}
            whole.append(reply)
        blocks.update((json.dumps(block, sort_keys=True), block) for block in _blocks(message))
        reply.update({**entry, "message": {**message, "content": blocks}})
    return [
        (
            {
                **entry,
                "message": {
                    **entry["message"],
                    "content": list(entry["message"]["content"].values()),
                },
            }
            if entry["type"] == "assistant"
            else entry
        )
        for entry in whole
    ]


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return (
        content
        if isinstance(content, list)
        else [{"type": "text", "text": content}]
        if text_or_none(content)
        else []
    )


def _add_user(draft: Draft, entry: dict[str, Any], since: float | None) -> None:
    content = entry["message"].get("content")
    blocks = as_objects(content)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    extra = entry.get("toolUseResult")
    for block in results:
        _add_result(draft, block, as_object(extra) if len(results) == 1 else {}, since)
    add_user(draft, [b for b in content if b not in results] if results else content, since)


def _add_result(
    draft: Draft, block: dict[str, Any], extra: dict[str, Any], since: float | None
) -> None:
    text, failed = content_text(block.get("content")), block.get("is_error") is True
    code = _EXIT.match(text) if failed else None
    call_id, stdout, stderr = (
        as_id(block.get("tool_use_id")),
        *map(content_text, (extra.get("stdout"), extra.get("stderr"))),
    )
    said = "" if failed else stdout + stderr
    if said and _squash(said) == _squash(text):
        draft.result(call_id, stdout, stderr=stderr, ts=since)
        return
    if len(said) > len(text):
        draft.lost["outputs in full (kept as the model saw them)"] += 1
    draft.result(call_id, block.get("content"), exit_code=code and code[1], failed=failed, ts=since)


def _squash(text: str) -> str:
    return "".join(text.split())


IMPORTER = Importer(read, (".jsonl",), has_keys("message.role sessionId", "message.role uuid"))
