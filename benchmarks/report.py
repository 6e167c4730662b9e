"""Full report of a simulated cohort: seconds and peak memory of a fresh process, beside the targets.

    python benchmarks/report.py [--repeats 20]

20 repeats are 5,760 runs (6 agents x 24 tasks x 2 tiers). The cohort is written first; only `analyze --out` is timed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET_SECONDS, TARGET_MB = 10.0, 600.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cards = folder / "cards.jsonl"
        command = [sys.executable, "-m", "ambjudge.cli", "-q"]
        subprocess.run(
            [*command, "simulate", "--out", cards, "--seed", str(args.seed), "--repeats", str(args.repeats)], check=True
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run([*command, "analyze", cards, "--out", folder / "out"], check=True)
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs = sum(1 for _ in cards.open("rb"))
        page = (folder / "out" / "report.html").stat().st_size
    memory = after.ru_maxrss / 1024  # the larger of the two children; analysing needs more than simulating
    print(f"runs {runs:,}  wall {wall:.1f} s  cpu {cpu:.1f} s  peak {memory:.0f} MB  report.html {page / 1e6:.2f} MB")
    print(f"targets at 5,500 runs: {TARGET_SECONDS:.0f} s, {TARGET_MB:.0f} MB")
    return 0 if cpu <= TARGET_SECONDS and memory <= TARGET_MB else 1


if __name__ == "__main__":
    sys.exit(main())
