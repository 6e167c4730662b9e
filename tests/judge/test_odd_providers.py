"""Providers that are OpenAI-compatible in letter only, called directly and through litellm.

No good answer is lost, every call is booked at what the provider charges or more, and a cost limit
holds by the provider's own count and is used.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.errors import JudgeError
from ambjudge.judge.base import Reply
from ambjudge.judge.engine import prepare
from ambjudge.judge.judges.api.circuit_breaker import CircuitBreaker
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.trajectories.reading.load import load_run
from odd_provider import BEHAVIOURS, STOPPED, OddProvider, odd_provider

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
PRICE = Price(1.0, 10.0, "", "", cached=0.1)
WAYS = {"direct": "openai/judge", "litellm": "hosted_vllm/judge"}


def judge_at(provider: OddProvider, way: str, **options) -> ApiJudge:
    defaults = {
        "retry": Retry(attempts=3, total_s=30, first_s=0.01, longest_s=0.02),
        "timeout": 2.0,
        "price": PRICE,
        "breaker": CircuitBreaker(max_failures=1_000),
    }
    return ApiJudge(WAYS[way], provider.url, **{**defaults, **options})


@pytest.fixture(scope="module")
def prepared():
    return prepare(load_run(RECORDED / "runs" / "crc-lite-02"))


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
