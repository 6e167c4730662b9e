"""Leaderboards as figures: of all tracks, of each track, and the paired differences of agents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ...console import cells
from ...rounding import fixed
from ..tables.grouping import RowKind
from ..tables.score_names import Score
from .figure_result import (
    FigureResult,
    NothingToDraw,
    Row,
    Tables,
    pair_populations,
    rows_with_value,
    tidy_rows,
)
from .sheet import Sheet, TextColumn
from .style import (
    BLUE,
    MAX_AGENTS,
    NOTE_SIZE,
    ORANGE,
    TEXT_SIZE,
    distinct_labels,
    draw_estimate,
    draw_interval,
    format_interval,
    format_number,
    format_ranks,
    format_signed,
    label,
    strip_x_axis,
    track_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PAIRED_AGENTS = 16
"""Agents in the matrix of differences: with more, its numbers cannot be read."""
SIGNIFICANCE_LEVEL = 0.05


def leaderboard(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Agents by mean score, with both intervals and the ranks that are still possible."""
    rows = rows_with_value(tidy_rows(tables, "leaderboard", scope="overall"))
    pairs = pair_populations(rows, "agent")[:MAX_AGENTS]
    height = sheet.rows_height(len(pairs), 0.34, with_texts=True)
    agent_rows = [new_tasks for new_tasks, _ in pairs]
    columns = _leaderboard_columns(agent_rows, score.digits)
    figure, axes = sheet.adjacent_axes([height], width_ratios=(1,), margin=1.1, columns=columns)
    ax = axes[0]
    for row_index, (new_tasks, same_tasks) in enumerate(pairs):
        _draw_mean(ax, row_index, new_tasks, same_tasks)
    _limit_to_scale(ax, score)
    ax.grid(axis="x")
    ax.set_xlabel(f"mean {score.titled}")
    sheet.label_rows(axes, [row["agent"] for row in agent_rows], columns)
    leader = agent_rows[0]
    return FigureResult(
        figure,
        caption=(
            f"Mean of runs by track, then of tracks. {_intervals_explained(agent_rows, sheet.rows)}"
        ),
        description=(
            f"Leaderboard of {len(pairs)} {sheet.rows.plural} by {score.name};"
            f" {label(leader['agent'])} leads with {format_number(leader['value'], score.digits)}."
        ),
    )


def _intervals_explained(rows: list[Row], kind: RowKind) -> str:
    """What the intervals and ranks of a leaderboard are, or that the tasks are too few for them."""
    if any(row["lo"] is not None for row in rows):
        return (
            "Pale bar: 95 % interval for new tasks of the same kind; thin line: for repeats of"
            " these tasks. Ranks: those that the data leave possible for new tasks, jointly for all"
            f" {kind.plural} at 95 %."
        )
    return (
        "Line: 95 % interval for repeats of these tasks. The tasks are too few for an interval and"
        " for ranks for new tasks."
    )


def _leaderboard_columns(rows: list[Row], digits: int) -> list[TextColumn]:
    means = [format_number(row["value"], digits) for row in rows]
    intervals = [format_interval(row["lo"], row["hi"], digits) for row in rows]
    ranks = [format_ranks(row["rank_lo"], row["rank_hi"]) for row in rows]
    run_counts = [str(row["runs"]) for row in rows]
    columns = [
        TextColumn("right", "mean", means),
        TextColumn("right", "runs", run_counts),
    ]
    if any(row["lo"] is not None for row in rows):
        columns.insert(1, TextColumn("left", "95 %", intervals))
    if any(row["rank_lo"] is not None for row in rows):
        columns.insert(-1, TextColumn("right", "ranks", ranks))
    return columns


def _draw_mean(ax: Axes, row_index: int, new_tasks: Row, same_tasks: Row | None) -> None:
    """Draw an agent's mean with its intervals for new and for the same tasks."""
    draw_interval(ax, row_index, new_tasks["lo"], new_tasks["hi"], BLUE, thick=True)
    if same_tasks is not None:
        draw_interval(ax, row_index, same_tasks["lo"], same_tasks["hi"], BLUE, thick=False)
    draw_estimate(ax, new_tasks["value"], row_index, BLUE)


def _limit_to_scale(ax: Axes, score: Score) -> None:
    """Keep the axis on the score's scale, which an interval from very few tasks may leave."""
    if score.low is None or score.high is None:
        return
    low, high = ax.get_xlim()
    margin = 0.04 * (score.high - score.low)
    ax.set_xlim(max(low, score.low - margin), min(high, score.high + margin))


