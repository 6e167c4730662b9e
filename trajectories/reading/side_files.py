"""The files beside a conversation: trace, tool log, brief, summary and report.

Each is optional and may be broken. The branches of the harness (AutoMedBench/AutoMedBench) write
the same things in several forms; here they become one.
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
from .layout import REJUDGED_NAME, RunFolder, brief_file, report_file, side_file, summary_file
from .log_matching import attach_log_entries
from .messages import tool_kind

Entry = dict[str, Any]
_CASE_KEYS = ("patient_ids", "case_ids", "question_ids", "cases")


class SideFiles:
    """The side files of one run; `digest` is updated with every file that is read."""

    def __init__(self, run: RunFolder, warnings: list[str], digest: Any) -> None:
        self._run, self._warnings, self._digest = run, warnings, digest
        self.trace = _with_types(self._read_lines(side_file(run, "trace.jsonl")))
        tool_log = self._read_lines(side_file(run, "tool_calls.jsonl", "tool_log.jsonl"))
        self.calls = [_unified_call(entry) for entry in tool_log]
        summary = self._read_json(summary_file(run))
        report_path = report_file(run)
        self.report_data = flat_report(self._read_json(report_path))
        self.report: Report | None = None
        if report_path is not None and self.report_data is not None:
            self.report = parse_report(self.report_data, report_path, warnings)
        rejudged = side_file(run, REJUDGED_NAME)
        if rejudged is not None:
            self._read_bytes(rejudged)  # for the digest: its verdicts are read by a judge
        self.summary: Entry | None = (
            summary if isinstance(summary, dict) else report_summary(self.report_data)
        )
        # Most branches write the tokens of a reply into the trace.
        if not any("input_tokens" in event for event in self.events("api_call")):
            self._add_tokens()
        self.submit_result: Entry | None = None
        """The harness's answer to the last accepted submission."""
        for call in self.calls:
            if tool_kind(call.get("tool")) == "submit" and _is_accepted(call):
                self.submit_result = call["result"]

    def brief(self) -> str | None:
        """The system prompt from the harness's own file."""
        path = brief_file(self._run)
        data = None if path is None else self._read_bytes(path)
        return None if data is None else data.decode("utf-8-sig", errors="replace")

    def use_events(self, events: Any) -> None:
        """Use the events in the conversation itself if the run has no trace.jsonl."""
        if not self.trace and isinstance(events, list):
            self.trace = [event for event in events if isinstance(event, dict)]

    def events(self, kind: str) -> list[Entry]:
        """The trace's events of this type."""
        return [event for event in self.trace if event.get("type") == kind]

    def listed_cases(self) -> tuple[str, ...] | None:
        """The run's cases as the summary lists them, else the report; None if neither does."""
        report = self.report_data if isinstance(self.report_data, dict) else {}
        for source in (self.summary or {}, report):
            for key in _CASE_KEYS:
                ids = source.get(key)
                if isinstance(ids, list) and ids and all(isinstance(i, str | int) for i in ids):
                    return tuple(dict.fromkeys(str(i) for i in ids))
        return None

    def messages(self) -> list[Entry]:
        """The conversation, reconstructed from the trace and the tool log.

        Texts are as short as the trace cut them. A call's log entry has the turn number of its
        reply, or counts on from it (branch eval_vqa). Calls of unknown tools and calls that were
        never run are not logged.
        """
        messages: list[Entry] = []
        log = deque(self.calls)
        for event in self.events("api_call"):
            turn = count(event.get("turn")) or 0
            # Calls of earlier replies that matched none of their names.
            while log and (count(log[0].get("turn")) or 0) < turn:
                log.popleft()
            calls: list[Entry] = []
            results: list[Entry] = []
            names = event.get("tool_calls")
            for name in names if isinstance(names, list) else ():
                call_id = f"{len(messages)}-{len(calls)}"
                is_logged = bool(log) and log[0].get("tool") == name
                if is_logged and log[0].get("turn") in (turn, turn + len(results)):
                    entry = log.popleft()
                else:
                    entry = {}
                function = {"name": name, "arguments": entry.get("arguments")}
                calls.append({"id": call_id, "function": function})
                if entry:
                    content = _result_content(entry)
                    results.append({"role": "tool", "tool_call_id": call_id, "content": content})
            text = event.get("content", event.get("content_preview"))
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            messages += results
        return messages

    def attach_logs(self, turns: Sequence[Turn], executions: Any) -> list[Turn]:
        """Turns with what the trace and the tool log say of them.

        `executions` are the conversation's own records of executions; without any, the trace's are
        used.
        """
        if not isinstance(executions, list) or not executions:
            executions = self.events("code_exec")
        return attach_log_entries(
            turns,
            replies=self.events("api_call"),
            executions=[item for item in executions if isinstance(item, dict)],
            calls=self.calls,
            warnings=self._warnings,
        )

    def _add_tokens(self) -> None:
        """Add the tokens of each reply from the log of replies (branch eval_report_gen)."""
        path = side_file(self._run, "api_responses.jsonl")
        responses = {}
        for entry in self._read_lines(path, ("turn", "response")):
            if isinstance(entry.get("response"), dict) and isinstance(entry.get("turn"), int):
                responses[entry["turn"]] = entry["response"]
        for event in self.events("api_call"):
            turn = event.get("turn")
            response = responses.get(turn, {}) if isinstance(turn, int) else {}
            for key in ("input_tokens", "output_tokens"):
                if key in response:
                    event[key] = response[key]

    def _read_bytes(self, path: Path) -> bytes | None:
        try:
            data = read_bytes(path)
        except InputError as error:
            self._warnings.append(f"{path.name} left out: {error.message}")
            return None
        add_to_digest(self._digest, path.name, data)
        return data

    def _read_lines(self, path: Path | None, keys: tuple[str, ...] = ()) -> list[Entry]:
        """The objects of a JSONL file; with `keys`, only these fields of each."""
        if path is None:
            return []
        entries: list[Entry] = []
        errors: list[InputError] = []
        try:
            data = read_bytes(path)
            for _, value in read_jsonl(path, data, in_memory=True):
                if isinstance(value, InputError):
                    errors.append(value)
                elif keys:
                    entries.append({key: value[key] for key in keys if key in value})
                else:
                    entries.append(value)
        except InputError as error:
            self._warnings.append(f"{path.name}: {error.message}")
            return entries
        add_to_digest(self._digest, path.name, data)
        if errors:
            lines = "line" if len(errors) == 1 else "lines"
            self._warnings.append(
                f"{path.name}: {len(errors)} broken {lines} left out, the first:"
                f" {errors[0].message}"
            )
        return entries

    def _read_json(self, path: Path | None) -> Any:
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
    """Add one file to the hash of everything that was read."""
    digest.update(f"\0{name}\0{len(data)}\0".encode("utf-8", "surrogatepass"))
    digest.update(data)


