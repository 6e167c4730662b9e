"""Many sequences of edits between two rejudges (tests/helpers/edit_machine.py).

    python benchmarks/edits.py --seeds 500 --steps 8     500 sequences of 8 edits
    python benchmarks/edits.py --first 17 --seeds 1      the one that failed, again

Exit 1 if a sequence ends in a fault; each fault is printed with its seed and its steps.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from os import chdir
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from edit_machine import run_edits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=8, help="edits of a sequence")
    args = parser.parse_args()
    started = time.monotonic()
    faults, steps = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.first, args.first + args.seeds):
            chdir(folder)
            try:
                done = run_edits(number, args.steps, kills=True)
            except Exception as error:
                faults += 1
                print(f"seed {number}: {error}", flush=True)
            else:
                steps.update(step.partition(" after")[0] for step in done)
    print(
        f"{sum(steps.values())} steps in {args.seeds} sequences, {faults} of them with a fault,"
        f" {time.monotonic() - started:.0f} s"
    )
    for name, count in steps.most_common():
        print(f"  {count:5} {name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
