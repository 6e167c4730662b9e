"""Scorecards as a command line names them: read, counted, with what could not be read; their tables
as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import console
from ..errors import InputError
from .options import POLICIES, store_place

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.report.display import Display
    from ..analysis.report.results import Analysis
    from ..analysis.tables.card_sources import Scoring
    from ..analysis.tables.cohorts import Cohort
    from ..analysis.tables.label_tables import Labels
    from ..judge.card.scorecard import ScoreCard
    from ..judge.store import Store

R = TypeVar("R", "Cohort", "Analysis")

MOST_PROBLEMS = 20
_STAGES = ("S1", "S2", "S3", "S4", "S5")
_RESOURCES = ("turns", "wall_time_s", "input_tokens", "output_tokens", "value_missing_zero")
LEFT_OUT = {
    "overall": ("input_tokens", "output_tokens", "value_missing_zero"),
    "track": (*_STAGES, *_RESOURCES),
    "task": (*_STAGES, *_RESOURCES, "tasks"),
}
"""Columns left out on a terminal; --json has them."""


_OPTIONS = ("rubric", "track", "tier", "public", *POLICIES)
"""What `run_options` and `policy_options` offer."""


def scoring_of(obj: dict[str, Any], flags: dict[str, Any]) -> Scoring:
    """Flags and settings as what runs without a scorecard are held against."""
    from ..analysis.tables.card_sources import Scoring
    from ..config import load
    from .options import score_options

    return Scoring(score_options(load(obj["config"]), flags))


def tell(scoring: Scoring, flags: dict[str, Any], quiet: bool) -> None:
    """One line on stderr where the numbers may not be those that the user thinks of: runs were
    scored on the way, or options speak of scoring and nothing was scored."""
    if scoring.done:
        console.note(
            f"{scoring.done} run{'' if scoring.done == 1 else 's'} scored by the rules judge", quiet
        )
        return
    given = [f"--{name.replace('_', '-')}" for name in _OPTIONS if flags.get(name) is not None]
    if given:
        console.note(
            f"{', '.join(given)}: no effect, scorecards keep what they were scored with", quiet
        )


@dataclass(frozen=True)
class Place:
    """The store of a path (None: it has none), and the folder whose runs are meant (None: all)."""

    store: str | Path | None = None
    below: Path | None = None


def place_of(obj: dict[str, Any], path: str, store: str | None = None) -> Place:
    """What a path means: a store; a folder's runs in the store in force there (`store_place`); else
    the path itself."""
    from ..analysis.tables.card_sources import is_store
    from ..config import load

    if is_store(path):
        return Place(path)
    if not Path(path).is_dir():
        return Place()
    where = store_place(load(obj["config"]), [path], store)
    there = where is not None and ("://" in str(where) or Path(where).is_file())
    return Place(where, Path(path)) if there else Place()


@contextmanager
def opened(place: Place, quiet: bool) -> Iterator[Store]:
    """The store of a place; said on stderr where the user did not name it."""
    from ..judge.store import open_store

    with open_store(place.store or "", create=False) as store:
        if place.below is not None:
            console.note(f"reading the store {store.location}", quiet)
        yield store


def stored_cards(
    obj: dict[str, Any], paths: Sequence[str], store: str | None = None, *, versions: bool = False
) -> Iterator[ScoreCard | str]:
    """The scorecards in the stores of the paths; a path without any as it is, to be read or scored.

    Runs of a folder that its store has no scorecard of are counted on stderr. `versions`: of
    superseded rubrics too.
    """
    for path in paths:
        place, found = place_of(obj, path, store), set()
        if place.store is not None:
            with opened(place, obj["quiet"]) as store_of_path:
                for card in store_of_path.iter_cards(below=place.below, versions=versions):
                    found.add(card.run.path)
                    yield card
        if place.store is None or (place.below is not None and not found):
            yield path
        elif place.below is not None:
            _count_others(place.below, len(found), obj["quiet"])


def _count_others(folder: Path, scored: int, quiet: bool) -> None:
    from ..trajectories.reading.layout import find_conversations

    try:
        others = sum(1 for _ in find_conversations(folder)) - scored
    except InputError:
        return
    if others > 0:
        console.note(
            f"{others} runs below {folder} have no scorecard there and are left out: ambjudge score"
            f" {folder}",
            quiet,
        )


def labels_of(flags: dict[str, Any]) -> Labels:
    """The labels that --labels names; InputError for none."""
    from ..analysis.tables.label_tables import read_labels

    if not flags["labels"]:
        raise InputError("no labels given", "name their folder with --labels")
    path = Path(flags["labels"])
    if not path.exists():
        raise InputError("no such file or folder", "give label files or their folder", path)
    return read_labels(path)


def read_cards(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    flags: dict[str, Any],
    read: Callable[..., R],
    *,
    versions: bool = False,
    **options: Any,
) -> R:
    """What `read` (`results.read`, `results.analyse`) makes of the paths; cards are counted,
    problems named on stderr.

    `versions`: a store's scorecards by superseded versions of a rubric too.
    """
    scoring, progress, numbers = (
        scoring_of(obj, flags),
        console.Progress("read", None, obj["quiet"]),
        count(1),
    )

    def source() -> Iterator[Any]:
        yield from stored_cards(obj, paths, flags.get("store"), versions=versions)
        progress.busy("computing")

    try:
        found = read(
            source(),
            on_card=lambda: progress.update(next(numbers)),
            scoring=scoring,
            **options,
        )
    finally:
        progress.clear()
    complain(found.problems)
    tell(scoring, flags, obj["quiet"])
    return found


def complain(problems: Sequence[str]) -> None:
    """Names what could not be read on stderr, at most MOST_PROBLEMS lines and a count of the rest."""
    for text in problems[:MOST_PROBLEMS]:
        console.error(text)
    if len(problems) > MOST_PROBLEMS:
        console.error(f"{len(problems) - MOST_PROBLEMS} more could not be read")


def say_json(data: Any) -> None:
    """One JSON object on stdout; NaN is an error, never written."""
    console.raw(json.dumps(data, ensure_ascii=False, allow_nan=False))


def say_table(
    table: pl.DataFrame, name: str, hide: Sequence[str] = (), above: Sequence[str] = ()
) -> tuple[str, ...]:
    """A table of the analysis with its numbered notes below, which it returns; not again where they
    stand `above`."""
    from ..analysis.report.display import display

    shown: Display = display(table, name, hide=hide)
    lines = [
        [cell.text + "".join(f" [{n}]" for n in cell.notes) for cell in row] for row in shown.rows
    ]
    console.table(
        shown.headings, lines, right=[i for i, right in enumerate(shown.numeric) if right]
    )
    if shown.notes and shown.notes == above:
        console.say("  (notes as above)")
        return shown.notes
    for number, text in enumerate(shown.notes, 1):
        console.say(console.wrap(text, "      ", f"  [{number}] "))
    return shown.notes
