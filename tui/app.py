"""The browser itself: its screens, and how one leads to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from .rows import RunRow
from .runs_screen import RunsScreen
from .source import Collection
from .views import Views

if TYPE_CHECKING:
    from .run_screen import RunScreen


class Browser(App[None]):
    """`ambjudge browse`. Nothing that comes from a run is ever markup, a link or an action."""

    CSS_PATH = "browser.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Command palette", show=False),
        Binding("ctrl+q", "quit", "Quit", show=False),
    ]

    def __init__(
        self, collection: Collection, *, views: Views | None = None, score: bool = True, query: str = "",
        theme: str | None = None,
    ) -> None:  # fmt: skip
        """`score`: runs without a scorecard are scored by the heuristic judge, one after the other."""
        super().__init__()
        self.collection = collection
        self.runs_screen = RunsScreen(collection, views or Views(), score=score, query=query)
        if theme is not None:
            self.theme = theme

    def on_mount(self) -> None:
        self.push_screen(self.runs_screen)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if isinstance(screen, RunsScreen):
            for view in screen.views.all():
                name = view.name
                yield SystemCommand(
                    f"View: {name}", "Filter and sort the runs", lambda view=view: screen.use_view(view)
                )

    # Where screens lead.

    def open_run(self, row: RunRow) -> None:
        """Show one run."""
        from .run_screen import RunScreen

        self.push_screen(RunScreen(self.collection, row))

    def compare(self, rows: Sequence[RunRow]) -> None:
        """Compare two runs, or the verdicts on one."""

    def rejudge(self, rows: Sequence[RunRow]) -> None:
        """Judge runs, after showing what that would cost."""

    def analysis(self) -> None:
        """Codes, stages and the cliff over the runs shown."""

    def label(self, screen: RunScreen) -> None:
        """Label the run of this screen."""
