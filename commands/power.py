"""ambjudge power: the tasks, repeats and labels that a result takes."""

from __future__ import annotations

from typing import Any

import click

from .. import console
from .cohort_input import labels_of, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, PATHS, cohort_options, json_option
from .path_types import LocalPath


@grouped_command(
    "power",
    "ambjudge power pilot.jsonl --difference 5",
    "ambjudge power pilot.jsonl --code E3 --effect 8",
    "ambjudge power pilot.jsonl --labels labels/ --half-width 1.5",
)
@PATHS
@OUTCOME
@option(
    "--difference",
    type=float,
    metavar="SIZE",
    help="Detect a difference of this size between two agents, in units of the outcome.",
)
@option(
    "--code",
    type=click.Choice(["E1", "E2", "E3", "E4", "E5"]),
    help="Detect an effect of this error code.",
)
@option("--effect", type=float, metavar="SIZE", help="The size of the effect of --code.")
@option(
    "--power",
    "target",
    type=click.FloatRange(0.05, 0.999),
    metavar="P",
    default=0.8,
    help="The probability to detect it.  [0.8]",
)
@option(
    "--labels",
    metavar="DIR",
    type=LocalPath(),
    help="Human labels: count how many correct the judge's error.",
)
@option(
    "--half-width",
    type=float,
    metavar="SIZE",
    help="The half-width of an interval to reach: of a corrected mean, --code or --agreement.",
)
@option(
    "--agreement",
    metavar="ITEM",
    help="With --half-width: of the agreement of judge and people on a code or criterion.",
)
@cohort_options
@json_option("Print one JSON object.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Compute how many tasks, repeats and labels detect a difference or an effect of a given size.

    PATH holds runs like those to be made: a pilot with repeats, two agents or more, and two tasks
    or more. Their variance decides.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    from ..analysis.report.power_result import PlanQuestion, plan
    from ..analysis.report.results import read

    question = PlanQuestion(
        difference=flags["difference"],
        code=flags["code"],
        effect=flags["effect"],
        half_width=flags["half_width"],
        agreement=flags["agreement"],
        outcome=flags["outcome"],
    )
    question.check(has_labels=bool(flags["labels"]))
    cohort = read_cards(obj, paths, flags, read)
    labels = labels_of(flags) if flags["labels"] else None
    result = plan(cohort, question, labels=labels, target=flags["target"])
    if flags["as_json"]:
        say_json(result.to_dict())
    else:
        console.say(console.wrap(" ".join(result.sentences)))
        for table in result.displays():
            console.say()
            say_table(table)
    return 1 if cohort.problems or (labels is not None and labels.n_problems) else 0
