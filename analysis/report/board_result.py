"""Leaderboards of a cohort: boards of agents, models or other rows, with what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...errors import ConfigError
from ..statistics.board import board_runs, run_means
from ..statistics.interval_estimates import wide
from ..statistics.ranking import boards_by
from ..statistics.who_ran import who_ran
from ..tables.cohorts import Cohort
from ..tables.flat_tables import json_rows
from ..tables.grouping import BOARDS, check_rows, mixture_notes, with_row_names
from ..tables.number_format import column_digits, interval, number
from ..tables.score_names import AMOUNTS, noun_of, score_of
from .basis import basis, sentences
from .cohort_result import CohortResult, TitledTable
from .display import display

DEFAULT_BOARDS = ("overall", "track")
_STAGES = ("S1", "S2", "S3", "S4", "S5")
_RESOURCES = ("turns", "wall_time_s", "input_tokens", "output_tokens", "value_missing_zero")
HIDDEN_COLUMNS = {
    "overall": ("input_tokens", "output_tokens", "value_missing_zero"),
    "track": (*_STAGES, *_RESOURCES),
    "tier": ("input_tokens", "output_tokens", "value_missing_zero"),
    "task": (*_STAGES, *_RESOURCES, "tasks"),
    "task-tier": (*_STAGES, *_RESOURCES, "tasks"),
}
"""Columns of a board that only its frame has."""


@dataclass(frozen=True, repr=False)
class Leaderboard(CohortResult):
    """Rows ranked on each board, with both populations of each interval."""

    cohort: Cohort
    by: str
    """What a row stands for."""
    outcome: str
    boards: pl.DataFrame
    """`ranking.boards_by`: a row's name is in the column `agent`."""
    who_ran: pl.DataFrame
    """`who_ran.who_ran`: where each row ran, was read and was scored."""
    basis: dict[str, Any]
    """What the scores rest on: a row of `basis.basis`."""
    mixtures: tuple[str, ...]
    """Rows that mix agents or models, and tiers that rows average over."""

    @property
    def title(self) -> str:
        return f"Leaderboard of each {self.by} by {score_of(self.outcome, self.cohort.runs).titled}"

    @property
    def table(self) -> pl.DataFrame:
        if self.by in self.boards.columns:
            return self.boards
        return self.boards.rename({"agent": self.by})

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        return (self.cohort,)

    @property
    def opening(self) -> tuple[str, ...]:
        """What the scores rest on, as sentences that stand above the boards."""
        lines = sentences(self.basis)
        if self.cohort.running:
            lines.append(f"{self.cohort.running_sentence}.")
        if self.outcome in AMOUNTS:
            lines += self._amount_sentences()
        if (
            self.boards["value"].null_count() == self.boards.height
            and not self.basis["unread_runs"]
        ):
            line = f"No run has a known {score_of(self.outcome).name}"
            if self.outcome == "overall":
                line += "; a run without its Task score has no Overall (try the outcome agentic)"
            lines.append(f"{line}.")
        return tuple(lines)

    def _amount_sentences(self) -> Iterator[str]:
        """The mean over all runs of what a run took, and which end the ranks begin at."""
        means = run_means(board_runs(self.cohort.runs), [self.outcome])
        for row in wide(means).iter_rows(named=True):
            if row["value"] is None:
                continue
            population, ends = "new tasks", (row["lo"], row["hi"])
            if row["lo"] is None:
                population, ends = "the same tasks", (row["same_lo"], row["same_hi"])
            digits = column_digits([row["value"], *ends])
            span = ""
            if ends[0] is not None:
                span = f" (95 % interval {interval(*ends, digits)} for {population})"
            mean = number(row["value"], digits)
            yield f"Mean {noun_of(self.outcome)} over all runs: {mean}{span}."
        yield "Rank 1 is the highest mean, be it good or bad."

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.opening, *self.mixtures)

    def displays(self, with_ratings: bool = False) -> Iterator[TitledTable]:
        """A table for each board; `with_ratings`: with the benchmark's own verdicts."""
        score = score_of(self.outcome, self.cohort.runs).titled
        kind = "leaderboard_ratings" if with_ratings else "leaderboard"
        if self._rows_differ:
            title = "Who ran, was read and was scored where"
            yield TitledTable(title, display(self.who_ran, "who_ran", rows_of=self.by))
        table = self.boards
        for scope, name in table.select("scope", "name").unique(maintain_order=True).iter_rows():
            board = "All tracks" if scope == "overall" else f"{scope.capitalize()} {name}"
            hide = ["name", *HIDDEN_COLUMNS[scope]]
            if scope != "overall":
                hide.append("rank_set")
            rows = table.filter((pl.col("scope") == scope) & (pl.col("name") == name))
            yield TitledTable(
                f"{board}, by {score}", display(rows, kind, hide=hide, rows_of=self.by)
            )

    @property
    def _rows_differ(self) -> bool:
        """Whether some row lacks tasks and tiers that another has, or scores of its runs."""
        columns = ("cells", "cells_scored", "of_cells"), ("read", "scored", "runs")
        return any(
            not self.who_ran.select(
                pl.all_horizontal(pl.col(name) == pl.col(full) for name in parts).all()
            ).item()
            for *parts, full in columns
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "ambjudge.leaderboard/1",
            "outcome": self.outcome,
            "by": self.by,
            "basis": self.basis,
            "running": self.cohort.running,
            "mixtures": list(self.mixtures),
            "who_ran": json_rows(self.who_ran),
            "rows": json_rows(self.boards),
        }


def rank(
    cohort: Cohort,
    by: str = "agent",
    boards: Sequence[str] = (),
    outcome: str = "overall",
) -> Leaderboard:
    """Rank what `by` makes a row of (`grouping.ROWS`, or a field of the runs) on kinds of boards.

    `boards`: of `grouping.BOARDS`; by default over all runs and by track. ConfigError for an
    unknown name or outcome.
    """
    check_rows(by, cohort.runs)
    for board in boards:
        if board not in BOARDS:
            raise ConfigError(f"there is no board {board!r}", f"choose from {', '.join(BOARDS)}")
    runs = with_row_names(cohort.runs, by)
    return Leaderboard(
        cohort=cohort,
        by=by,
        outcome=outcome,
        boards=boards_by(runs, outcome, boards or DEFAULT_BOARDS),
        who_ran=who_ran(runs, outcome),
        basis=basis(cohort).row(0, named=True),
        mixtures=tuple(mixture_notes(cohort.runs, by)),
    )
