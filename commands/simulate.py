"""ambjudge simulate: cohorts with planted truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .. import console
from ..atomic_files import whole
from ..errors import ConfigError, InputError

POSITIVE = click.IntRange(min=1)


@click.command(
    "simulate",
    epilog="\b\nExample:\n  ambjudge simulate --out cards.jsonl --seed 7",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(),
    help="Scorecards as JSON Lines; FILE.truth.json beside it.",
)
@click.option(
    "--preset", default="paper", metavar="NAME", help="paper, null, judge (tag errors), halo."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, help="Same seed, same cohort.  [1]")
@click.option("--agents", "n_agents", type=POSITIVE, help="Number of agents.  [6]")
@click.option("--tasks", "n_tasks", type=POSITIVE, help="Number of tasks.  [24]")
@click.option("--tracks", "n_tracks", type=click.IntRange(1, 7), help="Number of tracks.  [5]")
@click.option(
    "--repeats", "n_rep", type=POSITIVE, help="Runs of an agent on a task in a tier.  [12]"
)
@click.option(
    "--set",
    "switches",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Any switch of the simulator (repeatable).",
)
@click.pass_obj
def command(obj: dict[str, Any], /, **flags: Any) -> int:
    """Write a cohort whose true effects are known.

    Without --out the scorecards go to stdout.
    """
    return run(obj, flags)


SIZES = ("n_agents", "n_tasks", "n_tracks", "n_rep")


def run(obj: dict[str, Any], flags: dict[str, Any]) -> int:
    """The exit code."""
    switches = {name: flags[name] for name in SIZES if flags[name] is not None} | _switches(
        flags["switches"]
    )
    from ..analysis.simulated.simulated_cards import simulated_scorecards
    from ..analysis.simulated.simulation import simulate

    sim = simulate(flags["preset"], seed=flags["seed"], **switches)
    cards = simulated_scorecards(sim)
    if not flags["out"]:
        for card in cards:
            console.raw(card.to_json())
        return 0
    path = Path(flags["out"])
    try:
        with whole(path) as part, part.open("w", encoding="utf-8") as stream:
            for card in cards:
                stream.write(card.to_json() + "\n")
        truth = _truth(sim, flags)
        beside = path.with_name(path.name + ".truth.json")
        beside.write_text(json.dumps(truth, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another --out", path
        ) from error
    console.note(
        f"wrote {sim.n} scorecards to {path} and the true effects to {beside}", obj["quiet"]
    )
    return 0


def _switches(texts: tuple[str, ...]) -> dict[str, float | int]:
    """NAME=NUMBER pairs. Raises ConfigError for anything else."""
    out: dict[str, float | int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            out[name.strip()] = int(value) if value.strip().lstrip("-").isdigit() else float(value)
        except ValueError:
            raise ConfigError(f"--set {text}: not NAME=NUMBER", "e.g. --set halo=1.5") from None
    return out


def _truth(sim: Any, flags: dict[str, Any]) -> dict[str, Any]:
    from ..analysis.simulated.simulation import sample_truth

    return {
        "preset": flags["preset"],
        "seed": flags["seed"],
        "runs": sim.n,
        "effects": sample_truth(sim),
    }
