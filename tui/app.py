"""The browser itself: opens its screens and does what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import get_current_worker

from ..errors import AmbjudgeError
from ..sanitize import sanitize_line
from ..views.collection import Collection
from ..views.run_rows import RunRow
from ..views.saved_views import Views
from ..views.styled_lines import StyledLine, line
from .dialogs import Choice, Confirm, Prompt, Reader
from .runs_screen import RunsScreen
from .screen_requests import (
    CompareRuns,
    JudgeRuns,
    LabelNext,
    LabelRun,
    ReadRun,
    RunScored,
    SummariseRuns,
)

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.card.scorecard import ScoreCard
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.store import Store
    from ..judge.trust.human_labels import Labels, Sampling
    from ..trajectories.models import Run
    from ..views.label_storage import LabelStorage

LABEL_BUDGET = 300
"""Runs that the label plan is made for."""


class Browser(App[None]):
    """`ambjudge browse`. Nothing that comes from a run is ever markup, a link or an action.

    All screens but the first, judges and stores are imported when they are needed: they take
    longer than the first paint.
    """

    CSS_PATH = "browser.tcss"
    TITLE = "ambjudge"
    NOTIFICATION_TIMEOUT = 4
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Command palette: themes and more", show=False),
        Binding("ctrl+q", "quit", "Quit", show=False),
    ]

    def __init__(
        self,
        collection: Collection,
        *,
        views: Views | None = None,
        score: bool = True,
        query: str = "",
        theme: str | None = None,
        annotator: str = "me",
        labels: Path | None = None,
        judge: Callable[[str], Judge] | None = None,
        judge_name: str = "rules",
    ) -> None:
        """`score`: runs without a scorecard are scored by the rules judge in the background.

        `labels` is the folder for label files (default: `.ambjudge/labels` beside the runs);
        `judge` makes a judge from its name.
        """
        super().__init__()
        self.collection = collection
        self.annotator, self.labels_folder = annotator, labels
        self._make_judge, self._judge_name = judge, judge_name
        self._label_plan: list[Labels] | None = None
        self.runs_screen = RunsScreen(collection, views or Views(), score=score, query=query)
        if theme is not None:
            self.theme = theme

    def on_mount(self) -> None:
        self.push_screen(self.runs_screen)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if isinstance(screen, RunsScreen):
            yield SystemCommand(
                "Label the next run",
                "The next run of the label plan",
                lambda: self.label_next(None),
            )

    def notify(self, message: str, **options: Any) -> None:
        """Show a short message: sanitised and never markup, wherever its text comes from."""
        super().notify(sanitize_line(message), **{**options, "markup": False})

    @property
    def failure(self) -> Exception | None:
        """The fault that ended the browser, if one did."""
        return self._exception

    def _fatal_error(self) -> None:
        """Leave, and let the command line report the fault in one sanitised line.

        Textual's own traceback would print values and messages as they are in the run.
        """
        self._close_messages_no_wait()

    # Reading and comparing.

    def on_read_run(self, event: ReadRun) -> None:
        from .run_screen import RunScreen

        screen = self.runs_screen
        self.push_screen(RunScreen(self.collection, event.row, screen.neighbour, screen.sought))

    def on_run_scored(self, event: RunScored) -> None:
        self.runs_screen.update_rows([event.row])

    def on_compare_runs(self, event: CompareRuns) -> None:
        rows = event.rows
        if len(rows) == 2:
            self._compare((rows[0], rows[1]), (None, None))
        elif len(rows) == 1:
            self._compare_cards(rows[0])
        else:
            self.notify("Mark two runs to compare them, or one that has several scorecards")

    def _compare(
        self, rows: tuple[RunRow, RunRow], cards: tuple[ScoreCard | None, ScoreCard | None]
    ) -> None:
        from .compare_screen import CompareScreen

        self.push_screen(CompareScreen(self.collection, rows, cards))

    def _compare_cards(self, row: RunRow) -> None:
        try:
            cards = self.collection.cards_of(row)
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        if len(cards) < 2:
            self.notify(
                "Only one scorecard: mark two runs (space), or judge this one by another judge (R)"
            )
            return
        from ..judge.card.view import totals

        newest, *others = cards

        def compare_with(place: int | None) -> None:
            if place is not None:
                self._compare((row, row), (others[place], newest))

        if len(others) == 1:
            compare_with(0)
            return
        names = [
            f"{card.judge.name} · {card.rubric.id} {card.rubric.version}"
            f" · Agentic {totals(card)[0]}"
            for card in others
        ]
        self.push_screen(Choice(f"Compare {newest.judge.name} with", names), compare_with)

    # Judging.

    def on_judge_runs(self, event: JudgeRuns) -> None:
        rows = [row for row in event.rows if self.collection.conversation(row) is not None]
        if not rows or self._make_judge is None:
            self.notify("There is nothing here that can be judged", severity="warning")
            return

        def plan_with(name: str | None) -> None:
            if name and name.strip():
                self._judge_name = name.strip()
                self._plan(rows)

        subject = event.rows[0].id if len(event.rows) == 1 else f"{len(event.rows)} runs"
        hint = "rules, a model, or local:PATH; its cost is shown first"
        self.push_screen(Prompt(f"Judge {subject} by", self._judge_name, hint), plan_with)

    def _paths(self, rows: Sequence[RunRow]) -> list[Path]:
        paths = [self.collection.conversation(row) for row in rows]
        return [path for path in paths if path is not None]

    @work(thread=True, group="judge", exclusive=True)
    def _plan(self, rows: list[RunRow]) -> None:
        """Estimate what judging would take, without a call, and ask for a yes."""
        from ..judge.rejudge.staleness import plan_rejudge

        assert self._make_judge is not None
        try:
            store = self.collection.store_to_write()
            if store is None:
                self.notify("Judging needs a store: leave out --store none", severity="warning")
                return
            judge = self._make_judge(self._judge_name)
            plan = plan_rejudge(store, self._paths(rows), judge, self.collection.options.scope())
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        self.call_from_thread(self._confirm, rows, judge, plan)

    def _confirm(self, rows: list[RunRow], judge: Judge, plan: RejudgePlan) -> None:
        from ..views.judging_estimate import estimate_lines

        def answer(yes: bool | None) -> None:
            if yes:
                self._carry_out(rows, judge, plan)

        self.push_screen(Confirm("Judge?", estimate_lines(plan)), answer)

    @work(thread=True, group="judge", exclusive=True)
    def _carry_out(self, rows: list[RunRow], judge: Judge, plan: RejudgePlan) -> None:
        """Make the plan's calls and the scorecards, with progress in the status line."""
        import asyncio

        from ..judge.rejudge.update import update_collection

        worker, store = get_current_worker(), self.collection.store
        assert store is not None

        def say(text: str) -> None:
            if not worker.is_cancelled:
                self.call_from_thread(self.runs_screen.say, progress=text)

        def cost(usd: float | None) -> str:
            return "cost unknown" if usd is None else f"${usd:.4f}"

        paths = self._paths(rows)
        try:
            update = asyncio.run(
                update_collection(
                    plan,
                    store,
                    judge,
                    self.collection.options,
                    on_calls=lambda summary: say(
                        f"judged {summary.progress.done} of {plan.calls}"
                        f" · {cost(summary.usage.cost_usd)}"
                    ),
                    on_cards=lambda progress, _: say(f"scored {progress.done} runs"),
                )
            )
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        unscored = sum(update.execution.unscored.values())
        changed = []
        for row, path in zip(rows, paths, strict=True):
            card = next(store.cards(path, judge=judge.name), None)
            if card is not None:
                changed.append(self.collection.remember(row, card))
        text = f"{len(changed)} runs judged by {judge.name}"
        if unscored:
            text += f", {unscored} criteria unscored"
        self.notify(text, severity="warning" if unscored or update.errors else "information")
        self.call_from_thread(self._judged, changed)

    def _judged(self, changed: list[RunRow]) -> None:
        from .run_screen import RunScreen

        self.runs_screen.say(progress="")
        self.runs_screen.update_rows(changed)
        by_number = {row.number: row for row in changed}
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen) and screen.row.number in by_number:
                row = by_number[screen.row.number]
                screen.scored(row, self.collection.card(row))

    # Labelling.

    def _label_storage(self, store: Store | None) -> LabelStorage:
        """This annotator's labels."""
        from ..views.label_storage import LabelStorage

        path = self.collection.path
        base = path if path.is_dir() else path.parent
        folder = self.labels_folder or base / ".ambjudge" / "labels"
        return LabelStorage(self.annotator, folder, store)

    def on_label_run(self, event: LabelRun) -> None:
        self._label(event.run, event.card)

    def _label(self, run: Run, card: ScoreCard | None, drawn: Sampling | None = None) -> None:
        """Open a run for labelling, in place of the run that is being labelled, if there is one.

        `drawn` says how the run was sampled, if it was.
        """
        from .label_screen import LabelScreen

        try:
            storage = self._label_storage(self.collection.store_to_write())
            rubric = self.collection.rubric_of(run.track, run.task)
            screen = LabelScreen(run, rubric, card, storage, drawn)
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        if isinstance(self.screen, LabelScreen):
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def on_label_next(self, event: LabelNext) -> None:
        self.label_next(event.labelled)

    @work(thread=True, group="label", exclusive=True)
    def label_next(self, labelled: str | None) -> None:
        """Go to the next run of the label plan after the one `labelled` last."""
        try:
            planned = self._next_of_plan(labelled)
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        if planned is None:
            self.notify("Every run of the label plan is labelled")
            return
        labels, row = planned
        opened = self.collection.open(row)
        if opened.run is None:
            reason = opened.notes[0] if opened.notes else "cannot be read"
            self.notify(f"{row.id}: {reason}", severity="warning")
            return
        self.call_from_thread(self._label, opened.run, opened.card, labels.drawn)
        stratum = "planned"
        if labels.drawn is not None:
            stratum = f"{labels.drawn.stratum}, 1 of {labels.drawn.size}"
        self.notify(f"Next of the plan: {row.id} ({stratum})")

    def _next_of_plan(self, labelled: str | None) -> tuple[Labels, RunRow] | None:
        """The first run of the plan without labels. The plan is made once, from all scorecards."""
        storage = self._label_storage(self.collection.store_to_write())
        if self._label_plan is None:
            scored = [row for row in self.runs_screen.rows if row.state == "scored"]
            cards = [self.collection.card(row) for row in scored]
            self._label_plan = storage.plan(
                [card for card in cards if card is not None], LABEL_BUDGET
            )
        done = {labelled, *storage.all()}
        by_id = {row.id: row for row in self.runs_screen.rows}
        for labels in self._label_plan:
            if labels.run not in done and labels.run in by_id:
                return labels, by_id[labels.run]
        return None

    # Summary.

    def on_summarise_runs(self, event: SummariseRuns) -> None:
        self.summarise(event.rows)

    @work(thread=True, group="analysis", exclusive=True)
    def summarise(self, rows: Sequence[RunRow]) -> None:
        """Show codes, stages, and the agreement with labels over these runs."""
        from ..views.label_agreement import agree, agreement_lines
        from ..views.runs_summary import summary_lines

        lines = summary_lines(rows)
        try:
            labels = self._label_storage(self.collection.store).all()
            agreements = []
            for row in rows:
                card = self.collection.card(row) if row.id in labels else None
                if card is not None:
                    agreements.append(agree(labels[row.id], card))
            lines += [line(""), *agreement_lines(self.annotator, agreements)]
        except AmbjudgeError as error:
            lines += [line(""), line((f"labels: {error}", "warn"))]
        hint = (
            "Intervals, effects and figures: ambjudge analyze PATH --out DIR, then open"
            " DIR/report.html"
        )
        lines += [line(""), line((hint, "dim"))]
        self.call_from_thread(self._read, "Analysis of the runs shown", lines)

    def _read(self, title: str, lines: Sequence[StyledLine]) -> None:
        self.push_screen(Reader(title, lines))
