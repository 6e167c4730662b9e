"""The run at a glance, two columns wide: bands of stages, and marks where evidence, failures and codes are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..trajectories.stages import Stage

if TYPE_CHECKING:
    from .transcript_view import TranscriptView


class Minimap(Widget):
    """One row stands for a share of the transcript. The current place is bright; a click goes there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"minimap--s{number}" for number in range(1, 6)), "minimap--evidence", "minimap--failed", "minimap--here", "minimap--hit",
    }  # fmt: skip

    class Jump(Message):
        """Go to this share of the transcript, in [0, 1]."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._stages: list[tuple[int, Stage | None]] = []
        self._height = 1
        self._marks: dict[str, list[int]] = {}
        self._view = (0, 0)

    def show(
        self, stages: list[tuple[int, Stage | None]], height: int, marks: dict[str, list[int]], view: tuple[int, int]
    ) -> None:
        """First row and stage of every turn, in order; rows of marks by kind; first and last row in view."""
        self._stages, self._height, self._marks, self._view = stages, max(1, height), marks, view
        self.refresh()

    def follow(self, view: TranscriptView) -> None:
        """Show what a transcript shows now."""
        layout = view.layout_
        if not layout.height:
            return
        stages = [(layout.turn_row(turn), layout.blocks[layout.block_of_turn(turn)].stage) for turn in layout.turns]
        failed = [layout.turn_row(block.turn) for block in layout.blocks if block.kind == "turn" and block.failed]
        evidence = [layout.turn_row(turn) for turn in sorted(view.evidence_turns)]
        marks = {"evidence": evidence, "failed": failed, "hit": view.hit_rows()}
        self.show(stages, layout.height, marks, (view.top, view.top + view.size.height))

    def render_line(self, y: int) -> Strip:
        rows = max(1, min(self.size.height, self._height))
        if y >= rows:
            return Strip.blank(self.size.width, self.rich_style)
        low, high = y * self._height // rows, max((y + 1) * self._height // rows, y * self._height // rows + 1)
        stage = None
        for first, name in self._stages:
            if first >= high:
                break
            stage = name
        base = self.rich_style
        band = base + self.get_component_rich_style(f"minimap--{stage.lower()}", partial=True) if stage else base
        here = self._view[0] < high and low <= self._view[1]
        mark, style = " ", base
        for kind, char in (("evidence", "★"), ("hit", "•"), ("failed", "✗")):
            if any(low <= row < high for row in self._marks.get(kind, ())):
                mark, style = char, base + self.get_component_rich_style(f"minimap--{kind}", partial=True)
                break
        if here:
            style += self.get_component_rich_style("minimap--here", partial=True)
        return Strip([Segment("█" if here else "▌", band) if stage else Segment(" ", base), Segment(mark, style)], 2)

    def on_click(self, event: events.Click) -> None:
        rows = max(1, min(self.size.height, self._height))
        self.post_message(self.Jump(min(1.0, event.y / rows)))
