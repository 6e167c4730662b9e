"""Why a score changed between two scorecards of one run: rubric text, weights, judge, or data.

Each criterion's verdict changed for one or more of three causes: its text (criterion edited, added
or removed), the judge (model, prompt, parameters), the data (evidence). Everything that combines
verdicts (weights, requirements, credits, policies) is the fourth cause, `weights`. S4, S5, Task and
the caps on stages are data.

Where several causes share a change, no order of applying them is the right one, so the split is the
Shapley value over the four: the mean of a cause's step over all orders. A verdict with two causes
takes its new value once both are applied; no third verdict is ever made up. The parts sum exactly
to the change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations, permutations
from typing import Literal

from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion, Rubric
from ..card.scorecard import ScoreCard
from ..card.stage_results import CriterionResult, StageResult
from ..scoring.criteria import applies, apply_requires
from ..scoring.formulas import (
    Aggregate,
    Bounds,
    Cap,
    Missing,
    aggregate,
    apply_caps,
    stage_score,
)

Cause = Literal["text", "weights", "judge", "data"]
CAUSES: tuple[Cause, ...] = ("text", "weights", "judge", "data")
Coalition = frozenset[Cause]
"""The causes that have been applied (the term of the Shapley value)."""
_EQUAL = 1e-12
"""Means closer than this are equal."""


@dataclass(frozen=True)
class ScoreSplit:
    """A change of a score and its parts, in the score's own unit.

    `text + weights + judge + data == after - before`.
    """

    before: float
    after: float
    text: float
    weights: float
    judge: float
    data: float

    @property
    def change(self) -> float:
        """The score after, less the score before."""
        return self.after - self.before


@dataclass(frozen=True)
class Flip:
    """A criterion whose verdict changed.

    A value is None if the criterion is unscored, presumed, not applicable, or not in the rubric.
    """

    criterion: str
    before: float | None
    after: float | None
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class CardChange:
    """What changed for one run. A split is None if a score that it needs is unknown."""

    run: str
    agentic: ScoreSplit | None
    overall: ScoreSplit | None
    stages: Mapping[str, ScoreSplit | None]
    flips: tuple[Flip, ...]


@dataclass(frozen=True)
class RankChange:
    """An agent's rank by mean score, 1 the best; equal scores share the better rank."""

    name: str
    before: int
    after: int


def split_change(
    old: ScoreCard, new: ScoreCard, old_rubric: Rubric, new_rubric: Rubric
) -> CardChange:
    """Split the change from scorecard `old` to scorecard `new` of one run.

    Why a verdict changed is read from the cards: text if the criterion's text differs, judge if
    name, members or prompt differ, data if the conversation differs, and judge if none of these
    does (parameters are not on a card).
    """
    change = _Change(old, new, old_rubric, new_rubric)
    scores = {coalition: change.scores_with(coalition) for coalition in _coalitions()}
    stages = {}
    for stage in change.stages:
        stages[stage] = _shapley_split(
            {coalition: by_stage[stage] for coalition, (by_stage, _) in scores.items()}
        )
    totals = {coalition: total for coalition, (_, total) in scores.items()}
    return CardChange(
        run=new.run.id,
        agentic=_shapley_split({c: total.agentic for c, total in totals.items()}),
        overall=_shapley_split({c: total.overall for c, total in totals.items()}),
        stages=stages,
        flips=tuple(change.flips()),
    )


def mean_split(splits: Iterable[ScoreSplit | None]) -> ScoreSplit | None:
    """The mean over runs that have a split; None if none has."""
    present = [split for split in splits if split is not None]
    if not present:
        return None
    columns = zip(*map(astuple, present), strict=True)
    return ScoreSplit(*(math.fsum(column) / len(present) for column in columns))


