"""Provider batches over real HTTP: the story, every odd answer, and kills at the moments that
matter."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ambjudge.cli import run
from ambjudge.errors import ConfigError, JudgeError
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.panel import Samples
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.provider_batch import BatchOptions, abandon, collect, status, submit
from ambjudge.judge.provider_batch.ledger import Ledger, OpenBatch, age_s
from ambjudge.judge.questions.items import Answer, QuestionSet, ask_item, load_items
from ambjudge.judge.questions.verdict_keys import canonical_json, key_maker
from ambjudge.judge.rejudge.staleness import plan_rejudge, planned_requests
from ambjudge.judge.scope import Scope
from ambjudge.judge.session import ScoreOptions, run_session
from ambjudge.judge.store import Store, open_store
from ambjudge.rubrics.load import load_rubric
from batch_server import BatchServer
from stored import spent

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUNS = ("crc-lite-01", "crc-lite-02")
QUICK = Retry(attempts=3, total_s=20, first_s=0.01)
OPTIONS = BatchOptions(settle_s=0.05, retry=QUICK)
KEY = "sk-loopback-123456"


@pytest.fixture
def server(loopback) -> Iterator:
    running = BatchServer(loopback).start()
    yield running
    running.stop()


def judge_of(server, **options) -> ApiJudge:
    return ApiJudge("small-judge", server.url, **{"retry": QUICK, "api_key": KEY, **options})


def stale(store: Store, runs: list[Path], judge: ApiJudge):
    return plan_rejudge(store, runs, judge, Scope(), batch=True)


async def send(store: Store, runs: list[Path], judge: ApiJudge, **options):
    return await submit(
        store,
        judge,
        planned_requests(stale(store, runs, judge), judge),
        replace(OPTIONS, **options),
    )


def verdicts(store: Store) -> dict[str, tuple]:
    return {
        v.key.sha256: (v.result.status, v.result.reason, v.result.value)
        for v in store.iter_verdicts()
    }


async def test_the_story(server, store: Store, runs: list[Path], judge_server) -> None:
    """Submit, wait, collect; nothing is asked twice, and the verdicts are those of live calls under
    the same keys."""
    server.stages, server.reverse = ["validating", "in_progress", "finalizing"], True
    judge = judge_of(server)
    before = stale(store, runs, judge)
    sent = await send(store, runs, judge)
    assert (sent.sent, len(sent.batches)) == (before.calls, 1)
    assert (await send(store, runs, judge)).waiting == before.calls, (
        "what waits in a batch is not sent again"
    )
    (batch,) = status(store)
    assert batch.step == "created"
    assert server.batches[batch.provider_id]["metadata"] == {"ambjudge_batch": batch.id}

    early = await collect(store, judge, options=OPTIONS)
    assert [s.provider.status for s in early.open] == ["validating"]
    done = await collect(store, judge, wait_s=20, poll_s=0.01, options=OPTIONS)
    assert [state.provider.status for state in done.closed] == ["completed"]
    assert (done.scored, done.open, done.stale, done.strays) == (before.stale, [], 0, 0)
    assert done.usage.calls == before.calls == spent(store).calls
    assert status(store) == ()
    assert stale(store, runs, judge).calls == 0
    assert server.count["POST /batches"] == 1

    judge_server.script = ["good"]
    live = ApiJudge("small-judge", judge_server.url, retry=QUICK)
    for request in planned_requests(before, judge):
        reply = await live.judge(request)
        stored = {
            v.key.criterion_id: v.result
            for v in store.iter_verdicts()
            if v.key.evidence_sha256 == live.evidence_sha256(request)
        }
        assert reply.results == tuple(stored[c.id] for c in request.criteria)
    assert wire(judge_server.requests) == wire(server.bodies), "the same on the wire"


def wire(bodies: list[dict]) -> list[str]:
    """What was sent but for the limit of the reply: in a batch a cut one has no second try."""
    return sorted(json.dumps({**body, "max_tokens": None}, sort_keys=True) for body in bodies)


def everything_stored(store: Store) -> str:
    return "".join(json.dumps(body) for _, _, body in store.events()) + Path(
        store.location
    ).read_bytes().decode("latin-1")


async def test_the_key_is_sent_but_never_kept_or_shown(
    server, store: Store, runs: list[Path], caplog
) -> None:
    caplog.set_level("DEBUG")
    judge = judge_of(server)
    server.at["POST /batches"] = ["500"]
    server.lines = ["in_error_file", "good"]
    await send(store, runs, judge)
    done = await collect(store, judge, options=OPTIONS)
    assert done.unscored["judge_error"]
    assert all(
        h.get("Authorization", h.get("authorization")) == f"Bearer {KEY}" for h in server.headers
    )
    for text in (everything_stored(store), caplog.text, str(done.warnings)):
        assert KEY not in text
        assert "sk-secret" not in text


FAILED, GARBLED = ("unscored", "judge_error"), ("unscored", "unparsable")


@pytest.mark.parametrize(
    ("behaviour", "expected", "strays"),
    [
        pytest.param("good", ("scored", None), 0, id="good"),
        pytest.param("twice", ("scored", None), 0, id="the same line twice"),
        pytest.param("missing", FAILED, 0, id="no line"),
        pytest.param("in_error_file", FAILED, 0, id="in the error file"),
        pytest.param("both_files", FAILED, 0, id="in both files"),
        pytest.param("expired", FAILED, 0, id="request expired"),
        pytest.param("status:500", FAILED, 0, id="500 with a good body"),
        pytest.param("text_status", FAILED, 0, id="status as text"),
        pytest.param("no_body", FAILED, 0, id="no body"),
        pytest.param("cut", FAILED, 1, id="cut line"),
        pytest.param("garbage", FAILED, 3, id="no JSON"),
        pytest.param("array", FAILED, 1, id="a list"),
        pytest.param("huge", FAILED, 1, id="huge line"),
        pytest.param("no_id", FAILED, 1, id="no id"),
        pytest.param("stranger", FAILED, 1, id="somebody else's id"),
        pytest.param("twice_differs", FAILED, 0, id="two different answers"),
        pytest.param(
            "content_filter_error", ("unscored", "refused"), 0, id="content filter as error"
        ),
        pytest.param("malformed", GARBLED, 0, id="malformed reply"),
        pytest.param("refusal", ("unscored", "refused"), 0, id="refusal"),
    ],
)
async def test_one_odd_line_spoils_only_itself(
    server, store: Store, runs: list[Path], behaviour: str, expected: tuple, strays: int
) -> None:
    judge = judge_of(server)
    server.lines = [behaviour, "good"]
    await send(store, runs[:1], judge)
    failed_request, *other_requests = requests = all_requests(store)
    done = await collect(store, judge, options=OPTIONS)
    stored_verdicts = verdicts(store)
    attempts = store.attempts(key for request in requests for key in request.keys)
    for request in other_requests:
        assert {stored_verdicts[key][0] for key in request.keys} == {"scored"}
    for key in failed_request.keys:
        stated = stored_verdicts.get(key, ("unscored", attempts.get(key, [("none", "")])[0][0]))[:2]
        assert stated == expected
    assert done.strays == strays
    again = stale(store, runs[:1], judge).stale
    final = expected[0] == "scored" or expected[1] == "refused"
    assert again == (0 if final else len(failed_request.keys)), (
        "a failure is asked again, a verdict is not"
    )


def all_requests(store: Store):
    ledger = Ledger(store)
    names = dict.fromkeys(body["batch"] for _, _, body in store.events("provider_batch"))
    return [r for name in names for r in ledger.requests(name)]


@pytest.mark.parametrize("end", ["failed", "expired", "cancelled"])
async def test_a_batch_that_ends_early_keeps_what_was_answered_and_frees_the_rest(
    server, store: Store, runs: list[Path], end: str
) -> None:
    judge = judge_of(server)
    server.end, server.lines = end, ["good", "missing"]
    sent = await send(store, runs, judge)
    done = await collect(store, judge, options=OPTIONS)
    answered = 0 if end == "failed" else 1
    assert len({v.call_id for v in store.iter_verdicts()}) == answered
    assert status(store) == ()
    remaining = stale(store, runs, judge)
    assert remaining.calls == sent.sent - answered
    assert {
        r for need in remaining.needs for reasons in need.reasons.values() for r in reasons
    } == {"failed"}
    if end == "failed":
        assert "no such model" in done.warnings[0]
    server.end, server.lines = "completed", ["good"]
    assert (await send(store, runs, judge)).sent == remaining.calls
    await collect(store, judge, options=OPTIONS)
    assert stale(store, runs, judge).calls == 0


async def test_a_batch_that_the_provider_does_not_know_stays_open_and_is_said(
    server, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(server)
    await send(store, runs[:1], judge)
    server.batches.clear()
    done = await collect(store, judge, options=OPTIONS)
    assert len(done.open) == len(status(store)) == 1
    assert "does not know batch_0" in done.warnings[0]
    assert "--abandon" in done.warnings[0]


async def test_split_by_lines_and_bytes(server, store: Store, runs: list[Path]) -> None:
    judge = judge_of(server)
    sent = await send(store, runs, judge, max_lines=2)
    assert [b.lines for b in sent.batches] == [2] * (sent.sent // 2) + [1] * (sent.sent % 2)
    await collect(store, judge, options=OPTIONS)
    other = judge_of(server, temperature=0.5)
    by_size = await send(store, runs, other, max_bytes=max(map(len, server.uploads.values())))
    assert len(by_size.batches) >= len(sent.batches)
    assert all(
        len(server.uploads[b["input_file_id"]]) <= max(map(len, server.uploads.values()))
        for b in server.batches.values()
    )
    with pytest.raises(ConfigError, match="larger than a batch"):
        await send(store, runs, judge_of(server, temperature=0.7), max_bytes=100)


async def test_samples_are_requests_of_their_own(server, store: Store, runs: list[Path]) -> None:
    voting = judge_of(server, temperature=0.7)
    judge = Samples(voting, 3)
    server.lines = ["good", "lowest", "good"]
    plan = stale(store, runs[:1], judge)
    sent = await submit(store, voting, planned_requests(plan, judge, voting), OPTIONS)
    assert sent.sent == plan.calls == 3 * stale(store, runs[:1], voting).calls
    assert Counter(b.get("seed") for b in server.bodies).keys() == {None, 1, 2}
    await collect(store, voting, options=OPTIONS)
    assert stale(store, runs[:1], judge).calls == 0
    assert {verdict.key.sample for verdict in store.iter_verdicts()} == {0, 1, 2}


async def test_a_batch_of_an_older_version_with_several_samples_a_request_becomes_votes(
    server, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(server, temperature=0.7)
    await send(store, runs[:1], judge)
    (sent,), requests, ledger = status(store), all_requests(store), Ledger(store)
    rubrics = ledger.rubrics(sent.id)
    abandon(store, sent.id)
    parameters = canonical_json({**json.loads(sent.judge.parameters), "samples": 3})
    old_judge = sent.judge.model_copy(update={"parameters": parameters})
    old_requests = []
    for each in requests:
        rubric = rubrics[each.rubric_sha256]
        items = load_items(each.items) if each.items else rubric.criteria(each.question)
        makers = [key_maker(old_judge, item) for item in items if item.id in each.criteria]
        keys = tuple(maker.sha256(each.evidence_sha256) for maker in makers)
        old_requests.append(each.model_copy(update={"lines": 3, "keys": keys}))
    (content,) = server.uploads.values()
    lines = b"".join(content.replace(b'-0", "method', b'-%d", "method' % n) for n in range(3))
    file_id = server.upload(lines)["id"]
    batch = sent.model_copy(update={"id": "b" * 32, "judge": old_judge})
    ledger.plan(batch, old_requests, rubrics)
    created = server.create(
        {**next(iter(server.batches.values())), "input_file_id": file_id, "metadata": {}}
    )
    ledger.note(batch.id, "created", provider_id=created["id"])
    done = await collect(store, judge, options=OPTIONS)
    assert (done.stale, done.strays) == (0, 0)
    assert {verdict.key.sample for verdict in store.iter_verdicts()} == {0, 1, 2}
    assert stale(store, runs[:1], Samples(judge, 3)).calls == 0


async def test_a_cost_limit_holds_over_open_batches(server, store: Store, runs: list[Path]) -> None:
    judge = ApiJudge("openai/priced", server.url, retry=QUICK, api_key=KEY)
    with pytest.raises(ConfigError, match="price"):
        await send(store, runs, judge, max_cost=1.0)
    assert server.count == {}
    judge._price = Price(1.0, 2.0, "test", "2026-01-01")
    first = next(planned_requests(stale(store, runs, judge), judge))
    most = 1.5 * judge.usage_without_retries(first).cost_usd
    sent = await send(store, runs, judge, max_cost=most)
    assert 0 < sent.sent < stale(store, runs, judge).calls
    assert sent.reserved_usd == status(store)[0].reserved_usd <= most
    assert sent.sent + sent.over_budget == stale(store, runs, judge).calls
    again = await send(store, runs, judge, max_cost=most)
    assert again.sent == 0
    done = await collect(store, judge, options=OPTIONS)
    assert done.usage.cost_usd <= sent.reserved_usd
    answered = done.usage
    assert answered.cost_usd == pytest.approx(
        judge.price.cost(answered.input_tokens, answered.output_tokens) / 2
    )
    assert set(server.uploads) - set(server.files) == {
        batch["input_file_id"] for batch in server.batches.values()
    }, "the records of runs are deleted at the provider"


@pytest.mark.parametrize(
    ("events", "creates"),
    [
        pytest.param(["drop"], 1, id="created, answer lost"),
        pytest.param(["lose"], 2, id="connection lost, not created"),
        pytest.param(["500", "lose"], 3, id="server error, then lost"),
        pytest.param(["429"], 2, id="rate limit"),
    ],
)
async def test_creating_is_never_doubled(
    server, store: Store, runs: list[Path], events: list[str], creates: int
) -> None:
    server.at["POST /batches"] = list(events)
    judge = judge_of(server)
    sent = await send(store, runs, judge)
    assert len(server.batches) == 1
    assert server.count["POST /batches"] == creates
    assert status(store)[0].provider_id == sent.batches[0].provider_id == "batch_0"


@pytest.mark.parametrize("keeps_metadata", [True, False], ids=["by mark", "by file"])
async def test_an_orphan_is_adopted_even_when_the_list_lags(
    server, store: Store, runs: list[Path], keeps_metadata: bool
) -> None:
    """The answer to the creation and the search after it are both lost: the next call finds the
    batch."""
    server.keeps_metadata = keeps_metadata
    server.at = {"POST /batches": ["drop"], "GET /batches": ["500", "500", "500"]}
    judge = judge_of(server)
    with pytest.raises(JudgeError, match="in doubt"):
        await send(store, runs, judge)
    assert status(store)[0].step == "creating"
    for _ in range(5):  # newer batches of others stand before it in the list
        server.create(
            {
                "endpoint": "/v1/chat/completions",
                "input_file_id": "other",
                "completion_window": "24h",
            }
        )
    server.list_lag = 1
    todo = list(planned_requests(stale(store, runs, judge), judge))
    settle = replace(OPTIONS, settle_s=age_s(status(store)[0].noted_at) + 5)
    sent = await submit(store, judge, todo, settle)
    assert (sent.adopted, sent.sent) == (1, 0)
    assert len([b for b in server.batches.values() if b["input_file_id"] != "other"]) == 1
    assert (await collect(store, judge, options=OPTIONS)).scored > 0


async def test_without_a_list_a_doubtful_batch_waits_for_the_user(
    server, store: Store, runs: list[Path]
) -> None:
    server.has_list = False
    server.at["POST /batches"] = ["lose"]
    judge = judge_of(server)
    with pytest.raises(JudgeError, match="in doubt"):
        await send(store, runs, judge)
    again = await send(store, runs, judge)
    assert again.sent == 0
    assert "ambjudge rejudge --abandon" in again.warnings[0]
    given_up = ("rejudge", str(runs[0]), "--store", store.address, "--abandon")
    assert run([*given_up, "nonsense"]) == 2
    assert run([*given_up, status(store)[0].id]) == 0
    assert (await send(store, runs, judge)).sent > 0
    assert len(server.batches) == 1


@pytest.mark.parametrize(
    ("moment", "event", "uploads", "adopted"),
    [
        pytest.param("POST /files", "", 2, 0, id="uploaded, not noted"),
        pytest.param("POST /batches", "lose", 2, 0, id="uploaded, not created"),
        pytest.param("POST /batches", "drop", 1, 1, id="created, not noted"),
    ],
)
def test_kill_9_and_resume_in_a_new_process(
    server, store: Store, runs: list[Path], moment: str, event: str, uploads: int, adopted: int
) -> None:
    """The server kills the client at the very moment, before it answers."""
    server.at[moment] = [event]
    begin, start = os.pipe()
    gone = threading.Event()
    child = os.fork()
    if child == 0:
        try:
            os.read(begin, 1)
            with open_store(store.location) as own_store:
                asyncio.run(send(own_store, runs, judge_of(server)))
        finally:
            os._exit(1)
    server.after[moment] = lambda: (os.kill(child, signal.SIGKILL), gone.wait())
    os.write(start, b"x")
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    gone.set()
    asyncio.run(_resume(server, store, runs, event, uploads, adopted))


async def _resume(
    server, store: Store, runs: list[Path], event: str, uploads: int, adopted: int
) -> None:
    server.after.clear()
    judge = judge_of(server)
    calls = stale(store, runs, judge).calls
    sent = await send(store, runs, judge)
    assert (server.count["POST /files"], sent.adopted) == (uploads, adopted)
    assert sent.sent == (0 if adopted else calls)
    assert len(server.bodies) == calls, "every request is paid once"
    if event == "lose":
        assert len(server.files) == 1, "the first file, of no use, was deleted"
    done = await collect(store, judge, options=OPTIONS)
    assert done.scored == len(verdicts(store)) > 0
    assert stale(store, runs, judge).calls == 0


async def test_collecting_twice_keeps_each_answer_once(
    server, store: Store, runs: list[Path]
) -> None:
    """As after a crash between the last answer kept and the batch's closing: the batch is open, its
    answers are there."""
    judge = judge_of(server)
    server.lines = ["good", "missing", "good"]
    await send(store, runs, judge)
    batch, requests, ledger = status(store)[0], all_requests(store), Ledger(store)
    rubrics = ledger.rubrics(batch.id)
    keys = [key for request in requests for key in request.keys]
    await collect(store, judge, options=OPTIONS)
    assert all_requests(store) == [], "the requests of a closed batch leave the store"
    before = (verdicts(store), spent(store), store.attempts(keys))
    ledger.plan(batch, requests, rubrics)
    ledger.note(batch.id, "created", provider_id=batch.provider_id)
    again = await collect(store, judge, options=OPTIONS)
    assert (again.already_stored, again.scored, again.usage.calls) == (batch.requests, 0, 0)
    assert before == (verdicts(store), spent(store), store.attempts(keys))


async def test_a_batch_of_another_living_process_is_left_alone(
    server, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(server)
    server.at["POST /files"] = ["400"]
    with pytest.raises(JudgeError, match="rejected"):
        await send(store, runs, judge)
    assert status(store) == (), "a refused upload claims nothing"
    await send(store, runs, judge)
    own_requests = all_requests(store)
    abandon(store, status(store)[0].id)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        from ambjudge.judge.provider_batch.ledger import this_process
        from ambjudge.judge.questions.verdict_keys import identity

        other = f"{this_process().partition(':')[0]}:{sleeper.pid}"
        batch = OpenBatch(
            id="b" * 32,
            judge=identity(judge),
            base=server.url,
            requests=len(own_requests),
            lines=len(own_requests),
            reserved_usd=None,
            owner=other,
        )
        Ledger(store).plan(
            batch, own_requests, {load_rubric("segmentation").sha256: load_rubric("segmentation")}
        )
        sent = await send(store, runs, judge)
        assert (sent.sent, sent.waiting) == (0, len(own_requests))
        assert "another process" in sent.warnings[0]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert (await send(store, runs, judge)).sent == len(own_requests), (
        "its process is gone, so nothing was created"
    )


async def test_a_batch_carries_every_question_and_its_answers_survive_an_edited_taxonomy(
    server, loopback, store: Store, runs: list[Path], edit_code
) -> None:
    """Codes, stages and a question of one's own are kept with the batch as they were put."""
    judge = judge_of(server)
    question = ask_item("What did it load?", Answer("choice", ("a model", "a table", "nothing")))
    scope = Scope(questions=QuestionSet(stages="judge", ask=question, ask_all=True))
    server.lines = ["codes:E3"]
    sent = await submit(
        store, judge, planned_requests(plan_rejudge(store, runs, judge, scope), judge), OPTIONS
    )
    items = sum(len(request.criteria) for request in all_requests(store))
    questions = ["stages", "S1", "S2", "S3", "diagnosis", "ask"]
    assert [request.question for request in all_requests(store)] == 2 * questions
    assert sent.sent == 2 * len(questions)
    assert {name for body in server.bodies for name in loopback.entries_of(body)} >= {
        "stages",
        "E1",
        "plan",
        "ask",
    }

    edit_code(E3="Other words.")
    done = await collect(store, judge, options=OPTIONS)
    assert (done.stale, dict(done.unscored), len(done.closed)) == (0, {}, 1)
    assert done.scored == items
    again = plan_rejudge(store, runs, judge, scope)
    assert [dict(need.reasons) for need in again.needs] == [{"E3": ("criterion",)}] * 2
    edit_code()
    assert plan_rejudge(store, runs, judge, scope).calls == 0
    cards = []
    options = ScoreOptions(questions=scope.questions, stored_only=True)
    await run_session(
        runs, judge, options, lambda outcome: cards.append(outcome.card), store=store, signals=False
    )
    for card in cards:
        assert (card.judge.calls, card.stages_from, set(card.turn_stages)) == (0, "judge", {"S1"})
        assert card.codes_read["E3"] == "present"
        assert card.codes_read["E4"] == "absent"
        assert [item.state for item in card.plan] == ["kept"]


