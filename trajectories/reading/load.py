"""Read one run, whatever shape its files have, into a frozen `Run`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from ...errors import InputError
from ...tracks import TRACKS, infer_track
from ..models import Action, Resources, Run, Status, Tier, TrackName, Turn, Violation
from .external_outcomes import read_outcomes
from .harness_report import report_identity, report_runtime, submit_answer
from .json_bytes import (
    amount,
    count,
    decode,
    exact_sum,
    number,
    parse_json,
    read_bytes,
    text_or_none,
)
from .layout import TRACE_NAMES, RunFolder, find_conversations, find_outputs, run_folder, run_id
from .messages import TurnBuilder
from .plan_files import read_plan
from .side_files import SideFiles, feed

_EXPECTED = "expected an object with `messages`, or a list of messages with `role`"
_BRIEF_TRACK = re.compile(r"\btrack\s*[:=]\s*\**\s*([a-z][a-z_ -]+)", re.IGNORECASE)
_BRIEF_TIER = re.compile(r"\btier\s*[:=]\s*\**\s*(lite|standard|pro)\b", re.IGNORECASE)


def load_run(path: str | Path) -> Run:
    """The run of a conversation file or of a run folder.

        run = ambjudge.load_run("runs/elm-chest-1")

    Raises InputError when the path is missing, holds more than one run, or is no conversation; side
    files that are missing or broken only leave warnings on the run.
    """
    path = Path(path)
    found = find_conversations(path)
    conversation = next(found)
    if next(found, None) is not None:
        raise InputError(
            "holds more than one run", "give one of them, or use iter_runs for all", path
        )
    return _load(conversation)


def iter_runs(path: str | Path) -> Iterator[Run | InputError]:
    """Every run at or below a path, one at a time; a run that cannot be read comes as the error
    that it is."""
    for conversation in find_conversations(Path(path)):
        try:
            yield _load(conversation)
        except InputError as error:
            yield error


def load_conversation(conversation: Path) -> Run:
    """The run of exactly this conversation file (see `find_conversations`)."""
    return _load(conversation)


def _load(path: Path) -> Run:
    try:
        return _read(path)
    except InputError as error:
        from ..importers.recognise import how_to_import

        error.hint = how_to_import(path) or error.hint
        raise


MAX_MESSAGES = 50_000
"""Of a run; long ones have some thousands. Each takes 150 us and 7 kB, whatever it says."""


def _read(path: Path) -> Run:
    warnings: list[str] = []
    data = read_bytes(path)
    digest = hashlib.sha256(data)
    folder = run_folder(path)
    listed = RunFolder(folder)
    shape: Literal["object", "list", "trace"]
    head: dict[str, Any]
    side: SideFiles | None = None
    if path.name in TRACE_NAMES:
        side = SideFiles(listed, warnings, digest)
        shape, head, messages = "trace", {}, side.messages()
        warnings.append(
            f"no conversation came with the run: its turns are those of {path.name} and the"
            " tool log"
        )
    else:
        shape, head, messages = _shape(parse_json(decode(data, path), path), path)
    if len(messages) > MAX_MESSAGES:
        raise InputError(
            f"holds {len(messages):,} messages, more than the {MAX_MESSAGES:,} that are read",
            "split or shorten it",
            path,
        )
    builder = TurnBuilder(warnings)
    for position, message in enumerate(messages):
        builder.add(position, message)
    if not messages:
        raise InputError("holds no messages", _EXPECTED, path)

    side = side or SideFiles(listed, warnings, digest)
    side.use_events(head.get("trace_events"))
    turns = side.given_to(builder.turns(), head.get("code_executions"))
    if not turns:
        warnings.append("no assistant message: the run has no turns")
    system = text_or_none(head.get("system_prompt")) or (None if builder.system else side.brief())
    brief = "\n\n".join(part for part in (system, *builder.brief) if part)
    identity = _identity(head, side, brief, path)
    plan = read_plan(listed, turns, warnings)
    for file in (plan.path, plan.image_path):
        if file is not None:
            feed(digest, file.name, _bytes_or_none(file) or b"")
    cases = side.listed_cases()
    outputs = find_outputs(listed, cases or ())
    for output in outputs.files:
        feed(digest, f"{output.case}/{output.name}", str(output.size).encode() + _ends(output.path))
    answer = builder.submit_result or side.submit_result
    status = _status(turns, side, answer, identity["track"])
    outcomes = read_outcomes(head.get("outcomes"), warnings)
    named = outcomes.get(str(head.get("task_outcome")))
    if head.get("task_outcome") is not None and (named is None or named.as_task_score is None):
        warnings.append(
            f"task_outcome: no outcome {str(head['task_outcome'])[:80]!r} in [0, 1]; the Task score"
            " stays unknown"
        )
    return Run(
        id=run_id(path),
        path=path,
        folder=folder,
        sha256=hashlib.sha256(data).hexdigest(),
        content_sha256=digest.hexdigest(),
        format=shape,
        brief=brief,
        turns=tuple(turns),
        plan=plan,
        outputs=outputs,
        report=side.report,
        resources=_resources(turns, side, head),
        status=status,
        listed_cases=cases,
        submit_result=answer,
        summary=side.summary,
        warnings=tuple(warnings),
        outcomes=outcomes,
        task_outcome=head["task_outcome"]
        if named is not None and named.as_task_score is not None
        else None,
        imported=_format(head.get("imported")),
        **identity,
    )


def _format(imported: Any) -> str | None:
    return text_or_none(imported.get("format")) if isinstance(imported, dict) else None


def _shape(value: Any, path: Path) -> tuple[Literal["object", "list"], dict[str, Any], list[Any]]:
    if isinstance(value, list):
        if value and not any(isinstance(m, dict) and ("role" in m or "type" in m) for m in value):
            raise InputError(
                f"is a list of {type(value[0]).__name__} without `role`", _EXPECTED, path
            )
        return "list", {}, value
    if isinstance(value, dict):
        messages = value.get("messages")
        if isinstance(messages, list):
            if messages and not any(
                isinstance(m, dict) and ("role" in m or "type" in m) for m in messages
            ):
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
"""Bytes from each end of an output that tell its versions apart: text is read whole, gzip ends with
a checksum."""


def _ends(path: Path) -> bytes:
    """The first and last bytes of an output file; none of one that cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(_END)
            if len(head) < _END:
                return head
            file.seek(max(len(head), file.seek(0, 2) - _END))
            return head + file.read(_END)
    except OSError:
        return b""


