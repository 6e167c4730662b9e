"""Read one run, whatever layout its files have, into a frozen `Run`.

`_read_run` has the steps: conversation, side files, turns, brief, identity, plan, outputs.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ...console import counted
from ...errors import InputError
from ...tasks.output_format import published_format
from ...tracks import TRACKS, infer_track
from ..models import (
    Action,
    Outcome,
    Outputs,
    Plan,
    Report,
    Resources,
    Run,
    Status,
    Tier,
    TrackName,
    Turn,
    Violation,
)
from ..turns.tool_calls import message_of
from .external_outcomes import read_outcomes
from .harness_report import report_identity, report_runtime, submit_answer
from .json_bytes import (
    amount,
    complete_part,
    count,
    decode,
    decode_start,
    exact_sum,
    number,
    parse_json,
    read_bytes,
    text_or_none,
)
from .layout import (
    AGENT_FOLDERS,
    PARTS,
    TRACE_NAMES,
    RunFolder,
    find_conversations,
    find_outputs,
    is_generic,
    parts_of,
    run_folder,
    run_id,
)
from .messages import TurnBuilder, has_role
from .plan_files import read_plan
from .side_files import SideFiles, add_to_digest

MAX_MESSAGES = 50_000
"""Most messages of one run. Long runs have some thousands; each takes 150 us and 7 kB, however
short."""
_END_BYTES = 65_536
"""Bytes hashed from each end of an output file, enough to notice that it changed: shorter files are
hashed whole, and a gzip file ends with a checksum of its content."""
_BRIEF_HEAD = 20_000
"""Characters of the brief that are searched for the name of its track."""
_EXPECTED = "expected an object with `messages`, or a list of messages with `role`"
_BRIEF_TRACK = re.compile(r"\btrack\s*[:=]\s*\**\s*([a-z][a-z_ -]+)", re.IGNORECASE)
_BRIEF_TIER = re.compile(r"\btier\s*[:=]\s*\**\s*(lite|standard|pro)\b", re.IGNORECASE)

_Origin = Literal["report", "summary", "trace", "counted"]
"""Where a number of `Resources` comes from."""


class _Conversation(NamedTuple):
    """A conversation file: its format, the fields beside the messages, and the messages."""

    format: Literal["object", "list", "trace"]
    header: dict[str, Any]
    messages: list[Any]


def load_run(path: str | Path) -> Run:
    """The run of a conversation file or of a run folder.

        run = ambjudge.load_run("runs/elm-chest-1")

    Raises InputError if the path is missing, holds more than one run, or is not a conversation.
    Missing or broken side files only leave warnings on the run.
    """
    path = Path(path)
    conversations = find_conversations(path)
    conversation = next(conversations)
    has_another = next(conversations, None) is not None
    if has_another:
        raise InputError(
            "holds more than one run", "give one of them, or use iter_runs for all", path
        )
    return load_conversation(conversation)


def iter_runs(path: str | Path) -> Iterator[Run | InputError]:
    """Every run at or below a path, one at a time; an unreadable run is yielded as its error."""
    for conversation in find_conversations(Path(path)):
        try:
            yield load_conversation(conversation)
        except InputError as error:
            yield error


def load_conversation(conversation: Path) -> Run:
    """The run of exactly this conversation file (see `find_conversations`).

    Raises InputError if it cannot be read; if the file has the format of another harness, the hint
    is the command that imports it.
    """
    try:
        return _read_run(conversation)
    except InputError as error:
        from ..importers.recognise import how_to_import

        error.hint = how_to_import(conversation) or error.hint
        raise


def _read_run(path: Path) -> Run:
    """The run of a conversation file, or of the trace of a run that has no conversation."""
    warnings: list[str] = []
    data = read_bytes(path)
    digest = hashlib.sha256(data)
    folder = RunFolder(run_folder(path))

    # The order of reading is the order of the digest and of the warnings.
    side_files: SideFiles | None = None
    if path.name in TRACE_NAMES:
        side_files = SideFiles(folder, warnings, digest)
        conversation = _Conversation("trace", {}, side_files.messages())
        warnings.append(
            f"the run has no conversation: its turns come from {path.name} and the tool log"
        )
    else:
        try:
            conversation = _read_conversation(data, path, warnings)
        except InputError:
            if not _breaks_off(data, path):
                raise
            # It breaks off before its first message: the trace may have all of them.
            side_files = SideFiles(folder, warnings, digest)
            conversation = _Conversation("trace", {}, side_files.messages())
            if not conversation.messages:
                raise
            warnings.append(
                f"{path.name} breaks off before its first message: its turns come from the trace"
                " and the tool log"
            )
    warnings += _passed_over(folder)
    builder = _build_turns(conversation.messages, path, warnings)
    if side_files is None:
        side_files = SideFiles(folder, warnings, digest)

    header = conversation.header
    side_files.use_events(header.get("trace_events"))
    turns = side_files.attach_logs(builder.turns(), header.get("code_executions"))
    if not turns:
        warnings.append("the run has no turns: there is no assistant message")

    brief = _brief(header, builder, side_files)
    identity = _identity(header, side_files, brief, path)
    plan = read_plan(folder, turns, warnings)
    # In the vqa branch the listed questions tell which folders of outputs are answers.
    cases = side_files.listed_cases()
    outputs = find_outputs(folder, cases or ())
    if outputs.unreadable:
        warnings.append(
            f"outputs: {_first_of(outputs.unreadable)} cannot be read by this user, so what was"
            " delivered is unknown"
        )
    _digest_plan_and_outputs(digest, plan, outputs)
    submit_result = builder.submit_result or side_files.submit_result
    outcomes = read_outcomes(header.get("outcomes"), warnings)
    return Run(
        id=run_id(path),
        path=path,
        folder=folder.top,
        sha256=hashlib.sha256(data).hexdigest(),
        content_sha256=digest.hexdigest(),
        format=conversation.format,
        brief=brief,
        output_format=published_format(identity["task"]),
        turns=tuple(turns),
        plan=plan,
        outputs=outputs,
        report=side_files.report,
        resources=_resources(turns, side_files, _unknown_totals(header)),
        status=_status(
            turns,
            side_files,
            submit_result,
            identity["track"],
            is_imported=_imported_format(header) is not None,
        ),
        listed_cases=cases,
        submit_result=submit_result,
        summary=side_files.summary,
        outcomes=outcomes,
        task_outcome=_task_outcome(header.get("task_outcome"), outcomes, warnings),
        imported=_imported_format(header),
        part_of=_part_of(header),
        parts=_parts(folder),
        has_tools=_has_tools(header, turns),
        warnings=tuple(warnings),
        **identity,
    )


def _breaks_off(data: bytes, path: Path) -> bool:
    """Whether a file is no JSON, but may be the beginning of it."""
    text = decode_start(data)
    if text is None or text.lstrip()[:1] not in ("", "{", "["):
        return False
    try:
        parse_json(text, path)
    except InputError:
        return True
    return False


def _passed_over(folder: RunFolder) -> list[str]:
    """A warning about folders in the run's folder that look like runs and are not read."""
    names = [
        name
        for name, kind in sorted((folder.entries("") or {}).items())
        if kind == "folder" and is_generic(name) and folder.kind(f"{name}/process") == "folder"
    ]
    names = [name for name in names if name not in AGENT_FOLDERS]
    if not names:
        return []
    return [f"{_first_of(names)} in the run's folder looks like a run and is passed over"]


