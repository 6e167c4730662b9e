"""Results of criteria and stages, as a scorecard holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, JsonValue

from ...error_codes.output_facts import StageChecks
from ...trajectories.models import Frozen
from ...trajectories.quantities import Unit, Whole
from ...trajectories.record.quotes import Evidence

if TYPE_CHECKING:
    from ...rubrics.model import Criterion


CriterionStatus = Literal["scored", "presumed", "credited", "not_applicable", "unscored"]
"""presumed: nobody read it; the point score takes the most frequent value of labelled runs, the
bounds cover the whole scale."""
UnscoredReason = Literal[
    "judge_error",
    "unparsable",
    "truncated",
    "refused",
    "budget",
    "no_evidence",
    "not_read",
    "running",
]
"""no_evidence: the judge cannot tell; not_read: no fact decides it and nobody read the run;
running: it is not met so far, and the run still goes on; the others are failures."""


class Vote(Frozen):
    """The answer of one member of a panel, or one sample of a judge."""

    judge: str
    """Name of the judge; of a panel, the member's."""
    value: Unit | None
    """0 to 1; null if it gave none."""
    reason: UnscoredReason | None = None
    """Why there is no value."""
    sample: Whole = 0
    """Number of the answer among several of one judge, from 0."""
    probability: Unit | None = None
    """The probability that a likelihood-scoring judge gives its value."""
    answer: JsonValue = None
    """An answer that is no value: a choice, a number, a text, the stages of all turns."""


class CriterionResult(Frozen):
    """The verdict on one criterion.

    `value` is None unless it is scored, presumed or credited; an unscored one has a reason.
    """

    id: str
    """Id of the criterion in the rubric."""
    value: Unit | None
    """0 to 1, on the criterion's scale."""
    status: CriterionStatus
    """How it got its value, or that it has none."""
    by: Literal["facts"] | None = Field(default=None, exclude_if=lambda by: by is None)
    """Whose verdict it is. facts: facts decided it and no judge was asked; `rationale` names the
    fact. Null: the scorecard's judge, if it is anybody's."""
    reason: UnscoredReason | None = None
    """Why it is unscored."""
    detail: str = ""
    """Explains an unscored, presumed or inapplicable criterion; for one about plan.png, says
    whether the judge looked at the picture."""
    rationale: str = ""
    """The judge's reason, in its own words."""
    evidence: tuple[Evidence, ...] = ()
    """Turns and quotes that the value rests on, checked against the run."""
    votes: tuple[Vote, ...] = ()
    """Answers of a panel's members or of several samples; empty if one judge answered once."""
    answer: JsonValue = None
    """What a reply says beside or instead of a value: turns, facts and confidence of a diagnosis,
    the stages of all turns, the answer to an ad-hoc question."""

    @classmethod
    def unscored(
        cls, id: str, reason: UnscoredReason, detail: str = "", **fields: Any
    ) -> CriterionResult:
        """An unscored item with its reason."""
        return cls(id=id, value=None, status="unscored", reason=reason, detail=detail, **fields)

    @property
    def judged(self) -> float | None:
        """The value, unless it is presumed: what may be compared, exported or built on."""
        return None if self.status == "presumed" else self.value


def unscored(
    items: Iterable[Criterion], reason: UnscoredReason, detail: str = ""
) -> tuple[CriterionResult, ...]:
    """Every item unscored for one reason."""
    return tuple(CriterionResult.unscored(item.id, reason, detail) for item in items)


class StageResult(Frozen):
    """The result of one stage.

    `method`: judge (S1-S3), reported (S1-S3: the harness's report states the stage's score, or
    none, and no verdicts), deterministic (S4-S5), policy (zeroed by a rule), unscored,
    not_applicable (no criterion applies: the stage has no weight), or withheld (the run still goes
    on).
    """

    score: Unit | None
    """0 to 1; null if unknown, withheld or not applicable."""
    method: Literal[
        "judge", "reported", "deterministic", "unscored", "policy", "not_applicable", "withheld"
    ]
    """Where the score comes from."""
    bounds: tuple[Unit, Unit]
    """Worst and best case over what is presumed or unscored."""
    failure: str | None = None
    """Harness taxonomy code of this stage (E1-E5), if one fired."""
    cap: Unit | None = None
    """Upper limit on the score of this stage, if a rule is in force."""
    cap_reason: str = ""
    """The rule, in words."""
    criteria: tuple[CriterionResult, ...] = ()
    """Verdicts, in the rubric's order."""
    checks: StageChecks | None = None
    """S4 and S5: what is known about the outputs."""
    parts: dict[str, Unit] = Field(default_factory=dict, exclude_if=lambda parts: not parts)
    """With `like: harness`, what a score of answers is made of beside criteria and checks:
    `env_ready`, `model_loaded` and `smoke_forward` of S2; `counted` in Agentic and `tool_usage` of
    S3 and S4, which are blended after Agentic is computed."""

    @property
    def counted(self) -> float | None:
        """The score that Agentic counts."""
        return self.parts.get("counted", self.score)

    @property
    def presumed(self) -> int:
        """How many of the criteria that the score rests on are presumed."""
        return (
            0
            if self.method == "policy"
            else sum(result.status == "presumed" for result in self.criteria)
        )
