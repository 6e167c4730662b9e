"""Whether a run's files are still what they were, told by sizes and times alone, as version control
does.

A stamp lists everything that loading a run looked at: each file with size and time, and each folder
whose listing decided what was found, with its time (a file that appears or goes changes it).
Checking one is a `stat` for each entry and reads nothing. A file changed in the moments around the
reading could keep its size and time, so a run with such a young entry gets no stamp, and is read
again the next time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...trajectories.models import Run
from ...trajectories.reading.layout import run_folder, side_files

_PLACES = (
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
_YOUNG_NS = 2_000_000_000
"""File systems keep times to between a nanosecond and two seconds."""


def take(run: Run, read_at_ns: int) -> str | None:
    """The stamp of a run whose reading began at `read_at_ns` (`time.time_ns`); None when its files
    are too young."""
    folder = os.path.dirname(os.path.abspath(run.path))
    entries: list[tuple[str, int, int]] = []
    try:
        for name in _names(run, folder):
            status = os.stat(os.path.join(folder, name))
            entries.append(
                (
                    name,
                    -1 if os.path.isdir(os.path.join(folder, name)) else status.st_size,
                    status.st_mtime_ns,
                )
            )
    except OSError:
        return None
    if max(entry[2] for entry in entries) > read_at_ns - _YOUNG_NS:
        return None
    return json.dumps(entries, separators=(",", ":"))


def unchanged(path: Path | str, stamp: str) -> bool:
    """Whether every entry of the stamp of the run at this conversation path is as it was."""
    if not stamp:
        return False
    folder = os.path.dirname(path)
    stat = os.stat
    try:
        entries = json.loads(stamp)
        if not isinstance(entries, list) or not entries:
            return False
        for name, size, time_ns in entries:
            found = stat(f"{folder}/{name}")
            if found.st_mtime_ns != time_ns or (size != -1 and found.st_size != size):
                return False
    except (OSError, ValueError, TypeError):
        return False
    return True


def _names(run: Run, folder: str) -> list[str]:
    """What was looked at, relative to the conversation's folder."""
    top = run_folder(run.path)
    found = [
        run.path,
        run.plan.path,
        run.plan.image_path,
        *side_files(top),
        *(file.path for file in run.outputs.files),
    ]
    paths = {os.path.abspath(path) for path in found if path is not None}
    paths |= {os.path.abspath(top / place) for place in _PLACES if os.path.isdir(top / place)}
    if run.outputs.root is not None:
        paths |= {where for where, _, _ in os.walk(run.outputs.root.absolute())}
    return sorted(os.path.relpath(path, folder) for path in paths)
