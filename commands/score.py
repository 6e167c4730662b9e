"""ambjudge score: runs to scorecards."""

from __future__ import annotations

from typing import Any

import click

from .options import JSON, PATHS, batch_options, judge_options, policy_options, question_options, run_options


@click.command(
    "score",
    epilog="\b\nExamples:\n  ambjudge score examples/codes\n  ambjudge score runs/ --judge anthropic/claude-sonnet-4-5 --json --out cards.jsonl",
)
@PATHS
@judge_options
@question_options
@JSON
@click.option("--out", metavar="FILE", type=click.Path(), help="Write scorecards (JSON Lines) as well.")
@run_options
@policy_options
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Runs judged at the same time.  [default: 8]")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Never spend more; the rest stays unscored.",
)
@batch_options
@click.option("--store", metavar="FILE|none", help="Default: .ambjudge/ambjudge.db at the root.")
@click.option("--dry-run", is_flag=True, help="Only say what is missing and its cost.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Score runs: a conversation.json, a run folder, or every run below a folder.

    S1-S3 are judged against the track's rubric, S4-S5 checked from the output files. --track and --tier say what the
    files do not.
    """
    if flags["dry_run"]:
        from .rejudging import run as plan

        return plan(obj, paths, {**flags, "verify_files": False})
    from .scoring import run

    return run(obj, paths, flags)
