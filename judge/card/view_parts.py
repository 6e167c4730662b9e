"""The parts that a shown scorecard is made of, and how values are written in them.

One notation for the terminal, the browser, the pages of a site and a notebook:

    ✓ ✗ ½ ◐      a criterion is met, not met, half met, partly met otherwise
    + – ?        credited by the tier, does not apply, unscored
    ~            before a value or mark: presumed, or resting on presumed criteria
    0.42–0.71    bounds: the worst and best case over what is presumed or unscored
    –            in place of a score: unknown

Texts come from transcripts and are not sanitised here: whatever draws them does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ...rounding import fixed

if TYPE_CHECKING:
    from ...trajectories.record.quotes import Evidence

UNKNOWN = "–"
"""Stands in place of a score that is not known."""
LONGEST_QUOTE = 240
"""Characters of a quote that are shown."""

MARK_MEANINGS = {
    "✓": "met",
    "✗": "not met",
    "½": "half met",
    "◐": "partly met",
    "+": "credited by the tier",
    "–": "does not apply",
    "?": "unscored",
    "~": "presumed",
}


# How values are written.


def score_text(score: float | None, presumed: int = 0, digits: int = 2) -> str:
    """A score in figures, ~ before it where it rests on presumed criteria."""
    if score is None:
        return UNKNOWN
    return f"{'~' if presumed else ''}{fixed(score, digits)}"


def value_text(value: float) -> str:
    """A value on a criterion's scale: 0, ½, 1, or its figures."""
    return "½" if value == 0.5 else f"{value:g}"


def outcome_text(value: bool | float | str | None, digits: int | None = None) -> str:
    """A value of an outcome in words; a number with so many decimals, else those that it has."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if digits is None else fixed(value, digits)


def grade(score: float | None) -> str:
    """The style of a score in [0, 1]: good from .8, warn from .4, bad below, unknown for None."""
    if score is None:
        return "unknown"
    if score >= 0.8:
        return "good"
    return "warn" if score >= 0.4 else "bad"


def bar(score: float | None, width: int = 8) -> str:
    """A score in [0, 1] as a bar of eighths of a cell, so many cells wide; dots where unknown."""
    if score is None:
        return "·" * width
    full, eighths = divmod(round(score * width * 8), 8)
    partial = " ▏▎▍▌▋▊▉"[eighths] if eighths else ""
    return ("█" * full + partial).ljust(width)


PLAN_LOCATION = "plan or brief"


def _is_plan(turn: int) -> bool:
    # The module loads pydantic, which the first screen of the browser does without.
    from ...trajectories.record.quotes import PLAN_TURN

    return turn == PLAN_TURN


def _location(turn: int) -> str:
    return PLAN_LOCATION if _is_plan(turn) else f"turn {turn}"


def turn_ranges(turns: Sequence[int]) -> str:
    """1-3, 5 for [1, 2, 3, 5]; 0 is the plan or the brief."""
    ranges: list[list[int]] = []
    for turn in sorted(set(turns)):
        previous = ranges[-1][-1] if ranges else None
        if previous is not None and turn == previous + 1 and not _is_plan(previous):
            ranges[-1][-1] = turn
        else:
            ranges.append([turn, turn])
    words = []
    for first, last in ranges:
        if _is_plan(last):
            words.append(PLAN_LOCATION)
        else:
            words.append(str(first) if first == last else f"{first}-{last}")
    return ", ".join(words)


# Parts of lines. All have `text` and `style`; `kind` tells templates what a part is.


@dataclass(frozen=True, slots=True)
class Text:
    """Words, with the name of their style ("" for plain)."""

    text: str
    style: str = ""
    kind: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class Name:
    """The id of a criterion, code or fact."""

    text: str
    style: str = "id"
    kind: ClassVar[str] = "name"


@dataclass(frozen=True, slots=True)
class Mark:
    """One sign that says how an item turned out (`MARK_MEANINGS`)."""

    text: str
    style: str
    kind: ClassVar[str] = "mark"


@dataclass(frozen=True, slots=True)
class Value:
    """A score as text; `score` in [0, 1] decides the colour and the bar, None where unknown."""

    text: str
    score: float | None
    kind: ClassVar[str] = "value"

    @property
    def style(self) -> str:
        return grade(self.score)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The worst and best case of a score."""

    low: float
    high: float
    digits: int = 2
    style: ClassVar[str] = "dim"
    kind: ClassVar[str] = "bounds"

    @property
    def text(self) -> str:
        return f"{fixed(self.low, self.digits)}–{fixed(self.high, self.digits)}"


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns that something rests on; 0 is the plan or the brief."""

    numbers: tuple[int, ...]
    style: ClassVar[str] = "dim"
    kind: ClassVar[str] = "turns"

    @property
    def text(self) -> str:
        if not self.numbers:
            return "no single turn"
        if len(self.numbers) == 1:
            return _location(self.numbers[0])
        return f"turns {turn_ranges(self.numbers)}"


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of the run that something rests on, and whether they stand in the cited turn."""

    evidence: Evidence
    kind: ClassVar[str] = "quote"

    @property
    def location(self) -> str:
        return _location(self.evidence.turn)

    @property
    def doubt(self) -> str:
        """Why the words are not to be looked for in the cited turn; "" where they stand there."""
        if self.evidence.check == "moved":
            return f"found in {_location(self.evidence.actual_turn)}"
        return "not found" if self.evidence.check == "not_found" else ""

    @property
    def words(self) -> str:
        quote = self.evidence.quote
        return quote if len(quote) <= LONGEST_QUOTE else f"{quote[:LONGEST_QUOTE]}…"

    @property
    def text(self) -> str:
        doubt = f" ({self.doubt})" if self.doubt else ""
        words = f": “{self.words}”" if self.words else ""
        return f"{self.location}{doubt}{words}"

    @property
    def style(self) -> str:
        return "bad" if self.evidence.check == "not_found" else "quote"


