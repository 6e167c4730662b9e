"""Votes are added, never bought again: panels and samples over real HTTP and a real store."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from ambjudge.judge.base import Judge
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.panel import Panel, Samples
from ambjudge.judge.rejudge.execute import execute_plan
from ambjudge.judge.rejudge.staleness import plan_rejudge
from ambjudge.judge.session import ScoreOptions, ScoreOutcome, run_session
from ambjudge.judge.store import Store

RUN = Path(__file__).parents[1] / "data" / "recorded" / "runs" / "crc-lite-02"
QUESTIONS = 4


def member(server, name: str, **options) -> ApiJudge:
    return ApiJudge(name, server.url, retry=Retry(attempts=1), images=False, **options)


def judge_of(server, names: str, samples: int = 1, **options) -> Judge:
    """`a+b`: a panel of two; `samples` of each."""
    judges: list[Judge] = [member(server, name, **options) for name in names.split("+")]
    if samples > 1:
        judges = [Samples(judge, samples) for judge in judges]
    return Panel(judges) if len(judges) > 1 else judges[0]


STEPS = [
    pytest.param([("a", 1), ("a+b+c", 1)], {"b": 1, "c": 1}, id="a panel of a judge asked before"),
    pytest.param([("a", 1), ("a", 3)], {"a": 2}, id="more samples"),
    pytest.param([("a", 3), ("a", 1)], {}, id="fewer samples"),
    pytest.param([("a", 3), ("a", 2), ("a", 5)], {"a": 2}, id="more samples again"),
    pytest.param([("a+b+c", 1), ("a+b+d", 1)], {"d": 1}, id="one member exchanged"),
    pytest.param([("a+b", 1), ("b+a", 1)], {}, id="members in another order"),
    pytest.param([("a+b", 1), ("b", 1)], {}, id="a member alone"),
    pytest.param([("a", 2), ("b", 1), ("a+b", 3)], {"a": 1, "b": 2}, id="samples of members"),
]


@pytest.mark.parametrize("planned", [False, True], ids=["score", "rejudge"])
@pytest.mark.parametrize(("steps", "last_requests"), STEPS)
async def test_only_votes_that_are_missing_are_asked_for(
    store: Store, tmp_path: Path, judge_server, steps, last_requests, planned: bool
) -> None:
    judge_server.script = ["good", "lowest", "good", "lowest", "lowest"]
    run = shutil.copytree(RUN, tmp_path / "run")
    paths = list(run.rglob("conversation.json"))
    cards = []
    for names, samples in steps:
        judge = judge_of(judge_server, names, samples, temperature=0.7)
        judge_server.requests.clear()
        plan = plan_rejudge(store, paths, judge)
        if planned:
            await execute_plan(plan, store, judge, signals=False)
            assert len(judge_server.requests) == plan.calls
        outcomes: list[ScoreOutcome] = []
        await run_session(paths, judge, ScoreOptions(), outcomes.append, store=store, signals=False)
        assert len(judge_server.requests) == plan.calls, "as many calls as were planned"
        cards.append(outcomes[0].card)
        after = plan_rejudge(store, paths, judge)
        assert (after.calls, after.current) == (0, plan.current + plan.stale)
    asked = Counter(body["model"] for body in judge_server.requests)
    assert asked == {name: QUESTIONS * votes for name, votes in last_requests.items()}
    votes = [result.votes for result in cards[-1].stages["S1"].criteria if result.votes]
    names, samples = steps[-1]
    expected = [(name, n) for name in names.split("+") for n in range(samples)]
    if len(expected) > 1:
        assert votes
        assert all([(vote.judge, vote.sample) for vote in each] == expected for each in votes)
