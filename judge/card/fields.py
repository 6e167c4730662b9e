"""The data of a scorecard (`ambjudge.scorecard/1`) as pydantic models, and what follows from it.

`scorecard.py` adds JSON and display. Parts that are made elsewhere are defined where they are made
(`error_codes/models.py`, `trajectories/`). Stage scores, agentic and task are in [0, 1]; overall in
[0, 100]. Unknown is null, never 0. Bounds are the worst and best case over what is unscored or
presumed. A scorecard holds the decimals that it is stored with (4, overall 2), so that a number is
the same in Python, in JSON and wherever it is shown.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, field_validator

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

SCORE_DECIMALS, OVERALL_DECIMALS = 4, 2
Score = Annotated[Unit, AfterValidator(lambda value: round(value, SCORE_DECIMALS))]
OverallScore = Annotated[Percent, AfterValidator(lambda value: round(value, OVERALL_DECIMALS))]

RULES = "rules"
"""Name of the judge without a model; the command line also takes its former name, `heuristic`."""
REPORTED = "reported"
"""Name of the judge that repeats what the harness's reports say of S1-S3."""
SIMULATED = "simulated"
"""The name of the judge of simulated scorecards, which have no run behind them."""
REPLAY = "replay:"
"""Beginning of the names of judges that play back recorded answers."""
TaskFrom = Literal["report", "outcome", "gate", "policy", "outputs"]

Medal = Literal["good", "okay", "fail"]
Rating = Literal["A", "B", "C", "F"]
FailureKind = Literal["breach", "timeout", "no_output", "below_band"]
"""Why a run is rated F: it was disqualified; it never submitted; no output counts; it submitted
outputs that are not good enough."""


class RunInfo(Frozen):
    id: str
    """Name of the run, or of its folder if it has none."""
    path: str
    """The conversation file, as it was named."""
    sha256: str
    """Hash of the conversation's bytes."""
    agent: str | None
    """The agent that did the run."""
    model: str | None
    """The agent's language model."""
    task: str | None
    """Name of the task."""
    track: TrackName | None
    """Kind of task; decides the rubric and the checks of the outputs."""
    tier: Tier | None
    """How much guidance the brief gave."""
    repeat: Whole | None
    """Number of the run among several of the agent on the task."""
    turns: Whole
    """Number of turns."""
    format: str
    """Format of the conversation file."""


class RubricInfo(Frozen):
    """The rubric that the run was judged by."""

    id: str
    """Name of the rubric."""
    version: str
    """Version that its file states."""
    sha256: str
    """Hash of everything in it that decides a verdict or a score."""
    titles: dict[str, str] = Field(default_factory=dict, exclude_if=lambda titles: not titles)
    """Titles of the criteria by id, unless the rubric ships with ambjudge."""


class JudgeInfo(Frozen):
    name: str
    """`rules`, a model, `local:NAME`, `replay:NAME` or `panel`."""
    members: tuple[str, ...] = ()
    """Names of a panel's members."""
    prompt_sha256: str | None = None
    """Hash of the prompts; null for rules."""
    temperature: float | None = None
    """Temperature of the calls; null if there is none, or if members of a panel differ."""
    samples: Whole | None = None
    """Replies to each question; null if that is unknown, or if members of a panel differ."""
    first_verdict: date | None = None
    """Day (UTC) of the oldest verdict; null for rules and for recorded answers."""
    last_verdict: date | None = None
    """Day (UTC) of the newest verdict."""
    calls: Whole = 0
    """Requests that this scorecard took; answers from the store are not counted."""
    input_tokens: Whole | None = 0
    """Null if neither counted nor estimated."""
    output_tokens: Whole | None = 0
    """Null if neither counted nor estimated."""
    cached_tokens: Whole | None = 0
    """Input tokens that a provider read from its cache; null if it reported no count."""
    cache_write_tokens: Whole | None = 0
    """Input tokens that a provider wrote into its cache."""
    cost_usd: Annotated[Amount, round_to(6)] | None = 0.0
    """Null if a price is unknown."""
    estimated_calls: Whole = Field(default=0, exclude_if=lambda calls: not calls)
    """Calls whose tokens are estimated upwards, as the provider did not count them."""
    served_model: str | None = Field(default=None, exclude_if=lambda model: model is None)
    """The model that answered, as the provider names it; several are separated by commas."""


