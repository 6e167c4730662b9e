"""The data of a scorecard (`ambjudge.scorecard/1`) as pydantic models, and what follows from it.

`scorecard.py` adds JSON and display. Parts that are made elsewhere are defined where they are made
(`error_codes/models.py`, `trajectories/`). Stage scores, agentic and task are in [0, 1]; overall in
[0, 100]. Unknown is null, never 0. Bounds are the worst and best case over what is unscored or
presumed. Values are kept exact and rounded only when serialised (4 decimals, overall 2).
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field

from ...error_codes.models import CodeReading, Contradiction, EpisodeInfo, FiredCode
from ...trajectories.models import (
    CardResources,
    CardStatus,
    Frozen,
    Outcome,
    Segment,
    Stage,
    Tier,
    TrackName,
)
from ...trajectories.quantities import Amount, Percent, Unit, Whole, round_to
from ...trajectories.record.facts import FactInfo
from ...trajectories.record.quotes import Evidence
from ...trajectories.summary import StageUse
from ..scoring.scoring_rules import Like
from .read_share import READ_STAGES, Standing, standing
from .stage_results import CriterionResult, StageResult

SCHEMA: Literal["ambjudge.scorecard/1"] = "ambjudge.scorecard/1"

RULES = "rules"
"""The name of the judge without a model; on the command line its earlier one, `heuristic`, means it
too."""
TaskFrom = Literal["report", "outcome", "gate", "policy", "outputs"]

Medal = Literal["good", "okay", "fail"]
Rating = Literal["A", "B", "C", "F"]
FailureKind = Literal["breach", "timeout", "no_output", "below_band"]
"""Why a run is rated F: disqualified; never submitted; no output counts; submitted, and its outputs
are not good enough."""


class RunInfo(Frozen):
    id: str
    """Name of the run, of its folder where it has none."""
    path: str
    """The conversation file, as it was given."""
    sha256: str
    """Of the conversation's bytes."""
    agent: str | None
    """Who did the run."""
    model: str | None
    """The agent's language model."""
    task: str | None
    """Name of the task."""
    track: TrackName | None
    """Kind of task; decides the rubric and the checks of the outputs."""
    tier: Tier | None
    """How much help the brief gave."""
    repeat: Whole | None
    """Which of several runs of the agent on the task."""
    turns: Whole
    """How many there are."""
    format: str
    """What the conversation file looked like."""


class RubricInfo(Frozen):
    """The rubric that the run was judged by."""

    id: str
    """Its name."""
    version: str
    """As the file says."""
    sha256: str
    """Of everything in it that decides a verdict or a score."""
    titles: dict[str, str] = Field(default_factory=dict, exclude_if=lambda titles: not titles)
    """Of the criteria by id, where the rubric is not one that ships with ambjudge."""


class JudgeInfo(Frozen):
    name: str
    """`rules`, a model, `local:NAME`, `replay:NAME` or `panel`."""
    members: tuple[str, ...] = ()
    """Of a panel."""
    prompt_sha256: str | None = None
    """Of the words around the questions; null for rules."""
    calls: Whole = 0
    """Requests that this scorecard took; what the store answered is not counted."""
    input_tokens: Whole | None = 0
    """Null where the provider did not say."""
    output_tokens: Whole | None = 0
    """Null where the provider did not say."""
    cached_tokens: Whole | None = 0
    """Of the input tokens, those that a provider read from its cache; None where it did not say."""
    cache_write_tokens: Whole | None = 0
    """Of the input tokens, those that it wrote into its cache."""
    cost_usd: Annotated[Amount, round_to(6)] | None = 0.0
    """None when a price is unknown."""


