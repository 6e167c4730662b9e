"""CPU time of loading and scoring a run without a model, against its targets; with another commit,
alternating with that.

    python benchmarks/throughput.py [--against COMMIT] [--runs DIR] [--inflated DIR] [--rounds 5]
    [--scout PYTHON] python benchmarks/throughput.py --many 1000,10000

Each side runs in a process of its own, reads every run once to warm up, then loads and scores each
of them several times; a run's figure is its least CPU time (`process_time`), as whatever else the
machine does only adds to it, and a side's the mean over the runs, the least of the rounds. Then one
run grown to about 1, 10 and 50 MB by turns: the slope of its time over its size, in logarithms
(target: at most 1.1).

`--scout`: an interpreter that has inspect-scout scans the same runs with a scanner that does
nothing. `--many`: instead, copies of one run through `ambjudge score`, into a new store and then
once more with nothing changed; CPU and peak memory.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from inflated import inflate
from killed import collection

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "tests" / "data" / "recorded" / "runs"
TARGETS = {"as recorded": 15.0, "inflated": 25.0}
"""Milliseconds of CPU a run."""
GROWN = (11, 118, 590)
"""Idle turns after each turn of one run."""
SLOPE = 1.1
PEAK_MB = 120
RERUN_MS = 0.3
"""CPU a run about which nothing has changed; the start of the command counts too."""
SCOUT = """
import json, sys, time, tempfile
from pathlib import Path
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_scout import Result, Transcript, scan, scanner, transcripts_db, transcripts_from
import asyncio

@scanner(name="nothing", messages="all")
def nothing():
    async def look(transcript):
        return Result(value=len(transcript.messages))
    return look

def messages(path):
    said = json.loads(path.read_text("utf-8"))
    for number, message in enumerate(said["messages"] if isinstance(said, dict) else said):
        kind = ChatMessageAssistant if message.get("role") == "assistant" else ChatMessageUser
        yield kind(id=f"{path}-{number}", content=json.dumps(message))

async def fill(place, runs):
    async with transcripts_db(place) as db:
        await db.insert(
            [
                Transcript(
                    transcript_id=str(n),
                    source_type="run",
                    source_id=str(n),
                    source_uri=str(p),
                    messages=[*messages(p)],
                )
                for n, p in enumerate(runs)
            ]
        )

runs = sorted(Path(sys.argv[1]).rglob("conversation.json")) * int(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    for some in (runs[:1], runs):
        place = f"{folder}/{len(some)}"
        asyncio.run(fill(place, some))
        started = time.process_time()
        scan(
            [nothing()],
            transcripts=transcripts_from(place),
            scans=f"{folder}/scans",
            max_processes=1,
            display="none",
        )
        used = time.process_time() - started
print(1000 * used / len(runs))
"""
WORK = """
import sys, time
from pathlib import Path
from ambjudge import load_run, score
runs = sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir())
best = {path: (9e9, 9e9) for path in runs}
score(load_run(sys.argv[2]))
for _ in range(int(sys.argv[3])):
    for path in runs:
        started = time.process_time()
        run = load_run(path)
        between = time.process_time()
        score(run)
        now = between - started, time.process_time() - between
        best[path] = tuple(map(min, now, best[path]))
print(*(1000 * sum(column) / len(runs) for column in zip(*best.values())))
"""


@contextmanager
def sides(against: str | None) -> Iterator[dict[str, Path]]:
    """Name of a side and the folder whose `ambjudge` it imports; the other commit is checked out
    for the time being."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name) / "here"
        here.mkdir()
        (here / "ambjudge").symlink_to(ROOT)
        found = {"this tree": here}
        if against:
            there = Path(name) / "there"
            subprocess.run(
                ["git", "-C", ROOT, "worktree", "add", "--detach", there / "ambjudge", against],
                check=True,
                capture_output=True,
            )
            found[against] = there
        try:
            yield found
        finally:
            if against:
                subprocess.run(
                    ["git", "-C", ROOT, "worktree", "remove", "--force", there / "ambjudge"],
                    check=True,
                )


