"""Logs of Inspect AI, `.json` (one object) and `.eval` (a zip of JSON files): one run a sample and
epoch.

Messages come from `samples[].messages`; times and tokens from the sample's model and tool events,
matched by message and call id. Nothing is unpacked to disk, and members that claim or hold too much
are refused. Newer logs are packed with Zstandard, which needs Python 3.14 or the package zstandard.
Source: inspect_ai `log/_log.py`, `model/_chat_message.py`, `event/_model.py`,
`log/_recorders/eval.py`.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import MAX_BYTES, decode, number, parse_json, read_json, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Draft, parse_call
from .fields import as_id, as_object, as_objects, sum_counts, unwrap_text
from .files import draft_or_error
from .recognise import has_keys

_EXPECTED = "expected an Inspect log: `eval` and `samples`, or a .eval file"
_ZSTANDARD = 93
_MAX_MEMBER = 256 * 1024 * 1024
_MAX_TOTAL = 8 * 1024 * 1024 * 1024
_FREE = 32 * 1024 * 1024
"""Up to this size a member may be packed as tightly as it likes."""
_MAX_RATIO = 200
"""Logs shrink 5 to 50 times; zip bombs a thousand times."""
_LETTERS = {"C": 1, "P": 0.5, "I": 0, "N": 0}
"""Correct, partial, incorrect, no answer."""
_NO_AGENTS = ("generate", "use_tools", "system_message", "prompt_template", "chain_of_thought")


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every sample of the log; samples that cannot be read come as the errors that they are."""
    try:
        packed = zipfile.is_zipfile(path)
    except (OSError, ValueError):
        packed = False
    if packed:
        yield from _packed(path)
        return
    if path.suffix.lower() == ".eval":
        raise InputError(
            "is no zip file", "a .eval log that was cut short? Convert or copy it again", path
        )
    log = as_object(read_json(path))
    samples = log.get("samples")
    if not isinstance(log.get("eval"), dict):
        raise InputError("is no Inspect log", _EXPECTED, path)
    if not isinstance(samples, list) or not samples:
        raise InputError(
            "holds no samples",
            "was it written with --no-log-samples, or is it only the header?",
            path,
        )
    for position, sample in enumerate(samples):
        yield draft_or_error(_draft, log, sample, path, f"samples[{position}]")


def _packed(path: Path) -> Iterator[Draft | InputError]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"has more than the {MAX_BYTES:,} bytes that are read", "split it", path
            )
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            header = members.get("header.json") or members.get("_journal/start.json")
            names = sorted(
                name for name in members if name.startswith("samples/") and name.endswith(".json")
            )
            if header is None or not names:
                raise InputError("holds no header.json or no samples", _EXPECTED, path)
            log = as_object(_member(archive, header, path))
            if not isinstance(log.get("eval"), dict):
                raise InputError("is no Inspect log", _EXPECTED, path)
            total = 0
            for name in names:
                total += members[name].file_size
                if total > _MAX_TOTAL:
                    raise InputError(f"unpacks to more than {_MAX_TOTAL:,} bytes", "split it", path)
                try:
                    yield _draft(log, _member(archive, members[name], path), path, name)
                except InputError as error:
                    yield error
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"is a broken zip file: {error}", "copy it again", path) from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Any:
    """The JSON value of a member, read in memory within the limits."""
    name = info.filename[:100]
    if info.file_size > _MAX_MEMBER or (
        info.file_size > _FREE and info.file_size > _MAX_RATIO * info.compress_size
    ):
        raise InputError(
            f"{name} claims {info.file_size:,} bytes from {info.compress_size:,}",
            "too large; convert it to JSON",
            path,
        )
    try:
        if info.compress_type == _ZSTANDARD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
            data = _zstandard(info, path)
        else:
            with archive.open(info) as file:
                data = file.read(_MAX_MEMBER + 1)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        # RuntimeError: encrypted; NotImplementedError, one of them: a compression that is not built
        # in.
        raise InputError(f"{name} cannot be unpacked: {error}", "copy it again", path) from None
    return parse_json(decode(data, path / name), path / name)


