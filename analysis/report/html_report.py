"""One HTML file that holds a whole analysis: findings, figures, sortable tables, and methods.

The file needs no other file and no network: a content security policy forbids every connection, and
allows the one small script by its hash. Texts from the data are escaped, with control characters
made visible (`page_templates`).
"""

from __future__ import annotations

import base64
import hashlib
import re
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
from .methods_text import methods_statements
from .page_templates import environment, visible_html
from .report_outline import SECTIONS, Item, Section
from .results import Analysis, write_tables
from .run_links import ListedRuns, RunLinks

if TYPE_CHECKING:
    from ..figures import Figure

_FOLDER = Path(__file__).parent
MAX_ROWS = 400
"""Maximum number of rows of a table on the page; the files have all."""
MAX_SHORT_CELL = 30
"""Cells of at most this many characters stay on one line."""
MAX_NAMED_JUDGES = 4
_CODE = re.compile("`([^`]*)`")
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

    It has no time stamp. Without `links` to a site it ends with a list of the runs that it names
    and the paths of their scorecards.
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

    figures = draw_all(
        analysis.tables,
        analysis.runs_by_row,
        analysis.outcome,
        png=png,
        narrow=True,
        pdf=True,
        rows=analysis.rows,
    )
    page = folder / "report.html"
    try:
        paths = write_tables(analysis, folder)
        paths += write(figures, folder / "figures", below=folder)
        with atomic_write(page, below=folder) as temporary_file:
            text = render(analysis, figures, title, links)
            temporary_file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(message, "choose another --out", folder) from error
    return [*paths, page]


@dataclass(frozen=True)
class _PageFinding:
    """A main result at the top of the page."""

    text: Markup
    address: str
    """Link to the runs that it is about; "" without runs."""
    query: str
    """Filter that selects these runs."""


@dataclass(frozen=True)
class _PageSection:
    """A section of the page with its figures and tables as HTML."""

    id: str
    title: str
    intro: Markup
    body: Markup


