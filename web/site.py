"""The site: a page for each run, the table of runs, the comparison of two, and the report.

Pages are written while scorecards stream by, so that a cohort of any size takes little memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from jinja2 import Environment

from ..analysis.report.page_templates import environment as html_environment
from ..atomic_files import PART, NewFile, atomic_write, refuse_links, write_errors_named
from ..errors import AmbjudgeError, InputError
from ..judge.card.scorecard import ScoreCard
from ..judge.card.view import criterion_mark
from ..rubrics.load import builtin_ids, load_rubric, load_rubrics
from ..sanitize import sanitize
from ..trajectories.reading.layout import resolve_run_path
from ..trajectories.reading.load import load_conversation
from ..trajectories.stages import STAGE_NAMES
from ..version import __version__
from ..views.frame_rows import rows_of_frame
from ..views.outcome_columns import outcome_columns
from ..views.run_fields import filter_fields
from ..views.run_filter import FILTER_HELP
from ..views.run_rows import RunRow, row_of
from .board_page import BOARD_DATA, BoardPage, board_page
from .run_page import LIMITS, Contents
from .site_links import DATA, PAGES, SiteLinks
from .stage_rubrics import UsedRubric

if TYPE_CHECKING:
    from ..analysis.report.results import Analysis
    from ..analysis.tables.card_sources import CardFilter, CardReading
    from ..judge.card.choice import CardChoice
    from ..rubrics.model import Rubric
    from ..trajectories.models import Run

FOLDER = Path(__file__).parent
ASSETS = ("site.css", "run_filter.js", "site.js")
BOARD_FILES = ("board.html", "board.js", BOARD_DATA)
MAX_CELL_LENGTH = 300
"""Characters of a text, and items of a list, in the table."""
_MARK = b"ambjudge"
"""Stands at the head of every page and script of a site."""
_MARK_WITHIN = 2_000
"""Bytes of a file in which the mark stands, if the file is ours."""
_PAGE_FILE = re.compile(r"[a-z0-9_-]+-[0-9a-f]{8}(-\d+)?\.html")
"""File names that `Site._page_name` makes."""
MAX_BYTES = 300_000
"""Size of a page."""
FIELDS = (
    "page",
    "id",
    "state",
    "agent",
    "model",
    "task",
    "track",
    "tier",
    "repeat",
    "turns",
    "stages",
    "agentic",
    "task_score",
    "overall",
    "codes",
    "primary",
    "ended",
    "disqualified",
    "failed_calls",
    "failed_steps",
    "contradictions",
    "unscored",
    "unverified",
    "judge",
    "rubric",
    "cost",
    "unknown",
    "presumed",
    "read",
    "outcomes",
    "groups",
    "span",
    "parts",
)
"""The fields of `RunRow` that the table of the site holds, and the page of the run."""


@dataclass(frozen=True)
class _SiteRow:
    """A row of the table of runs."""

    row: RunRow
    page: str
    """Name of the run's page; "" for a run of a frame, which has numbers and no words."""
    more: tuple[int, list[str]]
    """Number of the list of criteria, and their marks."""


