"""Many jobs at once: bounded, stoppable, paced and within the budget."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter

import pytest
from ambjudge.errors import ConfigError, JudgeError
from ambjudge.judge.base import Estimate, Reply, Request, Usage
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.judges import limits as pacing
from ambjudge.judge.judges.limits import (
    Budget,
    GuardedJudge,
    MinuteLimit,
    Pacer,
    PlannedCall,
    SharedBudget,
)
from ambjudge.judge.runner import run_batch
from ambjudge.rubrics.load import load_rubric

RUBRIC = load_rubric("segmentation")


async def nap(job: int) -> int:
    await asyncio.sleep(0.001)
    return job * 2


async def collect(jobs, call=nap, **options):
    results = []
    summary = await run_batch(
        jobs, call, on_result=lambda job, result: results.append((job, result)), **options
    )
    return summary, results


async def _async_jobs():
    for job in range(30):
        await asyncio.sleep(0)
        yield job


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param(lambda: list(range(30)), id="list"),
        pytest.param(lambda: iter(range(30)), id="iterator"),
        pytest.param(lambda: (n for n in range(30)), id="generator"),
        pytest.param(_async_jobs, id="asynchronous"),
    ],
)
@pytest.mark.parametrize("concurrency", [1, 7, 100])
async def test_every_job_is_called_once(jobs, concurrency):
    summary, results = await collect(jobs(), concurrency=concurrency)
    assert sorted(results) == [(n, 2 * n) for n in range(30)]
    assert (summary.done, summary.abandoned, summary.interrupted) == (30, 0, False)
    assert summary.peak <= concurrency


async def test_jobs_are_read_only_a_little_ahead():
    started, done = 0, 0
    most = 0

    def jobs():
        nonlocal started, most
        for n in range(300):
            started += 1
            most = max(most, started - done)
            yield n

    async def call(job: int) -> None:
        nonlocal done
        await asyncio.sleep(0.0005)
        done += 1

    await run_batch(jobs(), call, concurrency=5)
    assert (started, done) == (300, 300)
    assert most <= 5 + 5 + 2


async def test_progress_counts_and_ends_at_the_total():
    progress = []
    await run_batch(range(50), nap, concurrency=5, total=50, on_progress=progress.append)
    assert [p.done for p in progress] == list(range(51))


@pytest.mark.parametrize("where", ["call", "on_result", "jobs"])
async def test_a_failure_stops_the_batch_after_the_calls_under_way(where):
    ended = []

    def jobs():
        for n in range(100):
            if where == "jobs" and n == 10:
                raise JudgeError("no")
            yield n

    async def call(job: int) -> int:
        await asyncio.sleep(0.002)
        if where == "call" and job == 10:
            raise JudgeError("no")
        ended.append(job)
        return job

    def on_result(job: int, result: int) -> None:
        if where == "on_result" and job == 10:
            raise JudgeError("no")

    with pytest.raises(JudgeError, match="no"):
        await run_batch(jobs(), call, concurrency=5, on_result=on_result)
    # Jobs that were read ahead but not started when reading failed are left out, like after a
    # Ctrl-C.
    assert (5 if where == "jobs" else 10) <= len(ended) < 40


async def test_the_first_ctrl_c_drains_and_keeps():
    results = []
    handler = signal.getsignal(signal.SIGINT)

    async def call(job: int) -> int:
        if job == 20:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        return job

    summary = await run_batch(
        range(200), call, concurrency=8, on_result=lambda job, _: results.append(job)
    )
    assert summary.interrupted
    assert summary.abandoned == 0
    assert summary.done == len(results)
    assert set(range(21)) <= set(results)
    assert len(results) <= 20 + 8
    assert signal.getsignal(signal.SIGINT) == handler


async def test_the_second_ctrl_c_abandons():
    async def call(job: int) -> int:
        if job == 3:
            os.kill(os.getpid(), signal.SIGINT)
            asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.001 if job < 3 else 60)
        return job

    summary = await asyncio.wait_for(run_batch(range(200), call, concurrency=4), 10)
    assert summary.interrupted
    assert summary.done == 3
    assert 1 <= summary.abandoned <= 4


def test_it_runs_in_a_thread_too():
    out = []
    thread = threading.Thread(target=lambda: out.append(asyncio.run(run_batch(range(5), nap))))
    thread.start()
    thread.join(10)
    assert out[0].done == 5


# Pacing.


async def _run_paced(pacer: Pacer, calls: int, work) -> None:
    async def one(n: int) -> None:
        async with pacer.slot():
            await work(n)

    await asyncio.gather(*(one(n) for n in range(calls)))


async def test_the_pacer_falls_once_a_round_and_grows_back():
    pacer = Pacer(40)
    hit = True

    async def work(n: int) -> None:
        await asyncio.sleep(0.001)
        if hit:
            pacing.throttled()

    await _run_paced(pacer, 40, work)
    assert pacer.limit == 20
    assert pacer.throttles == 40
    await _run_paced(pacer, 200, work)
    assert 1 <= pacer.limit < 20
    low, hit = pacer.limit, False
    await _run_paced(pacer, 100, work)
    assert low < pacer.limit <= 40
    await _run_paced(pacer, 800, work)
    assert pacer.limit == 40
    assert pacer.running == 0


async def test_the_pacer_never_exceeds_its_limit():
    pacer = Pacer(10)
    order = random.Random(4)

    async def work(n: int) -> None:
        assert pacer.running <= 10
        if order.random() < 0.1:
            pacing.throttled()
        await asyncio.sleep(order.uniform(0, 0.002))
        if order.random() < 0.1:
            raise ValueError

    async def one(n: int) -> None:
        try:
            async with pacer.slot():
                await work(n)
        except ValueError:
            pass

    tasks = [asyncio.create_task(one(n)) for n in range(300)]
    await asyncio.sleep(0.01)
    for task in tasks[100:200:3]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert pacer.running == 0
    assert pacer.peak <= 10
    async with pacer.slot():
        assert pacer.running == 1


async def test_retry_after_holds_new_calls_back():
    pacer = Pacer(2)
    async with pacer.slot():
        pacing.throttled(0.05)
    began = time.monotonic()
    async with pacer.slot():
        assert time.monotonic() - began >= 0.045


@pytest.mark.parametrize("cap", [0, -1])
def test_a_pacer_needs_room(cap):
    with pytest.raises(ConfigError):
        Pacer(cap)


# Budget.


class PricedJudge:
    """Costs between a tenth and the whole of its estimate; counts what it really spent."""

    name, members, prompt_sha256, parameters = "priced", (), None, {}

    def __init__(self, worst: float | None = 0.10, fail: bool = False) -> None:
        self.worst, self.fail = worst, fail
        self.spent, self.calls, self.random = 0.0, 0, random.Random(7)

    def evidence_sha256(self, request: Request) -> str:
        return "e"

    def estimate(self, request: Request) -> Estimate:
        return Estimate(Usage(1, 1, 1, 0.0), Usage(1, 1, 1, self.worst))

    async def judge(self, request: Request) -> Reply:
        self.calls += 1
        cost = self.worst * self.random.uniform(0.1, 1.0)
        self.spent += cost
        await asyncio.sleep(self.random.uniform(0, 0.003))
        if self.fail:
            raise JudgeError("gone")
        return Reply(
            tuple(CriterionResult(id=c.id, value=1.0, status="scored") for c in request.criteria),
            Usage(1, 1, 1, cost),
        )


def request(number: int = 0) -> Request:
    return Request(None, None, RUBRIC, "S3", RUBRIC.criteria("S3"), number)


@pytest.mark.parametrize("cap", [0.0, 0.05, 0.1, 1.0, 3.33])
@pytest.mark.parametrize("concurrency", [1, 50])
async def test_the_cap_is_never_exceeded(cap, concurrency):
    judge = PricedJudge()
    guarded = GuardedJudge(judge, Pacer(concurrency), Budget(cap))
    replies = []
    jobs = [request(n) for n in range(100)]
    await run_batch(
        jobs,
        guarded.judge,
        concurrency=concurrency,
        on_result=lambda _, reply: replies.append(reply),
    )
    assert judge.spent <= cap + 1e-9
    assert guarded.budget.spent == pytest.approx(judge.spent)
    assert guarded.budget.reserved == 0
    reasons = Counter(reply.results[0].reason for reply in replies)
    assert reasons[None] == judge.calls
    assert reasons["budget"] == 100 - judge.calls
    # Nothing is refused while a worst case would still fit.
    assert judge.calls == 100 or cap - judge.spent < 0.1


async def test_a_budget_needs_a_price():
    guarded = GuardedJudge(PricedJudge(worst=None), Pacer(2), Budget(1.0))
    with pytest.raises(ConfigError, match="price of priced is unknown"):
        await guarded.judge(request())
    with pytest.raises(ConfigError):
        Budget(float("nan"))
    with pytest.raises(ConfigError):
        Budget(-1)


async def test_a_call_that_died_counts_as_its_worst_case():
    guarded = GuardedJudge(PricedJudge(fail=True), Pacer(2), Budget(1.0))
    with pytest.raises(JudgeError):
        await guarded.judge(request())
    assert guarded.budget.spent == 0.1
    task = asyncio.create_task(
        GuardedJudge(PricedJudge(), guarded.pacer, guarded.budget).judge(request())
    )
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.01)
    assert guarded.budget.reserved == 0
    assert guarded.pacer.running == 0


async def test_without_a_budget_nothing_is_estimated():
    guarded = GuardedJudge(judge := PricedJudge(), Pacer(2))
    assert (await guarded.judge(request())).results[0].value == 1.0
    assert judge.calls == 1


async def test_no_minute_holds_more_than_its_limit():
    now, began = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    minute = MinuteLimit(10, clock=lambda: now, sleep=sleep)
    amounts = [3, 3, 3, 1, 5, 12, 1, 4, 6, 2]
    for amount in amounts:
        await minute.take(amount)
        began.append((now, amount))
        now += 1.0
    for start, first in began:
        assert sum(amount for moment, amount in began if start <= moment < start + 60) <= max(
            10, first
        )
    assert began[3][0] == 3.0, "what fits is not kept waiting"
    minute.add(7)  # a retry that nobody foresaw counts too
    await minute.take(10)
    assert now >= began[-1][0] + 61
    with pytest.raises(ConfigError):
        MinuteLimit(0)


async def test_a_call_beyond_the_minute_waits_and_reserves_nothing_when_it_is_given_up():
    guarded = GuardedJudge(
        judge := PricedJudge(), Pacer(3), Budget(calls_per_minute=2, tokens_per_minute=1e6)
    )
    for number in range(2):
        await guarded.judge(request(number))
    third = asyncio.create_task(guarded.judge(request(2)))
    await asyncio.sleep(0.02)
    assert (third.done(), judge.calls) == (False, 2)
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    assert (guarded.budget.reserved, guarded.budget.spent) == (0.0, judge.spent)


async def test_what_a_dead_asker_had_under_way_counts_as_its_worst_case():
    accounts = SharedBudget(Budget(1.0))
    call, dear = PlannedCall(0.4), PlannedCall(0.7)
    assert (await accounts.reserve("a", call)).call == call
    assert (await accounts.reserve("b", call)).call == call
    waiting = asyncio.create_task(accounts.reserve("c", dear))
    await asyncio.sleep(0)
    await accounts.settle("b", call, Usage(calls=1, cost_usd=0.1))
    await accounts.forfeit("a")
    refused = await waiting
    assert refused.call is None
    assert refused.refusal == (
        "not asked: a single call may cost up to $0.70; $0.50 of $1.00 is unspent (--max-cost)"
    )
    await accounts.settle("a", call, Usage(calls=1, cost_usd=0.0))  # too late to be believed
    assert (accounts.budget.spent, accounts.budget.reserved) == (0.5, 0.0)
