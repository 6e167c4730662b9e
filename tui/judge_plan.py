"""Judging from inside: the plan and its cost first, then the calls in the background with their progress."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .lines import Line, line

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.rejudge import RejudgePlan
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..judge.update import Update


def make_plan(store: Store, paths: list[Path], judge: Judge, options: ScoreOptions) -> RejudgePlan:
    """What judging these runs would take; makes no call."""
    from ..judge.rejudge import plan
    from ..judge.session import scope_of

    scope = scope_of(options)
    return plan(store, paths, judge, scope)


def plan_lines(made: RejudgePlan) -> list[Line]:
    """The plan for the person who pays."""
    low, high = made.estimate.low, made.estimate.high
    lines = [
        line(f"{made.runs} runs by {made.judge.judge}: {made.current} verdicts stand, {made.stale} are to be made in {made.calls} calls"),
        line(f"input tokens {_interval(low.input_tokens, high.input_tokens, '{:,}')}"),
        line(f"output tokens {_interval(low.output_tokens, high.output_tokens, '{:,}')}"),
        line(f"cost {_interval(low.cost_usd, high.cost_usd, '${:.4f}')}"),
    ]  # fmt: skip
    lines += [
        line(f"  {name}: {', '.join(f'{n} {reason}' for reason, n in why.most_common())}") for name, why in _stale(made)
    ]
    lines += [line(f"  cannot be read: {error}") for _, error in made.errors[:3]]
    return lines


def _stale(made: RejudgePlan) -> list[tuple[str, Counter[str]]]:
    """Stale verdicts by reason: of the first criteria, and of each question whose items no rubric holds."""
    from ..judge.base import CRITERIA

    criteria: dict[str, Counter[str]] = {}
    others: dict[str, Counter[str]] = {}
    for need in made.needs:
        of_rubric = need.question in CRITERIA
        for item, reasons in need.reasons.items():
            found, name = (criteria, f"{need.rubric_id} {item}") if of_rubric else (others, need.question)
            found.setdefault(name, Counter())["+".join(reasons)] += 1
    return [*sorted(criteria.items())[:12], *others.items()]


def _interval(low: float | None, high: float | None, form: str) -> str:
    if low is None or high is None:
        return "unknown"
    return form.format(low) if low == high else f"{form.format(low)} to {form.format(high)}"


def carry_out(
    made: RejudgePlan, store: Store, paths: list[Path], judge: Judge, options: ScoreOptions, tell: Callable[[str], None]
) -> Update:
    """Make the plan's calls and the scorecards; for a worker thread. `tell` gets a line of progress."""
    from ..judge.update import update

    return asyncio.run(
        update(
            made, store, paths, judge, options,
            on_calls=lambda s: tell(f"judged {s.progress.done} of {made.calls} · {_cost(s.usage.cost_usd)}"),
            on_cards=lambda p, _: tell(f"scored {p.done} runs"),
        )
    )  # fmt: skip


def _cost(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"
