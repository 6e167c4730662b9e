"""Opening the store's database: from a URL or path to an SQLAlchemy engine with our schema.

Every failure is a StoreError of one line, in which passwords of URLs never appear.
"""

from __future__ import annotations

import logging
import re
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

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 60.0
"""How long a writer waits for another process's commit. Commits take milliseconds, so this is far
beyond any queue."""

_SCHEMA_LOCK_ID = 0x616D626A
"""PostgreSQL advisory lock ("ambj"): one process at a time creates or checks the schema."""
_WRITE_OPTION = "ambjudge_write"
_ROOT = "root"
"""Name of the row of `meta` with the folder that paths of runs are relative to."""
_WAL_ATTEMPTS, _WAL_PAUSE_S = 200, 0.02
_ADDRESS_HINT = "give a file, or postgresql://user@host/database"
_OWN_DATABASE_HINT = "give the store a database of its own"


def database_url(target: str | Path) -> URL:
    """The database URL of a path, `sqlite:///PATH`, `postgresql://...` or `postgres://...`.

    Raises StoreError for any other address.
    """
    text = str(target)
    scheme, separator, address = text.partition("://")
    if not separator and re.match(r"(postgres|postgresql|sqlite):/", text):
        raise StoreError("the store's address has a single slash after its scheme", _ADDRESS_HINT)
    if not separator:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    if scheme in ("postgres", "postgresql"):
        text = f"postgresql+psycopg://{address}"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError(
            f"the store's address, {scheme}://..., cannot be read", _ADDRESS_HINT
        ) from None
    if url.get_backend_name() == "sqlite":
        if not url.database:
            raise StoreError("the store's address does not name a file", _ADDRESS_HINT)
        return URL.create("sqlite", database=str(Path(url.database).absolute()))
    # A password with an @ or / that is not percent-encoded ends up in the host or the database.
    if "@" in f"{url.host or ''}{url.database or ''}":
        raise StoreError(
            f"the store's address, {scheme}://..., cannot be read", "write @ and / as %40 and %2F"
        )
    if url.get_backend_name() != "postgresql":
        raise StoreError(f"a store on {scheme!r} is not supported", _ADDRESS_HINT)
    return url


