"""A small judge over real HTTP, the server that it asks, and a program that judges a folder: for
batches under stress.

python tests/helpers/http_judge.py serve --latency 1.0        prints its URL; GET /count says how
many calls came
python tests/helpers/http_judge.py work STORE RUNS URL        plans and executes, prints `ready`
before the first call
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from ambjudge.judge.base import Reply, Request, Usage
from ambjudge.judge.card.stage_results import CriterionResult


class Server:
    """Answers every POST with 1 for each item, after `latency` seconds; counts calls as they
    arrive."""

    def __init__(self, latency: float) -> None:
        self.latency, self.count, self.running, self.peak = latency, 0, 0, 0
        self.url = ""

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        return server

    def start_in_thread(self) -> None:
        started = threading.Event()

        async def run() -> None:
            server = await self.start()
            started.set()
            await server.serve_forever()

        threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
        started.wait(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = (
                int(head.split("content-length:")[1].split()[0]) if "content-length:" in head else 0
            )
            body = await reader.readexactly(length)
            answer: object = {"count": self.count, "peak": self.peak}
            if head.startswith("post"):
                self.count += 1
                self.running += 1
                self.peak = max(self.peak, self.running)
                try:
                    await asyncio.sleep(self.latency)
                finally:
                    self.running -= 1
                answer = dict.fromkeys(json.loads(body)["criteria"], 1)
            data = json.dumps(answer).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(data)
                + data
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def exchange(url: str, payload: object | None) -> dict:
    """POST a JSON payload (GET without one) and return the JSON answer."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    data = json.dumps(payload).encode() if payload is not None else b""
    verb = "POST" if payload is not None else "GET"
    writer.write(
        f"{verb} / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    )
    await writer.drain()
    answer = await reader.read()
    writer.close()
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


class HttpJudge:
    """Asks the server above for criteria and codes. Evidence is the run's identity, so that keys
    differ from run to run."""

    name, members, prompt_sha256, parameters = "http", (), None, {"version": 1}
    questions = frozenset({"diagnosis"})

    def __init__(self, url: str) -> None:
        self.url = url

    def evidence_sha256(self, request: Request) -> str:
        return hashlib.sha256(request.run.id.encode()).hexdigest()

    async def judge(self, request: Request) -> Reply:
        answer = await exchange(self.url, {"criteria": [c.id for c in request.criteria]})
        results = tuple(
            CriterionResult(id=c.id, value=float(answer[c.id]), status="scored")
            for c in request.criteria
        )
        return Reply(results, Usage(1, 10, 10, 0.001), raw=(json.dumps(answer),))


def make_runs(folder: Path, count: int) -> None:
    """Tiny runs, all different, one folder each."""
    for number in range(count):
        path = folder / f"r{number:05d}" / "conversation.json"
        path.parent.mkdir(parents=True)
        messages = [
            {"role": "system", "content": "Segment."},
            {"role": "assistant", "content": f"Plan {number}: one pilot case, then all."},
        ]
        path.write_text(
            json.dumps({"task": "kidney-seg-task", "tier": "standard", "messages": messages})
        )


def work(store: str, runs: str, url: str, concurrency: int) -> None:
    from ambjudge.judge.questions.items import QuestionSet
    from ambjudge.judge.rejudge.execute import execute_plan
    from ambjudge.judge.rejudge.staleness import plan_rejudge
    from ambjudge.judge.scope import Scope
    from ambjudge.judge.store import open_store
    from ambjudge.trajectories.reading.layout import find_conversations

    judge = HttpJudge(url)
    with open_store(store) as opened:
        # All criteria, though the facts of runs as small as these decide most of them.
        scope = Scope(questions=QuestionSet(ask_all=True))
        planned = plan_rejudge(opened, find_conversations(Path(runs)), judge, scope)
        print("ready", flush=True)
        asyncio.run(execute_plan(planned, opened, judge, concurrency=concurrency))
    print("done", flush=True)


async def serve(latency: float) -> None:
    server = Server(latency)
    running = await server.start()
    print(server.url, flush=True)
    await running.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("serve")
    one.add_argument("--latency", type=float, default=0.0)
    two = commands.add_parser("work")
    for name in ("store", "runs", "url"):
        two.add_argument(name)
    two.add_argument("--concurrency", type=int, default=8)
    args = parser.parse_args()
    if args.command == "serve":
        asyncio.run(serve(args.latency))
    else:
        work(args.store, args.runs, args.url, args.concurrency)


if __name__ == "__main__":
    sys.exit(main())
