"""What a scorecard says of error codes once a reader was asked over HTTP: fired, unproven, unread,
and beside the facts."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.error_codes.taxonomy import taxonomy
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import judge_run, make_scorecard
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.questions.items import QuestionSet, ask_item
from ambjudge.trajectories.reading.load import load_run

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
CLEAN = load_run(RUNS / "kidney-lite-01")
"""A run in which nothing is wrong."""
FAILED = load_run(RUNS / "crc-std-01")
"""Its files are malformed: E5 rests on files. That nobody saw it (E3) takes reading."""
ALL = tuple(code.code for code in taxonomy("paper").codes)
READER = "judge:reader"


async def card_of(server, behaviour: str, run=CLEAN, **questions: object) -> ScoreCard:
    server.script = [behaviour]
    judge = ApiJudge("reader", server.url, retry=Retry(attempts=1), timeout=5)
    card = await judge_run(run, judge, questions=QuestionSet(**questions) if questions else None)
    assert ScoreCard.model_validate_json(card.to_json()).codes_read == card.codes_read
    assert tuple(card.codes_read) == ALL
    return card


def by(card: ScoreCard, reader: bool) -> dict[str, tuple[int, ...]]:
    return {c.code: c.turns for c in card.codes if (c.by == READER) is reader}


async def test_codes_that_were_read_with_proof_fire(judge_server):
    card = await card_of(judge_server, "codes:E3,E5")
    assert by(card, reader=True) == {"E3": (1,), "E5": (1,)}
    assert card.codes_read == dict.fromkeys(ALL, "absent") | {"E3": "present", "E5": "present"}
    assert card.unproven == card.contradictions == ()
    for code in card.codes:
        assert (code.confidence, code.independence, code.facts, code.why) == (
            0.9,
            "from_judge",
            ("F1",),
            "As quoted.",
        )
        assert (code.quote.check, code.quote.turn) == ("verified", 1)
        assert code.stage == card.turn_stages[0]
        assert code.quote.quote in CLEAN.turns[0].text + "".join(
            a.code for a in CLEAN.turns[0].actions
        )


async def test_the_plans_commitments_are_listed_with_their_words(judge_server):
    (item,) = (await card_of(judge_server, "good")).plan
    assert (item.commitment, item.state, item.turns, item.quote.check) == (
        "a pilot",
        "kept",
        (1,),
        "verified",
    )
    (doubtful,) = (await card_of(judge_server, "false_quote")).plan
    assert doubtful.quote.check == "not_found"


async def test_a_reading_with_invented_words_is_unproven_and_does_not_fire(judge_server):
    card = await card_of(judge_server, "false_quote:E3,E4")
    assert card.codes == ()
    assert [(c.code, c.by, c.quote.check) for c in card.unproven] == [
        ("E3", READER, "not_found"),
        ("E4", READER, "not_found"),
    ]
    assert card.codes_read == dict.fromkeys(ALL, "absent") | {
        "E3": "cannot_tell",
        "E4": "cannot_tell",
    }
    assert any("not found" in warning for warning in card.warnings)


async def test_what_the_reader_cannot_tell_is_said_so(judge_server):
    card = await card_of(judge_server, "cannot_tell")
    assert card.codes_read == dict.fromkeys(ALL, "cannot_tell")
    assert card.codes == card.unproven == ()


UNREAD = {"E1": "not_read", "E2": "absent", "E3": "not_read", "E4": "absent", "E5": "absent"}


@pytest.mark.parametrize(
    "behaviour", ["malformed", "refusal", "length", "500", "wrong_schema", "duplicate"]
)
async def test_a_reader_that_fails_on_the_diagnosis_leaves_it_unread_and_the_grades_standing(
    judge_server, behaviour
):
    card = await card_of(judge_server, f"good;plan={behaviour}")
    assert card.codes_read == UNREAD
    assert card.codes == card.unproven == card.plan == card.contradictions == ()
    assert all(card.stages[stage].score == 1.0 for stage in ("S1", "S2", "S3"))


@pytest.mark.parametrize("behaviour", ["malformed", "refusal"])
async def test_facts_stand_where_the_reader_failed(judge_server, behaviour):
    card = await card_of(judge_server, behaviour, FAILED)
    alone = make_scorecard(FAILED)
    assert card.codes == alone.codes != ()
    assert card.codes_read == alone.codes_read
    assert card.codes_read["E5"] == "present"
    scored = {
        (result.id, result.by)
        for stage in ("S1", "S2", "S3")
        for result in card.stages[stage].criteria
        if result.status == "scored"
    }
    by_facts = {("S1a", "facts"), ("S1e", "facts"), ("S2d", "facts")}
    assert scored == by_facts, "no criterion that takes a reader"
    assert all(card.stages[stage].score is None for stage in ("S2", "S3"))


async def test_facts_stand_beside_a_reader_that_denies_them(judge_server):
    card = await card_of(judge_server, "good", FAILED)
    assert "E5" in by(card, reader=False)
    assert by(card, reader=True) == {}
    assert card.codes_read["E5"] == "present"
    denied = {c.criterion: c for c in card.contradictions if c.criterion in ALL}
    assert set(denied) == set(by(card, reader=False)), "only facts stand against a reader"
    assert all("rests on a fact" in c.fact and READER in c.fact for c in denied.values())
    assert denied["E5"].turns == by(card, reader=False)["E5"]


async def test_a_reader_that_agrees_stands_beside_the_facts(judge_server):
    card = await card_of(judge_server, "codes:E3,E5", FAILED)
    assert "E5" in by(card, reader=False)
    assert set(by(card, reader=True)) == {"E3", "E5"}
    assert [c for c in card.contradictions if c.criterion in ALL] == []
    assert [c.code for c in card.codes] == sorted(c.code for c in card.codes)


async def test_answer_codes_of_vqa_that_only_a_reader_saw_count_once(judge_server):
    run = load_run(RUNS / "vqa-std-02")
    name = taxonomy("answers").codes[-1].code
    before, after = (
        await card_of(judge_server, "good", run),
        await card_of(judge_server, f"codes:{name}", run),
    )
    assert name not in before.answer_codes
    assert after.answer_codes == before.answer_codes | {name: 1}
    assert (
        await card_of(judge_server, f"false_quote:{name}", run)
    ).answer_codes == before.answer_codes


async def test_nobody_is_asked_for_codes_that_are_not_wanted(judge_server):
    card = await card_of(judge_server, "codes:E3", diagnosis=False)
    assert judge_server.count == 3
    assert (card.codes_read, card.codes) == (UNREAD, ())


async def test_a_diagnosis_alone_is_one_call(judge_server):
    card = await card_of(judge_server, "codes:E3", criteria=False)
    assert judge_server.count == card.judge.calls == 1
    assert by(card, reader=True) == {"E3": (1,)}


async def test_stages_by_the_reader_and_where_the_rules_are_unsure(judge_server):
    rules = (await card_of(judge_server, "good")).turn_stages
    read = await card_of(judge_server, "good", stages="judge")
    assert (set(read.turn_stages), read.stages_from) == ({"S1"}, "judge")
    assert read.turn_stages != rules
    failed = await card_of(judge_server, "good;stages=stages_bad", stages="judge")
    assert (failed.turn_stages, failed.stages_from) == (rules, "rules")


async def test_an_ad_hoc_question_changes_nothing_on_the_card(judge_server):
    asked = await card_of(judge_server, "codes:E3", ask=ask_item("Was there a pilot?"))
    assert judge_server.count == 5
    plain = await card_of(judge_server, "codes:E3")
    assert (asked.codes, asked.stages) == (plain.codes, plain.stages)
