"""ambjudge export: scorecards, verdicts and labels as files for other programs."""

from __future__ import annotations

from typing import Any

import click

from .analyze import PATHS
from .options import policy_options, run_options

KINDS = ("scorecards", "runs", "criteria", "codes", "verdicts", "labels")
FORMATS = ("jsonl", "csv", "parquet")


@click.command(
    "export",
    epilog="\b\nExamples:\n  ambjudge export runs/ --out runs.parquet\n"
    "  ambjudge export runs/.ambjudge/ambjudge.db --what verdicts --out verdicts.csv\n"
    "  ambjudge export runs/ --what criteria | jq 'select(.value == 0)'",
)
@PATHS
@click.option(
    "--what",
    type=click.Choice(KINDS),
    default="runs",
    metavar="TABLE",
    help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}.  [runs]",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="jsonl, csv or parquet.  [by the suffix of --out; else jsonl]",
)
@click.option("--out", metavar="FILE", type=click.Path(), help="Write a file, whole or not at all.  [stdout]")
@run_options
@policy_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Scorecards as they are (jsonl), or one row a run, criterion, fired code, stored verdict or human label.

    PATH: a store, a folder with a store, or whatever `analyze` reads. A folder's own scorecards and verdicts are those of
    the nearest store; without one its runs are scored by the rules judge first. Labels: a store, or label files.
    Default: the current folder. What is unknown is null or empty, never 0. In CSV an apostrophe stands before texts that
    a spreadsheet would take for a formula.
    """
    from .exporting import export

    return export(obj, paths, flags)
