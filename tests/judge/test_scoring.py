"""Scores by hand, track by track and policy by policy, and what must hold for any numbers."""

from __future__ import annotations

import math

import pytest
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.scoring.criteria import apply_requires, split_criteria
from ambjudge.judge.scoring.formulas import (
    Cap,
    aggregate,
    answers_s4_caps,
    answers_stage_caps,
    apply_breach,
    apply_caps,
    gate_closed,
    overall,
    s4_bounds,
    s4_score,
    s5_bounds,
    s5_score,
    stage_score,
)
from ambjudge.rubrics.model import Criterion, Level, StageRubric
from ambjudge.tracks import TRACKS
from ambjudge.trajectories.models import STAGES
from hypothesis import given
from hypothesis import strategies as st

WEIGHTS = {"S1": 0.25, "S2": 0.15, "S3": 0.35, "S4": 0.15, "S5": 0.10}
YES_NO = (Level(value=1, text="yes"), Level(value=0, text="no"))


def item(name: str, **more) -> Criterion:
    return Criterion(
        id=name, title=name, text="?", scale=YES_NO, evidence=("plan",), source="test", **more
    )


S1 = (
    item("S1a"),
    item("S1b", requires=("S1a",)),
    item("S1c", requires=("S1a",)),
    item("S1d", credit=("lite",)),
    item("S1e", credit=("lite",)),
    item("S1f", credit=("lite",), requires=("S1e",)),
)


def scored(name: str, value: float, **more) -> CriterionResult:
    return CriterionResult(id=name, value=value, status="scored", **more)


def unscored(name: str) -> CriterionResult:
    return CriterionResult(id=name, value=None, status="unscored", reason="judge_error")


def absent(name: str) -> CriterionResult:
    return CriterionResult(id=name, value=None, status="not_applicable")


def results_of(text: str, names: str = "abcdef", tier: str | None = None) -> list[CriterionResult]:
    """'10?c-' -> scored 1, scored 0, unscored, credited, not applicable."""
    make = {
        "?": unscored,
        "-": absent,
        "c": lambda name: CriterionResult(id=name, value=1, status="credited"),
    }
    return [
        make[char](f"S1{name}") if char in make else scored(f"S1{name}", float(char))
        for char, name in zip(text, names, strict=False)
    ]


# Tiers and requirements


@pytest.mark.parametrize(
    ("tier", "judged", "credited", "outside"),
    [
        ("lite", "abc", "def", "g"),
        ("standard", "abcdefg", "", ""),
        ("pro", "abcdef", "", "g"),
        (None, "abcdefg", "", ""),
    ],
    ids=[
        "lite credits",
        "standard judges all",
        "pro leaves the limited item out",
        "unknown tier judges all",
    ],
)
def test_split_criteria(tier, judged, credited, outside):
    split = split_criteria(
        StageRubric(weight=0.25, criteria=(*S1, item("S1g", tiers=("standard",)))), tier
    )
    assert "".join(c.id[-1] for c in split.to_judge) == judged
    assert "".join(r.id[-1] for r in split.credited) == credited
    assert "".join(r.id[-1] for r in split.not_applicable) == outside
    assert all(r.value == 1 and r.status == "credited" for r in split.credited)
    assert all(r.value is None and r.status == "not_applicable" for r in split.not_applicable)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("011111", "000111"),
        ("111101", "111100"),
        ("0??111", "000111"),
        ("?11111", "?11111"),
        ("011ccc", "000ccc"),
        ("1110cc", "1110cc"),
        ("01-111", "00-111"),
        ("-11111", "-11111"),
        ("111111", "111111"),
    ],
    ids=[
        "no plan",
        "no diagram",
        "unscored dependants of a 0",
        "unscored requirement",
        "credits survive",
        "credit without e",
        "not applicable stays",
        "inapplicable requirement",
        "nothing to do",
    ],
)
def test_apply_requires(before, after):
    assert apply_requires(results_of(before), S1) == tuple(
        result.model_copy(update={"rationale": done.rationale})
        for result, done in zip(
            results_of(after), apply_requires(results_of(before), S1), strict=True
        )
    )


def test_a_zeroed_item_keeps_what_was_judged():
    _, b = apply_requires([scored("S1a", 0), scored("S1b", 1, rationale="clear steps")], S1)
    assert b.value == 0
    assert b.rationale == "0 because S1a is 0; judged 1: clear steps"
    _, b = apply_requires([scored("S1a", 0), unscored("S1b")], S1)
    assert (b.status, b.reason) == ("scored", None)
    assert "unscored (judge_error)" in b.rationale


