"""Saves drafts as run folders: safe names, complete files, nothing overwritten without `force`."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from ...atomic_files import atomic_write, write_errors_named
from ...errors import InputError
from ...version import __version__
from ..reading.layout import PARTS
from .draft import Draft

_MAX_NAME_CHARS = 100
_MAX_NAME_BYTES = 200
_SUMMARY_KEYS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cost_usd": "cost_usd",
}
"""Totals of a draft as the harness's agent_summary.json names them."""


class FolderNames:
    """Folder names for run ids, all different, also on file systems that ignore case."""

    def __init__(self) -> None:
        self._assigned: set[str] = set()
        self._numbers: dict[str, int] = {}
        """The last number given by base name."""
        self._folders: dict[str, str] = {}
        """The first folder of each run id."""

    def assign(self, run_id: str, part_of: str | None = None) -> str:
        """The id as a folder name, with "-2", "-3" ... if this import has used it before.

        The part of another agent lies in the folder `parts` of its run, where a search for runs
        does not find it as a run beside it.
        """
        base = safe_name(run_id)
        if part_of:
            base = f"{self._folders.get(part_of, safe_name(part_of))}/{PARTS}/{base}"
        key = base.casefold()
        # Each base goes on from its last number: an import may hold thousands of runs of one id.
        name, number = base, self._numbers.get(key, 1)
        while name.casefold() in self._assigned:
            number += 1
            name = f"{base}-{number}"
        self._numbers[key] = number
        self._assigned.add(name.casefold())
        self._folders.setdefault(run_id, name)
        return name


def safe_name(run_id: str) -> str:
    """The letters, digits, `.`, `_` and `-` of an id; anything else becomes one `-`.

    The name is never hidden, never empty and at most 200 bytes long.
    """
    text = unicodedata.normalize("NFC", run_id[:1000])
    words = "".join(char if char.isalnum() or char in "._-" else " " for char in text).split()
    name = "-".join(words).strip(".-")[:_MAX_NAME_CHARS]
    while len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        name = name[:-1]
    return name.rstrip(".-") or "run"


def conversation(draft: Draft, source: Path) -> dict[str, Any]:
    """The draft in conversation.json's object shape; what the source does not say is null.

    Raises InputError if it holds no assistant message: there is nothing to judge.
    """
    if not draft.turns:
        raise InputError(
            f"{draft.name[:80]}: holds no assistant message", "there is nothing to judge", source
        )
    if draft.n_empty_turns == draft.turns:
        raise InputError(
            f"{draft.name[:80]}: none of its {draft.turns} turns holds text or a call",
            "its messages may have a shape of their own: name the format, or convert it",
            source,
        )
    if draft.n_unread_calls and not draft.n_calls:
        raise InputError(
            f"{draft.name[:80]}: none of its {draft.n_unread_calls} calls can be read",
            "expected calls with a name and arguments; is it another format?",
            source,
        )
    value: dict[str, Any] = _identity(draft)
    if draft.repeat is not None:
        value["repeat_idx"] = draft.repeat
    if draft.track is not None:
        value["track"] = draft.track
    if draft.outcomes:
        value["outcomes"] = {name: outcome.model_dump() for name, outcome in draft.outcomes.items()}
    if draft.task_outcome is not None:
        value["task_outcome"] = draft.task_outcome
    value["system_prompt"] = draft.system_prompt
    value["messages"] = draft.messages
    value["imported"] = {
        "format": draft.format,
        "file": source.name,
        "ambjudge": __version__,
        **({"part_of": draft.part_of} if draft.part_of else {}),
        **({} if draft.has_tools or draft.n_calls else {"has_tools": False}),
        **_unknown_totals(draft),
        **draft.origin,
    }
    return value


def _unknown_totals(draft: Draft) -> dict[str, list[str]]:
    """Totals that the run's turns must not be summed to, as not all of them state their part."""
    totals = draft.run_totals()
    names = [name for name, total in totals.items() if total.basis == "unknown" and total.note]
    return {"unknown_totals": names} if names else {}


def _identity(draft: Draft) -> dict[str, Any]:
    return {"agent": draft.agent, "model": draft.model, "task": draft.task, "tier": draft.tier}


def save_run(draft: Draft, folder: Path, source: Path, force: bool) -> Path:
    """Write `folder`/process/ and return the path of its conversation.json, which is written last.

    Raises InputError if the folder exists and `force` is not given, or if it cannot be written.
    """
    value = conversation(draft, source)
    process = folder / "process"
    _check_free(process if _holds_only_parts(folder) else folder, force)
    if process.is_symlink():
        raise InputError("is a link", "remove it, or choose another --out", process)
    _write(process / "trace.jsonl", "".join(_dump(event) + "\n" for event in draft.events()))
    _write(process / "agent_summary.json", _summary(draft))
    return _write(process / "conversation.json", _dump(value, 1) + "\n")


def _summary(draft: Draft) -> str:
    """The text of agent_summary.json; "" if it would add nothing to conversation.json."""
    totals = {
        _SUMMARY_KEYS[name]: total.value
        for name, total in draft.run_totals().items()
        # The reader sums the tokens of the turns by itself.
        if total.value is not None and (total.basis == "stated" or name == "cost_usd")
    }
    if not totals and draft.submitted is None:
        return ""
    summary = {**_identity(draft), **totals}
    if draft.submitted is not None:
        summary["submitted"] = draft.submitted
    return _dump(summary) + "\n"


def _holds_only_parts(folder: Path) -> bool:
    """Whether only parts of this run were written so far, as their file may come first."""
    try:
        return [entry.name for entry in folder.iterdir()] == [PARTS] and not folder.is_symlink()
    except OSError:
        return False


def save_file(value: dict[str, Any], path: Path, force: bool) -> Path:
    """Write one JSON file; InputError as in `save_run`."""
    _check_free(path, force)
    return _write(path, _dump(value, 1) + "\n")


def _check_free(path: Path, force: bool) -> None:
    if path.is_symlink():
        raise InputError("is a link", "remove it, or choose another --out", path)
    if path.exists() and not force:
        raise InputError("exists already", "--force overwrites it", path)


def _dump(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _write(path: Path, text: str) -> Path:
    """Put the complete text in place at once; without text, remove a file of an earlier import."""
    if not text or path.is_symlink():  # no link is followed
        with write_errors_named(path):
            path.unlink(missing_ok=True)
    if text:
        with atomic_write(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    return path