class Site:
    """Writes a site into a folder: `add` for every scorecard, then `finish`."""

    def __init__(
        self,
        out: Path,
        *,
        near: Sequence[Path] = (),
        title: str = "Runs",
        rubrics: Sequence[Rubric] = (),
    ) -> None:
        """`near` are folders from which scorecards may name their runs; `rubrics` the user's own.

        InputError if `out` holds other files.
        """
        self.out, self.near, self.title, self.rubrics = out, near, title, rubrics
        self.without_transcript = 0
        """Pages that hold the scorecard alone."""
        self._rows: list[_SiteRow] = []
        self._page_names: set[str] = set()
        self._criteria_numbers: dict[tuple[str, ...], int] = {}
        """Numbers of the lists of criteria ids, which many rows share."""
        self._criteria: list[list[tuple[str, str]]] = []
        """Those lists, as (id, title)."""
        self._used_rubrics: dict[tuple[str, str], UsedRubric] = {}
        with write_errors_named(out):
            is_site = not out.is_dir() or (out / DATA).is_file()
            if not is_site and not all(map(_is_unfinished_site, out.iterdir())):
                raise InputError(
                    "holds other files", "give a new or empty folder, or a site to write anew", out
                )
            refuse_links(out / PAGES, out)
            (out / PAGES).mkdir(parents=True, exist_ok=True)

    def add(self, card: ScoreCard) -> None:
        """Write the page of a scorecard and its row."""
        name = self._page_name(card)
        self._write(f"{PAGES}/{name}.html", self._page(card))
        row = row_of(len(self._rows), card.to_dict())
        results = [result for stage in card.stages.values() for result in stage.criteria]
        results = results[:MAX_CELL_LENGTH]
        criteria = self._criteria_of(card, tuple(result.id for result in results))
        self._note_rubric(card)
        marks = [criterion_mark(result).text for result in results]
        self._rows.append(_SiteRow(row, name, (criteria, marks)))

    def add_frame(self, table: pl.DataFrame) -> None:
        """Write the rows of a run frame; its runs have no pages."""
        no_criteria = self._criteria_number((), {})
        for id, version in table.select("rubric", "rubric_version").unique().sort(pl.all()).rows():
            if id:
                self._note_rubric_of_frame(id, version or "")
        for row in rows_of_frame(table, len(self._rows)):
            self._rows.append(_SiteRow(row, "", (no_criteria, [])))

    def select(self, numbers: Sequence[int], ids: Sequence[str]) -> None:
        """Keep only these of the added rows, in this order, under the ids that the analysis uses.

        The pages of the others are removed by `finish`.
        """
        rows = (self._rows[number] for number in numbers)
        self._rows = [
            replace(row, row=row.row._replace(number=number, id=run_id))
            for number, (row, run_id) in enumerate(zip(rows, ids, strict=True))
        ]
        self._page_names = {row.page for row in self._rows if row.page}

    @property
    def links(self) -> SiteLinks:
        """Links to the pages of the runs."""
        links = SiteLinks()
        for row in self._rows:
            if row.page:
                links.add(row.row.id, row.page)
        return links

    @property
    def used_rubrics(self) -> list[UsedRubric]:
        """The rubrics of the runs in the table, by id and version."""
        names = {row.row.rubric for row in self._rows}
        return [
            self._used_rubrics[key]
            for key in sorted(self._used_rubrics)
            if " ".join(filter(None, key)) in names
        ]

    def finish(
        self, report: str | None = None, unread: int = 0, board: BoardPage | None = None
    ) -> None:
        """Write the other files, and remove pages of an earlier site that are not part of this one.

        `report` is its HTML; `unread` counts inputs that could not be read.
        """
        self._write_data()
        for asset in ASSETS:
            self._write(asset, _asset(asset))
        common = {
            "title": self.title,
            "runs": len(self._rows),
            "bare": sum(not row.page for row in self._rows),
            "unread": unread,
            "report": report is not None,
            "board": board is not None,
            # A site has no index of what runs say.
            "filter_help": [pair for pair in FILTER_HELP if not pair[0].startswith("text:")],
        }
        for page in ("index", "compare"):
            self._write(f"{page}.html", _templates().get_template(f"{page}.html").render(common))
        if report is not None:
            self._write("report.html", report)
        else:
            _remove_own(self.out / "report.html")
        self._write_board(board, common)
        for file in (self.out / PAGES).iterdir():
            if _PAGE_FILE.fullmatch(file.name) and file.stem not in self._page_names:
                _remove_own(file)

    def _write_board(self, board: BoardPage | None, common: Mapping[str, Any]) -> None:
        if board is None:
            for name in BOARD_FILES:
                _remove_own(self.out / name)
            return
        page = _templates().get_template("board.html").render(common, it=board)
        self._write("board.html", page)
        self._write("board.js", _asset("board.js"))
        self._write(BOARD_DATA, board.data)

    def _write_data(self) -> None:
        """Write the table of runs, a line each."""
        refuse_links(self.out / DATA, self.out)
        new = NewFile(self.out / DATA)
        with new.part.open("w", encoding="utf-8") as data:
            data.write(f"window.AMBJUDGE = {{fields: {json.dumps(FIELDS)}, rows: [\n")
            separator = ""
            for row in self._rows:
                values = [*row_values(row.row, row.page), *row.more]
                data.write(separator + json.dumps(values, separators=(",", ":")))
                separator = ",\n"
            rubrics, outcomes = json.dumps(self._criteria), json.dumps(self._outcomes())
            data.write(f"\n], rubrics: {rubrics}, outcomes: {outcomes}}};\n")
        new.keep()

    def _outcomes(self) -> list[dict[str, str | int]]:
        """The columns of outcomes, as the script of the table draws them."""
        return [
            {
                "name": sanitize(outcome.name),
                "title": sanitize(outcome.title),
                "digits": outcome.digits,
            }
            for outcome in outcome_columns(row.row.outcomes for row in self._rows)
        ]

    def _page_name(self, card: ScoreCard) -> str:
        """A unique file name for the page of a card: the same each time, safe on all systems."""
        key = "\0".join((card.run.id, card.run.sha256, card.judge.name, card.rubric.sha256))
        digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:8]
        stem = re.sub(r"[^a-z0-9_-]+", "-", card.run.id[:200].lower()).strip("-")[:60] or "run"
        name, number = f"{stem}-{digest}", 1
        while name in self._page_names:
            number += 1
            name = f"{stem}-{digest}-{number}"
        self._page_names.add(name)
        return name

    def _page(self, card: ScoreCard) -> str:
        """The page's HTML, with as much of the transcript as fits into MAX_BYTES."""
        rubric = self._rubric_of(card)
        run, note = self._run_of(card)
        self.without_transcript += run is None
        template = _templates().get_template("run.html")
        page = ""
        for limits in LIMITS:
            contents = Contents(card, rubric, limits)
            if run is not None:
                contents.read(run)
            elif note:
                contents.note = note
            page = template.render(
                it=contents,
                words=limits.words,
                title=card.run.id,
                version=__version__,
            )
            if len(page.encode()) <= MAX_BYTES:
                break
        return page

    def _run_of(self, card: ScoreCard) -> tuple[Run | None, str]:
        """The run that a card is of; without one, a note that says why.

        Another conversation at the card's path is not shown: a card may name any file.
        """
        path = resolve_run_path(Path(card.run.path), self.near)
        if path is None:
            return None, ""
        try:
            run = load_conversation(path)
        except AmbjudgeError:
            return None, "The conversation cannot be read: its turns cannot be shown."
        if run.sha256 != card.run.sha256:
            note = (
                "The conversation has changed since this scorecard was made: its turns are not"
                " shown."
            )
            return None, note
        return run, ""

    def _rubric_of(self, card: ScoreCard) -> Rubric | None:
        """The rubric that a card names: the user's or a built-in one, never a file of that name."""
        for rubric in self.rubrics:
            if rubric.id == card.rubric.id:
                return rubric
        return _builtin_rubric(card.rubric.id)

    def _note_rubric(self, card: ScoreCard) -> None:
        """Remember the rubric of a card for the board."""
        used = card.rubric
        if (used.id, used.version) in self._used_rubrics:
            return
        text = self._rubric_of(card)
        is_exact = text is not None and text.sha256 == used.sha256
        titles = {
            name: {result.id: used.titles.get(result.id, "") for result in stage.criteria}
            for name, stage in card.stages.items()
        }
        self._used_rubrics[used.id, used.version] = UsedRubric(
            used.id, used.version, text, titles, is_exact
        )

    def _note_rubric_of_frame(self, id: str, version: str) -> None:
        """The same of a frame, which names no more than id and version."""
        text = _builtin_rubric(id)
        is_exact = text is not None and text.version == version
        used = UsedRubric(id, version, text, {}, is_exact)
        self._used_rubrics.setdefault((id, version), used)

    def _criteria_of(self, card: ScoreCard, ids: tuple[str, ...]) -> int:
        """The number of the card's list of criteria."""
        rubric = self._rubric_of(card)
        titles: Mapping[str, str] = card.rubric.titles
        if rubric is not None:
            titles = {criterion.id: criterion.title for criterion in rubric.criteria()}
        return self._criteria_number(ids, titles)

    def _criteria_number(self, ids: tuple[str, ...], titles: Mapping[str, str]) -> int:
        if ids not in self._criteria_numbers:
            self._criteria_numbers[ids] = len(self._criteria)
            self._criteria.append([(sanitize(id), sanitize(titles.get(id, ""))) for id in ids])
        return self._criteria_numbers[ids]

    def _write(self, name: str, text: str) -> None:
        with atomic_write(self.out / name, below=self.out) as new:
            new.write_text(text, "utf-8", errors="replace", newline="\n")


