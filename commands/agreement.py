"""ambjudge agreement: judge against human labels, judge against judge, rater against rater."""

from __future__ import annotations

from typing import Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import labels_of, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OPTIONAL_PATHS, cohort_options, json_option
from .path_types import LocalPath


@grouped_command(
    "agreement",
    "ambjudge agreement cards.jsonl --labels labels/",
    "ambjudge agreement a.jsonl b.jsonl  (two judges)",
)
@OPTIONAL_PATHS
@option(
    "--labels",
    metavar="DIR|STORE",
    type=LocalPath(),
    help="Human labels: a file, a folder or a store.",
)
@option(
    "--annotator",
    metavar="NAME",
    help="Use the labels of this person.  [gold, else the first by name]",
)
@option(
    "--against",
    metavar="NAME",
    help="Compare the annotator with this second one instead of with the judge.",
)
@cohort_options
@json_option("Print one JSON object.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Measure how far a judge agrees with people, item by item: raw agreement, kappa, AC1, alpha,
    sensitivity, specificity.

    Labels are weighted by how their runs were sampled (`label next`); intervals allow for tasks.
    Without --labels, the judges among the scorecards are compared with one another.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    from ..analysis.report.agreement_result import (
        agreement_of_annotators,
        agreement_of_judges,
        agreement_with_labels,
    )
    from ..analysis.report.results import read

    if not paths and not flags["against"]:
        raise InputError("no PATH given", "name scorecards, a store or a folder of runs")
    labels = labels_of(flags) if flags["labels"] or flags["against"] else None
    if labels is None:
        result = agreement_of_judges(read_cards(obj, paths, flags, read))
    elif flags["against"]:
        result = agreement_of_annotators(labels, flags["annotator"], flags["against"])
    else:
        cohort = read_cards(obj, paths, flags, read)
        result = agreement_with_labels(cohort, labels, flags["annotator"])
    if flags["as_json"]:
        say_json(result.to_dict())
    else:
        console.say(result.title)
        for table in result.displays():
            say_table(table)
    return 1 if result.problems or (labels is not None and labels.n_problems) else 0
