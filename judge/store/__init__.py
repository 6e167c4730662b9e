"""The verdict store: every verdict, attempt, raw reply, label and event, in SQLite or PostgreSQL.

Rows of these are only ever added. `open_store` is where to start. The tables are in `schema`,
connections in `opening`; the store's methods are grouped by what they are about: runs (`runs`),
verdicts and calls (`verdicts`), scorecards, labels and events (`scorecards`). `reuse.StoredJudge`
is a judge with this memory, `card_cache` finds scorecards that need not be computed again.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from ..base import RETRIABLE
from . import schema
from .opening import connect, database_url, display, file_of
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
    the folder that contains `.ambjudge/`, or the store file's own folder. On PostgreSQL there is no
    default, and paths are stored as given. StoreError says in one line why a store cannot be used.
    """
    url = database_url(target)
    base = Path(root).absolute() if root is not None else None
    if base is None and url.get_backend_name() == "sqlite":
        folder = Path(url.database or "").parent
        base = folder.parent if folder.name == ".ambjudge" else folder
    return Store(connect(target, create=create), display(url), base)


class Store(RunIndex, VerdictTables, Archive):
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
    def made_here(self) -> bool:
        """Whether this user made the store; nothing vouches for verdicts in somebody else's."""
        rows = self._read(sa.select(schema.meta.c.value).where(schema.meta.c.name == "id"))
        return is_own(rows[0][0] if rows else None, file_of(self._engine.url))
