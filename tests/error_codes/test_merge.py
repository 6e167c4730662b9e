"""Detector codes and judge tags: union, facts untouched, conflicts listed."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.fired import Fired
from ambjudge.error_codes.merge import JUDGE_ALONE, conflicts, merge


def code(name="E3", by="detector:sign_ignored", turns=(4,), stage="S4", confidence=0.85, independence="from_trace"):
    return Fired(
        code=name,
        taxonomy="paper",
        stage=stage,
        turns=turns,
        why="Because of this.",
        by=by,
        confidence=confidence,
        independence=independence,
    )


def tag(name="E3", **more):
    return code(name, by="judge:m", independence="from_judge", **more)


def test_the_union_keeps_both_sources():
    merged = merge([code("E4"), code("E3")], [tag("E3"), tag("E5")])
    assert [(c.code, c.by) for c in merged] == [
        ("E3", "detector:sign_ignored"), ("E3", "judge:m"), ("E4", "detector:sign_ignored"), ("E5", "judge:m"),
    ]  # fmt: skip


def test_a_detector_fact_is_never_changed():
    fact = code("E4", turns=(2, 3))
    assert fact in merge([fact], [tag("E4", turns=(9,)), tag("E1", turns=(2, 3))])


def test_a_judge_alone_is_not_certain():
    (alone,) = merge([], [tag("E1", confidence=0.99)])
    assert alone.confidence == JUDGE_ALONE
    confirmed = merge([code("E1")], [tag("E1", confidence=0.99)])
    assert confirmed[1].confidence == 0.99


def test_the_score_confirms_no_judge():
    merged = merge([code("E3", independence="from_score")], [tag("E3", confidence=0.9)])
    assert [c.confidence for c in merged if c.by == "judge:m"] == [JUDGE_ALONE]


@pytest.mark.parametrize(
    ("detected", "tags", "judged", "count"),
    [
        pytest.param([code("E4")], [tag("E4")], True, 0, id="agreement"),
        pytest.param([code("E4")], [], True, 1, id="judge-silent-on-a-fact"),
        pytest.param([code("E4")], [], False, 0, id="no-judge-asked"),
        pytest.param([code("E4", confidence=0.6)], [], True, 0, id="unsure-detector"),
        pytest.param([code("E4", confidence=0.7)], [tag("E2")], True, 1, id="same-turns-other-code"),
        pytest.param([code("E3", independence="from_score")], [], True, 0, id="circular-code"),
    ],
)
def test_conflicts(detected, tags, judged, count):
    assert len(conflicts(detected, tags, judged=judged)) == count
