"""Folders of Harbor's trials: which files are one run, in which order, and how the trial ended.

A trial is one run. Of a task with steps, `steps/<step>/agent/` holds a trajectory for each step;
`result.json` names the steps in order, with rewards and exceptions for each. A step that resumes
the session of the one before begins with a copy of its trajectory. Beside `agent/` may be
`user-agent/`, the simulated user. Agents keep their own logs in `agent/`, too: where there is a
trajectory, those repeat it; where there is none, the importer of their format reads them, and the
trial's result is added. Source: Harbor 0.26 `models/trial/paths.py`, `models/trial/result.py`,
`trial/multi_step.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ..reading.json_bytes import is_file, number, read_bytes, read_json, text_or_none
from ..reading.layout import file_in
from .draft import Draft
from .fields import as_object, as_objects

TRAJECTORY = "trajectory.json"
_AGENT, _USER, _STEPS = "agent", "user-agent", "steps"
_RESULT = "result.json"
_RESULT_FIELDS = {"trial_name", "verifier_result", "agent_result", "step_results"}
"""Fields that tell a trial's result from other files of this name; it has one of them."""
_VERIFIER, _REWARDS = "verifier", ("reward.json", "reward.txt")
_MAX_DEPTH = 8
"""Folders between a log and the folder of its agent."""
_MAX_REWARD_BYTES = 1_000
"""Size of a reward.txt, which holds one number."""
_TOTALS = {
    "input_tokens": "n_input_tokens",
    "output_tokens": "n_output_tokens",
    "cost_usd": "cost_usd",
}
"""Totals of a draft as a trial's `agent_result` names them; input includes the cache."""


class Step(NamedTuple):
    """One step of a trial; the only one of a trial without steps has the name ""."""

    name: str
    folder: Path

    @property
    def trajectory(self) -> Path | None:
        """The file with what the agent did in this step."""
        return file_in(self.folder, f"{_AGENT}/{TRAJECTORY}")

    @property
    def is_run(self) -> bool:
        """Whether the folder holds a trajectory or what the verifier said."""
        rewards = (file_in(self.folder, f"{_VERIFIER}/{name}") for name in _REWARDS)
        return self.trajectory is not None or any(rewards)


class Trial(NamedTuple):
    """One trial."""

    folder: Path
    steps: tuple[Step, ...]
    """In the order in which they were run."""
    result: dict[str, Any]
    """The trial's result.json; empty without one."""
    result_file: Path | None
    lost: str
    """Why result.json could not be read; "" if it could."""

    @property
    def name(self) -> str | None:
        return text_or_none(self.result.get("trial_name"))

    @property
    def trajectories(self) -> tuple[Path, ...]:
        """The files with what the agent did, in order."""
        return tuple(step.trajectory for step in self.steps if step.trajectory is not None)

    @property
    def user_trajectory(self) -> Path | None:
        """The file with what the simulated user did."""
        return file_in(self.folder, f"{_USER}/{TRAJECTORY}")


def trial_of(path: Path) -> Trial | None:
    """The trial in whose folder a log of an agent lies, or whose result a file is."""
    agents = [p.parent for p in path.parents[:_MAX_DEPTH] if p.name in (_AGENT, _USER)]
    for folder in (*agents, path.parent):
        top = folder.parent.parent if folder.parent.name == _STEPS else folder
        try:
            trial = _trial(top, top.stat().st_mtime_ns)
        except OSError:
            continue
        if trial is not None:
            return trial
    return None


@lru_cache(maxsize=8)
def _trial(folder: Path, _modified: int) -> Trial | None:
    result_file = file_in(folder, _RESULT)
    result: dict[str, Any] = {}
    lost = ""
    if result_file is not None:
        try:
            result = as_object(read_json(result_file))
        except InputError as error:
            lost = f"unreadable result.json ({error.message})"
    if result_file is not None and not _RESULT_FIELDS & set(result):
        result, result_file = {}, None
    steps = tuple(_steps(folder, result))
    # Without a result, its folders tell a trial.
    if result_file is None and not any(step.is_run for step in steps):
        return None
    return Trial(folder, steps, result, result_file, lost)


