"""One HTML file that holds a whole analysis: findings, figures, sortable tables, and methods.

It needs nothing else and fetches nothing: a content security policy forbids every connection, and
the one small script is allowed by its hash. Every text from data is made visible and escaped
(`page_templates`).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from jinja2 import Environment
from markupsafe import Markup

from ...atomic_files import atomic_write
from ...sanitize import sanitize
from ...version import __version__
from ..tables.codes_read import CODES
from ..tables.frames import stage_columns
from ..tables.number_format import NONE
from ..tables.score_names import score_name, score_of
from .basis import basis, sentences
from .display import Cell, Display, display, methods
from .findings import findings
from .glossary import Glossary, terms_of
from .method_notes import METHOD_NOTES
from .page_templates import environment, visible_html
from .report_outline import SECTIONS, Item, Section
from .results import Analysis, write_tables
from .run_links import ListedRuns, RunLinks

if TYPE_CHECKING:
    from ..figures import Figure

_FOLDER = Path(__file__).parent
MAX_ROWS = 400
"""Rows of a table on the page; the written files have all."""
MAX_SHORT_CELL = 30
"""Characters of a cell that stay on one line."""
MAX_NAMED_JUDGES = 4
METHOD_HEADINGS = (
    "estimand",
    "population",
    "method",
    "numbers",
    "runs",
    "clusters",
    "df",
    "reasons and warnings",
)


def render(
    analysis: Analysis,
    figures: Sequence[Figure],
    title: str = "Analysis of runs",
    links: RunLinks | None = None,
) -> str:
    """The report as one HTML document, the same for the same analysis.

    It holds no time stamp. Without `links` to a site it lists the runs that it names, with the
    paths of their scorecards.
    """
    return _Report(analysis, figures, links).render(title)


def write_report(
    analysis: Analysis,
    folder: Path,
    *,
    title: str = "Analysis of runs",
    png: bool = True,
    links: RunLinks | None = None,
) -> list[Path]:
    """Write tables/, tables.json, figures/ and report.html into a folder; return the paths.

    The folder is made if it does not exist. `links`: a site with pages of the runs
    (`web.site_links.links_to_site`). InputError if the folder cannot be written.
    """
    from ...errors import InputError
    from ..figures import draw_all, write

    figures = draw_all(analysis.tables, analysis.runs, analysis.outcome, png=png, narrow=True)
    page = folder / "report.html"
    try:
        paths = write_tables(analysis, folder)
        paths += write(figures, folder / "figures")
        with atomic_write(page) as part:
            text = render(analysis, figures, title, links)
            part.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(message, "choose another --out", folder) from error
    return [*paths, page]


@dataclass(frozen=True)
class _Finding:
    """A finding on the page: its sentence, and where its runs are."""

    text: Markup
    address: str
    query: str


@dataclass(frozen=True)
class _PageSection:
    id: str
    title: str
    intro: Markup
    body: Markup


class _Report:
    """The parts of one page; the glossary and the links collect what the parts name."""

    def __init__(
        self, analysis: Analysis, figures: Sequence[Figure], links: RunLinks | None
    ) -> None:
        self.analysis = analysis
        self.figures = {figure.name: figure for figure in figures}
        self.score = score_of(analysis.outcome, analysis.runs)
        rubrics = analysis.runs["rubric"].unique().to_list()
        self.names = Glossary(terms_of(rubrics, analysis.cohort.titles))
        listed = ListedRuns(analysis.runs)
        self.listed = listed if links is None else None
        self.links: RunLinks = links or listed
        self.items: Any = _templates().get_template("item.html").module

    def render(self, title: str) -> str:
        script = _asset("report.js")
        # The order matters: a name is explained where it first stands.
        basis_text = self._basis()
        basis_html = self._prose(basis_text)
        names_first = self._names_first()
        page_findings = self._findings(basis_text)
        sections = list(self._sections())
        return (
            _templates()
            .get_template("report.html")
            .render(
                title=title,
                policy=_content_policy(script),
                style=Markup(_asset("report.css")),
                script=Markup(script),
                all_runs="" if self.listed is not None else self.links.search(""),
                summary=self._summary(),
                basis=basis_html,
                names_first=names_first,
                findings=page_findings,
                sections=sections,
                listed_runs=self.listed.entries() if self.listed is not None else [],
                methods=self._methods(),
                method_notes=METHOD_NOTES,
                method_headings=METHOD_HEADINGS,
                names_listed=lambda: Markup(self.names.listed()),
            )
        )

    def _prose(self, text: str) -> Markup:
        """A sentence in which the first use of each name leads to its explanation."""
        return Markup(self.names.prose(visible_html(text)))

    def _summary(self) -> str:
        """Counts of runs, agents, tasks, tracks and tiers, and who judged."""
        runs = self.analysis.runs
        counts = [_count(runs.height, "run")]
        for column in ("agent", "task", "track", "tier"):
            counts.append(_count(runs[column].drop_nulls().n_unique(), column))
        parts = [" · ".join(counts)]
        judges = runs["judge"].drop_nulls().unique().sort().to_list()[:MAX_NAMED_JUDGES]
        if judges:
            parts.append(f"judged by {', '.join(judges)}")
        return " · ".join([*parts, f"ambjudge {__version__}"])

    def _basis(self) -> str:
        rows = basis(self.analysis.runs).iter_rows(named=True)
        return " ".join(sentence for row in rows for sentence in sentences(row))

    def _names_first(self) -> list[tuple[str, Markup]]:
        """Names that the findings use, before they use them."""
        stages = [score_name(stage) for stage in stage_columns(self.analysis.runs)]
        codes = [self.names.terms[code].title for code in CODES]
        kinds = (("The score", [self.score.titled]), ("Stages", stages), ("Error codes", codes))
        return [(kind, self._prose(", ".join(names))) for kind, names in kinds if names]

    def _findings(self, basis_text: str) -> list[_Finding]:
        found = findings(self.analysis.tables, self.score)
        if found and found[0].text in basis_text:
            found = found[1:]  # it stands above already
        page_findings = []
        for finding in found:
            address = self.links.search(finding.runs) if finding.runs else ""
            page_findings.append(_Finding(self._prose(finding.text), address, finding.runs))
        return page_findings

    def _sections(self) -> Iterator[_PageSection]:
        for section in _outline(self.analysis.tables):
            self.names.section()
            intro = self._prose(section.intro)
            body = "".join(self._items(section))
            if body:
                yield _PageSection(section.id, section.title, intro, Markup(body))

    def _items(self, section: Section) -> Iterator[str]:
        """Figures and tables of a section; none if it has neither a table nor a drawn figure."""
        tables = self.analysis.tables
        present = [
            item
            for item in section.items
            if item.name in (tables if item.kind == "table" else self.figures)
        ]
        has_content = any(
            item.kind == "table" or self.figures[item.name].svg is not None for item in present
        )
        if not has_content:
            return
        for item in present:
            yield self._table(item) if item.kind == "table" else self._figure(item.name)

    def _figure(self, name: str) -> str:
        from ..figures.rendering import inline

        figure = self.figures[name]
        if figure.svg is None:
            return str(self.items.missing_figure(figure))
        plot = Markup(inline(sanitize(figure.svg), figure.description))
        narrow_plot = Markup()
        if figure.narrow:
            svg = sanitize(figure.narrow)
            narrow_plot = Markup(inline(svg, figure.description, narrow=True))
        return str(self.items.figure(figure, plot, narrow_plot, self._prose(figure.caption)))

    def _table(self, item: Item) -> str:
        table = self.analysis.tables[item.name]
        for column, value in item.conditions.items():
            if column in table.columns:
                table = table.filter(pl.col(column) == value)
        title, note = self.analysis.heading(item.name)
        if item.title:
            title = item.title.replace("{score}", self.score.titled)
        note_html = self._prose(note)
        body = self._table_body(table, item)
        return str(self.items.table(item.name, title, note_html, body, item.folded))

    def _table_body(self, table: pl.DataFrame, item: Item) -> Markup:
        if table.is_empty():
            return Markup('<p class="empty">No rows: nothing in these runs belongs here.</p>')
        if table.columns == ["reason"]:
            return Markup('<p class="empty">Not computed: {}.</p>').format(
                visible_html(table["reason"][0])
            )
        hidden = (*item.hidden_columns, *item.conditions)
        return self.html_table(display(table, item.name, most=MAX_ROWS, hide=hidden), item.name)

    def html_table(self, shown: Display, file_name: str) -> Markup:
        """A sortable table with its numbered remarks and the names of its columns below."""
        headings = [
            {"html": self._name(text), "is_number": is_number}
            for text, is_number in zip(shown.headings, shown.numeric, strict=True)
        ]
        lines = [
            [
                self._cell(cell, is_number)
                for cell, is_number in zip(row, shown.numeric, strict=True)
            ]
            for row in shown.rows
        ]
        named_cells = [
            cell.text
            for row in shown.rows
            for cell in row
            if isinstance(cell.key, str) and cell.text in self.names.terms
        ]
        names = Markup(self.names.beside([*shown.headings, *named_cells]))
        rows = self.items.rows(headings, lines, shown.notes, shown.left_out, file_name, names)
        return Markup(rows)

    def _cell(self, cell: Cell, is_number: bool) -> dict[str, Any]:
        sort_key = Markup()
        if isinstance(cell.key, float):
            sort_key = Markup(f' data-n="{cell.key:.10g}"')
        elif cell.text == NONE:
            sort_key = Markup(' data-none=""')
        kind = "short" if len(cell.text) <= MAX_SHORT_CELL else "text"
        return {
            "kind": "num" if is_number else kind,
            "sort_key": sort_key,
            "html": self._cell_html(cell),
            "remarks": cell.notes,
        }

    def _cell_html(self, cell: Cell) -> Markup:
        """A cell's text; runs that it names lead to where they can be read."""
        if not cell.runs:
            return self._name(cell.text)
        parts = []
        for run_id, turn in cell.runs:
            address, text = self.links.link(run_id, turn), visible_html(run_id)
            if address:
                text = Markup('<a href="{}">{}</a>').format(visible_html(address), text)
            parts.append(text)
        return Markup(", ").join(parts)

    def _name(self, text: str) -> Markup:
        return Markup(self.names.name(text, visible_html(text)))

    def _methods(self) -> list[dict[str, Any]]:
        """For each table its title and the methods of its numbers."""
        return [
            {"name": name, "title": self.analysis.heading(name)[0], "rows": methods(table)}
            for name, table in self.analysis.tables.items()
        ]


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _outline(tables: Mapping[str, pl.DataFrame]) -> Iterator[Section]:
    """The sections of the report, and one at the end for tables that none of them names."""
    yield from SECTIONS
    placed = {item.name for section in SECTIONS for item in section.items if item.kind == "table"}
    unplaced = tuple(Item("table", name) for name in tables if name not in placed)
    if unplaced:
        yield Section("more", "More tables", "Tables that packages add.", unplaced)


def _content_policy(script: str) -> str:
    """Forbid every connection; allow our own script by its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src"
        " data:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    return environment(_FOLDER / "templates")
