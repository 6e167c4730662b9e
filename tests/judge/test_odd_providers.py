"""Providers that are OpenAI-compatible in letter only, called directly and through litellm.

No good answer is lost, every call is booked at what the provider charges or more, and a cost limit
holds by the provider's own count and is used.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
from ambjudge.cli import run
from ambjudge.errors import JudgeError
from ambjudge.judge.base import Reply, Request, Usage, total_usage
from ambjudge.judge.engine import PreparedRun, ask_all, prepare
from ambjudge.judge.judges.api.circuit_breaker import CircuitBreaker
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.model_names import is_same_model
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.limits import Budget, GuardedJudge, Pacer
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.store import open_store
from ambjudge.trajectories.reading.load import load_run
from odd_provider import BEHAVIOURS, SCORED, STOPPED, OddProvider, odd_provider

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
PRICE = Price(1.0, 10.0, "", "", cached=0.1)
WAYS = {"direct": "openai/judge", "litellm": "hosted_vllm/judge"}


def judge_at(provider: OddProvider, way: str, **options) -> ApiJudge:
    defaults = {
        "retry": Retry(attempts=3, total_s=30, first_s=0.01, longest_s=0.02),
        "timeout": 1.0,
        "price": PRICE,
        "breaker": CircuitBreaker(max_failures=1_000),
    }
    return ApiJudge(WAYS[way], provider.url, **{**defaults, **options})


@pytest.fixture(scope="module")
def prepared():
    return prepare(load_run(RECORDED / "runs" / "crc-lite-02"), questions=QuestionSet(ask_all=True))


@pytest.fixture(scope="module", autouse=True)
def loaded(prepared) -> None:
    """Both ways have made a call: the first one through litellm spends seconds on imports."""
    for way in WAYS:
        with odd_provider("good") as provider:
            judge = judge_at(provider, way, timeout=60)
            asyncio.run(judge.judge(prepared.requests(judge)[0]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_every_answer_is_used_and_booked(name: str, way: str, prepared) -> None:
    behaviour = BEHAVIOURS[name]
    with odd_provider(name) as provider:
        judge = judge_at(provider, way)
        requests = {request.question: request for request in prepared.requests(judge)}
        if behaviour.outcome == STOPPED:
            with pytest.raises(JudgeError) as caught:
                await judge.judge(requests["S3"])
            message = provider_words(name)
            assert message in str(caught.value)
            assert len(provider.requests) == 1
            return
        reply = await judge.judge(requests["S3"])
    assert outcomes(reply) == {behaviour.outcome}
    assert reply.usage.calls == len(provider.requests)
    charged = provider.cost(PRICE)
    assert reply.usage.cost_usd >= charged - 1e-12
    if behaviour.is_counted:
        assert reply.usage.cost_usd == pytest.approx(charged)
        assert reply.usage.estimated_calls == 0
    else:
        assert 0 < reply.usage.estimated_calls <= len(provider.billed)


def provider_words(name: str) -> str:
    """The words of an error that ends the command."""
    words = {"key in a 200": "Wrong key.", "bad request in a 200": "No such role."}
    return words.get(name, "Insufficient credits.")


def outcomes(reply: Reply) -> set[str]:
    return {result.reason or result.status for result in reply.results}


# The cost limit.

RUNS = ("crc-lite-01", "crc-lite-02", "crc-std-01", "ldct-lite-01", "vqa-lite-01")


async def spend(
    provider: OddProvider,
    way: str,
    runs: list[PreparedRun],
    cap: float | None,
    concurrency: int,
    **more,
) -> Usage:
    """Ask everything about these runs under a cost limit, as a session does."""
    judge = judge_at(provider, way, timeout=20, **more)
    guarded = GuardedJudge(judge, Pacer(concurrency), Budget(cap))
    slots = asyncio.Semaphore(concurrency)

    async def ask(run: PreparedRun) -> Usage:
        async with slots:
            return total_usage((await ask_all(guarded, run.requests(guarded))).values())

    return sum(await asyncio.gather(*map(ask, runs)), Usage())


def ready(path: Path) -> PreparedRun:
    return prepare(load_run(path), questions=QuestionSet(diagnosis=False, ask_all=True))


@pytest.fixture(scope="module")
def tiny_runs(tmp_path_factory: pytest.TempPathFactory) -> list[PreparedRun]:
    """Twelve short runs of three questions each."""
    folder = tmp_path_factory.mktemp("tiny")
    paths = []
    for number in range(12):
        path = folder / f"r{number:02d}" / "conversation.json"
        path.parent.mkdir()
        words = f"Plan number {number}: a pretrained network, one pilot case, then all of them."
        messages = [
            {"role": "system", "content": "Segment."},
            {"role": "assistant", "content": words},
        ]
        data = {"task": "kidney-seg-task", "tier": "standard", "messages": messages}
        path.write_text(json.dumps(data))
        paths.append(path)
    return [ready(path) for path in paths]


@pytest.fixture(scope="module")
def recorded_runs() -> list[PreparedRun]:
    return [ready(RECORDED / "runs" / name) for name in RUNS]


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_a_cap_of_half_the_price_buys_half_of_the_answers(
    concurrency: int, recorded_runs: list[PreparedRun]
) -> None:
    """Fifteen questions that cost $0.0935 in all: a cap of $0.05 refused every one of them."""
    price = Price(0.958, 8.35, "", "")
    with odd_provider("good") as provider:
        used = await spend(provider, "direct", recorded_runs, None, concurrency, price=price)
        assert used.calls == 15
        assert provider.cost(price) == pytest.approx(0.0935, abs=0.002)
    for cap in (0.05, 0.07):
        with odd_provider("good") as provider:
            used = await spend(provider, "direct", recorded_runs, cap, concurrency, price=price)
            assert 0.8 * cap <= provider.cost(price) <= cap
            assert used.cost_usd == pytest.approx(provider.cost(price))
    with odd_provider("good") as provider:
        await spend(provider, "direct", recorded_runs, 0.12, concurrency, price=price)
        assert len(provider.billed) == 15


HOSTILE_TO_CAPS = (
    ("good", "direct"),
    ("good", "litellm"),
    ("reasoning beside", "direct"),
    ("reasoning beside", "litellm"),
    ("reasoning inside", "direct"),
    ("half a reply", "direct"),
    ("half a reply", "litellm"),
    ("cut, then whole", "direct"),
    ("always cut", "direct"),
    ("other word for cut", "litellm"),
    ("refusal", "direct"),
    ("parts", "litellm"),
    ("tokens as text", "direct"),
    ("no usage", "direct"),
    ("no usage", "litellm"),
    ("negative usage", "direct"),
    ("no choices", "direct"),
    ("web page", "direct"),
    ("web page once", "litellm"),
    ("broken body", "direct"),
    ("other JSON", "direct"),
    ("newer name of the limit", "direct"),
    ("ended by an error", "direct"),
)


@pytest.mark.parametrize(("name", "way"), HOSTILE_TO_CAPS)
async def test_a_cap_holds_by_the_provider_s_own_count(
    name: str, way: str, tiny_runs: list[PreparedRun]
) -> None:
    with odd_provider(name) as provider:
        free = await spend(provider, way, tiny_runs, None, 8)
    cap = free.cost_usd / 2
    with odd_provider(name) as provider:
        used = await spend(provider, way, tiny_runs, cap, 8)
        assert provider.cost(PRICE) <= used.cost_usd + 1e-12
        assert 0.8 * cap <= used.cost_usd <= cap + 1e-12


async def test_a_refusal_says_what_a_call_may_cost_and_what_is_left(prepared) -> None:
    budget = Budget(0.001)
    with odd_provider("good") as provider:
        guarded = GuardedJudge(judge_at(provider, "direct"), Pacer(2), budget)
        request = prepared.requests(guarded)[0]
        reply = await guarded.judge(request)
        assert provider.requests == []
    assert outcomes(reply) == {"budget"}
    detail = reply.results[0].detail
    assert re.fullmatch(
        r"not asked: a single call may cost up to \$0\.0\d+; \$0\.001 of \$0\.001 is unspent"
        r" \(--max-cost\)",
        detail,
    ), detail


async def test_what_is_left_of_a_cap_buys_a_shorter_reply(prepared) -> None:
    """Once it is known how long replies are, the full limit need not fit."""
    with odd_provider("good") as provider:
        judge = judge_at(provider, "direct")
        first, second, *_ = prepared.requests(judge)
        budget = Budget(0.0265)
        guarded = GuardedJudge(judge, Pacer(1), budget)
        assert outcomes(await guarded.judge(first)) == {SCORED}
        assert outcomes(await guarded.judge(second)) == {SCORED}
        limits = [body["max_tokens"] for body in provider.requests]
        assert limits[0] == judge_limit(judge, first)
        assert limits[1] < judge_limit(judge, second)
        assert provider.cost(PRICE) <= 0.0265


def judge_limit(judge: ApiJudge, request: Request) -> int:
    """The limit of a first reply to a request."""
    return judge.batch_body(request)["max_tokens"] // 2


NAMES = [
    ("gpt-4o", "gpt-4o-2024-08-06", True),
    ("openai/gpt-4o", "gpt-4o", True),
    ("gpt-4o", "gpt-4o-mini", False),
    ("gpt-4", "gpt-4.1", False),
    ("gpt-4", "gpt-4-0613", True),
    ("anthropic/claude-sonnet-latest", "claude-sonnet-20250929", True),
    ("openrouter/deepseek/deepseek-chat:free", "deepseek/deepseek-chat", True),
    ("openai/qwen3", "/models/Qwen3.gguf", True),
    ("openai/a", "b", False),
    ("openai/mockm", "cheap-fallback-1b", False),
    ("", "x", False),
]


@pytest.mark.parametrize(("requested", "served", "is_same"), NAMES)
def test_which_names_are_versions_of_one_model(requested, served, is_same) -> None:
    assert is_same_model(requested, served) is is_same


# On the command line.


@pytest.fixture
def score(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """`score(provider)` scores a run with a store of its own: exit code, scorecard, stderr."""
    shutil.copytree(RECORDED / "runs" / "crc-lite-02", tmp_path / "run")
    store = tmp_path / "verdicts.db"

    def scored(provider: OddProvider, *options: str) -> tuple[int, dict, str]:
        code = run(
            [
                *("score", str(tmp_path / "run"), "--judge", "openai/judge", "--json"),
                *("--api-base", provider.url, "--store", str(store), "--no-diagnosis", "--ask-all"),
                *("--price", "1,10,0.1", *options),
            ]
        )
        said = capsys.readouterr()
        return code, json.loads(said.out), said.err

    return scored


def statuses(card: dict) -> set[str]:
    results = [result for name in ("S1", "S2", "S3") for result in card["stages"][name]["criteria"]]
    return {result["reason"] or result["status"] for result in results} - {"credited"}


def test_text_in_parts_is_an_answer_and_costs_what_is_billed(score) -> None:
    with odd_provider("parts") as provider:
        code, card, _ = score(provider)
    assert (code, statuses(card), card["judge"]["calls"]) == (0, {SCORED}, 3)
    assert card["judge"]["cost_usd"] == pytest.approx(provider.cost(PRICE), abs=1e-6)


def test_reasoning_beside_the_reply_is_part_of_the_bill(score) -> None:
    with odd_provider("reasoning beside") as provider:
        _, card, err = score(provider)
    assert card["judge"]["output_tokens"] == sum(call.output for call in provider.billed) > 4_500
    assert card["judge"]["cost_usd"] == pytest.approx(provider.cost(PRICE), abs=1e-6)
    assert f"${provider.cost(PRICE):.4f}" in err


def test_no_endpoint_for_the_form_of_the_reply_is_asked_for_less(score) -> None:
    with odd_provider("no endpoint") as provider:
        code, card, _ = score(provider)
    forms = [(body.get("response_format") or {}).get("type") for body in provider.requests]
    assert (code, statuses(card)) == (0, {SCORED})
    assert forms == ["json_schema", "json_object", None, None, None]


def test_another_model_is_kept_with_the_verdicts_and_named(score, tmp_path: Path) -> None:
    with odd_provider("other model") as provider:
        _, card, err = score(provider)
        assert err.count("cheap-fallback-1b answered, another model than the one that was") == 1
        assert card["judge"]["served_model"] == "cheap-fallback-1b"
        assert "openai/judge: the provider says that cheap-fallback-1b answered" in card["warnings"]
        _, again, _ = score(provider, "--policy", "harness")
        assert (again["judge"]["calls"], len(provider.requests)) == (0, 3)
        assert again["judge"]["served_model"] == "cheap-fallback-1b"
    with open_store(tmp_path / "verdicts.db") as store:
        assert {v.served_models for v in store.iter_verdicts()} == {("cheap-fallback-1b",)}
        with store._engine.connect() as connection:
            prints = connection.exec_driver_sql("select system_fingerprints from calls").fetchall()
    assert set(prints) == {('["fp_1"]',)}


def test_the_hint_on_a_cut_reply_names_what_helps(score, monkeypatch: pytest.MonkeyPatch) -> None:
    with odd_provider("cut below 10,000") as provider:
        code, card, _ = score(provider)
        details = {result["detail"] for result in card["stages"]["S3"]["criteria"]}
        assert (code, statuses(card)) == (1, {"truncated"})
        assert details == {
            "the reply was cut at its limit of 8,192 tokens; raise max_tokens in ambjudge.toml or"
            " AMBJUDGE_MAX_TOKENS"
        }
        monkeypatch.setenv("AMBJUDGE_MAX_TOKENS", "12000")
        code, card, _ = score(provider)
        assert (code, statuses(card)) == (0, {SCORED})


def test_what_the_provider_did_not_count_is_said_to_be_estimated(score) -> None:
    with odd_provider("no usage") as provider:
        _, card, err = score(provider)
    assert card["judge"]["estimated_calls"] == 3
    assert card["judge"]["cost_usd"] >= provider.cost(PRICE)
    assert "(3 calls estimated)" in err
