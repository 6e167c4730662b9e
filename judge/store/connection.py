"""What all parts of the store share: the connection, chunked look-ups, stored paths and texts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from ...trajectories.reading.remote import RemotePath, is_address
from . import schema
from .opening import explain_errors, write_transaction

T = TypeVar("T")
CHUNK = 5_000
"""Keys a look-up, well below both databases' limits on parameters (32,766 and 65,535)."""


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """The values in parts of at most `size`, in their order."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


class EvidenceRow(NamedTuple):
    """A row of the evidence index: the hash of what a judge was shown for a question on a run."""

    content_sha256: str
    """Of the run."""
    context: str
    """What the evidence depends on besides (`verdict_keys.EvidenceContexts`)."""
    stage: str
    """The question's name."""
    evidence_sha256: str
    tokens: int | None = None
    """Of the evidence, by our estimate (`base.SizingJudge.shared_tokens`); None if unknown."""


class SettledRow(NamedTuple):
    """A row of the index of settled runs: every item of all questions has a verdict."""

    content_sha256: str
    """Of the run."""
    question: str
    """Hash of everything that is asked (`QuestionKeys.sha256`)."""
    verdicts: int
    """Their number."""


class StorePart:
    """A part of the store: methods over some of its tables. Each write is one transaction."""

    def __init__(self, engine: Engine, location: str, root: Path | None) -> None:
        self._engine, self.location, self.root = engine, location, root
        self._write_lock = threading.Lock()
        self._root_prefix = None if root is None else os.path.join(str(root), "")

    def relative(self, path: Path) -> str:
        """A path as the store keeps it: with forward slashes, and relative if below the root."""
        text = str(path)
        if isinstance(path, RemotePath):
            return clean_text(text)
        if not os.path.isabs(text):
            text = os.path.join(os.getcwd(), text)
        if self._root_prefix is not None:
            text = text.removeprefix(self._root_prefix)
        if os.sep != "/":
            text = text.replace(os.sep, "/")
        return clean_text(text)

    def absolute(self, name: str) -> Path:
        """The path or address of which `relative` made this name."""
        if is_address(name):
            return RemotePath(name)
        return self.root / name if self.root is not None else Path(name)

    def prefix(self, folder: Path) -> str:
        """The beginning of the stored paths of all runs below a folder.

        "", which begins all of them, for the root and folders above it.
        """
        absolute = folder.absolute()
        if self.root is not None and self.root.is_relative_to(absolute):
            return ""
        return self.relative(absolute).rstrip("/") + "/"

    def at_or_below(self, column: sa.Column[Any], path: Path) -> sa.ColumnElement[bool]:
        """Whether a stored path is this one or lies below it."""
        if path.is_file():
            return column == self.relative(path)
        return starts_with(column, self.prefix(path))

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        # Without this lock, SQLite would let threads of one process wait for each other by
        # sleeping.
        with (
            self._write_lock,
            explain_errors(self.location),
            write_transaction(self._engine) as connection,
        ):
            yield connection

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with explain_errors(self.location), self._engine.connect() as connection:
            return connection.execute(query).fetchall()

    def _pages(
        self, query: sa.Select[Any], order: sa.Column[Any], size: int
    ) -> Iterator[sa.Row[Any]]:
        """Rows in the order of one of their columns, which must be unique.

        They are read `size` at a time, so that memory stays flat.
        """
        query = query.order_by(order).limit(size)
        rows = self._read(query)
        while rows:
            yield from rows
            rows = self._read(query.where(order > rows[-1]._mapping[order]))

    def _in_chunks(
        self, query: sa.Select[Any], column: Any, values: Iterable[str | int]
    ) -> Iterator[sa.Row[Any]]:
        """Rows whose column has one of these values, read a chunk of values at a time."""
        for part in chunks(list(dict.fromkeys(values))):
            yield from self._read(query.where(column.in_(part)))

    def _insert(self, table: sa.Table) -> Any:
        """The dialect's INSERT, which has ON CONFLICT."""
        if self._engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as postgresql_insert

            return postgresql_insert(table)
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)

    def _insert_evidence(self, connection: Connection, rows: Iterable[EvidenceRow]) -> None:
        values = [row._asdict() | {"created_at": now()} for row in rows]
        if values:
            connection.execute(self._insert(schema.evidence).on_conflict_do_nothing(), values)

    def _insert_settled(self, connection: Connection, rows: Iterable[SettledRow]) -> None:
        values = [row._asdict() for row in sorted(rows)]
        if values:
            connection.execute(self._insert(schema.settled).on_conflict_do_nothing(), values)


def now() -> str:
    """This moment as ISO 8601 in UTC, to the microsecond, always of the same width."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def clean_text(text: str) -> str:
    """Text that both databases can hold.

    Surrogate pairs are joined, lone surrogates and NUL replaced by visible characters.
    """
    if text.isascii() and "\0" not in text:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "␀")


def clean_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose texts both databases can hold."""
    return {
        name: clean_text(value) if isinstance(value, str) else value for name, value in row.items()
    }


def to_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON text that both databases can hold; ValueError for NaN and infinities."""
    text = json.dumps(
        value,
        allow_nan=False,
        ensure_ascii=False,
        separators=(",", ":"),
        default=str,
        sort_keys=sort_keys,
    )
    return clean_text(text)


def starts_with(column: sa.Column[Any], prefix: str) -> sa.ColumnElement[bool]:
    """Whether a text begins like this; unlike LIKE, it takes % and _ as they are."""
    return sa.func.substr(column, 1, len(prefix)) == prefix
