"""The scorecard (`ambjudge.scorecard/1`): what judging a run yields, as pydantic models and as JSON.

Stage scores, agentic and task are in [0, 1]; overall in [0, 100]. Unknown is null, never 0. Bounds are the worst and
best case over what is unscored or presumed. Values are kept exact and rounded only when serialised (4 decimals, overall 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer

from ..trajectories.json_bytes import MAX_COUNT
from ..trajectories.models import Outcome, Segment, Stage, Tier, TrackName
from ..trajectories.record.facts import FactSource
from ..trajectories.record.quotes import Evidence as Evidence
from .like import Like
from .read_share import READ_STAGES, Standing, standing

if TYPE_CHECKING:
    from ..rubrics.model import Criterion

SCHEMA: Literal["ambjudge.scorecard/1"] = "ambjudge.scorecard/1"


def _round(digits: int) -> PlainSerializer:
    return PlainSerializer(lambda value: None if value is None else round(value, digits), when_used="json")


Unit = Annotated[float, Field(ge=0, le=1), _round(4)]
Percent = Annotated[float, Field(ge=0, le=100), _round(2)]

Whole = Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)]
"""Counts and turns. What is beyond is no count of anything, and would overflow tables, databases and other JSON readers."""
Amount = Annotated[float, Field(ge=-1e30, le=1e30)]
"""Seconds and dollars: finite, and far enough from the ends of what a float holds for their squares and sums."""

RULES = "rules"
"""The name of the judge without a model; on the command line its earlier one, `heuristic`, means it too."""
CriterionStatus = Literal["scored", "presumed", "credited", "not_applicable", "unscored"]
"""presumed: nobody read it; the commonest value of labelled runs stands in the point score, and bounds go over the scale."""
UnscoredReason = Literal["judge_error", "unparsable", "truncated", "refused", "budget", "no_evidence", "not_read"]
"""no_evidence: a reader cannot tell; not_read: no fact decides it and nobody read the run; the others are failures."""
TaskFrom = Literal["report", "outcome", "gate", "policy", "outputs"]

Medal = Literal["good", "okay", "fail"]
Rating = Literal["A", "B", "C", "F"]
FailureKind = Literal["breach", "timeout", "no_output", "below_band"]
"""Why a run is rated F: disqualified; never submitted; no output counts; submitted, and its outputs are not good enough."""

CodeReading = Literal["present", "absent", "cannot_tell", "not_read"]
"""What is known of a code: it fired, it did not, a reader could not tell, or nobody read the run for it."""
CodeTaxonomy = Literal["paper", "harness"]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Vote(Part):
    """What one member of a panel, or one sample, said."""

    judge: str
    value: Unit | None
    reason: UnscoredReason | None = None
    sample: Whole = 0
    probability: Unit | None = None
    """The probability that a likelihood-scoring judge gives its value."""
    answer: JsonValue = None
    """What has no value: a choice, a number, words, the stages of all turns."""


class CriterionResult(Part):
    """The verdict on one criterion. `value` is None unless scored, presumed or credited; an unscored one has a reason."""

    id: str
    value: Unit | None
    status: CriterionStatus
    reason: UnscoredReason | None = None
    detail: str = ""
    """More words on an unscored, presumed or not applicable criterion; on one about plan.png, whether the picture was looked at."""
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()
    votes: tuple[Vote, ...] = ()
    answer: JsonValue = None
    """What a reply says beside or instead of a value: a diagnosis' turns, facts and confidence, the stages of all turns,
    the answer to an ad-hoc question."""

    @classmethod
    def unscored(cls, id: str, reason: UnscoredReason, detail: str = "", **more: Any) -> CriterionResult:
        """An item without a value, and why."""
        return cls(id=id, value=None, status="unscored", reason=reason, detail=detail, **more)

    @property
    def judged(self) -> float | None:
        """The value, unless it is presumed: what may be compared, exported or built on."""
        return None if self.status == "presumed" else self.value


def unscored(items: Iterable[Criterion], reason: UnscoredReason, detail: str = "") -> tuple[CriterionResult, ...]:
    """Every item unscored for one reason."""
    return tuple(CriterionResult.unscored(item.id, reason, detail) for item in items)


class StageChecks(Part):
    """Facts behind S4 and S5. `source`: opened output files, else the report, else the trace."""

    completion: Unit | None = None
    format_valid: bool | None = None
    has_valid_results: bool | None = None
    parse_rate: Unit | None = None
    """Of answers: share of expected questions with an answer that can be read; stands where other tracks have format_valid."""
    placeholder_rate: Unit | None = None
    model_call_found: bool | None = None
    expected_cases: Whole | None = None
    complete_cases: Whole | None = None
    cases_from: Literal["public", "agent_summary", "report", "submit", "trace"] | None = None
    source: Literal["files", "report", "trace"] | None = None
    caps: tuple[str, ...] = ()
    """Guards that lowered the score, in words."""
    problems: tuple[str, ...] = ()
    """`case: what`, at most a few dozen; the last line counts the rest."""


class StageResult(Part):
    """One stage. `method`: judge (S1-S3), deterministic (S4-S5), policy (zeroed by a rule), unscored."""

    score: Unit | None
    method: Literal["judge", "deterministic", "unscored", "policy"]
    bounds: tuple[Unit, Unit]
    failure: str | None = None
    """Harness taxonomy code of this stage (E1-E5), if one fired."""
    cap: Unit | None = None
    """A rule's upper limit on the score of this stage, when one is in force."""
    cap_reason: str = ""
    criteria: tuple[CriterionResult, ...] = ()
    checks: StageChecks | None = None
    parts: dict[str, Unit] = Field(default_factory=dict, exclude_if=lambda parts: not parts)
    """With `like: harness`, what a score of answers is made of beside criteria and checks: `env_ready`, `model_loaded` and
    `smoke_forward` of S2; `counted` in Agentic and `tool_usage` of S3 and S4, which are blended after Agentic is computed."""

    @property
    def counted(self) -> float | None:
        """The score that Agentic counts."""
        return self.parts.get("counted", self.score)

    @property
    def presumed(self) -> int:
        """How many of the criteria that the score rests on are presumed."""
        return 0 if self.method == "policy" else sum(result.status == "presumed" for result in self.criteria)


