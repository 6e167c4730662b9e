"""Runs whose scores, stages, criteria, codes and facts are held: what a change moves, it moves on purpose (`make golden`)."""

from __future__ import annotations

import json
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


def test_the_gallery_shows_every_track_tier_and_code() -> None:
    held = [json.loads(path.read_text("utf-8")) for path in cards.GOLDEN.glob("*.json")]
    assert len([one for one in held if one["folder"].startswith("recorded/")]) == 15
    assert {code.partition(" ")[0] for one in held for code in one["codes"]} == {"E1", "E2", "E3", "E4", "E5"}
    assert {one["track"].partition(" ")[0] for one in held} == {
        "segmentation", "enhancement", "vqa", "report_generation", "detection", "classification", "synthesis"
    }  # fmt: skip


def test_runs_in_the_layouts_of_the_public_harness_are_read_as_held() -> None:
    """Id, tier, brief, outputs, report, Task, cost and time of runs that the harness's own writers left."""
    lines = (cards.LAYOUTS / "golden.jsonl").read_text("utf-8").splitlines()
    assert cards.layout_rows() == [json.loads(line) for line in lines]
