"""The site of many runs: seconds of CPU and peak memory of a fresh process, and the largest page,
beside the targets.

    python benchmarks/pages.py [--runs 5000]

Half of the runs are simulated scorecards, half are the recorded runs over and over, whose
transcripts are read and shown.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

DATA = Path(__file__).parents[1] / "tests" / "data"
TARGET_SECONDS, TARGET_MB, TARGET_KB = 60.0, 600.0, 300.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5000)
    count = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        cards, out = Path(name) / "cards.jsonl", Path(name) / "site"
        command = [sys.executable, "-m", "ambjudge.cli", "-q"]
        subprocess.run([*command, "simulate", "--out", cards, "--set", "repeats=10"], check=True)
        lines = cards.read_text("utf-8").splitlines()[: count // 2]
        recorded = cycle((DATA / "tui" / "cards.jsonl").read_text("utf-8").splitlines())
        for number, line in enumerate(islice(recorded, count - len(lines))):
            card = json.loads(line)
            card["run"]["id"] += f"-{number}"
            lines.append(json.dumps(card))
        cards.write_text("\n".join(lines), "utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, "site", cards, "--runs", DATA / "recorded", "--out", out, "--no-report"],
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        pages = [page.stat().st_size for page in (out / "pages").iterdir()]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory, largest = after.ru_maxrss / 1024, max(pages) / 1000
    print(
        f"pages {len(pages):,}  cpu {cpu:.1f} s  peak {memory:.0f} MB  largest page {largest:.0f}"
        f" kB  all {sum(pages) / 1e6:.0f} MB"
    )
    print(
        f"targets at 5,000 runs: {TARGET_SECONDS:.0f} s, {TARGET_MB:.0f} MB, {TARGET_KB:.0f} kB a"
        " page"
    )
    return (
        0
        if cpu <= TARGET_SECONDS * len(pages) / 5000 + 5
        and memory <= TARGET_MB
        and largest <= TARGET_KB
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
