"""What planned calls would use: what is expected, at the least and at the most.

A call is its prompt (the record, which all questions about a run share, and the question's text),
the part of it that the provider reads from its cache, and the reply. Their sizes are known before
the call by our own estimate, and the store remembers that of every record, so a plan has the same
figures whether or not its runs were read. Earlier calls show what the provider counts:

- tokens of a prompt beside our estimate: of this very run, else of all runs of this judge, else of
  all judges; repairs and second tries are in it;
- the cached share of a prompt, for the first question of a command about a run and for later ones;
- tokens of a reply by question and number of items.

Without earlier calls, figures of recorded replies stand for them. Prices are those in force now.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import fsum
from statistics import fmean, quantiles

from ...rubrics.model import Criterion
from ..base import Estimate, QuestionName, SizingJudge, Usage
from ..questions.forms import form_of
from ..questions.items import PLAN_ITEM
from ..store import Store
from ..store.verdicts import PastCall

_TRUSTED = 20
"""Earlier calls from which their spread bounds the next ones."""
_CACHE_LIFE = timedelta(minutes=10)
"""Between two calls on one run that a provider's cache may outlive."""
_CACHED_SHARE = 0.95
"""Of the shared beginning of later questions, without earlier calls."""
_MIN_CACHED_TOKENS = 1_024
"""Of a beginning that providers cache."""
_REPLY_TOKENS = 100.0
"""Of a reply, an item; recorded replies took 90 more for the whole (`tests/data/readings`)."""
_WHOLE_REPLY_ITEMS = 0.9
"""What a reply takes beyond its items, in items."""
_PLAN_ITEMS = 2.5
"""What the commitments of a plan take, in items."""
_STAGE_ITEMS_A_TURN = 0.2
_THOUGHT_TOKENS = 1_500
"""Beyond the reply, of a model that reasons."""
_PROMPT_BOUNDS = 0.7, 1.5
"""Tokens of a prompt beside our estimate, without earlier calls."""
_SAME_RUN_BOUNDS = 0.9, 1.1
_REPLY_BOUND = 0.25
"""Of the expected reply, without earlier calls; the most is what a question has room for."""
_REPAIRED_SHARE = 0.1
"""Of the calls, at the most: those that are made twice, which no earlier call shows."""


@dataclass(frozen=True)
class CallSize:
    """What is known of a planned call without making it."""

    content_sha256: str
    """Of its run."""
    turns: int
    """Of its run."""
    question: QuestionName
    items: tuple[Criterion, ...]
    shared_tokens: int
    """Of what all questions about the run begin with (`SizingJudge.shared_tokens`)."""
    is_first: bool
    """Whether no other call of the plan on this run comes before it."""


@dataclass(frozen=True)
class _Range:
    """A quantity of a call: what is expected, and its bounds."""

    low: float
    expected: float
    high: float


class Forecaster:
    """Forecasts calls by the earlier calls of a store; it reads each judge's once."""

    def __init__(self, store: Store, *, batch: bool = False) -> None:
        """`batch`: whether the calls are sent through the provider's batches."""
        self._store, self._batch = store, batch
        self._histories: dict[str, _History] = {}

    @cached_property
    def _commands(self) -> list[str]:
        """The times at which commands began to ask."""
        return [time for time, _, _ in self._store.events("batch_started")]

    def _history(self, judge: str) -> _History:
        if judge not in self._histories:
            own = self._store.past_calls(judge)
            others = [] if own else self._store.past_calls()
            self._histories[judge] = _History(own, others, self._commands)
        return self._histories[judge]

    def estimate(self, judge: SizingJudge, name: str, call: CallSize) -> Estimate:
        """What a call by the judge of this name would use."""
        history = self._history(name)
        question_tokens = judge.question_tokens(call.question, call.items, call.turns)
        estimated = call.shared_tokens + question_tokens
        prompt = _scaled(history.prompt_ratio(call.content_sha256), estimated)
        shared = call.shared_tokens / estimated
        reply = _reply(history, call, judge.thinks)
        cached = 0.0
        if judge.price is not None and judge.price.cached is not None and not self._batch:
            cached = history.cached_share(call, shared)
        can_cache = call.shared_tokens >= _MIN_CACHED_TOKENS
        low = self._usage(judge, prompt.low, reply.low, shared if can_cache else 0.0)
        expected = self._usage(
            judge, prompt.expected, reply.expected, cached, written=shared if not cached else 0.0
        )
        # Answers of batches have neither repairs nor second tries.
        repaired = 1.0 if self._batch else 1 + _REPAIRED_SHARE
        high = self._usage(judge, prompt.high * repaired, reply.high * repaired, 0.0, written=1.0)
        return Estimate(low, high, expected)

    def _usage(
        self, judge: SizingJudge, prompt: float, reply: float, cached: float, written: float = 0.0
    ) -> Usage:
        """One call; `cached` and `written` are shares of the prompt."""
        input_tokens, output_tokens = round(prompt), round(reply)
        cached_tokens = round(prompt * cached)
        written_tokens = round(prompt * written) if judge.caches_by_mark else 0
        cost = None
        if judge.price is not None:
            price = judge.price.in_batches() if self._batch else judge.price
            cost = price.cost(input_tokens, output_tokens, cached_tokens, written_tokens)
        return Usage(1, input_tokens, output_tokens, cost, cached_tokens, written_tokens)


