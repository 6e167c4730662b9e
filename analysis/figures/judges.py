"""Judge against people, as figures: agreement, and how correcting the judge changes the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ..tables.score_names import Score
from .figure_result import (
    FigureResult,
    NothingToDraw,
    Row,
    Tables,
    rows_with_value,
    tidy_rows,
)
from .sheet import Sheet, TextColumn
from .style import (
    BLUE,
    GREEN,
    INK,
    MAX_AGENTS,
    ORANGE,
    draw_estimate,
    draw_interval,
    format_number,
    label,
    strip_x_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COEFFICIENTS = (("agreement", "raw agreement"), ("kappa", "Cohen’s κ"), ("ac1", "Gwet’s AC1"))
"""Side by side, as each misleads alone: kappa at extreme prevalence, raw agreement by chance."""
MAX_ITEMS = 40

AgreementRows = dict[tuple[str, str], Row]
"""Rows of the table `agreement` by item and coefficient."""


def agreement(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Agreement coefficients by criterion and code, with 95 % intervals over tasks."""
    rows = tidy_rows(tables, "agreement")
    rows_with_value(rows)
    by_item: AgreementRows = {(row["item"], row["coefficient"]): row for row in rows}
    kinds_and_items = list(dict.fromkeys((row["kind"], row["item"]) for row in rows))[:MAX_ITEMS]
    items = [item for _, item in kinds_and_items]
    n_runs = {
        item: max((row["n"] for row in rows if row["item"] == item), default=0) for item in items
    }
    first_height = sheet.rows_height(len(items), 0.27, with_texts=True)
    other_height = sheet.rows_height(len(items), 0.27)
    figure, axes = sheet.adjacent_axes(
        [first_height, other_height, other_height], width_ratios=(1, 1, 1, 0.75), margin=1.0
    )
    # On a page there are more axes than coefficients: the last are for text.
    for ax, (coefficient, title) in zip(axes, COEFFICIENTS, strict=False):
        for row_index, (kind, item) in enumerate(kinds_and_items):
            row = _coefficient_row(by_item, item, coefficient)
            if row is None or row["value"] is None:
                reason = "undefined" if n_runs[item] else "not read"
                ax.text(0.02, row_index, reason, fontsize=7.5, va="center", style="italic")
                continue
            colour = ORANGE if kind == "code" else BLUE
            draw_interval(ax, row_index, row["lo"], row["hi"], colour, thick=False)
            draw_estimate(ax, row["value"], row_index, colour, size=5, hollow=bool(row["warnings"]))
        ax.set_title(title)
        ax.grid(axis="x")
        ax.set_xlim(min(0.0, ax.get_xlim()[0]), 1.03)
    columns = [
        TextColumn(0.68, "right", "human / judge", [_mean_values(by_item, item) for item in items]),
        TextColumn(1.0, "right", "n", [str(n_runs[item]) for item in items]),
    ]
    sheet.label_rows(axes, [label(item, 14) for item in items], columns)
    return FigureResult(
        figure,
        caption=(
            "Judge against human labels, with 95 % intervals over tasks. Criteria blue, codes"
            " orange; hollow: fewer than five runs have the rarer value, so the interval is too"
            " narrow. Graded items show linearly weighted κ. Human / judge: mean of their values."
        ),
        description=f"Agreement of judge and labels on {len(items)} items.",
    )


def _coefficient_row(by_item: AgreementRows, item: str, coefficient: str) -> Row | None:
    """The row of a coefficient; for graded items kappa is the weighted one."""
    row = by_item.get((item, coefficient))
    if coefficient == "kappa":
        return by_item.get((item, "weighted_kappa"), row)
    return row


def _mean_values(by_item: AgreementRows, item: str) -> str:
    """Mean value of an item as `human / judge`; empty if unknown."""
    row = by_item.get((item, "agreement"))
    if row is None:
        return ""
    human = format_number(row["prevalence_human"], 2)
    judge = format_number(row["prevalence_judge"], 2)
    return f"{human} / {judge}"


