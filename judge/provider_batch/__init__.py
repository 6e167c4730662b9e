"""Judging through a provider's batch endpoint: cheaper, within a day, and safe to interrupt at any
moment.

    submission = await submit(store, judge, requests)      # uploads, returns at once
    collected = await collect(store, judge)                # any time later, in any process; repeat
    until nothing is open

What a batch stands for is noted in the store before it is created, so that the same verdicts are
never asked twice, and its answers become the verdicts that live calls would have given, under the
same keys. A failed or missing answer is an unscored attempt: the next plan asks again.

A crash while a batch is being created leaves it in doubt. The next `submit` or `collect` looks for
it in the provider's list, by our mark in its metadata or by its input file, and adopts it; if it is
not there `settle_s` seconds after the attempt, it was not created. Two limits: a provider whose
list lags further behind can be paid twice, and one that keeps no list leaves the batch in doubt
until `abandon` (`rejudge --abandon`) is called. The search is made with the key now in force: one
of another account would not find the batch.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from ...errors import ConfigError
from ..base import Judge, Request
from ..store import Store
from .collecting import BatchState, Collected, Collector
from .endpoints import endpoint
from .ledger import Ledger, OpenBatch
from .sending import BatchJudge, BatchOptions, Sender, Submission

__all__ = [
    "BatchJudge",
    "BatchOptions",
    "BatchState",
    "Collected",
    "OpenBatch",
    "Submission",
    "abandon",
    "collect",
    "status",
    "submit",
]

_LONGEST_POLL_S = 60.0


def status(store: Store) -> tuple[OpenBatch, ...]:
    """All batches that are not closed, of any judge, oldest first, as far as the store knows:
    nobody is asked."""
    return tuple(Ledger(store).open())


async def submit(
    store: Store, judge: Judge, requests: Iterable[Request], options: BatchOptions | None = None
) -> Submission:
    """Send every request that has no verdict yet and waits in no open batch; returns when the
    batches are created.

    Requests are read one at a time and split into files within the limits. ConfigError for a judge
    without batches, or for a cost limit on one without a known price; JudgeError when the provider
    cannot be used: whatever was created by then is noted, and the same call again goes on.
    """
    options = options or BatchOptions()
    able = _able(judge)
    async with endpoint(*able.endpoint(), able.name, options.retry) as http:
        sender = Sender(store, able, http, options)
        await sender.recover()
        with tempfile.TemporaryDirectory(prefix="ambjudge-") as folder:
            sender.start(Path(folder))
            for request in requests:
                await sender.take(request)
            await sender.flush()
    return sender.done


async def collect(
    store: Store,
    judge: Judge,
    *,
    wait_s: float = 0.0,
    poll_s: float = 10.0,
    options: BatchOptions | None = None,
) -> Collected:
    """Bring in what this judge's open batches have answered; with `wait_s`, ask again until all
    are, or time is up.

    Batches of this model and address are read even if its prompts or parameters were changed since:
    their verdicts are kept under the keys that they were asked for. JudgeError when the provider
    cannot be used.
    """
    options = options or BatchOptions()
    able = _able(judge)
    deadline = time.monotonic() + wait_s
    async with endpoint(*able.endpoint(), able.name, options.retry) as http:
        sender = Sender(store, able, http, options)
        await sender.recover()
        collector = Collector(store, able, http)
        while True:
            still = await collector.round()
            left = deadline - time.monotonic()
            if not any(state.provider is not None for state in still) or left <= 0:
                break
            await asyncio.sleep(min(poll_s, left))
            poll_s = min(_LONGEST_POLL_S, poll_s * 1.5)
    collector.done.open = still
    collector.done.warnings = list(dict.fromkeys((*sender.done.warnings, *collector.done.warnings)))
    return collector.done


def abandon(store: Store, batch_id: str) -> None:
    """Close an open batch without its answers, so that its verdicts are asked anew; what it cost is
    lost."""
    Ledger(store).note(_find(store, batch_id).id, "closed", why="abandoned")


def _able(judge: Judge) -> BatchJudge:
    if not isinstance(judge, BatchJudge):
        raise ConfigError(
            f"{judge.name}: cannot be judged through provider batches",
            "leave out --batch, or name one API model",
        )
    return judge


def _find(store: Store, batch_id: str) -> OpenBatch:
    still = status(store)
    for batch in still:
        if batch_id in (batch.id, batch.provider_id):
            return batch
    known = ", ".join(batch.provider_id or batch.id for batch in still) or "none"
    raise ConfigError(f"no open batch {batch_id}", f"open: {known}")