def _result_content(entry: Entry) -> str:
    return "REJECTED" if entry.get("rejected") is True else json.dumps(entry.get("result"))


def _with_types(trace: list[Entry]) -> list[Entry]:
    """Events with a type.

    Branch eval_image_enhancement writes one line a reply, without a type and with its tokens
    summed up so far.
    """
    replies = [event for event in trace if "type" not in event and "api_s" in event]
    for previous, event in pairwise([{}, *replies]):
        event["type"] = "api_call"
        event["input_tokens"] = _increase(previous, event, "prompt_tokens")
        event["output_tokens"] = _increase(previous, event, "completion_tokens")
    return trace


def _increase(previous: Entry, event: Entry, key: str) -> float | None:
    before, after = number(previous.get(key, 0)), number(event.get(key))
    if before is None or after is None or after < before:
        return None
    return after - before


def _unified_call(entry: Entry) -> Entry:
    """An entry of the tool log with `tool`, `arguments` and `exec_time_s`, whatever its names."""
    if "tool" in entry or "name" not in entry:
        return entry
    arguments = entry.get("args")
    if not isinstance(arguments, dict):
        arguments = {key: entry[key] for key in ("language", "code") if key in entry}
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


def _is_accepted(call: Mapping[str, Any]) -> bool:
    return isinstance(call.get("result"), dict) and call.get("rejected") is not True
