"""Why scores changed: the parts sum to the change, and each lands where the edit was made."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.judge.base import Reply
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.engine import assemble, prepare
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.questions.verdict_keys import VerdictKey
from ambjudge.judge.rejudge.score_change import CAUSES, CardSide, mean_split, split_change
from ambjudge.rubrics.load import criterion_sha256, load_rubric
from ambjudge.trajectories.reading.load import load_run
from hypothesis import given, settings
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUBRIC = load_rubric("segmentation")
RUN = load_run(RECORDED / "runs" / "kidney-lite-01").model_copy(update={"tier": "standard"})
IDS = [c.id for c in RUBRIC.criteria()]


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


def side(
    card, rubric=RUBRIC, content: str = "files", codes=(), samples: int = 1, **key: str
) -> CardSide:
    """A scorecard with keys for all verdicts that are there; `key`: parts that differ."""
    parts = {
        "judge": card.judge.name,
        "prompt_sha256": "prompt",
        "parameters": "{}",
        "evidence_sha256": content,
    }
    texts = {criterion.id: criterion_sha256(criterion) for criterion in rubric.criteria()}
    judged = {
        ("criterion", result.id): texts[result.id]
        for stage in card.stages.values()
        for result in stage.criteria
        if result.status == "scored"
    }
    keys = {
        (kind, id): tuple(
            VerdictKey(
                criterion_id=id,
                **{"criterion_sha256": text, **parts, **key},
                sample=number,
                sha256=f"{kind} {id} {text} {number} {sorted({**parts, **key}.items())}",
            )
            for number in range(samples)
        )
        for (kind, id), text in (judged | {("code", code): code for code in codes}).items()
    }
    return CardSide(card, rubric, content, keys)


FIRST, FLIPPED = side(card({})), card({"S3": 0.0})
CASES = {
    "nothing": (FIRST, side(card({})), None),
    "a text": (FIRST, side(card({"S3": 0.5}, REWORDED), REWORDED), "text"),
    "a weight": (side(card({"S2b": 0})), side(card({"S2b": 0}, HEAVY), HEAVY), "weights"),
    "another judge, prompt and parameters with it": (
        FIRST,
        side(card({"S3": 0.0}, judge="other"), prompt_sha256="p2", evidence_sha256="seen so"),
        "judge",
    ),
    "the files": (FIRST, side(FLIPPED, content="other files"), "data"),
    "the prompt": (FIRST, side(FLIPPED, prompt_sha256="p2"), "prompt"),
    "the temperature": (FIRST, side(FLIPPED, parameters='{"temperature":1}'), "parameters"),
    "the samples": (FIRST, side(FLIPPED, samples=3), "parameters"),
    "the same files shown otherwise": (FIRST, side(FLIPPED, evidence_sha256="e2"), "release"),
    "a criterion removed": (
        side(card({"S2a": 0})),
        side(card({}, drop("S2a")), drop("S2a")),
        "text",
    ),
    "a criterion added": (side(card({}, drop("S2a")), drop("S2a")), side(card({"S2a": 0})), "text"),
    "a call that failed": (FIRST, side(card({"S2a": None, "S2b": 0})), "unscored"),
    "a call that failed for an edited text": (
        side(card({"S2a": 0})),
        side(card({"S2a": None}, edit("S2a", text="New?")), edit("S2a", text="New?")),
        "unscored",
    ),
    "a call that is answered at last": (
        side(card({"S2a": None})),
        side(card({"S2a": 0})),
        "unscored",
    ),
    "a plan that is no more, and all that requires it": (
        FIRST,
        side(card({"S1a": 0}), prompt_sha256="p2"),
        "prompt",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_cause_takes_the_whole_change(name):
    old, new, only = CASES[name]
    if name == "a call that failed":
        old = side(card({"S2b": 0}))
    change = split_change(old, new)
    for split, before, after in (
        (change.agentic, old.card.agentic, new.card.agentic),
        (change.overall, old.card.overall, new.card.overall),
    ):
        assert (split.before, split.after) == (before, after)
        assert sum(split.parts.values()) == pytest.approx(after - before, abs=1e-12)
        assert {cause for cause, part in split.parts.items() if part} == ({only} if only else set())
    assert {cause for flip in change.flips for cause in flip.causes} <= {only}
    assert change.is_change == (only is not None)


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        pytest.param(card({}), card({"S3": 0.0}, judge="other"), "judge", id="judge"),
        pytest.param(card({}), card({"S3": 0.0}, run=LATER), "data", id="data"),
        pytest.param(card({}), card({"S2a": 0.0}), "parameters", id="nothing that a card says"),
    ],
)
def test_cards_that_name_no_verdicts_say_what_they_can(old, new, only):
    change = split_change(CardSide(old, RUBRIC), CardSide(new, RUBRIC))
    assert change.causes == (only,)


def test_two_causes_share_what_they_do_together():
    change = split_change(FIRST, side(card({"S3": 0.0}, REWORDED), REWORDED, prompt_sha256="p2"))
    parts = change.agentic.parts
    assert parts["text"] == pytest.approx(parts["prompt"], abs=1e-4)
    assert parts["text"] == pytest.approx(change.agentic.change / 2, abs=1e-4)
    (flip,) = change.flips
    assert (flip.item, flip.before, flip.after, flip.causes) == ("S3", 1.0, 0.0, ("text", "prompt"))
    assert flip.before_keys != flip.after_keys


def test_error_codes_flip_like_criteria():
    states = {"E1": "absent", "E2": "absent", "E3": "not_read"}
    old = card({}).model_copy(update={"codes_read": states})
    new = old.model_copy(update={"codes_read": {**states, "E1": "present", "E3": "absent"}})
    codes = ("E1", "E2", "E3")
    change = split_change(
        side(old, codes=codes), side(new, codes=codes, criterion_sha256="E1 anew")
    )
    flips = {(f.kind, f.item, f.before_state, f.after_state, f.causes) for f in change.flips}
    assert flips == {
        ("code", "E1", "absent", "present", ("text",)),
        ("code", "E3", "not_read", "absent", ("unscored",)),
    }
    assert change.is_change
    assert change.agentic.change == 0


def test_an_unknown_score_has_no_split():
    change = split_change(FIRST, side(card(dict.fromkeys(IDS))))
    assert change.stages["S3"] is None
    assert {flip.item for flip in change.flips} == set(IDS)
    assert mean_split([None]) is None


_VALUES = st.fixed_dictionaries(
    {id: st.sampled_from([0.0, 1.0, None]) for id in IDS if id not in ("S1b", "S3")}
    | {"S1b": st.sampled_from([0.0, 1.0]), "S3": st.sampled_from([0.0, 0.5, 1.0])}
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
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_parts_always_sum_to_the_change(a, b, before, after, judge, run, has_keys):
    old, new = card(a, before), card(b, after, judge, run)
    make_side = side if has_keys else CardSide
    change = split_change(make_side(old, before), make_side(new, after))
    for split in (change.agentic, change.overall):
        if split is not None:
            assert sum(split.parts.values()) == pytest.approx(split.change, abs=1e-9)
            assert list(split.parts) == [cause for cause in CAUSES if cause in split.parts]
            assert abs(split.parts.get("release", 0)) == 0
    assert (change.agentic and change.agentic.after) == new.agentic
    mean = mean_split([change.agentic, change.agentic, None])
    if mean is not None:
        assert mean.change == pytest.approx(change.agentic.change)
