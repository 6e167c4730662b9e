"""Why a score changed between two scorecards of one run.

Each verdict changed for the reason that a plan names (`staleness`): its key says which of its parts
is another one. `text`: the criterion or the code was edited, added or removed; `data`: the run's
files; `prompt`, `judge`, `parameters`: what was asked, who and how; `unscored`: there was no
verdict before, or there is none now, as a call failed or met the cost limit. What combines verdicts
(weights, requirements, credits, policies) is `weights`. S4, S5, Task and the caps on stages are
data, unless the files are the same: then another policy (`weights`) or another ambjudge or other
public inputs (`release`) made them.

Where several causes share a change, no order of applying them is the right one, so the split is
their Shapley value: the mean of a cause's step over all orders. A verdict with two causes takes its
new value once both are applied; no third verdict is ever made up. The parts sum exactly to the
change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Literal

from ...error_codes.models import CodeReading
from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion, Rubric
from ..card.fields import OVERALL_DECIMALS, SCORE_DECIMALS, Policy
from ..card.scorecard import ScoreCard
from ..card.stage_results import CriterionResult, StageResult
from ..questions.verdict_keys import KeyPart, VerdictKey
from ..scoring.base import StageScore
from ..scoring.criteria import apply_requires
from ..scoring.formulas import UNKNOWN_BOUNDS, Aggregate, Cap
from ..scoring.harness import scoring_of

Cause = Literal["data", "text", "weights", "prompt", "judge", "parameters", "unscored", "release"]
CAUSES: tuple[Cause, ...] = (
    "data",
    "text",
    "weights",
    "prompt",
    "judge",
    "parameters",
    "unscored",
    "release",
)
Causes = frozenset[Cause]
Coalition = frozenset[Cause]
"""The causes that have been applied (the term of the Shapley value)."""
ItemKind = Literal["criterion", "code"]

Votes = tuple[VerdictKey, ...]
"""The keys behind a verdict: one, or those of a panel's members and of samples."""

_CAUSE_OF_PART: Mapping[KeyPart, Cause] = {
    "criterion": "text",
    "prompt": "prompt",
    "parameters": "parameters",
    "sample": "parameters",
}
"""Parts of a verdict's key; `evidence` and `judge` are looked at in `_key_causes`."""
_ROUNDING = 1.001
"""Two rounded numbers differ from their exact difference by at most one of the last decimal."""


@dataclass(frozen=True)
class ScoreSplit:
    """A change of a score and its parts, in the score's own unit."""

    before: float
    after: float
    parts: Mapping[Cause, float] = field(default_factory=dict)
    """By cause, in the order of CAUSES; causes that changed nothing about the run are left out.
    They sum to the change."""

    @property
    def change(self) -> float:
        """The score after, less the score before."""
        return self.after - self.before


@dataclass(frozen=True)
class Flip:
    """A criterion or an error code whose verdict changed."""

    kind: ItemKind
    item: str
    before: float | None
    """The value; of a code 1 if it was present and 0 if it was absent. None if there is none."""
    after: float | None
    before_state: str
    """How it stood: scored, credited, not_applicable, not in the rubric, or the reason for which
    there was no verdict; of a code present, absent, cannot_tell or not_read."""
    after_state: str
    causes: tuple[Cause, ...]
    before_keys: tuple[str, ...] = ()
    """The keys of the verdict's votes; none if none was made, or the scorecard names none."""
    after_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class CardChange:
    """What changed for one run. A split is None if a score that it needs is unknown."""

    run: str
    agentic: ScoreSplit | None
    overall: ScoreSplit | None
    stages: Mapping[str, ScoreSplit | None]
    """Of the stages whose score changed."""
    flips: tuple[Flip, ...]

    @property
    def is_change(self) -> bool:
        """Whether a score or a verdict is another one."""
        splits = (self.agentic, self.overall, *self.stages.values())
        return bool(self.flips) or any(split is None or split.change for split in splits)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """All causes of what changed, in the order of CAUSES."""
        causes = {cause for flip in self.flips for cause in flip.causes}
        for split in (self.agentic, self.overall):
            if split is not None:
                causes |= {cause for cause, part in split.parts.items() if part}
        return tuple(cause for cause in CAUSES if cause in causes)