class ForecastSum:
    """The sum of forecasts, the same in whatever order they come."""

    def __init__(self) -> None:
        self._sum = Estimate(expected=Usage())
        self._lows: list[float | None] = []
        self.costs: list[float | None] = []
        """The expected cost of each call."""
        self._highs: list[float | None] = []

    def add(self, estimate: Estimate) -> None:
        self._sum += estimate
        self._lows.append(estimate.low.cost_usd)
        self.costs.append(estimate.point.cost_usd)
        self._highs.append(estimate.high.cost_usd)

    @property
    def total(self) -> Estimate:
        """The sum; sums of floats in another order would differ in their last digits."""
        return Estimate(
            low=replace(self._sum.low, cost_usd=_exact_sum(self._lows)),
            high=replace(self._sum.high, cost_usd=_exact_sum(self._highs)),
            expected=replace(self._sum.point, cost_usd=_exact_sum(self.costs)),
        )


def _exact_sum(costs: Sequence[float | None]) -> float | None:
    """The sum; None if one is unknown."""
    priced = [cost for cost in costs if cost is not None]
    return fsum(priced) if len(priced) == len(costs) else None


class _History:
    """What earlier calls of one judge show; `others` are those of other judges, if it has none."""

    def __init__(
        self, own: Sequence[PastCall], others: Sequence[PastCall], commands: Sequence[str]
    ) -> None:
        self._own, self._any = own, own or others
        self._commands = commands
        self._ratios = [
            call.input_tokens / call.prompt_tokens for call in self._any if call.prompt_tokens
        ]
        self._prompt_spread = _spread(self._ratios)
        self._ratio_of_run = _ratios_of_runs(own)
        self._rates: dict[str, list[float]] = {}
        for call in self._any:
            self._rates.setdefault(_kind(call.question), []).append(_reply_rate(call))
        self._rate_spreads = {kind: _spread(rates) for kind, rates in self._rates.items()}
        self._asked_runs = {call.content_sha256 for call in own}

    def prompt_ratio(self, content_sha256: str) -> _Range:
        """Tokens of a run's prompts beside our estimate."""
        of_run = self._ratio_of_run.get(content_sha256)
        if of_run is not None:
            low, high = _SAME_RUN_BOUNDS
            return _Range(of_run * low, of_run, of_run * high)
        expected = fmean(self._ratios) if self._ratios else 1.0
        low, high = self._prompt_spread or _PROMPT_BOUNDS
        return _Range(min(low, expected), expected, max(high, expected))

    def reply_rate(self, question: QuestionName) -> _Range | None:
        """Tokens of a reply to a question, an item; None without enough earlier calls."""
        rates = self._rates.get(_kind(question))
        if not rates:
            return None
        expected = fmean(rates)
        spread = self._rate_spreads[_kind(question)]
        low, high = spread or (expected * _REPLY_BOUND, expected / _REPLY_BOUND)
        return _Range(min(low, expected), expected, max(high, expected))

    def cached_share(self, call: CallSize, shared: float) -> float:
        """The expected share of a prompt that is read from the provider's cache.

        `shared`: the share of it that all questions about the run begin with.
        """
        if not call.is_first:
            share = self._cached_later.get(call.question)
            if share is None:
                share = self._cached_later.get("")
            if share is None:
                can_cache = call.shared_tokens >= _MIN_CACHED_TOKENS
                share = _CACHED_SHARE * shared if can_cache else 0.0
        elif call.content_sha256 in self._asked_runs:
            share = self._cached_again
        else:
            share = 0.0
        return min(share, shared)

    @cached_property
    def _cached_later(self) -> Mapping[QuestionName, float]:
        """By question, the cached share of prompts of which an earlier question went before; under
        "" that of all questions."""
        calls = [call for call, position in self._positions if position == "later"]
        by_question: dict[str, list[PastCall]] = {"": calls} if calls else {}
        for call in calls:
            by_question.setdefault(call.question, []).append(call)
        return {question: _cached(of_question) for question, of_question in by_question.items()}

    @cached_property
    def _cached_again(self) -> float:
        """The cached share of a command's first prompt about a run that was asked about before."""
        return _cached([call for call, position in self._positions if position == "again"])

    @cached_property
    def _positions(self) -> list[tuple[PastCall, str]]:
        """The judge's calls whose cached tokens are known, each with its position on its run.

        first: of all; again: of a later command; later: in the course of a command.
        """
        positions = []
        asked: set[tuple[str, int]] = set()
        previous: PastCall | None = None
        for call in self._own:
            position = "later"
            if previous is None or previous.content_sha256 != call.content_sha256:
                position, asked = "first", set()
            elif (call.question, call.sample) in asked or self._is_apart(previous, call):
                position, asked = "again", set()
            asked.add((call.question, call.sample))
            previous = call
            if call.cached_tokens is not None:
                positions.append((call, position))
        return positions

    def _is_apart(self, earlier: PastCall, later: PastCall) -> bool:
        """Whether two calls on one run are of different commands, or far apart in time."""
        before = bisect_right(self._commands, earlier.created_at)
        if before != bisect_right(self._commands, later.created_at):
            return True
        times = [datetime.fromisoformat(call.created_at) for call in (earlier, later)]
        return times[1] - times[0] > _CACHE_LIFE


