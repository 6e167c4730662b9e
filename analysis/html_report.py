"""One HTML file that holds a whole analysis: findings, figures, sortable tables, and how each number came about.

It needs nothing else and fetches nothing: a content security policy forbids every connection, and the one small script is
allowed by its hash. Every text from data is made visible (`sanitize`) and escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from .. import __version__
from ..sanitize import sanitize
from ..whole_files import whole
from .basis import basis, sentences
from .display import NONE, Cell, Display, display, methods
from .findings import findings
from .report_outline import SECTIONS, Item, Section
from .report_tables import TABLES
from .results import Analysis, write_tables

if TYPE_CHECKING:
    from .figures import Figure

MOST_ROWS = 400
"""Rows of a table on the page; all of them are in the files."""
SHORT = 30
"""Characters of a cell that stay on one line."""
METHOD_HEADINGS = ("estimand", "population", "method", "numbers", "runs", "clusters", "df", "reasons and warnings")
_TEXT_METHODS = (
    ("Unit", "A run: one agent on one task in one tier. A cell is all runs of an agent on a task in a tier; its runs are repeats."),
    ("Populations", "“New tasks”: these tasks are a sample of their kind; the spread is between tasks, tasks are the clusters, "
     "t with (effective clusters − 1) degrees of freedom, Satterthwaite’s over tracks for leaderboards. “Same tasks”: these tasks run again; "
     "only repeats vary. Agents, tracks and tiers are fixed, never a sample."),
    ("Leaderboard", "Mean of a track, then over tracks, each counting the same; within a track every task counts the same, however often "
     "it was repeated. Disqualified runs count with their 0; runs without a score are left out, and “missing as 0” and “missing as "
     "best” bound the mean."),
    ("Rank sets", "What Holm’s procedure over all paired differences leaves possible: all sets hold at once at 95 %. A track with one task "
     "borrows the spread of tasks from the others. “Share "
     "first” describes resamplings of tasks; it is no confidence."),
    ("Effects of codes", "Overlap-weighted: runs with the code against repeats of the same cell with the same other codes; every such group "
     "of n runs weighs (n − 1) p (1 − p) on average. Standard errors by deleting one task at a time; Holm over the codes. “Compared” counts firings "
     "with such a repeat. Tags read off the score alone count as not fired. “Placebo p”: the smallest adjusted p of effects on "
     "stages before the code; below .05 no effect is claimed. Disqualified runs are left out. Codes are tagged after the outcome, "
     "so these are associations. Completion, S4 and S5 are never conditioned on."),
    ("p", "“p (this one alone)” allows for no other test in the table; Holm and BH do, over their family."),
    ("Codes read", "A code is present, absent, cannot tell or not read. Rates, effects and agreement are of the runs that were "
     "read for the code, and say “N of M”; a code shown by facts in a run that nobody read is no part of them. Numbers of "
     "codes, and effects, are of codes that were read in the same runs: all five where at least half of the runs were read for "
     "all, else those that were. Where a reader could not tell, the run was not read for the code."),
    ("Parts", "Overall is linear in the stages and Task, so an effect splits exactly: judged stages (the judge may also have "
     "set the tag), checked stages (for E5 partly by definition), Task (the benchmark’s own metric): what is lost by a Task of 0, "
     "which a gate or an unscorable result decides, and how good the others are."),
    ("RV", "Cinelli and Hazlett’s robustness value: the partial R² an unobserved cause would need with both the code and the "
     "score, within cells, to erase the effect."),
    ("MDE80", "The smallest true difference that a test at 5 % would find with probability .8."),
    ("Missing", "What nobody scored is unknown, never 0, except where a column says so. A number that is not defined is a dash "
     "with its reason."),
)  # fmt: skip


class RunLinks(Protocol):
    """Where the runs that a report names can be seen, when it is part of a site."""

    def link(self, run_id: str) -> str:
        """The address of a run; "" for none."""

    def search(self, query: str) -> str:
        """The address of the runs that a filter of the browser finds."""


def esc(text: object) -> str:
    """Text as it may stand in HTML: control and invisible characters visible, markup escaped."""
    return escape(sanitize(str(text)), quote=True)


def render(
    analysis: Analysis, figures: Sequence[Figure], title: str = "Analysis of runs", links: RunLinks | None = None
) -> str:
    """The report as one HTML document. Deterministic: it holds no time stamp and no path of this machine."""
    drawn = {figure.name: figure for figure in figures}
    style, script = _asset("report.css"), _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    sections = [
        (section, "".join(_section(section, analysis.tables, drawn, links))) for section in _outline(analysis.tables)
    ]
    shown = [(section, body) for section, body in sections if body]
    contents = "".join(f'<li><a href="#{section.id}">{esc(section.title)}</a></li>' for section, _ in shown)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{esc(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<div class=\"page\">\n"
        f'<nav aria-label="Contents"><ol>{_back(links)}<li><a href="#top">Findings</a></li>{contents}'
        '<li><a href="#methods">Methods</a></li></ol><button id="theme" type="button" hidden>Colours: auto</button></nav>\n'
        f'<main id="top">\n<h1>{esc(title)}</h1>\n{_head(analysis, links)}\n'
        + "".join(
            f'<section aria-labelledby="{section.id}"><h2 id="{section.id}">{esc(section.title)}</h2>\n'
            f"<p>{esc(section.intro)}</p>\n{body}</section>\n"
            for section, body in shown
        )
        + _methods(analysis.tables)
        + f"</main>\n</div>\n<script>{script}</script>\n</body>\n</html>\n"
    )  # fmt: skip


def write_report(analysis: Analysis, folder: Path, *, title: str = "Analysis of runs", png: bool = True) -> list[Path]:
    """Writes tables/, tables.json, figures/ and report.html into `folder` (made if absent) and returns the paths.

    Raises InputError when the folder cannot be written.
    """
    from ..errors import InputError
    from .figures import draw_all, write

    figures = draw_all(analysis.tables, analysis.runs, png=png)
    try:
        out = write_tables(analysis, folder)
        out += write(figures, folder / "figures")
        page = folder / "report.html"
        with whole(page) as part:
            part.write_text(render(analysis, figures, title), encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", "choose another --out", folder) from error
    return [*out, page]


def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _back(links: RunLinks | None) -> str:
    return f'<li><a href="{esc(links.search(""))}">All runs</a></li>' if links else ""


def _head(analysis: Analysis, links: RunLinks | None) -> str:
    runs = analysis.runs
    counts = [f"{runs.height:,} run{'s' if runs.height != 1 else ''}"]
    for name in ("agent", "task", "track", "tier"):
        n = runs[name].drop_nulls().n_unique()
        counts.append(f"{n} {name}{'s' if n != 1 else ''}")
    judges = ", ".join(str(judge) for judge in runs["judge"].drop_nulls().unique().sort().to_list()[:4])
    meta = f"{' · '.join(counts)}{f' · judged by {judges}' if judges else ''} · ambjudge {__version__}"
    lines = findings(analysis.tables)
    rests = " ".join(text for row in basis(runs).iter_rows(named=True) for text in sentences(row))
    if lines and lines[0].text in rests:
        lines = lines[1:]
    to_runs = [f' <a href="{esc(links.search(line.runs))}">runs</a>' if links and line.runs else "" for line in lines]
    body = "".join(f"<li>{esc(line.text)}{to}</li>" for line, to in zip(lines, to_runs, strict=True))
    said = f'<ul class="findings">{body}</ul>' if body else '<p class="empty">No finding: the tables say why.</p>'
    return f'<p class="meta">{esc(meta)}</p>\n<p class="meta">{esc(rests)}</p>\n{said}'


def _outline(tables: Mapping[str, pl.DataFrame]) -> Iterator[Section]:
    """SECTIONS, and at the end whatever tables they do not name."""
    yield from SECTIONS
    named = {item.name for section in SECTIONS for item in section.items if item.kind == "table"}
    rest = [name for name in tables if name not in named]
    if rest:
        yield Section("more", "More tables", "Computed beside the above.", tuple(Item("table", name) for name in rest))


def _section(
    section: Section, tables: Mapping[str, pl.DataFrame], drawn: Mapping[str, Figure], links: RunLinks | None
) -> Iterator[str]:
    present = [i for i in section.items if (i.name in tables if i.kind == "table" else i.name in drawn)]
    if not any(item.kind == "table" or drawn[item.name].svg for item in present):
        return
    for item in present:
        if item.kind == "figure":
            yield _figure(drawn[item.name])
        else:
            yield _table(item, tables[item.name], links)


def _figure(figure: Figure) -> str:
    from .figures.style import inline

    if figure.svg is None:
        return f'<p class="empty">{esc(figure.title)}: not drawn, {esc(figure.reason)}.</p>\n'
    return (
        f'<figure>\n<div class="plot">{inline(sanitize(figure.svg), figure.description)}</div>\n'
        f"<figcaption><strong>{esc(figure.title)}.</strong> {esc(figure.caption)}</figcaption></figure>\n"
    )


def _table(item: Item, table: pl.DataFrame, links: RunLinks | None) -> str:
    for column, value in item.where.items():
        if column in table.columns:
            table = table.filter(pl.col(column) == value)
    about = TABLES.get(item.name)
    title = item.title or (about.title if about else item.name)
    note = f'<p class="note">{esc(about.note)} <a href="#m-{esc(item.name)}">Methods</a></p>' if about else ""
    if table.is_empty():
        body = '<p class="empty">No rows: nothing in these runs belongs here.</p>'
    elif table.columns == ["reason"]:
        body = f'<p class="empty">Not computed: {esc(table["reason"][0])}.</p>'
    else:
        shown = display(table, item.name, most=MOST_ROWS, hide=(*item.hide, *item.where))
        body = html_table(shown, item.name, links)
    if item.folded:
        return f"<details><summary>{esc(title)}</summary>\n{note}{body}</details>\n"
    return f"<h3>{esc(title)}</h3>\n{note}{body}\n"


def html_table(shown: Display, name: str, links: RunLinks | None = None) -> str:
    """A display as a sortable table with its numbered notes below."""
    heads = "".join(
        f'<th scope="col"{" class=num" if right else ""}>{esc(text)}</th>'
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
            cells.append(f'<td class="{kind}"{sort}>{_text(cell, links)}{marks}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    notes = "".join(f"<li>{esc(text)}</li>" for text in shown.notes)
    more = (
        f'<p class="note">{shown.left_out:,} more rows are in tables/{esc(name)}.csv.</p>' if shown.left_out else ""
    )  # fmt: skip
    return (
        f'<div class="scroll" tabindex="0"><table class="sortable"><thead><tr>{heads}</tr></thead>\n<tbody>'
        + "\n".join(lines)
        + f"</tbody></table></div>{f'<ol class=remarks>{notes}</ol>' if notes else ''}{more}"
    )


def _text(cell: Cell, links: RunLinks | None) -> str:
    """A cell's text; the runs that it names lead to their pages."""
    if links is None or not cell.runs:
        return esc(cell.text)
    places = [(run, links.link(run)) for run in cell.runs]
    return ", ".join(f'<a href="{esc(place)}">{esc(run)}</a>' if place else esc(run) for run, place in places)


def _methods(tables: Mapping[str, pl.DataFrame]) -> str:
    terms = "".join(f"<dt>{esc(term)}</dt><dd>{esc(text)}</dd>" for term, text in _TEXT_METHODS)
    blocks = []
    for name, table in tables.items():
        rows = methods(table)
        about = TABLES.get(name)
        title = about.title if about else name
        if not rows:
            blocks.append(
                f'<p id="m-{esc(name)}" class="note">{esc(title)}: counts and descriptions, no estimates.</p>'
            )
            continue
        body = "".join(_method_row(row.values()) for row in rows)
        heads = "".join(f'<th scope="col">{esc(text)}</th>' for text in METHOD_HEADINGS)
        blocks.append(
            f'<details id="m-{esc(name)}"><summary>{esc(title)}</summary><div class="scroll" tabindex="0"><table>'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></details>"
        )
    return (
        '<section aria-labelledby="methods"><h2 id="methods">Methods</h2>\n'
        f"<dl>{terms}</dl>\n<h3>Estimand, population, method, counts and warnings of every number</h3>\n"
        + "\n".join(blocks)
        + "</section>\n"
    )


def _method_row(values: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{esc(value)}</td>" for value in values) + "</tr>"