class Policy(Frozen):
    """The choices that the numbers depend on."""

    like: Like = "paper"
    """Whose rules apply where the benchmark's text and its public harness differ; `harness` decides
    the other choices too."""
    missing: Literal["renormalize", "zero"] = "renormalize"
    """Whether unscored criteria and stages are left out of a mean or count 0."""
    breach: Literal["zero-all", "from-stage", "from-turn", "ignored"] = "zero-all"
    """What a breach sets to 0. `from-turn` and `ignored` follow the track's branch of the harness,
    for `like: harness` alone."""
    completeness_gate: bool = True
    """Whether Task is 0 if any case lacks a result."""
    malformed: Literal["formula", "zero"] = "formula"
    """S5 of a malformed submission: by its formula, or 0 as the paper's text says."""
    strict_evidence: bool = False
    """Whether a verdict counts only if no fact contradicts it and, of a criterion judged met, a
    quote was found; otherwise the criterion is unscored."""


class PartScore(Frozen):
    """The benchmark's metric on some of the cases: a class, a tissue, a kind of question."""

    by: str
    """What the cases are split by."""
    name: str
    """Name of the part, for example `lesion`."""
    value: Unit
    """The metric, 0 to 1."""
    cases: Whole | None = None
    """Number of cases in the part."""


class Grades(Frozen):
    """Grades of the run by the benchmark's own analysis; null if the files lack them."""

    medal: Medal | None = None
    """Medal for Task, by the track's published limits."""
    rating: Rating | None = None
    """A and B: resolved; C: not resolved; F: failed."""
    progress: Unit | None = None
    """Share of the way to the better limit, 0 to 1."""
    failure: FailureKind | None = None
    """Why it is rated F."""
    pass_rate: Unit | None = None
    """Images: share of cases nearly as good as a classical baseline."""
    shuffled: Unit | None = None
    """The Task metric of a control that compares outputs with the references of other cases."""
    parts: tuple[PartScore, ...] = ()
    """The metric by classes, tissues or kinds of question."""

    @property
    def resolved(self) -> bool | None:
        """Whether the run is rated A or B."""
        return None if self.rating is None else self.rating in ("A", "B")


class PlanItem(Frozen):
    """One commitment of plan.md and its fate, with the words that show it."""

    commitment: str
    """What the plan promises."""
    state: Literal["kept", "broken", "dropped"]
    """The fate of the promise."""
    turns: tuple[Whole, ...] = ()
    """The turns that show it."""
    quote: Evidence | None = None
    """The words that show it, checked against the run."""


