"""Carry out a rejudge plan: exactly its calls, within a budget, each answer stored at once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ...errors import AmbjudgeError, ConfigError, JudgeError, StoreError
from ..base import Judge, Usage
from ..judges.limits import Allowance
from ..runner import BatchSummary, Progress, run_batch
from ..session import AskTally, ScoreOptions, Scorer, make_scorer
from ..store import Store
from .staleness import Need, RejudgePlan


@dataclass(frozen=True)
class Execution:
    """The result of carrying out a plan."""

    summary: BatchSummary
    usage: Usage
    scored: int
    """Items with a verdict."""
    unscored: Counter[str]
    """Failed items by reason; what rules leave to a judge is no failure."""
    lost: tuple[tuple[Path, AmbjudgeError], ...]
    """Runs that could no longer be read."""
    throttles: int
    """Rate limits that were hit."""


@dataclass(frozen=True)
class Spending:
    """Progress, with the use so far."""

    progress: Progress
    usage: Usage


async def execute_plan(
    plan: RejudgePlan,
    store: Store,
    judge: Judge,
    *,
    concurrency: int = 16,
    budget: Allowance | None = None,
    scorer: Scorer | None = None,
    on_progress: Callable[[Spending], None] | None = None,
    signals: bool = True,
) -> Execution:
    """Make the plan's calls, a run at a time.

    Answers are stored at once, so that planning again continues an interrupted batch. With a
    `scorer` (workers), concurrency and budget are its own.

    JudgeError if the judge cannot be used at all; ConfigError for a cost limit on a judge without a
    known price.
    """
    scorer = scorer or _local_scorer(plan, store, judge, concurrency, budget)
    throttles_before = scorer.throttles
    tally = AskTally(Usage(), 0, Counter())
    calls = 0
    lost: list[tuple[Path, AmbjudgeError]] = []

    async def ask(needs: tuple[Need, ...]) -> AskTally | AmbjudgeError:
        try:
            return await scorer.fill_needs(needs)
        except (JudgeError, StoreError, ConfigError):
            raise  # no other run would fare better
        except AmbjudgeError as error:
            return error

    def add_result(needs: tuple[Need, ...], result: AskTally | AmbjudgeError) -> None:
        nonlocal tally, calls
        calls += len(needs)
        if isinstance(result, AskTally):
            tally = AskTally(
                usage=tally.usage + result.usage,
                scored=tally.scored + result.scored,
                unscored=tally.unscored + result.unscored,
            )
        else:
            lost.append((needs[0].path, result))

    def report_progress(_: Progress) -> None:
        if on_progress is not None:
            on_progress(Spending(Progress(calls, plan.calls), tally.usage))

    batch = uuid.uuid4().hex
    started = {"judge": judge.name, "calls": plan.calls, "verdicts": plan.stale}
    store.add_event("batch_started", started, batch)
    ending = "batch_failed"
    try:
        summary = await run_batch(
            [tuple(needs) for _, needs in groupby(plan.needs, key=lambda need: need.path)],
            ask,
            concurrency=scorer.concurrency,
            on_result=add_result,
            on_progress=report_progress,
            signals=signals,
        )
        ending = "batch_interrupted" if summary.interrupted else "batch_finished"
    finally:
        throttles = scorer.throttles - throttles_before
        ended = {
            "scored": tally.scored,
            "unscored": dict(tally.unscored),
            "calls": tally.usage.calls,
            "input_tokens": tally.usage.input_tokens,
            "output_tokens": tally.usage.output_tokens,
            "cost_usd": tally.usage.cost_usd,
            "throttles": throttles,
        }
        store.add_event(ending, ended, batch)
    return Execution(
        summary=summary,
        usage=tally.usage,
        scored=tally.scored,
        unscored=tally.unscored,
        lost=tuple(lost),
        throttles=throttles,
    )


def _local_scorer(
    plan: RejudgePlan, store: Store, judge: Judge, concurrency: int, budget: Allowance | None
) -> Scorer:
    """A scorer in this process, with the plan's scope."""
    scope = plan.scope
    options = ScoreOptions(
        scope.rubric,
        public=scope.public,
        track=scope.track,
        tier=scope.tier,
        questions=scope.questions,
        concurrency=concurrency,
    )
    return make_scorer(judge, options, store, budget)
