"""Slimming a store: raw replies, scorecards and batch files that nothing rests on any more.

Verdicts, attempts, labels and calls, which are the record of what was paid, always stay.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..card.choice import ALL_JUDGES, CardChoice, RubricName, choose
from . import Store, schema
from .connection import chunks
from .opening import explain_errors, write_transaction


@dataclass(frozen=True)
class Pruned:
    """Rows of one kind that go, or are gone."""

    what: str
    rows: int
    bytes: int
    """Of their long columns."""


def prune_replies(store: Store, before: str, *, dry_run: bool) -> Pruned:
    """The raw replies to calls before a time (ISO 8601, UTC) that no later call gave too.

    Their verdicts stay.
    """
    links, texts, calls = schema.call_replies, schema.replies, schema.calls
    old = sa.select(calls.c.id).where(calls.c.created_at < before)
    later = sa.select(links.c.sha256).where(links.c.call_id.not_in(old))
    is_old = texts.c.sha256.not_in(later)
    with explain_errors(store.location), write_transaction(store._engine) as connection:
        size = _size(connection, texts.c.body, is_old)
        if not dry_run:
            with schema.unprotected(connection, links.name, texts.name):
                connection.execute(links.delete().where(links.c.call_id.in_(old)))
                connection.execute(texts.delete().where(is_old))
    return Pruned("raw replies", *size)


def prune_cards(store: Store, *, dry_run: bool) -> Pruned:
    """Scorecards that a later one of the same run, judge and rubric replaced.

    Those by an earlier version of a rubric are among them.
    """
    cards, links = schema.cards, schema.card_verdicts
    in_force = _cards_in_force(store)
    with explain_errors(store.location), write_transaction(store._engine) as connection:
        seqs = [row.seq for row in connection.execute(sa.select(cards.c.seq))]
        # A card that was stored since the choice was made is newer than all of these.
        newest = max(in_force, default=0)
        superseded = [seq for seq in seqs if seq < newest and seq not in in_force]
        rows = size = 0
        for part in chunks(superseded):
            chosen = cards.c.seq.in_(part)
            count, length = _size(connection, cards.c.body, chosen)
            rows, size = rows + count, size + length
            if not dry_run:
                connection.execute(links.delete().where(links.c.card.in_(part)))
                connection.execute(cards.delete().where(chosen))
    return Pruned("superseded scorecards", rows, size)


def prune_events(
    store: Store, what: str, kind: str, batches: Collection[str], *, dry_run: bool
) -> Pruned:
    """Events of a kind that belong to these batches."""
    events = schema.events
    rows = size = 0
    with explain_errors(store.location), write_transaction(store._engine) as connection:
        for part in chunks(sorted(batches)):
            chosen = sa.and_(events.c.kind == kind, events.c.batch.in_(part))
            count, length = _size(connection, events.c.body, chosen)
            rows, size = rows + count, size + length
            if not dry_run and count:
                with schema.unprotected(connection, events.name):
                    connection.execute(events.delete().where(chosen))
    return Pruned(what, rows, size)


def vacuum(store: Store) -> None:
    """Give the room of deleted rows back to the disk.

    StoreError if another command uses the store for longer than a minute.
    """
    options = {"isolation_level": "AUTOCOMMIT"}
    with explain_errors(store.location):
        if store._engine.dialect.name == "postgresql":
            with store._engine.connect().execution_options(**options) as connection:
                for name in ("call_replies", "replies", "card_verdicts", "cards", "events"):
                    connection.exec_driver_sql(f"VACUUM FULL {name}")
            return
        with store._engine.connect() as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _cards_in_force(store: Store) -> frozenset[int]:
    """The numbers of the scorecards that count by any judge, and by any judge and rubric.

    Of copies of a run only one counts (`choose`), but it is another one when that is deleted; so
    the newest scorecard at each path is in force too.
    """
    stored = store.heads()
    heads = [each.head for each in stored]
    names = sorted({head.rubric for head in heads if head.rubric is not None})
    numbers = set(choose(heads, CardChoice(ALL_JUDGES)).numbers)
    for name in names:
        numbers.update(choose(heads, CardChoice(ALL_JUDGES, (RubricName(name),))).numbers)
    newest_at_path = {
        (head.path, head.judge, head.rubric): number for number, head in enumerate(heads)
    }
    return frozenset(stored[number].seq for number in {*numbers, *newest_at_path.values()})


def _size(
    connection: Connection, column: sa.Column[Any], condition: sa.ColumnElement[bool]
) -> tuple[int, int]:
    """How many rows meet the condition, and the bytes of this column in them."""
    is_server = connection.dialect.name == "postgresql"
    length = sa.func.octet_length(column) if is_server else sa.func.length(column)
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(length), 0)).where(condition)
    rows, size = connection.execute(query.select_from(column.table)).one()
    return int(rows), int(size)
