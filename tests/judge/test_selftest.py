"""The self-test finds out judges that it should, over real HTTP, and lets honest ones pass."""

from __future__ import annotations

import json

import pytest
from ambjudge.errors import JudgeError
from ambjudge.judge.base import Reply, Request, is_criteria
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.questions.items import PLAN_ITEM
from ambjudge.judge.questions.replies import parse_reply
from ambjudge.judge.trust.example_runs import careless_run
from ambjudge.judge.trust.selftest import (
    FORGED_DIAGNOSIS,
    FORGED_VERDICTS,
    Report,
    Row,
    count_calls,
    make_cases,
    selftest,
)

FALLS = {"evidence removed", "claims only", "batch before the pilot"}
INJECTED = {"full marks demanded", "forged verdict", "closed fence", "other languages"}
FORM = {"asked again", "criteria in reverse", "criterion reworded", "criterion asked twice"}


def rates(rows: tuple[Row, ...]) -> dict[str, float | None]:
    return {row.name: row.rate for row in rows}


async def run(server, script: str, runs=None) -> Report:
    server.script = [script]
    return await selftest(ApiJudge("m", server.url, retry=Retry(attempts=1)), runs)


async def test_a_judge_that_always_says_yes_fails_where_evidence_is_gone(
    judge_server,
) -> None:
    report = await run(judge_server, "good")
    rates_by_change = rates(report.rows)
    assert set(rates_by_change) == FALLS | INJECTED | FORM
    assert {rates_by_change[name] for name in FALLS} == {1.0}
    assert {rates_by_change[name] for name in FORM} == {0.0}
    assert judge_server.count == report.usage.calls == count_calls(list(make_cases()))
    assert report.broken > 0
    rates_by_change = rates(report.baseline)
    assert set(rates_by_change) == FALLS | INJECTED | FORM
    assert {rates_by_change[name] for name in INJECTED} == {0.0}
    assert rates_by_change["evidence removed"] == rates_by_change["claims only"] == 0.0
    assert (await selftest(RulesJudge())).baseline == ()


async def test_a_judge_that_always_says_no_has_nothing_to_lose(judge_server) -> None:
    rates_by_change = rates((await run(judge_server, "lowest")).rows)
    assert {rates_by_change[name] for name in FALLS} == {None}
    assert {rates_by_change[name] for name in INJECTED | FORM} == {0.0}


async def test_an_obedient_judge_is_found_out(judge_server) -> None:
    """It gives marks only when a call's result is shown, and whatever the record demands."""
    run_, segments = careless_run()
    silent = run_.model_copy(
        update={
            "turns": tuple(t.model_copy(update={"actions": ()}) for t in run_.turns),
            "content_sha256": "1" * 64,
        }
    )
    report = await run(judge_server, "follow", [(silent, segments)])
    rates_by_change = rates(report.rows)
    assert rates_by_change["full marks demanded"] == 1.0
    assert rates_by_change["forged verdict"] == 1.0
    assert rates_by_change["other languages"] == 1.0
    assert rates_by_change["asked again"] == 0.0


async def test_failures_are_no_verdicts(judge_server) -> None:
    report = await run(judge_server, "prose")
    assert {row.rate for row in report.rows} == {None}
    assert all(row.unscored > 0 for row in report.rows)


async def test_a_judge_that_cannot_work_is_an_error(judge_server) -> None:
    with pytest.raises(JudgeError):
        await run(judge_server, "401")


def test_every_changed_run_is_another_content() -> None:
    all_cases = list(make_cases())
    for case in all_cases:
        same = case.base.run.content_sha256 == case.changed.run.content_sha256
        assert same is (case.base.run == case.changed.run)
    assert len({c.changed.run.content_sha256 for c in all_cases}) == 2 + 6 + 7


# Error codes: what the record says of itself must not make one absent.


class Believer(RulesJudge):
    """Sees E3 unless the record says that there is none; asked in another order, or again, it sees
    something else."""

    name = "believer"
    questions = frozenset({"diagnosis"})
    fickle = False

    async def judge(self, request: Request) -> Reply:
        if is_criteria(request.question):
            return await super().judge(request)
        record = request.run.model_dump_json()
        fooled = "No error codes apply" in record or "nothing of the kind" in record
        sees = not fooled and not (
            self.fickle and (request.sample or request.criteria[0].id == PLAN_ITEM)
        )
        return Reply(
            tuple(
                CriterionResult(
                    id=c.id,
                    value=None if c.id == PLAN_ITEM else float(sees and c.id == "E3"),
                    status="scored",
                )
                for c in request.criteria
            )
        )


def codes(rows: tuple[Row, ...]) -> dict[str, tuple[int, int]]:
    return {row.name: (row.codes_broken, row.codes) for row in rows}


async def test_a_judge_that_believes_the_record_is_found_out() -> None:
    report = await selftest(Believer(), [careless_run()])
    rates_by_change = codes(report.rows)
    assert {name: rates_by_change[name] for name in INJECTED} == {
        "full marks demanded": (1, 1),
        "forged verdict": (1, 1),
        "closed fence": (0, 1),
        "other languages": (0, 1),
    }
    assert rates_by_change["asked again"] == rates_by_change["criteria in reverse"] == (0, 5)
    assert rates_by_change["evidence removed"] == rates_by_change["criterion reworded"] == (0, 0), (
        "says nothing about codes"
    )
    assert all(row.codes <= row.pairs for row in report.rows)
    assert {row.codes for row in report.baseline} == {0}, "the null model reads no codes"


async def test_a_judge_that_changes_its_mind_is_found_out() -> None:
    judge = Believer()
    judge.fickle = True
    rates_by_change = codes((await selftest(judge, [careless_run()])).rows)
    assert rates_by_change["asked again"] == rates_by_change["criteria in reverse"] == (1, 5)


async def test_an_honest_reader_passes(judge_server) -> None:
    judge_server.script = ["codes:E1,E3"]
    rates_by_change = codes(
        (
            await selftest(
                ApiJudge("m", judge_server.url, retry=Retry(attempts=1)), [careless_run()]
            )
        ).rows
    )
    assert {rates_by_change[name] for name in INJECTED} == {(0, 2)}
    assert rates_by_change["asked again"] == rates_by_change["criteria in reverse"] == (0, 5)


@pytest.mark.parametrize(
    ("question", "text"), [("S1", FORGED_VERDICTS), ("diagnosis", FORGED_DIAGNOSIS)]
)
def test_what_is_forged_would_pass_for_a_reply(question, text) -> None:
    """Else judges would be safe for the wrong reason."""
    items = next(
        c.base.criteria for c in make_cases([careless_run()]) if c.base.question == question
    )
    entries = {item.id: text[item.id] for item in items}
    parsed = parse_reply(json.dumps(entries), question, items, 3)
    assert (set(parsed.entries), parsed.problems) == ({item.id for item in items}, {})
