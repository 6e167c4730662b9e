"""Stage scores by agent as a figure: a matrix coloured by distance from the other agents."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import polars as pl

from ...rounding import fixed
from ..statistics.run_arrays import select_runs
from ..tables.frames import stage_columns
from ..tables.score_names import Score, score_name
from .figure_result import FigureResult, NothingToDraw, Row, Tables
from .sheet import Sheet
from .style import (
    BLUE,
    MAX_AGENTS,
    NOTE_SIZE,
    ORANGE,
    TEXT_SIZE,
    distinct_labels,
    format_signed,
    strip_x_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_STAGES = 12
"""Columns of the matrix; the table has all stages."""
MIN_LARGEST_GAP = 0.05
"""Distances below this never have the strongest colour: differences that small are noise."""


def stage_profile(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Stage means by agent, coloured by their distance from the agents' mean on the same tracks."""
    selected_runs, _ = select_runs(runs)
    stages = stage_columns(selected_runs)[:MAX_STAGES]
    cells = _stage_means(selected_runs, stages)
    agents = _agents_by_gap(cells)[:MAX_AGENTS]
    row_height = 0.72 if sheet.narrow else 0.5
    figure = sheet.blank_figure(
        0.75 + row_height * len(agents), max(sheet.width, 0.68 * len(stages))
    )
    ax = figure.subplots()
    largest_gap = max(MIN_LARGEST_GAP, float(cells["gap"].abs().max() or 0))  # type: ignore[arg-type]
    for cell in cells.iter_rows(named=True):
        if cell["agent"] not in agents:
            continue
        x, y = stages.index(cell["stage"]), agents.index(cell["agent"])
        _draw_stage_mean(ax, sheet, x, y, cell, largest_gap)
    sheet.name_rows(ax, agents, offset=17.5)
    _name_stages(ax, sheet, stages)
    return FigureResult(
        figure,
        caption=(
            "Mean stage score (0–1) over the runs that have one, and its distance from the mean of"
            f" {sheet.rows.plural} on the same tracks: blue above, orange below. An unscored stage"
            " is left out, never counted as 0."
        ),
        description=f"Stage means of {len(agents)} {sheet.rows.plural}.",
    )


def _stage_means(runs: pl.DataFrame, stages: list[str]) -> pl.DataFrame:
    """One row for each agent and stage: mean `score`, `gap` to the agents' mean, `n` runs.

    The gap is taken within tracks and then averaged over an agent's runs, so that an agent with
    runs on hard tracks does not look worse for it.
    """
    long = (
        runs.select("agent", "track", *stages)
        .unpivot(stages, index=["agent", "track"], variable_name="stage", value_name="score")
        .filter(pl.col("score").is_finite() & pl.col("score").is_not_null())
    )
    if long.is_empty():
        raise NothingToDraw("no run has a stage score")
    by_track = long.group_by("agent", "track", "stage", maintain_order=True).agg(
        pl.col("score").mean(), pl.len().alias("n")
    )
    mean_of_agents = pl.col("score").mean().over("track", "stage")
    with_gaps = by_track.with_columns(gap=pl.col("score") - mean_of_agents)
    weight = pl.col("n") / pl.col("n").sum()
    return with_gaps.group_by("agent", "stage", maintain_order=True).agg(
        (pl.col("score") * weight).sum(), (pl.col("gap") * weight).sum(), pl.col("n").sum()
    )


def _agents_by_gap(cells: pl.DataFrame) -> list[str]:
    """Agents in order of their mean gap, the best first."""
    mean_gaps = cells.group_by("agent", maintain_order=True).agg(
        # Rounded, so that ties are ties and are ordered by name.
        pl.col("gap").mean().round(9)
    )
    return mean_gaps.sort(["gap", "agent"], descending=[True, False])["agent"].to_list()


def _draw_stage_mean(ax: Axes, sheet: Sheet, x: int, y: int, cell: Row, largest_gap: float) -> None:
    colour = BLUE if cell["gap"] > 0 else ORANGE
    strength = min(1.0, abs(cell["gap"]) / largest_gap)
    middle = sheet.draw_cell(ax, x, y, colour, alpha=0.04 + 0.38 * strength)
    separator = "\n" if sheet.narrow else "   "
    text = f"{fixed(cell['score'], 2)}{separator}{format_signed(cell['gap'], 2)}"
    ax.text(x, middle - 0.12, text, ha="center", va="center", fontsize=TEXT_SIZE)
    ax.text(x, middle + 0.25, f"n = {cell['n']}", ha="center", va="center", fontsize=NOTE_SIZE)


def _name_stages(ax: Axes, sheet: Sheet, stages: list[str]) -> None:
    """Name the columns above the matrix."""
    ax.set_xlim(-0.5, len(stages) - 0.5)
    titles = distinct_labels([score_name(stage) for stage in stages], 20)
    if sheet.narrow:
        titles = [fill(title, 9) for title in titles]
    ax.set_xticks(range(len(stages)), titles)
    ax.xaxis.tick_top()
    strip_x_axis(ax)


__all__ = ["stage_profile"]
