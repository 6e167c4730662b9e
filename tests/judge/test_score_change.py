"""Why scores changed: the parts sum to the change, and each lands where the edit was made."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.judge.base import Reply
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.engine import assemble, prepare
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.rejudge.score_change import mean_split, rank_changes, split_change
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from hypothesis import given, settings
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUBRIC = load_rubric("segmentation")
RUN = load_run(RECORDED / "runs" / "kidney-lite-01").model_copy(update={"tier": "standard"})
IDS = [c.id for c in RUBRIC.criteria()]
PARTS = ("text", "weights", "judge", "data")


class FixedJudge:
    """Says what it is told."""

    members, prompt_sha256, parameters = (), None, {}

    def __init__(self, name: str = "fixed") -> None:
        self.name = name


_PREPARED: dict = {}


def card(values: dict[str, float | None], rubric=RUBRIC, judge: str = "fixed", run=RUN):
    # A run is read once for each rubric; by identity, as comparing runs costs more than preparing
    # them.
    key = (id(run), id(rubric))
    if key not in _PREPARED:
        _PREPARED[key] = prepare(run, rubric=rubric, questions=QuestionSet(ask_all=True))
    ready = _PREPARED[key]
    replies = {}
    for request in ready.requests(FixedJudge(judge)):
        results = []
        for criterion in request.criteria:
            value = values.get(criterion.id, 1.0)
            status = "scored" if value is not None else "unscored"
            reason = None if value is not None else "judge_error"
            results.append(
                CriterionResult(id=criterion.id, value=value, status=status, reason=reason)
            )
        replies[request.question] = Reply(tuple(results))
    return assemble(ready, FixedJudge(judge), replies)


def edit(id: str, rubric=RUBRIC, **update):
    stages = {
        stage: part.model_copy(
            update={
                "criteria": tuple(
                    c.model_copy(update=update) if c.id == id else c for c in part.criteria
                )
            }
        )
        for stage, part in rubric.stages.items()
    }
    return rubric.model_copy(update={"stages": stages})


def drop(id: str, rubric=RUBRIC):
    stages = {
        stage: part.model_copy(update={"criteria": tuple(c for c in part.criteria if c.id != id)})
        for stage, part in rubric.stages.items()
    }
    return rubric.model_copy(update={"stages": stages})


HEAVY = edit("S2a", weight=5.0)
REWORDED = edit("S3", text="Was a pilot run?")
LATER = RUN.model_copy(update={"sha256": "f" * 64})


@pytest.mark.parametrize(
    ("old", "new", "rubric", "only"),
    [
        pytest.param(card({}), card({}), RUBRIC, None, id="nothing"),
        pytest.param(card({}), card({"S3": 0.5}, REWORDED), REWORDED, "text", id="text"),
        pytest.param(card({"S2b": 0}), card({"S2b": 0}, HEAVY), HEAVY, "weights", id="weights"),
        pytest.param(card({}), card({"S3": 0.0}, judge="other"), RUBRIC, "judge", id="judge"),
        pytest.param(card({}), card({"S3": 0.0}, run=LATER), RUBRIC, "data", id="data"),
        pytest.param(card({}), card({"S2a": 0.0}), RUBRIC, "judge", id="parameters-are-the-judge"),
        pytest.param(
            card({"S2a": 0}), card({}, drop("S2a")), drop("S2a"), "text", id="criterion-removed"
        ),
        pytest.param(card({}, drop("S2a")), card({"S2a": 0}), RUBRIC, "text", id="criterion-added"),
    ],
)
def test_one_cause_takes_the_whole_change(old, new, rubric, only):
    before = drop("S2a") if "S2a" not in {r.id for r in old.stages["S2"].criteria} else RUBRIC
    change = split_change(old, new, before, rubric)
    # Scorecards hold rounded scores; splits are exact.
    for split, (a, b), last_decimal in (
        (change.agentic, (old.agentic, new.agentic), 1e-4),
        (change.overall, (old.overall, new.overall), 1e-2),
    ):
        assert (split.before, split.after) == pytest.approx((a, b), abs=last_decimal)
        for part in PARTS:
            expected = b - a if part == only else 0
            assert getattr(split, part) == pytest.approx(expected, abs=last_decimal)
    assert (only is None) == (change.agentic.change == 0)


def test_two_causes_share_what_they_do_together():
    new = card({"S3": 0.0}, REWORDED, judge="other")
    change = split_change(card({}), new, RUBRIC, REWORDED)
    assert (
        change.agentic.text
        == pytest.approx(change.agentic.judge)
        == pytest.approx(change.agentic.change / 2)
    )
    (flip,) = change.flips
    assert (flip.criterion, flip.before, flip.after, flip.causes) == (
        "S3",
        1.0,
        0.0,
        ("text", "judge"),
    )


def test_an_unknown_score_has_no_split():
    change = split_change(card({}), card(dict.fromkeys(IDS)), RUBRIC, RUBRIC)
    assert change.stages["S3"] is None
    assert change.stages["S4"] is not None
    assert {flip.criterion for flip in change.flips} == set(IDS)
    assert mean_split([None]) is None


_VALUES = st.fixed_dictionaries(
    {id: st.sampled_from([0.0, 1.0]) for id in IDS if id != "S3"}
    | {"S3": st.sampled_from([0.0, 0.5, 1.0])}
)
_RUBRICS = st.sampled_from(
    [
        RUBRIC,
        HEAVY,
        REWORDED,
        drop("S2a"),
        edit("S1b", requires=()),
        edit("S2c", credit=("standard",)),
    ]
)


@given(
    _VALUES,
    _VALUES,
    _RUBRICS,
    _RUBRICS,
    st.sampled_from(["fixed", "other"]),
    st.sampled_from([RUN, LATER]),
)
@settings(max_examples=60, deadline=None)
def test_the_parts_always_sum_to_the_change(a, b, before, after, judge, run):
    old, new = card(a, before), card(b, after, judge, run)
    change = split_change(old, new, before, after)
    for split in (change.agentic, change.overall):
        assert sum(getattr(split, part) for part in PARTS) == pytest.approx(split.change)
    assert change.agentic.after == pytest.approx(new.agentic, abs=1e-4)
    mean = mean_split([change.agentic, change.agentic, None])
    assert mean.change == pytest.approx(change.agentic.change)


def test_rank_changes():
    def agent(name: str, value: float):
        run = RUN.model_copy(update={"agent": name})
        return card(dict.fromkeys(IDS, value), run=run)

    before = [agent("a", 1.0), agent("b", 0.0), agent("c", 0.0), agent("gone", 0.0)]
    after = [agent("a", 0.0), agent("b", 1.0), agent("c", 0.0)]
    changes = {c.name: (c.before, c.after) for c in rank_changes(before, after)}
    assert changes == {"b": (2, 1), "a": (1, 2), "c": (2, 2)}
