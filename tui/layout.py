"""Where every row of a transcript comes from: blocks of lines, folds and wrapping, without any widget.

A transcript of 10 MB has some 130,000 lines, so nothing here keeps an object a row: a block holds its lines and one
array of row counts, and a row is found by two bisections. Text stays raw; the widget sanitises the rows it draws.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from ..trajectories.models import Run, Segmentation, Stage

FOLD_OVER = 60
HEAD = 24
TAIL = 8
"""An output longer than FOLD_OVER lines shows its first HEAD and last TAIL lines until it is unfolded."""
LONGEST = 4000
"""Characters of one line that are shown; what is cut is counted at its end."""


def cells(text: str) -> int:
    """Terminal columns of a text: its length when ASCII, else wide characters count two and combining ones none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cuts(text: str, width: int) -> list[int]:
    """Offsets at which a line is cut into rows of at most `width` columns; the first is always 0."""
    if text.isascii():
        return list(range(0, len(text), width)) or [0]
    from rich.cells import cell_len

    starts, used = [0], 0
    for offset, char in enumerate(text):
        size = 1 if char.isascii() else cell_len(char)
        if used + size > width:
            starts.append(offset)
            used = 0
        used += size
    return starts


@dataclass
class Block:
    """A piece of one turn: its text, code, output or a reply. `folded` hides the middle of a long one."""

    turn: int
    stage: Stage | None
    kind: str
    """turn (the heading), text, reasoning, code, output, error, reply."""
    title: str
    lines: list[str]
    language: str | None = None
    failed: bool = False
    folded: bool = False
    ends: array[int] = field(default_factory=lambda: array("L"))
    """Rows up to and including each shown line (cumulative)."""

    @property
    def foldable(self) -> bool:
        return len(self.lines) > FOLD_OVER

    def shown(self) -> int:
        """How many lines are drawn, the fold marker included."""
        return HEAD + TAIL + 1 if self.folded and self.foldable else len(self.lines)

    def line_at(self, position: int) -> int | None:
        """The line drawn at a position, or None for the fold marker."""
        if not (self.folded and self.foldable) or position < HEAD:
            return position
        return None if position == HEAD else len(self.lines) - TAIL + position - HEAD - 1

    def position_of(self, line: int) -> int:
        """The position at which a line is drawn; the fold marker's when it is hidden."""
        if not (self.folded and self.foldable) or line < HEAD:
            return line
        hidden_until = len(self.lines) - TAIL
        return HEAD if line < hidden_until else line - hidden_until + HEAD + 1

    def measure(self, width: int) -> None:
        """Count the rows of every shown line at this width."""
        counts = (self._rows(self.line_at(p), width) for p in range(self.shown()))
        self.ends = array("L", accumulate(counts))

    def _rows(self, line: int | None, width: int) -> int:
        if line is None:
            return 1
        text = self.lines[line]
        if 2 * len(text) <= width:
            return 1
        if len(text) > LONGEST:
            text = text[:LONGEST]
        return max(1, -(-len(text) // width)) if text.isascii() else len(cuts(text, width))

    @property
    def rows(self) -> int:
        return self.ends[-1] if self.ends else 0


@dataclass(frozen=True)
class Row:
    """One screen row: its block, line (None: the fold marker) and which row of the wrapped line it is."""

    block: int
    line: int | None
    part: int


class Layout:
    """All blocks of a run at one width. Rows count from 0."""

    def __init__(self, blocks: list[Block], width: int) -> None:
        self.blocks = blocks
        self.width = max(10, width)
        for block in blocks:
            block.measure(self.width)
        self._starts = [0]
        self._index()

    def _index(self) -> None:
        self._starts = [0, *accumulate(block.rows for block in self.blocks)]

    @property
    def height(self) -> int:
        return self._starts[-1]

    def resize(self, width: int) -> None:
        """Wrap everything to another width."""
        if max(10, width) != self.width:
            self.width = max(10, width)
            for block in self.blocks:
                block.measure(self.width)
            self._index()

    def row(self, y: int) -> Row:
        """What stands at row y; IndexError outside 0..height-1."""
        if not 0 <= y < self.height:
            raise IndexError(f"row {y} of {self.height}")
        number = bisect_right(self._starts, y) - 1
        block = self.blocks[number]
        inside = y - self._starts[number]
        position = bisect_right(block.ends, inside)
        first = block.ends[position - 1] if position else 0
        return Row(number, block.line_at(position), inside - first)

    def find(self, block: int, line: int = 0) -> int:
        """The first row of a line of a block."""
        target = self.blocks[block]
        position = target.position_of(line)
        return self._starts[block] + (target.ends[position - 1] if position else 0)

    def fold(self, block: int, folded: bool) -> None:
        """Fold or unfold one block."""
        target = self.blocks[block]
        if target.foldable and target.folded != folded:
            target.folded = folded
            target.measure(self.width)
            self._index()

    def fold_all(self, folded: bool) -> None:
        """Fold or unfold every long block."""
        for block in self.blocks:
            if block.foldable and block.folded != folded:
                block.folded = folded
                block.measure(self.width)
        self._index()

    def turn_row(self, turn: int) -> int:
        """The first row of a turn (0 when there is no such turn)."""
        low = next((i for i, b in enumerate(self.blocks) if b.turn >= turn), None)
        return 0 if low is None else self._starts[low]

    def search(self, needle: str) -> list[tuple[int, int]]:
        """(block, line) of every line that holds the text, ignoring case, in order."""
        wanted = needle.casefold()
        if not wanted:
            return []
        return [
            (number, line)
            for number, block in enumerate(self.blocks)
            for line, text in enumerate(block.lines)
            if wanted in text.casefold()
        ]


def blocks_of(run: Run, segmentation: Segmentation | None, fold: bool = True) -> Iterator[Block]:
    """The blocks of a run, in reading order: for each turn a heading, its text, and each action with what came back."""
    for turn in run.turns:
        stage = segmentation.turn_stages[turn.index - 1] if segmentation else None
        flag = " · failed" if turn.failed else ""
        speaker = f" · {turn.speaker}" if turn.speaker else ""
        yield Block(
            turn.index,
            stage,
            "turn",
            "",
            [f"Turn {turn.index}{f' · {stage}' if stage else ''}{speaker}{flag}"],
            failed=turn.failed,
        )
        if turn.reasoning:
            yield _block(turn.index, stage, "reasoning", "reasoning", turn.reasoning, fold)
        if turn.text:
            yield _block(turn.index, stage, "text", "", turn.text, fold)
        for action in turn.actions:
            title = action.tool + (f" {action.path}" if action.path else "")
            yield _block(turn.index, stage, "code", title, action.code or "(no code)", fold, action.language)
            seen = action.observation
            if seen is None:
                yield Block(turn.index, stage, "error", "result", ["(never answered)"], failed=True)
                continue
            bad = seen.kind in ("failed", "timeout", "blocked")
            state = "" if seen.exit_code is None else f" exit {seen.exit_code}"
            yield _block(
                turn.index,
                stage,
                "output",
                f"output{state}",
                seen.stdout or ("" if seen.stderr else "(no output)"),
                fold,
                failed=bad,
            )
            if seen.stderr:
                yield _block(turn.index, stage, "error", "stderr", seen.stderr, fold, failed=bad)
        for reply in turn.replies:
            yield _block(turn.index, stage, "reply", "user", reply, fold)


def _block(
    turn: int,
    stage: Stage | None,
    kind: str,
    title: str,
    text: str,
    fold: bool,
    language: str | None = None,
    failed: bool = False,
) -> Block:
    lines = text.split("\n")
    if len(lines) > 1 and lines[-1] == "":
        lines.pop()
    return Block(turn, stage, kind, title, lines, language, failed, folded=fold and len(lines) > FOLD_OVER)
