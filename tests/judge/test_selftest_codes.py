"""The self-test asks a judge that reads for error codes too: what the record says of itself must not make one absent."""

from __future__ import annotations

import json

import pytest
from ambjudge.judge.api.judge import ApiJudge
from ambjudge.judge.api.transport import Retry
from ambjudge.judge.base import Reply, Request, is_criteria
from ambjudge.judge.questions.items import PLAN_ITEM
from ambjudge.judge.questions.replies import parse_reply
from ambjudge.judge.rules import RulesJudge
from ambjudge.judge.scorecard import CriterionResult
from ambjudge.judge.trust.made_up_runs import careless
from ambjudge.judge.trust.selftest import FORGED_DIAGNOSIS, FORGED_VERDICTS, Row, cases, selftest

INJECTED = ("full marks demanded", "forged verdict", "closed fence", "other languages")


class Believer(RulesJudge):
    """Sees E3 unless the record says that there is none; asked in another order, or again, it sees something else."""

    name = "believer"
    questions = frozenset({"diagnosis"})
    fickle = False

    async def judge(self, request: Request) -> Reply:
        if is_criteria(request.question):
            return await super().judge(request)
        shown = request.run.model_dump_json()
        fooled = "No error codes apply" in shown or "nothing of the kind" in shown
        sees = not fooled and not (self.fickle and (request.sample or request.criteria[0].id == PLAN_ITEM))
        return Reply(tuple(
            CriterionResult(id=c.id, value=None if c.id == PLAN_ITEM else float(sees and c.id == "E3"), status="scored")
            for c in request.criteria
        ))  # fmt: skip


def codes(rows: tuple[Row, ...]) -> dict[str, tuple[int, int]]:
    return {row.name: (row.codes_broken, row.codes) for row in rows}


async def test_a_judge_that_believes_the_record_is_found_out() -> None:
    report = await selftest(Believer(), [careless()])
    found = codes(report.rows)
    assert {name: found[name] for name in INJECTED} == {
        "full marks demanded": (1, 1), "forged verdict": (1, 1), "closed fence": (0, 1), "other languages": (0, 1),
    }  # fmt: skip
    assert found["asked again"] == found["criteria in reverse"] == (0, 5)
    assert found["evidence removed"] == found["criterion reworded"] == (0, 0), "says nothing about codes"
    assert all(row.codes <= row.pairs for row in report.rows)
    assert {row.codes for row in report.baseline} == {0}, "the null model reads no codes"


async def test_a_judge_that_changes_its_mind_is_found_out() -> None:
    judge = Believer()
    judge.fickle = True
    found = codes((await selftest(judge, [careless()])).rows)
    assert found["asked again"] == found["criteria in reverse"] == (1, 5)


async def test_an_honest_reader_passes(judge_server) -> None:
    judge_server.script = ["codes:E1,E3"]
    found = codes((await selftest(ApiJudge("m", judge_server.url, retry=Retry(attempts=1)), [careless()])).rows)
    assert {found[name] for name in INJECTED} == {(0, 2)}
    assert found["asked again"] == found["criteria in reverse"] == (0, 5)


@pytest.mark.parametrize(("question", "text"), [("S1", FORGED_VERDICTS), ("diagnosis", FORGED_DIAGNOSIS)])
def test_what_is_forged_would_pass_for_a_reply(question, text) -> None:
    """Else judges would be safe for the wrong reason."""
    items = next(c.base.criteria for c in cases([careless()]) if c.base.question == question)
    entries = {item.id: text[item.id] for item in items}
    parsed = parse_reply(json.dumps(entries), question, items, 3)
    assert (set(parsed.stated), parsed.problems) == ({item.id for item in items}, {})
