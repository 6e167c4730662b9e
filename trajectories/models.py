"""A run as read from its files: frozen models that every other room works on.

Nothing above `trajectories/` knows a file format. Missing values are `None`, never 0 or "". Turns
count from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer, StringConstraints

from .stages import STAGE_NAMES as STAGE_NAMES
from .stages import STAGES as STAGES
from .stages import Stage as Stage

TrackName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""Name of a track (`tracks.py`), also of one whose package is not installed here."""
Tier = Literal["lite", "standard", "pro"]
TIERS: tuple[Tier, ...] = ("lite", "standard", "pro")

ActionKind = Literal["execute", "write", "edit", "read", "search", "todo", "web", "submit", "other"]


FilePath = Annotated[
    Path,
    PlainSerializer(
        lambda path: str(path).encode("utf-8", "replace").decode(), when_used="json-unless-none"
    ),
]
"""A path; in JSON, bytes of a file name that are no UTF-8 become `?`."""


class Frozen(BaseModel):
    """An immutable value; unknown fields are an error of ours, not of the input (loaders pick what
    they know)."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)


class Observation(Frozen):
    """What the environment answered to one action.

    `exit_code` is None where none was recorded (other tools, foreign sources) or where it was not
    an integer; -1 is a timeout or a block. `kind` says which, read from the harness's own words.
    """

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    kind: Literal["ok", "failed", "timeout", "blocked", "unknown"] = "unknown"

    @property
    def text(self) -> str:
        """stdout and stderr, as one text."""
        return (
            f"{self.stdout}\n{self.stderr}"
            if self.stdout and self.stderr
            else self.stdout or self.stderr
        )


class Action(Frozen):
    """One tool call of a turn, with what came back (`observation` is None when the run died before
    an answer)."""

    id: str | None = None
    tool: str
    kind: ActionKind
    language: str | None = None
    """python, bash, ... for executed code; None otherwise."""
    code: str = ""
    """The code or command executed, or for write/edit the text written; "" when the tool has
    neither."""
    path: str | None = None
    """The file that a write/edit/read tool names."""
    arguments: dict[str, Any] | None = None
    """The arguments as given; None when they were not valid JSON (`code` then holds the raw text).
    """
    observation: Observation | None = None
    exec_time_s: float | None = None


class Turn(Frozen):
    """One assistant message with its tool calls and their results."""

    index: int
    """1-based."""
    text: str = ""
    reasoning: str = ""
    speaker: str | None = None
    actions: tuple[Action, ...] = ()
    replies: tuple[str, ...] = ()
    """User or system messages that came after this turn and before the next one (e.g. a request to
    continue)."""
    finish_reason: str | None = None
    time_s: float | None = None
    """Seconds since the start of the run at which the turn was answered (trace), if known."""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def code(self) -> str:
        """All code of the turn's actions, in order."""
        return "\n".join(action.code for action in self.actions if action.code)

    @property
    def output(self) -> str:
        """All that the environment answered in this turn, in order."""
        return "\n".join(
            a.observation.text
            for a in self.actions
            if a.observation is not None and a.observation.text
        )

    @property
    def failed(self) -> bool:
        """Whether any action of the turn came back as failed, timed out or blocked."""
        return any(
            a.observation is not None and a.observation.kind in ("failed", "timeout", "blocked")
            for a in self.actions
        )


class Plan(Frozen):
    """plan.md and plan.png. `source` says where the text came from; a recovered text names its
    turn."""

    text: str | None = None
    source: Literal["file", "recovered", "none"] = "none"
    path: FilePath | None = None
    turn: int | None = None
    """The turn whose code last wrote the plan, if one was seen."""
    image_path: FilePath | None = None
    image_turn: int | None = None
    """The turn whose code last wrote plan.png, if one was seen."""

    @property
    def exists(self) -> bool:
        return self.source != "none"

    @property
    def image_exists(self) -> bool:
        """A plan.png file is there, or code that wrote it ran without failing."""
        return self.image_path is not None or self.image_turn is not None


class OutputFile(Frozen):
    """One delivered file. `case` is the first folder below the output root, or None for files
    directly in it."""

    case: str | None
    name: str
    """Path relative to the case folder (or to the root), with forward slashes."""
    path: FilePath
    size: int
    """Bytes."""


