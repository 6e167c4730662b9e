"""Copies of a store: into another database, row by row, or as a backup of an SQLite file.

A copy finds the runs of its original. If its place does not say which folder the stored paths are
relative to, the copy notes that folder (`opening.set_root`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from ...errors import StoreError
from . import Store, default_root, is_beside_its_runs, open_store, schema
from .connection import to_json
from .opening import (
    connect,
    database_url,
    display,
    explain_errors,
    file_of,
    set_root,
    snapshot,
    write_transaction,
)
from .ownership import add_place

_ROWS = 500
"""Rows that are in memory at a time."""
_EVENTS = 20
"""Events that are in memory at a time; one may list a thousand requests of a batch."""
_TABLES = tuple(
    table for table in schema.metadata.sorted_tables if table not in (schema.meta, schema.claims)
)
"""In an order in which a row comes after those that it refers to."""
_BATCH_PARTS = "provider_batch_part"
"""Kind of the events that hold paths of runs."""


@dataclass(frozen=True)
class Copied:
    """What a copy holds."""

    location: str
    rows: int
    root: Path | None
    """The folder that paths of runs are relative to; None if they are absolute."""


def row_count(store: Store) -> int:
    """How many rows `copy_store` copies."""
    with explain_errors(store.location), store._engine.connect() as connection:
        return sum(_count(connection, table) for table in _TABLES)


def copy_store(
    source: Store,
    target: str | Path,
    *,
    base: Path | None = None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Copied:
    """Copy all rows into an empty store at another address, which is made if it is missing.

    The copy is whole or empty. `base`: the folder that the paths of runs are relative to now, by
    default the one of the source. `on_progress` gets the number of rows so far. StoreError if the
    target has rows already.
    """
    url = database_url(target)
    location = display(url)
    if location == source.location:
        raise StoreError(f"{location}: a store cannot be copied to itself", "name another place")
    root = _root_of_copy(source, url, base)
    engine = connect(target)
    try:
        with explain_errors(location), write_transaction(engine) as writing:
            _check_has_no_rows(writing, location)
            with explain_errors(source.location), snapshot(source._engine) as reading:
                rows = 0
                for count in _copied_rows(reading, writing, source.root, root):
                    rows += count
                    on_progress(rows)
            _set_sequences(writing)
            set_root(writing, root if root != default_root(url) else None)
            if not source.made_here:
                _disown(writing)
        _gather_statistics(engine)
    finally:
        engine.dispose()
    return Copied(location, rows, root)


def back_up(source: Store, target: Path) -> Copied:
    """Copy an SQLite store into a new file, while other commands may write to it.

    The file appears when it is whole. StoreError for a store on a server, and for a file that
    exists.
    """
    file = file_of(source._engine.url)
    if file is None:
        raise StoreError(
            f"{source.location}: a store on a server is backed up by the server (pg_dump)",
            f"or copy it into a file: ambjudge store copy URL {target}",
        )
    target = target.absolute()
    if target.exists():
        raise StoreError(f"{target} exists already", "name a new file")
    if target.parent.name == ".ambjudge" and target.parent.parent != source.root:
        raise StoreError(
            f"{target}: a store in .ambjudge is of the runs beside it", "name another folder"
        )
    partial = target.with_name(f"{target.name}.part")
    noted_root = source.root if source.root != default_root(database_url(target)) else None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_pages(file, partial, noted_root)
        os.replace(partial, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{target} cannot be written: {error}", "check free space and permissions"
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink()
    if source.made_here and source.id is not None:
        add_place(source.id, target)
    with open_store(target, create=False) as backup:
        return Copied(backup.location, row_count(backup), backup.root)


def _copy_pages(file: Path, partial: Path, root: Path | None) -> None:
    """Copy the file page by page, and note the folder that its paths are relative to."""
    with suppress(FileNotFoundError):
        partial.unlink()
    with closing(sqlite3.connect(file)) as original, closing(sqlite3.connect(partial)) as copy:
        # One step sees one state of the original, and in WAL mode keeps no writer waiting.
        original.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        with copy:
            copy.execute("DELETE FROM meta WHERE name = 'root'")
            if root is not None:
                copy.execute("INSERT INTO meta VALUES ('root', ?)", (str(root),))


def _root_of_copy(source: Store, url: sa.URL, base: Path | None) -> Path | None:
    """The folder that the copy's paths are relative to; StoreError if its place is of another."""
    own_root = default_root(url)
    root = base.absolute() if base is not None else source.root or own_root
    if is_beside_its_runs(url) and root != own_root:
        raise StoreError(
            f"{display(url)} is the place of a store for the runs below {own_root}, but the paths"
            f" of {source.location} are relative to {root}",
            f"give --base {own_root} if the runs lie there now, or copy to another place",
        )
    return root


def _check_has_no_rows(connection: Connection, location: str) -> None:
    for table in _TABLES:
        if connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first():
            raise StoreError(
                f"{location} is not empty: it has rows in {table.name}", "name a new place"
            )


def _copied_rows(
    reading: Connection, writing: Connection, old_root: Path | None, root: Path | None
) -> Iterator[int]:
    """Copy every table; yields the numbers of rows that were copied together."""
    # Paths of a store without a root are absolute; one with a root keeps them as they are.
    new_root = root if old_root is None else None
    for table in _TABLES:
        size = _EVENTS if table is schema.events else _ROWS
        query = sa.select(table).order_by(*table.primary_key.columns)
        result = reading.execution_options(yield_per=size).execute(query)
        for rows in result.mappings().partitions():
            values = [dict(row) for row in rows]
            if new_root is not None:
                values = [_relative_to(new_root, table, row) for row in values]
            writing.execute(table.insert(), values)
            yield len(values)


def _relative_to(root: Path, table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    """A row whose paths below the root are relative to it."""
    prefix = f"{root.as_posix().rstrip('/')}/"
    if "path" in table.c:
        row["path"] = row["path"].removeprefix(prefix)
    elif table is schema.events and row["kind"] == _BATCH_PARTS:
        body = json.loads(row["body"])
        for request in body.get("requests", ()):
            request["path"] = request["path"].removeprefix(prefix)
        row["body"] = to_json(body)
    return row


def _set_sequences(connection: Connection) -> None:
    """Let PostgreSQL number new rows after the copied ones; SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in _TABLES:
        columns: Sequence[sa.Column[Any]] = list(table.primary_key.columns)
        if len(columns) == 1 and isinstance(columns[0].type, sa.Integer):
            sequence = sa.func.pg_get_serial_sequence(table.name, columns[0].name)
            largest = sa.select(sa.func.max(columns[0])).scalar_subquery()
            next_value = sa.func.coalesce(largest + 1, 1)
            connection.execute(sa.select(sa.func.setval(sequence, next_value, False)))


def _disown(connection: Connection) -> None:
    """Give the copy of somebody else's store an id that is noted nowhere."""
    is_id = schema.meta.c.name == "id"
    connection.execute(schema.meta.update().where(is_id).values(value=uuid.uuid4().hex))


def _gather_statistics(engine: Engine) -> None:
    """Let PostgreSQL plan queries by the copied rows at once."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")


def _count(connection: Connection, table: sa.Table) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