def rank_changes(before: Iterable[ScoreCard], after: Iterable[ScoreCard]) -> tuple[RankChange, ...]:
    """Ranks by mean Agentic before and after, in order of the rank after.

    Only agents with a mean in both are ranked.
    """
    old_means, new_means = _agentic_means(before), _agentic_means(after)
    agents = old_means.keys() & new_means.keys()

    def rank(means: Mapping[str, float], agent: str) -> int:
        return 1 + sum(means[other] > means[agent] + _EQUAL for other in agents)

    changes = [
        RankChange(agent, before=rank(old_means, agent), after=rank(new_means, agent))
        for agent in agents
    ]
    return tuple(sorted(changes, key=lambda change: (change.after, change.name)))


def _agentic_means(cards: Iterable[ScoreCard]) -> dict[str, float]:
    """Agent -> mean Agentic of its runs that have one."""
    scores: dict[str, list[float]] = {}
    for card in cards:
        if card.run.agent is not None and card.agentic is not None:
            scores.setdefault(card.run.agent, []).append(card.agentic)
    return {agent: math.fsum(values) / len(values) for agent, values in scores.items()}


class _Change:
    """Two scorecards of one run, and the scores with any set of causes applied.

    Pairs hold the old side first.
    """

    def __init__(
        self, old: ScoreCard, new: ScoreCard, old_rubric: Rubric, new_rubric: Rubric
    ) -> None:
        self.old, self.new = old, new
        self.rubrics = (old_rubric, new_rubric)
        self.criteria = tuple(
            {criterion.id: criterion for criterion in rubric.criteria()} for rubric in self.rubrics
        )
        self.stages = sorted({*old_rubric.stages, *new_rubric.stages})
        self.stage_of: dict[str, str] = {}
        for rubric in self.rubrics:
            for stage in rubric.judged_stages:
                self.stage_of |= {criterion.id: stage for criterion in rubric.criteria(stage)}
        self.results = tuple(
            {result.id: result for stage in card.stages.values() for result in stage.criteria}
            for card in (old, new)
        )
        ids = {**self.results[0], **self.results[1]}
        self.causes = {id: self._causes_of(id) for id in ids}

    def flips(self) -> Iterator[Flip]:
        """Criteria whose value or status differs, in order of their ids."""
        for id in sorted(self.causes):
            before, after = self._results_of(id)
            if _standing(before) != _standing(after):
                yield Flip(
                    id,
                    before=None if before is None else before.judged,
                    after=None if after is None else after.judged,
                    causes=tuple(cause for cause in CAUSES if cause in self.causes[id]),
                )

    def scores_with(self, applied: Coalition) -> tuple[dict[str, float | None], Aggregate]:
        """Stage scores and totals if only the causes in `applied` had changed anything."""
        data_card = self.new if "data" in applied else self.old
        policy_card = self.new if "weights" in applied else self.old
        weights = self.rubrics["weights" in applied].weights
        missing = policy_card.policy.missing
        scores: dict[str, float | None] = {}
        bounds: dict[str, Bounds] = {}
        inapplicable: set[str] = set()
        for stage in self.stages:
            result = data_card.stages.get(stage)
            if _is_judged(stage, result):
                cap = None
                if result is not None and result.cap is not None:
                    cap = Cap(result.cap, result.cap_reason)
                criteria = self._criteria_with(stage, applied)
                results = self._results_with(criteria, applied)
                scores[stage], bounds[stage] = _judged_score(results, criteria, missing, cap)
                if not applies(results, criteria):
                    inapplicable.add(stage)
            elif result is not None:
                scores[stage], bounds[stage] = result.score, result.bounds
            else:
                scores[stage], bounds[stage] = None, (0.0, 1.0)
        weighted = {stage: score for stage, score in scores.items() if stage in weights}
        total = aggregate(
            weighted, bounds, weights, data_card.task, missing, inapplicable=inapplicable
        )
        return scores, total

    def _results_with(
        self, criteria: tuple[Criterion, ...], applied: Coalition
    ) -> list[CriterionResult]:
        """The verdicts in force on the criteria of a stage."""
        results = []
        for criterion in criteria:
            result = self._result_with(criterion.id, applied)
            if result is not None:
                results.append(result)
        return results

    def _criteria_with(self, stage: str, applied: Coalition) -> tuple[Criterion, ...]:
        """The criteria of a stage: which ones there are is text, how they count is weights."""
        texts = self.criteria["text" in applied]
        counting = self.criteria["weights" in applied]
        criteria = [
            counting.get(id, criterion)
            for id, criterion in texts.items()
            if self.stage_of[id] == stage
        ]
        ids = {criterion.id for criterion in criteria}
        return tuple(
            criterion.model_copy(
                update={"requires": tuple(id for id in criterion.requires if id in ids)}
            )
            for criterion in criteria
        )

    def _result_with(self, id: str, applied: Coalition) -> CriterionResult | None:
        """The verdict in force: the new one once all its causes are applied."""
        before, after = self._results_of(id)
        if before is None or after is None:
            return before or after
        return after if self.causes[id] <= applied else before

    def _results_of(self, id: str) -> tuple[CriterionResult | None, CriterionResult | None]:
        return self.results[0].get(id), self.results[1].get(id)

    def _causes_of(self, id: str) -> frozenset[Cause]:
        """Why the verdict on a criterion may differ."""
        before, after = self._results_of(id)
        if before is None or after is None:
            return frozenset({"text"})
        if "credited" in (before.status, after.status):
            return frozenset({"weights"})
        causes: set[Cause] = set()
        old, new = self.criteria[0].get(id), self.criteria[1].get(id)
        if old is not None and new is not None and criterion_sha256(old) != criterion_sha256(new):
            causes.add("text")
        if _judge_identity(self.old) != _judge_identity(self.new):
            causes.add("judge")
        if self.old.run.sha256 != self.new.run.sha256:
            causes.add("data")
        return frozenset(causes or {"judge"})


