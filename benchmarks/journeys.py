"""Many steps of the state machine over whole commands (tests/helpers/cohort_machine.py).

    python benchmarks/journeys.py --seeds 50 --steps 40      50 sequences of up to 40 steps
    python benchmarks/journeys.py --first 17 --seeds 1       the one that failed, again

Exit 1 if a sequence ends in a fault; each fault is printed with its seed and its steps.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from os import chdir
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from cohort_machine import run_sequence


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=40, help="most steps of a sequence")
    args = parser.parse_args()
    started = time.monotonic()
    faults, steps = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        chdir(folder)
        for number in range(args.first, args.first + args.seeds):
            done: list[str] = []
            try:
                run_sequence(number, args.steps, done, kills=True)
            except Exception as error:
                faults += 1
                if isinstance(error, BaseExceptionGroup):
                    # Hypothesis runs a failure twice; one that comes and goes stands in a group.
                    error = error.exceptions[0]
                print(f"seed {number}: {error}", flush=True)
                frames = traceback.extract_tb(error.__traceback__)
                for frame in frames[-3:]:
                    print(f"    {Path(frame.filename).name}:{frame.lineno} {frame.line}")
                print("    after " + ", ".join(done[-12:]), flush=True)
            steps.update(step.partition("(")[0] for step in done)
            print(f"seed {number}: {len(done)} steps", file=sys.stderr, flush=True)
    minutes = (time.monotonic() - started) / 60
    print(
        f"{sum(steps.values())} steps in {args.seeds} sequences, {faults} of them with a fault,"
        f" {minutes:.1f} minutes, {sum(steps.values()) / minutes:.0f} steps a minute"
    )
    for name, count in steps.most_common():
        print(f"  {count:5} {name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
