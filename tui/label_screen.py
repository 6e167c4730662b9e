"""Label a run: a stage for every turn, a value for every criterion, codes and notes, by single keys; verdicts hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from ..errors import AmbjudgeError
from ..judge.labels import PAPER_CODES
from ..trajectories.stages import STAGE_NAMES, Stage
from .dialogs import Confirm, Prompt, Reader, key_map
from .entry import Entry
from .label_book import LabelBook
from .label_draft import Draft, agree
from .lines import Line, Part, Target, line, numbers
from .minimap import Minimap
from .pane import Pane
from .safe_text import safe_line
from .scorecard_lines import criterion_lines, scorecard_lines
from .transcript_layout import Layout, blocks_of
from .transcript_view import TranscriptView

if TYPE_CHECKING:
    from ..judge.scorecard import ScoreCard
    from ..rubrics.model import Rubric
    from ..trajectories.models import Run
    from .app import Browser

CODE_WORDS = {
    "E1": "understanding", "E2": "data or model setup", "E3": "verification, recovery", "E4": "implementation, execution",
    "E5": "deliverable, submission",
}  # fmt: skip


class LabelScreen(Screen[None]):
    """Transcript beside the sheet of labels. Blind: the scorecard is shown only after the labels are saved, or on demand."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"stage('S{n}')", f"This turn is S{n}; after x: code E{n}", show=False) for n in range(1, 6)),
        Binding("i", "same_stage", "This turn is as the one before", show=False),
        Binding("right_square_bracket", "criterion(1)", "Next criterion", key_display="]"),
        Binding("left_square_bracket", "criterion(-1)", "Previous criterion", show=False),
        Binding("plus,equals_sign", "value(1)", "Met, or the next level up", show=False),
        Binding("minus", "value(-1)", "Not met, or the next level down", show=False),
        Binding("full_stop", "not_applicable", "Does not apply", show=False),
        Binding("e", "evidence", "Cite this turn"),
        Binding("x", "code", "Code"),
        Binding("m", "notes", "Notes", show=False),
        Binding("u", "undo", "Undo"),
        Binding("ctrl+s", "save", "Save"),
        Binding("r", "blind", "Show or hide the judge's verdicts", show=False),
        Binding("greater_than_sign", "next", "Save and label the next run of the plan", show=False),
        Binding("l", "turn(1)", "Next turn", show=False),
        Binding("h", "turn(-1)", "Previous turn", show=False),
        Binding("slash", "search", "Search", priority=True, show=False),
        Binding("n", "hit(1)", "Next hit", show=False),
        Binding("N", "hit(-1)", "Previous hit", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("escape,q", "leave", "Back"),
    ]
    app: Browser

    def __init__(self, run: Run, rubric: Rubric, card: ScoreCard | None, book: LabelBook) -> None:
        super().__init__()
        self.run, self.rubric, self.card, self.book = run, rubric, card, book
        self.problem = ""
        begun = None
        try:
            begun = book.find(run.id)
        except AmbjudgeError as error:
            self.problem = str(error)
        self.draft = Draft(run, rubric, book.annotator, begun)
        self.blind = True
        self._code_next = False

    def compose(self) -> ComposeResult:
        yield Static(
            safe_line(f"Label · {self.run.id} · {self.run.task or ''} · annotator {self.book.annotator}"),
            classes="bar -strong",
        )
        with Horizontal(id="run-body"):
            yield Minimap(id="minimap")
            yield TranscriptView(id="transcript")
            with Vertical(id="side"):
                yield Pane(id="panel")
        yield Entry(placeholder="search this run", id="search", compact=True)
        yield Static(id="status", classes="bar")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.transcript = self.query_one(TranscriptView)
        self.panel = self.query_one(Pane)
        self.set_focus(self.transcript)
        self._fill()
        self.call_after_refresh(self._begin)
        if self.problem:
            self.notify(self.problem, severity="warning", markup=False)

    def _begin(self) -> None:
        """Show the run; only now is it known how wide the view is."""
        self.transcript.show(Layout(blocks_of(self.run), self.transcript.text_width))
        for turn, stage in self.draft.stages.items():
            self._band(turn, stage)
        self.transcript.go_turn(1)
        self._status()

    # The sheet.

    def _lines(self) -> list[Line]:
        if not self.blind and self.card is not None:
            return [
                *_comparison(self.draft, self.card),
                *scorecard_lines(self.card, self.rubric, self.panel.selected or ""),
            ]
        draft = self.draft
        _, criteria = draft.missing
        lines = [
            line(
                (
                    f"{len(draft.stages)} of {len(self.run.turns)} turns, {len(draft.criteria)} of {len(draft.criteria) + criteria} criteria",
                    "head",
                )
            ),
            line(""),
        ]
        for item in self.rubric.criteria():
            cited = draft.evidence.get(item.id, ())
            where: Part = (f" ★{numbers(cited)}" if cited else "", "dim")
            credit: Part = (" credited" if self.run.tier in item.credit else "", "dim")
            parts = ((f" {_said(draft, item.id)} ", "head"), (f"{item.id} ", "id"), (item.title, ""), where, credit)
            lines.append(Line(parts, Target("criterion", item.id, cited), True, 6))
            if item.id == self.panel.selected:
                lines += criterion_lines(item)
        lines += [line(""), line(("Error codes", "head"), (" (x, then 1-5)", "dim"))]
        for code in PAPER_CODES:
            said = draft.codes.get(code)
            if said is not None:
                lines.append(
                    line(
                        (f" {code} ", "code"),
                        (f"turn {numbers(said.turns)}: ", "dim"),
                        said.why or "no reason given yet",
                        indent=4,
                    )
                )
            else:
                lines.append(line((f" {code} {CODE_WORDS[code]}", "dim")))
        lines += [line(""), line(("Notes", "head"), (" (m)", "dim")), line(draft.notes or "–")]
        return lines

    def _fill(self) -> None:
        self.panel.show(self._lines(), keep=True)
        self._status()

    def _status(self) -> None:
        turn = self.transcript.turn
        stage = self.draft.stages.get(turn)
        bits = [f"turn {turn} of {len(self.run.turns)}" if turn else "brief"]
        if turn:
            bits.append(f"{stage} {STAGE_NAMES[stage]}" if stage else "no stage yet: 1-5")
        here, hits = self.transcript.hits
        if hits:
            bits.append(f"hit {here} of {hits}")
        if self._code_next:
            bits.append("which code fires here? 1-5")
        bits.append("not saved" if self.draft.changed else "saved" if self.draft.criteria else "")
        self.query_one("#status", Static).update(safe_line(" · ".join(bit for bit in bits if bit)))

    def _band(self, turn: int, stage: Stage | None) -> None:
        layout = self.transcript.layout_
        for number in layout.blocks_of_turn(turn):
            layout.blocks[number].stage = stage

    def _bands(self) -> None:
        for turn in range(1, len(self.run.turns) + 1):
            self._band(turn, self.draft.stages.get(turn))
        self.transcript.mark_evidence(self.draft.evidence.get(self.panel.selected or "", ()))

    # Edits.

    def action_stage(self, stage: Stage) -> None:
        turn = self.transcript.turn
        if self._code_next:
            self._code_next = False
            self._fire(f"E{stage[1]}", turn)
            return
        if turn < 1:
            self.transcript.go_turn(1)
            return
        self.draft.set_stage(turn, stage)
        self._band(turn, stage)
        self.transcript.mark_evidence(sorted(self.transcript.evidence_turns))
        if turn < len(self.run.turns):
            self.transcript.go_turn(turn + 1)
        self._fill()

    def action_same_stage(self) -> None:
        turn = self.transcript.turn
        stage = self.draft.stages.get(max((t for t in self.draft.stages if t < turn), default=0))
        if stage is not None:
            self.action_stage(stage)

    def action_criterion(self, step: int) -> None:
        self.panel.action_move(step)

    def on_pane_selected(self, event: Pane.Selected) -> None:
        self.panel.show(self._lines(), keep=True)
        self.transcript.mark_evidence(event.target.turns)

    def on_pane_chosen(self, event: Pane.Chosen) -> None:
        if event.target.turns and event.target.turns[0] > 0:
            self.transcript.go_turn(event.target.turns[0])

    def _selected(self) -> str | None:
        id = self.panel.selected
        if id is None or all(id != item.id for item in self.rubric.criteria()):
            self.notify("Choose a criterion first: ]", timeout=2, markup=False)
            return None
        return id

    def action_value(self, step: int) -> None:
        if (id := self._selected()) is not None:
            self.draft.step_value(id, step)
            self._fill()

    def action_not_applicable(self) -> None:
        if (id := self._selected()) is None:
            return
        if self.draft.may_not_apply(id):
            self.draft.set_value(id, None)
            self._fill()
        else:
            self.notify(f"{id} always applies", timeout=2, markup=False)

    def action_evidence(self) -> None:
        turn = self.transcript.turn
        if turn >= 1 and (id := self._selected()) is not None:
            self.draft.toggle_evidence(id, turn)
            self.transcript.mark_evidence(self.draft.evidence[id])
            self._fill()

    def action_code(self) -> None:
        self._code_next = not self._code_next
        self._status()

    def _fire(self, code: str, turn: int) -> None:
        if turn < 1:
            self.notify("A code fires on a turn", timeout=2, markup=False)
            return
        fires = self.draft.toggle_code(code, turn)
        self._fill()
        if fires and not self.draft.codes[code].why:

            def keep(why: str | None) -> None:
                if why:
                    self.draft.set_why(code, why)
                    self._fill()

            self.app.push_screen(Prompt(f"{code} {CODE_WORDS[code]}: why, in one sentence"), keep)

    def action_notes(self) -> None:
        def keep(text: str | None) -> None:
            if text is not None:
                self.draft.set_notes(text)
                self._fill()

        self.app.push_screen(Prompt("Notes", self.draft.notes), keep)

    def action_undo(self) -> None:
        if self.draft.undo():
            self._bands()
            self._fill()

    # Saving.

    def action_save(self) -> bool:
        """Keep the labels, say what is missing, and show how they compare with the verdicts."""
        missing = self.draft.problems()
        try:
            places = self.book.save(self.draft.labels())
        except AmbjudgeError as error:
            self.notify(str(error), severity="error", markup=False)
            return False
        self.draft.saved()
        self.notify("Saved: " + safe_line(", ".join(places)).plain, timeout=4, markup=False)
        if missing:
            self.notify(
                "Not complete: " + safe_line("; ".join(missing[:3])).plain, severity="warning", timeout=6, markup=False
            )
        elif self.card is not None:
            self.blind = False
        self._fill()
        return True

    def action_blind(self) -> None:
        self.blind = not self.blind
        self._fill()

    def action_next(self) -> None:
        if not self.draft.changed or self.action_save():
            self.app.label_next(self)

    def action_leave(self) -> None:
        if self.query_one("#search", Input).has_focus:
            self._close_search()
        elif self._code_next:
            self.action_code()
        elif self.draft.changed:

            def answer(yes: bool | None) -> None:
                if yes is not None and (not yes or self.action_save()):
                    self.app.pop_screen()

            self.app.push_screen(
                Confirm("Save these labels?", [line("y: save and leave · n: leave without saving · escape: stay")]),
                answer,
            )
        else:
            self.app.pop_screen()

    # Reading.

    def action_turn(self, step: int) -> None:
        self.transcript.action_turn(step)

    def on_transcript_view_turn_changed(self, event: TranscriptView.TurnChanged) -> None:
        self._status()

    def on_transcript_view_redrawn(self, event: TranscriptView.Redrawn) -> None:
        self.query_one(Minimap).follow(self.transcript)

    def on_minimap_jump(self, event: Minimap.Jump) -> None:
        self.transcript.go_share(event.share)

    def action_search(self) -> None:
        if isinstance(self.focused, Input):
            raise SkipAction  # A slash that is typed.
        field = self.query_one("#search", Input)
        field.add_class("-shown")
        field.value = ""
        self.set_focus(field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_search()
        if event.value and not self.transcript.search(event.value):
            self.notify("Not found", timeout=2, markup=False)
        self._status()

    def _close_search(self) -> None:
        self.query_one("#search", Input).remove_class("-shown")
        self.set_focus(self.transcript)

    def action_hit(self, step: int) -> None:
        self.transcript.next_hit(step)
        self._status()

    def action_help(self) -> None:
        self.app.push_screen(Reader("Keys", key_map(self)))


def _said(draft: Draft, id: str) -> str:
    if id not in draft.criteria:
        return "·"
    value = draft.criteria[id]
    return "–" if value is None else "✓" if value >= 1 else "✗" if value <= 0 else f"{value:g}"


def _comparison(draft: Draft, card: ScoreCard) -> list[Line]:
    """How the labels and the judge agree on this run."""
    found = agree(draft.labels(), card)
    lines = [
        line((f"You and {card.judge.name}", "head")),
        line(f"criteria {found.criteria[0]} of {found.criteria[1]} · stages {found.stages[0]} of {found.stages[1]}"),
    ]
    for id, mine, theirs in found.differences:
        lines.append(line((f" {id} ", "id"), f"you {mine:g}, judge {theirs:g}"))
    for codes, whom in zip(found.codes, ("you", "the judge"), strict=True):
        if codes:
            lines.append(line((f" {', '.join(sorted(codes))} ", "code"), f"only {whom}"))
    return [*lines, line("")]
