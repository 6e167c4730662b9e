"""What a judge is: a function from a question about a run to verdicts on its items, whatever stands
behind it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ..rubrics.model import Criterion, Rubric
from ..trajectories.models import Run, Segmentation, Stage
from ..trajectories.record.facts import Fact
from .card.stage_results import CriterionResult, UnscoredReason

if TYPE_CHECKING:
    from .checks.check_outputs import OutputCheck

_Kept = TypeVar("_Kept")

JUDGED: tuple[Stage, ...] = ("S1", "S2", "S3")
"""The benchmark's stages that a judge scores; S4 and S5 are checked."""

QuestionName = str
"""What a judge can be asked about a run: the criteria of a stage, by its name, and of BESIDE which
error codes apply, the stage of every turn, or an ad-hoc question. Each is a short text after the
same record."""
BESIDE: frozenset[QuestionName] = frozenset({"diagnosis", "stages", "ask", "brief"})
"""The questions that are not about a rubric's criteria."""
RETRIABLE: frozenset[UnscoredReason] = frozenset({"judge_error", "budget"})
"""Reasons that say nothing about the run, whatever the judge: another attempt may succeed."""


def is_criteria(question: QuestionName) -> bool:
    """Whether a question puts criteria of a rubric."""
    return question not in BESIDE


@dataclass(frozen=True)
class Request:
    """One question about one run: give a verdict on each of these items.

    `criteria` are the items that need a verdict: credited, inapplicable and already known ones are
    left out before. Error codes, the stages of turns and ad-hoc questions are put as items of the
    same form.
    """

    run: Run
    segmentation: Segmentation
    """By rules: the record's hints come from it, whoever labels the turns in the end."""
    rubric: Rubric
    question: QuestionName
    criteria: tuple[Criterion, ...]
    sample: int = 0
    facts: tuple[Fact, ...] = ()
    """What checks and detectors know, numbered; part of the record."""
    public: Path | None = None
    """The public inputs that the facts were checked against."""
    check: OutputCheck | None = None
    """The delivered files as opened already; whoever needs them opens them where this is None."""
    warm: bool = False
    """For estimates: another question on the same record is asked before, so that a provider's
    cache may have it."""

    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What judges worked out about the run; one for all questions on it, so that it lasts as long
    as they do."""

    def kept(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        """What is in the memo under a key that says all that decides it; made when it is not there."""
        if key not in self.memo:
            self.memo[key] = make()
        found: _Kept = self.memo[key]
        return found

    @property
    def record_key(self) -> Hashable:
        """Equal for questions on the same record."""
        run = self.run
        return run.content_sha256, run.track, run.tier, self.segmentation.turn_stages, self.facts


@dataclass(frozen=True)
class Usage:
    """What judging cost. Tokens and dollars are None when unknown, never guessed."""

    calls: int = 0
    input_tokens: int | None = 0
    """All input, cached or not."""
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0
    cached_tokens: int | None = 0
    """Of the input, what a provider read from its cache."""
    cache_write_tokens: int | None = 0
    """Of the input, what it wrote into its cache."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=_plus(self.input_tokens, other.input_tokens),
            output_tokens=_plus(self.output_tokens, other.output_tokens),
            cost_usd=_plus(self.cost_usd, other.cost_usd),
            cached_tokens=_plus(self.cached_tokens, other.cached_tokens),
            cache_write_tokens=_plus(self.cache_write_tokens, other.cache_write_tokens),
        )


_Number = TypeVar("_Number", int, float)


def _plus(a: _Number | None, b: _Number | None) -> _Number | None:
    return None if a is None or b is None else a + b


@dataclass(frozen=True)
class Reply:
    """One result for each requested item, in their order; failures are results with status
    `unscored`."""

    results: tuple[CriterionResult, ...]
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    """The model's replies as received, in the order of the calls; the store keeps each once,
    compressed."""
    transient: frozenset[str] = frozenset()
    """Ids of unscored criteria that another attempt may well mend (a reply cut short, say), beyond
    those whose reason says so by itself (judge_error, budget). They are kept as attempts and asked
    again; all others are verdicts."""


@dataclass(frozen=True)
class Estimate:
    """What a request would use, before it is made: at the least, and at the very most (the longest
    allowed reply, every retry spent). None inside where a price or a token count is unknown."""

    low: Usage = Usage()
    high: Usage = Usage()

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.low + other.low, self.high + other.high)


def used(replies: Iterable[Reply]) -> Usage:
    """What these replies cost together."""
    return sum((reply.usage for reply in replies), Usage())


class Judge(Protocol):
    """A judge never raises for one failed reply: that is an `unscored` verdict. JudgeError means it
    cannot work at all."""

    @property
    def name(self) -> str:
        """`rules`, a model name, `local:<name>` or `panel`."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of a panel's members; empty for a single judge."""

    @property
    def prompt_sha256(self) -> str | None:
        """Of the prompt files; None for a judge without prompts."""

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything else that decides a verdict: temperature, seed, API base, evidence budget,
        algorithm version."""

    def evidence_sha256(self, request: Request) -> str:
        """Of the exact evidence bytes that a verdict on this stage would rest on; independent of
        the criteria's text."""

    async def judge(self, request: Request) -> Reply:
        """Verdicts for `request.criteria`."""


@runtime_checkable
class Reader(Protocol):
    """A judge that answers more than the criteria of rubrics. One without this is asked for nothing
    else."""

    @property
    def questions(self) -> frozenset[QuestionName]:
        """What it can be asked beside criteria, of BESIDE."""


def answers(judge: Judge) -> frozenset[QuestionName]:
    """What this judge can be asked beside criteria, which every judge answers."""
    return BESIDE & judge.questions if isinstance(judge, Reader) else frozenset()


@runtime_checkable
class EstimatingJudge(Protocol):
    """A judge that can say beforehand what a request would use: needed for `--max-cost`, used by
    dry runs.

    A judge without it is taken as free: every judge that calls what costs money has it.
    """

    def estimate(self, request: Request) -> Estimate:
        """Without calling anything."""


class Around:
    """Something around a judge, a memory or a limit: verdicts are still the inner judge's, so it
    goes by its name, prompts and parameters."""

    def __init__(self, inner: Judge) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def members(self) -> tuple[str, ...]:
        return self.inner.members

    @property
    def prompt_sha256(self) -> str | None:
        return self.inner.prompt_sha256

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return self.inner.parameters

    @property
    def questions(self) -> frozenset[QuestionName]:
        return answers(self.inner)

    def evidence_sha256(self, request: Request) -> str:
        return self.inner.evidence_sha256(request)

    def estimate(self, request: Request) -> Estimate:
        return (
            self.inner.estimate(request) if isinstance(self.inner, EstimatingJudge) else Estimate()
        )

    async def judge(self, request: Request) -> Reply:
        return await self.inner.judge(request)
