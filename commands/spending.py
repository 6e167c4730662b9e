"""What a store's calls cost so far, and what a command may still spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..config import Settings

if TYPE_CHECKING:
    from ..judge.session import ScoreOptions
    from ..judge.store import Store


@dataclass(frozen=True)
class Spending:
    """USD that all commands spent on a store, as far as prices were known, and the limits."""

    total: float = 0.0
    this_month: float = 0.0
    """Since the first of this month, UTC."""
    monthly_limit: float | None = None
    """Of all commands on this store together (--max-cost-month)."""
    limit: float | None = None
    """Of this command: what it was given, or what the month has left, whichever is less."""

    @property
    def text(self) -> str | None:
        """What was spent before; None if that is nothing, and no limit of a month is set."""
        if self.monthly_limit is not None:
            return f"spent this month {dollars(self.this_month)} of {dollars(self.monthly_limit)}"
        if not self.total:
            return None
        return (
            f"spent on this store before {dollars(self.total)}, this month"
            f" {dollars(self.this_month)}"
        )


def dollars(amount: float) -> str:
    """Cents from a dollar on, four decimals below."""
    return f"${amount:.4f}" if 0 < amount < 1 else f"${amount:,.2f}"


def within_budget(
    store: Store | None, settings: Settings, flags: Mapping[str, Any], options: ScoreOptions
) -> tuple[ScoreOptions, Spending]:
    """The options with the limit that the month's budget leaves, and what was spent before."""
    monthly = settings.get("max_cost_month", flags.get("max_cost_month"))
    total, this_month = 0.0, 0.0
    if store is not None:
        month = datetime.now(UTC).strftime("%Y-%m")
        total, this_month = store.spent(), store.spent(since=month)
    limits = [] if options.max_cost is None else [options.max_cost]
    if monthly is not None:
        limits.append(max(0.0, monthly - this_month))
    limit = min(limits, default=None)
    return replace(options, max_cost=limit), Spending(total, this_month, monthly, limit)
