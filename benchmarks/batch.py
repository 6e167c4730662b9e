"""Batches against a loopback server: how close to ideal, and what kill -9 costs.

    python benchmarks/batch.py [--calls 1000] [--concurrency 100] [--latency 1.0] [--kills 50] [--litellm] [--faults 0.2]

The server runs in its own process and answers after `latency` seconds. Reported: seconds against the ideal
(calls / concurrency x latency; target 1.2 x), for the batch runner alone, with the store behind it, and with
`--litellm` through the API judge; with `--faults` that a share of replies fails in eleven ways (rate limits, errors,
timeouts, cut, malformed, refused), run again until nothing is left to try; then the calls made in excess of the minimum when a batch is killed again and again
(target: at most the calls under way at the kills).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ambjudge.judge.base import is_criteria
from ambjudge.judge.limits import Budget
from ambjudge.judge.questions.items import diagnosis_items
from ambjudge.judge.rejudge.execute import execute
from ambjudge.judge.rejudge.staleness import plan
from ambjudge.judge.runner import run_batch
from ambjudge.judge.store import open_store
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.layout import find_conversations
from ambjudge.trajectories.load import load_run

TESTS = Path(__file__).parents[1] / "tests" / "helpers"
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


def throughput(args: argparse.Namespace, folder: Path) -> None:
    command = [sys.executable, str(TESTS / "http_judge.py"), "serve", "--latency", str(args.latency)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
    ideal = args.calls / args.concurrency * args.latency
    try:
        payload = {"criteria": ["S3"]}
        summary = asyncio.run(
            run_batch(range(args.calls), lambda _: http.exchange(url, payload), concurrency=args.concurrency)
        )
        say("batch runner alone", summary.elapsed_s, ideal)
        http.make_runs(folder / "runs", -(-args.calls // QUESTIONS))
        with open_store(folder / "s.db") as store:
            judge = http.HttpJudge(url)
            planned = plan(store, find_conversations(folder / "runs"), judge)
            done = asyncio.run(execute(planned, store, judge, concurrency=args.concurrency))
            ideal = planned.calls / args.concurrency * args.latency
            say(f"with the store, runs read on the way ({planned.calls} calls)", done.summary.elapsed_s, ideal)
    finally:
        server.kill()
        server.wait()


def through_litellm(args: argparse.Namespace, folder: Path) -> None:
    from ambjudge.judge.api.judge import ApiJudge

    server = load("loopback_server").JudgeServer(script=[f"slow:{args.latency}"]).start()
    http.make_runs(folder / "more", -(-args.calls // QUESTIONS))
    judge = ApiJudge("openai/good", server.url, evidence_budget=8_000)
    with open_store(folder / "api.db") as store:
        planned = plan(store, find_conversations(folder / "more"), judge)
        from ambjudge.judge.api.transport import litellm

        litellm()
        began = time.perf_counter()
        asyncio.run(execute(planned, store, judge, concurrency=args.concurrency))
        ideal = planned.calls / args.concurrency * args.latency
        say(f"through litellm, server in the same process ({planned.calls} calls)", time.perf_counter() - began, ideal)
    server.stop()


FAILURES = ("429:1", "429", "500", "503", "slow:6", "length", "malformed", "prose", "reset", "refusal", "out_of_scale")


def with_faults(args: argparse.Namespace, folder: Path) -> None:
    """Every scored criterion must have the value that the server stands for, which differs by run and criterion."""
    from ambjudge.judge.api.judge import ApiJudge, Breaker
    from ambjudge.judge.api.prices import Price
    from ambjudge.judge.api.transport import litellm

    loopback, chance, cap = load("loopback_server"), random.Random(11), 50.0
    good = f"slow:{args.latency}"
    script = [
        f"{chance.choice(FAILURES) if chance.random() < args.faults else good}@run" for _ in range(args.calls * 5)
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
        breaker=Breaker(after=1_000),
    )
    litellm()
    with open_store(folder / "faulty.db") as store:
        paths = list(find_conversations(folder / "faulty"))
        spent = 0.0
        for attempt in range(1, 10):
            planned = plan(store, paths, judge)
            if not planned.calls:
                break
            done = asyncio.run(execute(planned, store, judge, concurrency=args.concurrency, budget=Budget(cap - spent)))
            spent += done.usage.cost_usd or 0.0
            ideal = planned.calls / args.concurrency * args.latency
            say(f"{args.faults:.0%} faults, pass {attempt}, {planned.calls} calls", done.summary.elapsed_s, ideal)
            print(f"    {done.scored} scored, unscored {dict(done.unscored)}, {done.throttles} rate limits met")
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
        f"    in the end {dict(reasons)}; {wrong} scored wrongly; USD {spent:.2f} of {cap:.0f}; {server.count} requests"
    )


def kills(args: argparse.Namespace, folder: Path) -> None:
    server = http.Server(latency=0.05)
    server.start_in_thread()
    runs, concurrency, moments = args.kills * 8, 8, random.Random(5)
    http.make_runs(folder / "killed", runs)
    command = [
        sys.executable, str(TESTS / "http_judge.py"), "work", str(folder / "k.db"), str(folder / "killed"), server.url,
        "--concurrency", str(concurrency),
    ]  # fmt: skip
    for _ in range(args.kills):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.25))
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
        f"{args.kills} kills: {len(found)} verdicts of {runs * ITEMS}, the most for one item {max(found.values())}; "
        f"{server.count} calls, {server.count - minimum} above the minimum {minimum} "
        f"(at most {args.kills * concurrency} were under way); integrity ok"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--litellm", action="store_true")
    parser.add_argument("--faults", type=float, default=0.0, metavar="SHARE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ambjudge-bench-") as name:
        throughput(args, Path(name))
        if args.litellm:
            through_litellm(args, Path(name))
        if args.faults:
            with_faults(args, Path(name))
        if args.kills:
            kills(args, Path(name))


if __name__ == "__main__":
    main()
