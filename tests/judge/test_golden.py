"""Golden scorecards: scores and codes never move, details move only on purpose (`make golden`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import golden as cards
import pytest
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import PreparedRun

ROOT = Path(__file__).parents[2]


FOLDERS = cards.golden_folders()


@cache
def judged(folder: Path) -> tuple[PreparedRun, ScoreCard]:
    return cards.judged(folder)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_scores_and_codes_never_move(folder: Path) -> None:
    _, card = judged(folder)
    golden = read(cards.SCORES / f"{folder.name}.json")
    assert cards.scores_of(folder, card) == golden, (
        "S4, S5, Task, Overall and codes must not move; if one was wrong: make golden-scores"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_details_move_only_on_purpose(folder: Path) -> None:
    now = cards.details_of(*judged(folder))
    golden = read(cards.DETAILS / f"{folder.name}.json")
    moved = [part for part in golden if now[part] != golden[part]]
    assert not moved, f"{', '.join(moved)} moved; if on purpose: make golden, and read the diff"
    assert now.keys() == golden.keys()


def test_scores_are_not_rewritten_without_the_flag(tmp_path, monkeypatch, capsys) -> None:
    """Details are written anew, scores only with --scores; both say what changed."""
    folder = FOLDERS[0]
    for name in ("SCORES", "DETAILS"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(cards, name, tmp_path / name)
    monkeypatch.setattr(cards, "DATA", tmp_path)
    ready_and_card = judged(folder)
    monkeypatch.setattr(cards, "judged", lambda folder: ready_and_card)
    monkeypatch.setattr(cards, "scores_of", lambda folder, card: {"overall": card.overall})
    monkeypatch.setattr(cards, "layout_rows", list)
    monkeypatch.setattr(cards, "LAYOUT_ROWS", tmp_path / "golden.jsonl")
    scores, details = (tmp_path / name / f"{folder.name}.json" for name in ("SCORES", "DETAILS"))
    scores.write_text('{\n "overall": -1\n}\n')
    details.write_text("{}\n")
    assert cards.write([folder], with_scores=False)
    assert "-1" in scores.read_text()
    assert "presumed" in details.read_text()
    assert "not written" in capsys.readouterr().out
    assert not cards.write([folder], with_scores=True)
    assert "-1" not in scores.read_text()
    assert '- "overall": -1' in capsys.readouterr().out


NEEDED = "numpy, pydantic, yaml, nibabel, PIL"
AGAIN = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import golden as cards
for folder in cards.golden_folders():
    ready, card = cards.judged(folder)
    for path, now in (
        (cards.SCORES, cards.scores_of(folder, card)),
        (cards.DETAILS, cards.details_of(ready, card)),
    ):
        golden = json.loads((path / f"{folder.name}.json").read_text("utf-8"))
        print(*(f"{folder.name}: {part}" for part in golden if now[part] != golden[part]))
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python_gives_the_same(version: str, tmp_path: Path) -> None:
    """`sum` rounds otherwise from 3.12 on, and an exact tie of two paths through the stages hung on
    that."""
    python = shutil.which(f"python{version}")
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip("the other tests run on this one")
    if (
        python is None
        or subprocess.run(
            [python, "-c", f"import {NEEDED}"], capture_output=True, timeout=60
        ).returncode
    ):
        pytest.skip(f"no python{version} with {NEEDED} on PATH")
    (tmp_path / "ambjudge").symlink_to(ROOT)
    command = [python, "-c", AGAIN, str(tmp_path), str(ROOT / "benchmarks")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_the_gallery_shows_every_track_tier_and_code() -> None:
    golden = [read(path) for path in cards.SCORES.glob("*.json")]
    assert len([each for each in golden if each["folder"].startswith("recorded/")]) == 15
    assert {code.partition(" ")[0] for each in golden for code in each["codes"]} == {
        "E1",
        "E2",
        "E3",
        "E4",
        "E5",
    }
    assert {each["track"].partition(" ")[0] for each in golden} == {
        "segmentation",
        "enhancement",
        "vqa",
        "report_generation",
        "detection",
        "classification",
        "synthesis",
    }


def test_runs_in_the_layouts_of_the_public_harness_are_read_the_same() -> None:
    """Id, tier, brief, outputs, report, Task, cost and time of runs that the harness's own writers
    left."""
    lines = cards.LAYOUT_ROWS.read_text("utf-8").splitlines()
    assert cards.layout_rows() == [json.loads(line) for line in lines]