class ScoreCardFields(Frozen):
    """The data of a scorecard, and what follows from it. `ScoreCard` adds JSON and display."""

    schema_: Literal["ambjudge.scorecard/1"] = Field(default=SCHEMA, alias="schema")
    """Name and version of this document format."""
    ambjudge: str
    """The version of ambjudge that made it."""
    run: RunInfo
    """The run that was judged."""
    rubric: RubricInfo
    """The rubric that it was judged by."""
    judge: JudgeInfo
    """The judge, and what it cost."""
    policy: Policy
    """The choices that the numbers depend on."""
    stages: dict[str, StageResult]
    """S1-S5 by the benchmark's rubrics; the stages or groups of criteria that a rubric of the
    user's own declares."""
    read_share: Score
    """Share of the weight of the judged stages (S1-S3) that was read: scored, credited, or zeroed
    by a breach."""
    presumed_share: Score
    """Share of that weight that is presumed; what remains has no value."""
    agentic: Score | None
    """Weighted mean of the stages: how the work was done."""
    agentic_bounds: tuple[Score, Score]
    """Worst and best case over what is presumed or unscored; not a statistical interval."""
    task: Score | None
    """The benchmark's score of the result."""
    task_from: TaskFrom | None = None
    """report: the harness's number; outcome: one of `outcomes`, which the user named; gate: 0 by
    the completeness gate; policy: 0 by disqualification; outputs: 0, as no output counts and no
    report says otherwise."""
    grades: Grades = Grades()
    """What the benchmark's own analysis says beside the scores."""
    overall: OverallScore | None
    """50 Agentic + 50 Task; null if Task is unknown."""
    overall_bounds: tuple[OverallScore, OverallScore]
    """Worst and best case, as for Agentic."""
    outcomes: dict[str, Outcome] = Field(default_factory=dict)
    """Results that another harness recorded about the run, by name."""
    imported: str | None = None
    """The format that the run was imported from."""
    codes: tuple[FiredCode, ...] = ()
    """Error codes that fired, of both taxonomies."""
    codes_read: dict[str, CodeReading]
    """Every code of the paper's taxonomy: present, absent, cannot_tell, not_read or
    withheld (the run still goes on)."""
    unproven: tuple[FiredCode, ...] = ()
    """Readings whose quote was not found in the run: listed, not fired."""
    facts: tuple[FactInfo, ...] = ()
    """The facts that `codes`, `unproven` and criteria decided by facts name, and those that speak
    for themselves: the last run of tests failed, say."""
    plan: tuple[PlanItem, ...] = ()
    """The promises of the plan and their fates, as read; empty if nobody read the run or there is
    no plan."""
    stages_from: Literal["rules", "judge", "mixed"] = "rules"
    """Who labelled the turns."""
    primary_failure: str | None = None
    """Stage and code of the primary failure, by the harness's taxonomy."""
    episodes: tuple[EpisodeInfo, ...] = ()
    """Failed steps of the run, in order of their first turn."""
    answer_codes: dict[str, Whole] = Field(default_factory=dict)
    """Answer-level code -> number of answers that earn it, if there are answer files."""
    segments: tuple[Segment, ...] = ()
    """Consecutive turns of one stage."""
    turn_stages: tuple[Stage, ...] = ()
    """The stage of every turn."""
    stage_use: dict[Stage, StageUse] = Field(default_factory=dict)
    """Calls, failures and seconds by stage, as in `ambjudge.segments/1`; empty if not counted."""
    resources: CardResources
    """What the run used."""
    status: CardStatus
    """How the run ended."""
    plugins: tuple[str, ...] = ()
    """Packages that took part: what each added, its name, version and SHA-256 of the module."""
    contradictions: tuple[Contradiction, ...] = ()
    """Verdicts that facts contradict, met or not met; with `strict_evidence` they are unscored."""
    warnings: tuple[str, ...] = ()
    """What a reader of this scorecard should know, in sentences."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    @field_validator("stages")
    @classmethod
    def _with_stored_decimals(cls, stages: dict[str, StageResult]) -> dict[str, StageResult]:
        return {name: _stored(stage) for name, stage in stages.items()}

    @property
    def presumed(self) -> int:
        """Number of presumed criteria that the scores rest on."""
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
        """Number of quotes that criteria and codes rest on, and of those found in the run.

        A criterion that a model judged met without a quote counts as a quote that was not found.
        What facts decided rests on no judge's quotes.
        """
        results = [
            result
            for stage in self.stages.values()
            for result in stage.criteria
            if result.by is None
        ]
        quotes = [quote for result in results for quote in result.evidence]
        quotes += [code.quote for code in (*self.codes, *self.unproven) if code.quote is not None]
        unquoted = sum(self._lacks_quote(result) for result in results)
        found = sum(quote.check != "not_found" for quote in quotes)
        return len(quotes) + unquoted, found

    def _lacks_quote(self, result: CriterionResult) -> bool:
        """Whether a model judged a criterion met and quoted nothing.

        Rules need no quote, reports have none, and a simulated run has nothing to quote.
        """
        if result.status != "scored" or not result.value or result.evidence:
            return False
        by_rules = any(vote.judge == RULES and vote.value for vote in result.votes)
        return self.judge.name not in (RULES, REPORTED, SIMULATED) and not by_rules

    @property
    def gist(self) -> Gist:
        """What a summary of many cards counts."""
        reasons = Counter[str](
            result.reason
            for stage in self.stages.values()
            for result in stage.criteria
            if result.reason not in (None, "running") and stage.method != "reported"
        )
        quotes, quotes_found = self.quotes
        return Gist(
            incomplete=any(
                stage.score is None
                and stage.method not in ("reported", "not_applicable", "withheld")
                for stage in self.stages.values()
            ),
            standing=self.standing,
            read_share=self.read_share,
            quotes=quotes,
            quotes_found=quotes_found,
            contradictions=len(self.contradictions),
            strict=self.policy.strict_evidence,
            codes_unread="not_read" in self.codes_read.values(),
            unscored=dict(reasons),
            running=self.status.ended == "running",
        )


def _stored(stage: StageResult) -> StageResult:
    """A stage with the decimals that scorecards are stored with; scores are added up exactly."""
    low, high = stage.bounds
    bounds = round(low, SCORE_DECIMALS), round(high, SCORE_DECIMALS)
    score = None if stage.score is None else round(stage.score, SCORE_DECIMALS)
    if (score, bounds) == (stage.score, stage.bounds):
        return stage
    return stage.model_copy(update={"score": score, "bounds": bounds})


class Gist(NamedTuple):
    """What a summary of many scorecards counts of each; a store keeps it in this order."""

    incomplete: bool
    """A stage has no score."""
    standing: Standing
    read_share: float | None
    quotes: int
    quotes_found: int
    contradictions: int
    strict: bool
    """Scored with strict evidence."""
    codes_unread: bool
    """Some codes were not read."""
    unscored: dict[str, int]
    """Criteria without a verdict, by reason."""
    running: bool = False
    """The run still goes on."""
