"""Leaderboards as figures: dots with both intervals and rank sets, the same by track, and all
paired differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..statistics.score_by_code_count import completion_arrays
from ..tables.score_names import Score
from . import style
from .figure_result import (
    Drawn,
    Nothing,
    Row,
    Tables,
    both_populations,
    counted,
    tidy_rows,
    with_value,
)
from .style import BLUE, GREEN, INK, ORANGE, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_AGENTS = 40
"""Rows of a leaderboard figure; the table has all."""
MOST_PAIRED = 16
"""Agents of the matrix of differences: beyond, its numbers cannot be read."""


def leaderboard(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Agents by mean score, with intervals for new and for the same tasks and the ranks that stay
    possible."""
    pairs = both_populations(
        with_value(tidy_rows(tables, "leaderboard", scope="overall")), "agent"
    )[:MOST_AGENTS]
    with style.styled():
        figure, axes = sheet.beside([sheet.tall(len(pairs), 0.34, said=True)], (2.2, 1), 1.1)
        ax = axes[0]
        for at, (new, same) in enumerate(pairs):
            _dot(ax, at, new, same)
        _within_scale(ax, score)
        ax.grid(axis="x")
        ax.set_xlabel(f"mean {score.titled}")
        sheet.table(
            axes,
            style.labels([new["agent"] for new, _ in pairs]),
            [
                (
                    0.13,
                    "right",
                    "mean",
                    [style.plain(new["value"], score.digits) for new, _ in pairs],
                ),
                (
                    0.19,
                    "left",
                    "95 %",
                    [style.span(new["lo"], new["hi"], score.digits) for new, _ in pairs],
                ),
                (
                    0.78,
                    "right",
                    "ranks",
                    [style.ranks(new["rank_lo"], new["rank_hi"]) for new, _ in pairs],
                ),
                (1.0, "right", "runs", [str(new["runs"]) for new, _ in pairs]),
            ],
        )
    best = pairs[0][0]
    return Drawn(
        figure,
        "Mean of runs by track, then of tracks. Pale bar: 95 % interval for other tasks of the same"
        " kind; thin line: for these tasks again. Ranks: those that new tasks leave possible,"
        " jointly for all agents at 95 %.",
        f"Leaderboard of {len(pairs)} agents by {score.name}; {style.label(best['agent'])} leads"
        f" with {style.plain(best['value'], score.digits)}.",
    )


def _dot(ax: Axes, at: int, new: Row, same: Row | None, colour: str = BLUE) -> None:
    style.interval(ax, at, new["lo"], new["hi"], colour, thick=True)
    if same is not None:
        style.interval(ax, at, same["lo"], same["hi"], colour, thick=False)
    style.point(ax, new["value"], at, colour)


def _within_scale(ax: Axes, score: Score) -> None:
    """With very few tasks an interval leaves the scale; the axis does not follow it."""
    if score.low is not None and score.high is not None:
        (low, high), edge = ax.get_xlim(), 0.04 * (score.high - score.low)
        ax.set_xlim(max(low, score.low - edge), min(high, score.high + edge))


