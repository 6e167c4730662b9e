"""Cost against score as a figure, by track."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from ..statistics.run_arrays import select_runs
from ..tables.score_names import Score
from .figure_result import FigureResult, NothingToDraw, Row, Tables, tidy_rows
from .sheet import Sheet
from .style import (
    INK,
    MARKERS,
    SERIES,
    SKY,
    distinct_labels,
    draw_runs,
    format_number,
    sampling_step,
    track_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTS = (
    ("cost_usd", "cost of the run, US$ (log)"),
    ("total_tokens", "tokens of the run (log)"),
    ("turns", "turns of the run (log)"),
)
"""Columns of cost with titles of the axis. The first that enough runs have is drawn; the table has
all."""
MIN_RUNS = 3


class _AgentMark(NamedTuple):
    colour: str
    marker: str


def cost_score(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Cost against the score, run by run, for each track.

    Titles give the correlation over runs and within cells.
    """
    selected_runs, _ = select_runs(runs)
    selected_runs = selected_runs.with_columns(
        total_tokens=pl.col("input_tokens") + pl.col("output_tokens")
    )
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
    figure, grid = sheet.small_multiples(
        len(tracks), max_columns=1 if sheet.narrow else 3, height=2.25, margin=0.75
    )
    for track, ax in zip(tracks, grid, strict=True):
        _draw_track(ax, data.filter(pl.col("track") == track), cost, score.column, marks)
        ax.set_title(_track_title(track, correlations), linespacing=1.4)
    figure.supxlabel(axis_title, fontsize=9)
    figure.supylabel(score.titled, fontsize=9)
    if _are_distinguishable(agents):
        _add_agent_legend(figure, marks, max_columns=2 if sheet.narrow else 6)
    return FigureResult(
        figure,
        caption=(
            "Small dots: runs; large marks: agents (geometric mean of cost, mean score). r over"
            " runs mixes differences between agents with those between their runs; within cell"
            f" compares repeats of the same agent, task and tier.{sampling_note}"
        ),
        description=(
            f"Cost against {score.name} on {len(tracks)} tracks for {len(agents)} agents."
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


def _are_distinguishable(agents: list[str]) -> bool:
    """Whether there is a marker for each agent."""
    return len(agents) <= len(MARKERS)


def _agent_marks(agents: list[str]) -> dict[str, _AgentMark]:
    """Colour and marker of each agent; the same for all if there are too many agents."""
    if not _are_distinguishable(agents):
        return dict.fromkeys(agents, _AgentMark(SKY, "o"))
    return {
        agent: _AgentMark(SERIES[index % len(SERIES)], MARKERS[index])
        for index, agent in enumerate(agents)
    }


def _draw_track(
    ax: Axes, runs: pl.DataFrame, cost: str, score: str, marks: dict[str, _AgentMark]
) -> None:
    """Draw the runs of a track as dots, and each agent's centre as a large mark."""
    ax.set_xscale("log")
    for agent, mark in marks.items():
        agent_runs = runs.filter(pl.col("agent") == agent)
        if agent_runs.is_empty():
            continue
        dots = agent_runs.filter("is_drawn")
        draw_runs(ax, dots[cost], dots[score], mark.colour, size=8, alpha=0.5)
        geometric_mean_cost = math.exp(np.log(agent_runs[cost].to_numpy()).mean())
        mean_score = float(agent_runs[score].mean())  # type: ignore[arg-type]
        ax.plot(
            [geometric_mean_cost],
            [mean_score],
            mark.marker,
            color=mark.colour,
            markersize=6.5,
            markeredgecolor=INK,
            markeredgewidth=0.7,
            zorder=4,
        )
    ax.grid()
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _track_title(track: str, correlations: dict[tuple[str, str], Row]) -> str:
    """The track's name and, on a second line, its correlations of cost with score."""
    notes = []
    for kind, title in (("runs_log_cost", "r runs"), ("within_cell", "within cell")):
        row = correlations.get((track, kind))
        if row is not None and row["value"] is not None:
            notes.append(f"{title} {format_number(row['value'], 2)}")
    title = track_label(track)
    return f"{title}\n{', '.join(notes)}" if notes else title


def _add_agent_legend(figure: Figure, marks: dict[str, _AgentMark], max_columns: int) -> None:
    from matplotlib.lines import Line2D

    names = distinct_labels(list(marks), 18)
    handles = [
        Line2D(
            [], [], marker=mark.marker, color=mark.colour, linestyle="", markersize=6, label=name
        )
        for name, mark in zip(names, marks.values(), strict=True)
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(max_columns, len(handles)),
        handletextpad=0.2,
    )


__all__ = ["cost_score"]
