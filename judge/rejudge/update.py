"""Bring a collection up to date.

Make the verdicts that a plan asks for, then renew the scorecards that they change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...rubrics.load import builtin_ids, load_rubric, rubric_for
from ...rubrics.model import Rubric
from ...tracks import TRACKS
from ..base import Judge, Usage
from ..card.fields import Policy
from ..card.scorecard import ScoreCard
from ..runner import Progress
from ..session import ScoreOptions, ScoreOutcome, Scorer, collect_cards, make_scorer
from ..store import Store
from .execute import Execution, Spending, execute_plan
from .score_change import CardChange, split_change
from .staleness import RejudgePlan


@dataclass(frozen=True)
class CardUpdate:
    """One run's scorecards before and after an update."""

    before: ScoreCard | None
    """None if the run had no scorecard."""
    after: ScoreCard
    change: CardChange | None
    """The split of the change; None if there is no earlier scorecard or a rubric is unknown."""


@dataclass(frozen=True)
class UpdateResult:
    """The result of an update: its calls, the runs scored again, and those that failed to be."""

    execution: Execution
    runs: tuple[CardUpdate, ...]
    errors: tuple[ScoreOutcome, ...]


def outdated_runs(
    store: Store,
    paths: Sequence[Path],
    judge: Judge,
    rubric: Rubric | str | Path | None,
    policy: Policy | None = None,
) -> tuple[Path, ...]:
    """Runs whose scorecard by this judge is missing or outdated.

    A scorecard is outdated if it was made by another version of the rubric now in force, or by
    other choices than `policy`. (A track without a branch of the harness is always scored by the
    paper's rules; a branch decides all of its own choices.)
    """
    policy = policy or Policy()
    named_rubric = load_rubric(rubric) if rubric else None
    heads = store.card_heads(judge.name)
    # Rubric id -> hash of the rubric in force and the choices to score by; None if it is unknown.
    current: dict[str, tuple[str, Policy] | None] = {}
    outdated = []
    for path in paths:
        head = heads.get(path.absolute())
        if head is None:
            outdated.append(path)
            continue
        rubric_id, rubric_sha256, card_policy = head
        if rubric_id not in current:
            current[rubric_id] = _current_choices(rubric_id, named_rubric, policy)
        if card_policy is not None and card_policy.like == "harness":
            card_policy = _own_choices(card_policy, policy)
        if current[rubric_id] != (rubric_sha256, card_policy):
            outdated.append(path)
    return tuple(outdated)


def _current_choices(
    rubric_id: str, named_rubric: Rubric | None, policy: Policy
) -> tuple[str, Policy] | None:
    """The hash of the rubric in force for cards that name this one, and the choices to score by."""
    rubric = _rubric_in_force(rubric_id, named_rubric)
    if rubric is None:
        return None
    track = TRACKS.find(rubric.track)
    if track is None or track.branch is None:
        policy = policy.model_copy(update={"like": "paper"})
    return rubric.sha256, policy


def _own_choices(card_policy: Policy, policy: Policy) -> Policy:
    """The choices of a card scored like the harness, without those that the branch decided."""
    own = {"like": card_policy.like, "strict_evidence": card_policy.strict_evidence}
    return policy.model_copy(update=own)


def _rubric_in_force(rubric_id: str, named_rubric: Rubric | None) -> Rubric | None:
    """The rubric that now judges a run whose scorecard names this one; None if unknown."""
    builtin = load_rubric(rubric_id) if rubric_id in builtin_ids() else None
    if named_rubric is None or builtin is None:
        return named_rubric or builtin
    # The named rubric judges runs of its own track alone.
    applies = rubric_for(builtin.track, None, named_rubric) is named_rubric
    return named_rubric if applies else builtin


async def update_collection(
    plan: RejudgePlan,
    store: Store,
    paths: Sequence[Path],
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
    judged = [need.path for need in plan.needs]
    outdated = outdated_runs(store, paths, judge, options.rubric, options.policy)
    runs, errors = await rescore(store, [*judged, *outdated], judge, scorer, on_cards)
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
    scorer: Scorer,
    on_cards: Callable[[Progress, Usage], None] | None = None,
) -> tuple[tuple[CardUpdate, ...], tuple[ScoreOutcome, ...]]:
    """Score these runs again from stored verdicts; returns the updates and the failures.

    The scorer has options `without_calls`.
    """
    paths = sorted({path.absolute() for path in paths})
    before = {path: next(store.cards(path, judge=judge.name), None) for path in paths}
    updates: list[CardUpdate] = []
    errors: list[ScoreOutcome] = []

    def add_outcome(outcome: ScoreOutcome) -> None:
        if outcome.card is None:
            errors.append(outcome)
            return
        old = before.get(outcome.path.absolute())
        updates.append(CardUpdate(old, outcome.card, _change(store, old, outcome.card)))

    await collect_cards(scorer, paths, add_outcome, on_progress=on_cards)
    return tuple(updates), tuple(errors)


def changes_between(store: Store, old: Rubric, new: Rubric) -> tuple[CardUpdate, ...]:
    """The changes of runs that have scorecards by both rubrics and the same judge."""
    before = {(path, card.judge.name): card for path, card in store.cards_of_rubric(old.sha256)}
    updates = []
    for path, card in store.cards_of_rubric(new.sha256):
        earlier = before.get((path, card.judge.name))
        if earlier is not None:
            updates.append(CardUpdate(earlier, card, split_change(earlier, card, old, new)))
    return tuple(updates)


def _change(store: Store, old: ScoreCard | None, new: ScoreCard) -> CardChange | None:
    """The split of a change; None without an earlier scorecard, or if a rubric is not stored."""
    if old is None:
        return None
    old_rubric, new_rubric = store.rubric(old.rubric.sha256), store.rubric(new.rubric.sha256)
    if old_rubric is None or new_rubric is None:
        return None
    return split_change(old, new, old_rubric, new_rubric)
