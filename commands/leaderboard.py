"""ambjudge leaderboard: agents ranked, with intervals and the ranks that stay possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import console
from .cohort_input import HIDDEN_COLUMNS, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, PATHS_OR_ADDRESSES, cohort_options, json_option

if TYPE_CHECKING:
    import polars as pl


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
    from ..analysis.report.basis import basis
    from ..analysis.report.results import read
    from ..analysis.statistics.ranking import boards_by
    from ..analysis.tables.flat_tables import json_rows
    from ..analysis.tables.grouping import mixture_notes, split_groupings, with_row_names

    cohort = read_cards(obj, paths, flags, read)
    by, boards = split_groupings(flags["groupings"], cohort.runs)
    runs = with_row_names(cohort.runs, by)
    table = boards_by(runs, flags["outcome"], boards or ("overall", "track"))
    mixtures = mixture_notes(cohort.runs, by)
    score_basis = basis(cohort).row(0, named=True)
    if flags["as_json"]:
        say_json(
            {
                "schema": "ambjudge.leaderboard/1",
                "outcome": flags["outcome"],
                "by": by,
                "basis": score_basis,
                "mixtures": mixtures,
                "rows": json_rows(table),
            }
        )
    else:
        table = table.rename({"agent": by})
        _show_boards(table, cohort.runs, score_basis, flags["outcome"], flags["ratings"])
        for note in mixtures:
            console.say(console.wrap(note))
    return 1 if cohort.problems else 0


def _show_boards(
    table: pl.DataFrame,
    runs: pl.DataFrame,
    score_basis: dict[str, Any],
    outcome: str,
    with_ratings: bool,
) -> None:
    """Print what the scores rest on, then one table for each scope and name."""
    import polars as pl

    from ..analysis.report.basis import sentences
    from ..analysis.tables.score_names import score_of

    console.say(console.wrap(" ".join(sentences(score_basis))))
    console.say()
    if table["value"].null_count() == table.height and not score_basis["unread_runs"]:
        line = f"No run has a known {score_of(outcome).name}"
        if outcome == "overall":
            line += "; a run without its Task score has no Overall (try --outcome agentic)"
        console.say(f"{line}.")
    score = score_of(outcome, runs).titled
    notes: tuple[str, ...] = ()
    for scope, name in table.select("scope", "name").unique(maintain_order=True).iter_rows():
        board = "All tracks" if scope == "overall" else f"{scope.capitalize()} {name}"
        console.say(f"{board}, by {score}")
        hide = ["name", *HIDDEN_COLUMNS[scope]]
        if scope != "overall":
            hide.append("rank_set")
        rows = table.filter((pl.col("scope") == scope) & (pl.col("name") == name))
        kind = "leaderboard_ratings" if with_ratings else "leaderboard"
        notes = say_table(rows, kind, hide=hide, notes_above=notes)
        console.say()
