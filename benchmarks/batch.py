"""What a judge call costs, how close many at once come to the ideal, and what kill -9 costs;
against a loopback server.

    python benchmarks/batch.py [--calls 1500] [--concurrency 100] [--latency 1.0] [--workers 1]
    [--kills 50] [--faults 0.2] [--quiet 600]

A call's cost is the CPU that scoring recorded runs by a model at a named address takes beyond
scoring them by rules without a store, a call: record, quotes, request, answer and a new store
included (target 10 ms). Then the wall time of so many calls at once, through the same, against the
ideal (calls / concurrency x latency; target 1.3 x); with `--workers` in so many processes, whose
start counts. Both servers are other processes. With `--faults` a share of replies fails in eleven
ways (rate limits, errors, timeouts, cut, malformed, refused), run again until nothing is left to
try; then the calls made in excess of the minimum when a batch is killed again and again (target: at
most the calls under way at the kills). `--quiet`: wait so many seconds for a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ambjudge.judge.base import Judge, is_criteria
from ambjudge.judge.judges.limits import Budget
from ambjudge.judge.questions.items import diagnosis_items
from ambjudge.judge.rejudge.execute import execute_plan
from ambjudge.judge.rejudge.staleness import plan_rejudge
from ambjudge.judge.select import JudgeOptions
from ambjudge.judge.session import (
    ScoreOptions,
    ScoreOutcome,
    SessionTotals,
    collect_cards,
    run_session,
)
from ambjudge.judge.spread.workers import WorkerPool, WorkerSettings
from ambjudge.judge.store import Store, open_store
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.layout import find_conversations
from ambjudge.trajectories.reading.load import load_run
from targets import against, wait_until_quiet

TESTS = Path(__file__).parents[1] / "tests" / "helpers"
RUNS = TESTS.parent / "data" / "recorded" / "runs"
QUESTIONS = 4
"""Of a run: S1-S3 and the diagnosis."""
ITEMS = len(load_rubric("segmentation").criteria()) + len(diagnosis_items("segmentation"))


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"ambjudge_bench_{name}", TESTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


http = load("http_judge")
sound = load("stored").sound


def say(what: str, seconds: float, ideal: float) -> None:
    print(f"{what:<56} {seconds:7.2f} s = {seconds / ideal:.3f} x ideal {ideal:.1f} s", flush=True)


def copies(folder: Path, count: int) -> list[Path]:
    """Copies of the recorded runs, each with a sentence of its own, so that nothing is asked
    twice."""
    for number, run in enumerate(islice(cycle(sorted(RUNS.iterdir())), count)):
        place = folder / f"{number:04}-{run.name}"
        shutil.copytree(run, place)
        (file,) = place.rglob("conversation.json")
        said = json.loads(file.read_text())
        messages = said["messages"] if isinstance(said, dict) else said
        message = next(
            m for m in messages if m["role"] == "assistant" and isinstance(m.get("content"), str)
        )
        message["content"] += f" (copy {number})"
        file.write_text(json.dumps(said))
    return sorted(folder.iterdir())


@contextmanager
def model(behaviour: str) -> Iterator[str]:
    """A loopback model in a process of its own; its address."""
    command = [sys.executable, str(TESTS / "loopback_server.py"), "--script", behaviour]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


def scored(
    paths: list[Path], judge: Judge, concurrency: int, store: Store | None = None
) -> tuple[float, float, int]:
    """Seconds of CPU, seconds of wall time, calls."""
    options = ScoreOptions(concurrency=concurrency)
    return _timed(
        paths, lambda take: run_session(paths, judge, options, take, store=store, signals=False)
    )


def spread(
    paths: list[Path], url: str, concurrency: int, workers: int, store: Store
) -> tuple[float, float, int]:
    """The same in several processes."""
    place, how = (store.address, store.root), JudgeOptions(api_base=url)
    work = WorkerSettings(ScoreOptions(concurrency=concurrency), ("openai/good",), how, place)

    async def score(take: Callable[[ScoreOutcome], None]) -> SessionTotals:
        async with WorkerPool(workers, work) as pool:
            return await collect_cards(pool, paths, take, signals=False)

    return _timed(paths, score)


def _timed(
    paths: list[Path],
    score: Callable[[Callable[[ScoreOutcome], None]], Coroutine[Any, Any, SessionTotals]],
) -> tuple[float, float, int]:
    outcomes: list[ScoreOutcome] = []
    began, used = time.perf_counter(), _cpu()
    session = asyncio.run(score(outcomes.append))
    found = _cpu() - used, time.perf_counter() - began, session.usage.calls
    assert len(outcomes) == len(paths)
    assert all(outcome.card is not None for outcome in outcomes)
    return found


def _cpu() -> float:
    """Seconds of this process and of those that have ended."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def cost(folder: Path, concurrency: int, rounds: int = 3) -> None:
    """The least of the rounds, as whatever else the machine does only adds to it."""
    from ambjudge.judge.judges.api.judge import ApiJudge
    from ambjudge.judge.judges.rules import RulesJudge

    paths = copies(folder / "runs", 60)
    rules, read = [], []
    with model("good") as url:
        for number in range(rounds + 1):
            seconds, _, _ = scored(paths, RulesJudge(), 1)
            with open_store(folder / f"cost-{number}.db") as store:
                used, _, calls = scored(paths, ApiJudge("openai/good", url), concurrency, store)
            if number:  # the first one imports and warms up
                rules.append(seconds)
                read.append(used)
    print(
        f"a run by rules {1e3 * min(rules) / len(paths):.1f} ms; by a model"
        f" {1e3 * min(read) / len(paths):.1f} ms, {calls} calls"
    )
    against("CPU a judge call", 1e3 * (min(read) - min(rules)) / calls, 10.0, "ms")


