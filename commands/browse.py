"""ambjudge browse: the browser in the terminal."""

from __future__ import annotations

from typing import Any

import click

from .options import run_options


@click.command(
    "browse", epilog="\b\nExamples:\n  ambjudge browse runs/\n  ambjudge browse cards.jsonl --filter 'code:E3 S3<0.5'"
)
@click.argument("path", required=False, default=".", type=click.Path(), metavar="[PATH]")
@click.option("--cards", metavar="FILE", type=click.Path(), help="Scorecards (JSON Lines) of the runs below PATH.")
@click.option("--store", metavar="FILE|URL|none", help="Verdict store; default: the one found upward from PATH.")
@click.option("--filter", "query", metavar="TEXT", default="", help="Begin with this filter (? shows the language).")
@click.option("--annotator", metavar="NAME", help="Who labels; default: the user's name.")
@click.option("--labels", metavar="DIR", type=click.Path(), help="Where labels are kept as files, one a run.")
@click.option("--no-score", is_flag=True, help="Do not score runs that have no scorecard.")
@click.option("--theme", metavar="NAME", help="Colours, e.g. textual-light, nord, gruvbox.")
@run_options
@click.pass_obj
def command(obj: dict[str, Any], /, path: str, **flags: Any) -> int:
    """Read, search, compare and label runs in the terminal.

    PATH is a folder of runs, a file of scorecards (.jsonl), or a store. Scorecards come from the store or from a file;
    runs without one are scored by the rules judge while you read.
    """
    from .browsing import run

    return run(obj, path, flags)
