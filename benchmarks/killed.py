"""A large collection by one process, by two workers, by shards, by Ray and from S3, each killed
midway and started again.

    python benchmarks/killed.py [--runs 10000] [--ways workers,shards,ray,s3]

Copies of the cheapest recorded run, each with a sentence of its own, are scored once by one
process: its lines are what every other way must give, byte for byte. Each way starts in a process
group of its own with a new store; when half of the runs have a scorecard there, SIGKILL ends the
whole group, and the same command is given again. Then the store must hold one scorecard a run and
one verdict a key. `ray` needs the extra `ray`; `s3` the extra `cloud`, moto, flask and flask-cors:
an S3 server in this process, from which runs are read and to which the scorecards go.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "tests" / "data" / "recorded" / "runs" / "crc-lite-01"
WAYS = {
    "workers": (("--workers", "2"),),
    "shards": (("--shard", "1/2"), ("--shard", "2/2")),
    "ray": (("--workers", "2", "--engine", "ray"),),
    "s3": (("--workers", "2"),),
}


def collection(folder: Path, count: int) -> None:
    """`count` copies of the run, all files an hour old."""
    said = json.loads((RUN / "process" / "conversation.json").read_text("utf-8"))
    first = next(message for message in said["messages"] if message["role"] == "user")
    brief, past = first["content"], time.time() - 3600
    for number in range(count):
        here = folder / f"{number:05}-crc"
        shutil.copytree(RUN, here, copy_function=os.link)
        first["content"] = f"{brief}\nThis is number {number}."
        conversation = here / "process" / "conversation.json"
        conversation.unlink()
        conversation.write_text(json.dumps(said), "utf-8")
        for where, folders, files in os.walk(here):
            for entry in (".", *folders, *files):
                os.utime(Path(where) / entry, (past, past))


def start(
    folder: Path, runs: str, out: str, store: str, options: tuple[str, ...]
) -> subprocess.Popen[bytes]:
    here = folder / "here"
    here.mkdir(exist_ok=True)
    if not (here / "ambjudge").exists():
        (here / "ambjudge").symlink_to(ROOT)
    command = [
        sys.executable,
        "-m",
        "ambjudge.cli",
        "-q",
        "score",
        runs,
        "--out",
        out,
        "--store",
        store,
    ]
    environment = {**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"}
    with (folder / "table.txt").open("wb") as table:
        return subprocess.Popen(
            [*command, *options], stdout=table, env=environment, start_new_session=True
        )


def finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait() not in (0, 1):
        raise SystemExit(f"exit code {process.returncode}")


def ask(store: Path, query: str) -> int:
    """One number; 0 where the store is not there yet."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=60)) as connection:
            return int(connection.execute(query).fetchone()[0])
    except sqlite3.Error:
        return 0


def killed(process: subprocess.Popen[bytes], store: Path, half: int) -> int:
    """Kill the whole group when half is done; scorecards that were kept by then."""
    wait_for(process, store, half)
    for group in {process.pid, *(group for _, group in below(process.pid))}:
        os.killpg(group, signal.SIGKILL)
    process.wait()
    return ask(store, "SELECT count(*) FROM cards")


def wait_for(process: subprocess.Popen[bytes], store: Path, cards: int) -> None:
    while process.poll() is None and ask(store, "SELECT count(*) FROM cards") < cards:
        time.sleep(0.02)


def hurt(process: subprocess.Popen[bytes], store: Path, cards: int) -> int:
    """Kill one worker when so many scorecards are there; how many were."""
    wait_for(process, store, cards)
    here = ask(store, "SELECT count(*) FROM cards")
    for pid, _ in below(process.pid):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"multiprocessing.spawn" in command or command.startswith(b"ray::_Scorer"):
            os.kill(pid, signal.SIGKILL)
            return here
    raise SystemExit("no worker was there to be killed")


def below(pid: int) -> Iterator[tuple[int, int]]:
    """All that a process has started, each with its process group (Ray gives its processes groups
    of their own)."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                yield int(entry.name), int(fields[2])
                yield from below(int(entry.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--ways", default="workers,shards,ray")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = folder / "runs"
        collection(runs, args.runs)
        cpu = cpu_s()
        finish(start(folder, str(runs), str(folder / "one.jsonl"), "none", ()))
        expected = (folder / "one.jsonl").read_bytes()
        print(
            f"one process: {len(expected.splitlines())} scorecards, CPU {cpu_s() - cpu:.0f} s",
            flush=True,
        )
        for way in args.ways.split(","):
            cpu, before, store = cpu_s(), [], folder / f"{way}.db"
            alone = 0
            out = folder / (way if way == "shards" else f"{way}.jsonl")
            source, target, wanted = str(runs), str(out), expected
            if way == "s3":
                bucket = s3_bucket(runs)
                source, target = "s3://bucket/runs", "s3://bucket/cards.jsonl"
                wanted = expected.replace(str(runs).encode(), source.encode())
            for number, options in enumerate(WAYS[way], 1):
                done = args.runs * (2 * number - 1) // (2 * len(WAYS[way]))
                before.append(
                    killed(start(folder, source, target, str(store), options), store, done)
                )
                again = start(folder, source, target, str(store), options)
                if "--workers" in options:
                    alone = hurt(again, store, args.runs * 3 // 4)
                finish(again)
            if way == "s3":
                bucket.get_file("bucket/cards.jsonl", str(out))
            parts = sorted(out.glob("*.jsonl")) if out.is_dir() else [out]
            same = b"".join(part.read_bytes() for part in parts) == wanted
            cards, paths = (
                ask(store, f"SELECT count({what}) FROM cards") for what in ("*", "DISTINCT path")
            )
            verdicts, keys = (
                ask(store, f"SELECT count({what}) FROM verdicts") for what in ("*", "DISTINCT key")
            )
            good = same and cards == paths == args.runs and verdicts == keys
            wrong += not good
            print(
                f"{way}: killed with {', '.join(map(str, before))}"
                f" scorecards{f', one worker with {alone}' if alone else ''}; then"
                f" {'the same bytes' if same else 'OTHER BYTES'}, {cards} scorecards of {paths}"
                f" runs, {verdicts} verdicts under {keys} keys, CPU {cpu_s() - cpu:.0f}"
                f" s{'' if good else ' WRONG'}",
                flush=True,
            )
    if wrong:
        raise SystemExit(1)


def s3_bucket(runs: Path) -> Any:
    """A file system of an S3 server in this process, with the runs in its bucket; the environment
    leads there.

    The runs are put where the server keeps them, not sent to it: it takes in a hundred objects a
    second.
    """
    import fsspec
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://{host}:{port}",
        AWS_ACCESS_KEY_ID="testing",
        AWS_SECRET_ACCESS_KEY="testing-secret",
        AWS_REGION="us-east-1",
    )
    bucket = fsspec.filesystem("s3", use_listings_cache=False)
    bucket.mkdir("bucket")
    kept = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for path in runs.rglob("*"):
        if path.is_file():
            kept.put_object("bucket", f"runs/{path.relative_to(runs)}", path.read_bytes())
    return bucket


def cpu_s() -> float:
    """Of all that has been waited for; what was killed with its group is not all in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
