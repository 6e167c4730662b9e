"""ambjudge power: the tasks, repeats and labels that a result takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import ConfigError
from .cohort_input import labels_of, read_cards, say_json
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, PATHS, cohort_options, json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..analysis.statistics.power_analysis import LabelErrorComponents
    from ..analysis.tables.cohorts import Cohort
    from ..analysis.tables.label_tables import Labels


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
    if flags["half_width"] is not None or flags["agreement"]:
        return _plan_labels(obj, paths, flags)
    return _plan_runs(obj, paths, flags)


def _plan_runs(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """How many tasks and repeats detect a difference of agents or the effect of a code."""
    from ..analysis.report.results import read
    from ..analysis.statistics.comparison import check_effect_size
    from ..analysis.statistics.power_analysis import (
        difference_noise,
        effect_noise,
        plan_sentences,
        plan_sizes,
        power,
    )
    from ..analysis.statistics.score_variance import variance_components
    from ..analysis.tables.flat_tables import json_rows

    code, outcome = flags["code"], flags["outcome"]
    size = _effect_size(flags)
    check_effect_size("effect" if code else "difference", size, outcome)
    cohort = read_cards(obj, paths, flags, read)
    name = outcome.removeprefix("outcome.")
    label_error = _label_error(cohort, labels_of(flags), flags) if flags["labels"] else None
    if code:
        noise = effect_noise(cohort.runs, code, outcome)
        subject = f"An effect of {code} on {name}"
    else:
        noise = difference_noise(variance_components(cohort.runs, outcome))
        subject = f"A difference of two agents in mean {name}"
    plan = plan_sizes(noise, size, target=flags["target"], judged=label_error)
    sentences = plan_sentences(plan, subject, " points" if outcome == "overall" else "")
    # The grid: around the pilot's own number of tasks and repeats.
    pilot_repeats = max(noise.least_repeats, round(noise.repeats))
    tasks = sorted({max(2, noise.tasks // 2), noise.tasks, 2 * noise.tasks, 4 * noise.tasks})
    repeats = sorted({noise.least_repeats, 5, pilot_repeats, 20})
    table = power(noise, tasks=tasks, repeats=repeats, size=size)
    if flags["as_json"]:
        say_json(
            {
                "schema": "ambjudge.plan/1",
                "outcome": outcome,
                "code": code,
                "plan": asdict(plan),
                "rows": json_rows(table),
                "sentences": sentences,
            }
        )
    else:
        console.say(console.wrap(" ".join(sentences)))
        console.say()
        _show_grid(table.rows(named=True), tasks, repeats)
    return 1 if cohort.problems else 0


def _label_error(cohort: Cohort, labels: Labels, flags: dict[str, Any]) -> LabelErrorComponents:
    """The error that correcting by labels adds: of --agreement, of the effect of --code, or of an
    agent's mean."""
    from ..analysis.statistics.power_analysis import agreement_error, effect_error, mean_error

    if flags["agreement"]:
        return agreement_error(cohort, labels, flags["agreement"])
    if flags["code"]:
        return effect_error(cohort, labels, flags["code"], flags["outcome"])
    return mean_error(cohort, labels, flags["outcome"])


def _effect_size(flags: dict[str, Any]) -> float:
    """The size to detect; ConfigError unless the flags name exactly one."""
    code, effect, difference = flags["code"], flags["effect"], flags["difference"]
    is_effect = code is not None and effect is not None and difference is None
    is_difference = code is None and effect is None and difference is not None
    if not (is_effect or is_difference):
        raise ConfigError(
            "the difference or effect to detect is missing",
            "give --difference SIZE, or --code E3 --effect SIZE, or --labels DIR --half-width SIZE",
        )
    size: float = effect if is_effect else difference
    return abs(size)


def _plan_labels(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """How many labels make an interval as narrow as --half-width."""
    from ..analysis.report.results import read
    from ..analysis.statistics.comparison import check_effect_size

    size, code, item = flags["half_width"], flags["code"], flags["agreement"]
    outcome = flags["outcome"]
    conflicts = (code and item) or flags["effect"] or flags["difference"]
    if size is None or not flags["labels"] or conflicts:
        raise ConfigError(
            "the estimate that the labels correct is missing",
            "give --labels DIR --half-width SIZE, and --code E3 or --agreement E3",
        )
    check_effect_size("half-width", size, "agentic" if item else outcome)
    cohort = read_cards(obj, paths, flags, read)
    error = _label_error(cohort, labels_of(flags), flags)
    needed = error.labels_for(size)
    if needed:
        answer = f"takes {needed} {error.of}"
    else:
        answer = "cannot be reached with any number of labels, because the tasks limit it"
    sentence = (
        f"A 95 % interval of ±{size:g} for {error.what} {answer}; the present number"
        f" ({error.labels}) gives ±{error.half_width(error.labels):.3g}."
    )
    if flags["as_json"]:
        say_json(
            {
                "schema": "ambjudge.plan/1",
                "outcome": outcome,
                "code": code,
                "agreement": item,
                "half_width": size,
                "labels": needed,
                "error": asdict(error),
                "sentences": [sentence],
            }
        )
    else:
        console.say(console.wrap(sentence))
    return 1 if cohort.problems else 0


def _show_grid(rows: Sequence[dict[str, Any]], tasks: list[int], repeats: list[int]) -> None:
    """Print the power with tasks down and repeats across."""
    from ..analysis.statistics.power_analysis import format_power
    from ..analysis.tables.number_format import number

    console.say(
        console.wrap(
            "Power by the number of tasks and of runs of an agent on each task and tier (in"
            " brackets the size that is detected with power .8):"
        )
    )
    cells = {}
    for row in rows:
        cell = f"{format_power(row['power'])} ({number(row['mde80'])})"
        cells[row["tasks"], row["repeats"]] = cell
    console.table(
        ["Tasks", *(console.counted(n, "run") for n in repeats)],
        [[str(n_tasks), *(cells[n_tasks, n] for n in repeats)] for n_tasks in tasks],
        right=range(len(repeats) + 1),
    )
