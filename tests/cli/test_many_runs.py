"""Collections too large for one sitting: shards, restarts, files that are whole or not there,
addresses."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from ambjudge.commands.card_files import CardFile

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
NAMES = ["kidney-lite-01", "vqa-lite-01", "crc-lite-01"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs whose files are an hour old."""
    for name in NAMES:
        shutil.copytree(RUNS / name, tmp_path / "runs" / name)
    for where, folders, files in os.walk(tmp_path / "runs"):
        for entry in (".", *folders, *files):
            os.utime(Path(where) / entry, (1.7e9, 1.7e9))
    return tmp_path / "runs"


def test_parts_follow_each_other_and_are_made_once(out, runs, tmp_path):
    assert out("score", runs, "--out", "all.jsonl")[0] == 0
    for number in (1, 2):
        assert out("score", runs, "--shard", f"{number}/2", "--out", "parts")[0] == 0
    parts = sorted(Path("parts").glob("*.jsonl"))
    assert [part.name for part in parts] == [
        "part-00001-of-00002.jsonl",
        "part-00002-of-00002.jsonl",
    ]
    assert b"".join(part.read_bytes() for part in parts) == Path("all.jsonl").read_bytes()
    before = parts[1].stat().st_ino
    code, _, err = out("score", runs, "--shard", "2/2", "--out", "parts")
    assert (code, parts[1].stat().st_ino, "up to date" in err) == (0, before, True)
    (runs / "vqa-lite-01" / "plan.md").write_text("Another plan.")
    assert "up to date" not in out("score", runs, "--shard", "2/2", "--out", "parts")[2]
    assert (
        "up to date"
        not in out("score", runs, "--shard", "2/2", "--out", "parts", "--policy", "harness")[2]
    )


def test_a_key_of_a_part_that_is_none_makes_the_part_anew(out, runs):
    """Whatever lies in its place: it is read within bounds, and decides no exit code."""
    command = ("score", runs / "crc-lite-01", "--shard", "1/1", "--out", "parts")
    assert out(*command)[0] == 0
    key, part = Path("parts/part-00001-of-00001.key"), Path("parts/part-00001-of-00001.jsonl")
    note, lines = json.loads(key.read_text("utf-8")), part.read_bytes()
    forged = [
        {**note, "exit_code": 77},
        {**note, "lines": float("inf")},
        {**note, "lines": "1"},
        {**note, "key": 1},
        [note],
        1,
    ]
    texts = [
        *map(json.dumps, forged),
        "[" * 100_000,
        "{}" * 5_000_000,
        "\ud800".encode("utf-8", "surrogatepass"),
    ]
    for text in texts:
        key.write_bytes(text if isinstance(text, bytes) else text.encode())
        code, _, err = out(*command)
        assert (code, "up to date" in err, part.read_bytes()) == (0, False, lines), text[:80]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "x", "1/0", "-1/2"])
def test_a_shard_that_is_none_is_bad_usage(out, runs, shard):
    code, _, err = out("score", runs, "--shard", shard, "--out", "parts")
    assert (code, Path("parts").exists()) == (2, False), err


def test_an_unchanged_run_is_not_read_again(out, runs, monkeypatch, tmp_path):
    """What is read can be told from what stands for it: the file is another one of the same size
    and time."""
    monkeypatch.setenv("AMBJUDGE_STORE", str(tmp_path / "s.db"))
    first = out("score", runs, "--json")[1]
    path = next((runs / "crc-lite-01").rglob("conversation.json"))
    path.write_bytes(b"x" + b" " * (path.stat().st_size - 1))
    os.utime(path, (1.7e9, 1.7e9))
    code, again, err = out("score", runs, "--json")
    assert (code, again) == (0, first)
    assert err.endswith("3 scored\n")
    assert out("score", runs, "--json", "--policy", "harness")[0] == 1, (
        "another policy is another scorecard: it is read"
    )
    os.utime(path, (1.8e9, 1.8e9))
    assert out("score", runs, "--json")[0] == 1


def test_a_file_of_scorecards_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "cards.jsonl"
    path.write_text("old\n")
    with ExitStack() as stack:
        file = CardFile(path, stack)
        file.write("new")
        assert "cards.jsonl.part" in file.leave()
    assert path.read_text() == "old\n"
    with ExitStack() as stack:
        file = CardFile(path, stack)
        file.write("new")
        file.keep()
    assert path.read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "line",
    [
        ("score", "RUNS", "--out", "s4://b/cards.jsonl"),
        ("score", "https://b/runs"),
        ("export", "s3://b/cards.jsonl"),
        ("score", "zip://a::s3://b"),
        ("score", "file:///b"),
        ("leaderboard", "x-y://b"),
        ("codes", "s3://b/runs"),
        ("export", "RUNS", "--out", "gs://b/x.csv"),
        ("analyze", "RUNS", "--out", "s3://b"),
        ("rubric", "validate", "https://x/y.yaml"),
        ("verify", "s3://b/cards.jsonl"),
    ],
)
def test_an_address_is_no_folder_here(out, runs, line):
    before = sorted(Path.cwd().iterdir())
    code, text, err = out(*(str(runs) if word == "RUNS" else word for word in line))
    assert (code, text) == (2, "")
    assert "addresses are not understood" in err
    assert sorted(Path.cwd().iterdir()) == before


def test_what_goes_to_stderr_can_be_json(out, runs):
    (runs / "crc-lite-01" / "process" / "conversation.json").write_text("no")
    code, _, err = out("--log-json", "score", runs, "--json")
    lines = [json.loads(line) for line in err.splitlines()]
    assert code == 1
    assert [line["event"] for line in lines] == ["error", "note"]
    assert "conversation.json" in lines[0]["message"]
    assert not out("score", runs, "--json")[2].startswith("{")
