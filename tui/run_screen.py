"""One run: its transcript beside its scorecard, with keys from each verdict to its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widgets import Static, Tabs
from textual.worker import get_current_worker

from ..judge.card.view import code_target, supports, totals
from ..judge.card.view_parts import Target
from ..sanitize import replaced, sanitize_line
from ..trajectories.stages import Stage, stage_title
from ..views.collection import Collection, Opened
from ..views.run_rows import RunRow
from ..views.run_tabs import file_lines, json_lines, plan_lines
from ..views.scorecard_panel import scorecard_lines
from ..views.styled_lines import StyledLine, heading, line
from ..views.transcript_layout import Layout, blocks_of
from .dialogs import Reader
from .external_program import show_in_editor
from .pane import Pane
from .reading_screen import ReadingScreen
from .safe_text import safe_line
from .screen_requests import CompareRuns, JudgeRuns, LabelRun, RunScored

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard


class RunScreen(ReadingScreen):
    """Keeps transcript and panel at the same place, whichever of them the reader moves."""

    TABS = ("Scorecard", "Plan", "Files", "JSON")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("L", "run(1)", "Next run", show=False),
        Binding("H", "run(-1)", "Previous run", show=False),
        *(Binding(str(n), f"stage('S{n}')", f"Next part of S{n}", show=False) for n in range(1, 6)),
        Binding("f", "failure(1)", "Next failure"),
        Binding("F", "failure(-1)", "Previous failure", show=False),
        Binding("d", "code(1)", "Next error code", show=False),
        Binding("D", "code(-1)", "Previous error code", show=False),
        Binding("right_square_bracket", "criterion(1)", "Next criterion", key_display="]"),
        Binding("e", "evidence(1)", "Evidence"),
        Binding("E", "evidence(-1)", "Previous piece of evidence", show=False),
        Binding("backspace", "back", "Back to where the last jump began", show=False),
        Binding("slash", "search", "Search", priority=True),
        Binding("v", "tab", "Scorecard, plan, files, JSON", show=False),
        Binding("s", "side", "Show or hide the panel", show=False),
        Binding("a", "label", "Label"),
        Binding("c", "compare", "Compare", show=False),
        Binding("R", "rejudge", "Judge this run", show=False),
        Binding("y", "copy", "Copy the selection, or a reference to this turn", show=False),
        Binding("x", "raw", "This turn with every hidden character spelled out", show=False),
        Binding("ctrl+e", "editor", "A copy of this turn in $EDITOR", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("escape,q", "leave", "Back"),
    ]

    def __init__(
        self,
        collection: Collection,
        row: RunRow,
        neighbour: Callable[[RunRow, int], RunRow | None],
        sought: Sequence[str] = (),
    ) -> None:
        """`neighbour` gives a run some places further in the list, `sought` are words to go to."""
        super().__init__(row.id)
        self.collection, self.row = collection, row
        self._neighbour, self._sought = neighbour, sought
        self.opened: Opened | None = None
        self._tab = self.TABS[0]
        self._piece = -1
        """Which piece of evidence of the selected item is shown, from 0."""
        self._code_place = -1
        """Which turn of a code is shown, from 0, in the order of turns."""

    def on_mount(self) -> None:
        super().on_mount()
        self.load()

    # Loading.

    @work(thread=True, group="open", exclusive=True)
    def load(self) -> None:
        """Read the run and show it; score it if it has no scorecard."""
        worker = get_current_worker()
        opened = self.collection.open(self.row)
        blocks = blocks_of(opened.run, opened.segmentation) if opened.run else ()
        layout = Layout(blocks, self.transcript.text_width)
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
        self.opened, self.row = opened, opened.row
        self._piece, self._code_place, self._trail = -1, -1, []
        self.transcript.show(layout)
        if opened.run is not None and opened.run.turns:
            self.transcript.go_turn(1)
            for words in self._sought[:1]:
                self.transcript.search(words)
        self._headline()
        self._fill()

    def scored(self, row: RunRow, card: ScoreCard | None) -> None:
        """Show a new scorecard of the run, or why it cannot be scored."""
        self.post_message(RunScored(row))
        if self.opened is None or self.opened.row.number != row.number:
            return
        notes = (*self.opened.notes, row.error) if row.state == "error" else self.opened.notes
        self.row = row
        self.opened = replace(self.opened, row=row, card=card, notes=notes)
        self._headline()
        self._fill()

    def _headline(self) -> None:
        assert self.opened is not None
        run, card = self.opened.run, self.opened.card
        parts = [self.row.id]
        if run is not None:
            parts += [part for part in (run.task, run.tier, run.agent or run.model) if part]
            parts.append(f"{len(run.turns)} turns · {run.status.ended}")
            if run.part_of:
                parts.append(f"the part of another agent in {run.part_of}")
            if run.parts:
                parts.append(f"parts of other agents: {', '.join(run.parts)}")
        if card is not None:
            _, overall = totals(card)
            parts.append(f"Overall {overall}")
        self.query_one("#title", Static).update(safe_line(" · ".join(parts)))
        self.show_notes([*self.opened.notes, *(run.warnings if run else ())])

    # Panel.

    def _lines(self) -> list[StyledLine]:
        opened = self.opened
        if opened is None:
            return [line(("reading …", "dim"))]
        if self._tab in ("Plan", "Files"):
            if opened.run is None:
                return [line(("the run is not there", "dim"))]
            return plan_lines(opened.run) if self._tab == "Plan" else file_lines(opened.run)
        if opened.card is None:
            reason = self.row.error or "no scorecard"
            text = "scoring …" if self.row.state == "waiting" else reason
            return [line((text, "dim"))]
        if self._tab == "JSON":
            return json_lines(opened.card)
        rubric = self.collection.rubric_of_card(opened.card)
        return scorecard_lines(opened.card, rubric, self.panel.selected or "")

    def _fill(self) -> None:
        self.panel.show(self._lines())
        self.show_status()

    def action_tab(self) -> None:
        self._choose_tab(self.TABS[(self.TABS.index(self._tab) + 1) % len(self.TABS)])

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        # An event may come after another tab was chosen: to obey it would choose them in turns.
        is_current = event.tab.id == event.tabs.active
        if event.tab.id is not None and is_current and event.tab.id != self._tab:
            self._choose_tab(event.tab.id)

    def _choose_tab(self, name: str) -> None:
        self._tab = self.query_one(Tabs).active = name
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
        self.transcript.mark_evidence(target.turns)
        self.show_status()

    def action_criterion(self, step: int) -> None:
        if self._tab != "Scorecard":
            self._choose_tab("Scorecard")
        super().action_criterion(step)

    def action_evidence(self, step: int) -> None:
        if self.panel.target is None:
            self.action_criterion(1)
            return
        self._step_evidence(step)

    def _step_evidence(self, step: int) -> None:
        target = self.panel.target
        if target is None or not target.turns:
            self.notify("Nothing is cited for this item", timeout=2)
            return
        self._piece = _next_place(self._piece, step, len(target.turns))
        self._show_piece(target, self._piece)

    def _show_piece(self, target: Target, number: int) -> None:
        turn = target.turns[number]
        quote = target.quotes[number] if number < len(target.quotes) else ""
        self.leave_mark()
        if turn == 0:
            self._choose_tab("Plan")
            self.notify("Cited from the plan", timeout=2)
        elif not self.transcript.show_quote(turn, quote) and quote:
            text = f"The quoted words are not in turn {turn}"
            self.notify(text, severity="warning", timeout=3)
        self.show_status()

    # Moving.

    def _go_among(self, turns: list[int], step: int, noun: str) -> None:
        """Go to the next (1) or previous (-1) of these turns, round the end."""
        if not turns:
            self.notify(f"No {noun} in this run", timeout=2)
            return
        current = self.transcript.turn
        if step > 0:
            turn = min((turn for turn in turns if turn > current), default=turns[0])
        else:
            turn = max((turn for turn in turns if turn < current), default=turns[-1])
        self.leave_mark()
        self.transcript.go_turn(turn)

    def action_stage(self, stage: Stage) -> None:
        segmentation = self.opened.segmentation if self.opened else None
        segments = segmentation.segments if segmentation else ()
        turns = [segment.first_turn for segment in segments if segment.stage == stage]
        self._go_among(turns, 1, f"turn of {stage_title(stage)}")

    def action_failure(self, step: int) -> None:
        run = self.opened.run if self.opened else None
        turns = [turn.index for turn in run.turns if turn.failed] if run else []
        self._go_among(turns, step, "failed execution")

    def action_code(self, step: int) -> None:
        card = self.opened.card if self.opened else None
        codes = card.codes if card else ()
        stops = sorted((turn, n) for n, code in enumerate(codes) for turn in code.turns)
        if not stops or card is None:
            self.notify("No error code with a turn", timeout=2)
            return
        self._code_place = _next_place(self._code_place, step, len(stops))
        turn, number = stops[self._code_place]
        # A reading of the same thing as a finding stands on the finding's line.
        number = supports(codes).get(number, number)
        code = card.codes[number]
        if self._tab != "Scorecard":
            self._choose_tab("Scorecard")
        self._select(code_target(code, number))
        self.leave_mark()
        self.transcript.go_turn(turn)

    def action_run(self, step: int) -> None:
        row = self._neighbour(self.row, step)
        if row is None:
            self.notify("No further run with this filter", timeout=2)
            return
        self.row = row
        self.query_one("#title", Static).update(safe_line(f"{row.id} · reading …"))
        self.load()

    # Status.

    def status(self) -> list[str]:
        opened, turn = self.opened, self.transcript.turn
        if opened is None:
            return []
        total = len(opened.run.turns) if opened.run else 0
        stages = opened.segmentation.turn_stages if opened.segmentation else ()
        parts = [f"turn {turn} of {total}" if turn else f"brief · {total} turns"]
        if 1 <= turn <= len(stages):
            parts.append(stage_title(stages[turn - 1]))
        parts.append(self.hit_status())
        target = self.panel.target
        if target is not None and target.turns:
            place = f"{self._piece + 1} of " if self._piece >= 0 else ""
            name = target.id.split(".")[0] if target.kind in ("criterion", "code") else target.kind
            parts.append(f"{name}: evidence {place}{len(target.turns)}")
        return parts

    # Copying, the editor.

    def action_copy(self) -> None:
        reference = f"{sanitize_line(self.row.id)}#{self.transcript.turn}"
        text = self.get_selected_text() or reference
        self.app.copy_to_clipboard(text)
        preview = text if len(text) < 40 else f"{len(text)} characters"
        self.notify(f"Copied {preview}", timeout=2)

    def action_raw(self) -> None:
        turn, layout = self.transcript.turn, self.transcript.layout_
        lines: list[StyledLine] = []
        for number in layout.blocks_of_turn(turn):
            block = layout.blocks[number]
            if block.title:
                lines.append(line((block.title, "head")))
            for text in block.lines:
                spelled = text.encode("unicode_escape").decode() if replaced(text) else text
                lines.append(line((spelled, "warn" if spelled != text else "")))
        count = self.transcript.replaced_in(turn)
        self.app.push_screen(Reader(f"Turn {turn}, {count} hidden characters spelled out", lines))

    def action_editor(self) -> None:
        turn = self.transcript.turn
        problem = show_in_editor(self.app, self.transcript.turn_text(turn), f"turn-{turn}")
        if problem:
            self.notify(problem, severity="error")

    def legend(self) -> list[StyledLine]:
        return [*heading("Signs"), *(line(text) for text in _LEGEND)]

    def action_label(self) -> None:
        if self.opened is None or self.opened.run is None:
            self.notify("The run is not there")
        else:
            self.post_message(LabelRun(self.opened.run, self.opened.card))

    def action_compare(self) -> None:
        self.post_message(CompareRuns([self.row]))

    def action_rejudge(self) -> None:
        self.post_message(JudgeRuns([self.row]))


def _next_place(place: int, step: int, count: int) -> int:
    """The next place of `count`, round the end; the first or last after -1, which is none."""
    if place < 0 and step > 0:
        return 0
    return (max(place, 0) + step) % count


_LEGEND = (
    "★ turn that the selected item rests on · ▸ line with the quoted words · ✗ failed",
    "✓ met  ✗ not met  ½ half met  ◐ partly met  + credited by the tier  – does not apply",
    "? unscored  ~ presumed: not judged; the commonest value of labelled runs stands in its place",
    "≠ a quote that is not in the turn it is cited from",
    (
        "Characters in reverse colours stand for control, invisible or direction-changing"
        " characters of the transcript."
    ),
    "Click a stage, an evidence line, a fold marker or the minimap to go there.",
)