def _judged_score(
    results: Sequence[CriterionResult],
    criteria: tuple[Criterion, ...],
    missing: Missing,
    cap: Cap | None,
) -> tuple[float | None, Bounds]:
    """The score of a judged stage from the verdicts in force."""
    value, bounds = stage_score(apply_requires(results, criteria), criteria, missing)
    return apply_caps(value, bounds, [] if cap is None else [cap])


def _is_judged(stage: str, result: StageResult | None) -> bool:
    """Whether a stage's score comes from verdicts."""
    method = None if result is None else result.method
    return stage not in ("S4", "S5") and method not in ("policy", "deterministic")


def _judge_identity(card: ScoreCard) -> tuple[object, ...]:
    return card.judge.name, card.judge.members, card.judge.prompt_sha256


def _standing(result: CriterionResult | None) -> tuple[str, float | None]:
    """What must differ between two results for a flip."""
    if result is None:
        return "absent", None
    if result.judged is not None:
        return "valued", result.judged
    # A presumed value was never judged: it stands as an unscored one does.
    return ("unscored" if result.value is not None else result.status), None


def _coalitions() -> list[Coalition]:
    """All sets of causes."""
    return [
        frozenset(causes)
        for size in range(len(CAUSES) + 1)
        for causes in combinations(CAUSES, size)
    ]


def _shapley_split(values: Mapping[Coalition, float | None]) -> ScoreSplit | None:
    """The parts of a change, from the score under every coalition; None if one is unknown."""
    scores = {coalition: value for coalition, value in values.items() if value is not None}
    if len(scores) < len(values):
        return None
    steps: dict[Cause, list[float]] = {cause: [] for cause in CAUSES}
    for order in permutations(CAUSES):
        for position, cause in enumerate(order):
            earlier = frozenset(order[:position])
            steps[cause].append(scores[earlier | {cause}] - scores[earlier])
    parts = {cause: math.fsum(values) / len(values) for cause, values in steps.items()}
    return ScoreSplit(scores[frozenset()], scores[frozenset(CAUSES)], **parts)
