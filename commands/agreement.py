"""ambjudge agreement: judge against human labels, judge against judge, annotator against annotator."""

from __future__ import annotations

from typing import Any

import click

from .analyze import PATHS
from .options import policy_options, run_options


@click.command(
    "agreement",
    epilog="\b\nExamples:\n  ambjudge agreement cards.jsonl --labels labels/\n  ambjudge agreement a.jsonl b.jsonl  (two judges)",
)
@PATHS
@click.option("--labels", metavar="DIR", type=click.Path(), help="Human labels: a file or a folder.")
@click.option("--annotator", metavar="NAME", help="Whose labels.  [gold, else the first by name]")
@click.option("--judge", metavar="NAME", help="Which judge's scorecards.  [all]")
@click.option("--against", metavar="NAME", help="A second annotator: compares the two annotators instead of the judge.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@run_options
@policy_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """How far a judge agrees with people, item by item: raw agreement, kappa, AC1, alpha, sensitivity, specificity.

    Intervals resample tasks. Without --labels, the judges found among the scorecards are compared with one another.
    """
    from .analyzing import agreement

    return agreement(obj, paths, flags)
