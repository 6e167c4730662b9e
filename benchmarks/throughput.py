"""CPU time of loading and scoring a run without a model, beside the same of another commit, alternating in one run.

    python benchmarks/throughput.py [--against COMMIT] [--runs DIR] [--inflated DIR] [--rounds 5]

Each side runs in a process of its own, reads every run once to warm up, then loads and scores all of them again; the figure
is its CPU time (`process_time`) a run, the median of the rounds. Without `--against` only the working tree is measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "tests" / "data" / "recorded" / "runs"
WORK = """
import sys, time
from pathlib import Path
from ambjudge import load_run, score
runs = sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir())
for path in runs:
    score(load_run(path))
started = time.process_time()
loaded = [load_run(path) for path in runs]
between = time.process_time()
for run in loaded:
    score(run)
print(len(runs), between - started, time.process_time() - between)
"""


@contextmanager
def sides(against: str | None) -> Iterator[dict[str, Path]]:
    """Name of a side and the folder whose `ambjudge` it imports; the other commit is checked out for the time being."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name) / "here"
        here.mkdir()
        (here / "ambjudge").symlink_to(ROOT)
        found = {"this tree": here}
        if against:
            there = Path(name) / "there"
            subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", there / "ambjudge", against], check=True, capture_output=True)  # fmt: skip
            found[against] = there
        try:
            yield found
        finally:
            if against:
                subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", there / "ambjudge"], check=True)


def measure(folder: Path, runs: Path) -> tuple[float, float]:
    """Milliseconds of CPU a run: loading, scoring."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", WORK, runs], env=environment, capture_output=True, text=True, check=True)  # fmt: skip
    count, loading, scoring = (float(word) for word in done.stdout.split())
    return 1000 * loading / count, 1000 * scoring / count


def table(title: str, runs: Path, found: dict[str, Path], rounds: int) -> None:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, folder in found.items():
            times[name].append(measure(folder, runs))
    size = statistics.mean(f.stat().st_size for f in runs.rglob("conversation.json")) / 1000
    print(f"\n{title}: {len(list(runs.iterdir()))} runs, conversations of {size:.0f} kB on average, {rounds} rounds")
    middles = {name: [statistics.median(column) for column in zip(*seen, strict=True)] for name, seen in times.items()}
    base = middles["this tree"]
    for name, (loading, scoring) in middles.items():
        print(
            f"{name[:12]:12} load {loading:6.1f} ms, score {scoring:6.1f} ms a run ({_ratios(base, (loading, scoring))})"
        )


def _ratios(base: Iterable[float], seen: Iterable[float]) -> str:
    return ", ".join(f"{b / s:.2f} x" for b, s in zip(base, seen, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", help="another commit of this repository, measured side by side")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--inflated", type=Path, help="the same runs at the size of real ones")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with sides(args.against) as found:
        table("as recorded", args.runs, found, args.rounds)
        if args.inflated:
            table("inflated", args.inflated, found, args.rounds)


if __name__ == "__main__":
    main()
