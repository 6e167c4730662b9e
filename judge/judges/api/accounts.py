"""The bill of an API judge: each call is reserved before it is made and booked when it has ended.

Every try is booked, also one that was refused, cut or unreadable: by the tokens that the provider
counted or, where it counted none but may have billed the call, by the most that it can have used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from ....trajectories.record import estimate_tokens
from ...base import Request, Usage
from ..limits import CostLimitReached, PlannedCall, current_allowance
from .answers import Completion, Counts
from .prices import Price
from .reply_limits import ReplyLimit, ReplyLimits

_SAME_RECORD_MARGIN = 1.03
"""Of input tokens, where the provider has counted the record before: only the question differs."""
_OTHER_RECORD_MARGIN = 1.05
_LEAST_SHARE = 0.6
"""Of the estimate, which errs upwards, that a prompt has at the least."""


class _CountedRecord(NamedTuple):
    """What a provider counted for prompts about one record."""

    most_tokens: int
    most_of_estimate: float
    """Tokens as a share of the estimate."""


class TokenCounts:
    """How a provider counts prompts, compared with our estimates."""

    def __init__(self, name: Hashable) -> None:
        """`name` tells this provider's counts from others' in a request's memo."""
        self._name = name
        self._most_of_estimate = 0.0

    def most(self, request: Request, estimate: int) -> int:
        """The most tokens of a prompt about a request's record, by its estimated tokens."""
        record: _CountedRecord | None = request.memo.get(self._key(request))
        if record is None:
            return round(estimate * max(1.0, self._most_of_estimate * _OTHER_RECORD_MARGIN))
        by_estimate = estimate * record.most_of_estimate * _SAME_RECORD_MARGIN
        return max(record.most_tokens, round(by_estimate))

    def note(self, request: Request, estimate: int, counted: int) -> None:
        """Note the tokens that the provider counted for a prompt."""
        share = counted / max(1, estimate)
        self._most_of_estimate = max(self._most_of_estimate, share)
        key = self._key(request)
        earlier = request.memo.get(key, _CountedRecord(0, 0.0))
        request.memo[key] = _CountedRecord(
            max(counted, earlier.most_tokens), max(share, earlier.most_of_estimate)
        )

    def _key(self, request: Request) -> Hashable:
        return "counted tokens", self._name, request.record_key


class FirstCall:
    """Lets the first call under a cost limit go alone.

    Its answer shows how the provider counts and whether it keeps to the limit of a reply, which
    the reservations of all others rest on.
    """

    def __init__(self) -> None:
        self._is_answered = False
        self._under_way: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def enter(self) -> bool:
        """Wait until the first call was answered; True for whoever makes it, to `leave` then."""
        loop = asyncio.get_running_loop()
        while not self._is_answered:
            # A judge may serve several event loops; those do not wait for each other.
            if self._under_way is None or self._under_way[0] is not loop:
                self._under_way = (loop, asyncio.Event())
                return True
            await self._under_way[1].wait()
        return False

    def leave(self, *, is_answered: bool) -> None:
        """End the first call; if it was not answered, the next one goes alone too."""
        self._is_answered = self._is_answered or is_answered
        if self._under_way is not None:
            self._under_way[1].set()
        self._under_way = None


@dataclass(frozen=True)
class Provider:
    """What accounts share about one model at one address."""

    price: Price | None
    limits: ReplyLimits
    counts: TokenCounts
    first_call: FirstCall


