"""What judging some runs would take, as lines for the person who pays."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .styled_lines import StyledLine, line

if TYPE_CHECKING:
    from ..judge.rejudge.staleness import RejudgePlan


def judge_plan_lines(made: RejudgePlan) -> list[StyledLine]:
    """Verdicts to be made and why, tokens and cost."""
    low, high = made.estimate.low, made.estimate.high
    lines = [
        line(
            f"{made.runs} runs by {made.judge.judge}: {made.current} verdicts stand, {made.stale}"
            f" are to be made in {made.calls} calls"
        ),
        line(f"input tokens {_interval(low.input_tokens, high.input_tokens, '{:,}')}"),
        line(f"output tokens {_interval(low.output_tokens, high.output_tokens, '{:,}')}"),
        line(f"cost {_interval(low.cost_usd, high.cost_usd, '${:.4f}')}"),
    ]
    lines += [
        line(f"  {name}: {', '.join(f'{n} {reason}' for reason, n in why.most_common())}")
        for name, why in _stale(made)
    ]
    lines += [line(f"  cannot be read: {error}") for _, error in made.errors[:3]]
    return lines


def _stale(made: RejudgePlan) -> list[tuple[str, Counter[str]]]:
    """Stale verdicts by reason: of the first criteria, and of each question whose items no rubric
    holds."""
    from ..judge.base import is_criteria

    criteria: dict[str, Counter[str]] = {}
    others: dict[str, Counter[str]] = {}
    for need in made.needs:
        of_rubric = is_criteria(need.question)
        for item, reasons in need.reasons.items():
            found, name = (
                (criteria, f"{need.rubric_id} {item}") if of_rubric else (others, need.question)
            )
            found.setdefault(name, Counter())["+".join(reasons)] += 1
    return [*sorted(criteria.items())[:12], *others.items()]


def _interval(low: float | None, high: float | None, form: str) -> str:
    if low is None or high is None:
        return "unknown"
    return form.format(low) if low == high else f"{form.format(low)} to {form.format(high)}"
