"""Limits that any judge can be put under: how many calls at once, how many a minute, for how much.

`Pacer` adapts concurrency: it starts at what the user allows, shrinks when a provider reports a
rate limit, and grows back slowly. `Budget` is a hard cap in USD: the worst case of a call is
reserved before it starts, so that no number of simultaneous calls can exceed the cap; it also
limits calls and tokens a minute. `GuardedJudge` puts a judge under both. A judge that knows what
each of its calls may cost reserves them one by one (`current_allowance`); for any other the guard
reserves what the whole request may cost.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from ...errors import ConfigError
from ..base import Estimate, EstimatingJudge, Judge, JudgeWrapper, Reply, Request, Usage
from ..card.stage_results import unscored

_GROWTH = 20
"""A round without a rate limit adds 1/20 of the cap (at least 1 call): back from half of it within
ten rounds."""
_GROWTH_WHEN_LIMITED = 50
"""A round with one still adds 1/50, so that rare rate limits do not wear the batch down to single
calls."""

_CURRENT: ContextVar[Pacer | None] = ContextVar("ambjudge_pacer", default=None)
_ALLOWANCE: ContextVar[Allowance | None] = ContextVar("ambjudge_allowance", default=None)


def throttled(wait_s: float | None = None) -> None:
    """Report a rate limit (HTTP 429, 529): the batch around this call, if any, slows down.

    `wait_s` is the wait that the provider asks for; no new call starts before.
    """
    pacer = _CURRENT.get()
    if pacer is not None:
        pacer.throttled(wait_s)


def current_allowance() -> Allowance | None:
    """What must be asked for leave before each call of the present request; None: nothing."""
    return _ALLOWANCE.get()


class Pacer:
    """At most `limit` calls at once, never more than `cap`.

    The limit grows by addition and shrinks by multiplication. After each round (as many calls as
    were allowed at once) it falls by half the share of calls that met a rate limit, as in DCTCP
    (Alizadeh et al. 2010): an overload, which every call in progress meets, halves it; a stray 429
    costs little.
    """

    def __init__(self, cap: int, clock: Callable[[], float] = time.monotonic) -> None:
        if cap < 1:
            raise ConfigError(f"concurrency {cap} is below 1", "give a number of at least 1")
        self.cap, self.peak, self.running, self.throttles = cap, 0, 0, 0
        self._limit = float(cap)
        self._round_size = self._calls_left_in_round = cap
        self._throttles_in_round = 0
        self._no_call_before = 0.0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Calls allowed at once now, 1..cap."""
        return max(1, int(self._limit))

    def throttled(self, wait_s: float | None = None) -> None:
        """Note a rate limit."""
        self.throttles += 1
        self._throttles_in_round += 1
        if wait_s is not None and math.isfinite(wait_s) and wait_s > 0:
            self._no_call_before = max(self._no_call_before, self._clock() + wait_s)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Room for one call, granted in the order of requests."""
        if self._waiting or self.running >= self.limit:
            await self._wait_for_room()
        else:
            self._enter()
        token = _CURRENT.set(self)
        try:
            while (wait := self._no_call_before - self._clock()) > 0:
                await asyncio.sleep(wait)
            yield
        finally:
            _CURRENT.reset(token)
            self._count_call()
            self._leave()

    async def _wait_for_room(self) -> None:
        admission: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(admission)
        try:
            await admission
        except BaseException:
            if admission.done() and not admission.cancelled():
                self._leave()  # It was admitted in the moment in which it was cancelled.
            else:
                self._waiting.remove(admission)
            raise

    def _enter(self) -> None:
        self.running += 1
        self.peak = max(self.peak, self.running)

    def _leave(self) -> None:
        self.running -= 1
        while self._waiting and self.running < self.limit:
            admission = self._waiting.popleft()
            if not admission.done():
                self._enter()
                admission.set_result(None)

    def _count_call(self) -> None:
        self._calls_left_in_round -= 1
        if self._calls_left_in_round > 0:
            return
        if self._throttles_in_round:
            share = min(1.0, self._throttles_in_round / self._round_size)
            reduced = max(1.0, self._limit * (1 - share / 2))
            self._limit = reduced + self.cap / _GROWTH_WHEN_LIMITED * (1 - share)
        else:
            self._limit += max(1.0, self.cap / _GROWTH)
        self._limit = min(float(self.cap), self._limit)
        self._round_size = self._calls_left_in_round = max(self.running - 1, self.limit)
        self._throttles_in_round = 0


class MinuteLimit:
    """At most `maximum` of something within any minute, granted in the order of requests.

    An amount above the maximum is granted alone, once nothing else was used in the last minute.
    """

    def __init__(
        self,
        maximum: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not (math.isfinite(maximum) and maximum > 0):
            raise ConfigError(
                f"a limit of {maximum} a minute is not possible", "give a number above 0"
            )
        self._maximum, self._clock, self._sleep = maximum, clock, sleep
        self._uses: deque[tuple[float, float]] = deque()
        """(time, amount) of the last minute, oldest first."""
        self._sum = 0.0
        self._queue = asyncio.Lock()

    async def take(self, amount: float) -> None:
        """Wait until this much fits, and count it as used."""
        # Whoever waits keeps the lock, so that a small amount cannot overtake a large one for ever.
        async with self._queue:
            self._drop_old_uses()
            while self._uses and self._sum + amount > self._maximum:
                oldest_time = self._uses[0][0]
                await self._sleep(max(0.001, oldest_time + 60.0 - self._clock()))
                self._drop_old_uses()
            self.add(amount)

    def add(self, amount: float) -> None:
        """Count what turned out to be used beyond what was taken."""
        if amount > 0:
            self._uses.append((self._clock(), amount))
            self._sum += amount

    def _drop_old_uses(self) -> None:
        while self._uses and self._uses[0][0] + 60.0 <= self._clock():
            self._sum -= self._uses.popleft()[1]


@dataclass(frozen=True)
class PlannedCall:
    """What a call may use: USD at the most (None: unknown), tokens at the least."""

    max_cost_usd: float | None = 0.0
    min_tokens: int = 0
    enough_usd: float | None = None
    """The least for which the call is worth making, with a shorter reply; None: the most."""


@dataclass(frozen=True)
class Leave:
    """The answer to a planned call."""

    call: PlannedCall | None
    """The call as it may be made, for at most its `max_cost_usd`; None: it may not."""
    refusal: str = ""
    """Why it may not be made, for people."""


class CostLimitReached(Exception):
    """A call that was not made, as it could exceed the cost limit; the message says by what."""


class Allowance(Protocol):
    """What is asked for leave before a call, and told its usage after it."""

    @property
    def cap(self) -> float | None:
        """In USD; None: no cap."""

    async def reserve(self, call: PlannedCall) -> Leave:
        """Whether the call may be made."""

    async def settle(self, call: PlannedCall, usage: Usage | None) -> None:
        """Replace a reservation by what the call used; None: it is not known."""


class Budget:
    """A cap in USD, and limits on calls and tokens a minute; None: no limit.

    `spent` is settled, `reserved` the worst case of calls in progress; their sum never exceeds the
    cap.
    """

    def __init__(
        self,
        cap: float | None = None,
        calls_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        if cap is not None and not (math.isfinite(cap) and cap >= 0):
            raise ConfigError(
                f"a cost limit of {cap} USD is not possible", "give --max-cost in USD, at least 0"
            )
        self.cap, self.spent, self.reserved = cap, 0.0, 0.0
        self._calls = None if calls_per_minute is None else MinuteLimit(calls_per_minute)
        self._tokens = None if tokens_per_minute is None else MinuteLimit(tokens_per_minute)
        self._calls_in_progress = 0
        self._settled = asyncio.Condition()

    async def reserve(self, call: PlannedCall) -> Leave:
        """Reserve a call's worst case and wait until the minute's limits admit it.

        Waits while calls in progress may still turn out cheaper than reserved. If the worst case
        does not fit then, but what is enough does, the call may cost what is left. Refused if that
        cannot fit either.
        """
        cost = call.max_cost_usd or 0.0
        enough = cost if call.enough_usd is None else min(cost, call.enough_usd)
        async with self._settled:
            while not self._fits(self.spent + self.reserved + cost):
                if not self._fits(self.spent + enough):
                    return Leave(None, self._refusal(call))
                if not self._calls_in_progress:
                    cost = (self.cap or 0.0) - self.spent
                    break
                await self._settled.wait()
            call = replace(call, max_cost_usd=None if call.max_cost_usd is None else cost)
            self.reserved += cost
            self._calls_in_progress += 1
        try:
            if self._calls is not None:
                await self._calls.take(1)
            if self._tokens is not None:
                await self._tokens.take(call.min_tokens)
        except BaseException:
            await asyncio.shield(self.settle(call, Usage()))
            raise
        return Leave(call)

    def _refusal(self, call: PlannedCall) -> str:
        rest = max(0.0, (self.cap or 0.0) - self.spent)
        return (
            f"not asked: a single call may cost up to {_dollars(call.max_cost_usd or 0.0)};"
            f" {_dollars(rest)} of {_dollars(self.cap or 0.0)} is unspent (--max-cost)"
        )

    def _fits(self, total: float) -> bool:
        return self.cap is None or total <= self.cap + 1e-12

    async def settle(self, call: PlannedCall, usage: Usage | None) -> None:
        """Replace a reservation by what the call used.

        An unknown cost counts as the call's worst case, and so does a call without usage.
        """
        cost = call.max_cost_usd or 0.0
        if usage is not None and usage.cost_usd is not None:
            cost = usage.cost_usd
        if usage is not None and self._calls is not None:
            self._calls.add(usage.calls - 1)
        if usage is not None and self._tokens is not None:
            tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
            self._tokens.add(tokens - call.min_tokens)
        async with self._settled:
            self._calls_in_progress -= 1
            self.reserved = max(0.0, self.reserved - (call.max_cost_usd or 0.0))
            if not self._calls_in_progress:
                self.reserved = 0.0  # whatever the rounding of sums left over
            self.spent += cost
            self._settled.notify_all()


def _dollars(amount: float) -> str:
    """An amount with at least two digits that count: $1.50, $0.05, $0.0031."""
    digits = 2 if amount >= 1 or amount == 0 else 1 - math.floor(math.log10(amount))
    whole, _, fraction = f"{amount:.{max(2, min(digits, 6))}f}".partition(".")
    return f"${whole}.{fraction.rstrip('0'):0<2}"


class SharedBudget:
    """One budget for several workers, who ask by name.

    What a worker that died had in progress counts as its worst case.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._in_progress: dict[str, list[PlannedCall]] = {}

    async def reserve(self, worker: str, call: PlannedCall) -> Leave:
        """Like `Budget.reserve`, for this worker."""
        leave = await self.budget.reserve(call)
        if leave.call is not None:
            self._in_progress.setdefault(worker, []).append(leave.call)
        return leave

    async def settle(self, worker: str, call: PlannedCall, usage: Usage | None) -> None:
        """Like `Budget.settle`; without effect if the call was forfeited."""
        calls = self._in_progress.get(worker, [])
        if call in calls:
            calls.remove(call)
            await self.budget.settle(call, usage)

    async def forfeit(self, worker: str) -> None:
        """Settle everything that a dead worker had in progress at its worst case."""
        for call in self._in_progress.pop(worker, []):
            await self.budget.settle(call, None)