class Policy(Frozen):
    """The choices that the numbers depend on."""

    like: Like = "paper"
    """Whose rules where the benchmark's text and its public harness part; `harness` decides the
    others."""
    missing: Literal["renormalize", "zero"] = "renormalize"
    """What is unscored is left out of a mean, or counts 0."""
    breach: Literal["zero-all", "from-stage", "from-turn", "ignored"] = "zero-all"
    """`from-turn`, `ignored`: as the track's branch of the harness, and for `like: harness` alone.
    """
    completeness_gate: bool = True
    """Whether Task is 0 where cases lack a result."""
    malformed: Literal["formula", "zero"] = "formula"
    """S5 of a malformed submission: by its formula, or 0 as the paper's text says."""
    strict_evidence: bool = False
    """What a reader says is met counts only with words that were found in the run and no fact
    against it; else unscored."""


class PartScore(Frozen):
    """The benchmark's metric on some of the cases: a class, a tissue, a kind of question."""

    by: str
    """What the cases are split by."""
    name: str
    """Of the part: `lesion`, say."""
    value: Unit
    """The metric, 0 to 1."""
    cases: Whole | None = None
    """How many the part has."""


class Grades(Frozen):
    """What the benchmark's own analysis says of the run beside its scores; null where the files do
    not say."""

    medal: Medal | None = None
    """Of Task, by the track's published limits."""
    rating: Rating | None = None
    """A and B are resolved, C is not, F failed."""
    progress: Unit | None = None
    """Share of the way to the better limit, 0 to 1."""
    failure: FailureKind | None = None
    """Why it is rated F."""
    pass_rate: Unit | None = None
    """Of images: the share of cases nearly as good as a classical baseline."""
    shuffled: Unit | None = None
    """The Task metric of a control, in which outputs were held against the references of other
    cases."""
    parts: tuple[PartScore, ...] = ()
    """The metric by classes, tissues or kinds of question."""

    @property
    def resolved(self) -> bool | None:
        """Whether the run is rated A or B."""
        return None if self.rating is None else self.rating in ("A", "B")


class PlanItem(Frozen):
    """One commitment of plan.md and its fate, with the words that show it."""

    commitment: str
    """What the plan says will be done."""
    state: Literal["kept", "broken", "dropped"]
    """What became of it."""
    turns: tuple[Whole, ...] = ()
    """Where that shows."""
    quote: Evidence | None = None
    """The words that show it, checked."""


