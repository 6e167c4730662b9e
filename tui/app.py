"""The browser itself: its screens, and how one leads to another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import get_current_worker

from ..errors import AmbjudgeError
from ..sanitize import sanitize_line
from .rows import RunRow
from .runs_screen import RunsScreen
from .source import Collection
from .views import Views

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.scorecard import ScoreCard
    from ..judge.store import Store
    from .label_screen import LabelScreen
    from .labelbook import LabelBook
    from .panels import Line
    from .run_screen import RunScreen

LABEL_BUDGET = 300
"""Runs that the label plan is made for."""


class Browser(App[None]):
    """`ambjudge browse`. Nothing that comes from a run is ever markup, a link or an action."""

    CSS_PATH = "browser.tcss"
    TITLE = "ambjudge"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Command palette: themes, views and more", show=False),
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

        `labels` is the folder for label files (default: `labels` beside the runs); `judge` makes a judge from its name.
        """
        super().__init__()
        self.collection = collection
        self.annotator, self.labels_folder = annotator, labels
        self._make_judge, self._judge_name = judge, judge_name
        self._label_plan: list[tuple[str, str]] | None = None
        self.runs_screen = RunsScreen(collection, views or Views(), score=score, query=query)
        if theme is not None:
            self.theme = theme

    def on_mount(self) -> None:
        self.push_screen(self.runs_screen)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if isinstance(screen, RunsScreen):
            for view in screen.views.all():
                name = sanitize_line(view.name).replace("[", "(")
                yield SystemCommand(
                    f"View: {name}", "Filter and sort the runs", lambda view=view: screen.use_view(view)
                )
            yield SystemCommand("Label the next run", "The next of the label plan", lambda: self.label_next(None))

    def tell(self, text: str, severity: str = "information") -> None:
        """A short message; the text may come from anywhere."""
        level = "error" if severity == "error" else "warning" if severity == "warning" else "information"
        self.notify(sanitize_line(text), severity=level, markup=False, timeout=4)  # type: ignore[arg-type]

    @property
    def failure(self) -> Exception | None:
        """The fault that ended the browser, if one did."""
        return self._exception

    def _fatal_error(self) -> None:
        """Leave and let the command line tell the fault in one sanitised line; Textual's own traceback would print
        values and messages as they are, and those may come from a run."""
        self._close_messages_no_wait()

    # One run.

    def open_run(self, row: RunRow) -> None:
        """Show one run."""
        from .run_screen import RunScreen

        self.push_screen(RunScreen(self.collection, row))

    # Comparing.

    def compare(self, rows: Sequence[RunRow]) -> None:
        """Compare two marked runs, or two of the scorecards of one."""
        if len(rows) == 2:
            self._compare((rows[0], rows[1]), (None, None))
        elif len(rows) == 1:
            self._compare_cards(rows[0])
        else:
            self.tell("Mark two runs to compare them, or one that has several scorecards")

    def _compare(self, rows: tuple[RunRow, RunRow], cards: tuple[ScoreCard | None, ScoreCard | None]) -> None:
        from .compare_screen import CompareScreen

        self.push_screen(CompareScreen(self.collection, rows, cards))

    def _compare_cards(self, row: RunRow) -> None:
        from .dialogs import Choice

        try:
            cards = self.collection.cards_of(row)
        except AmbjudgeError as error:
            self.tell(str(error), "error")
            return
        if len(cards) < 2:
            self.tell("Only one scorecard: mark two runs (space), or judge this one by another judge (R)")
            return
        names = [f"{c.judge.name} · {c.rubric.id} {c.rubric.version} · Agentic {c.agentic}" for c in cards[1:]]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._compare((row, row), (cards[place + 1], cards[0]))

        if len(names) == 1:
            chosen(0)
        else:
            self.push_screen(Choice(f"Compare {cards[0].judge.name} with", names), chosen)

    # Judging.

    def rejudge(self, rows: Sequence[RunRow]) -> None:
        """Judge runs, after showing what that would cost."""
        from .dialogs import Prompt

        paths = [path for row in rows if (path := self.collection.conversation(row)) is not None]
        if not paths or self._make_judge is None:
            self.tell("Nothing that can be judged here", "warning")
            return

        def named(name: str | None) -> None:
            if name and name.strip():
                self._judge_name = name.strip()
                self._plan(list(rows), paths, self._judge_name)

        what = rows[0].id if len(rows) == 1 else f"{len(rows)} runs"
        self.push_screen(
            Prompt(f"Judge {what} by", self._judge_name, "rules, a model, or local:PATH; its cost is shown first"),
            named,
        )

    @work(thread=True, group="judge", exclusive=True)
    def _plan(self, rows: list[RunRow], paths: list[Path], name: str) -> None:
        from .judging import make_plan

        try:
            assert self._make_judge is not None
            store = self.collection.store_to_write()
            if store is None:
                self.call_from_thread(self.tell, "Judging needs a store: leave out --store none", "warning")
                return
            judge = self._make_judge(name)
            made = make_plan(store, paths, judge, self.collection.options)
        except AmbjudgeError as error:
            self.call_from_thread(self.tell, str(error), "error")
            return
        self.call_from_thread(self._confirm, rows, paths, judge, made)

    def _confirm(self, rows: list[RunRow], paths: list[Path], judge: Judge, made: RejudgePlan) -> None:
        from .dialogs import Confirm
        from .judging import plan_lines

        def answer(yes: bool | None) -> None:
            if yes:
                self._carry_out(rows, paths, judge, made)

        self.push_screen(Confirm("Judge?", plan_lines(made)), answer)

    @work(thread=True, group="judge", exclusive=True)
    def _carry_out(self, rows: list[RunRow], paths: list[Path], judge: Judge, made: RejudgePlan) -> None:
        from .judging import carry_out

        worker = get_current_worker()
        store = self.collection.store
        assert store is not None
        try:
            done = carry_out(
                made, store, paths, judge, self.collection.options,
                lambda text: self.call_from_thread(self.runs_screen.say, text) if not worker.is_cancelled else None,
            )  # fmt: skip
        except AmbjudgeError as error:
            self.call_from_thread(self.tell, str(error), "error")
            return
        unscored = sum(done.execution.unscored.values())
        cards = {
            str(path.absolute()): card
            for path in paths
            for card in [next(store.cards(path, judge=judge.name), None)]
            if card
        }
        changed = []
        for row in rows:
            path = self.collection.conversation(row)
            card = cards.get(str(path.absolute())) if path is not None else None
            if card is not None:
                changed.append(self.collection.keep(row, card))
        text = f"{len(changed)} runs judged by {judge.name}" + (f", {unscored} criteria unscored" if unscored else "")
        self.call_from_thread(self._judged, changed, text, bool(unscored or done.errors))

    def _judged(self, changed: list[RunRow], text: str, trouble: bool) -> None:
        from .run_screen import RunScreen

        self.runs_screen.say("")
        self.runs_screen.update_rows(changed)
        self.tell(text, "warning" if trouble else "information")
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                row = next((row for row in changed if row.number == screen.row.number), None)
                if row is not None:
                    screen.scored(row, self.collection.card(row))

    # Labelling.

    def book(self) -> LabelBook:
        """This annotator's labels; AmbjudgeError when the store cannot be used."""
        return self._book(self.collection.store_to_write())

    def _book(self, store: Store | None) -> LabelBook:
        from .labelbook import LabelBook

        base = self.collection.path if self.collection.path.is_dir() else self.collection.path.parent
        return LabelBook(self.annotator, self.labels_folder or base / ".ambjudge" / "labels", store)

    def label(self, screen: RunScreen) -> None:
        """Label the run of this screen."""
        if screen.opened is None or screen.opened.run is None:
            self.tell("The run is not there")
            return
        self._label(screen.opened.run, screen.opened.card, replace=None)

    def _label(self, run: object, card: ScoreCard | None, replace: LabelScreen | None) -> None:
        from ..trajectories.models import Run
        from .label_screen import LabelScreen

        assert isinstance(run, Run)
        try:
            screen = LabelScreen(run, self.collection.rubric_of(run.track, run.task), card, self.book())
        except AmbjudgeError as error:
            self.tell(str(error), "error")
            return
        if replace is not None and self.screen is replace:
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    @work(thread=True, group="label", exclusive=True)
    def label_next(self, screen: LabelScreen | None) -> None:
        """Go to the next run of the label plan, which is made once from the scorecards at hand."""
        try:
            book = self.book()
            if self._label_plan is None:
                scored = [row for row in self.runs_screen.rows if row.state == "scored"]
                cards = [card for row in scored if (card := self.collection.card(row)) is not None]
                self._label_plan = book.plan(cards, LABEL_BUDGET)
            done = set(book.all())
        except AmbjudgeError as error:
            self.call_from_thread(self.tell, str(error), "error")
            return
        by_id = {row.id: row for row in self.runs_screen.rows}
        here = screen.run.id if screen is not None else None
        found = next(((id, why) for id, why in self._label_plan if id not in done and id != here and id in by_id), None)
        if found is None:
            self.call_from_thread(self.tell, "Every run of the label plan is labelled")
            return
        opened = self.collection.open(by_id[found[0]])
        if opened.run is None:
            self.call_from_thread(
                self.tell, f"{found[0]}: {opened.notes[0] if opened.notes else 'cannot be read'}", "warning"
            )
            return
        self.call_from_thread(self._label, opened.run, opened.card, screen)
        self.call_from_thread(self.tell, f"Next of the plan: {found[0]} ({found[1]})")

    # Analysis.

    @work(thread=True, group="analysis", exclusive=True)
    def analysis(self) -> None:
        """Codes, the cliff, stages and agreement over the runs shown."""
        from .draft import agree
        from .panels import line
        from .summaries import agreement_lines, summary_lines

        screen = self.runs_screen
        rows = [screen.rows[n] for n in screen.table.order]
        lines = summary_lines(rows)
        try:
            labels = self._book(self.collection.store).all()
            found = [
                agree(labels[row.id], card)
                for row in rows
                if row.id in labels and (card := self.collection.card(row)) is not None
            ]
            lines += [line(""), *agreement_lines(self.annotator, found)]
        except AmbjudgeError as error:
            lines += [line(""), line((f"labels: {error}", "warn"))]
        lines += [
            line(""),
            line(("Intervals, effects and figures: ambjudge analyze PATH --out DIR, then open DIR/report.html", "dim")),
        ]
        self.call_from_thread(self._read, "Analysis of the runs shown", lines)

    def _read(self, title: str, lines: Sequence[Line]) -> None:
        from .dialogs import Reader

        self.push_screen(Reader(title, lines))
