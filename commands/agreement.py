"""ambjudge agreement: judge against human labels, judge against judge, annotator against annotator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import labels_of, read_cards, say_json
from .options import SOURCES, cohort_options, json_option, judged_by

if TYPE_CHECKING:
    import polars as pl


@click.command(
    "agreement",
    epilog=(
        "\b\nExamples:\n  ambjudge agreement cards.jsonl --labels labels/\n  ambjudge agreement"
        " a.jsonl b.jsonl  (two judges)"
    ),
)
@SOURCES
@click.option(
    "--labels", metavar="DIR", type=click.Path(), help="Human labels: a file or a folder."
)
@click.option("--annotator", metavar="NAME", help="Whose labels.  [gold, else the first by name]")
@judged_by("all")
@click.option(
    "--against",
    metavar="NAME",
    help="A second annotator: compares the two annotators instead of the judge.",
)
@json_option("One JSON object on stdout.")
@cohort_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """How far a judge agrees with people, item by item: raw agreement, kappa, AC1, alpha,
    sensitivity, specificity.

    Labels weigh by how their runs were drawn (`label next`); intervals allow for tasks. Without
    --labels, the judges found among the scorecards are compared with one another.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.report.results import read, rows
    from ..analysis.statistics.raters import agreement, judge_pairs, rater_agreement

    if not paths and not flags["against"]:
        raise InputError("no PATH given", "name scorecards, a store or a folder of runs")
    problems: tuple[str, ...] = ()
    raters = "human", "judge"
    if flags["labels"] or flags["against"]:
        labels = labels_of(flags)
        name = flags["annotator"] or labels.usual
        for known in (name, flags["against"] or name):
            if known not in labels.annotators:
                there = ", ".join(labels.annotators) or "none"
                raise InputError(f"no labels of annotator {known!r}", f"there are {there}")
    if flags["against"]:
        raters = "first", "second"
        table = rater_agreement(labels.of(name), labels.of(flags["against"]))
        title = f"Annotator {name} against {flags['against']}"
    elif flags["labels"]:
        found = read_cards(obj, paths, flags, read)
        problems = found.problems
        judges = found.runs["judge"].drop_nulls().unique().sort().to_list()
        if flags["judge"] and flags["judge"] not in judges:
            raise InputError(
                f"no scorecards of judge {flags['judge']!r}",
                f"there are {', '.join(map(str, judges))}",
            )
        table = agreement(found, labels, annotator=name, judge=flags["judge"])
        title = f"Judge {flags['judge'] or ', '.join(map(str, judges))} against labels of {name}"
    else:
        raters = "first", "second"
        found = read_cards(obj, paths, flags, read)
        problems = found.problems
        table = judge_pairs(found)
        title = "Judge against judge"
    if table.is_empty():
        raise InputError(
            "nothing to compare: no run and item that both have",
            "give --labels whose run names match the scorecards, or scorecards of two judges",
        )
    if flags["as_json"]:
        say_json({"schema": "ambjudge.agreement/1", "title": title, "rows": rows(table)})
    else:
        console.say(title)
        _agreement_table(table, raters)
    return 1 if problems else 0


def _agreement_table(table: pl.DataFrame, raters: tuple[str, str]) -> None:
    """One line an item: the coefficients side by side, so that none is read alone. `raters` head
    the mean values given."""
    wanted = ("agreement", "kappa", "ac1", "sensitivity", "specificity")
    pairs = (
        table.select("first", "second").unique(maintain_order=True).rows()
        if "first" in table.columns
        else [None]
    )
    import polars as pl

    from ..analysis.report.display import interval, number

    for pair in pairs:
        part = table
        if pair is not None:
            part = table.filter((pl.col("first") == pair[0]) & (pl.col("second") == pair[1]))
            console.say(f"{pair[0]} / {pair[1]}")
        lines: dict[str, dict[str, Any]] = {}
        for row in part.iter_rows(named=True):
            lines.setdefault(row["item"], {})[row["coefficient"]] = row
        body = []
        for item, found in lines.items():
            first = found["agreement"]
            cells = [
                item,
                str(first["n"]),
                number(first["prevalence_human"]),
                number(first["prevalence_judge"]),
            ]
            for name in wanted:
                one = (
                    found.get("weighted_kappa", found.get(name))
                    if name == "kappa"
                    else found.get(name)
                )
                if one is None or one["value"] is None:
                    cells.append("–")
                else:
                    span = f" {interval(one['lo'], one['hi'])}" if one["lo"] is not None else ""
                    cells.append(number(one["value"]) + span)
            body.append(cells)
        means = [f"mean {who}" for who in raters]
        heads = ["Item", "n", *means, "Agreement", "Kappa", "AC1", "Sensitivity", "Specificity"]
        console.table(heads, body, right=range(1, 4))
        said = [set(row["warnings"]) for found in lines.values() for row in found.values()]
        common = sorted(set.intersection(*said)) if said else []
        for text in common:
            console.say(console.wrap(text, "  "))
        rare = [
            item
            for item, found in lines.items()
            if any(set(row["warnings"]) - set(common) for row in found.values())
        ]
        if rare:
            text = (
                f"{', '.join(rare)}: fewer than five of the rarer value; read AC1, sensitivity and"
                " specificity, not kappa."
            )
            console.say(console.wrap(text, "  "))
