"""The API judge against a real HTTP server that behaves well and badly."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import struct
import sys
import time
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError, JudgeError
from ambjudge.judge.base import Estimate, EstimatingJudge, QuestionName, Reply, Request
from ambjudge.judge.engine import ask_all, judge_run, prepare
from ambjudge.judge.judges.api.circuit_breaker import CircuitBreaker
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry, redact, retry_after
from ambjudge.judge.judges.panel import Samples
from ambjudge.judge.questions import prompts
from ambjudge.judge.questions.items import QuestionSet, ask_item, diagnosis_items, stage_items
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record.facts import Fact
from ambjudge.trajectories.turns.segment import segment
from PIL import Image

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUN = load_run(RECORDED / "runs" / "crc-lite-02")
SEGMENTS = segment(RUN)
FACTS = (Fact(id="F1", kind="case", text="one case has no file", source="file"),)
QUICK = Retry(attempts=3, total_s=20, first_s=0.01)


def request(question: QuestionName = "S1", track: str = "segmentation", **more) -> Request:
    rubric = load_rubric(track)
    other = {
        "diagnosis": diagnosis_items(RUN.track),
        "stages": stage_items(),
        "ask": (ask_item("Was there a pilot?"),),
    }
    return Request(
        RUN, SEGMENTS, rubric, question, other.get(question) or rubric.criteria(question), **more
    )


def judge_of(server, *script: str, **options) -> ApiJudge:
    server.script = list(script)
    return ApiJudge("small-judge", server.url, **{"retry": QUICK, "timeout": 5, **options})


def outcome(reply: Reply) -> set[tuple]:
    return {(r.status, r.reason, r.value) for r in reply.results}


@pytest.mark.parametrize("stage", ["S1", "S2", "S3"])
async def test_one_call_a_stage(judge_server, stage: str) -> None:
    stage_request = request(stage)
    reply = await judge_of(judge_server, "good").judge(stage_request)
    assert judge_server.count == 1
    assert [r.id for r in reply.results] == [c.id for c in stage_request.criteria]
    assert outcome(reply) == {("scored", None, 1.0)}
    assert {e.check for r in reply.results for e in r.evidence} == {"verified"}
    assert reply.usage.input_tokens > 500
    assert reply.usage.cost_usd is None  # no list price behind an address of one's own
    assert len(reply.raw) == 1


async def test_the_request_on_the_wire(judge_server) -> None:
    judge = judge_of(judge_server, "good", seed=7, temperature=0.3, api_key="sk-loopback-123456")
    await judge.judge(request(sample=2))
    (body,), (headers,) = judge_server.requests, judge_server.headers
    assert (body["model"], body["temperature"], body["seed"], body["max_tokens"]) == (
        "small-judge",
        0.3,
        9,
        3_220,  # for six criteria
    )
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (
        headers["authorization" if "authorization" in headers else "Authorization"]
        == "Bearer sk-loopback-123456"
    )
    assert "drop_params" not in body
    record = judge.record(request())
    user = body["messages"][1]["content"]
    assert user.startswith(f"<<<RECORD {record.nonce}\n{record.text}\nRECORD {record.nonce}>>>")
    assert record.nonce in body["messages"][0]["content"]
    assert RUN.turns[0].text[:40] not in body["messages"][0]["content"]


UNPARSABLE = {("unscored", "unparsable", None)}
FAILED = {("unscored", "judge_error", None)}


@pytest.mark.parametrize(
    ("script", "calls", "expected"),
    [
        pytest.param(["malformed"], 2, UNPARSABLE, id="malformed twice"),
        pytest.param(["empty"], 2, UNPARSABLE, id="empty"),
        pytest.param(["null"], 2, UNPARSABLE, id="null content"),
        pytest.param(["no_choices"], 2, UNPARSABLE, id="no choices"),
        pytest.param(["huge"], 2, UNPARSABLE, id="a million characters"),
        pytest.param(["malformed", "good"], 2, {("scored", None, 1.0)}, id="repaired"),
        pytest.param(["missing", "good"], 2, {("scored", None, 1.0)}, id="completed by the repair"),
        pytest.param(["fenced"], 1, {("scored", None, 1.0)}, id="fenced"),
        pytest.param(
            ["length"], 2, {("unscored", "truncated", None)}, id="cut reply that would parse"
        ),
        pytest.param(["length", "good"], 2, {("scored", None, 1.0)}, id="whole at the second try"),
        pytest.param(["malformed", "length"], 3, UNPARSABLE, id="repair cut"),
        pytest.param(["content_filter"], 1, {("unscored", "refused", None)}, id="content filter"),
        pytest.param(["refusal"], 1, {("unscored", "refused", None)}, id="refusal"),
        pytest.param(["500", "good"], 2, {("scored", None, 1.0)}, id="one 500"),
        pytest.param(["429", "503", "good"], 3, {("scored", None, 1.0)}, id="busy, then good"),
        pytest.param(["500"], 3, FAILED, id="500 for good"),
        pytest.param(["409"], 1, FAILED, id="409 for good"),
        pytest.param(["529"], 3, FAILED, id="overloaded"),
        pytest.param(["garbage"], 3, FAILED, id="html with status 200"),
        pytest.param(["reset"], 3, FAILED, id="reset"),
        pytest.param(["reset", "good"], 2, {("scored", None, 1.0)}, id="reset once"),
    ],
)
async def test_outcomes(judge_server, script: list[str], calls: int, expected: set) -> None:
    reply = await judge_of(judge_server, *script).judge(request())
    assert outcome(reply) == expected
    assert judge_server.count == calls
    assert reply.usage.calls == calls
    if expected in (UNPARSABLE, {("unscored", "truncated", None)}):
        assert reply.transient == {r.id for r in reply.results}


@pytest.mark.parametrize("script", ["missing", "out_of_scale", "boolean"])
async def test_one_bad_entry_spoils_only_itself(judge_server, script: str) -> None:
    reply = await judge_of(judge_server, script).judge(request())
    assert [r.reason for r in reply.results] == ["unparsable"] + [None] * 5
    assert reply.transient == {"S1a"}


async def test_the_repair_names_the_problem_and_keeps_what_was_usable(judge_server) -> None:
    reply = await judge_of(judge_server, "out_of_scale", "lowest").judge(request())
    assert [r.value for r in reply.results] == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert (
        "S1a: value: 0.7 is not one of [1, 0]"
        in judge_server.requests[1]["messages"][-1]["content"]
    )


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
    ("model", "hint"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("nonsense", "provider/model"),
    ],
)
async def test_missing_keys_and_unknown_models_say_what_to_do(
    clean_environment, model: str, hint: str
) -> None:
    with pytest.raises(JudgeError) as caught:
        await ApiJudge(model, retry=QUICK).judge(request())
    assert hint in caught.value.hint


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
    ):
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
    assert any("does not accept temperature" in w for w in reply.warnings)


async def test_a_failing_provider_is_left_alone(judge_server) -> None:
    judge = judge_of(
        judge_server,
        "500",
        retry=Retry(attempts=1),
        breaker=CircuitBreaker(max_failures=2, pause_s=0.3),
    )
    for _ in range(4):
        assert outcome(await judge.judge(request())) == FAILED
    assert judge_server.count == 2
    judge_server.script = ["good"]
    await asyncio.sleep(0.35)
    assert outcome(await judge.judge(request())) == {("scored", None, 1.0)}


@pytest.mark.parametrize("script", ["no_usage", "wild_usage"])
async def test_usage_that_nobody_counted_is_estimated_upwards(judge_server, script: str) -> None:
    judge = judge_of(judge_server, script, price=Price(1, 2, "", ""))
    used = (await judge.judge(request())).usage
    counted = (
        await judge_of(judge_server, "good", price=Price(1, 2, "", "")).judge(request())
    ).usage
    assert (used.calls, used.estimated_calls, counted.estimated_calls) == (1, 1, 0)
    assert counted.input_tokens <= used.input_tokens < 1.5 * counted.input_tokens
    assert counted.output_tokens <= used.output_tokens < 1.5 * counted.output_tokens
    assert counted.cost_usd <= used.cost_usd < 1.5 * counted.cost_usd


async def test_false_quotes_are_counted(judge_server) -> None:
    reply = await judge_of(judge_server, "false_quote").judge(request())
    assert any("0 of 6 quotes verified" in w for w in reply.warnings)


async def test_nothing_to_judge_is_no_call(judge_server) -> None:
    stage_request = request()
    reply = await judge_of(judge_server, "good").judge(
        Request(RUN, SEGMENTS, stage_request.rubric, "S1", ())
    )
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
    assert judge.evidence_sha256(request("S1")) == ApiJudge("other").evidence_sha256(
        request("S1", "vqa")
    )
    assert judge.evidence_sha256(request("S1")) == judge.evidence_sha256(request("S2"))
    assert judge.evidence_sha256(request("S1")) != judge.evidence_sha256(request("S1", facts=FACTS))
    assert judge.prompt_sha256 == ApiJudge("other").prompt_sha256


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": 3},
        {"evidence_budget": 10},
        {"max_tokens": 0},
        {"timeout": 0},
    ],
)
def test_settings_out_of_range(options: dict) -> None:
    with pytest.raises(ConfigError):
        ApiJudge("m", **options)


def test_estimate_brackets_a_call(clean_environment) -> None:
    judge = ApiJudge("openai/gpt-4o-mini")
    assert isinstance(judge, EstimatingJudge)
    estimated = judge.estimate(request())
    assert isinstance(estimated, Estimate)
    assert 0 < estimated.low.cost_usd < estimated.high.cost_usd
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
    [
        "key sk-abcdef123456 is wrong",
        "Bearer abc.def",
        "https://me:hunter2@host/v1",
        "AIzaSyA0123456789abcdefghijkl",
        "my own s3cret",
    ],
)
def test_redaction(text: str) -> None:
    redacted = redact(text, "my own s3cret")
    assert "***" in redacted
    assert not any(
        secret in redacted for secret in ("sk-abc", "abc.def", "hunter2", "AIzaSy", "s3cret")
    )


# One record a run
EVERYTHING = QuestionSet(
    stages="judge", ask=ask_item("Did the agent look at an image of its output?")
)


async def test_all_questions_share_their_beginning_byte_for_byte(judge_server) -> None:
    judge = judge_of(judge_server, "good")
    requests = prepare(RUN, questions=EVERYTHING).requests(judge)
    assert [r.question for r in requests] == ["stages", "S1", "S2", "S3", "diagnosis", "ask"]
    assert len({judge.evidence_sha256(r) for r in requests}) == 1
    replies = await ask_all(judge, requests)
    assert {r.status for reply in replies.values() for r in reply.results} == {"scored"}
    systems, users = zip(
        *([m["content"] for m in body["messages"]] for body in judge_server.requests), strict=True
    )
    assert len(set(systems)) == 1
    record = judge.record(requests[0])
    assert record.fact_ids
    assert record.text in judge.prefix(requests[0])
    for user in users:
        assert user.startswith(judge.prefix(requests[0]))
        assert user.count(record.text) == 1
    questions = [user.removeprefix(judge.prefix(requests[0])) for user in users]
    assert len(set(questions)) == 6
    assert max(map(len, questions)) < len(record.text)


async def test_a_record_is_billed_once_and_read_from_the_cache_three_times(judge_server) -> None:
    judge_server.cache = loopback_cache(judge_server)
    judge = judge_of(judge_server, "slow:0.3", "good", price=Price(1.0, 10.0, "", "", cached=0.1))
    card = await judge_run(RUN, judge)
    first, *others = judge_server.answered_before
    assert first == 0
    assert len(others) == 3
    assert min(others) >= 1, "another question was asked before the first one was answered"
    record = len(judge.prefix(request())) // 4
    assert record > 1_024
    used = card.judge
    assert used.calls == 4
    # A cache reads in steps of 128 tokens; whatever begins like the record, and nothing else, comes
    # from it.
    assert 3 * (record - 128) < used.cached_tokens < 3 * (record + 1_024)
    questions = sum(len(judge.question_text(r)) // 4 for r in prepare(RUN).requests(judge))
    assert record <= used.input_tokens - used.cached_tokens < record + questions + 4 * 1_024
    assert used.cache_write_tokens == used.input_tokens - used.cached_tokens
    new = used.input_tokens - used.cached_tokens
    assert used.cost_usd == pytest.approx(
        (new + used.cached_tokens * 0.1 + used.output_tokens * 10) / 1e6
    )


async def test_the_first_sample_goes_alone(judge_server) -> None:
    judge = Samples(judge_of(judge_server, "slow:0.3", "good", temperature=1.0), 3)
    await judge.judge(request())
    assert judge_server.answered_before[0] == 0
    assert min(judge_server.answered_before[1:]) >= 1


def loopback_cache(server):
    return sys.modules[type(server).__module__].PromptCache()


# Other questions
async def test_a_cut_repair_leaves_what_was_said_alone(judge_server) -> None:
    """Only what is still missing may be asked again: not the codes that the reader could not
    tell."""
    server = judge_server
    first = prompted(await judge_of(server, "cannot_tell").judge(request("diagnosis")))
    assert first == {"no_evidence": 5, None: 1}
    reply = await judge_of(server, "missing", "length").judge(request("diagnosis"))
    assert reply.transient == {"E1"}
    assert prompted(reply) == {"unparsable": 1, None: 5}


def prompted(reply: Reply) -> dict:
    return dict(Counter(r.reason for r in reply.results))


@pytest.mark.parametrize(
    ("script", "answer"), [("good", ["S1"] * len(RUN.turns)), ("stages_bad", None)]
)
async def test_stages_of_all_turns(judge_server, script: str, answer: list | None) -> None:
    (result,) = (await judge_of(judge_server, script).judge(request("stages"))).results
    assert result.answer == answer
    assert (result.status, result.reason) == (
        ("scored", None) if answer else ("unscored", "unparsable")
    )
    if answer is None:
        repair = judge_server.requests[1]["messages"][-1]["content"]
        assert (
            f"every turn from 1 to {len(RUN.turns)} must stand in exactly one; see turn 1" in repair
        )


# plan.png
WITH_PICTURE = RECORDED / "runs" / "crc-std-01"


def png(width: int, height: int) -> bytes:
    """A file of a few bytes whose header promises this many pixels."""
    header = struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 64)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def run_with_picture(folder: Path, data: bytes | None):
    """The recorded run with another plan.png: these bytes, or none."""
    shutil.copytree(WITH_PICTURE, folder / "run")
    place = folder / "run" / "outputs" / "plan" / "plan.png"
    place.unlink()
    if data is not None:
        place.write_bytes(data)
    return load_run(folder / "run")


def seeing(server, **options) -> ApiJudge:
    """A judge behind a model that litellm knows to take images, served from the loopback."""
    server.script = ["good"]
    return ApiJudge(
        "openai/gpt-4o", server.url, retry=QUICK, timeout=5, api_key="sk-loopback-123456", **options
    )


def images(body: dict) -> list[str]:
    content = body["messages"][1]["content"]
    return (
        [b["image_url"]["url"] for b in content if b["type"] == "image_url"]
        if isinstance(content, list)
        else []
    )


def details(card) -> dict[str, str]:
    return {
        r.id: r.detail
        for stage in ("S1", "S2", "S3")
        for r in card.stages[stage].criteria
        if r.detail
    }


async def test_a_model_that_takes_images_is_shown_the_plan(judge_server) -> None:
    run = load_run(WITH_PICTURE)
    card = await judge_run(run, seeing(judge_server))
    assert details(card) == {"S1f": "plan.png was looked at"}, "that it is there is a fact"
    assert [len(images(body)) for body in judge_server.requests] == [1] * 4
    assert len({images(body)[0] for body in judge_server.requests}) == 1
    blocks = judge_server.requests[0]["messages"][1]["content"]
    assert [b["type"] for b in blocks][-2:] == [
        "image_url",
        "text",
    ], "the question stands behind the picture"
    sent = base64.b64decode(images(judge_server.requests[0])[0].partition("base64,")[2])
    with Image.open(io.BytesIO(sent)) as sent_image, Image.open(run.plan.image_path) as delivered:
        assert max(sent_image.size) <= 1_024
        assert sent_image.width / sent_image.height == pytest.approx(
            delivered.width / delivered.height, rel=0.02
        )
    assert sent != run.plan.image_path.read_bytes(), "it is drawn anew"


async def test_pictures_belong_to_the_key(judge_server) -> None:
    run = load_run(WITH_PICTURE)
    stage_request = replace(request(), run=run, segmentation=segment(run))
    judge, blind = seeing(judge_server), seeing(judge_server, images=False)
    assert (
        judge.evidence_sha256(stage_request)
        != blind.evidence_sha256(stage_request)
        == blind.record(stage_request).sha256
    )
    assert (
        judge.estimate(stage_request).high.input_tokens
        > blind.estimate(stage_request).high.input_tokens
    )


async def test_a_picture_that_cannot_be_shown_is_a_warning_and_a_reason(
    judge_server, tmp_path
) -> None:
    card = await judge_run(
        run_with_picture(tmp_path, b"\x89PNG\r\n\x1a\nand then nothing"), seeing(judge_server)
    )
    assert not any(images(body) for body in judge_server.requests)
    (warning,) = [w for w in card.warnings if "plan.png" in w]
    assert "cannot be read as an image" in warning
    for name in ("S1e", "S1f"):
        assert details(card)[name].startswith(
            "plan.png was not looked at: cannot be read as an image"
        )


async def test_why_nobody_looked_at_the_plan(judge_server, tmp_path) -> None:
    blind = await judge_run(load_run(WITH_PICTURE), judge_of(judge_server, "good"))
    assert set(details(blind).values()) == {
        "plan.png was not looked at: the model is not sent images"
    }
    assert not any("plan.png" in w for w in blind.warnings)
    without = await judge_run(run_with_picture(tmp_path, None), seeing(judge_server))
    assert set(details(without).values()) == {
        "plan.png was not looked at: no file of that name came with the run"
    }
