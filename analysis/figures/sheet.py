"""The sheet that a figure is drawn on: two columns of a journal, or one, or a phone's screen.

`Sheet` hides the difference from the figure functions: it makes the figure and its axes, names
rows, and places columns of text beside or above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...console import cells
from ..tables.grouping import AGENTS, RowKind
from .style import NOTE_SIZE, TEXT_SIZE, distinct_labels, set_row_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOUBLE_COLUMN_MM = 183.0
SINGLE_COLUMN_MM = 89.0
"""Widths of figures in journals."""
_MM_PER_INCH = 25.4
_CHARACTER_INCHES = 0.64 * TEXT_SIZE / 72
"""Width of a digit of the texts beside rows."""
_COLUMN_GAP = 2.0
"""Between columns of text, in characters."""
_NAME_INCHES = 1.5
"""Room for the names of rows beside the plots."""
_MAX_NAME = 46
"""Columns of a row's name: two lines beside a row, or one above it."""
_CELL_HALF_WIDTH = 0.485
_CELL_HALF_HEIGHT = 0.46
"""Of a coloured cell of a matrix, in units of a row: a little white stays between cells."""


class TextColumn(NamedTuple):
    """A column of text beside the rows of a plot."""

    align: Literal["left", "right"]
    heading: str
    texts: Sequence[str]
    """One text for each row."""

    @property
    def width(self) -> int:
        """Width of the widest text in characters."""
        return max(cells(text) for text in (self.heading, *self.texts))


