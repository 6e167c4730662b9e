"""kill -9 in the middle of a batch: nothing stored is lost or doubled, and only calls under way are
made again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter

import http_judge as http
from ambjudge.judge.questions.items import diagnosis_items
from ambjudge.judge.store import open_store
from ambjudge.rubrics.load import load_rubric
from stored import sound

SCRIPT = http.__file__
KILLS, RUNS, CONCURRENCY = 2, 40, 8
ITEMS = len(load_rubric("segmentation").criteria()) + len(diagnosis_items("segmentation"))


def test_kill_9_costs_at_most_the_calls_under_way(tmp_path):
    server = http.Server(latency=0.03)
    server.start_in_thread()
    http.make_runs(tmp_path / "runs", RUNS)
    command = [
        sys.executable,
        SCRIPT,
        "work",
        str(tmp_path / "s.db"),
        str(tmp_path / "runs"),
        server.url,
        "--concurrency",
        str(CONCURRENCY),
    ]
    moments = random.Random(3)
    progress = []
    for _ in range(KILLS):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        asked = server.count + moments.randint(CONCURRENCY, 4 * CONCURRENCY)
        while server.count < asked and child.poll() is None:
            time.sleep(0.002)
        child.kill()
        child.wait()
        child.stdout.close()
        with open_store(tmp_path / "s.db") as store:
            sound(store)
            progress.append(sum(1 for _ in store.iter_verdicts()))
    assert progress[-1] > 0
    last = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert last.stdout.endswith("done\n")
    with open_store(tmp_path / "s.db") as store:
        sound(store)
        verdicts = Counter((v.run_ref, v.key.criterion_id) for v in store.iter_verdicts())
        kinds = Counter(kind for _, kind, _ in store.events())
    minimum = RUNS * 4
    assert len(verdicts) == RUNS * ITEMS
    assert {criterion for _, criterion in verdicts} >= {"S1a", "E3", "plan"}
    assert set(verdicts.values()) == {1}
    assert minimum <= server.count <= minimum + KILLS * CONCURRENCY
    assert kinds["batch_finished"] >= 1
