"""Logs of Inspect AI, `.json` (one object) and `.eval` (a zip of JSON files).

Each sample and epoch is a run. Messages come from `samples[].messages`; times and tokens from the
sample's model and tool events, matched by message and call id. Nothing is unpacked to disk, and
members that claim or hold too much are refused. Newer logs are compressed with Zstandard, which
needs Python 3.14 or the package zstandard. Source: inspect_ai `log/_log.py`,
`model/_chat_message.py`, `event/_model.py`, `log/_recorders/eval.py`.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import kind_of_error
from ..reading.json_bytes import (
    MAX_BYTES,
    decode,
    loads,
    number,
    parse_json,
    read_json,
    text_or_none,
)
from ..reading.messages import content_text
from . import Importer
from .draft import Draft, parse_call
from .fields import as_id, as_object, as_objects, unwrap_text
from .files import draft_or_error, source_name
from .recognise import has_keys
from .usage import sum_tokens, usage_cost, usage_tokens

_EXPECTED = "expected an Inspect log: `eval` and `samples`, or a .eval file"
_ZSTANDARD = 93
"""The compression method's number in a zip file."""
_MAX_MEMBER = 256 * 1024 * 1024
_MAX_TOTAL = 8 * 1024 * 1024 * 1024
_UNCHECKED_SIZE = 32 * 1024 * 1024
"""Up to this size a member may be compressed at any ratio."""
_MAX_RATIO = 200
"""Logs shrink 5 to 50 times, zip bombs a thousand times."""
_LETTER_SCORES = {"C": 1, "P": 0.5, "I": 0, "N": 0}
"""Correct, partial, incorrect, no answer."""
_BUILDING_BLOCKS = (
    "generate",
    "use_tools",
    "system_message",
    "prompt_template",
    "chain_of_thought",
)
"""Inspect's own solvers, which name no agent."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every sample of the log; a sample that cannot be read is yielded as its error."""
    if _is_zip(path):
        yield from _read_zip(path)
        return
    if path.suffix.lower() == ".eval":
        raise InputError(
            "is not a zip file", "the .eval log may be cut short: convert or copy it again", path
        )
    log = as_object(read_json(path))
    samples = log.get("samples")
    _check_log(log, path)
    if not isinstance(samples, list) or not samples:
        raise InputError(
            "holds no samples",
            "it may be written with --no-log-samples, or be only the header",
            path,
        )
    for position, sample in enumerate(samples):
        yield draft_or_error(_draft, log, sample, path, f"samples[{position}]")


def _is_zip(path: Path) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except (OSError, ValueError):
        return False


def _check_log(log: dict[str, Any], path: Path) -> None:
    if not isinstance(log.get("eval"), dict):
        raise InputError("is not an Inspect log", _EXPECTED, path)


def _read_zip(path: Path) -> Iterator[Draft | InputError]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"has more than the {MAX_BYTES:,} bytes that are read", "split it", path
            )
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            header = members.get("header.json") or members.get("_journal/start.json")
            samples = [
                members[name]
                for name in sorted(members)
                if name.startswith("samples/") and name.endswith(".json")
            ]
            if header is None or not samples:
                raise InputError("holds no header.json or no samples", _EXPECTED, path)
            log = as_object(_read_member(archive, header, path))
            _check_log(log, path)
            total = 0
            for sample in samples:
                total += sample.file_size
                if total > _MAX_TOTAL:
                    raise InputError(f"unpacks to more than {_MAX_TOTAL:,} bytes", "split it", path)
                try:
                    value = _read_member(archive, sample, path)
                    yield _draft(log, value, path, sample.filename)
                except InputError as error:
                    yield error
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"is a broken zip file: {error}", "copy it again", path) from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Any:
    """The JSON value of a member, read into memory within the limits."""
    name = info.filename[:100]
    is_bomb = info.file_size > _UNCHECKED_SIZE and info.file_size > _MAX_RATIO * info.compress_size
    if info.file_size > _MAX_MEMBER or is_bomb:
        raise InputError(
            f"{name} claims {info.file_size:,} bytes from {info.compress_size:,}",
            "too large; convert it to JSON",
            path,
        )
    try:
        if info.compress_type == _ZSTANDARD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
            data = _read_zstandard(info, path)
        else:
            with archive.open(info) as file:
                data = file.read(_MAX_MEMBER + 1)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,  # encrypted, or (NotImplementedError) an unknown compression
        ValueError,
        struct.error,
    ) as error:
        raise InputError(f"{name} cannot be unpacked: {error}", "copy it again", path) from None
    return parse_json(decode(data, path / name), path / name)


