"""Forecasts: which verdicts a command would ask for, why, and what the calls would cost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import console

if TYPE_CHECKING:
    from ..judge.rejudge.staleness import RejudgePlan


def format_interval(low: float | None, high: float | None, form: str) -> str:
    """LOW to HIGH, or one number if they are equal; `form` is a format string for each."""
    if low is None or high is None:
        return "unknown"
    if low == high:
        return form.format(low)
    return f"{form.format(low)} to {form.format(high)}"


def format_cost(plan: RejudgePlan, form: str) -> str:
    """The cost of the calls as an interval."""
    low, high = plan.estimate.low, plan.estimate.high
    return format_interval(low.cost_usd, high.cost_usd, form)


def format_tokens(plan: RejudgePlan) -> str:
    """The tokens of the calls as intervals."""
    low, high = plan.estimate.low, plan.estimate.high
    sent = format_interval(low.input_tokens, high.input_tokens, "{:,}")
    received = format_interval(low.output_tokens, high.output_tokens, "{:,}")
    return f"input tokens {sent}, output tokens {received}"


def forecast_json(plan: RejudgePlan) -> dict[str, Any]:
    """The forecast as JSON, without the schema's name."""
    low, high = plan.estimate.low, plan.estimate.high
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
    return {
        "judge": plan.judge.judge,
        "runs": plan.runs,
        "apart": plan.foreign_track_runs,
        "read": plan.read,
        "current": plan.current,
        "stale": plan.stale,
        "never": plan.never_judged,
        "calls": plan.calls,
        "by_criterion": by_criterion,
        "input_tokens": [low.input_tokens, high.input_tokens],
        "output_tokens": [low.output_tokens, high.output_tokens],
        "cost_usd": [low.cost_usd, high.cost_usd],
        "errors": [{"path": str(path), "error": str(error)} for path, error in plan.errors],
    }


def show_forecast(plan: RejudgePlan, outdated_cards: int, as_json: bool) -> None:
    """Print the forecast of `score` and `rejudge`, with the number of scorecards to renew."""
    if as_json:
        data = {"schema": "ambjudge.plan/1", **forecast_json(plan)}
        data["cards_to_renew"] = outdated_cards
        console.raw(json.dumps(data, ensure_ascii=False))
        return
    rows = [
        [line.name, ", ".join(line.items), str(line.reasons.total()), _format_counts(line.reasons)]
        for line in _stale_lines(plan)
    ]
    if rows:
        console.table(["Rubric or question", "Item", "To ask", "Why"], rows, right=[2], flexible=1)
        console.say()
    console.say(
        f"{console.counted(plan.runs, 'run')}, judge {plan.judge.judge}:"
        f" {plan.current} verdicts are up to date, {plan.stale - plan.never_judged} are stale,"
        f" {plan.never_judged} were never made; {console.counted(plan.calls, 'call')}"
    )
    if plan.foreign_track_runs:
        console.say(_other_tracks(plan))
    if plan.calls:
        console.say(f"{format_tokens(plan)}, cost {format_cost(plan, '${:.4f}')}")
    if outdated_cards:
        console.say(
            f"{console.counted(outdated_cards, 'scorecard')} missing, or not of the verdicts in"
            " force"
        )


def note_forecast(plan: RejudgePlan, quiet: bool) -> None:
    """Say on stderr what is about to be asked."""
    console.note(
        f"{console.counted(plan.runs, 'run')}: {plan.current} verdicts are up to date,"
        f" {plan.stale} are asked for in {console.counted(plan.calls, 'call')},"
        f" cost {format_cost(plan, '${:.2f}')}",
        quiet,
    )
    if plan.foreign_track_runs:
        console.note(_other_tracks(plan), quiet)


def _other_tracks(plan: RejudgePlan) -> str:
    runs = console.counted(plan.foreign_track_runs, "run")
    return (
        f"{runs} of another track, or of none, than the given rubric, judged by the rubric of their"
        " own track (--track names that of runs without one)"
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


@dataclass
class _StaleLine:
    """A line of the forecast's table."""

    name: str
    """The rubric, or the question if no rubric holds the items."""
    items: list[str]
    reasons: Counter[str]


def _stale_lines(plan: RejudgePlan) -> list[_StaleLine]:
    """A line for each criterion; items that no rubric holds and that are stale for the same reasons
    share one."""
    lines: list[_StaleLine] = []
    shared: dict[tuple[str, frozenset[tuple[str, int]]], _StaleLine] = {}
    for item in _stale_items(plan):
        key = (item.question, frozenset(item.reasons.items()))
        if item.rubric is None and key in shared:
            line = shared[key]
            line.items.append(item.criterion)
            line.reasons.update(item.reasons)
            continue
        line = _StaleLine(item.rubric or item.question, [item.criterion], Counter(item.reasons))
        lines.append(line)
        if item.rubric is None:
            shared[key] = line
    return lines
