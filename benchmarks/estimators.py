"""The statistics against planted truth, and their speed: `python benchmarks/estimators.py [replicates]`.

Prints every gate of the self-check with its target, then seconds and peak memory of code effects at 500,000 runs and of
all tables for a cohort of 5,520 runs. Exit code 1 when a gate fails.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads cost more than they give

import resource
import sys
import tempfile
import time
from pathlib import Path

from ambjudge.analysis import all_tables, code_effects, cohort, selfcheck, simulate, simulated_scorecards


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    start = time.perf_counter()
    gates = selfcheck(replicates)
    print(f"Gates over {replicates} simulated cohorts of 3,456 runs ({time.perf_counter() - start:.0f} s)\n")
    print(f"{'part':12} {'quantity':52} {'value':>9}  {'target':>16}")
    for row in gates.iter_rows(named=True):
        high = "" if row["target_hi"] is None else f"{row['target_hi']:g}"
        target = f"{row['target_lo']:g} to {high}" if high else f"above {row['target_lo']:g}"
        verdict = "ok" if row["passed"] else "MISSED"
        print(f"{row['part']:12} {row['quantity']:52} {row['value']:9.3g}  {target:>16}  {verdict}")

    sim = simulate(n_tasks=46, n_rep=10, seed=1)
    frame = sim.frame()
    all_tables(frame)
    start = time.perf_counter()
    tables = all_tables(frame)
    print(
        f"\nall {len(tables)} tables for {frame.height:,} runs: {time.perf_counter() - start:.1f} s (target 5), peak {peak_mb():.0f} MB"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scorecards.jsonl"
        path.write_text("".join(card.to_json() + "\n" for card in simulated_scorecards(sim)), encoding="utf-8")
        start = time.perf_counter()
        cohort(path)
        seconds = time.perf_counter() - start
        print(f"reading {frame.height:,} scorecards: {seconds:.1f} s, {frame.height / seconds:,.0f} a second")
    big = simulate(n_tasks=48, n_rep=870, seed=2).frame()
    start = time.perf_counter()
    code_effects(big)
    print(
        f"code effects at {big.height:,} runs: {time.perf_counter() - start:.1f} s (target 15), peak {peak_mb():.0f} MB"
    )
    missed = gates.height - int(gates["passed"].sum())
    print(f"\n{gates.height - missed} of {gates.height} gates met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