def _read_zstandard(info: zipfile.ZipInfo, path: Path) -> bytes:
    """The bytes of a member compressed with Zstandard, which this Python's zipfile cannot read."""
    try:
        import zstandard
    except ImportError:
        raise InputError(
            "is packed with Zstandard",
            "pip install 'ambjudge[inspect]', or write it as JSON: inspect log convert --to json",
            path,
        ) from None
    with path.open("rb") as file:
        file.seek(info.header_offset)
        # A local header: 26 bytes, the lengths of name and extra field, and these two.
        name_length, extra_length = struct.unpack("<26xHH", file.read(30))
        file.seek(name_length + extra_length, 1)
        packed = file.read(info.compress_size)
    try:
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**27)
        reader = decompressor.stream_reader(packed, read_across_frames=True)
        data: bytes = reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError("checksum or size differs")
    return data


def _draft(log: dict[str, Any], sample: Any, path: Path, location: str) -> Draft:
    evaluation, sample = as_object(log.get("eval")), as_object(sample)
    messages = sample.get("messages")
    error = as_object(sample.get("error"))
    has_reply = any(message.get("role") == "assistant" for message in as_objects(messages))
    if error and not has_reply:
        reason = " ".join(content_text(error.get("message")).split())[:200] or "no reason given"
        raise InputError(
            f"{location} failed before the agent replied: {reason}", "run the sample again", path
        )
    if not isinstance(messages, list) or not messages:
        raise InputError(f"{location} holds no messages", _EXPECTED, path)
    task = text_or_none(evaluation.get("task"))
    epoch = sample.get("epoch")
    sample_id = as_id(sample.get("id"))
    name_parts = (task or source_name(path), sample_id, "epoch", as_id(epoch) or "1")
    draft = Draft(
        "_".join(part for part in name_parts if part),
        "inspect",
        source_id=as_id(sample.get("uuid")),
        agent=_agent(log),
        model=text_or_none(evaluation.get("model")),
        # Samples are the independent units: epochs of one are its repeats.
        task="/".join(part for part in (task, sample_id) if part) or None,
        tier=text_or_none(as_object(sample.get("metadata")).get("tier")),
        repeat=epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None,
    )
    for key in ("eval_id", "run_id", "created", "task"):
        if text_or_none(evaluation.get(key)):
            draft.origin[key] = evaluation[key]
    draft.origin.update({"sample": sample_id, "epoch": draft.repeat})
    for key in ("error", "limit"):
        draft.add_outcomes(bool(sample.get(key)), "sample", f"has_{key}")
        if sample.get(key):
            draft.origin[key] = sample[key]
    if sample.get("error_retries"):
        draft.lost["earlier tries of the sample that ended in an error"] += len(
            as_objects(sample["error_retries"])
        )
    events = _Events(sample, draft)
    attachments = as_object(sample.get("attachments"))
    for message in messages:
        _add(draft, as_object(_with_attachments(message, attachments, draft)), events)
    draft.wall_time_s = number(sample.get("total_time"))
    draft.has_tools = events.has_tools
    _add_usage(draft, sample)
    message_ids = {as_id(as_object(message).get("id")) for message in messages}
    n_lost = sum(reply not in message_ids for reply in events.replies)
    if n_lost:
        draft.lost["model calls that are not among the messages"] += n_lost
    if events.n_other_roles:
        draft.lost["model calls of other roles (graders)"] += events.n_other_roles
    for scorer, score in as_object(sample.get("scores")).items():
        _add_score(draft, str(scorer), as_object(score))
    draft.add_outcomes(sample.get("metadata"), "metadata", "metadata")
    return draft


def transcript_draft(columns: dict[str, Any], name: str, path: Path, location: str) -> Draft:
    """A transcript of a database of Inspect Scout; `columns` are those of its row.

    InputError if it holds no messages. Messages and events are JSON text. Source: inspect_scout
    0.6.2 `_transcript/database/schema.py`.
    """
    messages, events = _json_column(columns, "messages"), _json_column(columns, "events")
    if not isinstance(messages, list) or not messages:
        raise InputError(f"{location}the transcript holds no messages", _EXPECTED, path)
    transcript_id = as_id(columns.get("transcript_id"))
    unit = (as_id(columns.get("task_set")), as_id(columns.get("task_id")))
    repeat = columns.get("task_repeat")
    draft = Draft(
        transcript_id or name,
        "inspect",
        source_id=transcript_id,
        agent=text_or_none(columns.get("agent")),
        model=text_or_none(columns.get("model")),
        task="/".join(part for part in unit if part) or None,
        repeat=repeat if isinstance(repeat, int) else None,
    )
    for key in ("source_type", "source_id", "source_uri", "date"):
        if text_or_none(columns.get(key)):
            draft.origin[key] = columns[key]
    event_times = _Events({"events": events}, draft)
    for message in messages:
        _add(draft, as_object(message), event_times)
    draft.has_tools = event_times.has_tools
    draft.wall_time_s = number(columns.get("total_time"))
    for key in ("error", "limit"):
        draft.add_outcomes(bool(columns.get(key)), "transcript", f"has_{key}")
        if columns.get(key):
            draft.origin[key] = columns[key]
    score = _json_column(columns, "score")
    if score is not None:
        _add_score(draft, "score", {"value": score})
    others = {key: item for key, item in columns.items() if key not in _TRANSCRIPT_COLUMNS}
    metadata = {key: _json_column(others, key) for key in others}
    draft.add_outcomes(metadata, "transcript")
    for key in ("timelines", "score_explanation"):
        if columns.get(key):
            draft.lost[f"column {key}"] += 1
    return draft


