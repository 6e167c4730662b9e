"""The transcript of a run of any size: what is shown of it, where the reader is, what is marked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ..sanitize import replaced, sanitize, sanitize_line
from ..views.transcript_layout import FOLD, HEAD, LONGEST, TAIL, TITLE, Block, Layout, Row
from ..views.transcript_search import Span, locate, occurrences, search
from .row_view import RowView
from .safe_text import Mark
from .syntax_colours import CLASSES, Spans, highlight

GUTTER = 4
"""Columns left of the text: stage band, evidence or failure mark, kind bar, space."""

_KINDS = (
    "brief",
    "turn",
    "text",
    "reasoning",
    "code",
    "diff",
    "patch",
    "output",
    "error",
    "reply",
)
_SIGN_STYLES = {"+": "added", "-": "removed"}
_BARS = {
    "code": "┃",
    "diff": "┃",
    "patch": "┃",
    "output": "│",
    "error": "│",
    "reasoning": "┊",
    "reply": "◂",
    "brief": "◂",
}
HIDEABLE: tuple[tuple[str, frozenset[str]], ...] = (
    ("everything", frozenset()),
    ("no outputs", frozenset({"output", "error"})),
    ("words only", frozenset({"output", "error", "code", "diff", "patch"})),
)
"""What `t` goes through: a name for the status line and the kinds that are hidden."""


class TranscriptView(RowView):
    """Scrolls over the turns of a run.

    The place of the reader is a block and a line, so that folding and resizing do not jump.
    """

    PREFIX = "transcript"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"transcript--{kind}" for kind in _KINDS),
        *(f"transcript--syntax-{name}" for name in CLASSES),
        *(f"transcript--s{number}" for number in range(1, 6)),
        "transcript--title",
        "transcript--fold",
        "transcript--hit",
        "transcript--hit-here",
        "transcript--evidence",
        "transcript--replaced",
        "transcript--failed",
        "transcript--emphasis",
        *(f"transcript--{name}" for name in _SIGN_STYLES.values()),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Line down", show=False),
        Binding("k,up", "move(-1)", "Line up", show=False),
        Binding("l,right", "turn(1)", "Next turn", show=False),
        Binding("h,left", "turn(-1)", "Previous turn", show=False),
        Binding("0", "edge_turn(False)", "First turn", show=False),
        Binding("dollar_sign", "edge_turn(True)", "Last turn", show=False),
        Binding("z,enter", "toggle_fold", "Fold or unfold what is in view", show=False),
        Binding("Z", "toggle_all", "Fold or unfold everything", show=False),
        Binding("t", "cycle_kinds", "Hide outputs, hide code, show all", show=False),
    ]

    class TurnChanged(Message):
        """Another turn is at the top of the view."""

    class Redrawn(Message):
        """Rows, marks or position changed, so that a minimap must be drawn again."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.layout_ = Layout([], 80)
        self.turn = 0
        """The turn that the reader is at (0: the brief)."""
        self.evidence_turns: frozenset[int] = frozenset()
        self.quoted: dict[tuple[int, int], list[Span]] = {}
        """The highlighted words of a quote, by (block, line)."""
        self._lexed: LRUCache[int, tuple[Spans, ...]] = LRUCache(200)
        self._replaced: dict[int, int] = {}
        self._pending: Row | None = None
        """Where to scroll once the view has a size."""
        self._needle = ""
        self._hits: list[tuple[int, int]] = []
        """(block, line) of the lines that hold the searched text."""
        self._hit = -1
        """The hit that the reader is at, -1 for none."""
        self._kinds = 0
        """Which of HIDEABLE are hidden."""

    # Content.

    def show(self, layout: Layout) -> None:
        """Show these blocks from the top."""
        self.layout_ = layout
        self._replaced.clear()
        self._lexed.clear()
        self.quoted = {}
        self._needle, self._hits, self._hit = "", [], -1
        self._kinds = 0
        self.evidence_turns = frozenset()
        self.layout_.resize(self.text_width)
        self._changed()
        self.scroll_to(0, 0, animate=False)
        self.turn = self.layout_.turn_at(0)
        self.post_message(self.TurnChanged())

    @property
    def _columns(self) -> int:
        """Columns of the view without its scroll bar (`size` counts that too)."""
        return self.scrollable_size.width or 80

    @property
    def text_width(self) -> int:
        """Columns for text: what a layout of this view should be made for."""
        return self._columns - GUTTER

    @property
    def hits(self) -> tuple[int, int]:
        """Which search hit the reader is at (from 1, 0 for none), and how many hits there are."""
        return self._hit + 1, len(self._hits)

    def hit_rows(self) -> list[int]:
        """Rows of the lines that search found, at most some hundreds of them."""
        return [self.layout_.find(block, line) for block, line in self._hits[:500]]

    def on_resize(self, event: events.Resize) -> None:
        with self._in_place():
            self.layout_.resize(self.text_width)

    def _changed(self) -> None:
        beyond = max(0, self.size.height - 3)
        self.virtual_size = Size(self._columns, self.layout_.height + beyond)
        self.refresh()
        self.post_message(self.Redrawn())

    def _anchor(self) -> Row | None:
        return self.layout_.row(self.top) if self.top < self.layout_.height else None

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """While rows are folded or wrapped anew: the line at the top stays there."""
        # A view without a size cannot scroll: a place that was requested then is gone to now.
        anchor = self._pending or self._anchor()
        self._pending = None
        yield
        self._changed()
        if anchor is not None:
            self.go(self.layout_.find(anchor.block, anchor.line))

    def go(self, y: int) -> None:
        if self.size.height:
            super().go(y)
        else:
            self._pending = self.layout_.row(y) if y < self.layout_.height else None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        turn = self.layout_.turn_at(round(new_value))
        self.post_message(self.Redrawn())
        if turn != self.turn:
            self.turn = turn
            self.post_message(self.TurnChanged())

    # Moving.

    @property
    def rows(self) -> int:
        return self.layout_.height

    def action_move(self, step: int) -> None:
        self.go(self.top + step)

    def action_turn(self, step: int) -> None:
        turns = self.layout_.turns
        if not turns:
            return
        place = turns.index(self.turn) if self.turn in turns else 0
        if step < 0 and self.top > self.layout_.turn_row(self.turn):
            step += 1  # The first press goes to the beginning of the present turn.
        self.go_turn(turns[min(max(0, place + step), len(turns) - 1)])

    def action_edge_turn(self, last: bool) -> None:
        turns = [turn for turn in self.layout_.turns if turn > 0]
        if turns:
            self.go_turn(turns[-1 if last else 0])

    def go_turn(self, turn: int) -> None:
        """Bring the heading of a turn to the top."""
        self.go(self.layout_.turn_row(turn))

    def go_line(self, block: int, line: int, offset: int = 0) -> None:
        """Bring a line into view, unfolding what hides it."""
        self.layout_.reveal(block, line)
        self._changed()
        self.go(max(0, self.layout_.find(block, line, offset) - min(5, self.size.height // 4)))

    # Folds.

    def action_toggle_fold(self) -> None:
        last = min(self.top + self.size.height, self.layout_.height) - 1
        if self.top > last:
            return
        first_block, last_block = self.layout_.row(self.top).block, self.layout_.row(last).block
        for number in range(first_block, last_block + 1):
            if self.layout_.blocks[number].foldable:
                self._toggle(number)
                return

    def _toggle(self, block: int) -> None:
        with self._in_place():
            self.layout_.fold([block], not self.layout_.blocks[block].folded)

    def action_toggle_all(self) -> None:
        with self._in_place():
            blocks = self.layout_.blocks
            self.layout_.fold(range(len(blocks)), not any(block.closed for block in blocks))

    def action_cycle_kinds(self) -> None:
        self._kinds = (self._kinds + 1) % len(HIDEABLE)
        turn = self.turn
        name, kinds = HIDEABLE[self._kinds]
        self.layout_.hide(kinds)
        self._changed()
        self.go_turn(turn)
        self.notify(f"Shown: {name}", timeout=2)

    def on_click(self, event: events.Click) -> None:
        y = self.top + event.y
        if y < self.layout_.height:
            row = self.layout_.row(y)
            is_title = row.line == TITLE and self.layout_.blocks[row.block].foldable
            if row.line == FOLD or is_title:
                self._toggle(row.block)

    # Search, evidence.

    def search(self, needle: str) -> int:
        """Go to the next line that holds the text; the number of lines that hold it."""
        self._needle = needle
        self._hits = search(self.layout_.blocks, needle)
        self._hit = -1
        if not self._hits:
            self._changed()
            return 0
        anchor = self._anchor()
        place = (anchor.block, max(anchor.line, 0)) if anchor else (0, 0)
        self._hit = bisect_left(self._hits, place) % len(self._hits)
        self._to_hit()
        return len(self._hits)

    def next_hit(self, step: int) -> None:
        """The next (1) or previous (-1) hit, round the end."""
        if self._hits:
            self._hit = (self._hit + step) % len(self._hits)
            self._to_hit()

    def _to_hit(self) -> None:
        block, line = self._hits[self._hit]
        spans = occurrences(self.layout_.blocks[block].lines[line], self._needle)
        self.go_line(block, line, spans[0][0] if spans else 0)

    def mark_evidence(self, turns: Iterable[int]) -> None:
        """Mark these turns in the gutter, and no quote any more."""
        self.evidence_turns = frozenset(turn for turn in turns if turn > 0)
        self.quoted = {}
        self._changed()

    def show_quote(self, turn: int, quote: str) -> bool:
        """Go to a turn and highlight the words of a quote in it; False if it does not hold them."""
        spans = []
        if quote:
            spans = locate(quote, self.layout_.blocks, self.layout_.blocks_of_turn(turn))
        self.quoted = {}
        for span in spans:
            self.quoted.setdefault((span.block, span.line), []).append(span)
        if spans:
            self.go_line(spans[0].block, spans[0].line, spans[0].start)
        else:
            self._changed()
            self.go_turn(turn)
        return bool(spans)

    # Drawing.

    def replaced_in(self, turn: int) -> int:
        """How many characters of a turn the sanitiser replaced."""
        if turn not in self._replaced:
            blocks = (self.layout_.blocks[number] for number in self.layout_.blocks_of_turn(turn))
            self._replaced[turn] = sum(replaced("\n".join(block.lines)) for block in blocks)
        return self._replaced[turn]

    def render_line(self, y: int) -> Strip:
        y, width = self.top + y, self._columns
        if y >= self.layout_.height:
            return Strip.blank(width, self.rich_style)
        row = self.layout_.row(y)
        block = self.layout_.blocks[row.block]
        base = self.get_component_rich_style(f"transcript--{block.kind}")
        if block.signs and row.line >= 0 and block.signs[row.line] in _SIGN_STYLES:
            base += self.overlay(_SIGN_STYLES[block.signs[row.line]])
        text, marks = self._content(row, block)
        return self.draw(y, text, base, marks, self._gutter(row, block, base), width)

    def row_text(self, y: int) -> tuple[str, bool] | None:
        if y >= self.layout_.height:
            return None
        row = self.layout_.row(y)
        return self._content(row, self.layout_.blocks[row.block])[0], row.part > 0

    def _gutter(self, row: Row, block: Block, base: Style) -> list[Segment]:
        band = base + self.overlay(block.stage.lower()) if block.stage else base
        current = block.turn == self.turn
        mark, style = " ", base
        if block.turn in self.evidence_turns and block.kind == "turn":
            mark, style = "★", base + self.overlay("evidence")
        elif (row.block, row.line) in self.quoted:
            mark, style = "▸", base + self.overlay("evidence")
        elif block.failed and row.line <= 0 and row.part == 0:
            mark, style = "✗", base + self.overlay("failed")
        sign = block.signs[row.line] if block.signs and row.line >= 0 else ""
        bar = sign if sign.strip() and block.kind == "diff" else _BARS.get(block.kind, " ")
        bar_style = "failed" if block.failed else _SIGN_STYLES.get(sign, "title")
        return [
            Segment(("█" if current else "▌") if block.stage else " ", band),
            Segment(mark, style),
            Segment(f"{bar} ", base + self.overlay(bar_style)),
        ]

    def _content(self, row: Row, block: Block) -> tuple[str, list[Mark]]:
        """Raw text of a row and the styles laid over it."""
        if block.kind == "turn":
            return self._heading(block)
        if row.line == TITLE:
            return block.title, [(0, LONGEST, self.overlay("failed" if block.failed else "title"))]
        fold_mark = [(0, LONGEST, self.overlay("fold"))]
        if row.line == FOLD:
            hidden = len(block.lines) - HEAD - TAIL
            return f"⋯ {hidden:,} lines folded (z shows them)", fold_mark
        line = block.lines[row.line]
        starts = block.offsets(row.line, self.layout_.width)
        start = starts[row.part]
        if start == LONGEST and len(line) > LONGEST:
            return f"⋯ {len(line) - LONGEST:,} more characters in this line", fold_mark
        end = starts[row.part + 1] if row.part + 1 < len(starts) else len(line)
        marks = [
            (low - start, high - start, style) for low, high, style in self._marks(row, block, line)
        ]
        return line[start:end], marks

    def _marks(self, row: Row, block: Block, line: str) -> list[Mark]:
        """Styles of a whole line: syntax, emphasis, quoted words, search hits."""
        marks: list[Mark] = []
        if block.kind in ("code", "diff") and block.language:
            for low, high, name in self._syntax(row, block):
                marks.append((low, high, self.overlay(f"syntax-{name}")))
        elif block.kind in ("text", "reasoning") and line.startswith("#"):
            marks.append((0, len(line), self.overlay("emphasis")))
        for span in self.quoted.get((row.block, row.line), ()):
            marks.append((span.start, span.end, self.overlay("evidence")))
        if self._needle and self._hits:
            is_current = self._hits[self._hit] == (row.block, row.line)
            style = self.overlay("hit-here" if is_current else "hit")
            marks += [(low, high, style) for low, high in occurrences(line, self._needle)]
        return marks

    def _syntax(self, row: Row, block: Block) -> Spans:
        """The coloured pieces of a line of code. A block is lexed when it is first drawn."""
        lines = self._lexed.get(row.block)
        if lines is None:
            lines = self._lexed[row.block] = highlight(block.lines, block.language)
        return lines[row.line] if row.line < len(lines) else ()

    def _heading(self, block: Block) -> tuple[str, list[Mark]]:
        """A turn's heading: its number and stage, what is remarkable in it, and a rule."""
        text = block.lines[0]
        remarks = []
        if block.failed:
            remarks.append((" · ✗ failed", "failed"))
        if count := self.replaced_in(block.turn):
            plural = "s" if count > 1 else ""
            remarks.append((f" · {count:,} hidden character{plural} shown", "replaced"))
        if block.turn in self.evidence_turns:
            remarks.append((" · ★ evidence", "evidence"))
        marks: list[Mark] = []
        for remark, style in remarks:
            marks.append((len(text), len(text) + len(remark), self.overlay(style)))
            text += remark
        room = self.layout_.width - cell_len(sanitize_line(text)) - 1
        return text + " " + "─" * max(0, room), marks

    def turn_text(self, turn: int) -> str:
        """The sanitised text of a turn with its titles, for an editor or the clipboard."""
        parts = []
        for number in self.layout_.blocks_of_turn(turn):
            block = self.layout_.blocks[number]
            title = f"--- {sanitize_line(block.title)}\n" if block.title else ""
            parts.append(title + sanitize("\n".join(block.lines)))
        return "\n".join(parts) + "\n"
