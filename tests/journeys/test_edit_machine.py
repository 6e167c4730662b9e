"""Some sequences of edits (edit_machine.py); benchmarks/edits.py makes many."""

from __future__ import annotations

from pathlib import Path

import pytest
from edit_machine import run_edits


@pytest.mark.parametrize("number", [0, 14])
def test_scorecards_after_edits_are_those_of_a_fresh_score(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run_edits(number, steps=4)
