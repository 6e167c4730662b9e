"""Scorecards in files: whole or not at all, and parts of a large collection under fixed names."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, TypeVar

import click

from .. import console
from ..atomic_files import NewFile, cannot_be_written
from ..errors import InputError
from ..trajectories.reading.json_bytes import loads, read_bytes
from ..trajectories.reading.remote import (
    RemotePath,
    check_writable_place,
    is_address,
    private_folder,
    read_small,
    size_of,
    upload,
)

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.session import ScoreOptions

T = TypeVar("T")
_MOST_NOTED = 4096
"""Bytes of a part's key."""


def place_of(text: str) -> Path:
    """The path or address that --out names."""
    return RemotePath(text) if is_address(text) else Path(text)


class CardFile:
    """JSON Lines that get their name when `keep` is called; until then what has the name stays as
    it is. What is no file (a pipe, a terminal) is written at once; what goes to an address is sent
    whole by `keep`."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """InputError where nothing can be written."""
        self.path, self._done = path, False
        here = path
        if isinstance(path, RemotePath):
            check_writable_place(str(path))
            here = stack.enter_context(private_folder()) / path.name
        self._new = NewFile(here)
        stack.callback(self._end)
        # What is written at once is appended line by line: others may write to the same pipe or
        # descriptor.
        mode, lines = ("a", 1) if self._new.part == here else ("w", -1)
        with cannot_be_written(path):
            self._file = self._new.part.open(
                mode, lines, encoding="utf-8", errors="backslashreplace"
            )

    def write(self, line: str) -> None:
        with cannot_be_written(self.path):
            self._file.write(line + "\n")

    def keep(self) -> None:
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
                # of an interruption
                self.path.with_name(f"{self.path.name}.part").unlink(missing_ok=True)
        self._done = True

    def leave(self) -> str:
        """After an interruption: where the lines so far are."""
        self._close()
        self._done = True
        if self._new.part == self.path:
            return f"scorecards so far went to {self.path}"
        here = (
            Path(mkdtemp(prefix="ambjudge-"))
            if isinstance(self.path, RemotePath)
            else self.path.parent
        )
        left = here / f"{self.path.name}.part"
        self._new.keep(left)
        return f"scorecards so far are in {left}"

    def _close(self) -> None:
        if self._file.closed:
            return
        with cannot_be_written(self.path):
            self._file.flush()
            if self._new.part != self.path:
                os.fsync(self._file.fileno())
            self._file.close()

    def _end(self) -> None:
        if not self._done:
            with suppress(OSError):
                self._file.close()
            self._new.drop()


def shard_of(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    """Callback of an option `I/N`, 1 <= I <= N."""
    if value is None:
        return None
    number, _, of = value.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 1_000_000):
        raise click.BadParameter(
            f"{value!r} is not I/N with I from 1 to N, for example 3/100", ctx, param
        )
    return Shard(int(number), int(of))


@dataclass(frozen=True)
class Shard:
    """One of `of` parts of a collection."""

    number: int
    of: int

    def file(self, folder: Path | None) -> Path:
        """The part's lines; names sort as the parts follow each other. InputError without a folder."""
        if folder is None:
            raise InputError(
                "--shard without --out", "name the folder that the parts go into with --out"
            )
        return folder / f"part-{self.number:05}-of-{self.of:05}.jsonl"

    def slice(self, runs: Iterable[T]) -> list[T]:
        """The runs of this part: as many as of any other, in the order of all, so that the parts,
        one after the other, are what one command would write."""
        every = list(runs)
        return every[
            len(every) * (self.number - 1) // self.of : len(every) * self.number // self.of
        ]

    def share(self, options: ScoreOptions) -> ScoreOptions:
        """The options with this part's share of the budget: all parts together never spend more."""
        return (
            options
            if options.max_cost is None
            else replace(options, max_cost=options.max_cost / self.of)
        )


class Part:
    """A part's file and the key that says what it was made of: the runs' files by size and time,
    and all that decides a line. A part whose key still holds is not made again."""

    def __init__(
        self, file: Path, runs: Sequence[Path], judge: Judge, options: ScoreOptions
    ) -> None:
        from ..judge.questions.verdict_keys import inputs_stamp
        from ..judge.session import card_keys
        from ..trajectories.reading.layout import run_folder

        self.file, self._note = file, file.with_suffix(".key")
        keys, digest = card_keys(judge, options), hashlib.sha256()
        for path in runs:
            stamp = path.stamp if isinstance(path, RemotePath) else inputs_stamp(run_folder(path))
            digest.update(keys.key(path, stamp or os.urandom(8).hex()).encode())
        self._key = digest.hexdigest()

    def said(self, quiet: bool) -> int | None:
        """The exit code of making the part, when it is there and nothing has changed, which is
        said."""
        if (made := self._made()) is None:
            return None
        console.note(
            f"{self.file}: there already, nothing has changed since ({made[0]} lines)", quiet
        )
        return made[1]

    def _made(self) -> tuple[int, int] | None:
        try:
            if isinstance(self._note, RemotePath):
                note, size = read_small(str(self._note)) or b"", size_of(str(self.file))
            else:
                note, size = read_bytes(self._note, _MOST_NOTED), self.file.stat().st_size
            match loads(note.decode()):
                case {
                    "key": self._key,
                    "bytes": int(told),
                    "lines": int(lines),
                    "exit_code": 0 | 1 as code,
                } if told == size:
                    return lines, code
        except (OSError, ValueError, InputError):
            pass
        return None

    def note(self, lines: int, exit_code: int) -> None:
        """That the file is there, after it is."""
        remote = isinstance(self.file, RemotePath)
        size = size_of(str(self.file)) if remote else self.file.stat().st_size
        said = {"key": self._key, "bytes": size, "lines": lines, "exit_code": exit_code}
        with ExitStack() as stack:
            note = CardFile(self._note, stack)
            note.write(json.dumps(said))
            note.keep()
