"""ambjudge site: runs and their scorecards as static pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import read_cards
from .options import SOURCES, cohort_options, judged_by


@click.command(
    "site",
    epilog=(
        "\b\nExamples:\n  ambjudge site runs/ --out site/\n  ambjudge site cards.jsonl --out site/"
        " --no-report"
    ),
)
@SOURCES
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(),
    required=True,
    help="A new or empty folder, or an earlier site.",
)
@click.option(
    "--runs",
    metavar="DIR",
    type=click.Path(),
    help="Where scorecards' runs are, if not where they say.",
)
@click.option("--title", default="Runs", help="Title of the table of runs.")
@judged_by("all")
@click.option(
    "--report/--no-report", default=True, help="The analysis beside the runs (analyze).  [yes]"
)
@cohort_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Pages to look at and to share: all runs in a table, each with transcript and verdicts, two
    compared, the report.

    PATH as for `analyze`. No server: open DIR/index.html, or copy DIR where others can. Whole
    transcripts are in it.
    """
    out = Path(flags["out"])
    if out.exists() and not out.is_dir():
        raise InputError("cannot be written: not a folder", "choose another --out", out)
    from ..web.site import build

    make = partial(
        build,
        out=out,
        paths=paths,
        judge=flags["judge"],
        title=flags["title"],
        report=flags["report"],
        runs=flags["runs"],
        tell=partial(console.note, quiet=obj["quiet"]),
    )
    found = read_cards(obj, paths, flags, make)
    console.note(f"wrote the site; open {out / 'index.html'}", obj["quiet"])
    return 1 if found.problems else 0
