"""A run as read from its files: the frozen models that every other package works on.

Nothing above `trajectories/` knows a file format. A missing value is `None`, never 0 or "". Turns
are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints

from ..tasks.output_format import NO_DEMANDS, OutputFormat
from .quantities import Amount, Whole
from .stages import STAGE_NAMES as STAGE_NAMES
from .stages import STAGES as STAGES
from .stages import Stage as Stage

TrackName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""Name of a track (`tracks.py`); the package that defines it need not be installed."""
Tier = Literal["lite", "standard", "pro"]
TIERS: tuple[Tier, ...] = ("lite", "standard", "pro")

AnswerKind = Literal["ok", "failed", "timeout", "blocked", "cancelled", "unknown"]
"""How an action went: it was done, failed, ran out of time, was not allowed, or was called off."""
FAILED_KINDS: frozenset[AnswerKind] = frozenset({"failed", "timeout", "blocked", "cancelled"})

ActionKind = Literal["execute", "write", "edit", "read", "search", "todo", "web", "submit", "other"]


def _path_as_json(path: Path) -> str:
    return str(path).encode("utf-8", "replace").decode()


FilePath = Annotated[Path, PlainSerializer(_path_as_json, when_used="json-unless-none")]
"""A path. In JSON, bytes of a file name that are not UTF-8 become `?`."""


class Frozen(BaseModel):
    """An immutable value.

    An unknown field is a bug of ambjudge, not an error in the input: readers pick the fields that
    they know.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)


class Observation(Frozen):
    """What the environment answered to one action.

    `exit_code` is None if none was recorded (other tools, other harnesses) or if it was not an
    integer. The harness writes -1 for a timeout and for a blocked call alike; `kind` distinguishes
    the two by the harness's message. Without an exit code, `kind` is what the source states.
    """

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    kind: AnswerKind = "unknown"

    @property
    def text(self) -> str:
        """stdout and stderr as one text."""
        if self.stdout and self.stderr:
            return f"{self.stdout}\n{self.stderr}"
        return self.stdout or self.stderr

    @property
    def failed(self) -> bool:
        """Whether the action failed, timed out, was blocked or cancelled."""
        return self.kind in FAILED_KINDS


class Action(Frozen):
    """One tool call of a turn with its result.

    `observation` is None if the run ended before the call was answered.
    """

    id: str | None = None
    tool: str
    kind: ActionKind
    language: str | None = None
    """python, bash, ... for executed code; None otherwise."""
    code: str = ""
    """The code or command executed, or the text that a write or edit writes; "" for other tools."""
    path: str | None = None
    """The file that a write, edit or read tool names."""
    arguments: dict[str, Any] | None = None
    """The arguments; None if they were not valid JSON (`code` holds the raw text then)."""
    observation: Observation | None = None
    exec_time_s: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the action was answered as failed, timed out, blocked or cancelled."""
        return self.observation is not None and self.observation.failed


class Turn(Frozen):
    """One assistant message with its tool calls and their results."""

    index: int
    """1-based."""
    text: str = ""
    reasoning: str = ""
    speaker: str | None = None
    actions: tuple[Action, ...] = ()
    replies: tuple[str, ...] = ()
    """User or system messages that answer this turn, e.g. a request to continue."""
    finish_reason: str | None = None
    time_s: float | None = None
    """Seconds from the start of the run to the answer, from the trace; None if unknown."""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def code(self) -> str:
        """The code of all actions of the turn, in order."""
        return "\n".join(action.code for action in self.actions if action.code)

    @property
    def output(self) -> str:
        """The results of all actions of the turn, in order."""
        observations = (action.observation for action in self.actions)
        return "\n".join(
            observation.text
            for observation in observations
            if observation is not None and observation.text
        )

    @property
    def failed(self) -> bool:
        """Whether any action of the turn failed, timed out, was blocked or cancelled."""
        return any(action.failed for action in self.actions)


class Plan(Frozen):
    """The run's plan.md and plan.png."""

    text: str | None = None
    source: Literal["file", "recovered", "none"] = "none"
    """file: plan.md; recovered: the text that the code of `turn` wrote; none: there is no plan."""
    path: FilePath | None = None
    turn: int | None = None
    """The last turn whose code wrote the plan; None if no such turn was seen."""
    image_path: FilePath | None = None
    image_turn: int | None = None
    """The last turn whose code wrote plan.png; None if no such turn was seen."""

    @property
    def exists(self) -> bool:
        return self.source != "none"

    @property
    def image_exists(self) -> bool:
        """Whether there is a plan.png file, or code that writes one ran without failing."""
        return self.image_path is not None or self.image_turn is not None


