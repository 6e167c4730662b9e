"""ambjudge agreement: judge against human labels, judge against judge, rater against rater."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import labels_of, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OPTIONAL_PATHS, cohort_options, json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..analysis.report.disagreements import Disagreement
    from ..judge.card.differences import Opinion


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
@option(
    "--list",
    "as_list",
    is_flag=True,
    help="List what two judges differ on, with values and quotes.",
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

    if flags["as_list"]:
        return _list_disagreements(obj, paths, flags)
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


def _list_disagreements(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """Print every item on which two judges differ; the exit code."""
    from ..analysis.report.disagreements import OpinionReader
    from ..analysis.report.results import read

    if not paths or flags["labels"] or flags["against"]:
        raise InputError("--list compares judges", "name scorecards of two judges, without labels")
    reader = OpinionReader()
    cohort = read_cards(obj, paths, flags, read, on_item=reader.add)
    disagreements = list(reader.disagreements(cohort))
    if flags["as_json"]:
        rows = [each.to_dict() for each in disagreements]
        say_json({"schema": "ambjudge.disagreements/1", "rows": rows})
    else:
        _show_disagreements(disagreements)
    return 1 if cohort.problems else 0


def _show_disagreements(disagreements: Sequence[Disagreement]) -> None:
    """A table for each two judges: the item, both values, and each judge's first quote."""
    for judges, group in groupby(disagreements, key=lambda each: each.judges):
        rows = [
            [
                each.run,
                each.item,
                *map(str, each.opinions),
                " | ".join(_quote_of(opinion) for opinion in each.opinions),
            ]
            for each in group
        ]
        first, second = judges
        console.say(f"{first} and {second} differ on {console.counted(len(rows), 'item')}")
        console.table(["Run", "Item", first, second, "Quotes"], rows, flexible=4)
    if not disagreements:
        console.say("no two judges differ on an item of the same run")


def _quote_of(opinion: Opinion) -> str:
    if not opinion.quotes:
        return "–"
    quote = opinion.quotes[0]
    return f"turn {quote.turn}: {' '.join(quote.quote.split())}"
