"""How many calls at once, and for how much money: limits that any judge can be put under.

`Pacer` adapts concurrency: it starts at what was asked for, shrinks when a provider says "too many requests", and
grows back slowly. `Budget` is a hard cap: the worst case of a call is reserved before it starts, so that no number of
simultaneous calls can exceed it. `GuardedJudge` puts a judge under both.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

from ..errors import ConfigError
from .base import Around, Judge, Reply, Request
from .scorecard import unscored

_GROWTH = 20
"""A round without a rate limit adds 1/20 of the cap (at least 1 call): back from half within ten rounds."""
_GROWTH_WHEN_HIT = 50
"""A round with one still adds 1/50, so that a limit met now and then does not wear the batch down to single calls."""

_CURRENT: ContextVar[Pacer | None] = ContextVar("ambjudge_pacer", default=None)


def throttled(wait_s: float | None = None) -> None:
    """To be called by whoever meets a rate limit (HTTP 429, 529): the batch around it, if any, slows down.

    `wait_s` is what the provider asks to wait; no new call starts before.
    """
    pacer = _CURRENT.get()
    if pacer is not None:
        pacer.throttled(wait_s)


class Pacer:
    """At most `limit` calls at once, at most `cap` ever: additive increase, multiplicative decrease.

    After each round (as many calls as were allowed at once) the limit falls by half the share of calls that met a rate
    limit, as in DCTCP (Alizadeh et al. 2010): an overload, which answers every call under way, halves it; a stray 429
    costs little.
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
            self._limit = max(1.0, self._limit * (1 - share / 2)) + self.cap / _GROWTH_WHEN_HIT * (1 - share)
        else:
            self._limit += max(1.0, self.cap / _GROWTH)
        self._limit = min(float(self.cap), self._limit)
        self._round = self._left_in_round = max(self.running - 1, self.limit)
        self._hits = 0


class Budget:
    """A cap in USD. `spent` is settled, `reserved` the worst case of calls under way; their sum never exceeds the cap."""

    def __init__(self, cap: float) -> None:
        if not (math.isfinite(cap) and cap >= 0):
            raise ConfigError(f"a cost limit of {cap} makes no sense", "give --max-cost in USD, at least 0")
        self.cap, self.spent, self.reserved = cap, 0.0, 0.0
        self._under_way = 0
        self._changed = asyncio.Condition()

    async def reserve(self, worst: float) -> bool:
        """Reserve the worst case of a call; False when it cannot fit any more.

        Waits while calls under way may still turn out cheaper than reserved.
        """
        async with self._changed:
            while self.spent + self.reserved + worst > self.cap + 1e-12:
                if not self._under_way or self.spent + worst > self.cap + 1e-12:
                    return False
                await self._changed.wait()
            self.reserved += worst
            self._under_way += 1
            return True

    async def settle(self, worst: float, cost: float | None) -> None:
        """Replace a reservation by the real cost; an unknown one counts as its worst case."""
        async with self._changed:
            self._under_way -= 1
            self.reserved = max(0.0, self.reserved - worst) if self._under_way else 0.0
            self.spent += worst if cost is None else cost
            self._changed.notify_all()


class GuardedJudge(Around):
    """A judge under a pacer and, if given, a budget. Put a `StoredJudge` around it, not inside, so that what is stored
    needs neither."""

    def __init__(self, judge: Judge, pacer: Pacer, budget: Budget | None = None) -> None:
        super().__init__(judge)
        self.pacer, self.budget = pacer, budget

    @classmethod
    def under(cls, judge: Judge, pacer: Pacer, max_cost: float | None) -> GuardedJudge:
        """The judge under the pacer, and under a budget of so many USD where one is given."""
        return cls(judge, pacer, None if max_cost is None else Budget(max_cost))

    async def judge(self, request: Request) -> Reply:
        """As the judge inside; what does not fit the budget any more is `unscored: budget`, without a call.

        ConfigError when a budget is set and the judge's price is unknown: such a cap could not be kept.
        """
        if self.budget is None:
            async with self.pacer.slot():
                return await self.inner.judge(request)
        worst = self.estimate(request).high.cost_usd
        if worst is None:
            raise ConfigError(
                f"the price of {self.name} is unknown, so a cost limit cannot be kept",
                "leave out --max-cost, or say the price with --price IN,OUT",
            )
        async with self.pacer.slot():
            if not await self.budget.reserve(worst):
                return Reply(unscored(request.criteria, "budget", "not asked: the cost limit is reached"))
            cost: float | None = None
            try:
                reply = await self.inner.judge(request)
                cost = reply.usage.cost_usd
                return reply
            finally:
                # A call that was cut off may have been billed: without a cost, its worst case counts.
                await asyncio.shield(self.budget.settle(worst, cost))
