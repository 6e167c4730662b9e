"""Open batches at providers, as every command that asks, lists or examines says them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import console

if TYPE_CHECKING:
    from ..judge.provider_batch.ledger import OpenBatch
    from ..judge.store import Store

_MAX_NAMED = 5


def note_open_batches(store: Store, *, asks_open: bool, quiet: bool) -> None:
    """Say in one line which batches are open, and that what waits in them is not asked."""
    from ..judge.provider_batch import status

    batches = status(store)
    if not batches:
        return
    requests = console.counted(sum(batch.requests for batch in batches), "question")
    number = console.counted(len(batches), "open batch", "open batches")
    verb = "waits" if requests == "1 question" else "wait"
    if asks_open:
        rest = "asked all the same; what a batch still answers is paid twice"
    else:
        rest = "not asked; --batch collects, rejudge --abandon ID gives one up"
    console.note(f"{requests} {verb} in {number} ({describe_batches(batches)}): {rest}", quiet)


def describe_batches(batches: Sequence[OpenBatch]) -> str:
    """What tells open batches apart: id, time of sending, judge."""
    named = [
        f"{batch.provider_id or batch.id}, sent {_minute(batch.planned_at)}, {batch.judge.judge}"
        for batch in batches[:_MAX_NAMED]
    ]
    if len(batches) > _MAX_NAMED:
        named.append(f"and {len(batches) - _MAX_NAMED} more (ambjudge store info)")
    return "; ".join(named)


def reserved_usd(batches: Sequence[OpenBatch]) -> float | None:
    """What cost limits reserved for these batches; None if a price is unknown."""
    amounts = [batch.reserved_usd for batch in batches if batch.reserved_usd is not None]
    return sum(amounts) if len(amounts) == len(batches) else None


def _minute(time: str) -> str:
    """A stored time to the minute, in UTC."""
    return time[:16].replace("T", " ")
