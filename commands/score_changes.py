"""Tables of what changed between scorecards, for `changes`, `rejudge` and `rubric diff`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .. import console
from ..rounding import fixed

if TYPE_CHECKING:
    from ..analysis.report.board_movement import BoardMovement
    from ..analysis.report.changes_result import Changes, RunChange
    from ..judge.rejudge.score_change import Cause, Flip, ScoreSplit
    from ..judge.rejudge.update import CardUpdate

_CAUSE_NAMES: dict[Cause, str] = {
    "data": "data: the run's files",
    "text": "text of criteria or codes",
    "weights": "weights, tiers, policy",
    "prompt": "prompt",
    "judge": "another judge",
    "parameters": "parameters of the judge",
    "unscored": "was or became unscored",
    "release": "release of ambjudge",
}
_STATE_NAMES = {
    "not_applicable": "not applicable",
    "no_evidence": "cannot tell",
    "cannot_tell": "cannot tell",
    "not_read": "not read",
    "not in the rubric": "no criterion",
}
_MAX_RUNS = 30
_MAX_FLIPS = 60
"""Rows that people read through; JSON has all of them."""
_MAX_PLACES = 40
_ARROW = "→"


def show_renewed(runs: Sequence[CardUpdate]) -> None:
    """Print how many scorecards were renewed."""
    renewed = [run for run in runs if not run.kept]
    console.say(f"{console.counted(len(renewed), 'scorecard')} renewed")
    kept = len(runs) - len(renewed)
    if kept:
        console.say(
            f"{console.counted(kept, 'scorecard')} kept, as the new ones would lack verdicts"
            " (--incomplete replaces them)"
        )


def show_changes(changes: Changes) -> None:
    """Print the mean change by cause, the flips by item and by run, and the movement on the
    board."""
    if not changes.runs and not changes.added:
        console.say("no score, verdict or error code changed")
        return
    if changes.runs:
        _show_causes(changes)
        _show_items(changes)
        _show_runs(changes.runs)
        _show_flips(changes)
    if changes.board is not None:
        _show_board(changes.board, changes.judges)


def _show_causes(changes: Changes) -> None:
    agentic, overall = changes.agentic, changes.overall
    rows = [
        [
            _CAUSE_NAMES[row.cause],
            str(row.runs),
            str(row.flips),
            _signed(row.agentic, 4),
            _signed(row.overall, 2),
        ]
        for row in changes.by_cause()
    ]
    total = [
        "all causes",
        str(len(changes.runs)),
        str(changes.flips),
        _signed(_change(agentic), 4),
        _signed(_change(overall), 2),
    ]
    console.say()
    title = f"Mean change over the {console.counted(len(changes.runs), 'run')} that changed"
    console.say(console.wrap(f"{title}, split by cause{_means(agentic, overall)}"))
    console.table(
        ["Cause", "Runs", "Flips", "Agentic", "Overall"], [*rows, total], right=range(1, 5)
    )


def _means(agentic: ScoreSplit | None, overall: ScoreSplit | None) -> str:
    """The means before and after, in words."""
    parts = []
    for name, split, digits in (("Agentic", agentic, 4), ("Overall", overall, 2)):
        if split is not None:
            parts.append(f"{name} {fixed(split.before, digits)} to {fixed(split.after, digits)}")
    return f" ({', '.join(parts)})" if parts else ""


def _change(split: ScoreSplit | None) -> float | None:
    return None if split is None else split.change


def _signed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:+.{digits}f}"


def _show_items(changes: Changes) -> None:
    rows = [
        [
            row.item,
            row.kind,
            str(row.flips),
            str(row.up),
            str(row.down),
            str(row.other),
            ", ".join(f"{cause} {count}" for cause, count in row.causes.items()),
        ]
        for row in changes.by_item()
    ]
    if not rows:
        return
    console.say()
    console.say("Flips by criterion and code (up: met or present now; other: to or from no value)")
    console.table(
        ["Item", "Kind", "Flips", "Up", "Down", "Other", "Causes"],
        rows,
        right=range(2, 6),
        flexible=6,
    )


def _show_runs(runs: Sequence[RunChange]) -> None:
    console.say()
    console.say("Runs that changed, the largest change first")
    rows = []
    for run in runs[:_MAX_RUNS]:
        change = run.change
        rows.append(
            [
                run.run,
                _pair(run.before.overall, run.after.overall, 2),
                _signed(_change(change.overall), 2),
                _pair(run.before.agentic, run.after.agentic, 4),
                _signed(_change(change.agentic), 4),
                str(len(change.flips)),
                ", ".join(change.causes),
            ]
        )
    console.table(
        ["Run", "Overall", "Change", "Agentic", "Change", "Flips", "Causes"],
        rows,
        right=range(1, 6),
        flexible=6,
    )
    _note_others(len(runs) - _MAX_RUNS, "run")


def _show_flips(changes: Changes) -> None:
    """Every verdict that changed, unless they are too many to read."""
    if not changes.flips:
        return
    if changes.flips > _MAX_FLIPS:
        console.say(
            console.wrap(
                f"({console.counted(changes.flips, 'verdict')} changed: `ambjudge changes --where`"
                " narrows the runs, --json lists all)"
            )
        )
        return
    rows = []
    for run in changes.runs:
        for number, flip in enumerate(run.change.flips):
            name = run.run if number == 0 else ""
            rows.append([name, flip.item, *_values(flip), ", ".join(flip.causes)])
    console.say()
    console.say("Verdicts that changed")
    console.table(["Run", "Item", "Before", "After", "Cause"], rows, flexible=4)


def _values(flip: Flip) -> tuple[str, str]:
    """The verdict before and after, as a person reads it."""
    pairs = ((flip.before, flip.before_state), (flip.after, flip.after_state))
    before, after = (
        state if flip.kind == "code" or value is None else f"{value:g}" for value, state in pairs
    )
    return _state(before), _state(after)


def _state(text: str) -> str:
    return _STATE_NAMES.get(text, text.replace("judge_error", "failed"))


def _pair(before: float | None, after: float | None, digits: int) -> str:
    texts = ["–" if value is None else fixed(value, digits) for value in (before, after)]
    return f"{texts[0]} {_ARROW} {texts[1]}"


def _show_board(board: BoardMovement, judges: Iterable[str]) -> None:
    name = "Overall" if board.outcome == "overall" else "Agentic"
    runs = console.counted(board.runs_after, "run")
    if board.runs_before != board.runs_after:
        runs += f", {board.runs_before:,} before"
    title = f"Places on the whole board by {name} ({runs}, judge {', '.join(judges)})"
    digits = 2 if board.outcome == "overall" else 4
    moved = [place for place in board.places if place.has_moved]
    console.say()
    if not moved:
        agents = console.counted(len(board.places), "agent")
        console.say(console.wrap(f"{title}: none of {agents} has another place."))
        return
    console.say(console.wrap(f"{title}: {len(moved)} of {len(board.places)} have another place"))
    rows = [
        [
            place.agent,
            _place(place.place_before),
            _place(place.place_after),
            _pair(place.score_before, place.score_after, digits),
        ]
        for place in moved[:_MAX_PLACES]
    ]
    console.table(["Agent", "Place before", "Place after", name], rows, right=[1, 2, 3])
    _note_others(len(moved) - _MAX_PLACES, "agent")


def _place(place: int | None) -> str:
    return "none" if place is None else str(place)


def _note_others(count: int, noun: str) -> None:
    if count > 0:
        console.say(f"(and {console.counted(count, f'more {noun}')}: --json lists all)")
