"""ambjudge compare: how far two agents, judges, rubrics or releases differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .. import console
from ..errors import InputError
from .cohort_input import card_choice, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, cohort_options, json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..analysis.statistics.comparison import By, Comparison, Side


@grouped_command(
    "compare",
    "ambjudge compare old.jsonl new.jsonl --margin 5",
    "ambjudge compare opus sonnet cards.jsonl",
    "ambjudge compare rules gpt-5 cards.jsonl --by judge --outcome S2",
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("paths", nargs=-1, type=LocalPath(), metavar="[PATH]...")
@OUTCOME
@option(
    "--by",
    metavar="NAME",
    help="What A and B are: agent, model, agent+model, judge, rubric, release or a field of runs.",
)
@option(
    "--margin",
    type=float,
    metavar="SIZE",
    help="Test whether A and B differ by less than this (equivalence).",
)
@cohort_options
@json_option("Print one JSON object, with both populations.")
@click.pass_obj
def command(
    obj: dict[str, Any], /, first: str, second: str, paths: tuple[str, ...], **flags: Any
) -> int:
    """Estimate how far A is from B: the paired difference with interval and test, and whether the
    two are equivalent.

    A and B are names in the scorecards of PATH (agents, judges, rubrics). Without PATH they are two
    sets of scorecards, stores or folders of runs. Sides that scored the same runs are paired by
    run, otherwise by task.
    """
    return run(obj, (first, second), paths, flags)


def run(
    obj: dict[str, Any], names: tuple[str, str], paths: tuple[str, ...], flags: dict[str, Any]
) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    from ..analysis.statistics.comparison import compare, comparison_json, comparison_sentences

    sides = _sides_of_names if paths else _sides_of_paths
    pair = sides(obj, names, paths, flags)
    comparison = compare(
        pair.first, pair.second, by=pair.by, outcome=flags["outcome"], margin=flags["margin"]
    )
    if flags["as_json"]:
        say_json(comparison_json(comparison))
    else:
        for sentence in comparison_sentences(comparison):
            console.say(console.wrap(sentence))
        console.say()
        _show_tables(comparison)
    return 0 if pair.is_complete else 1


class _Pair(NamedTuple):
    """What is compared."""

    by: By
    first: Side
    second: Side
    is_complete: bool
    """Whether all inputs could be read."""


def _sides_of_names(
    obj: dict[str, Any], names: tuple[str, str], paths: tuple[str, ...], flags: dict[str, Any]
) -> _Pair:
    """Two names within the scorecards of the paths."""
    from ..analysis.report.results import read
    from ..analysis.statistics.comparison import infer_kind, split_sides
    from ..analysis.tables.grouping import with_row_names
    from ..judge.card.choice import ALL_JUDGES

    choice = card_choice(flags)
    if flags["by"] in ("judge", "rubric", None):
        # The names may be those of judges, or of versions of a rubric.
        judge = flags["judge"] or (None if flags["by"] == "rubric" else ALL_JUDGES)
        choice = replace(choice, judge=judge, versions=flags["by"] in ("rubric", None))
    cohort = read_cards(obj, paths, flags, read, choice=choice)
    by = flags["by"] or infer_kind(cohort.runs, names)
    runs = cohort.runs
    if by not in ("judge", "rubric", "release"):
        runs = with_row_names(runs, by)
    first, second = split_sides(runs, by, names)
    return _Pair(by, first, second, is_complete=not cohort.problems)


def _sides_of_paths(
    obj: dict[str, Any], names: tuple[str, str], _paths: tuple[str, ...], flags: dict[str, Any]
) -> _Pair:
    """Two sets of scorecards, stores or folders of runs."""
    from ..analysis.report.results import read
    from ..analysis.statistics.comparison import make_side
    from .sessions import existing_paths

    for name in names:
        if "://" not in name and not existing_paths([name]):
            raise InputError(
                f"no such file or folder: {name}",
                "to compare two names, say in which scorecards: compare A B PATH",
            )
    cohorts = [read_cards(obj, (name,), flags, read) for name in names]
    short_names = [PurePath(name).name for name in names]
    is_clear = all(short_names) and short_names[0] != short_names[1]
    titles = short_names if is_clear else names
    first, second = (
        make_side(title, cohort.runs) for title, cohort in zip(titles, cohorts, strict=True)
    )
    is_complete = not any(cohort.problems for cohort in cohorts)
    return _Pair(flags["by"] or "release", first, second, is_complete)


def _show_tables(comparison: Comparison) -> None:
    """Print the means of both sides, then the estimates."""
    from ..analysis.tables.number_format import number

    sides = zip(
        comparison.names, comparison.means, comparison.runs, comparison.all_runs, strict=True
    )
    outcome = comparison.outcome.removeprefix("outcome.")
    console.table(
        [comparison.by.capitalize(), f"Mean {outcome}", "Runs compared"],
        [[name, number(mean), f"{runs} of {total}"] for name, mean, runs, total in sides],
        right=(1, 2),
    )
    console.say()
    say_table(comparison.table, "compare", hide=("first", "second", "n", "n_clusters"))