def _reply(history: _History, call: CallSize, thinks: bool) -> _Range:
    """The tokens of a reply."""
    items = _reply_items(call.question, [item.id for item in call.items], call.turns)
    rate = history.reply_rate(call.question)
    if rate is not None:
        return _scaled(rate, items)
    expected = items * _REPLY_TOKENS + (_THOUGHT_TOKENS if thinks else 0)
    form = form_of(call.question)
    room = 100 + sum(form.reply_tokens(item, call.turns) for item in call.items)
    return _Range(expected * _REPLY_BOUND, expected, max(room, 2 * expected))


def _reply_items(question: QuestionName, ids: Sequence[str], turns: int) -> float:
    """The length of a reply, in items of usual length."""
    if question == "stages":
        return _WHOLE_REPLY_ITEMS + _STAGE_ITEMS_A_TURN * turns
    plan = _PLAN_ITEMS - 1 if PLAN_ITEM in ids else 0.0
    return _WHOLE_REPLY_ITEMS + len(ids) + plan


def _reply_rate(call: PastCall) -> float:
    items = _reply_items(call.question, json.loads(call.items), call.turns)
    return call.output_tokens / items


def _kind(question: QuestionName) -> str:
    """Questions whose replies are of one form."""
    return form_of(question).prompt


def _ratios_of_runs(calls: Sequence[PastCall]) -> dict[str, float]:
    """By run, the tokens of its prompts beside our estimate."""
    counted: dict[str, int] = {}
    estimated: dict[str, int] = {}
    for call in calls:
        if call.prompt_tokens:
            run = call.content_sha256
            counted[run] = counted.get(run, 0) + call.input_tokens
            estimated[run] = estimated.get(run, 0) + call.prompt_tokens
    return {run: counted[run] / estimated[run] for run in counted}


def _cached(calls: Sequence[PastCall]) -> float:
    """The cached share of these prompts; 0 without any."""
    sent = sum(call.input_tokens for call in calls)
    return sum(call.cached_tokens or 0 for call in calls) / sent if sent else 0.0


def _spread(values: Sequence[float]) -> tuple[float, float] | None:
    """The range of all but the lowest and the highest 2 %; None of too few values."""
    if len(values) < _TRUSTED:
        return None
    cuts = quantiles(values, n=50, method="inclusive")
    return cuts[0], cuts[-1]


def _scaled(quantity: _Range, by: float) -> _Range:
    return _Range(quantity.low * by, quantity.expected * by, quantity.high * by)
