"""ask as a user runs it: a table for people, JSON Lines and files for programs, exit codes, one
line for what is wrong."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from batch_server import BatchServer

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "data" / "recorded" / "runs"
RUNS = ("crc-lite-01", "crc-lite-02", "kidney-lite-01")
QUESTION = "Did the agent look at an image of its output?"


@pytest.fixture
def asking(out, judge_server, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """`ambjudge ask runs/ ...` of three recorded runs with the scripted judge and a store."""
    for name in RUNS:
        shutil.copytree(RECORDED / name, tmp_path / "runs" / name)
    judge_server.script = ["good"]

    def call(*args: str) -> tuple[int, str, str]:
        judge = (
            "--judge",
            "m",
            "--api-base",
            judge_server.url,
            "--store",
            "s.db",
            "--concurrency",
            "1",
        )
        return out("ask", "runs", *(args or (QUESTION,)), *judge)

    return call


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_table_for_people(asking, judge_server) -> None:
    judge_server.script = ["good", "false_quote", "cannot_tell"]
    code, text, err = asking()
    assert code == 0, "cannot tell is an answer"
    rows = text.splitlines()
    assert rows[0].split() == ["Run", "Answer", "Turns", "Quote"]
    assert [row.split("  ")[0] for row in rows[1:]] == list(RUNS)
    assert rows[1].split()[1:3] == ["yes", "1"]
    assert rows[2].endswith("[not found]")
    assert "cannot tell" in rows[3]
    assert "yes 2, no 0, cannot tell 1, 1 of the answers have no quote that was found" in err
    assert "3 calls" in err
    assert asking()[:2] == (0, text)
    assert judge_server.count == 3


def test_an_unscored_run_is_named_and_makes_exit_code_1(asking, judge_server) -> None:
    judge_server.script = ["lowest", "refusal", "good"]
    code, text, err = asking()
    assert (code, "unscored" in text, "refused: I cannot help" in text) == (1, True, True)
    assert "yes 1, no 1, unscored 1 (refused 1)" in err


def test_json_lines(asking) -> None:
    code, text, _ = asking("--json", "Which loss?", "--choice", "dice,ce")
    found = lines(text)
    assert (code, [one["answer"] for one in found]) == (0, ["dice"] * 3)
    assert {one["schema"] for one in found} == {"ambjudge.answer/1"}
    assert found[0]["quotes"][0]["check"] == "verified"
    assert (found[0]["turns"], found[0]["status"], found[0]["judge"]["name"]) == (
        [1],
        "scored",
        "m",
    )


@pytest.mark.parametrize(
    ("form", "answer", "summary"),
    [
        (("--number",), 3.0, "numbers 3 (median 3, 3 to 3)"),
        (("--text",), "Because.", "answered 3"),
        (("--schema", "form.json"), {}, "answered 3"),
        ((), True, "yes 3, no 0"),
    ],
)
def test_every_form_and_every_file(
    asking, tmp_path: Path, form: tuple[str, ...], answer: object, summary: str
) -> None:
    (tmp_path / "form.json").write_text('{"type": "object"}', "utf-8")
    code, text, note = asking(*form, "What?", "--json", "--out", "new/a.jsonl")
    assert (code, summary in note) == (0, True)
    assert (tmp_path / "new" / "a.jsonl").read_text("utf-8") == text
    assert [one["answer"] for one in lines(text)] == [answer] * 3
    assert asking(*form, "What?", "--out", "new/a.csv")[0] == 0
    assert asking(*form, "What?", "--out", "new/a.parquet")[0] == 0
    with (tmp_path / "new" / "a.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    parquet = pl.read_parquet(tmp_path / "new" / "a.parquet")
    assert [row["run_id"] for row in table] == parquet["run_id"].to_list() == list(RUNS)
    assert (
        parquet["answer"].to_list()
        == [json.dumps(answer) if isinstance(answer, dict) else answer] * 3
    )
    assert parquet["turns"].to_list() == [[1]] * 3


def test_one_run_in_full(out, judge_server, tmp_path: Path) -> None:
    judge_server.script = ["moved_quote"]
    args = ("--judge", "m", "--api-base", judge_server.url, "--store", "s.db")
    code, text, _ = out("ask", RECORDED / "crc-lite-01", QUESTION, *args)
    assert (code, text.splitlines()[:2]) == (0, ["crc-lite-01: yes", "    As quoted."])
    assert "[moved: turn 1]" in " ".join(text.split())


def test_a_dry_run_asks_nobody(asking, judge_server) -> None:
    code, text, _ = asking(QUESTION, "--dry-run", "--price", "1,2")
    assert (code, judge_server.count) == (0, 0)
    assert "0 answers are in the store, 3 calls to make\nexpected cost $" in text
    made = json.loads(asking(QUESTION, "--dry-run", "--json")[1])
    assert (made["schema"], made["calls"], made["stale"]) == ("ambjudge.plan/1", 3, 3)


def test_a_cost_limit(asking, judge_server) -> None:
    code, text, err = asking(QUESTION, "--max-cost", "0", "--price", "1,2", "--json")
    assert (code, judge_server.count, {one["reason"] for one in lines(text)}) == (1, 0, {"budget"})
    assert "unscored 3 (budget 3)" in err
    assert asking(QUESTION, "--price", "1,2")[0] == 0


def test_parts_are_what_one_command_gives_and_nothing_is_asked_twice(
    asking, judge_server, tmp_path: Path
) -> None:
    for part in ("1/2", "2/2"):
        assert asking(QUESTION, "--shard", part, "--out", "parts")[0] == 0
    assert judge_server.count == 3
    assert "up to date" in asking(QUESTION, "--shard", "2/2", "--out", "parts")[2]
    assert (
        "up to date"
        not in asking(QUESTION + " Often?", "--shard", "2/2", "--out", "parts", "--dry-run")[2]
    )
    parts = sorted((tmp_path / "parts").glob("*.jsonl"))
    joined = "".join(part.read_text("utf-8") for part in parts)
    assert (len(parts), asking(QUESTION, "--json")[1]) == (2, joined)
    assert judge_server.count == 3


@pytest.mark.slow
def test_workers_give_what_one_process_gives(asking, judge_server, tmp_path: Path) -> None:
    alone = asking(QUESTION, "--json")
    (tmp_path / "s.db").unlink()
    assert asking(QUESTION, "--json", "--workers", "2")[:2] == alone[:2]
    assert judge_server.count == 6


def test_a_panel_that_is_split(out, judge_server, asking) -> None:
    judge_server.script = []
    both = (
        "--judge",
        "good",
        "--judge",
        "lowest",
        "--api-base",
        judge_server.url,
        "--store",
        "s.db",
    )
    code, text, _ = out("ask", "runs", QUESTION, *both)
    assert (code, text.count("no (1 of 2)")) == (0, 3)


def test_through_a_providers_batch(
    asking, out, loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = BatchServer(loopback).start()
    server.stages = ["in_progress"]
    args = (
        "ask",
        "runs",
        QUESTION,
        "--judge",
        "m",
        "--api-base",
        server.url,
        "--store",
        "s.db",
        "--batch",
    )
    try:
        code, text, err = out(*args)
        assert (code, text) == (1, "")
        assert "requests: 3 sent" in err
        code, text, _ = out(*args, "--json", "--wait", "20")
        assert (code, [one["answer"] for one in lines(text)]) == (0, [True] * 3)
        assert server.count["POST /batches"] == 1
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("ask", "runs", "runs"), "is a path that exists"),
        (("ask", "runs"), "is a path that exists"),
        (("ask", QUESTION), "PATH is missing before the question"),
        (("ask",), "name the runs, then the question"),
        (("ask", "runs", QUESTION), "cannot be asked: only a model reads a question"),
        (("ask", "runs", " ", "--judge", "m"), "the question is empty"),
        (("ask", "runs", "why" * 2_000, "--judge", "m"), "at most 4,000"),
        (
            ("ask", "runs", QUESTION, "--judge", "m", "--number", "--text"),
            "--number and --text exclude each other",
        ),
        (
            ("ask", "runs", QUESTION, "--judge", "m", "--choice", "a,a"),
            "a choice cannot have 1 answers",
        ),
        (
            ("ask", "runs", QUESTION, "--judge", "m", "--schema", "list.json"),
            "is not a JSON Schema",
        ),
        (("ask", "runs", QUESTION, "--judge", "m", "--schema", "bad.json"), "the answer's schema"),
        (("ask", "runs", QUESTION, "--judge", "m", "--schema", "none.json"), "no such file"),
        (
            ("ask", "runs", QUESTION, "--judge", "m", "--out", "a.txt"),
            "is not that of a known format",
        ),
        (("--config", "chess.toml", "ask", "runs", QUESTION, "--judge", "m"), "unknown track 'ch"),
        (("ask", "runs", QUESTION, "--judge", "m", "--store", "none"), "needs a store"),
        (("ask", "nowhere", QUESTION, "--judge", "m"), "no such file or folder"),
    ],
)
def test_what_is_wrong_is_one_line(
    asking, out, tmp_path: Path, args: tuple[str, ...], says: str
) -> None:
    (tmp_path / "list.json").write_text("[1]", "utf-8")
    (tmp_path / "chess.toml").write_text('track = "chess"', "utf-8")
    (tmp_path / "bad.json").write_text('{"type": 7}', "utf-8")
    code, text, err = out(*args)
    assert (code, text, err.count("\n"), says in err) == (2, "", 1, True), err


def test_a_judge_that_cannot_be_used(asking, judge_server) -> None:
    judge_server.script = ["401"]
    code, text, err = asking()
    assert (code, text, "sk-secret" in err) == (3, "", False)


def test_unreadable_runs_are_named_and_the_others_answered(asking, tmp_path: Path) -> None:
    (tmp_path / "runs" / RUNS[0] / "process" / "conversation.json").write_text("no", "utf-8")
    code, text, err = asking(QUESTION, "--json")
    assert (code, len(lines(text)), "conversation.json: is not JSON" in err) == (1, 2, True)


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_answered(asking, judge_server, tmp_path: Path) -> None:
    judge_server.script = ["good", "slow:2", "good"]
    command = [
        sys.executable,
        "-m",
        "ambjudge.cli",
        "ask",
        "runs",
        QUESTION,
        "--judge",
        "m",
        "--api-base",
        judge_server.url,
        "--store",
        "s.db",
        "--concurrency",
        "1",
        "--json",
    ]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": "none"},
    )
    until = time.monotonic() + 60
    while judge_server.count < 2 and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    text, err = child.communicate(timeout=60)
    assert (child.returncode, [one["answer"] for one in lines(text)]) == (130, [True, True, None])
    assert lines(text)[2]["detail"] == "not asked yet"
    assert "the same command continues from there" in err
    assert asking()[0] == 0
    assert judge_server.count == 3


def test_what_a_run_says_never_reaches_the_terminal_as_a_command(
    terminal, judge_server, tmp_path: Path
) -> None:
    path = tmp_path / "r\x1b[31m" / "conversation.json"
    path.parent.mkdir()
    words = "I look at it.\x1b]0;owned\x07 Then I look at it again and again."
    path.write_text(json.dumps([{"role": "assistant", "content": words}]), "utf-8")
    judge_server.script = ["good"]
    _, seen = terminal(
        "ask",
        str(path),
        QUESTION,
        "--judge",
        "m",
        "--api-base",
        judge_server.url,
        "--store",
        "s.db",
        NO_COLOR="1",
    )
    assert "I look at it" in seen
    assert "\x1b" not in seen
    assert "\x07" not in seen


def test_answers_are_a_column_of_the_analysis(asking, out, tmp_path: Path) -> None:
    assert asking(QUESTION, "--out", str(tmp_path / "looked.jsonl"))[0] == 0
    cards = tmp_path / "cards.jsonl"
    assert out("score", str(tmp_path / "runs"), "--store", "none", "--out", str(cards))[0] == 0
    call = ("analyze", str(cards), "--table", "codes_read", "--out", str(tmp_path / "analysis"))
    assert out(*call, "--ask", f"looked={tmp_path / 'looked.jsonl'}")[0] in (0, 1)
    runs = pl.read_parquet(next((tmp_path / "analysis").rglob("runs.parquet")))
    assert runs["looked"].to_list() == [True, True, True]
    code, _, err = out(*call, "--ask", "looked")
    assert (code, "NAME=FILE" in err, err.count("\n")) == (2, True, 1)
