"""The API judge against a real HTTP server that behaves well and badly."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError, JudgeError
from ambjudge.judge import prompts
from ambjudge.judge.api import ApiJudge, Breaker, citation_validity
from ambjudge.judge.base import Estimate, EstimatingJudge, Reply, Request
from ambjudge.judge.prices import Price
from ambjudge.judge.transport import Retry, redact, retry_after
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.segment import segment

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUN = load_run(RECORDED / "runs" / "crc-lite-02")
SEGMENTS = segment(RUN)
QUICK = Retry(attempts=3, total_s=20, first_s=0.01)


def request(stage: str = "S1", track: str = "segmentation", **more) -> Request:
    rubric = load_rubric(track)
    return Request(RUN, SEGMENTS, rubric, stage, rubric.criteria(stage), **more)


def judge_of(server, *script: str, **options) -> ApiJudge:
    server.script = list(script)
    return ApiJudge("small-judge", server.url, **{"retry": QUICK, "timeout": 5, **options})


def outcome(reply: Reply) -> set[tuple]:
    return {(r.status, r.reason, r.value) for r in reply.results}


@pytest.mark.parametrize("stage", ["S1", "S2", "S3"])
async def test_one_call_a_stage(judge_server, stage: str) -> None:
    asked = request(stage)
    reply = await judge_of(judge_server, "good").judge(asked)
    assert judge_server.count == 1
    assert [r.id for r in reply.results] == [c.id for c in asked.criteria]
    assert outcome(reply) == {("scored", None, 1.0)}
    assert citation_validity(reply.results) == 1.0
    assert reply.usage.input_tokens > 500
    assert reply.usage.cost_usd is None  # no list price behind an address of one's own
    assert len(reply.raw) == 1


async def test_the_request_on_the_wire(judge_server) -> None:
    judge = judge_of(judge_server, "good", seed=7, temperature=0.3, api_key="sk-loopback-123456")
    await judge.judge(request(sample=2))
    (body,), (headers,) = judge_server.requests, judge_server.headers
    assert (body["model"], body["temperature"], body["seed"], body["max_tokens"]) == ("small-judge", 0.3, 9, 8_192)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert headers["authorization" if "authorization" in headers else "Authorization"] == "Bearer sk-loopback-123456"
    assert "drop_params" not in body
    evidence = judge.evidence(request())
    user = body["messages"][1]["content"]
    assert f"<<<RECORD {evidence.nonce}\n{evidence.text}\nRECORD {evidence.nonce}>>>" in user
    assert evidence.nonce in body["messages"][0]["content"]
    assert RUN.turns[0].text[:40] not in body["messages"][0]["content"]


UNPARSABLE = {("unscored", "unparsable", None)}
FAILED = {("unscored", "judge_error", None)}


@pytest.mark.parametrize(
    ("script", "calls", "expected"),
    [
        pytest.param(["malformed"], 2, UNPARSABLE, id="malformed twice"),
        pytest.param(["prose"], 2, UNPARSABLE, id="prose"),
        pytest.param(["empty"], 2, UNPARSABLE, id="empty"),
        pytest.param(["null"], 2, UNPARSABLE, id="null content"),
        pytest.param(["no_choices"], 2, UNPARSABLE, id="no choices"),
        pytest.param(["wrong_schema"], 2, UNPARSABLE, id="wrong schema"),
        pytest.param(["two_objects"], 2, UNPARSABLE, id="two objects"),
        pytest.param(["injected"], 2, UNPARSABLE, id="verdict inside prose"),
        pytest.param(["malformed", "good"], 2, {("scored", None, 1.0)}, id="repaired"),
        pytest.param(["missing", "good"], 2, {("scored", None, 1.0)}, id="completed by the repair"),
        pytest.param(["fenced"], 1, {("scored", None, 1.0)}, id="fenced"),
        pytest.param(["length"], 1, {("unscored", "truncated", None)}, id="cut reply that would parse"),
        pytest.param(["malformed", "length"], 2, UNPARSABLE, id="repair cut"),
        pytest.param(["content_filter"], 1, {("unscored", "refused", None)}, id="content filter"),
        pytest.param(["refusal"], 1, {("unscored", "refused", None)}, id="refusal"),
        pytest.param(["500", "good"], 2, {("scored", None, 1.0)}, id="one 500"),
        pytest.param(["429", "503", "good"], 3, {("scored", None, 1.0)}, id="busy, then good"),
        pytest.param(["500"], 3, FAILED, id="500 for good"),
        pytest.param(["409"], 3, FAILED, id="409 for good"),
        pytest.param(["529"], 3, FAILED, id="overloaded"),
        pytest.param(["garbage"], 3, FAILED, id="html with status 200"),
        pytest.param(["reset"], 3, FAILED, id="reset"),
        pytest.param(["reset", "good"], 2, {("scored", None, 1.0)}, id="reset once"),
        pytest.param(["value:0.5"], 2, UNPARSABLE, id="off the scale"),
    ],
)
async def test_outcomes(judge_server, script: list[str], calls: int, expected: set) -> None:
    reply = await judge_of(judge_server, *script).judge(request())
    assert outcome(reply) == expected
    assert judge_server.count == calls
    assert reply.usage.calls == calls
    if expected in (UNPARSABLE, {("unscored", "truncated", None)}):
        assert reply.transient == {r.id for r in reply.results}


@pytest.mark.parametrize("script", ["missing", "duplicate", "out_of_scale", "boolean"])
async def test_one_bad_entry_spoils_only_itself(judge_server, script: str) -> None:
    reply = await judge_of(judge_server, script).judge(request())
    assert [r.reason for r in reply.results] == ["unparsable"] + [None] * 5
    assert reply.transient == {"S1a"}


async def test_the_repair_names_the_problem_and_keeps_what_was_usable(judge_server) -> None:
    reply = await judge_of(judge_server, "out_of_scale", "lowest").judge(request())
    assert [r.value for r in reply.results] == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert "S1a: value: 0.7 is not one of [1, 0]" in judge_server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("script", ["400", "401", "402", "403", "404", "422"])
async def test_what_cannot_work_is_an_error_at_once(judge_server, script: str) -> None:
    with pytest.raises(JudgeError) as caught:
        await judge_of(judge_server, script, api_key="sk-mine-abcdef").judge(request())
    assert judge_server.count == 1
    text = str(caught.value)
    assert text.startswith("small-judge: ")
    assert caught.value.hint
    assert "\n" not in text
    assert "sk-" not in text


async def test_nobody_listening_is_an_error() -> None:
    with pytest.raises(JudgeError, match="cannot connect"):
        await ApiJudge("m", "http://127.0.0.1:9/v1", retry=QUICK).judge(request())


@pytest.mark.parametrize(
    ("model", "hint"), [("openai/gpt-4o", "OPENAI_API_KEY"), ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY"), ("nonsense", "provider/model")]
)  # fmt: skip
async def test_missing_keys_and_unknown_models_say_what_to_do(clean_environment, model: str, hint: str) -> None:
    with pytest.raises(JudgeError) as caught:
        await ApiJudge(model, retry=QUICK).judge(request())
    assert hint in caught.value.hint


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("after", ["1", "date"])
async def test_retry_after_is_kept(judge_server, after: str) -> None:
    started = time.monotonic()
    reply = await judge_of(judge_server, f"429:{after}", "good").judge(request())
    assert time.monotonic() - started >= 0.9 if after == "1" else True
    assert outcome(reply) == {("scored", None, 1.0)}


async def test_a_wait_longer_than_the_time_left_gives_up_at_once(judge_server) -> None:
    reply = await asyncio.wait_for(judge_of(judge_server, "429:3600").judge(request()), 60)
    assert outcome(reply) == FAILED
    assert judge_server.count == 1


async def test_slow_answers_time_out_and_are_tried_again(judge_server) -> None:
    reply = await judge_of(judge_server, "slow:2", "good", timeout=0.5).judge(request())
    assert outcome(reply) == {("scored", None, 1.0)}
    assert judge_server.count == 2


async def test_the_form_is_weakened_once_and_remembered(judge_server) -> None:
    judge = judge_of(judge_server, "no_format")
    assert outcome(await judge.judge(request())) == {("scored", None, 1.0)}
    kinds = [(b.get("response_format") or {}).get("type") for b in judge_server.requests]
    assert kinds == ["json_schema", "json_object", None]
    await judge.judge(request("S2"))
    assert judge_server.count == 4


async def test_calls_side_by_side_weaken_the_form_together(judge_server) -> None:
    judge = judge_of(judge_server, "no_format")
    replies = await asyncio.gather(*(judge.judge(request(stage)) for stage in ("S1", "S2", "S3")))
    assert all(outcome(r) == {("scored", None, 1.0)} for r in replies)


async def test_a_model_without_temperature(judge_server) -> None:
    reply = await judge_of(judge_server, "no_temperature").judge(request())
    assert outcome(reply) == {("scored", None, 1.0)}
    assert any("does not take temperature" in w for w in reply.warnings)


async def test_a_failing_provider_is_left_alone(judge_server) -> None:
    judge = judge_of(judge_server, "500", retry=Retry(attempts=1), breaker=Breaker(after=2, rest_s=0.3))
    for _ in range(4):
        assert outcome(await judge.judge(request())) == FAILED
    assert judge_server.count == 2
    judge_server.script = ["good"]
    await asyncio.sleep(0.35)
    assert outcome(await judge.judge(request())) == {("scored", None, 1.0)}


@pytest.mark.parametrize("script", ["no_usage", "wild_usage"])
async def test_unknown_usage_stays_unknown(judge_server, script: str) -> None:
    reply = await judge_of(judge_server, script, prices={"small-judge": Price(1, 2, "", "")}).judge(request())
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.cost_usd) == (1, None, None)


async def test_false_quotes_are_counted(judge_server) -> None:
    reply = await judge_of(judge_server, "false_quote").judge(request())
    assert citation_validity(reply.results) == 0.0
    assert any("0 of 6 quotes verified" in w for w in reply.warnings)


async def test_proposed_codes(judge_server) -> None:
    reply = await judge_of(judge_server, "codes").judge(request("S3"))
    (code,) = reply.codes
    assert (code.code, code.turns, code.by, code.independence) == ("E3", (2,), "judge:small-judge", "from_judge")


async def test_not_applicable(judge_server) -> None:
    reply = await judge_of(judge_server, "not_applicable").judge(request("S2", "report_generation"))
    assert {r.status for r in reply.results} == {"scored", "not_applicable"}


async def test_samples_are_votes(judge_server) -> None:
    reply = await judge_of(judge_server, "good", "lowest", "lowest", samples=3, temperature=1.0).judge(request())
    assert {len(r.votes) for r in reply.results} == {3}
    assert {r.value for r in reply.results} == {0.0}
    assert len({b["seed"] for b in judge_server.requests if "seed" in b}) >= 2
    assert reply.usage.calls == 3


async def test_nothing_to_judge_is_no_call(judge_server) -> None:
    asked = request()
    reply = await judge_of(judge_server, "good").judge(Request(RUN, SEGMENTS, asked.rubric, "S1", ()))
    assert (reply.results, judge_server.count) == ((), 0)


async def test_one_judge_serves_several_event_loops(judge_server) -> None:
    judge = judge_of(judge_server, "good")
    first = await judge.judge(request())
    second = await asyncio.to_thread(lambda: asyncio.run(judge.judge(request())))
    assert first.results == second.results


def test_slots_in_a_transcript_are_text() -> None:
    """Slots are filled in one pass, so that a record cannot pull another slot into itself."""
    filled = prompts.fill("repair", {"problem": "<<problem>> {problem} %s ${x} <<criteria>>"})
    assert "<<problem>> {problem} %s ${x} <<criteria>>" in filled
    with pytest.raises(KeyError):
        prompts.fill("repair", {})


def test_identity_is_stable_and_holds_no_secret() -> None:
    judge = ApiJudge("m", "http://user:pw@127.0.0.1:9/v1?key=abc", api_key="sk-secret-123")
    text = json.dumps(dict(judge.parameters))
    assert "pw" not in text
    assert "sk-" not in text
    assert "abc" not in text
    assert judge.parameters["api_base"] == "http://127.0.0.1:9/v1"
    assert judge.evidence_sha256(request("S1")) == ApiJudge("other").evidence_sha256(request("S1", "vqa"))
    assert judge.evidence_sha256(request("S1")) != judge.evidence_sha256(request("S2"))
    assert judge.prompt_sha256 == ApiJudge("other").prompt_sha256


@pytest.mark.parametrize(
    "options", [{"temperature": -1}, {"temperature": 3}, {"evidence_budget": 10}, {"max_tokens": 0}, {"timeout": 0}, {"samples": 0}]
)  # fmt: skip
def test_settings_out_of_range(options: dict) -> None:
    with pytest.raises(ConfigError):
        ApiJudge("m", **options)


def test_estimate_brackets_a_call(clean_environment) -> None:
    judge = ApiJudge("openai/gpt-4o-mini")
    assert isinstance(judge, EstimatingJudge)
    found = judge.estimate(request())
    assert isinstance(found, Estimate)
    assert 0 < found.low.cost_usd < found.high.cost_usd
    assert ApiJudge("nobody/knows").estimate(request()).high.cost_usd is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "Sat, 21 Nov 2026 08:00:10 GMT"}, 10.0),
        ({"Retry-After": "Sat, 21 Nov 2020 08:00:10 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_retry_after_headers(headers: dict | None, expected: float | None) -> None:
    assert retry_after(headers, now=1795248000.0) == expected


@pytest.mark.parametrize(
    "text",
    ["key sk-abcdef123456 is wrong", "Bearer abc.def", "https://me:hunter2@host/v1", "AIzaSyA0123456789abcdefghijkl", "my own s3cret"],
)  # fmt: skip
def test_redaction(text: str) -> None:
    shown = redact(text, "my own s3cret")
    assert "***" in shown
    assert not any(secret in shown for secret in ("sk-abc", "abc.def", "hunter2", "AIzaSy", "s3cret"))
