"""File stamps: whatever changes what loading a run yields is noticed without reading; nothing else
is."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from ambjudge.judge.store import stamps
from ambjudge.trajectories.reading.load import load_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"
LAYOUTS = RECORDED.parents[1] / "layouts"
NAMES = [
    "vqa",
    "enhancement",
    "report_generation",
    "kidney-lite-01",
    "ldct-lite-01",
    "vqa-lite-01",
    "crc-lite-01",
    "bccd-lite-01",
]


def aged(name: str, tmp_path: Path) -> Path:
    folder = tmp_path / name
    shutil.copytree(LAYOUTS / name if (LAYOUTS / name).exists() else RECORDED / name, folder)
    past = time.time() - 3600
    for where, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            os.utime(Path(where) / entry, (past, past))
    os.utime(folder, (past, past))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_was_read_counts(tmp_path, name):
    folder = aged(name, tmp_path)
    run = load_run(folder)
    stamp = stamps.take(run, time.time_ns())
    assert stamps.unchanged(run.path, stamp)
    files = [path for path in folder.rglob("*") if path.is_file()]
    changed = 0
    for path in files:
        data, status = path.read_bytes(), path.stat()
        path.write_bytes(data + b" ")
        if load_run(folder).content_sha256 != run.content_sha256:
            changed += 1
            assert not stamps.unchanged(run.path, stamp), path
        path.write_bytes(data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert stamps.unchanged(run.path, stamp)
    assert changed >= 2


@pytest.mark.parametrize(
    "name",
    [
        "plan.md",
        "plan/plan.md",
        "outputs/plan/plan.png",
        "workspace/plan/plan.md",
        "process/trace.jsonl",
        "trace.jsonl",
        "agent_summary.json",
        "process/detail_report.json",
        "outputs/agents_outputs/c1/x.txt",
        "agent_outputs/c/x.txt",
        "workspace/agents_outputs/c/x.txt",
        "report.json",
        "outputs/run_summary.json",
        "outputs/tier_prompt.txt",
    ],
)
def test_a_file_that_appears_or_goes_counts(tmp_path, name):
    folder = tmp_path / "run"
    (folder / "process").mkdir(parents=True)
    shutil.copy(RECORDED / "kidney-lite-01" / "process" / "conversation.json", folder / "process")
    path = folder / name
    for made in (False, True):
        if made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        past = time.time() - 3600 + made
        for where, folders, files in os.walk(folder):
            for entry in (*folders, *files, "."):
                os.utime(Path(where) / entry, (past, past))
        run = load_run(folder)
        stamp = stamps.take(run, time.time_ns())
        assert stamps.unchanged(run.path, stamp)
        if made:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        assert not stamps.unchanged(run.path, stamp), "gone" if made else "new"


def test_a_young_run_gets_no_stamp(tmp_path):
    folder = aged("kidney-lite-01", tmp_path)
    run = load_run(folder)
    os.utime(run.path)
    assert stamps.take(run, time.time_ns()) is None


@pytest.mark.parametrize(
    "stamp", ["", "nonsense", "{}", "[1]", '[["conversation.json"]]', '[["../../x", 1, 1]]', "null"]
)
def test_a_stamp_that_makes_no_sense_stands_for_nothing(tmp_path, stamp):
    run = load_run(aged("kidney-lite-01", tmp_path))
    assert not stamps.unchanged(run.path, stamp)
