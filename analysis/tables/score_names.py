"""A score as people read it: its name, its scale, and how many digits a mean of it bears."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from ...trajectories.stages import STAGE_NAMES, stage_title
from .frames import GROUP, OUTCOME


@dataclass(frozen=True)
class Score:
    """A numeric column of a run frame that tables and figures are about."""

    column: str
    name: str
    scale: str
    """`0–100`; of a score of another harness the values that occur."""
    low: float | None = None
    high: float | None = None
    digits: int = 2
    """Behind the point, of a mean."""

    @property
    def titled(self) -> str:
        """Name and scale."""
        return f"{self.name} ({self.scale})" if self.scale else self.name


OVERALL = Score("overall", "Overall", "0–100", 0.0, 100.0, 1)


def score_name(column: str) -> str:
    """A column as people call it: Overall, Task, `S3 Validate`, the name of a group or of another
    harness's outcome."""
    known = {"overall": "Overall", "agentic": "Agentic", "task_score": "Task", "task": "Task"}
    return known.get(column) or stage_title(column.removeprefix(OUTCOME).removeprefix(GROUP))


def limits_of(column: str, runs: pl.DataFrame | None = None) -> tuple[float, float]:
    """Where the values of a column can be, and intervals of their means end; infinite where nobody
    knows."""
    score = score_of(column, runs)
    return (
        (-math.inf, math.inf)
        if score.low is None or score.high is None
        else (score.low, score.high)
    )


def score_of(column: str, runs: pl.DataFrame | None = None) -> Score:
    """The score in a column; `runs` tell the scale of what another harness found."""
    if column == "overall":
        return OVERALL
    name = score_name(column)
    if column in ("agentic", "task_score", *STAGE_NAMES) or column.startswith(GROUP):
        return Score(column, name, "0–1", 0.0, 1.0)
    values = (
        pl.Series(dtype=pl.Float64)
        if runs is None or column not in runs.columns
        else runs[column].drop_nulls()
    )
    if values.is_empty() or not values.dtype.is_numeric():
        return Score(column, name, "")
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    if values.is_in([0.0, 1.0]).all():
        return Score(column, name, "share of runs, 0–1", 0.0, 1.0)
    return Score(
        column, name, f"{low:g} to {high:g} in these runs", digits=2 if high - low < 20 else 1
    )