def _read_conversation(data: bytes, path: Path, warnings: list[str]) -> _Conversation:
    """The conversation in a file; of one that breaks off, as it does while it is written, what
    stands before."""
    try:
        return _parse_conversation(parse_json(decode(data, path), path), path)
    except InputError:
        text = decode_start(data)
        part = None if text is None else complete_part(text)
        if part is None:
            raise
        try:
            conversation = _parse_conversation(parse_json(part, path), path)
        except InputError:
            conversation = None
        if conversation is None or not conversation.messages:
            raise
        messages = counted(len(conversation.messages), "message")
        warnings.append(f"{path.name} breaks off after {messages}: what stands before is read")
        return conversation


def _parse_conversation(value: Any, path: Path) -> _Conversation:
    """The conversation in a file's JSON value; InputError says what the value is instead."""
    if isinstance(value, list):
        if value and not any(map(has_role, value)):
            kind = type(value[0]).__name__
            raise InputError(f"is a list of {kind} without `role`", _EXPECTED, path)
        return _Conversation("list", {}, value)
    if not isinstance(value, dict):
        kind = "null" if value is None else type(value).__name__
        raise InputError(f"is {kind}", _EXPECTED, path)
    messages = value.get("messages")
    if not isinstance(messages, list):
        if "messages" in value:
            content = f"`messages` that is {type(messages).__name__}"
        else:
            first_keys = sorted(map(str, value))[:6]
            content = f"keys {', '.join(first_keys) or '(none)'}"
        raise InputError(f"is an object with {content[:120]}", _EXPECTED, path)
    if messages and not any(map(has_role, messages)):
        raise InputError("has `messages` without any `role`", _EXPECTED, path)
    return _Conversation("object", value, messages)


