"""The files around a conversation: trace, tool log, brief, summary and report; each optional, each
allowed to be broken.

The branches of the harness (AutoMedBench/AutoMedBench) write the same things in several forms; here
they become one.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import Report, Turn
from .harness_report import flat_report, parse_report, report_summary
from .json_bytes import count, decode, number, parse_json, read_bytes, read_jsonl
from .layout import RunFolder, brief_file, report_file, side_file, summary_file
from .log_matching import attach_log_entries
from .messages import tool_kind

Entry = dict[str, Any]
_CASE_KEYS = ("patient_ids", "case_ids", "question_ids", "cases")


class SideFiles:
    """What came with one run beside its conversation; `digest` is fed with every file that was
    read."""

    def __init__(self, run: RunFolder, warnings: list[str], digest: Any) -> None:
        self._run, self._warnings, self._digest = run, warnings, digest
        self.trace = _typed(self._lines(side_file(run, "trace.jsonl")))
        self.calls = [
            _call(entry)
            for entry in self._lines(side_file(run, "tool_calls.jsonl", "tool_log.jsonl"))
        ]
        summary = self._object(summary_file(run))
        path = report_file(run)
        self.report_data = flat_report(self._object(path))
        self.report: Report | None = None
        if path is not None and self.report_data is not None:
            self.report = parse_report(self.report_data, path, warnings)
        self.summary: Entry | None = (
            summary if isinstance(summary, dict) else report_summary(self.report_data)
        )
        if not any("input_tokens" in event for event in self.events("api_call")):
            self._add_tokens()
        submitted = [
            c["result"] for c in self.calls if tool_kind(c.get("tool")) == "submit" and _accepted(c)
        ]
        self.submit_result: Entry | None = submitted[-1] if submitted else None

    def brief(self) -> str | None:
        """The system prompt as the harness keeps it in a file of its own."""
        path = brief_file(self._run)
        data = None if path is None else self._bytes(path)
        return None if path is None or data is None else data.decode("utf-8-sig", errors="replace")

    def use_events(self, events: Any) -> None:
        """Take the events that the conversation itself carries, when no trace.jsonl came with it."""
        if not self.trace and isinstance(events, list):
            self.trace = [event for event in events if isinstance(event, dict)]

    def events(self, kind: str) -> list[Entry]:
        """The trace's events of this type."""
        return [event for event in self.trace if event.get("type") == kind]

    def listed_cases(self) -> tuple[str, ...] | None:
        """The cases that the summary, else the report, names as those of the run."""
        report = self.report_data if isinstance(self.report_data, dict) else {}
        for ids in (
            source.get(key) for source in (self.summary or {}, report) for key in _CASE_KEYS
        ):
            if isinstance(ids, list) and ids and all(isinstance(i, str | int) for i in ids):
                return tuple(dict.fromkeys(str(i) for i in ids))
        return None

    def messages(self) -> list[Entry]:
        """The conversation as far as trace and tool log tell it: texts as the trace cuts them,
        calls as they were logged.

        A call's entry has the turn of its reply, or counts on from there (branch eval_vqa); calls
        of unknown tools and those that never came to run are not logged.
        """
        found: list[Entry] = []
        logged = deque(self.calls)
        for event in self.events("api_call"):
            names, turn = event.get("tool_calls"), count(event.get("turn")) or 0
            while logged and (count(logged[0].get("turn")) or 0) < turn:
                logged.popleft()
            calls: list[Entry] = []
            answers: list[Entry] = []
            for name in names if isinstance(names, list) else ():
                same = bool(logged) and logged[0].get("tool") == name
                entry = (
                    logged.popleft()
                    if same and logged[0].get("turn") in (turn, turn + len(answers))
                    else {}
                )
                call_id = f"{len(found)}-{len(calls)}"
                function = {"name": name, "arguments": entry.get("arguments")}
                calls.append({"id": call_id, "function": function})
                if entry:
                    result = (
                        "REJECTED"
                        if entry.get("rejected") is True
                        else json.dumps(entry.get("result"))
                    )
                    answers.append({"role": "tool", "tool_call_id": call_id, "content": result})
            text = event.get("content", event.get("content_preview"))
            found += [{"role": "assistant", "content": text, "tool_calls": calls}, *answers]
        return found

    def attach_logs(self, turns: Sequence[Turn], executions: Any) -> list[Turn]:
        """Turns with what trace and tool log say of them; `executions` are the conversation's own
        records."""
        source = (
            executions if isinstance(executions, list) and executions else self.events("code_exec")
        )
        known = [item for item in source if isinstance(item, dict)]
        return attach_log_entries(turns, self.events("api_call"), known, self.calls, self._warnings)

    def _add_tokens(self) -> None:
        """Tokens of each reply, where they stand in a log of the replies (branch eval_report_gen)."""
        said = {}
        for entry in self._lines(side_file(self._run, "api_responses.jsonl"), ("turn", "response")):
            if isinstance(entry.get("response"), dict) and isinstance(entry.get("turn"), int):
                said[entry["turn"]] = entry["response"]
        for event in self.events("api_call"):
            response = said.get(event["turn"], {}) if isinstance(event.get("turn"), int) else {}
            event.update(
                {key: response[key] for key in ("input_tokens", "output_tokens") if key in response}
            )

    def _bytes(self, path: Path) -> bytes | None:
        try:
            data = read_bytes(path)
        except InputError as error:
            self._warnings.append(f"{path.name} left out: {error.message}")
            return None
        add_to_digest(self._digest, path.name, data)
        return data

    def _lines(self, path: Path | None, keys: tuple[str, ...] = ()) -> list[Entry]:
        """The objects of a JSONL file, or of each only these keys."""
        if path is None:
            return []
        found: list[Entry] = []
        broken = 0
        first: InputError | None = None
        try:
            data = read_bytes(path)
            for _, value in read_jsonl(path, data, kept=True):
                if isinstance(value, InputError):
                    broken, first = broken + 1, first or value
                else:
                    found.append(
                        {key: value[key] for key in keys if key in value} if keys else value
                    )
        except InputError as error:
            self._warnings.append(f"{path.name}: {error.message}")
            return found
        add_to_digest(self._digest, path.name, data)
        if first is not None:
            self._warnings.append(
                f"{path.name}: {broken} broken line{'s' if broken > 1 else ''} left out, the first:"
                f" {first.message}"
            )
        return found

    def _object(self, path: Path | None) -> Any:
        if path is None:
            return None
        try:
            data = read_bytes(path)
            value = parse_json(decode(data, path), path)
        except InputError as error:
            self._warnings.append(f"{path.name} left out: {error.message}")
            return None
        add_to_digest(self._digest, path.name, data)
        return value


