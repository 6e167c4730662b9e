"""Runs whose scores, stages, criteria, codes and facts are held: what a change moves, it moves on
purpose (`make golden`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import golden as cards
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted(cards.GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_nothing_moves_unnoticed(path: Path) -> None:
    held = json.loads(path.read_text("utf-8"))
    now = cards.golden(*cards.judged(cards.DATA / held.pop("folder")))
    moved = [part for part in held if now[part] != held[part]]
    assert not moved, f"{', '.join(moved)} moved; if on purpose: make golden, and read the diff"
    assert now.keys() == held.keys()


NEEDED = "numpy, pydantic, yaml, nibabel, PIL"
AGAIN = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import golden as cards
for path in sorted(cards.GOLDEN.glob("*.json")):
    held = json.loads(path.read_text("utf-8"))
    now = cards.golden(*cards.judged(cards.DATA / held.pop("folder")))
    print(*(f"{path.stem}: {part}" for part in held if now[part] != held[part]))
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
    held = [json.loads(path.read_text("utf-8")) for path in cards.GOLDEN.glob("*.json")]
    assert len([one for one in held if one["folder"].startswith("recorded/")]) == 15
    assert {code.partition(" ")[0] for one in held for code in one["codes"]} == {
        "E1",
        "E2",
        "E3",
        "E4",
        "E5",
    }
    assert {one["track"].partition(" ")[0] for one in held} == {
        "segmentation",
        "enhancement",
        "vqa",
        "report_generation",
        "detection",
        "classification",
        "synthesis",
    }


def test_runs_in_the_layouts_of_the_public_harness_are_read_as_held() -> None:
    """Id, tier, brief, outputs, report, Task, cost and time of runs that the harness's own writers
    left."""
    lines = (cards.LAYOUTS / "golden.jsonl").read_text("utf-8").splitlines()
    assert cards.layout_rows() == [json.loads(line) for line in lines]
