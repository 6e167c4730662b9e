"""Tables of what changed between two scorecards of the same runs, as `rejudge` and `rubric diff`
print them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import console
from ..rounding import fixed

if TYPE_CHECKING:
    from ..judge.rejudge.score_change import CardChange, ScoreSplit
    from ..judge.rejudge.update import CardUpdate


def show_renewed(runs: Sequence[CardUpdate]) -> None:
    """Print how many scorecards were renewed, and what changed."""
    renewed = [run for run in runs if not run.kept]
    console.say(f"{console.counted(len(renewed), 'scorecard')} renewed")
    kept = len(runs) - len(renewed)
    if kept:
        console.say(
            f"{console.counted(kept, 'scorecard')} kept, as the new ones would lack verdicts"
            " (--incomplete replaces them)"
        )
    show_changes(renewed)


def show_changes(runs: Sequence[CardUpdate]) -> None:
    """Print the mean change by cause, the changed verdicts by criterion, and the agents whose rank
    changed."""
    changes = [run.change for run in runs if run.change is not None]
    if changes:
        _show_causes(changes)
    _show_flips(changes)
    _show_ranks(runs)


def _show_causes(changes: Sequence[CardChange]) -> None:
    from ..judge.rejudge.score_change import mean_split

    agentic = mean_split(change.agentic for change in changes)
    overall = mean_split(change.overall for change in changes)
    rows = []
    if agentic is not None:
        rows.append(_split_row("Agentic", agentic, digits=4))
    if overall is not None:
        rows.append(_split_row("Overall", overall, digits=2))
    console.say()
    console.say(
        f"Mean change over {console.counted(len(changes), 'run')} with an earlier scorecard, split"
        " by its cause"
    )
    console.table(
        ["Score", "Before", "After", "Change", "Text", "Weights", "Judge", "Data"],
        rows,
        right=range(1, 8),
    )


def _split_row(name: str, split: ScoreSplit, digits: int) -> list[str]:
    causes = (split.change, split.text, split.weights, split.judge, split.data)
    return [
        name,
        fixed(split.before, digits),
        fixed(split.after, digits),
        *(f"{cause:+.{digits}f}" for cause in causes),
    ]


def _show_flips(changes: Sequence[CardChange]) -> None:
    flips: dict[str, Counter[str]] = {}
    for change in changes:
        for flip in change.flips:
            direction = _direction(flip.before, flip.after)
            flips.setdefault(flip.criterion, Counter())[direction] += 1
    if not flips:
        return
    rows = [
        [criterion, str(count.total()), *(str(count[key]) for key in ("up", "down", "other"))]
        for criterion, count in sorted(flips.items())
    ]
    console.say()
    console.table(["Criterion", "Flips", "Up", "Down", "Other"], rows, right=range(1, 5))


def _direction(before: float | None, after: float | None) -> str:
    """up, down, or other for a verdict that was or became unscored."""
    if before is None or after is None or before == after:
        return "other"
    return "up" if after > before else "down"


def _show_ranks(runs: Sequence[CardUpdate]) -> None:
    from ..judge.rejudge.score_change import rank_changes

    pairs = [(run.before, run.after) for run in runs if run.before is not None]
    ranks = rank_changes([before for before, _ in pairs], [after for _, after in pairs])
    moved = [rank for rank in ranks if rank.before != rank.after]
    if moved:
        console.say()
        console.table(
            ["Agent", "Rank before", "Rank after"],
            [[rank.name, str(rank.before), str(rank.after)] for rank in moved],
            right=[1, 2],
        )
