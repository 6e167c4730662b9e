"""ambjudge leaderboard: agents ranked, with intervals and the ranks that stay possible."""

from __future__ import annotations

from typing import Any

import click

from .. import console
from .cohort_input import LEFT_OUT, read_cards, say_json, say_table
from .options import OUTCOME, PATHS_OR_ADDRESSES, cohort_options, json_option, judged_by


@click.command("leaderboard", epilog="\b\nExample:\n  ambjudge leaderboard cards.jsonl --by track")
@PATHS_OR_ADDRESSES
@click.option(
    "--by",
    "scopes",
    multiple=True,
    type=click.Choice(["overall", "track", "task"]),
    help="Which boards; repeatable.  [overall and track]",
)
@click.option(
    "--ratings",
    is_flag=True,
    help="Columns of the benchmark's own verdicts: resolved, valid, why runs failed.",
)
@OUTCOME
@judged_by("the judge with most")
@json_option("One JSON object on stdout, both populations of each interval.")
@cohort_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Rank agents overall, by track and by task.

    Means over runs of a track, then over tracks. One interval speaks of new tasks, the other of
    these tasks again; rank ranges hold jointly at 95 % for new tasks.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.report.basis import basis, sentences
    from ..analysis.report.results import read, rows
    from ..analysis.statistics.ranking import leaderboard as board
    from ..analysis.tables.score_names import score_of

    found = read_cards(obj, paths, flags, read, judge=flags["judge"])
    scopes = flags["scopes"] or ("overall", "track")
    table = board(found.runs, flags["outcome"], scopes=tuple(scopes))
    rests = basis(found.runs).row(0, named=True)
    if flags["as_json"]:
        say_json(
            {
                "schema": "ambjudge.leaderboard/1",
                "outcome": flags["outcome"],
                "basis": rests,
                "rows": rows(table),
            }
        )
        return 1 if found.problems else 0
    import polars as pl

    console.say(console.wrap(" ".join(sentences(rests))))
    console.say()
    if table["value"].null_count() == table.height and not rests["unread_runs"]:
        hint = "; a run without its Task score has no Overall (try --outcome agentic)" * (
            flags["outcome"] == "overall"
        )
        console.say(f"No run has a known {score_of(flags['outcome']).name}{hint}.")
    notes: tuple[str, ...] = ()
    score = score_of(flags["outcome"], found.runs).titled
    for scope, name in table.select("scope", "name").unique(maintain_order=True).iter_rows():
        console.say(
            f"{'All tracks' if scope == 'overall' else f'{scope.capitalize()} {name}'}, by {score}"
        )
        part = table.filter((pl.col("scope") == scope) & (pl.col("name") == name))
        ranks = () if scope == "overall" else ("p_first", "rank_set")
        kind, hide = (
            f"leaderboard{'_ratings' * flags['ratings']}",
            ("name", *ranks, *LEFT_OUT[scope]),
        )
        notes = say_table(part, kind, hide=hide, above=notes)
        console.say()
    return 1 if found.problems else 0
