"""Label a run by single keys: a stage for every turn, a value for every criterion, codes, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from ..error_codes.paper_codes import CODES
from ..errors import AmbjudgeError
from ..judge.card.view_parts import Target, turn_ranges, value_text
from ..trajectories.stages import Stage, stage_title
from ..views.label_agreement import run_agreement_lines
from ..views.label_draft import Draft
from ..views.label_storage import LabelStorage
from ..views.scorecard_panel import criterion_lines, scorecard_lines
from ..views.styled_lines import StyledLine, heading, item_line, line
from ..views.transcript_layout import Layout, blocks_of
from .dialogs import Confirm, Prompt
from .pane import Pane
from .reading_screen import ReadingScreen
from .screen_requests import LabelNext

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.trust.human_labels import Sampling
    from ..rubrics.model import Criterion, Rubric
    from ..trajectories.models import Run

CODE_WORDS = {
    "E1": "understanding",
    "E2": "data or model setup",
    "E3": "verification, recovery",
    "E4": "implementation, execution",
    "E5": "deliverable, submission",
}


class LabelScreen(ReadingScreen):
    """Takes labels. The scorecard is shown only once complete labels are saved, or on demand."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(n), f"stage('S{n}')", f"This turn is S{n}; after x: code E{n}", show=False)
            for n in range(1, 6)
        ),
        Binding("i", "same_stage", "This turn is as the one before", show=False),
        Binding("right_square_bracket", "criterion(1)", "Next criterion", key_display="]"),
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
        Binding("slash", "search", "Search", priority=True, show=False),
        Binding("question_mark", "help", "Help"),
        Binding("escape,q", "leave", "Back"),
    ]

    def __init__(
        self,
        run: Run,
        rubric: Rubric,
        card: ScoreCard | None,
        storage: LabelStorage,
        drawn: Sampling | None = None,
    ) -> None:
        super().__init__(f"Label · {run.id} · {run.task or ''} · annotator {storage.annotator}")
        self.run, self.rubric, self.card, self.storage = run, rubric, card, storage
        self._problems: list[str] = []
        earlier = None
        try:
            earlier = storage.find(run.id)
        except AmbjudgeError as error:
            self._problems.append(str(error))
        self.draft = Draft(run, rubric, storage.annotator, earlier, drawn)
        self.blind = True
        """Whether the judge's verdicts are hidden, so that they do not influence the labels."""
        self._code_next = False
        """Whether the next digit names a code and not a stage."""

    def on_mount(self) -> None:
        super().on_mount()
        self.show_notes(self._problems)
        self._fill()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """Show the run. Not before the first paint: then the width of the view is known."""
        self.transcript.show(Layout(blocks_of(self.run), self.transcript.text_width))
        self._bands()
        self.transcript.go_turn(1)
        self.show_status()

    # The panel.

    def _lines(self) -> list[StyledLine]:
        selected = self.panel.selected or ""
        if not self.blind and self.card is not None:
            agreement = run_agreement_lines(self.draft.labels(), self.card)
            return [*agreement, line(""), *scorecard_lines(self.card, self.rubric, selected)]
        labels = self.draft.now
        stages, criteria = len(labels.stages), len(labels.criteria)
        total = criteria + self.draft.missing[1]
        progress = f"{stages} of {len(self.run.turns)} turns, {criteria} of {total} criteria"
        lines = [line((progress, "head")), line("")]
        for criterion in self.rubric.criteria():
            lines.append(self._criterion_line(criterion))
            if criterion.id == selected:
                lines += criterion_lines(criterion)
        lines += heading("Error codes", " (x, then 1-5)")
        lines += [self._code_line(code) for code in CODES]
        return [*lines, *heading("Notes", " (m)"), line(labels.notes or "–")]

    def _criterion_line(self, criterion: Criterion) -> StyledLine:
        cited = self.draft.now.evidence.get(criterion.id, ())
        note = f" ★{turn_ranges(cited)}" if cited else ""
        if self.run.tier in criterion.credit:
            note += " credited"
        return item_line(
            Target("criterion", criterion.id, cited),
            (f" {self._label_mark(criterion.id)} ", "head"),
            (f"{criterion.id} ", "id"),
            criterion.title,
            (note, "dim"),
            indent=6,
        )

    def _label_mark(self, id: str) -> str:
        """How a criterion is labelled, as one sign; a dot where it is not labelled yet."""
        if id not in self.draft.now.criteria:
            return "·"
        value = self.draft.now.criteria[id]
        if value is None:
            return "–"
        if value in (0, 1):
            return "✓" if value else "✗"
        return value_text(value)

    def _code_line(self, code: str) -> StyledLine:
        labelled = self.draft.now.codes.get(code)
        if labelled is None:
            return line((f" {code} {CODE_WORDS[code]}", "dim"))
        turns = (f"turn {turn_ranges(labelled.turns)}: ", "dim")
        return line((f" {code} ", "code"), turns, labelled.why or "no reason given yet", indent=4)

    def _fill(self) -> None:
        self.panel.show(self._lines(), keep=True)
        self.show_status()

    def status(self) -> list[str]:
        turn, draft = self.transcript.turn, self.draft
        parts = ["brief"]
        if turn:
            stage = draft.now.stages.get(turn)
            parts = [
                f"turn {turn} of {len(self.run.turns)}",
                stage_title(stage) if stage else "no stage yet: 1-5",
            ]
        parts.append(self.hit_status())
        if self._code_next:
            parts.append("which code fires here? 1-5")
        if draft.changed:
            parts.append("not saved")
        elif draft.now.criteria:
            parts.append("saved")
        return parts

    def _bands(self) -> None:
        """Show the labelled stages in the transcript."""
        for block in self.transcript.layout_.blocks:
            block.stage = self.draft.now.stages.get(block.turn)

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
        self._bands()
        self.transcript.mark_evidence(self.transcript.evidence_turns)
        if turn < len(self.run.turns):
            self.transcript.go_turn(turn + 1)
        self._fill()

    def action_same_stage(self) -> None:
        stage = self.draft.stage_before(self.transcript.turn)
        if stage is not None:
            self.action_stage(stage)

    def on_pane_selected(self, event: Pane.Selected) -> None:
        self._fill()
        self.transcript.mark_evidence(event.target.turns)

    def on_pane_chosen(self, event: Pane.Chosen) -> None:
        if event.target.turns and event.target.turns[0] > 0:
            self.transcript.go_turn(event.target.turns[0])

    def _selected(self) -> str | None:
        id = self.panel.selected
        if id is None or all(id != item.id for item in self.rubric.criteria()):
            self.notify("Choose a criterion first: ]", timeout=2)
            return None
        return id

    def action_value(self, step: int) -> None:
        id = self._selected()
        if id is not None:
            self.draft.step_value(id, step)
            self._fill()

    def action_not_applicable(self) -> None:
        id = self._selected()
        if id is None:
            return
        if self.draft.may_not_apply(id):
            self.draft.set_value(id, None)
            self._fill()
        else:
            self.notify(f"{id} always applies", timeout=2)

    def action_evidence(self) -> None:
        turn = self.transcript.turn
        id = self._selected() if turn >= 1 else None
        if id is not None:
            self.draft.toggle_evidence(id, turn)
            self.transcript.mark_evidence(self.draft.now.evidence[id])
            self._fill()

    def action_code(self) -> None:
        self._code_next = not self._code_next
        self.show_status()

    def _fire(self, code: str, turn: int) -> None:
        if turn < 1:
            self.notify("A code fires on a turn", timeout=2)
            return
        fires = self.draft.toggle_code(code, turn)
        self._fill()
        if fires and not self.draft.now.codes[code].why:

            def set_reason(reason: str | None) -> None:
                if reason:
                    self.draft.set_reason(code, reason)
                    self._fill()

            title = f"{code} {CODE_WORDS[code]}: why, in one sentence"
            self.app.push_screen(Prompt(title), set_reason)

    def action_notes(self) -> None:
        def set_notes(text: str | None) -> None:
            if text is not None:
                self.draft.set_notes(text)
                self._fill()

        self.app.push_screen(Prompt("Notes", self.draft.now.notes), set_notes)

    def action_undo(self) -> None:
        if self.draft.undo():
            self._bands()
            evidence = self.draft.now.evidence.get(self.panel.selected or "", ())
            self.transcript.mark_evidence(evidence)
            self._fill()

    # Saving.

    def action_save(self) -> bool:
        """Save the labels, say what is missing, and show how they compare with the verdicts."""
        missing = self.draft.problems()
        try:
            places = self.storage.save(self.draft.labels())
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return False
        self.draft.saved()
        self.notify("Saved: " + ", ".join(places))
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            text = f"Not complete: {', '.join(missing[:3])}{more}"
            self.notify(text, severity="warning", timeout=6)
        elif self.card is not None:
            self.blind = False
        self._fill()
        return True

    def action_blind(self) -> None:
        self.blind = not self.blind
        self._fill()

    def action_next(self) -> None:
        if not self.draft.changed or self.action_save():
            self.post_message(LabelNext(self.run.id))

    def leave(self) -> None:
        if self._code_next:
            self.action_code()
        elif not self.draft.changed:
            super().leave()
        else:

            def answer(yes: bool | None) -> None:
                if yes is not None and (not yes or self.action_save()):
                    self.app.pop_screen()

            words = line("y: save and leave · n: leave without saving · escape: stay")
            self.app.push_screen(Confirm("Save these labels?", [words]), answer)
