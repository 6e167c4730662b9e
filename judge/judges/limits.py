"""How many calls at once, and for how much money: limits that any judge can be put under.

`Pacer` adapts concurrency: it starts at what was asked for, shrinks when a provider says "too many
requests", and grows back slowly. `Budget` is a hard cap: the worst case of a call is reserved
before it starts, so that no number of simultaneous calls can exceed it; it also limits calls and
tokens a minute. `GuardedJudge` puts a judge under both.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from ...errors import ConfigError
from ..base import Around, Judge, Reply, Request, Usage
from ..card.stage_results import unscored

_GROWTH = 20
"""A round without a rate limit adds 1/20 of the cap (at least 1 call): back from half within ten
rounds."""
_GROWTH_WHEN_HIT = 50
"""A round with one still adds 1/50, so that a limit met now and then does not wear the batch down
to single calls."""

_CURRENT: ContextVar[Pacer | None] = ContextVar("ambjudge_pacer", default=None)


def throttled(wait_s: float | None = None) -> None:
    """To be called by whoever meets a rate limit (HTTP 429, 529): the batch around it, if any,
    slows down.

    `wait_s` is what the provider asks to wait; no new call starts before.
    """
    pacer = _CURRENT.get()
    if pacer is not None:
        pacer.throttled(wait_s)


class Pacer:
    """At most `limit` calls at once, at most `cap` ever: additive increase, multiplicative
    decrease.

    After each round (as many calls as were allowed at once) the limit falls by half the share of
    calls that met a rate limit, as in DCTCP (Alizadeh et al. 2010): an overload, which answers
    every call under way, halves it; a stray 429 costs little.
    """

    def __init__(self, cap: int, clock: Callable[[], float] = time.monotonic) -> None:
        if cap < 1:
            raise ConfigError(f"concurrency {cap} is below 1", "give a number of at least 1")
        self.cap, self.peak, self.running, self.throttles = cap, 0, 0, 0
        self._limit = float(cap)
        self._round = self._left_in_round = cap
        self._hits = 0
        self._quiet_until = 0.0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Calls allowed at once now, 1..cap."""
        return max(1, int(self._limit))

    def throttled(self, wait_s: float | None = None) -> None:
        """A rate limit was met."""
        self.throttles += 1
        self._hits += 1
        if wait_s is not None and math.isfinite(wait_s) and wait_s > 0:
            self._quiet_until = max(self._quiet_until, self._clock() + wait_s)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Room for one call, in the order of asking."""
        if self._waiting or self.running >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._leave()
                else:
                    self._waiting.remove(turn)
                raise
        else:
            self._enter()
        token = _CURRENT.set(self)
        try:
            while (wait := self._quiet_until - self._clock()) > 0:
                await asyncio.sleep(wait)
            yield
        finally:
            _CURRENT.reset(token)
            self._count()
            self._leave()

    def _enter(self) -> None:
        self.running += 1
        self.peak = max(self.peak, self.running)

    def _leave(self) -> None:
        self.running -= 1
        while self._waiting and self.running < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._enter()
                turn.set_result(None)

    def _count(self) -> None:
        self._left_in_round -= 1
        if self._left_in_round > 0:
            return
        if self._hits:
            share = min(1.0, self._hits / self._round)
            self._limit = max(1.0, self._limit * (1 - share / 2)) + self.cap / _GROWTH_WHEN_HIT * (
                1 - share
            )
        else:
            self._limit += max(1.0, self.cap / _GROWTH)
        self._limit = min(float(self.cap), self._limit)
        self._round = self._left_in_round = max(self.running - 1, self.limit)
        self._hits = 0


class Minute:
    """At most `most` of something within any minute, in the order of asking; more than that at
    once, alone."""

    def __init__(
        self,
        most: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not (math.isfinite(most) and most > 0):
            raise ConfigError(f"a limit of {most} a minute makes no sense", "give a number above 0")
        self._most, self._clock, self._sleep = most, clock, sleep
        self._taken: deque[tuple[float, float]] = deque()
        self._sum = 0.0
        self._turn = asyncio.Lock()

    async def take(self, amount: float) -> None:
        """Wait until this much fits."""
        async with self._turn:
            while self._forget() and self._sum + amount > self._most:
                await self._sleep(max(0.001, self._taken[0][0] + 60.0 - self._clock()))
            self.add(amount)

    def add(self, amount: float) -> None:
        """What turned out to be used beyond what was taken."""
        if amount > 0:
            self._taken.append((self._clock(), amount))
            self._sum += amount

    def _forget(self) -> bool:
        """Drop what is older than a minute; whether something is left."""
        while self._taken and self._taken[0][0] + 60.0 <= self._clock():
            self._sum -= self._taken.popleft()[1]
        return bool(self._taken)


@dataclass(frozen=True)
class Call:
    """What a call may use: dollars at the most (None: unknown), tokens at the least."""

    worst: float | None = 0.0
    tokens: int = 0


class Allowance(Protocol):
    """Who is asked before a call and told after it; `cap` in USD, None for none."""

    @property
    def cap(self) -> float | None: ...
    async def reserve(self, call: Call) -> bool: ...
    async def settle(self, call: Call, usage: Usage | None) -> None: ...


class Budget:
    """A cap in USD, and how many calls and tokens there may be in a minute; None: no limit.

    `spent` is settled, `reserved` the worst case of calls under way; their sum never exceeds the
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
                f"a cost limit of {cap} makes no sense", "give --max-cost in USD, at least 0"
            )
        self.cap, self.spent, self.reserved = cap, 0.0, 0.0
        self._calls = None if calls_per_minute is None else Minute(calls_per_minute)
        self._tokens = None if tokens_per_minute is None else Minute(tokens_per_minute)
        self._under_way = 0
        self._changed = asyncio.Condition()

    async def reserve(self, call: Call) -> bool:
        """Reserve the worst case of a call and wait for its turn; False when its cost cannot fit
        any more.

        Waits while calls under way may still turn out cheaper than reserved.
        """
        worst = call.worst or 0.0
        async with self._changed:
            while self.cap is not None and self.spent + self.reserved + worst > self.cap + 1e-12:
                if not self._under_way or self.spent + worst > self.cap + 1e-12:
                    return False
                await self._changed.wait()
            self.reserved += worst
            self._under_way += 1
        try:
            if self._calls is not None:
                await self._calls.take(1)
            if self._tokens is not None:
                await self._tokens.take(call.tokens)
        except BaseException:
            await asyncio.shield(self.settle(call, Usage()))
            raise
        return True

    async def settle(self, call: Call, usage: Usage | None) -> None:
        """Replace a reservation by what was used; an unknown cost counts as its worst case, as does
        a call without usage."""
        worst, cost = call.worst or 0.0, None if usage is None else usage.cost_usd
        if usage is not None and self._calls is not None:
            self._calls.add(usage.calls - 1)
        if usage is not None and self._tokens is not None:
            self._tokens.add((usage.input_tokens or 0) + (usage.output_tokens or 0) - call.tokens)
        async with self._changed:
            self._under_way -= 1
            self.reserved = max(0.0, self.reserved - worst) if self._under_way else 0.0
            self.spent += worst if cost is None else cost
            self._changed.notify_all()


