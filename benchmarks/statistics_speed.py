"""Speed of the statistics: CPU seconds and peak memory of code effects and of all tables.

Code effects at 500,000 runs, all tables for a cohort of 5,520 runs.
"""

from __future__ import annotations

import os

# The matrices are small: threads cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import tempfile
import time
from pathlib import Path

from ambjudge.analysis import all_tables, code_effects, cohort, simulate, simulated_scorecards


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    sim = simulate(n_tasks=46, n_rep=10, seed=1)
    frame = sim.frame()
    all_tables(frame)
    start = time.process_time()
    tables = all_tables(frame)
    print(
        f"all {len(tables)} tables for {frame.height:,} runs: {time.process_time() - start:.1f} s"
        f" (target 5), peak {peak_mb():.0f} MB"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scorecards.jsonl"
        path.write_text(
            "".join(card.to_json() + "\n" for card in simulated_scorecards(sim)), encoding="utf-8"
        )
        start = time.process_time()
        cohort(path)
        seconds = time.process_time() - start
        print(
            f"reading {frame.height:,} scorecards: {seconds:.1f} s, {frame.height / seconds:,.0f} a"
            " second"
        )
    big = simulate(n_tasks=48, n_rep=870, seed=2).frame()
    start = time.process_time()
    code_effects(big)
    print(
        f"code effects at {big.height:,} runs: {time.process_time() - start:.1f} s (target 15),"
        f" peak {peak_mb():.0f} MB"
    )


if __name__ == "__main__":
    main()
