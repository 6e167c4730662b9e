"""Panels: votes are kept, ties and failures have rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError, JudgeError
from ambjudge.judge.base import Reply, Request, Usage, extra_questions
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.engine import judge_run
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.panel import Ballot, Panel, Samples, combine
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.questions.items import Answer, QuestionSet, ask_item
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from hypothesis import given
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUN = load_run(RECORDED / "runs" / "ldct-lite-01")
CLEAN = load_run(RECORDED / "runs" / "kidney-lite-01")
RUBRIC = load_rubric("enhancement")
REQUEST = Request(RUN, segment(RUN), RUBRIC, "S3", RUBRIC.criteria("S3"))
NA = "not_applicable"


def ballot(said: float | str, judge: str = "j", sample: int = 0) -> Ballot:
    """A vote: a value, `not_applicable`, or a reason for none."""
    if isinstance(said, float | int):
        result = CriterionResult(
            id="S3", value=said, status="scored", rationale=f"because {said:g}"
        )
    elif said == NA:
        result = CriterionResult(id="S3", value=None, status="not_applicable")
    else:
        result = CriterionResult(id="S3", value=None, status="unscored", reason=said)
    return Ballot(judge, sample, Reply((result,), Usage(1, 10, 5, 0.01)))


@pytest.mark.parametrize(
    ("votes", "decision"),
    [
        ([1, 1, 0], 1.0),
        ([1, 0, 0], 0.0),
        ([1, 0], 0.0),
        ([1, 1, 0, 0], 0.0),
        ([1, 0.5, 0.2], 0.5),
        ([1, 0.5], 0.5),
        ([0.2], 0.2),
        ([1, 1, "judge_error"], 1.0),
        ([1, "judge_error"], 1.0),
        ([1, "judge_error", "unparsable"], "judge_error"),
        ([0, "refused", "refused", "truncated"], "refused"),
        (["truncated"], "truncated"),
        ([1, NA, NA], NA),
        ([1, NA], 1.0),
        ([1, 0, NA], 0.0),
        ([NA, "judge_error"], NA),
    ],
)
def test_rules(votes: list, decision: float | str) -> None:
    (result,) = combine(REQUEST, [ballot(v, f"j{i}") for i, v in enumerate(votes)]).results
    assert decision == (
        result.value if result.status == "scored" else NA if result.status == NA else result.reason
    )
    assert [v.judge for v in result.votes] == [f"j{i}" for i in range(len(votes))]


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=9))
def test_a_majority_always_wins_and_order_does_not_matter(values: list[float]) -> None:

    def decide(votes: list[float]) -> float | None:
        return combine(REQUEST, [ballot(vote) for vote in votes]).results[0].value

    for value in set(values):
        if values.count(value) * 2 > len(values):
            assert decide(values) == value
    assert decide(values) == decide(sorted(values)) == decide(values[::-1])
    assert decide(values) in values


def test_usage_and_disagreement_are_reported() -> None:
    reply = combine(REQUEST, [ballot(1, "a"), ballot(0, "b"), ballot(0, "c")])
    assert reply.usage == Usage(3, 30, 15, pytest.approx(0.03))
    assert reply.warnings == ("S3: votes differ on S3 (1, 0, 0)",)


async def test_rules_vote_where_facts_decide_and_nowhere_else(judge_server) -> None:
    members = [ApiJudge(name, judge_server.url, retry=Retry(1)) for name in ("good", "lowest")]
    panel = Panel([*members, RulesJudge()])
    exists, pipeline = RUBRIC.criteria("S1")[:2]
    reply = await panel.judge(Request(RUN, segment(RUN), RUBRIC, "S1", (exists, pipeline)))
    assert [[v.judge for v in r.votes] for r in reply.results] == [
        ["good", "lowest", "rules"],
        ["good", "lowest"],
    ]
    assert (panel.name, panel.members) == ("panel", ("good", "lowest", "rules"))
    assert judge_server.count == 2
    rules_reply = await Panel([RulesJudge(), RulesJudge()]).judge(
        Request(RUN, segment(RUN), RUBRIC, "S1", (pipeline,))
    )
    assert [(r.status, r.reason, r.votes) for r in rules_reply.results] == [
        ("unscored", "not_read", ())
    ]


async def test_a_member_that_cannot_work_loses_its_vote(judge_server) -> None:
    good = ApiJudge("good", judge_server.url)
    dead = ApiJudge("401", judge_server.url)
    reply = await Panel([good, dead]).judge(REQUEST)
    (result,) = reply.results
    assert (result.value, [v.reason for v in result.votes]) == (1.0, [None, "judge_error"])
    assert any("refused the credentials" in w for w in reply.warnings)
    with pytest.raises(JudgeError):
        await Panel([dead, dead]).judge(REQUEST)


# Other questions than criteria
def said(answer: object, value: float | None = None, **more: object) -> Ballot:
    result = CriterionResult(id="x", value=value, status="scored", answer=answer, **more)
    return Ballot("j", 0, Reply((result,)))


ITEM = replace(REQUEST, criteria=(ask_item("How many were there?", Answer("number")),))


@pytest.mark.parametrize(
    ("each", "decided"),
    [
        pytest.param([3.0, 100.0, 4.0], 4.0, id="number: the median"),
        pytest.param([3, 5], 3, id="two numbers: the lower"),
        pytest.param(
            [["S1", "S2", "S4"], ["S1", "S3", "S4"], ["S2", "S3", "S4"]],
            ["S1", "S3", "S4"],
            id="turn by turn",
        ),
        pytest.param(
            [["S1", "S2"], ["S1", "S2"], ["S3", "S3"]],
            ["S1", "S2"],
            id="the commonest of each turn",
        ),
        pytest.param(["CT", "MR", "MR"], "MR", id="a choice"),
        pytest.param(["CT", "MR"], "CT", id="a tie: the first"),
        pytest.param(
            [{"a": 1, "b": 2}, {"a": 2}, {"b": 2, "a": 1}],
            {"a": 1, "b": 2},
            id="json, whatever its order",
        ),
        pytest.param([True, 1, 1], 1, id="true is no number"),
    ],
)
def test_answers_without_a_value(each: list, decided: object) -> None:
    (result,) = combine(ITEM, [said(a) for a in each]).results
    assert (result.answer, result.value, result.status, len(result.votes)) == (
        decided,
        None,
        "scored",
        len(each),
    )
    assert type(result.answer) is type(decided)


def test_yes_and_no_are_counted_and_a_tie_is_no() -> None:
    for votes, expected in (([1, 1, 0], True), ([1, 0], False), ([0, 0, 1], False)):
        (result,) = combine(ITEM, [said(bool(v), float(v)) for v in votes]).results
        assert (result.answer, result.value) == (expected, float(expected))


def test_members_that_cannot_tell_are_no_votes() -> None:
    unsure = Ballot(
        "j",
        0,
        Reply((CriterionResult(id="x", value=None, status="unscored", reason="no_evidence"),)),
    )
    (result,) = combine(ITEM, [said(3.0), unsure]).results
    assert (result.answer, len(result.votes)) == (3.0, 2)
    (result,) = combine(ITEM, [said(3.0), unsure, unsure]).results
    assert (result.status, result.reason) == ("unscored", "no_evidence")


def panel_of(server, *behaviours: str) -> Panel:
    return Panel([ApiJudge(name, server.url, retry=Retry(1), timeout=5) for name in behaviours])


async def test_a_member_that_reads_no_codes_is_not_asked_for_them(judge_server) -> None:
    panel = Panel([RulesJudge(), *panel_of(judge_server, "codes:E3").judges])
    assert extra_questions(panel) == frozenset({"diagnosis", "stages", "ask", "brief"})
    card = await judge_run(RUN, panel, questions=QuestionSet(ask_all=True))
    assert judge_server.count == 4
    votes = {
        r.id: len(r.votes) for stage in ("S1", "S2", "S3") for r in card.stages[stage].criteria
    }
    assert (votes["S1a"], votes["S2b"]) == (2, 1)
    assert card.presumed == 0, "a reader read everything"
    assert [c.code for c in card.codes if c.by == "judge:panel"] == ["E3"]
    assert set(card.codes_read.values()) == {"present", "absent"}
    assert not any("rules" in w for w in card.warnings)


@pytest.mark.parametrize(
    ("members", "fired", "untold"),
    [
        pytest.param(("codes:E3", "codes:E3,E5", "good"), ["E3"], [], id="a majority"),
        pytest.param(("codes:E3", "good"), [], [], id="a tie is absent"),
        pytest.param(("codes:E3", "401"), ["E3"], [], id="one cannot work"),
        pytest.param(("codes:E3", "refusal", "refusal"), [], [], id="most refuse"),
        pytest.param(
            ("codes:E3", "cannot_tell", "cannot_tell"),
            [],
            ["E1", "E2", "E3", "E4", "E5"],
            id="most cannot tell",
        ),
    ],
)
async def test_codes_by_majority(judge_server, members: tuple, fired: list, untold: list) -> None:
    card = await judge_run(
        CLEAN, panel_of(judge_server, *members), questions=QuestionSet(criteria=False)
    )
    assert [c.code for c in card.codes] == fired
    assert all(c.quote.check == "verified" for c in card.codes)
    assert [code for code, state in card.codes_read.items() if state == "cannot_tell"] == untold
    if members[1:] == ("refusal", "refusal"):
        assert card.codes_read["E3"] == "not_read"


async def test_the_stages_of_turns_by_majority(judge_server) -> None:
    panel = panel_of(judge_server, "good", "good", "stages_bad")
    card = await judge_run(
        CLEAN, panel, questions=QuestionSet(criteria=False, diagnosis=False, stages="judge")
    )
    assert (set(card.turn_stages), card.stages_from) == ({"S1"}, "judge")


async def test_a_panel_keeps_whether_the_picture_was_looked_at(judge_server) -> None:
    run = load_run(RECORDED / "runs" / "crc-std-01")
    card = await judge_run(
        run, panel_of(judge_server, "good", "good"), questions=QuestionSet(diagnosis=False)
    )
    details = {r.id: r.detail for r in card.stages["S1"].criteria}
    assert details["S1f"] == "plan.png was not looked at: the model is not sent images"


async def test_samples_get_their_own_number(judge_server) -> None:
    judge = Samples(ApiJudge("good", judge_server.url, temperature=1.0, seed=5), 3)
    (result,) = (await judge.judge(REQUEST)).results
    assert [v.sample for v in result.votes] == [0, 1, 2]
    assert sorted(b["seed"] for b in judge_server.requests) == [5, 6, 7]


def test_identity_covers_members() -> None:
    a, b = ApiJudge("a"), ApiJudge("b", temperature=1.0)
    assert Panel([a, b]).parameters["1.b.temperature"] == 1.0
    assert Panel([a]).evidence_sha256(REQUEST) != a.evidence_sha256(REQUEST)
    assert Panel([RulesJudge()]).prompt_sha256 is None


def test_a_panel_of_nobody_is_refused() -> None:
    with pytest.raises(ConfigError):
        Panel([])
