"""A whole batch through litellm against a server that fails a fifth of the time: all scored or
unscored with a reason, nothing scored that the model did not say, and the cost limit holds."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from ambjudge.judge.judges.api.circuit_breaker import CircuitBreaker
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.limits import Budget
from ambjudge.judge.questions.items import PLAN_ITEM, QuestionSet
from ambjudge.judge.rejudge.execute import execute_plan
from ambjudge.judge.rejudge.staleness import plan_rejudge
from ambjudge.judge.scope import Scope
from ambjudge.judge.store import open_store
from ambjudge.trajectories.reading.layout import find_conversations
from ambjudge.trajectories.reading.load import load_run
from stored import spent

PRICE = Price(input=1.0, output=10.0, source="test", date="2026-01-01")
FAILURES = [
    "429:0.01",
    "429",
    "500",
    "503",
    "slow:1.2",
    "length",
    "malformed",
    "prose",
    "reset",
    "refusal",
    "out_of_scale",
]
RUNS = 20
QUESTIONS = 4
EVERYTHING = Scope(questions=QuestionSet(ask_all=True))
"""S1, S2, S3 and the diagnosis."""


def make_judge(server, retry: Retry | None = None) -> ApiJudge:
    return ApiJudge(
        "openai/good",
        server.url,
        evidence_budget=8_000,
        timeout=1.0,
        price=PRICE,
        retry=retry or Retry(attempts=4, first_s=0.01, longest_s=0.05),
        breaker=CircuitBreaker(max_failures=1_000),
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    for number in range(RUNS):
        path = tmp_path / "runs" / f"r{number:03d}" / "conversation.json"
        path.parent.mkdir(parents=True)
        words = (
            f"Plan number {number}: a pretrained network, one pilot case first, then all of the"
            " cases."
        )
        messages = [
            {"role": "system", "content": "Segment."},
            {"role": "assistant", "content": words},
        ]
        path.write_text(
            json.dumps({"task": "kidney-seg-task", "tier": "standard", "messages": messages})
        )
    return tmp_path


def assert_said(store, says_highest) -> None:
    """Every scored value is the one that the server stands for, which differs by run and
    criterion."""
    lines = {run.ref: load_run(run.path).turns[0].text for run in store.iter_runs()}
    values = Counter()
    for verdict in store.iter_verdicts():
        if verdict.result.status == "scored" and verdict.key.criterion_id != PLAN_ITEM:
            said = says_highest(lines[verdict.run_ref], verdict.key.criterion_id)
            assert verdict.result.value == float(said), (verdict.run_ref, verdict.key.criterion_id)
            values[verdict.result.value] += 1
    assert set(values) == {0.0, 1.0}


async def test_a_fifth_of_failures(folder, judge_server, loopback):
    chance = random.Random(11)
    judge_server.script = [
        f"{chance.choice(FAILURES) if chance.random() < 0.2 else 'good'}@run" for _ in range(2_000)
    ]
    with open_store(folder / "s.db") as store:
        judge = make_judge(judge_server)
        paths = list(find_conversations(folder / "runs"))
        first = plan_rejudge(store, paths, judge, EVERYTHING)
        done = await execute_plan(first, store, judge, concurrency=16, signals=False)
        assert (done.summary.done, first.calls) == (RUNS, QUESTIONS * RUNS)
        assert done.scored + done.unscored.total() == first.stale
        assert set(done.unscored) <= {"judge_error", "truncated", "unparsable", "refused"}
        assert done.throttles > 0
        assert_said(store, loopback.says_highest)
        for _ in range(6):
            again = plan_rejudge(store, paths, judge, EVERYTHING)
            if not again.calls:
                break
            assert {why for need in again.needs for why in need.reasons.values()} == {("failed",)}
            await execute_plan(again, store, judge, concurrency=16, signals=False)
        final = list(store.iter_verdicts())
        assert_said(store, loopback.says_highest)
        assert len(final) == first.stale
        assert {v.result.reason for v in final} <= {None, "refused"}
        # A try that timed out while it was still connecting is a call of ours that the server never
        # saw.
        assert judge_server.count <= spent(store).calls <= judge_server.count * 1.1


async def test_the_cost_limit_holds(folder, judge_server):
    judge_server.script = ["good"]
    judge = make_judge(judge_server)
    with open_store(folder / "s.db") as store:
        planned = plan_rejudge(store, find_conversations(folder / "runs"), judge, EVERYTHING)
        cap = 0.3
        assert planned.estimate.high.cost_usd > cap
        done = await execute_plan(
            planned, store, judge, concurrency=16, budget=Budget(cap), signals=False
        )
        assert 0 < done.usage.cost_usd <= cap
        assert done.unscored["budget"] + done.scored == planned.stale
        again = plan_rejudge(store, find_conversations(folder / "runs"), judge, EVERYTHING)
        assert again.stale == done.unscored["budget"]