def at_once(args: argparse.Namespace, folder: Path) -> None:
    from ambjudge.judge.judges.api.judge import ApiJudge

    paths = copies(folder / "many", -(-args.calls // QUESTIONS))
    with model(f"slow:{args.latency}") as url, open_store(folder / "many.db") as store:
        scored(paths[:2], ApiJudge("openai/warm", url), 2)
        if args.workers == 1:
            used, wall, calls = scored(paths, ApiJudge("openai/good", url), args.concurrency, store)
        else:
            used, wall, calls = spread(paths, url, args.concurrency, args.workers, store)
    ideal = calls / args.concurrency * args.latency
    print(
        f"{calls} calls, {args.concurrency} at once, {args.workers} worker(s): {wall:.1f} s, CPU"
        f" {used:.1f} s, ideal {ideal:.1f} s"
    )
    against("many calls at once", wall / ideal, 1.3, "x ideal")
    against(
        "  their CPU a core, scoring by rules included", used / args.workers / ideal, 1.3, "x ideal"
    )


FAILURES = (
    "429:1",
    "429",
    "500",
    "503",
    "slow:6",
    "length",
    "malformed",
    "prose",
    "reset",
    "refusal",
    "out_of_scale",
)


def with_faults(args: argparse.Namespace, folder: Path) -> None:
    """Every scored criterion must have the value that the server stands for, which differs by run
    and criterion."""
    from ambjudge.judge.judges.api.circuit_breaker import CircuitBreaker
    from ambjudge.judge.judges.api.judge import ApiJudge
    from ambjudge.judge.judges.api.prices import Price
    from ambjudge.judge.judges.api.transport import litellm

    loopback, chance, cap = load("loopback_server"), random.Random(11), 50.0
    good = f"slow:{args.latency}"
    script = [
        f"{chance.choice(FAILURES) if chance.random() < args.faults else good}@run"
        for _ in range(args.calls * 5)
    ]
    server = loopback.JudgeServer(script=script).start()
    http.make_runs(folder / "faulty", -(-args.calls // QUESTIONS))
    price = Price(input=1.0, output=10.0, source="benchmark", date="2026-01-01")
    judge = ApiJudge(
        "openai/good",
        server.url,
        evidence_budget=8_000,
        timeout=3.0,
        price=price,
        breaker=CircuitBreaker(max_failures=1_000),
    )
    litellm()
    with open_store(folder / "faulty.db") as store:
        paths = list(find_conversations(folder / "faulty"))
        spent = 0.0
        for attempt in range(1, 10):
            planned = plan_rejudge(store, paths, judge)
            if not planned.calls:
                break
            done = asyncio.run(
                execute_plan(
                    planned, store, judge, concurrency=args.concurrency, budget=Budget(cap - spent)
                )
            )
            spent += done.usage.cost_usd or 0.0
            ideal = planned.calls / args.concurrency * args.latency
            say(
                f"{args.faults:.0%} faults, pass {attempt}, {planned.calls} calls",
                done.summary.elapsed_s,
                ideal,
            )
            print(
                f"    {done.scored} scored, unscored {dict(done.unscored)}, {done.throttles} rate"
                " limits met"
            )
        lines = {run.ref: load_run(run.path).turns[0].text for run in store.iter_runs()}
        final = list(store.iter_verdicts())
        wrong = sum(
            is_criteria(v.stage)
            and v.result.status == "scored"
            and v.result.value != float(loopback.says_highest(lines[v.run_ref], v.key.criterion_id))
            for v in final
        )
        reasons = Counter(str(v.result.reason or v.result.status) for v in final)
    server.stop()
    print(
        f"    in the end {dict(reasons)}; {wrong} scored wrongly; USD {spent:.2f} of {cap:.0f};"
        f" {server.count} requests"
    )


def kills(args: argparse.Namespace, folder: Path) -> None:
    server = http.Server(latency=0.05)
    server.start_in_thread()
    runs, concurrency, moments = args.kills * 8, 8, random.Random(5)
    http.make_runs(folder / "killed", runs)
    command = [
        sys.executable,
        str(TESTS / "http_judge.py"),
        "work",
        str(folder / "k.db"),
        str(folder / "killed"),
        server.url,
        "--concurrency",
        str(concurrency),
    ]
    for _ in range(args.kills):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        asked = server.count + moments.randint(1, 3 * concurrency)
        while server.count < asked and child.poll() is None:
            time.sleep(0.002)
        child.kill()
        child.wait()
        with open_store(folder / "k.db") as store:
            sound(store)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open_store(folder / "k.db") as store:
        sound(store)
        found = Counter((v.run_ref, v.key.criterion_id) for v in store.iter_verdicts())
    minimum = runs * QUESTIONS
    print(
        f"{args.kills} kills: {len(found)} verdicts of {runs * ITEMS}, the most for one item"
        f" {max(found.values())}; {server.count} calls, {server.count - minimum} above the minimum"
        f" {minimum} (at most {args.kills * concurrency} were under way); integrity ok"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=1_500)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument(
        "--workers", type=int, default=1, help="processes that the calls at once are shared by"
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--faults", type=float, default=0.0, metavar="SHARE")
    parser.add_argument(
        "--quiet", type=float, default=0.0, metavar="SECONDS", help="wait for a quiet machine"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ambjudge-bench-") as name:
        wait_until_quiet(args.quiet)
        cost(Path(name), 16)
        at_once(args, Path(name))
        if args.faults:
            with_faults(args, Path(name))
        if args.kills:
            kills(args, Path(name))


if __name__ == "__main__":
    main()
