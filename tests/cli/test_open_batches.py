"""Open batches, as a user meets them: seen everywhere, priced, and never paid for twice unsaid."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_server import BatchServer

RUN = Path(__file__).parents[1] / "data" / "recorded" / "runs" / "crc-lite-02"
LIST_PRICE = 1.0, 10.0


@pytest.fixture
def batch_server(loopback, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.delenv("AMBJUDGE_STORE")
    server = BatchServer(loopback).start()
    yield server
    server.stop()


def test_a_batch_that_does_not_end_is_said_everywhere_and_asked_only_when_told(
    out, batch_server: BatchServer, tmp_path: Path
) -> None:
    shutil.copytree(RUN, tmp_path / "runs" / "one")
    batch_server.stages = ["in_progress"] * 1_000
    judge = ("--judge", "good", "--api-base", batch_server.url, "--price", "1,10")
    command = ("rejudge", "runs", *judge)
    code, _, err = out("score", "runs", *judge, "--batch")
    assert code == 1
    questions = len(batch_server.bodies)
    assert re.search(rf"{questions} sent in 1 new batches \(up to \$0\.\d+\)", err)
    assert re.search(r"batches open: 1 \(up to \$0\.\d+\)", err)

    said = f"{questions} questions wait in 1 open batch (batch_0, sent "
    code, text, err = out(*command, "--dry-run", "--json")
    plan = json.loads(text)
    assert (plan["calls"], plan["waiting"]) == (0, questions)
    for line in (command, (*command, "--dry-run"), ("score", "runs", *judge)):
        code, text, err = out(*line)
        assert said in err, line
        assert "not asked" in err
    assert batch_server.count["POST /chat/completions"] == 0
    assert "batch_0" in out("doctor")[1]
    assert "batch_0" in out("store", "info")[1]
    assert "batches open: 1 (up to" in out(*command, "--batch")[2]
    assert len(batch_server.bodies) == questions, "nothing is sent a second time"

    code, _, err = out(*command, "--ask-open")
    assert (code, "paid twice" in err) == (0, True)
    assert batch_server.count["POST /chat/completions"] == questions
    board = out("leaderboard", "runs", "--json")[1]
    batch_server.stages = []
    poll = (*command, "--batch", "--wait", "20")
    code, _, err = out(*poll)
    assert f"{questions} answers of batches had been asked for in another way" in err
    assert err.rstrip().endswith("and were paid twice")
    assert "batches open: 0\n" in out(*poll)[2]
    assert out("leaderboard", "runs", "--json")[1] == board

    batch_server.stages = ["in_progress"] * 1_000
    other = (*command, "--temperature", "0.5")
    out(*other, "--batch")
    assert json.loads(out(*other, "--dry-run", "--json")[1])["calls"] == 0
    out(*command, "--abandon", "batch_1")
    assert json.loads(out(*other, "--dry-run", "--json")[1])["calls"] == questions
    assert "open batch" not in out(*other, "--dry-run")[2]


def test_answers_of_batches_cost_half_and_a_limit_is_used(
    out, batch_server: BatchServer, tmp_path: Path
) -> None:
    for number in range(8):
        shutil.copytree(RUN, tmp_path / "runs" / str(number))
        conversation = next((tmp_path / "runs" / str(number)).rglob("conversation.json"))
        data = conversation.read_text("utf-8").replace("I ", f"I {number} ", 1)
        conversation.write_text(data, "utf-8")
    judge = ("--judge", "good", "--api-base", batch_server.url, "--price", "1,10")
    out("score", "runs/0", *judge, "--batch", "--wait", "20")

    def spent() -> tuple[float, float]:
        held = json.loads(out("store", "info", "--json")[1])["spending"]
        cost = sum(row["cost_usd"] for row in held)
        tokens = [sum(row[f"{kind}_tokens"] for row in held) for kind in ("input", "output")]
        return cost, sum(n * p for n, p in zip(tokens, LIST_PRICE, strict=True)) / 1e6

    of_one, list_price = spent()
    assert of_one == pytest.approx(list_price / 2)
    limit = 3.5 * of_one
    _, _, err = out(
        "rejudge", "runs", *judge, "--batch", "--wait", "20", "--max-cost", f"{limit:.6f}"
    )
    used = spent()[0] - of_one
    assert 0.8 * limit <= used <= limit, err
    assert batch_server.count["POST /batches"] == batch_server.count["DELETE /files/ID"]