class FiredCode(Part):
    """An error code with the turns it rests on, a reason in one sentence, and who says so."""

    code: str
    taxonomy: CodeTaxonomy
    stage: Stage
    turns: tuple[Whole, ...]
    why: str
    by: str
    """`detector:<name>` or `judge:<model>`."""
    confidence: Unit
    independence: Literal["from_trace", "from_files", "from_score", "from_judge"]
    """Where the code was read from; from_score ones are circular when related to the score."""
    facts: tuple[str, ...] = ()
    """Numbers of the record's facts that a reading rests on (`F3`)."""
    quote: Evidence | None = None
    """The words that a reading rests on, checked against the run."""


class RunInfo(Part):
    id: str
    path: str
    sha256: str
    agent: str | None
    model: str | None
    task: str | None
    track: TrackName | None
    tier: Tier | None
    repeat: Whole | None
    turns: Whole
    format: str


class RubricInfo(Part):
    id: str
    version: str
    sha256: str


class JudgeInfo(Part):
    name: str
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    calls: Whole = 0
    input_tokens: Whole | None = 0
    output_tokens: Whole | None = 0
    cached_tokens: Whole | None = 0
    """Of the input tokens, those that a provider read from its cache; None where it did not say."""
    cache_write_tokens: Whole | None = 0
    """Of the input tokens, those that it wrote into its cache."""
    cost_usd: Annotated[Amount, _round(6)] | None = 0.0
    """None when a price is unknown."""


class Policy(Part):
    """The choices that the numbers depend on."""

    like: Like = "paper"
    """Whose rules where the benchmark's text and its public harness part; `harness` decides the others."""
    missing: Literal["renormalize", "zero"] = "renormalize"
    breach: Literal["zero-all", "from-stage", "from-turn", "ignored"] = "zero-all"
    """`from-turn`, `ignored`: as the track's branch of the harness, and for `like: harness` alone."""
    completeness_gate: bool = True
    malformed: Literal["formula", "zero"] = "formula"
    """S5 of a malformed submission: by its formula, or 0 as the paper's text says."""
    strict_evidence: bool = False
    """What a reader says is met counts only with words that were found in the run and no fact against it; else unscored."""


class CardResources(Part):
    turns: Whole
    calls: Whole
    failed_calls: Whole
    wall_time_s: Amount | None
    input_tokens: Whole | None
    output_tokens: Whole | None
    cost_usd: Amount | None


class StageUse(Part):
    """What the turns of one stage used; seconds are None when no call of the stage has a recorded time."""

    turns: Whole
    calls: Whole
    failed_calls: Whole
    exec_time_s: Amount | None = None