def _zstandard(info: zipfile.ZipInfo, path: Path) -> bytes:
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
        name_length, extra_length = struct.unpack("<26xHH", file.read(30))
        file.seek(name_length + extra_length, 1)
        packed = file.read(info.compress_size)
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(
            packed, read_across_frames=True
        )
        data: bytes = reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError("checksum or size differs")
    return data


def _draft(log: dict[str, Any], sample: Any, path: Path, where: str) -> Draft:
    spec, sample = as_object(log.get("eval")), as_object(sample)
    messages = sample.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InputError(f"{where} holds no messages", _EXPECTED, path)
    task = text_or_none(spec.get("task"))
    epoch = sample.get("epoch")
    name = "_".join(
        filter(None, (task or path.stem, as_id(sample.get("id")), "epoch", as_id(epoch) or "1"))
    )
    draft = Draft(
        name, "inspect", agent=_agent(log), model=text_or_none(spec.get("model")), task=task
    )
    draft.tier = text_or_none(as_object(sample.get("metadata")).get("tier"))
    draft.repeat = epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None
    for key in ("eval_id", "run_id", "created"):
        if text_or_none(spec.get(key)):
            draft.origin[key] = spec[key]
    draft.origin.update({"sample": as_id(sample.get("id")), "epoch": draft.repeat})
    for key in ("error", "limit"):
        if sample.get(key):
            draft.origin[key] = sample[key]
    events = _Events(sample, draft)
    attached = as_object(sample.get("attachments"))
    for message in messages:
        _add(draft, as_object(_resolve(message, attached, draft)), events)
    draft.wall_time_s = number(sample.get("total_time"))
    if not events.replies:
        usage = [as_object(u) for u in as_object(sample.get("model_usage")).values()]
        sent, received = (
            sum_counts(*map(_input, usage)),
            sum_counts(*(u.get("output_tokens") for u in usage)),
        )
        draft.add_totals(prompt_tokens=sent or None, completion_tokens=received or None)
    outside = len(events.replies) - sum(
        m.get("role") == "assistant" for m in map(as_object, messages)
    )
    if outside > 0:
        draft.lost["model calls that are not among the messages"] += outside
    for scorer, score in as_object(sample.get("scores")).items():
        _score(draft, str(scorer), as_object(score))
    draft.add_outcomes(sample.get("metadata"), "metadata", "metadata")
    return draft


def _score(draft: Draft, scorer: str, score: dict[str, Any]) -> None:
    """A score by its scorer's name; Inspect's letters by the numbers that it counts them as
    (`value_to_float`)."""
    value = score.get("value")
    said = _LETTERS.get(value, value) if isinstance(value, str) else value
    draft.add_outcomes(
        said, f"scores.{scorer}.value" + (f" ({value})" if said is not value else ""), scorer
    )


def _agent(log: dict[str, Any]) -> str | None:
    """The solver: named for the evaluation, else the last step of the plan unless that is a
    building block."""
    named = text_or_none(as_object(log.get("eval")).get("solver"))
    steps = as_objects(as_object(log.get("plan")).get("steps"))
    last = text_or_none(steps[-1].get("solver")) if steps else None
    return named or (None if last is None or last.rsplit("/", 1)[-1] in _NO_AGENTS else last)


