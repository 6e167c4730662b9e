"""Two commands at once on one store: each item is asked for and paid for once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import http_judge as http
import pytest
from ambjudge.judge.questions.items import diagnosis_items
from ambjudge.judge.store import claims, open_store
from ambjudge.judge.store.claims import Claims
from ambjudge.rubrics.load import load_rubric
from stored import sound

RUNS = 12
QUESTIONS = 4
ITEMS = len(load_rubric("segmentation").criteria()) + len(diagnosis_items("segmentation"))


@pytest.mark.parametrize("is_killed", [False, True], ids=["both end", "one is killed"])
def test_two_processes_pay_once(tmp_path: Path, is_killed: bool) -> None:
    server = http.Server(latency=0.05)
    server.start_in_thread()
    http.make_runs(tmp_path / "runs", RUNS)
    command = [sys.executable, http.__file__, "work", str(tmp_path / "s.db")]
    command += [str(tmp_path / "runs"), server.url, "--concurrency", "4"]
    with open_store(tmp_path / "s.db"):
        pass
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    for child in both:
        assert child.stdout.readline() == "ready\n"
    if is_killed:
        while server.count < 8:
            time.sleep(0.002)
        both[0].kill()
        both[0].wait()
    endings = [child.communicate(timeout=50)[0] for child in both]
    assert endings[1].endswith("done\n")
    assert is_killed or endings[0].endswith("done\n")
    with open_store(tmp_path / "s.db") as store:
        sound(store)
        assert sum(1 for _ in store.iter_verdicts()) == RUNS * ITEMS
        assert store.claims(v.key.sha256 for v in store.iter_verdicts()) == {}
    at_once = 4 if is_killed else 0
    assert RUNS * QUESTIONS <= server.count <= RUNS * QUESTIONS + at_once


async def test_a_claim_without_a_beat_is_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder on another computer that is gone, and one that lives on."""
    with open_store(tmp_path / "s.db") as store:
        assert store.claim("elsewhere/1/x", [["a", "b"], ["c"]], {}) == [True, True]
        ours = Claims(store)
        assert not await ours.take(["b", "d"])
        assert set(store.claims("abcd")) == {"a", "b", "c"}, "all keys of a request or none"
        monkeypatch.setattr(claims, "LEASE_S", -1.0)
        store.beat("elsewhere/1/x", ["b"])
        assert await ours.take(["b", "d"])
        assert store.claims("d")["d"][0] == store.claims("b")["b"][0] != "elsewhere/1/x"
        await ours.release(["b", "d"])
        assert set(store.claims("abcd")) == {"a", "c"}
