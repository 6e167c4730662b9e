"""ambjudge ask: an ad-hoc question on every run."""

from __future__ import annotations

from typing import Any

import click

from .options import batch_options, judge_options


@click.command(
    "ask",
    epilog="\b\nExamples:\n"
    '  ambjudge ask runs/ "Did the agent look at an image of its output?" --judge openai/gpt-5.4-mini\n'
    '  ambjudge ask runs/ "Which loss was trained with?" --choice dice,ce,other,none --out loss.parquet',
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="PATH...")
@click.argument("question", required=False, metavar='"QUESTION"')
@click.option("--choice", metavar="A,B,C", help="The answer is one of these, not yes or no.")
@click.option("--number", is_flag=True, help="The answer is a number.")
@click.option("--text", is_flag=True, help="The answer is one or two sentences.")
@click.option("--schema", metavar="FILE", type=click.Path(), help="The answer is JSON by this JSON Schema.")
@judge_options
@click.option("--track", metavar="TRACK", help="Where the files do not say.")
@click.option("--tier", type=click.Choice(["lite", "standard", "pro"]), help="Where the files do not say.")
@click.option("--public", metavar="DIR", type=click.Path(), help="Public inputs that facts are checked against.")
@batch_options
@click.option("--dry-run", is_flag=True, help="Only say how many calls it takes and what they cost.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Never spend more; the rest is unscored.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Calls at the same time.  [default: 8]")
@click.option("--store", metavar="FILE|URL", help="Default: .ambjudge/ambjudge.db at the root.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines on stdout, one run each.")
@click.option("--out", metavar="FILE", type=click.Path(), help="Also write .jsonl, .csv or .parquet.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], question: str | None, **flags: Any) -> int:
    """Ask a model one question about every run: an answer with turns and quotes, each searched in the run.

    Yes or no unless an option says otherwise; "cannot tell" is an answer too, and a failed reply is unscored, never "no".
    Answers are kept in the store: the same command goes on where it stopped, and asking again costs nothing.
    """
    from .asking import run

    return run(obj, paths, question, flags)
