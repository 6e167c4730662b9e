"""The first screen: all runs of a collection, to filter, sort, mark and open.

Runs without a scorecard are scored in the background.
"""

from __future__ import annotations

import time
from typing import ClassVar

from textual import work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Footer, Input, Static
from textual.worker import Worker, get_current_worker

from ..errors import AmbjudgeError
from ..judge.card.view_parts import score_text
from ..views import run_columns
from ..views.collection import Collection
from ..views.content_search import ContentSearch
from ..views.run_filter import FILTER_HELP, Predicate, compile_query, words_sought
from ..views.run_rows import RunRow
from ..views.saved_views import BUILT_IN, View, Views
from ..views.styled_lines import StyledLine, heading, line
from .dialogs import Choice, Prompt, Reader, key_map
from .runs_table import RunsTable
from .safe_text import Entry, safe, safe_line
from .screen_requests import CompareRuns, JudgeRuns, ReadRun, SummariseRuns

_FLUSH_S = 0.4
"""Seconds between updates of the table while runs are scored or searched."""
_TYPING_S = 0.15
"""Seconds to wait for the next letter before runs are searched."""


class RunsScreen(Screen[None]):
    """The filter, the table, a preview of the run under the cursor, and the status line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "focus_filter", "Filter", priority=True),
        Binding("escape", "leave_filter", "Back to the table; once more: no filter", show=False),
        Binding("c", "compare", "Compare two"),
        Binding("R", "rejudge", "Judge"),
        Binding("v", "views", "Views"),
        Binding("ctrl+s", "save_view", "Save this filter and order as a view", show=False),
        Binding("s", "sort", "Sort by a column", show=False),
        Binding("A", "analysis", "Analysis"),
        Binding("question_mark", "help", "Help"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(
        self, collection: Collection, views: Views, *, score: bool = True, query: str = ""
    ) -> None:
        super().__init__()
        self.collection, self.views, self._score, self._query = collection, views, score, query
        self.contents = ContentSearch(collection)
        self.rows: list[RunRow] = []
        self._predicate: Predicate = lambda row: True
        self.listed = False
        self._news: dict[str, str] = {}
        """What the status line says first: `problem`, `progress` of judging, `search`."""

    def compose(self) -> ComposeResult:
        yield Static(
            safe_line(f"ambjudge · {self.collection.name}"), classes="bar -strong", id="title"
        )
        with Horizontal(id="filter-line"):
            yield Static("Filter /")
            yield Entry(
                self._query,
                placeholder=(
                    'track:vqa code:E3 S3<0.5 -tier:lite unscored text:"out of memory" words'
                ),
                id="filter",
                compact=True,
            )
        yield RunsTable(id="runs")
        yield Static(id="preview")
        yield Static(id="status", classes="bar")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.table = self.query_one(RunsTable)
        self.set_focus(self.table)
        self._filter(self._query)
        # Modules that parse scorecards must not delay the first paint.
        self.call_after_refresh(self.list_runs)

    # Listing and scoring.

    @work(thread=True, group="list", exclusive=True)
    def list_runs(self) -> None:
        """List the runs, then score those without a scorecard, beginning with those on screen."""
        worker = get_current_worker()
        try:
            for batch in self.collection.batches():
                if worker.is_cancelled:
                    return
                self.app.call_from_thread(self._add, batch)
        except AmbjudgeError as error:
            self.app.call_from_thread(self.say, problem=f"✗ {error}")
        if worker.is_cancelled:
            return
        self.app.call_from_thread(self._all_listed)
        self._score = self._score and self.collection.lets_rules_score
        if self._score:
            self._score_waiting(worker)

    def _score_waiting(self, worker: Worker[None]) -> None:
        waiting = dict.fromkeys(row.number for row in self.rows if row.state == "waiting")
        scored: list[RunRow] = []
        updated_at = time.monotonic()
        while waiting and not worker.is_cancelled:
            number = self._next_to_score(waiting)
            del waiting[number]
            # It may have been scored meanwhile, on the screen of the run.
            if self.rows[number].state == "waiting":
                scored.append(self.collection.score(self.rows[number]))
            if scored and (time.monotonic() - updated_at > _FLUSH_S or not waiting):
                self.app.call_from_thread(self.update_rows, scored)
                scored, updated_at = [], time.monotonic()
            time.sleep(0.002)  # Gives the thread that handles keys its turn.

    def _next_to_score(self, waiting: dict[int, None]) -> int:
        """The first waiting run on screen, else the first of all."""
        top = int(self.table.scroll_offset.y)
        for index in self.table.order[top : top + self.table.size.height]:
            if self.rows[index].number in waiting:
                return self.rows[index].number
        return next(iter(waiting))

    def _add(self, batch: list[RunRow]) -> None:
        first = len(self.rows)
        self.rows += batch
        self.table.choose_columns(self.rows)
        new = [index for index in range(first, len(self.rows)) if self._predicate(self.rows[index])]
        self.table.show(self.rows, self.table.order + new)
        self._status()

    def _all_listed(self) -> None:
        self.listed = True
        self._look_up()
        if self.collection.skipped:
            self.notify(
                f"{self.collection.skipped} scorecards could not be read and are left out",
                severity="warning",
            )
        if self.collection.left_out:
            self.notify(f"Shown: {self.collection.left_out}")
        self._status()

    def update_rows(self, changed: list[RunRow]) -> None:
        """Take over rows of runs that were scored, here or on the screen of a run."""
        for row in changed:
            self.rows[row.number] = row
        self.table.choose_columns(self.rows)
        if self.query_one("#filter", Input).value.strip() or self.table.sorting[0] is not None:
            self._apply()
        else:
            self.table.refresh()
            self._preview(self.table.current)
        self._status()

    # Filter.

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.set_focus(self.table)

    def _filter(self, text: str) -> None:
        try:
            self._predicate = compile_query(text, self.table.marked, self.contents.holding)
        except AmbjudgeError as error:
            self.say(problem=f"✗ {error}")
            return
        self._apply()
        self._look_up()
        self.say(problem="")

    @property
    def sought(self) -> list[str]:
        """The words that the filter looks for in the runs."""
        return words_sought(self.query_one("#filter", Input).value)

    def _look_up(self) -> None:
        """Search the runs for the words of the filter, once all runs are listed."""
        self.workers.cancel_group(self, "contents")
        if self.sought and self.listed:
            self.search_contents(list(self.rows), self.sought)
        else:
            self.say(search="")

    @work(thread=True, group="contents", exclusive=True)
    def search_contents(self, rows: list[RunRow], words: list[str]) -> None:
        """Search runs, and show matches as they come. The next letter typed cancels this."""
        worker = get_current_worker()
        time.sleep(_TYPING_S)
        updated_at = time.monotonic()
        for searched, _ in enumerate(self.contents.search(rows, words), 1):
            if worker.is_cancelled:
                return
            if time.monotonic() - updated_at > _FLUSH_S:
                progress = f"searching {searched:,} of {len(rows):,}"
                self.app.call_from_thread(self._show_matches, progress)
                updated_at = time.monotonic()
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show_matches, "")

    def _show_matches(self, progress: str) -> None:
        self._apply()
        self.say(search=progress)

    def _apply(self) -> None:
        predicate = self._predicate
        self.table.show(self.rows, [n for n, row in enumerate(self.rows) if predicate(row)])

    def action_focus_filter(self) -> None:
        if isinstance(self.focused, Input):
            raise SkipAction  # A slash that is typed.
        self.set_focus(self.query_one("#filter", Input))

    def action_leave_filter(self) -> None:
        field = self.query_one("#filter", Input)
        if field.has_focus:
            self.set_focus(self.table)
        elif field.value:
            field.value = ""

    # Messages of the table.

    def on_runs_table_moved(self, event: RunsTable.Moved) -> None:
        self._preview(event.row)

    def on_runs_table_changed(self, event: RunsTable.Changed) -> None:
        self._status()

    def on_runs_table_opened(self, event: RunsTable.Opened) -> None:
        self.post_message(ReadRun(event.row))

    def neighbour(self, row: RunRow, step: int) -> RunRow | None:
        """Move the cursor to the run `step` places after a run; None past the ends."""
        numbers = [self.rows[index].number for index in self.table.order]
        if row.number not in numbers:
            return None
        place = numbers.index(row.number) + step
        if not 0 <= place < len(numbers):
            return None
        self.table.move_to(place)
        return self.table.current

    def chosen(self) -> list[RunRow]:
        """The marked rows, or the one under the cursor."""
        marked = [row for row in self.rows if row.number in self.table.marked]
        return marked or ([self.table.current] if self.table.current else [])

    def _preview(self, row: RunRow | None) -> None:
        self.query_one("#preview", Static).update(safe("\n".join(preview(row)) if row else ""))

    def say(self, **news: str) -> None:
        """Put news of some kind into the status line; "" removes them."""
        self._news |= news
        self._status()

    def _status(self) -> None:
        parts = [self._news.get(kind, "") for kind in ("problem", "progress", "search")]
        parts.append(f"{len(self.rows):,} runs{'' if self.listed else ' …'}")
        if len(self.table.order) != len(self.rows):
            parts.append(f"{len(self.table.order):,} shown")
        if self.table.marked:
            parts.append(f"{len(self.table.marked):,} marked")
        waiting = sum(row.state == "waiting" for row in self.rows)
        if waiting:
            parts.append(f"{'scoring, ' if self._score else ''}{waiting:,} without scorecard")
        if self.table.sorted_by:
            parts.append(f"by {self.table.sorted_by}")
        text = " · ".join(part for part in parts if part)
        self.query_one("#status", Static).update(safe_line(text))

    # Views, sorting, help.

    def action_sort(self) -> None:
        columns = self.table.columns

        def sort(place: int | None) -> None:
            if place is not None:
                self.table.sort_on(columns[place].key)

        self.app.push_screen(Choice("Sort by", [column.full_title for column in columns]), sort)

    def action_save_view(self) -> None:
        key, descending = self.table.sorting
        query = self.query_one("#filter", Input).value

        def save(name: str | None) -> None:
            if name and name.strip():
                try:
                    self.views.save(View(name.strip(), query, key, descending))
                    self.notify(f"Saved: {name.strip()}")
                except AmbjudgeError as error:
                    self.notify(str(error), severity="error")

        self.app.push_screen(
            Prompt(
                "Name of the view",
                hint="Keeps the filter and the order. The same name replaces a view.",
            ),
            save,
        )

    def action_views(self) -> None:
        views = list(BUILT_IN)
        try:
            views += self.views.own()
        except AmbjudgeError as error:
            self.notify(str(error), severity="warning")

        def use(place: int | None) -> None:
            if place is not None:
                self.use_view(views[place])

        self.app.push_screen(
            Choice("Views", [f"{view.name}   {view.query}" for view in views]), use
        )

    def use_view(self, view: View) -> None:
        """Filter and sort like a view."""
        self.query_one("#filter", Input).value = view.query
        if (
            view.sort is not None
            and run_columns.column_named(view.sort, self.table.columns) is None
        ):
            self.notify(f"There is no column {view.sort!r} to sort by", severity="warning")
        elif view.sort is not None:
            self.table.sort_on(view.sort, view.descending)

    def action_help(self) -> None:
        self.app.push_screen(Reader("Keys", [*key_map(self), *_filter_help()]))

    def action_compare(self) -> None:
        self.post_message(CompareRuns(self.chosen()))

    def action_rejudge(self) -> None:
        self.post_message(JudgeRuns(self.chosen()))

    def action_analysis(self) -> None:
        self.post_message(SummariseRuns([self.rows[n] for n in self.table.order]))


def preview(row: RunRow) -> list[str]:
    """Two lines on a run: what is worst about it, and where it comes from."""
    if row.state == "error":
        return [f"✗ {row.error}", row.path]
    if row.state == "waiting":
        return ["not scored yet", row.path]
    parts = []
    known = [(score, n) for n, score in enumerate(row.stages, 1) if score is not None]
    if known:
        score, number = min(known)
        if score < 1:
            parts.append(f"lowest S{number} {score_text(score)}")
    if row.span is not None and row.overall is None:
        parts.append("too few judged criteria for a point score")
    if row.primary:
        parts.append(f"primary failure {row.primary}")
    counts = (
        (row.contradictions, "contradiction", "contradictions"),
        (row.unscored, "unscored item", "unscored items"),
        (row.presumed, "criterion presumed (~)", "criteria presumed (~)"),
        (row.unverified, "quote not found in its turn", "quotes not found in their turns"),
        (row.failed_calls or 0, "failed call", "failed calls"),
    )
    for count, singular, plural in counts:
        if count:
            parts.append(f"{count} {singular if count == 1 else plural}")
    if row.disqualified:
        parts.append("disqualified")
    return [
        " · ".join(parts) or "nothing stands out",
        f"{row.task or 'unknown task'} · {row.judge} · {row.rubric} · {row.path}",
    ]


def _filter_help() -> list[StyledLine]:
    """Examples of filter terms and what they find."""
    lines = [*heading("Filter"), line("All terms must hold.")]
    for example, meaning in FILTER_HELP:
        lines.append(line((f" {example:<24}", "id"), f" {meaning}", indent=26))
    return lines
