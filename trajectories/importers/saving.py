"""Drafts to run folders: names that are safe to use, files that are whole or absent, nothing
overwritten unasked."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from ...atomic_files import cannot_be_written, whole
from ...errors import InputError
from ...version import __version__
from .draft import Draft

_MAX_NAME = 100
_MAX_BYTES = 200


class FolderNames:
    """Folder names for run ids, no two alike, also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def assign(self, wanted: str) -> str:
        """The id as a folder name; "-2", "-3" ... after it when it came before in this import."""
        base = safe_name(wanted)
        name, n = base, 1
        while name.casefold() in self._taken:
            n += 1
            name = f"{base}-{n}"
        self._taken.add(name.casefold())
        return name


def safe_name(wanted: str) -> str:
    """Letters, digits, `.`, `_` and `-` of an id, anything else as one `-`; never hidden, never
    empty, never long."""
    text = unicodedata.normalize("NFC", wanted[:1000])
    kept = "".join(char if char.isalnum() or char in "._-" else " " for char in text)
    name = "-".join(kept.split()).strip(".-")[:_MAX_NAME]
    while len(name.encode("utf-8", "replace")) > _MAX_BYTES:
        name = name[:-1]
    return name.rstrip(".-") or "run"


def conversation(draft: Draft, source: Path) -> dict[str, Any]:
    """The draft in conversation.json's object shape; what the source does not say is null.

    Raises InputError when it holds no assistant message, as there is nothing to judge.
    """
    if not draft.turns:
        raise InputError(
            f"{draft.name[:80]}: holds no assistant message", "nothing to judge in it", source
        )
    return {
        "agent": draft.agent,
        "model": draft.model,
        "task": draft.task,
        "tier": draft.tier,
        **({"repeat_idx": draft.repeat} if draft.repeat is not None else {}),
        **({"track": draft.track} if draft.track is not None else {}),
        **(
            {"outcomes": {name: told.model_dump() for name, told in draft.outcomes.items()}}
            if draft.outcomes
            else {}
        ),
        **({"task_outcome": draft.task_outcome} if draft.task_outcome is not None else {}),
        "system_prompt": draft.system_prompt,
        "messages": draft.messages,
        "imported": {
            "format": draft.format,
            "file": source.name,
            "ambjudge": __version__,
            **draft.origin,
        },
    }


def save_run(draft: Draft, folder: Path, source: Path, force: bool) -> Path:
    """Write `folder`/process/ and return the path of its conversation.json, which is written last.

    Raises InputError when the folder exists and `force` is not given, and when nothing can be
    written there.
    """
    value = conversation(draft, source)
    process = folder / "process"
    _check_free(folder, force)
    if process.is_symlink():
        raise InputError("is a link", "remove it, or choose another --out", process)
    _write(process / "trace.jsonl", "".join(_dump(line) + "\n" for line in draft.events()))
    summary = {
        "agent": draft.agent,
        "model": draft.model,
        "task": draft.task,
        "tier": draft.tier,
        **draft.totals,
    }
    summary |= {} if draft.submitted is None else {"submitted": draft.submitted}
    told = bool(draft.totals) or draft.submitted is not None
    _write(process / "agent_summary.json", _dump(summary) + "\n" if told else "")
    return _write(process / "conversation.json", _dump(value, 1) + "\n")


def save_file(value: dict[str, Any], path: Path, force: bool) -> Path:
    """Write one JSON file; InputError as for `save_run`."""
    _check_free(path, force)
    return _write(path, _dump(value, 1) + "\n")


def _check_free(path: Path, force: bool) -> None:
    if path.is_symlink():
        raise InputError("is a link", "remove it, or choose another --out", path)
    if path.exists() and not force:
        raise InputError("exists already", "--force writes over it", path)


def _dump(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _write(path: Path, text: str) -> Path:
    """Put the whole text in place at once; without one, remove what an earlier import left."""
    if not text or path.is_symlink():  # no link of an earlier import is followed
        with cannot_be_written(path):
            path.unlink(missing_ok=True)
    if text:
        with whole(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    return path
