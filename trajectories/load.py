"""Read one run, whatever shape its files have, into a frozen `Run`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from ..errors import InputError
from .layout import find_conversations, find_outputs, run_folder, run_id, side_file
from .matching import with_records
from .messages import TurnBuilder, tool_kind
from .models import Report, Resources, Run, Status, Tier, Track, Turn, Violation
from .planfile import read_plan
from .reading import amount, count, decode, number, parse_json, read_bytes, read_jsonl, text_or_none
from .report import parse_report, report_identity, report_runtime

_EXPECTED = "expected an object with `messages`, or a list of messages with `role`"
_TRACK_WORDS: tuple[tuple[str, Track], ...] = (
    ("report", "report_generation"), ("vqa", "vqa"), ("slake", "vqa"), ("vqa-rad", "vqa"), ("pathvqa", "vqa"), ("medxpert", "vqa"),
    ("-det-", "detection"), ("detect", "detection"), ("bccd", "detection"),
    ("denois", "enhancement"), ("enhanc", "enhancement"), ("super-resolution", "enhancement"), ("ldct", "enhancement"),
    ("-sr-", "enhancement"), ("-cls-", "classification"), ("classif", "classification"),
    ("synth", "synthesis"), ("sct", "synthesis"),
    ("-seg-", "segmentation"), ("segment", "segmentation"), ("kidney", "segmentation"), ("liver", "segmentation"),
    ("pancreas", "segmentation"), ("feta", "segmentation"),
)  # fmt: skip
_BRIEF_TRACK = re.compile(r"\btrack\s*[:=]\s*\**\s*([a-z][a-z_ -]+)", re.IGNORECASE)
_BRIEF_TIER = re.compile(r"\btier\s*[:=]\s*\**\s*(lite|standard|pro)\b", re.IGNORECASE)


def load_run(path: str | Path) -> Run:
    """The run of a conversation file or of a run folder.

    Raises InputError when the path is missing, holds more than one run, or is no conversation; side files that are
    missing or broken only leave warnings on the run.
    """
    path = Path(path)
    found = find_conversations(path)
    conversation = next(found)
    if next(found, None) is not None:
        raise InputError("holds more than one run", "give one of them, or use iter_runs for all", path)
    return _load(conversation)


def iter_runs(path: str | Path) -> Iterator[Run | InputError]:
    """Every run at or below a path, one at a time; a run that cannot be read comes as the error that it is."""
    for conversation in find_conversations(Path(path)):
        try:
            yield _load(conversation)
        except InputError as error:
            yield error


def load_conversation(conversation: Path) -> Run:
    """The run of exactly this conversation file (see `find_conversations`)."""
    return _load(conversation)


def _load(path: Path) -> Run:
    warnings: list[str] = []
    data = read_bytes(path)
    value = parse_json(decode(data, path), path)
    shape, head, messages = _shape(value, path)
    builder = TurnBuilder(warnings)
    for position, message in enumerate(messages):
        builder.add(position, message)
    if not messages:
        raise InputError("holds no messages", _EXPECTED, path)

    folder = run_folder(path)
    digest = hashlib.sha256(data)
    side = _SideFiles(folder, warnings, digest)
    side.use_events(head.get("trace_events"))
    turns = side.apply(builder.turns(), head.get("code_executions"), warnings)
    if not turns:
        warnings.append("no assistant message: the run has no turns")
    brief = "\n\n".join(part for part in (text_or_none(head.get("system_prompt")), *builder.brief) if part)
    identity = _identity(head, side, brief, path)
    plan = read_plan(folder, turns, warnings)
    for file in (plan.path, plan.image_path):
        if file is not None:
            _feed(digest, file.name, _bytes_or_none(file) or b"")
    outputs = find_outputs(folder)
    for output in outputs.files:
        _feed(digest, f"{output.case}/{output.name}", str(output.size).encode() + _ends(output.path))
    status = _status(turns, side, builder.submit_result, identity["track"])
    return Run(
        id=run_id(path), path=path, folder=folder,
        sha256=hashlib.sha256(data).hexdigest(), content_sha256=digest.hexdigest(), format=shape,
        brief=brief, turns=tuple(turns), plan=plan, outputs=outputs, report=side.report,
        resources=_resources(turns, side, head), status=status, listed_cases=side.listed_cases(),
        submit_result=builder.submit_result or side.submit_result, summary=side.summary, warnings=tuple(warnings),
        **identity,
    )  # fmt: skip


def _shape(value: Any, path: Path) -> tuple[Literal["object", "list"], dict[str, Any], list[Any]]:
    if isinstance(value, list):
        if value and not any(isinstance(m, dict) and ("role" in m or "type" in m) for m in value):
            raise InputError(f"is a list of {type(value[0]).__name__} without `role`", _EXPECTED, path)
        return "list", {}, value
    if isinstance(value, dict):
        messages = value.get("messages")
        if isinstance(messages, list):
            if messages and not any(isinstance(m, dict) and ("role" in m or "type" in m) for m in messages):
                raise InputError("has `messages` without any `role`", _EXPECTED, path)
            return "object", value, messages
        what = (
            f"`messages` that is {type(messages).__name__}"
            if "messages" in value
            else f"keys {', '.join(sorted(map(str, value))[:6]) or '(none)'}"
        )
        raise InputError(f"is an object with {what[:120]}", _EXPECTED, path)
    raise InputError(f"is {'null' if value is None else type(value).__name__}", _EXPECTED, path)


_END = 65_536
"""Bytes from each end of an output that tell its versions apart: text is read whole, gzip ends with a checksum."""


def _ends(path: Path) -> bytes:
    """The first and last bytes of an output file; none of one that cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(_END)
            file.seek(max(len(head), file.seek(0, 2) - _END))
            return head + file.read(_END)
    except OSError:
        return b""


