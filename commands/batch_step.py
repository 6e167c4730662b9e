"""`--batch` of `score` and `rejudge`: requests sent to the provider's batch endpoint now, answers
collected by any later command."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import console

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.provider_batch.collecting import Collected
    from ..judge.provider_batch.sending import Submission
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.store import Store


@dataclass(frozen=True)
class BatchStep:
    """What one command did: verdicts collected, criteria that failed, batches that the provider
    still works on, and requests that the cost limit kept back."""

    scored: int
    unscored: int
    still_open: int
    over_budget: int


def step(
    made: RejudgePlan,
    store: Store,
    judge: Judge,
    max_cost: float | None,
    wait_s: float,
    quiet: bool,
) -> BatchStep:
    """Collect what earlier batches answered, send what is still missing, wait for it if asked to;
    says what happened."""
    from ..judge.provider_batch import BatchOptions, collect, status, submit
    from ..judge.rejudge.staleness import planned_requests

    async def work() -> tuple[Collected | None, Submission, Collected | None]:
        first = await collect(store, judge) if status(store) else None
        sent = await submit(
            store, judge, planned_requests(made, judge), BatchOptions(max_cost=max_cost)
        )
        return (
            first,
            sent,
            await collect(store, judge, wait_s=wait_s) if sent.batches or sent.waiting else None,
        )

    first, sent, last = asyncio.run(work())
    for part in (first, sent, last):
        for line in part.warnings if part is not None else ():
            console.note(f"ambjudge: {line}", quiet)
    gathered = [part for part in (first, last) if part is not None]
    done = BatchStep(
        scored=sum(part.scored for part in gathered),
        unscored=sum(sum(part.unscored.values()) for part in gathered),
        still_open=len(last.open) if last is not None else 0,
        over_budget=sent.over_budget,
    )
    console.note(
        f"sent {sent.sent} requests in {len(sent.batches)} batches, {sent.waiting} wait in earlier"
        f" ones, {sent.over_budget} over the cost limit; collected {done.scored} verdicts,"
        f" {done.unscored} unscored; {done.still_open} batches open"
    )
    if done.still_open:
        console.note("the provider is still at work: the same command collects later", quiet)
    return done