def test_requirements_chain_in_any_order_and_circles_are_refused():
    chain = (item("S1c", requires=("S1b",)), item("S1b", requires=("S1a",)), item("S1a"))
    done = apply_requires([scored("S1c", 1), scored("S1b", 1), scored("S1a", 0)], chain)
    assert [r.value for r in done] == [0, 0, 0]
    circle = (item("S1a", requires=("S1b",)), item("S1b", requires=("S1a",)))
    with pytest.raises(ValueError, match="circle"):
        apply_requires([scored("S1a", 1), scored("S1b", 1)], circle)


# Stage scores


@pytest.mark.parametrize(
    ("text", "missing", "score", "bounds"),
    [
        ("111111", "renormalize", 1, (1, 1)),
        ("110100", "renormalize", 0.5, (0.5, 0.5)),
        ("111ccc", "renormalize", 1, (1, 1)),
        ("100ccc", "renormalize", 4 / 6, (4 / 6, 4 / 6)),
        ("???ccc", "renormalize", None, (0.5, 1)),
        ("???ccc", "zero", None, (0.5, 1)),
        ("1??ccc", "renormalize", 1, (4 / 6, 1)),
        ("1??ccc", "zero", 4 / 6, (4 / 6, 1)),
        ("?11000", "renormalize", 2 / 5, (0, 0.5)),
        ("?11000", "zero", 2 / 6, (0, 0.5)),
        ("11110-", "renormalize", 4 / 5, (4 / 5, 4 / 5)),
        ("------", "renormalize", None, (0, 1)),
        ("cccccc", "renormalize", 1, (1, 1)),
        ("??????", "zero", None, (0, 1)),
        ("11", "renormalize", 1, (2 / 6, 1)),
    ],
    ids=[
        "full",
        "half",
        "lite full",
        "lite plan only",
        "lite, judge failed",
        "lite, judge failed, zero",
        "partly",
        "partly, zero",
        "requirement in doubt",
        "requirement in doubt, zero",
        "one inapplicable",
        "nothing applies",
        "all credited",
        "nothing scored",
        "no results count as unscored",
    ],
)
def test_stage_score(text, missing, score, bounds):
    found, interval = stage_score(results_of(text), S1, missing)
    assert found == (None if score is None else pytest.approx(score))
    assert interval == pytest.approx(bounds)


def test_stage_score_is_weighted():
    criteria = (item("S1a", weight=3), item("S1b"))
    assert stage_score([scored("S1a", 1), scored("S1b", 0)], criteria) == (0.75, (0.75, 0.75))


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([scored("S1z", 1)], "not a criterion"),
        ([scored("S1a", 1), scored("S1a", 0)], "two results"),
        ([CriterionResult(id="S1a", value=None, status="scored")], "without a value"),
    ],
    ids=["unknown", "twice", "no value"],
)
def test_stage_score_refuses(results, message):
    with pytest.raises(ValueError, match=message):
        stage_score(results, S1)


@pytest.mark.parametrize(
    ("score", "bounds", "caps", "expected"),
    [
        (0.9, (0.8, 1.0), (0.2,), (0.2, (0.2, 0.2))),
        (0.1, (0.0, 1.0), (0.2,), (0.1, (0.0, 0.2))),
        (None, (0.5, 1.0), (0.5, 0.2), (None, (0.2, 0.2))),
        (0.7, (0.7, 0.7), (), (0.7, (0.7, 0.7))),
    ],
    ids=["above", "below", "lowest cap wins", "no cap"],
)
def test_caps(score, bounds, caps, expected):
    assert apply_caps(score, bounds, [Cap(c, "why") for c in caps]) == expected


# S4, S5, gate and guards: one row a rule of the benchmark


@pytest.mark.parametrize(
    ("completion", "validity", "caps", "expected"),
    [
        (1.0, True, (), 1.0),
        (1.0, False, (), 0.5),
        (0.375, False, (), 0.1875),
        (0.5, False, (), 0.25),
        (0.0, False, (), 0.0),
        (1.0, 19 / 24, (), 0.5 + 0.5 * 19 / 24),
        (1.0, 19 / 24, (0.2,), 0.2),
        (0.1, 0.1, (0.2,), 0.1),
        (None, True, (), None),
        (1.0, None, (), None),
        (1.0, None, (0.2,), 0.2),
    ],
    ids=[
        "complete and valid",
        "bad format",
        "gated 3 of 8",
        "5 of 10 valid",
        "nothing",
        "vqa parse rate",
        "placeholders",
        "cap above the score",
        "completion unknown",
        "format unknown",
        "capped whatever the format",
    ],
)
def test_s4(completion, validity, caps, expected):
    caps = [Cap(value, "why") for value in caps]
    assert s4_score(completion, validity, caps) == (
        None if expected is None else pytest.approx(expected)
    )


