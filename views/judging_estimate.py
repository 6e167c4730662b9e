"""What judging some runs would take, as lines for the person who pays."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .styled_lines import StyledLine, line

if TYPE_CHECKING:
    from ..judge.rejudge.staleness import RejudgePlan

_MAX_CRITERIA = 12
"""Criteria whose stale verdicts are listed."""
_MAX_ERRORS = 3


def estimate_lines(plan: RejudgePlan) -> list[StyledLine]:
    """How many verdicts are to be made and why, and the estimated tokens and cost."""
    lines = [
        line(
            f"{plan.runs} runs by {plan.judge.judge}: {plan.current} verdicts stand, {plan.stale}"
            f" are to be made in {plan.calls} calls"
        ),
        *(line(text) for text in plan.estimate.tokens_text.split("; ")),
        line(f"expected cost {plan.estimate.cost_text}"),
    ]
    for name, reasons in _stale_verdicts(plan):
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        lines.append(line(f"  {name}: {counts}"))
    for _, error in plan.errors[:_MAX_ERRORS]:
        lines.append(line(f"  cannot be read: {error}"))
    return lines


def _stale_verdicts(plan: RejudgePlan) -> list[tuple[str, Counter[str]]]:
    """Stale verdicts by reason: of the first criteria, and of each question that asks for none."""
    from ..judge.base import is_criteria

    by_criterion: dict[str, Counter[str]] = {}
    by_question: dict[str, Counter[str]] = {}
    for need in plan.needs:
        for item, reasons in need.reasons.items():
            reason = "+".join(reasons)
            if is_criteria(need.question):
                name = f"{need.rubric_id} {item}"
                by_criterion.setdefault(name, Counter())[reason] += 1
            else:
                by_question.setdefault(need.question, Counter())[reason] += 1
    return [*sorted(by_criterion.items())[:_MAX_CRITERIA], *by_question.items()]