@dataclass(frozen=True)
class CardSide:
    """A scorecard with what else the store has of its making."""

    card: ScoreCard
    rubric: Rubric
    content_sha256: str | None = None
    """Of the run's files; None if that is unknown: the conversation stands for them then."""
    keys: Mapping[tuple[str, str], Votes] = field(default_factory=dict)
    """By kind and id of the item, the keys of the verdicts that the card rests on; empty for a
    scorecard that does not name them."""


def split_change(old: CardSide, new: CardSide) -> CardChange:
    """Split the change from the scorecard `old` to the scorecard `new` of one run."""
    change = _Change(old, new)
    scores = _Scores(change)
    active = change.active_causes()
    values = {coalition: scores.with_causes(coalition) for coalition in _coalitions(active)}
    names = sorted({*old.card.stages, *new.card.stages})
    stages = {}
    for name in names:
        ends = _stage_score(old.card, name), _stage_score(new.card, name)
        if ends[0] != ends[1]:
            of_stage = {c: by_stage.get(name) for c, (by_stage, _) in values.items()}
            stages[name] = _split(ends, of_stage, active, SCORE_DECIMALS)
    ends_of_agentic = old.card.agentic, new.card.agentic
    ends_of_overall = old.card.overall, new.card.overall
    agentic = {c: total.agentic for c, (_, total) in values.items()}
    overall = {c: total.overall for c, (_, total) in values.items()}
    return CardChange(
        run=new.card.run.id,
        agentic=_split(ends_of_agentic, agentic, active, SCORE_DECIMALS),
        overall=_split(ends_of_overall, overall, active, OVERALL_DECIMALS),
        stages=stages,
        flips=(*change.criterion_flips(), *change.code_flips()),
    )


def mean_split(splits: Iterable[ScoreSplit | None]) -> ScoreSplit | None:
    """The mean over runs that have a split; None if none has."""
    present = [split for split in splits if split is not None]
    if not present:
        return None

    def mean(value: Callable[[ScoreSplit], float]) -> float:
        return math.fsum(map(value, present)) / len(present)

    causes = {cause for split in present for cause in split.parts}
    return ScoreSplit(
        before=mean(lambda split: split.before),
        after=mean(lambda split: split.after),
        parts={
            cause: mean(lambda split, cause=cause: split.parts.get(cause, 0.0))  # type: ignore[misc]
            for cause in CAUSES
            if cause in causes
        },
    )


