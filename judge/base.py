"""What a judge is: a function from a run's stage and its criteria to criterion verdicts, whatever stands behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from ..rubrics.model import Criterion, Rubric
from ..trajectories.models import Run, Segmentation, Stage
from .scorecard import CriterionResult, FiredCode

JUDGED: tuple[Stage, ...] = ("S1", "S2", "S3")
"""The stages that a judge scores; S4 and S5 are checked."""


@dataclass(frozen=True)
class StageRequest:
    """Judge these criteria of one stage of one run.

    `criteria` are the ones that need a verdict: credited, inapplicable and already known ones are left out before.
    """

    run: Run
    segmentation: Segmentation
    rubric: Rubric
    stage: Stage
    criteria: tuple[Criterion, ...]
    sample: int = 0


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
class StageReply:
    """One result for each requested criterion, in their order; failures are results with status `unscored`."""

    results: tuple[CriterionResult, ...]
    usage: Usage = Usage()
    codes: tuple[FiredCode, ...] = ()
    warnings: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    """The model's replies as received, in the order of the calls; the store keeps each once, compressed."""
    transient: frozenset[str] = frozenset()
    """Ids of unscored criteria that another attempt may well mend (a reply cut short, say), beyond those whose reason
    says so by itself (judge_error, budget). They are kept as attempts and asked again; all others are verdicts."""


@dataclass(frozen=True)
class Estimate:
    """What a request would use, before it is made: at the least, and at the very most (the longest allowed reply, every
    retry spent). None inside where a price or a token count is unknown."""

    low: Usage = Usage()
    high: Usage = Usage()


class Judge(Protocol):
    """A judge never raises for one failed reply: that is an `unscored` verdict. JudgeError means it cannot work at all."""

    @property
    def name(self) -> str:
        """`heuristic`, a model name, `local:<name>` or `panel`."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of a panel's members; empty for a single judge."""

    @property
    def prompt_sha256(self) -> str | None:
        """Of the prompt files; None for a judge without prompts."""

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything else that decides a verdict: temperature, seed, API base, evidence budget, algorithm version."""

    def evidence_sha256(self, request: StageRequest) -> str:
        """Of the exact evidence bytes that a verdict on this stage would rest on; independent of the criteria's text."""

    async def judge(self, request: StageRequest) -> StageReply:
        """Verdicts for `request.criteria`."""


@runtime_checkable
class EstimatingJudge(Protocol):
    """A judge that can say beforehand what a request would use: needed for `--max-cost`, used by dry runs.

    A judge without it is taken as free: every judge that calls what costs money has it.
    """

    def estimate(self, request: StageRequest) -> Estimate:
        """Without calling anything."""


class Around:
    """Something around a judge, a memory or a limit: verdicts are still the inner judge's, so it goes by its name,
    prompts and parameters."""

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
