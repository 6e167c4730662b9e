"""ambjudge simulate: cohorts with planted truth."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..atomic_files import atomic_write
from ..errors import ConfigError, InputError
from .grouped_help import command as grouped_command
from .grouped_help import option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..analysis.simulated.simulation import Simulation


@grouped_command(
    "simulate",
    "ambjudge simulate --out cards.jsonl --seed 7",
    "ambjudge simulate --preset null --set agents=4 --set repeats=20 --out cards.jsonl",
)
@option(
    "--preset",
    default="paper",
    metavar="NAME",
    help="Plant this truth: paper, null, judge (errors in codes) or halo.  [paper]",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=1,
    help="The same seed, the same cohort.  [1]",
)
@option(
    "--set",
    "switches",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Set agents, tasks, tracks, repeats, tiers or any switch of the simulator; repeatable.",
)
@option(
    "--out",
    heading="Output",
    metavar="FILE",
    type=LocalPath(),
    help="Write scorecards (JSON Lines) here and the truth to FILE.truth.json.",
)
@click.pass_obj
def command(obj: dict[str, Any], /, **flags: Any) -> int:
    """Write a cohort whose true effects are known: by default 6 agents, 24 tasks in 5 tracks, 12
    repeats in each tier.

    Without --out, the scorecards go to stdout.
    """
    return run(obj, flags)


def run(obj: dict[str, Any], flags: dict[str, Any]) -> int:
    """The exit code."""
    switches = _parse_switches(flags["switches"])
    from ..analysis.simulated.simulated_cards import simulated_scorecards
    from ..analysis.simulated.simulation import simulate

    simulation = simulate(flags["preset"], seed=flags["seed"], **switches)
    lines = (card.to_json() for card in simulated_scorecards(simulation))
    if not flags["out"]:
        for line in lines:
            console.raw(line)
        return 0
    file = Path(flags["out"])
    truth_file = file.with_name(file.name + ".truth.json")
    truth = _truth(simulation, flags["preset"], flags["seed"])
    _write(file, lines, truth_file, truth)
    console.note(
        f"wrote {simulation.n} scorecards to {file} and the true effects to {truth_file}",
        obj["quiet"],
    )
    return 0


def _write(file: Path, lines: Iterable[str], truth_file: Path, truth: dict[str, Any]) -> None:
    try:
        with atomic_write(file) as part, part.open("w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines)
        text = json.dumps(truth, indent=1, allow_nan=False)
        truth_file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another --out", file
        ) from error


def _parse_switches(texts: Iterable[str]) -> dict[str, Any]:
    """NAME=NUMBER pairs. ConfigError for anything else."""
    switches: dict[str, Any] = {}
    for text in texts:
        name, _, number = (part.strip() for part in text.partition("="))
        try:
            is_integer = number.lstrip("-").isdigit()
            switches[name] = int(number) if is_integer else float(number)
        except ValueError:
            raise ConfigError(f"--set {text}: is not NAME=NUMBER", "e.g. --set halo=1.5") from None
    return switches


def _truth(simulation: Simulation, preset: str, seed: int) -> dict[str, Any]:
    """What was planted, as it shows in this sample."""
    from ..analysis.simulated.simulation import sample_truth

    return {
        "preset": preset,
        "seed": seed,
        "runs": simulation.n,
        "effects": sample_truth(simulation),
    }
