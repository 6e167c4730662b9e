"""What a plan expects beside what a provider counts and bills."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.judge.base import Reply, Request, Usage
from ambjudge.judge.card.stage_results import unscored
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.panel import Samples
from ambjudge.judge.rejudge.execute import execute_plan
from ambjudge.judge.rejudge.staleness import RejudgePlan, plan_rejudge
from ambjudge.judge.store import Store

RUNS = ("crc-lite-02", "crc-std-01")
PRICE = Price(1.25, 10.0, "test", "2026-01-01", cached=0.125)


def judge_at(server, price: Price = PRICE, **options) -> ApiJudge:
    options = {"retry": Retry(attempts=1), "images": False, **options}
    return ApiJudge("openai/good", server.url, price=price, **options)


async def judged(store: Store, runs: list[Path], judge) -> tuple[RejudgePlan, Usage]:
    """The plan, and what its calls used."""
    plan = plan_rejudge(store, runs, judge)
    return plan, (await execute_plan(plan, store, judge, signals=False)).usage


async def test_a_forecast_is_the_same_twice_and_near_the_bill(
    judge_server, loopback, store: Store, runs: list[Path]
) -> None:
    judge_server.cache = loopback.PromptCache()
    first, _ = await judged(store, runs[:1], judge_at(judge_server))
    assert (first.read, first.calls) == (1, 4)
    warmer = judge_at(judge_server, temperature=0.5)
    read = plan_rejudge(store, runs[:1], warmer)
    again = plan_rejudge(store, runs[:1], warmer)
    assert (read.read, again.read) == (1, 0)
    assert read.estimate == again.estimate, "whether or not runs were read"
    judge_server.cache = loopback.PromptCache()
    _, used = await judged(store, runs[:1], warmer)
    estimate = again.estimate
    assert estimate.expected.cost_usd == pytest.approx(used.cost_usd, rel=0.2)
    assert estimate.low.cost_usd <= used.cost_usd <= estimate.high.cost_usd
    assert estimate.expected.cached_tokens == pytest.approx(used.cached_tokens, rel=0.2)


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        ({"price": Price(12.5, 100.0, "test", "2026-01-01", cached=1.25)}, 10),
        ({"batch": True}, 0.5),
    ],
    ids=["price in force", "batch rate"],
)
async def test_a_forecast_asks_the_price_in_force(
    judge_server, store: Store, runs: list[Path], change: dict, factor: float
) -> None:
    """No cache is expected of a provider that counts none, nor of a batch."""
    await judged(store, runs, judge_at(judge_server))
    batch = change.pop("batch", False)
    usual = plan_rejudge(store, runs, judge_at(judge_server, temperature=0.5))
    changed = plan_rejudge(
        store, runs, judge_at(judge_server, temperature=0.5, **change), batch=batch
    )
    expected = usual.estimate.expected.cost_usd
    assert changed.estimate.expected.cost_usd == pytest.approx(factor * expected, rel=0.01)


async def test_failed_calls_are_no_calls_of_no_tokens(
    judge_server, store: Store, runs: list[Path]
) -> None:
    judge_server.script = ["500"]
    judge = judge_at(judge_server)
    before, _ = await judged(store, runs, judge)
    after = plan_rejudge(store, runs, judge)
    assert after.calls == before.calls == 8
    assert after.estimate == before.estimate


async def test_samples_are_calls_and_a_limit_covers_some(
    judge_server, store: Store, runs: list[Path]
) -> None:
    plan = plan_rejudge(store, runs, Samples(judge_at(judge_server), 3))
    assert (plan.questions, plan.calls, plan.estimate.expected.calls) == (8, 24, 24)
    cost = plan.estimate.expected.cost_usd
    assert [plan.calls_within(part * cost) for part in (0.0, 1.01)] == [0, 24]
    assert 0 < plan.calls_within(cost / 2) < 24


class Unpriced:
    """A judge of a package that says what its calls cost at the least and the most."""

    name, members, prompt_sha256, parameters = "unpriced", (), None, {"version": 1}

    def evidence_sha256(self, request: Request) -> str:
        return request.run.content_sha256

    def estimate(self, request: Request):
        from ambjudge.judge.base import Estimate

        return Estimate(Usage(1, 100, 10, 0.01), Usage(2, 300, 30, 0.03))

    async def judge(self, request: Request) -> Reply:
        return Reply(unscored(request.criteria, "judge_error", "never asked"))


def test_a_judge_that_knows_only_bounds_is_expected_between_them(
    store: Store, runs: list[Path]
) -> None:
    plan = plan_rejudge(store, runs, Unpriced())
    assert plan.estimate.point.cost_usd == pytest.approx(0.02 * plan.calls)
    assert plan.estimate.point.input_tokens == 200 * plan.calls