def connect(target: str | Path, *, create: bool = True) -> Engine:
    """An engine on the store, its schema created or checked.

    A store of an older schema is brought to this one (`schema.MIGRATIONS`), which is logged. Raises
    StoreError if it cannot be opened, is no store of ours, is damaged or was written by an
    ambjudge with a newer or far older schema; with `create=False` also if it does not exist.
    """
    url = database_url(target)
    location = display(url)
    if url.get_backend_name() == "sqlite":
        _prepare_file(Path(url.database or ""), create)
    try:
        engine = sa.create_engine(
            url, connect_args=_connect_args(url), pool_pre_ping=url.host is not None
        )
    except (ImportError, NoSuchModuleError):
        raise StoreError(
            f"{location}: the PostgreSQL driver is not installed",
            "pip install 'ambjudge[postgresql]'",
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _configure_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    try:
        with explain_errors(location):
            _ensure_schema(engine, location)
    except BaseException:
        engine.dispose()
        raise
    return engine


def file_of(url: URL) -> Path | None:
    """The store's file; None for a store on a server."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def display(url: URL) -> str:
    """The address as people may see it: a file's path, or the URL without password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes.

    On SQLite it takes the write lock at once: to upgrade a read later could fail as busy.
    """
    options = {_WRITE_OPTION: True}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction that reads, and sees nothing of what is written meanwhile."""
    is_sqlite = engine.dialect.name == "sqlite"
    options: dict[str, Any] = {} if is_sqlite else {"isolation_level": "REPEATABLE READ"}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        if is_sqlite:
            connection.exec_driver_sql("BEGIN")
        yield connection


def root_of(engine: Engine) -> Path | None:
    """The folder that the paths of runs are relative to, if the store notes it (`set_root`)."""
    query = sa.select(schema.meta.c.value).where(schema.meta.c.name == _ROOT)
    with engine.connect() as connection:
        root = connection.execute(query).scalar()
    return None if root is None else Path(root)


def set_root(connection: Connection, root: Path | None) -> None:
    """Note the folder that the paths of runs are relative to; None to leave it to the place."""
    connection.execute(schema.meta.delete().where(schema.meta.c.name == _ROOT))
    if root is not None:
        connection.execute(schema.meta.insert().values(name=_ROOT, value=str(root)))


@contextmanager
def explain_errors(location: str) -> Iterator[None]:
    """Turn database exceptions into one-line StoreErrors that name the store."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(*_explain(error, location)) from error


def _explain(error: SQLAlchemyError, location: str) -> tuple[str, str]:
    """Message and hint for a database exception."""
    original = getattr(error, "orig", None) or error
    reason = mask(" ".join(str(original).split()))[:300] or type(original).__name__
    lower = reason.lower()
    if "malformed" in lower or "not a database" in lower or "disk image" in lower:
        return (
            f"{location} is not a readable store: {reason}",
            "restore a copy, or move the file away to start a new one",
        )
    if "locked" in lower or "busy" in lower:
        return (
            f"{location} is locked by another process: {reason}",
            "wait for it to end, then run the same command again",
        )
    if "readonly" in lower or "read-only" in lower or "permission" in lower:
        return (
            f"{location} cannot be written: {reason}",
            "check its permissions, or choose another with --store",
        )
    if "full" in lower or "no space" in lower:
        return (
            f"{location} cannot grow: {reason}",
            "free some disk space, then run the same command again",
        )
    if isinstance(error, OperationalError) and getattr(error, "connection_invalidated", False):
        return (
            f"{location}: the connection was lost: {reason}",
            "check the server, then run the same command again",
        )
    if isinstance(error, DBAPIError):
        return (
            f"{location}: {reason}",
            "check that the store can be reached and belongs to ambjudge",
        )
    return f"{location}: {reason}", ""


def _prepare_file(path: Path, create: bool) -> None:
    """Make the folder of a new store; StoreError if it must not or cannot be made."""
    if path.is_dir():
        raise StoreError(
            f"{path} is a folder, not a store",
            "give the store's file, for example .ambjudge/ambjudge.db",
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
            f"{path.parent} cannot be created: {error.strerror}",
            "choose another place with --store",
        ) from error


def _connect_args(url: URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}
    return {"connect_timeout": 10, "application_name": "ambjudge"}


def _configure_sqlite(connection: Any, _record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # We begin transactions ourselves (`_begin_sqlite`).
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        # WAL lets readers work beside a writer.
        _switch_to_wal(cursor)
        # Every commit reaches the disk, as each holds calls that were paid for.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA recursive_triggers = ON")
    finally:
        cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Set the journal mode, trying again while another process does the same.

    To change it SQLite needs a new file for a moment alone, and does not wait for that by itself.
    """
    import sqlite3

    for attempt in range(_WAL_ATTEMPTS):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _WAL_ATTEMPTS - 1:
                raise
            time.sleep(_WAL_PAUSE_S)


def _begin_sqlite(connection: Connection) -> None:
    # A reader has a single statement and needs no transaction.
    if connection.get_execution_options().get(_WRITE_OPTION):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _ensure_schema(engine: Engine, location: str) -> None:
    with engine.connect() as connection:
        if _schema_version(connection, location) == schema.VERSION:
            return
    with write_transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK_ID)))
        # Asked again under the lock: another process may have been first.
        version = _schema_version(connection, location)
        if version is None:
            schema.create(connection)
            values = {"schema": str(schema.VERSION), "id": new_id(file_of(engine.url))}
            rows = [{"name": name, "value": value} for name, value in values.items()]
            connection.execute(schema.meta.insert(), rows)
        elif version != schema.VERSION:
            schema.migrate(connection, version)
            log.warning(
                "%s was brought from schema %s to %s; an older ambjudge cannot read it any more",
                location,
                version,
                schema.VERSION,
            )


def _schema_version(connection: Connection, location: str) -> int | None:
    """The version of the database's schema, which this version can use or bring up to date.

    None for an empty database. Raises StoreError for another program's database and for a version
    of the schema that is newer or too old.
    """
    tables = set(sa.inspect(connection).get_table_names())
    if "meta" not in tables:
        _check_empty(connection, location, tables)
        return None
    try:
        version = connection.execute(
            sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")
        ).scalar()
    except DBAPIError as error:
        raise StoreError(
            f"{location} has a table `meta` that is not ambjudge's", _OWN_DATABASE_HINT
        ) from error
    if version is None or not str(version).isdigit():
        raise StoreError(f"{location} does not state its schema", _OWN_DATABASE_HINT)
    if int(version) != schema.VERSION and int(version) not in schema.MIGRATIONS:
        age = "a newer" if int(version) > schema.VERSION else "an older"
        raise StoreError(
            f"{location} was written by {age} ambjudge (schema {version}, this version reads"
            f" {schema.VERSION})",
            "use that ambjudge, or choose another store with --store",
        )
    return int(version)


def _check_empty(connection: Connection, location: str, tables: set[str]) -> None:
    # A server's database may be shared; a file with any table in it is another program's.
    foreign = tables
    if connection.dialect.name != "sqlite":
        foreign = tables & set(schema.metadata.tables)
    if foreign:
        names = ", ".join(sorted(foreign)[:5])[:100]
        raise StoreError(f"{location} has tables of another program: {names}", _OWN_DATABASE_HINT)