def _feed(digest: Any, name: str, data: bytes) -> None:
    digest.update(f"\0{name}\0{len(data)}\0".encode("utf-8", "surrogatepass"))
    digest.update(data)


def _bytes_or_none(path: Path) -> bytes | None:
    try:
        return read_bytes(path)
    except InputError:
        return None


class _SideFiles:
    """Trace, tool calls, summary and report around a conversation; each optional, each allowed to be broken."""

    def __init__(self, folder: Path, warnings: list[str], digest: Any) -> None:
        self.trace: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.summary: dict[str, Any] | None = None
        self.report: Report | None = None
        self.report_data: Any = None
        self.submit_result: dict[str, Any] | None = None
        for target, names in ((self.trace, ("trace.jsonl",)), (self.calls, ("tool_calls.jsonl", "tool_log.jsonl"))):
            path = side_file(folder, *names)
            if path is not None:
                self._lines(path, target, warnings, digest)
        summary = self._object(side_file(folder, "agent_summary.json"), warnings, digest)
        self.summary = summary if isinstance(summary, dict) else None
        path = side_file(folder, "detail_report.json")
        self.report_data = self._object(path, warnings, digest)
        if path is not None and self.report_data is not None:
            self.report = parse_report(self.report_data, path, warnings)

    def use_events(self, events: Any) -> None:
        """Take the events that the conversation itself carries, when no trace.jsonl came with it."""
        if not self.trace and isinstance(events, list):
            self.trace = [event for event in events if isinstance(event, dict)]

    def _lines(self, path: Path, target: list[dict[str, Any]], warnings: list[str], digest: Any) -> None:
        broken = 0
        first: InputError | None = None
        try:
            for _, value in read_jsonl(path):
                if isinstance(value, InputError):
                    broken, first = broken + 1, first or value
                else:
                    target.append(value)
        except InputError as error:
            warnings.append(f"{path.name}: {error.message}")
            return
        _feed(digest, path.name, _bytes_or_none(path) or b"")
        if first is not None:
            warnings.append(
                f"{path.name}: {broken} broken line{'s' if broken > 1 else ''} left out, the first: {first.message}"
            )

    def _object(self, path: Path | None, warnings: list[str], digest: Any) -> Any:
        if path is None:
            return None
        try:
            data = read_bytes(path)
            value = parse_json(decode(data, path), path)
        except InputError as error:
            warnings.append(f"{path.name} left out: {error.message}")
            return None
        _feed(digest, path.name, data)
        return value

    def listed_cases(self) -> tuple[str, ...] | None:
        if self.summary is None:
            return None
        for key in ("patient_ids", "case_ids", "question_ids", "cases"):
            ids = self.summary.get(key)
            if isinstance(ids, list) and ids and all(isinstance(i, str | int) for i in ids):
                return tuple(dict.fromkeys(str(i) for i in ids))
        return None

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.trace if event.get("type") == kind]

    def apply(self, turns: list[Turn], executions: Any, warnings: list[str]) -> list[Turn]:
        """Turns with what trace and tool log say of them; takes the answer to submit_results along."""
        source = executions if isinstance(executions, list) and executions else self.events("code_exec")
        known = [item for item in source if isinstance(item, dict)]
        for call in self.calls:
            if tool_kind(call.get("tool")) == "submit" and isinstance(call.get("result"), dict):
                self.submit_result = call["result"]
        return with_records(turns, self.events("api_call"), known, self.calls, warnings)


def _identity(head: dict[str, Any], side: _SideFiles, brief: str, path: Path) -> dict[str, Any]:
    sources = [head, side.summary or {}, report_identity(side.report_data)]

    def first(*keys: str) -> Any:
        return next((s[k] for s in sources for k in keys if s.get(k) is not None and s.get(k) != ""), None)

    task = text_or_none(first("task", "task_id"))
    tier = first("tier")
    if not (isinstance(tier, str) and tier.lower() in get_args(Tier)):
        match = _BRIEF_TIER.search(brief)
        tier = match.group(1) if match else None
    return {
        "agent": text_or_none(first("agent", "agent_name")),
        "model": text_or_none(first("model", "model_name")),
        "task": task,
        "track": guess_track(text_or_none(first("track")), task, brief, head),
        "tier": tier.lower() if isinstance(tier, str) else None,
        "repeat": count(first("repeat_idx", "repeat")),
    }


