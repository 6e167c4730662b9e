"""Where every row of a transcript comes from: blocks of lines, folds and wrapping.

A transcript of 10 MB has some 130,000 lines, so nothing here keeps an object a row: a block holds
its lines and one array of row counts, and a row is found by two bisections. Text stays raw; the
widget sanitises the rows it draws.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from ..trajectories.stages import Stage
from ..trajectories.summary import speaker_name
from ..trajectories.turns.tool_calls import FileEdit, file_edits, message_of
from .file_changes import signed_lines
from .wrapping import cuts

if TYPE_CHECKING:
    from ..trajectories.models import Action, Observation, Run, Segmentation

FOLD_OVER = 60
HEAD = 24
TAIL = 8
"""An output of over FOLD_OVER lines shows its first HEAD and last TAIL lines until unfolded."""
LONGEST = 4000
"""Characters of one line that are shown; what is cut is counted on a row of its own."""
NARROWEST = 10

TITLE = -1
FOLD = -2
"""`Row.line` of a block's title and of its fold marker."""

PROSE = frozenset({"text", "reasoning", "reply", "brief"})
"""Kinds of blocks that wrap between words. Code and output wrap at the last column, as in a
terminal."""


@dataclass(slots=True)
class Block:
    """A piece of one turn. `folded` hides the middle of a long one, `hidden` all of it."""

    turn: int
    """1-based; 0 is the brief."""
    stage: Stage | None
    kind: str
    """brief, turn (the heading), text, reasoning, code, diff, patch, output, error, reply."""
    title: str
    """Shown on a row of its own above the lines; "" for none."""
    lines: list[str]
    language: str | None = None
    failed: bool = False
    signs: str = ""
    """Of a diff or a patch: +, - or a space for each line. The lines of a patch hold theirs."""
    folded: bool = False
    hidden: bool = False
    ends: array[int] = field(default_factory=lambda: array("L"))
    """Rows up to and including each drawn position (cumulative)."""

    @property
    def foldable(self) -> bool:
        return len(self.lines) > FOLD_OVER

    @property
    def closed(self) -> bool:
        """Whether some of its lines are hidden by a fold now."""
        return self.folded and self.foldable

    @property
    def lead(self) -> int:
        """Positions before the first line: 1 for a title."""
        return 1 if self.title else 0

    def positions(self) -> int:
        """How many positions are drawn: title, lines, fold marker."""
        if self.hidden:
            return 0
        return self.lead + (HEAD + TAIL + 1 if self.closed else len(self.lines))

    def line_at(self, position: int) -> int:
        """The line drawn at a position, or TITLE or FOLD."""
        position -= self.lead
        if position < 0:
            return TITLE
        if not self.closed or position < HEAD:
            return position
        return FOLD if position == HEAD else len(self.lines) - TAIL + position - HEAD - 1

    def position_of(self, line: int) -> int:
        """The position at which a line is drawn; the fold marker's if the fold hides it."""
        if line == TITLE:
            return 0
        if line == FOLD:
            return self.lead + HEAD
        hidden_until = len(self.lines) - TAIL
        if not self.closed or line < HEAD:
            return self.lead + line
        return self.lead + (HEAD if line < hidden_until else line - hidden_until + HEAD + 1)

    def offsets(self, line: int, width: int) -> list[int]:
        """Where the rows of a line begin in its text.

        A line over LONGEST has one more row, which says how much is cut.
        """
        if line < 0:
            return [0]
        text = self.lines[line]
        if len(text) <= LONGEST:
            return cuts(text, width, self.kind in PROSE)
        return [*cuts(text[:LONGEST], width, self.kind in PROSE), LONGEST]

    def measure(self, width: int) -> None:
        """Count the rows of every drawn position at this width."""
        words = self.kind in PROSE
        counts = array("L")
        for position in range(self.positions()):
            line = self.line_at(position)
            text = self.lines[line] if line >= 0 else ""
            if 2 * len(text) <= width:
                counts.append(1)
            elif not words and len(text) <= LONGEST and text.isascii():
                counts.append(-(-len(text) // width))
            else:
                counts.append(len(self.offsets(line, width)))
        self.ends = array("L", accumulate(counts))

    @property
    def rows(self) -> int:
        return self.ends[-1] if self.ends else 0


@dataclass(frozen=True, slots=True)
class Row:
    """One screen row: its block, its line (or TITLE, FOLD), and its place in the wrapped line."""

    block: int
    line: int
    part: int


class Layout:
    """All blocks of a run at one width. Rows count from 0; blocks come in order of their turns."""

    def __init__(self, blocks: Iterable[Block], width: int) -> None:
        self.blocks = list(blocks)
        self.width = max(NARROWEST, width)
        self._turns = [block.turn for block in self.blocks]
        for block in self.blocks:
            block.measure(self.width)
        self._starts = [0]
        self._index()

    def _index(self) -> None:
        self._starts = [0, *accumulate(block.rows for block in self.blocks)]

    @property
    def height(self) -> int:
        return self._starts[-1]

    @property
    def turns(self) -> tuple[int, ...]:
        """Turns that have a block, in order, the brief (0) included."""
        return tuple(dict.fromkeys(self._turns))

    def resize(self, width: int) -> None:
        """Wrap everything to another width."""
        if max(NARROWEST, width) != self.width:
            self.width = max(NARROWEST, width)
            for block in self.blocks:
                block.measure(self.width)
            self._index()

    def row(self, y: int) -> Row:
        """The block and line at row y. IndexError outside 0..height-1."""
        if not 0 <= y < self.height:
            raise IndexError(f"row {y} of {self.height}")
        number = bisect_right(self._starts, y) - 1
        block = self.blocks[number]
        inside = y - self._starts[number]
        position = bisect_right(block.ends, inside)
        first = block.ends[position - 1] if position else 0
        return Row(number, block.line_at(position), inside - first)

    def find(self, block: int, line: int = TITLE, offset: int = 0) -> int:
        """The row of a line of a block, of the part of it that holds the character at `offset`.

        A folded line is found at its fold marker, a hidden block where it would begin.
        """
        target = self.blocks[block]
        if target.hidden or (line == TITLE and not target.title):
            return self._starts[block]
        position = target.position_of(line)
        row = self._starts[block] + (target.ends[position - 1] if position else 0)
        if offset and target.line_at(position) == line:
            row += bisect_right(target.offsets(line, self.width), offset) - 1
        return row

    def fold(self, blocks: Iterable[int], folded: bool) -> None:
        """Fold or unfold those of the blocks that are long."""
        for number in blocks:
            block = self.blocks[number]
            if block.foldable and block.folded != folded:
                block.folded = folded
                block.measure(self.width)
        self._index()

    def hide(self, kinds: frozenset[str]) -> None:
        """Hide blocks of these kinds and show all others."""
        for block in self.blocks:
            hidden = block.kind in kinds
            if block.hidden != hidden:
                block.hidden = hidden
                block.measure(self.width)
        self._index()

    def reveal(self, block: int, line: int) -> None:
        """Show a block, unfolded when the line is behind its fold."""
        target = self.blocks[block]
        inside = target.closed and HEAD <= line < len(target.lines) - TAIL
        if target.hidden or inside:
            target.hidden, target.folded = False, target.folded and not inside
            target.measure(self.width)
            self._index()

    def block_of_turn(self, turn: int) -> int:
        """The first block of a turn, or of the next turn with one; the last block past the end."""
        return min(bisect_left(self._turns, turn), max(0, len(self.blocks) - 1))

    def turn_row(self, turn: int) -> int:
        """The first row of a turn."""
        return self._starts[self.block_of_turn(turn)] if self.blocks else 0

    def turn_at(self, y: int) -> int:
        """The turn at row y; the nearest one outside."""
        if not self.height:
            return 0
        return self.blocks[self.row(min(max(0, y), self.height - 1)).block].turn

    def blocks_of_turn(self, turn: int) -> range:
        """Numbers of the blocks of a turn."""
        return range(bisect_left(self._turns, turn), bisect_right(self._turns, turn))


def blocks_of(run: Run, segmentation: Segmentation | None = None) -> Iterator[Block]:
    """The blocks of a run in reading order.

    First the brief, then for each turn a heading, its text, its actions with their observations,
    and what the user said.
    """
    stages = segmentation.turn_stages if segmentation else ()
    if run.brief:
        yield _block(0, None, "brief", "Brief", run.brief)
    for turn in run.turns:
        stage = stages[turn.index - 1] if turn.index <= len(stages) else None
        speaker = f" · {speaker_name(turn.speaker)}" if turn.speaker else ""
        heading = f"Turn {turn.index}{f' · {stage}' if stage else ''}{speaker}"
        yield Block(turn.index, stage, "turn", "", [heading], failed=turn.failed)
        if turn.reasoning:
            yield _block(turn.index, stage, "reasoning", "reasoning", turn.reasoning)
        if turn.text:
            yield _block(turn.index, stage, "text", "", turn.text)
        for action in turn.actions:
            yield from _action(turn.index, stage, action)
        for reply in turn.replies:
            yield _block(turn.index, stage, "reply", "user", reply)


def _action(turn: int, stage: Stage | None, action: Action) -> Iterator[Block]:
    edits = file_edits(action)
    message = None if edits else message_of(action)
    name = " ".join(part for part in (action.tool, action.language, action.path) if part)
    if edits:
        for edit in edits:
            yield _change(turn, stage, action, edit)
        displayed = {key for edit in edits for key in edit.used}
    elif message is not None:
        key, text = message
        yield _block(turn, stage, "text", action.tool, text)
        displayed = {key}
    else:
        language = action.language or _language(action.path)
        yield _block(turn, stage, "code", name, action.code, language)
        displayed = set()
    arguments = _other_arguments(action, displayed)
    if arguments:
        yield _block(turn, stage, "code", "arguments", arguments, "json")
    if action.observation is not None:
        yield from _answer(turn, stage, action, action.observation)
    elif message is None:
        # Nobody answers a closing message.
        is_open = action.kind != "submit"
        yield Block(turn, stage, "error", "never answered", [], failed=is_open)


def _change(turn: int, stage: Stage | None, action: Action, edit: FileEdit) -> Block:
    """A change of a file: its lines with their signs."""
    lines, signs = signed_lines(edit)
    title = f"{action.tool} {edit.path}" if edit.path else action.tool
    kind = "patch" if edit.is_patch else "diff"
    language = None if edit.is_patch else _language(edit.path)
    is_long = len(lines) > FOLD_OVER
    return Block(turn, stage, kind, title, lines, language, signs=signs, folded=is_long)


def _answer(
    turn: int, stage: Stage | None, action: Action, observation: Observation
) -> Iterator[Block]:
    """What came back for a call."""
    failed = observation.failed
    state: str = observation.kind
    if observation.exit_code is not None and state not in ("timeout", "blocked", "cancelled"):
        state = f"exit {observation.exit_code}"
    if action.exec_time_s is not None:
        state += f" · {action.exec_time_s:.1f} s"
    if observation.stdout or not observation.stderr:
        title = f"output · {state}" if observation.stdout else f"output · {state} · empty"
        yield _block(turn, stage, "output", title, observation.stdout, failed=failed)
    if observation.stderr:
        title = "stderr" if observation.stdout else f"stderr · {state}"
        yield _block(turn, stage, "error", title, observation.stderr, failed=failed)


def _other_arguments(action: Action, displayed: Set[str]) -> str:
    """Arguments that neither the code nor the title shows, as JSON; "" if there are none.

    `displayed`: names of those that are shown. Nothing that the agent wrote stays unseen.
    """
    texts = (action.code, action.language, action.path)
    arguments = {
        name: value
        for name, value in (action.arguments or {}).items()
        if name not in displayed and value not in texts
    }
    if not arguments:
        return ""
    try:
        return json.dumps(arguments, indent=2, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return f"{len(arguments)} arguments that are nested too deep to show"


def _block(
    turn: int,
    stage: Stage | None,
    kind: str,
    title: str,
    text: str,
    language: str | None = None,
    failed: bool = False,
) -> Block:
    lines = text.removesuffix("\n").split("\n") if text else []
    return Block(turn, stage, kind, title, lines, language, failed, folded=len(lines) > FOLD_OVER)


_SUFFIXES = {
    "py": "python",
    "sh": "bash",
    "json": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "md": "markdown",
    "toml": "toml",
}


def _language(path: str | None) -> str | None:
    if not path or "." not in path:
        return None
    return _SUFFIXES.get(path.rsplit(".", 1)[-1].lower())