Part = Text | Name | Mark | Value | Bounds | Turns | Quote


# Lines, items, sections.


@dataclass(frozen=True, slots=True)
class Target:
    """What a line leads to: `turns` are where to look, `quotes` the words to find in each."""

    kind: Literal[
        "stage", "criterion", "evidence", "code", "contradiction", "episode", "plan", "fact"
    ]
    id: str
    turns: tuple[int, ...] = ()
    quotes: tuple[str, ...] = ()


Role = Literal["", "reason", "level", "asks", "evidence", "vote", "origin", "facts", "reading"]


@dataclass(frozen=True, slots=True)
class Line:
    """Parts to be written one after the other; `role` says what they tell of an item."""

    parts: tuple[Part, ...]
    role: Role = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Item:
    """A criterion, code, promise, fact ...: one line, and the details that belong to it."""

    id: str
    """Unique on the scorecard."""
    head: tuple[Part, ...]
    details: tuple[Line, ...] = ()
    target: Target | None = None
    loses_points: bool = False
    """A criterion that is below full marks or has no value."""
    summary: str = ""
    """What the item says in a few words: a criterion's title, a code's reason, a commitment."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.head)

    @property
    def name(self) -> str:
        return next((part.text for part in self.head if isinstance(part, Name)), "")

    @property
    def mark(self) -> Mark | None:
        return next((part for part in self.head if isinstance(part, Mark)), None)

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """The evidence among the details."""
        return tuple(
            part for line in self.details for part in line.parts if isinstance(part, Quote)
        )


SectionKind = Literal[
    "run",
    "totals",
    "stage",
    "codes",
    "unproven",
    "plan",
    "contradictions",
    "episodes",
    "bare_facts",
    "facts",
    "files",
    "warnings",
]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, lines, items, and notes below them."""

    kind: SectionKind
    title: str
    head: tuple[Part, ...] = ()
    """What stands beside the title: a stage's score, say."""
    lines: tuple[Line, ...] = ()
    items: tuple[Item, ...] = ()
    notes: tuple[Line, ...] = ()
    key: str = ""
    """Of a stage: its name on the scorecard."""
    target: Target | None = None

    @property
    def score(self) -> Value | None:
        return next((part for part in self.head if isinstance(part, Value)), None)
