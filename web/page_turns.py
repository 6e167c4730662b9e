"""The turns of a run as a page shows them: pieces of text with quotes marked, and beside each turn
what rests on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from markupsafe import Markup

from ..trajectories.models import Run, Segmentation
from ..trajectories.stages import Stage
from ..views.transcript_layout import Block, blocks_of
from ..views.transcript_search import Span, locate
from .marked_text import Mark, apart, marked, room_for_each, weight

_FIRST = 2 / 3
"""Of the turns that are shown of a very long run, the part that comes from its beginning."""
_GIST = 110
"""Characters of a turn's first words beside its number."""


@dataclass(frozen=True)
class Limits:
    """How much of a run a page shows: turns, pieces of turns, bytes of their text, characters of a
    judge's sentence."""

    turns: int
    pieces: int
    text: int
    words: int


@dataclass
class Citation:
    """What rests on a turn (0: plan and brief): a criterion, a code or a promise of the plan, with
    the words quoted there."""

    turn: int
    quote: str
    mark: str
    style: str
    name: str
    says: str
    back: str
    """The name of its place in the scorecard."""
    anchor: str = ""
    """Where it stands: the quoted words, else the turn; "" where that turn is not on the page."""
    found: bool = False
    """The quoted words are marked in the turn."""


@dataclass(frozen=True)
class Piece:
    """A titled text of a turn."""

    kind: str
    title: str
    failed: bool
    body: Markup


@dataclass
class TurnView:
    """A turn of the page; `skipped` turns before it are left out."""

    number: int
    stage: Stage | None
    failed: bool
    gist: str
    pieces: list[Piece] = field(default_factory=list)
    left_out: int = 0
    """Pieces beyond the page's limit."""
    notes: list[Citation] = field(default_factory=list)
    skipped: int = 0

    @property
    def chips(self) -> list[Citation]:
        """One note a name, the first six."""
        return list({note.name: note for note in reversed(self.notes)}.values())[::-1][:6]

    @property
    def by_verdict(self) -> list[list[Citation]]:
        """The notes, those of one verdict together."""
        groups: dict[str, list[Citation]] = defaultdict(list)
        for note in self.notes:
            groups[note.back].append(note)
        return list(groups.values())


def turns_of(
    run: Run, stages: Segmentation, citations: Sequence[Citation], limits: Limits
) -> list[TurnView]:
    """The turns to show, plan and brief first as turn 0; tells each citation where it stands."""
    shown = _shown(len(run.turns), {citation.turn for citation in citations}, limits.turns)
    blocks: dict[int, list[Block]] = defaultdict(list)
    if run.plan.text:
        blocks[0].append(
            Block(
                0, None, "plan", f"plan.md, from the {run.plan.source}", run.plan.text.split("\n")
            )
        )
    views: dict[int, TurnView] = {}
    for block in blocks_of(run, stages):
        if block.turn not in shown:
            continue
        if block.kind == "turn":
            views[block.turn] = TurnView(block.turn, block.stage, block.failed, "")
        else:
            blocks[block.turn].append(block)
    if blocks[0]:
        views = {
            0: TurnView(0, None, False, "Brief and plan" if run.plan.text else "Brief"),
            **views,
        }
    _fill(views, blocks, citations, limits)
    before = 0
    for number, view in views.items():
        view.skipped = max(0, number - before - 1)
        before = number
    return list(views.values())


def _shown(turns: int, cited: set[int], most: int) -> set[int]:
    """Turns on the page: all, or the first ones, those that something rests on, and the last ones."""
    if turns <= most:
        return set(range(turns + 1))
    first = int(most * _FIRST)
    between = sorted(n for n in cited if first < n <= turns - (most - first) // 2)
    middle = between[: (most - first) // 2]
    return {*range(first + 1), *middle, *range(turns - (most - first - len(middle)) + 1, turns + 1)}


def _fill(
    views: dict[int, TurnView],
    blocks: dict[int, list[Block]],
    citations: Sequence[Citation],
    limits: Limits,
) -> None:
    """Puts pieces and notes into the views."""
    left = limits.pieces
    for number, view in views.items():
        kept = blocks[number][:left]
        view.left_out, left = len(blocks[number]) - len(kept), left - len(kept)
        blocks[number] = kept
        first = (
            " ".join(line[:_GIST] for line in b.lines[:_GIST])
            for b in kept
            if b.kind != "reasoning"
        )
        view.gist = view.gist or next(
            (gist for words in first if (gist := " ".join(words.split())[:_GIST])), ""
        )
    marks: dict[int, list[Mark]] = defaultdict(list)
    for n, citation in enumerate(citations):
        cited = views.get(citation.turn)
        if cited is None:
            continue
        own = blocks[citation.turn]
        spans = locate(citation.quote, own, range(len(own))) if citation.quote else []
        citation.found, citation.anchor = bool(spans), f"q{n}" if spans else f"t{citation.turn}"
        for block, mark in _marks(spans, own, f"q{n}"):
            marks[id(block)].append(mark)
        cited.notes.append(citation)
    covered: dict[str, str] = {}
    for key, some in marks.items():
        marks[key], hidden = apart(some)
        covered |= hidden
    for citation in citations:
        citation.anchor = covered.get(citation.anchor, citation.anchor)
    texts = {id(block): "\n".join(block.lines) for number in views for block in blocks[number]}
    room = room_for_each([weight(text) for text in texts.values()], limits.text)
    for number, view in views.items():
        for block in blocks[number]:
            body = marked(texts[id(block)], marks[id(block)], room)
            view.pieces.append(Piece(block.kind, block.title, block.failed, body))


def _marks(spans: Sequence[Span], blocks: Sequence[Block], anchor: str) -> list[tuple[Block, Mark]]:
    """Spans of lines as marks of whole texts, one for lines that follow each other; the first one
    bears the anchor."""
    out: list[tuple[Block, Mark]] = []
    for span in spans:
        block = blocks[span.block]
        begin = [0, *accumulate(len(line) + 1 for line in block.lines[: span.line])][-1]
        mark = Mark(
            begin + span.start, begin + span.end, anchor if not out else f"{anchor}-{len(out)}"
        )
        if (
            out
            and out[-1][0] is block
            and not "\n".join(block.lines)[out[-1][1].end : mark.start].strip()
        ):
            out[-1] = block, out[-1][1]._replace(end=mark.end)
        else:
            out.append((block, mark))
    return out
