"""Terminal-Bench trials: `results.json` beside `agent-logs/episode-N/`, as Terminus logs them.

Each episode has the prompt (`prompt.txt`: the screen that the agent saw) and the reply
(`response.txt`: JSON with the keystrokes, kept as it is). The keystrokes of a reply are one call of
`terminal`, and the next prompt is its result. What the tests found (`is_resolved`, `failure_mode`,
`parser_results`) becomes outcomes. Source: terminal-bench `harness/models.py`,
`agents/terminus_1.py`, `agents/terminus_2/terminus_2.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import decode, loads, read_bytes, read_json, text_or_none
from ..reading.layout import file_in, inside
from . import Importer
from .draft import Call, Draft
from .fields import as_object, as_objects
from .recognise import has_keys

_EXPECTED = "expected a trial's results.json: `trial_name`, `task_id`, `is_resolved`"
_LOG_FOLDERS = ("agent-logs", "agent_logs", "logs")
_MAX_EPISODES = 10_000


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the trial, or of every trial that the results of a benchmark run list."""
    data = as_object(read_json(path))
    trials = [] if "trial_name" in data else as_objects(data.get("results"))
    if not trials:
        if not text_or_none(data.get("trial_name")):
            raise InputError("is not a result of Terminal-Bench", _EXPECTED, path)
        yield _draft(data, path.parent, path)
    for trial in trials:
        # Names in the file must not lead out of its folder.
        task, name = Path(str(trial.get("task_id"))).name, Path(str(trial.get("trial_name"))).name
        folder = path.parent / task / name
        try:
            if file_in(folder, "results.json") is None:  # otherwise that file is the run
                yield _draft(trial, folder, path)
        except InputError as error:
            yield error


def _draft(trial: dict[str, Any], folder: Path, path: Path) -> Draft:
    draft = Draft(
        text_or_none(trial.get("trial_name")) or folder.name,
        "terminal-bench",
        task=text_or_none(trial.get("task_id")),
    )
    for key in ("is_resolved", "failure_mode"):
        draft.add_outcomes(trial.get(key), "results.json", key)
    draft.add_outcomes(trial.get("parser_results"), "results.json", "tests")
    draft.add_totals(
        input_tokens=trial.get("total_input_tokens"),
        output_tokens=trial.get("total_output_tokens"),
    )
    for key in ("agent_started_at", "agent_ended_at"):
        draft.elapsed(trial.get(key))
    instruction = text_or_none(trial.get("instruction"))
    _add_episodes(draft, _episodes_folder(draft, folder, path), path.parent, instruction)
    return draft


def _episodes_folder(draft: Draft, folder: Path, path: Path) -> Path:
    for name in _LOG_FOLDERS:
        if _is_episode(folder / name / "episode-0"):
            return folder / name
    raise InputError(
        f"{draft.name}: holds no episodes",
        "only agents that log them (Terminus) can be read",
        path,
    )


def _add_episodes(draft: Draft, folder: Path, top: Path, instruction: str | None) -> None:
    """Add the episodes; `instruction` stands for the first prompt if that is missing."""
    has_open_call = False
    for number in range(_MAX_EPISODES):
        episode = folder / f"episode-{number}"
        if not _is_episode(episode):
            break
        prompt = _text(episode, "prompt.txt", top)
        if not prompt and number == 0:
            prompt = instruction
        if has_open_call:
            draft.result(None, prompt or "")
        else:
            draft.user(prompt)
        reply = _text(episode, "response.txt", top)
        keys = keystrokes(reply or "")
        if reply is not None:
            calls = [Call("terminal", {"command": keys}, f"episode-{number}")] if keys else []
            draft.assistant(reply, calls)
        has_open_call = bool(keys)


def _is_episode(folder: Path) -> bool:
    return any(file_in(folder, name) is not None for name in ("prompt.txt", "response.txt"))


def _text(folder: Path, name: str, top: Path) -> str | None:
    """The file's text; None without one, or if a link leads out of the folder `top`."""
    path = file_in(folder, name)
    if path is None or not inside(top, path):
        return None
    return decode(read_bytes(path), path)


def keystrokes(reply: str) -> str:
    """The keys that a reply types, if it is JSON with `commands`; else ""."""
    start, end = reply.find("{"), reply.rfind("}")
    if not 0 <= start < end:
        return ""
    try:
        value = loads(reply[start : end + 1])
    except ValueError:
        return ""
    commands = as_objects(as_object(value).get("commands"))
    keys = (command.get("keystrokes") for command in commands)
    return "".join(text for text in keys if isinstance(text, str))


IMPORTER = Importer(
    read,
    ("results.json",),
    has_keys("trial_name task_id is_resolved", "results.trial_name results.is_resolved"),
)
