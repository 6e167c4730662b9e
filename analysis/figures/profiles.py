"""Stages against agents as a heatmap, and cost against score by track."""

from __future__ import annotations

import math
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from ..statistics.run_arrays import select_runs
from ..tables.frames import stage_columns
from ..tables.score_names import Score, score_name
from . import style
from .boards import MOST_AGENTS
from .figure_result import Drawn, Nothing, Tables, tidy_rows
from .style import BLUE, INK, MARKERS, ORANGE, SERIES, SKY, Sheet

MOST_STAGES = 12
"""Columns of the matrix; the table has all."""
COSTS = (
    ("cost_usd", "cost of the run, US$ (log)"),
    ("total_tokens", "tokens of the run (log)"),
    ("turns", "turns of the run (log)"),
)
"""The first that enough runs have is drawn; the table has all."""


def stage_profile(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Stage means by agent, coloured by the distance from what agents reach on the same tracks."""
    table = select_runs(runs)[0]
    stages = stage_columns(table)[:MOST_STAGES]
    long = (
        table.select("agent", "track", *stages)
        .unpivot(stages, index=["agent", "track"], variable_name="stage", value_name="score")
        .filter(pl.col("score").is_finite() & pl.col("score").is_not_null())
    )
    if long.is_empty():
        raise Nothing("no run has a stage score")
    by_track = long.group_by("agent", "track", "stage", maintain_order=True).agg(
        pl.col("score").mean(), pl.len().alias("n")
    )
    typical = pl.col("score").mean().over("track", "stage")
    gaps = by_track.with_columns(gap=pl.col("score") - typical)
    weight = pl.col("n") / pl.col("n").sum()
    cells = gaps.group_by("agent", "stage", maintain_order=True).agg(
        (pl.col("score") * weight).sum(), (pl.col("gap") * weight).sum(), pl.col("n").sum()
    )
    order = (
        cells.group_by("agent", maintain_order=True)
        .agg(pl.col("gap").mean().round(9))
        .sort(["gap", "agent"], descending=[True, False])
    )
    agents = order["agent"].to_list()[:MOST_AGENTS]
    biggest = max(0.05, float(cells["gap"].abs().max() or 0))  # type: ignore[arg-type]
    apart = "\n" if sheet.narrow else "   "
    with style.styled():
        figure = sheet.blank(
            0.75 + (0.78 if sheet.narrow else 0.5) * len(agents),
            max(sheet.width, 0.68 * len(stages)),
        )
        ax = figure.subplots()
        for row in cells.iter_rows(named=True):
            if row["agent"] not in agents:
                continue
            y, x = agents.index(row["agent"]), stages.index(row["stage"])
            colour = BLUE if row["gap"] > 0 else ORANGE
            middle = sheet.field(
                ax, x, y, colour, 0.04 + 0.38 * min(1.0, abs(row["gap"]) / biggest)
            )
            text = f"{row['score']:.2f}{apart}{style.signed(row['gap'], 2)}"
            ax.text(x, middle - 0.12, text, ha="center", va="center", fontsize=9)
            ax.text(x, middle + 0.25, f"n = {row['n']}", ha="center", va="center", fontsize=7)
        sheet.named_rows(ax, style.labels(agents), points=17.5)
        ax.set_xlim(-0.5, len(stages) - 0.5)
        titles = style.labels([score_name(stage) for stage in stages], 20)
        ax.set_xticks(
            range(len(stages)), [fill(title, 9) if sheet.narrow else title for title in titles]
        )
        ax.xaxis.tick_top()
        style.bare_columns(ax)
    return Drawn(
        figure,
        "Mean stage score (0–1) over the runs that have one, and its distance from the mean of"
        " agents on the same tracks: blue above, orange below. An unscored stage is left out, never"
        " counted as 0.",
        f"Stage means of {len(agents)} agents.",
    )


def cost_score(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Cost against the score, run by run, for each track, with the correlation over runs and within
    cells."""
    table = select_runs(runs)[0].with_columns(
        total_tokens=pl.col("input_tokens") + pl.col("output_tokens")
    )
    usable = [pair for pair in COSTS if (table[pair[0]].cast(pl.Float64) > 0).sum() >= 3]
    cost, axis_title = usable[0] if usable else COSTS[0]
    data = table.filter(
        (pl.col(cost) > 0)
        & pl.col(cost).cast(pl.Float64).is_finite()
        & pl.col(score.column).is_not_null()
        & pl.col(score.column).cast(pl.Float64).is_finite()
    )
    if data.height < 3:
        raise Nothing("fewer than three runs have a cost and a score")
    step, sampled = style.thinned(data.height)
    data = data.with_columns(drawn=pl.int_range(pl.len()) % step == 0)
    tracks = sorted(data["track"].unique().to_list())
    agents = sorted(data["agent"].unique().to_list())
    coloured = len(agents) <= len(MARKERS)
    correlation = {(r["track"], r["kind"]): r for r in tidy_rows(tables, "cost", cost=cost)}
    with style.styled():
        figure, grid = sheet.small_multiples(len(tracks), 1 if sheet.narrow else 3, 2.25, 0.75)
        for at, ax in enumerate(grid):
            part = data.filter(pl.col("track") == tracks[at])
            ax.set_xscale("log")
            for k, agent in enumerate(agents):
                own = part.filter(pl.col("agent") == agent)
                if own.is_empty():
                    continue
                colour = SERIES[k % len(SERIES)] if coloured else SKY
                dots = own.filter("drawn")
                style.points_cloud(ax, dots[cost], dots[score.column], colour, size=8, alpha=0.5)
                centre: tuple[Any, Any] = (
                    math.exp(np.log(own[cost].to_numpy()).mean()),
                    own[score.column].mean(),
                )
                marker = MARKERS[k % len(MARKERS)] if coloured else "o"
                ax.plot(
                    [centre[0]],
                    [centre[1]],
                    marker,
                    color=colour,
                    markersize=6.5,
                    markeredgecolor=INK,
                    markeredgewidth=0.7,
                    zorder=4,
                )
            notes = [
                f"{title} {style.plain(found['value'], 2)}"
                for kind, title in (("runs_log_cost", "r runs"), ("within_cell", "within cell"))
                if (found := correlation.get((tracks[at], kind))) and found["value"] is not None
            ]
            ax.set_title(
                style.spoken(tracks[at]) + (f"\n{', '.join(notes)}" if notes else ""),
                linespacing=1.4,
            )
            ax.grid()
            ax.minorticks_off()
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        figure.supxlabel(axis_title, fontsize=9)
        figure.supylabel(score.titled, fontsize=9)
        if coloured:
            from matplotlib.lines import Line2D

            handles = [
                Line2D(
                    [],
                    [],
                    marker=MARKERS[k],
                    color=SERIES[k % len(SERIES)],
                    linestyle="",
                    markersize=6,
                    label=name,
                )
                for k, name in enumerate(style.labels(agents, 18))
            ]
            figure.legend(
                handles=handles,
                loc="outside upper center",
                ncols=min(2 if sheet.narrow else 6, len(handles)),
                handletextpad=0.2,
            )
    return Drawn(
        figure,
        "Small dots: runs; large marks: agents (geometric mean of cost, mean score). r over runs"
        " mixes differences between agents with those between their runs; within cell compares"
        f" repeats of the same agent, task and tier.{sampled}",
        f"Cost against {score.name} on {len(tracks)} tracks for {len(agents)} agents.",
    )


__all__ = ["cost_score", "stage_profile"]
