"""Judge against people: agreement with intervals by item, and what correcting the judge's errors
does to the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..tables.score_names import Score
from . import style
from .boards import MOST_AGENTS
from .figure_result import Drawn, Nothing, Row, Tables, tidy_rows, with_value
from .style import BLUE, GREEN, INK, ORANGE, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COEFFICIENTS = (("agreement", "raw agreement"), ("kappa", "Cohen’s κ"), ("ac1", "Gwet’s AC1"))
"""Side by side, as each misleads alone: kappa at extreme prevalence, raw agreement by chance."""
MOST_ITEMS = 40


def agreement(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Agreement coefficients by criterion and code with 95 % intervals over tasks."""
    rows = tidy_rows(tables, "agreement")
    with_value(rows)
    items = list(dict.fromkeys((row["kind"], row["item"]) for row in rows))[:MOST_ITEMS]
    found = {(row["item"], row["coefficient"]): row for row in rows}
    with style.styled():
        heights = [sheet.tall(len(items), 0.27, said=True), *[sheet.tall(len(items), 0.27)] * 2]
        figure, axes = sheet.beside(heights, (1, 1, 1, 0.75), 1.0)
        for ax, (name, title) in zip(axes, COEFFICIENTS, strict=False):
            for at, (kind, item) in enumerate(items):
                row = found.get((item, name))
                if name == "kappa":
                    row = found.get((item, "weighted_kappa"), row)
                colour = ORANGE if kind == "code" else BLUE
                if row is None or row["value"] is None:
                    unread = not any(r["n"] for r in rows if r["item"] == item)
                    ax.text(
                        0.02,
                        at,
                        "not read" if unread else "undefined",
                        fontsize=7.5,
                        va="center",
                        style="italic",
                    )
                    continue
                style.interval(ax, at, row["lo"], row["hi"], colour, thick=False)
                style.point(ax, row["value"], at, colour, size=5, hollow=bool(row["warnings"]))
            ax.set_title(title)
            ax.grid(axis="x")
            ax.set_xlim(min(0.0, ax.get_xlim()[0]), 1.03)
        counts = [
            str(max((r["n"] for r in rows if r["item"] == item), default=0)) for _, item in items
        ]
        sheet.table(
            axes,
            [style.label(item, 14) for _, item in items],
            [
                (0.68, "right", "human / judge", [_prevalence(found, item) for _, item in items]),
                (1.0, "right", "n", counts),
            ],
        )
    return Drawn(
        figure,
        "Judge against human labels; 95 % intervals resample tasks. Criteria blue, codes orange;"
        " hollow: fewer than five of the rarer value, so the interval is too narrow. Graded items"
        " show linearly weighted κ. Human / judge: mean value given.",
        f"Agreement of judge and labels on {len(items)} items.",
    )


def _prevalence(found: dict[tuple[str, str], Row], item: str) -> str:
    row = found.get((item, "agreement"))
    return (
        ""
        if row is None
        else (
            f"{style.plain(row['prevalence_human'], 2)} / {style.plain(row['prevalence_judge'], 2)}"
        )
    )


def judge_correction(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Agents' means as judged and after correction by human labels, joined by a line each."""
    rows = tidy_rows(tables, "corrected_leaderboard")
    judged = {
        row["agent"]: row for row in rows if row["kind"] == "judge" and row["value"] is not None
    }
    fixed: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["kind"] == "corrected" and row["value"] is not None:
            fixed.setdefault(row["agent"], {})[row["population"] or "same"] = row
    agents = [agent for agent in judged if agent in fixed][:MOST_AGENTS]
    if not agents:
        with_value([row for row in rows if row["kind"] == "corrected"])
        raise Nothing("no agent has both a judged and a corrected mean")
    with style.styled():
        figure = sheet.blank(3.6)
        ax = figure.subplots()
        room = 11 if sheet.narrow else 22
        ends = []
        for agent in agents:
            a, new, same = judged[agent], fixed[agent].get("new"), fixed[agent].get("same")
            b = same or new
            assert b is not None
            colour = GREEN if b["value"] >= a["value"] else ORANGE
            ax.plot(
                [0, 1], [a["value"], b["value"]], color=colour, linewidth=1.4, alpha=0.8, zorder=3
            )
            style.point(ax, 0, a["value"], INK, size=5)
            style.interval(ax, 1, b["lo"], b["hi"], colour, thick=False, vertical=True)
            style.point(ax, 1, b["value"], colour, size=5)
            ends.append((agent, a["value"], b["value"]))
        _spread(
            ax,
            [
                (f"{style.label(agent, room)}  {style.plain(a, score.digits)}", a)
                for agent, a, _ in ends
            ],
            -0.04,
            "right",
        )
        _spread(
            ax,
            [
                (f"{style.plain(b, score.digits)}  {style.label(agent, room)}", b)
                for agent, _, b in ends
            ],
            1.07,
            "left",
        )
        ax.set_xlim(-0.75, 1.8)
        ax.set_xticks([0, 1], ["as judged", "corrected\nby labels"])
        style.bare_columns(ax)
        ax.spines["left"].set_visible(False)
        ax.set_yticks([])
    return Drawn(
        figure,
        f"Mean {score.titled} as judged and corrected by the mean difference on labelled runs. Line"
        " at the right: 95 % interval of the correction for these runs (that of new tasks is in"
        " the table). Green: up, orange: down.",
        f"Correction of {len(agents)} agents’ means of {score.name} by human labels.",
    )


def _spread(ax: Axes, texts: list[tuple[str, float]], x: float, align: str) -> None:
    """Labels at their heights, pushed apart where they would overlap, keeping their order."""
    heights = [value for _, value in texts]
    low, high = ax.get_ylim()
    gap = max((high - low) * 0.062, 1e-9)
    order = sorted(range(len(texts)), key=lambda i: heights[i])
    placed: list[float] = []
    for i in order:
        placed.append(heights[i] if not placed else max(heights[i], placed[-1] + gap))
    shift = sum(p - heights[i] for p, i in zip(placed, order, strict=True)) / len(placed)
    for p, i in zip(placed, order, strict=True):
        ax.text(x, p - shift, texts[i][0], va="center", ha=align, fontsize=8.5)


__all__ = ["agreement", "judge_correction"]