def add_to_digest(digest: Any, name: str, data: bytes) -> None:
    """Add one file to the hash of all that was read."""
    digest.update(f"\0{name}\0{len(data)}\0".encode("utf-8", "surrogatepass"))
    digest.update(data)


def _typed(trace: list[Entry]) -> list[Entry]:
    """Events with a type: branch eval_image_enhancement writes one line a reply without one, its
    tokens summed up so far."""
    replies = [event for event in trace if "type" not in event and "api_s" in event]
    for before, event in pairwise([{}, *replies]):
        event["type"] = "api_call"
        for ours, theirs in (
            ("input_tokens", "prompt_tokens"),
            ("output_tokens", "completion_tokens"),
        ):
            now, then = number(event.get(theirs)), number(before.get(theirs, 0))
            event[ours] = (
                now - then if now is not None and then is not None and now >= then else None
            )
    return trace


def _call(entry: Entry) -> Entry:
    """An entry of the tool log with `tool`, `arguments`, `exec_time_s`, whichever names it was
    written with."""
    if "tool" in entry or "name" not in entry:
        return entry
    given = entry.get("args")
    arguments = (
        given
        if isinstance(given, dict)
        else {k: entry[k] for k in ("language", "code") if k in entry}
    )
    result = entry.get("result", entry.get("pre"))
    if entry.get("violation") is True:
        result = {"exit_code": -1, "stdout": "", "stderr": "BLOCKED"}
    return {
        **entry,
        "tool": entry["name"],
        "arguments": arguments,
        "result": result,
        "exec_time_s": entry.get("elapsed_s"),
    }


def _accepted(call: Mapping[str, Any]) -> bool:
    return isinstance(call.get("result"), dict) and call.get("rejected") is not True