class CardStatus(Part):
    submitted: bool
    completed: bool | None
    disqualified: bool
    violations: Whole
    ended: Literal["submitted", "stopped", "breach", "cut"]


class PartScore(Part):
    """The benchmark's metric on some of the cases: a class, a tissue, a kind of question."""

    by: str
    """What the cases are split by."""
    name: str
    value: Unit
    cases: Whole | None = None


class Grades(Part):
    """What the benchmark's own analysis says of the run beside its scores; null where the files do not say."""

    medal: Medal | None = None
    rating: Rating | None = None
    progress: Unit | None = None
    failure: FailureKind | None = None
    pass_rate: Unit | None = None
    """Of images: the share of cases nearly as good as a classical baseline."""
    shuffled: Unit | None = None
    """The Task metric of a control, in which outputs were held against the references of other cases."""
    parts: tuple[PartScore, ...] = ()

    @property
    def resolved(self) -> bool | None:
        """Whether the run is rated A or B."""
        return None if self.rating is None else self.rating in ("A", "B")


class Contradiction(Part):
    """A verdict that a fact speaks against."""

    criterion: str
    fact: str
    turns: tuple[Whole, ...] = ()


class FactInfo(Part):
    """A fact that a code names: what files, exit codes, the harness or the trace showed when the run was judged."""

    id: str
    source: FactSource
    text: str
    turns: tuple[Whole, ...] = ()


class EpisodeInfo(Part):
    """A step that failed: what went wrong, its attempts, and the turn at which it worked (None: it never did)."""

    cause: str
    kind: str
    stage: Stage
    environment: bool
    first_turn: Whole
    turns: tuple[Whole, ...]
    attempts: Whole
    resolved_at: Whole | None = None


class PlanItem(Part):
    """One commitment of plan.md and its fate, with the words that show it."""

    commitment: str
    state: Literal["kept", "broken", "dropped"]
    turns: tuple[Whole, ...] = ()
    quote: Evidence | None = None


