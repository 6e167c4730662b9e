"""Where things are: conversations in a tree, and the side files, plan and outputs around one conversation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import InputError
from .models import OutputFile, Outputs

CONVERSATION_NAMES = ("conversation.json", "messages.json")
_OUTPUT_NAMES = ("agents_outputs", "agent_outputs")
_PLAN_FOLDERS = ("outputs/plan", "plan", "workspace/plan", "outputs", "process/plan", "process", "workspace", "")
_OUTPUT_FOLDERS = ("outputs", "", "workspace", "outputs/workspace", "process")
_SKIPPED = {*_OUTPUT_NAMES, "node_modules", "__pycache__"}
_GENERIC = ("run", "repeat", "rep", "trial", "seed", "attempt", "r", "")
_MAX_OUTPUT_FILES = 200_000


def find_conversations(path: Path) -> Iterator[Path]:
    """The conversation file itself, or every one below a folder, in sorted order; messages.json only without its alias.

    Raises InputError when `path` does not exist or a folder holds none. Hidden folders and outputs are not searched.
    """
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InputError("no such file or folder", "give a conversation.json, a run folder, or a folder of runs", path)
    found = False
    for folder, subfolders, files in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".") and name not in _SKIPPED)
        name = next((name for name in CONVERSATION_NAMES if name in files), None)
        if name is not None:
            found = True
            yield Path(folder) / name
    if not found:
        raise InputError("holds no conversation.json at any depth", "a run is <run>/process/conversation.json", path)


def run_folder(conversation: Path) -> Path:
    """The run's folder: above `process/` when the file lies in one, else the file's own folder."""
    folder = conversation.absolute().parent
    return folder.parent if folder.name == "process" else folder


def run_id(conversation: Path) -> str:
    """The run folder's name; with its parents' names in front while it is only a number or "run_3"; the stem for odd names."""
    if conversation.name not in CONVERSATION_NAMES:
        return conversation.name.removesuffix(".json")
    folder = run_folder(conversation)
    parts = [folder.name]
    while parts[0].rstrip("0123456789").rstrip("_- .").lower() in _GENERIC and folder.parent.name:
        folder = folder.parent
        parts.insert(0, folder.name)
    return "/".join(parts)


def side_file(folder: Path, *names: str) -> Path | None:
    """The first of these files found in the run folder or its process/ folder."""
    for name in names:
        for base in (folder / "process", folder):
            candidate = base / name
            if candidate.is_file():
                return candidate
    return None


def find_plan(folder: Path, name: str) -> Path | None:
    """plan.md or plan.png in any of the places where runs keep them."""
    for place in _PLAN_FOLDERS:
        candidate = folder / place / name
        if candidate.is_file():
            return candidate
    return None


def find_outputs(folder: Path) -> Outputs:
    """Files under agents_outputs/ (or agent_outputs/), by case; links that leave the folder are not followed."""
    for place in _OUTPUT_FOLDERS:
        for name in _OUTPUT_NAMES:
            root = folder / place / name
            if root.is_dir():
                return Outputs(root=root, files=tuple(_list_outputs(root)))
    return Outputs()


def _list_outputs(root: Path) -> Iterator[OutputFile]:
    count = 0
    for folder, subfolders, files in os.walk(root):
        subfolders.sort()
        for name in sorted(files):
            path = Path(folder) / name
            relative = path.relative_to(root).parts
            try:
                size = path.stat().st_size
            except OSError:
                continue
            count += 1
            if count > _MAX_OUTPUT_FILES:
                return
            case = relative[0] if len(relative) > 1 else None
            yield OutputFile(case=case, name="/".join(relative[1:] if case else relative), path=path, size=size)
