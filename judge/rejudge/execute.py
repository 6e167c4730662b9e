"""Carrying out a rejudge plan: exactly its calls, within a budget, each answer stored before the next step counts."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...errors import AmbjudgeError
from ..base import Judge, Reply, Request, Usage
from ..limits import Allowance, GuardedJudge, Pacer
from ..runner import BatchSummary, Progress, run_batch
from ..store import Store
from ..store.reuse import StoredJudge
from .staleness import RejudgePlan, requests

_AHEAD = 4
"""Requests read ahead for each call at once: about the questions on a run, so that there are enough other runs to ask
about while the first question on each goes alone."""


@dataclass(frozen=True)
class Execution:
    """What carrying out a plan came to. `unscored` counts criteria that failed, by reason; what rules leave to a reader is
    no failure. `lost` runs could not be read any more."""

    summary: BatchSummary
    usage: Usage
    scored: int
    unscored: Counter[str]
    lost: tuple[tuple[Path, AmbjudgeError], ...]
    throttles: int
    """Rate limits met."""


@dataclass(frozen=True)
class Spending:
    """Progress with what was spent so far."""

    progress: Progress
    usage: Usage


async def execute(
    plan: RejudgePlan, store: Store, judge: Judge, *, concurrency: int = 16, budget: Allowance | None = None,
    on_progress: Callable[[Spending], None] | None = None, signals: bool = True,
) -> Execution:  # fmt: skip
    """Make the plan's calls. What is answered is stored at once, so that an interrupted batch goes on where it stopped
    by planning again.

    JudgeError when the judge cannot be used at all; ConfigError for a cost limit on a judge without a known price.
    """
    pacer = Pacer(concurrency)
    guarded = StoredJudge(GuardedJudge(judge, pacer, budget), store)
    batch = uuid.uuid4().hex
    usage, scored, unscored = Usage(), 0, Counter[str]()
    lost: list[tuple[Path, AmbjudgeError]] = []

    def take(_: Request, reply: Reply) -> None:
        nonlocal usage, scored
        usage += reply.usage
        open_ = [result for result in reply.results if result.status == "unscored"]
        scored += len(reply.results) - len(open_)
        unscored.update(result.reason or "judge_error" for result in open_ if result.reason != "not_read")

    def tell(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(Spending(progress, usage))

    store.add_event("batch_started", {"judge": judge.name, "calls": plan.calls, "verdicts": plan.stale}, batch)
    kind = "batch_failed"
    try:
        summary = await run_batch(
            requests(plan, judge, lambda path, error: lost.append((path, error))), guarded.ask, concurrency=concurrency,
            total=plan.calls, prefix=_prefix, look_ahead=_AHEAD * concurrency, on_result=take, on_progress=tell, signals=signals,
        )  # fmt: skip
        kind = "batch_interrupted" if summary.interrupted else "batch_finished"
    finally:
        body = {
            "scored": scored, "unscored": dict(unscored), "calls": usage.calls, "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens, "cost_usd": usage.cost_usd, "throttles": pacer.throttles,
        }  # fmt: skip
        store.add_event(kind, body, batch)
    return Execution(summary, usage, scored, unscored, tuple(lost), pacer.throttles)


def _prefix(request: Request) -> str:
    """All questions on a run share the beginning of their prompt."""
    return request.run.content_sha256
