"""ambjudge rejudge: stored verdicts brought up to date."""

from __future__ import annotations

from typing import Any

import click

from .options import batch_options, judge_options, policy_options, question_options, run_options


@click.command(
    "rejudge",
    epilog="\b\nExamples:\n  ambjudge rejudge runs/ --rubric my-vqa.yaml --dry-run\n  ambjudge rejudge runs/ --rubric my-vqa.yaml --judge openai/gpt-5.4-mini --max-cost 5",
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH...]")
@judge_options
@question_options
@run_options
@policy_options
@batch_options
@click.option("--dry-run", is_flag=True, help="Only say what is stale and what it would cost.")
@click.option("--verify-files", is_flag=True, help="Read every run, trust no file times.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Never spend more; the rest stays unscored.",
)
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Calls at the same time.  [default: 8]")
@click.option("--store", metavar="FILE|URL", help="Default: .ambjudge/ambjudge.db at the root.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Judge again only what the rubric, prompt, judge or evidence now in force has made stale; then renew scorecards.

    A criterion is stale when its text, scale or evidence differ from what its verdict answered. Weights, credits and
    policies need no call. Without PATH the runs below the current folder are meant.
    """
    from .rejudging import run

    return run(obj, paths or (".",), flags)
