"""Terminal-Bench trials: `results.json` beside `agent-logs/episode-N/`, as Terminus logs its
replies and screens.

Each episode has the prompt (`prompt.txt`: the screen that the agent saw) and the reply
(`response.txt`: JSON with the keystrokes, kept as it is). The keystrokes of a reply are one call of
`terminal`, answered by the next prompt. What the tests found (`is_resolved`, `failure_mode`,
`parser_results`) becomes outcomes. Source: terminal-bench `harness/models.py`,
`agents/terminus_1.py`, `agents/terminus_2/terminus_2.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import decode, is_file, loads, read_bytes, read_json, text_or_none
from ..reading.layout import inside
from . import Importer
from .draft import Call, Draft
from .fields import as_object, as_objects
from .recognise import has_keys

_EXPECTED = "expected a trial's results.json: `trial_name`, `task_id`, `is_resolved`"
_EPISODES = ("agent-logs", "agent_logs", "logs")
_MOST = 10_000


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the trial, or of every trial that the results of a whole run list."""
    data = as_object(read_json(path))
    trials = as_objects(data.get("results")) if "trial_name" not in data else []
    if not trials and not text_or_none(data.get("trial_name")):
        raise InputError("is no result of Terminal-Bench", _EXPECTED, path)
    if not trials:
        yield _draft(data, path.parent, path)
    for trial in trials:
        folder = (
            path.parent
            / Path(str(trial.get("task_id"))).name
            / Path(str(trial.get("trial_name"))).name
        )
        try:
            if not is_file(folder / "results.json"):  # else it is a run of its own
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
    sent, received = trial.get("total_input_tokens"), trial.get("total_output_tokens")
    draft.add_totals(prompt_tokens=sent or None, completion_tokens=received or None)
    for key in ("agent_started_at", "agent_ended_at"):
        draft.elapsed(trial.get(key))
    begins = ("episode-0/prompt.txt", "episode-0/response.txt")
    found = (
        folder / name
        for name in _EPISODES
        if any(is_file(folder / name / begin) for begin in begins)
    )
    episodes = next(found, None)
    if episodes is None:
        raise InputError(
            f"{draft.name}: holds no episodes",
            "only agents that log them (Terminus) can be read",
            path,
        )
    waiting = False
    for number_of in range(_MOST):
        episode = episodes / f"episode-{number_of}"
        if not is_file(episode / "response.txt") and not is_file(episode / "prompt.txt"):
            break
        prompt = _text(episode / "prompt.txt", path.parent) or (
            text_or_none(trial.get("instruction")) if number_of == 0 else None
        )
        if waiting:
            draft.result(None, prompt or "")
        else:
            draft.user(prompt)
        said = _text(episode / "response.txt", path.parent)
        keys = keystrokes(said or "")
        if said is not None:
            draft.assistant(
                said, [Call("terminal", {"command": keys}, f"episode-{number_of}")] if keys else []
            )
        waiting = said is not None and bool(keys)
    return draft


def _text(path: Path, top: Path) -> str | None:
    """The file's text; None without one, and where a name or a link in the log leads out of its
    folder."""
    return decode(read_bytes(path), path) if is_file(path) and inside(top, path) else None


def keystrokes(reply: str) -> str:
    """What a reply types, where it is JSON with `commands`; nothing else."""
    start, end = reply.find("{"), reply.rfind("}")
    try:
        value = loads(reply[start : end + 1]) if 0 <= start < end else None
    except ValueError:
        return ""
    commands = as_objects(as_object(value).get("commands"))
    return "".join(
        typed for command in commands if isinstance(typed := command.get("keystrokes"), str)
    )


IMPORTER = Importer(
    read,
    ("results.json",),
    has_keys("trial_name task_id is_resolved", "results.trial_name results.is_resolved"),
)
