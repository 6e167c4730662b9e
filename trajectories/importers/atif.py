"""ATIF trajectories (Agent Trajectory Interchange Format), as Harbor writes them for every agent.

A step of the agent is a turn. The results in its observation answer its calls by
`source_call_id`, else in order. Terminus types what its reply holds and gets one screen as the
result: that is one call, whether the trajectory lists the keystrokes or has them in the reply only.
A trajectory that was cut when the agent's context was full goes on in the files that it names.

Beside a trial's `agent/trajectory.json` are `result.json` (task, rewards, exception) or
`verifier/reward.txt`, which become outcomes. Source: Harbor docs/rfcs/0001-trajectory-format.md
(ATIF v1.0 to v1.7), `harbor/models/trial/result.py`, tests/golden.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import is_file, number, read_json, text_or_none
from ..reading.layout import inside
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects
from .recognise import has_keys
from .terminal_bench import keystrokes

_EXPECTED = "expected an object with `schema_version` and `steps` of `source` and `message`"
_MAX_CONTINUATIONS = 100
"""Files that a trajectory goes on in."""
_MAX_REWARD_BYTES = 1_000
"""Size of a reward.txt, which holds one number."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file; none for a continuation that lies beside its trajectory.

    `trajectory.cont-1.json` continues `trajectory.json`.
    """
    beginning = path.with_name(f"{path.name.partition('.')[0]}.json")
    if beginning.name != path.name and is_file(beginning):
        return
    data = as_object(read_json(path))
    steps = as_objects(data.get("steps"))
    if not any(step.get("source") in ("agent", "user", "system") for step in steps):
        raise InputError("is not an ATIF trajectory", _EXPECTED, path)
    agent = as_object(data.get("agent"))
    draft = Draft(
        as_id(data.get("session_id")) or path.stem,
        "atif",
        agent=text_or_none(agent.get("name")),
        model=text_or_none(agent.get("model_name")),
    )
    draft.origin["schema_version"] = data.get("schema_version")
    _add_trial(draft, path)
    for step in (*steps, *_continued_steps(draft, data, path)):
        _add_step(draft, step)
    _add_metrics(draft, as_object(data.get("final_metrics")))
    subagents = data.get("subagent_trajectories")
    if subagents:
        n_subagents = len(subagents) if isinstance(subagents, list) else 1
        draft.lost["trajectories of sub-agents"] += n_subagents
    yield draft


def _add_metrics(draft: Draft, metrics: dict[str, Any]) -> None:
    draft.add_totals(cost_usd=metrics.get("total_cost_usd"))
    if not any("input_tokens" in event for event in draft.events()):
        draft.add_totals(
            prompt_tokens=metrics.get("total_prompt_tokens") or None,
            completion_tokens=metrics.get("total_completion_tokens") or None,
        )
    draft.add_outcomes(metrics.get("extra"), "final_metrics.extra")


def _continued_steps(draft: Draft, data: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The steps of the files that a trajectory goes on in; they lie beside it."""
    names_read = {path.name}
    while name := text_or_none(data.get("continued_trajectory_ref")):
        part = path.parent / Path(name).name
        is_readable = is_file(part) and inside(path.parent, part)
        if part.name in names_read or len(names_read) > _MAX_CONTINUATIONS or not is_readable:
            draft.lost["continuations"] += 1
            return
        names_read.add(part.name)
        data = as_object(read_json(part))
        yield from as_objects(data.get("steps"))


def _add_step(draft: Draft, step: dict[str, Any]) -> None:
    ts, message = draft.elapsed(step.get("timestamp")), step.get("message")
    calls: list[Call] = []
    if step.get("source") == "agent":
        calls = _calls(step)
        metrics = as_object(step.get("metrics"))
        draft.model = draft.model or text_or_none(step.get("model_name"))
        draft.assistant(
            message,
            calls,
            reasoning=text_or_none(step.get("reasoning_content")),
            ts=ts,
            input_tokens=metrics.get("prompt_tokens"),
            output_tokens=metrics.get("completion_tokens"),
        )
    elif step.get("source") == "system":
        draft.system(message)
    else:
        draft.user(message)
    for result in _results(step):
        if result.get("subagent_trajectory_ref"):
            draft.lost["trajectories of sub-agents"] += 1
        content = result.get("content")
        if content is None:
            continue
        if calls:
            extra = as_object(result.get("extra"))
            kind = stated_kind(result) or stated_kind(extra) or stated_kind(_step_extra(step))
            draft.result(
                as_id(result.get("source_call_id")),
                content,
                exit_code=extra.get("exit_code"),
                kind=kind,
            )
        else:
            draft.user(content)


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    return as_objects(as_object(step.get("observation")).get("results"))


def _step_extra(step: dict[str, Any]) -> dict[str, Any]:
    """What a converter noted of a step, which counts for its only result."""
    return as_object(step.get("extra")) if len(_results(step)) == 1 else {}


def _calls(step: dict[str, Any]) -> list[Call]:
    """The calls of a step; keystrokes that one screen answers are one call."""
    calls = [parse_call(call) for call in as_objects(step.get("tool_calls"))]
    results = _results(step)
    if len(results) != 1 or results[0].get("source_call_id") or results[0].get("content") is None:
        return calls
    if not calls:
        keys = keystrokes(content_text(step.get("message")))
        call_id = f"step-{as_id(step.get('step_id'))}"
        return [Call("terminal", {"keystrokes": keys}, call_id)] if keys else []
    typed = [as_object(call.arguments).get("keystrokes") for call in calls]
    if len(calls) > 1 and all(isinstance(keys, str) for keys in typed):
        return [Call(calls[0].name, {"keystrokes": "".join(map(str, typed))}, calls[0].id)]
    return calls


def _add_trial(draft: Draft, path: Path) -> None:
    """Add what lies beside the trajectory: in `<trial>` of `<trial>/agent/`, or in its folder."""
    for folder in (path.parent.parent, path.parent):
        result_file = folder / "result.json"
        if is_file(result_file) and inside(folder, result_file):
            try:
                result = as_object(read_json(result_file))
            except InputError as error:
                draft.lost[f"unreadable result.json ({error.message})"] += 1
                continue
            _add_trial_result(draft, result)
            return
        reward_file = folder / "verifier" / "reward.txt"
        is_readable = is_file(reward_file) and inside(folder, reward_file)
        if is_readable and reward_file.stat().st_size <= _MAX_REWARD_BYTES:
            reward = number(reward_file.read_text("utf-8", "replace").strip())
            draft.add_outcomes(reward, "verifier/reward.txt", "reward")
            return


def _add_trial_result(draft: Draft, result: dict[str, Any]) -> None:
    draft.name = text_or_none(result.get("trial_name")) or draft.name
    draft.task = text_or_none(result.get("task_name"))
    rewards = as_object(result.get("verifier_result")).get("rewards")
    draft.add_outcomes(rewards, "result.json verifier_result.rewards")
    exception = as_object(result.get("exception_info")).get("exception_type")
    draft.add_outcomes(exception, "result.json", "exception_type")


IMPORTER = Importer(
    read, (".json",), has_keys("schema_version steps.source", "steps.step_id steps.source")
)
