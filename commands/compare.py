"""ambjudge compare: two agents, releases, judges or rubrics against each other."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import read_cards, say_json, say_table
from .options import OUTCOME, cohort_options, json_option, judged_by

if TYPE_CHECKING:
    from ..analysis.statistics.comparison import By, Comparison, Side


@click.command(
    "compare",
    epilog=(
        "\b\nExamples:\n  ambjudge compare old.jsonl new.jsonl --margin 5\n  ambjudge compare opus"
        " sonnet cards.jsonl\n  ambjudge compare rules gpt-5 cards.jsonl --by judge --outcome S2"
    ),
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
@click.option(
    "--by",
    type=click.Choice(["agent", "judge", "rubric", "release"]),
    help="What A and B are.  [names: what they name; paths: release]",
)
@click.option(
    "--margin",
    type=float,
    metavar="SIZE",
    help="Differences within it count as none: tests equivalence.",
)
@OUTCOME
@judged_by("the judge with most")
@json_option("One JSON object on stdout, both populations.")
@cohort_options
@click.pass_obj
def command(
    obj: dict[str, Any], /, first: str, second: str, paths: tuple[str, ...], **flags: Any
) -> int:
    """How far A is from B: the paired difference with interval and test, and whether they are as
    good as equal.

    A and B are names in the scorecards of PATH (agents, judges, rubrics), or without PATH two sets
    of scorecards, stores or folders of runs. Where both sides scored the same runs these are paired
    by run, else by task.
    """
    return run(obj, (first, second), paths, flags)


def run(
    obj: dict[str, Any], names: tuple[str, str], paths: tuple[str, ...], flags: dict[str, Any]
) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.statistics.comparison import compare, comparison_json, comparison_sentences

    by, first, second, complete = _sides(obj, names, paths, flags)
    found = compare(first, second, by=by, outcome=flags["outcome"], margin=flags["margin"])
    if flags["as_json"]:
        say_json(comparison_json(found))
        return 0 if complete else 1
    for sentence in comparison_sentences(found):
        console.say(console.wrap(sentence))
    console.say()
    _tables(found)
    return 0 if complete else 1


def _sides(
    obj: dict[str, Any], names: tuple[str, str], paths: tuple[str, ...], flags: dict[str, Any]
) -> tuple[By, Side, Side, bool]:
    """What is compared, both sides, and whether everything could be read."""
    from ..analysis.report.results import read
    from ..analysis.statistics.comparison import infer_kind, make_side, split_sides
    from .options import existing

    if paths:
        found = read_cards(
            obj, paths, flags, read, judge=flags["judge"], versions=flags["by"] == "rubric"
        )
        by = flags["by"] or infer_kind(found.runs, names)
        return by, *split_sides(found.runs, by, names), not found.problems
    for name in names:
        if "://" not in name and not existing([name]):
            raise InputError(
                f"no such file or folder: {name}",
                "to compare two names, say in which scorecards: compare A B PATH",
            )
    cohorts = [read_cards(obj, (name,), flags, read, judge=flags["judge"]) for name in names]
    short = [PurePath(name).name for name in names]
    shown = short if len({*short}) == 2 and all(short) else names
    first, second = (make_side(name, each.runs) for name, each in zip(shown, cohorts, strict=True))
    return flags["by"] or "release", first, second, not any(each.problems for each in cohorts)


def _tables(found: Comparison) -> None:
    from ..analysis.report.display import number

    lines = [
        [name, number(mean), f"{runs} of {of}"]
        for name, mean, runs, of in zip(found.names, found.means, found.runs, found.of, strict=True)
    ]
    console.table(
        [found.by.capitalize(), f"Mean {found.outcome.removeprefix('outcome.')}", "Runs compared"],
        lines,
        right=(1, 2),
    )
    console.say()
    say_table(found.table, "compare", hide=("first", "second", "n", "n_clusters"))
