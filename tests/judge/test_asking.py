"""An ad-hoc question over real HTTP: every form of answer, proof, failures, resuming, money,
panels, provider batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError
from ambjudge.judge.ad_hoc import Answered, RunAnswer, ask, ask_scope
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.limits import Budget
from ambjudge.judge.judges.panel import Panel, Samples
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.questions.items import Answer, ask_item
from ambjudge.judge.rejudge.staleness import plan_rejudge, planned_requests
from ambjudge.judge.store import Store

HERE = Path(__file__).parent
RECORDED = HERE.parent / "data" / "recorded" / "runs"
RUNS = ("crc-lite-01", "crc-lite-02", "kidney-lite-01")
QUICK = Retry(attempts=2, total_s=20, first_s=0.01)
QUESTION = "Did the agent look at an image of its output?"
SEEN = ask_item(QUESTION)


def judge_of(server, model: str = "m", **options) -> ApiJudge:
    return ApiJudge(model, server.url, **{"retry": QUICK, "api_key": "none", **options})


async def asked(
    store: Store, runs: list[Path], judge, item=SEEN, **options
) -> tuple[Answered, list[RunAnswer]]:
    done = await ask(store, runs, judge, item, **{"concurrency": 1, "signals": False, **options})
    return done, list(done.answers)


FORMS = [
    (Answer(), True),
    (Answer("choice", ("dice", "cross entropy")), "dice"),
    (Answer("number"), 3.0),
    (Answer("text"), "Because."),
    (Answer("json", schema={"type": "object", "properties": {"a": {"type": "string"}}}), {}),
]


async def test_every_form_of_answer_with_its_proof(
    store: Store, runs: list[Path], judge_server
) -> None:
    judge_server.script = ["good"]
    for number, (form, expected) in enumerate(FORMS, 1):
        done, answers = await asked(store, runs, judge_of(judge_server), ask_item(QUESTION, form))
        assert [one.answer for one in answers] == [expected] * 3
        assert {one.status for one in answers} == {"scored"}
        assert [one.run.id for one in answers] == list(RUNS)
        assert all(
            one.turns == (1,) and [q.check for q in one.quotes] == ["verified"] for one in answers
        )
        assert done.execution.usage.calls == 3
        assert judge_server.count == 3 * number, "another form is another key"
    line = json.loads(answers[0].to_json())
    assert (line["schema"], line["question"], line["kind"]) == (
        "ambjudge.answer/1",
        QUESTION,
        "json",
    )
    assert line["run"]["sha256"]
    assert line["judge"]["name"] == "m"


async def test_asking_again_costs_nothing_and_what_changed_is_asked_alone(
    store, runs, judge_server
) -> None:
    judge_server.script = ["good"]
    judge = judge_of(judge_server)
    _, first = await asked(store, runs, judge)
    again, second = await asked(store, runs, judge)
    assert (again.execution, second, judge_server.count) == (None, first, 3)
    _, other = await asked(store, runs, judge, ask_item(QUESTION + " Often?"))
    assert judge_server.count == 6
    assert other[0].question == QUESTION + " Often?"
    data = json.loads(runs[1].read_text("utf-8"))
    (data["messages"] if isinstance(data, dict) else data).append(
        {"role": "assistant", "content": "One more word."}
    )
    runs[1].write_text(json.dumps(data), "utf-8")
    changed, third = await asked(store, runs, judge)
    assert [need.path for need in changed.plan.needs] == [runs[1].absolute()]
    assert [a.run.sha256 == b.run.sha256 for a, b in zip(first, third, strict=True)] == [
        True,
        False,
        True,
    ]


async def test_quotes_are_searched_in_the_run(store: Store, runs: list[Path], judge_server) -> None:
    judge_server.script = ["good", "moved_quote", "false_quote"]
    _, answers = await asked(store, runs, judge_of(judge_server))
    assert [(one.turns, one.quotes[0].turn, one.quotes[0].check) for one in answers] == [
        ((1,), 1, "verified"),
        ((1,), 2, "moved"),
        ((), 1, "not_found"),
    ]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("malformed", "unparsable"),
        ("prose", "unparsable"),
        ("huge", "unparsable"),
        ("length", "truncated"),
        ("refusal", "refused"),
        ("content_filter", "refused"),
        ("500", "judge_error"),
        ("garbage", "judge_error"),
        ("cannot_tell", "no_evidence"),
    ],
)
async def test_what_failed_is_unscored_and_never_no(
    store, runs, judge_server, behaviour: str, reason: str
) -> None:
    judge_server.script = ["good", behaviour]
    _, answers = await asked(store, runs, judge_of(judge_server))
    assert [(one.status, one.reason, one.answer) for one in answers] == [
        ("scored", None, True),
        *[("unscored", reason, None)] * 2,
    ]
    assert [one.cannot_tell for one in answers] == [False, *[behaviour == "cannot_tell"] * 2]


async def test_a_failed_call_is_made_again_by_asking_again(store, runs, judge_server) -> None:
    judge_server.script = ["good", "500", "500", "good"]
    judge = judge_of(judge_server)
    _, answers = await asked(store, runs, judge)
    assert [one.reason for one in answers] == [None, "judge_error", None]
    done, answers = await asked(store, runs, judge)
    assert done.plan.calls == 1
    assert [one.answer for one in answers] == [True] * 3


async def test_a_cost_limit_leaves_the_rest_unscored(store, runs, judge_server) -> None:
    judge_server.script = ["good"]
    judge = judge_of(judge_server, price=Price(1.0, 1.0, source="test", date=""))
    one = judge.estimate(
        next(planned_requests(plan_rejudge(store, runs, judge, ask_scope(judge, SEEN)), judge))
    ).high.cost_usd
    _, answers = await asked(store, runs, judge, budget=Budget(one * 1.01))
    assert [a.reason for a in answers].count("budget") >= 1
    assert judge_server.count < 3
    before = judge_server.count
    _, answers = await asked(store, runs, judge)
    assert (judge_server.count, {a.answer for a in answers}) == (3, {True})
    assert before >= 1
    with pytest.raises(ConfigError, match="price of unpriced"):
        await asked(store, runs, judge_of(judge_server, "unpriced"), budget=Budget(1.0))


async def test_a_panel_of_two_keeps_both_votes(store, runs, judge_server) -> None:
    panel = Panel([judge_of(judge_server, "good"), judge_of(judge_server, "lowest")])
    _, answers = await asked(store, runs[:1], panel)
    assert [(v.judge, v.value) for v in answers[0].votes] == [("good", 1.0), ("lowest", 0.0)]
    assert (answers[0].judge.name, answers[0].judge.members) == ("panel", ("good", "lowest"))
    half = Panel([judge_of(judge_server, "good"), judge_of(judge_server, "refusal")])
    _, answers = await asked(store, runs[:1], half)
    assert (answers[0].answer, [v.reason for v in answers[0].votes]) == (True, [None, "refused"])
    mixed = Panel([judge_of(judge_server, "good"), RulesJudge()])
    _, answers = await asked(store, runs[:1], mixed, ask_item("Anything else?"))
    assert answers[0].answer is True
    assert answers[0].votes == () or len(answers[0].votes) == 1, (
        "a judge that reads nothing has no vote"
    )


async def test_samples_of_a_choice(store, runs, judge_server) -> None:
    judge_server.script = ["good", "cannot_tell", "good"]
    judge = Samples(judge_of(judge_server, temperature=0.7), 3)
    _, answers = await asked(
        store, runs[:1], judge, ask_item("Which?", Answer("choice", ("a", "b")))
    )
    assert (answers[0].answer, len(answers[0].votes), judge_server.count) == ("a", 3, 3)


async def test_track_and_tier_that_the_user_names(store, tmp_path: Path, judge_server) -> None:
    judge_server.script = ["good"]
    path = tmp_path / "bare" / "conversation.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps([{"role": "assistant", "content": "I look at the data before anything else."}]),
        "utf-8",
    )
    judge = judge_of(judge_server)
    scope = ask_scope(judge, SEEN, track="segmentation", tier="lite")
    done = await ask(store, [path], judge, scope, signals=False)
    assert [(a.run.track, a.run.tier, a.answer) for a in done.answers] == [
        ("segmentation", "lite", True)
    ]
