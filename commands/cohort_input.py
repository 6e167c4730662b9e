"""Read the scorecards that a command line names, and print tables of the analysis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import console
from ..errors import InputError
from .sessions import store_place

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.report.cohort_result import TitledTable
    from ..analysis.report.display import Display
    from ..analysis.report.results import Analysis
    from ..analysis.tables.card_sources import CardReading
    from ..analysis.tables.cohorts import Cohort
    from ..analysis.tables.label_tables import Labels
    from ..judge.card.choice import CardChoice, Selection
    from ..judge.card.scorecard import ScoreCard
    from ..judge.store import Store
    from ..views.run_query import RunQuery

R = TypeVar("R", "Cohort", "Analysis")

MAX_PROBLEMS = 20
"""Inputs that are named on stderr if they cannot be read; the rest are counted."""


def card_reading(obj: dict[str, Any], flags: Mapping[str, Any]) -> CardReading:
    """Where scorecards are, and how runs without one are scored: flags over settings."""
    from ..analysis.tables.card_sources import CardReading
    from ..config import load
    from ..judge.card.choice import rubric_to_score_with
    from .sessions import score_options

    settings = load(obj["config"])
    rubric = rubric_to_score_with(flags.get("rubric"))
    options = score_options(settings, {**flags, "rubric": rubric})
    store = flags.get("store")
    return CardReading(options, store_of=lambda folder: store_place(settings, [folder], store))


def card_choice(flags: Mapping[str, Any]) -> CardChoice:
    """The judge and the rubric whose scorecards count, as --judged-by and --rubric name them."""
    from ..judge.card.choice import choice_of

    return choice_of(flags.get("judge"), flags.get("rubric"))


def run_filter(flags: Mapping[str, Any], paths: Sequence[str] = ()) -> RunQuery | None:
    """The filter --where; None without it. QueryError for a filter that cannot be read."""
    from ..views.run_query import RunQuery

    text = flags.get("where")
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    return RunQuery(text, folders) if text else None


def note_reading(
    reading: CardReading, selection: Selection | None, policy: str | None, quiet: bool
) -> None:
    """Say on stderr which scorecards count, how many runs were scored on the way, and which runs of
    a folder have no scorecard. `policy`: the flag, which has no effect if none was scored."""
    if reading.n_scored:
        judges = " and ".join(sorted(reading.judges))
        runs = console.counted(reading.n_scored, "run")
        console.note(f"{runs} scored by the {judges} judge", quiet)
    elif policy is not None:
        console.note(
            "--policy: no effect, as scorecards keep the policy that they were scored with", quiet
        )
    for state in reading.folders:
        console.note(f"reading the store {state.store}", quiet)
        for text in state.notes():
            console.note(text, quiet)
    if selection is not None and selection.sentence():
        console.note(f"{selection.sentence()} (--judged-by and --rubric choose)", quiet)


@dataclass(frozen=True)
class StorePlace:
    """The store that a path stands for, and the folder whose runs are meant."""

    store: str | Path | None = None
    """None: the path has no store."""
    below: Path | None = None
    """None: all runs of the store."""


def place_of(obj: dict[str, Any], path: str, store: str | None = None) -> StorePlace:
    """What a path stands for: a store, or a folder's runs in the store in force there
    (`store_place`)."""
    from ..analysis.tables.card_sources import is_store
    from ..config import load
    from ..judge.session import is_store_there

    if is_store(path):
        return StorePlace(path)
    if not Path(path).is_dir():
        return StorePlace()
    place = store_place(load(obj["config"]), [path], store)
    if not is_store_there(place):
        return StorePlace()
    return StorePlace(place, Path(path))


@contextmanager
def opened(place: StorePlace, quiet: bool) -> Iterator[Store]:
    """Open the store of a place; a note names one that the user did not name."""
    from ..judge.store import open_store

    with open_store(place.store or "", create=False) as store:
        if place.below is not None:
            console.note(f"reading the store {store.location}", quiet)
        yield store


def labels_of(flags: Mapping[str, Any]) -> Labels:
    """The labels that --labels names; broken ones are named on stderr. InputError without any."""
    from ..analysis.tables.label_tables import labels_at

    if not flags["labels"]:
        raise InputError("no labels given", "name their folder with --labels")
    problems: list[str] = []
    try:
        return labels_at(Path(flags["labels"]), problems)
    finally:
        name_problems(problems)


def read_cards(
    obj: dict[str, Any],
    paths: Sequence[str],
    flags: Mapping[str, Any],
    read: Callable[..., R],
    *,
    choice: CardChoice | None = None,
    on_item: Callable[[ScoreCard | pl.DataFrame], None] = lambda item: None,
    **options: Any,
) -> R:
    """Read the scorecards that count at the paths with `read` (`results.read`, `results.analyse`).

    Progress and problems go to stderr, with a line on which scorecards count. `choice`: by default
    that of the flags. `on_item`: see `cohorts.cohort`.
    """
    from ..analysis.tables.cohorts import Cohort

    reading = card_reading(obj, flags)
    progress = console.Progress("read", None, obj["quiet"])
    numbers = count(1)

    def source() -> Iterator[Any]:
        yield from paths
        progress.busy("computing")

    def on_each(item: ScoreCard | pl.DataFrame) -> None:
        progress.update(next(numbers))
        on_item(item)

    try:
        result = read(
            source(),
            on_item=on_each,
            reading=reading,
            choice=choice or card_choice(flags),
            run_filter=run_filter(flags, paths),
            **options,
        )
    finally:
        progress.clear()
    name_problems(result.problems)
    read_cohort = result if isinstance(result, Cohort) else result.cohort
    note_reading(reading, read_cohort.selection, flags.get("policy"), obj["quiet"])
    if read_cohort.running:
        console.note(read_cohort.running_sentence, obj["quiet"])
    return result


def name_problems(problems: Sequence[str]) -> None:
    """Name inputs that could not be read on stderr: at most MAX_PROBLEMS lines, and how many
    more."""
    for text in problems[:MAX_PROBLEMS]:
        console.error(text)
    if len(problems) > MAX_PROBLEMS:
        console.error(f"{len(problems) - MAX_PROBLEMS} more inputs could not be read")


def say_json(data: Any) -> None:
    """Print one JSON object; ValueError for NaN, which is never written."""
    console.raw(json.dumps(data, ensure_ascii=False, allow_nan=False))


def say_table(table: TitledTable, notes_above: Sequence[str] = ()) -> tuple[str, ...]:
    """Print a table of the analysis under its title and below it its numbered notes, unless the
    table above had the same; the notes."""
    if table.title:
        console.say(console.wrap(table.title))
    notes: tuple[str, ...] = ()
    if table.display is not None:
        notes = _say_display(table.display, notes_above)
    for text in table.remarks:
        console.say(console.wrap(text, "  "))
    return notes


def _say_display(display: Display, notes_above: Sequence[str]) -> tuple[str, ...]:
    rows = [
        [cell.text + "".join(f" [{number}]" for number in cell.notes) for cell in row]
        for row in display.rows
    ]
    right = [i for i, is_number in enumerate(display.numeric) if is_number]
    console.table(display.headings, rows, right=right, spare=display.spare)
    if display.notes and display.notes == notes_above:
        console.say("  (notes as above)")
        return display.notes
    for number, text in enumerate(display.notes, 1):
        console.say(console.wrap(text, "      ", f"  [{number}] "))
    return display.notes
