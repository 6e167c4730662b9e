"""The browser itself: which screens there are, and what they ask for."""

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

    Screens but the first, judges and stores are imported when they are asked for: they take longer
    than the first paint.
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
        """`score`: runs without a scorecard are scored by the rules judge, one after the other.

        `labels` is the folder for label files (default: `labels` beside the runs); `judge` makes a
        judge from its name.
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
                "Label the next run", "The next of the label plan", lambda: self.label_next(None)
            )

    def notify(self, message: str, **options: Any) -> None:
        """A short message, wherever its text comes from: sanitised, and never markup."""
        super().notify(sanitize_line(message), **{**options, "markup": False})

    @property
    def failure(self) -> Exception | None:
        """The fault that ended the browser, if one did."""
        return self._exception

    def _fatal_error(self) -> None:
        """Leave and let the command line tell the fault in one sanitised line; Textual's own
        traceback would print values and messages as they are, and those may come from a run."""
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

        names = [
            f"{c.judge.name} · {c.rubric.id} {c.rubric.version} · Agentic {totals(c)[0]}"
            for c in cards[1:]
        ]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._compare((row, row), (cards[place + 1], cards[0]))

        if len(names) == 1:
            chosen(0)
        else:
            self.push_screen(Choice(f"Compare {cards[0].judge.name} with", names), chosen)

    # Judging.

    def on_judge_runs(self, event: JudgeRuns) -> None:
        rows = [row for row in event.rows if self.collection.conversation(row) is not None]
        if not rows or self._make_judge is None:
            self.notify("Nothing that can be judged here", severity="warning")
            return

        def named(name: str | None) -> None:
            if name and name.strip():
                self._judge_name = name.strip()
                self._plan(rows)

        what = event.rows[0].id if len(event.rows) == 1 else f"{len(event.rows)} runs"
        hint = "rules, a model, or local:PATH; its cost is shown first"
        self.push_screen(Prompt(f"Judge {what} by", self._judge_name, hint), named)

    def _paths(self, rows: Sequence[RunRow]) -> list[Path]:
        return [path for row in rows if (path := self.collection.conversation(row)) is not None]

    @work(thread=True, group="judge", exclusive=True)
    def _plan(self, rows: list[RunRow]) -> None:
        """What judging would take; makes no call."""
        from ..judge.rejudge.staleness import plan_rejudge

        assert self._make_judge is not None
        try:
            store = self.collection.store_to_write()
            if store is None:
                self.notify("Judging needs a store: leave out --store none", severity="warning")
                return
            judge = self._make_judge(self._judge_name)
            made = plan_rejudge(store, self._paths(rows), judge, self.collection.options.scope())
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        self.call_from_thread(self._confirm, rows, judge, made)

    def _confirm(self, rows: list[RunRow], judge: Judge, made: RejudgePlan) -> None:
        from ..views.judging_estimate import estimate_lines

        def answer(yes: bool | None) -> None:
            if yes:
                self._carry_out(rows, judge, made)

        self.push_screen(Confirm("Judge?", estimate_lines(made)), answer)

    @work(thread=True, group="judge", exclusive=True)
    def _carry_out(self, rows: list[RunRow], judge: Judge, made: RejudgePlan) -> None:
        """Make the plan's calls and the scorecards, telling how far it is."""
        import asyncio

        from ..judge.rejudge.update import update_collection

        worker, store = get_current_worker(), self.collection.store
        assert store is not None

        def say(text: str) -> None:
            if not worker.is_cancelled:
                self.call_from_thread(self.runs_screen.say, progress=text)

        def cost(usd: float | None) -> str:
            return "cost unknown" if usd is None else f"${usd:.4f}"

        try:
            done = asyncio.run(
                update_collection(
                    made,
                    store,
                    self._paths(rows),
                    judge,
                    self.collection.options,
                    on_calls=lambda s: say(
                        f"judged {s.progress.done} of {made.calls} · {cost(s.usage.cost_usd)}"
                    ),
                    on_cards=lambda p, _: say(f"scored {p.done} runs"),
                )
            )
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        unscored = sum(done.execution.unscored.values())
        changed = []
        for row, path in zip(rows, self._paths(rows), strict=True):
            card = next(store.cards(path, judge=judge.name), None)
            if card is not None:
                changed.append(self.collection.remember(row, card))
        text = f"{len(changed)} runs judged by {judge.name}" + (
            f", {unscored} criteria unscored" if unscored else ""
        )
        self.notify(text, severity="warning" if unscored or done.errors else "information")
        self.call_from_thread(self._judged, changed)

    def _judged(self, changed: list[RunRow]) -> None:
        from .run_screen import RunScreen

        self.runs_screen.say(progress="")
        self.runs_screen.update_rows(changed)
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                row = next((row for row in changed if row.number == screen.row.number), None)
                if row is not None:
                    screen.scored(row, self.collection.card(row))

    # Labelling.

    def _label_storage(self, store: Store | None) -> LabelStorage:
        """This annotator's labels; AmbjudgeError when the store cannot be used."""
        from ..views.label_storage import LabelStorage

        base = (
            self.collection.path if self.collection.path.is_dir() else self.collection.path.parent
        )
        return LabelStorage(
            self.annotator, self.labels_folder or base / ".ambjudge" / "labels", store
        )

    def on_label_run(self, event: LabelRun) -> None:
        self._label(event.run, event.card)

    def _label(self, run: Run, card: ScoreCard | None, drawn: Sampling | None = None) -> None:
        """Label a run, `drawn` for it or chosen by hand; in the place of the run labelled before,
        if that is still shown."""
        from .label_screen import LabelScreen

        try:
            storage = self._label_storage(self.collection.store_to_write())
            screen = LabelScreen(
                run, self.collection.rubric_of(run.track, run.task), card, storage, drawn
            )
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        if isinstance(self.screen, LabelScreen):
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def on_label_next(self, event: LabelNext) -> None:
        self.label_next(event.here)

    @work(thread=True, group="label", exclusive=True)
    def label_next(self, here: str | None) -> None:
        """Go to the next run of the label plan, which is made once from the scorecards at hand."""
        try:
            storage = self._label_storage(self.collection.store_to_write())
            if self._label_plan is None:
                scored = [row for row in self.runs_screen.rows if row.state == "scored"]
                cards = [card for row in scored if (card := self.collection.card(row)) is not None]
                self._label_plan = storage.plan(cards, LABEL_BUDGET)
            done = {here, *storage.all()}
        except AmbjudgeError as error:
            self.notify(str(error), severity="error")
            return
        by_id = {row.id: row for row in self.runs_screen.rows}
        found = next(
            (each for each in self._label_plan if each.run not in done and each.run in by_id), None
        )
        if found is None:
            self.notify("Every run of the label plan is labelled")
            return
        id = found.run
        opened = self.collection.open(by_id[id])
        if opened.run is None:
            self.notify(
                f"{id}: {opened.notes[0] if opened.notes else 'cannot be read'}", severity="warning"
            )
            return
        self.call_from_thread(self._label, opened.run, opened.card, found.drawn)
        why = f"{found.drawn.stratum}, 1 of {found.drawn.size}" if found.drawn else "planned"
        self.notify(f"Next of the plan: {id} ({why})")

    # Summary.

    def on_summarise_runs(self, event: SummariseRuns) -> None:
        self.summarise(event.rows)

    @work(thread=True, group="analysis", exclusive=True)
    def summarise(self, rows: Sequence[RunRow]) -> None:
        """Codes, the cliff, stages and agreement over these runs."""
        from ..views.label_agreement import agree, agreement_lines
        from ..views.runs_summary import summary_lines

        lines = summary_lines(rows)
        try:
            labels = self._label_storage(self.collection.store).all()
            found = [
                agree(labels[row.id], card)
                for row in rows
                if row.id in labels and (card := self.collection.card(row)) is not None
            ]
            lines += [line(""), *agreement_lines(self.annotator, found)]
        except AmbjudgeError as error:
            lines += [line(""), line((f"labels: {error}", "warn"))]
        more = (
            "Intervals, effects and figures: ambjudge analyze PATH --out DIR, then open"
            " DIR/report.html"
        )
        self.call_from_thread(
            self._read, "Analysis of the runs shown", [*lines, line(""), line((more, "dim"))]
        )

    def _read(self, title: str, lines: Sequence[StyledLine]) -> None:
        self.push_screen(Reader(title, lines))