class _Change:
    """Two scorecards of one run, and why each of their parts differs. Pairs hold the old side
    first."""

    def __init__(self, old: CardSide, new: CardSide) -> None:
        self.sides = (old, new)
        self.cards = (old.card, new.card)
        self.criteria = tuple(
            {criterion.id: criterion for criterion in side.rubric.criteria()} for side in self.sides
        )
        self.results = tuple(
            {result.id: result for stage in card.stages.values() for result in stage.criteria}
            for card in self.cards
        )
        self._causes: dict[str, Causes] = {}
        for id in sorted({*self.results[0], *self.results[1]}):
            self.causes_of(id)

    # What differs between the two sides as a whole

    @cached_property
    def has_other_files(self) -> bool:
        old, new = self.sides
        if old.content_sha256 is None or new.content_sha256 is None:
            return self.cards[0].run.sha256 != self.cards[1].run.sha256
        return old.content_sha256 != new.content_sha256

    @cached_property
    def has_other_judge(self) -> bool:
        old, new = (card.judge for card in self.cards)
        return (old.name, old.members) != (new.name, new.members)

    @cached_property
    def output_causes(self) -> Causes:
        """Why S4, S5, Task, caps or a disqualification differ; empty if they do not."""
        old, new = (_outputs(card) for card in self.cards)
        if old == new:
            return frozenset()
        causes: set[Cause] = set()
        if self.has_other_files:
            causes.add("data")
        if self.cards[0].policy != self.cards[1].policy:
            causes.add("weights")
        return frozenset(causes or {"release"})

    def active_causes(self) -> tuple[Cause, ...]:
        """The causes that may have changed a score, in the order of CAUSES."""
        active = set(self.output_causes).union(*self._causes.values())
        if _combination(self.sides[0]) != _combination(self.sides[1]):
            active.add("weights")
        return tuple(cause for cause in CAUSES if cause in active)

    # Criteria

    def results_of(self, id: str) -> tuple[CriterionResult | None, CriterionResult | None]:
        return self.results[0].get(id), self.results[1].get(id)

    def causes_of(self, id: str) -> Causes:
        """Why the result of a criterion differs; empty if it does not."""
        if id not in self._causes:
            before, after = self.results_of(id)
            self._causes[id] = frozenset()  # For criteria that require each other.
            if _counted(before) != _counted(after):
                self._causes[id] = self._criterion_causes(id, before, after)
        return self._causes[id]

    def _criterion_causes(
        self, id: str, before: CriterionResult | None, after: CriterionResult | None
    ) -> Causes:
        if before is None or after is None:
            return frozenset({"text"})
        required = self._zeroing(id)
        if required is not None:
            return frozenset().union(*(self.causes_of(name) for name in required)) or frozenset(
                {"weights"}
            )
        if self._is_decided_by_tier(id, before) or self._is_decided_by_tier(id, after):
            same_tier = self.cards[0].run.tier == self.cards[1].run.tier
            return frozenset({"weights"} if same_tier else {"data"})
        lacking = [result for result in (before, after) if _lacks_verdict(result)]
        if lacking:
            return self._lacking_causes(result.reason in (None, "not_read") for result in lacking)
        if before.by == "facts" or after.by == "facts":
            return self._fact_causes(before.by == after.by)
        return self._key_causes("criterion", id)

    def _zeroing(self, id: str) -> set[str] | None:
        """The criteria whose 0 sets this one to 0 on one side and not on the other; None if none
        does."""
        zeroing = []
        for criteria, results in zip(self.criteria, self.results, strict=True):
            required = criteria[id].requires if id in criteria else ()
            of_side = {name for name in required if name in results and _is_zero(results[name])}
            zeroing.append(of_side)
        if bool(zeroing[0]) == bool(zeroing[1]):
            return None
        return zeroing[0] | zeroing[1]

    def _is_decided_by_tier(self, id: str, result: CriterionResult) -> bool:
        if result.status == "credited":
            return True
        side = self.sides[0] if result is self.results[0].get(id) else self.sides[1]
        is_asked = not side.keys or ("criterion", id) in side.keys
        return result.status == "not_applicable" and not is_asked

    def _lacking_causes(self, are_unread: Iterable[bool]) -> Causes:
        """Why there is no verdict on a side. Rules leave to a judge what no fact decides: another
        judge is the cause then; otherwise something failed."""
        is_by_judge = self.has_other_judge and all(are_unread)
        return frozenset({"judge"} if is_by_judge else {"unscored"})

    def _fact_causes(self, by_facts_alone: bool) -> Causes:
        """Why a criterion that facts decide, on one side or both, has another value."""
        if self.has_other_files:
            return frozenset({"data"})
        if by_facts_alone or self.cards[0].ambjudge != self.cards[1].ambjudge:
            return frozenset({"release"})
        # Facts decide what a judge was asked before, or the other way round (--ask-all).
        return frozenset({"judge"} if self.has_other_judge else {"parameters"})

    def _key_causes(self, kind: ItemKind, id: str) -> Causes:
        """The parts in which the keys of the two verdicts differ."""
        before, after = (side.keys.get((kind, id)) for side in self.sides)
        if before is None or after is None:
            return self._card_causes(id)
        parts = _changed_parts(before, after)
        causes: set[Cause] = set()
        if self.has_other_files and parts & {"evidence", "judge"}:
            causes.add("data")
        if "judge" in parts:
            # Another judge has its own prompt, parameters and way to be shown the record.
            causes.add("judge")
            parts = parts & {"criterion"}
        causes |= {_CAUSE_OF_PART[part] for part in parts if part in _CAUSE_OF_PART}
        if not causes:
            # One verdict counts differently, or the same files are shown in another way.
            causes.add("release" if "evidence" in parts else "weights")
        return frozenset(causes)

    def _card_causes(self, id: str) -> Causes:
        """What the scorecards alone say, where they do not name their verdicts."""
        old, new = self.cards
        causes: set[Cause] = set()
        texts = [criteria.get(id) for criteria in self.criteria]
        if None not in texts and len({criterion_sha256(text) for text in texts if text}) > 1:
            causes.add("text")
        if self.has_other_files:
            causes.add("data")
        if self.has_other_judge:
            causes.add("judge")
        elif old.judge.prompt_sha256 != new.judge.prompt_sha256:
            causes.add("prompt")
        elif _parameters(old) != _parameters(new):
            causes.add("parameters")
        if not causes:
            causes.add("release" if old.ambjudge != new.ambjudge else "parameters")
        return frozenset(causes)

    def criterion_flips(self) -> Iterator[Flip]:
        """Criteria whose value or status differs, in order of their ids."""
        for id in sorted(self._causes):
            before, after = self.results_of(id)
            if _lacks_verdict(before) and _lacks_verdict(after):
                continue
            states = _state(before), _state(after)
            values = _judged(before), _judged(after)
            if (states[0], values[0]) != (states[1], values[1]):
                yield self._flip("criterion", id, values, states, self._causes[id])

    # Error codes

    def code_flips(self) -> Iterator[Flip]:
        """Error codes that are read in another way, in order of their names."""
        old, new = (_code_states(card) for card in self.cards)
        for code in sorted(old.keys() | new.keys()):
            states = old.get(code, "not_read"), new.get(code, "not_read")
            if states[0] != states[1]:
                values = _CODE_VALUES.get(states[0]), _CODE_VALUES.get(states[1])
                yield self._flip("code", code, values, states, self._code_causes(code, states))

    def _code_causes(self, code: str, states: tuple[str, str]) -> Causes:
        if "not_read" in states:
            return self._lacking_causes([self.has_other_judge])
        detected = [_is_detected(card, code) for card in self.cards]
        if detected[0] != detected[1] or ("code", code) not in self.sides[1].keys:
            return frozenset({"data"} if self.has_other_files else {"release"})
        return self._key_causes("code", code)

    def _flip(
        self,
        kind: ItemKind,
        id: str,
        values: tuple[float | None, float | None],
        states: tuple[str, str],
        causes: Causes,
    ) -> Flip:
        keys = [side.keys.get((kind, id), ()) for side in self.sides]
        return Flip(
            kind=kind,
            item=id,
            before=values[0],
            after=values[1],
            before_state=states[0],
            after_state=states[1],
            causes=tuple(cause for cause in CAUSES if cause in causes),
            before_keys=tuple(key.sha256 for key in keys[0]),
            after_keys=tuple(key.sha256 for key in keys[1]),
        )


