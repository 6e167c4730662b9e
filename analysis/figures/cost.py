"""Cost against score as a figure, by track."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ...console import cells
from ..statistics.run_arrays import select_runs
from ..tables.frames import with_total_tokens
from ..tables.score_names import Score
from .figure_result import FigureResult, NothingToDraw, Row, Tables, tidy_rows
from .sheet import Sheet
from .style import (
    BLUE,
    INK,
    MARKERS,
    MAX_AGENTS,
    SERIES,
    SKY,
    TEXT_SIZE,
    distinct_labels,
    draw_runs,
    format_number,
    label_log_axis,
    sampling_step,
    track_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path

COSTS = (
    ("cost_usd", "cost of the run, US$ (log)"),
    ("total_tokens", "tokens of the run (log)"),
    ("turns", "turns of the run (log)"),
)
"""Columns of cost with titles of the axis. The first that enough runs have is drawn; the table has
all."""
MIN_RUNS = 3
_MAX_LEGEND_NAME = 40
_LEGEND_CHARACTER_INCHES = 0.07


class _AgentMark(NamedTuple):
    """How an agent's centre is drawn: as a marker or, among many agents, as a number."""

    colour: str
    marker: str | int

    @property
    def style(self) -> dict[str, Any]:
        """Arguments of `plot`."""
        if isinstance(self.marker, int):
            size = 6.5 * len(str(self.marker)) ** 0.8
            return {
                "marker": _number_outline(self.marker),
                "color": self.colour,
                "linestyle": "",
                "markersize": size,
                "markeredgewidth": 0.2,
            }
        return {
            "marker": self.marker,
            "color": self.colour,
            "linestyle": "",
            "markersize": 6.5,
            "markeredgecolor": INK,
            "markeredgewidth": 0.7,
        }


def _number_outline(number: int) -> Path:
    """The outline of a number with its middle at the origin, as a marker."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    outline = TextPath((0, 0), str(number), size=10, prop=FontProperties(weight="bold"))
    middle = outline.get_extents().get_points().mean(axis=0)
    return Path(outline.vertices - middle, outline.codes)


def cost_score(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Cost against the score, run by run, for each track.

    Titles give the correlation over runs and within cells.
    """
    selected_runs, _ = select_runs(runs)
    selected_runs = with_total_tokens(selected_runs)
    cost, axis_title = _cost_column(selected_runs)
    data = _runs_with_cost_and_score(selected_runs, cost, score.column)
    step, sampling_note = sampling_step(data.height)
    data = data.with_columns(is_drawn=pl.int_range(pl.len()) % step == 0)
    tracks = sorted(data["track"].unique().to_list())
    agents = sorted(data["agent"].unique().to_list())
    marks = _agent_marks(agents)
    correlations = {
        (row["track"], row["kind"]): row for row in tidy_rows(tables, "cost", cost=cost)
    }
    axes_range = float(data[cost].min()), float(data[cost].max())  # type: ignore[arg-type]
    figure, grid = sheet.small_multiples(
        len(tracks), max_columns=1 if sheet.narrow else 3, height=2.25, margin=0.75
    )
    for track, ax in zip(tracks, grid, strict=True):
        _draw_track(ax, data.filter(pl.col("track") == track), cost, score.column, marks)
        label_log_axis(ax, *axes_range)
        ax.set_title(_track_title(track, correlations), linespacing=1.4)
    figure.supxlabel(axis_title, fontsize=TEXT_SIZE)
    figure.supylabel(score.titled, fontsize=TEXT_SIZE)
    _add_agent_legend(figure, sheet, marks)
    rows = sheet.rows.plural
    return FigureResult(
        figure,
        caption=(
            f"Small dots: runs; marks or numbers: {rows} (geometric mean of cost, mean score). r"
            " over runs mixes differences between them with those between their runs; within cell"
            f" compares repeats of the same agent, task and tier.{sampling_note}"
        ),
        description=(
            f"Cost against {score.name} on {len(tracks)} tracks for {len(agents)} {rows}."
        ),
    )


def _cost_column(runs: pl.DataFrame) -> tuple[str, str]:
    """The column of cost that is drawn, and the title of its axis."""
    for column, title in COSTS:
        n_positive = (runs[column].cast(pl.Float64) > 0).sum()
        if n_positive >= MIN_RUNS:
            return column, title
    return COSTS[0]


def _runs_with_cost_and_score(runs: pl.DataFrame, cost: str, score: str) -> pl.DataFrame:
    data = runs.filter(
        (pl.col(cost) > 0)
        & pl.col(cost).cast(pl.Float64).is_finite()
        & pl.col(score).is_not_null()
        & pl.col(score).cast(pl.Float64).is_finite()
    )
    if data.height < MIN_RUNS:
        raise NothingToDraw("fewer than three runs have a cost and a score")
    return data


def _agent_marks(agents: list[str]) -> dict[str, _AgentMark]:
    """Colour and marker of each agent, or its number if there are more agents than markers."""
    if len(agents) > len(MARKERS):
        return {agent: _AgentMark(BLUE, number) for number, agent in enumerate(agents, 1)}
    return {
        agent: _AgentMark(SERIES[index % len(SERIES)], MARKERS[index])
        for index, agent in enumerate(agents)
    }


def _draw_track(
    ax: Axes, runs: pl.DataFrame, cost: str, score: str, marks: dict[str, _AgentMark]
) -> None:
    """Draw the runs of a track as dots, and each agent's centre as a large mark."""
    for agent, mark in marks.items():
        agent_runs = runs.filter(pl.col("agent") == agent)
        if agent_runs.is_empty():
            continue
        dots = agent_runs.filter("is_drawn")
        colour = SKY if isinstance(mark.marker, int) else mark.colour
        draw_runs(ax, dots[cost], dots[score], colour, size=8, alpha=0.5)
        geometric_mean_cost = math.exp(np.log(agent_runs[cost].to_numpy()).mean())
        mean_score = float(agent_runs[score].mean())  # type: ignore[arg-type]
        ax.plot([geometric_mean_cost], [mean_score], clip_on=False, zorder=4, **mark.style)
    ax.grid()


def _track_title(track: str, correlations: dict[tuple[str, str], Row]) -> str:
    """The track's name and, on a second line, its correlations of cost with score."""
    notes = []
    for kind, title in (("runs_log_cost", "r runs"), ("within_cell", "within cell")):
        row = correlations.get((track, kind))
        if row is not None and row["value"] is not None:
            notes.append(f"{title} {format_number(row['value'], 2)}")
    title = track_label(track)
    return f"{title}\n{', '.join(notes)}" if notes else title


def _add_agent_legend(figure: Figure, sheet: Sheet, marks: dict[str, _AgentMark]) -> None:
    """Name the marks, in as many columns as the longest name leaves room for."""
    from matplotlib.lines import Line2D

    names = distinct_labels(list(marks)[:MAX_AGENTS], _MAX_LEGEND_NAME)
    handles = [
        Line2D([], [], label=name, **mark.style)
        for name, mark in zip(names, marks.values(), strict=False)
    ]
    column_width = _LEGEND_CHARACTER_INCHES * (max(cells(name) for name in names) + 4)
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=max(1, min(len(handles), int(sheet.width / column_width))),
        handletextpad=0.2,
        columnspacing=1.2,
    )


__all__ = ["cost_score"]
