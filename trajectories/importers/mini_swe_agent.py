"""Trajectories of mini-swe-agent (`.traj.json`): chat messages whose actions are fenced commands,
or tool calls since 2.0.

A command in the text becomes a call of `bash`, and the user message after it its answer, as that
agent runs exactly one command a reply: what `extra.actions` lists, else the one fenced block of the
text. `extra.returncode` or the `<returncode>` before the output is its exit code. Source:
SWE-agent/mini-swe-agent docs/usage/output_files.md, `src/minisweagent/models/utils/actions_text.py`
(MIT).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import read_json, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects, sum_counts
from .openai_chat import chat_calls
from .recognise import has_keys

_EXPECTED = "expected an object with `info` and `messages`, or the list of messages"
_FENCES = ("```bash", "```sh", "```mswea_bash_command")
_CODE = re.compile(r"\s*<returncode>(-?\d{1,10})</returncode>")


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file."""
    value = read_json(path)
    data = as_object(value)
    info, messages = (
        as_object(data.get("info")),
        as_objects(value if isinstance(value, list) else data.get("messages")),
    )
    if not any(message.get("role") == "assistant" for message in messages):
        raise InputError("is no trajectory of mini-swe-agent", _EXPECTED, path)
    name = path.name.removesuffix(".json").removesuffix(".traj")
    task = as_id(data.get("instance_id"))
    draft = Draft(task or name, "mini-swe-agent", agent="mini-swe-agent", task=task)
    config = as_object(as_object(info.get("config")).get("model"))
    draft.model = text_or_none(config.get("model_name"))
    draft.origin.update(
        {key: info[key] for key in ("mini_version", "submission") if text_or_none(info.get(key))}
    )
    draft.add_outcomes(info.get("exit_status"), "info", "exit_status")
    draft.submitted = info.get("exit_status") == "Submitted" or None
    known = ("config", "model_stats", "mini_version", "exit_status", "submission")
    draft.add_outcomes({key: item for key, item in info.items() if key not in known}, "info")
    draft.add_totals(cost_usd=as_object(info.get("model_stats")).get("instance_cost") or None)
    waiting: list[str] = []
    for number_of, message in enumerate(messages):
        waiting = _add(draft, message, number_of, waiting)
    yield draft


def _add(draft: Draft, message: dict[str, Any], number_of: int, waiting: list[str]) -> list[str]:
    """Takes a message; the calls that still wait for an answer. Texts are answers in the order of
    the calls."""
    role, content, extra = (
        message.get("role"),
        message.get("content"),
        as_object(message.get("extra")),
    )
    since = draft.elapsed(extra.get("timestamp"))
    if role == "system":
        draft.system(content)
    elif role == "assistant":
        calls = list(chat_calls(message)) or _commands(content_text(content), extra, number_of)
        usage = as_object(as_object(extra.get("response")).get("usage"))
        draft.assistant(
            content,
            calls,
            ts=since,
            reasoning=text_or_none(message.get("reasoning_content")),
            input_tokens=sum_counts(usage.get("prompt_tokens")),
            output_tokens=sum_counts(usage.get("completion_tokens")),
        )
        return [call.id or "" for call in calls]
    elif role == "tool" or (role in ("user", "exit") and waiting):
        text = content_text(content)
        head, code = _CODE.match(text), extra.get("returncode")
        code = head[1] if code is None and head else code
        call_id = as_id(message.get("tool_call_id")) or (waiting[0] if waiting else None)
        draft.result(call_id, "" if role == "exit" else text, exit_code=code, ts=since)
        return [one for one in waiting if one != call_id]
    elif role == "user":
        draft.user(content)
    elif role != "exit":
        draft.lost["messages without a known role"] += 1
    return waiting


def _commands(text: str, extra: dict[str, Any], number_of: int) -> list[Call]:
    listed = [
        command
        for action in as_objects(extra.get("actions"))
        if (command := text_or_none(action.get("command")))
    ]
    fenced = [] if listed else _fenced(text)
    # any other number is refused, not run
    commands = listed or (fenced if len(fenced) == 1 else [])
    return [
        Call("bash", {"command": command}, f"action-{number_of}-{at}")
        for at, command in enumerate(commands)
    ]


def _fenced(text: str) -> list[str]:
    """What stands in blocks of bash, each closed."""
    found: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None:
            block = [] if line.strip() in _FENCES else None
        elif line.startswith("```"):
            found.append("\n".join(block))
            block = None
        else:
            block.append(line)
    return found


IMPORTER = Importer(
    read,
    (".json",),
    has_keys(
        "info.mini_version messages.role",
        "info.exit_status info.submission messages.role",
        "messages.extra.actions",
    ),
)
