"""The label set of a multi-class task as its brief states it."""

from __future__ import annotations

import pytest
from ambjudge.judge.checks.segmentation import allowed_labels

BRIEFS = [
    pytest.param("integer labels 0-7", set(range(8)), id="range"),
    pytest.param("labels {0, 1, 2}", {0, 1, 2}, id="set"),
    pytest.param("Integer labels of the tissues: 0 background, 1 external CSF, 2 grey matter, 3 white matter, 4 ventricles. No other label may occur.", {0, 1, 2, 3, 4}, id="names behind numbers"),
    pytest.param("labels: 1 = liver; 2 = tumour.", {0, 1, 2}, id="equals signs"),
    pytest.param("Labels:\n- 0: background\n- 1: cortex\n- 2: cerebellum\n", {0, 1, 2}, id="a list"),
    pytest.param("Write one label map per patient, 8 patients.", None, id="no label set"),
    pytest.param("labels " + "1 a, " * 60_000, {0, 1}, id="hostile length"),
]  # fmt: skip


@pytest.mark.parametrize(("brief", "expected"), BRIEFS)
def test_labels(brief: str, expected: set[int] | None, no_runaway) -> None:
    with no_runaway():
        found = allowed_labels(brief)
    if brief.endswith("1 a, "):
        return  # numbers repeat: what matters is that it ends
    assert found == (None if expected is None else frozenset(expected))
