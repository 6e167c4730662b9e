"""How the places on the board change when runs get other scorecards.

The board is the one that `leaderboard` prints: all runs of the cohort, by the same score.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ...judge.card.choice import ALL_JUDGES, CardChoice
from ...judge.card.scorecard import ScoreCard
from ..statistics.ranking import leaderboard
from ..tables.cohorts import CardTables
from ..tables.grouping import with_row_names

OUTCOMES = ("overall", "agentic")
"""The score of a board: the first one that some run has."""


@dataclass(frozen=True)
class Place:
    """An agent's place and score on the board before and after.

    A place is None if the agent has none: it is not on the board, or its range overlaps another's.
    """

    agent: str
    place_before: int | None
    place_after: int | None
    score_before: float | None
    score_after: float | None

    @property
    def has_moved(self) -> bool:
        """Whether the place is another one."""
        return self.place_before != self.place_after


@dataclass(frozen=True)
class BoardMovement:
    """The board before and after, in the order of the board after."""

    outcome: str
    runs_before: int
    runs_after: int
    places: tuple[Place, ...]


class TwoBoards:
    """The cohort before and after, filled run by run; each run has one scorecard in either."""

    def __init__(self) -> None:
        self._before, self._after = CardTables(), CardTables()

    def add(self, before: ScoreCard | None, after: ScoreCard) -> None:
        """Add a run; `before` is None if it had no scorecard."""
        if before is not None:
            self._before.add(before)
        self._after.add(after)

    def movement(self) -> BoardMovement | None:
        """The movement between the boards; None without runs before or after."""
        if self._before.is_empty or self._after.is_empty:
            return None
        # One scorecard a run was chosen already, whichever judge gave it.
        choice = CardChoice(judge=ALL_JUDGES)
        before, after = (tables.cohort(choice).runs for tables in (self._before, self._after))
        outcome = _outcome(after)
        old, new = _board(before, outcome), _board(after, outcome)
        agents = [*new, *(agent for agent in old if agent not in new)]
        places = tuple(
            Place(agent, old_place, new_place, old_score, new_score)
            for agent in agents
            for old_place, old_score in [old.get(agent, (None, None))]
            for new_place, new_score in [new.get(agent, (None, None))]
        )
        return BoardMovement(outcome, before.height, after.height, places)


def _outcome(runs: pl.DataFrame) -> str:
    for name in OUTCOMES:
        if runs[name].drop_nulls().len():
            return name
    return OUTCOMES[0]


def _board(runs: pl.DataFrame, outcome: str) -> dict[str, tuple[int | None, float | None]]:
    """By agent, its place and score on the board of all runs, in the board's order."""
    table = leaderboard(with_row_names(runs, "agent"), outcome, scopes=("overall",))
    rows = table.select("agent", "rank", "value").unique("agent", keep="first", maintain_order=True)
    return {agent: (rank, value) for agent, rank, value in rows.iter_rows()}
