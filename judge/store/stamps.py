"""Stamps of runs: whether a run's files are unchanged, judged by sizes and times alone, as in git.

A stamp lists everything that loading a run looked at: each file with size and time, and each folder
whose listing decided what was found, with its time (a file that appears or disappears changes it).
To check a stamp takes a `stat` for each entry and reads nothing. A file that is changed in the very
moment of reading could keep its size and time, so a run with such a young entry gets no stamp and
is read again the next time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...trajectories.models import Run
from ...trajectories.reading.layout import run_folder, side_files

_SEARCHED_FOLDERS = (
    "",
    "process",
    "process/plan",
    "plan",
    "workspace",
    "workspace/plan",
    "workspace/process",
    "outputs",
    "outputs/plan",
    "outputs/process",
    "outputs/workspace",
)
_MIN_AGE_NS = 2_000_000_000
"""File systems keep times to between a nanosecond and two seconds."""
_FOLDER_SIZE = -1
"""Stands for the size of a folder, which means nothing."""


def take(run: Run, read_at_ns: int) -> str | None:
    """The stamp of a run whose reading began at `read_at_ns` (`time.time_ns`).

    None if one of its files is too young or cannot be looked at, and for a run that still goes on:
    it may end without another byte.
    """
    if run.status.ended == "running":
        return None
    folder = os.path.dirname(os.path.abspath(run.path))
    entries: list[tuple[str, int, int]] = []
    try:
        for name in _entry_names(run, folder):
            path = os.path.join(folder, name)
            status = os.stat(path)
            size = _FOLDER_SIZE if os.path.isdir(path) else status.st_size
            entries.append((name, size, status.st_mtime_ns))
    except OSError:
        return None
    latest_ns = max(time_ns for _, _, time_ns in entries)
    if latest_ns > read_at_ns - _MIN_AGE_NS:
        return None
    return json.dumps(entries, separators=(",", ":"))


def unchanged(path: Path | str, stamp: str) -> bool:
    """Whether every entry in the stamp of the run at this conversation path is unchanged."""
    if not stamp:
        return False
    folder = os.path.dirname(path)
    stat = os.stat  # This is called for every file of every run of every plan.
    try:
        entries = json.loads(stamp)
        if not isinstance(entries, list) or not entries:
            return False
        for name, size, time_ns in entries:
            status = stat(f"{folder}/{name}")
            if status.st_mtime_ns != time_ns:
                return False
            if size != _FOLDER_SIZE and status.st_size != size:
                return False
    except (OSError, ValueError, TypeError):
        return False
    return True


def conversation_unchanged(path: Path | str, stamp: str) -> bool:
    """Whether the conversation file at this path is unchanged, whatever became of the run's other
    files."""
    try:
        entries = {name: (size, time_ns) for name, size, time_ns in json.loads(stamp or "[]")}
        status = os.stat(path)
    except (OSError, ValueError, TypeError):
        return False
    return entries.get(os.path.basename(path)) == (status.st_size, status.st_mtime_ns)


def _entry_names(run: Run, folder: str) -> list[str]:
    """Files and folders that loading looked at, relative to the conversation's folder."""
    top = run_folder(run.path)
    files = [
        run.path,
        run.plan.path,
        run.plan.image_path,
        *side_files(top),
        *(file.path for file in run.outputs.files),
    ]
    paths = {os.path.abspath(path) for path in files if path is not None}
    searched = [top / name for name in _SEARCHED_FOLDERS]
    paths |= {os.path.abspath(path) for path in searched if os.path.isdir(path)}
    if run.outputs.root is not None:
        paths |= {subfolder for subfolder, _, _ in os.walk(run.outputs.root.absolute())}
    return sorted(os.path.relpath(path, folder) for path in paths)
