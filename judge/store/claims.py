"""Claims on verdict keys: of several commands on one store, one asks for an item and pays for it.

A claim is made before a call and goes with the transaction that stores the answer, so the others
find either the claim or the verdict. Whoever holds claims changes their `beat` again and again.
A claim is void once its process is gone from this computer, or once its beat has not changed for
LEASE_S seconds by the watch of the one who waits: nobody waits for a command that was killed, and
no two clocks are compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...errors import StoreError
from . import schema
from .connection import StorePart, chunks
from .group_commit import GroupCommit

LEASE_S = 60.0
"""Seconds without a new beat after which a claim of another computer is void."""
_BEAT_S = 10.0
"""Seconds between two beats of a holder."""


class ClaimTable(StorePart):
    """The claims of a store."""

    def claims(self, keys: Iterable[str]) -> dict[str, tuple[str, str]]:
        """(holder, beat) of the claims on these keys."""
        rows = self._in_chunks(sa.select(schema.claims), schema.claims.c.key, keys)
        return {row.key: (row.holder, row.beat) for row in rows}

    def claim(
        self,
        holder: str,
        requests: Sequence[Sequence[str]],
        void: Mapping[str, tuple[str, str]],
    ) -> list[bool]:
        """For each request, whether the holder has all of its keys now: all of them or none.

        A key that has a verdict by now is refused. `void`: (holder, beat) of claims to put aside.
        """
        table = schema.claims
        keys = sorted({key for request in requests for key in request})
        beat = uuid.uuid4().hex
        with self._write() as connection:
            for key, (old_holder, old_beat) in sorted(void.items()):
                is_void = (table.c.holder == old_holder) & (table.c.beat == old_beat)
                connection.execute(table.delete().where((table.c.key == key) & is_void))
            rows = [{"key": key, "holder": holder, "beat": beat} for key in keys]
            connection.execute(self._insert(table).on_conflict_do_nothing(), rows)
            taken = _selected(connection, table.c.key, keys, table.c.holder != holder)
            # A verdict that was stored since the look-up came with the end of its claim.
            taken |= _selected(connection, schema.verdicts.c.key, keys)
            has_all = [taken.isdisjoint(request) for request in requests]
            refused = [
                key
                for request, granted in zip(requests, has_all, strict=True)
                for key in request
                if not granted
            ]
            end_claims(connection, refused, holder)
        return has_all

    def end_claims(self, holder: str, keys: Iterable[str]) -> None:
        """Give up the holder's claims on these keys."""
        with self._write() as connection:
            end_claims(connection, keys, holder)

    def beat(self, holder: str, keys: Sequence[str]) -> None:
        """Show that the holder of the claims on these keys is alive."""
        table = schema.claims
        with self._write() as connection:
            for part in chunks(keys):
                is_held = table.c.key.in_(part)
                connection.execute(
                    table.update()
                    .where(is_held & (table.c.holder == holder))
                    .values(beat=uuid.uuid4().hex)
                )


def end_claims(connection: Connection, keys: Iterable[str], holder: str | None = None) -> None:
    """Delete claims on these keys, those of one holder or of anybody."""
    table = schema.claims
    for part in chunks(sorted(set(keys))):
        condition: sa.ColumnElement[bool] = table.c.key.in_(part)
        if holder is not None:
            condition &= table.c.holder == holder
        connection.execute(table.delete().where(condition))


def _selected(
    connection: Connection,
    column: sa.Column[str],
    keys: Sequence[str],
    condition: sa.ColumnElement[bool] | None = None,
) -> set[str]:
    """Which of these keys a column holds in rows of this condition."""
    selected: set[str] = set()
    for part in chunks(keys):
        query = sa.select(column).where(column.in_(part))
        if condition is not None:
            query = query.where(condition)
        selected.update(connection.execute(query).scalars())
    return selected


class Claims:
    """The claims that one judge of this process holds while it asks."""

    def __init__(self, store: ClaimTable) -> None:
        self._store = store
        self._holder = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex}"
        self._requests = GroupCommit(self._take_group)
        self._held: set[str] = set()
        self._seen: dict[str, tuple[tuple[str, str], float]] = {}
        """By key, the (holder, beat) of another's claim and when it was first seen."""
        self._beating: asyncio.Task[None] | None = None

    async def take(self, keys: Sequence[str]) -> bool:
        """Claim all of these keys; False if another holds one of them, or has its verdict."""
        if not await self._requests.submit(keys):
            return False
        self._held.update(keys)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        return True

    def forget(self, keys: Iterable[str]) -> None:
        """The claims on these keys have ended, as their answers are stored."""
        self._held.difference_update(keys)

    async def release(self, keys: Iterable[str]) -> None:
        """End the claims on those of these keys for which no answer was stored."""
        unanswered = self._held.intersection(keys)
        if not unanswered:
            return
        self.forget(unanswered)
        # If the store cannot be written to, the claims lose their force by themselves.
        with contextlib.suppress(StoreError):
            await asyncio.to_thread(self._store.end_claims, self._holder, unanswered)

    def _take_group(self, group: Sequence[Sequence[str]]) -> Sequence[bool]:
        claims = self._store.claims(key for keys in group for key in keys)
        others = {key: claim for key, claim in claims.items() if claim[0] != self._holder}
        void = {key: claim for key, claim in others.items() if self._is_void(key, claim)}
        return self._store.claim(self._holder, group, void)

    def _is_void(self, key: str, claim: tuple[str, str]) -> bool:
        if _is_gone(claim[0]):
            return True
        now = time.monotonic()
        seen, since = self._seen.get(key, (None, now))
        if seen != claim:
            since = now
        self._seen[key] = (claim, since)
        return now - since > LEASE_S

    async def _beat(self) -> None:
        while self._held:
            await asyncio.sleep(_BEAT_S)
            if self._held:
                with contextlib.suppress(StoreError):
                    await asyncio.to_thread(self._store.beat, self._holder, sorted(self._held))


def _is_gone(holder: str) -> bool:
    """Whether a holder was a process of this computer that has ended."""
    host, _, rest = holder.partition("/")
    number = rest.partition("/")[0]
    if host != socket.gethostname() or not number.isdigit() or os.name == "nt":
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
