"""Runs many numbered sequences of steps of a state machine, for `journeys.py` and `edits.py`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from os import chdir
from pathlib import Path


def run_sequences(
    description: str, run: Callable[[int, int, list[str]], object], *, seeds: int, steps: int
) -> int:
    """Run the sequences that the command line asks for; the exit code, 1 after a fault.

    `run` is given a seed, the number of steps, and a list that it fills with the steps it makes.
    `seeds` and `steps` are the defaults.
    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=steps, help="most steps of a sequence")
    args = parser.parse_args()
    started = time.monotonic()
    faults, counts = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.seeds):
            chdir(folder)
            done: list[str] = []
            try:
                run(seed, args.steps, done)
            except Exception as error:
                faults += 1
                _print_fault(seed, error, done)
            counts.update(step.partition("(")[0].partition(" after")[0] for step in done)
            print(f"seed {seed}: {len(done)} steps", file=sys.stderr, flush=True)
    minutes = (time.monotonic() - started) / 60
    print(
        f"{counts.total()} steps in {args.seeds} sequences, {faults} of them with a fault,"
        f" {minutes:.1f} minutes, {counts.total() / minutes:.0f} steps a minute"
    )
    for name, count in counts.most_common():
        print(f"  {count:5} {name}")
    return 1 if faults else 0


def _print_fault(seed: int, error: Exception, done: list[str]) -> None:
    if isinstance(error, BaseExceptionGroup):
        # Hypothesis runs a failure twice; one that comes and goes stands in a group.
        error = error.exceptions[0]
    print(f"seed {seed}: {error}", flush=True)
    for frame in traceback.extract_tb(error.__traceback__)[-3:]:
        print(f"    {Path(frame.filename).name}:{frame.lineno} {frame.line}")
    print("    after " + ", ".join(done[-12:]), flush=True)