def test_s4_and_s5_bounds_span_what_is_unknown():
    assert s4_bounds(0.5, None) == (0.25, 0.75)
    assert s4_bounds(None, None) == (0, 1)
    assert s5_bounds(None, True) == (0.5, 1)
    assert s5_bounds(True, None) == (0.5, 1)
    assert s5_bounds(None, False, "zero") == (0, 0)


@pytest.mark.parametrize(
    ("results", "valid", "malformed", "expected"),
    [
        (True, True, "formula", 1.0),
        (True, False, "formula", 0.5),
        (False, True, "formula", 0.5),
        (False, False, "formula", 0.0),
        (True, False, "zero", 0.0),
        (True, True, "zero", 1.0),
        (False, True, "zero", 0.5),
        (None, True, "formula", None),
        (True, None, "formula", None),
        (None, False, "zero", 0.0),
    ],
)
def test_s5(results, valid, malformed, expected):
    assert s5_score(results, valid, malformed) == expected


@pytest.mark.parametrize(
    ("track", "completion", "gate", "closed"),
    [
        ("segmentation", 0.99, True, True),
        ("segmentation", 1.0, True, False),
        ("segmentation", 0.5, False, False),
        ("detection", 0.5, True, True),
        ("report_generation", 0.5, True, True),
        ("enhancement", 0.5, True, False),
        ("vqa", 0.5, True, False),
        ("classification", 0.5, True, False),
        ("synthesis", 0.5, True, False),
        ("segmentation", None, True, None),
        (None, 0.5, True, False),
    ],
)
def test_completeness_gate(track, completion, gate, closed):
    gated = track is not None and TRACKS.get(track).gate
    assert gate_closed(gated and gate, completion) is closed


@pytest.mark.parametrize(
    ("placeholders", "model", "complete", "accuracy", "caps"),
    [
        (0.0, True, True, 0.8, []),
        (0.05, True, True, 0.8, []),
        (0.051, True, True, 0.8, [0.2]),
        (0.0, False, True, 0.8, [0.3]),
        (0.0, True, True, 0.04, [0.5]),
        (0.0, True, True, 0.05, []),
        (0.0, True, False, 0.0, []),
        (0.0, False, True, 0.0, [0.3]),
        (1.0, False, True, 0.0, [0.2, 0.3]),
        (None, None, None, None, []),
        (0.0, None, True, 0.0, []),
    ],
)
def test_vqa_guards_on_s4(placeholders, model, complete, accuracy, caps):
    assert [cap.value for cap in answers_s4_caps(placeholders, model, complete, accuracy)] == caps


@pytest.mark.parametrize(
    ("placeholders", "answers", "artefact", "caps"),
    [
        (0.0, 24, False, {}),
        (0.2, 24, False, {"S3": 0.2}),
        (0.49, 24, False, {"S3": 0.2}),
        (0.5, 24, False, {"S1": 0.2, "S3": 0.2}),
        (0.0, 0, False, {"S1": 0.2, "S3": 0.2}),
        (0.0, 24, True, {"S3": 0.5}),
        (0.2, 24, True, {"S3": 0.2}),
        (None, None, False, {}),
    ],
    ids=[
        "clean",
        "some placeholders",
        "nearly half",
        "half are placeholders",
        "empty",
        "artefact absent",
        "lower cap wins",
        "unknown",
    ],
)
def test_vqa_caps_on_s1_and_s3(placeholders, answers, artefact, caps):
    found = answers_stage_caps(placeholders, answers, artefact)
    assert {stage: cap.value for stage, cap in found.items()} == caps


# Aggregation


