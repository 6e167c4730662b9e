"""One line of tabs; a widget of one row, so that the side panel needs no container a tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget


class TabLine(Widget):
    """Names side by side, one of them active."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tabs--active"}

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names = tuple(names)
        self.active = self.names[0]

    def choose(self, name: str) -> None:
        """Make a tab the active one."""
        self.active = name
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        active = self.rich_style + self.get_component_rich_style("tabs--active")
        segments = [Segment(f" {name} ", active if name == self.active else self.rich_style) for name in self.names]
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        x = 0
        for name in self.names:
            if x <= event.x < x + len(name) + 2:
                self.post_message(self.Chosen(name))
            x += len(name) + 2
