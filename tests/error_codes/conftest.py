"""The `detect` fixture: one detector on a tiny run."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.registry import detectors
from ambjudge.trajectories.models import Segmentation
from tiny_runs import write_run


@pytest.fixture
def detect(tmp_path):
    """detect(name, turns, stages, facts=..., **run) -> the findings of one detector."""

    def run_detector(name, turns, stages, known=None, taxonomy="paper", **options):
        run = write_run(tmp_path / "run", turns, **options)
        assert len(stages.split()) == len(run.turns), "one stage a turn"
        ctx = code_context(run, Segmentation(turn_stages=tuple(stages.split()), segments=()), known)
        detector = next(d for d in detectors(taxonomy) if d.name == name)
        found = list(detector.function(ctx))
        for finding in found:
            assert finding.turns
            assert all(1 <= t <= len(run.turns) for t in finding.turns)
            assert finding.why.strip()
        return found

    return run_detector
