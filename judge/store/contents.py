"""What a store holds: its tables, runs, scorecards and verdicts, and what its calls have cost."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import Store, schema
from .opening import explain_errors, file_of

_SQLITE_SIZES = """
SELECT master.tbl_name, SUM(pages.pgsize) FROM dbstat AS pages
JOIN sqlite_schema AS master ON master.name = pages.name GROUP BY master.tbl_name
"""
"""Bytes by table, its indexes included."""


@dataclass(frozen=True)
class TableSize:
    """Rows of a table, and its bytes with its indexes."""

    name: str
    rows: int
    bytes: int | None
    """None if the database does not tell."""


@dataclass(frozen=True)
class CardCount:
    """Scorecards by a judge and a version of a rubric."""

    judge: str
    rubric: str
    version: str | None
    runs: int
    cards: int
    """Scorecards in all, those that a later one replaced included."""


@dataclass(frozen=True)
class Spending:
    """What the calls of a judge on a question used in a month."""

    month: str
    """YYYY-MM, UTC."""
    judge: str
    question: str
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """None if no call has a known cost."""
    without_cost: int
    """Answers whose cost is unknown, which `cost_usd` leaves out."""


@dataclass(frozen=True)
class StoreContents:
    """What a store holds."""

    location: str
    schema: int
    root: Path | None
    """The folder that paths of runs are relative to; None if they are absolute."""
    bytes: int
    made_here: bool
    tables: tuple[TableSize, ...]
    """The largest first."""
    runs: int
    versions: int
    """Versions of runs: one that changed and was judged again has several."""
    gone: tuple[str, ...]
    """Paths of runs that are no longer there."""
    cards: tuple[CardCount, ...]
    verdicts: int
    labels: int
    spending: tuple[Spending, ...]


def contents(store: Store) -> StoreContents:
    """Count what a store holds, and look whether its runs are at their paths."""
    with explain_errors(store.location), store._engine.connect() as connection:
        tables = _tables(connection)
        rows = {table.name: table.rows for table in tables}
        paths = [row[0] for row in connection.execute(sa.select(schema.files.c.path))]
        cards, spending = _cards(connection), _spending(connection)
    size = size_of(store)
    gone = [path for path in map(store.absolute, paths) if _is_gone(path)]
    return StoreContents(
        location=store.location,
        schema=schema.VERSION,
        root=store.root,
        bytes=size,
        made_here=store.made_here,
        tables=tables,
        runs=len(paths),
        versions=rows["runs"],
        gone=tuple(sorted(map(str, gone))),
        cards=cards,
        verdicts=rows["verdicts"],
        labels=rows["labels"],
        spending=spending,
    )


def size_of(store: Store) -> int:
    """Bytes of a store, of a file with what is not written back into it yet."""
    file = file_of(store._engine.url)
    if file is not None:
        parts = (str(file), f"{file}-wal")
        return sum(os.path.getsize(part) for part in parts if os.path.exists(part))
    with explain_errors(store.location), store._engine.connect() as connection:
        return sum(_server_size(connection, name) for name in schema.metadata.tables)


def _is_gone(path: Path) -> bool:
    """Whether a run of this machine is no longer at its path; addresses are not looked at."""
    from ...trajectories.reading.remote import RemotePath

    return not isinstance(path, RemotePath) and not os.path.exists(path)


def _server_size(connection: Connection, table: str) -> int:
    query = sa.select(sa.func.pg_total_relation_size(sa.cast(table, sa.Text)))
    return int(connection.execute(query).scalar_one())


def _tables(connection: Connection) -> tuple[TableSize, ...]:
    sizes = _table_bytes(connection)
    tables = []
    for name, table in schema.metadata.tables.items():
        rows = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        tables.append(TableSize(name, int(rows), sizes.get(name)))
    return tuple(sorted(tables, key=lambda table: (-(table.bytes or 0), table.name)))


def _table_bytes(connection: Connection) -> dict[str, int]:
    """Bytes by table; empty for an SQLite that was built without `dbstat`."""
    if connection.dialect.name == "postgresql":
        return {name: _server_size(connection, name) for name in schema.metadata.tables}
    try:
        rows = connection.exec_driver_sql(_SQLITE_SIZES).fetchall()
    except sa.exc.OperationalError:
        return {}
    return {str(name): int(size) for name, size in rows}


def _cards(connection: Connection) -> tuple[CardCount, ...]:
    cards, rubrics = schema.cards, schema.rubrics
    columns = (cards.c.judge, cards.c.rubric_id, rubrics.c.version)
    query = (
        sa.select(*columns, sa.func.count(sa.distinct(cards.c.path)), sa.func.count())
        .join_from(cards, rubrics, cards.c.rubric_sha256 == rubrics.c.sha256, isouter=True)
        .group_by(*columns)
    )
    counts = [CardCount(*row) for row in connection.execute(query)]
    return tuple(sorted(counts, key=lambda row: (row.judge, row.rubric, row.version or "")))


def _spending(connection: Connection) -> tuple[Spending, ...]:
    calls = schema.calls
    month = sa.func.substr(calls.c.created_at, 1, 7)
    keys: tuple[Any, ...] = (month, calls.c.judge, calls.c.stage)
    sums: tuple[Any, ...] = (
        sa.func.sum(calls.c.calls),
        sa.func.sum(calls.c.input_tokens),
        sa.func.sum(calls.c.output_tokens),
        sa.func.sum(calls.c.cost_usd),
        sa.func.sum(sa.case((calls.c.cost_usd.is_(None), 1), else_=0)),
    )
    query = sa.select(*keys, *sums).where(calls.c.calls > 0).group_by(*keys)
    rows = [Spending(*row) for row in connection.execute(query)]
    return tuple(sorted(rows, key=lambda row: (row.month, row.judge, row.question)))
