"""SWE-agent's .traj files: steps of thought, action and observation, and the history that the model
was shown.

The brief comes from the history up to the first step, the steps from `trajectory` (whole
observations), their tool calls from the history where it has them. An action without a tool call is
a command line and becomes a call of `bash`, or of `submit` where it is that command. Source:
SWE-agent `sweagent/types.py`, `agent/agents.py`, docs/usage/trajectories.md.
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
from .files import draft_or_error
from .openai_chat import chat_calls
from .recognise import has_keys

_EXPECTED = "expected an object with `trajectory` (steps of action and observation) or `history`"


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file; a file of attempts of which none was chosen brings each of them."""
    data = as_object(read_json(path))
    attempts = as_objects(data.get("attempts"))
    if attempts and "trajectory" not in data:
        for position, attempt in enumerate(attempts, 1):
            yield draft_or_error(
                _draft, attempt, path, f"-attempt-{position}", f"attempts[{position - 1}] "
            )
        return
    draft = _draft(data, path, "", "")
    if len(attempts) > 1:
        draft.lost["other attempts"] += len(attempts) - 1
    yield draft


def _draft(data: dict[str, Any], path: Path, suffix: str, where: str) -> Draft:
    steps, history = as_objects(data.get("trajectory")), as_objects(data.get("history"))
    if not any("action" in step or "observation" in step for step in steps) and not history:
        raise InputError(f"{where}is no SWE-agent trajectory", _EXPECTED, path)
    config = parse_object(data.get("replay_config"))
    problem, model = (
        as_object(config.get("problem_statement")),
        as_object(as_object(config.get("agent")).get("model")),
    )
    draft = Draft(
        path.stem + suffix, "swe-agent", agent="swe-agent", model=text_or_none(model.get("name"))
    )
    draft.task = text_or_none(problem.get("id")) or path.stem
    _info(draft, as_object(data.get("info")))
    replies = _brief(draft, history)
    if steps:
        for index, step in enumerate(steps, 1):
            _step(draft, index, step, replies)
    else:
        _history_alone(draft, history)
    for key, what in (
        ("state", "states of the environment after a step"),
        ("query", "inputs of a step"),
    ):
        if lost := sum(bool(step.get(key)) for step in steps):
            draft.lost[what] += lost
    return draft


def _info(draft: Draft, info: dict[str, Any]) -> None:
    if text_or_none(info.get("submission")):
        draft.origin["submission"] = info["submission"]
    told = (
        "submission",
        "model_stats",
        "swe_agent_hash",
        "swe_agent_version",
        "swe_rex_version",
        "swe_rex_hash",
    )
    draft.add_outcomes({key: item for key, item in info.items() if key not in told}, "info")
    stats = as_object(info.get("model_stats"))
    if not number(stats.get("api_calls")):
        return  # Replayed demonstrations count nothing: their zeros say "not counted".
    sent, received = stats.get("tokens_sent"), stats.get("tokens_received")
    draft.add_totals(
        prompt_tokens=sent, completion_tokens=received, cost_usd=stats.get("instance_cost")
    )


def _brief(draft: Draft, history: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Take what stands before the first reply; the replies of the history, demonstrations left out."""
    for item in history:
        if item.get("role") == "assistant" and not item.get("is_demo"):
            break
        if item.get("role") == "system":
            draft.system(item.get("content"))
        elif item.get("is_demo") and item.get("role") != "user":
            draft.lost["messages of demonstrations"] += 1
        else:
            draft.user(item.get("content"))
    return (item for item in history if item.get("role") == "assistant" and not item.get("is_demo"))


def _step(
    draft: Draft, index: int, step: dict[str, Any], replies: Iterator[dict[str, Any]]
) -> None:
    action, said = content_text(step.get("action")), content_text(step.get("response"))
    reply = next(replies, {})
    same = content_text(reply.get("action")) == action
    calls = list(chat_calls(reply)) if same else []
    if not calls and action.strip():
        calls = [_command(action, index)]
    thoughts = as_objects(reply.get("thinking_blocks")) if same else []
    draft.assistant(said or content_text(step.get("thought")), calls, reasoning=thoughts)
    seen = content_text(step.get("observation"))
    if calls:
        spent = number(step.get("execution_time"))
        draft.result(calls[0].id, seen, exec_time_s=spent or None)  # 0.0 stands for "not measured".
    else:
        draft.user(seen)


def _command(action: str, index: int) -> Call:
    """An action without a tool call: a command line, of which `submit` is the one that ends the
    run."""
    first = action.split(maxsplit=1)[0]
    name = "submit" if first == "submit" and "\n" not in action.strip() else "bash"
    return Call(name, {"command": action}, f"step-{index}")


def _history_alone(draft: Draft, history: list[dict[str, Any]]) -> None:
    """Files without steps (demonstrations): the history is the conversation."""
    started = False
    open_call: str | None = None
    for index, item in enumerate(history, 1):
        role = item.get("role")
        if role == "assistant" and not item.get("is_demo"):
            started = True
            calls = list(chat_calls(item))
            action = content_text(item.get("action"))
            if not calls and action.strip():
                calls = [_command(action, index)]
            open_call = calls[0].id if calls else None
            draft.assistant(content_text(item.get("content")), calls)
        elif started and role in ("tool", "user"):
            ids = item.get("tool_call_ids")
            named = as_id(ids[0]) if isinstance(ids, list) and ids else None
            if named or open_call:
                draft.result(named or open_call, item.get("content"))
                open_call = None
            else:
                draft.user(item.get("content"))


IMPORTER = Importer(
    read, (".traj",), has_keys("trajectory.action", "attempts.trajectory.action", "history.role")
)