class Outputs(Frozen):
    """What the agent delivered under agents_outputs/. `root` is None when no such folder came with
    the run."""

    root: FilePath | None = None
    files: tuple[OutputFile, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(sorted({f.case for f in self.files if f.case is not None}))

    def of_case(self, case: str | None) -> dict[str, OutputFile]:
        """name -> file for one case (None: files directly in the root)."""
        return {f.name: f for f in self.files if f.case == case}


class Report(Frozen):
    """The harness report (detail_report.json), old and new names made one. Scores in [0, 1];
    overall in [0, 100], which all branches write in [0, 1]."""

    path: FilePath | None = None
    task_score: float | None = None
    task_score_from: str | None = None
    """The name that the task score stood under, e.g. `clinical.clinical`."""
    agentic: float | None = None
    overall: float | None = None
    step_scores: dict[Stage, float | None] = {}
    """As the harness has them. S4 and S5 are measured, not judged: where nothing else tells them,
    they are the numbers to take after the delivered files and before the trace."""
    metrics: dict[str, Any] = {}
    """Metric name -> number, or nested mapping, as reported."""
    output_format_valid: bool | None = None
    submission_format_valid: bool | None = None
    decision_csv_valid: bool | None = None
    completion_rate: float | None = None
    n_outputs: int | None = None
    """Outputs delivered: 0 also where the report says so by its completion or S4; None when it does
    not say. Of a run that delivered nothing no folder of outputs may be kept
    (AutoMedBench/AutoMedBench, branch eval_seg, benchmark_runner.py:2253)."""
    n_valid: int | None = None
    n_expected: int | None = None
    breached: bool | None = None
    breach_turn: int | None = None
    medal: str | None = None
    rating: str | None = None
    progress: float | None = None
    pass_rate: float | None = None
    """Of images: the share of cases nearly as good as a classical baseline."""
    shuffled: dict[str, Any] = {}
    """The metrics of a control, in which outputs were held against the references of other cases.
    """


class Outcome(Frozen):
    """What another harness found out about the run. Numbers are as they stood, in the source's own
    units."""

    value: bool | float | str
    """As it stood."""
    source: str = ""
    """The format and the field that it stood in."""

    @property
    def as_task_score(self) -> float | None:
        """As a Task score: a number in [0, 1], 1 and 0 for yes and no; None for what is neither."""
        return (
            float(self.value) if not isinstance(self.value, str) and 0 <= self.value <= 1 else None
        )


class Resources(Frozen):
    """What the run used. `source` names, per field, where the number came from (report, summary,
    trace, counted)."""

    turns: int
    calls: int
    failed_calls: int
    wall_time_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    source: dict[str, Literal["report", "summary", "trace", "counted"]] = {}


class Violation(Frozen):
    """One isolation violation: the turn it happened on and the harness's words."""

    turn: int
    text: str


class Status(Frozen):
    """How the run ended.

    submitted: submit_results was called (where answers are delivered: the agent stopped by itself
    with a closing message). ended: submitted | stopped (closing message, nothing submitted) |
    breach | cut (killed, out of turns, or unanswered call).
    """

    submitted: bool
    completed: bool | None
    """All deliverables were there, by the harness's submit answer or report; None when nobody said.
    """
    disqualified: bool
    violations: tuple[Violation, ...] = ()
    ended: Literal["submitted", "stopped", "breach", "cut"]
    breach_turn: int | None = None


class Run(Frozen):
    """One agent on one (task, tier), from the brief to submission or death.

    for turn in ambjudge.load_run("runs/elm-chest-1").turns: print(turn.index, turn.text)
    """

    id: str
    path: FilePath
    """The conversation file, or the trace of a run without one."""
    folder: FilePath
    """The run's folder (the conversation's own folder when there is no known layout around it)."""
    sha256: str
    """Of the conversation file's bytes."""
    content_sha256: str
    """Of everything read: conversation, side files, plan, and of the outputs their names, sizes and
    both ends."""
    format: Literal["object", "list", "trace"]
    """`trace`: no conversation was written, the turns are those of the trace and the tool log."""
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    track: TrackName | None = None
    tier: Tier | None = None
    repeat: int | None = None
    brief: str = ""
    """System prompt and the user messages before the first turn."""
    turns: tuple[Turn, ...]
    plan: Plan = Plan()
    outputs: Outputs = Outputs()
    report: Report | None = None
    outcomes: dict[str, Outcome] = {}
    """By name, what another harness found out: its scores, flags and words."""
    task_outcome: str | None = None
    """The outcome that the user named as the Task score; its `as_task_score` is a number."""
    imported: str | None = None
    """The format that the run was imported from."""
    resources: Resources
    status: Status
    listed_cases: tuple[str, ...] | None = None
    """Case ids that the summary or the report names (patient_ids, question_ids), if one does."""
    submit_result: dict[str, Any] | None = None
    """The harness's answer to an accepted submit_results, if there was one; `report.submit_answer`
    makes its names one."""
    summary: dict[str, Any] | None = None
    """agent_summary.json (the vqa branch's run_summary.json) as read."""
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
    """One weak hint that a turn belongs to a stage: its name, the stage, a log-odds weight and the
    words it rests on."""

    name: str
    stage: Stage
    weight: float
    quote: str = ""


class Segment(Frozen):
    """Consecutive turns of one stage, both ends included, 1-based."""

    stage: Stage
    """S1 to S5."""
    first_turn: int
    """From here."""
    last_turn: int
    """To here."""


class Segmentation(Frozen):
    """One stage a turn. `confidence[i]` is the posterior probability of the chosen stage of turn
    i+1."""

    turn_stages: tuple[Stage, ...]
    segments: tuple[Segment, ...]
    confidence: tuple[float, ...] = ()
    signals: tuple[tuple[Signal, ...], ...] = ()

    @classmethod
    def from_stages(
        cls,
        stages: Sequence[Stage],
        confidence: Sequence[float] | None = None,
        signals: tuple[tuple[Signal, ...], ...] = (),
    ) -> Segmentation:
        """The segmentation with these stages, turn by turn; without `confidence` each is held for
        certain."""
        segments, first = [], 1
        for stage, group in groupby(stages):
            last = first + sum(1 for _ in group) - 1
            segments.append(Segment(stage=stage, first_turn=first, last_turn=last))
            first = last + 1
        sure = (1.0,) * len(stages) if confidence is None else tuple(confidence)
        return cls(
            turn_stages=tuple(stages), segments=tuple(segments), confidence=sure, signals=signals
        )

    def turns_of(self, *stages: Stage) -> tuple[int, ...]:
        """1-based turns of these stages, in order."""
        return tuple(i for i, stage in enumerate(self.turn_stages, 1) if stage in stages)