def _bytes_or_none(path: Path) -> bytes | None:
    try:
        return read_bytes(path)
    except InputError:
        return None


def _identity(head: dict[str, Any], side: SideFiles, brief: str, path: Path) -> dict[str, Any]:
    sources = [
        head,
        side.summary or {},
        report_identity(side.report_data),
        _folder_identity(run_folder(path)),
    ]

    def first(*keys: str) -> Any:
        return next(
            (s[k] for s in sources for k in keys if s.get(k) is not None and s.get(k) != ""), None
        )

    task = text_or_none(first("task", "task_id"))
    tier = first("tier")
    if not (isinstance(tier, str) and tier.lower() in get_args(Tier)):
        match = _BRIEF_TIER.search(brief)
        tier = match.group(1) if match else None
    stated = _BRIEF_TRACK.search(brief[:20_000])
    return {
        "agent": text_or_none(first("agent", "agent_name")),
        "model": text_or_none(first("model", "model_name")),
        "task": task,
        "track": infer_track(
            (text_or_none(first("track")), stated.group(1) if stated else None), task, head
        ),
        "tier": tier.lower() if isinstance(tier, str) else None,
        "repeat": count(first("repeat_idx", "repeat")),
    }


def _folder_identity(folder: Path) -> dict[str, str]:
    """What the harness's own folders say: `<tier>/<agent>/<task>/<run>` (AutoMedBench/AutoMedBench,
    docker/orchestrator.py)."""
    above = [parent.name for parent in folder.parents[:3]]
    if len(above) < 3 or above[2] not in get_args(Tier):
        return {}
    return {"task": above[0], "agent": above[1], "tier": above[2]}


