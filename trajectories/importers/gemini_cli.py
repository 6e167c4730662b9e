"""Gemini CLI: session records, checkpoints, and the output of `--output-format stream-json`.

A session (`chats/session-*.json`, later `.jsonl`) has one entry a reply, with its calls, their
results, thoughts and tokens; later lines with the id of an earlier one replace it. What was
rewound stays: the agent did it. A compressed history brings replies that no model wrote; they are
context. A checkpoint (`/chat save`) is the history as it goes to the API. The files of sub-agents
stand in a folder that has the name of their session. Telemetry names calls without their outputs
and is refused. Source: google-gemini/gemini-cli
`packages/core/src/services/chatRecordingTypes.ts`, `chatRecordingService.ts`, `output/types.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import kind_of_error, kind_of_word
from ..reading.json_bytes import count, number, text_or_none
from ..reading.layout import file_in
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects
from .files import Document, documents, draft_or_error, source_name
from .recognise import has_keys, head_of
from .usage import sum_tokens, usage_tokens

_EXPECTED = "expected a session (`sessionId`, `messages`), a checkpoint, or events of stream-json"
_AGENT = "gemini-cli"
_NOTICES = ("info", "error", "warning")
"""Entries that the program wrote for its user."""
_SHELL = "run_shell_command"
_EXIT_CODE = "Exit Code: "
_GREETING = "Got it. Thanks for the context!"
"""The reply that the program itself puts after the context of a session."""
_MS = 1000
_EVENTS = ("init", "message", "tool_use", "tool_result", "error", "result")
_SUBAGENT = "subagent"


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file; none of a session that goes on in a newer file beside it."""
    if _is_telemetry(head_of(path)):
        raise InputError(
            "is telemetry of Gemini CLI, which has no outputs of tools",
            "give the session that it is about: ~/.gemini/tmp/<project>/chats/session-*",
            path,
        )
    name = path.name.removesuffix(".gz")
    if name.endswith(".json") and file_in(path.parent, f"{name}l") is not None:
        return
    values = []
    for document in documents(path):
        if isinstance(document, InputError):
            yield document
        else:
            values.append(document)
    yield draft_or_error(_draft, values, path)


def _is_telemetry(head: bytes) -> bool:
    return b'"event.name"' in head and b'"gemini_cli.' in head


def _draft(items: list[Document], path: Path) -> Draft:
    values = [item.value for item in items]
    first = as_object(values[0]) if values else {}
    if first.get("type") == "init" or "tool_name" in first:
        return _Stream(values, path).draft
    history = _history(values)
    if history is not None:
        return _checkpoint(history, path)
    session = _Session(path)
    for item in items:
        session.add(item.value, item.line)
    return session.draft()


# Sessions.


