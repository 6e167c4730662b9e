"""Shards: parts of a large collection that are scored on their own, each into a file of its own.

A finished part has a key beside it that says what it was made of; a part whose key still holds is
not made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .. import console
from ..atomic_files import refuse_links
from ..errors import ConfigError, InputError
from ..trajectories.reading.json_bytes import loads, read_bytes
from ..trajectories.reading.remote import RemotePath, read_small, size_of
from .card_files import CardFile

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.session import ScoreOptions

T = TypeVar("T")
_MAX_SHARDS = 1_000_000
_KEY_BYTES = 4096
"""The largest key file that is read."""


@dataclass(frozen=True)
class Shard:
    """One of `of` parts of a collection, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard `I/N`, 1 <= I <= N; ConfigError for anything else."""
        number, _, of = text.partition("/")
        are_numbers = number.isdecimal() and of.isdecimal()
        if not (are_numbers and 1 <= int(number) <= int(of) <= _MAX_SHARDS):
            raise ConfigError(
                f"--shard {text!r} is not I/N with I from 1 to N", "for example --shard 3/100"
            )
        return cls(int(number), int(of))

    def file(self, folder: Path | None) -> Path:
        """The file of this part, InputError without a folder; names sort in the parts' order."""
        if folder is None:
            raise InputError("--shard needs --out", "name the folder that the parts go into")
        return folder / f"part-{self.number:05}-of-{self.of:05}.jsonl"

    def slice(self, runs: Iterable[T]) -> list[T]:
        """The runs of this part.

        All parts have the same number of runs, give or take one; joined in order they are the whole
        collection.
        """
        runs = list(runs)
        start = len(runs) * (self.number - 1) // self.of
        end = len(runs) * self.number // self.of
        return runs[start:end]

    def share(self, options: ScoreOptions) -> ScoreOptions:
        """The options with this part's share of the budget, which all parts together keep."""
        if options.max_cost is None:
            return options
        return replace(options, max_cost=options.max_cost / self.of)


class _Note(NamedTuple):
    """What the key file of a finished part says."""

    lines: int
    exit_code: int


class Part:
    """The file of a shard, and its key.

    The key is a hash of the runs' files (size and time) and of all that decides a scorecard.
    """

    def __init__(
        self, file: Path, runs: Iterable[Path], judge: Judge, options: ScoreOptions
    ) -> None:
        from ..judge.questions.verdict_keys import inputs_stamp
        from ..judge.session import card_keys
        from ..trajectories.reading.layout import run_folder

        self.file = file
        self._key_file = file.with_suffix(".key")
        if not isinstance(file, RemotePath):
            refuse_links(file, file.parent)
            refuse_links(self._key_file, file.parent)
        keys = card_keys(judge, options)
        rubrics = " ".join(rubric.sha256 for rubric in options.scope().rubrics)
        digest = hashlib.sha256()
        for path in runs:
            stamp = path.stamp if isinstance(path, RemotePath) else inputs_stamp(run_folder(path))
            # Without a stamp nothing shows whether the run has changed: the key then never holds.
            state = stamp or os.urandom(8).hex()
            digest.update(keys.key(path, state, rubrics).encode())
        self._key = digest.hexdigest()

    def finished_code(self, quiet: bool) -> int | None:
        """The exit code with which this part was made; None if it has to be made (again).

        A part that is up to date is named on stderr.
        """
        note = self._read_note()
        if note is None:
            return None
        console.note(
            f"{self.file} is up to date ({note.lines} lines) and is not written again", quiet
        )
        return note.exit_code

    def _read_note(self) -> _Note | None:
        """The note in the key file; None if there is none or it no longer holds."""
        try:
            if isinstance(self._key_file, RemotePath):
                data, size = read_small(str(self._key_file)) or b"", size_of(str(self.file))
            else:
                data, size = read_bytes(self._key_file, _KEY_BYTES), self.file.stat().st_size
            match loads(data.decode()):
                case {
                    "key": self._key,
                    "bytes": int(bytes_then),
                    "lines": int(lines),
                    "exit_code": 0 | 1 as exit_code,
                } if bytes_then == size:
                    return _Note(lines, exit_code)
        except (OSError, ValueError, InputError):
            pass
        return None

    def write_note(self, lines: int, exit_code: int) -> None:
        """Write the key file, once the part itself is there."""
        is_remote = isinstance(self.file, RemotePath)
        size = size_of(str(self.file)) if is_remote else self.file.stat().st_size
        note = {"key": self._key, "bytes": size, "lines": lines, "exit_code": exit_code}
        with ExitStack() as stack:
            file = CardFile(self._key_file, stack)
            file.write(json.dumps(note))
            file.keep()
