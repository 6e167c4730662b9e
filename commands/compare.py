"""ambjudge compare: how far two agents, judges, rubrics or releases differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import card_choice, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, cohort_options, json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..analysis.report.comparison_result import ComparisonResult


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
    compare = _compare_names if paths else _compare_paths
    result = compare(obj, names, paths, flags)
    if flags["as_json"]:
        say_json(result.to_dict())
    else:
        for sentence in result.sentences:
            console.say(console.wrap(sentence))
        for table in result.displays():
            console.say()
            say_table(table)
    return 1 if result.problems else 0


def _compare_names(
    obj: dict[str, Any], names: tuple[str, str], paths: tuple[str, ...], flags: dict[str, Any]
) -> ComparisonResult:
    """Two names within the scorecards of the paths."""
    from ..analysis.report.comparison_result import choice_for_names, compare_names
    from ..analysis.report.results import read

    choice = choice_for_names(card_choice(flags), flags["by"])
    cohort = read_cards(obj, paths, flags, read, choice=choice)
    return compare_names(
        cohort, names, by=flags["by"], outcome=flags["outcome"], margin=flags["margin"]
    )


def _compare_paths(
    obj: dict[str, Any], names: tuple[str, str], _paths: tuple[str, ...], flags: dict[str, Any]
) -> ComparisonResult:
    """Two sets of scorecards, stores or folders of runs."""
    from ..analysis.report.comparison_result import compare_cohorts, side_names
    from ..analysis.report.results import read
    from .sessions import existing_paths

    for name in names:
        if "://" not in name and not existing_paths([name]):
            raise InputError(
                f"no such file or folder: {name}",
                "to compare two names, say in which scorecards: compare A B PATH",
            )
    first, second = (read_cards(obj, (name,), flags, read) for name in names)
    return compare_cohorts(
        first,
        second,
        side_names(names),
        by=flags["by"],
        outcome=flags["outcome"],
        margin=flags["margin"],
    )
