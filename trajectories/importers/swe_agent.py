"""SWE-agent's .traj files: steps of thought, action and observation, and the model's history.

The brief comes from the history up to the first step. Steps come from `trajectory`, which has the
complete observations; their tool calls come from the history if it has them. An action without a
tool call is a command line and becomes a call of `bash`, or of `submit` if it is that command.
Source: SWE-agent `sweagent/types.py`, `agent/agents.py`, docs/usage/trajectories.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import number, read_json, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects, parse_object
from .files import draft_or_error, source_name
from .openai_chat import chat_calls
from .recognise import has_keys

_EXPECTED = "expected an object with `trajectory` (steps of action and observation) or `history`"
_NOT_OUTCOMES = (
    "submission",
    "model_stats",
    "swe_agent_hash",
    "swe_agent_version",
    "swe_rex_version",
    "swe_rex_hash",
)
"""Fields of `info` that say nothing about how the run went."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file, or each attempt of a file of attempts from which none was chosen."""
    data = as_object(read_json(path))
    attempts = as_objects(data.get("attempts"))
    if attempts and "trajectory" not in data:
        for position, attempt in enumerate(attempts):
            name, location = f"{source_name(path)}-attempt-{position + 1}", f"attempts[{position}] "
            yield draft_or_error(_draft, attempt, name, path, location)
        return
    draft = _draft(data, source_name(path), path, "")
    if len(attempts) > 1:
        draft.lost["other attempts"] += len(attempts) - 1
    yield draft


def _draft(data: dict[str, Any], name: str, path: Path, location: str) -> Draft:
    steps, history = as_objects(data.get("trajectory")), as_objects(data.get("history"))
    if not history and not any("action" in step or "observation" in step for step in steps):
        raise InputError(f"{location}is not a SWE-agent trajectory", _EXPECTED, path)
    config = parse_object(data.get("replay_config"))
    problem = as_object(config.get("problem_statement"))
    model = as_object(as_object(config.get("agent")).get("model"))
    draft = Draft(
        name,
        "swe-agent",
        agent="swe-agent",
        model=text_or_none(model.get("name")),
        task=text_or_none(problem.get("id")) or source_name(path),
    )
    _add_info(draft, as_object(data.get("info")))
    _add_brief(draft, history)
    if steps:
        replies = (item for item in history if _is_reply(item))
        for step_number, step in enumerate(steps, 1):
            _add_step(draft, step_number, step, next(replies, {}))
    else:
        _add_history(draft, history)
    _count_lost(draft, steps, "state", "states of the environment after a step")
    _count_lost(draft, steps, "query", "inputs of a step")
    return draft


def _count_lost(draft: Draft, steps: list[dict[str, Any]], key: str, label: str) -> None:
    count = sum(bool(step.get(key)) for step in steps)
    if count:
        draft.lost[label] += count


def _add_info(draft: Draft, info: dict[str, Any]) -> None:
    if text_or_none(info.get("submission")):
        draft.origin["submission"] = info["submission"]
    outcomes = {key: value for key, value in info.items() if key not in _NOT_OUTCOMES}
    draft.add_outcomes(outcomes, "info")
    stats = as_object(info.get("model_stats"))
    draft.add_totals(
        input_tokens=stats.get("tokens_sent"),
        output_tokens=stats.get("tokens_received"),
        cost_usd=stats.get("instance_cost"),
    )


def _is_reply(item: dict[str, Any]) -> bool:
    """Whether an item of the history is the model's own, not one of a demonstration."""
    return item.get("role") == "assistant" and not item.get("is_demo")


def _add_brief(draft: Draft, history: list[dict[str, Any]]) -> None:
    """Add what precedes the first reply."""
    for item in history:
        if _is_reply(item):
            break
        if item.get("role") == "system":
            draft.system(item.get("content"))
        elif item.get("is_demo") and item.get("role") != "user":
            draft.lost["messages of demonstrations"] += 1
        else:
            draft.user(item.get("content"))


def _add_step(draft: Draft, step_number: int, step: dict[str, Any], reply: dict[str, Any]) -> None:
    """Add a step; `reply` is the history's next reply, which is the step's if its action is."""
    action = content_text(step.get("action"))
    if content_text(reply.get("action")) != action:
        reply = {}
    calls = _calls(reply, action, step_number)
    text = content_text(step.get("response")) or content_text(step.get("thought"))
    draft.assistant(text, calls, reasoning=as_objects(reply.get("thinking_blocks")))
    observation = content_text(step.get("observation"))
    if calls:
        seconds = number(step.get("execution_time"))
        # 0.0 stands for "not measured".
        draft.result(calls[0].id, observation, exec_time_s=seconds or None)
    else:
        draft.user(observation)


def _calls(reply: dict[str, Any], action: str, step_number: int) -> list[Call]:
    """The reply's tool calls, else the action as a command line."""
    calls = list(chat_calls(reply))
    if calls or not action.strip():
        return calls
    is_submission = action.split(maxsplit=1)[0] == "submit" and "\n" not in action.strip()
    name = "submit" if is_submission else "bash"
    return [Call(name, {"command": action}, f"step-{step_number}")]


def _add_history(draft: Draft, history: list[dict[str, Any]]) -> None:
    """Add the history as the conversation, for files without steps (demonstrations)."""
    has_started = False
    open_call: str | None = None
    for item_number, item in enumerate(history, 1):
        if _is_reply(item):
            has_started = True
            calls = _calls(item, content_text(item.get("action")), item_number)
            open_call = calls[0].id if calls else None
            draft.assistant(content_text(item.get("content")), calls)
        elif has_started and item.get("role") in ("tool", "user"):
            ids = item.get("tool_call_ids")
            call_id = as_id(ids[0]) if isinstance(ids, list) and ids else None
            call_id = call_id or open_call
            if call_id:
                draft.result(call_id, item.get("content"))
                open_call = None
            else:
                draft.user(item.get("content"))


IMPORTER = Importer(
    read, (".traj",), has_keys("trajectory.action", "attempts.trajectory.action", "history.role")
)
