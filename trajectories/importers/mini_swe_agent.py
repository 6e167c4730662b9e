"""Trajectories of mini-swe-agent (`.traj.json`): chat messages whose actions are commands.

A command is fenced in the text, or a tool call since 2.0. A command in the text becomes a call of
`bash`, and the user message after it the result, as that agent runs exactly one command a reply:
the one that `extra.actions` lists, else the one fenced block of the text. `extra.returncode`, or
the `<returncode>` before the output, is its exit code. Source: SWE-agent/mini-swe-agent
docs/usage/output_files.md, `src/minisweagent/models/utils/actions_text.py` (MIT).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import kind_of_error, stated_kind
from ..reading.json_bytes import read_json, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects
from .files import source_name
from .openai_chat import chat_calls
from .openai_responses import Execution, ItemReader
from .recognise import has_keys, shape
from .usage import usage_tokens

_EXPECTED = "expected an object with `info` and `messages`, or the list of messages"
_FENCES = ("```bash", "```sh", "```mswea_bash_command")
_EXIT_CODE = re.compile(r"\s*<returncode>(-?\d{1,10})</returncode>")
_NOT_OUTCOMES = ("config", "model_stats", "mini_version", "exit_status", "submission")


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file."""
    value = read_json(path)
    data = as_object(value)
    info = as_object(data.get("info"))
    messages = as_objects(value if isinstance(value, list) else data.get("messages"))
    if not any(message.get("role") == "assistant" or _is_response(message) for message in messages):
        raise InputError("is not a trajectory of mini-swe-agent", _EXPECTED, path)
    task = as_id(data.get("instance_id"))
    model = as_object(as_object(info.get("config")).get("model"))
    draft = Draft(
        task or source_name(path).removesuffix(".traj"),
        "mini-swe-agent",
        agent="mini-swe-agent",
        model=text_or_none(model.get("model_name")),
        task=task,
    )
    _add_info(draft, info)
    open_calls: list[str] = []
    items = ItemReader(draft)
    for position, message in enumerate(messages):
        if _is_response(message) or message.get("type") == "function_call_output":
            _add_response(draft, items, message)
        else:
            open_calls = _add(draft, message, position, open_calls)
    yield draft


def _is_response(message: dict[str, Any]) -> bool:
    """Whether this is a stored response of the Responses API, which stands for a message."""
    return "role" not in message and isinstance(message.get("output"), list)


def _add_response(draft: Draft, items: ItemReader, message: dict[str, Any]) -> None:
    """Add a response as a turn, or the result of one of its calls."""
    extra = as_object(message.get("extra"))
    ts = draft.elapsed(extra.get("timestamp"))
    if _is_response(message):
        for item in as_objects(message["output"]):
            items.add(item, ts)
        items.end_turn(as_object(message.get("usage")), extra.get("cost"))
        return
    call_id = as_id(message.get("call_id"))
    if call_id:
        items.executions[call_id] = Execution(extra.get("returncode"))
    items.add(message, ts)


def _add_info(draft: Draft, info: dict[str, Any]) -> None:
    for key in ("mini_version", "submission"):
        if text_or_none(info.get(key)):
            draft.origin[key] = info[key]
    draft.add_outcomes(info.get("exit_status"), "info", "exit_status")
    if info.get("exit_status") == "Submitted":
        draft.submitted = True
    outcomes = {key: value for key, value in info.items() if key not in _NOT_OUTCOMES}
    draft.add_outcomes(outcomes, "info")
    cost = as_object(info.get("model_stats")).get("instance_cost")
    draft.add_totals(cost_usd=cost)


def _add(draft: Draft, message: dict[str, Any], position: int, open_calls: list[str]) -> list[str]:
    """Add a message, and return the calls that are open after it.

    Results without a call id answer the open calls in order.
    """
    role, content = message.get("role"), message.get("content")
    extra = as_object(message.get("extra"))
    ts = draft.elapsed(extra.get("timestamp"))
    if role == "assistant":
        calls = list(chat_calls(message)) or _commands(content_text(content), extra, position)
        response = as_object(extra.get("response"))
        draft.assistant(
            content,
            calls,
            ts=ts,
            reasoning=text_or_none(message.get("reasoning_content")),
            tokens=usage_tokens(response.get("usage")),
            cost_usd=extra.get("cost"),
        )
        return [call.id or "" for call in calls]
    if role == "tool" or (role in ("user", "exit") and open_calls):
        text = content_text(content)
        exit_code, header = extra.get("returncode"), _EXIT_CODE.match(text)
        if exit_code is None and header:
            exit_code = header[1]
        call_id = as_id(message.get("tool_call_id")) or (open_calls[0] if open_calls else None)
        kind = kind_of_error(extra.get("exception_type") or extra.get("exception_info"))
        if kind is not None and str(exit_code) == "-1":  # stands for a command that never ended
            exit_code = None
        output = "" if role == "exit" else text
        draft.result(call_id, output, exit_code=exit_code, kind=kind or stated_kind(message), ts=ts)
        return [open_call for open_call in open_calls if open_call != call_id]
    if role == "system":
        draft.system(content)
    elif role == "user":
        draft.user(content)
    elif role != "exit":
        draft.lost["messages without a known role"] += 1
    return open_calls


def _commands(text: str, extra: dict[str, Any], position: int) -> list[Call]:
    """The commands of a reply that has no tool calls."""
    commands = [
        action["command"]
        for action in as_objects(extra.get("actions"))
        if text_or_none(action.get("command"))
    ]
    if not commands:
        commands = _fenced_blocks(text)
        if len(commands) != 1:  # the agent refuses any other number, and runs none
            return []
    return [
        Call("bash", {"command": command}, f"action-{position}-{index}")
        for index, command in enumerate(commands)
    ]


def _fenced_blocks(text: str) -> list[str]:
    """The contents of the fenced blocks of bash that are closed."""
    contents: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None:
            if line.strip() in _FENCES:
                block = []
        elif line.startswith("```"):
            contents.append("\n".join(block))
            block = None
        else:
            block.append(line)
    return contents


_has_keys = has_keys(
    "info.mini_version messages.role",
    "info.exit_status info.submission messages.role",
    "messages.extra.actions",
    "messages.output.type messages.extra",
)


def _recognises(head: bytes, name: str) -> bool:
    is_named_so = name.lower().endswith(".traj.json")
    return _has_keys(head, name) or (is_named_so and "role" in shape(head))


IMPORTER = Importer(read, (".json",), _recognises)
