"""Whether this user made a store: an id in the store, and a note of it in the user's own folder.

Whoever sends runs can send a store with them, full of verdicts that no judge gave. So a store that
merely lies beside runs is used only if it is the user's own. One that the user names is used
whoever made it, and what is read from it is marked as foreign.
"""

from __future__ import annotations

import json
import os
import re
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import StoreError

_ID = re.compile(r"[0-9a-f]{32}")
_PROGRESS_STEPS = 100_000
"""SQLite instructions after which the look at an unknown file is given up."""


def state_folder() -> Path:
    """`$XDG_STATE_HOME/ambjudge`, by default `~/.local/state/ambjudge`."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(configured):
        return Path(configured) / "ambjudge"
    return Path.home() / ".local" / "state" / "ambjudge"


def new_id(file: Path | None) -> str:
    """The random id of a new store, noted in the state folder with the store's place.

    `file` is None for a store on a server. If nothing can be noted, the store will be taken for
    somebody else's.
    """
    store_id = uuid.uuid4().hex
    with suppress(OSError, RuntimeError):
        _write_note(store_id, [_place(file)])
    return store_id


def add_place(store_id: str, file: Path) -> None:
    """Note that a backup of our store lies in this file too."""
    with suppress(OSError, RuntimeError, ValueError):
        _write_note(store_id, [*_places(store_id), _place(file)])


def _place(file: Path | None) -> list[str | int] | None:
    """Path and inode of a store; None on a server, where it has no place."""
    return None if file is None else [str(file.resolve()), file.stat().st_ino]


def _write_note(store_id: str, places: list[Any]) -> None:
    folder = state_folder() / "stores"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = folder / store_id
    note.write_text(json.dumps(places), encoding="utf-8", errors="surrogateescape")


def _places(store_id: str) -> list[Any]:
    """The places that are noted of a store; OSError or ValueError if there is no note."""
    note = state_folder() / "stores" / store_id
    places = json.loads(note.read_text("utf-8", "surrogateescape"))
    # Earlier versions noted one place, not a list of them.
    is_list = isinstance(places, list) and not (places and isinstance(places[0], str))
    return places if is_list else [places]


def is_own(store_id: str | None, file: Path | None) -> bool:
    """Whether the store of this id was made here.

    That is so if its id is noted, and it is still at one of its places (a backup has another) or
    still the same file. A copy of
    our store that comes back with somebody's runs has its id, but neither its place nor its inode.
    """
    if store_id is None or not _ID.fullmatch(store_id):
        return False
    try:
        places = _places(store_id)
        # A store on a server has no place; one that moved between file and server is another.
        if file is None:
            return None in places
        path, inode = str(file.resolve()), file.stat().st_ino
        return any(place[0] == path or place[1] == inode for place in places if place is not None)
    except (OSError, RuntimeError, ValueError, TypeError, IndexError):
        return False


def check_owner(file: Path) -> Path:
    """The file of a store that lies beside runs; StoreError if it is not the user's own."""
    problem = _problem_of(file)
    if problem is not None:
        raise StoreError(
            f"{file} is not used: {problem}",
            "to use it anyway, or another store, name it with --store",
        )
    return file


def _problem_of(file: Path) -> str | None:
    """Why the store in this file is not the user's own; None if it is."""
    import sqlite3

    try:
        if file.is_symlink() or file.parent.is_symlink():
            return "it is a link"
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return "it is not a regular file"
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return "it belongs to somebody else"
        is_empty, store_id = _read_id(file)
    except (OSError, ValueError, sqlite3.Error):
        return "it cannot be read"
    if is_empty or is_own(store_id, file):
        return None
    return "it was not made here"


def _read_id(file: Path) -> tuple[bool, str | None]:
    """Whether the file is an empty database, and the store's id, read without writing to it."""
    import sqlite3

    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=60)
    try:
        # `meta` may be a view that counts for ever.
        connection.set_progress_handler(lambda: 1, _PROGRESS_STEPS)
        if connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
            return True, None
        row = connection.execute("SELECT value FROM meta WHERE name = 'id'").fetchone()
    finally:
        connection.close()
    return False, None if row is None else str(row[0])