_TRANSCRIPT_COLUMNS = {
    "transcript_id",
    "task_set",
    "task_id",
    "task_repeat",
    "agent",
    "agent_args",
    "model",
    "model_options",
    "source_type",
    "source_id",
    "source_uri",
    "date",
    "score",
    "score_explanation",
    "message_count",
    "total_time",
    "error",
    "limit",
    "trust_content",
    "messages",
    "events",
    "timelines",
    "events_data",
    "filename",
}
"""Columns of a transcript that are read, or that say nothing about the run."""


def _json_column(columns: dict[str, Any], name: str) -> Any:
    """The value of a column that may be JSON text; other text as it is."""
    value = columns.get(name)
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except ValueError:
        return value


def _add_usage(draft: Draft, sample: dict[str, Any]) -> None:
    """Add the tokens of the evaluated model; those of graders and other roles are not the agent's.

    `model_usage` counts all models, `role_usage` those that were asked in a role.
    """
    by_model = {
        model: usage_tokens(usage, cache="beside")
        for model, usage in as_object(sample.get("model_usage")).items()
    }
    by_role = {
        role: usage_tokens(usage, cache="beside")
        for role, usage in as_object(sample.get("role_usage")).items()
    }
    costs = [usage_cost(usage) for usage in as_object(sample.get("model_usage")).values()]
    if not by_role and len(costs) == 1:  # with graders, the cost is not the agent's alone
        draft.add_totals(cost_usd=costs[0])
    if not by_role and draft.model in by_model:
        others = sum_tokens([usage for model, usage in by_model.items() if model != draft.model])
        draft.add_totals(**sum_tokens([by_model[draft.model]]))
    else:
        others = sum_tokens(list(by_role.values()))
        total = sum_tokens(list(by_model.values()))
        own = {name: (n or 0) - (others[name] or 0) for name, n in total.items() if n is not None}
        draft.add_totals(**own)
    n_others = (others["input_tokens"] or 0) + (others["output_tokens"] or 0)
    if n_others:
        draft.lost["tokens of other models and roles"] += n_others


def _add_score(draft: Draft, scorer: str, score: dict[str, Any]) -> None:
    """Add a score under its scorer's name.

    Inspect's letters become the numbers that it counts them as (`value_to_float`).
    """
    value = score.get("value")
    if value is None:
        reason = text_or_none(as_object(score.get("metadata")).get("unscored_reason"))
        reason = reason or text_or_none(score.get("unscored_reason"))
        draft.lost[
            f"score {scorer[:80]} without a value{f' ({reason[:80]})' if reason else ''}"
        ] += 1
        return
    for key, item in as_object(value).items():
        if item is None:
            draft.lost[f"score {scorer[:80]}.{str(key)[:80]} without a value"] += 1
    source = f"scores.{scorer}.value"
    if isinstance(value, str) and value in _LETTER_SCORES:
        source = f"{source} ({value})"
        value = _LETTER_SCORES[value]
    draft.add_outcomes(value, source, scorer)


def _agent(log: dict[str, Any]) -> str | None:
    """The solver as the evaluation names it, else the last step of the plan.

    None if that step is only a building block.
    """
    solver = text_or_none(as_object(log.get("eval")).get("solver"))
    if solver is not None:
        return solver
    steps = as_objects(as_object(log.get("plan")).get("steps"))
    last = text_or_none(steps[-1].get("solver")) if steps else None
    if last is None or last.rsplit("/", 1)[-1] in _BUILDING_BLOCKS:
        return None
    return last


