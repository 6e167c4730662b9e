"""The turns of a run as a page shows them: texts with marked quotes, and what rests on each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ..trajectories.models import Run, Segmentation
from ..trajectories.stages import Stage
from ..trajectories.summary import speaker_name
from ..views.transcript_layout import Block, blocks_of
from ..views.transcript_search import Span, locate
from .marked_text import Mark, disjoint, marked, room_for_each, weight

_FIRST = 2 / 3
"""Share of the turns of a very long run's page that come from its beginning."""
_GIST = 110
"""Characters of a turn's first words beside its number."""


@dataclass(frozen=True)
class Limits:
    """How much of a run a page shows."""

    turns: int
    pieces: int
    """Texts of turns: replies, code, outputs."""
    text: int
    """Bytes of those texts."""
    words: int
    """Characters of a judge's sentence."""


@dataclass
class Citation:
    """A criterion, a code or a promise of the plan that rests on a turn (0: plan and brief)."""

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
    speaker: str = ""
    """Who spoke, where several agents do."""
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
    """The turns of the page, with brief and plan as turn 0 before them.

    Each citation is told where on the page it stands.
    """
    cited = {citation.turn for citation in citations}
    selected = _selected_turns(len(run.turns), cited, limits.turns)
    blocks: dict[int, list[Block]] = defaultdict(list)
    if run.plan.text:
        title = f"plan.md, from the {run.plan.source}"
        blocks[0].append(Block(0, None, "plan", title, run.plan.text.split("\n")))
    views: dict[int, TurnView] = {}
    for block in blocks_of(run, stages):
        if block.turn not in selected:
            continue
        if block.kind == "turn":
            speaker = speaker_name(run.turn(block.turn).speaker or "")
            views[block.turn] = TurnView(block.turn, block.stage, block.failed, "", speaker)
        else:
            blocks[block.turn].append(block)
    if blocks[0]:
        before = TurnView(0, None, False, "Brief and plan" if run.plan.text else "Brief")
        views = {0: before, **views}
    _limit_pieces(views, blocks, limits.pieces)
    marks = _place_citations(views, blocks, citations)
    _add_pieces(views, blocks, marks, limits.text)
    previous = 0
    for number, view in views.items():
        view.skipped = max(0, number - previous - 1)
        previous = number
    return list(views.values())


def _selected_turns(turns: int, cited: set[int], most: int) -> set[int]:
    """Turns on the page: all, or the first ones, cited ones between, and the last ones."""
    if turns <= most:
        return set(range(turns + 1))
    first = int(most * _FIRST)
    others = most - first
    cited_later = sorted(turn for turn in cited if first < turn <= turns - others // 2)
    middle = cited_later[: others // 2]
    last = others - len(middle)
    return {*range(first + 1), *middle, *range(turns - last + 1, turns + 1)}


def _limit_pieces(views: dict[int, TurnView], blocks: dict[int, list[Block]], most: int) -> None:
    """Leave out blocks beyond the limit of the page, and give each turn its gist."""
    for number, view in views.items():
        selected = blocks[number][:most]
        view.left_out = len(blocks[number]) - len(selected)
        most -= len(selected)
        blocks[number] = selected
        view.gist = view.gist or _gist(selected)


def _gist(blocks: Sequence[Block]) -> str:
    """The first words of a turn; reasoning only says how the agent came to them."""
    for block in blocks:
        if block.kind != "reasoning":
            text = " ".join(line[:_GIST] for line in block.lines[:_GIST])
            gist = " ".join(text.split())[:_GIST]
            if gist:
                return gist
    return ""


def _place_citations(
    views: dict[int, TurnView], blocks: dict[int, list[Block]], citations: Sequence[Citation]
) -> dict[int, list[Mark]]:
    """Note each citation beside its turn; the marks of quoted words, by the id of their block."""
    marks: dict[int, list[Mark]] = defaultdict(list)
    for number, citation in enumerate(citations):
        view = views.get(citation.turn)
        if view is None:
            continue
        turn_blocks = blocks[citation.turn]
        spans = []
        if citation.quote:
            spans = locate(citation.quote, turn_blocks, range(len(turn_blocks)))
        citation.found = bool(spans)
        citation.anchor = f"q{number}" if spans else f"t{citation.turn}"
        for block, mark in _marks(spans, turn_blocks, f"q{number}"):
            marks[id(block)].append(mark)
        view.notes.append(citation)
    covered_by: dict[str, str] = {}
    for block_id, overlapping in marks.items():
        marks[block_id], covered = disjoint(overlapping)
        covered_by |= covered
    for citation in citations:
        citation.anchor = covered_by.get(citation.anchor, citation.anchor)
    return marks


def _add_pieces(
    views: dict[int, TurnView],
    blocks: dict[int, list[Block]],
    marks: dict[int, list[Mark]],
    budget: int,
) -> None:
    """Give every turn its texts as HTML, cut so that all together weigh no more than `budget`."""
    texts = {id(block): "\n".join(block.lines) for number in views for block in blocks[number]}
    room = room_for_each([weight(text) for text in texts.values()], budget)
    for number, view in views.items():
        for block in blocks[number]:
            body = marked(texts[id(block)], marks[id(block)], room, block.signs)
            view.pieces.append(Piece(block.kind, block.title, block.failed, body))


def _marks(spans: Sequence[Span], blocks: Sequence[Block], anchor: str) -> list[tuple[Block, Mark]]:
    """Spans of lines as marks of whole texts, one for spans with only white space between.

    The first mark has the anchor itself.
    """
    marks: list[tuple[Block, Mark]] = []
    for span in spans:
        block = blocks[span.block]
        line_start = sum(len(line) + 1 for line in block.lines[: span.line])
        start, end = line_start + span.start, line_start + span.end
        if marks and marks[-1][0] is block:
            previous = marks[-1][1]
            between = "\n".join(block.lines)[previous.end : start]
            if not between.strip():
                marks[-1] = block, previous._replace(end=end)
                continue
        name = f"{anchor}-{len(marks)}" if marks else anchor
        marks.append((block, Mark(start, end, name)))
    return marks
