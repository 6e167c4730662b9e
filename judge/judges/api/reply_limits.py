"""How long replies may be: by question, and by how long the model's replies turn out to be.

A question is given room for its items, twice what recorded replies took. Models that think before
they answer need more: one longer try follows a reply that was cut, and what replies really took is
remembered, so that later calls need no second try and reserve no more than they use.
"""

from __future__ import annotations

from typing import NamedTuple

from ...base import Request
from ...questions.forms import form_of

DEFAULT_MAX_TOKENS = 8_192
"""The most that a reply may have unless the user says otherwise."""
_MARGIN = 1.25
"""Of a reply beyond the longest of the same kind so far."""
_MIN_TOKENS = 256


class ReplyLimit(NamedTuple):
    """The output tokens of one call."""

    limit: int
    """What the provider is told."""
    most: int
    """What may be billed; more than the limit if the provider does not keep to it."""
    enough: int
    """What the reply probably takes."""


class ReplyLimits:
    """The limits of one model's replies; `note` what each reply took."""

    def __init__(self, max_tokens: int | None, *, thinks: bool) -> None:
        """`max_tokens`: the most of any reply, by default DEFAULT_MAX_TOKENS.

        `thinks`: whether the model is known to reason, which no question's size tells.
        """
        self.longest = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
        self._is_stated = max_tokens is not None
        self._thinks = thinks
        self._largest_share = 0.0
        """Of replies: what they took of the room for their question."""
        self._longest_reply = 0
        self._longest_excess = 0
        """Tokens of the longest reply that exceeded its limit."""

    @property
    def thinks(self) -> bool:
        """Whether the model reasons, as is known of it or as its replies show."""
        return self._thinks

    def first(self, request: Request) -> ReplyLimit:
        """The limit of a question's first call."""
        room = _room(request)
        needed = room * max(1.0, self._largest_share * _MARGIN)
        limit = self.longest if self._thinks else min(self.longest, max(_MIN_TOKENS, round(needed)))
        return self._with_bounds(limit, room)

    def only(self, request: Request) -> int:
        """The limit of a reply in a provider batch, where a cut one has no second try."""
        if self._is_stated or self._thinks:
            return self.longest
        return min(self.longest, 2 * self.first(request).limit)

    def longer(self, request: Request) -> ReplyLimit:
        """The limit of a second try after a reply that was cut."""
        return self._with_bounds(self.longest, _room(request), enough=self.longest)

    def _with_bounds(self, limit: int, room: int, enough: int | None = None) -> ReplyLimit:
        most = limit
        if self._longest_excess:
            most = max(limit, round(self._longest_excess * _MARGIN))
            enough = most
        elif enough is None and self._longest_reply:
            # Thoughts are as long for a short question as for a long one.
            longest = self._longest_reply if self._thinks else 0
            enough = max(_MIN_TOKENS, round(max(room * self._largest_share, longest) * _MARGIN))
        return ReplyLimit(limit, most, min(most, most if enough is None else enough))

    def drop(self) -> None:
        """Note that the provider takes no limit: a reply may have any length."""
        self._longest_excess = max(self._longest_excess, self.longest)

    def note(self, request: Request, limit: int, output_tokens: int, thought: bool) -> None:
        """Note what a reply took of its limit, and whether the model thought for it."""
        self._thinks = self._thinks or thought
        self._longest_reply = max(self._longest_reply, output_tokens)
        self._largest_share = max(self._largest_share, output_tokens / _room(request))
        if output_tokens > limit:
            self._longest_excess = max(self._longest_excess, output_tokens)


def _room(request: Request) -> int:
    """Tokens for the reply to a question's items, without any thoughts before them."""
    form, turns = form_of(request.question), len(request.run.turns)
    return 100 + sum(form.reply_tokens(item, turns) for item in request.criteria)
