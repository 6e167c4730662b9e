"""ambjudge leaderboard: agents ranked, with intervals and the ranks that stay possible."""

from __future__ import annotations

from typing import Any

import click

from .analyze import JUDGE, OUTCOME, PATHS
from .options import policy_options, run_options


@click.command("leaderboard", epilog="\b\nExample:\n  ambjudge leaderboard cards.jsonl --by track")
@PATHS
@click.option(
    "--by",
    "scopes",
    multiple=True,
    type=click.Choice(["overall", "track", "task"]),
    help="Which boards; repeatable.  [overall and track]",
)
@OUTCOME
@JUDGE
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, both populations of each interval.")
@run_options
@policy_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Rank agents overall, by track and by task.

    Means over runs of a track, then over tracks. One interval speaks of new tasks, the other of these tasks again; rank
    ranges hold jointly at 95 % for new tasks.
    """
    from .analyzing import leaderboard

    return leaderboard(obj, paths, flags)
