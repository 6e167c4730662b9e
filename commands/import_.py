"""ambjudge import: runs of other formats to conversation.json, and back."""

from __future__ import annotations

from typing import Any

import click

from ..trajectories.exporters import EXPORTERS
from ..trajectories.importers import IMPORTERS


@click.command(
    "import",
    epilog="\b\nExamples:\n  ambjudge import inspect logs/ --out runs/ --task kidney-seg-task --tier lite\n"
    "  ambjudge import conversation runs/ --to openai --out chats/",
)
@click.argument("format", type=click.Choice(IMPORTERS.names), metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, type=click.Path(), metavar="SOURCE...")
@click.option("--out", required=True, metavar="DIR", type=click.Path(), help="Where the runs go: DIR/<run>/process/.")
@click.option("--to", type=click.Choice(EXPORTERS.names), help="Write this format instead: DIR/<run>.json.")
@click.option("--agent", metavar="NAME", help="The agent, whatever the source says.")
@click.option("--model", metavar="NAME", help="The model, likewise.")
@click.option("--task", metavar="NAME", help="The task, likewise.")
@click.option("--tier", type=click.Choice(["lite", "standard", "pro"]), help="The tier, likewise.")
@click.option("--force", is_flag=True, help="Write over runs that are already there.")
@click.pass_obj
def command(obj: dict[str, Any], /, format: str, sources: tuple[str, ...], **flags: Any) -> int:
    """Turn recorded runs of other formats into run folders, from files or folders.

    FORMAT: openai, anthropic (transcripts), inspect, swe-agent, openhands, claude-code, or conversation (with --to).
    Texts stay as they are; what a source does not say stays unknown, and what could not be carried over is named.
    """
    from .importing import run

    return run(obj, format, sources, flags)
