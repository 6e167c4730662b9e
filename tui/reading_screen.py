"""What reading and labelling a run share: a transcript, a minimap, a panel, and search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, Static, Tab, Tabs

from ..views.styled_lines import StyledLine
from .dialogs import Reader, key_map
from .minimap import Minimap
from .pane import Pane
from .safe_text import Entry, safe_line
from .transcript_view import TranscriptView


class ReadingScreen(Screen[None]):
    """Moves in the transcript and searches it. Its keys are not in the footer but in the help."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "turn(1)", "Next turn", show=False),
        Binding("h", "turn(-1)", "Previous turn", show=False),
        Binding("left_square_bracket", "criterion(-1)", "Previous criterion", show=False),
        Binding("n", "hit(1)", "Next hit", show=False),
        Binding("N", "hit(-1)", "Previous hit", show=False),
    ]
    TABS: ClassVar[tuple[str, ...]] = ()
    """What the panel shows, where there is a choice."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._heading = title
        self._trail: list[int] = []
        """Rows from which jumps were made."""

    def compose(self) -> ComposeResult:
        yield Static(safe_line(self._heading), classes="bar -strong", id="title")
        yield Static(classes="notes", id="notes")
        with Horizontal(id="run-body"):
            yield Minimap(id="minimap")
            yield TranscriptView(id="transcript")
            with Vertical(id="side"):
                if self.TABS:
                    tabs = Tabs(*(Tab(f" {name} ", id=name) for name in self.TABS), id="tabs")
                    tabs.can_focus = False  # The tab key goes from the transcript to the panel.
                    yield tabs
                yield Pane(id="panel")
        yield Entry(placeholder="search this run", id="search", compact=True)
        yield Static(id="status", classes="bar")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.transcript = self.query_one(TranscriptView)
        self.panel = self.query_one(Pane)
        self.set_focus(self.transcript)

    def show_notes(self, notes: Sequence[str]) -> None:
        """Show the first of the notes on a run above the transcript."""
        field = self.query_one("#notes", Static)
        field.set_class(bool(notes), "-shown")
        more = f" (and {len(notes) - 1} more: v v v shows all warnings)" if len(notes) > 1 else ""
        field.update(safe_line(notes[0] + more if notes else ""))

    def status(self) -> list[str]:
        """Parts of the status line; empty ones are left out."""
        raise NotImplementedError

    def show_status(self) -> None:
        """Draw the status line."""
        text = " · ".join(part for part in self.status() if part)
        self.query_one("#status", Static).update(safe_line(text))

    def hit_status(self) -> str:
        """Which search hit the reader is at."""
        hit, hits = self.transcript.hits
        return f"hit {hit} of {hits}" if hits else ""

    def on_transcript_view_turn_changed(self, event: TranscriptView.TurnChanged) -> None:
        self.show_status()

    def on_transcript_view_redrawn(self, event: TranscriptView.Redrawn) -> None:
        self.query_one(Minimap).follow(self.transcript)

    def on_minimap_jump(self, event: Minimap.Jump) -> None:
        self.transcript.go(event.row)

    def action_turn(self, step: int) -> None:
        self.transcript.action_turn(step)

    def action_criterion(self, step: int) -> None:
        self.panel.action_move(step)

    def leave_mark(self) -> None:
        """Remember the place of the reader, to go back to."""
        self._trail = [*self._trail[-50:], self.transcript.top]

    def action_back(self) -> None:
        if self._trail:
            self.transcript.go(self._trail.pop())

    # Search.

    def action_search(self) -> None:
        if isinstance(self.focused, Input):
            raise SkipAction  # A slash that is typed.
        field = self.query_one("#search", Input)
        field.add_class("-shown")
        field.value = ""
        self.set_focus(field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_search()
        if event.value:
            self.leave_mark()
            if not self.transcript.search(event.value):
                self.notify("Not found", timeout=2)
        self.show_status()

    def _close_search(self) -> None:
        self.query_one("#search", Input).remove_class("-shown")
        self.set_focus(self.transcript)

    def action_hit(self, step: int) -> None:
        self.transcript.next_hit(step)
        self.show_status()

    def action_leave(self) -> None:
        if self.query_one("#search", Input).has_focus:
            self._close_search()
        else:
            self.leave()

    def leave(self) -> None:
        """Go back to the screen below."""
        self.app.pop_screen()

    # Help.

    def legend(self) -> list[StyledLine]:
        """Lines of the help below the keys."""
        return []

    def action_help(self) -> None:
        self.app.push_screen(Reader("Keys", [*key_map(self), *self.legend()]))
