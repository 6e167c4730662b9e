"""Files that are whole under their names, or as they were: no reader sees half of one, whatever
ends the writer."""

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
"""How the name of a file ends that is being written; kill -9 leaves it, and the next command that
writes there removes it."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LINKS = 40
_SWEPT: set[Path] = set()


def file_behind(path: Path) -> Path | None:
    """The file, there or not yet, that a path leads to through links; None for what is no file of
    its own: a pipe, a terminal, a device, a folder, and a descriptor (`/dev/stdout`), even where
    the shell has sent it into a file."""
    here = Path(os.path.abspath(path))
    for _ in range(_LINKS):
        here = Path(os.path.realpath(here.parent), here.name)
        if here.parts[1:2] in (("dev",), ("proc",)) and here.parts[1:3] != ("dev", "shm"):
            return None
        if not here.is_symlink():
            return here if here.is_file() or not here.exists() else None
        here = here.parent / here.readlink()
    return None


class NewFile:
    """A file beside the one of a name, to be written, which takes the name by `keep` or goes by
    `drop`.

    InputError where nothing can be written, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        """`part` is what to write to; what is no file of its own (`file_behind`) is so itself."""
        self.path, self.part, self._held = path, path, -1
        with cannot_be_written(path):
            self._real = file_behind(path)
            if self._real is None:
                return
            self._real.parent.mkdir(parents=True, exist_ok=True)
            _sweep(self._real.parent)
            self.part = self._real.with_name(f".{secrets.token_hex(8)}{PART}")
            self._held = os.open(
                self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
            )
            held_alone(self._held)

    def keep(self, name: Path | None = None) -> None:
        """Give it its name, or the one said, with the permissions of what had the name before."""
        if self._real is None:
            return
        target = self._real if name is None else name
        with cannot_be_written(self.path):
            with suppress(OSError):  # nothing was there, or somebody else's
                self.part.chmod(stat.S_IMODE(target.stat().st_mode))
            self._close()
            self.part.replace(target)

    def drop(self) -> None:
        """Leave no trace of it."""
        if self._real is not None:
            self._close()
            self.part.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._held >= 0:
            os.close(self._held)
        self._held = -1


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the name when all went well and is removed when not.

    Links are followed, folders made, permissions kept. What is no file (a pipe, a terminal) is
    itself what to write to. InputError where it cannot be written.
    """
    new = NewFile(path)
    try:
        with cannot_be_written(path, new.part):
            yield new.part
        new.keep()
    except BaseException:
        new.drop()
        raise


@contextmanager
def cannot_be_written(path: Path, part: Path | None = None) -> Iterator[None]:
    """What the system refuses, as an error about that file; with `part`, only what concerns it, or
    a full disk."""
    try:
        yield
    except OSError as error:
        if part is not None and error.errno not in _FULL and str(error.filename) != str(part):
            raise
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another place, or make room", path
        ) from error


def held_alone(descriptor: int) -> bool:
    """Whether no other process holds this file; from now on this one does, until it closes it or
    ends."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # where there are no such locks, nothing is known to be left over
        return False
    except OSError:
        return False
    return True


def _sweep(folder: Path) -> None:
    """Remove what killed commands left half written in a folder, once a process."""
    if folder in _SWEPT:
        return
    _SWEPT.add(folder)
    for entry in os.scandir(folder):
        if entry.name.endswith(PART) and entry.is_file(follow_symlinks=False):
            with suppress(OSError):
                descriptor = os.open(entry.path, os.O_RDWR)
                try:
                    if held_alone(descriptor):
                        os.unlink(entry.path)
                finally:
                    os.close(descriptor)
