"""Many runs in one process and in several: seconds, CPU, memory, and the same bytes; then the same
store again.

    python benchmarks/workers.py [--runs 1000] [--workers 1,2] [--quiet 600]

The recorded runs are copied until there are enough, all files an hour old. `again` repeats the
command on the store that the first one filled: what an unchanged run costs. Against one worker,
without a store: CPU (target at most 1.1 x) and, for two workers, how many times as fast (target at
least 1.8 x, on two quiet cores; `--quiet` waits so many seconds for them).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from targets import against, wait_until_quiet

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "tests" / "data" / "recorded" / "runs"


def collection(folder: Path, count: int) -> None:
    """`count` copies of the recorded runs below the folder."""
    for number, run in enumerate(islice(cycle(sorted(RUNS.iterdir())), count)):
        shutil.copytree(run, folder / f"{number:05}-{run.name}")
    past = time.time() - 3600
    for where, folders, files in os.walk(folder):
        for entry in (".", *folders, *files):
            os.utime(Path(where) / entry, (past, past))


def measure(
    what: str, runs: Path, count: int, out: Path, *options: str
) -> tuple[str, float, float]:
    """Print one line; the hash of what was written, seconds of wall time and of CPU."""
    here = out.parent / "here"
    here.mkdir(exist_ok=True)
    if not (here / "ambjudge").exists():
        (here / "ambjudge").symlink_to(ROOT)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [
        sys.executable,
        "-m",
        "ambjudge.cli",
        "-q",
        "score",
        str(runs),
        "--out",
        str(out),
        *options,
    ]
    with out.with_suffix(".txt").open("w", encoding="utf-8") as table:
        done = subprocess.run(
            command,
            stdout=table,
            env={**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"},
            check=False,
        )
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{what}: exit code {done.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{what:28} {wall:7.1f} s, CPU {cpu:7.1f} s, {1000 * cpu / count:6.1f} ms a run, largest"
        f" process {after.ru_maxrss / 1024:.0f} MB"
    )
    return hashlib.sha256(out.read_bytes()).hexdigest(), wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--quiet", type=float, default=0.0, metavar="SECONDS")
    args = parser.parse_args()
    wait_until_quiet(args.quiet)
    first: tuple[float, float] | None = None
    with tempfile.TemporaryDirectory() as name:
        runs, seen = Path(name) / "runs", set()
        collection(runs, args.runs)
        for workers in args.workers.split(","):
            store = Path(name) / f"{workers}.db"
            for what, kept in (
                ("no store", "none"),
                ("new store", str(store)),
                ("again", str(store)),
            ):
                label = f"{workers} worker{'s' * (workers != '1')}, {what}"
                options = ("--workers", workers, "--store", kept)
                digest, wall, cpu = measure(
                    label, runs, args.runs, Path(name) / "cards.jsonl", *options
                )
                seen.add(digest)
                if what == "no store" and first is None:
                    first = wall, cpu
                elif what == "no store" and first is not None:
                    against(f"CPU of {workers} workers", cpu / first[1], 1.1, "x that of one")
                    against(
                        f"speed of {workers} workers",
                        first[0] / wall,
                        0.9 * int(workers),
                        "x that of one",
                        least=True,
                    )
        print("the same bytes" if len(seen) == 1 else "THE BYTES DIFFER")
        if len(seen) != 1:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
