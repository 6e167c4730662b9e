"""Judging through a provider's batch endpoint: cheaper, within a day, safe to interrupt any time.

    submission = await submit(store, judge, requests)      # uploads, returns at once
    collected = await collect(store, judge)                # any time later, in any process; repeat
    until no batch is open

The store notes which verdicts a batch stands for before the batch is created, so that no verdict is
asked twice. Its answers become the verdicts that live calls would have given, under the same keys.
A failed or missing answer is an unscored attempt: the next plan asks again.

A crash while a batch is being created leaves it in doubt. The next `submit` or `collect` looks for
it in the provider's list, by our mark in its metadata or by its input file, and adopts it; if it is
not there `settle_s` seconds after the attempt, it was not created. Two limits: a provider whose
list lags further behind can be paid twice, and one that keeps no list leaves the batch in doubt
until `abandon` (`rejudge --abandon`) is called. The provider is searched with the key now in force:
with the key of another account the batch would not be found.

`sending` and `collecting` do the two halves, `ledger` notes every step in the store, `batch_files`
writes and reads the files, `endpoint` makes the HTTP requests.
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
from .endpoint import open_endpoint
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

_MAX_POLL_S = 60.0
_POLL_GROWTH = 1.5


def status(store: Store) -> tuple[OpenBatch, ...]:
    """All open batches of any judge, oldest first, as the store has them; no provider is asked."""
    return tuple(Ledger(store).open_batches())


async def submit(
    store: Store, judge: Judge, requests: Iterable[Request], options: BatchOptions | None = None
) -> Submission:
    """Send every request that has no verdict and is part of no open batch.

    Returns once the batches are created. Requests are read one at a time and split into files
    within the limits.

    Raises ConfigError for a judge without batches, or for a cost limit without a known price;
    JudgeError if the provider cannot be used. Whatever was created by then is noted, and the same
    call goes on from there.
    """
    options = options or BatchOptions()
    batch_judge = _check_batch_judge(judge)
    address, key = batch_judge.endpoint()
    async with open_endpoint(address, key, batch_judge.name, options.retry) as endpoint:
        sender = Sender(store, batch_judge, endpoint, options)
        await sender.recover()
        with tempfile.TemporaryDirectory(prefix="ambjudge-") as folder:
            sender.start(Path(folder))
            for request in requests:
                await sender.add(request)
            await sender.send_draft()
    return sender.submission


async def collect(
    store: Store,
    judge: Judge,
    *,
    wait_s: float = 0.0,
    poll_s: float = 10.0,
    options: BatchOptions | None = None,
) -> Collected:
    """Store what this judge's open batches have answered.

    With `wait_s`, the provider is asked again until all batches have ended or the time is up.
    Batches of this model and address are read even if the judge's prompts or parameters were
    changed since: their verdicts are stored under the keys that they were asked for.

    Raises JudgeError if the provider cannot be used.
    """
    options = options or BatchOptions()
    batch_judge = _check_batch_judge(judge)
    deadline = time.monotonic() + wait_s
    address, key = batch_judge.endpoint()
    async with open_endpoint(address, key, batch_judge.name, options.retry) as endpoint:
        sender = Sender(store, batch_judge, endpoint, options)
        await sender.recover()
        collector = Collector(store, batch_judge, endpoint)
        while True:
            open_batches = await collector.collect_ended()
            remaining_s = deadline - time.monotonic()
            in_progress = any(state.provider is not None for state in open_batches)
            if not in_progress or remaining_s <= 0:
                break
            await asyncio.sleep(min(poll_s, remaining_s))
            poll_s = min(_MAX_POLL_S, poll_s * _POLL_GROWTH)
    collected = collector.collected
    collected.open = open_batches
    warnings = (*sender.submission.warnings, *collected.warnings)
    collected.warnings = list(dict.fromkeys(warnings))
    return collected


def abandon(store: Store, batch_id: str) -> None:
    """Close an open batch without its answers, so that its verdicts are asked again.

    What it cost is lost. `batch_id` is ours or the provider's; ConfigError if no open batch has it.
    """
    open_batches = status(store)
    for batch in open_batches:
        if batch_id in (batch.id, batch.provider_id):
            Ledger(store).close(batch.id, "abandoned")
            return
    ids = ", ".join(batch.provider_id or batch.id for batch in open_batches) or "none"
    raise ConfigError(f"no open batch {batch_id}", f"open: {ids}")


def _check_batch_judge(judge: Judge) -> BatchJudge:
    if not isinstance(judge, BatchJudge):
        raise ConfigError(
            f"{judge.name}: cannot be judged through provider batches",
            "leave out --batch, or name one API model",
        )
    return judge
