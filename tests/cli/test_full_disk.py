"""No room left: one line of error, nothing half written under a final name, and the same command
goes on when there is room.

`benchmarks/faults.py` has the same on a full tmpfs, and kill -9.
"""

from __future__ import annotations

import resource
import sqlite3
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from ambjudge.atomic_files import PART

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
CASES = {
    "score": (
        [
            "score",
            *(RUNS / name for name in ("crc-lite-01", "vqa-lite-01")),
            "--json",
            "--out",
            "out/cards.jsonl",
            "--store",
            "out/s.db",
        ],
        12,
    ),
    "export": (["export", "cards.jsonl", "--what", "criteria", "--out", "out/criteria.csv"], 2),
    "parquet": (
        ["export", "cards.jsonl", "--what", "criteria", "--out", "out/criteria.parquet"],
        2,
    ),
    "analyze": (["analyze", "cards.jsonl", "--table", "leaderboard", "--out", "out"], 16),
    "site": (["site", "cards.jsonl", "--no-report", "--out", "out"], 16),
    "simulate": (
        ["simulate", "--set", "repeats=1", "--set", "tasks=2", "--out", "out/cards.jsonl"],
        16,
    ),
}


@contextmanager
def files_of_at_most(size: int):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def written() -> dict[str, bytes]:
    named = {str(path): path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    return {
        name: data for name, data in named.items() if not name.endswith(PART) and "s.db" not in name
    }


@pytest.mark.parametrize(("command", "kilobytes"), CASES.values(), ids=CASES)
def test_without_room_nothing_is_torn_and_the_command_goes_on(
    out, command, kilobytes, monkeypatch
) -> None:
    # Python itself keeps a byte code file that was cut short
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    out("score", *(RUNS / name for name in ("crc-lite-01", "vqa-lite-01")), "--out", "cards.jsonl")
    with files_of_at_most(kilobytes << 10):
        code, _, err = out("-q", *command)
    assert (code, err.count("\n"), "internal" in err) == (2, 1, False), err
    torn = written()
    if Path("out/s.db").exists():
        with closing(sqlite3.connect("out/s.db")) as store:
            assert store.execute("pragma integrity_check").fetchone() == ("ok",)
    assert out("-q", *command)[0] in (0, 1)
    whole = written()
    assert whole, "what there was no room for"
    assert torn.items() <= whole.items()
