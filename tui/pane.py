"""A scrolling pane of styled lines with a cursor over those that lead somewhere; draws only the rows on screen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from ..sanitize import sanitize_line
from .lines import Line, Target
from .safe_text import Mark, paint
from .transcript_layout import cuts

STYLES = (
    "good", "warn", "bad", "unknown", "dim", "head", "id", "code", "link", "quote", "literal", "strong",
    "s1", "s2", "s3", "s4", "s5", "added", "removed",
)  # fmt: skip


class Pane(ScrollView, can_focus=True):
    """Lines wrapped between words. `j` and `k` move over selectable lines, or scroll where there is none."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*(f"pane--{name}" for name in STYLES), "pane--cursor", "pane--replaced"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Next item", show=False),
        Binding("k,up", "move(-1)", "Previous item", show=False),
        Binding("space,pagedown", "page(1)", "Page down", show=False),
        Binding("b,pageup", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(False)", "Top", show=False),
        Binding("G,end", "edge(True)", "Bottom", show=False),
        Binding("enter", "choose", "Go to what the item rests on", show=False),
    ]

    class Selected(Message):
        """The cursor is on another item."""

        def __init__(self, pane: Pane, target: Target) -> None:
            super().__init__()
            self.pane, self.target = pane, target

        @property
        def control(self) -> Pane:
            return self.pane

    class Chosen(Message):
        """An item was chosen by enter or by a click."""

        def __init__(self, pane: Pane, target: Target) -> None:
            super().__init__()
            self.pane, self.target = pane, target

        @property
        def control(self) -> Pane:
            return self.pane

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.show_horizontal_scrollbar = False
        self.lines: Sequence[Line] = ()
        self.selected: str | None = None
        """Id of the target under the cursor."""
        self._ends: list[int] = []
        self._width = 0
        self._styles: dict[str, Style] = {}

    def show(self, lines: Sequence[Line], *, keep: bool = False) -> None:
        """Show these lines; `keep` stays at the same place (the same lines, one of them opened, say)."""
        self.lines = lines
        if not keep:
            self.selected = None
        self._measure()
        if not keep:
            self.scroll_to(0, 0, animate=False)
        elif self.selected is not None:
            self._follow()

    def select(self, id: str) -> None:
        """Put the cursor on the item of this target without telling anyone."""
        self.selected = id
        self.refresh()
        self._follow()

    @property
    def target(self) -> Target | None:
        """Where the item under the cursor leads."""
        return next((x.target for x in self.lines if x.selectable and x.target and x.target.id == self.selected), None)

    # Layout.

    def _cuts(self, item: Line) -> list[int]:
        text = "".join(part for part, _ in item.parts)
        return cuts(text, max(8, self._width - item.indent), words=True)

    def _measure(self) -> None:
        self._width = max(10, self.scrollable_size.width or 40)
        self._ends = list(accumulate(len(self._cuts(item)) for item in self.lines))
        self.virtual_size = Size(self._width, self._ends[-1] if self._ends else 0)
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        if self.scrollable_size.width != self._width:
            self._measure()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def _stops(self) -> list[int]:
        return [n for n, item in enumerate(self.lines) if item.selectable]

    def _place(self) -> int | None:
        return next(
            (n for n, x in enumerate(self.lines) if x.selectable and x.target and x.target.id == self.selected), None
        )

    def _row_of(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    def _follow(self) -> None:
        place = self._place()
        if place is None:
            return
        row, top, height = self._row_of(place), int(self.scroll_offset.y), max(1, self.size.height)
        # What belongs to the item (its reasons) stands below it, so it is kept in the upper part.
        if row < top or row >= top + height - min(6, height // 2):
            self.scroll_to(y=max(0, row - height // 3), animate=False, force=True)

    # Keys.

    def action_move(self, step: int) -> None:
        stops = self._stops()
        if not stops:
            self.scroll_to(y=max(0, int(self.scroll_offset.y) + step), animate=False, force=True)
            return
        place = self._place()
        if place is None:
            new = stops[0 if step > 0 else -1]
        else:
            new = stops[min(max(0, stops.index(place) + step), len(stops) - 1)]
        target = self.lines[new].target
        if target is not None and target.id != self.selected:
            self.select(target.id)
            self.post_message(self.Selected(self, target))

    def action_page(self, step: int) -> None:
        y = int(self.scroll_offset.y) + step * max(1, self.size.height - 2)
        self.scroll_to(y=max(0, y), animate=False, force=True)

    def action_edge(self, last: bool) -> None:
        self.scroll_to(y=max(0, self.virtual_size.height - self.size.height) if last else 0, animate=False, force=True)

    def action_choose(self) -> None:
        if self.target is not None:
            self.post_message(self.Chosen(self, self.target))

    def on_click(self, event: events.Click) -> None:
        y = int(self.scroll_offset.y) + event.y
        number = bisect_right(self._ends, y)
        item = self.lines[number] if number < len(self.lines) else None
        if item is None or item.target is None:
            return
        if item.selectable:
            self.select(item.target.id)
            self.post_message(self.Selected(self, item.target))
        self.post_message(self.Chosen(self, item.target))

    # Drawing.

    def _style(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"pane--{name}", partial=True)
        return self._styles[name]

    def _row_text(self, y: int) -> tuple[Line, str, int, int] | None:
        """The line at a row, its whole text, and which characters of it the row shows."""
        if not self._ends or y >= self._ends[-1]:
            return None
        number = bisect_right(self._ends, y)
        item = self.lines[number]
        text = "".join(part for part, _ in item.parts)
        starts = self._cuts(item)
        part = y - self._row_of(number)
        return item, text, starts[part], starts[part + 1] if part + 1 < len(starts) else len(text)

    def render_line(self, y: int) -> Strip:
        row, width = int(self.scroll_offset.y) + y, self.scrollable_size.width
        found = self._row_text(row)
        if found is None:
            return Strip.blank(width, self.rich_style)
        item, text, start, end = found
        here = item.selectable and item.target is not None and item.target.id == self.selected
        base = self.rich_style + self._style("cursor") if here else self.rich_style
        marks: list[Mark] = []
        at = -start
        for part, name in item.parts:
            if name:
                marks.append((at, at + len(part), self._style(name)))
            at += len(part)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row)) is not None:
            low, high = span
            chosen = self.screen.get_component_rich_style("screen--selection")
            marks.append((low, end - start if high == -1 else high, chosen))
        pad = item.indent if start else 0
        segments = paint(text[start:end], base, marks, self._style("replaced"))
        body = Strip(segments).adjust_cell_length(max(0, width - pad), base).apply_offsets(0, row)
        return Strip.join([Strip([Segment(" " * pad, base)], pad), body]) if pad else body

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        first = selection.start.y if selection.start else 0
        last = selection.end.y if selection.end else self.virtual_size.height - 1
        pieces: list[str] = []
        for y in range(max(0, first), last + 1):
            found, span = self._row_text(y), selection.get_span(y)
            if found is None or span is None:
                continue
            _, text, start, end = found
            row = sanitize_line(text[start:end])
            pieces.append(("" if start or not pieces else "\n") + row[span[0] : None if span[1] == -1 else span[1]])
        return "".join(pieces), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