class _Correction(NamedTuple):
    """An agent's mean as judged, and its corrected mean as a row of the table."""

    agent: str
    judged: float
    corrected: Row


def judge_correction(
    tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet
) -> FigureResult:
    """Agents' means as judged and after correction by human labels, each pair joined by a line."""
    corrections = _corrections(tidy_rows(tables, "corrected_leaderboard"))
    figure = sheet.blank_figure(3.6)
    ax = figure.subplots()
    for correction in corrections:
        _draw_correction(ax, correction)
    name_width = 11 if sheet.narrow else 22
    names = [label(correction.agent, name_width) for correction in corrections]
    judged = [correction.judged for correction in corrections]
    corrected = [correction.corrected["value"] for correction in corrections]
    left_labels = [
        f"{name}  {format_number(value, score.digits)}"
        for name, value in zip(names, judged, strict=True)
    ]
    right_labels = [
        f"{format_number(value, score.digits)}  {name}"
        for name, value in zip(names, corrected, strict=True)
    ]
    _write_spread_labels(ax, left_labels, judged, x=-0.04, align="right")
    _write_spread_labels(ax, right_labels, corrected, x=1.07, align="left")
    ax.set_xlim(-0.75, 1.8)
    ax.set_xticks([0, 1], ["as judged", "corrected\nby labels"])
    strip_x_axis(ax)
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])
    return FigureResult(
        figure,
        caption=(
            f"Mean {score.titled} as judged and corrected by the mean difference on labelled runs."
            " Line at the right: 95 % interval of the correction for these runs (that of new tasks"
            " is in the table). Green: up, orange: down."
        ),
        description=(
            f"Correction of {len(corrections)} agents’ means of {score.name} by human labels."
        ),
    )


def _corrections(rows: list[Row]) -> list[_Correction]:
    """Agents with both means, in the order of the judged ones, at most MAX_AGENTS.

    The corrected mean is that of these very runs where there is one, else that of new tasks.
    """
    corrected: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["kind"] == "corrected" and row["value"] is not None:
            corrected.setdefault(row["agent"], {})[row["population"]] = row
    judged = {
        row["agent"]: row["value"]
        for row in rows
        if row["kind"] == "judge" and row["value"] is not None
    }
    corrections = []
    for agent, value in judged.items():
        if agent in corrected:
            by_population = corrected[agent]
            corrected_row = by_population.get("runs") or by_population["new"]
            corrections.append(_Correction(agent, value, corrected_row))
    if not corrections:
        rows_with_value(row for row in rows if row["kind"] == "corrected")
        raise NothingToDraw("no agent has both a judged and a corrected mean")
    return corrections[:MAX_AGENTS]


def _draw_correction(ax: Axes, correction: _Correction) -> None:
    judged, corrected = correction.judged, correction.corrected
    colour = GREEN if corrected["value"] >= judged else ORANGE
    ax.plot([0, 1], [judged, corrected["value"]], color=colour, linewidth=1.4, alpha=0.8, zorder=3)
    draw_estimate(ax, 0, judged, INK, size=5)
    draw_interval(ax, 1, corrected["lo"], corrected["hi"], colour, thick=False, vertical=True)
    draw_estimate(ax, 1, corrected["value"], colour, size=5)


def _write_spread_labels(
    ax: Axes, texts: list[str], heights: list[float], *, x: float, align: str
) -> None:
    """Write labels at their heights, pushed apart where they would overlap.

    The order of labels stays, and so does the mean of their heights.
    """
    low, high = ax.get_ylim()
    min_distance = max((high - low) * 0.062, 1e-9)
    order = sorted(range(len(texts)), key=lambda index: heights[index])
    positions: list[float] = []
    for index in order:
        position = heights[index]
        if positions:
            position = max(position, positions[-1] + min_distance)
        positions.append(position)
    shifts = [position - heights[index] for position, index in zip(positions, order, strict=True)]
    mean_shift = sum(shifts) / len(shifts)
    for position, index in zip(positions, order, strict=True):
        ax.text(x, position - mean_shift, texts[index], va="center", ha=align, fontsize=8.5)


__all__ = ["agreement", "judge_correction"]
