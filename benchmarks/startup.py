"""How long commands take to start, beside a bare interpreter, alternating in one run.

python benchmarks/startup.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).parent / "ambjudge")
CASES: dict[str, list[str]] = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "ambjudge --version": [COMMAND, "--version"],
    "ambjudge --help": [COMMAND, "--help"],
    "ambjudge score --help": [COMMAND, "score", "--help"],
    "python -c 'import ambjudge'": [sys.executable, "-c", "import ambjudge"],
    "ambjudge segment (one run)": [COMMAND, "segment", str(ROOT / "examples" / "codes")],
    "ambjudge score (one run)": [COMMAND, "score", str(ROOT / "examples" / "codes")],
}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for number in range(rounds + 1):
        for name, command in CASES.items():
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            if number:  # the first round warms caches
                times[name].append(time.perf_counter() - started)
    base = statistics.median(times["python -c pass"])
    print(f"{'':<30} median   over python -c pass   ({rounds} rounds)")
    for name, seen in times.items():
        middle = statistics.median(seen)
        print(
            f"{name:<30} {1000 * middle:5.0f} ms   {1000 * (middle - base):+6.0f} ms  "
            f" {middle / base:5.1f} x"
        )


if __name__ == "__main__":
    main()
