"""What changed between scorecards, by run and in sum: what `changes` and `rejudge` show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ...judge.card.scorecard import ScoreCard
from ...judge.rejudge.card_changes import CardPair
from ...judge.rejudge.score_change import (
    CAUSES,
    CardChange,
    Cause,
    Flip,
    ItemKind,
    ScoreSplit,
    mean_split,
)
from ...judge.store.card_history import StoredCard
from .board_movement import BoardMovement, TwoBoards

SCHEMA = "ambjudge.changes/1"


@dataclass(frozen=True)
class CardOrigin:
    """Which scorecard of a run is meant, and its scores."""

    made_at: str
    """ISO 8601, UTC."""
    judge: str
    rubric: str
    """Id and version."""
    rubric_sha256: str
    prompt_sha256: str | None
    content_sha256: str
    """Of the run's files."""
    agentic: float | None
    overall: float | None


@dataclass(frozen=True)
class RunChange:
    """What changed for one run."""

    run: str
    path: str
    agent: str | None
    task: str | None
    before: CardOrigin
    after: CardOrigin
    change: CardChange

    @property
    def size(self) -> tuple[float, float, int]:
        """What runs are sorted by: the change of Overall, of Agentic, the number of flips."""
        splits = (self.change.overall, self.change.agentic)
        overall, agentic = (0.0 if split is None else abs(split.change) for split in splits)
        return overall, agentic, len(self.change.flips)


@dataclass(frozen=True)
class CauseSum:
    """What one cause did over all runs that changed."""

    cause: Cause
    runs: int
    """Runs whose scores or verdicts it changed."""
    flips: int
    agentic: float | None
    """Its part of the mean change; None if no run has the score."""
    overall: float | None


@dataclass(frozen=True)
class ItemSum:
    """How often the verdict on one criterion or code changed."""

    kind: ItemKind
    item: str
    flips: int
    up: int
    down: int
    other: int
    """To or from no value."""
    causes: dict[Cause, int]
    """By cause, the number of flips; a flip with two causes counts for both."""


@dataclass(frozen=True)
class Changes:
    """All changes between the scorecards in force and earlier ones."""

    runs: tuple[RunChange, ...]
    """Runs that changed, the largest change first."""
    unchanged: int
    added: int
    """Runs that had no scorecard before."""
    judges: tuple[str, ...]
    """Of the scorecards in force."""
    board: BoardMovement | None

    @property
    def agentic(self) -> ScoreSplit | None:
        """The mean change over the runs that changed, split by cause."""
        return mean_split(run.change.agentic for run in self.runs)

    @property
    def overall(self) -> ScoreSplit | None:
        """As `agentic`."""
        return mean_split(run.change.overall for run in self.runs)

    @property
    def flips(self) -> int:
        return sum(len(run.change.flips) for run in self.runs)

    def by_cause(self) -> list[CauseSum]:
        """A row for each cause, in the order of CAUSES."""
        agentic, overall = self.agentic, self.overall
        runs = Counter(cause for run in self.runs for cause in run.change.causes)
        flips = Counter(
            cause for run in self.runs for flip in run.change.flips for cause in flip.causes
        )
        return [
            CauseSum(
                cause,
                runs[cause],
                flips[cause],
                None if agentic is None else agentic.parts.get(cause, 0.0),
                None if overall is None else overall.parts.get(cause, 0.0),
            )
            for cause in CAUSES
            if runs[cause]
        ]

    def by_item(self) -> list[ItemSum]:
        """A row for each criterion and code that flipped, most flips first."""
        flips: dict[tuple[ItemKind, str], list[Flip]] = {}
        for run in self.runs:
            for flip in run.change.flips:
                flips.setdefault((flip.kind, flip.item), []).append(flip)
        rows = [_item_sum(kind, item, of_item) for (kind, item), of_item in flips.items()]
        return sorted(rows, key=lambda row: (-row.flips, row.kind == "code", row.item))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema": SCHEMA,
            "changed": len(self.runs),
            "unchanged": self.unchanged,
            "added": self.added,
            "judges": list(self.judges),
            "mean_change": {
                "agentic": None if self.agentic is None else asdict(self.agentic),
                "overall": None if self.overall is None else asdict(self.overall),
            },
            "causes": [asdict(row) for row in self.by_cause()],
            "items": [asdict(row) for row in self.by_item()],
            "board": None if self.board is None else asdict(self.board),
            "runs": [asdict(run) for run in self.runs],
        }


def collect(
    pairs: Iterable[CardPair],
    accepts: Callable[[ScoreCard], bool] | None = None,
    on_pair: Callable[[], None] | None = None,
    *,
    with_board: bool = True,
) -> Changes:
    """The changes of these pairs.

    `accepts`: of which runs; the board is always of all runs, and left out where the pairs are not
    those of a whole cohort. `on_pair` is called for each pair.
    """
    boards = TwoBoards()
    runs: list[RunChange] = []
    counts = Counter[str]()
    judges = Counter[str]()
    for pair in pairs:
        if on_pair is not None:
            on_pair()
        before, after = pair.before, pair.after
        if with_board:
            boards.add(None if before is None else before.card, after.card)
        if accepts is not None and not accepts(after.card):
            continue
        judges[after.card.judge.name] += 1
        if before is None:
            counts["added"] += 1
        elif pair.change is None:
            counts["unchanged"] += 1
        else:
            runs.append(_run_change(before, after, pair.change))
    runs.sort(key=lambda run: (tuple(-part for part in run.size), run.run))
    return Changes(
        runs=tuple(runs),
        unchanged=counts["unchanged"],
        added=counts["added"],
        judges=tuple(judge for judge, _ in judges.most_common()),
        board=boards.movement() if runs or counts["added"] else None,
    )


def _run_change(before: StoredCard, after: StoredCard, change: CardChange) -> RunChange:
    run = after.card.run
    return RunChange(
        run=run.id,
        path=str(after.version.path),
        agent=run.agent,
        task=run.task,
        before=_origin(before),
        after=_origin(after),
        change=change,
    )


def _origin(stored: StoredCard) -> CardOrigin:
    card = stored.card
    return CardOrigin(
        made_at=stored.version.made_at,
        judge=card.judge.name,
        rubric=f"{card.rubric.id} {card.rubric.version}",
        rubric_sha256=card.rubric.sha256,
        prompt_sha256=card.judge.prompt_sha256,
        content_sha256=stored.content_sha256,
        agentic=card.agentic,
        overall=card.overall,
    )


def _item_sum(kind: ItemKind, item: str, flips: list[Flip]) -> ItemSum:
    directions = Counter(_direction(flip) for flip in flips)
    causes = Counter(cause for flip in flips for cause in flip.causes)
    return ItemSum(
        kind=kind,
        item=item,
        flips=len(flips),
        up=directions["up"],
        down=directions["down"],
        other=directions["other"],
        causes={cause: causes[cause] for cause in CAUSES if causes[cause]},
    )


def _direction(flip: Flip) -> str:
    """up, down, or other for a verdict that had or has no value."""
    if flip.before is None or flip.after is None or flip.before == flip.after:
        return "other"
    return "up" if flip.after > flip.before else "down"
