"""A scrolling pane of styled lines with a cursor over those that lead somewhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ..judge.card.view_parts import Target
from ..views.styled_lines import StyledLine
from ..views.wrapping import cuts
from .row_view import RowView
from .safe_text import Mark

STYLES = (
    "good",
    "warn",
    "bad",
    "unknown",
    "dim",
    "head",
    "id",
    "code",
    "link",
    "quote",
    "literal",
    "strong",
    "s1",
    "s2",
    "s3",
    "s4",
    "s5",
    "added",
    "removed",
    "cursor",
    "replaced",
)


class Pane(RowView):
    """Lines wrapped between words, with a cursor.

    `j` and `k` move over selectable lines, or scroll where there are none.
    """

    PREFIX = "pane"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"pane--{name}" for name in STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Next item", show=False),
        Binding("k,up", "move(-1)", "Previous item", show=False),
        Binding("enter", "choose", "Go to what the item rests on", show=False),
    ]

    @dataclass
    class Selected(Message):
        """The cursor is on another item."""

        target: Target

    @dataclass
    class Chosen(Message):
        """An item was chosen by enter or by a click."""

        target: Target

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[StyledLine] = ()
        self.selected: str | None = None
        """Id of the target under the cursor."""
        self._ends: list[int] = []
        self._width = 0

    def show(self, lines: Sequence[StyledLine], *, keep: bool = False) -> None:
        """Show these lines; `keep` leaves the cursor where it is, for lines like those before."""
        self.lines = lines
        self._measure()
        if keep:
            self._follow()
        else:
            self.selected = None
            self.go(0)

    def select(self, target: Target) -> None:
        """Put the cursor on the item of this target."""
        self.selected = target.id
        self.refresh()
        self._follow()
        self.post_message(self.Selected(target))

    @property
    def target(self) -> Target | None:
        """Where the item under the cursor leads."""
        place = self._selected_place()
        return None if place is None else self.lines[place].target

    # Layout.

    def _cuts(self, item: StyledLine) -> list[int]:
        return cuts(item.text, max(8, self._width - item.indent), words=True)

    def _measure(self) -> None:
        self._width = max(10, self.scrollable_size.width or 40)
        self._ends = list(accumulate(len(self._cuts(item)) for item in self.lines))
        self.virtual_size = Size(self._width, self._ends[-1] if self._ends else 0)
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        if self.scrollable_size.width != self._width:
            self._measure()

    def _is_selected(self, item: StyledLine) -> bool:
        return item.selectable and item.target is not None and item.target.id == self.selected

    def _selected_place(self) -> int | None:
        for place, item in enumerate(self.lines):
            if self._is_selected(item):
                return place
        return None

    def _row_of(self, place: int) -> int:
        return self._ends[place - 1] if place else 0

    def _follow(self) -> None:
        """Scroll the selected item into view."""
        place = self._selected_place()
        if place is None:
            return
        row, height = self._row_of(place), max(1, self.size.height)
        # The details of the item stand below it, so it is kept in the upper part.
        if row < self.top or row >= self.top + height - min(6, height // 2):
            self.go(row - height // 3)

    # Keys.

    def action_move(self, step: int) -> None:
        stops = [place for place, item in enumerate(self.lines) if item.selectable]
        if not stops:
            self.go(self.top + step)
            return
        place = self._selected_place()
        if place is None:
            next_stop = stops[0 if step > 0 else -1]
        else:
            next_stop = stops[min(max(0, stops.index(place) + step), len(stops) - 1)]
        target = self.lines[next_stop].target
        if target is not None and target.id != self.selected:
            self.select(target)

    def action_choose(self) -> None:
        if self.target is not None:
            self.post_message(self.Chosen(self.target))

    def on_click(self, event: events.Click) -> None:
        place = bisect_right(self._ends, self.top + event.y)
        item = self.lines[place] if place < len(self.lines) else None
        if item is None or item.target is None:
            return
        if item.selectable:
            self.select(item.target)
        self.post_message(self.Chosen(item.target))

    # Drawing.

    def _row(self, y: int) -> tuple[StyledLine, int, int] | None:
        """The line at a row, and which characters of it the row shows."""
        place = bisect_right(self._ends, y)
        if place == len(self._ends):
            return None
        item = self.lines[place]
        edges = [*self._cuts(item), len(item.text)]
        part = y - self._row_of(place)
        return item, edges[part], edges[part + 1]

    def row_text(self, y: int) -> tuple[str, bool] | None:
        row = self._row(y)
        if row is None:
            return None
        item, start, end = row
        return item.text[start:end], start > 0

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_size.width
        row = self._row(self.top + y)
        if row is None:
            return Strip.blank(width, self.rich_style)
        item, start, end = row
        base = self.rich_style
        if self._is_selected(item):
            base += self.overlay("cursor")
        marks: list[Mark] = []
        offset = -start
        for text, style in item.parts:
            if style:
                marks.append((offset, offset + len(text), self.overlay(style)))
            offset += len(text)
        left = [Segment(" " * item.indent, base)] if start and item.indent else []
        return self.draw(self.top + y, item.text[start:end], base, marks, left, width)