def _steps(folder: Path, result: dict[str, Any]) -> Iterator[Step]:
    top = folder / _STEPS
    named = [text_or_none(step.get("step_name")) for step in as_objects(result.get("step_results"))]
    order = {name: position for position, name in enumerate(named) if name}
    try:
        folders = [entry for entry in top.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        folders = []
    for step in sorted(folders, key=lambda entry: (order.get(entry.name, len(order)), entry.name)):
        yield Step(step.name, step)
    # A step that was cut off has its files at the top.
    yield Step("", folder)


def is_other_record(path: Path) -> bool:
    """Whether a file is an agent's own log beside the trajectory that Harbor made of it."""
    agent_folder = next((p for p in path.parents[:_MAX_DEPTH] if p.name in (_AGENT, _USER)), None)
    if agent_folder is None or path.name.startswith("trajectory"):
        return False
    return file_in(agent_folder, TRAJECTORY) is not None


def add_trial(draft: Draft, path: Path) -> None:
    """Add the name, the task and the results of the trial in whose folder a log lies."""
    trial = trial_of(path)
    if trial is None:
        return
    draft.lost[trial.lost] += bool(trial.lost)
    if trial.result_file is not None:
        draft.files_beside += (trial.result_file,)
        draft.name = trial.name or draft.name
        draft.task = text_or_none(trial.result.get("task_name")) or draft.task
        draft.agent = draft.agent or _agent_name(trial.result)
        _add_results(draft, trial.result, "")
        _add_totals(draft, trial.result)
    for result in as_objects(trial.result.get("step_results")):
        _add_results(draft, result, f"steps.{text_or_none(result.get('step_name'))}.")
    if trial.result_file is None:
        if len(trial.trajectories) > 1:  # each step has a session of its own
            draft.name = trial.folder.name
        for step in trial.steps:
            _add_reward_files(draft, step)


def join_trial(draft: Draft, path: Path) -> None:
    """Add the trial to a run that was read from an agent's own log in the trial's folder."""
    if draft.part_of is None:
        add_trial(draft, path)
        return
    trial = trial_of(path)
    if trial is not None and trial.name is not None:
        draft.part_of = trial.name


def _agent_name(result: dict[str, Any]) -> str | None:
    return text_or_none(as_object(result.get("agent_info")).get("name"))


def _add_results(draft: Draft, result: dict[str, Any], prefix: str) -> None:
    """Add rewards and exceptions of a trial, or of one of its steps."""
    rewards = as_object(as_object(result.get("verifier_result")).get("rewards"))
    source = "result.json verifier_result.rewards"
    draft.add_outcomes({f"{prefix}{name}": value for name, value in rewards.items()}, source)
    exception = as_object(result.get("exception_info"))
    draft.add_outcomes(
        exception.get("exception_type"), "result.json exception_info", f"{prefix}exception_type"
    )
    draft.lost["messages of exceptions"] += bool(exception.get("exception_message"))


def _add_totals(draft: Draft, result: dict[str, Any]) -> None:
    """Add the trial's own totals where the trajectories state none, and name other differences."""
    contexts = [as_object(result.get("agent_result"))]
    contexts += [
        as_object(step.get("agent_result")) for step in as_objects(result.get("step_results"))
    ]
    for name, key in _TOTALS.items():
        numbers = [n for n in (number(context.get(key)) for context in contexts) if n is not None]
        if not numbers:
            continue
        total = sum(numbers)
        stated = draft.totals.get(name)
        if stated is None:
            draft.add_totals(**{name: total})
        elif round(stated - total, 6):
            draft.odd[f"other total of result.json ({key} {total:,.6g})"] += 1


def _add_reward_files(draft: Draft, step: Step) -> None:
    """Add what the verifier wrote about a step, for a trial that has no result."""
    prefix = f"steps.{step.name}." if step.name else ""
    rewards = file_in(step.folder, f"{_VERIFIER}/reward.json")
    if rewards is not None:
        try:
            values = as_object(read_json(rewards))
        except InputError as error:
            draft.lost[f"unreadable reward.json ({error.message})"] += 1
            return
        draft.files_beside += (rewards,)
        named = {f"{prefix}{name}": value for name, value in values.items()}
        draft.add_outcomes(named, "verifier/reward.json")
        return
    reward = file_in(step.folder, f"{_VERIFIER}/reward.txt")
    if reward is not None and reward.stat().st_size <= _MAX_REWARD_BYTES:
        value = number(read_bytes(reward).decode("utf-8", "replace").strip())
        draft.add_outcomes(value, "verifier/reward.txt", f"{prefix}reward")


def without_transcript(trial: Trial) -> str | None:
    """How a trial ended that left nothing of what its agent did; None if there may be a log."""
    if trial.trajectories or any(_has_files(step.folder / _AGENT) for step in trial.steps):
        return None
    results = [trial.result, *as_objects(trial.result.get("step_results"))]
    types = [
        text_or_none(as_object(result.get("exception_info")).get("exception_type"))
        for result in results
    ]
    return next((name for name in types if name), "no exception")


def _has_files(folder: Path) -> bool:
    try:
        return any(is_file(path) for path in folder.rglob("*"))
    except OSError:
        return False