def _agents_in_order(tables: Tables) -> list[str]:
    """Agents in the order of the overall leaderboard."""
    rows = tidy_rows(tables, "leaderboard", scope="overall")
    return list(dict.fromkeys(row["agent"] for row in rows))


def leaderboard_tracks(
    tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet
) -> FigureResult:
    """The leaderboard of each track, with agents in the overall order."""
    rows = rows_with_value(tidy_rows(tables, "leaderboard", scope="track"))
    tracks = sorted({row["name"] for row in rows})
    if len(tracks) < 2:
        raise NothingToDraw("one track only: its leaderboard is the overall one")
    agents = _agents_in_order(tables)[:MAX_AGENTS]
    figure, grid = sheet.small_multiples(
        len(tracks),
        max_columns=1 if sheet.narrow else 3,
        height=sheet.rows_height(len(agents), 0.24) + 0.75,
        margin=0.3,
    )
    for track, ax in zip(tracks, grid, strict=True):
        track_rows = [row for row in rows if row["name"] == track]
        _draw_track(ax, track, track_rows, agents)
        sheet.name_rows(ax, agents if sheet.narrow else distinct_labels(agents, 22))
    _limit_to_scale(grid[0], score)
    figure.supxlabel(f"mean {score.titled}", fontsize=TEXT_SIZE)
    return FigureResult(
        figure,
        caption=(
            f"Means over runs within each track, {sheet.rows.plural} in the overall order. Pale"
            " bar: 95 % interval for new tasks of the track, missing where the track has fewer than"
            " four tasks; thin line: for repeats of these tasks."
        ),
        description=(
            f"Leaderboards of {len(tracks)} tracks for {len(agents)} {sheet.rows.plural} by"
            f" {score.name}."
        ),
    )


def _draw_track(ax: Axes, track: str, rows: list[Row], agents: list[str]) -> None:
    for new_tasks, same_tasks in pair_populations(rows, "agent"):
        if new_tasks["agent"] in agents:
            _draw_mean(ax, agents.index(new_tasks["agent"]), new_tasks, same_tasks)
    ax.grid(axis="x")
    n_tasks = max(row["tasks"] or 0 for row in rows)
    noun = "task" if n_tasks == 1 else "tasks"
    ax.set_title(f"{track_label(track)} ({n_tasks} {noun})")


