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

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import is_file, number, read_bytes, read_json, text_or_none
from ..reading.layout import inside
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects
from .files import source_name
from .recognise import has_keys
from .terminal_bench import keystrokes
from .usage import usage_tokens

_EXPECTED = "expected an object with `schema_version` and `steps` of `source` and `message`"
_SOURCES = ("agent", "user", "system")
_NAMED_FILE = re.compile(r'"(?:continued_trajectory_ref|trajectory_path)"\s*:\s*"([^"\\]{1,400})"')
_MAX_CONTINUATIONS = 100
"""Files that a trajectory goes on in."""
_MAX_REWARD_BYTES = 1_000
"""Size of a reward.txt, which holds one number."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file and those of its sub-agents; none for a file that another one names.

    A file that goes on in `trajectory.cont-1.json` says so in `continued_trajectory_ref`.
    """
    if path.name in _named_files(path.parent, path.parent.stat().st_mtime_ns):
        return
    yield from _runs(as_object(read_json(path)), path, source_name(path), None)


def _runs(
    data: dict[str, Any], path: Path, name: str, part_of: str | None
) -> Iterator[Draft | InputError]:
    """The run of a trajectory and of those that it names."""
    steps = as_objects(data.get("steps"))
    if not any(step.get("source") in _SOURCES for step in steps):
        raise InputError("is not an ATIF trajectory", _EXPECTED, path)
    agent = as_object(data.get("agent"))
    draft = Draft(
        as_id(data.get("session_id")) or name,
        "atif",
        part_of=part_of,
        agent=text_or_none(agent.get("name")),
        model=text_or_none(agent.get("model_name")),
        has_tools=bool(agent.get("tool_definitions")),
    )
    draft.origin["schema_version"] = data.get("schema_version")
    if agent.get("tool_definitions"):
        draft.lost["list of tool definitions"] += 1
    if part_of is None:
        _add_trial(draft, path)
    for step in steps:
        _add_step(draft, step)
    _add_metrics(draft, as_object(data.get("final_metrics")))
    parts = list(_continuations(draft, data, path))
    for part in parts:
        for step in as_objects(part.get("steps")):
            if step.get("is_copied_context") is not True:  # what was copied is in the run already
                _add_step(draft, step)
        # Totals go on from part to part.
        _add_metrics(draft, as_object(part.get("final_metrics")))
    yield draft
    yield from _sub_agents(draft, [data, *parts], path)


def _sub_agents(
    draft: Draft, parts: list[dict[str, Any]], path: Path
) -> Iterator[Draft | InputError]:
    """The runs of sub-agents: those in the trajectory itself, then those in files beside it."""
    trajectories: list[dict[str, Any]] = []
    references: list[dict[str, Any]] = []
    for part in parts:
        trajectories += as_objects(part.get("subagent_trajectories"))
        references += _references(part)
    for position, trajectory in enumerate(trajectories, 1):
        yield from _sub_agent(draft, trajectory, path, position)
    embedded = {as_id(trajectory.get("trajectory_id")) for trajectory in trajectories}
    for position, reference in enumerate(references, len(trajectories) + 1):
        file = _beside(path, reference.get("trajectory_path"))
        if file is not None:
            draft.files_beside += (file,)
            yield from _sub_agent(draft, as_object(read_json(file)), file, position)
        elif as_id(reference.get("trajectory_id")) not in embedded - {None}:
            draft.lost["trajectories of sub-agents"] += 1


def _sub_agent(
    draft: Draft, data: dict[str, Any], path: Path, position: int
) -> Iterator[Draft | InputError]:
    name = as_id(data.get("trajectory_id")) or f"{draft.name}-agent-{position}"
    try:
        yield from _runs({**data, "session_id": name}, path, name, draft.name)
    except InputError as error:
        yield error


def _references(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The sub-agents that the results of a trajectory refer to."""
    references: list[dict[str, Any]] = []
    for step in as_objects(data.get("steps")):
        for result in _results(step):
            value = result.get("subagent_trajectory_ref")
            references += as_objects(value if isinstance(value, list) else [value])
    return references


def _beside(path: Path, name: Any) -> Path | None:
    """The file of this name beside a trajectory; None without one or outside the folder."""
    if not text_or_none(name):
        return None
    file = path.parent / Path(name).name
    is_readable = file != path and is_file(file) and inside(path.parent, file)
    return file if is_readable else None


@lru_cache(maxsize=4)
def _named_files(folder: Path, _modified: int) -> frozenset[str]:
    """The files of a folder that other ones name as their continuation or as a sub-agent's."""
    names: dict[str, set[str]] = {}
    for file in sorted(folder.glob("*.json")):
        try:
            text = read_bytes(file).decode("utf-8", "replace")
        except InputError:
            continue
        names[file.name] = {Path(name).name for name in _NAMED_FILE.findall(text)} - {file.name}
    named = set().union(*names.values())
    # Files that only name each other begin runs all the same.
    reached = [name for name in names if name not in named]
    parts: set[str] = set()
    while reached:
        for name in names.get(reached.pop(), ()):
            if name not in parts:
                parts.add(name)
                reached.append(name)
    return frozenset(parts)


def _add_metrics(draft: Draft, metrics: dict[str, Any]) -> None:
    draft.add_totals(
        cost_usd=metrics.get("total_cost_usd"),
        input_tokens=metrics.get("total_prompt_tokens"),
        output_tokens=metrics.get("total_completion_tokens"),
    )
    draft.add_outcomes(metrics.get("extra"), "final_metrics.extra")


def _continuations(draft: Draft, data: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The trajectories of the files that a trajectory goes on in; they lie beside it."""
    names_read = {path.name}
    while name := text_or_none(data.get("continued_trajectory_ref")):
        part = _beside(path, name)
        if part is None or part.name in names_read or len(names_read) > _MAX_CONTINUATIONS:
            draft.lost["continuations"] += 1
            return
        draft.files_beside += (part,)
        names_read.add(part.name)
        data = as_object(read_json(part))
        yield data


def _add_step(draft: Draft, step: dict[str, Any]) -> None:
    source, message = step.get("source"), step.get("message")
    ts = draft.elapsed(step.get("timestamp"))
    if step.get("is_copied_context") is True and source == "agent":
        draft.context("assistant", message, len(as_objects(step.get("tool_calls"))))
        return
    calls: list[Call] = []
    if source == "agent":
        calls = _calls(step)
        metrics = as_object(step.get("metrics"))
        draft.model = draft.model or text_or_none(step.get("model_name"))
        draft.assistant(
            message,
            calls,
            reasoning=text_or_none(step.get("reasoning_content")),
            ts=ts,
            tokens=usage_tokens(metrics),
            cost_usd=metrics.get("cost_usd"),
        )
    elif source == "system":
        draft.system(message)
    elif source == "user":
        draft.user(message, ts=ts)
    else:
        draft.lost["steps without a known source"] += 1
        return
    for result in _results(step):
        _add_result(draft, result, step, bool(calls), ts)


def _add_result(
    draft: Draft, result: dict[str, Any], step: dict[str, Any], has_calls: bool, ts: float | None
) -> None:
    content = result.get("content")
    if content is None and not result.get("source_call_id"):
        return
    if not has_calls:
        draft.user(content)
        return
    extra = as_object(result.get("extra"))
    draft.result(
        as_id(result.get("source_call_id")),
        content,
        exit_code=extra.get("exit_code"),
        kind=stated_kind(result) or stated_kind(extra) or stated_kind(_step_extra(step)),
    )


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
            draft.files_beside += (result_file,)
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
