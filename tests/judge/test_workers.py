"""Several processes score what one does, to the byte, and whoever kills one of them loses
nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ambjudge.commands.shards import Shard
from ambjudge.errors import ConfigError
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.rejudge.execute import Spending
from ambjudge.judge.rejudge.staleness import plan_rejudge
from ambjudge.judge.rejudge.update import update_collection, without_calls
from ambjudge.judge.select import JudgeOptions, make_judge
from ambjudge.judge.session import ScoreOptions, ScoreOutcome, collect_cards, run_session
from ambjudge.judge.spread.workers import Worker, WorkerPool, WorkerSettings
from ambjudge.judge.store import open_store
from loopback_server import completion_of

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
OPTIONS = ScoreOptions(public=RUNS.parent / "public")


def test_the_shares_of_shards_are_no_more_than_the_whole():
    options = ScoreOptions(max_cost=1.0, concurrency=8)
    assert Shard(2, 4).share(options).max_cost == 0.25
    assert Shard(2, 4).share(OPTIONS) == OPTIONS
    assert (
        WorkerPool(3, WorkerSettings(options)).concurrency,
        WorkerPool(3, WorkerSettings(options, ("openai/x",))).concurrency,
    ) == (3, 9)


async def test_two_workers_give_what_one_process_gives_though_one_is_killed(tmp_path):
    shutil.copytree(RUNS, tmp_path / "runs")
    (tmp_path / "runs" / "bad").mkdir()
    (tmp_path / "runs" / "bad" / "conversation.json").write_text("[1")
    expected: list[ScoreOutcome] = []
    await run_session([tmp_path / "runs"], RulesJudge(), OPTIONS, expected.append, signals=False)
    with open_store(tmp_path / "s.db") as store:
        work, outcomes = WorkerSettings(OPTIONS, store=(store.address, store.root)), []

        def take(outcome: ScoreOutcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == 3:
                os.kill(pool.pids[0], signal.SIGKILL)

        async with WorkerPool(2, work) as pool:
            before = pool.pids
            session = await collect_cards(pool, [tmp_path / "runs"], take, signals=False)
            after = pool.pids
        stored_cards = sum(1 for _ in store.iter_cards())
    assert [o.path for o in outcomes] == [o.path for o in expected]
    assert [o.card and o.card.to_json() for o in outcomes] == [
        o.card and o.card.to_json() for o in expected
    ]
    assert [str(o.error) for o in outcomes] == [str(o.error) for o in expected]
    assert (session.summary.done, stored_cards) == (len(expected), len(expected) - 1)
    assert (before[1], before[0] in after) == (after[1], False)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
async def test_workers_ask_what_a_plan_lacks_though_one_is_killed(tmp_path, judge_server, engine):
    """`rejudge` and `ask`: every verdict once, scorecards as one process gives them."""
    engine_of = None
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'ambjudge[ray]'")
        from ambjudge.judge.spread.ray_workers import RayCluster as engine_of
    for name in ("crc-lite-01", "crc-lite-02", "kidney-lite-01", "vqa-lite-01"):
        shutil.copytree(RUNS / name, tmp_path / "runs" / name)
    judge_server.script = ["slow:0.2"]
    names, judge_options = ("openai/good",), JudgeOptions(api_base=judge_server.url)
    judge, paths = (
        make_judge(names, judge_options),
        sorted((tmp_path / "runs").rglob("conversation.json")),
    )
    expected: list[ScoreOutcome] = []
    await run_session(paths, judge, OPTIONS, expected.append, signals=False)
    judge_server.requests.clear()
    with open_store(tmp_path / "s.db") as store:
        planned = plan_rejudge(store, paths, judge, OPTIONS.scope())
        work = WorkerSettings(
            without_calls(OPTIONS), names, judge_options, (store.address, store.root)
        )
        killed: list[Worker] = []

        def kill(spending: Spending) -> None:
            if spending.progress.done and not killed:
                killed.append(pool._workers[0])
                pool._workers[0].end() if engine == "ray" else os.kill(pool.pids[0], signal.SIGKILL)

        async with WorkerPool(2, work, engine_of) as pool:
            done = await update_collection(
                planned, store, judge, OPTIONS, scorer=pool, on_calls=kill
            )
        calls_left = plan_rejudge(store, paths, judge, OPTIONS.scope()).calls
        verdicts = [
            (verdict.run_ref, verdict.key.criterion_id) for verdict in store.iter_verdicts()
        ]
        cards = [next(store.cards(run.path)) for run in done.runs]
    assert (len(killed), len(done.runs), done.errors, calls_left) == (1, 4, (), 0)
    assert len(verdicts) == len(set(verdicts)) == planned.stale
    assert planned.calls <= len(judge_server.requests) <= planned.calls + 8
    assert list(map(values, cards)) == [values(outcome.card) for outcome in expected]


def values(card: ScoreCard) -> list[tuple[str, float | None]]:
    return [
        (result.id, result.value) for stage in card.stages.values() for result in stage.criteria
    ]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
async def test_workers_share_one_budget(tmp_path, judge_server, engine):
    """Whoever comes first spends it, and nobody beyond it."""
    engine_of = None
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'ambjudge[ray]'")
        from ambjudge.judge.spread.ray_workers import RayCluster as engine_of
    for name in ("crc-lite-01", "crc-lite-02", "kidney-lite-01", "vqa-lite-01"):
        shutil.copytree(RUNS / name, tmp_path / "runs" / name)
    judge_server.script = ["good"]
    options = replace(OPTIONS, max_cost=0.08, concurrency=4)
    work = WorkerSettings(
        options, ("openai/test",), JudgeOptions(api_base=judge_server.url, price="1,5")
    )
    outcomes: list[ScoreOutcome] = []
    async with WorkerPool(2, work, engine_of) as pool:
        session = await collect_cards(pool, [tmp_path / "runs"], outcomes.append, signals=False)
    reasons = {
        r.reason for o in outcomes for stage in o.card.stages.values() for r in stage.criteria
    }
    assert (len(outcomes), "budget" in reasons) == (4, True)
    assert 0 < session.usage.cost_usd <= 0.08


@pytest.mark.slow
async def test_ray_gives_what_one_process_gives_though_a_worker_is_killed(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ambjudge[ray]'")
    from ambjudge.judge.spread.ray_workers import RayCluster

    expected: list[ScoreOutcome] = []
    await run_session([RUNS], RulesJudge(), OPTIONS, expected.append, signals=False)
    with open_store(tmp_path / "s.db") as store:
        work, outcomes = WorkerSettings(OPTIONS, store=(store.address, store.root)), []

        def take(outcome: ScoreOutcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == 3:
                pool._workers[0].end()

        async with WorkerPool(2, work, RayCluster) as pool:
            await collect_cards(pool, [RUNS], take, signals=False)
        stored_cards = sum(1 for _ in store.iter_cards())
    assert [o.card and o.card.to_json() for o in outcomes] == [
        o.card and o.card.to_json() for o in expected
    ]
    assert stored_cards == len(expected)


@pytest.mark.slow
async def test_ray_that_dies_under_its_workers_is_an_error_and_no_endless_wait(
    tmp_path, judge_server
):
    """Ray lets whoever waits for an actor wait on when its own raylet is gone."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ambjudge[ray]'")
    from ambjudge.judge.spread.ray_workers import RayCluster

    judge_server.script = ["slow:30"]
    work = WorkerSettings(OPTIONS, ("openai/good",), JudgeOptions(api_base=judge_server.url))
    async with WorkerPool(2, work, RayCluster) as pool:
        subprocess.run(["pkill", "-KILL", "-P", str(os.getpid()), "-x", "raylet"], check=True)
        with pytest.raises(ConfigError, match="Ray ended on this machine"):
            await collect_cards(pool, [RUNS], lambda outcome: None, signals=False)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["workers", "shards", "ray", "s3"])