class _Events:
    """Times and tokens of a sample's events, by the id of the message or call that they made."""

    def __init__(self, sample: dict[str, Any], draft: Draft) -> None:
        draft.elapsed(sample.get("started_at"))
        self.replies: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        events = as_objects(sample.get("events")) or as_objects(
            as_object(sample.get("transcript")).get("events")
        )
        for event in events:
            began = draft.elapsed(event.get("timestamp"))
            done = draft.elapsed(event.get("completed"))
            if event.get("event") == "model":
                self._model(as_object(event.get("output")), done)
            elif event.get("event") == "tool" and text_or_none(event.get("id")):
                spent = number(event.get("working_time"))
                if spent is None and began is not None and done is not None:
                    spent = done - began
                self.calls[event["id"]] = {"ts": done, "exec_time_s": spent}

    def _model(self, output: dict[str, Any], done: float | None) -> None:
        choice = next(iter(as_objects(output.get("choices"))), {})
        key = as_id(as_object(choice.get("message")).get("id"))
        if key is None:
            return
        usage = as_object(output.get("usage"))
        self.replies[key] = {
            "ts": done,
            "input_tokens": _input(usage),
            "output_tokens": usage.get("output_tokens"),
            "finish": choice.get("stop_reason"),
        }


def _input(usage: dict[str, Any]) -> int | None:
    """All input tokens: Inspect counts those of the cache apart from the rest."""
    return sum_counts(
        *(usage.get(f"input_tokens{part}") for part in ("", "_cache_read", "_cache_write"))
    )


def _add(draft: Draft, message: dict[str, Any], events: _Events) -> None:
    role, content, key = message.get("role"), message.get("content"), as_id(message.get("id")) or ""
    if role == "system":
        draft.system(unwrap_text(content))
    elif role == "user":
        draft.user(unwrap_text(content))
    elif role == "assistant":
        blocks = content if isinstance(content, list) else []
        thoughts = [_thought(b) for b in as_objects(blocks) if b.get("type") == "reasoning"]
        served = [b for b in as_objects(blocks) if b.get("type") == "tool_use"]
        rest = [b for b in blocks if as_object(b).get("type") not in ("reasoning", "tool_use")]
        calls = [parse_call(call) for call in (*served, *as_objects(message.get("tool_calls")))]
        draft.assistant(
            unwrap_text(rest) if blocks else content,
            calls,
            reasoning=thoughts,
            **events.replies.get(key, {}),
        )
        for block in served:
            draft.result(
                as_id(block.get("id")),
                content_text(block.get("result")),
                stderr=content_text(block.get("error")),
            )
    elif role == "tool":
        _answer(draft, message, events)
    else:
        draft.lost["messages without a known role"] += 1


def _answer(draft: Draft, message: dict[str, Any], events: _Events) -> None:
    error, content = as_object(message.get("error")), message.get("content")
    said = content_text(error.get("message"))
    call_id = as_id(message.get("tool_call_id"))
    text: Any = "" if said and content_text(content) == said else content
    draft.result(
        call_id,
        text,
        stderr=said,
        failed=bool(error),
        **events.calls.get(call_id or "", {}),
        extra={"error_type": error["type"]} if text_or_none(error.get("type")) else None,
    )


def _thought(block: dict[str, Any]) -> dict[str, Any]:
    """A reasoning block in the shape that chat logs keep under `reasoning_details`."""
    kept = {key: block[key] for key in ("summary", "signature") if isinstance(block.get(key), str)}
    if block.get("redacted") is True:
        return {"type": "reasoning.encrypted", "data": block.get("reasoning"), **kept}
    return {"type": "reasoning.text", "text": content_text(block.get("reasoning")), **kept}


def _resolve(value: Any, attached: dict[str, Any], draft: Draft) -> Any:
    """The value with what was moved to the sample's attachments put back."""
    if isinstance(value, str):
        for scheme in ("attachment://", "tc://"):
            if value.startswith(scheme) and len(value) <= 200:
                found = attached.get(value.removeprefix(scheme))
                if isinstance(found, str):
                    return found
                draft.lost["missing attachments"] += 1
        return value
    if isinstance(value, dict):
        return {key: _resolve(item, attached, draft) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, attached, draft) for item in value]
    return value


def _recognises(head: bytes, name: str) -> bool:
    return name.lower().endswith(".eval") or has_keys("eval.task", "eval.run_id", "eval.model")(
        head, name
    )


IMPORTER = Importer(read, (".json", ".eval"), _recognises)
