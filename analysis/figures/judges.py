"""Judge against people, as figures: agreement, and how correcting the judge changes the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl

from ...console import cells
from ..tables.grouping import RowKind
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
    NOTE_SIZE,
    ORANGE,
    TEXT_SIZE,
    code_label,
    distinct_labels,
    draw_estimate,
    draw_interval,
    draw_row_note,
    format_number,
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
    first_height = sheet.rows_height(len(items), 0.29, with_texts=True)
    other_height = sheet.rows_height(len(items), 0.29)
    columns = [
        TextColumn("right", "human / judge", [_mean_values(by_item, item) for item in items]),
        TextColumn("right", "n", [str(n_runs[item]) for item in items]),
    ]
    figure, axes = sheet.adjacent_axes(
        [first_height, other_height, other_height], (1, 1, 1), margin=1.0, columns=columns
    )
    # On a page there is one more than there are coefficients: it is for text.
    for ax, (coefficient, title) in zip(axes, COEFFICIENTS, strict=False):
        for row_index, (kind, item) in enumerate(kinds_and_items):
            row = _coefficient_row(by_item, item, coefficient)
            if row is None or row["value"] is None:
                reason = "undefined" if n_runs[item] else "not read"
                note = draw_row_note(ax, row_index, reason, x=0.5, size=NOTE_SIZE)
                note.set_horizontalalignment("center")
                continue
            colour = ORANGE if kind == "code" else BLUE
            draw_interval(ax, row_index, row["lo"], row["hi"], colour, thick=False)
            draw_estimate(ax, row["value"], row_index, colour, size=5, hollow=bool(row["warnings"]))
        ax.set_title(title)
        ax.grid(axis="x")
        _limit_to_coefficients(ax)
    sheet.label_rows(axes, _item_names(rows, kinds_and_items), columns)
    return FigureResult(
        figure,
        caption=(
            "Judge against human labels, with 95 % intervals over tasks. Criteria blue, codes"
            " orange; hollow: fewer than five runs have the rarer value, so the interval is too"
            " narrow. Graded items show linearly weighted κ. Human / judge: mean of their values."
        ),
        description=f"Agreement of judge and labels on {len(items)} items.",
    )


def _limit_to_coefficients(ax: Axes) -> None:
    """An axis from 0 or, if a coefficient or interval is negative, from -1, to 1."""
    low = -1.0 if ax.dataLim.x0 < 0 else 0.0
    room = 0.05 * (1 - low)
    ax.set_xlim(low - room, 1 + room)
    middle = (low + 1) / 2
    ax.set_xticks([low, middle, 1], [f"{tick:g}".replace("-", "−") for tick in (low, middle, 1)])


def _item_names(rows: list[Row], kinds_and_items: list[tuple[str, str]]) -> list[str]:
    """Codes and criteria with their titles, as far as the table has them."""
    titles = {row["item"]: row.get("title") for row in rows}
    names = []
    for kind, item in kinds_and_items:
        title = titles[item]
        if kind == "code":
            names.append(code_label(item))
        else:
            names.append(f"{item} {title}" if title else item)
    return names


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
    corrections = _corrections(tidy_rows(tables, "corrected_leaderboard"), sheet.rows)
    height = max(3.0, 1.25 * _LABEL_INCHES * len(corrections) + 0.9)
    figure = sheet.blank_figure(height)
    ax = figure.subplots()
    for correction in corrections:
        _draw_correction(ax, correction)
    names = distinct_labels(
        [correction.agent for correction in corrections], 16 if sheet.narrow else 40
    )
    judged = [correction.judged for correction in corrections]
    corrected = [correction.corrected["value"] for correction in corrections]
    left_labels = [format_number(value, score.digits) for value in judged]
    right_labels = [
        f"{format_number(value, score.digits)}  {name}"
        for name, value in zip(names, corrected, strict=True)
    ]
    min_distance = _LABEL_INCHES / (height - 0.8)
    ax.set_ylim(ax.get_ylim())
    _write_spread_labels(ax, left_labels, judged, min_distance, side=-1)
    _write_spread_labels(ax, right_labels, corrected, min_distance, side=1)
    ax.set_xlim(_limits_with_labels(left_labels, right_labels, sheet.width))
    ax.set_xticks([0, 1], ["as judged", "corrected\nby labels"])
    strip_x_axis(ax)
    ax.set_ylabel(f"mean {score.titled}")
    return FigureResult(
        figure,
        caption=(
            f"Mean {score.titled} as judged and corrected by the mean difference on labelled runs."
            " Line at the right: 95 % interval of the correction for these runs (that of new tasks"
            " is in the table). Green: up, orange: down."
        ),
        description=(
            f"Correction of the means of {len(corrections)} {sheet.rows.plural} by human labels:"
            f" {score.name}."
        ),
    )


def _corrections(rows: list[Row], kind: RowKind) -> list[_Correction]:
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
        raise NothingToDraw(f"no {kind.singular} has both a judged and a corrected mean")
    return corrections[:MAX_AGENTS]


def _draw_correction(ax: Axes, correction: _Correction) -> None:
    judged, corrected = correction.judged, correction.corrected
    colour = GREEN if corrected["value"] >= judged else ORANGE
    ax.plot([0, 1], [judged, corrected["value"]], color=colour, linewidth=1.4, alpha=0.8, zorder=3)
    draw_estimate(ax, 0, judged, INK, size=5)
    draw_interval(ax, 1, corrected["lo"], corrected["hi"], colour, thick=False, vertical=True)
    draw_estimate(ax, 1, corrected["value"], colour, size=5)


_LABEL_INCHES = 0.16
"""Height of a label."""
_CHARACTER_INCHES = 0.62 * TEXT_SIZE / 72
_GAP_INCHES = 0.2
"""Between a mark and its label."""
_AXIS_INCHES = 0.7
"""Room for the y axis and its title."""


def _limits_with_labels(
    left_labels: list[str], right_labels: list[str], width: float
) -> tuple[float, float]:
    """Limits of the x axis that leave room for the labels; the means are at 0 and 1.

    `width`: of the figure, in inches.
    """
    left, right = (
        _GAP_INCHES + _CHARACTER_INCHES * max(cells(text) for text in texts)
        for texts in (left_labels, right_labels)
    )
    between = max(0.5, width - _AXIS_INCHES - left - right)
    return -left / between, 1 + right / between


def _write_spread_labels(
    ax: Axes, texts: list[str], values: list[float], min_distance: float, *, side: Literal[-1, 1]
) -> None:
    """Write labels beside their marks, pushed apart where they would overlap.

    `min_distance`: share of the height of the axes. `side`: -1 for the marks at 0, whose labels
    stand at their left, 1 for those at 1. The order of labels stays, and all stay within the axes
    as far as there is room. A thin line leads to a label that was moved.
    """
    low, high = ax.get_ylim()
    distance = min_distance * (high - low)
    order = sorted(range(len(texts)), key=lambda index: values[index])
    positions = _spread([values[index] for index in order], distance, low, high)
    mark = 0 if side < 0 else 1
    points = 72 * _GAP_INCHES
    for position, index in zip(positions, order, strict=True):
        ax.annotate(
            texts[index],
            (mark, values[index]),
            xytext=(side * points, position),
            textcoords=("offset points", "data"),
            va="center",
            ha="right" if side < 0 else "left",
            fontsize=TEXT_SIZE,
            in_layout=False,
            arrowprops={
                "arrowstyle": "-",
                "color": INK,
                "linewidth": 0.5,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 4,
                "relpos": (1.0 if side < 0 else 0.0, 0.5),
            },
        )


def _spread(values: list[float], distance: float, low: float, high: float) -> list[float]:
    """Ascending values moved apart to at least `distance`, between `low` and `high` if possible."""
    positions: list[float] = []
    for value in values:
        lowest = positions[-1] + distance if positions else low
        positions.append(max(value, lowest))
    limit = high
    for index in reversed(range(len(positions))):
        positions[index] = min(positions[index], limit)
        limit = positions[index] - distance
    return positions


__all__ = ["agreement", "judge_correction"]
