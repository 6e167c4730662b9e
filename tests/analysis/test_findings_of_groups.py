"""Sentences about the extremes of a group say no more than the intervals, and never both ends."""

from __future__ import annotations

import re

import polars as pl
import pytest
from ambjudge.analysis import all_tables, simulate
from ambjudge.analysis.report.findings import findings
from ambjudge.trajectories.stages import STAGES
from hypothesis import given
from hypothesis import strategies as st

Intervals = dict[str, tuple[float, float]]


def sentence(intervals: Intervals) -> str:
    """The finding about stages with these intervals, "" without one."""
    rows = [
        {
            "agent": "(all)",
            "stage": stage,
            "population": "new",
            "value": (low + high) / 2,
            "lo": low,
            "hi": high,
            "n": 40,
        }
        for stage, (low, high) in intervals.items()
    ]
    lines = [finding.text for finding in findings({"stages": pl.DataFrame(rows)})]
    assert len(lines) <= 1
    return "".join(lines)


def claimed(text: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(lower, higher) pairs that a sentence tells apart, and pairs that it says not to differ."""
    text = re.sub(r" \([^)]*\)", "", text)
    apart, alike = set(), set()
    for clause in text.removeprefix("Of the stages ").split("; "):
        names = re.findall(r"S\d", clause)
        if "has a lower mean than" in clause:
            apart |= {(names[0], name) for name in names[1:]}
        if "not significantly below" in clause:
            alike |= {(names[0], name) for name in names[1:]}
        if "not significantly above" in clause:
            alike |= {(name, names[0]) for name in names[1:]}
    return apart, alike


ends = st.floats(0, 1).flatmap(lambda low: st.tuples(st.just(low), st.floats(low, 1)))


@given(st.tuples(*[ends] * len(STAGES)))
def test_stages_in_any_constellation(drawn) -> None:
    intervals = dict(zip(STAGES, drawn, strict=True))
    text = sentence(intervals)
    apart = {
        (low, high)
        for low in intervals
        for high in intervals
        if intervals[low][1] < intervals[high][0]
    }
    claimed_apart, claimed_alike = claimed(text)
    assert claimed_apart <= apart
    assert not claimed_alike & apart
    if not apart:
        assert text == "No two stages differ significantly in their means."
    elif "no other two differ" in text:
        assert claimed_apart == apart
    else:
        low_part, high_part = text.split("; ")
        assert not set(re.findall(r"S\d", low_part)) & set(re.findall(r"S\d", high_part))


CASES = [
    pytest.param(
        {"S1": (0.3, 0.8), "S2": (0.7, 0.9), "S3": (0.1, 0.4), "S4": (0.6, 0.8), "S5": (0.6, 0.7)},
        "Of the stages S3 (0.250 [0.100, 0.400]) has a lower mean than S5 (0.650 [0.600, 0.700]),"
        " S4 (0.700 [0.600, 0.800]) and S2 (0.800 [0.700, 0.900]); no other two differ"
        " significantly.",
        id="S1 is among the lowest and among the highest",
    ),
    pytest.param(
        {"S1": (0.6, 0.7), "S2": (0.8, 0.9), "S3": (0.1, 0.2), "S4": (0.7, 0.85), "S5": (0.5, 0.6)},
        "Of the stages S3 (0.150 [0.100, 0.200]) has the lowest mean; S2 (0.850 [0.800, 0.900])"
        " has the highest, not significantly above S4 (0.775 [0.700, 0.850]).",
        id="two ends",
    ),
]


@pytest.mark.parametrize(("intervals", "text"), CASES)
def test_in_words(intervals, text) -> None:
    assert sentence(intervals) == text


def test_without_intervals_no_difference_is_claimed_or_denied() -> None:
    """Three tasks give no interval: neither "differs" nor "does not differ" was tested."""
    runs = simulate(seed=3, n_tasks=3, n_tracks=1, n_rep=5).frame()
    lines = [finding.text for finding in findings(all_tables(runs, only=["stages", "codes"]))]
    assert lines
    assert not any("differ" in line or "significant" in line for line in lines)
    assert any(line.startswith("Shares of the fired codes: ") for line in lines)
