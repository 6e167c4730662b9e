"""What a judge is: a function from a question about a run to verdicts on the question's items.

Rules, an API model, a local model, a panel and everything that is wrapped around a judge (memory,
budget, limits) have this one shape. Start with `Judge`, `Request` and `Reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ..rubrics.model import Criterion, Rubric
from ..trajectories.models import Run, Segmentation, Stage
from ..trajectories.record.facts import Fact
from .card.stage_results import CriterionResult, UnscoredReason

if TYPE_CHECKING:
    from .checks.check_outputs import OutputCheck
    from .judges.api.prices import Price

T = TypeVar("T")

JUDGED_STAGES: tuple[Stage, ...] = ("S1", "S2", "S3")
"""The benchmark's stages that a judge scores; S4 and S5 are checked."""

QuestionName = str
"""What a judge is asked about a run: the criteria of a stage, by the stage's name, or one of
EXTRA_QUESTIONS. Each question is a short text after the same record."""
EXTRA_QUESTIONS: frozenset[QuestionName] = frozenset({"diagnosis", "stages", "ask", "brief"})
"""The questions that are not about criteria of a rubric: which error codes apply, the stage of
every turn, an ad-hoc question, and what the task's brief demands."""
RETRIABLE: frozenset[UnscoredReason] = frozenset({"judge_error", "budget"})
"""Reasons that say nothing about the run, whoever gives them; another attempt may succeed."""


def is_criteria(question: QuestionName) -> bool:
    """Whether a question is about criteria of a rubric."""
    return question not in EXTRA_QUESTIONS


@dataclass(frozen=True)
class Request:
    """One question about one run: give a verdict on each of these items.

    `criteria` are the items that need a verdict; criteria that are credited, inapplicable or judged
    already are left out. Error codes, the stages of turns and ad-hoc questions are items of the
    same form.
    """

    run: Run
    segmentation: Segmentation
    """By rules, even if a judge labels the turns later: the record's hints come from it."""
    rubric: Rubric
    question: QuestionName
    criteria: tuple[Criterion, ...]
    sample: int = 0
    """Number of this answer among several to the same question, from 0."""
    facts: tuple[Fact, ...] = ()
    """What checks and detectors proved, numbered; part of the record."""
    public: Path | None = None
    """The public inputs that the facts were checked against."""
    check: OutputCheck | None = None
    """The check of the delivered files; if it is None, a judge that needs it runs it itself."""
    warm: bool = False
    """Whether another question about the same record is asked before this one, so that a provider's
    cache may have the record; only estimates need it."""

    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What judges computed about the run, shared by all questions about it (`memoised`)."""

    def memoised(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value in the memo, computed once; `key` holds all that the value depends on."""
        if key not in self.memo:
            self.memo[key] = compute()
        value: T = self.memo[key]
        return value

    @property
    def record_key(self) -> Hashable:
        """A key that is equal for all questions about the same record."""
        run = self.run
        return run.content_sha256, run.track, run.tier, self.segmentation.turn_stages, self.facts


