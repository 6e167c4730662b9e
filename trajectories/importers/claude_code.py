"""Sessions of Claude Code, and its output of `--output-format stream-json`.

Both are JSON Lines of entries, most with a `message` of the Messages API. One reply of the model is
written as several lines with the same `message.id`, one block each, with results of calls between
them: they are one turn. `toolUseResult` beside a result splits a command's output into its streams.
A failed command states its exit code in the first line of its result; for others none is recorded.

Entries of sub-agents (`isSidechain`, `parent_tool_use_id`) are parts of the run, as runs of their
own. Entries that a forked or resumed session has copied from another one are context. A stream ends
with a line `result`: cost, seconds, and how it ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import FAILED_KINDS, AnswerKind
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import number, text_or_none
from ..reading.messages import content_text
from . import Importer
from .anthropic_messages import add_assistant, add_user
from .draft import Draft
from .fields import as_id, as_object, as_objects
from .files import read_entries, source_name
from .recognise import has_keys
from .usage import sum_tokens, usage_tokens

_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (\d{1,5})\b")
_REFUSAL = "User rejected tool use"
BOOKKEEPING = frozenset(
    {
        "system",
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "progress",
        "attachment",
        "last-prompt",
        "custom-title",
        "ai-title",
        "agent-name",
        "permission-mode",
        "mode",
        "rate_limit_event",
        "stream_event",
    }
)
"""Types of entries about the program itself."""
_SYNTHETIC_MODEL = "<synthetic>"

Entry = dict[str, Any]


def read(path: Path) -> Iterator[Draft | InputError]:
    """The session of the file and its sub-agents, after the errors of its broken lines."""
    entries, errors = read_entries(path)
    yield from errors
    messages = list(filter(_is_message, entries))
    if not messages:
        raise InputError(
            "is not a Claude Code session",
            "expected lines with `type` user or assistant and a `message`",
            path,
        )
    groups = _by_agent(messages)
    main_messages = groups.pop("", [])
    main = source_name(path)
    if not main_messages:  # a file of one sub-agent, beside that of its session
        session = as_id(messages[0].get("sessionId"))
        part_of = session if session != main else None
        yield _draft(main, messages, entries, part_of)
        return
    draft = _draft(main, main_messages, entries, None)
    parts = []
    for agent, agent_messages in groups.items():
        if any(entry["type"] == "assistant" for entry in agent_messages):
            parts.append(_draft(f"{main}-agent-{agent}", agent_messages, [], main))
        else:
            draft.lost["messages of sub-agents that never replied"] += len(agent_messages)
    yield draft
    yield from parts


def _is_message(entry: Entry) -> bool:
    return entry.get("type") in ("user", "assistant") and isinstance(entry.get("message"), dict)


def _by_agent(messages: list[Entry]) -> dict[str, list[Entry]]:
    """The messages of each agent; those of the main one under "".

    A stream names the call that started a sub-agent. Sessions link each entry of a sub-agent to the
    one before it: the first one names it.
    """
    groups: dict[str, list[Entry]] = {}
    first_of_chain: dict[str, str] = {}
    for entry in messages:
        agent = as_id(entry.get("parent_tool_use_id")) or ""
        if not agent and entry.get("isSidechain") is True:
            uuid = as_id(entry.get("uuid")) or ""
            parent = as_id(entry.get("parentUuid")) or ""
            first = first_of_chain.get(parent, uuid)
            first_of_chain[uuid] = first
            agent = as_id(entry.get("agentId")) or first or "unknown"
        groups.setdefault(agent, []).append(entry)
    return groups


def _draft(name: str, messages: list[Entry], entries: list[Entry], part_of: str | None) -> Draft:
    draft = Draft(name, "claude-code", agent="claude-code", part_of=part_of)
    for key, label in (("sessionId", "session"), ("session_id", "session"), ("version", "version")):
        if as_id(messages[0].get(key)):
            draft.origin[label] = messages[0][key]
    is_copied = _copied_history(name, messages)
    for entry in _join_replies(_unique_messages(draft, messages)):
        ts = draft.elapsed(entry.get("timestamp"))
        message = entry["message"]
        if entry["type"] != "assistant":
            _add_user(draft, entry, ts, is_context=is_copied(entry))
        elif is_copied(entry):
            draft.context("assistant", _text_blocks(message), _n_calls(message))
        else:
            add_assistant(draft, message, ts)
    for entry in entries:
        _add_other(draft, entry)
    return draft


def _copied_history(name: str, messages: list[Entry]) -> Callable[[Entry], bool]:
    """Tells the entries that a session has copied from the one that it goes on from.

    They name their own session where the file's name is that of this one, or say so.
    """
    sessions = {as_id(entry.get("sessionId")) for entry in messages}

    def is_copied(entry: Entry) -> bool:
        is_other_session = name in sessions and as_id(entry.get("sessionId")) not in (name, None)
        return is_other_session or isinstance(entry.get("forkedFrom"), dict)

    return is_copied


def _text_blocks(message: dict[str, Any]) -> list[Any]:
    return [block for block in _content_blocks(message) if as_object(block).get("type") == "text"]


def _n_calls(message: dict[str, Any]) -> int:
    return sum(as_object(b).get("type") == "tool_use" for b in _content_blocks(message))


def _add_other(draft: Draft, entry: Entry) -> None:
    """Add what an entry without a message says of the run."""
    kind, subtype = str(entry.get("type")), entry.get("subtype")
    if kind == "result":
        draft.add_totals(
            cost_usd=entry.get("total_cost_usd"),
            **sum_tokens([usage_tokens(entry.get("usage"), cache="beside")]),
        )
        milliseconds = number(entry.get("duration_ms"))
        if milliseconds is not None:
            draft.wall_time_s = milliseconds / 1000
        for key in ("subtype", "is_error", "num_turns"):
            draft.add_outcomes(entry.get(key), "result", key)
        denials = as_objects(entry.get("permission_denials"))
        if denials:
            draft.lost["list of denied permissions"] += 1
    elif kind == "system" and subtype == "init":
        draft.model = draft.model or text_or_none(entry.get("model"))
        draft.has_tools = draft.has_tools or bool(entry.get("tools"))
    elif kind == "system" and subtype == "compact_boundary":
        draft.lost["boundary of compaction"] += 1
    elif not _is_message(entry) and kind not in BOOKKEEPING:
        draft.lost[f"entries of type {kind[:40]}"] += 1


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


def _add_user(draft: Draft, entry: Entry, ts: float | None, *, is_context: bool) -> None:
    content = entry["message"].get("content")
    results = [block for block in as_objects(content) if block.get("type") == "tool_result"]
    if not results:
        is_typed = not entry.get("isMeta") and not entry.get("isCompactSummary")
        add_user(draft, content, ts if is_typed and not is_context else None)
        return
    if is_context:
        for block in results:
            draft.context("tool", block.get("content"))
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


IMPORTER = Importer(
    read,
    (".jsonl",),
    has_keys("message.role sessionId", "message.role uuid", "message.role session_id"),
)