def pairwise(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Differences between agents, paired by task, as a matrix: row minus column."""
    all_rows = tidy_rows(tables, "pairwise")
    rows = rows_with_value(row for row in all_rows if row["population"] != "same")
    agents = _agents_in_order(tables)
    n = len(agents)
    if n > MAX_PAIRED_AGENTS:
        raise NothingToDraw(
            f"{n} {sheet.rows.plural}: the matrix is drawn for at most {MAX_PAIRED_AGENTS}; the"
            " table has all pairs"
        )
    row_height = 0.64 if sheet.narrow else 0.5
    figure = sheet.blank_figure(0.9 + row_height * n)
    ax = figure.subplots()
    values = ValueText.fitting(rows, score.digits, _cell_width(sheet, n))
    narrow_values = ValueText.fitting(rows, score.digits, _cell_width(Sheet(narrow=True), n))
    narrow_note = ""
    if narrow_values.is_rounded and not values.is_rounded:
        narrow_note = " In one column they are rounded."
    largest = max(abs(row["value"]) for row in rows) or 1.0
    for row in rows:
        _draw_difference(ax, sheet, row, agents, largest, values)
    _name_matrix(ax, sheet, agents)
    n_significant = sum(1 for row in rows if _is_significant(row))
    return FigureResult(
        figure,
        caption=(
            f"Row minus column, {score.titled}, paired by task, with the half-width of the 95 %"
            f" interval for new tasks{values.note}. {values.significance}: p < .05 after Holm"
            f" over all pairs.{narrow_note}"
        ),
        description=(
            f"Differences of {score.name} between {n} {sheet.rows.plural}; {n_significant} of"
            f" {len(rows)} pairs differ clearly."
        ),
    )


def _is_significant(row: Row) -> bool:
    return row["p_holm"] is not None and row["p_holm"] < SIGNIFICANCE_LEVEL


class ValueText(NamedTuple):
    """How differences are written into the cells of the matrix."""

    size: float
    """Points."""
    digits: int
    """Decimals."""
    is_rounded: bool
    """Whether there are fewer decimals than in the table."""
    has_stars: bool = True

    @classmethod
    def fitting(cls, rows: list[Row], digits: int, cell_width: float) -> ValueText:
        """The largest form in which every difference fits into a cell. `cell_width`: points."""
        fewer_digits = max(0, digits - 1)
        forms = [
            cls(TEXT_SIZE, digits, is_rounded=False),
            cls(NOTE_SIZE, digits, is_rounded=False),
            cls(NOTE_SIZE, fewer_digits, is_rounded=True),
            cls(_SMALLEST_SIZE, fewer_digits, is_rounded=True),
            cls(_SMALLEST_SIZE, fewer_digits, is_rounded=True, has_stars=False),
        ]
        for form in forms:
            longest = max(len(form.write(-abs(row["value"]), _is_significant(row))) for row in rows)
            if longest * _CHARACTER_WIDTH * form.size <= cell_width:
                return form
        return forms[-1]

    def write(self, value: float, significant: bool) -> str:
        text = format_signed(value, self.digits)
        if self.is_rounded:
            text = re.sub(r"^(\D?)0\.", r"\1.", text)  # +.3 for +0.3
        return f"{text}*" if significant and self.has_stars else text

    @property
    def note(self) -> str:
        return ", rounded" if self.is_rounded else ""

    @property
    def significance(self) -> str:
        return "Star and bold" if self.has_stars else "Bold"


_SMALLEST_SIZE = 6.5
"""Points; only for many agents in one column."""
_CHARACTER_WIDTH = 0.72
"""Width of a bold digit, as a share of the size of its font."""


def _cell_width(sheet: Sheet, n: int) -> float:
    """Width of a cell of the matrix of `n` agents in points, beside the names of a page's rows."""
    names_width = 0.1 if sheet.narrow else 1.75
    return 72 * (sheet.width - names_width) / n


def _draw_difference(
    ax: Axes, sheet: Sheet, row: Row, agents: list[str], largest: float, values: ValueText
) -> None:
    """Draw a pair's difference in both of its cells, with opposite signs.

    `largest`: the largest absolute difference, which has the strongest colour.
    """
    first, second = agents.index(row["agent"]), agents.index(row["other"])
    difference = row["value"]
    if first > second:
        first, second, difference = second, first, -difference
    for y, x, value in ((first, second, difference), (second, first, -difference)):
        colour = BLUE if value > 0 else ORANGE
        middle = sheet.draw_cell(ax, x, y, colour, alpha=0.05 + 0.37 * abs(value) / largest)
        _write_difference(ax, x, middle, value, row, values)


def _write_difference(
    ax: Axes, x: float, middle: float, value: float, row: Row, values: ValueText
) -> None:
    """Write a difference into its cell, above the half-width of its interval if it has one."""
    significant = _is_significant(row)
    has_interval = row["hi"] is not None
    ax.text(
        x,
        middle - 0.12 if has_interval else middle,
        values.write(value, significant),
        ha="center",
        va="center",
        fontsize=values.size,
        fontweight="bold" if significant else None,
    )
    if has_interval:
        half_width = row["hi"] - row["value"]
        text = f"±{fixed(half_width, values.digits)}"
        size = min(NOTE_SIZE, values.size)
        ax.text(x, middle + 0.22, text, ha="center", va="center", fontsize=size)


def _name_matrix(ax: Axes, sheet: Sheet, agents: list[str]) -> None:
    """Name the rows and columns of a matrix of agents.

    Columns that are too narrow for the names have numbers, which stand before the rows' names.
    """
    n = len(agents)
    ax.set_xlim(-0.5, n - 0.5)
    characters = int(_cell_width(sheet, n) / (0.62 * TEXT_SIZE))
    row_names, column_names = agents, agents
    if max(cells(agent) for agent in agents) > characters:
        row_names = [f"{number}  {agent}" for number, agent in enumerate(agents, 1)]
        column_names = [str(number) for number in range(1, n + 1)]
    sheet.name_rows(ax, row_names, offset=13)
    ax.set_xticks(range(n), column_names)
    strip_x_axis(ax)


__all__ = ["leaderboard", "leaderboard_tracks", "pairwise"]
