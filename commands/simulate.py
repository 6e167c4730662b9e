"""ambjudge simulate: cohorts with planted truth, and the estimators checked on them."""

from __future__ import annotations

from typing import Any

import click

POSITIVE = click.IntRange(min=1)


@click.command(
    "simulate",
    epilog="\b\nExamples:\n  ambjudge simulate --out cards.jsonl --seed 7\n  ambjudge simulate --check --replicates 40",
)
@click.option("--out", metavar="FILE", type=click.Path(), help="Scorecards as JSON Lines; FILE.truth.json beside it.")
@click.option(
    "--preset", default="paper", metavar="NAME", help="paper, null, judge (tag errors), halo, additive (--check only)."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, help="Same seed, same cohort.  [1]")
@click.option("--agents", "n_agents", type=POSITIVE, help="Number of agents.  [6]")
@click.option("--tasks", "n_tasks", type=POSITIVE, help="Number of tasks.  [24]")
@click.option("--tracks", "n_tracks", type=click.IntRange(1, 7), help="Number of tracks.  [5]")
@click.option("--repeats", "n_rep", type=POSITIVE, help="Runs of an agent on a task in a tier.  [12]")
@click.option(
    "--set", "switches", multiple=True, metavar="NAME=NUMBER", help="Any switch of the simulator (repeatable)."
)
@click.option("--check", is_flag=True, help="A small Monte Carlo: bias and coverage beside their targets.")
@click.option("--part", "parts", multiple=True, metavar="NAME", help="With --check: only these parts (repeatable).")
@click.option(
    "--replicates", type=click.IntRange(2, 10_000), default=40, help="With --check.  [40; targets are for 200]"
)
@click.option("--json", "as_json", is_flag=True, help="With --check: one JSON object on stdout.")
@click.pass_obj
def command(obj: dict[str, Any], /, **flags: Any) -> int:
    """Write a cohort whose true effects are known, or check the estimators on many of them.

    Without --out the scorecards go to stdout. --check exits with 1 when a number misses its target by more than chance.
    """
    from .simulating import simulate

    return simulate(obj, flags)
