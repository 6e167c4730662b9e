"""Carry out a rejudge plan: exactly its calls, within a budget, each answer stored at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ...errors import AmbjudgeError, ConfigError, JudgeError, StoreError
from ..base import Judge, Usage
from ..judges.limits import Allowance
from ..runner import BatchSummary, Progress, run_batch
from ..session import AskTally, ScoreOptions, Scorer, make_scorer
from ..store import Store
from ..store.session_events import noted_session
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
    results = _Results(plan.calls, on_progress)
    command = "ask" if plan.scope.questions.ask is not None else "rejudge"
    with noted_session(
        store, command, judge.name, calls=plan.calls, verdicts=plan.stale
    ) as session:
        try:
            summary = await run_batch(
                [tuple(needs) for _, needs in groupby(plan.needs, key=lambda need: need.path)],
                partial(_fill_needs, scorer),
                concurrency=scorer.concurrency,
                on_result=results.add,
                on_progress=results.report,
                signals=signals,
            )
            session.interrupted = summary.interrupted
        finally:
            session.usage = results.tally.usage
            throttles = scorer.throttles - throttles_before
            session.counts = {**results.counts(), "throttles": throttles}
    return Execution(
        summary=summary,
        usage=results.tally.usage,
        scored=results.tally.scored,
        unscored=results.tally.unscored,
        lost=tuple(results.lost),
        throttles=throttles,
    )


async def _fill_needs(scorer: Scorer, needs: tuple[Need, ...]) -> AskTally | AmbjudgeError:
    """Ask for the needs of one run; an error that concerns this run alone is returned."""
    try:
        return await scorer.fill_needs(needs)
    except (JudgeError, StoreError, ConfigError):
        raise  # no other run would fare better
    except AmbjudgeError as error:
        return error


class _Results:
    """What the calls came to so far."""

    def __init__(self, planned_calls: int, on_progress: Callable[[Spending], None] | None) -> None:
        self.tally = AskTally(Usage(), 0, Counter())
        self.lost: list[tuple[Path, AmbjudgeError]] = []
        self._calls, self._planned_calls = 0, planned_calls
        self._on_progress = on_progress

    def add(self, needs: tuple[Need, ...], result: AskTally | AmbjudgeError) -> None:
        """Add the result of one run."""
        self._calls += len(needs)
        if not isinstance(result, AskTally):
            self.lost.append((needs[0].path, result))
            return
        self.tally = AskTally(
            usage=self.tally.usage + result.usage,
            scored=self.tally.scored + result.scored,
            unscored=self.tally.unscored + result.unscored,
        )

    def report(self, _: Progress) -> None:
        """Report progress in calls; the batch itself counts runs."""
        if self._on_progress is not None:
            progress = Progress(self._calls, self._planned_calls)
            self._on_progress(Spending(progress, self.tally.usage))

    def counts(self) -> dict[str, Any]:
        """The results as the store records them."""
        return {"scored": self.tally.scored, "unscored": dict(self.tally.unscored)}


def _local_scorer(
    plan: RejudgePlan, store: Store, judge: Judge, concurrency: int, budget: Allowance | None
) -> Scorer:
    """A scorer in this process, with the plan's scope."""
    scope = plan.scope
    options = ScoreOptions(
        scope.rubrics,
        public=scope.public,
        track=scope.track,
        tier=scope.tier,
        questions=scope.questions,
        concurrency=concurrency,
    )
    return make_scorer(judge, options, store, budget)