class _Session:
    """The entries of a session by their ids, in the order in which they first came."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header: dict[str, Any] = {}
        self._entries: dict[str, dict[str, Any]] = {}
        self._written_later: set[str] = set()
        """Ids of entries that only a rewritten history has."""
        self._n_rewinds = 0
        self._n_unknown = 0

    def add(self, record: Any, line: int | None) -> None:
        """Add a line of the file, or the file itself."""
        if not isinstance(record, dict):
            self._n_unknown += 1
        elif "$rewindTo" in record:
            self._n_rewinds += 1
        elif isinstance(record.get("$set"), dict):
            self._update(record["$set"])
        elif "sessionId" in record:
            self._header = {**record, **self._header}
            for position, message in enumerate(as_objects(record.get("messages"))):
                self._put(message, f"messages[{position}]")
        elif "id" in record and "type" in record:
            self._put(record, f"line {line}")
        else:
            self._n_unknown += 1

    def _update(self, changes: dict[str, Any]) -> None:
        """Take what the program notes of the session; a history that it rewrote adds only texts."""
        for message in as_objects(changes.get("messages")):
            key = as_id(message.get("id"))
            if key is not None and key not in self._entries:
                self._written_later.add(key)
                self._put(message, "$set")
        others = {key: item for key, item in changes.items() if key != "messages"}
        self._header = {**others, **self._header}

    def _put(self, message: dict[str, Any], location: str) -> None:
        if message.get("type") not in ("user", "gemini", *_NOTICES):
            raise InputError(
                f"{location} has the unknown type {str(message.get('type'))[:40]!r}",
                _EXPECTED,
                self._path,
            )
        key = as_id(message.get("id")) or f"at {location}"
        self._entries[key] = message

    def draft(self) -> Draft:
        """The run of the session."""
        session_id = as_id(self._header.get("sessionId"))
        if session_id is None or not self._entries:
            raise InputError("is not a session of Gemini CLI", _EXPECTED, self._path)
        is_part = self._header.get("kind") == _SUBAGENT
        draft = Draft(
            session_id,
            _AGENT,
            source_id=session_id,
            agent=_AGENT,
            part_of=self._path.parent.name if is_part else None,
            files_beside=self._older_file(),
        )
        if text_or_none(self._header.get("summary")):
            draft.origin["summary"] = self._header["summary"]
        draft.elapsed(self._header.get("startTime"))
        answered: set[str] = set()
        for key, entry in self._entries.items():
            _add_entry(draft, entry, answered, is_model_reply=key not in self._written_later)
        if self._n_rewinds:
            draft.odd["rewinds; what they took back stays"] += self._n_rewinds
        if self._n_unknown:
            draft.lost["entries of an unknown shape"] += self._n_unknown
        return draft

    def _older_file(self) -> tuple[Path, ...]:
        """The file of an earlier version, from which this one was continued."""
        name = self._path.name.removesuffix(".gz")
        if not name.endswith(".jsonl"):
            return ()
        older = file_in(self._path.parent, f"{name.removesuffix('.jsonl')}.json")
        return () if older is None else (older,)


def _add_entry(
    draft: Draft, entry: dict[str, Any], answered: set[str], *, is_model_reply: bool
) -> None:
    """Add an entry; `answered` are the ids of calls whose results came with their reply."""
    kind, ts = entry["type"], draft.elapsed(entry.get("timestamp"))
    parts = _Parts(entry.get("content"))
    if kind in _NOTICES:
        _keep_notice(draft, kind, parts.content)
    elif kind == "user":
        for part in parts.results:
            if as_id(part.get("id")) not in answered:
                _add_response(draft, part, ts=ts)
        draft.user(parts.content, None if parts.results else ts)
    elif not is_model_reply:
        draft.context("assistant", parts.content, len(as_objects(entry.get("toolCalls"))))
    else:
        _add_reply(draft, entry, parts, ts)
        records = as_objects(entry.get("toolCalls"))
        answered.update(as_id(record.get("id")) or "" for record in records if record.get("result"))


def _keep_notice(draft: Draft, kind: str, text: Any) -> None:
    """Keep what the program said to its user, which the model does not see."""
    draft.origin.setdefault("notices", []).append({"type": kind, "text": content_text(text)})
    draft.odd[f"notices of the program ({kind[:20]})"] += 1


def _add_reply(draft: Draft, entry: dict[str, Any], parts: _Parts, ts: float | None) -> None:
    records = as_objects(entry.get("toolCalls"))
    unread = [record for record in records if not text_or_none(record.get("name"))]
    records = [record for record in records if record not in unread]
    for _ in unread:
        draft.count_unread_call()
    ids = {as_id(record.get("id")) for record in records}
    calls = [
        Call(record["name"], record.get("args"), as_id(record.get("id"))) for record in records
    ]
    # A history that was written back has the calls a second time.
    calls += [call for call in parts.calls if call.id is None or call.id not in ids]
    draft.model = draft.model or text_or_none(entry.get("model"))
    thoughts = [_thought(thought) for thought in as_objects(entry.get("thoughts"))]
    draft.assistant(
        parts.content,
        calls,
        reasoning="\n\n".join([*filter(None, thoughts), *parts.thoughts]),
        ts=ts,
        tokens=_tokens(entry.get("tokens")),
    )
    for record in records:
        _add_record(draft, record)


def _thought(thought: dict[str, Any]) -> str:
    texts = (text_or_none(thought.get(key)) for key in ("subject", "description"))
    return "\n".join(text for text in texts if text)


def _tokens(tokens: Any) -> Any:
    """The tokens of a reply: thoughts stand beside the output, those of tools beside the input."""
    stated = as_object(tokens)
    of_tools = count(stated.get("tool"))
    if of_tools:
        stated = {**stated, "input": (count(stated.get("input")) or 0) + of_tools}
    return usage_tokens(stated, reasoning="beside")


def _add_record(draft: Draft, record: dict[str, Any]) -> None:
    """The result of a call that the session keeps with it."""
    if as_id(record.get("agentId")):
        draft.odd["calls of sub-agents, whose sessions are files of their own"] += 1
    result = record.get("result")
    parts = _Parts(result)
    kind = kind_of_word(record.get("status"))
    if not result and kind is None:  # it never ended
        return
    ts, call_id = draft.elapsed(record.get("timestamp")), as_id(record.get("id"))
    if not parts.results:
        draft.result(call_id, parts.content or "", kind=kind, ts=ts)
    for part in parts.results[:1]:
        _add_response(draft, {**part, "id": call_id}, ts=ts, kind=kind)
    if parts.content and parts.results:
        draft.user(parts.content)  # what a tool shows beside its result, e.g. a file


class _Parts:
    """The parts of a message of the Gemini API: text, thoughts, calls, results."""

    def __init__(self, value: Any) -> None:
        items = value if isinstance(value, list) else [value]
        blocks: list[dict[str, Any]] = []
        self.thoughts: list[str] = []
        self.calls: list[Call] = []
        self.results: list[dict[str, Any]] = []
        for item in items:
            part = {"text": item} if isinstance(item, str) else as_object(item)
            call, result = part.get("functionCall"), part.get("functionResponse")
            if isinstance(call, dict):
                name = text_or_none(call.get("name")) or "unknown"
                self.calls.append(Call(name, call.get("args"), as_id(call.get("id"))))
            elif isinstance(result, dict):
                self.results.append(result)
            elif part.get("thought") is True and isinstance(part.get("text"), str):
                self.thoughts.append(part["text"])
            elif isinstance(part.get("text"), str):
                if part["text"]:
                    blocks.append({"type": "text", "text": part["text"]})
            elif part:
                blocks.append({"type": next(iter(part))[:40]})
        are_texts = all("text" in block for block in blocks)
        texts = "".join(block["text"] for block in blocks) if are_texts else ""
        self.content: Any = texts if are_texts else blocks
        """Text, or blocks if some have none: pieces of a stream make up one text."""


def _add_response(
    draft: Draft, part: dict[str, Any], *, ts: float | None, kind: Any = None
) -> None:
    """The result of a call as the API has it: `output` or `error`, or fields of its own."""
    response = as_object(part.get("response"))
    error, output = response.get("error"), response.get("output")
    kind = kind or kind_of_error(error) or ("ok" if "output" in response else None)
    if output is None and error is not None:
        output = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
    elif output is None and response:
        output = json.dumps(response, ensure_ascii=False)
    exit_code = _exit_code(content_text(output)) if part.get("name") == _SHELL else None
    draft.result(as_id(part.get("id")), output, exit_code=exit_code, kind=kind, ts=ts)


def _exit_code(text: str) -> int | None:
    """The exit code that the shell tool writes under the output of a command, if it does."""
    lines = [line for line in text.split("\n") if line.startswith(_EXIT_CODE)]
    digits = lines[-1].removeprefix(_EXIT_CODE).strip() if lines else ""
    return int(digits) if digits.isdecimal() and len(digits) <= len("255") else None


# Checkpoints.


def _history(values: list[Any]) -> list[dict[str, Any]] | None:
    """The messages of a checkpoint; None if the values are none."""
    value = values[0] if len(values) == 1 else values
    header = as_object(value)
    for key in ("clientHistory", "history"):
        if isinstance(header.get(key), list):
            value = header[key]
            break
    items = as_objects(value)
    is_history = bool(items) and all(isinstance(item.get("parts"), list) for item in items)
    return items if is_history else None


def _checkpoint(history: list[dict[str, Any]], path: Path) -> Draft:
    draft = Draft(source_name(path), _AGENT, agent=_AGENT)
    for position, message in enumerate(history):
        role, parts = message.get("role"), _Parts(message["parts"])
        if role == "model" and not draft.turns and parts.content == _GREETING:
            draft.context("assistant", parts.content)
        elif role == "model":
            draft.assistant(parts.content, parts.calls, reasoning="\n\n".join(parts.thoughts))
        elif role in ("user", "function"):
            for part in parts.results:
                _add_response(draft, part, ts=None)
            draft.user(parts.content)
        else:
            raise InputError(
                f"[{position}] has the unknown role {str(role)[:40]!r}", _EXPECTED, path
            )
    return draft


# Events of --output-format stream-json.


class _Stream:
    """The run of the events of one command."""

    def __init__(self, events: list[Any], path: Path) -> None:
        self.draft = Draft(source_name(path), _AGENT, agent=_AGENT)
        self._text = ""
        self._calls: list[Call] = []
        self._results: list[dict[str, Any]] = []
        self._ts: float | None = None
        for position, value in enumerate(events, 1):
            event = as_object(value)
            if event.get("type") not in _EVENTS:
                raise InputError(
                    f"event {position} has the unknown type {str(event.get('type'))[:40]!r}",
                    _EXPECTED,
                    path,
                )
            self._add(event)
        self._end_turn()

    def _add(self, event: dict[str, Any]) -> None:
        kind, ts = event["type"], self.draft.elapsed(event.get("timestamp"))
        if kind == "init":
            self.draft.name = as_id(event.get("session_id")) or self.draft.name
            self.draft.source_id = as_id(event.get("session_id"))
            self.draft.model = text_or_none(event.get("model"))
        elif kind == "message" and event.get("role") == "user":
            self._end_turn()
            self.draft.user(event.get("content"), ts)
        elif kind == "message":
            if self._results:
                self._end_turn()
            self._text += content_text(event.get("content"))
            self._ts = ts
        elif kind == "tool_use":
            self._add_call(event, ts)
        elif kind == "tool_result":
            self._results.append(event)
        elif kind == "error":
            _keep_notice(self.draft, content_text(event.get("severity")), event.get("message"))
        else:
            self._end(event)

    def _add_call(self, event: dict[str, Any], ts: float | None) -> None:
        if self._results:
            self._end_turn()
        self._ts = ts
        if text_or_none(event.get("tool_name")):
            call_id = as_id(event.get("tool_id"))
            self._calls.append(Call(event["tool_name"], event.get("parameters"), call_id))
        else:
            self.draft.count_unread_call()

    def _end_turn(self) -> None:
        """The pieces of a reply up to its first result are one turn."""
        if self._text or self._calls:
            self.draft.assistant(self._text, self._calls, ts=self._ts)
        for result in self._results:
            error = as_object(result.get("error"))
            output = content_text(result.get("output"))
            message = content_text(error.get("message"))
            self.draft.result(
                as_id(result.get("tool_id")),
                output or message,
                stderr=message if output and message != output else "",
                kind=kind_of_word(result.get("status")) or kind_of_error(error),
                ts=self.draft.elapsed(result.get("timestamp")),
            )
        self._text, self._calls, self._results = "", [], []

    def _end(self, event: dict[str, Any]) -> None:
        stats = as_object(event.get("stats"))
        usage = {key: item for key, item in stats.items() if key != "input"}
        self.draft.add_totals(**sum_tokens([usage_tokens(usage, reasoning="beside")]))
        duration = number(stats.get("duration_ms"))
        self.draft.wall_time_s = None if duration is None else duration / _MS
        self.draft.add_outcomes(event.get("status"), "result", "status")
        self.draft.add_outcomes(event.get("error"), "result", "error")


_has_keys = has_keys(
    "sessionId projectHash",
    "role=model parts",
    "history.role=model history.parts",
    "clientHistory.parts",
    "type=init session_id model timestamp",
    "type=tool_use tool_name parameters",
)


def _recognises(head: bytes, name: str) -> bool:
    return _has_keys(head, name) or _is_telemetry(head)


IMPORTER = Importer(read, (".json", ".jsonl"), _recognises)
