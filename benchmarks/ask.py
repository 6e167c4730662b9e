"""A question to many real runs, with a provider that fails now and then: calls, what is unscored,
what asking again costs.

    python benchmarks/ask.py [--runs FOLDER] [--concurrency 8]

FOLDER: AMBJUDGE_EXTERNAL_DATA, else ../shared/data/external (246 public runs of other agents). The
judge is the scripted server of the tests, in a process of its own, so that memory is that of asking
alone. Three times the same question: the first time a quarter of the answers fails in every way
that answers fail, the second time all is well, the third time there is nothing to ask. Seconds
depend on what else the machine does; calls and answers do not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ambjudge.judge.ad_hoc import ask
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.questions.items import ask_item
from ambjudge.judge.store import open_store
from ambjudge.trajectories.reading.layout import find_conversations

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "tests" / "helpers" / "loopback_server.py"
PLAY = [
    "good",
    "lowest",
    "good",
    "cannot_tell",
    "good",
    "malformed",
    "lowest",
    "false_quote",
    "good",
    "500",
    "good",
    "length",
    "good",
    "refusal",
    "moved_quote",
    "huge",
]
QUESTION = ask_item("Did the agent check its result before it handed it over?")


def peak() -> float:
    """MB that this process has held at the most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def once(store, runs: list[Path], judge: ApiJudge, concurrency: int) -> list:
    began, memory = time.perf_counter(), {}

    def tell(spending) -> None:
        done, total = spending.progress.done, spending.progress.total or 1
        for share in (25, 50, 100):
            if 100 * done >= share * total:
                memory.setdefault(share, peak())

    done = await ask(
        store, runs, judge, QUESTION, concurrency=concurrency, on_progress=tell, signals=False
    )
    answers = list(done.answers)
    taken = time.perf_counter() - began
    used = done.execution.usage if done.execution else None
    reasons = Counter(a.reason for a in answers if a.reason is not None)
    checks = Counter(q.check for a in answers for q in a.quotes)
    print(
        f"{len(answers)} runs ({len(done.broken)} unreadable), {done.plan.read} read,"
        f" {done.plan.calls} questions in {used.calls if used else 0} calls"
        f" ({used.input_tokens if used else 0:,} tokens in), {taken:.1f} s"
    )
    print(
        f"  yes {sum(a.answer is True for a in answers)}, no"
        f" {sum(a.answer is False for a in answers)}, cannot tell {reasons.pop('no_evidence', 0)},"
        f" unscored {reasons.total()} {dict(reasons)}"
    )
    print(f"  quotes: {dict(checks)}")
    print(
        f"  peak memory {peak():.0f} MB"
        + "".join(f", at {share}% of the calls {mb:.0f}" for share, mb in memory.items())
    )
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path, help="default: AMBJUDGE_EXTERNAL_DATA")
    parser.add_argument("--concurrency", type=int, default=8)
    args = parser.parse_args()
    folder = args.runs or Path(
        os.environ.get("AMBJUDGE_EXTERNAL_DATA") or ROOT.parent / "shared" / "data" / "external"
    )
    if not folder.is_dir():
        print(f"NO RUNS at {folder}: give --runs, or set AMBJUDGE_EXTERNAL_DATA")
        return
    runs = list(find_conversations(folder))
    print(
        f"{len(runs)} runs below {folder}, {sum(path.stat().st_size for path in runs) / 1e6:.0f}"
        f" MB; {peak():.0f} MB at the start"
    )
    command = [
        sys.executable,
        str(SERVER),
        "--script",
        *(PLAY * max(1, len(runs) // len(PLAY))),
        "good",
    ]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as place,
    ):
        try:
            url = server.stdout.readline().strip()
            judge = ApiJudge(
                "m", url, api_key="none", retry=Retry(attempts=1, total_s=60, first_s=0.01)
            )
            with open_store(Path(place) / "s.db") as store:
                for title in ("a provider that fails", "asking again", "nothing to ask"):
                    print(f"\n{title}")
                    asyncio.run(once(store, runs, judge, args.concurrency))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