class _Events:
    """Times and tokens of a sample's events, by the id of the message or call that they made."""

    def __init__(self, sample: dict[str, Any], draft: Draft) -> None:
        draft.elapsed(sample.get("started_at"))
        self.has_tools = False
        self.n_other_roles = 0
        self.replies: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        events = as_objects(sample.get("events"))
        if not events:
            events = as_objects(as_object(sample.get("transcript")).get("events"))
        for event in events:
            began = draft.elapsed(event.get("timestamp"))
            ended = draft.elapsed(event.get("completed"))
            if event.get("event") == "model" and event.get("role") not in (None, "default"):
                self.n_other_roles += 1
            elif event.get("event") == "model":
                self.has_tools = self.has_tools or bool(event.get("tools"))
                self._add_reply(as_object(event.get("output")), ended)
            elif event.get("event") == "tool" and text_or_none(event.get("id")):
                seconds = number(event.get("working_time"))
                if seconds is None and began is not None and ended is not None:
                    seconds = ended - began
                self.calls[event["id"]] = {"ts": ended, "exec_time_s": seconds}

    def _add_reply(self, output: dict[str, Any], ended: float | None) -> None:
        choices = as_objects(output.get("choices"))
        choice = choices[0] if choices else {}
        message_id = as_id(as_object(choice.get("message")).get("id"))
        if message_id is None:
            return
        self.replies[message_id] = {
            "ts": ended,
            "tokens": usage_tokens(output.get("usage"), cache="beside"),
            "cost_usd": usage_cost(output.get("usage")),
            "finish": choice.get("stop_reason"),
        }


def _add(draft: Draft, message: dict[str, Any], events: _Events) -> None:
    role, content = message.get("role"), message.get("content")
    if role == "system":
        draft.system(unwrap_text(content))
    elif role == "user":
        draft.user(unwrap_text(content))
    elif role == "assistant" and message.get("source") == "input":  # an example of the dataset
        draft.context("assistant", content, len(as_objects(message.get("tool_calls"))))
    elif role == "assistant":
        _add_assistant(draft, message, events)
    elif role == "tool":
        _add_result(draft, message, events)
    else:
        draft.lost["messages without a known role"] += 1


def _add_assistant(draft: Draft, message: dict[str, Any], events: _Events) -> None:
    """Add an assistant message with its calls, and the results of tools that the server ran."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    thoughts, server_calls, others = [], [], []
    for block in blocks:
        kind = as_object(block).get("type")
        if kind == "reasoning":
            thoughts.append(_thought(block))
        elif kind == "tool_use":
            server_calls.append(block)
        else:
            others.append(block)
    calls = [*server_calls, *as_objects(message.get("tool_calls"))]
    draft.assistant(
        unwrap_text(others) if blocks else content,
        [parse_call(call) for call in calls],
        reasoning=thoughts,
        **events.replies.get(as_id(message.get("id")) or "", {}),
    )
    for block in server_calls:
        draft.result(
            as_id(block.get("id")),
            content_text(block.get("result")),
            stderr=content_text(block.get("error")),
            kind=kind_of_error(block.get("error")),
        )


def _add_result(draft: Draft, message: dict[str, Any], events: _Events) -> None:
    error, content = as_object(message.get("error")), message.get("content")
    error_text = content_text(error.get("message"))
    call_id = as_id(message.get("tool_call_id"))
    # The content of a failed call may only repeat its error.
    is_repeated = bool(error_text) and content_text(content) == error_text
    draft.result(
        call_id,
        "" if is_repeated else content,
        stderr=error_text,
        kind=kind_of_error(error),
        **events.calls.get(call_id or "", {}),
        extra={"error_type": error["type"]} if text_or_none(error.get("type")) else None,
    )


def _thought(block: dict[str, Any]) -> dict[str, Any]:
    """A reasoning block in the shape that chat logs keep under `reasoning_details`."""
    extra = {key: block[key] for key in ("summary", "signature") if isinstance(block.get(key), str)}
    if block.get("redacted") is True:
        return {"type": "reasoning.encrypted", "data": block.get("reasoning"), **extra}
    return {"type": "reasoning.text", "text": content_text(block.get("reasoning")), **extra}


def _with_attachments(value: Any, attachments: dict[str, Any], draft: Draft) -> Any:
    """The value with the texts that Inspect moved to the sample's attachments."""
    if isinstance(value, str):
        for scheme in ("attachment://", "tc://"):
            if value.startswith(scheme) and len(value) <= 200:
                text = attachments.get(value.removeprefix(scheme))
                if isinstance(text, str):
                    return text
                draft.lost["missing attachments"] += 1
        return value
    if isinstance(value, dict):
        return {key: _with_attachments(item, attachments, draft) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_attachments(item, attachments, draft) for item in value]
    return value


_has_log_keys = has_keys("eval.task", "eval.run_id", "eval.model")


def _recognises(head: bytes, name: str) -> bool:
    return name.lower().endswith(".eval") or _has_log_keys(head, name)


IMPORTER = Importer(read, (".json", ".eval"), _recognises)
