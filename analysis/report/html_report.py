"""One HTML file that holds a whole analysis: findings, figures, sortable tables, and how each
number came about.

It needs nothing else and fetches nothing: a content security policy forbids every connection, and
the one small script is allowed by its hash. Every text from data is made visible (`sanitize`) and
escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from ...atomic_files import whole
from ...sanitize import sanitize
from ...version import __version__
from ..tables.codes_read import CODES
from ..tables.frames import stage_columns
from ..tables.score_names import Score, score_name, score_of
from .basis import basis, sentences
from .display import NONE, Cell, Display, display, methods
from .findings import findings
from .glossary import Glossary, terms_of
from .report_outline import SECTIONS, Item, Section
from .results import Analysis, write_tables

if TYPE_CHECKING:
    from ..figures import Figure

MOST_ROWS = 400
"""Rows of a table on the page; all of them are in the files."""
SHORT = 30
"""Characters of a cell that stay on one line."""
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
_TEXT_METHODS = (
    (
        "Unit",
        (
            "A run: one agent on one task in one tier. A cell is all runs of an agent on a task in"
            " a tier; its runs are repeats."
        ),
    ),
    (
        "Populations",
        (
            "“New tasks”: these tasks are a sample of their kind; the spread is between tasks,"
            " tasks are the clusters, t with (effective clusters − 1) degrees of freedom,"
            " Satterthwaite’s over tracks for leaderboards. “Same tasks”: these tasks run again;"
            " only repeats vary. Agents, tracks and tiers are fixed, never a sample."
        ),
    ),
    (
        "Leaderboard",
        (
            "Mean of a track, then over tracks, each counting the same; within a track every task"
            " counts the same, however often it was repeated. Disqualified runs count with their 0;"
            " runs without a score are left out, and “missing as 0” and “missing as best” bound the"
            " mean."
        ),
    ),
    (
        "Rank sets",
        (
            "What Holm’s procedure over all paired differences leaves possible: all sets hold at"
            " once at 95 %. A track with one task borrows the spread of tasks from the others."
            " “Share first” describes resamplings of tasks; it is no confidence."
        ),
    ),
    (
        "Effects of codes",
        (
            "Overlap-weighted: runs with the code against repeats of the same cell with the same"
            " other codes; every such group of n runs weighs (n − 1) p (1 − p) on average. Standard"
            " errors by deleting one task at a time; Holm over the codes. “Compared” counts firings"
            " with such a repeat. Tags read off the score alone count as not fired. “Placebo p”:"
            " the smallest adjusted p of effects on stages before the code; below .05 no effect is"
            " claimed. Disqualified runs are left out. Codes are tagged after the outcome, so these"
            " are associations. Completion, S4 and S5 are never conditioned on."
        ),
    ),
    (
        "Codes read",
        (
            "A code is present, absent, cannot tell or not read. Rates, effects and agreement are"
            " of the runs that were read for the code, and say “N of M”; a code shown by facts in a"
            " run that nobody read is no part of them. Numbers of codes, and effects, are of codes"
            " that were read in the same runs: all five where at least half of the runs were read"
            " for all, else those that were. Where a reader could not tell, the run was not read"
            " for the code."
        ),
    ),
    (
        "Parts",
        (
            "Overall is linear in the stages and Task, so an effect splits exactly: judged stages"
            " (the judge may also have set the tag), checked stages (for E5 partly by definition),"
            " Task (the benchmark’s own metric): what is lost by a Task of 0, which a gate or an"
            " unscorable result decides, and how good the others are."
        ),
    ),
    (
        "Missing",
        (
            "What nobody scored is unknown, never 0, except where a column says so. A number that"
            " is not defined is a dash with its reason."
        ),
    ),
)


class RunLinks(Protocol):
    """Where the runs that a report names can be seen."""

    def link(self, run_id: str, turn: int | None = None) -> str:
        """The address of a run, or of a turn of it; "" for none."""

    def search(self, query: str) -> str:
        """The address of the runs that a filter of the browser finds; "" where nothing finds runs."""


class ListedRuns:
    """Runs that the report names have their places in a list at its end, for want of a site."""

    def __init__(self, runs: pl.DataFrame) -> None:
        self.runs = {
            row["run_id"]: row
            for row in runs.select("run_id", *_OF_RUN).unique("run_id").to_dicts()
        }
        self.named: dict[str, dict[int, None]] = {}

    def link(self, run_id: str, turn: int | None = None) -> str:
        turns = self.named.setdefault(run_id, {})
        if turn is not None:
            turns[turn] = None
        return f"#r-{list(self.named).index(run_id)}"

    def search(self, query: str) -> str:
        return ""

    def section(self) -> str:
        """The named runs, where they lie, and the turns that were named."""
        lines = []
        for at, (id, turns) in enumerate(self.named.items()):
            row = self.runs.get(id, {})
            about = " · ".join(
                esc(row[name]) for name in _OF_RUN if name != "path" and row.get(name)
            )
            named = (
                f"turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, sorted(turns)))}"
                if turns
                else ""
            )
            said = " · ".join(text for text in (about, named) if text)
            place = f"<br><code>{esc(row['path'])}</code>" if row.get("path") else ""
            lines.append(f'<dt id="r-{at}">{esc(id)}</dt><dd>{said}{place}</dd>')
        return (
            '<section aria-labelledby="runs"><h2 id="runs">Runs that are named above</h2>\n<p>Each'
            " can be read turn by turn with "
            "<code>ambjudge browse</code>, or as a page with <code>ambjudge site</code>, to whose"
            " pages a report with "
            f"<code>--site</code> leads.</p>\n<dl>{''.join(lines)}</dl></section>\n"
            if lines
            else ""
        )


_OF_RUN = ("agent", "task", "track", "tier", "path")


def esc(text: object) -> str:
    """Text as it may stand in HTML: control and invisible characters visible, markup escaped."""
    return escape(sanitize(str(text)), quote=True)


def render(
    analysis: Analysis,
    figures: Sequence[Figure],
    title: str = "Analysis of runs",
    links: RunLinks | None = None,
) -> str:
    """The report as one HTML document. Deterministic: it holds no time stamp, and no path beyond
    those of the scorecards whose runs it names and has no `links` for."""
    names = Glossary(terms_of(analysis.runs["rubric"].unique().to_list(), analysis.cohort.titles))
    listed = ListedRuns(analysis.runs) if links is None else None
    links = links or listed
    drawn = {figure.name: figure for figure in figures}
    style, script = _asset("report.css"), _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src"
        " data:; base-uri 'none'; form-action 'none'"
    )
    first = _head(analysis, links, names)
    shown = []
    for section in _outline(analysis.tables):
        names.section()
        intro = f"<p>{names.prose(esc(section.intro))}</p>\n"
        if body := "".join(_section(section, analysis, drawn, links, names)):
            shown.append((section, intro + body))
    methods = _methods(analysis)
    contents = "".join(
        f'<li><a href="#{section.id}">{esc(section.title)}</a></li>' for section, _ in shown
    )
    where = listed.section() if listed is not None else ""
    back = (
        ""
        if listed is not None or links is None
        else f'<li><a href="{esc(links.search(""))}">All runs</a></li>'
    )
    to_runs = '<li><a href="#runs">Runs</a></li>' if where else ""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{esc(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<div"
        ' class="page">\n'
        f'<nav aria-label="Contents"><ol>{back}<li><a href="#top">Findings</a></li>{contents}'
        f'{to_runs}<li><a href="#methods">Methods</a></li><li><a'
        ' href="#names">Names</a></li></ol><button id="theme" type="button" hidden>Colours:'
        " auto</button></nav>\n"
        f'<main id="top">\n<h1>{esc(title)}</h1>\n{first}\n'
        + "".join(
            f'<section aria-labelledby="{section.id}"><h2'
            f' id="{section.id}">{esc(section.title)}</h2>\n{body}</section>\n'
            for section, body in shown
        )
        + where
        + methods
        + '<section aria-labelledby="names"><h2 id="names">Names</h2>\n<p>What the names in this'
        " report stand for.</p>\n"
        + f"<dl>{names.listed()}</dl></section>\n"
        + f"</main>\n</div>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def write_report(
    analysis: Analysis,
    folder: Path,
    *,
    title: str = "Analysis of runs",
    png: bool = True,
    links: RunLinks | None = None,
) -> list[Path]:
    """Writes tables/, tables.json, figures/ and report.html into `folder` (made if absent) and
    returns the paths.

    `links`: a site that has pages of the runs (`web.pages.pages_of`). Raises InputError when the
    folder cannot be written.
    """
    from ...errors import InputError
    from ..figures import draw_all, write

    figures = draw_all(analysis.tables, analysis.runs, analysis.outcome, png=png, narrow=True)
    try:
        out = write_tables(analysis, folder)
        out += write(figures, folder / "figures")
        page = folder / "report.html"
        with whole(page) as part:
            part.write_text(
                render(analysis, figures, title, links), encoding="utf-8", errors="replace"
            )
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another --out", folder
        ) from error
    return [*out, page]


def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _head(analysis: Analysis, links: RunLinks | None, names: Glossary) -> str:
    runs = analysis.runs
    counts = [f"{runs.height:,} run{'s' if runs.height != 1 else ''}"]
    for name in ("agent", "task", "track", "tier"):
        n = runs[name].drop_nulls().n_unique()
        counts.append(f"{n} {name}{'s' if n != 1 else ''}")
    judges = ", ".join(
        str(judge) for judge in runs["judge"].drop_nulls().unique().sort().to_list()[:4]
    )
    meta = (
        f"{' · '.join(counts)}{f' · judged by {judges}' if judges else ''} · ambjudge {__version__}"
    )
    score = score_of(analysis.outcome, runs)
    lines = findings(analysis.tables, score)
    rests = " ".join(text for row in basis(runs).iter_rows(named=True) for text in sentences(row))
    if lines and lines[0].text in rests:
        lines = lines[1:]
    before = _before(runs, score, names)
    body = "".join(
        f"<li>{names.prose(esc(line.text))}{_to_runs(line.runs, links)}</li>" for line in lines
    )
    said = (
        f'<ul class="findings">{body}</ul>'
        if body
        else '<p class="empty">No finding: the tables say why.</p>'
    )
    return (
        f'<p class="meta">{esc(meta)}</p>\n<p'
        f' class="meta">{names.prose(esc(rests))}</p>\n{before}{said}'
    )


def _before(runs: pl.DataFrame, score: Score, names: Glossary) -> str:
    """The names that the findings use, before they use them."""
    kinds = (
        ("The score", [score.titled]),
        ("Stages", [score_name(stage) for stage in stage_columns(runs)]),
        ("Error codes", [names.terms[code].title for code in CODES]),
    )
    said = " ".join(
        f"<b>{kind}</b>: {names.prose(esc(', '.join(some)))}." for kind, some in kinds if some
    )
    return f'<p class="meta">{said} <a href="#names">All names</a></p>\n'


def _to_runs(query: str, links: RunLinks | None) -> str:
    """The runs that a finding is about: a link, or the filter that finds them in the browser."""
    if not query or links is None:
        return ""
    if place := links.search(query):
        return f' <a href="{esc(place)}">runs</a>'
    return f' <span class="where">ambjudge browse, filter <code>{esc(query)}</code></span>'


def _outline(tables: Mapping[str, pl.DataFrame]) -> Iterator[Section]:
    """SECTIONS, and at the end whatever tables they do not name."""
    yield from SECTIONS
    named = {item.name for section in SECTIONS for item in section.items if item.kind == "table"}
    rest = [name for name in tables if name not in named]
    if rest:
        yield Section(
            "more",
            "More tables",
            "Computed beside the above.",
            tuple(Item("table", name) for name in rest),
        )


def _section(
    section: Section,
    analysis: Analysis,
    drawn: Mapping[str, Figure],
    links: RunLinks | None,
    names: Glossary,
) -> Iterator[str]:
    tables = analysis.tables
    present = [
        i for i in section.items if (i.name in tables if i.kind == "table" else i.name in drawn)
    ]
    if not any(item.kind == "table" or drawn[item.name].svg for item in present):
        return
    for item in present:
        if item.kind == "figure":
            yield _figure(drawn[item.name], names)
        else:
            yield _table(item, analysis, links, names)


def _figure(figure: Figure, names: Glossary) -> str:
    from ..figures.style import inline

    if figure.svg is None:
        return f'<p class="empty">{esc(figure.title)}: not drawn, {esc(figure.reason)}.</p>\n'
    narrow = (
        '<div class="plot'
        f' narrow">{inline(sanitize(figure.narrow), figure.description, narrow=True)}</div>\n'
        if figure.narrow
        else ""
    )
    return (
        "<figure>\n<div"
        f' class="plot{" wide" * (figure.narrow is not None)}">{inline(sanitize(figure.svg), figure.description)}</div>\n{narrow}<figcaption><strong>{esc(figure.title)}.</strong>'
        f" {names.prose(esc(figure.caption))}</figcaption></figure>\n"
    )


def _table(item: Item, analysis: Analysis, links: RunLinks | None, names: Glossary) -> str:
    table = analysis.tables[item.name]
    for column, value in item.where.items():
        if column in table.columns:
            table = table.filter(pl.col(column) == value)
    title, about = analysis.heading(item.name)
    title = item.title.replace("{score}", score_of(analysis.outcome, analysis.runs).titled) or title
    note = (
        f'<p class="note">{names.prose(esc(about))} <a href="#m-{esc(item.name)}">Methods</a></p>'
        if about
        else ""
    )
    if table.is_empty():
        body = '<p class="empty">No rows: nothing in these runs belongs here.</p>'
    elif table.columns == ["reason"]:
        body = f'<p class="empty">Not computed: {esc(table["reason"][0])}.</p>'
    else:
        shown = display(table, item.name, most=MOST_ROWS, hide=(*item.hide, *item.where))
        body = html_table(shown, item.name, links, names)
    if item.folded:
        return f"<details><summary>{esc(title)}</summary>\n{note}{body}</details>\n"
    return f"<h3>{esc(title)}</h3>\n{note}{body}\n"


def html_table(shown: Display, name: str, links: RunLinks | None, names: Glossary) -> str:
    """A display as a sortable table with its numbered notes below, and with the names that its
    columns bear."""
    heads = "".join(
        f'<th scope="col"{" class=num" if right else ""}>{names.name(text, esc(text))}</th>'
        for text, right in zip(shown.headings, shown.numeric, strict=True)
    )
    lines = []
    for row in shown.rows:
        cells = []
        for cell, right in zip(row, shown.numeric, strict=True):
            sort = (
                f' data-n="{cell.key:.10g}"'
                if isinstance(cell.key, float)
                else ' data-none=""'
                if cell.text == NONE
                else ""
            )
            marks = f"<sup>{','.join(map(str, cell.notes))}</sup>" if cell.notes else ""
            kind = "num" if right else "short" if len(cell.text) <= SHORT else "text"
            cells.append(f'<td class="{kind}"{sort}>{_text(cell, links, names)}{marks}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    notes = "".join(f"<li>{esc(text)}</li>" for text in shown.notes)
    more = (
        f'<p class="note">{shown.left_out:,} more rows are in tables/{esc(name)}.csv.</p>'
        if shown.left_out
        else ""
    )
    bare = [
        cell.text
        for row in shown.rows
        for cell in row
        if isinstance(cell.key, str) and cell.text in names.terms
    ]
    used = names.beside([*shown.headings, *bare])
    explained = f'<p class="note">Names: {used}</p>' if used else ""
    return (
        '<div class="scroll" tabindex="0"><table'
        f' class="sortable"><thead><tr>{heads}</tr></thead>\n<tbody>'
        + "\n".join(lines)
        + f"</tbody></table></div>{f'<ol class=remarks>{notes}</ol>' if notes else ''}{more}{explained}"
    )


def _text(cell: Cell, links: RunLinks | None, names: Glossary) -> str:
    """A cell's text; the runs that it names lead to where they can be read."""
    if links is None or not cell.runs:
        return names.name(cell.text, esc(cell.text))
    places = [(run, links.link(run, turn)) for run, turn in cell.runs]
    return ", ".join(
        f'<a href="{esc(place)}">{esc(run)}</a>' if place else esc(run) for run, place in places
    )


def _methods(analysis: Analysis) -> str:
    terms = "".join(f"<dt>{esc(term)}</dt><dd>{esc(text)}</dd>" for term, text in _TEXT_METHODS)
    blocks = []
    for name, table in analysis.tables.items():
        rows, title = methods(table), analysis.heading(name)[0]
        if not rows:
            blocks.append(
                f'<p id="m-{esc(name)}" class="note">{esc(title)}: counts and descriptions, no'
                " estimates.</p>"
            )
            continue
        body = "".join(_method_row(row.values()) for row in rows)
        heads = "".join(f'<th scope="col">{esc(text)}</th>' for text in METHOD_HEADINGS)
        blocks.append(
            f'<details id="m-{esc(name)}"><summary>{esc(title)}</summary><div class="scroll"'
            ' tabindex="0"><table>'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></details>"
        )
    return (
        '<section aria-labelledby="methods"><h2'
        f' id="methods">Methods</h2>\n<dl>{terms}</dl>\n<h3>Estimand, population, method, counts'
        " and warnings of every number</h3>\n" + "\n".join(blocks) + "</section>\n"
    )


def _method_row(values: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{esc(value)}</td>" for value in values) + "</tr>"
