"""Constructed runs, of other tracks and by other hands than the recorded ones: whole runs through
the whole tool.

All 370 are measured, with bounds, by benchmarks/constructed.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.judge.card.verify import rubric_of, verify
from ambjudge.judge.engine import make_scorecard
from ambjudge.trajectories.reading.load import load_run

ROOT = Path(__file__).parents[1] / "data" / "constructed"
DISPUTED = ("c/runs/derm-std-01", "w/runs/fundusqa-std-02")
"""Every answer is a placeholder: the authors count the submission as valid, we do not; the
benchmark leaves it open."""
NAMES = sorted({p.relative_to(ROOT).as_posix() for p in ROOT.glob("*/runs/*")} - set(DISPUTED))


@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_the_report_and_add_up(name: str) -> None:
    run = load_run(ROOT / name)
    card, report = make_scorecard(run), run.report
    assert report is not None
    assert card.stages["S4"].score == pytest.approx(report.step_scores["S4"], abs=1e-3)
    assert card.stages["S5"].score == pytest.approx(report.step_scores["S5"], abs=1e-3)
    assert card.task == pytest.approx(report.task_score, abs=1e-3)
    assert verify(card, rubric_of(card)) == []
