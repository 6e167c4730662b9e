"""Files of scorecards, on this machine or at an address, that are complete or not there."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp

from ..atomic_files import NewFile, write_errors_named
from ..errors import InputError
from ..trajectories.reading.remote import (
    RemotePath,
    check_writable_place,
    is_address,
    private_folder,
    upload,
)


def output_path(text: str) -> Path:
    """The path or address that --out names."""
    return RemotePath(text) if is_address(text) else Path(text)


class CardFile:
    """A JSON Lines file that gets its name when `keep` is called.

    Until then an older file of that name stays. A pipe or a terminal is written at once; a file at
    an address is uploaded by `keep`.
    """

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """InputError if nothing can be written there."""
        self.path = path
        self._is_finished = False
        local_path = path
        if isinstance(path, RemotePath):
            check_writable_place(str(path))
            local_path = stack.enter_context(private_folder()) / path.name
        self._new = NewFile(local_path)
        stack.callback(self._close_at_exit)
        is_direct = self._new.part == local_path
        # A pipe or descriptor may have other writers: append to it, line by line.
        mode, buffering = ("a", 1) if is_direct else ("w", -1)
        with write_errors_named(path):
            self._file = self._new.part.open(
                mode, buffering, encoding="utf-8", errors="backslashreplace"
            )

    def write(self, line: str) -> None:
        """Add a line."""
        with write_errors_named(self.path):
            self._file.write(line + "\n")

    def keep(self) -> None:
        """Close the file and give it its name, or upload it."""
        self._close()
        if isinstance(self.path, RemotePath):
            try:
                upload(self._new.part, str(self.path))
            except InputError as error:
                error.hint = f"{error.hint}; {self.leave()}"
                raise
            self._new.drop()
        else:
            self._new.keep()
            if self._new.part != self.path:
                # An interruption may have left one before.
                self.path.with_name(f"{self.path.name}.part").unlink(missing_ok=True)
        self._is_finished = True

    def leave(self) -> str:
        """After an interruption, keep the lines so far; returns a note that says where they are."""
        self._close()
        self._is_finished = True
        if self._new.part == self.path:
            return f"scorecards so far went to {self.path}"
        if isinstance(self.path, RemotePath):
            folder = Path(mkdtemp(prefix="ambjudge-"))
        else:
            folder = self.path.parent
        partial = folder / f"{self.path.name}.part"
        self._new.keep(partial)
        return f"scorecards so far are in {partial}"

    def _close(self) -> None:
        if self._file.closed:
            return
        with write_errors_named(self.path):
            self._file.flush()
            if self._new.part != self.path:
                os.fsync(self._file.fileno())
            self._file.close()

    def _close_at_exit(self) -> None:
        if not self._is_finished:
            with suppress(OSError):
                self._file.close()
            self._new.drop()
