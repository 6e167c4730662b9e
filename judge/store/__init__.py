"""The verdict store: every verdict, attempt, raw reply, label and event, in SQLite or PostgreSQL.

Rows of these are only ever added. `open_store` is where to start. The tables are in `schema`,
connections in `opening`; the store's methods are grouped by what they are about: runs (`runs`),
verdicts and calls (`verdicts`), scorecards, labels and events (`scorecards`), earlier scorecards
(`card_history`). `reuse.StoredJudge` is a judge with this memory, `card_cache` finds scorecards
that need not be computed again.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from ..base import RETRIABLE
from . import schema
from .card_history import CardHistory
from .claims import ClaimTable
from .opening import connect, database_url, display, file_of, root_of
from .ownership import is_own
from .runs import FileStamp, RunIndex, StoredRun
from .scorecards import Archive
from .verdicts import StoredVerdict, VerdictTables, is_final

__all__ = [
    "DEFAULT_STORE",
    "RETRIABLE",
    "FileStamp",
    "Store",
    "StoredRun",
    "StoredVerdict",
    "is_final",
    "open_store",
]

DEFAULT_STORE = Path(".ambjudge") / "ambjudge.db"
"""Relative to the collection's root."""


def open_store(target: str | Path, *, root: str | Path | None = None, create: bool = True) -> Store:
    """Open a store by path or URL, creating it unless `create` is False.

    Paths of runs are stored relative to `root`, so that a collection can move. By default that is
    the folder that contains `.ambjudge/`; of a store elsewhere the folder that a copy notes
    (`copying`), else the store file's own folder. On PostgreSQL, paths of a store that was not
    copied are stored as given. StoreError says in one line why a store cannot be used.
    """
    url = database_url(target)
    engine = connect(target, create=create)
    base = Path(root).absolute() if root is not None else None
    if base is None and not is_beside_its_runs(url):
        base = root_of(engine)
    return Store(engine, display(url), base or default_root(url))


def default_root(url: sa.URL) -> Path | None:
    """The folder that paths are relative to by the place of the store; None on a server."""
    file = file_of(url)
    if file is None:
        return None
    return file.parent.parent if is_beside_its_runs(url) else file.parent


def is_beside_its_runs(url: sa.URL) -> bool:
    """Whether the store lies in the folder `.ambjudge` of a collection."""
    file = file_of(url)
    return file is not None and file.parent.name == DEFAULT_STORE.parent.name


class Store(RunIndex, VerdictTables, ClaimTable, Archive, CardHistory):
    """One open store. Methods may be called from several threads; each write is one transaction."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The address with its password, for our own processes to open it by.

        It must never be shown; `location` may be.
        """
        return self._engine.url.render_as_string(hide_password=False)

    def close(self) -> None:
        self._engine.dispose()

    @cached_property
    def id(self) -> str | None:
        """The random id that the store got when it was made."""
        rows = self._read(sa.select(schema.meta.c.value).where(schema.meta.c.name == "id"))
        return str(rows[0][0]) if rows else None

    @cached_property
    def made_here(self) -> bool:
        """Whether this user made the store; nothing vouches for verdicts in somebody else's."""
        return is_own(self.id, file_of(self._engine.url))
