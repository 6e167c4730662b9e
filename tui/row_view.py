"""What the transcript and the side panel share: rows made when they are drawn, selectable text.

Textual's own widgets measure or mount every row before the first is drawn, which takes seconds for
a large run.
"""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from ..sanitize import sanitize_line
from .safe_text import Mark, paint


class RowView(ScrollView, can_focus=True):
    """A scrolling view of rows of raw text, which is sanitised where it is drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,pagedown", "page(1)", "Page down", show=False),
        Binding("b,pageup", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(False)", "Top", show=False),
        Binding("G,end", "edge(True)", "Bottom", show=False),
    ]
    PREFIX: ClassVar[str]
    """Begins the names of the component classes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.show_horizontal_scrollbar = False

    @property
    def top(self) -> int:
        """The row at the top of the view."""
        return int(self.scroll_offset.y)

    def go(self, y: int) -> None:
        """Bring a row to the top, as far as there is something below it."""
        self.scroll_to(y=max(0, y), animate=False, force=True)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.virtual_size.height

    def action_page(self, step: int) -> None:
        self.go(self.top + step * max(1, self.size.height - 2))

    def action_edge(self, last: bool) -> None:
        self.go(self.rows - self.size.height if last else 0)

    def overlay(self, name: str) -> Style:
        """A component's style, to be laid over another."""
        return self.get_component_rich_style(f"{self.PREFIX}--{name}", partial=True)

    def row_text(self, y: int) -> tuple[str, bool] | None:
        """The raw text of a row, and whether it continues the line of the row above.

        None past the end.
        """
        raise NotImplementedError

    def draw(
        self, y: int, text: str, base: Style, marks: list[Mark], left: list[Segment], width: int
    ) -> Strip:
        """A row, filled up to the width: `left`, which cannot be selected, then text with marks."""
        selection = self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is not None:
            start, end = span
            style = self.screen.get_component_rich_style("screen--selection")
            marks = [*marks, (start, len(text) if end == -1 else end, style)]
        gutter = Strip(left)
        body = Strip(paint(text, base, marks, self.overlay("replaced")))
        body = body.adjust_cell_length(max(0, width - gutter.cell_length), base).apply_offsets(0, y)
        return Strip.join([gutter, body]) if left else body

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, sanitised; a wrapped line is one line again."""
        lines: list[str] = []
        y = max(0, selection.start.y if selection.start else 0)
        while True:
            span, row = selection.get_span(y), self.row_text(y)
            if span is None or row is None:
                return "\n".join(lines), "\n"
            text, continues_line = row
            start, end = span
            selected = sanitize_line(text)[start : None if end == -1 else end]
            if lines and continues_line:
                lines[-1] += selected
            else:
                lines.append(selected)
            y += 1

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
