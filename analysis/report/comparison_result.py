"""Two agents, judges, rubrics or releases of scorecards compared: numbers, sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import polars as pl

from ...judge.card.choice import ALL_JUDGES, CardChoice
from ..statistics.comparison import (
    Comparison,
    compare,
    comparison_json,
    comparison_sentences,
    infer_kind,
    make_side,
    split_sides,
)
from ..tables.cohorts import Cohort
from ..tables.grouping import with_row_names
from ..tables.number_format import column_digits, number
from ..tables.score_names import noun_of
from .cohort_result import CohortResult, TitledTable
from .display import Cell, Display, display


@dataclass(frozen=True, repr=False)
class ComparisonResult(CohortResult):
    """How far the first side is from the second."""

    comparison: Comparison
    """Means, estimates for both populations, margin and verdict."""
    sources: tuple[Cohort, ...]
    """The scorecards that hold both sides, or those of each side."""

    @property
    def title(self) -> str:
        first, second = self.comparison.names
        return f"{first} minus {second}"

    @property
    def verdict(self) -> str:
        """`different`, `equivalent` or `cannot say`, for new tasks."""
        return self.comparison.verdict

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        return self.sources

    @property
    def table(self) -> pl.DataFrame:
        return self.comparison.table

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(comparison_sentences(self.comparison))

    def displays(self) -> Iterator[TitledTable]:
        yield TitledTable("", self._sides())
        hidden = ("first", "second", "n", "n_clusters")
        yield TitledTable("", display(self.table, "compare", hide=hidden))

    def to_dict(self) -> dict[str, Any]:
        return comparison_json(self.comparison)

    def _sides(self) -> Display:
        """The mean of each side, and how many of its runs were compared."""
        comparison = self.comparison
        outcome = noun_of(comparison.outcome)
        sides = zip(
            comparison.names, comparison.means, comparison.runs, comparison.all_runs, strict=True
        )
        digits = column_digits(comparison.means)
        rows = tuple(
            (Cell(name), Cell(number(mean, digits)), Cell(f"{runs} of {total}"))
            for name, mean, runs, total in sides
        )
        return Display(
            columns=(comparison.by, "mean", "runs"),
            headings=(comparison.by.capitalize(), f"Mean {outcome}", "Runs compared"),
            numeric=(False, True, True),
            rows=rows,
            notes=(),
        )


def choice_for_names(choice: CardChoice, by: str | None) -> CardChoice:
    """The choice of scorecards that keeps both sides: all judges or versions if names may be of
    these."""
    if by not in ("judge", "rubric", None):
        return choice
    judge = choice.judge or (None if by == "rubric" else ALL_JUDGES)
    return replace(choice, judge=judge, versions=by in ("rubric", None))


def side_names(places: tuple[str, str]) -> tuple[str, str]:
    """What two sets of scorecards are called: the last parts of their paths, unless alike."""
    short_names = PurePath(places[0]).name, PurePath(places[1]).name
    is_clear = all(short_names) and short_names[0] != short_names[1]
    return short_names if is_clear else places


def compare_names(
    cohort: Cohort,
    names: tuple[str, str],
    *,
    by: str | None = None,
    outcome: str = "overall",
    margin: float | None = None,
) -> ComparisonResult:
    """Compare two agents, judges, rubrics or other rows of a cohort, read by `choice_for_names`.

    `by`: what the names are of; None infers it. For errors see `infer_kind`, `split_sides` and
    `compare`.
    """
    by = by or infer_kind(cohort.runs, names)
    runs = cohort.runs
    if by not in ("judge", "rubric", "release"):
        runs = with_row_names(runs, by)
    first, second = split_sides(runs, by, names)
    comparison = compare(first, second, by=by, outcome=outcome, margin=margin)
    return ComparisonResult(comparison, (cohort,))


def compare_cohorts(
    first: Cohort,
    second: Cohort,
    names: tuple[str, str],
    *,
    by: str | None = None,
    outcome: str = "overall",
    margin: float | None = None,
) -> ComparisonResult:
    """Compare two sets of scorecards under these names."""
    sides = make_side(names[0], first.runs), make_side(names[1], second.runs)
    comparison = compare(*sides, by=by or "release", outcome=outcome, margin=margin)
    return ComparisonResult(comparison, (first, second))