@dataclass(frozen=True)
class Usage:
    """What judging cost. Tokens and dollars are None if unknown; estimates are counted as such."""

    calls: int = 0
    input_tokens: int | None = 0
    """All input, cached or not."""
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0
    cached_tokens: int | None = 0
    """Input tokens that a provider read from its cache."""
    cache_write_tokens: int | None = 0
    """Input tokens that a provider wrote into its cache."""
    estimated_calls: int = 0
    """Calls whose tokens are estimated, as the provider did not count them: an answer without
    usage, or a call that was cut off and may be billed. The estimate is of the most."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            cost_usd=_sum(self.cost_usd, other.cost_usd),
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
            cache_write_tokens=_sum(self.cache_write_tokens, other.cache_write_tokens),
            estimated_calls=self.estimated_calls + other.estimated_calls,
        )


_Number = TypeVar("_Number", int, float)


def _sum(a: _Number | None, b: _Number | None) -> _Number | None:
    """The sum; None if either is unknown."""
    return None if a is None or b is None else a + b


@dataclass(frozen=True)
class Reply:
    """A judge's reply to one request."""

    results: tuple[CriterionResult, ...]
    """One for each of the request's items, in their order; failures are `unscored`."""
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    """The model's replies as received, in the order of the calls; the store keeps each one once,
    compressed."""
    transient: frozenset[str] = frozenset()
    """Ids of unscored criteria that another attempt may score (a reply was cut short, say), beyond
    those whose reason is RETRIABLE. They are stored as attempts and asked again; all other results
    are verdicts."""
    served_models: tuple[str, ...] = ()
    """The models that answered, as the provider names them, each once; a provider may answer with
    another model than the one that was asked."""
    system_fingerprints: tuple[str, ...] = ()
    """The provider's marks of the configurations that answered, each once."""
    verdict_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By item, the keys under which a store keeps its verdict, or the votes behind it."""
    prompt_tokens: int | None = None
    """The tokens of the prompt by our own estimate (`SizingJudge`); None if there is none."""
    stored_days: frozenset[date] | None = None
    """The days (UTC) of the verdicts, if a store says them; otherwise they are of today."""

    @property
    def days(self) -> frozenset[date]:
        """The days (UTC) of the verdicts; none if nothing was judged."""
        if self.stored_days is not None:
            return self.stored_days
        has_verdict = any(result.status != "unscored" for result in self.results)
        return frozenset({datetime.now(UTC).date()}) if has_verdict else frozenset()


@dataclass(frozen=True)
class Estimate:
    """The least and the most that a request would use, before it is made.

    A number is None if a price or a token count is unknown.
    """

    low: Usage = Usage()
    high: Usage = Usage()
    expected: Usage | None = None
    """What it would probably use; None for a judge that knows only the least and the most."""
    reserved: Usage | None = None
    """What a cost limit must have room for before the request is made; None: `high`. Nothing for a
    judge that reserves each of its calls itself (`judges.limits.current_allowance`)."""

    @property
    def point(self) -> Usage:
        """`expected`, else halfway between the least and the most."""
        return self.expected or _halfway(self.low, self.high)

    @property
    def cost_text(self) -> str:
        """The cost with its bounds: `$1.50 ($1.02 to $3.10)`."""
        high = self.high.cost_usd
        return self._text("cost_usd", "${:.4f}" if high is not None and high < 1 else "${:,.2f}")

    @property
    def tokens_text(self) -> str:
        """The tokens with their bounds."""
        sent, received = self._text("input_tokens", "{:,}"), self._text("output_tokens", "{:,}")
        cached = self.point.cached_tokens
        from_cache = f", {cached:,} of them from the provider's cache" if cached else ""
        return f"input tokens {sent}{from_cache}; output tokens {received}"

    def _text(self, quantity: str, form: str) -> str:
        values = [getattr(usage, quantity) for usage in (self.low, self.point, self.high)]
        if None in values:
            return "unknown"
        low, expected, high = (form.format(value) for value in values)
        return expected if low == high else f"{expected} ({low} to {high})"

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.low + other.low, self.high + other.high, self.point + other.point)


def _halfway(low: Usage, high: Usage) -> Usage:
    def middle(name: str) -> Any:
        ends = getattr(low, name), getattr(high, name)
        return None if None in ends else sum(ends) / 2

    middles = {field.name: middle(field.name) for field in fields(Usage)}
    tokens = {
        name: value if value is None or name == "cost_usd" else round(value)
        for name, value in middles.items()
    }
    return Usage(**tokens)


def total_usage(replies: Iterable[Reply]) -> Usage:
    """What these replies cost together."""
    return sum((reply.usage for reply in replies), Usage())


class Judge(Protocol):
    """A function from requests to replies, with the identity that verdict keys are made from.

    A judge never raises for one failed reply: its items are `unscored`. JudgeError means that the
    judge cannot work at all.
    """

    @property
    def name(self) -> str:
        """`rules`, a model name, `local:<name>` or `panel`."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of a panel's members; empty for a single judge."""

    @property
    def prompt_sha256(self) -> str | None:
        """Hash of the prompt files; None for a judge without prompts."""

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything else that decides a verdict.

        For example temperature, seed, API base, evidence budget, version of the algorithm.
        """

    def evidence_sha256(self, request: Request) -> str:
        """Hash of the exact evidence bytes that a verdict would rest on.

        Independent of the text of the criteria.
        """

    async def judge(self, request: Request) -> Reply:
        """Verdicts on `request.criteria`."""


@runtime_checkable
class ExtraQuestionsJudge(Protocol):
    """A judge that also answers some of EXTRA_QUESTIONS; no other judge is asked them."""

    @property
    def questions(self) -> frozenset[QuestionName]:
        """The EXTRA_QUESTIONS that it answers."""


def extra_questions(judge: Judge) -> frozenset[QuestionName]:
    """The questions that a judge answers beside criteria, which every judge answers."""
    if not isinstance(judge, ExtraQuestionsJudge):
        return frozenset()
    return EXTRA_QUESTIONS & judge.questions


@runtime_checkable
class EstimatingJudge(Protocol):
    """A judge that can estimate beforehand what a request would use.

    Dry runs show the estimate and `--max-cost` needs it. A judge without `estimate` counts as free,
    so every judge whose calls cost money must have it.
    """

    def estimate(self, request: Request) -> Estimate:
        """What the request would use; no call is made."""


@runtime_checkable
class SizingJudge(Protocol):
    """A judge that knows how long its prompts are, by an estimate of its own.

    With it, calls on runs that are not read can be forecast: the store remembers the tokens of each
    run's record.
    """

    @property
    def price(self) -> Price | None:
        """What its calls cost; None if that is unknown."""

    @property
    def thinks(self) -> bool:
        """Whether its model reasons before it answers, as far as that is known."""

    @property
    def caches_by_mark(self) -> bool:
        """Whether its provider caches what it is told to, at a price."""

    def shared_tokens(self, request: Request) -> int:
        """Tokens of what all questions about the run begin with."""

    def question_tokens(
        self, question: QuestionName, items: Sequence[Criterion], turns: int
    ) -> int:
        """Tokens of a question's own text about a run of this many turns."""


class JudgeWrapper:
    """Base of what wraps a judge, such as a cache or a limit.

    Verdicts are still those of the inner judge, so the wrapper has its name, prompts and
    parameters.
    """

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
        return extra_questions(self.inner)

    def evidence_sha256(self, request: Request) -> str:
        return self.inner.evidence_sha256(request)

    def estimate(self, request: Request) -> Estimate:
        if isinstance(self.inner, EstimatingJudge):
            return self.inner.estimate(request)
        return Estimate()

    async def judge(self, request: Request) -> Reply:
        return await self.inner.judge(request)


def shared_tokens(judge: Judge, request: Request) -> int | None:
    """`SizingJudge.shared_tokens` of a judge, wrapped or not; None if it does not size prompts."""
    while isinstance(judge, JudgeWrapper):
        judge = judge.inner
    return judge.shared_tokens(request) if isinstance(judge, SizingJudge) else None
