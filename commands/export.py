"""ambjudge export: scorecards, verdicts and labels as files for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import (
    StorePlace,
    card_choice,
    card_reading,
    name_problems,
    note_reading,
    opened,
    place_of,
    run_filter,
)
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import PATHS, cohort_options
from .path_types import LocalPath
from .table_files import format_of, target_of, texts_of, write_parquet, write_text

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.tables.card_sources import CardReading
    from ..judge.card.choice import Selection
    from ..judge.card.scorecard import ScoreCard
    from .card_origins import CardOrigins


TABLES = ("scorecards", "runs", "criteria", "codes", "verdicts", "labels", "texts")
FORMATS = ("jsonl", "csv", "parquet")


@grouped_command(
    "export",
    "ambjudge export runs/ --out runs.parquet",
    "ambjudge export runs/.ambjudge/ambjudge.db --what verdicts --out verdicts.csv",
    "ambjudge export runs/ --what criteria | jq 'select(.value == 0)'",
)
@PATHS
@option(
    "--what",
    type=click.Choice(TABLES),
    default="runs",
    metavar="TABLE",
    help=f"Export this table: {', '.join(TABLES[:-1])} or {TABLES[-1]}.  [runs]",
)
@cohort_options
@option(
    "--format",
    "kind",
    heading="Output",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="Write jsonl, csv or parquet.  [by the suffix of --out; else jsonl]",
)
@option(
    "--out",
    heading="Output",
    metavar="FILE",
    type=LocalPath(),
    help="Write to a file, completely or not at all.  [stdout]",
)
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Export scorecards (jsonl), or one row for each run, criterion, fired code, stored verdict,
    human label, or text behind a hash (rubrics, criteria, prompts).

    PATH: a store, a folder with a store, or whatever `analyze` reads. A folder stands for the
    scorecards and verdicts in the nearest store; without one its runs are scored by the rules
    judge. Labels come from a store or from label files. Unknown values are null or empty, never 0.
    In CSV, texts that a spreadsheet would take for a formula begin with an apostrophe.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    table = flags["what"]
    out = None if flags["out"] in (None, "-") else Path(flags["out"])
    kind = flags["kind"] or format_of(out)
    if table == "scorecards" and kind != "jsonl":
        raise InputError(
            f"a scorecard is not a row of {kind}", "use --format jsonl, or --what runs"
        )
    if kind == "parquet" and out is None:
        raise InputError("Parquet cannot be written to stdout", "name a file with --out")
    if out is not None:
        out = target_of(out, paths)
    with ExitStack() as stack:
        reader = _Reader(obj, paths, flags, card_reading(obj, flags), stack)
        stack.callback(reader.progress.clear)
        if table == "scorecards":
            write_text(out, (card.to_json() + "\n" for card in reader.cards()))
        elif kind == "parquet" and out is not None:
            write_parquet(out, reader.tables(table))
        else:
            write_text(out, texts_of(reader.tables(table), kind))
    name_problems(reader.problems)
    note_reading(reader.reading, reader.selection, flags["policy"], obj["quiet"])
    if out is not None:
        count = f"{reader.items} scorecards" if table == "scorecards" else f"{reader.rows} rows"
        console.note(f"wrote {count} to {out}", obj["quiet"])
    return 1 if reader.problems else 0


@dataclass
class _Reader:
    """Reads what a command line names in batches; counts it and collects what cannot be read."""

    obj: dict[str, Any]
    paths: tuple[str, ...]
    flags: Mapping[str, Any]
    reading: CardReading
    stack: ExitStack
    """Closes what stays open while rows are written."""
    selection: Selection | None = None
    """Which scorecards count, once they were read."""
    problems: list[str] = field(default_factory=list)
    items: int = 0
    """Scorecards, verdicts or labels read so far."""
    rows: int = 0

    def __post_init__(self) -> None:
        self.progress = console.Progress("read", None, self.obj["quiet"])

    def tables(self, name: str) -> Iterator[pl.DataFrame]:
        """A table in parts, at least one, which may be empty."""
        import polars as pl

        sources: dict[str, Callable[[], Iterable[pl.DataFrame]]] = {
            "runs": self._runs,
            "criteria": self._criteria,
            "codes": self._codes,
            "verdicts": lambda: _batched("verdicts", self._verdict_rows()),
            "labels": lambda: _batched("labels", self._label_rows()),
            "texts": lambda: _batched("texts", self._text_rows()),
        }
        try:
            for table in sources[name]():
                self.rows += table.height
                yield table
        except pl.exceptions.PolarsError as error:
            raise InputError(
                f"no table can hold this: {str(error).splitlines()[0]}",
                "run `ambjudge verify` on the scorecards",
            ) from error

    def cards(self) -> Iterator[ScoreCard]:
        """The scorecards that count, one at a time. InputError for a ready-made table of runs,
        which has none."""
        from ..analysis.tables.card_sources import each_chosen_card

        cards = each_chosen_card(
            self.paths,
            self.problems,
            self.reading,
            card_choice(self.flags),
            run_filter(self.flags, self.paths),
            on_selection=self._set_selection,
        )
        yield from map(self._counted, cards)
        if self.problems and not self.items:
            raise InputError(
                f"no scorecard could be read; first: {self.problems[0]}",
                "check the contents of the files",
            )

    def _set_selection(self, selection: Selection) -> None:
        self.selection = selection

    def _runs(self) -> Iterator[pl.DataFrame]:
        """The run frame. All of it is in memory, because means over criteria that no tier credits
        need all runs."""
        import polars as pl

        from ..analysis.tables.cohorts import cohort
        from ..analysis.tables.flat_tables import BATCH, finite
        from .card_origins import sha256_of

        origins = self._origins()
        times: list[str | None] = []

        def on_item(item: ScoreCard | pl.DataFrame) -> None:
            self._counted(item)
            if not isinstance(item, pl.DataFrame):
                times.append(origins.scored_at(sha256_of(item)))

        runs = cohort(
            self.paths,
            self.reading,
            card_choice(self.flags),
            run_filter(self.flags, self.paths),
            on_item,
        )
        self.selection = runs.selection
        self.problems += runs.problems
        numbers = () if runs.selection is None else runs.selection.numbers
        # Rows of ready-made tables stand after those of scorecards, and have no time.
        scored_at = [times[number] if number < len(times) else None for number in numbers]
        table = runs.runs.with_columns(pl.Series("scored_at", scored_at, dtype=pl.String))
        if table.height:
            yield from finite(table).iter_slices(BATCH)
        else:
            yield table

    def _origins(self) -> CardOrigins:
        from .card_origins import CardOrigins

        return CardOrigins(self.obj, self.paths, self.flags["store"], self.stack)

    def _criteria(self) -> Iterable[pl.DataFrame]:
        from ..analysis.tables.flat_tables import criterion_rows

        cards = self._origins().each(self.cards())
        rows = (row for card, origin in cards for row in criterion_rows(card, origin.verdicts))
        return _batched("criteria", rows)

    def _codes(self) -> Iterable[pl.DataFrame]:
        from ..analysis.tables.flat_tables import code_rows

        cards = self._origins().each(self.cards())
        rows = (row for card, origin in cards for row in code_rows(card, origin.verdicts))
        return _batched("codes", rows)

    def _counted(self, item: Any) -> Any:
        self.items += 1
        self.progress.update(self.items)
        return item

    def _verdict_rows(self) -> Iterator[tuple[Any, ...]]:
        from ..analysis.tables.flat_tables import BATCH, verdict_rows
        from .card_origins import VerdictsInForce

        for place in self._store_places():
            with opened(place, self.obj["quiet"]) as store:
                in_force = VerdictsInForce(store, place.below)
                prefix = "" if place.below is None else store.prefix(place.below)
                verdicts = store.iter_verdicts()
                while chunk := list(islice(verdicts, BATCH)):
                    runs = store.runs_of({verdict.run_ref for verdict in chunk})
                    selected = [
                        verdict
                        for verdict in chunk
                        if store.relative(runs[verdict.run_ref].path).startswith(prefix)
                    ]
                    calls = store.calls_of({verdict.call_id for verdict in selected})
                    rows = verdict_rows(selected, runs, calls, in_force.says)
                    yield from map(self._counted, rows)

    def _text_rows(self) -> Iterator[tuple[Any, ...]]:
        from ..analysis.tables.flat_tables import text_rows

        for place in self._store_places():
            with opened(place, self.obj["quiet"]) as store:
                yield from map(self._counted, text_rows(store.rubrics(), store.texts()))

    def _store_places(self) -> Iterator[StorePlace]:
        """The store that each path stands for; InputError for a path without one."""
        for path in self.paths:
            place = place_of(self.obj, path, self.flags["store"])
            if place.store is None:
                raise InputError(
                    "has no verdicts: it is not a store, and no store belongs to it",
                    "name the store",
                    path,
                )
            yield place

    def _label_rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of the labels in stores and label files."""
        for path in self.paths:
            yield from self._labels_at(path)
        if self.problems and not self.items:
            raise InputError(
                f"no labels could be read; first: {self.problems[0]}",
                "name a folder of label files",
            )

    def _labels_at(self, path: str) -> Iterator[tuple[Any, ...]]:
        """Rows of the labels at a path. A broken file in a folder is named and left out; anywhere
        else it is an InputError."""
        from ..analysis.tables.card_sources import is_store
        from ..analysis.tables.flat_tables import label_rows
        from ..judge.store import DEFAULT_STORE
        from ..judge.trust.label_sources import each_label

        # A folder of labels often lies near a store that is not meant: only a store in the folder
        # itself is the folder's.
        own_store = Path(path) / DEFAULT_STORE
        if own_store.is_file():
            place = StorePlace(own_store)
        else:
            place = StorePlace(path if is_store(path) else None)
        sources = 0
        for entry in each_label(place.store or path):
            sources += 1
            if not isinstance(entry, InputError):
                self._counted(entry.location)
                yield from label_rows(entry.labels)
            elif place.store is None and Path(path).is_dir():
                self.problems.append(str(entry))
            else:
                raise entry
        if place.store is None and not sources:
            raise InputError(
                "holds neither a store nor label files",
                "name a store, or a folder of labels",
                path,
            )


def _batched(table: str, rows: Iterable[tuple[Any, ...]]) -> Iterable[pl.DataFrame]:
    from ..analysis.tables.flat_tables import SCHEMAS, batches

    return batches(rows, SCHEMAS[table])