def guess_track(named: str | None, task: str | None, brief: str, head: dict[str, Any]) -> Track | None:
    """The track: named in the files, else in the brief ("Track: ..."), else by the task's name or the file's shape."""
    match = _BRIEF_TRACK.search(brief[:20_000])
    for text in (named, match.group(1) if match else None):
        if text is not None:
            words = text.strip().lower().replace("-", "_").replace(" ", "_").strip("_")
            for track in get_args(Track):
                if words.startswith(track) or (track == "report_generation" and words.startswith("report")):
                    return track  # type: ignore[no-any-return]
    if task:
        name = f"-{task.lower().replace('_', '-')}-"
        for word, track in _TRACK_WORDS:
            if word in name:
                return track
    if "length_finish_count" in head and "artifacts_dir" in head:
        return "vqa"
    return None


def _status(turns: list[Turn], side: _SideFiles, submit_result: dict[str, Any] | None, track: Track | None) -> Status:
    events = [e for e in side.trace if e.get("type") in ("violation_warning", "isolation_breach")]
    violations = [
        Violation(turn=count(e.get("turn")) or 0, text=str(e.get("violation") or e.get("text") or e["type"]))
        for e in events
    ]
    if not events:
        violations = [
            Violation(turn=turn.index, text=action.observation.text.strip())
            for turn in turns for action in turn.actions
            if action.observation is not None and action.observation.kind == "blocked"
        ]  # fmt: skip
    report, summary = side.report, side.summary or {}
    stated = count(summary.get("violations"))
    breached = (report is not None and report.breached) or bool(side.events("isolation_breach")) or len(violations) >= 2
    breached = breached or (summary.get("aborted") is True and (stated or 0) >= 2)
    breach_turn = (report.breach_turn if report else None) or next(
        (count(e.get("turn")) for e in side.events("isolation_breach")), None
    ) or (violations[-1].turn if breached and violations else None)  # fmt: skip
    last = turns[-1] if turns else None
    closing = last is not None and not last.actions and bool(last.text.strip()) and last.finish_reason != "length"
    submitted = any(a.kind == "submit" for t in turns for a in t.actions) or bool(side.events("submit"))
    submitted = submitted or summary.get("submitted") is True or (track == "vqa" and closing)
    result = submit_result or side.submit_result or {}
    completed = next((result[k] for k in ("complete", "completed", "success") if isinstance(result.get(k), bool)), None)
    if completed is None and report is not None and report.completion_rate is not None:
        completed = report.completion_rate >= 1.0
    ended: Literal["submitted", "stopped", "breach", "cut"]
    ended = "breach" if breached else "submitted" if submitted else "stopped" if closing else "cut"
    return Status(submitted=submitted and not breached, completed=completed, disqualified=bool(breached),
                  violations=tuple(violations), ended=ended, breach_turn=breach_turn)  # fmt: skip


def _resources(turns: list[Turn], side: _SideFiles, head: dict[str, Any]) -> Resources:
    """Report, then summary, then trace, then what can be counted in the conversation; each number names its source."""
    report, summary = report_runtime(side.report_data), side.summary or {}
    calls = side.events("api_call")

    def total(key: str) -> float | None:
        known = [v for e in calls if (v := number(e.get(key))) is not None]
        return sum(known) if known else None

    end = next(iter(side.events("run_end")), {})
    offers: dict[str, list[tuple[Literal["report", "summary", "trace"], float | None]]] = {
        "wall_time_s": [("report", report["wall_time_s"]), ("summary", number(summary.get("elapsed_s"))), ("trace", number(end.get("wall_time_s")))],
        "input_tokens": [("report", report["input_tokens"]), ("summary", number(summary.get("prompt_tokens"))), ("trace", total("input_tokens"))],
        "output_tokens": [("report", report["output_tokens"]), ("summary", number(summary.get("completion_tokens"))), ("trace", total("output_tokens"))],
        "cost_usd": [("report", report["cost_usd"]), ("summary", number(summary.get("cost_usd")))],
    }  # fmt: skip
    found: dict[str, float] = {}
    source: dict[str, Literal["report", "summary", "trace", "counted"]] = {
        "turns": "counted",
        "calls": "counted",
        "failed_calls": "counted",
    }
    for name, options in offers.items():
        for origin, value in options:
            if (known := amount(value)) is not None:
                found[name], source[name] = known, origin
                break
    observed = [a.observation for t in turns for a in t.actions]
    return Resources(
        turns=len(turns), calls=len(observed),
        failed_calls=sum(o is not None and o.kind in ("failed", "timeout", "blocked") for o in observed),
        wall_time_s=found.get("wall_time_s"), cost_usd=found.get("cost_usd"),
        input_tokens=count(found.get("input_tokens")), output_tokens=count(found.get("output_tokens")),
        source=source,
    )  # fmt: skip
