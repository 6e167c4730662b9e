"""What a function on scorecards returns: a frame, sentences, and tables as people read them.

The commands print the same tables and sentences; notebooks are shown them as HTML.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ...sanitize import sanitize_line
from .display import Cell, Display
from .page_templates import visible_html

if TYPE_CHECKING:
    import polars as pl

    from ..tables.cohorts import Cohort

MAX_HTML_ROWS = 200
"""Rows of a table that a notebook is shown; the frame has them all."""
_MAX_LINE = 300
"""Characters of a cell, and of a sentence in the text form of a result."""


@dataclass(frozen=True)
class TitledTable:
    """A table as people read it, with what stands above and below it."""

    title: str
    """"" for none."""
    display: Display | None
    """None if there are no rows; the remarks say why."""
    remarks: tuple[str, ...] = ()
    """Sentences below the table."""


class CohortResult(ABC):
    """A result on scorecards. `print` shows its sentences, a notebook its tables too."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the result is, without the full stop."""

    @property
    @abstractmethod
    def table(self) -> pl.DataFrame:
        """All numbers as a polars frame, in long form."""

    @property
    @abstractmethod
    def sentences(self) -> tuple[str, ...]:
        """The findings, as the command prints them."""

    @property
    @abstractmethod
    def cohorts(self) -> tuple[Cohort, ...]:
        """The scorecards that were read."""

    @abstractmethod
    def displays(self) -> Iterator[TitledTable]:
        """The tables that the command prints."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as plain values: the object that `--json` prints."""

    @property
    def selection(self) -> str:
        """Which scorecards count, in one line."""
        return selection_line(self.cohorts)

    @property
    def problems(self) -> tuple[str, ...]:
        """Messages on what could not be read."""
        return tuple(text for cohort in self.cohorts for text in cohort.problems)

    def __repr__(self) -> str:
        return result_text(
            self.title,
            self.sentences,
            self.selection,
            f".table has {self.table.height:,} rows and {self.table.width} columns",
        )

    def _repr_html_(self) -> str:
        """The result in a notebook; every text of a run is escaped."""
        return result_html(self.title, self.sentences, self.displays(), self.selection)


def selection_line(cohorts: Iterable[Cohort]) -> str:
    """Which scorecards of each cohort count; "" for tables made by hand."""
    cohorts = list(cohorts)
    selections = [cohort.selection for cohort in cohorts if cohort.selection is not None]
    running = [cohort.running_sentence for cohort in cohorts if cohort.running]
    return "; ".join(["; against ".join(map(str, selections)), *running])


def result_text(title: str, sentences: Sequence[str], *lines: str) -> str:
    """A result as a few lines of text."""
    indented = [f"  {_shortened(text)}" for text in (*sentences, *lines) if text]
    return "\n".join([_shortened(title), *indented])


def _shortened(text: str) -> str:
    """At most the first _MAX_LINE characters, with control characters made visible."""
    visible = sanitize_line(text)
    return visible if len(visible) <= _MAX_LINE else f"{visible[:_MAX_LINE]}…"


def result_html(
    title: str, sentences: Sequence[str], tables: Iterable[TitledTable], *lines: str
) -> str:
    """Title, sentences and tables as HTML, and lines in small print."""
    items = Markup("").join(Markup("<li>{}</li>").format(visible_html(text)) for text in sentences)
    parts = [Markup("<p><b>{}</b></p>").format(visible_html(title))]
    if sentences:
        parts.append(Markup("<ul>{}</ul>").format(items))
    parts += [_table_html(table) for table in tables]
    parts += [_small(text) for text in lines if text]
    return str(Markup("<div>{}</div>").format(Markup("").join(parts)))


def _table_html(table: TitledTable) -> Markup:
    parts = []
    if table.title:
        parts.append(Markup("<p><b>{}</b></p>").format(visible_html(table.title)))
    if table.display is not None:
        parts.append(_display_html(table.display))
    parts += [_small(text) for text in table.remarks]
    return Markup("").join(parts)


def _display_html(display: Display) -> Markup:
    headings = [Cell(text) for text in display.headings]
    rows = [_row_html("th", headings, display.numeric)]
    rows += [_row_html("td", row, display.numeric) for row in display.rows[:MAX_HTML_ROWS]]
    parts = [Markup('<table style="margin:8px 0">{}</table>').format(Markup("").join(rows))]
    left_out = display.left_out + len(display.rows[MAX_HTML_ROWS:])
    if left_out:
        parts.append(_small(f"and {left_out:,} more rows"))
    for number, text in enumerate(display.notes, 1):
        parts.append(_small(f"[{number}] {text}"))
    return Markup("").join(parts)


def _row_html(tag: str, cells: Sequence[Cell], numeric: Sequence[bool]) -> Markup:
    columns = []
    for cell, is_number in zip(cells, numeric, strict=True):
        side = "right" if is_number else "left"
        text = _shortened(cell.text) + "".join(f" [{number}]" for number in cell.notes)
        style = f"text-align:{side};padding:2px 8px;white-space:nowrap"
        columns.append(Markup('<{0} style="{1}">{2}</{0}>').format(tag, style, visible_html(text)))
    return Markup("<tr>{}</tr>").format(Markup("").join(columns))


def _small(text: str) -> Markup:
    return Markup("<div><small>{}</small></div>").format(visible_html(text))
