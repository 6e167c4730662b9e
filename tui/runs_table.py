"""The table of runs, which formats only the rows on screen.

Textual's DataTable measures every cell of every row: 10,000 runs take it 3 s to show, and again
after each filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..sanitize import sanitize_line
from ..views.run_columns import RunColumn, column_named, columns_of, fit_columns, sort_rows
from ..views.run_rows import RunRow


class RunsTable(ScrollView, can_focus=True):
    """Rows of runs with a cursor, marks and a sort column. Line 0, the heading, does not scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "runs--header",
        "runs--cursor",
        "runs--marked",
        "runs--good",
        "runs--warn",
        "runs--bad",
        "runs--unknown",
        "runs--code",
        "runs--waiting",
        "runs--sorted",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Down", show=False),
        Binding("k,up", "move(-1)", "Up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("b,pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(False)", "First run", show=False),
        Binding("G,end", "edge(True)", "Last run", show=False),
        Binding("enter,l,right", "open", "Open"),
        Binding("space", "mark", "Mark"),
        Binding("asterisk", "mark_all", "Mark all shown, or none", show=False),
        Binding(
            "less_than_sign,comma", "sort_by(-1)", "Sort by the column to the left", show=False
        ),
        Binding(
            "greater_than_sign,full_stop",
            "sort_by(1)",
            "Sort by the column to the right",
            show=False,
        ),
        Binding("r", "reverse", "Reverse the order", show=False),
    ]

    @dataclass
    class Opened(Message):
        """The user opens a run."""

        row: RunRow

    @dataclass
    class Moved(Message):
        """The cursor is on another row; None if the table is empty."""

        row: RunRow | None

    class Changed(Message):
        """Marks or order changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[RunRow] = ()
        self.order: list[int] = []
        self.marked: set[int] = set()
        self.cursor = 0
        self.sorting: tuple[str | None, bool] = None, False
        """Key of the column that rows are sorted by, and whether descending."""
        self.columns: Sequence[RunColumn] = columns_of(())
        """The columns in which some run has a value."""
        self._columns: list[tuple[RunColumn, int]] = []
        """The columns that fit, with their widths."""

    # Content.

    def show(self, rows: Sequence[RunRow], order: Sequence[int]) -> None:
        """Show the rows at these indexes, sorted by the sort column.

        The cursor stays on its run as long as that is shown.
        """
        current = self.current
        self.rows = rows
        sort_column = self.sort_column
        if sort_column is None:
            self.order = list(order)
        else:
            self.order = sort_rows(rows, order, sort_column, self.sorting[1])
        self.cursor = min(self.cursor, max(0, len(self.order) - 1))
        if current is not None:
            for place, index in enumerate(self.order):
                if rows[index].number == current.number:
                    self.cursor = place
                    break
        self._resize()
        self.refresh()
        self.post_message(self.Moved(self.current))

    @property
    def current(self) -> RunRow | None:
        """The row under the cursor."""
        return self.rows[self.order[self.cursor]] if self.cursor < len(self.order) else None

    @property
    def sort_column(self) -> RunColumn | None:
        """The column that rows are sorted by; None for the order of the collection."""
        key = self.sorting[0]
        return None if key is None else column_named(key, self.columns)

    @property
    def sorted_by(self) -> str:
        """The sort column and its direction, for the status line."""
        sort_column = self.sort_column
        return "" if sort_column is None else f"{sort_column.title} {self._arrow}"

    @property
    def _arrow(self) -> str:
        return "↓" if self.sorting[1] else "↑"

    # Keys.

    def action_move(self, step: int) -> None:
        self.move_to(self.cursor + step)

    def action_page(self, step: int) -> None:
        self.move_to(self.cursor + step * max(1, self.size.height - 2))

    def action_edge(self, last: bool) -> None:
        self.move_to(len(self.order) - 1 if last else 0)

    def move_to(self, place: int) -> None:
        """Put the cursor on a shown row, from 0; outside, on the nearest one."""
        place = min(max(0, place), max(0, len(self.order) - 1))
        if place != self.cursor:
            self.refresh_line(self.cursor + 1)
            self.refresh_line(place + 1)
            self.cursor = place
            self._follow()
            self.post_message(self.Moved(self.current))

    def _follow(self) -> None:
        height = max(1, self.size.height - 1)
        top = int(self.scroll_offset.y)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def action_open(self) -> None:
        if self.current is not None:
            self.post_message(self.Opened(self.current))

    def action_mark(self) -> None:
        if self.current is not None:
            self.marked ^= {self.current.number}
            self.action_move(1)
            self.refresh()
            self.post_message(self.Changed())

    def action_mark_all(self) -> None:
        shown = {self.rows[i].number for i in self.order}
        self.marked = self.marked - shown if shown <= self.marked else self.marked | shown
        self.refresh()
        self.post_message(self.Changed())

    def action_sort_by(self, step: int) -> None:
        keys = [column.key for column, _ in self._columns]
        key = self.sorting[0]
        if key in keys:
            self.sort_on(keys[(keys.index(key) + step) % len(keys)])
        else:
            self.sort_on(keys[0 if step > 0 else -1])

    def action_reverse(self) -> None:
        key, descending = self.sorting
        if key is not None:
            self.sort_on(key, not descending)

    def sort_on(self, key: str | None, descending: bool = False) -> None:
        """Sort by the column of this key; None restores the order of the collection."""
        self.sorting = key, descending
        self.show(self.rows, self.order)
        self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            x = 1
            for column, width in self._columns:
                if x <= event.x <= x + width:
                    self.sort_on(column.key, self.sorting == (column.key, False))
                    return
                x += width + 1
            return
        place = int(self.scroll_offset.y) + event.y - 1
        if place < len(self.order):
            if place == self.cursor and event.chain >= 2:
                self.action_open()
            self.move_to(place)

    # Drawing.

    def on_resize(self, event: events.Resize) -> None:
        self._fit()
        self._resize()

    def choose_columns(self, rows: Sequence[RunRow]) -> None:
        """Draw the columns in which some of these runs has a value."""
        self.columns = columns_of(rows)
        self._fit()
        self.refresh()

    def _fit(self) -> None:
        self._columns = fit_columns(self.scrollable_size.width, self.columns)

    def _resize(self) -> None:
        self.virtual_size = Size(self.scrollable_size.width, len(self.order) + 1)
        self._follow()

    def _overlay(self, name: str) -> Style:
        return self.get_component_rich_style(f"runs--{name}", partial=True)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_size.width
        if y == 0:
            return self._header(width)
        place = int(self.scroll_offset.y) + y - 1
        if place >= len(self.order):
            return Strip.blank(width, self.rich_style)
        return self._draw(self.rows[self.order[place]], width, place == self.cursor)

    def _header(self, width: int) -> Strip:
        base = self.get_component_rich_style("runs--header")
        segments = [Segment(" ", base)]
        for column, size in self._columns:
            is_sorted = column.key == self.sorting[0]
            text = set_cell_size(column.title + (self._arrow if is_sorted else ""), size)
            if column.align_right:
                text = text.rstrip().rjust(size)
            style = base + self._overlay("sorted") if is_sorted else base
            segments.append(Segment(text + " ", style))
        return Strip(segments).adjust_cell_length(width, base)

    def _draw(self, row: RunRow, width: int, cursor: bool) -> Strip:
        base = self.get_component_rich_style("runs--cursor") if cursor else self.rich_style
        if row.state != "scored":
            base += self._overlay("waiting")
        segments = [
            Segment("●" if row.number in self.marked else " ", base + self._overlay("marked"))
        ]
        for column, size in self._columns:
            text = sanitize_line(column.text(row))
            if cell_len(text) > size:
                text = set_cell_size(text, size - 1) + "…"
            text = text.rjust(size) if column.align_right else set_cell_size(text, size)
            # The colours of grades are unreadable on the cursor.
            name = column.style(row) if column.style and not cursor else ""
            style = base + self._overlay(name) if name else base
            segments.append(Segment(text + " ", style))
        return Strip(segments).adjust_cell_length(width, base)
