"""ambjudge analyze: scorecards to tables, figures and a report."""

from __future__ import annotations

from typing import Any

import click

from .options import policy_options, run_options

PATHS = click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
OUTCOMES = ("overall", "agentic", "task_score", "S1", "S2", "S3", "S4", "S5")
OUTCOME = click.option(
    "--outcome",
    type=click.Choice(OUTCOMES),
    default="overall",
    metavar="SCORE",
    help=f"{', '.join(OUTCOMES[:4])} … S5.  [overall]",
)
JUDGE = click.option("--judge", metavar="NAME", help="Only its scorecards.  [the judge with most]")


@click.command(
    "analyze", epilog="\b\nExamples:\n  ambjudge analyze cards.jsonl --out analysis/\n  ambjudge analyze runs/ --json"
)
@PATHS
@click.option(
    "--out", metavar="DIR", type=click.Path(), help="Write tables (CSV, Parquet, JSON), figures and report.html."
)
@click.option("--json", "as_json", is_flag=True, help="All tables as one JSON object on stdout.")
@click.option("--labels", metavar="DIR", type=click.Path(), help="Human labels: agreement and corrected numbers too.")
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Only these tables (repeatable).")
@OUTCOME
@JUDGE
@click.option(
    "--codes-from",
    type=click.Choice(["any", "independent", "judge", "detector", "fact", "score"]),
    default="any",
    metavar="SOURCE",
    help="any, judge, detector, fact, score or independent: which tags count (fact: findings that stand whatever is read; independent: all but those read off the score).  [any]",
)
@click.option(
    "--ask", "asked", multiple=True, metavar="NAME=FILE", help="Answers of `ambjudge ask` as a column of the runs."
)
@click.option("--title", default="Analysis of runs", help="Title of the report.")
@run_options
@policy_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Stages, codes, cliff, recovery, tiers, cost, effects of codes: every number with its interval.

    PATH: scorecards (.jsonl, .json), frames (.parquet, .csv), folders of these, or a folder of runs, which the
    heuristic judge scores first (--rubric and what follows it are for that). Default: the current folder. Without --out:
    a summary.
    """
    from .analyzing import analyze

    return analyze(obj, paths, flags)
