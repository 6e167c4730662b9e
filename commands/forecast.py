"""Forecasts: which verdicts a command would ask for, why, and what the calls would cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import console
from .spending import Spending, dollars

if TYPE_CHECKING:
    from ..judge.rejudge.staleness import RejudgePlan

_MAX_LINES = 12
"""Of the table of what is asked for."""
_MAX_ITEMS = 6
"""Of a line, that are named."""


def forecast_json(plan: RejudgePlan, spending: Spending | None = None) -> dict[str, Any]:
    """The forecast as JSON, without the schema's name."""
    low, high, expected = plan.estimate.low, plan.estimate.high, plan.estimate.point
    by_criterion = [
        {
            "rubric": item.rubric,
            "question": item.question,
            "criterion": item.criterion,
            "stale": item.reasons.total(),
            "reasons": dict(item.reasons),
        }
        for item in _stale_items(plan)
    ]
    data = {
        "judge": plan.judge.judge,
        "runs": plan.runs,
        "apart": plan.foreign_track_runs,
        "read": plan.read,
        "current": plan.current,
        "stale": plan.stale,
        "never": plan.never_judged,
        "questions": plan.questions,
        "calls": plan.calls,
        "waiting": plan.waiting,
        "by_criterion": by_criterion,
        "expected": {
            "input_tokens": expected.input_tokens,
            "cached_tokens": expected.cached_tokens,
            "output_tokens": expected.output_tokens,
            "cost_usd": expected.cost_usd,
        },
        "input_tokens": [low.input_tokens, high.input_tokens],
        "output_tokens": [low.output_tokens, high.output_tokens],
        "cost_usd": [low.cost_usd, high.cost_usd],
        "errors": [{"path": str(path), "error": str(error)} for path, error in plan.errors],
    }
    if spending is not None:
        limit = spending.limit
        data["spending"] = {
            "spent_usd": spending.total,
            "spent_this_month_usd": spending.this_month,
            "max_cost_month_usd": spending.monthly_limit,
            "limit_usd": limit,
            "calls_within_limit": None if limit is None else plan.calls_within(limit),
        }
    return data


def show_forecast(
    plan: RejudgePlan, outdated_cards: int, as_json: bool, spending: Spending
) -> None:
    """Print the forecast of `score` and `rejudge`, with the number of scorecards to renew."""
    if as_json:
        data = {"schema": "ambjudge.plan/1", **forecast_json(plan, spending)}
        data["cards_to_renew"] = outdated_cards
        console.raw(json.dumps(data, ensure_ascii=False))
        return
    _show_stale(plan)
    console.say(
        f"{console.counted(plan.runs, 'run')}, judge {plan.judge.judge}:"
        f" {plan.current} verdicts are up to date, {plan.stale - plan.never_judged} are stale,"
        f" {plan.never_judged} were never made; {calls_text(plan)}"
    )
    if plan.waiting:
        console.say(
            f"{console.counted(plan.waiting, 'question')} of these runs in open batches, not asked"
        )
    if plan.foreign_track_runs:
        console.say(other_tracks_note(plan.foreign_track_runs))
    for line in cost_lines(plan, spending):
        console.say(line)
    if outdated_cards:
        verb = "is" if outdated_cards == 1 else "are"
        console.say(f"{console.counted(outdated_cards, 'scorecard')} {verb} missing or out of date")


def note_forecast(plan: RejudgePlan, quiet: bool, spending: Spending) -> None:
    """Say on stderr what is about to be asked."""
    cost = f", expected cost {plan.estimate.cost_text}" if plan.calls else ""
    console.note(
        f"{console.counted(plan.runs, 'run')}: {plan.current} verdicts are up to date,"
        f" {plan.stale} are asked for in {calls_text(plan)}{cost}",
        quiet,
    )
    if plan.foreign_track_runs:
        console.note(other_tracks_note(plan.foreign_track_runs), quiet)
    for line in budget_lines(plan, spending):
        console.note(line, quiet)


def calls_text(plan: RejudgePlan) -> str:
    """`8 calls`, or with samples and panels `120 calls for 40 questions`."""
    calls = console.counted(plan.calls, "call")
    if plan.questions == plan.calls:
        return calls
    return f"{calls} for {console.counted(plan.questions, 'question')}"