async def test_batches_on_one_run_with_other_public_inputs_are_each_read_as_they_were_put(
    server, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(server)
    both = Scope(), Scope(public=RECORDED / "public")
    for scope in both:
        await submit(
            store,
            judge,
            planned_requests(plan_rejudge(store, runs[:1], judge, scope), judge),
            OPTIONS,
        )
    done = await collect(store, judge, options=OPTIONS)
    assert (len(done.closed), done.stale) == (2, 0)
    assert [plan_rejudge(store, runs[:1], judge, scope).calls for scope in both] == [0, 0]


async def test_an_edited_rubric_does_not_lose_paid_answers_and_an_edited_run_is_not_judged(
    server, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(server)
    rubric = load_rubric("segmentation")
    await submit(
        store,
        judge,
        planned_requests(plan_rejudge(store, runs, judge, Scope(rubrics=(rubric,))), judge),
        OPTIONS,
    )
    claimed = {key for r in all_requests(store) for key in r.keys if "crc-lite-01" in r.path}
    conversation = runs[1]
    data = json.loads(conversation.read_text())
    for message in data["messages"][1:]:
        if isinstance(message.get("content"), str):
            message["content"] += " and more"
    conversation.write_text(json.dumps(data))
    done = await collect(store, judge, options=OPTIONS)
    assert done.stale > 0
    assert set(verdicts(store)) >= claimed
    assert any("changed since" in w for w in done.warnings)


@pytest.mark.parametrize(
    ("play", "message"),
    [
        pytest.param({"POST /files": ["404"]}, "no batch endpoint", id="no file endpoint"),
        pytest.param({"POST /files": ["405"]}, "no batch endpoint", id="not allowed"),
        pytest.param({"POST /batches": ["404"]}, "no batch endpoint", id="no batch endpoint"),
        pytest.param({"POST /files": ["401"]}, "credentials", id="credentials"),
        pytest.param({"POST /batches": ["400"]}, "rejected", id="rejected"),
        pytest.param({"POST /files": ["503", "503", "503"]}, "503", id="down"),
    ],
)
async def test_an_unusable_provider_is_one_line(
    server, store: Store, runs: list[Path], play: dict, message: str
) -> None:
    server.at = play
    with pytest.raises(JudgeError, match=message) as caught:
        await send(store, runs[:1], judge_of(server))
    assert "\n" not in str(caught.value)
    assert "sk-" not in str(caught.value)
    assert caught.value.hint
    assert status(store) == (), "nothing was created, so nothing is claimed"


async def test_nobody_listens(store: Store, runs: list[Path]) -> None:
    judge = ApiJudge("small-judge", "http://127.0.0.1:9/v1", retry=Retry(attempts=2, first_s=0.01))
    with pytest.raises(JudgeError, match="ConnectError"):
        await submit(
            store,
            judge,
            planned_requests(stale(store, runs[:1], judge), judge),
            replace(OPTIONS, retry=judge._retry),
        )


async def test_judges_without_batches(store: Store) -> None:
    with pytest.raises(ConfigError, match="provider batches"):
        await submit(store, RulesJudge(), [], OPTIONS)
    with pytest.raises(ConfigError, match="OpenAI-compatible"):
        await submit(store, ApiJudge("anthropic/claude-sonnet-4-5"), [], OPTIONS)
    with pytest.raises(ConfigError, match="no open batch"):
        abandon(store, "nonsense")