class _Report:
    """Renders the parts of one page.

    The glossary and the links collect the names and the runs that the parts mention.
    """

    def __init__(
        self, analysis: Analysis, figures: Sequence[Figure], links: RunLinks | None
    ) -> None:
        self.analysis = analysis
        self.figures = {figure.name: figure for figure in figures}
        self.score = score_of(analysis.outcome, analysis.runs)
        self.rows = analysis.rows
        rubrics = analysis.runs["rubric"].unique().to_list()
        self.glossary = Glossary(terms_of(rubrics, analysis.cohort.titles))
        listed = ListedRuns(analysis.runs)
        self.listed = listed if links is None else None
        self.links: RunLinks = links or listed
        self.items: Any = _templates().get_template("item.html").module

    def render(self, title: str) -> str:
        script = _asset("report.js")
        # The parts are rendered in the order of the page: a name is explained at its first use.
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
                judge_statements=self._judge_statements(),
                methods=self._methods(),
                method_notes=METHOD_NOTES,
                method_headings=METHOD_HEADINGS,
                names_listed=lambda: Markup(self.glossary.listed()),
            )
        )

    def _prose(self, text: str) -> Markup:
        """A text in which the first use of each name links to its explanation."""
        return Markup(self.glossary.prose(visible_html(text)))

    def _summary(self) -> str:
        """Counts of runs, agents, tasks, tracks and tiers, and who judged."""
        runs = self.analysis.runs
        counts = [_count(runs.height, "run")]
        for column in ("agent", "task", "track", "tier"):
            counts.append(_count(runs[column].drop_nulls().n_unique(), column))
        if self.rows.by != "agent":
            n_rows = self.analysis.runs_by_row["agent"].n_unique()
            counts.append(f"tables about {n_rows:,} {self.rows.plural}")
        parts = [" · ".join(counts)]
        judges = runs["judge"].drop_nulls().unique().sort().to_list()[:MAX_NAMED_JUDGES]
        if judges:
            parts.append(f"judged by {', '.join(judges)}")
        return " · ".join([*parts, f"ambjudge {__version__}"])

    def _basis(self) -> str:
        rows = basis(self.analysis.cohort).iter_rows(named=True)
        texts = [sentence for row in rows for sentence in sentences(row)]
        return " ".join([*texts, *self.analysis.mixtures])

    def _names_first(self) -> list[tuple[str, Markup]]:
        """Names that the findings use, before they use them."""
        stages = [score_name(stage) for stage in stage_columns(self.analysis.runs)]
        codes = [self.glossary.terms[code].title for code in CODES]
        kinds = (("The score", [self.score.titled]), ("Stages", stages), ("Error codes", codes))
        return [(kind, self._prose(", ".join(names))) for kind, names in kinds if names]

    def _findings(self, basis_text: str) -> list[_PageFinding]:
        all_findings = findings(self.analysis.tables, self.score, self.rows)
        if all_findings and all_findings[0].text in basis_text:
            all_findings = all_findings[1:]  # the page has it above already
        page_findings = []
        for finding in all_findings:
            address = self.links.search(finding.runs) if finding.runs else ""
            page_findings.append(_PageFinding(self._prose(finding.text), address, finding.runs))
        return page_findings

    def _sections(self) -> Iterator[_PageSection]:
        for section in _outline(self.analysis.tables):
            self.glossary.section()
            intro = self._prose(self.rows.fill(section.intro))
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
            title = self.rows.fill(item.title.replace("{score}", self.score.titled))
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
        table_display = display(
            table,
            item.name,
            most=MAX_ROWS,
            hide=hidden,
            rows_of=self.analysis.rows_of(item.name),
        )
        return self.html_table(table_display, item.name)

    def html_table(self, table_display: Display, file_name: str) -> Markup:
        """A sortable table with its numbered remarks and the names of its columns below."""
        headings = [
            {"html": self._name(text), "is_number": is_number}
            for text, is_number in zip(table_display.headings, table_display.numeric, strict=True)
        ]
        lines = [
            [
                self._cell(cell, is_number)
                for cell, is_number in zip(row, table_display.numeric, strict=True)
            ]
            for row in table_display.rows
        ]
        named_cells = [
            cell.text
            for row in table_display.rows
            for cell in row
            if isinstance(cell.key, str) and cell.text in self.glossary.terms
        ]
        names = Markup(self.glossary.beside([*table_display.headings, *named_cells]))
        rows = self.items.rows(
            headings, lines, table_display.notes, table_display.left_out, file_name, names
        )
        return Markup(rows)

    def _cell(self, cell: Cell, is_number: bool) -> dict[str, Any]:
        sort_key = Markup()
        if isinstance(cell.key, float):
            sort_key = Markup(f' data-n="{cell.key:.10g}"')
        elif cell.text == NONE:
            sort_key = Markup(' data-none=""')
        cell_class = "short" if len(cell.text) <= MAX_SHORT_CELL else "text"
        return {
            "kind": "num" if is_number else cell_class,
            "sort_key": sort_key,
            "html": self._cell_html(cell),
            "remarks": cell.notes,
        }

    def _cell_html(self, cell: Cell) -> Markup:
        """A cell's text, with links from the runs that it names."""
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
        return Markup(self.glossary.name(text, visible_html(text)))

    def _judge_statements(self) -> list[tuple[str, Markup]]:
        """What was judged by whom and how, with names as code."""
        return [
            (subject, Markup(_CODE.sub(r"<code>\1</code>", str(visible_html(text)))))
            for subject, text in methods_statements(self.analysis)
        ]

    def _methods(self) -> list[dict[str, Any]]:
        """Name, title and methods of the numbers of each table."""
        return [
            {"name": name, "title": self.analysis.heading(name)[0], "rows": methods(table)}
            for name, table in self.analysis.tables.items()
        ]


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _outline(tables: Mapping[str, pl.DataFrame]) -> Iterator[Section]:
    """Yield the sections of the report, and one at the end for tables that no section includes."""
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
