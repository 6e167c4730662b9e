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
_STAGES = ("S1", "S2", "S3", "S4", "S5")
_RESOURCES = ("turns", "wall_time_s", "input_tokens", "output_tokens", "value_missing_zero")
HIDDEN_COLUMNS = {
    "overall": ("input_tokens", "output_tokens", "value_missing_zero"),
    "track": (*_STAGES, *_RESOURCES),
    "tier": ("input_tokens", "output_tokens", "value_missing_zero"),
    "task": (*_STAGES, *_RESOURCES, "tasks"),
    "task-tier": (*_STAGES, *_RESOURCES, "tasks"),
}
"""Columns of a leaderboard that only --json has."""


def card_reading(obj: dict[str, Any], flags: Mapping[str, Any]) -> CardReading:
    """Where scorecards are, and how runs without one are scored: flags over settings."""
    from ..analysis.tables.card_sources import CardReading
    from ..config import load
    from .sessions import score_options

    settings = load(obj["config"])
    rubric = flags.get("rubric")
    # A version of a rubric chooses scorecards; new ones are made with the version that there is.
    if rubric is not None and not Path(rubric).is_file():
        rubric = rubric.partition("@")[0]
    options = score_options(settings, {**flags, "rubric": rubric})
    store = flags.get("store")
    return CardReading(options, store_of=lambda folder: store_place(settings, [folder], store))


def card_choice(flags: Mapping[str, Any]) -> CardChoice:
    """The judge and the rubric whose scorecards count, as --judged-by and --rubric name them."""
    from ..judge.card.choice import CardChoice, RubricName
    from ..rubrics.load import load_rubric

    rubrics = []
    name = flags.get("rubric")
    if name is not None and Path(name).is_file():
        rubric = load_rubric(name)
        rubrics.append(RubricName(rubric.id, rubric.version))
    elif name is not None:
        rubrics.append(RubricName.parse(name))
    return CardChoice(flags.get("judge"), tuple(rubrics))


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
        console.note(f"{console.counted(reading.n_scored, 'run')} scored by the rules judge", quiet)
    elif policy is not None:
        console.note(
            "--policy: no effect, as scorecards keep the policy that they were scored with", quiet
        )
    for state in reading.folders:
        console.note(f"reading the store {state.store}", quiet)
        if state.unscored:
            console.note(
                f"left out {console.counted(state.unscored, 'run')} below {state.folder} without a"
                f" scorecard in the store; to score: ambjudge score {state.folder}",
                quiet,
            )
        if state.gone:
            console.note(
                f"{console.counted(state.gone, 'scorecard')} of runs that are no longer below"
                f" {state.folder}",
                quiet,
            )
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

    if is_store(path):
        return StorePlace(path)
    if not Path(path).is_dir():
        return StorePlace()
    place = store_place(load(obj["config"]), [path], store)
    if place is None or not ("://" in str(place) or Path(place).is_file()):
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
    from ..analysis.tables.label_tables import read_labels

    if not flags["labels"]:
        raise InputError("no labels given", "name their folder with --labels")
    path = Path(flags["labels"])
    if not path.exists():
        raise InputError("no such file or folder", "give label files or their folder", path)
    problems: list[str] = []
    labels = read_labels(path, on_problem=lambda error: problems.append(str(error)))
    name_problems(problems)
    if not labels.annotators:
        raise InputError(
            "holds no label of a criterion or code", "a label is described in docs/labels.md", path
        )
    return labels


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
            where=run_filter(flags, paths),
            **options,
        )
    finally:
        progress.clear()
    name_problems(result.problems)
    note_reading(reading, result.selection, flags.get("policy"), obj["quiet"])
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


def say_table(
    table: pl.DataFrame,
    name: str,
    hide: Sequence[str] = (),
    notes_above: Sequence[str] = (),
) -> tuple[str, ...]:
    """Print a table of the analysis and below it its numbered notes, unless the table above had the
    same; the notes."""
    from ..analysis.report.display import display

    displayed = display(table, name, hide=hide)
    rows = [
        [cell.text + "".join(f" [{number}]" for number in cell.notes) for cell in row]
        for row in displayed.rows
    ]
    right = [i for i, is_number in enumerate(displayed.numeric) if is_number]
    console.table(displayed.headings, rows, right=right, spare=displayed.spare)
    if displayed.notes and displayed.notes == notes_above:
        console.say("  (notes as above)")
        return displayed.notes
    for number, text in enumerate(displayed.notes, 1):
        console.say(console.wrap(text, "      ", f"  [{number}] "))
    return displayed.notes
