"""Scorecards in files: whole or not at all, and parts of a large collection under fixed names."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .. import console
from ..errors import InputError
from ..trajectories.remote import RemotePath, check_writable_place, is_address, read_small, size_of, upload

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.session import Outcome, ScoreOptions

T = TypeVar("T")


def place_of(text: str) -> Path:
    """The path or address that --out names."""
    return RemotePath(text) if is_address(text) else Path(text)


class CardFile:
    """JSON Lines that get their name when `keep` is called: until then they are in `NAME.part`, and what has the name stays
    as it is. What is no file (a pipe, a terminal) is written at once; what goes to an address is sent whole by `keep`."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """InputError where nothing can be written."""
        self.path, self._sent, self._told = path, False, False
        try:
            if isinstance(path, RemotePath):
                check_writable_place(str(path))
                self.part = Path(tempfile.mkdtemp(prefix="ambjudge-"), f"{path.name}.part")
                stack.callback(self._forget)
            else:
                self.part = path.with_name(f"{path.name}.part") if path.is_file() or not path.exists() else path
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = stack.enter_context(self.part.open("w", encoding="utf-8", errors="backslashreplace"))
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}", "choose another --out") from None

    def write(self, line: str) -> None:
        self._file.write(line + "\n")

    def keep(self) -> None:
        self._file.flush()
        if isinstance(self.path, RemotePath):
            try:
                upload(self.part, str(self.path))
                self._sent = True
            except InputError as error:
                error.hint = f"{error.hint}; {self.leave()}"
                raise
        elif self.part != self.path:
            os.fsync(self._file.fileno())
            self.part.replace(self.path)

    def leave(self) -> str:
        """After an interruption: where the lines so far are."""
        self._file.flush()
        self._told = True
        return f"scorecards so far are in {self.part}"

    def _forget(self) -> None:
        """The part of what went to an address; one that did not get there stays, and is named."""
        if self._sent or not (self.part.exists() and self.part.stat().st_size):
            shutil.rmtree(self.part.parent, ignore_errors=True)
        elif not self._told:
            console.note(f"scorecards so far are in {self.part}", False)


def shard_of(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    """Callback of an option `I/N`, 1 <= I <= N."""
    if value is None:
        return None
    number, _, of = value.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 1_000_000):
        raise click.BadParameter(f"{value!r} is not I/N with I from 1 to N, for example 3/100", ctx, param)
    return Shard(int(number), int(of))


@dataclass(frozen=True)
class Shard:
    """One of `of` parts of a collection."""

    number: int
    of: int

    def file(self, folder: Path | None) -> Path:
        """The part's lines; names sort as the parts follow each other. InputError without a folder."""
        if folder is None:
            raise InputError("--shard without --out", "name the folder that the parts go into with --out")
        return folder / f"part-{self.number:05}-of-{self.of:05}.jsonl"

    def slice(self, runs: Iterable[T]) -> list[T]:
        """The runs of this part: as many as of any other, in the order of all, so that the parts, one after the other,
        are what one command would write."""
        every = list(runs)
        return every[len(every) * (self.number - 1) // self.of : len(every) * self.number // self.of]

    def share(self, options: ScoreOptions) -> ScoreOptions:
        """The options with this part's share of the budget: all parts together never spend more."""
        return options if options.max_cost is None else replace(options, max_cost=options.max_cost / self.of)


class Part:
    """A part's file and the key that says what it was made of: the runs' files by size and time, and all that decides a
    line. A part whose key still holds is not made again."""

    def __init__(self, file: Path, runs: Sequence[Path | Outcome], judge: Judge, options: ScoreOptions) -> None:
        from ..judge.questions.keys import inputs_stamp
        from ..judge.session import card_keys
        from ..trajectories.layout import run_folder

        self.file, self._note = file, file.with_suffix(".key")
        keys, digest = card_keys(judge, options), hashlib.sha256()
        for run in runs:
            path = run if isinstance(run, Path) else run.path
            stamp = path.stamp if isinstance(path, RemotePath) else inputs_stamp(run_folder(path))
            digest.update(keys.of(path, stamp or os.urandom(8).hex()).encode())
        self._key = digest.hexdigest()

    def said(self, quiet: bool) -> int | None:
        """The exit code of making the part, when it is there and nothing has changed, which is said."""
        if (made := self._made()) is None:
            return None
        console.note(f"{self.file}: there already, nothing has changed since ({made[0]} lines)", quiet)
        return made[1]

    def _made(self) -> tuple[int, int] | None:
        try:
            if isinstance(self._note, RemotePath):
                said = json.loads(read_small(str(self._note)) or b"")
                size = size_of(str(self.file))
            else:
                said, size = json.loads(self._note.read_text("utf-8")), self.file.stat().st_size
            if said["key"] == self._key and said["bytes"] == size:
                return int(said["lines"]), int(said["exit_code"])
        except (OSError, ValueError, TypeError, KeyError):
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
