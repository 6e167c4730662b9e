"""Lines that tools print about themselves: every pattern of noise.yaml with its examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ambjudge.trajectories.record import noise

PATTERNS = yaml.safe_load(Path(noise.__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
ROWS = [
    (part, entry, line)
    for part, entries in PATTERNS.items()
    for entry in entries
    for line in entry["examples"]
]


@pytest.mark.parametrize(
    ("part", "entry", "line"), ROWS, ids=[line[:40].strip() for _, _, line in ROWS]
)
def test_a_pattern_hits_its_examples(part, entry, line):
    if part == "listing":
        assert noise.listing_form(line) == entry["form"]
        assert re.match(rf"\s*{entry['pattern']}", line)
    else:
        assert noise.noise(line).kind == part
        assert re.search(entry["pattern"], line, re.IGNORECASE)


@pytest.mark.parametrize(
    "line",
    [
        "Successfully installed nibabel-5.3.2",
        "ERROR: No matching distribution found for x",
        "case_3: 12 % of voxels set",
        "dice 0.81",
        "",
    ],
)
def test_what_says_something_is_no_noise(line):
    assert noise.noise(line) is None


def test_every_entry_has_an_example():
    assert all(entry["examples"] for entries in PATTERNS.values() for entry in entries)
