"""Scores as people read them: names, scales, and the digits of a mean."""

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
    """Decimals of a mean."""

    @property
    def titled(self) -> str:
        """Name and scale."""
        return f"{self.name} ({self.scale})" if self.scale else self.name


OVERALL = Score("overall", "Overall", "0–100", 0.0, 100.0, 1)


AMOUNTS: dict[str, tuple[str, str]] = {
    "turns": ("Turns", "a run"),
    "calls": ("Calls", "a run"),
    "failed_calls": ("Failed calls", "a run"),
    "failed_steps": ("Failed steps", "a run"),
    "wall_time_s": ("Time", "seconds a run"),
    "input_tokens": ("Input tokens", "a run"),
    "output_tokens": ("Output tokens", "a run"),
    "total_tokens": ("Tokens", "read and written in a run"),
    "cost_usd": ("Cost", "dollars a run"),
}
"""Columns of what a run took, 0 or more: name and unit."""
_AMOUNTS_BY_NAME = {
    **{column: column for column in AMOUNTS},
    "time": "wall_time_s",
    "tokens": "total_tokens",
    "cost": "cost_usd",
}
"""Column of an amount by the names that users give it."""
_NAMES = {"overall": "Overall", "agentic": "Agentic", "task_score": "Task", "task": "Task"}


SCORES = ("overall", "agentic", "task_score", *STAGE_NAMES)
"""Columns of scores that every run frame has."""


def outcome_column(name: str) -> str:
    """The column of an outcome that a user names: a score, a group of a rubric (`group.NAME`), an
    amount (turns, time, tokens, cost, ...), or an outcome that came with the runs.

    `outcome.turns` is one that came with the runs under the name of an amount.
    """
    if name in SCORES or name.startswith(GROUP):
        return name
    if name in _AMOUNTS_BY_NAME:
        return _AMOUNTS_BY_NAME[name]
    return OUTCOME + name.removeprefix(OUTCOME)


def score_name(column: str) -> str:
    """The name of a column: Overall, Task, `S3 Validate`, or that of a group or an outcome."""
    if column in AMOUNTS:
        return AMOUNTS[column][0]
    name = _NAMES.get(column)
    return name or stage_title(column.removeprefix(OUTCOME).removeprefix(GROUP))


def noun_of(column: str) -> str:
    """A column in the middle of a sentence: `overall`, `turns a run`, `cost in dollars a run`."""
    if column in AMOUNTS:
        name, unit = AMOUNTS[column]
        joint = " " if unit.startswith(("a run", "read")) else " in "
        return f"{name.lower()}{joint}{unit}"
    return column.removeprefix(OUTCOME)


def limits_of(column: str, runs: pl.DataFrame | None = None) -> tuple[float, float]:
    """The least and the greatest possible value of a column; infinite if unknown."""
    if column in AMOUNTS:
        return 0.0, math.inf
    score = score_of(column, runs)
    if score.low is None or score.high is None:
        return -math.inf, math.inf
    return score.low, score.high


def score_of(column: str, runs: pl.DataFrame | None = None) -> Score:
    """The score in a column; the scale of another harness's outcome is taken from `runs`."""
    if column == "overall":
        return OVERALL
    name = score_name(column)
    if column in AMOUNTS:
        return Score(column, name, AMOUNTS[column][1], low=0.0)
    if column in ("agentic", "task_score", *STAGE_NAMES) or column.startswith(GROUP):
        return Score(column, name, "0–1", 0.0, 1.0)
    values = pl.Series(dtype=pl.Float64)
    if runs is not None and column in runs.columns:
        values = runs[column].drop_nulls()
    if values.is_empty() or not values.dtype.is_numeric():
        return Score(column, name, "")
    if values.cast(pl.Float64).is_in([0.0, 1.0]).all():
        return Score(column, name, "share of runs, 0–1", 0.0, 1.0)
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    digits = 2 if high - low < 20 else 1
    return Score(column, name, f"{low:g} to {high:g} in these runs", digits=digits)
