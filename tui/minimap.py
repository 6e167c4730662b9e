"""The run at a glance, two columns wide: bands of stages; marks of evidence, hits and failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..trajectories.stages import Stage
from .transcript_view import TranscriptView


class Minimap(Widget):
    """Each row stands for a share of the transcript; what is in view is bright. Clicks go there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"minimap--s{number}" for number in range(1, 6)),
        "minimap--evidence",
        "minimap--failed",
        "minimap--here",
        "minimap--hit",
    }

    @dataclass
    class Jump(Message):
        """Go to this row of the transcript."""

        row: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._stages: list[tuple[int, Stage | None]] = []
        """First row and stage of every turn, in order."""
        self._height = 1
        self._marks: dict[str, list[int]] = {}
        """Rows of marks by kind, the most important kind first."""
        self._view = range(1)
        """Rows in view."""

    def follow(self, view: TranscriptView) -> None:
        """Draw the present state of a transcript."""
        layout = view.layout_
        if not layout.height:
            return
        self._stages = [
            (layout.turn_row(turn), layout.blocks[layout.block_of_turn(turn)].stage)
            for turn in layout.turns
        ]
        failed = [
            layout.turn_row(block.turn)
            for block in layout.blocks
            if block.kind == "turn" and block.failed
        ]
        evidence = [layout.turn_row(turn) for turn in view.evidence_turns]
        self._marks = {"evidence": evidence, "hit": view.hit_rows(), "failed": failed}
        self._height, self._view = layout.height, range(view.top, view.top + view.size.height + 1)
        self.refresh()

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"minimap--{name}", partial=True)

    @property
    def _rows(self) -> int:
        return max(1, min(self.size.height, self._height))

    def render_line(self, y: int) -> Strip:
        base, rows = self.rich_style, self._rows
        if y >= rows:
            return Strip.blank(self.size.width, base)
        low = y * self._height // rows
        high = max((y + 1) * self._height // rows, low + 1)
        in_view = self._view[0] < high and low <= self._view[-1]
        stage = self._stage_before(high)
        bar = Segment(" ", base)
        if stage is not None:
            bar = Segment("█" if in_view else "▌", base + self._style(stage.lower()))
        kind = self._mark_between(low, high)
        style = base + self._style(kind) if kind else base
        if in_view:
            style += self._style("here")
        return Strip([bar, Segment(_SIGNS.get(kind, " "), style)], 2)

    def _stage_before(self, row: int) -> Stage | None:
        """The stage of the last turn that begins before a row of the transcript."""
        for first_row, stage in reversed(self._stages):
            if first_row < row:
                return stage
        return None

    def _mark_between(self, low: int, high: int) -> str:
        """The most important kind of mark in these rows of the transcript; "" if there is none."""
        for kind, rows in self._marks.items():
            if any(low <= row < high for row in rows):
                return kind
        return ""

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Jump(min(event.y, self._rows) * self._height // self._rows))


_SIGNS = {"evidence": "★", "hit": "•", "failed": "✗"}
