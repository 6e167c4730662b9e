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
    from ..analysis.tables.card_sources import RulesScoring
    from ..analysis.tables.cohorts import Cohort
    from ..analysis.tables.label_tables import Labels
    from ..judge.card.scorecard import ScoreCard
    from ..judge.store import Store

R = TypeVar("R", "Cohort", "Analysis")

MAX_PROBLEMS = 20
"""Inputs that are named on stderr if they cannot be read; the rest are counted."""
_STAGES = ("S1", "S2", "S3", "S4", "S5")
_RESOURCES = ("turns", "wall_time_s", "input_tokens", "output_tokens", "value_missing_zero")
HIDDEN_COLUMNS = {
    "overall": ("input_tokens", "output_tokens", "value_missing_zero"),
    "track": (*_STAGES, *_RESOURCES),
    "task": (*_STAGES, *_RESOURCES, "tasks"),
}
"""Columns of a leaderboard that only --json has."""
_SCORING_FLAGS = ("rubric", "policy")


def scoring_of(obj: dict[str, Any], flags: Mapping[str, Any]) -> RulesScoring:
    """How runs without a scorecard are scored, by flags and settings."""
    from ..analysis.tables.card_sources import RulesScoring
    from ..config import load
    from .sessions import score_options

    return RulesScoring(score_options(load(obj["config"]), flags))


def note_scoring(scoring: RulesScoring, flags: Mapping[str, Any], quiet: bool) -> None:
    """Say on stderr how many runs were scored on the way or, if none was, which flags had no
    effect."""
    if scoring.n_scored:
        console.note(f"{console.counted(scoring.n_scored, 'run')} scored by the rules judge", quiet)
        return
    unused = [f"--{name}" for name in _SCORING_FLAGS if flags.get(name) is not None]
    if unused:
        console.note(
            f"{', '.join(unused)}: no effect, as scorecards keep the rubric and policy that they"
            " were scored with",
            quiet,
        )


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


def stored_cards(
    obj: dict[str, Any], paths: Sequence[str], store: str | None = None, *, versions: bool = False
) -> Iterator[ScoreCard | str]:
    """The scorecards in the stores of the paths; a path without a store is returned unchanged, to
    be read or scored.

    Stderr counts a folder's runs that its store has no scorecard of. `versions`: include
    scorecards by superseded versions of a rubric.
    """
    for path in paths:
        place = place_of(obj, path, store)
        if place.store is None:
            yield path
            continue
        scored_runs = set()
        with opened(place, obj["quiet"]) as opened_store:
            for card in opened_store.iter_cards(below=place.below, versions=versions):
                scored_runs.add(card.run.path)
                yield card
        if place.below is None:
            continue
        if scored_runs:
            _note_unscored(place.below, len(scored_runs), obj["quiet"])
        else:
            yield path


def _note_unscored(folder: Path, scored: int, quiet: bool) -> None:
    from ..trajectories.reading.layout import find_conversations

    try:
        unscored = sum(1 for _ in find_conversations(folder)) - scored
    except InputError:
        return
    if unscored > 0:
        console.note(
            f"left out {console.counted(unscored, 'run')} below {folder} without a scorecard in the"
            f" store; to score: ambjudge score {folder}",
            quiet,
        )


def labels_of(flags: Mapping[str, Any]) -> Labels:
    """The labels that --labels names; broken ones are named on stderr. InputError without any."""
    from ..analysis.tables.label_tables import read_labels

    if not flags["labels"]:
        raise InputError("no labels given", "name their folder with --labels")
    path = Path(flags["labels"])
    if not path.exists():
        raise InputError("no such file or folder", "give label files or their folder", path)
    labels = read_labels(path, on_problem=console.error)
    if not labels.annotators:
        raise InputError(
            "holds no label of a criterion or code", "a label is described in docs/labels.md", path
        )
    return labels


def read_cards(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    flags: Mapping[str, Any],
    read: Callable[..., R],
    *,
    versions: bool = False,
    **options: Any,
) -> R:
    """Read the scorecards at the paths with `read` (`results.read`, `results.analyse`), with
    progress and problems on stderr.

    `versions`: include a store's scorecards by superseded versions of a rubric.
    """
    scoring = scoring_of(obj, flags)
    progress = console.Progress("read", None, obj["quiet"])
    numbers = count(1)

    def source() -> Iterator[Any]:
        yield from stored_cards(obj, paths, flags.get("store"), versions=versions)
        progress.busy("computing")

    try:
        result = read(
            source(),
            on_card=lambda: progress.update(next(numbers)),
            scoring=scoring,
            **options,
        )
    finally:
        progress.clear()
    name_problems(result.problems)
    note_scoring(scoring, flags, obj["quiet"])
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
