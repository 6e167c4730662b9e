"""The heuristic judge on the recorded runs: agreement with the labels, quotes that stand, the same reply every time."""

import json
import os
from pathlib import Path

import pytest
from ambjudge.judge.base import Request
from ambjudge.judge.heuristic import HeuristicJudge
from ambjudge.rubrics.load import rubric_for
from ambjudge.trajectories.load import iter_runs, load_run
from ambjudge.trajectories.models import Segmentation
from ambjudge.trajectories.record.quotes import QuoteIndex

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
EXTERNAL = Path(os.environ.get("AMBJUDGE_EXTERNAL_DATA", Path(__file__).parents[3] / "shared" / "data" / "external"))
NAMES = sorted(p.stem for p in (RECORDED / "labels" / "gold").glob("*.json"))


async def judged(run):
    rubric, judge, found = rubric_for(run.track, run.task), HeuristicJudge(), []
    segmentation = Segmentation(turn_stages=("S1",) * len(run.turns), segments=())
    for stage in ("S1", "S2", "S3"):
        criteria = tuple(c for c in rubric.criteria(stage) if run.tier not in c.credit)
        found += (await judge.judge(Request(run, segmentation, rubric, stage, criteria))).results
    return found


async def test_at_least_nine_in_ten_criteria_equal_the_labels():
    """A floor against regressions, not a claim: the labels were seen while the rules were written."""
    equal = total = 0
    for name in NAMES:
        gold = json.loads((RECORDED / "labels" / "gold" / f"{name}.json").read_text(encoding="utf-8"))["criteria"]
        for result in await judged(load_run(RECORDED / "runs" / name)):
            total += 1
            equal += result.value == gold[result.id]
    assert total > 140
    assert equal / total >= 0.9


@pytest.mark.parametrize("name", NAMES)
async def test_every_quote_stands_where_it_is_cited_and_every_met_value_has_one(name):
    run = load_run(RECORDED / "runs" / name)
    index = QuoteIndex(run)
    for result in await judged(run):
        assert result.status == "scored"
        assert result.rationale
        if result.value:
            assert result.evidence, result
        for evidence in result.evidence:
            assert index.check(evidence.turn, evidence.quote) == evidence
            assert evidence.check == "verified"
            assert len(evidence.quote) <= 160
            assert "\n" not in evidence.quote


@pytest.mark.parametrize("name", NAMES[::4])
async def test_the_same_run_gets_the_same_reply_and_key(name):
    one, other = (load_run(RECORDED / "runs" / name) for _ in range(2))
    assert await judged(one) == await judged(other)
    rubric = rubric_for(one.track, one.task)
    keys = {
        HeuristicJudge().evidence_sha256(
            Request(run, Segmentation(turn_stages=(), segments=()), rubric, "S3", rubric.criteria("S3"))
        )
        for run in (one, other)
    }
    assert len(keys) == 1


async def test_foreign_runs_are_judged_without_an_error():
    if not EXTERNAL.is_dir():
        pytest.skip(
            f"NOT RUN: no external runs at {EXTERNAL}; set AMBJUDGE_EXTERNAL_DATA to the folder that holds them"
        )
    count = 0
    for folder in sorted(EXTERNAL.iterdir()):
        for run in list(iter_runs(folder))[::6]:
            for result in await judged(run):
                assert result.value is None or result.rationale
                assert not result.value or result.evidence, (run.id, result)
                assert all(e.check == "verified" for e in result.evidence)
            count += 1
    assert count > 20
