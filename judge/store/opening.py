"""Opening the store's database: URL or path to a connected SQLAlchemy engine whose schema is known
to be ours.

Every failure is a StoreError of one line. Passwords in URLs never appear in one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.pool import ConnectionPoolEntry

from ...errors import StoreError
from ...sanitize import mask
from . import schema
from .ownership import new_id

BUSY_TIMEOUT_S = 60.0
"""How long a writer waits for another process's commit; commits take milliseconds, so this is far
beyond any queue."""

_PG_LOCK = 0x616D626A  # "ambj": one process at a time creates or checks the schema.
_WRITE = "ambjudge_write"


def locate(target: str | Path) -> URL:
    """The database URL of a path, `sqlite:///PATH`, `postgresql://...` or `postgres://...`."""
    text = str(target)
    scheme, found, rest = text.partition("://")
    if not found:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    if scheme in ("postgres", "postgresql"):
        text = f"postgresql+psycopg://{rest}"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError(
            f"the store's address, {scheme}://..., cannot be read", _ADDRESS_HINT
        ) from None
    if url.get_backend_name() == "sqlite":
        if not url.database:
            raise StoreError("the store's address names no file", _ADDRESS_HINT)
        return URL.create("sqlite", database=str(Path(url.database).absolute()))
    if url.get_backend_name() != "postgresql":
        raise StoreError(f"a store on {scheme!r} is not supported", _ADDRESS_HINT)
    return url


_ADDRESS_HINT = "give a file, or postgresql://user@host/database"


def connect(target: str | Path, *, create: bool = True) -> Engine:
    """An engine on the store, its schema created or checked.

    StoreError when it cannot be opened, is no store of ours, is damaged or was written by an
    ambjudge with another schema; with `create=False` also when it does not exist.
    """
    url = locate(target)
    where = display(url)
    if url.get_backend_name() == "sqlite":
        _prepare_file(Path(url.database or ""), create)
    try:
        engine = sa.create_engine(
            url, connect_args=_connect_args(url), pool_pre_ping=url.host is not None
        )
    except (ImportError, NoSuchModuleError):
        raise StoreError(
            f"{where}: the PostgreSQL driver is not installed", "pip install 'ambjudge[postgresql]'"
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _sqlite_connect)
        sa.event.listen(engine, "begin", _sqlite_begin)
    try:
        with guard(where):
            _ensure_schema(engine, where)
    except BaseException:
        engine.dispose()
        raise
    return engine


def file_of(url: URL) -> Path | None:
    """The store's file; None for one on a server."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def display(url: URL) -> str:
    """The address as shown to people: a file's path, or the URL without its password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One write transaction. On SQLite it takes the write lock at once: upgrading a read later
    could fail as busy."""
    with engine.connect().execution_options(**{_WRITE: True}) as connection, connection.begin():
        yield connection


@contextmanager
def guard(where: str) -> Iterator[None]:
    """Database exceptions as one-line StoreErrors that name the store."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(*_explain(error, where)) from error


def _explain(error: SQLAlchemyError, where: str) -> tuple[str, str]:
    original = getattr(error, "orig", None) or error
    said = mask(" ".join(str(original).split()))[:300] or type(original).__name__
    low = said.lower()
    if "malformed" in low or "not a database" in low or "disk image" in low:
        return (
            f"{where}: is not a readable store: {said}",
            "restore a copy, or move the file away to start a new one",
        )
    if "locked" in low or "busy" in low:
        return (
            f"{where}: is held by another process: {said}",
            "wait for it to end, then run the same command again",
        )
    if "readonly" in low or "read-only" in low or "permission" in low:
        return (
            f"{where}: cannot be written: {said}",
            "check its permissions, or choose another with --store",
        )
    if "full" in low or "no space" in low:
        return (
            f"{where}: cannot grow: {said}",
            "free some disk space, then run the same command again",
        )
    if isinstance(error, OperationalError) and getattr(error, "connection_invalidated", False):
        return (
            f"{where}: connection lost: {said}",
            "check the server, then run the same command again",
        )
    if isinstance(error, DBAPIError):
        return f"{where}: {said}", "check that the store can be reached and belongs to ambjudge"
    return f"{where}: {said}", ""


def _prepare_file(path: Path, create: bool) -> None:
    if path.is_dir():
        raise StoreError(
            f"{path}: is a folder", "give the store's file, for example .ambjudge/ambjudge.db"
        )
    if path.exists():
        return
    if not create:
        raise StoreError(
            f"{path}: no such store", "run `ambjudge score` first, or name the store with --store"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path.parent}: cannot be created: {error.strerror}",
            "choose another place with --store",
        ) from error


def _connect_args(url: URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}
    return {"connect_timeout": 10, "application_name": "ambjudge"}


def _sqlite_connect(connection: Any, _record: ConnectionPoolEntry) -> None:
    """Our own transaction control; WAL for readers beside a writer; every commit on disk, as each
    holds paid calls."""
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        _switch_to_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA recursive_triggers = ON")
    finally:
        cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Changing the mode of a new file needs it for a moment alone, and SQLite does not wait for
    that by itself."""
    import sqlite3

    for attempt in range(200):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == 199:
                raise
            time.sleep(0.02)


def _sqlite_begin(connection: Connection) -> None:
    # A reader has one statement, which needs no more.
    if connection.get_execution_options().get(_WRITE):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _ensure_schema(engine: Engine, where: str) -> None:
    with engine.connect() as connection:
        if _version(connection, where) is not None:
            return
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PG_LOCK)))
        if _version(connection, where) is None:  # again: another process may have been first
            schema.create(connection)
            made = {"schema": str(schema.VERSION), "id": new_id(file_of(engine.url))}
            connection.execute(
                schema.meta.insert(), [{"name": n, "value": v} for n, v in made.items()]
            )


def _version(connection: Connection, where: str) -> int | None:
    """Which version of our schema is there; None for an empty database."""
    tables = set(sa.inspect(connection).get_table_names())
    if "meta" not in tables:
        # A server's database may be shared; a file with anything in it is another program's.
        taken = (
            tables if connection.dialect.name == "sqlite" else tables & set(schema.metadata.tables)
        )
        if taken:
            names = ", ".join(sorted(taken)[:5])[:100]
            raise StoreError(
                f"{where}: holds other tables: {names}", "give the store a database of its own"
            )
        return None
    try:
        found = connection.execute(
            sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")
        ).scalar()
    except DBAPIError as error:
        raise StoreError(
            f"{where}: has a table `meta` that is not ours", "give the store a database of its own"
        ) from error
    if found is None or not str(found).isdigit():
        raise StoreError(
            f"{where}: does not say which schema it has", "give the store a database of its own"
        )
    if int(found) != schema.VERSION:
        when = "a newer" if int(found) > schema.VERSION else "an older"
        raise StoreError(
            f"{where}: was written by {when} ambjudge (schema {found}, this one knows"
            f" {schema.VERSION})",
            "use that ambjudge, or choose another store with --store",
        )
    return int(found)
