"""Runs that still go on: what is said of them before their end, and how soon `watch` says it.

    python benchmarks/running.py [--writers 12]

Prefixes: every recorded run cut after each turn and scored as running. Counted are codes that need
an end, and runs with a false alarm: a code that fires in a prefix though the whole run lacks it.
Watch: a thread writes conversations turn by turn, torn at random places, while `ambjudge watch`
reads them in another process. An alarm is late by the turns between the first prefix that shows the
code and the turn at which it was reported.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ambjudge.error_codes.models import FiredCode
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import make_scorecard
from ambjudge.trajectories.reading.load import load_conversation
from ambjudge.trajectories.reading.running import RunningRule
from targets import against

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
from growing_runs import RUNS, Growing

RUNNING = RunningRule(stated=True)


def paper_codes(card: ScoreCard) -> dict[str, FiredCode]:
    return {code.code: code for code in card.codes if code.taxonomy == "paper"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writers", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prefixes_met = prefixes(Path(folder) / "prefixes")
        watch_met = watch(Path(folder) / "watched", arguments.writers)
    return 0 if prefixes_met and watch_met else 1


def prefixes(folder: Path) -> bool:
    """Score every prefix; whether the targets are met."""
    count = needing_end = 0
    seconds: list[float] = []
    false_alarms = set()
    for recorded in RUNS:
        whole = paper_codes(
            make_scorecard(load_conversation(recorded / "process/conversation.json"))
        )
        growing = Growing(recorded, folder / recorded.name)
        for turns in range(1, growing.count + 1):
            path = growing.write(turns)
            start = time.perf_counter()
            run = RUNNING.apply(load_conversation(path))
            card = make_scorecard(run)
            seconds.append(time.perf_counter() - start)
            count += 1
            fired = paper_codes(card)
            if card.status.ended == "running":
                known = (card.task, card.overall, card.agentic, card.stages["S4"].score)
                needing_end += "E5" in fired or any(value is not None for value in known)
            if fired.keys() - whole.keys():
                false_alarms.add(recorded.name)
                print(f"  false alarm: {recorded.name} turn {turns}: {sorted(fired)}")
    median = sorted(seconds)[len(seconds) // 2]
    print(f"{count} prefixes of {len(RUNS)} runs; a look takes {1000 * median:.0f} ms")
    none_early = against("prefixes with something that needs an end", needing_end, 0.5, "prefixes")
    return against("runs with a false alarm", len(false_alarms), 1, "runs") and none_early


def watch(folder: Path, writers: int) -> bool:
    """Watch a folder that is written to; whether the targets are met."""
    growing = [Growing(recorded, folder / recorded.name) for recorded in RUNS[:writers]]
    gold = {run.folder.name: first_turns(run, folder.parent) for run in growing}
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ambjudge.cli", "watch", str(folder), "--json"]
    process = subprocess.Popen(
        [*command, "--every", "0.1", "--until-done"], stdout=subprocess.PIPE, encoding="utf-8"
    )
    threads = [
        threading.Thread(target=write, args=(run, random.Random(number)))
        for number, run in enumerate(growing)
    ]
    for thread in threads:
        thread.start()
    out, _ = process.communicate(timeout=300)
    events = [json.loads(line) for line in out.splitlines()]
    late = [
        event["turns"] - gold[event["run"]][event["code"]]
        for event in events
        if event["event"] == "code" and event["code"] in gold[event["run"]]
    ]
    false = [
        event
        for event in events
        if event["event"] == "code" and event["code"] not in gold[event["run"]]
    ]
    ended = {event["run"] for event in events if event["event"] == "ended"}
    expected = sum(map(len, gold.values()))
    print(f"watch: {writers} conversations, {len(late)} of {expected} alarms, turns late: {late}")
    for event in false:
        print(f"  false alarm: {event['run']} turn {event['turns']}: {event['code']}")
    met = against("turns that an alarm is late", max(late, default=0), 1, "turns")
    met &= against("false alarms", len(false), 1, "alarms")
    met &= against("alarms", len(late), expected, "alarms", least=True)
    met &= against("runs seen to end", len(ended), writers, "runs", least=True)
    return met and process.returncode == 1


def first_turns(run: Growing, folder: Path) -> dict[str, int]:
    """Code -> the first prefix that shows it, of a run without report and outputs."""
    copy = Growing(run.recorded, folder / "gold" / run.recorded.name)
    rule = RunningRule(stated=True)
    first: dict[str, int] = {}
    for turns in range(1, run.count + 1):
        loaded = load_conversation(copy.write(turns))
        prefix = loaded if turns == run.count else rule.apply(loaded)
        for code in paper_codes(make_scorecard(prefix)):
            first.setdefault(code, turns)
    return first


def write(run: Growing, chance: random.Random) -> None:
    """Write a run turn by turn, each in pieces of random length with pauses between them."""
    time.sleep(chance.uniform(0, 1))
    for turns in range(1, run.count + 1):
        cuts = tuple(sorted(chance.random() for _ in range(3)))
        for _ in run.tear(turns, cuts):
            time.sleep(chance.uniform(0, 0.05))
        time.sleep(chance.uniform(0.2, 0.5))


if __name__ == "__main__":
    sys.exit(main())
