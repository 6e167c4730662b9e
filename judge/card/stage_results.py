"""Parts of a scorecard (`scorecard.py`) that tell of criteria and stages: values, votes, checks of
outputs, bounds, fired codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer

from ...trajectories.models import Stage
from ...trajectories.reading.json_bytes import MAX_COUNT
from ...trajectories.record.quotes import Evidence

if TYPE_CHECKING:
    from ...rubrics.model import Criterion


def round_to(digits: int) -> PlainSerializer:
    return PlainSerializer(
        lambda value: None if value is None else round(value, digits), when_used="json"
    )


Unit = Annotated[float, Field(ge=0, le=1), round_to(4)]
Percent = Annotated[float, Field(ge=0, le=100), round_to(2)]

Whole = Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)]
"""Counts and turns. What is beyond is no count of anything, and would overflow tables, databases
and other JSON readers."""
Amount = Annotated[float, Field(ge=-1e30, le=1e30)]
"""Seconds and dollars: finite, and far enough from the ends of what a float holds for their squares
and sums."""
CriterionStatus = Literal["scored", "presumed", "credited", "not_applicable", "unscored"]
"""presumed: nobody read it; the commonest value of labelled runs stands in the point score, and
bounds go over the scale."""
UnscoredReason = Literal[
    "judge_error", "unparsable", "truncated", "refused", "budget", "no_evidence", "not_read"
]
"""no_evidence: a reader cannot tell; not_read: no fact decides it and nobody read the run; the
others are failures."""
CodeTaxonomy = Literal["paper", "harness"]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Vote(Part):
    """What one member of a panel, or one sample, said."""

    judge: str
    """Its name; of a panel the member's."""
    value: Unit | None
    """What it gave, 0 to 1; null where it gave none."""
    reason: UnscoredReason | None = None
    """Why there is no value."""
    sample: Whole = 0
    """Which of several answers of one judge, from 0."""
    probability: Unit | None = None
    """The probability that a likelihood-scoring judge gives its value."""
    answer: JsonValue = None
    """What has no value: a choice, a number, words, the stages of all turns."""


class CriterionResult(Part):
    """The verdict on one criterion. `value` is None unless scored, presumed or credited; an
    unscored one has a reason."""

    id: str
    """As the rubric has it."""
    value: Unit | None
    """0 to 1, on the criterion's scale."""
    status: CriterionStatus
    """How it came to its value, or that it has none."""
    reason: UnscoredReason | None = None
    """Why it is unscored."""
    detail: str = ""
    """More words on an unscored, presumed or not applicable criterion; on one about plan.png,
    whether the picture was looked at."""
    rationale: str = ""
    """The judge's reason, in its words."""
    evidence: tuple[Evidence, ...] = ()
    """Turns and quotes that the value rests on, checked against the run."""
    votes: tuple[Vote, ...] = ()
    """What members of a panel, or several samples, said; empty where one judge answered once."""
    answer: JsonValue = None
    """What a reply says beside or instead of a value: a diagnosis' turns, facts and confidence, the
    stages of all turns, the answer to an ad-hoc question."""

    @classmethod
    def unscored(
        cls, id: str, reason: UnscoredReason, detail: str = "", **more: Any
    ) -> CriterionResult:
        """An item without a value, and why."""
        return cls(id=id, value=None, status="unscored", reason=reason, detail=detail, **more)

    @property
    def judged(self) -> float | None:
        """The value, unless it is presumed: what may be compared, exported or built on."""
        return None if self.status == "presumed" else self.value


def unscored(
    items: Iterable[Criterion], reason: UnscoredReason, detail: str = ""
) -> tuple[CriterionResult, ...]:
    """Every item unscored for one reason."""
    return tuple(CriterionResult.unscored(item.id, reason, detail) for item in items)


class StageChecks(Part):
    """Facts behind S4 and S5. `source`: opened output files, else the report, else the trace."""

    completion: Unit | None = None
    """Share of the expected cases that have a result."""
    format_valid: bool | None = None
    """Whether every file that is there has the form that the track asks for."""
    has_valid_results: bool | None = None
    """Whether some result counts."""
    parse_rate: Unit | None = None
    """Of answers: share of expected questions with an answer that can be read; stands where other
    tracks have format_valid."""
    placeholder_rate: Unit | None = None
    """Share of the answers that say nothing of their case."""
    model_call_found: bool | None = None
    """Whether the trace shows that a model was run."""
    expected_cases: Whole | None = None
    """How many cases the run had to do."""
    complete_cases: Whole | None = None
    """How many of them have a result."""
    cases_from: Literal["public", "agent_summary", "report", "submit", "trace"] | None = None
    """Who says how many cases there are."""
    source: Literal["files", "report", "trace"] | None = None
    """What was read: the delivered files, else the report, else the trace."""
    caps: tuple[str, ...] = ()
    """Guards that lowered the score, in words."""
    problems: tuple[str, ...] = ()
    """`case: what`, at most a few dozen; the last line counts the rest."""


class StageResult(Part):
    """One stage. `method`: judge (S1-S3), deterministic (S4-S5), policy (zeroed by a rule),
    unscored."""

    score: Unit | None
    """0 to 1; null where nothing can be said."""
    method: Literal["judge", "deterministic", "unscored", "policy"]
    """How it came about."""
    bounds: tuple[Unit, Unit]
    """Least and most, whatever a judge would say of what is presumed or unscored."""
    failure: str | None = None
    """Harness taxonomy code of this stage (E1-E5), if one fired."""
    cap: Unit | None = None
    """A rule's upper limit on the score of this stage, when one is in force."""
    cap_reason: str = ""
    """The rule, in words."""
    criteria: tuple[CriterionResult, ...] = ()
    """Verdicts, in the rubric's order."""
    checks: StageChecks | None = None
    """Of S4 and S5: what was found about the outputs."""
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


class FiredCode(Part):
    """An error code with the turns it rests on, a reason in one sentence, and who says so."""

    code: str
    """E1 to E5 of the paper's taxonomy, or of the harness's."""
    taxonomy: CodeTaxonomy
    """Which one."""
    stage: Stage
    """The stage that it is counted for."""
    turns: tuple[Whole, ...]
    """Where it shows, 1-based."""
    why: str
    """One sentence."""
    by: str
    """`detector:<name>` or `judge:<model>`."""
    confidence: Unit
    """0 to 1; of a detector how often such a finding is right, of a reader what it said."""
    independence: Literal["from_trace", "from_files", "from_score", "from_judge"]
    """Where the code was read from; from_score ones are circular when related to the score."""
    facts: tuple[str, ...] = ()
    """Numbers of the record's facts that a reading rests on (`F3`)."""
    quote: Evidence | None = None
    """The words that a reading rests on, checked against the run."""