class ScoreCardFields(Frozen):
    """The data of a scorecard, and what follows from it. `ScoreCard` adds JSON and display."""

    schema_: Literal["ambjudge.scorecard/1"] = Field(default=SCHEMA, alias="schema")
    """Name and version of this form."""
    ambjudge: str
    """The version that made it."""
    run: RunInfo
    """What was judged."""
    rubric: RubricInfo
    """By what."""
    judge: JudgeInfo
    """By whom, and what it took."""
    policy: Policy
    """The choices that the numbers depend on."""
    stages: dict[str, StageResult]
    """S1-S5 by the benchmark's rubrics; by one of the user's own the stages, or groups of criteria,
    that it declares."""
    read_share: Unit
    """Of the weight of what is judged (S1-S3), what was read (scored, credited, or zeroed by a
    breach)."""
    presumed_share: Unit
    """Of that weight, what is presumed; the rest has no value."""
    agentic: Unit | None
    """Weighted mean of the stages: how the work was done."""
    agentic_bounds: tuple[Unit, Unit]
    """Least and most, whatever a judge would say of what is presumed or unscored; no interval of
    chance."""
    task: Unit | None
    """The benchmark's score of the result."""
    task_from: TaskFrom | None = None
    """report: the harness's number; outcome: one of `outcomes`, which the user named; gate: 0 by
    the completeness gate; policy: 0 by disqualification; outputs: 0 as no output counts and no
    report says otherwise."""
    grades: Grades = Grades()
    """What the benchmark's own analysis says beside the scores."""
    overall: Percent | None
    """50 Agentic + 50 Task; null where Task is unknown."""
    overall_bounds: tuple[Percent, Percent]
    """Least and most, as of Agentic."""
    outcomes: dict[str, Outcome] = Field(default_factory=dict)
    """By name, what another harness found out about the run."""
    imported: str | None = None
    """The format that the run was imported from."""
    codes: tuple[FiredCode, ...] = ()
    """Error codes that fired, of both taxonomies."""
    codes_read: dict[str, CodeReading]
    """Every code of the paper's taxonomy: present, absent, cannot_tell or not_read."""
    unproven: tuple[FiredCode, ...] = ()
    """Readings whose quote stands nowhere in the run: listed, not fired."""
    facts: tuple[FactInfo, ...] = ()
    """Those that `codes` and `unproven` name."""
    plan: tuple[PlanItem, ...] = ()
    """What the plan promised and what became of it, as read; empty where nobody read the run or
    there is no plan."""
    stages_from: Literal["rules", "judge", "mixed"] = "rules"
    """Who labelled the turns."""
    primary_failure: str | None = None
    """Stage and code of the primary failure, by the harness's taxonomy."""
    episodes: tuple[EpisodeInfo, ...] = ()
    """Failed steps of the run, in order of their first turn."""
    answer_codes: dict[str, Whole] = Field(default_factory=dict)
    """Answer-level code -> answers that earn it, when answer files are there."""
    segments: tuple[Segment, ...] = ()
    """Consecutive turns of one stage."""
    turn_stages: tuple[Stage, ...] = ()
    """The stage of every turn."""
    stage_use: dict[Stage, StageUse] = Field(default_factory=dict)
    """Calls, failures and seconds by stage, as in `ambjudge.segments/1`; empty when nobody counted.
    """
    resources: CardResources
    """What the run used."""
    status: CardStatus
    """How the run ended."""
    plugins: tuple[str, ...] = ()
    """Packages that had a say: what they added, name, version and SHA-256 of the module."""
    contradictions: tuple[Contradiction, ...] = ()
    """Verdicts that facts speak against; with `strict_evidence` they are unscored."""
    warnings: tuple[str, ...] = ()
    """What a reader of this scorecard should know, in sentences."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    @property
    def presumed(self) -> int:
        """How many of the criteria that the scores rest on are presumed."""
        return sum(stage.presumed for stage in self.stages.values())

    @property
    def standing(self) -> Standing:
        """Whether Agentic and Overall are points, points on presumed criteria, or only ranges."""
        methods = [
            stage.method
            for name, stage in self.stages.items()
            if stage.criteria or name in READ_STAGES
        ]
        return standing(methods, self.read_share, self.presumed_share)

    @property
    def quotes(self) -> tuple[int, int]:
        """Quotes that criteria and codes rest on, and how many of them stand in the run.

        What a reader says is met and quotes nothing for counts as one quote that does not; rules
        need no words.
        """
        results = [result for stage in self.stages.values() for result in stage.criteria]
        cited = [evidence for result in results for evidence in result.evidence]
        cited += [code.quote for code in (*self.codes, *self.unproven) if code.quote is not None]
        bare = sum(
            r.status == "scored" and bool(r.value) and not r.evidence and not self._by_rules(r)
            for r in results
        )
        return len(cited) + bare, sum(evidence.check != "not_found" for evidence in cited)

    @property
    def gist(self) -> Gist:
        """What a summary of many cards counts."""
        reasons = Counter[str](
            r.reason
            for stage in self.stages.values()
            for r in stage.criteria
            if r.reason is not None
        )
        return Gist(
            any(stage.score is None for stage in self.stages.values()),
            self.standing,
            self.read_share,
            *self.quotes,
            len(self.contradictions),
            self.policy.strict_evidence,
            "not_read" in self.codes_read.values(),
            dict(reasons),
        )

    def _by_rules(self, result: CriterionResult) -> bool:
        return self.judge.name == RULES or any(
            vote.judge == RULES and vote.value for vote in result.votes
        )


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
