"""ambjudge codes: what went wrong, on which turns."""

from __future__ import annotations

import json
from typing import Any

import click

from .options import JSON, PATHS, run_options


@click.command("codes", epilog="\b\nExample:\n  ambjudge codes examples/codes --taxonomy harness")
@PATHS
@click.option(
    "--taxonomy",
    type=click.Choice(["paper", "harness"]),
    help="paper (default): E1-E5 of the paper; harness: one code a failed step.",
)
@click.option("--plan", is_flag=True, help="What plan.md promised, and the turns that did, contradicted or skipped it.")
@JSON
@run_options
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], taxonomy: str | None, plan: bool, as_json: bool, **flags: Any
) -> int:
    """Show the error codes that fired on runs, each with its turns and a reason, and the episodes of failed steps."""
    from pathlib import Path

    from ..config import load
    from ..console import note
    from ..errors import AmbjudgeError
    from .diagnosis import diagnose, show
    from .runs import each_result, each_run
    from .scoring import score_options

    settings = load(Path(paths[0]), obj["config"])
    options = score_options(
        settings, {**flags, "missing": None, "breach": None, "malformed": None, "concurrency": None}
    )
    chosen: Any = settings.get("taxonomy", taxonomy) or "paper"
    failed = done = 0
    runs = each_run(paths, options.track, options.tier)
    for item in each_result(runs, lambda run: diagnose(run, chosen, options, plan)):
        if isinstance(item, AmbjudgeError):
            failed += 1
            note(f"ambjudge: error: {item}")
            continue
        found = item[1]
        if as_json:
            from ..console import raw

            raw(json.dumps(found.to_dict(), ensure_ascii=False))
        else:
            show(found, first=done == 0)
        done += 1
    return 0 if not failed else 1 if done else 2
