"""Whether a store was made here, by this user: known from a mark in the store and another in the
user's own state folder.

Whoever sends runs can send a store with them, full of verdicts that no judge gave. So a store that
is merely found beside runs is used only when it is the user's; one that is named is used as it is,
and what is read from it is said to be foreign.
"""

from __future__ import annotations

import json
import os
import re
import stat
import uuid
from pathlib import Path

from ...errors import StoreError

_ID = re.compile(r"[0-9a-f]{32}")


def state_folder() -> Path:
    """`$XDG_STATE_HOME/ambjudge`, by default `~/.local/state/ambjudge`."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state") / "ambjudge"


def new_id(file: Path | None) -> str:
    """The random id of a store that is being made, noted in the state folder with its place
    (`file`; None: on a server).

    Where nothing can be noted the store will be taken for somebody else's.
    """
    name = uuid.uuid4().hex
    try:
        folder = state_folder() / "stores"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = None if file is None else [str(file.resolve()), file.stat().st_ino]
        (folder / name).write_text(json.dumps(place), encoding="utf-8", errors="surrogateescape")
    except (OSError, RuntimeError):
        pass
    return name


def is_own(name: str | None, file: Path | None) -> bool:
    """Whether the store of this id was made here: it is noted, and stands where it stood or is
    still the same file.

    A copy of a store of ours that comes back with somebody's runs has its id, but neither its place
    nor its inode.
    """
    if name is None or not _ID.fullmatch(name):
        return False
    try:
        place = json.loads((state_folder() / "stores" / name).read_text("utf-8", "surrogateescape"))
        if file is None or place is None:
            return file is None and place is None
        return bool(place[0] == str(file.resolve()) or place[1] == file.stat().st_ino)
    except (OSError, RuntimeError, ValueError, TypeError, IndexError):
        return False


def check_found(file: Path) -> Path:
    """The store's file that was found beside runs; StoreError when it is not the user's, which is
    asked of it read-only."""
    import sqlite3

    why = "it was not made here"
    try:
        if file.is_symlink() or file.parent.is_symlink():
            why = "it is a link"
        elif not stat.S_ISREG(file.stat().st_mode) or (
            hasattr(os, "geteuid") and file.stat().st_uid != os.geteuid()
        ):
            why = "it belongs to somebody else"
        else:
            connection = sqlite3.connect(
                f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=60
            )
            # a view named meta may count for ever
            connection.set_progress_handler(lambda: 1, 100_000)
            try:
                if connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
                    return file  # nothing is in it yet
                row = connection.execute("SELECT value FROM meta WHERE name = 'id'").fetchone()
            finally:
                connection.close()
            if row is not None and is_own(str(row[0]), file):
                return file
    except (OSError, ValueError, sqlite3.Error):
        why = "it cannot be read"
    raise StoreError(
        f"{file}: is not used: {why}", "to use it all the same, or another, name it with --store"
    )
