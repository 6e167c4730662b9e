"""Carrying out a rejudge plan: exactly its calls, within a budget, each answer stored before the
next step counts."""

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
    """What carrying out a plan came to. `unscored` counts criteria that failed, by reason; what
    rules leave to a reader is no failure. `lost` runs could not be read any more."""

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
    plan: RejudgePlan,
    store: Store,
    judge: Judge,
    *,
    concurrency: int = 16,
    budget: Allowance | None = None,
    by: Scorer | None = None,
    on_progress: Callable[[Spending], None] | None = None,
    signals: bool = True,
) -> Execution:
    """Make the plan's calls, a run at a time. What is answered is stored at once, so that an
    interrupted batch goes on where it stopped by planning again. `by`: workers, in whose hands
    concurrency and budget then are.

    JudgeError when the judge cannot be used at all; ConfigError for a cost limit on a judge without
    a known price.
    """
    scope = plan.scope
    options = ScoreOptions(
        scope.rubric,
        public=scope.public,
        track=scope.track,
        tier=scope.tier,
        questions=scope.questions,
        concurrency=concurrency,
    )
    by = by or make_scorer(judge, options, store, budget)
    before = by.throttles
    batch = uuid.uuid4().hex
    made, calls = AskTally(Usage(), 0, Counter()), 0
    lost: list[tuple[Path, AmbjudgeError]] = []

    async def call(needs: tuple[Need, ...]) -> AskTally | AmbjudgeError:
        try:
            return await by.fill_needs(needs)
        except (JudgeError, StoreError, ConfigError):
            raise
        except AmbjudgeError as error:
            return error

    def take(needs: tuple[Need, ...], result: AskTally | AmbjudgeError) -> None:
        nonlocal made, calls
        calls += len(needs)
        if isinstance(result, AskTally):
            made = AskTally(
                made.usage + result.usage,
                made.scored + result.scored,
                made.unscored + result.unscored,
            )
        else:
            lost.append((needs[0].path, result))

    def tell(_: Progress) -> None:
        if on_progress is not None:
            on_progress(Spending(Progress(calls, plan.calls), made.usage))

    store.add_event(
        "batch_started", {"judge": judge.name, "calls": plan.calls, "verdicts": plan.stale}, batch
    )
    kind = "batch_failed"
    try:
        summary = await run_batch(
            [tuple(needs) for _, needs in groupby(plan.needs, key=lambda need: need.path)],
            call,
            concurrency=by.concurrency,
            on_result=take,
            on_progress=tell,
            signals=signals,
        )
        kind = "batch_interrupted" if summary.interrupted else "batch_finished"
    finally:
        usage, throttles = made.usage, by.throttles - before
        body = {
            "scored": made.scored,
            "unscored": dict(made.unscored),
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "throttles": throttles,
        }
        store.add_event(kind, body, batch)
    return Execution(summary, usage, made.scored, made.unscored, tuple(lost), throttles)
