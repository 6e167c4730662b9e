"""kill -9 and a full disk while score, export, analyze and site write: is anything torn, and does
the same command go on?

    python benchmarks/faults.py [--kills 52] [--full 5] [--seed 0]

Each command runs undisturbed first; what it wrote is the measure. Then it is killed at random
shares of its output, in a new folder each time, and started once more; and it runs on a tmpfs that
is too small, which then grows (root alone can mount one). After each fault: every file under its
final name is the undisturbed one byte for byte, the store passes SQLite's integrity check, the
command run once more writes what it undisturbed wrote. On the full disk: exit code 1 or 2 and one
line of error. Exit 1 where anything else is seen.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "tests" / "data" / "recorded" / "runs"


@dataclass(frozen=True)
class Case:
    """A command that writes below a folder. `finals`: what it wrote undisturbed, the store left
    out."""

    name: str
    arguments: Callable[[Path], list[str]]
    finals: dict[str, bytes] = field(default_factory=dict)


def cases(cards: Path) -> list[Case]:
    score = ["score", str(RUNS), "--json"]
    return [
        Case(
            "score",
            lambda out: [*score, "--out", str(out / "cards.jsonl"), "--store", str(out / "s.db")],
        ),
        Case(
            "export",
            lambda out: [
                "export",
                str(cards),
                "--what",
                "criteria",
                "--out",
                str(out / "c.parquet"),
            ],
        ),
        Case("report", lambda out: ["analyze", str(cards), "--out", str(out / "report")]),
        Case(
            "site",
            lambda out: ["site", str(cards), "--runs", str(RUNS), "--out", str(out / "site")],
        ),
    ]


def started(case: Case, out: Path, place: Path) -> subprocess.Popen[str]:
    code = "from ambjudge.cli import main; main()"
    if not (place / "ambjudge").exists():
        (place / "ambjudge").symlink_to(ROOT)
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "OMP_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-c", code, "-q", *case.arguments(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=place,
    )


def files(out: Path) -> Iterator[tuple[str, Path]]:
    """What lies below a folder; a process may be writing there."""
    for where, _, names in os.walk(out):
        for name in names:
            path = Path(where, name)
            yield str(path.relative_to(out)), path


def size(out: Path) -> int:
    total = 0
    for _, path in files(out):
        try:
            total += path.stat().st_size
        except OSError:
            continue  # renamed meanwhile
    return total


def unfinished(name: str) -> bool:
    """A name that says so: what a killed command may leave."""
    return name.endswith(".ambjudge-part") or name.startswith("s.db")


def torn(case: Case, out: Path) -> list[str]:
    """What is wrong below a folder after a fault."""
    wrong = []
    for name, path in files(out):
        if name == "s.db":
            with closing(sqlite3.connect(path)) as store:
                said = store.execute("pragma integrity_check").fetchone()[0]
            wrong += [] if said == "ok" else [f"{name}: {said}"]
        elif not unfinished(name) and case.finals.get(name) != path.read_bytes():
            wrong.append(f"{name} is torn")
    return wrong


def finished(case: Case, out: Path, place: Path) -> list[str]:
    """What is wrong after the command ran once more."""
    process = started(case, out, place)
    said = process.communicate()[1]
    if process.returncode not in (0, 1):
        return [f"once more: exit code {process.returncode}, {said.strip()[:200]}"]
    missing = case.finals.keys() - {name for name, _ in files(out)}
    return [
        *(f"once more: no {name}" for name in sorted(missing)),
        *(f"once more: {w}" for w in torn(case, out)),
    ]


def killed(case: Case, place: Path, share: float, whole: int) -> list[str]:
    """Kill the command when it has written this share of its bytes; what is then wrong."""
    out = place / "out"
    out.mkdir()
    process = started(case, out, place)
    while process.poll() is None and size(out) < max(1, share * whole):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wrong = torn(case, out) + finished(case, out, place)
    shutil.rmtree(out)
    return [f"{case.name} killed at {share:.2f}: {what}" for what in wrong]


def filled(case: Case, place: Path, share: float, whole: int) -> list[str]:
    """Run the command where only this share of its bytes has room; what is then wrong."""
    out = place / "small"
    out.mkdir(exist_ok=True)
    room = max(4096, int(share * whole))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", out], check=True)
    try:
        process = started(case, out, place)
        said = process.communicate()[1]
        wrong = torn(case, out)
        if (
            process.returncode not in (1, 2)
            or len(said.splitlines()) != 1
            or "internal error" in said
        ):
            wrong.append(f"exit code {process.returncode}, {said.strip()[:300]!r}")
        subprocess.run(["mount", "-o", f"remount,size={4 * whole + (64 << 20)}", out], check=True)
        wrong += finished(case, out, place)
    finally:
        subprocess.run(["umount", "--lazy", out], check=True)
    return [f"{case.name} with room for {share:.2f}: {what}" for what in wrong]


def mountable(place: Path) -> bool:
    out = place / "small"
    out.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", out], capture_output=True
    ).returncode:
        return False
    subprocess.run(["umount", "--lazy", out], check=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=52, help="in all, shared by the commands")
    parser.add_argument(
        "--full", type=int, default=5, help="sizes of the small disk, for each command"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, wrong = random.Random(args.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cards = place / "cards.jsonl"
        able = mountable(place)
        for case in [
            Case("cards", lambda out: ["score", str(RUNS), "--out", str(cards), "--store", "none"]),
            *cases(cards),
        ]:
            out = place / "out"
            out.mkdir()
            process = started(case, out, place)
            said = process.communicate()[1]
            if process.returncode not in (0, 1):
                print(f"{case.name}: exit code {process.returncode}: {said}")
                return 1
            case.finals.update(
                {
                    name: path.read_bytes()
                    for name, path in files(out)
                    if not name.startswith("s.db")
                }
            )
            whole = size(out)
            shutil.rmtree(out)
            if case.name == "cards":
                continue
            for what, fault, count in (
                ("kill -9", killed, args.kills // 4),
                ("full disk", filled, args.full),
            ):
                if fault is filled and not able:
                    print(f"{case.name:8} {what:10} skipped: no tmpfs can be mounted here")
                    continue
                found = [
                    w for _ in range(count) for w in fault(case, place, rng.uniform(0, 0.98), whole)
                ]
                met = "missed" if found else "met"
                print(
                    f"{case.name:8} {what:10} target 0 faults, measured {len(found)} in {count}"
                    f" trials, {met}",
                    flush=True,
                )
                print(
                    *(f"  {w}" for w in found[:20]), sep="\n", end="\n" if found else "", flush=True
                )
                wrong += len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