def test_a_group_that_was_killed_midway_goes_on(way):
    """At small size; `benchmarks/killed.py` alone takes 10,000 runs."""
    for module in {"ray": ("ray",), "s3": ("s3fs", "moto.server")}.get(way, ()):
        pytest.importorskip(module, reason=f"{module} is not installed")
    script = Path(__file__).parents[2] / "benchmarks" / "killed.py"
    command = [sys.executable, str(script), "--runs", "60", "--ways", way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True], ids=["all live", "one is killed"])
async def test_workers_together_never_spend_more_than_the_limit(tmp_path, judge_server, kill):
    """As the provider counts it: every request that it answered, those of a killed worker too."""
    shutil.copytree(RUNS, tmp_path / "runs")
    judge_options = JudgeOptions(api_base=judge_server.url, price="100,400")

    async def scored(limit: float | None) -> tuple[float, list[ScoreOutcome]]:
        judge_server.requests.clear()
        outcomes: list[ScoreOutcome] = []

        def take(outcome: ScoreOutcome) -> None:
            outcomes.append(outcome)
            if kill and len(outcomes) == 3:
                os.kill(pool.pids[0], signal.SIGKILL)

        options = ScoreOptions(max_cost=limit, concurrency=6)
        async with WorkerPool(2, WorkerSettings(options, ("openai/good",), judge_options)) as pool:
            await collect_cards(pool, [tmp_path / "runs"], take, signals=False)
        usages = [completion_of("good", body)["usage"] for body in judge_server.requests]
        return (
            sum(100 * u["prompt_tokens"] + 400 * u["completion_tokens"] for u in usages) / 1e6,
            outcomes,
        )

    full_cost, _ = await scored(None)
    spent, outcomes = await scored(full_cost / 2)
    criteria = [
        r for o in outcomes if o.card for stage in o.card.stages.values() for r in stage.criteria
    ]
    assert full_cost / 8 < spent <= full_cost / 2
    assert len(outcomes) == 15
    assert any(result.reason == "budget" for result in criteria)
    assert any(result.status == "scored" for result in criteria)
