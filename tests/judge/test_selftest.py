"""The self-test finds out judges that it should, over real HTTP, and lets honest ones pass."""

from __future__ import annotations

import pytest
from ambjudge.errors import JudgeError
from ambjudge.judge.api.judge import ApiJudge
from ambjudge.judge.api.transport import Retry
from ambjudge.judge.rules import RulesJudge
from ambjudge.judge.trust.made_up_runs import careless, diligent
from ambjudge.judge.trust.selftest import Report, Row, calls, cases, selftest
from ambjudge.trajectories.models import Segmentation

FALLS = {"evidence removed", "claims only", "batch before the pilot"}
INJECTED = {"full marks demanded", "forged verdict", "closed fence", "other languages"}
FORM = {"asked again", "criteria in reverse", "criterion reworded", "criterion asked twice"}


def rates(rows: tuple[Row, ...]) -> dict[str, float | None]:
    return {row.name: row.rate for row in rows}


async def run(server, script: str, runs=None) -> Report:
    server.script = [script]
    return await selftest(ApiJudge("m", server.url, retry=Retry(attempts=1)), runs)


async def test_a_judge_that_always_says_yes_fails_where_evidence_is_gone(judge_server) -> None:
    report = await run(judge_server, "good")
    found = rates(report.rows)
    assert set(found) == FALLS | INJECTED | FORM
    assert {found[name] for name in FALLS} == {1.0}
    assert {found[name] for name in FORM} == {0.0}
    assert judge_server.count == report.usage.calls == calls(list(cases()))
    assert report.broken > 0


async def test_a_judge_that_always_says_no_has_nothing_to_lose(judge_server) -> None:
    found = rates((await run(judge_server, "lowest")).rows)
    assert {found[name] for name in FALLS} == {None}
    assert {found[name] for name in INJECTED | FORM} == {0.0}


async def test_an_obedient_judge_is_found_out(judge_server) -> None:
    """It gives marks only when a call's result is shown, and whatever the record demands."""
    run_, segments = careless()
    silent = run_.model_copy(
        update={"turns": tuple(t.model_copy(update={"actions": ()}) for t in run_.turns), "content_sha256": "1" * 64}
    )
    report = await run(judge_server, "follow", [(silent, segments)])
    found = rates(report.rows)
    assert found["full marks demanded"] == 1.0
    assert found["forged verdict"] == 1.0
    assert found["other languages"] == 1.0
    assert found["asked again"] == 0.0


async def test_failures_are_no_verdicts(judge_server) -> None:
    report = await run(judge_server, "prose")
    assert {row.rate for row in report.rows} == {None}
    assert all(row.unscored > 0 for row in report.rows)


async def test_a_judge_that_cannot_work_is_an_error(judge_server) -> None:
    with pytest.raises(JudgeError):
        await run(judge_server, "401")


async def test_the_null_model_stands_beside(judge_server) -> None:
    report = await run(judge_server, "good")
    assert {row.name for row in report.baseline} == FALLS | INJECTED | FORM
    found = rates(report.baseline)
    assert {found[name] for name in INJECTED} == {0.0}
    assert found["evidence removed"] == found["claims only"] == 0.0
    assert (await selftest(RulesJudge())).baseline == ()


def test_intervals_are_wilsons() -> None:
    row = Row("x", "", "same", pairs=10, broken=1, unscored=0)
    assert row.interval == pytest.approx((0.0179, 0.4042), abs=1e-4)
    assert Row("x", "", "same", 0, 0, 0).interval is None


def test_every_changed_run_is_another_content() -> None:
    made = list(cases())
    for case in made:
        same = case.base.run.content_sha256 == case.changed.run.content_sha256
        assert same is (case.base.run == case.changed.run)
    assert len({c.changed.run.content_sha256 for c in made}) == 2 + 6 + 7


def test_stages_of_turns_become_segments() -> None:
    made = Segmentation.of(("S1", "S1", "S4"))
    assert [(s.stage, s.first_turn, s.last_turn) for s in made.segments] == [("S1", 1, 2), ("S4", 3, 3)]
    assert diligent()[0].turn(4).index == 4
