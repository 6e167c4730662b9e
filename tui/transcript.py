"""The transcript: a line-API view that draws only the rows on screen, whatever the run's size."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..sanitize import replaced, sanitize_line
from ..trajectories.models import Run, Segmentation
from .layout import LONGEST, TAIL, HEAD, Block, Layout, blocks_of, cells, cuts

GUTTER = 4
"""Columns left of the text: stage band, evidence mark, space."""
_STAGE_STYLES = {"S1": "stage-1", "S2": "stage-2", "S3": "stage-3", "S4": "stage-4", "S5": "stage-5"}


class TranscriptView(ScrollView, can_focus=True):
    """Scrolls over the turns of a run. Anchors are (block, line), so folding and resizing do not jump."""

    COMPONENT_CLASSES = {
        "transcript--turn", "transcript--text", "transcript--reasoning", "transcript--code", "transcript--output",
        "transcript--error", "transcript--reply", "transcript--fold", "transcript--hit", "transcript--evidence",
        "transcript--replaced", "transcript--failed",
        "transcript--stage-1", "transcript--stage-2", "transcript--stage-3", "transcript--stage-4", "transcript--stage-5",
    }  # fmt: skip
    BINDINGS = [
        Binding("j,down", "scroll_down", "Down", show=False),
        Binding("k,up", "scroll_up", "Up", show=False),
        Binding("space,pagedown", "page_down", "Page down", show=False),
        Binding("b,pageup", "page_up", "Page up", show=False),
        Binding("g,home", "scroll_home", "Top", show=False),
        Binding("G,end", "scroll_end", "Bottom", show=False),
        Binding("l", "turn(1)", "Next turn"),
        Binding("h", "turn(-1)", "Previous turn"),
        Binding("z", "toggle_fold", "Fold/unfold"),
        Binding("Z", "toggle_all", "Fold/unfold all"),
    ]

    class TurnChanged(Message):
        """The turn at the top of the view changed."""

        def __init__(self, turn: int) -> None:
            super().__init__()
            self.turn = turn
