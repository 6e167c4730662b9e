"""Some steps of the state machine (cohort_machine.py); benchmarks/journeys.py makes many."""

from __future__ import annotations

from pathlib import Path

import pytest
from cohort_machine import run_sequence


@pytest.mark.parametrize("number", [1, 3])
def test_commands_in_any_order_agree(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run_sequence(number, steps=15, pages=number == 1)