class GuardedJudge(JudgeWrapper):
    """A judge under a pacer and, if given, a budget.

    Put a `StoredJudge` around it, not inside, so that stored verdicts need neither.
    """

    def __init__(self, judge: Judge, pacer: Pacer, budget: Allowance | None = None) -> None:
        super().__init__(judge)
        self.pacer, self.budget = pacer, budget

    async def judge(self, request: Request) -> Reply:
        """The inner judge's reply; `unscored: budget` where the cost does not fit.

        Raises ConfigError if the budget has a cap and the judge's price is unknown: such a cap
        could not be kept.
        """
        if self.budget is None:
            async with self.pacer.slot():
                return await self.inner.judge(request)
        async with self.pacer.slot():
            token = _ALLOWANCE.set(self.budget)
            try:
                return await judge_within_allowance(self.inner, request)
            finally:
                _ALLOWANCE.reset(token)


async def judge_within_allowance(judge: Judge, request: Request) -> Reply:
    """A judge's reply; `unscored: budget`, without a call, if the allowance has no room for it.

    What the judge does not reserve itself (`Estimate.reserved`) is reserved here. Raises
    ConfigError for an unknown price under a cap.
    """
    allowance = current_allowance()
    if allowance is None:
        return await judge.judge(request)
    estimate = judge.estimate(request) if isinstance(judge, EstimatingJudge) else Estimate()
    if estimate.high.cost_usd is None and allowance.cap is not None:
        raise ConfigError(
            f"the price of {judge.name} is unknown, so a cost limit cannot be kept",
            "leave out --max-cost, or give the price with --price IN,OUT",
        )
    if estimate.reserved is not None and not estimate.reserved.calls:
        return await judge.judge(request)
    most = estimate.high if estimate.reserved is None else estimate.reserved
    min_tokens = (estimate.low.input_tokens or 0) + (estimate.low.output_tokens or 0)
    leave = await allowance.reserve(PlannedCall(most.cost_usd, min_tokens))
    if leave.call is None:
        return Reply(unscored(request.criteria, "budget", leave.refusal))
    usage: Usage | None = None
    try:
        reply = await judge.judge(request)
        usage = reply.usage
        return reply
    finally:
        # A call that was cut off may have been billed: without usage, its worst case counts.
        await asyncio.shield(allowance.settle(leave.call, usage))