@pytest.mark.parametrize(
    ("scores", "task", "missing", "agentic", "bounds", "total", "total_bounds"),
    [
        ((1, 1, 1, 1, 1), 1.0, "renormalize", 1.0, (1, 1), 100.0, (100, 100)),
        # 0.25*.5 + 0.15*1 + 0.35*.5 + 0.15*1 + 0.10*1
        ((0.5, 1, 0.5, 1, 1), 0.4, "renormalize", 0.7, (0.7, 0.7), 55.0, (55, 55)),
        # only S4 and S5: (0.15 + 0.10) / 0.25
        ((None, None, None, 1, 1), 0.9753, "renormalize", 1.0, (0.25, 1), 98.765, (61.265, 98.765)),
        ((None, None, None, 1, 1), 0.9753, "zero", 0.25, (0.25, 1), 61.265, (61.265, 98.765)),
        # S3 unscored: (0.25 + 0.15 + 0.15*.5 + 0.10*.5) / 0.65
        (
            (1, 1, None, 0.5, 0.5),
            0.5,
            "renormalize",
            0.525 / 0.65,
            (0.525, 0.875),
            25 + 50 * 0.525 / 0.65,
            (51.25, 68.75),
        ),
        ((1, 1, None, 0.5, 0.5), 0.5, "zero", 0.525, (0.525, 0.875), 51.25, (51.25, 68.75)),
        ((1, 1, 1, 1, 1), None, "renormalize", 1.0, (1, 1), None, (50, 100)),
        ((None,) * 5, 0.5, "renormalize", None, (0, 1), None, (25, 75)),
        ((None,) * 5, 0.5, "zero", None, (0, 1), None, (25, 75)),
        ((0, 0, 0, 0, 0), 0.0, "renormalize", 0.0, (0, 0), 0.0, (0, 0)),
    ],
    ids=[
        "perfect",
        "mixed",
        "unjudged",
        "unjudged, zero",
        "no S3",
        "no S3, zero",
        "no task",
        "nothing",
        "nothing, zero",
        "breach",
    ],
)
def test_aggregate(scores, task, missing, agentic, bounds, total, total_bounds):
    found = aggregate(dict(zip(STAGES, scores, strict=True)), {}, WEIGHTS, task, missing)
    assert found.agentic == (None if agentic is None else pytest.approx(agentic))
    assert found.agentic_bounds == pytest.approx(bounds)
    assert found.overall == (None if total is None else pytest.approx(total))
    assert found.overall_bounds == pytest.approx(total_bounds)


def test_aggregate_uses_the_bounds_of_partly_scored_stages():
    scores = dict(zip(STAGES, (0.8, 1.0, 1.0, 1.0, 1.0), strict=True))
    found = aggregate(scores, {"S1": (0.4, 0.9)}, dict.fromkeys(STAGES, 0.2), 1.0)
    assert found.agentic_bounds == pytest.approx((0.88, 0.98))
    assert found.overall_bounds == pytest.approx((94, 99))


@given(
    scores=st.lists(st.none() | st.floats(0, 1), min_size=5, max_size=5),
    inapplicable=st.sets(st.sampled_from(STAGES), max_size=4),
    missing=st.sampled_from(["renormalize", "zero"]),
)
def test_a_stage_that_does_not_apply_has_no_weight(scores, inapplicable, missing):
    """Agentic and its bounds are those of a rubric without the stage, under either policy."""
    by_stage = dict(zip(STAGES, scores, strict=True))
    found = aggregate(by_stage, {}, WEIGHTS, 0.5, missing, inapplicable=inapplicable)
    rest = [stage for stage in STAGES if stage not in inapplicable]
    without = aggregate(
        {stage: by_stage[stage] for stage in rest},
        {},
        {stage: WEIGHTS[stage] for stage in rest},
        0.5,
        missing,
    )
    assert (found.agentic, found.agentic_bounds) == (without.agentic, without.agentic_bounds)


def test_without_any_stage_that_applies_nothing_is_known():
    found = aggregate({}, {}, WEIGHTS, 0.5, "zero", inapplicable=STAGES)
    assert (found.agentic, found.agentic_bounds) == (None, (0.0, 1.0))


def test_there_is_an_overall_for_all_five_stages_of_the_benchmark_only():
    found = aggregate({"S1": 0.8, "S2": 1.0}, {}, {"S1": 0.5, "S2": 0.5}, 1.0)
    assert (found.agentic, found.overall, found.overall_bounds) == (0.9, None, (0.0, 100.0))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.0001])
def test_values_outside_their_range_are_refused(bad):
    with pytest.raises(ValueError, match="not in"):
        aggregate({"S1": bad}, {}, WEIGHTS, None)
    with pytest.raises(ValueError, match="not in"):
        aggregate({"S1": 1.0}, {}, WEIGHTS, bad)
    with pytest.raises(ValueError, match="not in"):
        aggregate({"S1": 1.0}, {"S2": (0.0, bad)}, WEIGHTS, None)
    with pytest.raises(ValueError, match="not in"):
        s4_score(bad, True)
    with pytest.raises(ValueError, match="not in"):
        apply_caps(bad, (0, 1), ())
    with pytest.raises(ValueError, match="not in"):
        apply_caps(0.5, (0, 1), [Cap(bad, "why")])
    with pytest.raises(ValueError, match="not in"):
        gate_closed(True, bad)
    with pytest.raises(ValueError, match="not in"):
        overall(bad, 0.5)


