"""The site: a page a run, written while scorecards stream by; beside them the table, the comparison
and the report."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..atomic_files import PART, NewFile, cannot_be_written, whole
from ..errors import AmbjudgeError, InputError
from ..judge.card.scorecard import ScoreCard
from ..judge.card.view import criterion_mark
from ..rubrics.load import builtin_ids, load_rubric
from ..sanitize import sanitize
from ..trajectories.reading.layout import resolve_run_path
from ..trajectories.reading.load import load_conversation
from ..trajectories.stages import STAGE_NAMES, STAGES
from ..version import __version__
from ..views.run_fields import filter_fields
from ..views.run_filter import FILTER_HELP
from ..views.run_rows import RunRow, row_of
from .frame_rows import rows_of_frame
from .run_page import LIMITS, Contents
from .site_links import DATA, PAGES, Pages

if TYPE_CHECKING:
    from ..analysis.report.results import Analysis
    from ..analysis.tables.card_sources import Scoring
    from ..rubrics.model import Rubric
    from ..trajectories.models import Run

HERE = Path(__file__).parent
ASSETS = ("site.css", "run_filter.js", "site.js")
MOST_IN_CELL = 300
"""Characters of a text, items of a list in the table."""
_PAGE = re.compile(r"[a-z0-9_-]+-[0-9a-f]{8}(-\d+)?\.html")
"""What `Site._name` makes."""
MOST_BYTES = 300_000
"""Of a page."""
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
    "span",
)
"""Of a row of the table, as `RunRow` names them."""


class Site:
    """Writes into a folder: `add` for every scorecard, then `finish`. Memory grows by a name a run."""

    def __init__(
        self,
        out: Path,
        *,
        near: Sequence[Path] = (),
        title: str = "Runs",
        rubric: Rubric | None = None,
    ) -> None:
        """`near` are folders from which scorecards may name their runs; `rubric` has the words of
        criteria where it is no built-in one. InputError when `out` holds something else."""
        self.out, self.near, self.title, self.rubric = out, near, title, rubric
        self.pages = Pages()
        self.without_transcript = 0
        """Pages that hold the scorecard alone."""
        self.without_page = 0
        """Runs that came as numbers of a frame."""
        self._rows = 0
        self._names: set[str] = set()
        self._rubrics: dict[tuple[str, ...], int] = {}
        self._titles: list[list[tuple[str, str]]] = []
        with cannot_be_written(out):
            if out.is_dir() and not (out / DATA).is_file() and not all(map(_begun, out.iterdir())):
                raise InputError(
                    "holds other files", "give a new or empty folder, or a site to write anew", out
                )
            (out / PAGES).mkdir(parents=True, exist_ok=True)
        self._new = NewFile(out / DATA)
        self._data: IO[str] = self._new.part.open("w", encoding="utf-8")
        self._data.write(f"window.AMBJUDGE = {{fields: {json.dumps(FIELDS)}, rows: [\n")

    def add(self, card: ScoreCard) -> None:
        """Writes the page of a scorecard and its row."""
        name = self._name(card)
        self.pages.add(card.run.id, name)
        self._write(f"{PAGES}/{name}.html", self._page(card))
        values = row_values(row_of(self._rows, card.to_dict()), name)
        results = [result for stage in card.stages.values() for result in stage.criteria]
        results = results[:MOST_IN_CELL]
        values += [
            self._rubric(card, [result.id for result in results]),
            [criterion_mark(result).text for result in results],
        ]
        groups = [(name, stage.score) for name, stage in card.stages.items() if name not in STAGES]
        self._row([*values, _clean(tuple(groups))])

    def add_frame(self, table: pl.DataFrame) -> None:
        """Writes the rows of runs of which a frame has the numbers alone."""
        none = self._number(())
        for row, groups in rows_of_frame(table, self._rows):
            self._row([*row_values(row, ""), none, [], _clean(groups)])
            self.without_page += 1

    def _row(self, values: list[Any]) -> None:
        self._data.write((",\n" if self._rows else "") + json.dumps(values, separators=(",", ":")))
        self._rows += 1

    def finish(self, report: str | None = None, unread: int = 0) -> None:
        """Writes the rest, and removes pages of an earlier site that are no longer part of it."""
        self._data.write(f"\n], rubrics: {json.dumps(self._titles)}}};\n")
        self._data.close()
        self._new.keep()
        for asset in ASSETS:
            self._write(asset, _asset(asset))
        common = {
            "title": self.title,
            "runs": self._rows,
            "bare": self.without_page,
            "unread": unread,
            "report": report is not None,
            # A site has no index of what runs say.
            "filter_help": [pair for pair in FILTER_HELP if not pair[0].startswith("text:")],
        }
        for page in ("index", "compare"):
            self._write(f"{page}.html", _templates().get_template(f"{page}.html").render(common))
        if report is not None:
            self._write("report.html", report)
        else:
            (self.out / "report.html").unlink(missing_ok=True)
        for old in (self.out / PAGES).iterdir():
            if old.suffix == ".html" and old.stem not in self._names:
                old.unlink()

    def _name(self, card: ScoreCard) -> str:
        """A file name for the page of a card, the same each time: harmless on every system, and no
        two alike."""
        key = "\0".join((card.run.id, card.run.sha256, card.judge.name, card.rubric.sha256))
        digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:8]
        stem = re.sub(r"[^a-z0-9_-]+", "-", card.run.id[:200].lower()).strip("-")[:60] or "run"
        name, number = f"{stem}-{digest}", 1
        while name in self._names:
            number += 1
            name = f"{stem}-{digest}-{number}"
        self._names.add(name)
        return name

    def _page(self, card: ScoreCard) -> str:
        rubric = self._words(card)
        run, note = self._run(card)
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
            if len(page.encode()) <= MOST_BYTES:
                break
        return page

    def _run(self, card: ScoreCard) -> tuple[Run | None, str]:
        """The run that a card is of. Another one at its path is not shown: a card may name any
        file."""
        where = resolve_run_path(Path(card.run.path), self.near)
        if where is None:
            return None, ""
        try:
            run = load_conversation(where)
        except AmbjudgeError:
            return None, "The conversation cannot be read: its turns cannot be shown."
        if run.sha256 != card.run.sha256:
            return (
                None,
                (
                    "The conversation has changed since this scorecard was made: its turns are not"
                    " shown."
                ),
            )
        return run, ""

    def _words(self, card: ScoreCard) -> Rubric | None:
        """The rubric that a card names: the given one, else a built-in one, never a file that a
        card names."""
        given = self.rubric
        return (
            given
            if given is not None and given.id == card.rubric.id
            else _rubric_named(card.rubric.id)
        )

    def _rubric(self, card: ScoreCard, ids: Sequence[str]) -> int:
        """The number of the list of criteria that a card has."""
        rubric = self._words(card)
        return self._number(
            tuple(ids), {c.id: c.title for c in rubric.criteria()} if rubric else card.rubric.titles
        )

    def _number(
        self, ids: tuple[str, ...], titles: Mapping[str, str] = MappingProxyType({})
    ) -> int:
        if ids not in self._rubrics:
            self._rubrics[ids] = len(self._titles)
            self._titles.append([(sanitize(id), sanitize(titles.get(id, ""))) for id in ids])
        return self._rubrics[ids]

    def _write(self, name: str, text: str) -> None:
        with whole(self.out / name) as new:
            new.write_text(text, "utf-8", errors="replace", newline="\n")


def build(
    source: Any,
    out: Path,
    *,
    paths: Sequence[str] = (),
    on_card: Callable[[], None] | None = None,
    scoring: Scoring | None = None,
    judge: str | None = None,
    runs: str | None = None,
    title: str = "Runs",
    report: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Analysis:
    """Writes the site of these paths in one pass over their scorecards (`cohorts.cohort` says what
    they can be); the analysis that its report shows. Scorecards may name runs in the folders around
    `paths`, and in `runs`.

    InputError when nothing can be read, or `out` cannot be written or holds other files.
    """
    from ..analysis.report.results import analyse
    from ..analysis.tables.card_sources import each_card

    problems: list[str] = []
    near = [
        base
        for path in [*paths, *([runs] if runs else [])]
        if "://" not in path
        for base in _bases(Path(path))
    ]
    named = scoring.options.rubric if scoring is not None and scoring.options is not None else None
    rubric = load_rubric(named) if named else None
    site = Site(out, near=near, title=title, rubric=rubric)

    def cards() -> Iterator[ScoreCard | pl.DataFrame]:
        for item in each_card(source, problems, scoring):
            if isinstance(item, pl.DataFrame):
                site.add_frame(item if judge is None else item.filter(pl.col("judge") == judge))
            elif judge is None or item.judge.name == judge:
                site.add(item)
            yield item

    found = analyse(cards(), on_card=on_card, judge=judge, only=None if report else ())
    found = replace(found, cohort=replace(found.cohort, problems=(*problems, *found.problems)))
    text = None
    if report:
        from ..analysis.figures import draw_all
        from ..analysis.report.html_report import render

        text = render(
            found, draw_all(found.tables, found.runs, png=False, narrow=True), title, site.pages
        )
    site.finish(text, len(found.problems))
    if site.without_transcript:
        tell(
            f"{site.without_transcript:,} pages without a transcript; --runs says where the"
            " runs are"
        )
    return found


def _asset(name: str) -> str:
    """A file of the site; the filter script begins with the fields that it filters by."""
    text = (HERE / name).read_text("utf-8")
    if name == "run_filter.js":
        return f"const FILTER_FIELDS = {json.dumps(filter_fields())};\n{text}"
    return text


def row_values(row: RunRow, page: str) -> list[Any]:
    """FIELDS of a row, as the scripts of the site read them."""
    named = {**row._asdict(), "page": page}
    return [_clean(named[field]) for field in FIELDS]


def _bases(path: Path) -> Iterator[Path]:
    """Folders from which scorecards at a path may name their runs."""
    base = path.absolute()
    yield from (base, *base.parents[:3]) if base.is_dir() else base.parents[:4]


def _begun(entry: Path) -> bool:
    """Whether this is of a site whose writing was broken off before it had its data."""
    if entry.name == PAGES and entry.is_dir():
        return all(
            _PAGE.fullmatch(page.name) or page.name.endswith(PART) for page in entry.iterdir()
        )
    return entry.name.endswith(PART)


def _clean(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_clean(item) for item in value[:MOST_IN_CELL]]
    if isinstance(value, Mapping):
        return {_clean(name): _clean(item) for name, item in islice(value.items(), MOST_IN_CELL)}
    return sanitize(value[:MOST_IN_CELL]) if isinstance(value, str) else value


@cache
def _rubric_named(id: str) -> Rubric | None:
    """The built-in rubric that a card names."""
    return load_rubric(id) if id in builtin_ids() else None


@cache
def _templates() -> Environment:
    """Every text is made visible and escaped where it enters a page; a name that is not there is an
    error."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["STAGE_NAMES"] = STAGE_NAMES
    made.filters["cut"] = _cut
    return made


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    return sanitize(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _cut(text: str, most: int) -> str:
    """A text of at most so many characters, its end cut with a word how much."""
    return text if len(text) <= most else f"{text[:most]} … {len(text) - most:,} more characters"
