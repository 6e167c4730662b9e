"""The transcript: a line-API view that draws only the rows on screen, whatever the run's size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from ..sanitize import replaced, sanitize, sanitize_line
from .safe_text import Mark, paint
from .syntax_colours import CLASSES, Spans, highlight
from .transcript_layout import FOLD, HEAD, LONGEST, TAIL, TITLE, Block, Layout, Row
from .transcript_search import Span, locate, occurrences, search

GUTTER = 4
"""Columns left of the text: stage band, evidence or failure mark, kind bar, space."""

_KINDS = ("brief", "turn", "text", "reasoning", "code", "output", "error", "reply")
_BARS = {"code": "┃", "output": "│", "error": "│", "reasoning": "┊", "reply": "◂", "brief": "◂"}
HIDEABLE: tuple[tuple[str, frozenset[str]], ...] = (
    ("everything", frozenset()),
    ("no outputs", frozenset({"output", "error"})),
    ("words only", frozenset({"output", "error", "code"})),
)
"""What `t` goes through: a name for the status line and the kinds that are hidden."""


class TranscriptView(ScrollView, can_focus=True):
    """Scrolls over the turns of a run. Its anchor is (block, line), so folding and resizing do not jump."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"transcript--{kind}" for kind in _KINDS), *(f"transcript--syntax-{name}" for name in CLASSES),
        *(f"transcript--s{number}" for number in range(1, 6)), "transcript--title", "transcript--fold",
        "transcript--hit", "transcript--hit-here", "transcript--evidence", "transcript--replaced", "transcript--failed",
        "transcript--current", "transcript--heading-2", "transcript--emphasis",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_by(1)", "Line down", show=False),
        Binding("k,up", "scroll_by(-1)", "Line up", show=False),
        Binding("space,pagedown", "scroll_by(1, True)", "Page down", show=False),
        Binding("b,pageup", "scroll_by(-1, True)", "Page up", show=False),
        Binding("g,home", "top", "Top", show=False),
        Binding("G,end", "bottom", "Bottom", show=False),
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

        def __init__(self, turn: int) -> None:
            super().__init__()
            self.turn = turn

    class Redrawn(Message):
        """Rows, marks or position changed, so that a minimap must be drawn again."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.show_horizontal_scrollbar = False
        self.layout_: Layout = Layout([], 80)
        self._strips: LRUCache[int, Strip] = LRUCache(2000)
        self._lexed: LRUCache[int, tuple[Spans, ...]] = LRUCache(200)
        self._counts: dict[int, int] = {}
        self._styles: dict[str, Style] = {}
        self._turn = 0
        self._wanted: Row | None = None
        self._needle = ""
        self._hits: list[tuple[int, int]] = []
        self._hit = -1
        self.quoted: dict[tuple[int, int], list[Span]] = {}
        """The highlighted words of a quote, by (block, line)."""
        self.evidence_turns: frozenset[int] = frozenset()
        self._kinds = 0

    # Content.

    def show(self, layout: Layout) -> None:
        """Show these blocks from the top."""
        self.layout_ = layout
        self._counts.clear()
        self._lexed.clear()
        self.quoted, self._hits, self._hit, self._needle, self._kinds = {}, [], -1, "", 0
        self.evidence_turns = frozenset()
        self.layout_.resize(self.text_width)
        self._changed()
        self.scroll_to(0, 0, animate=False)
        self._turn = self.layout_.turn_at(0)
        self.post_message(self.TurnChanged(self._turn))

    @property
    def _columns(self) -> int:
        """Columns of the view without its scroll bar (`size` counts that too)."""
        return self.scrollable_size.width or 80

    @property
    def text_width(self) -> int:
        """Columns for text: what a layout of this view should be made for."""
        return self._columns - GUTTER

    @property
    def top(self) -> int:
        """The row at the top of the view."""
        return int(self.scroll_offset.y)

    @property
    def turn(self) -> int:
        """The turn that the reader is at (0: the brief)."""
        return self._turn

    @property
    def hits(self) -> tuple[int, int]:
        """Which search hit the reader is at (1-based, 0 for none) and how many lines hold the text."""
        return self._hit + 1, len(self._hits)

    @property
    def place(self) -> tuple[int, int] | None:
        """(block, line) of the present search hit."""
        return self._hits[self._hit] if self._hits else None

    def hit_rows(self) -> list[int]:
        """Rows of the lines that search found, at most some hundreds of them."""
        return [self.layout_.find(block, line) for block, line in self._hits[:500]]

    def on_resize(self, event: events.Resize) -> None:
        # A view that was never laid out cannot scroll yet: what was asked for then is done now.
        anchor = self._wanted or self._anchor()
        self._wanted = None
        self.layout_.resize(self.text_width)
        self._changed()
        self._return_to(anchor)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()
        self._strips.clear()

    def _changed(self) -> None:
        self._strips.clear()
        beyond = max(0, self.size.height - 3)
        self.virtual_size = Size(self._columns, self.layout_.height + beyond)
        self.refresh()
        self.post_message(self.Redrawn())

    def _anchor(self) -> Row | None:
        return self.layout_.row(self.top) if self.top < self.layout_.height else None

    def _return_to(self, anchor: Row | None) -> None:
        if anchor is not None:
            self._go(self.layout_.find(anchor.block, anchor.line))

    def _go(self, y: int, context: int = 0) -> None:
        y = max(0, y - context)
        if not self.size.height:
            self._wanted = self.layout_.row(y) if y < self.layout_.height else None
            return
        self.scroll_to(y=y, animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        turn = self.layout_.turn_at(round(new_value))
        self.post_message(self.Redrawn())
        if turn != self._turn:
            self._turn = turn
            self._strips.clear()
            self.post_message(self.TurnChanged(turn))

    # Moving.

    def action_scroll_by(self, steps: int, page: bool = False) -> None:
        size = max(1, self.size.height - 2) if page else 1
        self._go(min(self.top + steps * size, max(0, self.layout_.height - 1)))

    def action_top(self) -> None:
        self._go(0)

    def action_bottom(self) -> None:
        self._go(max(0, self.layout_.height - self.size.height))

    def action_turn(self, step: int) -> None:
        turns = self.layout_.turns
        if not turns:
            return
        at = turns.index(self._turn) if self._turn in turns else 0
        if step < 0 and self.top > self.layout_.turn_row(self._turn):
            step += 1  # The first press goes to the beginning of the turn that one is in.
        self.go_turn(turns[min(max(0, at + step), len(turns) - 1)])

    def action_edge_turn(self, last: bool) -> None:
        turns = [turn for turn in self.layout_.turns if turn > 0]
        if turns:
            self.go_turn(turns[-1 if last else 0])

    def go_turn(self, turn: int) -> None:
        """Bring the heading of a turn to the top."""
        self._go(self.layout_.turn_row(turn))

    def go_share(self, share: float) -> None:
        """Go to a share of the rows, in [0, 1]."""
        self._go(int(share * self.layout_.height))

    def go_line(self, block: int, line: int, offset: int = 0) -> None:
        """Bring a line into view, unfolding what hides it."""
        self.layout_.reveal(block, line)
        self._changed()
        self._go(self.layout_.find(block, line, offset), context=min(5, self.size.height // 4))

    # Folds.

    def _in_view(self) -> range:
        low = min(self.top, max(0, self.layout_.height - 1))
        high = min(self.top + self.size.height, self.layout_.height) - 1
        if high < low:
            return range(0)
        return range(self.layout_.row(low).block, self.layout_.row(high).block + 1)

    def action_toggle_fold(self) -> None:
        number = next((n for n in self._in_view() if self.layout_.blocks[n].foldable), None)
        if number is not None:
            self.toggle(number)

    def toggle(self, block: int) -> None:
        """Fold or unfold one block, keeping the place."""
        anchor = self._anchor()
        self.layout_.fold(block, not self.layout_.blocks[block].folded)
        self._changed()
        self._return_to(anchor)

    def action_toggle_all(self) -> None:
        anchor = self._anchor()
        self.layout_.fold_all(not any(block.closed for block in self.layout_.blocks))
        self._changed()
        self._return_to(anchor)

    def action_cycle_kinds(self) -> None:
        self._kinds = (self._kinds + 1) % len(HIDEABLE)
        turn = self._turn
        name, kinds = HIDEABLE[self._kinds]
        self.layout_.hide(kinds)
        self._changed()
        self.go_turn(turn)
        self.notify(f"Shown: {name}", timeout=2, markup=False)

    def on_click(self, event: events.Click) -> None:
        y = self.top + event.y
        if y < self.layout_.height:
            row = self.layout_.row(y)
            if row.line == FOLD or (row.line == TITLE and self.layout_.blocks[row.block].foldable):
                self.toggle(row.block)

    # Search, evidence.

    def search(self, needle: str) -> int:
        """Look for text from the current place on; returns the number of lines that hold it."""
        self._needle = needle
        self._hits = search(self.layout_.blocks, needle)
        self._hit = -1
        if self._hits:
            here = self._anchor()
            place = (here.block, max(here.line, 0)) if here else (0, 0)
            self._hit = next((i for i, hit in enumerate(self._hits) if hit >= place), 0)
            self._to_hit()
        else:
            self._changed()
        return len(self._hits)

    def next_hit(self, step: int) -> None:
        """The next (1) or previous (-1) hit, round the end."""
        if self._hits:
            self._hit = (self._hit + step) % len(self._hits)
            self._to_hit()

    def _to_hit(self) -> None:
        block, line = self._hits[self._hit]
        found = occurrences(self.layout_.blocks[block].lines[line], self._needle)
        self.go_line(block, line, found[0][0] if found else 0)

    def mark_evidence(self, turns: Sequence[int]) -> None:
        """Mark these turns in the gutter; quotes shown before are forgotten."""
        self.evidence_turns = frozenset(turns)
        self.quoted = {}
        self._changed()

    def show_quote(self, turn: int, quote: str) -> bool:
        """Go to a turn and highlight the words of a quote in it; False when they do not stand there."""
        spans = locate(quote, self.layout_.blocks, self.layout_.blocks_of_turn(turn)) if quote else []
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

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self.get_component_rich_style(
                f"transcript--{name}", partial=name not in _KINDS
            )
        return style

    def replaced_in(self, turn: int) -> int:
        """How many characters of a turn the sanitiser replaced."""
        if turn not in self._counts:
            blocks = (self.layout_.blocks[number] for number in self.layout_.blocks_of_turn(turn))
            self._counts[turn] = sum(replaced("\n".join(block.lines)) for block in blocks)
        return self._counts[turn]

    def render_line(self, y: int) -> Strip:
        row_y, width = self.top + y, self._columns
        if row_y >= self.layout_.height:
            return Strip.blank(width, self.rich_style)
        selection = self.text_selection
        strip = self._strips.get(row_y) if selection is None else None
        if strip is None:
            strip = self._draw(row_y, width, selection)
            if selection is None:
                self._strips[row_y] = strip
        return strip

    def _draw(self, y: int, width: int, selection: Selection | None) -> Strip:
        row = self.layout_.row(y)
        block = self.layout_.blocks[row.block]
        base = self._style(block.kind)
        text, marks = self._content(row, block)
        segments = paint(text, base, marks, self._style("replaced"))
        if selection is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            style = self.screen.get_component_rich_style("screen--selection")
            marks = [*marks, (start, len(text) if end == -1 else end, style)]
            segments = paint(text, base, marks, self._style("replaced"))
        body = Strip(segments).adjust_cell_length(max(0, width - GUTTER), base).apply_offsets(0, y)
        return Strip.join([Strip(self._gutter(row, block, base), GUTTER), body])

    def _gutter(self, row: Row, block: Block, base: Style) -> list[Segment]:
        band = base + self._style(block.stage.lower()) if block.stage else base
        current = block.turn == self._turn
        mark, style = " ", base
        if block.turn in self.evidence_turns and block.kind == "turn":
            mark, style = "★", base + self._style("evidence")
        elif (row.block, row.line) in self.quoted:
            mark, style = "▸", base + self._style("evidence")
        elif block.failed and row.line <= 0 and row.part == 0:
            mark, style = "✗", base + self._style("failed")
        bar = _BARS.get(block.kind, " ")
        return [
            Segment(("█" if current else "▌") if block.stage else " ", band),
            Segment(mark, style),
            Segment(f"{bar} ", base + (self._style("failed") if block.failed else self._style("title"))),
        ]

    def _content(self, row: Row, block: Block) -> tuple[str, list[Mark]]:
        """Raw text of a row and the styles laid over it."""
        if block.kind == "turn":
            return self._heading(block)
        if row.line == TITLE:
            return block.title, [(0, LONGEST, self._style("failed" if block.failed else "title"))]
        if row.line == FOLD:
            hidden = len(block.lines) - HEAD - TAIL
            return f"⋯ {hidden:,} lines folded (z shows them)", [(0, LONGEST, self._style("fold"))]
        line = block.lines[row.line]
        starts = block.offsets(row.line, self.layout_.width)
        start = starts[row.part]
        if start == LONGEST and len(line) > LONGEST:
            return f"⋯ {len(line) - LONGEST:,} more characters in this line", [(0, LONGEST, self._style("fold"))]
        end = starts[row.part + 1] if row.part + 1 < len(starts) else len(line)
        marks = [(low - start, high - start, style) for low, high, style in self._marks(row, block, line)]
        return line[start:end], marks

    def _marks(self, row: Row, block: Block, line: str) -> list[Mark]:
        marks: list[Mark] = []
        if block.kind == "code" and block.language:
            lexed = self._lexed.get(row.block)
            if lexed is None:
                lexed = self._lexed[row.block] = highlight(block.lines, block.language)
            if row.line < len(lexed):
                marks += [(low, high, self._style(f"syntax-{name}")) for low, high, name in lexed[row.line]]
        elif block.kind in ("text", "reasoning") and line.startswith("#"):
            marks.append((0, len(line), self._style("emphasis")))
        for span in self.quoted.get((row.block, row.line), ()):
            marks.append((span.start, span.end, self._style("evidence")))
        if self._needle and self._hits:
            here = self._hits[self._hit] == (row.block, row.line)
            style = self._style("hit-here" if here else "hit")
            marks += [(low, high, style) for low, high in occurrences(line, self._needle)]
        return marks

    def _heading(self, block: Block) -> tuple[str, list[Mark]]:
        text = block.lines[0]
        bits: list[tuple[str, str]] = []
        if block.failed:
            bits.append((" · ✗ failed", "failed"))
        count = self.replaced_in(block.turn)
        if count:
            bits.append((f" · {count:,} hidden character{'s' if count > 1 else ''} shown", "replaced"))
        if block.turn in self.evidence_turns:
            bits.append((" · ★ evidence", "evidence"))
        marks: list[Mark] = []
        for bit, style in bits:
            marks.append((len(text), len(text) + len(bit), self._style(style)))
            text += bit
        room = self.layout_.width - cell_len(sanitize_line(text)) - 1
        return text + " " + "─" * max(0, room), marks

    # Selecting and copying.

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        first = selection.start.y if selection.start else 0
        last = selection.end.y if selection.end else self.layout_.height - 1
        pieces: list[str] = []
        for y in range(max(0, first), min(last, self.layout_.height - 1) + 1):
            span = selection.get_span(y)
            if span is None:
                continue
            row = self.layout_.row(y)
            text = sanitize_line(self._content(row, self.layout_.blocks[row.block])[0])
            start, end = span
            pieces.append(("" if not pieces or row.part else "\n") + text[start : None if end == -1 else end])
        return "".join(pieces), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def turn_text(self, turn: int) -> str:
        """The sanitised text of a turn with its titles, for an editor, a pager or the clipboard."""
        parts = []
        for number in self.layout_.blocks_of_turn(turn):
            block = self.layout_.blocks[number]
            title = f"--- {sanitize_line(block.title)}\n" if block.title else ""
            parts.append(title + sanitize("\n".join(block.lines)))
        return "\n".join(parts) + "\n"
