"""The table of runs: a view over plain tuples that formats only the rows on screen.

Textual's DataTable measures every cell of every row: 10,000 runs take it 3 s to show and as long
after each filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..judge.card.view_parts import grade, score_text
from ..sanitize import sanitize_line
from ..views.run_rows import RunRow

_BARS = "▁▂▃▄▅▆▇█"
ENDED = {"submitted": "sub", "stopped": "stop", "breach": "BRCH", "cut": "cut"}


@dataclass(frozen=True)
class Column:
    """A column: its heading, width in cells, what is shown, what sorts, and how soon it gives way
    (0: never)."""

    name: str
    width: int
    text: Callable[[RunRow], str]
    key: Callable[[RunRow], Any]
    style: Callable[[RunRow], str] | None = None
    gives_way: int = 0
    grows: bool = False
    right: bool = False
    full_name: str = ""
    """Where there is room for more than `name`."""


def meter(score: float | None) -> str:
    """A score in [0, 1] in four cells: a bar and two digits, `█1.0` for 1; a point where it is
    unknown."""
    if score is None:
        return " ·  "
    bar = _BARS[min(7, int(score * 8))]
    return f"{bar}1.0" if score >= 0.995 else f"{bar}{f'{score:.2f}'[1:]}"


def _stage(index: int) -> Column:
    return Column(
        f"S{index + 1}",
        4,
        lambda r: meter(r.stages[index]),
        lambda r: r.stages[index],
        lambda r: grade(r.stages[index]),
    )


COLUMNS: tuple[Column, ...] = (
    Column("Run", 14, lambda r: r.id, lambda r: r.id.casefold(), grows=True),
    Column(
        "Agent",
        12,
        lambda r: r.agent or "",
        lambda r: (r.agent or "").casefold() or None,
        gives_way=4,
    ),
    Column(
        "Task", 18, lambda r: r.task or "", lambda r: (r.task or "").casefold() or None, gives_way=6
    ),
    Column(
        "Tier",
        5,
        lambda r: {"standard": "std"}.get(r.tier or "", r.tier or ""),
        lambda r: r.tier,
        gives_way=5,
    ),
    *(_stage(index) for index in range(5)),
    Column(
        "Agnt",
        4,
        lambda r: score_text(r.agentic),
        lambda r: r.agentic,
        lambda r: grade(r.agentic),
        right=True,
        full_name="Agentic",
    ),
    Column(
        "Task",
        4,
        lambda r: score_text(r.task_score),
        lambda r: r.task_score,
        lambda r: grade(r.task_score),
        3,
        right=True,
        full_name="Task score",
    ),
    Column(
        "Ovrl",
        6,
        lambda r: overall(r),
        lambda r: r.overall,
        lambda r: grade(None if r.overall is None else r.overall / 100),
        right=True,
        full_name="Overall",
    ),
    Column(
        "Range",
        6,
        lambda r: span(r),
        lambda r: r.span,
        lambda r: "unknown",
        4,
        full_name="Range of Overall",
    ),
    Column(
        "Codes",
        9,
        lambda r: fired(r),
        lambda r: r.codes if r.codes or (r.read and not r.unknown) else None,
        lambda r: "code",
    ),
    Column(
        "End",
        4,
        lambda r: ENDED.get(r.ended or "", r.ended or ""),
        lambda r: r.ended,
        lambda r: "bad" if r.disqualified or r.ended in ("cut", "breach") else "",
        2,
    ),
    Column(
        "Turns",
        5,
        lambda r: "" if r.turns is None else str(r.turns),
        lambda r: r.turns,
        gives_way=7,
        right=True,
    ),
    Column(
        "Flags",
        5,
        lambda r: flags(r),
        lambda r: (r.contradictions, r.unscored, r.unverified),
        lambda r: "warn",
        gives_way=1,
    ),
)


def overall(row: RunRow) -> str:
    """A point, ~ before it where it rests on presumed criteria, or the range where too little was
    read for one."""
    if row.overall is None:
        return span(row) or score_text(None)
    return ("~" if row.span else "") + score_text(row.overall, digits=1)


def span(row: RunRow) -> str:
    """The range of Overall where not all was read."""
    return f"{row.span[0]:.0f}–{row.span[1]:.0f}" if row.span else ""


def fired(row: RunRow) -> str:
    """The codes that fired, with a question mark where others are unknown."""
    return " ".join([*row.codes, "?"] if row.unknown else row.codes)


def flags(row: RunRow) -> str:
    """Signs for what deserves a look: ! contradicted, ? unscored, ≠ quotes not found, ~ presumed, ✗
    unreadable, … not scored yet."""
    if row.state != "scored":
        return "✗" if row.state == "error" else "…"
    signs = (
        (row.contradictions, "!"),
        (row.unscored, "?"),
        (row.unverified, "≠"),
        (row.presumed, "~"),
    )
    return "".join(sign for count, sign in signs if count)


def fit_columns(width: int) -> list[tuple[Column, int]]:
    """The columns that fit, with their widths: those with the highest `gives_way` go first, `grows`
    takes the rest."""
    chosen = list(COLUMNS)
    while (need := sum(c.width + 1 for c in chosen) + 1) > width:
        last = max(chosen, key=lambda c: c.gives_way)
        if not last.gives_way:
            break
        chosen.remove(last)
    spare = max(0, width - need)
    return [(c, min(c.width + spare, 60) if c.grows else c.width) for c in chosen]


def sort_rows(
    rows: Sequence[RunRow], order: Sequence[int], column: Column, descending: bool
) -> list[int]:
    """Indexes of rows in the order of a column; unknown values come last either way, equal ones
    stay in place."""
    keyed = [(column.key(rows[i]), i) for i in order]
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [i for _, i in known] + [i for key, i in keyed if key is None]


class RunsTable(ScrollView, can_focus=True):
    """Rows of runs with a cursor, marks and a sort column. Line 0 is the heading and does not
    scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "runs--header",
        "runs--cursor",
        "runs--marked",
        "runs--good",
        "runs--warn",
        "runs--bad",
        "runs--unknown",
        "runs--code",
        "runs--waiting",
        "runs--sorted",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Down", show=False),
        Binding("k,up", "move(-1)", "Up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("b,pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(False)", "First run", show=False),
        Binding("G,end", "edge(True)", "Last run", show=False),
        Binding("enter,l,right", "open", "Open"),
        Binding("space", "mark", "Mark"),
        Binding("asterisk", "mark_all", "Mark all shown, or none", show=False),
        Binding(
            "less_than_sign,comma", "sort_by(-1)", "Sort by the column to the left", show=False
        ),
        Binding(
            "greater_than_sign,full_stop",
            "sort_by(1)",
            "Sort by the column to the right",
            show=False,
        ),
        Binding("r", "reverse", "Reverse the order", show=False),
    ]

    @dataclass
    class Opened(Message):
        """A run shall be opened."""

        row: RunRow

    @dataclass
    class Moved(Message):
        """The cursor is on another row (None: the table is empty)."""

        row: RunRow | None

    class Changed(Message):
        """Marks or order changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[RunRow] = ()
        self.order: list[int] = []
        self.marked: set[int] = set()
        self.cursor = 0
        self.sorting: tuple[int | None, bool] = None, False
        """The sort column's place among COLUMNS, and whether descending."""
        self._columns: list[tuple[Column, int]] = []

    # Content.

    def show(self, rows: Sequence[RunRow], order: Sequence[int]) -> None:
        """Show these of the rows, sorted by the chosen column; the cursor stays on its run where
        that is still shown."""
        at = self.current
        self.rows = rows
        column, descending = self.sorting
        self.order = (
            list(order) if column is None else sort_rows(rows, order, COLUMNS[column], descending)
        )
        last = max(0, len(self.order) - 1)
        number = at.number if at is not None else None
        self.cursor = next(
            (p for p, i in enumerate(self.order) if rows[i].number == number),
            min(self.cursor, last),
        )
        self._resize()
        self.refresh()
        self.post_message(self.Moved(self.current))

    @property
    def current(self) -> RunRow | None:
        """The row under the cursor."""
        return self.rows[self.order[self.cursor]] if self.cursor < len(self.order) else None

    @property
    def sorted_by(self) -> str:
        """For the status line."""
        column, descending = self.sorting
        return "" if column is None else f"{COLUMNS[column].name} {'↓' if descending else '↑'}"

    # Keys.

    def action_move(self, step: int) -> None:
        self.move_to(self.cursor + step)

    def action_page(self, step: int) -> None:
        self.move_to(self.cursor + step * max(1, self.size.height - 2))

    def action_edge(self, last: bool) -> None:
        self.move_to(len(self.order) - 1 if last else 0)

    def move_to(self, place: int) -> None:
        """Put the cursor on a row of the shown ones, the nearest one outside."""
        place = min(max(0, place), max(0, len(self.order) - 1))
        if place != self.cursor:
            for changed in (self.cursor, place):
                self.refresh_line(changed + 1)
            self.cursor = place
            self._follow()
            self.post_message(self.Moved(self.current))

    def _follow(self) -> None:
        height = max(1, self.size.height - 1)
        top = int(self.scroll_offset.y)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def action_open(self) -> None:
        if self.current is not None:
            self.post_message(self.Opened(self.current))

    def action_mark(self) -> None:
        if self.current is not None:
            self.marked ^= {self.current.number}
            self.action_move(1)
            self.refresh()
            self.post_message(self.Changed())

    def action_mark_all(self) -> None:
        shown = {self.rows[i].number for i in self.order}
        self.marked = self.marked - shown if shown <= self.marked else self.marked | shown
        self.refresh()
        self.post_message(self.Changed())

    def action_sort_by(self, step: int) -> None:
        places = [COLUMNS.index(column) for column, _ in self._columns]
        now = self.sorting[0]
        if now not in places:
            self.sort_on(places[0 if step > 0 else -1])
        else:
            self.sort_on(places[(places.index(now) + step) % len(places)])

    def action_reverse(self) -> None:
        column, descending = self.sorting
        if column is not None:
            self.sort_on(column, not descending)

    def sort_on(self, column: int, descending: bool = False) -> None:
        """Sort by a column of COLUMNS."""
        self.sorting = column, descending
        self.show(self.rows, self.order)
        self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            x = 1
            for column, width in self._columns:
                if x <= event.x <= x + width:
                    place = COLUMNS.index(column)
                    self.sort_on(place, self.sorting == (place, False))
                    return
                x += width + 1
            return
        place = int(self.scroll_offset.y) + event.y - 1
        if place < len(self.order):
            if place == self.cursor and event.chain >= 2:
                self.action_open()
            self.move_to(place)

    # Drawing.

    def on_resize(self, event: events.Resize) -> None:
        self._columns = fit_columns(self.scrollable_size.width)
        self._resize()

    def _resize(self) -> None:
        self.virtual_size = Size(self.scrollable_size.width, len(self.order) + 1)
        self._follow()

    def _overlay(self, name: str) -> Style:
        return self.get_component_rich_style(f"runs--{name}", partial=True)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_size.width
        if y == 0:
            return self._header(width)
        place = int(self.scroll_offset.y) + y - 1
        if place >= len(self.order):
            return Strip.blank(width, self.rich_style)
        return self._draw(self.rows[self.order[place]], width, place == self.cursor)

    def _header(self, width: int) -> Strip:
        base = self.get_component_rich_style("runs--header")
        chosen, descending = self.sorting
        segments = [Segment(" ", base)]
        for column, size in self._columns:
            here = chosen is not None and COLUMNS[chosen] is column
            text = set_cell_size(
                column.name + ("↓" if descending else "↑") if here else column.name, size
            )
            if column.right:
                text = text.rstrip().rjust(size)
            segments.append(Segment(text + " ", base + self._overlay("sorted") if here else base))
        return Strip(segments).adjust_cell_length(width, base)

    def _draw(self, row: RunRow, width: int, cursor: bool) -> Strip:
        base = self.get_component_rich_style("runs--cursor") if cursor else self.rich_style
        if row.state != "scored":
            base += self._overlay("waiting")
        segments = [
            Segment("●" if row.number in self.marked else " ", base + self._overlay("marked"))
        ]
        for column, size in self._columns:
            text = sanitize_line(column.text(row))
            if cell_len(text) > size:
                text = set_cell_size(text, size - 1) + "…"
            text = text.rjust(size) if column.right else set_cell_size(text, size)
            # Grades are unreadable on the cursor.
            name = column.style(row) if column.style and not cursor else ""
            segments.append(Segment(text + " ", base + self._overlay(name) if name else base))
        return Strip(segments).adjust_cell_length(width, base)
