"""Bringing a collection up to date: make the verdicts that a plan asks for, then the scorecards
that they change."""

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
from .execute import Execution, Spending, execute
from .score_change import CardChange, split_change
from .staleness import RejudgePlan


@dataclass(frozen=True)
class Updated:
    """One run's scorecards before (None: it had none) and after, and the split of the change where
    both can be read."""

    before: ScoreCard | None
    after: ScoreCard
    change: CardChange | None


@dataclass(frozen=True)
class Update:
    """What an update did. `outcomes` counts runs whose scorecard was made anew; errors are theirs."""

    execution: Execution
    runs: tuple[Updated, ...]
    errors: tuple[ScoreOutcome, ...]


def outdated(
    store: Store,
    paths: Sequence[Path],
    judge: Judge,
    rubric: Rubric | str | Path | None,
    policy: Policy | None = None,
) -> tuple[Path, ...]:
    """Runs without a scorecard by this judge, or with one by another version of the rubric now in
    force, or by other choices than `policy` (a track without a branch of the harness is always
    scored by the paper's rules; a branch decides all of its own)."""
    given, policy = load_rubric(rubric) if rubric else None, policy or Policy()
    heads = store.card_heads(judge.name)
    current: dict[str, tuple[str, Policy] | None] = {}
    stale = []
    for path in paths:
        head = heads.get(path.absolute())
        if head is not None:
            name, sha, was = head
            if name not in current:
                in_force = _in_force(name, given)
                track = (
                    TRACKS.find(in_force.track)
                    if in_force is not None and in_force.track is not None
                    else None
                )
                wanted = (
                    policy
                    if track is not None and track.branch is not None
                    else policy.model_copy(update={"like": "paper"})
                )
                current[name] = None if in_force is None else (in_force.sha256, wanted)
            if was is not None and was.like == "harness":
                was = policy.model_copy(
                    update={"like": was.like, "strict_evidence": was.strict_evidence}
                )
            if current[name] == (sha, was):
                continue
        stale.append(path)
    return tuple(stale)


def _in_force(name: str, given: Rubric | None) -> Rubric | None:
    """The rubric that now judges a run whose scorecard names this one; None for one that is no
    longer known."""
    own = load_rubric(name) if name in builtin_ids() else None
    if given is None or own is None:
        return given or own
    return given if rubric_for(own.track, None, given) is given else own


async def update(
    plan: RejudgePlan,
    store: Store,
    paths: Sequence[Path],
    judge: Judge,
    options: ScoreOptions,
    *,
    by: Scorer | None = None,
    on_calls: Callable[[Spending], None] | None = None,
    on_cards: Callable[[Progress, Usage], None] | None = None,
) -> Update:
    """Carry out the plan, then score again every run with a new verdict or an outdated scorecard,
    without further calls.

    An interrupted plan leaves scorecards as they are; the same command goes on. `by`: workers, with
    options `from_store`.
    """
    by = by or make_scorer(judge, from_store(options), store)
    execution = await execute(plan, store, judge, by=by, on_progress=on_calls)
    if execution.summary.interrupted:
        return Update(execution, (), ())
    stale = (
        *(need.path for need in plan.needs),
        *outdated(store, paths, judge, options.rubric, options.policy),
    )
    runs, errors = await renew(store, stale, judge, by, on_cards)
    return Update(execution, runs, errors)


def from_store(options: ScoreOptions) -> ScoreOptions:
    """The options of scorecards after the plan has asked: whatever failed or was too dear stays
    unscored until the next."""
    return replace(options, stored_only=True)


async def renew(
    store: Store,
    paths: Sequence[Path],
    judge: Judge,
    by: Scorer,
    on_cards: Callable[[Progress, Usage], None] | None = None,
) -> tuple[tuple[Updated, ...], tuple[ScoreOutcome, ...]]:
    """Score these runs again (`by`, with options `from_store`) from the verdicts that the store
    has; nobody is asked."""
    wanted = sorted({path.absolute() for path in paths})
    runs: list[Updated] = []
    errors: list[ScoreOutcome] = []
    before = {p: next(store.cards(p, judge=judge.name), None) for p in wanted}

    def take(outcome: ScoreOutcome) -> None:
        if outcome.card is None:
            errors.append(outcome)
            return
        old = before.get(outcome.path.absolute())
        runs.append(Updated(old, outcome.card, _change(store, old, outcome.card)))

    await collect_cards(by, wanted, take, on_progress=on_cards)
    return tuple(runs), tuple(errors)


def changes_between(store: Store, old: Rubric, new: Rubric) -> tuple[Updated, ...]:
    """Runs that have scorecards by both rubrics and the same judge, with the split of each change."""
    before = {(path, card.judge.name): card for path, card in store.cards_of_rubric(old.sha256)}
    found = []
    for path, card in store.cards_of_rubric(new.sha256):
        earlier = before.get((path, card.judge.name))
        if earlier is not None:
            found.append(Updated(earlier, card, split_change(earlier, card, old, new)))
    return tuple(found)


def _change(store: Store, old: ScoreCard | None, new: ScoreCard) -> CardChange | None:
    if old is None:
        return None
    rubrics = store.rubric(old.rubric.sha256), store.rubric(new.rubric.sha256)
    if rubrics[0] is None or rubrics[1] is None:
        return None
    return split_change(old, new, rubrics[0], rubrics[1])