@pytest.mark.parametrize("weights", [{}, {"S1": 0.0}, {"S1": -1.0}, {"S1": math.nan}, {"S2": 1.0}])
def test_weights_must_be_positive_and_cover_the_stages(weights):
    with pytest.raises(ValueError, match="weight"):
        aggregate({"S1": 0.5}, {}, weights, None)


def test_reversed_bounds_are_refused():
    with pytest.raises(ValueError, match="reversed"):
        aggregate({"S1": None}, {"S1": (0.9, 0.1)}, WEIGHTS, None)


@pytest.mark.parametrize(
    ("policy", "stage", "scores", "agentic"),
    [
        ("zero-all", "S3", (0, 0, 0, 0, 0), 0.0),
        ("from-stage", "S3", (0.8, 1.0, 0, 0, 0), 0.35),
        ("from-stage", "S1", (0, 0, 0, 0, 0), 0.0),
        ("from-stage", "S5", (0.8, 1.0, 0.5, 1.0, 0), 0.675),
        ("from-stage", None, (0, 0, 0, 0, 0), 0.0),
    ],
    ids=["paper", "from S3", "from S1", "from S5", "stage unknown"],
)
def test_breach(policy, stage, scores, agentic):
    before = dict(zip(STAGES, (0.8, 1.0, 0.5, 1.0, 1.0), strict=True))
    found = apply_breach(before, {s: (v, v) for s, v in before.items()}, 0.9, policy, stage)
    assert tuple(found.scores[s] for s in STAGES) == scores
    assert found.task == 0.0
    done = aggregate(found.scores, found.bounds, WEIGHTS, found.task)
    assert done.agentic == pytest.approx(agentic)
    assert done.overall == pytest.approx(50 * agentic)
    assert done.overall_bounds == pytest.approx((50 * agentic, 50 * agentic))


# For any numbers

unit_values = st.floats(0, 1)
maybe = st.none() | unit_values
marks = st.text("01?c-", min_size=6, max_size=6)


@given(marks, st.sampled_from(["renormalize", "zero"]))
def test_a_stage_score_lies_within_its_bounds(text, missing):
    score, (low, high) = stage_score(apply_requires(results_of(text), S1), S1, missing)
    assert 0 <= low <= high <= 1
    assert score is None or low <= score <= high
    if "?" not in text and set(text) != {"-"}:
        assert low == high == score


@given(marks)
def test_bounds_hold_every_completion_of_the_missing_verdicts(text):
    _, (low, high) = stage_score(apply_requires(results_of(text), S1), S1)
    for fill in ("0", "1"):
        score, _ = stage_score(apply_requires(results_of(text.replace("?", fill)), S1), S1)
        assert score is None or low - 1e-12 <= score <= high + 1e-12


@given(marks, st.integers(0, 5))
def test_a_stage_score_is_monotone_in_each_criterion(text, position):
    at = {
        v: apply_requires(results_of(text[:position] + v + text[position + 1 :]), S1) for v in "01"
    }
    worse, better = (stage_score(at[v], S1)[0] for v in "01")
    assert worse <= better


scores_of_a_run = st.fixed_dictionaries(dict.fromkeys(STAGES, maybe))
missing_policy = st.sampled_from(["renormalize", "zero"])


@given(scores_of_a_run, maybe, missing_policy)
def test_aggregates_lie_within_their_bounds(scores, task, missing):
    found = aggregate(scores, {}, WEIGHTS, task, missing)
    low, high = found.agentic_bounds
    assert 0 <= low <= high <= 1
    assert found.agentic is None or low <= found.agentic <= high
    low, high = found.overall_bounds
    assert 0 <= low <= high <= 100
    assert found.overall is None or low <= found.overall <= high


@given(scores_of_a_run, maybe, missing_policy, st.sampled_from(STAGES), unit_values)
def test_agentic_is_monotone_in_each_scored_stage(scores, task, missing, stage, value):
    better = {**scores, stage: 1.0}
    worse = {**scores, stage: value}
    assert (
        aggregate(worse, {}, WEIGHTS, task, missing).agentic
        <= aggregate(better, {}, WEIGHTS, task, missing).agentic + 1e-15
    )