def build(
    source: Any,
    out: Path,
    *,
    paths: Sequence[str] = (),
    on_item: Callable[[ScoreCard | pl.DataFrame], None] = lambda item: None,
    reading: CardReading | None = None,
    choice: CardChoice | None = None,
    run_filter: CardFilter | None = None,
    runs: str | None = None,
    title: str = "Runs",
    report: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Analysis:
    """Write the site of a source in one pass over its scorecards; the analysis of its report.

    `cohorts.cohort` says what a source can be. Scorecards may name runs in the folders around
    `paths`, and in `runs`. For `reading`, `choice` and `run_filter` see `report.results.read`.
    `tell` gets notes for the user. InputError if nothing can be read, or `out` cannot be written or
    holds other files.
    """
    from ..analysis.report.results import analyse

    near: list[Path] = []
    for path in [*paths, *([runs] if runs else [])]:
        if "://" not in path:
            near += _folders_around(Path(path))
    options = reading.options if reading is not None else None
    rubrics = () if options is None else load_rubrics(options.rubric)
    site = Site(out, near=near, title=title, rubrics=rubrics)

    def add(item: ScoreCard | pl.DataFrame) -> None:
        on_item(item)
        if isinstance(item, pl.DataFrame):
            site.add_frame(item)
        else:
            site.add(item)

    analysis = analyse(
        source,
        on_item=add,
        reading=reading,
        choice=choice,
        run_filter=run_filter,
        only=None if report else (),
    )
    selection = analysis.cohort.selection
    if selection is not None:
        site.select(selection.numbers, analysis.cohort.selected_ids)
    report_html = None
    if report:
        from ..analysis.figures import draw_all
        from ..analysis.report.html_report import render

        figures = draw_all(analysis.tables, analysis.runs, png=False, narrow=True)
        report_html = render(analysis, figures, title, site.links)
    board = board_page(analysis.cohort, site.used_rubrics)
    site.finish(report_html, len(analysis.problems), board)
    if site.without_transcript:
        tell(
            f"{site.without_transcript:,} pages without a transcript; --runs says where the"
            " runs are"
        )
    return analysis


def _asset(name: str) -> str:
    """A file of the site; the filter script begins with the fields that it filters by."""
    text = (FOLDER / name).read_text("utf-8")
    if name == "run_filter.js":
        return f"const FILTER_FIELDS = {json.dumps(filter_fields())};\n{text}"
    return text


def row_values(row: RunRow, page: str) -> list[Any]:
    """FIELDS of a row, as the scripts of the site read them."""
    values = {**row._asdict(), "page": page}
    return [_cell(values[field]) for field in FIELDS]


def _folders_around(path: Path) -> Iterator[Path]:
    """Folders from which scorecards at a path may name their runs."""
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    yield from (folder, *folder.parents[:3])


def _is_unfinished_site(entry: Path) -> bool:
    """Whether an entry of a folder comes from a site whose writing was interrupted."""
    if entry.name == PAGES and entry.is_dir():
        return all(
            _PAGE_FILE.fullmatch(page.name) or page.name.endswith(PART) for page in entry.iterdir()
        )
    return entry.name.endswith(PART)


def _remove_own(file: Path) -> None:
    """Remove a file of an earlier site; a link, or anything else of the name, stays."""
    if file.is_symlink() or not file.is_file():
        return
    with file.open("rb") as stream:
        is_own = _MARK in stream.read(_MARK_WITHIN).lower()
    if is_own:
        file.unlink()


def _cell(value: Any) -> Any:
    """A value for the table: texts sanitised, texts and lists cut."""
    if isinstance(value, tuple):
        return [_cell(item) for item in value[:MAX_CELL_LENGTH]]
    if isinstance(value, Mapping):
        return {_cell(name): _cell(item) for name, item in islice(value.items(), MAX_CELL_LENGTH)}
    return sanitize(value[:MAX_CELL_LENGTH]) if isinstance(value, str) else value


@cache
def _builtin_rubric(id: str) -> Rubric | None:
    """The built-in rubric of this id; None if there is none."""
    return load_rubric(id) if id in builtin_ids() else None


@cache
def _templates() -> Environment:
    """The templates of the site, with what they all use."""
    environment = html_environment(FOLDER / "templates")
    environment.globals["STAGE_NAMES"] = STAGE_NAMES
    environment.filters["cut"] = _cut
    return environment


def _cut(text: str, most: int) -> str:
    """A text of at most so many characters, and how many more there are."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … {len(text) - most:,} more characters"