def _build_turns(messages: list[Any], path: Path, warnings: list[str]) -> TurnBuilder:
    """A builder that has read all messages; InputError for none or too many."""
    if len(messages) > MAX_MESSAGES:
        raise InputError(
            f"holds {len(messages):,} messages, more than the {MAX_MESSAGES:,} that are read",
            "split or shorten it",
            path,
        )
    if not messages:
        raise InputError("holds no messages", _EXPECTED, path)
    builder = TurnBuilder(warnings)
    for position, message in enumerate(messages):
        builder.add(position, message)
    return builder


def _brief(header: dict[str, Any], builder: TurnBuilder, side_files: SideFiles) -> str:
    """The system prompt and the messages before the first turn."""
    system = text_or_none(header.get("system_prompt"))
    # A system prompt among the messages is part of `builder.brief` already.
    if system is None and not builder.has_system_prompt:
        system = side_files.brief()
    return "\n\n".join(part for part in (system, *builder.brief) if part)


def _first_of(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _digest_plan_and_outputs(digest: Any, plan: Plan, outputs: Outputs) -> None:
    """Add the plan's files, and size and ends of every output, to the hash of the run's content."""
    for file in (plan.path, plan.image_path):
        if file is not None:
            add_to_digest(digest, file.name, _bytes_or_empty(file))
    for output in outputs.files:
        content = str(output.size).encode() + _both_ends(output.path)
        add_to_digest(digest, f"{output.case}/{output.name}", content)


def _bytes_or_empty(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except InputError:
        return b""


def _both_ends(path: Path) -> bytes:
    """The first and last bytes of an output file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(_END_BYTES)
            if len(head) < _END_BYTES:
                return head
            size = file.seek(0, os.SEEK_END)
            file.seek(max(len(head), size - _END_BYTES))  # the two ends must not overlap
            return head + file.read(_END_BYTES)
    except OSError:
        return b""


def _imported_format(header: dict[str, Any]) -> str | None:
    """The format that an importer noted as the source of this conversation."""
    imported = header.get("imported")
    if not isinstance(imported, dict):
        return None
    return text_or_none(imported.get("format"))


def _part_of(header: dict[str, Any]) -> str | None:
    """The run in which this is the part of another agent, as an importer noted."""
    imported = header.get("imported")
    return text_or_none(imported.get("part_of")) if isinstance(imported, dict) else None


def _parts(folder: RunFolder) -> tuple[str, ...]:
    """The names of the parts of other agents."""
    if folder.kind(PARTS) != "folder":
        return ()
    return tuple(run_id(conversation) for conversation in parts_of(folder.top))


def _has_tools(header: dict[str, Any], turns: list[Turn]) -> bool:
    """Whether the agent could act; agents without tools act by replies that somebody answers."""
    imported = header.get("imported")
    is_stated = isinstance(imported, dict) and imported.get("has_tools") is False
    return not is_stated or any(turn.actions or turn.replies for turn in turns)


def _unknown_totals(header: dict[str, Any]) -> Collection[str]:
    """Totals that the turns do not sum to, as an importer noted: not all of them state theirs."""
    imported = header.get("imported")
    names = imported.get("unknown_totals") if isinstance(imported, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else ()


def _task_outcome(name: Any, outcomes: dict[str, Outcome], warnings: list[str]) -> str | None:
    """Name of the outcome that the user chose as Task score; None if it has no value in [0, 1]."""
    if name is None:
        return None
    outcome = outcomes.get(str(name))
    if outcome is None or outcome.as_task_score is None:
        warnings.append(
            f"task_outcome: no outcome {str(name)[:80]!r} in [0, 1]; the Task score stays unknown"
        )
        return None
    return str(name)


def _identity(
    header: dict[str, Any], side_files: SideFiles, brief: str, path: Path
) -> dict[str, Any]:
    """Agent, model, task, track, tier and repeat, each from the first source that states it."""
    sources: list[dict[str, Any]] = [
        header,
        side_files.summary or {},
        report_identity(side_files.report_data),
        _folder_identity(run_folder(path)),
    ]
    task = text_or_none(_first_stated(sources, "task", "task_id"))
    brief_track = _BRIEF_TRACK.search(brief[:_BRIEF_HEAD])
    stated_tracks = (
        text_or_none(_first_stated(sources, "track")),
        brief_track.group(1) if brief_track else None,
    )
    return {
        "agent": text_or_none(_first_stated(sources, "agent", "agent_name")),
        "model": text_or_none(_first_stated(sources, "model", "model_name")),
        "task": task,
        "track": infer_track(stated_tracks, task, header),
        "tier": _tier(_first_stated(sources, "tier"), brief),
        "repeat": count(_first_stated(sources, "repeat_idx", "repeat")),
    }


def _first_stated(sources: list[dict[str, Any]], *keys: str) -> Any:
    """The value of the first source that states one of these keys; None if none does."""
    for source in sources:
        for key in keys:
            value = source.get(key)
            if value is not None and value != "":
                return value
    return None


def _tier(stated: Any, brief: str) -> str | None:
    """The stated tier if it is one, else the tier that the brief names."""
    if isinstance(stated, str) and stated.lower() in get_args(Tier):
        return stated.lower()
    match = _BRIEF_TIER.search(brief)
    return match.group(1).lower() if match else None


def _folder_identity(folder: Path) -> dict[str, str]:
    """Tier, agent and task by the names of the harness's folders `<tier>/<agent>/<task>/<run>`.

    Source: AutoMedBench/AutoMedBench, docker/orchestrator.py.
    """
    parents = [parent.name for parent in folder.parents[:3]]
    if len(parents) < 3 or parents[2] not in get_args(Tier):
        return {}
    task, agent, tier = parents
    return {"task": task, "agent": agent, "tier": tier}


def _status(
    turns: list[Turn],
    side_files: SideFiles,
    submit_result: dict[str, Any] | None,
    track: TrackName | None,
    *,
    is_imported: bool,
) -> Status:
    """How the run ended; `submit_result` is the harness's answer to submit_results, if any."""
    violations = _violations(turns, side_files, is_imported=is_imported)
    breached = _is_breached(side_files, violations)
    stopped = _stopped(turns, side_files)
    submitted = _is_submitted(turns, side_files) or (stopped and _delivers_answers(track))
    return Status(
        submitted=submitted and not breached,
        completed=_is_completed(submit_result, side_files.report),
        disqualified=breached,
        violations=len(violations),
        violation_records=tuple(violations),
        ended=_ending(breached=breached, submitted=submitted, stopped=stopped),
        breach_turn=_breach_turn(side_files, violations, breached),
        end_recorded=_is_end_recorded(side_files),
    )


def _violations(turns: list[Turn], side_files: SideFiles, *, is_imported: bool) -> list[Violation]:
    """Violations from the trace, else from the calls that were blocked.

    Where another harness or a person did not allow a call, no rule of the benchmark was broken.
    """
    kinds = ("violation_warning", "isolation_breach")
    events = [event for event in side_files.trace if event.get("type") in kinds]
    if events:
        return [
            Violation(
                turn=count(event.get("turn")) or 0,
                text=str(event.get("violation") or event.get("text") or event["type"]),
            )
            for event in events
        ]
    if is_imported:
        return []
    return [
        Violation(turn=turn.index, text=action.observation.text.strip())
        for turn in turns
        for action in turn.actions
        if action.observation is not None and action.observation.kind == "blocked"
    ]


def _is_breached(side_files: SideFiles, violations: list[Violation]) -> bool:
    """Whether the run was disqualified, by the report, the trace, its violations or the summary."""
    if side_files.report is not None and side_files.report.breached:
        return True
    # The harness warns once and ends the run at the second violation.
    if side_files.events("isolation_breach") or len(violations) >= 2:
        return True
    summary = side_files.summary or {}
    return summary.get("aborted") is True and (count(summary.get("violations")) or 0) >= 2


def _breach_turn(side_files: SideFiles, violations: list[Violation], breached: bool) -> int | None:
    """The turn of the breach, by the report, the trace or the last violation; None if unknown."""
    if side_files.report is not None and side_files.report.breach_turn:
        return side_files.report.breach_turn
    events = side_files.events("isolation_breach")
    turn = count(events[0].get("turn")) if events else None
    if turn:
        return turn
    return violations[-1].turn if breached and violations else None


def _is_submitted(turns: list[Turn], side_files: SideFiles) -> bool:
    """Whether submit_results was called, by the turns, the trace or the summary."""
    if any(_is_accepted_submission(action) for turn in turns for action in turn.actions):
        return True
    return bool(side_files.events("submit")) or (side_files.summary or {}).get("submitted") is True


def _is_accepted_submission(action: Action) -> bool:
    """Whether this is a submission that the harness accepted.

    Branch eval_image_enhancement answers `REJECTED: ...` to the others; other harnesses mark them.
    """
    if action.kind != "submit":
        return False
    observation = action.observation
    if observation is None:
        return True
    is_marked_as_failed = observation.exit_code is None and observation.failed
    return not is_marked_as_failed and not observation.stdout.startswith("REJECTED")


def _is_end_recorded(side_files: SideFiles) -> bool:
    """Whether the harness wrote what it writes once a run has ended."""
    has_result = side_files.report is not None or side_files.summary is not None
    return has_result or bool(side_files.events("run_end"))


def _delivers_answers(track: TrackName | None) -> bool:
    """Whether the track's deliverables are answers: there a closing message is the submission."""
    definition = TRACKS.find(track)
    return definition is not None and definition.output == "answers"


def _stopped(turns: list[Turn], side_files: SideFiles) -> bool:
    """Whether the agent ended by itself: with a complete reply without calls that nobody answered,
    or with a call that says something to the user.

    Such a reply may be in the trace alone (AutoMedBench/AutoMedBench, branch eval_seg,
    docker/agent/agent_loop.py:263). If it was answered (branch eval_image_enhancement asks the
    agent to go on), it came before the last turn allowed.
    """
    last = turns[-1] if turns else None
    if last is not None and not last.actions:
        has_text = bool(last.text.strip())
        if has_text or last.replies:
            return has_text and not last.replies and last.finish_reason != "length"
    last_action = last.actions[-1] if last is not None and last.actions else None
    if last is not None and last_action is not None and message_of(last_action) is not None:
        is_rejected = last_action.kind == "submit" and not _is_accepted_submission(last_action)
        return not last.replies and not is_rejected
    # The conversation may lack the last reply: look at the trace.
    calls = side_files.events("api_call")
    last_call = calls[-1] if calls else {}
    return last_call.get("tool_calls") == [] and last_call.get("finish_reason") != "length"


def _is_completed(submit_result: dict[str, Any] | None, report: Report | None) -> bool | None:
    """Whether all deliverables were there, by the answer to submit_results, else by the report."""
    result = submit_answer(submit_result)
    for key in ("complete", "completed", "success"):
        value = result.get(key)
        if isinstance(value, bool):
            return value
    if report is not None and report.completion_rate is not None:
        return report.completion_rate >= 1.0
    return None


def _ending(
    *, breached: bool, submitted: bool, stopped: bool
) -> Literal["submitted", "stopped", "breach", "cut"]:
    """The value of `Status.ended`: the first that applies."""
    if breached:
        return "breach"
    if submitted:
        return "submitted"
    return "stopped" if stopped else "cut"


def _resources(
    turns: list[Turn], side_files: SideFiles, unknown_totals: Collection[str]
) -> Resources:
    """Each number from the first source that has it: report, summary, trace, conversation."""
    values: dict[str, float] = {}
    source: dict[str, _Origin] = dict.fromkeys(("turns", "calls", "failed_calls"), "counted")
    for name, candidates in _resource_candidates(side_files).items():
        for origin, candidate in candidates:
            value = amount(candidate)
            if value is not None and (origin != "trace" or name not in unknown_totals):
                values[name] = value
                source[name] = origin
                break
    actions = [action for turn in turns for action in turn.actions]
    return Resources(
        turns=len(turns),
        calls=len(actions),
        failed_calls=sum(action.failed for action in actions),
        wall_time_s=values.get("wall_time_s"),
        cost_usd=values.get("cost_usd"),
        input_tokens=count(values.get("input_tokens")),
        output_tokens=count(values.get("output_tokens")),
        source=source,
    )


def _resource_candidates(side_files: SideFiles) -> dict[str, list[tuple[_Origin, float | None]]]:
    """For each number, the values that the sources state, the best source first."""
    report = report_runtime(side_files.report_data)
    summary = side_files.summary or {}
    # A failed run's summary has a runtime block in which nothing was measured.
    runtime = report_runtime(summary if summary.get("status") != "failed" else None)
    calls = side_files.events("api_call")
    return {
        "wall_time_s": [
            ("report", report["wall_time_s"]),
            ("summary", number(summary.get("elapsed_s"))),
            ("summary", runtime["wall_time_s"]),
            ("trace", _trace_seconds(side_files)),
        ],
        "input_tokens": [
            ("report", report["input_tokens"]),
            ("summary", number(summary.get("prompt_tokens"))),
            ("summary", runtime["input_tokens"]),
            ("trace", _sum_field(calls, "input_tokens")),
        ],
        "output_tokens": [
            ("report", report["output_tokens"]),
            ("summary", number(summary.get("completion_tokens"))),
            ("summary", runtime["output_tokens"]),
            ("trace", _sum_field(calls, "output_tokens")),
        ],
        "cost_usd": [
            ("report", report["cost_usd"]),
            ("summary", number(summary.get("cost_usd"))),
            ("summary", runtime["cost_usd"]),
        ],
    }


def _trace_seconds(side_files: SideFiles) -> float | None:
    """Seconds that the run took, by its end event or, if it was killed, by its last event."""
    ends = side_files.events("run_end")
    if ends:
        return number(ends[0].get("wall_time_s"))
    return number(side_files.trace[-1].get("ts")) if side_files.trace else None


def _sum_field(events: list[dict[str, Any]], key: str) -> float | None:
    """The sum of a field over the events that have it as a number; None if none has."""
    numbers = (number(event.get(key)) for event in events)
    return exact_sum([value for value in numbers if value is not None])
