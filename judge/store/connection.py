"""What the parts of the store share: connection, chunked look-ups, paths relative to the root,
storable text."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from ...trajectories.reading.remote import RemotePath, is_address
from . import schema
from .opening import guard, writing

CHUNK = 5_000
"""Keys per look-up, well below both databases' limits on parameters (32,766 and 65,535)."""


class StorePart:
    """A part of the store: methods over some of its tables. Each write is one transaction."""

    def __init__(self, engine: Engine, where: str, root: Path | None) -> None:
        self._engine, self.where, self.root = engine, where, root
        self._one_writer = threading.Lock()
        self._below = None if root is None else os.path.join(str(root), "")

    def relative(self, path: Path) -> str:
        """A path as the store keeps it: relative to the root and with forward slashes where it lies
        below the root."""
        text = str(path)
        if isinstance(path, RemotePath):
            return clean_text(text)
        if not os.path.isabs(text):
            text = os.path.join(os.getcwd(), text)
        if self._below is not None and text.startswith(self._below):
            text = text[len(self._below) :]
        return clean_text(text if os.sep == "/" else text.replace(os.sep, "/"))

    def absolute(self, name: str) -> Path:
        """The path or address that `relative` made this of."""
        if is_address(name):
            return RemotePath(name)
        return self.root / name if self.root is not None else Path(name)

    def prefix(self, folder: Path) -> str:
        """What the stored paths of all runs below a folder begin with; "" for the root and above:
        everything."""
        absolute = folder.absolute()
        if self.root is not None and self.root.is_relative_to(absolute):
            return ""
        return self.relative(absolute).rstrip("/") + "/"

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        # The database would let threads of one process wait for each other by sleeping.
        with self._one_writer, guard(self.where), writing(self._engine) as connection:
            yield connection

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with guard(self.where), self._engine.connect() as connection:
            return connection.execute(query).fetchall()

    def _pages(
        self, query: sa.Select[Any], order: sa.Column[Any], size: int
    ) -> Iterator[sa.Row[Any]]:
        """Rows in the order of a unique column of theirs, read `size` at a time, so that memory
        stays flat."""
        query = query.order_by(order).limit(size)
        rows = self._read(query)
        while rows:
            yield from rows
            rows = self._read(query.where(order > rows[-1]._mapping[order]))

    def _in_chunks(
        self, query: sa.Select[Any], column: Any, values: Iterable[str | int]
    ) -> Iterator[sa.Row[Any]]:
        wanted = list(dict.fromkeys(values))
        for start in range(0, len(wanted), CHUNK):
            yield from self._read(query.where(column.in_(wanted[start : start + CHUNK])))

    def _insert(self, table: sa.Table) -> Any:
        if self._engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as pg_insert

            return pg_insert(table)
        from sqlalchemy.dialects.sqlite import insert

        return insert(table)

    def _add_evidence(
        self, connection: Connection, rows: Iterable[tuple[str, str, str, str]]
    ) -> None:
        names = ("content_sha256", "context", "stage", "evidence_sha256")
        values = [dict(zip(names, row, strict=True)) | {"created_at": now()} for row in rows]
        if values:
            connection.execute(self._insert(schema.evidence).on_conflict_do_nothing(), values)

    def _settle(self, connection: Connection, rows: Iterable[tuple[str, str, int]]) -> None:
        values = [{"content_sha256": c, "question": q, "verdicts": n} for c, q, n in sorted(rows)]
        if values:
            connection.execute(self._insert(schema.settled).on_conflict_do_nothing(), values)


def now() -> str:
    """This moment as ISO 8601 in UTC, to the microsecond, always the same width."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def clean_text(text: str) -> str:
    """Text that both databases can hold: surrogate pairs joined, lone surrogates and NUL made
    visible."""
    if text.isascii() and "\0" not in text:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "␀")


def clean_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: clean_text(value) if isinstance(value, str) else value for name, value in row.items()
    }


def to_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON text that both databases can hold; NaN is a fault upstream."""
    text = json.dumps(
        value,
        allow_nan=False,
        ensure_ascii=False,
        separators=(",", ":"),
        default=str,
        sort_keys=sort_keys,
    )
    return clean_text(text)
