"""Where things are: conversations in a tree, and the side files, plan and outputs around one conversation."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from .models import OutputFile, Outputs
from .reading import is_file, whole_text

CONVERSATION_NAMES = ("conversation.json", "messages.json", "conversation.json.gz", "messages.json.gz")
"""In the order in which they are taken where a folder holds several."""
_OUTPUT_NAMES = ("agents_outputs", "agent_outputs")
_PLAN_FOLDERS = ("outputs/plan", "plan", "workspace/plan", "outputs", "process/plan", "process", "workspace", "")
_OUTPUT_FOLDERS = ("outputs", "", "workspace", "outputs/workspace", "process")
_SKIPPED = {*_OUTPUT_NAMES, "node_modules", "__pycache__"}
_GENERIC = ("run", "repeat", "rep", "trial", "seed", "attempt", "r", "")
_MAX_OUTPUT_FILES = 200_000
_MAX_OUTPUT_DEPTH = 16


def find_conversations(path: Path) -> Iterator[Path]:
    """The conversation file itself, or every one below a folder, in sorted order; messages.json only without its alias.

    Raises InputError when `path` does not exist or a folder holds none. Hidden folders and outputs are not searched;
    of a run with a process/ folder only that is, so that JSON files of its workspace are not taken for runs.
    """
    if is_file(path):
        yield path
        return
    if not _is_dir(path):
        raise InputError("no such file or folder", "give a conversation.json, a run folder, or a folder of runs", path)
    found = False
    pending = [os.fspath(path)]
    while pending:
        folder = pending.pop()
        subfolders, files = _listing(folder)
        if "process" in subfolders:
            record = _listing(os.path.join(folder, "process"))
            if not record.files.isdisjoint(CONVERSATION_NAMES):
                folder, (subfolders, files) = os.path.join(folder, "process"), record
        conversation = next((name for name in CONVERSATION_NAMES if name in files), None)
        if conversation is not None:
            found = True
            yield Path(folder, conversation)
        names = (name for name in subfolders if not name.startswith(".") and name not in _SKIPPED)
        pending += [os.path.join(folder, name) for name in sorted(names, reverse=True)]
    if not found:
        raise InputError("holds no conversation.json at any depth", "a run is <run>/process/conversation.json", path)


class _Listing(NamedTuple):
    """Names in a folder: subfolders that are no links, and whatever is no folder."""

    subfolders: set[str]
    files: set[str]


def _listing(folder: str) -> _Listing:
    """What a folder holds, told without asking about each entry; nothing when it cannot be read."""
    found = _Listing(set(), set())
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.subfolders.add(entry.name)
                elif not (entry.is_symlink() and _is_dir(Path(entry.path))):
                    found.files.add(entry.name)
    except OSError:
        pass
    return found


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def inside(folder: Path, path: Path) -> bool:
    """Whether a path, links followed, lies in a folder. A run's links must not lead a reader to other files."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links.
        return False


def run_folder(conversation: Path) -> Path:
    """The run's folder: above `process/` when the file lies in one, else the file's own folder."""
    folder = conversation.absolute().parent
    return folder.parent if folder.name == "process" else folder


def run_id(conversation: Path) -> str:
    """The run folder's name; with its parents' names in front while it is only a number or "run_3"; the stem for odd names."""
    if conversation.name not in CONVERSATION_NAMES:
        return whole_text(conversation.name.removesuffix(".gz").removesuffix(".json")) or "conversation"
    folder = run_folder(conversation)
    parts = [folder.name]
    while parts[0].rstrip("0123456789").rstrip("_- .").lower() in _GENERIC and folder.parent.name:
        folder = folder.parent
        parts.insert(0, folder.name)
    return whole_text("/".join(parts)) or "conversation"


def side_file(folder: Path, *names: str) -> Path | None:
    """The first of these files, plain or in gzip, in the run folder or its process/ folder; links that leave it are not followed."""
    for name in (form for plain in names for form in (plain, f"{plain}.gz")):
        for base in (folder / "process", folder):
            candidate = base / name
            if is_file(candidate) and inside(folder, candidate):
                return candidate
    return None


def find_plan(folder: Path, name: str, warnings: list[str] | None = None) -> Path | None:
    """plan.md or plan.png in any of the places where runs keep them; links that leave the run are not followed, and said."""
    for place in _PLAN_FOLDERS:
        candidate = folder / place / name
        if not is_file(candidate):
            continue
        if inside(folder, candidate):
            return candidate
        if warnings is not None:
            warnings.append(f"plan: {name} is a link that leaves the run; not followed")
    return None


def find_outputs(folder: Path) -> Outputs:
    """Files under agents_outputs/ (or agent_outputs/), by case; links that leave the run's folder are not followed."""
    for place in _OUTPUT_FOLDERS:
        for name in _OUTPUT_NAMES:
            root = folder / place / name
            if _is_dir(root) and inside(folder, root):
                return Outputs(root=root, files=tuple(_list_outputs(root, folder)))
    return Outputs()


def _list_outputs(root: Path, run: Path) -> Iterator[OutputFile]:
    """Regular files only: opening a pipe or a device of a hostile run would hang."""
    count = 0
    for folder, subfolders, files in os.walk(root, followlinks=True):
        here = Path(folder)
        deep = len(here.relative_to(root).parts) >= _MAX_OUTPUT_DEPTH
        subfolders[:] = sorted(name for name in subfolders if not deep and _may_enter(here / name, run))
        for name in sorted(files):
            path = here / name
            relative = path.relative_to(root).parts
            try:
                status = path.stat()
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or (path.is_symlink() and not inside(run, path)):
                continue
            case = whole_text(relative[0]) if len(relative) > 1 else None
            below = whole_text("/".join(relative[1:] if case else relative))
            yield OutputFile(case=case, name=below, path=path, size=status.st_size)
        count += len(files) + len(subfolders)
        if count > _MAX_OUTPUT_FILES:
            return


def _may_enter(folder: Path, run: Path) -> bool:
    """Not through a link that leaves the run or leads back to a folder around it."""
    if not folder.is_symlink():
        return True
    return inside(run, folder) and not inside(folder, folder.parent)
