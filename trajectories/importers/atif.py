"""ATIF trajectories (Agent Trajectory Interchange Format), as Harbor writes them for every agent,
with the trial's rewards.

A step of the agent is a turn; its observation answers its calls by `source_call_id`, else in order.
Terminus types what its reply holds and is answered by one screen: that is one call, whether the
trajectory lists the keystrokes or has them in the reply alone. A trajectory that was cut when the
agent's context was full goes on in the files that it names. Beside a trial's
`agent/trajectory.json` stand `result.json` (task, rewards, exception) or `verifier/reward.txt`,
which become outcomes. Source: Harbor docs/rfcs/0001-trajectory-format.md (ATIF v1.0 to v1.7),
`harbor/models/trial/result.py`, tests/golden.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import is_file, number, read_json, text_or_none
from ..reading.layout import inside
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects
from .recognise import has_keys
from .terminal_bench import keystrokes

_EXPECTED = "expected an object with `schema_version` and `steps` of `source` and `message`"
_MOST_PARTS = 100
"""Files that a trajectory goes on in."""
_MAX_REWARD = 1_000
"""Bytes of a reward.txt: one number."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file; nothing for a part of another trajectory that stands beside it
    (`trajectory.cont-1.json`)."""
    whole = path.with_name(f"{path.name.partition('.')[0]}.json")
    if whole.name != path.name and is_file(whole):
        return
    data = as_object(read_json(path))
    steps = as_objects(data.get("steps"))
    if not any(step.get("source") in ("agent", "user", "system") for step in steps):
        raise InputError("is no ATIF trajectory", _EXPECTED, path)
    agent, metrics = as_object(data.get("agent")), as_object(data.get("final_metrics"))
    draft = Draft(
        as_id(data.get("session_id")) or path.stem, "atif", agent=text_or_none(agent.get("name"))
    )
    draft.model = text_or_none(agent.get("model_name"))
    draft.origin["schema_version"] = data.get("schema_version")
    _trial(draft, path)
    for step in (*steps, *_continued(draft, data, path)):
        _step(draft, step)
    draft.add_totals(cost_usd=metrics.get("total_cost_usd"))
    if not any("input_tokens" in event for event in draft.events()):
        sent, received = metrics.get("total_prompt_tokens"), metrics.get("total_completion_tokens")
        draft.add_totals(prompt_tokens=sent or None, completion_tokens=received or None)
    draft.add_outcomes(metrics.get("extra"), "final_metrics.extra")
    if value := data.get("subagent_trajectories"):
        draft.lost["trajectories of sub-agents"] += len(value) if isinstance(value, list) else 1
    yield draft


def _continued(draft: Draft, data: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The steps of the files that a trajectory goes on in, which lie beside it."""
    seen = {path.name}
    while name := text_or_none(data.get("continued_trajectory_ref")):
        part = path.parent / Path(name).name
        if (
            part.name in seen
            or len(seen) > _MOST_PARTS
            or not is_file(part)
            or not inside(path.parent, part)
        ):
            draft.lost["continuations"] += 1
            return
        seen.add(part.name)
        data = as_object(read_json(part))
        yield from as_objects(data.get("steps"))


def _step(draft: Draft, step: dict[str, Any]) -> None:
    since, message = draft.elapsed(step.get("timestamp")), step.get("message")
    if step.get("source") == "agent":
        calls = _calls(step)
        used = as_object(step.get("metrics"))
        draft.model = draft.model or text_or_none(step.get("model_name"))
        draft.assistant(
            message,
            calls,
            reasoning=text_or_none(step.get("reasoning_content")),
            ts=since,
            input_tokens=used.get("prompt_tokens"),
            output_tokens=used.get("completion_tokens"),
        )
    else:
        calls = []
        (draft.system if step.get("source") == "system" else draft.user)(message)
    for result in as_objects(as_object(step.get("observation")).get("results")):
        call_id = as_id(result.get("source_call_id"))
        if result.get("subagent_trajectory_ref"):
            draft.lost["trajectories of sub-agents"] += 1
        if result.get("content") is None:
            continue
        if calls:
            draft.result(call_id, result.get("content"))
        else:
            draft.user(result.get("content"))


def _calls(step: dict[str, Any]) -> list[Call]:
    calls = [parse_call(call) for call in as_objects(step.get("tool_calls"))]
    results = as_objects(as_object(step.get("observation")).get("results"))
    if len(results) != 1 or results[0].get("source_call_id") or results[0].get("content") is None:
        return calls
    typed = [as_object(call.arguments).get("keystrokes") for call in calls]
    if len(calls) > 1 and all(isinstance(keys, str) for keys in typed):
        return [Call(calls[0].name, {"keystrokes": "".join(map(str, typed))}, calls[0].id)]
    if not calls and (keys := keystrokes(content_text(step.get("message")))):
        return [Call("terminal", {"keystrokes": keys}, f"step-{as_id(step.get('step_id'))}")]
    return calls


def _trial(draft: Draft, path: Path) -> None:
    """What stands beside the trajectory: `<trial>/agent/trajectory.json`, or the trial's folder
    itself."""
    for folder in (path.parent.parent, path.parent):
        beside = folder / "result.json"
        if is_file(beside) and inside(folder, beside):
            try:
                result = as_object(read_json(beside))
            except InputError as error:
                draft.lost[f"unreadable result.json ({error.message})"] += 1
                continue
            draft.name = text_or_none(result.get("trial_name")) or draft.name
            draft.task = text_or_none(result.get("task_name"))
            draft.add_outcomes(
                as_object(result.get("verifier_result")).get("rewards"),
                "result.json verifier_result.rewards",
            )
            draft.add_outcomes(
                as_object(result.get("exception_info")).get("exception_type"),
                "result.json",
                "exception_type",
            )
            return
        reward = folder / "verifier" / "reward.txt"
        if is_file(reward) and inside(folder, reward) and reward.stat().st_size <= _MAX_REWARD:
            draft.add_outcomes(
                number(reward.read_text("utf-8", "replace").strip()),
                "verifier/reward.txt",
                "reward",
            )
            return


IMPORTER = Importer(
    read, (".json",), has_keys("schema_version steps.source", "steps.step_id steps.source")
)