@dataclass(frozen=True)
class Sheet:
    """Both columns of a page or, if `narrow`, one of them, which is as wide as a phone's screen.

    On a narrow sheet axes stand below each other instead of side by side, and what stands beside a
    row on a page stands above it.
    """

    narrow: bool = False
    rows: RowKind = AGENTS
    """What the rows of the tables about agents stand for."""

    @property
    def width(self) -> float:
        """Width in inches; the report scales a figure to its column."""
        return (SINGLE_COLUMN_MM if self.narrow else DOUBLE_COLUMN_MM) / _MM_PER_INCH

    @property
    def bar_height(self) -> float:
        """Height of a bar as a share of its row's height."""
        return 0.3 if self.narrow else 0.62

    def rows_height(self, n_rows: int, row_height: float, *, with_texts: bool = False) -> float:
        """Height in inches of `n_rows` rows that take `row_height` each on a page.

        On a narrow sheet a row has a height of its own, as its name stands above it; more if its
        texts do too (`with_texts`).
        """
        if not self.narrow:
            return n_rows * row_height
        return n_rows * (0.6 if with_texts else 0.42)

    # Figures and axes

    def blank_figure(self, height: float, width: float | None = None) -> Figure:
        """An empty figure, in inches, whose layout keeps labels off the axes.

        It is made without pyplot, so that no global state is touched.
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width or self.width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure

    def adjacent_axes(
        self,
        heights: Sequence[float],
        width_ratios: Sequence[float],
        margin: float,
        columns: Sequence[TextColumn] = (),
    ) -> tuple[Figure, list[Axes]]:
        """A figure with axes side by side; below each other on a narrow sheet.

        `heights` and `width_ratios` are those of the plots, `margin` is the room around them, in
        inches. If there are `columns` of text, a page has axes for them at its right; a narrow
        sheet has them above its rows.
        """
        if not self.narrow:
            figure = self.blank_figure(max(heights) + margin)
            ratios = self._with_text_width(width_ratios, columns)
            axes = figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)
            return figure, list(axes.flat)
        gaps = 0.55 * (len(heights) - 1)
        figure = self.blank_figure(sum(heights) + gaps + margin)
        axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)
        return figure, list(axes.flat)

    def _with_text_width(
        self, width_ratios: Sequence[float], columns: Sequence[TextColumn]
    ) -> list[float]:
        """Ratios of the widths of plots and, if there are columns of text, of these."""
        columns = _filled(columns)
        if not columns:
            return list(width_ratios)
        text_width = _CHARACTER_INCHES * sum(column.width + _COLUMN_GAP for column in columns)
        plot_width = max(1.0, self.width - _NAME_INCHES - text_width)
        total = sum(width_ratios)
        return [*(plot_width * ratio / total for ratio in width_ratios), text_width]

    def small_multiples(
        self, n_axes: int, max_columns: int, height: float, margin: float
    ) -> tuple[Figure, list[Axes]]:
        """A figure with `n_axes` axes of one scale in a grid of at most `max_columns` columns.

        `height` of each and `margin` around them all are in inches.
        """
        n_columns = min(max_columns, n_axes)
        n_rows = -(-n_axes // n_columns)
        figure = self.blank_figure(n_rows * height + margin)
        grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
        axes = list(grid.flat)
        for ax in axes[:n_axes]:
            ax.tick_params(labelbottom=True)
        for ax in axes[n_axes:]:
            ax.remove()
        return figure, axes[:n_axes]

    def draw_cell(self, ax: Axes, x: float, y: float, colour: str, alpha: float) -> float:
        """Draw the coloured ground of a cell of a matrix; return the y of its middle."""
        from matplotlib.patches import Rectangle

        # On a narrow sheet the row's name stands above the cells, which are lower for that.
        height_above = 0.28 if self.narrow else _CELL_HALF_HEIGHT
        ax.add_patch(
            Rectangle(
                (x - _CELL_HALF_WIDTH, y - height_above),
                2 * _CELL_HALF_WIDTH,
                height_above + _CELL_HALF_HEIGHT,
                facecolor=colour,
                alpha=alpha,
                linewidth=0,
            )
        )
        return y + (_CELL_HALF_HEIGHT - height_above) / 2

    # Names and texts of rows

    def label_rows(
        self, axes: Sequence[Axes], names: Sequence[str], columns: Sequence[TextColumn]
    ) -> None:
        """Name the rows that all axes share, and add columns of text.

        On a page the last axes hold the columns and nothing else. On a narrow sheet the texts of a
        row stand above it in the first axes.
        """
        if self.narrow:
            texts = [_joined_texts(columns, row) for row in range(len(names))]
            first, *others = axes
            self.name_rows(first, names, texts)
            for ax in others:
                self.name_rows(ax, names)
            return
        *plots, text_axes = axes
        for ax in plots:
            self.name_rows(ax, names)
            ax.tick_params(labelleft=ax is plots[0])
        text_axes.set_ylim(plots[0].get_ylim())
        _draw_text_columns(text_axes, columns)

    def name_rows(
        self, ax: Axes, names: Sequence[str], texts: Sequence[str] = (), offset: float = 8.0
    ) -> None:
        """Write names down the y axis, cut to what there is room for.

        On a narrow sheet they stand `offset` points above the middle of the rows, with the `texts`
        of each row below its name.
        """
        names = distinct_labels(names, _MAX_NAME)
        if not self.narrow:
            set_row_names(ax, names)
            return
        set_row_names(ax, [""] * len(names))
        ax.set_ylim(len(names) - 0.5, -0.7)
        name_offset = offset + (11 if texts else 0)
        for row, name in enumerate(names):
            _write_above_row(ax, row, name, offset=name_offset, size=TEXT_SIZE)
        for row, text in enumerate(texts):
            _write_above_row(ax, row, text, offset=offset, size=NOTE_SIZE)


def _joined_texts(columns: Sequence[TextColumn], row: int) -> str:
    """The texts of a row with their headings, on one line; empty texts are left out."""
    return " · ".join(
        f"{column.heading} {column.texts[row]}" for column in columns if column.texts[row]
    )


def _write_above_row(ax: Axes, row: int, text: str, *, offset: float, size: float) -> None:
    ax.annotate(
        text,
        (0, row),
        xycoords=("axes fraction", "data"),
        xytext=(0, offset),
        textcoords="offset points",
        fontsize=size,
        va="bottom",
        in_layout=False,
        zorder=5,
    )


def _filled(columns: Sequence[TextColumn]) -> list[TextColumn]:
    """The columns that have a text."""
    return [column for column in columns if any(column.texts)]


def _draw_text_columns(ax: Axes, columns: Sequence[TextColumn]) -> None:
    """Write the columns side by side, each as wide as its widest text."""
    columns = _filled(columns)
    ax.axis("off")
    ax.set_title(" ")  # reserves the line of headings
    total = sum(column.width + _COLUMN_GAP for column in columns)
    left = 0.0
    for column in columns:
        left += _COLUMN_GAP
        edge = left if column.align == "left" else left + column.width
        left += column.width
        for row, text in enumerate(column.texts):
            _write_in_column(ax, (edge / total, row), text, column, coordinates="data")
        _write_in_column(ax, (edge / total, 1), column.heading, column, coordinates="axes fraction")


def _write_in_column(
    ax: Axes, place: tuple[float, float], text: str, column: TextColumn, coordinates: str
) -> None:
    """Write a row's text, or the heading of a column above all rows (`axes fraction`)."""
    is_heading = coordinates == "axes fraction"
    ax.annotate(
        text,
        place,
        xycoords=("axes fraction", coordinates),
        xytext=(0, 8 if is_heading else 0),
        textcoords="offset points",
        va="bottom" if is_heading else "center",
        ha=column.align,
        fontsize=TEXT_SIZE,
        in_layout=False,
    )