def cost_lines(plan: RejudgePlan, spending: Spending) -> list[str]:
    """What the calls would cost, how that fits the limit, and what was spent before."""
    if not plan.calls:
        return []
    estimate = plan.estimate
    first = f"expected cost {estimate.cost_text}; {estimate.tokens_text}"
    return [first, *budget_lines(plan, spending)]


def budget_lines(plan: RejudgePlan, spending: Spending) -> list[str]:
    """How the plan fits the cost limit, and what was spent before; nothing if nothing is asked."""
    if not plan.calls:
        return []
    lines = []
    if spending.limit is not None:
        lines.append(f"a limit of {dollars(spending.limit)} {_fit(plan, spending.limit)}")
    if (spent := spending.text) is not None:
        lines.append(spent)
    return lines


def _fit(plan: RejudgePlan, limit: float) -> str:
    """How much of a plan a cost limit covers."""
    most, expected = plan.estimate.high.cost_usd, plan.estimate.point.cost_usd
    if most is None or expected is None:
        return "cannot be kept: the price is unknown (--price IN,OUT)"
    if most <= limit:
        return "covers the plan"
    if expected <= limit:
        return "covers the expected cost, but not the most that the calls could cost"
    return f"covers about {plan.calls_within(limit):,} of {console.counted(plan.calls, 'call')}"


def other_tracks_note(count: int) -> str:
    """What to say of runs that a given rubric is not for."""
    verb = "is" if count == 1 else "are"
    return (
        f"{console.counted(count, 'run')} {verb} not of the given rubric's track, and judged by"
        " the rubric in force for their own (--track names the track of runs without one)"
    )


def _format_counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())


@dataclass(frozen=True)
class _StaleItem:
    """A criterion or code with stale verdicts; `rubric` is None for what no rubric holds."""

    rubric: str | None
    question: str
    criterion: str
    reasons: Counter[str]
    """Verdicts by reason."""


def _stale_items(plan: RejudgePlan) -> list[_StaleItem]:
    """What has stale verdicts: criteria by rubric first, then what no rubric holds."""
    from ..judge.base import is_criteria

    counts: dict[tuple[str | None, str, str], Counter[str]] = {}
    for need in plan.needs:
        rubric = need.rubric_id if is_criteria(need.question) else None
        for criterion, reasons in need.reasons.items():
            key = (rubric, need.question, criterion)
            counts.setdefault(key, Counter())["+".join(reasons)] += 1
    items = [_StaleItem(*key, reasons) for key, reasons in counts.items()]
    return sorted(items, key=lambda item: (item.rubric is None, item.rubric or "", item.question))


def _show_stale(plan: RejudgePlan) -> None:
    """A table of what is to be asked for, and why."""
    lines = _stale_lines(plan)
    rows = [
        [line.name, _named(line.items), f"{line.reasons.total():,}", _reasons_of(line)]
        for line in lines[:_MAX_LINES]
    ]
    if not rows:
        return
    console.table(["Rubric or question", "Item", "To ask", "Why"], rows, right=[2], flexible=1)
    if left_out := lines[_MAX_LINES:]:
        verdicts = sum(line.reasons.total() for line in left_out)
        console.say(f"and {len(left_out)} more lines with {verdicts:,} verdicts (--json has all)")
    console.say()


def _named(items: Sequence[str]) -> str:
    left_out = len(items) - _MAX_ITEMS
    named = ", ".join(items[:_MAX_ITEMS])
    return named if left_out <= 0 else f"{named} and {left_out} more"


def _reasons_of(line: _StaleLine) -> str:
    return next(iter(line.reasons)) if len(line.reasons) == 1 else _format_counts(line.reasons)


@dataclass
class _StaleLine:
    """A line of the forecast's table."""

    name: str
    """The rubric, or the question if no rubric holds the items."""
    items: list[str]
    reasons: Counter[str]


def _stale_lines(plan: RejudgePlan) -> list[_StaleLine]:
    """A line for the items of a rubric or question that are stale for the same reasons, the one
    with most verdicts first."""
    lines: dict[tuple[str, frozenset[str]], _StaleLine] = {}
    for item in _stale_items(plan):
        name = item.rubric or item.question
        line = lines.setdefault((name, frozenset(item.reasons)), _StaleLine(name, [], Counter()))
        line.items.append(item.criterion)
        line.reasons.update(item.reasons)
    return sorted(lines.values(), key=lambda line: -line.reasons.total())
