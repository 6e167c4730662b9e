"""Recompute every number of a scorecard from its own criteria and checks, without any model.

Serialised scores are rounded to 4 decimals (Overall to 2). Recomputed scores may therefore differ
by 1e-4 for stages and Agentic and by 0.01 for Overall; anything more is a difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from ...errors import InputError
from ...rubrics.load import builtin_ids, load_rubric
from ...rubrics.model import Criterion, Rubric
from ..facts.decided import may_decide
from ..scoring.base import StageScore
from ..scoring.criteria import applies
from ..scoring.formulas import UNKNOWN_BOUNDS, Bounds, Cap, s4_bounds, s5_bounds
from ..scoring.harness import reported_bounds, reported_score, scoring_of, setup_score
from .fields import REPORTED
from .read_share import shares
from .scorecard import ScoreCard
from .stage_results import CriterionResult, StageResult

STAGE_TOLERANCE = 1e-4 + 1e-9
OVERALL_TOLERANCE = 1e-2 + 1e-9


@dataclass(frozen=True)
class Difference:
    """One value of a scorecard that does not follow from its parts."""

    field: str
    stated: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.field}: stated {_show(self.stated)}, recomputed {_show(self.recomputed)}"


def _show(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_show(each) for each in value) + "]"
    return str(value)


def parse_card(data: Any, location: str) -> ScoreCard:
    """A scorecard from JSON data; InputError naming the first field that breaks the schema."""
    if not isinstance(data, Mapping) or data.get("schema") != "ambjudge.scorecard/1":
        schema = data.get("schema") if isinstance(data, Mapping) else type(data).__name__
        raise InputError(
            f"{location}: is not a scorecard (its schema is {schema!r})",
            "expected schema ambjudge.scorecard/1",
        )
    try:
        return ScoreCard.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{location}: {field}: {first['msg']}",
            f"{error.error_count()} field(s) break the schema",
        ) from None


def rubric_of(card: ScoreCard, rubrics: Sequence[Rubric] = ()) -> Rubric:
    """The rubric that a scorecard was made with: one of those given, else the built-in one that it
    names.

    InputError if none of them has the scorecard's hash.
    """
    if not card.rubric.sha256.strip("0"):
        raise InputError(
            "was simulated without a rubric (`ambjudge simulate`), so its scores cannot be"
            " recomputed",
            "the planted effects are in the .truth.json file beside it",
        )
    candidates = [*rubrics]
    if not candidates or card.rubric.id in builtin_ids():
        candidates.append(load_rubric(card.rubric.id))
    for rubric in candidates:
        if rubric.sha256 == card.rubric.sha256:
            return rubric
    raise InputError(
        f"rubric {rubric.id} {rubric.version} is not the one of the scorecard ({card.rubric.id}"
        f" {card.rubric.version}, sha256 {card.rubric.sha256[:12]}…)",
        "give the rubric file that was used with --rubric",
    )


def verify(card: ScoreCard, rubric: Rubric) -> list[Difference]:
    """Every difference between a scorecard and what its criteria, checks and policies give.

    Empty if the scorecard holds.
    """
    return _Verification(card, rubric).run()


class _Verification:
    """Collects the differences of one scorecard."""

    def __init__(self, card: ScoreCard, rubric: Rubric) -> None:
        self.card, self.rubric = card, rubric
        self.scoring = scoring_of(card.policy, card.run.track)
        self.differences: list[Difference] = []

    def run(self) -> list[Difference]:
        self._scores()
        self._shares()
        self._criteria()
        self._turns()
        self._codes()
        self._segments()
        return self.differences

    def add(self, field: str, stated: Any, recomputed: Any) -> None:
        self.differences.append(Difference(field, stated, recomputed))

    def compare(self, field: str, stated: Any, recomputed: Any, tolerance: float) -> None:
        """A difference unless two numbers, or both ends of two bounds, are within the tolerance."""
        if isinstance(stated, tuple):
            pairs = list(zip(stated, recomputed, strict=True))
        else:
            pairs = [(stated, recomputed)]
        if not all(_near(a, b, tolerance) for a, b in pairs):
            self.add(field, stated, recomputed)

    def _scores(self) -> None:
        counted: dict[str, StageScore] = {}
        for name in sorted({*self.rubric.stages, *self.card.stages}):
            result = self.card.stages.get(name)
            if result is None:
                self.add(f"stages.{name}", "absent", "a stage of the rubric")
            elif name not in self.rubric.stages:
                self.add(f"stages.{name}", "there", "no stage of the rubric")
            else:
                counted[name] = self._stage(name, result)
        total = self.scoring.total(counted, self.rubric.weights, self.card.task)
        if self.card.status.ended == "running":
            total = replace(total, agentic=None, overall=None)
        for field, tolerance in (
            ("agentic", STAGE_TOLERANCE),
            ("agentic_bounds", STAGE_TOLERANCE),
            ("overall", OVERALL_TOLERANCE),
            ("overall_bounds", OVERALL_TOLERANCE),
        ):
            self.compare(field, getattr(self.card, field), getattr(total, field), tolerance)

    def _stage(self, name: str, result: StageResult) -> StageScore:
        """Compare one stage; the score and bounds that Agentic counts."""
        score, bounds = self._recomputed(name, result)
        counted_bounds = result.bounds
        if "counted" in result.parts:
            field = f"stages.{name}.parts.counted"
            self.compare(field, result.counted, score, STAGE_TOLERANCE)
            counted_bounds = bounds
            bounds = reported_bounds(result.parts, bounds)
            score = None if score is None else reported_score(result.parts, score)
        self.compare(f"stages.{name}.score", result.score, score, STAGE_TOLERANCE)
        self.compare(f"stages.{name}.bounds", result.bounds, bounds, STAGE_TOLERANCE)
        return StageScore(result.counted, counted_bounds, result.method)

    def _recomputed(self, name: str, result: StageResult) -> tuple[float | None, Bounds]:
        if result.method == "policy":
            if not self.card.status.disqualified:
                reason = "no policy zeroes a run that is not disqualified"
                self.add(f"stages.{name}.method", "policy", reason)
            return None if result.score is None else 0.0, (0.0, 0.0)
        if result.method == "withheld" and self.card.status.ended != "running":
            self.add(f"stages.{name}.method", "withheld", "a score, as the run has ended")
        if result.method == "reported":
            return self._reported(name, result)
        if name == "S2" and result.parts:
            score = setup_score(result.parts)
            return score, (score, score)
        caps = [] if result.cap is None else [Cap(result.cap, result.cap_reason)]
        if name in ("S4", "S5"):
            return self._checked(name, result, caps)
        criteria = self.rubric.stages[name].criteria
        if result.method == "not_applicable" and applies(result.criteria, criteria):
            self.add(f"stages.{name}.method", "not_applicable", "a score: a criterion applies")
        try:
            stage = self.scoring.judged_stage(result.criteria, criteria, caps)
        except ValueError as error:
            reason = "results of the rubric's criteria"
            self.add(f"stages.{name}.criteria", str(error), reason)
            return None, UNKNOWN_BOUNDS
        return None if result.method == "withheld" else stage.score, stage.bounds

    def _reported(self, name: str, result: StageResult) -> tuple[float | None, Bounds]:
        """A score of the report, which nothing on the scorecard stands for."""
        if self.card.judge.name != REPORTED or name in ("S4", "S5"):
            self.add(f"stages.{name}.method", "reported", "a score of this judge or of the checks")
        score = result.counted
        if score is None:
            return None, UNKNOWN_BOUNDS
        score = score if result.cap is None else min(score, result.cap)
        return score, (score, score)

    def _checked(
        self, name: str, result: StageResult, caps: list[Cap]
    ) -> tuple[float | None, Bounds]:
        checks = result.checks
        if checks is None:
            return None, UNKNOWN_BOUNDS
        if name == "S4":
            validity = checks.format_valid if checks.parse_rate is None else checks.parse_rate
            bounds = s4_bounds(checks.completion, validity, caps, self.scoring.s4_digits)
        else:
            malformed = self.card.policy.malformed
            bounds = s5_bounds(checks.has_valid_results, checks.format_valid, malformed)
        return bounds[0] if bounds[0] == bounds[1] else None, bounds

    def _shares(self) -> None:
        recomputed = shares(self.card.stages, self.rubric)
        self.compare("read_share", self.card.read_share, recomputed.read, STAGE_TOLERANCE)
        self.compare(
            "presumed_share", self.card.presumed_share, recomputed.presumed, STAGE_TOLERANCE
        )

    def _criteria(self) -> None:
        criteria = {criterion.id: criterion for criterion in self.rubric.criteria()}
        for stage in self.card.stages.values():
            for result in stage.criteria:
                criterion = criteria.get(result.id)
                self._criterion(result, None if criterion is None else criterion.values)
                if result.by == "facts" and criterion is not None:
                    self._decided(result, criterion)

    def _decided(self, result: CriterionResult, criterion: Criterion) -> None:
        """A criterion that facts decided is one that they may decide, and names its fact."""
        decided_by = {
            other.id
            for stage in self.card.stages.values()
            for other in stage.criteria
            if other.by == "facts" and other.value == 0
        }
        is_zeroed = result.value == 0 and not decided_by.isdisjoint(criterion.requires)
        if not (is_zeroed or may_decide(criterion, result.value)):
            self.add(f"{result.id}.by", "facts", "a judge, as no fact decides it so")
        names_fact = any(f"{fact.id}: {fact.text}" in result.rationale for fact in self.card.facts)
        if result.status != "scored" or result.votes or not names_fact:
            self.add(f"{result.id}.rationale", result.rationale, "a fact of the scorecard")

    def _criterion(self, result: CriterionResult, scale: Collection[float] | None) -> None:
        field, value, status = result.id, result.value, result.status
        if (value is None) != (status in ("unscored", "not_applicable")):
            self.add(f"{field}.value", value, f"what status {status} asks for")
        if status == "unscored" and result.reason is None:
            self.add(f"{field}.reason", None, "a reason, as it is unscored")
        if status == "presumed" and (result.votes or result.evidence):
            self.add(f"{field}.evidence", "evidence or votes", "none, as it is presumed")
        # Several votes may give a mean that is no level of the scale.
        on_scale = scale is None or len(result.votes) >= 2 or value in scale
        if status in ("scored", "presumed") and not on_scale:
            self.add(f"{field}.value", value, f"one of {scale}")
        self._turn_range(f"{field}.evidence", [quote.turn for quote in result.evidence])

    def _turns(self) -> None:
        for code in self.card.codes:
            self._turn_range(f"codes.{code.code}.turns", code.turns)
        for code in self.card.unproven:
            self._turn_range(f"unproven.{code.code}.turns", code.turns)
        for item in self.card.plan:
            self._turn_range("plan.turns", item.turns)

    def _turn_range(self, field: str, turns: Iterable[int]) -> None:
        # Turn 0 stands for the brief, the plan and the facts.
        last = self.card.run.turns
        outside = [turn for turn in turns if not 0 <= turn <= last]
        if outside:
            self.add(field, outside, f"turns in 1..{last}")

    def _codes(self) -> None:
        """Codes that are present are those that fired; readings without proof did not fire."""
        card = self.card
        fired = [code for code in card.codes if code.taxonomy == "paper"]
        names = {code.code for code in fired}
        decided = {code.code for code in fired if code.independence != "from_score"}
        for name in sorted(names | card.codes_read.keys()):
            state = card.codes_read.get(name, "not_read")
            if name in decided and state != "present":
                self.add(f"codes_read.{name}", state, "present, as it fired")
            elif state == "present" and name not in names:
                self.add(f"codes_read.{name}", state, "not present, as it did not fire")
        fired_by = {(code.code, code.by) for code in card.codes}
        for code in card.unproven:
            proven = code.turns and code.quote is not None and code.quote.check != "not_found"
            if (code.code, code.by) in fired_by:
                self.add(f"unproven.{code.code}", "fired", "listed, not fired")
            elif proven:
                self.add(f"unproven.{code.code}", "unproven", "fired, as its words were found")

    def _segments(self) -> None:
        card = self.card
        if len(card.turn_stages) != card.run.turns:
            stated = f"{len(card.turn_stages)} turns"
            self.add("turn_stages", stated, f"{card.run.turns} turns")
        stages = [
            segment.stage
            for segment in card.segments
            for _ in range(segment.first_turn, segment.last_turn + 1)
        ]
        if stages != list(card.turn_stages):
            self.add("segments", "other turns", "the runs of equal stages in turn_stages")


def _near(stated: float | None, recomputed: float | None, tolerance: float) -> bool:
    if stated is None or recomputed is None:
        return stated is recomputed
    return abs(stated - recomputed) <= tolerance