class _Scores:
    """The scores of a run if only some of the causes had changed anything."""

    def __init__(self, change: _Change) -> None:
        self._change = change
        rubrics = [side.rubric for side in change.sides]
        self._stages = sorted({*rubrics[0].stages, *rubrics[1].stages})
        self._stage_of = {
            criterion.id: stage
            for rubric in rubrics
            for stage in rubric.judged_stages
            for criterion in rubric.criteria(stage)
        }

    def with_causes(self, applied: Coalition) -> tuple[dict[str, float | None], Aggregate]:
        """Stage scores and totals if only the causes in `applied` had changed anything."""
        change = self._change
        outputs = change.cards[change.output_causes <= applied]
        combined = change.sides["weights" in applied]
        scoring = scoring_of(combined.card.policy, combined.card.run.track)
        stages: dict[str, StageScore] = {}
        for name in self._stages:
            result = outputs.stages.get(name)
            if _is_judged(name, result):
                criteria = self._criteria_with(name, applied)
                results = apply_requires(self._results_with(criteria, applied), criteria)
                stages[name] = scoring.judged_stage(results, criteria, _caps(result))
            elif result is not None:
                stages[name] = StageScore(result.counted, result.bounds, result.method)
            else:
                stages[name] = StageScore(None, UNKNOWN_BOUNDS, "unscored")
        weights = combined.rubric.weights
        weighted = {name: stage for name, stage in stages.items() if name in weights}
        total = scoring.total(weighted, weights, outputs.task)
        return {name: stage.score for name, stage in stages.items()}, total

    def _results_with(
        self, criteria: tuple[Criterion, ...], applied: Coalition
    ) -> list[CriterionResult]:
        """The results in force on the criteria of a stage: new once all causes are applied."""
        results = []
        for criterion in criteria:
            before, after = self._change.results_of(criterion.id)
            is_new = self._change.causes_of(criterion.id) <= applied
            result = after if before is None or (after is not None and is_new) else before
            if result is not None:
                results.append(result)
        return results

    def _criteria_with(self, stage: str, applied: Coalition) -> tuple[Criterion, ...]:
        """The criteria of a stage: which ones there are is text, how they count is weights."""
        texts = self._change.criteria["text" in applied]
        counting = self._change.criteria["weights" in applied]
        criteria = [
            counting.get(id, criterion)
            for id, criterion in texts.items()
            if self._stage_of[id] == stage
        ]
        ids = {criterion.id for criterion in criteria}
        return tuple(
            criterion.model_copy(
                update={"requires": tuple(id for id in criterion.requires if id in ids)}
            )
            for criterion in criteria
        )


