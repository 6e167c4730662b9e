"""ambjudge codes: what went wrong, on which turns."""

from __future__ import annotations

from typing import Any

import click

from .options import JSON, PATHS, reading_options, run_options


@click.command(
    "codes",
    epilog="\b\nExamples:\n  ambjudge codes examples/codes --taxonomy harness\n  ambjudge codes runs/ --judge openai/gpt-5.4-mini --plan",
)
@PATHS
@click.option(
    "--taxonomy",
    type=click.Choice(["paper", "harness"]),
    help="paper (default): E1-E5 of the paper; harness: one code a failed step.",
)
@click.option("--plan", is_flag=True, help="Also what plan.md promised and what became of it, as a model reads it.")
@JSON
@reading_options
@run_options
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], taxonomy: str | None, plan: bool, as_json: bool, **flags: Any
) -> int:
    """Show the error codes of runs, each with its turns and a reason, and the episodes of failed steps.

    A model as --judge reads each run for E1-E5 and quotes what shows them. Without one only what files, exit codes and
    the harness prove is there, and codes that take reading are not read.
    """
    from .diagnosis import run

    return run(obj, paths, flags, taxonomy, plan, as_json)
