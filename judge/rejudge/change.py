"""Why a score changed between two scorecards of one run: rubric text, weights, judge, or data.

Each criterion's verdict changed for one or more of three causes: its text (criterion edited, added
or removed), the judge (model, prompt, parameters), the data (evidence). Everything that combines
verdicts (weights, requirements, credits, policies) is the fourth, `weights`. S4, S5, Task and the
caps on stages are data.

A change that several causes share has no single right order to take them in, so the split is the
Shapley value over the four: the mean of a cause's step over all orders. A verdict with two causes
takes its new value once both are in; no third verdict is ever made up. The parts sum exactly to the
change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from itertools import combinations, permutations
from typing import Literal

from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion, Rubric
from ..card.scorecard import ScoreCard
from ..card.scoring import Aggregate, Cap, aggregate, apply_caps, apply_requires, stage_score
from ..card.stage_results import CriterionResult, StageResult

Cause = Literal["text", "weights", "judge", "data"]
CAUSES: tuple[Cause, ...] = ("text", "weights", "judge", "data")


@dataclass(frozen=True)
class Split:
    """A change and its parts, in the score's own unit; `text + weights + judge + data == after -
    before`."""

    before: float
    after: float
    text: float
    weights: float
    judge: float
    data: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Flip:
    """A criterion whose verdict changed. None: unscored, presumed, not applicable, or not in the
    rubric."""

    criterion: str
    before: float | None
    after: float | None
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class CardChange:
    """What changed for one run. A split is None where a score on the way is unknown."""

    run: str
    agentic: Split | None
    overall: Split | None
    stages: Mapping[str, Split | None]
    flips: tuple[Flip, ...]


@dataclass(frozen=True)
class RankChange:
    """An agent's place by mean score, 1 the best; equal scores share the better place."""

    name: str
    before: int
    after: int


def split_change(
    old: ScoreCard, new: ScoreCard, old_rubric: Rubric, new_rubric: Rubric
) -> CardChange:
    """Split the change from card `old` to card `new` of one run.

    Why a verdict changed is read from the cards: text if the criterion's text differs, judge if
    name, members or prompt differ, data if the conversation differs, and judge if none of these
    does (parameters are not on a card).
    """
    game = _Game(old, new, old_rubric, new_rubric)
    points = {coalition: game.play(coalition) for coalition in _coalitions()}
    return CardChange(
        run=new.run.id,
        agentic=_split({c: total.agentic for c, (_, total) in points.items()}),
        overall=_split({c: total.overall for c, (_, total) in points.items()}),
        stages={
            stage: _split({c: scores[stage] for c, (scores, _) in points.items()})
            for stage in game.stages
        },
        flips=game.flips(),
    )


def mean_split(splits: Iterable[Split | None]) -> Split | None:
    """The mean over runs; runs without a split are left out, None when none is left."""
    known = [split for split in splits if split is not None]
    if not known:
        return None
    return Split(
        *(math.fsum(values) / len(known) for values in zip(*map(astuple, known), strict=True))
    )


def rank_changes(before: Iterable[ScoreCard], after: Iterable[ScoreCard]) -> tuple[RankChange, ...]:
    """Places by mean Agentic before and after, for agents that have one in both, by place after."""
    old, new = _means(before), _means(after)
    both = old.keys() & new.keys()

    def place(means: Mapping[str, float], of: str) -> int:
        return 1 + sum(means[other] > means[of] + 1e-12 for other in both)

    found = [RankChange(n, place(old, n), place(new, n)) for n in both]
    return tuple(sorted(found, key=lambda change: (change.after, change.name)))


def _means(cards: Iterable[ScoreCard]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for card in cards:
        if card.run.agent is not None and card.agentic is not None:
            values.setdefault(card.run.agent, []).append(card.agentic)
    return {agent: math.fsum(known) / len(known) for agent, known in values.items()}


class _Game:
    """The score under any set of causes taken in."""

    def __init__(
        self, old: ScoreCard, new: ScoreCard, old_rubric: Rubric, new_rubric: Rubric
    ) -> None:
        self.old, self.new = old, new
        self.rubrics = (old_rubric, new_rubric)
        self.criteria = tuple({c.id: c for c in rubric.criteria()} for rubric in self.rubrics)
        self.stages = sorted({*old_rubric.stages, *new_rubric.stages})
        self.stage_of = {
            c.id: s
            for rubric in self.rubrics
            for s in rubric.judged_stages
            for c in rubric.criteria(s)
        }
        self.results = tuple(
            {r.id: r for s in card.stages.values() for r in s.criteria} for card in (old, new)
        )
        self.causes = {id: self._causes(id) for id in {**self.results[0], **self.results[1]}}

    def flips(self) -> tuple[Flip, ...]:
        """Criteria whose value or standing differs, in order."""
        found = []
        for id in sorted(self.causes):
            before, after = (side.get(id) for side in self.results)
            if _standing(before) != _standing(after):
                causes = tuple(cause for cause in CAUSES if cause in self.causes[id])
                found.append(
                    Flip(
                        id,
                        before.judged if before else None,
                        after.judged if after else None,
                        causes,
                    )
                )
        return tuple(found)

    def play(self, taken: frozenset[Cause]) -> tuple[dict[str, float | None], Aggregate]:
        """Stage scores and totals when only the causes in `taken` have changed anything."""
        facts = self.new if "data" in taken else self.old
        rules = self.new if "weights" in taken else self.old
        rubric = self.rubrics["weights" in taken]
        scores: dict[str, float | None] = {}
        bounds: dict[str, tuple[float, float]] = {}
        for stage in self.stages:
            known = facts.stages.get(stage)
            method = known.method if known is not None else None
            if stage not in ("S4", "S5") and method not in ("policy", "deterministic"):
                scores[stage], bounds[stage] = self._judged(stage, taken, known, rules)
            elif known is not None:
                scores[stage], bounds[stage] = known.score, known.bounds
            else:
                scores[stage], bounds[stage] = None, (0.0, 1.0)
        weighed = {stage: score for stage, score in scores.items() if stage in rubric.weights}
        return scores, aggregate(weighed, bounds, rubric.weights, facts.task, rules.policy.missing)

    def _judged(
        self, stage: str, taken: frozenset[Cause], known: StageResult | None, rules: ScoreCard
    ) -> tuple[float | None, tuple[float, float]]:
        criteria = self._criteria(stage, taken)
        results = [r for c in criteria if (r := self._result(c.id, taken)) is not None]
        value, span = stage_score(apply_requires(results, criteria), criteria, rules.policy.missing)
        caps = (
            [Cap(known.cap, known.cap_reason)]
            if known is not None and known.cap is not None
            else []
        )
        return apply_caps(value, span, caps)

    def _criteria(self, stage: str, taken: frozenset[Cause]) -> tuple[Criterion, ...]:
        """Which items there are is a matter of text; how they count, of weights."""
        have = self.criteria["text" in taken]
        rules = self.criteria["weights" in taken]
        items = [rules.get(id, item) for id, item in have.items() if self.stage_of[id] == stage]
        ids = {item.id for item in items}
        return tuple(
            item.model_copy(update={"requires": tuple(r for r in item.requires if r in ids)})
            for item in items
        )

    def _result(self, id: str, taken: frozenset[Cause]) -> CriterionResult | None:
        before, after = (side.get(id) for side in self.results)
        if before is None or after is None:
            return before or after
        return after if self.causes[id] <= taken else before

    def _causes(self, id: str) -> frozenset[Cause]:
        before, after = (side.get(id) for side in self.results)
        if before is None or after is None:
            return frozenset({"text"})
        if "credited" in (before.status, after.status):
            return frozenset({"weights"})
        found: set[Cause] = set()
        old, new = (side.get(id) for side in self.criteria)
        if old is not None and new is not None and criterion_sha256(old) != criterion_sha256(new):
            found.add("text")
        a, b = self.old.judge, self.new.judge
        if (a.name, a.members, a.prompt_sha256) != (b.name, b.members, b.prompt_sha256):
            found.add("judge")
        if self.old.run.sha256 != self.new.run.sha256:
            found.add("data")
        return frozenset(found or {"judge"})


def _standing(result: CriterionResult | None) -> tuple[str, float | None]:
    if result is None:
        return "absent", None
    # What is presumed was never read: it stands as what is unscored.
    return (
        "valued"
        if result.judged is not None
        else "unscored"
        if result.value is not None
        else result.status
    ), result.judged


def _coalitions() -> list[frozenset[Cause]]:
    return [
        frozenset(chosen)
        for size in range(len(CAUSES) + 1)
        for chosen in combinations(CAUSES, size)
    ]


def _split(values: Mapping[frozenset[Cause], float | None]) -> Split | None:
    known = {coalition: value for coalition, value in values.items() if value is not None}
    if len(known) < len(values):
        return None
    steps: dict[Cause, list[float]] = {cause: [] for cause in CAUSES}
    for order in permutations(CAUSES):
        for place, cause in enumerate(order):
            before = frozenset(order[:place])
            steps[cause].append(known[before | {cause}] - known[before])
    means = {cause: math.fsum(each) / len(each) for cause, each in steps.items()}
    return Split(known[frozenset()], known[frozenset(CAUSES)], **means)
