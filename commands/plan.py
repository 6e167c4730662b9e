"""ambjudge plan: how many tasks, repeats and labels a result takes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import ConfigError
from .cohort_input import labels_of, read_cards, say_json
from .options import OUTCOME, PATHS, cohort_options, json_option, judged_by

if TYPE_CHECKING:
    from ..analysis.statistics.power_analysis import PowerPlan


@click.command(
    "plan",
    epilog=(
        "\b\nExamples:\n  ambjudge plan pilot.jsonl --difference 5\n  ambjudge plan pilot.jsonl"
        " --code E3 --effect 8\n  ambjudge plan pilot.jsonl --labels labels/ --half-width 1.5"
    ),
)
@PATHS
@click.option(
    "--difference", type=float, metavar="SIZE", help="Of two agents, in units of the outcome."
)
@click.option(
    "--code",
    type=click.Choice(["E1", "E2", "E3", "E4", "E5"]),
    help="Plan for the effect of a code.",
)
@click.option("--effect", type=float, metavar="SIZE", help="Of --code.")
@click.option(
    "--power",
    "target",
    type=click.FloatRange(0.05, 0.999),
    default=0.8,
    help="Probability to find it.  [0.8]",
)
@click.option(
    "--labels",
    metavar="DIR",
    type=click.Path(),
    help="Human labels: how many correct the judge's error.",
)
@click.option(
    "--half-width",
    type=float,
    metavar="SIZE",
    help="Of a corrected mean, of the effect of --code, or --agreement.",
)
@click.option(
    "--agreement",
    metavar="ITEM",
    help="With --half-width: of judge and people on a code or criterion.",
)
@OUTCOME
@judged_by("the judge with most")
@json_option("One JSON object on stdout.")
@cohort_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """How many tasks, repeats and labels find a difference or an effect of a given size, by a
    cohort's own spread.

    PATH holds runs like those planned: a pilot with repeats, two agents or more, and two tasks or
    more.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.report.results import read, rows
    from ..analysis.statistics.comparison import check_effect_size
    from ..analysis.statistics.power_analysis import (
        difference_noise,
        effect_error,
        effect_noise,
        mean_error,
        plan_sentences,
        plan_sizes,
        power,
    )
    from ..analysis.statistics.score_variance import variance_components

    code, outcome = flags["code"], flags["outcome"]
    if flags["half_width"] is not None or flags["agreement"]:
        return _labels(obj, paths, flags)
    size = flags["effect"] if code else flags["difference"]
    if (
        size is None
        or (flags["effect"] is None) != (code is None)
        or (code and flags["difference"] is not None)
    ):
        raise ConfigError(
            "plan for what?",
            "give --difference SIZE, or --code E3 --effect SIZE, or --labels DIR --half-width SIZE",
        )
    check_effect_size("effect" if code else "difference", abs(size), outcome)
    found = read_cards(obj, paths, flags, read, judge=flags["judge"])
    judged = None
    if flags["labels"]:
        labels = labels_of(flags)
        judged = (
            effect_error(found, labels, code, outcome)
            if code
            else mean_error(found, labels, outcome)
        )
    noise = (
        effect_noise(found.runs, code, outcome)
        if code
        else difference_noise(variance_components(found.runs, outcome))
    )
    planned = plan_sizes(noise, abs(size), target=flags["target"], judged=judged)
    now = noise.tasks, max(noise.least_repeats, round(noise.repeats))
    tasks = sorted({max(2, now[0] // 2), *(now[0] * k for k in (1, 2, 4))})
    repeats = sorted({noise.least_repeats, 5, now[1], 20})
    table = power(noise, tasks=tasks, repeats=repeats, size=abs(size))
    word = outcome.removeprefix("outcome.")
    what = (
        f"An effect of {code} on {word}" if code else f"A difference of two agents in mean {word}"
    )
    said = plan_sentences(planned, what, " points" if outcome == "overall" else "")
    if flags["as_json"]:
        say_json(
            {
                "schema": "ambjudge.plan/1",
                "outcome": outcome,
                "code": code,
                "plan": asdict(planned),
                "rows": rows(table),
                "sentences": said,
            }
        )
        return 1 if found.problems else 0
    console.say(console.wrap(" ".join(said)))
    console.say()
    heading = (
        "Power by tasks and runs of an agent on a task and tier (in brackets the size found with"
        " power .8):"
    )
    console.say(console.wrap(heading))
    _grid(planned, table.rows(named=True), tasks, repeats)
    return 1 if found.problems else 0


def _labels(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """How many labels make an interval as narrow as asked for."""
    from ..analysis.report.results import read
    from ..analysis.statistics.comparison import check_effect_size
    from ..analysis.statistics.power_analysis import agreement_error, effect_error, mean_error

    size, code, item, outcome = (
        flags["half_width"],
        flags["code"],
        flags["agreement"],
        flags["outcome"],
    )
    if (
        size is None
        or not flags["labels"]
        or (code and item)
        or flags["effect"]
        or flags["difference"]
    ):
        raise ConfigError(
            "labels for what?",
            "give --labels DIR --half-width SIZE, and --code E3 or --agreement E3",
        )
    check_effect_size("half-width", size, "agentic" if item else outcome)
    found = read_cards(obj, paths, flags, read, judge=flags["judge"])
    labels = labels_of(flags)
    error = (
        agreement_error(found, labels, item)
        if item
        else (
            effect_error(found, labels, code, outcome)
            if code
            else mean_error(found, labels, outcome)
        )
    )
    need, now = error.labels_for(size), error.half_width(error.labels)
    many = (
        f"takes {need} {error.of}"
        if need
        else "is reached with no number of labels: tasks limit it"
    )
    said = (
        f"A 95 % interval of ±{size:g} for {error.what} {many}; as many as now ({error.labels})"
        f" give ±{now:.3g}."
    )
    if flags["as_json"]:
        say_json(
            {
                "schema": "ambjudge.plan/1",
                "outcome": outcome,
                "code": code,
                "agreement": item,
                "half_width": size,
                "labels": need,
                "error": asdict(error),
                "sentences": [said],
            }
        )
    else:
        console.say(console.wrap(said))
    return 1 if found.problems else 0


def _grid(
    planned: PowerPlan, rows: list[dict[str, Any]], tasks: list[int], repeats: list[int]
) -> None:
    """Tasks down, repeats across."""
    from ..analysis.report.display import number
    from ..analysis.statistics.power_analysis import format_power

    cell = {
        (row["tasks"], row["repeats"]): f"{format_power(row['power'])} ({number(row['mde80'])})"
        for row in rows
    }
    lines = [[str(t), *(cell[t, n] for n in repeats)] for t in tasks]
    console.table(
        ["Tasks", *(f"{n} run{'s' * (n > 1)}" for n in repeats)],
        lines,
        right=range(len(repeats) + 1),
    )
