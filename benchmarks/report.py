"""Many scorecards through analyze, leaderboard and verify: CPU and peak memory of fresh processes
beside their targets.

    python benchmarks/report.py [--seed 1]

5,760 simulated runs (6 agents x 24 tasks x 2 tiers x 20) and 50,112 (174 repeats); all tables,
figures and the page. Exit 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = {
    20: {"analyze": (10.0, 600)},
    174: {"analyze": (12.0, None), "leaderboard": (None, None), "verify": (None, 150)},
}
"""Repeats -> command -> (seconds of CPU, MB); None where no target is set."""


def used(*arguments: str | Path) -> tuple[float, float]:
    """CPU seconds and MB of a command. Simulated scorecards need not add up: verify ends with 1 for
    them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ambjudge.cli", "-q", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"ambjudge {arguments[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(what: str, unit: str, target: float | None, measured: float) -> bool:
    """Prints a line; whether the target, if any, is met."""
    met = target is None or measured <= target
    beside = (
        f"target {target:,.0f} {unit}, ratio {measured / target:.2f}, {'met' if met else 'missed'}"
        if target
        else "no target"
    )
    print(f"{what:28} {measured:8,.1f} {unit:3} ({beside})", flush=True)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    every = True
    for repeats, commands in SIZES.items():
        with tempfile.TemporaryDirectory() as name:
            cards, out = Path(name) / "cards.jsonl", Path(name) / "out"
            size = ("--set", f"repeats={repeats}")
            used("simulate", "--out", cards, "--seed", str(args.seed), *size)
            runs = 288 * repeats
            for command, (seconds, memory) in commands.items():
                cpu, peak = used(command, cards, *(["--out", out] if command == "analyze" else []))
                every &= row(f"{command}, {runs:,} runs", "s", seconds, cpu)
                every &= row(f"{command}, {runs:,} runs", "MB", memory, peak)
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
