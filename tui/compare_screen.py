"""Two runs, or two scorecards of one run: differences above, both transcripts below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import get_current_worker

from ..judge.card.view import criterion_target
from ..judge.card.view_parts import Target
from ..views.collection import Collection, Opened
from ..views.run_rows import RunRow
from ..views.scorecard_differences import difference_lines
from ..views.styled_lines import StyledLine, line
from ..views.transcript_layout import Layout, blocks_of
from .dialogs import Reader, key_map
from .pane import Pane
from .safe_text import safe_line
from .transcript_view import TranscriptView

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard


class CompareScreen(Screen[None]):
    """Selecting a difference brings both transcripts to the evidence of each verdict."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "item(1)", "Next difference", key_display="]"),
        Binding("left_square_bracket", "item(-1)", "Previous difference", show=False),
        Binding("e", "evidence", "Evidence on both sides"),
        Binding("v", "everything", "All criteria, or differences only"),
        *(
            Binding(str(n), f"stage('S{n}')", f"Both to the start of S{n}", show=False)
            for n in range(1, 6)
        ),
        Binding("question_mark", "help", "Help"),
        Binding("escape,q", "leave", "Back"),
    ]

    def __init__(
        self,
        collection: Collection,
        rows: tuple[RunRow, RunRow],
        cards: tuple[ScoreCard | None, ScoreCard | None],
    ) -> None:
        """`cards` replace the rows' own scorecards where they are not None."""
        super().__init__()
        self.collection, self.rows, self._cards = collection, rows, cards
        self.sides: list[Opened] = []
        self._everything = False

    def compose(self) -> ComposeResult:
        yield Static(
            safe_line(f"Compare · {self.rows[0].id} · {self.rows[1].id}"), classes="bar -strong"
        )
        yield Pane(id="difference")
        with Horizontal(id="compare-body"):
            for side in ("left", "right"):
                with Vertical():
                    yield Static(classes="bar", id=f"{side}-title")
                    yield TranscriptView(id=side)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.pane = self.query_one("#difference", Pane)
        self.views = [
            self.query_one("#left", TranscriptView),
            self.query_one("#right", TranscriptView),
        ]
        self.pane.focus()
        self.pane.show([line(("reading …", "dim"))])
        self.load()

    @work(thread=True, group="compare", exclusive=True)
    def load(self) -> None:
        """Read both runs and their scorecards; a run without one is scored."""
        worker = get_current_worker()
        sides = []
        for row, replacement in zip(self.rows, self._cards, strict=True):
            opened = self.collection.open(row)
            card = replacement or opened.card
            if card is None and opened.run is not None:
                scored = self.collection.score(row)
                card = self.collection.card(scored) if scored.state == "scored" else None
            sides.append(replace(opened, card=card))
        if not worker.is_cancelled:
            self.app.call_from_thread(self.show, sides)

    def show(self, sides: list[Opened]) -> None:
        """Put both on the screen."""
        self.sides = sides
        for view, opened, name in zip(self.views, sides, ("left", "right"), strict=True):
            blocks = blocks_of(opened.run, opened.segmentation) if opened.run else ()
            view.show(Layout(blocks, view.text_width))
            view.go_turn(1)
            judge = opened.card.judge.name if opened.card else "no scorecard"
            self.query_one(f"#{name}-title", Static).update(safe_line(f"{opened.row.id} · {judge}"))
        self._fill()

    def _lines(self) -> list[StyledLine]:
        cards = [side.card for side in self.sides]
        if len(cards) < 2 or cards[0] is None or cards[1] is None:
            return [line(("a scorecard is missing: there is nothing to compare", "warn"))]
        rubric = self.collection.rubric_of_card(cards[1])
        return difference_lines(
            cards[0], cards[1], rubric, self.pane.selected or "", self._everything
        )

    def _fill(self) -> None:
        self.pane.show(self._lines(), keep=True)

    def action_item(self, step: int) -> None:
        self.pane.action_move(step)

    def on_pane_selected(self, event: Pane.Selected) -> None:
        self._fill()

    def on_pane_chosen(self, event: Pane.Chosen) -> None:
        self.action_evidence()

    def action_everything(self) -> None:
        self._everything = not self._everything
        self._fill()

    def action_evidence(self) -> None:
        """Bring each side to the first evidence of its own verdict on the selected item."""
        selected = self.pane.target
        if selected is None:
            self.action_item(1)
            return
        for view, side in zip(self.views, self.sides, strict=True):
            target = self._target_on(side.card, selected)
            if target is None or not target.turns:
                continue
            view.mark_evidence(target.turns)
            for place, turn in enumerate(target.turns):
                if turn > 0:
                    quote = target.quotes[place] if place < len(target.quotes) else ""
                    view.show_quote(turn, quote)
                    break

    def _target_on(self, card: ScoreCard | None, selected: Target) -> Target | None:
        """The evidence on one scorecard of the selected item; None if it does not have the item."""
        if card is None:
            return None
        if selected.kind == "code":
            side = "left" if card is self.sides[0].card else "right"
            return selected if selected.id.startswith(side) else None
        for stage in card.stages.values():
            for result in stage.criteria:
                if result.id == selected.id:
                    return criterion_target(result)
        return None

    def action_stage(self, stage: str) -> None:
        for view, side in zip(self.views, self.sides, strict=True):
            segments = side.segmentation.segments if side.segmentation else ()
            for segment in segments:
                if segment.stage == stage:
                    view.go_turn(segment.first_turn)
                    break

    def action_help(self) -> None:
        self.app.push_screen(Reader("Keys", key_map(self)))

    def action_leave(self) -> None:
        self.app.pop_screen()
