"""One run: its transcript beside its scorecard, with keys from every verdict to the words that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, Static
from textual.worker import get_current_worker

from ..errors import AmbjudgeError
from ..sanitize import replaced, sanitize_line
from ..trajectories.stages import STAGE_NAMES, Stage
from .dialogs import Reader, key_map
from .entry import Entry
from .layout import Layout, blocks_of
from .minimap import Minimap
from .paint import safe_line
from .pane import Pane
from .panels import Line, Target, about, code_target, file_lines, json_lines, line, plan_lines, scorecard_lines
from .rows import RunRow
from .source import Collection, Opened
from .tabs import TabLine
from .transcript import TranscriptView

if TYPE_CHECKING:
    from ..rubrics.model import Rubric
    from .app import Browser

TABS = ("Scorecard", "Plan", "Files", "JSON")


class RunScreen(Screen[None]):
    """Minimap, transcript, side panel. Every jump keeps the transcript and the panel on the same thing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "turn(1)", "Next turn", show=False),
        Binding("h", "turn(-1)", "Previous turn", show=False),
        Binding("L", "run(1)", "Next run", show=False),
        Binding("H", "run(-1)", "Previous run", show=False),
        *(Binding(str(n), f"stage('S{n}')", f"Next part of S{n}", show=False) for n in range(1, 6)),
        Binding("f", "failure(1)", "Next failure"),
        Binding("F", "failure(-1)", "Previous failure", show=False),
        Binding("d", "code(1)", "Next error code", show=False),
        Binding("D", "code(-1)", "Previous error code", show=False),
        Binding("right_square_bracket", "criterion(1)", "Next criterion", key_display="]"),
        Binding("left_square_bracket", "criterion(-1)", "Previous criterion", show=False),
        Binding("e", "evidence(1)", "Evidence"),
        Binding("E", "evidence(-1)", "Previous piece of evidence", show=False),
        Binding("backspace", "back", "Back to where the last jump began", show=False),
        Binding("slash", "search", "Search", priority=True),
        Binding("n", "hit(1)", "Next hit", show=False),
        Binding("N", "hit(-1)", "Previous hit", show=False),
        Binding("v", "tab", "Scorecard, plan, files, JSON", show=False),
        Binding("s", "side", "Show or hide the panel", show=False),
        Binding("a", "label", "Label"),
        Binding("c", "compare", "Compare", show=False),
        Binding("R", "rejudge", "Judge this run", show=False),
        Binding("y", "copy", "Copy the selection, or a reference to this turn", show=False),
        Binding("x", "raw", "This turn with every hidden character spelled out", show=False),
        Binding("p", "pager", "This turn in $PAGER", show=False),
        Binding("ctrl+e", "editor", "A copy of this turn in $EDITOR", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("escape,q", "leave", "Back"),
    ]
    app: Browser

    def __init__(self, collection: Collection, row: RunRow) -> None:
        super().__init__()
        self.collection, self.row = collection, row
        self.opened: Opened | None = None
        self.rubric: Rubric | None = None
        self.blind = False
        self._tab = TABS[0]
        self._piece = -1
        """Which piece of evidence of the selected item is shown, from 0."""
        self._code_at = -1
        self._trail: list[int] = []
        """Rows from which jumps were made."""

    def compose(self) -> ComposeResult:
        yield Static(safe_line(self.row.id), classes="bar -strong", id="title")
        yield Static(classes="notes", id="notes")
        with Horizontal(id="run-body"):
            yield Minimap(id="minimap")
            yield TranscriptView(id="transcript")
            with Vertical(id="side"):
                yield TabLine(TABS, id="tabs")
                yield Pane(id="panel")
        yield Entry(placeholder="search this run", id="search", compact=True)
        yield Static(id="status", classes="bar")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.transcript = self.query_one(TranscriptView)
        self.panel = self.query_one("#panel", Pane)
        self.set_focus(self.transcript)
        self.load()

    # Loading.

    @work(thread=True, group="open", exclusive=True)
    def load(self) -> None:
        """Read the run, show it, and score it when nobody has."""
        worker = get_current_worker()
        opened = self.collection.open(self.row)
        width = self.transcript.text_width
        layout = Layout(blocks_of(opened.run, opened.segmentation) if opened.run else (), width)
        if worker.is_cancelled:
            return
        self.app.call_from_thread(self.show, opened, layout)
        if opened.card is None and opened.run is not None:
            row = self.collection.score(self.row)
            card = self.collection.card(row) if row.state == "scored" else None
            if not worker.is_cancelled:
                self.app.call_from_thread(self.scored, row, card)

    def show(self, opened: Opened, layout: Layout) -> None:
        """Put a run on the screen."""
        self.opened = opened
        self.row = opened.row
        self._piece, self._code_at, self._trail = -1, -1, []
        self.transcript.show(layout)
        if opened.run is not None and opened.run.turns:
            self.transcript.go_turn(1)
            for words in self.app.runs_screen.sought[:1]:
                self.transcript.search(words)
        self._rubric()
        self._headline()
        self._fill()

    def scored(self, row: RunRow, card: object) -> None:
        """The scorecard of the run that is shown is there now."""
        from ..judge.scorecard import ScoreCard

        self.app.runs_screen.update_rows([row])
        if self.opened is None or self.opened.row.number != row.number:
            return
        notes = (*self.opened.notes, row.error) if row.state == "error" else self.opened.notes
        self.row = row
        self.opened = Opened(row, self.opened.run, cast("ScoreCard | None", card), self.opened.segmentation, notes)
        self._rubric()
        self._headline()
        self._fill()

    def _rubric(self) -> None:
        """The rubric of the card, where it is a built-in one of the same meaning."""
        from ..rubrics.load import load_rubric

        self.rubric = None
        card = self.opened.card if self.opened else None
        if card is not None:
            try:
                given = self.collection.options.rubric
                self.rubric = load_rubric(given) if given else None
                if self.rubric is None or self.rubric.id != card.rubric.id:
                    self.rubric = load_rubric(card.rubric.id)
            except AmbjudgeError:
                return
            if self.rubric.id != card.rubric.id:
                self.rubric = None

    def _headline(self) -> None:
        assert self.opened is not None
        run, card = self.opened.run, self.opened.card
        bits = [self.row.id]
        if run is not None:
            bits += [part for part in (run.task, run.tier, run.agent or run.model) if part]
            bits.append(f"{len(run.turns)} turns · {run.status.ended}")
        if card is not None and not self.blind:
            bits.append(f"Overall {about(card.overall, card.presumed, 1)}")
        self.query_one("#title", Static).update(safe_line(" · ".join(bits)))
        notes = list(self.opened.notes) + list(run.warnings if run else ())
        field = self.query_one("#notes", Static)
        field.set_class(bool(notes), "-shown")
        more = f" (and {len(notes) - 1} more: v v v shows all warnings)" if len(notes) > 1 else ""
        field.update(safe_line((notes[0] + more) if notes else ""))

    # Panel.

    def _lines(self) -> list[Line]:
        opened = self.opened
        if opened is None:
            return [line(("reading …", "dim"))]
        if self._tab == "Plan":
            return plan_lines(opened.run) if opened.run else [line(("the run is not there", "dim"))]
        if self._tab == "Files":
            return file_lines(opened.run) if opened.run else [line(("the run is not there", "dim"))]
        if opened.card is None:
            return [line(("scoring …" if self.row.state == "waiting" else self.row.error or "no scorecard", "dim"))]
        if self._tab == "JSON":
            return json_lines(opened.card) if not self.blind else [line(("hidden until you have judged", "warn"))]
        return scorecard_lines(opened.card, self.rubric, self.panel.selected or "", self.blind)

    def _fill(self, keep: bool = False) -> None:
        self.panel.show(self._lines(), keep=keep)
        self._status()

    def action_tab(self) -> None:
        self._choose_tab(TABS[(TABS.index(self._tab) + 1) % len(TABS)])

    def on_tab_line_chosen(self, event: TabLine.Chosen) -> None:
        self._choose_tab(event.name)

    def _choose_tab(self, name: str) -> None:
        self._tab = name
        self.query_one(TabLine).choose(name)
        self.query_one("#side").remove_class("-hidden")
        self._fill()

    def action_side(self) -> None:
        side = self.query_one("#side")
        side.toggle_class("-hidden")
        if side.has_class("-hidden"):
            self.set_focus(self.transcript)

    def on_pane_selected(self, event: Pane.Selected) -> None:
        self._select(event.target)

    def on_pane_chosen(self, event: Pane.Chosen) -> None:
        target = event.target
        if target.kind == "evidence":
            self._show_piece(target, 0)
        else:
            self._select(target)
            self._step_evidence(1)

    def _select(self, target: Target) -> None:
        """Open an item in the panel and mark its turns in the transcript and the minimap."""
        self._piece = -1
        self.panel.selected = target.id
        if self._tab == "Scorecard":
            self.panel.show(self._lines(), keep=True)
        self.transcript.mark_evidence([turn for turn in target.turns if turn > 0])
        self._status()

    def action_criterion(self, step: int) -> None:
        if self._tab != "Scorecard":
            self._choose_tab("Scorecard")
        self.panel.action_move(step)

    def action_evidence(self, step: int) -> None:
        if self.panel.target is None:
            self.action_criterion(1)
            return
        self._step_evidence(step)

    def _step_evidence(self, step: int) -> None:
        target = self.panel.target
        if target is None or not target.turns:
            self.notify("Nothing is cited for this item", timeout=2, markup=False)
            return
        self._piece = (self._piece + step) % len(target.turns) if self._piece >= 0 or step < 0 else 0
        self._show_piece(target, self._piece)

    def _show_piece(self, target: Target, number: int) -> None:
        turn = target.turns[number]
        quote = target.quotes[number] if number < len(target.quotes) else ""
        self._leave_mark()
        if turn == 0:
            self._choose_tab("Plan")
            self.notify("Cited from the plan", timeout=2, markup=False)
        elif not self.transcript.show_quote(turn, quote) and quote:
            self.notify(f"The quoted words do not stand in turn {turn}", severity="warning", timeout=3, markup=False)
        self._status()

    # Moving.

    def _leave_mark(self) -> None:
        self._trail = [*self._trail[-50:], self.transcript.top]

    def action_back(self) -> None:
        if self._trail:
            self.transcript.scroll_to(y=self._trail.pop(), animate=False, force=True)

    def action_turn(self, step: int) -> None:
        self.transcript.action_turn(step)

    def _go_among(self, turns: list[int], step: int, what: str) -> None:
        """To the next of these turns in a direction, round the end."""
        if not turns:
            self.notify(f"No {what} in this run", timeout=2, markup=False)
            return
        here = self.transcript.turn
        if step > 0:
            turn = next((t for t in turns if t > here), turns[0])
        else:
            turn = next((t for t in reversed(turns) if t < here), turns[-1])
        self._leave_mark()
        self.transcript.go_turn(turn)

    def action_stage(self, stage: Stage) -> None:
        segments = self.opened.segmentation.segments if self.opened and self.opened.segmentation else ()
        self._go_among([s.first_turn for s in segments if s.stage == stage], 1, f"turn of {stage} {STAGE_NAMES[stage]}")

    def action_failure(self, step: int) -> None:
        run = self.opened.run if self.opened else None
        self._go_among([t.index for t in run.turns if t.failed] if run else [], step, "failed execution")

    def action_code(self, step: int) -> None:
        card = self.opened.card if self.opened and not self.blind else None
        stops = sorted((turn, n) for n, code in enumerate(card.codes) for turn in code.turns) if card else []
        if not stops or card is None:
            self.notify("No error code with a turn", timeout=2, markup=False)
            return
        self._code_at = (self._code_at + step) % len(stops) if self._code_at >= 0 or step < 0 else 0
        turn, number = stops[self._code_at]
        code = card.codes[number]
        if self._tab != "Scorecard":
            self._choose_tab("Scorecard")
        self._select(code_target(code, number))
        self._leave_mark()
        self.transcript.go_turn(turn)

    def action_run(self, step: int) -> None:
        row = self.app.runs_screen.neighbour(self.row, step)
        if row is None:
            self.notify("No further run in the present filter", timeout=2, markup=False)
            return
        self.row = row
        self.query_one("#title", Static).update(safe_line(f"{row.id} · reading …"))
        self.load()

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
            self._leave_mark()
            if not self.transcript.search(event.value):
                self.notify("Not found", timeout=2, markup=False)
        self._status()

    def _close_search(self) -> None:
        self.query_one("#search", Input).remove_class("-shown")
        self.set_focus(self.transcript)

    def action_hit(self, step: int) -> None:
        self.transcript.next_hit(step)
        self._status()

    def action_leave(self) -> None:
        if self.query_one("#search", Input).has_focus:
            self._close_search()
        else:
            self.app.pop_screen()

    # Status.

    def on_transcript_view_turn_changed(self, event: TranscriptView.TurnChanged) -> None:
        self._status()

    def on_transcript_view_redrawn(self, event: TranscriptView.Redrawn) -> None:
        self.query_one(Minimap).follow(self.transcript)

    def on_minimap_jump(self, event: Minimap.Jump) -> None:
        self.transcript.go_share(event.share)

    def _status(self) -> None:
        opened, turn = self.opened, self.transcript.turn
        if opened is None:
            return
        total = len(opened.run.turns) if opened.run else 0
        stages = opened.segmentation.turn_stages if opened.segmentation else ()
        bits = [f"turn {turn} of {total}" if turn else f"brief · {total} turns"]
        if 1 <= turn <= len(stages):
            bits.append(f"{stages[turn - 1]} {STAGE_NAMES[stages[turn - 1]]}")
        here, hits = self.transcript.hits
        if hits:
            bits.append(f"hit {here} of {hits}")
        target = self.panel.target
        if target is not None and target.turns:
            place = f"{self._piece + 1} of " if self._piece >= 0 else ""
            name = target.id.split(".")[0] if target.kind in ("criterion", "code") else target.kind
            bits.append(f"{name}: evidence {place}{len(target.turns)}")
        self.query_one("#status", Static).update(safe_line(" · ".join(bits)))

    # Copying, other programs.

    def action_copy(self) -> None:
        text = self.get_selected_text()
        if not text:
            text = f"{sanitize_line(self.row.id)}#{self.transcript.turn}"
        self.app.copy_to_clipboard(text)
        shown = text if len(text) < 40 else f"{len(text)} characters"
        self.notify(f"Copied {shown}", timeout=2, markup=False)

    def action_raw(self) -> None:
        turn, layout = self.transcript.turn, self.transcript.layout_
        lines: list[Line] = []
        for number in layout.blocks_of_turn(turn):
            block = layout.blocks[number]
            if block.title:
                lines.append(line((block.title, "head")))
            for text in block.lines:
                spelled = text.encode("unicode_escape").decode() if replaced(text) else text
                lines.append(line((spelled, "warn" if spelled != text else "")))
        count = self.transcript.replaced_in(turn)
        self.app.push_screen(Reader(f"Turn {turn}, {count} hidden characters spelled out", lines))

    def action_pager(self) -> None:
        self._run_program("PAGER", "less")

    def action_editor(self) -> None:
        self._run_program("EDITOR", "vi")

    def _run_program(self, variable: str, default: str) -> None:
        from .external import show_in

        problem = show_in(
            self.app, variable, default, self.transcript.turn_text(self.transcript.turn), f"turn-{self.transcript.turn}"
        )
        if problem:
            self.notify(problem, severity="error", markup=False)

    def action_help(self) -> None:
        legend = [line(""), line(("Signs", "head")), *(line(text) for text in _LEGEND)]
        self.app.push_screen(Reader("Keys", [*key_map(self), *legend]))

    def action_label(self) -> None:
        self.app.label(self)

    def action_compare(self) -> None:
        self.app.compare([self.row])

    def action_rejudge(self) -> None:
        self.app.rejudge([self.row])


_LEGEND = (
    "★ turn that the selected item rests on · ▸ line with the quoted words · ✗ failed",
    "✓ met  ✗ not met  ½ ◐ partly  + credited by the tier  – does not apply  ? unscored",
    "~ presumed: nobody read it, the commonest value of labelled runs stands in its place",
    "≠ a quote that does not stand in the turn it is cited from · ?E3 a reading without proof, which did not fire",
    "Characters in reverse colours stand for control, invisible or direction-changing characters of the transcript.",
    "Click a stage, an evidence line, a fold marker or the minimap to go there.",
)