def leaderboard_tracks(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """The leaderboard of each track, agents in the overall order."""
    rows = with_value(tidy_rows(tables, "leaderboard", scope="track"))
    tracks = sorted({row["name"] for row in rows})
    if len(tracks) < 2:
        raise Nothing("one track only: its leaderboard is the overall one")
    order = list(
        dict.fromkeys(row["agent"] for row in tidy_rows(tables, "leaderboard", scope="overall"))
    )[:MOST_AGENTS]
    with style.styled():
        figure, grid = sheet.small_multiples(
            len(tracks), 1 if sheet.narrow else 3, sheet.tall(len(order), 0.24) + 0.75, 0.3
        )
        for at, ax in enumerate(grid):
            there = [row for row in rows if row["name"] == tracks[at]]
            for new, same in both_populations(there, "agent"):
                if new["agent"] in order:
                    _dot(ax, order.index(new["agent"]), new, same)
            sheet.named_rows(ax, style.labels(order, 20))
            ax.grid(axis="x")
            tasks = max(row["tasks"] or 0 for row in there)
            ax.set_title(f"{style.spoken(tracks[at])} ({tasks} task{'s' if tasks != 1 else ''})")
        _within_scale(grid[0], score)
        figure.supxlabel(f"mean {score.titled}", fontsize=9)
    return Drawn(
        figure,
        "Means over runs within each track, agents in the overall order. Pale bar: 95 % interval"
        " for new tasks of the track; thin line: for these tasks again. A missing pale bar: one"
        " task only.",
        f"Leaderboards of {len(tracks)} tracks for {len(order)} agents by {score.name}.",
    )


def pairwise(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Differences between agents, paired by task: row minus column."""
    rows = with_value(row for row in tidy_rows(tables, "pairwise") if row["population"] != "same")
    order = list(
        dict.fromkeys(row["agent"] for row in tidy_rows(tables, "leaderboard", scope="overall"))
    )
    if len(order) > MOST_PAIRED:
        raise Nothing(
            f"{len(order)} agents: the matrix is drawn for at most {MOST_PAIRED}; the table has all"
            " pairs"
        )
    place = {agent: at for at, agent in enumerate(order)}
    biggest = max(abs(row["value"]) for row in rows) or 1.0
    n = len(order)
    with style.styled():
        # A field needs its room: more agents than a telephone is wide make a picture that scrolls.
        figure = sheet.blank(0.9 + (0.64 if sheet.narrow else 0.5) * n, max(sheet.width, 0.58 * n))
        ax = figure.subplots()
        for row in rows:
            at, other = place[row["agent"]], place[row["other"]]
            value, half = row["value"], None if row["hi"] is None else row["hi"] - row["value"]
            if at > other:
                at, other, value = other, at, -value
            for y, x, v in ((at, other, value), (other, at, -value)):
                clear = row["p_holm"] is not None and row["p_holm"] < 0.05
                middle = sheet.field(
                    ax, x, y, BLUE if v > 0 else ORANGE, 0.05 + 0.37 * abs(v) / biggest
                )
                text = style.signed(v, score.digits) + ("*" if clear else "")
                bold = "bold" if clear else None
                up = 0.0 if half is None else 0.12
                ax.text(
                    x, middle - up, text, ha="center", va="center", fontsize=8.5, fontweight=bold
                )
                if half is not None:
                    ax.text(
                        x,
                        middle + 0.22,
                        f"±{half:.{score.digits}f}",
                        ha="center",
                        va="center",
                        fontsize=7,
                    )
        sheet.named_rows(ax, style.labels(order), points=13)
        ax.set_xlim(-0.5, n - 0.5)
        slant = n > 6 or sheet.narrow
        ax.set_xticks(
            range(n),
            style.labels(order, 12),
            rotation=30 if slant else 0,
            ha="right" if slant else "center",
        )
        style.bare_columns(ax)
    clear_pairs = sum(1 for row in rows if row["p_holm"] is not None and row["p_holm"] < 0.05)
    return Drawn(
        figure,
        f"Row minus column, {score.titled}, paired by task, with the half-width of the 95 %"
        " interval for new tasks. Star and bold: p < .05 after Holm over all pairs.",
        f"Differences of {score.name} between {n} agents; {clear_pairs} of {len(rows)} pairs differ"
        " clearly.",
    )


def recovery(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """How often runs with two or more codes still hand in something scorable."""
    rows = with_value(row for row in tidy_rows(tables, "recovery") if row["population"] != "same")[
        : MOST_AGENTS + 1
    ]
    with style.styled():
        figure, axes = sheet.beside([sheet.tall(len(rows), 0.32, said=True)], (2.2, 1), 1.0)
        ax = axes[0]
        for at, row in enumerate(rows):
            everyone = row["agent"] == "(all)"
            ax.barh(
                at,
                row["value"],
                height=sheet.bar,
                color=INK if everyone else GREEN,
                alpha=0.45,
                linewidth=0,
            )
            style.interval(ax, at, row["lo"], row["hi"], INK if everyone else GREEN, thick=False)
        ax.set_xlim(0, 1)
        ax.grid(axis="x")
        ax.set_xlabel("share of runs with two or more codes\nthat reach a scored submission")
        names = [
            "all agents" if row["agent"] == "(all)" else style.label(row["agent"]) for row in rows
        ]
        sheet.table(
            axes,
            names,
            [
                (0.13, "right", "share", [f"{row['value']:.2f}" for row in rows]),
                (0.19, "left", "95 %", [style.span(row["lo"], row["hi"], 2) for row in rows]),
                (0.64, "right", "runs", [str(row["runs"]) for row in rows]),
                (
                    1.0,
                    "right",
                    "codes a run",
                    [style.plain(row["codes_per_run"], 2) for row in rows],
                ),
            ],
        )
    return Drawn(
        figure,
        "Interval: jackknife over tasks, or Wilson's where runs are few (the table says which)."
        " Agents with more codes are seen on harder runs: not a fair contest between agents."
        + counted(completion_arrays(runs)),
        f"Recovery rates of {len(rows)} rows; overall {rows[0]['value']:.2f}.",
    )


__all__ = ["leaderboard", "leaderboard_tracks", "pairwise", "recovery"]
