"""Scorecards as a command line names them: read, counted, with what could not be read; their tables as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import console
from ..errors import InputError, StoreError

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.card_sources import Scoring
    from ..analysis.cohorts import Cohort
    from ..analysis.display import Display
    from ..analysis.label_tables import Labels
    from ..analysis.results import Analysis

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


_OPTIONS = ("rubric", "track", "tier", "public", "missing", "breach", "malformed")
"""What `run_options` and `policy_options` offer."""


def scoring_of(obj: dict[str, Any], flags: dict[str, Any]) -> Scoring:
    """Flags and settings as what runs without a scorecard are held against."""
    from ..analysis.card_sources import Scoring
    from ..config import load
    from .options import score_options

    return Scoring(score_options(load(obj["config"]), flags))


def tell(scoring: Scoring, paths: tuple[str, ...], flags: dict[str, Any], quiet: bool) -> None:
    """One line on stderr where the numbers may not be those that the user thinks of: runs were scored on the way although
    a store is near, or options speak of scoring and nothing was scored."""
    from ..judge.session import default_store

    given = [f"--{name}" for name in _OPTIONS if flags.get(name) is not None]
    if not scoring.done:
        if given:
            console.note(f"{', '.join(given)}: no effect, scorecards keep what they were scored with", quiet)
        return
    runs = "1 run" if scoring.done == 1 else f"{scoring.done} runs"
    try:
        near = default_store(paths[0] if paths else ".")
        hint = f"; for stored scorecards give {near}" if near.is_file() else ""
    except StoreError:
        hint = ""  # somebody else's
    console.note(f"{runs} scored by the rules judge{hint}", quiet)


def labels_of(flags: dict[str, Any]) -> Labels:
    """The labels that --labels names; InputError for none."""
    from ..analysis.label_tables import read_labels

    if not flags["labels"]:
        raise InputError("no labels given", "name their folder with --labels")
    path = Path(flags["labels"])
    if not path.exists():
        raise InputError("no such file or folder", "give label files or their folder", path)
    return read_labels(path)


def read_cards(
    obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any], read: Callable[..., R], **options: Any
) -> R:
    """What `read` (`results.read`, `results.analyse`) makes of the paths; cards are counted, problems named on stderr."""
    scoring, progress, numbers = scoring_of(obj, flags), console.Progress("read", None, obj["quiet"]), count(1)
    try:
        found = read(list(paths) or ["."], seen=lambda: progress.update(next(numbers)), scoring=scoring, **options)
    finally:
        progress.clear()
    complain(found.problems)
    tell(scoring, paths, flags, obj["quiet"])
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


def say_table(table: pl.DataFrame, name: str, hide: Sequence[str] = ()) -> None:
    """A table of the analysis with its numbered notes below."""
    from ..analysis.display import display

    shown: Display = display(table, name, hide=hide)
    lines = [[cell.text + "".join(f" [{n}]" for n in cell.notes) for cell in row] for row in shown.rows]
    console.table(shown.headings, lines, right=[i for i, right in enumerate(shown.numeric) if right])
    for number, text in enumerate(shown.notes, 1):
        console.say(console.wrap(text, "      ", f"  [{number}] "))
