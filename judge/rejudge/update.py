"""Bring a collection up to date.

Make the verdicts that a plan asks for, then renew the scorecards that they change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..base import Judge, Usage
from ..card.scorecard import ScoreCard
from ..judges.panel import voters
from ..runner import Progress
from ..session import ScoreOptions, ScoreOutcome, Scorer, card_keys, collect_cards, make_scorer
from ..store import Store
from ..trust.judge_precision import precision_by_code
from .execute import Execution, Spending, execute_plan
from .recall import RecalledCards
from .staleness import RejudgePlan


@dataclass(frozen=True)
class CardUpdate:
    """A run that was scored again."""

    path: Path
    after: ScoreCard | None
    """The scorecard, where only some items were asked; others are in the store."""
    kept: bool
    """Whether the earlier scorecard stays in force, as the later one lacks verdicts."""


@dataclass(frozen=True)
class UpdateResult:
    """The result of an update: its calls, the runs scored again, and those that failed to be."""

    execution: Execution
    runs: tuple[CardUpdate, ...]
    errors: tuple[ScoreOutcome, ...]


def outdated_runs(
    store: Store, plan: RejudgePlan, judge: Judge, options: ScoreOptions
) -> tuple[Path, ...]:
    """Runs whose scorecard by this judge is missing, or is not of the verdicts in force.

    A scorecard is of the verdicts in force if everything that decides both is as it was when the
    card was made (`verdict_keys.CardKeys`): the run, rubric, policy, prompt, judge and its
    parameters, public inputs, and our code. A card that lacked a verdict when it was made has no
    key, and is outdated too.
    """
    keys = card_keys(judge, options, precision_by_code(store, judge.name))
    latest = store.latest_keys(plan.contents, judge.name)
    return tuple(
        path
        for path, hashes in plan.contents.items()
        if latest.get(path) != keys.key(path, *hashes)
    )


async def update_collection(
    plan: RejudgePlan,
    store: Store,
    judge: Judge,
    options: ScoreOptions,
    *,
    scorer: Scorer | None = None,
    on_calls: Callable[[Spending], None] | None = None,
    on_cards: Callable[[Progress, Usage], None] | None = None,
) -> UpdateResult:
    """Carry out the plan, then renew the scorecards that it made outdated.

    Every run with a new verdict or an outdated scorecard is scored again, without further calls.

    An interrupted plan leaves scorecards as they are; planning again continues it. `scorer` are
    workers, with options `without_calls`.
    """
    scorer = scorer or make_scorer(judge, without_calls(options), store)
    execution = await execute_plan(plan, store, judge, scorer=scorer, on_progress=on_calls)
    if execution.summary.interrupted:
        return UpdateResult(execution, (), ())
    # A second opinion is in no scorecard.
    in_force = voters(judge)
    judged = [need.path for need in plan.needs if need.sample == in_force[need.voter].sample]
    outdated = outdated_runs(store, plan, judge, options)
    paths = [*judged, *outdated]
    runs, errors = await rescore(store, paths, judge, options, scorer, on_cards)
    return UpdateResult(execution, runs, errors)


def without_calls(options: ScoreOptions) -> ScoreOptions:
    """The options for scorecards after a plan was carried out.

    What failed or exceeded the budget stays unscored until the next plan.
    """
    return replace(options, stored_only=True)


async def rescore(
    store: Store,
    paths: Sequence[Path],
    judge: Judge,
    options: ScoreOptions,
    scorer: Scorer,
    on_cards: Callable[[Progress, Usage], None] | None = None,
) -> tuple[tuple[CardUpdate, ...], tuple[ScoreOutcome, ...]]:
    """Score these runs again from stored verdicts; returns the updates and the failures.

    Runs are read only where the store does not know all that their scorecards rest on. The scorer
    has options `without_calls`.
    """
    paths = sorted({path.absolute() for path in paths})
    updates: list[CardUpdate] = []
    errors: list[ScoreOutcome] = []

    def add_outcome(outcome: ScoreOutcome) -> None:
        if outcome.card is None:
            errors.append(outcome)
            return
        path = outcome.path.absolute()
        card = outcome.card if options.some_items else None
        updates.append(CardUpdate(path, card, kept=_is_kept(store, path, outcome.card)))

    recalled = RecalledCards(store, judge, options)
    await collect_cards(scorer, paths, add_outcome, unchanged=recalled, on_progress=on_cards)
    return tuple(updates), tuple(errors)


def _is_kept(store: Store, path: Path, new: ScoreCard) -> bool:
    """Whether the store kept the earlier scorecard of a run, or none (`Archive.add_cards`)."""
    if not new.gist.unscored and not new.gist.codes_unread:
        return False
    stored = next(store.cards(path, judge=new.judge.name), None)
    return stored is None or stored.to_json() != new.to_json()
