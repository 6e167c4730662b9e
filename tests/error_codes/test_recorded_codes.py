"""Codes on real runs: gold codes of the recorded runs, and what must hold for any run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.fired_codes import fired_codes, primary_failure
from ambjudge.error_codes.models import FiredCode
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
GOLD = {
    p.stem: json.loads(p.read_text(encoding="utf-8"))["codes"]
    for p in sorted((RECORDED / "labels" / "gold").glob("*.json"))
}
READ = {
    name: {"E3"}
    for name in (
        "bccd-lite-04",
        "kidney-lite-02",
        "kidney-lite-04",
        "ldct-lite-01",
        "ldct-lite-03",
        "vqa-lite-01",
    )
}
"""Codes that only a reader finds: a defect that was talked away, empty masks of lesions, how a run
spoke when it stopped."""


def codes_of(name, taxonomy="paper"):
    run = load_run(RECORDED / "runs" / name)
    facts = check_outputs(run, public=RECORDED / "public").s4_checks
    return run, fired_codes(code_context(run, segment(run), facts), taxonomy)


def assert_sound(run, codes):
    for code in codes:
        assert code.turns, code
        assert all(1 <= turn <= len(run.turns) for turn in code.turns)
        assert code.why.endswith(".")
        assert "\n" not in code.why
        assert FiredCode(**code.model_dump()).code == code.code


@pytest.mark.parametrize("name", list(GOLD))
def test_gold_codes_of_recorded_runs(name):
    run, codes = codes_of(name)
    assert_sound(run, codes)
    found = {c.code for c in codes if c.independence != "from_score"}
    assert found == set(GOLD[name]) - READ.get(name, set())


@pytest.mark.parametrize(
    ("name", "primary"),
    [
        ("kidney-lite-01", None),
        ("kidney-lite-02", "S4:E4"),
        ("bccd-std-01", "S4:E5"),
        ("vqa-std-02", None),
        ("crc-std-01", "S4:E5"),
    ],
)
def test_harness_primary_failure(name, primary):
    run, codes = codes_of(name, "harness")
    assert_sound(run, codes)
    assert len({c.stage for c in codes}) == len(codes)
    assert primary_failure(codes) == primary


def test_a_run_without_turns_fires_nothing(tmp_path):
    (tmp_path / "conversation.json").write_text('[{"role": "user", "content": "Begin."}]')
    run = load_run(tmp_path / "conversation.json")
    assert fired_codes(code_context(run, segment(run))) == ()