def _changed_parts(before: Votes, after: Votes) -> set[KeyPart]:
    """The parts in which the votes behind two verdicts differ, each compared by the judge."""
    if {key.sha256 for key in before} == {key.sha256 for key in after}:
        return set()

    def differ(part: Callable[[VerdictKey], object]) -> bool:
        return {(key.judge, part(key)) for key in before} != {
            (key.judge, part(key)) for key in after
        }

    if differ(lambda key: None):
        texts = [{key.criterion_sha256 for key in votes} for votes in (before, after)]
        return {"judge", "criterion"} if texts[0] != texts[1] else {"judge"}
    parts: dict[KeyPart, Callable[[VerdictKey], object]] = {
        "criterion": lambda key: key.criterion_sha256,
        "evidence": lambda key: key.evidence_sha256,
        "prompt": lambda key: key.prompt_sha256,
        "parameters": lambda key: key.parameters,
        "sample": lambda key: key.sample,
    }
    return {name for name, part in parts.items() if differ(part)}


_CODE_VALUES: Mapping[str, float] = {"present": 1.0, "absent": 0.0}


def _code_states(card: ScoreCard) -> dict[str, CodeReading]:
    """How each code stands; of codes of answers, those that some answer earns."""
    states: dict[str, CodeReading] = dict(card.codes_read)
    for code, count in card.answer_codes.items():
        states[code] = "present" if count else "absent"
    return states


def _is_detected(card: ScoreCard, code: str) -> bool:
    """Whether a detector says that the code fired."""
    return any(fired.code == code and fired.by.startswith("detector:") for fired in card.codes)


def _outputs(card: ScoreCard) -> tuple[object, ...]:
    """What a scorecard's numbers rest on beside verdicts."""
    stages = {
        name: (stage.score, stage.bounds, stage.method)
        for name, stage in card.stages.items()
        if not _is_judged(name, stage)
    }
    caps = {name: stage.cap for name, stage in card.stages.items() if stage.cap is not None}
    return stages, caps, card.task


