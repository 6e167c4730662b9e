"""ambjudge site: runs and their scorecards as static pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import read_cards
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OPTIONAL_PATHS, cohort_options
from .path_types import LocalPath


@grouped_command(
    "site",
    "ambjudge site runs/ --out site/",
    "ambjudge site cards.jsonl --out site/ --no-report",
)
@OPTIONAL_PATHS
@option(
    "--runs",
    metavar="DIR",
    type=LocalPath(),
    help="Find the runs of scorecards here if they have moved.",
)
@cohort_options
@option(
    "--out",
    heading="Output",
    metavar="DIR",
    type=LocalPath(),
    required=True,
    help="Write here: a new or empty folder, or an earlier site.",
)
@option("--title", heading="Output", default="Runs", help="The title of the table of runs.")
@option(
    "--report/--no-report",
    heading="Output",
    default=True,
    help="Add the report of `analyze`.  [yes]",
)
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Write pages to look at and share: a table of all runs, each run with transcript and verdicts,
    two runs side by side, the report.

    PATH as for `analyze`. No server is needed: open DIR/index.html, or copy DIR to where others can
    see it. The pages contain whole transcripts.
    """
    out = Path(flags["out"])
    if out.exists() and not out.is_dir():
        raise InputError("cannot be written: it is not a folder", "choose another --out", out)
    from ..web.site import build

    make = partial(
        build,
        out=out,
        paths=paths,
        title=flags["title"],
        report=flags["report"],
        runs=flags["runs"],
        tell=partial(console.note, quiet=obj["quiet"]),
    )
    result = read_cards(obj, paths, flags, make)
    console.note(f"wrote the site; open {out / 'index.html'}", obj["quiet"])
    return 1 if result.problems else 0
