"""ambjudge plan: how many tasks, repeats and labels a result takes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import ConfigError
from .cohort_input import labels_of, read_cards, say_json
from .options import OUTCOME, PATHS, STORE, json_option, judged_by, policy_options, run_options

if TYPE_CHECKING:
    from ..analysis.planning import Plan


@click.command(
    "plan",
    epilog="\b\nExamples:\n  ambjudge plan pilot.jsonl --difference 5\n  ambjudge plan pilot.jsonl --code E3 --effect 8",
)
@PATHS
@click.option("--difference", type=float, metavar="SIZE", help="Of two agents, in units of the outcome.")
@click.option("--code", type=click.Choice(["E1", "E2", "E3", "E4", "E5"]), help="Plan for the effect of a code.")
@click.option("--effect", type=float, metavar="SIZE", help="Of --code.")
@click.option(
    "--power", "target", type=click.FloatRange(0.05, 0.999), default=0.8, help="Probability to find it.  [0.8]"
)
@click.option("--labels", metavar="DIR", type=click.Path(), help="Human labels: how many correct the judge's error.")
@OUTCOME
@judged_by("the judge with most")
@json_option("One JSON object on stdout.")
@STORE
@run_options
@policy_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """How many tasks, repeats and labels find a difference or an effect of a given size, by a cohort's own spread.

    PATH holds runs like those planned: a pilot with repeats, two agents or more, and two tasks or more.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.comparison import check_size
    from ..analysis.planning import difference_noise, effect_noise, label_spread, plan, power, sentences
    from ..analysis.results import read, rows
    from ..analysis.sample_sizes import variance_components

    code, outcome = flags["code"], flags["outcome"]
    size = flags["effect"] if code else flags["difference"]
    if size is None or (flags["effect"] is None) != (code is None) or (code and flags["difference"] is not None):
        raise ConfigError("plan for what?", "give --difference SIZE, or --code E3 --effect SIZE")
    if code and flags["labels"]:
        raise ConfigError("--labels plans for a difference, not for the effect of a code", "leave one of them out")
    check_size("effect" if code else "difference", abs(size), outcome)
    found = read_cards(obj, paths, flags, read, judge=flags["judge"])
    spread = label_spread(found, labels_of(flags), outcome) if flags["labels"] else None
    noise = (
        effect_noise(found.runs, code, outcome) if code else difference_noise(variance_components(found.runs, outcome))
    )
    planned = plan(noise, abs(size), target=flags["target"], spread=spread)
    now = noise.tasks, max(noise.least_repeats, round(noise.repeats))
    tasks = sorted({max(2, now[0] // 2), *(now[0] * k for k in (1, 2, 4))})
    repeats = sorted({noise.least_repeats, 5, now[1], 20})
    table = power(noise, tasks=tasks, repeats=repeats, size=abs(size))
    word = outcome.removeprefix("outcome.")
    what = f"An effect of {code} on {word}" if code else f"A difference of two agents in mean {word}"
    said = sentences(planned, what, " points" if outcome == "overall" else "")
    if flags["as_json"]:
        say_json({"schema": "ambjudge.plan/1", "outcome": outcome, "code": code, "plan": asdict(planned), "rows": rows(table), "sentences": said})  # fmt: skip
        return 1 if found.problems else 0
    console.say(console.wrap(" ".join(said)))
    console.say()
    heading = "Power by tasks and runs of an agent on a task and tier (in brackets the size found with power .8):"
    console.say(console.wrap(heading))
    _grid(planned, table.rows(named=True), tasks, repeats)
    return 1 if found.problems else 0


def _grid(planned: Plan, rows: list[dict[str, Any]], tasks: list[int], repeats: list[int]) -> None:
    """Tasks down, repeats across."""
    from ..analysis.display import number
    from ..analysis.planning import share

    cell = {(row["tasks"], row["repeats"]): f"{share(row['power'])} ({number(row['mde80'])})" for row in rows}
    lines = [[str(t), *(cell[t, n] for n in repeats)] for t in tasks]
    console.table(["Tasks", *(f"{n} run{'s' * (n > 1)}" for n in repeats)], lines, right=range(len(repeats) + 1))