def _combination(side: CardSide) -> tuple[object, ...]:
    """What combines verdicts to scores: policy, weights of stages, how criteria count."""
    counting = {
        criterion.id: (criterion.weight, criterion.requires) for criterion in side.rubric.criteria()
    }
    policy: Policy = side.card.policy
    return policy, side.rubric.weights, counting


def _parameters(card: ScoreCard) -> tuple[object, ...]:
    return card.judge.temperature, card.judge.samples


def _caps(result: StageResult | None) -> Sequence[Cap]:
    if result is None or result.cap is None:
        return ()
    return (Cap(result.cap, result.cap_reason),)


def _is_judged(stage: str, result: StageResult | None) -> bool:
    """Whether a stage's score comes from verdicts."""
    method = None if result is None else result.method
    return stage not in ("S4", "S5") and method not in ("policy", "reported", "deterministic")


def _is_zero(result: CriterionResult) -> bool:
    """Whether criteria that require this one are 0 (`criteria.apply_requires`)."""
    return result.value == 0 and result.status in ("scored", "credited")


def _lacks_verdict(result: CriterionResult | None) -> bool:
    """Whether nobody answered. That the evidence does not tell is an answer."""
    if result is None:
        return False
    return result.status == "presumed" or (
        result.status == "unscored" and result.reason != "no_evidence"
    )


def _counted(result: CriterionResult | None) -> tuple[object, ...]:
    """What a result adds to a score, and how it stands."""
    return () if result is None else (result.value, result.status, result.by)


def _judged(result: CriterionResult | None) -> float | None:
    return None if result is None else result.judged


def _state(result: CriterionResult | None) -> str:
    """How a criterion stands, in a word. A presumed value was never judged: it is unread."""
    if result is None:
        return "not in the rubric"
    if result.status == "presumed":
        return "not_read"
    if result.status == "unscored":
        return result.reason or "unscored"
    return "scored" if result.status == "credited" else result.status


def _stage_score(card: ScoreCard, name: str) -> float | None:
    return card.stages[name].score if name in card.stages else None


def _coalitions(causes: Sequence[Cause]) -> list[Coalition]:
    """All sets of these causes."""
    return [
        frozenset(chosen)
        for size in range(len(causes) + 1)
        for chosen in combinations(causes, size)
    ]


def _split(
    ends: tuple[float | None, float | None],
    values: Mapping[Coalition, float | None],
    causes: Sequence[Cause],
    decimals: int,
) -> ScoreSplit | None:
    """The parts of the change of a score, which has `ends` on the two scorecards.

    `values`: the exact score under every coalition. What they do not explain is beyond the
    scorecards: another release computed it. None if an end is unknown.
    """
    before, after = ends
    if before is None or after is None:
        return None
    change = after - before
    parts = _shapley_values(values, causes) if causes else {}
    remainder = change - math.fsum(parts.values())
    if abs(remainder) > _ROUNDING * 10.0**-decimals or (remainder and not parts):
        parts["release"] = parts.get("release", 0.0) + remainder
    elif remainder:
        largest = max(parts, key=lambda cause: abs(parts[cause]))
        parts[largest] += remainder
    return ScoreSplit(before, after, {cause: parts[cause] for cause in CAUSES if cause in parts})


def _shapley_values(
    values: Mapping[Coalition, float | None], causes: Sequence[Cause]
) -> dict[Cause, float]:
    """The Shapley value of each cause; equal parts if the score is unknown under some coalition."""
    n = len(causes)
    everything = frozenset(causes)
    scores = {coalition: value for coalition, value in values.items() if value is not None}
    if everything not in scores or frozenset() not in scores:
        return dict.fromkeys(causes, 0.0)
    if len(scores) < len(values):
        return dict.fromkeys(causes, (scores[everything] - scores[frozenset()]) / n)
    shares: dict[Cause, float] = {}
    for cause in causes:
        steps = []
        for coalition in _coalitions([other for other in causes if other != cause]):
            size = len(coalition)
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            steps.append(weight * (scores[coalition | {cause}] - scores[coalition]))
        shares[cause] = math.fsum(steps)
    return shares