class OutputFile(Frozen):
    """One delivered file.

    `case` is the first folder below the output root; None for files directly in the root.
    """

    case: str | None
    name: str
    """Path relative to the case folder (or to the root), with forward slashes."""
    path: FilePath
    size: int
    """Bytes."""


class Outputs(Frozen):
    """What the agent delivered under agents_outputs/; `root` is None if there is no such folder."""

    root: FilePath | None = None
    files: tuple[OutputFile, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Folders and files, relative to the run, that this user may not read. The others are then
    left out too, as if none had come with the run."""

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(sorted({file.case for file in self.files if file.case is not None}))

    def of_case(self, case: str | None) -> dict[str, OutputFile]:
        """The files of one case by name; None stands for files directly in the root."""
        return {file.name: file for file in self.files if file.case == case}


class Report(Frozen):
    """The harness report (detail_report.json), with old and new field names unified.

    Scores are in [0, 1]. `overall` is in [0, 100], though all branches write it in [0, 1].
    """

    path: FilePath | None = None
    task_score: float | None = None
    task_score_from: str | None = None
    """The field that held the task score, e.g. `clinical.clinical`."""
    agentic: float | None = None
    overall: float | None = None
    step_scores: dict[Stage, float | None] = {}
    """Stage scores as reported. S4 and S5, which are measured and not judged, are taken from here
    if the delivered files do not decide them; the trace comes last."""
    metrics: dict[str, Any] = {}
    """Metric name -> number, or nested mapping, as reported."""
    output_format_valid: bool | None = None
    submission_format_valid: bool | None = None
    decision_csv_valid: bool | None = None
    completion_rate: float | None = None
    n_outputs: int | None = None
    """Number of outputs delivered; None if the report does not say. It is also 0 if the report's
    completion rate or S4 is 0: a run that delivered nothing may have no output folder
    (AutoMedBench/AutoMedBench, branch eval_seg, benchmark_runner.py:2253)."""
    n_valid: int | None = None
    n_expected: int | None = None
    breached: bool | None = None
    breach_turn: int | None = None
    medal: str | None = None
    rating: str | None = None
    progress: float | None = None
    pass_rate: float | None = None
    """For image tasks: the share of cases nearly as good as a classical baseline."""
    shuffled: dict[str, Any] = {}
    """Metrics of the control that compares outputs with the references of other cases."""


class Outcome(Frozen):
    """One result that another harness recorded about the run, in the source's own units."""

    value: bool | float | str
    """The value as recorded."""
    source: str = ""
    """The format and the field that held the value."""

    @property
    def as_task_score(self) -> float | None:
        """The value as a number in [0, 1], true as 1, false as 0; None for any other value."""
        if isinstance(self.value, str) or not 0 <= self.value <= 1:
            return None
        return float(self.value)


class CardResources(Frozen):
    """What the agent used."""

    turns: Whole
    """Turns of the agent."""
    calls: Whole
    """Tool calls."""
    failed_calls: Whole
    """Tool calls that ended in an error."""
    wall_time_s: Amount | None
    """Seconds from start to end."""
    input_tokens: Whole | None
    """Tokens that the agent's model read."""
    output_tokens: Whole | None
    """Tokens that the agent's model wrote."""
    cost_usd: Amount | None
    """Cost of the agent's run, not of judging it."""


class Resources(CardResources):
    """`CardResources`, the part that a scorecard embeds, with the source of each number."""

    wall_time_s: Amount | None = None
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    cost_usd: Amount | None = None
    source: dict[str, Literal["report", "summary", "trace", "counted"]] = {}


class Violation(Frozen):
    """One isolation violation: its turn and the harness's message."""

    turn: int
    text: str


class CardStatus(Frozen):
    """How the run ended."""

    submitted: bool
    """Whether submit_results was called or, in tracks that deliver answers, the agent stopped by
    itself with a closing message."""
    completed: bool | None
    """Whether all deliverables were there, by the harness's answer to the submission or by its
    report; None if neither says."""
    disqualified: bool
    """Whether the run broke a rule that ends it with 0."""
    violations: Whole
    """Number of isolation violations."""
    ended: Literal["submitted", "stopped", "breach", "cut", "running"]
    """submitted; stopped: a closing message, but nothing submitted; breach; cut: killed, out of
    turns, or a call without an answer; running: it still went on when it was scored, so that what
    needs its end is withheld."""


class Status(CardStatus):
    """`CardStatus`, the part that a scorecard embeds, with the violations themselves."""

    violations: Whole = 0
    violation_records: tuple[Violation, ...] = ()
    breach_turn: int | None = None
    end_recorded: bool = False
    """Whether the harness recorded an end: by its trace, its summary or its report."""


class Run(Frozen):
    """One execution of an agent on one task and tier, from the brief to the last turn.

    Example:

        for turn in ambjudge.load_run("runs/elm-chest-1").turns:
            print(turn.index, turn.text)
    """

    id: str
    path: FilePath
    """The conversation file, or the trace of a run that has no conversation."""
    folder: FilePath
    """The run's folder; for an unknown layout, the folder that the conversation file is in."""
    sha256: str
    """Hash of the conversation file's bytes."""
    content_sha256: str
    """Hash of everything read: conversation, side files, plan, and the names, sizes and both ends
    of the outputs."""
    format: Literal["object", "list", "trace"]
    """`trace`: there is no conversation; the turns come from the trace and the tool log."""
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    track: TrackName | None = None
    tier: Tier | None = None
    repeat: int | None = None
    output_format: OutputFormat = Field(default=NO_DEMANDS, exclude=True)
    """What the task demands of the outputs beyond its track's format."""
    brief: str = ""
    """The system prompt and the user messages before the first turn."""
    turns: tuple[Turn, ...]
    plan: Plan = Plan()
    outputs: Outputs = Outputs()
    report: Report | None = None
    outcomes: dict[str, Outcome] = {}
    """Results of another harness by name: scores, flags and short texts."""
    task_outcome: str | None = None
    """Name of the outcome that the user chose as Task score; its `as_task_score` is a number."""
    imported: str | None = None
    """The format that the run was imported from."""
    part_of: str | None = None
    """The id of the run in which this is the part of another agent."""
    parts: tuple[str, ...] = ()
    """Names of the parts of other agents, which are runs in its folder `parts`."""
    has_tools: bool = True
    """Whether the agent could act: it called a tool, was given some, or its replies were answered.
    Only a run of another harness may show that it could not."""
    resources: Resources
    status: Status
    listed_cases: tuple[str, ...] | None = None
    """Case ids named by the summary or the report (patient_ids, question_ids); None if neither
    names any."""
    submit_result: dict[str, Any] | None = None
    """The harness's answer to an accepted submit_results, if any; `harness_report.submit_answer`
    unifies its field names."""
    summary: dict[str, Any] | None = None
    """agent_summary.json (run_summary.json in the vqa branch) as read."""
    warnings: tuple[str, ...] = ()

    def turn(self, index: int) -> Turn:
        """The turn with this 1-based number; IndexError outside 1..len(turns)."""
        if not 1 <= index <= len(self.turns):
            raise IndexError(f"turn {index} of {len(self.turns)}")
        return self.turns[index - 1]

    def actions(self) -> Iterator[tuple[Turn, Action]]:
        """Every action of the run with its turn, in order."""
        for turn in self.turns:
            for action in turn.actions:
                yield turn, action


class Signal(Frozen):
    """One weak hint that a turn belongs to a stage.

    `weight` is in log-odds; `quote` holds the words that the hint rests on.
    """

    name: str
    stage: Stage
    weight: float
    quote: str = ""


class Segment(Frozen):
    """Consecutive turns of one stage, both ends included, 1-based."""

    stage: Stage
    """S1 to S5."""
    first_turn: int
    """The first turn of the segment."""
    last_turn: int
    """The last turn of the segment."""


class Segmentation(Frozen):
    """One stage for each turn; entry i of every tuple but `segments` is about turn i+1."""

    turn_stages: tuple[Stage, ...]
    segments: tuple[Segment, ...]
    """The same stages, with consecutive turns of one stage merged."""
    confidence: tuple[float, ...] = ()
    """Posterior probability of each turn's stage, in [0, 1]."""
    signals: tuple[tuple[Signal, ...], ...] = ()
    """The signals of each turn; empty unless they were requested."""

    @classmethod
    def from_stages(
        cls,
        stages: Sequence[Stage],
        confidence: Sequence[float] | None = None,
        signals: tuple[tuple[Signal, ...], ...] = (),
    ) -> Segmentation:
        """The segmentation with one stage per turn; without `confidence` each is certain (1.0)."""
        segments: list[Segment] = []
        first = 1
        for stage, group in groupby(stages):
            last = first + len(list(group)) - 1
            segments.append(Segment(stage=stage, first_turn=first, last_turn=last))
            first = last + 1
        if confidence is None:
            confidence = [1.0] * len(stages)
        return cls(
            turn_stages=tuple(stages),
            segments=tuple(segments),
            confidence=tuple(confidence),
            signals=signals,
        )

    def stage_of(self, turn: int) -> Stage | None:
        """The stage of a 1-based turn; None outside the run."""
        if not 1 <= turn <= len(self.turn_stages):
            return None
        return self.turn_stages[turn - 1]

    def turns_of(self, *stages: Stage) -> tuple[int, ...]:
        """The 1-based numbers of the turns of these stages, in order."""
        return tuple(turn for turn, stage in enumerate(self.turn_stages, 1) if stage in stages)