class ScoreCard(Part):
    """Everything that judging one run yields: scores with bounds, verdicts with evidence, codes, what was checked.

    card = ambjudge.score("runs/elm-chest-1")
    print(card.overall, card.overall_bounds, card.stages["S1"].criteria[0].rationale)
    """

    schema_: Literal["ambjudge.scorecard/1"] = Field(default=SCHEMA, alias="schema")
    ambjudge: str
    run: RunInfo
    rubric: RubricInfo
    judge: JudgeInfo
    policy: Policy
    stages: dict[str, StageResult]
    """S1-S5 by the benchmark's rubrics; by one of the user's own the stages, or groups of criteria, that it declares."""
    read_share: Unit | None = None
    """Of the weight of what is judged (S1-S3), what was read (scored, credited, or zeroed by a breach); None on older cards."""
    presumed_share: Unit | None = None
    """Of that weight, what is presumed; the rest has no value."""
    agentic: Unit | None
    """Weighted mean of the stages: how the work was done."""
    agentic_bounds: tuple[Unit, Unit]
    """Least and most, whatever a judge would say of what is presumed or unscored; no interval of chance."""
    task: Unit | None
    """The benchmark's score of the result."""
    task_from: TaskFrom | None = None
    """report: the harness's number; outcome: one of `outcomes`, which the user named; gate: 0 by the completeness gate; policy: 0 by disqualification; outputs: 0 as no output
    counts and no report says otherwise."""
    grades: Grades = Grades()
    overall: Percent | None
    """50 Agentic + 50 Task; null where Task is unknown."""
    overall_bounds: tuple[Percent, Percent]
    outcomes: dict[str, Outcome] = Field(default_factory=dict)
    """By name, what another harness found out about the run."""
    imported: str | None = None
    """The format that the run was imported from."""
    codes: tuple[FiredCode, ...] = ()
    """Error codes that fired, of both taxonomies."""
    codes_read: dict[str, CodeReading] = Field(default_factory=dict)
    """Every code of the paper's taxonomy: present, absent, cannot_tell or not_read. Empty on cards of older versions."""
    unproven: tuple[FiredCode, ...] = ()
    """Readings whose quote stands nowhere in the run: listed, not fired."""
    facts: tuple[FactInfo, ...] = ()
    """Those that `codes` and `unproven` name. Empty on cards of versions that kept their numbers alone."""
    plan: tuple[PlanItem, ...] = ()
    """What the plan promised and what became of it, as read; empty where nobody read the run or there is no plan."""
    stages_from: Literal["rules", "judge", "mixed"] = "rules"
    """Who labelled the turns."""
    primary_failure: str | None = None
    """Stage and code of the primary failure, by the harness's taxonomy."""
    episodes: tuple[EpisodeInfo, ...] = ()
    """Failed steps of the run, in order of their first turn."""
    answer_codes: dict[str, Whole] = Field(default_factory=dict)
    """Answer-level code -> answers that earn it, when answer files are there."""
    segments: tuple[Segment, ...] = ()
    turn_stages: tuple[Stage, ...] = ()
    """The stage of every turn."""
    stage_use: dict[Stage, StageUse] = Field(default_factory=dict)
    """Calls, failures and seconds by stage, as in `ambjudge.segments/1`; empty when nobody counted."""
    resources: CardResources
    status: CardStatus
    plugins: tuple[str, ...] = ()
    """Packages that had a say: what they added, name, version and SHA-256 of the module."""
    contradictions: tuple[Contradiction, ...] = ()
    warnings: tuple[str, ...] = ()

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    @property
    def presumed(self) -> int:
        """How many of the criteria that the scores rest on are presumed."""
        return sum(stage.presumed for stage in self.stages.values())

    @property
    def standing(self) -> Standing:
        """Whether Agentic and Overall are points, points on presumed criteria, or only ranges."""
        methods = [stage.method for name, stage in self.stages.items() if stage.criteria or name in READ_STAGES]
        presumed = self.presumed_share if self.read_share is not None else float(self.presumed)
        return standing(methods, self.read_share, presumed)

    @property
    def quotes(self) -> tuple[int, int]:
        """Quotes that criteria and codes rest on, and how many of them stand in the run.

        What a reader says is met and quotes nothing for counts as one quote that does not; rules need no words.
        """
        results = [result for stage in self.stages.values() for result in stage.criteria]
        cited = [evidence for result in results for evidence in result.evidence]
        cited += [code.quote for code in (*self.codes, *self.unproven) if code.quote is not None]
        bare = sum(r.status == "scored" and bool(r.value) and not r.evidence and not self._by_rules(r) for r in results)
        return len(cited) + bare, sum(evidence.check != "not_found" for evidence in cited)

    @property
    def gist(self) -> Gist:
        """What a summary of many cards counts."""
        reasons = Counter[str](
            r.reason for stage in self.stages.values() for r in stage.criteria if r.reason is not None
        )
        return Gist(
            any(stage.score is None for stage in self.stages.values()), self.standing, self.read_share, *self.quotes,
            len(self.contradictions), self.policy.strict_evidence, "not_read" in self.codes_read.values(), dict(reasons),
        )  # fmt: skip

    def _by_rules(self, result: CriterionResult) -> bool:
        return self.judge.name == RULES or any(vote.judge == RULES and vote.value for vote in result.votes)

    def to_json(self) -> str:
        """One line of JSON, rounded as the contract says."""
        return self.model_dump_json()

    def to_dict(self) -> dict[str, Any]:
        """The same, as plain values."""
        return self.model_dump(mode="json")

    def __repr__(self) -> str:
        """One line."""
        parts = (("Agentic", self.agentic, self.agentic_bounds, 2), ("Overall", self.overall, self.overall_bounds, 1))
        said = ", ".join(
            f"{name} {'unknown' if value is None else f'{value:.{digits}f}'} [{low:.{digits}f}–{high:.{digits}f}]"
            for name, value, (low, high), digits in parts
        )
        return f"<ScoreCard {self.run.id}: {said}, rubric {self.rubric.id}, judge {self.judge.name}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The scorecard in a notebook."""
        from .scorecard_html import card_html

        return card_html(self)


class Gist(NamedTuple):
    """What a summary of many cards counts of each."""

    incomplete: bool
    """A stage has no score."""
    standing: Standing
    read_share: float | None
    quotes: int
    found: int
    contradictions: int
    strict: bool
    """By strict evidence."""
    codes_unread: bool
    missed: dict[str, int]
    """Criteria without a verdict, by reason."""


class CardLine:
    """A scorecard as its line of JSON, which is parsed when the card itself is asked for."""

    def __init__(self, line: str, gist: Gist) -> None:
        self._line, self.gist = line, gist

    def to_json(self) -> str:
        return self._line

    @cached_property
    def card(self) -> ScoreCard:
        """ValueError where the line is none."""
        return ScoreCard.model_validate_json(self._line)
