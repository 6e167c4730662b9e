"""ambjudge leaderboard: agents ranked, with intervals and the ranks that stay possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import console
from .cohort_input import read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, PATHS_OR_ADDRESSES, cohort_options, json_option

if TYPE_CHECKING:
    from ..analysis.report.board_result import Leaderboard


@grouped_command("leaderboard", "ambjudge leaderboard cards.jsonl --by track")
@PATHS_OR_ADDRESSES
@OUTCOME
@option(
    "--by",
    "groupings",
    multiple=True,
    metavar="NAME",
    help=(
        "What a row is: agent, model, agent+model or a field of runs; or the boards: overall,"
        " track, tier, task, task-tier; repeatable.  [agent, overall, track]"
    ),
)
@option(
    "--ratings",
    is_flag=True,
    help="Add the benchmark's own verdicts: resolved, valid, why runs failed.",
)
@cohort_options
@json_option("Print one JSON object, with both populations of each interval.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Rank agents, or whatever --by makes a row of, on boards over all runs, by track or by task.

    A score is the mean over the runs of a track, then over tracks. One interval is for new tasks,
    the other for the same tasks again; rank ranges hold jointly at 95 % for new tasks.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    from ..analysis.report.board_result import rank
    from ..analysis.report.results import read
    from ..analysis.tables.grouping import split_groupings

    cohort = read_cards(obj, paths, flags, read)
    by, boards = split_groupings(flags["groupings"], cohort.runs)
    board = rank(cohort, by, boards, flags["outcome"])
    if flags["as_json"]:
        say_json(board.to_dict())
    else:
        _show(board, flags["ratings"])
    return 1 if cohort.problems else 0


def _show(board: Leaderboard, with_ratings: bool) -> None:
    """Print what the scores rest on, the boards, and what the rows mix."""
    console.say(console.wrap(" ".join(board.opening)))
    console.say()
    notes: tuple[str, ...] = ()
    for table in board.displays(with_ratings):
        notes = say_table(table, notes)
        console.say()
    for note in board.mixtures:
        console.say(console.wrap(note))