class Account:
    """What the calls of one request use; each is planned here and made by `transport.complete`."""

    def __init__(self, provider: Provider, request: Request) -> None:
        self.usage = Usage()
        """Of all calls so far."""
        self.served_models: dict[str, None] = {}
        self.system_fingerprints: dict[str, None] = {}
        self._provider, self._request = provider, request
        self._estimate = 0
        self._is_longer = False
        self._reply = provider.limits.first(request)
        self.limit = 0
        """The most output tokens of the last try's reply."""
        self._reserved: PlannedCall | None = None
        self._goes_first = False

    def plan(self, input_estimate: int, *, longer: bool = False) -> None:
        """Plan the next call: the estimated tokens of its prompt.

        `longer`: its reply may be as long as any, as a shorter one was cut.
        """
        self._estimate, self._is_longer = input_estimate, longer
        self._reply = self._reply_limit()

    def _reply_limit(self) -> ReplyLimit:
        """The limits of the planned call's reply, by what is known of replies now."""
        limits = self._provider.limits
        return limits.longer(self._request) if self._is_longer else limits.first(self._request)

    @property
    def planned_limit(self) -> int:
        """The most output tokens of the planned call's reply."""
        return self._reply.limit

    async def reserve(self) -> int:
        """Reserve a try of the planned call; returns the limit of its reply.

        It is lower than planned where the cost limit has less room left. Raises CostLimitReached if
        there is too little.
        """
        allowance = current_allowance()
        self.limit, self._reserved, self._goes_first = self._reply.limit, None, False
        if allowance is None:
            return self.limit
        if allowance.cap is not None:
            self._goes_first = await self._provider.first_call.enter()
            self._reply = self._reply_limit()
        try:
            leave = await allowance.reserve(self._planned_call())
            if leave.call is None:
                raise CostLimitReached(leave.refusal)
        except BaseException:
            self._leave_first_call(is_answered=False)
            raise
        self._reserved = leave.call
        self.limit = self._affordable_limit(leave.call)
        return self.limit

    def _planned_call(self) -> PlannedCall:
        return PlannedCall(
            self._most_cost(self._reply.most),
            min_tokens=round(self._estimate * _LEAST_SHARE),
            enough_usd=self._most_cost(self._reply.enough),
        )

    def _input_most(self) -> int:
        return self._provider.counts.most(self._request, self._estimate)

    def _most_cost(self, output_tokens: int) -> float | None:
        """USD of a call with this many output tokens, if nothing is read from a cache."""
        price, input_tokens = self._provider.price, self._input_most()
        if price is None:
            return None
        is_dearer_written = price.cache_write is not None and price.cache_write > price.input
        written = input_tokens if is_dearer_written else 0
        return price.cost(input_tokens, output_tokens, 0, written)

    def _affordable_limit(self, call: PlannedCall) -> int:
        """The planned limit, or what the reserved cost leaves for the reply."""
        price, without_reply = self._provider.price, self._most_cost(0)
        if price is None or not price.output or self._reply.most > self._reply.limit:
            return self._reply.limit
        room = ((call.max_cost_usd or 0.0) - (without_reply or 0.0)) * 1e6 / price.output
        return max(1, min(self._reply.limit, int(room + 1e-6)))

    async def book(self, counts: Counts | None, completion: Completion | None = None) -> None:
        """Book the try that was reserved last: its tokens, or None if nothing was billed.

        `completion` is what it brought, if anything.
        """
        usage = Usage(calls=1) if counts is None else self._billed(counts, completion)
        self.usage += usage
        if completion is not None:
            self._note(completion, usage.output_tokens or 0)
        await self._settle(usage)

    async def abandon(self) -> None:
        """Book a try that was interrupted: the cost limit counts its worst case."""
        await self._settle(None)

    async def _settle(self, usage: Usage | None) -> None:
        self._leave_first_call(is_answered=usage is not None and bool(usage.input_tokens))
        allowance, call = current_allowance(), self._reserved
        if allowance is not None and call is not None:
            self._reserved = None
            await allowance.settle(call, usage)

    def _leave_first_call(self, *, is_answered: bool) -> None:
        if self._goes_first:
            self._goes_first = False
            self._provider.first_call.leave(is_answered=is_answered)

    def _billed(self, counts: Counts, completion: Completion | None) -> Usage:
        """The usage of a try that was or may have been billed."""
        most = Counts(self._input_most(), self._estimated_output(completion))
        return billed_usage(self._provider.price, counts, most)

    def _estimated_output(self, completion: Completion | None) -> int:
        """The most tokens of an uncounted reply; thoughts that nobody sees are billed too."""
        is_whole = completion is not None and completion.finish not in ("length", "none")
        if completion is None or not is_whole or self._provider.limits.thinks:
            return max(self.limit, self._reply.most)
        return estimate_tokens(completion.text or completion.refusal or "")

    def _note(self, completion: Completion, output_tokens: int) -> None:
        """Remember who answered, and what it took."""
        self.note_origin(completion)
        counts, request = completion.counts, self._request
        if counts.input_tokens is not None:
            self._provider.counts.note(request, self._estimate, counts.input_tokens)
        thought = bool(counts.reasoning_tokens)
        self._provider.limits.note(request, self.limit, output_tokens, thought)

    def note_origin(self, completion: Completion) -> None:
        """Remember the model that answered."""
        if completion.served_model is not None:
            self.served_models[completion.served_model] = None
        if completion.system_fingerprint is not None:
            self.system_fingerprints[completion.system_fingerprint] = None


def billed_usage(price: Price | None, counts: Counts, most: Counts) -> Usage:
    """The usage of one call by the provider's counts; `most` stands where it has none."""
    input_tokens, output_tokens, cached, written, _ = counts
    is_counted = input_tokens is not None and output_tokens is not None
    if not is_counted:
        cached, written = 0, 0
    input_tokens = most.input_tokens if input_tokens is None else input_tokens
    output_tokens = most.output_tokens if output_tokens is None else output_tokens
    cost = None
    if price is not None:
        cost = price.cost(input_tokens, output_tokens, cached, written)
    estimated_calls = 0 if is_counted else 1
    return Usage(1, input_tokens, output_tokens, cost, cached, written, estimated_calls)