def measure(folder: Path, runs: Path, times: int = 5) -> tuple[float, float]:
    """Milliseconds of CPU a run: loading, scoring."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORK, runs, RUNS / "kidney-lite-01", str(times)]
    loading, scoring = map(
        float,
        subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.split(),
    )
    return loading, scoring


def table(
    title: str, runs: Path, found: dict[str, Path], rounds: int, scout: str | None = None
) -> None:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, folder in found.items():
            times[name].append(measure(folder, runs))
    size = statistics.mean(f.stat().st_size for f in runs.rglob("conversation.json")) / 1000
    print(
        f"\n{title}: {len(list(runs.iterdir()))} runs, conversations of {size:.0f} kB on average,"
        f" {rounds} rounds"
    )
    least = {name: min(seen, key=sum) for name, seen in times.items()}
    base, target = least["this tree"], TARGETS[title]
    for name, (loading, scoring) in least.items():
        whole = (
            f"{loading + scoring:5.1f} ms a run, target {target:g}:"
            f" {(loading + scoring) / target:.2f} x, {_met(loading + scoring, target)}"
        )
        print(
            f"{name[:12]:12} load {loading:5.1f}, score {scoring:5.1f}, {whole}"
            f" ({_ratios(base, (loading, scoring))})"
        )
    if scout:
        beside_scout(scout, runs, sum(base))


def beside_scout(python: str, runs: Path, ours: float) -> None:
    """Milliseconds of CPU that a scan of the same runs takes, and the ratio of ours to that."""
    said = subprocess.run(
        [python, "-c", SCOUT, runs, "10"], capture_output=True, text=True, check=True
    ).stdout
    theirs = float(said.split()[-1])
    print(
        f"Inspect Scout, a scanner that does nothing: {theirs:5.1f} ms a run; ours is"
        f" {ours / theirs:.2f} x that"
    )


def many(folder: Path, here: Path, counts: Iterable[int]) -> None:
    """CPU and peak memory of `score` on many runs, new and unchanged."""
    for count in counts:
        runs, store = folder / f"{count}", folder / f"{count}.db"
        collection(runs, count)
        for name, target in (("new", None), ("unchanged", RERUN_MS * count / 1000)):
            seconds, peak = scored(here, runs, store, folder / f"{name}.jsonl")
            against = (
                ""
                if target is None
                else f", target {target:g} s: {seconds / target:.2f} x, {_met(seconds, target)}"
            )
            print(
                f"{count} runs, {name}: {seconds:.1f} s of CPU = {1000 * seconds / count:.2f} ms a"
                f" run{against}; peak {peak:.0f} MB, target {PEAK_MB}: {peak / PEAK_MB:.2f} x,"
                f" {_met(peak, PEAK_MB)}",
                flush=True,
            )
        if (folder / "new.jsonl").read_bytes() != (folder / "unchanged.jsonl").read_bytes():
            raise SystemExit("an unchanged run has another card")


def scored(here: Path, runs: Path, store: Path, out: Path) -> tuple[float, float]:
    """Seconds of CPU and the peak in MB of `ambjudge score --json` in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "ambjudge.cli",
        "-q",
        "score",
        runs,
        "--json",
        "--store",
        store,
    ]
    environment = {**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"}
    with out.open("wb") as lines:
        process = subprocess.Popen(command, stdout=lines, env=environment)
        _, status, use = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit("score failed")
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024


def _met(seen: float, target: float) -> str:
    return "met" if seen <= target else "missed"


def turns(folder: Path, here: Path) -> None:
    """The slope of CPU time over size, from the smallest to the largest."""
    points: list[tuple[float, float]] = []
    for extra in GROWN:
        place = inflate(RUNS / "kidney-lite-01", folder / f"{extra}" / "run", extra=extra)
        size = (place / "process" / "conversation.json").stat().st_size / 1e6
        seconds = sum(measure(here, place.parent, 1)) / 1000
        points.append((math.log(size), math.log(seconds)))
        print(f"{size:6.1f} MB {seconds:7.2f} s of CPU")
    (x1, y1), (x2, y2) = points[0], points[-1]
    slope = (y2 - y1) / (x2 - x1)
    print(f"slope {slope:.2f}, target at most {SLOPE}: {slope / SLOPE:.2f} x, {_met(slope, SLOPE)}")


def _ratios(base: Iterable[float], seen: Iterable[float]) -> str:
    return ", ".join(f"{b / s:.2f} x" for b, s in zip(base, seen, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--against", help="another commit of this repository, measured side by side"
    )
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--inflated", type=Path, help="the same runs at the size of real ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scout", metavar="PYTHON", help="an interpreter that has inspect-scout")
    parser.add_argument(
        "--many", metavar="N,N", help="copies of one run through the command instead: how many"
    )
    args = parser.parse_args()
    with sides(args.against) as found, tempfile.TemporaryDirectory() as name:
        if args.many:
            many(Path(name), found["this tree"], map(int, args.many.split(",")))
            return
        table("as recorded", args.runs, found, args.rounds, args.scout)
        large = args.inflated or Path(name) / "inflated"
        for run in sorted(args.runs.iterdir()) if args.inflated is None else ():
            inflate(run, large / run.name)
        table("inflated", large, found, args.rounds, args.scout)
        turns(Path(name), found["this tree"])


if __name__ == "__main__":
    main()
