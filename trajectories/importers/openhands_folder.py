"""Folders of OpenHands: a conversation as one file an event, with its state beside them.

Version 1 keeps `base_state.json` and `events/event-00000-ID.json`, version 0 `metadata.json` and
`events/0.json`. The first event's file stands for the conversation; the others are parts of it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..reading.json_bytes import is_file, read_json
from ..reading.layout import file_in
from .fields import as_object

EVENT_FILE = re.compile(r"(?:event-)?(\d{1,12})(?:-[\w-]{1,80})?\.json(?:\.gz)?")
"""Names of event files; the number is the event's."""
_STATE_FILES = ("base_state.json", "metadata.json")
EVENTS = "events"
"""The name of the folder with the events."""


class EventFolder(NamedTuple):
    """The files of one conversation."""

    name: str
    event_files: tuple[Path, ...]
    """In the order of the events."""
    state_files: tuple[Path, ...]


def event_folder(path: Path) -> EventFolder | None:
    """The conversation that a file is a part of; None for a file that is a run by itself."""
    is_state = path.name.removesuffix(".gz") in _STATE_FILES
    folder = path.parent / EVENTS if is_state else path.parent
    if folder.name != EVENTS or (folder == path.parent and not EVENT_FILE.fullmatch(path.name)):
        return None
    try:
        modified = folder.stat().st_mtime_ns
    except OSError:
        return None
    files = _event_files(folder, modified)
    if not files:
        return None
    top = folder.parent
    state_files = [file_in(top, name) for name in _STATE_FILES]
    readable = tuple(file for file in state_files if file is not None)
    return EventFolder(top.name, files, readable)


@lru_cache(maxsize=8)
def _event_files(folder: Path, _modified: int) -> tuple[Path, ...]:
    numbered = []
    for file in folder.iterdir():
        match = EVENT_FILE.fullmatch(file.name)
        if match and is_file(file) and not file.is_symlink():
            numbered.append((int(match[1]), file.name, file))
    return tuple(file for _, _, file in sorted(numbered))


def read_folder(folder: EventFolder) -> dict[str, Any]:
    """The events under `history`, with the fields of the state beside them."""
    header: dict[str, Any] = {}
    for file in folder.state_files:
        header |= as_object(read_json(file))
    return {**header, "history": [read_json(file) for file in folder.event_files]}
