"""ambjudge export: scorecards, verdicts and labels as files for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import Place, complain, opened, place_of, scoring_of, stored_cards, tell
from .options import PATHS, cohort_options
from .table_files import format_of, target_of, texts_of, write_parquet, write_text

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.tables.card_sources import Scoring
    from ..judge.card.scorecard import ScoreCard


KINDS = ("scorecards", "runs", "criteria", "codes", "verdicts", "labels")
FORMATS = ("jsonl", "csv", "parquet")


@click.command(
    "export",
    epilog=(
        "\b\nExamples:\n  ambjudge export runs/ --out runs.parquet\n"
        "  ambjudge export runs/.ambjudge/ambjudge.db --what verdicts --out verdicts.csv\n"
        "  ambjudge export runs/ --what criteria | jq 'select(.value == 0)'"
    ),
)
@PATHS
@click.option(
    "--what",
    type=click.Choice(KINDS),
    default="runs",
    metavar="TABLE",
    help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}.  [runs]",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="jsonl, csv or parquet.  [by the suffix of --out; else jsonl]",
)
@click.option(
    "--out", metavar="FILE", type=click.Path(), help="Write a file, whole or not at all.  [stdout]"
)
@cohort_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Scorecards as they are (jsonl), or one row a run, criterion, fired code, stored verdict or
    human label.

    PATH: a store, a folder with a store, or whatever `analyze` reads. A folder's own scorecards and
    verdicts are those of the nearest store; without one its runs are scored by the rules judge
    first. Labels: a store, or label files. What is unknown is null or empty, never 0. In CSV an
    apostrophe stands before texts that a spreadsheet would take for a formula.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    what = flags["what"]
    out = None if flags["out"] in (None, "-") else Path(flags["out"])
    kind = flags["kind"] or format_of(out)
    if what == "scorecards" and kind != "jsonl":
        raise InputError(f"a scorecard is no row of {kind}", "use --format jsonl, or --what runs")
    if kind == "parquet" and out is None:
        raise InputError("parquet cannot go to stdout", "name a file with --out")
    if out is not None:
        out = target_of(out, paths)
    reading = _Reading(obj, paths, scoring_of(obj, flags), flags["store"])
    try:
        if what == "scorecards":
            write_text(out, (card.to_json() + "\n" for card in reading.cards()))
        elif kind == "parquet" and out is not None:
            write_parquet(out, reading.tables(what))
        else:
            write_text(out, texts_of(reading.tables(what), kind))
    finally:
        reading.progress.clear()
    complain(reading.problems)
    tell(reading.scoring, flags, obj["quiet"])
    if out is not None:
        rows = reading.done if what == "scorecards" else reading.rows
        console.note(
            f"wrote {rows} {'scorecards' if what == 'scorecards' else 'rows'} to {out}",
            obj["quiet"],
        )
    return 1 if reading.problems else 0


@dataclass
class _Reading:
    """Tables and scorecards of what a command line names, in batches; counts them and collects what
    cannot be read."""

    obj: dict[str, Any]
    paths: tuple[str, ...]
    scoring: Scoring
    store: str | None = None
    problems: list[str] = field(default_factory=list)
    done: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        self.progress = console.Progress("read", None, self.obj["quiet"])

    def tables(self, what: str) -> Iterator[pl.DataFrame]:
        """The table `what` in parts, at least one, which may be empty."""
        import polars as pl

        from ..analysis.tables import flat_tables as rows_of

        made: dict[str, Callable[[], Iterable[pl.DataFrame]]] = {
            "runs": self._runs,
            "criteria": lambda: self._rows(
                "criteria", (r for card in self.cards() for r in rows_of.criterion_rows(card))
            ),
            "codes": lambda: self._rows(
                "codes", (r for card in self.cards() for r in rows_of.code_rows(card))
            ),
            "verdicts": lambda: self._rows("verdicts", self._verdicts()),
            "labels": lambda: self._rows("labels", self._labels()),
        }
        try:
            for table in made[what]():
                self.rows += table.height
                yield table
        except pl.exceptions.PolarsError as error:
            raise InputError(
                f"no table can hold this: {str(error).splitlines()[0]}",
                "run `ambjudge verify` on the scorecards",
            ) from error

    def cards(self) -> Iterator[ScoreCard]:
        """The scorecards, one at a time; ready-made tables of runs hold none, which is an
        InputError."""
        for item in self._items():
            if not hasattr(item, "stages"):
                raise InputError(
                    "a table of runs has no scorecards to take this from", "give the scorecards"
                )
            yield item

    def _runs(self) -> Iterator[pl.DataFrame]:
        """The analysis frame. It is whole in memory, columns only: means over criteria that no tier
        credits need all runs."""
        from ..analysis.tables.cohorts import cohort
        from ..analysis.tables.flat_tables import BATCH, finite

        found = cohort(self._items())
        self.problems += found.problems
        yield from finite(found.runs).iter_slices(BATCH) if found.runs.height else [found.runs]

    @staticmethod
    def _rows(what: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[pl.DataFrame]:
        from ..analysis.tables.flat_tables import SCHEMAS, batches

        return batches(rows, SCHEMAS[what])

    def _items(self) -> Iterator[Any]:
        """Scorecards, and frames where a path is one. InputError when all that was found is broken."""
        from ..analysis.tables.card_sources import each_card

        cards = stored_cards(self.obj, self.paths, self.store)
        yield from map(self._seen, each_card(cards, self.problems, self.scoring))
        if self.problems and not self.done:
            raise InputError(
                f"no scorecard could be read; first: {self.problems[0]}",
                "check what the files hold",
            )

    def _seen(self, item: Any) -> Any:
        self.done += 1
        self.progress.update(self.done)
        return item

    def _verdicts(self) -> Iterator[tuple[Any, ...]]:
        from ..analysis.tables.flat_tables import BATCH, verdict_rows

        for path in self.paths:
            place = place_of(self.obj, path, self.store)
            if place.store is None:
                raise InputError(
                    "holds no verdicts: not a store, and no store is near", "name the store", path
                )
            with opened(place, self.obj["quiet"]) as store:
                prefix = "" if place.below is None else store.prefix(place.below)
                verdicts = store.iter_verdicts()
                while chunk := list(islice(verdicts, BATCH)):
                    runs = store.runs_of({verdict.run_ref for verdict in chunk})
                    meant = [
                        v for v in chunk if store.relative(runs[v.run_ref].path).startswith(prefix)
                    ]
                    calls = store.calls_of({verdict.call_id for verdict in meant})
                    yield from map(self._seen, verdict_rows(meant, runs, calls))

    def _labels(self) -> Iterator[tuple[Any, ...]]:
        """Rows of the labels in stores and label files. What is none among other files is named and
        left out."""
        from ..analysis.tables.card_sources import is_store
        from ..analysis.tables.flat_tables import label_rows
        from ..judge.store import DEFAULT_STORE
        from ..judge.trust.label_sources import each_label

        for path in self.paths:
            # A folder of labels is near a store as often as not: only one that lies in the folder
            # itself is the folder's.
            inside = Path(path) / DEFAULT_STORE
            place = Place(inside) if inside.is_file() else Place(path if is_store(path) else None)
            here = 0
            for where, labels in each_label(place.store or path, strict=True):
                here += 1
                if not isinstance(labels, InputError):
                    self._seen(where)
                    yield from label_rows(labels)
                elif place.store is None and Path(path).is_dir():
                    self.problems.append(str(labels))
                else:
                    raise labels
            if place.store is None and not here:
                raise InputError(
                    "no store and no label files found here",
                    "name a store, or a folder of labels",
                    path,
                )
        if self.problems and not self.done:
            raise InputError(
                f"no labels could be read; first: {self.problems[0]}",
                "name a folder of label files",
            )
