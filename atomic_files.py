"""Files that are either complete under their names or unchanged.

No reader sees half a file, however the writer ends.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import InputError

PART = ".ambjudge-part"
"""The suffix of a file that is being written. kill -9 leaves it, and the next command that writes
in the folder removes it."""
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAX_LINKS = 40
_swept_folders: set[Path] = set()
"""Folders in which this process has removed leftovers."""


def file_behind(path: Path) -> Path | None:
    """The regular file that a path leads to through links, existing or not.

    None for anything else: a pipe, a terminal, a device, a folder, and a descriptor
    (`/dev/stdout`), even if the shell has redirected it into a file.
    """
    target = Path(os.path.abspath(path))
    for _ in range(_MAX_LINKS):
        target = Path(os.path.realpath(target.parent), target.name)
        is_system = target.parts[1:2] in (("dev",), ("proc",))
        if is_system and target.parts[1:3] != ("dev", "shm"):
            return None
        if not target.is_symlink():
            return target if target.is_file() or not target.exists() else None
        target = target.parent / target.readlink()
    return None


def refuse_links(path: Path, folder: Path) -> None:
    """InputError if this file, or a folder between it and `folder`, is a link.

    For names that a command chooses below a folder of the user: what stands there already may have
    been put there by somebody else, and a link would lead the command to replace another file.
    """
    place = path
    while place != folder and place != place.parent:
        if place.is_symlink():
            raise InputError("is a link", "remove it, or choose another folder", place)
        place = place.parent


class NewFile:
    """A new file beside the one of a name: write to `part`, then `keep` or `drop` it.

    InputError if nothing can be written or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        """Without a regular file behind the path, `part` is the path itself."""
        self.path = path
        self.part = path
        self._lock = -1
        with write_errors_named(path):
            self._target = file_behind(path)
            if self._target is None:
                return
            folder = self._target.parent
            folder.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(folder)
            self.part = folder / f".{secrets.token_hex(8)}{PART}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._lock = os.open(self.part, flags, 0o666)
            # As long as the lock is held, no other process takes the file for a leftover.
            acquire_lock(self._lock)

    def keep(self, name: Path | None = None) -> None:
        """Give the file its name, or another one, and the permissions of the file it replaces."""
        if self._target is None:
            return
        target = self._target if name is None else name
        with write_errors_named(self.path):
            # There may be no older file, or it may belong to someone else.
            with suppress(OSError):
                self.part.chmod(stat.S_IMODE(target.stat().st_mode))
            self._release()
            self.part.replace(target)

    def drop(self) -> None:
        """Remove the file."""
        if self._target is not None:
            self._release()
            self.part.unlink(missing_ok=True)

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


@contextmanager
def atomic_write(path: Path, *, below: Path | None = None) -> Iterator[Path]:
    """Yield a file to write to; it takes the name at the end and is removed after an exception.

    Folders are made, permissions kept. A pipe or terminal is written to directly. Links are
    followed, as the user named the file; but none between the file and the folder `below`, which is
    all that the user named. InputError if it cannot be written.
    """
    if below is not None:
        refuse_links(path, below)
    new = NewFile(path)
    try:
        with write_errors_named(path, new.part):
            yield new.part
        new.keep()
    except BaseException:
        new.drop()
        raise


@contextmanager
def write_errors_named(path: Path, part: Path | None = None) -> Iterator[None]:
    """Turn an OSError into an InputError about the file.

    With `part`, only an error that concerns it, or a full disk.
    """
    try:
        yield
    except OSError as error:
        concerns_file = part is None or str(error.filename) == str(part)
        if not concerns_file and error.errno not in _DISK_FULL:
            raise
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another place, or make room", path
        ) from error


def acquire_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or this process ends.

    Returns False if another process holds the lock.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        # Without such locks nothing can be recognised as a leftover.
        return False
    except OSError:
        return False
    return True


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed commands left half written in a folder, once per process."""
    if folder in _swept_folders:
        return
    _swept_folders.add(folder)
    for entry in os.scandir(folder):
        if not entry.name.endswith(PART) or not entry.is_file(follow_symlinks=False):
            continue
        with suppress(OSError):
            descriptor = os.open(entry.path, os.O_RDWR)
            try:
                if acquire_lock(descriptor):
                    os.unlink(entry.path)
            finally:
                os.close(descriptor)
