"""What the page of one run says: its scorecard, and its turns with the verdicts beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..judge.card.view import scorecard_view
from ..judge.card.view_parts import Item, Line, Quote, Section, SectionKind
from ..trajectories.stages import Stage
from ..views.collection import stages_of
from ..views.run_tabs import size
from .page_turns import Citation, Limits, TurnView, turns_of

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..rubrics.model import Rubric
    from ..trajectories.models import Run

LIMITS = (
    Limits(400, 1600, 190_000, 1200),
    Limits(250, 900, 90_000, 400),
    Limits(60, 200, 30_000, 120),
)
"""Tried in order until a page is small enough."""
MAX_FILES = 200
MAX_ITEMS = 40
"""Items of a section that a page lists; a scorecard of ours has fewer."""
MAX_LINES = 60
"""Lines of a section, such as problems of files."""
MAX_QUOTES = 8
"""Quotes of one criterion, and turns of one code, that lead to the transcript."""

_PLACE_PREFIXES: dict[SectionKind, str] = {
    "stage": "c",
    "codes": "e",
    "unproven": "u",
    "plan": "p",
    "contradictions": "x",
    "episodes": "s",
}
"""Of the names that links lead to: `c0` is the first criterion of the scorecard, which the page of
two runs knows too."""


@dataclass(frozen=True)
class PageItem:
    """An item of the scorecard with its place on the page, and where its evidence stands."""

    place: str
    item: Item
    citations: tuple[Citation, ...]

    def details(self, *roles: str) -> list[Line]:
        """The details with one of these roles; of quotes the first few."""
        lines = [line for line in self.item.details if line.role in roles]
        return lines[:MAX_QUOTES] if roles == ("evidence",) else lines

    def anchor(self, turn: int, quote: str = "") -> str:
        """Where on the page a turn, or words of it, are cited by this item; "" if nowhere."""
        cited = [citation for citation in self.citations if citation.turn == turn]
        exact = [citation for citation in cited if citation.quote == quote]
        return (exact or cited)[0].anchor if cited else ""


@dataclass(frozen=True)
class PageSection:
    """A section of the scorecard as the page shows it."""

    view: Section
    items: tuple[PageItem, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.view.lines[:MAX_LINES]


@dataclass(frozen=True)
class Band:
    """Consecutive turns of one stage, as the minimap draws them."""

    stage: Stage | None
    turns: tuple[TurnView, ...]


class Contents:
    """Everything that the template of a run's page asks for."""

    def __init__(self, card: ScoreCard, rubric: Rubric | None, limits: Limits) -> None:
        self.limits = limits
        self.citations: list[Citation] = []
        self._next_number = dict.fromkeys(_PLACE_PREFIXES.values(), 0)
        self.sections = [self._section(view) for view in scorecard_view(card, rubric)]
        fact_sections = (self.section("facts"), self.section("bare_facts"))
        self.fact_ids = frozenset(
            item.place for section in fact_sections if section for item in section.items
        )
        """Facts that stand on the page, so that codes can lead to them."""
        self.turns: list[TurnView] = []
        self.turns_on_page: frozenset[int] = frozenset()
        self.files: list[tuple[str, str]] = []
        """Name and size of the delivered files."""
        self.more_files = 0
        self.run_warnings: tuple[str, ...] = ()
        self.parts: tuple[str, ...] = ()
        self.part_of: str | None = None
        self.note = "The transcript did not come with this scorecard: its turns cannot be shown."
        self._card = card

    def read(self, run: Run) -> None:
        """Add what the run's own files hold."""
        self.note = ""
        self.turns = turns_of(run, stages_of(run, self._card), self.citations, self.limits)
        self.turns_on_page = frozenset(view.number for view in self.turns)
        self.run_warnings = run.warnings
        self.parts, self.part_of = run.parts, run.part_of
        files = run.outputs.files
        for file in files[:MAX_FILES]:
            name = f"{file.case}/{file.name}" if file.case else file.name
            self.files.append((name, size(file.size)))
        self.more_files = len(files) - len(self.files)

    def section(self, kind: SectionKind) -> PageSection | None:
        """The section of a kind; None if the scorecard has nothing for it."""
        return next((section for section in self.sections if section.view.kind == kind), None)

    @property
    def stages(self) -> list[PageSection]:
        return [section for section in self.sections if section.view.kind == "stage"]

    @property
    def bands(self) -> Iterator[Band]:
        """The turns by stage, for the minimap."""
        group: list[TurnView] = []
        for view in self.turns:
            if not view.number:
                continue
            if group and view.stage != group[-1].stage:
                yield Band(group[0].stage, tuple(group))
                group = []
            group.append(view)
        if group:
            yield Band(group[0].stage, tuple(group))

    def _section(self, view: Section) -> PageSection:
        items = tuple(self._item(view, item) for item in view.items[:MAX_ITEMS])
        prefix = _PLACE_PREFIXES.get(view.kind)
        if prefix is not None:
            # Places count what a long section leaves out, as the page of two runs does.
            self._next_number[prefix] += len(view.items) - len(items)
        return PageSection(view, items)

    def _item(self, view: Section, item: Item) -> PageItem:
        if view.kind in ("facts", "bare_facts"):
            citations = tuple(_citations(view, item, item.id))
            self.citations += citations
            return PageItem(item.id, item, citations)
        prefix = _PLACE_PREFIXES[view.kind]
        place = f"{prefix}{self._next_number[prefix]}"
        self._next_number[prefix] += 1
        citations = tuple(_citations(view, item, place))
        self.citations += citations
        return PageItem(place, item, citations)


_CODE_MARKS = {"codes": ("!", "code"), "unproven": ("?", "unknown")}


def _citations(view: Section, item: Item, place: str) -> Iterator[Citation]:
    """The turns, and words in them, beside which the page notes an item."""
    quotes = item.quotes[:MAX_QUOTES]
    if view.kind in _CODE_MARKS:
        mark, style = _CODE_MARKS[view.kind]
        turns = dict.fromkeys(item.target.turns[:MAX_QUOTES] if item.target is not None else ())
        words = {}
        for quote in quotes:
            if quote.evidence.check != "not_found":
                turns[quote.evidence.actual_turn] = None
                words[quote.evidence.actual_turn] = quote.evidence.quote
        for turn in turns:
            yield Citation(turn, words.get(turn, ""), mark, style, item.name, item.summary, place)
    elif view.kind == "bare_facts" and item.target is not None:
        for turn in item.target.turns[:MAX_QUOTES]:
            yield Citation(turn, "", "•", "warn", item.name, item.summary, place)
    elif view.kind in ("stage", "plan") and item.mark is not None:
        name = item.name or "plan"
        for quote in quotes:
            yield Citation(
                quote.evidence.actual_turn,
                _findable(quote),
                item.mark.text,
                item.mark.style,
                name,
                item.summary,
                place,
            )


def _findable(quote: Quote) -> str:
    return quote.evidence.quote if quote.evidence.check != "not_found" else ""