def _status(
    turns: list[Turn], side: SideFiles, answer: dict[str, Any] | None, track: TrackName | None
) -> Status:
    events = [e for e in side.trace if e.get("type") in ("violation_warning", "isolation_breach")]
    violations = [
        Violation(
            turn=count(e.get("turn")) or 0,
            text=str(e.get("violation") or e.get("text") or e["type"]),
        )
        for e in events
    ]
    if not events:
        violations = [
            Violation(turn=turn.index, text=action.observation.text.strip())
            for turn in turns
            for action in turn.actions
            if action.observation is not None and action.observation.kind == "blocked"
        ]
    report, summary = side.report, side.summary or {}
    stated = count(summary.get("violations"))
    breached = (
        (report is not None and report.breached)
        or bool(side.events("isolation_breach"))
        or len(violations) >= 2
    )
    breached = breached or (summary.get("aborted") is True and (stated or 0) >= 2)
    breach_turn = (
        (report.breach_turn if report else None)
        or next((count(e.get("turn")) for e in side.events("isolation_breach")), None)
        or (violations[-1].turn if breached and violations else None)
    )
    closing = _stopped(turns, side)
    known = TRACKS.find(track)
    submitted = any(_handed_in(a) for t in turns for a in t.actions) or bool(side.events("submit"))
    submitted = (
        submitted
        or summary.get("submitted") is True
        or (known is not None and known.output == "answers" and closing)
    )
    result = submit_answer(answer)
    completed = next(
        (
            result[k]
            for k in ("complete", "completed", "success")
            if isinstance(result.get(k), bool)
        ),
        None,
    )
    if completed is None and report is not None and report.completion_rate is not None:
        completed = report.completion_rate >= 1.0
    ended: Literal["submitted", "stopped", "breach", "cut"]
    ended = "breach" if breached else "submitted" if submitted else "stopped" if closing else "cut"
    return Status(
        submitted=submitted and not breached,
        completed=completed,
        disqualified=bool(breached),
        violations=tuple(violations),
        ended=ended,
        breach_turn=breach_turn,
    )


def _handed_in(action: Action) -> bool:
    """Whether this is a submission that the harness took (branch eval_image_enhancement answers
    `REJECTED: ...` to others)."""
    seen = action.observation
    return action.kind == "submit" and not (seen is not None and seen.stdout.startswith("REJECTED"))


def _stopped(turns: list[Turn], side: SideFiles) -> bool:
    """Whether the agent ended by itself: with a whole reply that calls nothing, and that nobody
    answered.

    Such a reply may be in the trace alone (AutoMedBench/AutoMedBench, branch eval_seg,
    docker/agent/agent_loop.py:263). One that was answered (branch eval_image_enhancement asks to go
    on) came before the last turn allowed.
    """
    last = turns[-1] if turns else None
    if last is not None and not last.actions and (last.replies or last.text.strip()):
        return bool(last.text.strip()) and not last.replies and last.finish_reason != "length"
    event = next(reversed(side.events("api_call")), {})
    return event.get("tool_calls") == [] and event.get("finish_reason") != "length"


def _resources(turns: list[Turn], side: SideFiles, head: dict[str, Any]) -> Resources:
    """Report, then summary, then trace, then what can be counted in the conversation; each number
    names its source."""
    report, summary = report_runtime(side.report_data), side.summary or {}
    # of a failed one nothing was measured
    own = report_runtime(summary if summary.get("status") != "failed" else None)
    calls = side.events("api_call")

    def counted(key: str) -> float | None:
        return exact_sum([v for e in calls if (v := number(e.get(key))) is not None])

    last = side.trace[-1] if side.trace else {}
    # killed: the last sign of life
    end = next(iter(side.events("run_end")), {"wall_time_s": last.get("ts")})
    offers: dict[str, list[tuple[Literal["report", "summary", "trace"], float | None]]] = {
        "wall_time_s": [
            ("report", report["wall_time_s"]),
            ("summary", number(summary.get("elapsed_s"))),
            ("summary", own["wall_time_s"]),
            ("trace", number(end.get("wall_time_s"))),
        ],
        "input_tokens": [
            ("report", report["input_tokens"]),
            ("summary", number(summary.get("prompt_tokens"))),
            ("summary", own["input_tokens"]),
            ("trace", counted("input_tokens")),
        ],
        "output_tokens": [
            ("report", report["output_tokens"]),
            ("summary", number(summary.get("completion_tokens"))),
            ("summary", own["output_tokens"]),
            ("trace", counted("output_tokens")),
        ],
        "cost_usd": [
            ("report", report["cost_usd"]),
            ("summary", number(summary.get("cost_usd"))),
            ("summary", own["cost_usd"]),
        ],
    }
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
        turns=len(turns),
        calls=len(observed),
        failed_calls=sum(
            o is not None and o.kind in ("failed", "timeout", "blocked") for o in observed
        ),
        wall_time_s=found.get("wall_time_s"),
        cost_usd=found.get("cost_usd"),
        input_tokens=count(found.get("input_tokens")),
        output_tokens=count(found.get("output_tokens")),
        source=source,
    )