class Accounts:
    """One budget for several who ask by name. What one that died had under way counts as its worst
    case."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._open: dict[str, list[Call]] = {}

    async def reserve(self, who: str, call: Call) -> bool:
        if not await self.budget.reserve(call):
            return False
        self._open.setdefault(who, []).append(call)
        return True

    async def settle(self, who: str, call: Call, usage: Usage | None) -> None:
        if call in (mine := self._open.get(who, [])):  # else it was forfeited already
            mine.remove(call)
            await self.budget.settle(call, usage)

    async def forfeit(self, who: str) -> None:
        """All that is open for one who is dead."""
        for call in self._open.pop(who, []):
            await self.budget.settle(call, None)


class GuardedJudge(Around):
    """A judge under a pacer and, if given, a budget. Put a `StoredJudge` around it, not inside, so
    that what is stored needs neither."""

    def __init__(self, judge: Judge, pacer: Pacer, budget: Allowance | None = None) -> None:
        super().__init__(judge)
        self.pacer, self.budget = pacer, budget

    async def judge(self, request: Request) -> Reply:
        """As the judge inside; what does not fit the budget any more is `unscored: budget`, without
        a call.

        ConfigError when the budget has a cap and the judge's price is unknown: such a cap could not
        be kept.
        """
        if self.budget is None:
            async with self.pacer.slot():
                return await self.inner.judge(request)
        estimate = self.estimate(request)
        low = estimate.low
        call = Call(estimate.high.cost_usd, (low.input_tokens or 0) + (low.output_tokens or 0))
        if call.worst is None and self.budget.cap is not None:
            raise ConfigError(
                f"the price of {self.name} is unknown, so a cost limit cannot be kept",
                "leave out --max-cost, or say the price with --price IN,OUT",
            )
        async with self.pacer.slot():
            if not await self.budget.reserve(call):
                return Reply(
                    unscored(request.criteria, "budget", "not asked: the cost limit is reached")
                )
            usage: Usage | None = None
            try:
                reply = await self.inner.judge(request)
                usage = reply.usage
                return reply
            finally:
                # A call that was cut off may have been billed: without a cost, its worst case
                # counts.
                await asyncio.shield(self.budget.settle(call, usage))
