"""Forecasts beside bills: what a dry run expects of a first judging and of twelve edits, and what a
provider charges for them.

    python benchmarks/rejudge_edits.py --runs 2000 [--concurrency 32]

The runs are copies of the recorded ones, each with a sentence of its own. The provider is a process
of its own: it counts tokens with a published vocabulary, caches prompts that begin alike, forgets
them between two commands, misses one in twenty, fails two in a hundred calls and breaks two in a
hundred replies, which are then repaired. Targets: each expected cost within 20 % of the bill, every
bill within its bounds, as many requests as planned beside the failures. Scorecards that were
renewed must equal those of runs that are read. Exit 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import yaml
from loopback_server import good_reply, whole_prompt

PRICE = (1.25, 10.0, 0.125)
"""USD per million tokens: input, output, cached input."""
_WITHIN = 0.2
_END_OF_RECORD = "The record has ended."
_MIN_CACHED, _CACHE_STEP = 1_024, 128
_WORDS = "the run shows that this was done as the plan says and its output was looked at".split()


# The provider


class Provider:
    """Answers chat completions and bills them."""

    def __init__(self) -> None:
        self._count = _token_counter()
        self._lock = Lock()
        self._prefixes: dict[str, int] = {}
        """Tokens of each beginning, by hash; it is counted once."""
        self._cached: set[tuple[str, str]] = set()
        """(model, beginning) in the cache."""
        self._asked: set[str] = set()
        self.bill = {"requests": 0, "failed": 0, "repairs": 0, "cost_usd": 0.0}

    def take_bill(self) -> dict[str, float]:
        """The bill since the last one; meanwhile an hour passes, and the cache forgets."""
        with self._lock:
            bill, self.bill = self.bill, dict.fromkeys(self.bill, 0)
            self._cached.clear()
        return bill

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """The completion; None for a call that fails."""
        prompt = whole_prompt(body)
        luck = Random(hashlib.sha256(prompt.encode()).digest())
        with self._lock:
            prompt_hash = hashlib.sha256(prompt.encode()).hexdigest()
            is_first = prompt_hash not in self._asked
            self._asked.add(prompt_hash)
            is_repair = len(body["messages"]) > 2
            self.bill["requests"] += 1
            self.bill["repairs"] += is_repair
            if luck.random() < 0.02 and is_first and not is_repair:
                self.bill["failed"] += 1
                return None
        text = json.dumps(_reply(body, luck))
        if luck.random() < 0.02 and not is_repair:
            text = text[:-5]
        usage = self._bill(str(body["model"]), prompt, text, luck)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        return {**head, "choices": [choice], "usage": usage}

    def _bill(self, model: str, prompt: str, text: str, luck: Random) -> dict[str, Any]:
        beginning, marker, question = prompt.partition(_END_OF_RECORD)
        key = hashlib.sha256(beginning.encode()).hexdigest()
        shared = self._prefixes.get(key) or self._count(beginning)
        sent = shared + self._count(marker + question)
        received = self._count(text)
        with self._lock:
            self._prefixes[key] = shared
            cached = 0
            if (model, key) in self._cached and luck.random() > 0.05 and shared >= _MIN_CACHED:
                cached = shared // _CACHE_STEP * _CACHE_STEP
            self._cached.add((model, key))
            plain, output, from_cache = PRICE
            dollars = (sent - cached) * plain + received * output + cached * from_cache
            self.bill["cost_usd"] += dollars / 1e6
        return {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


def _reply(body: dict[str, Any], luck: Random) -> dict[str, Any]:
    """A reply to whatever is asked, with reasons as long as those of recorded ones."""
    reply = good_reply(body)
    for entry in reply.values():
        words = " ".join(luck.choices(_WORDS, k=luck.randint(20, 80)))
        for name in ("reason", "why"):
            if name in entry:
                entry[name] = words
    return reply


def _token_counter() -> Callable[[str], int]:
    import os

    # litellm brings the vocabularies along; from the network they would be another download.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    folder = Path(litellm.__file__).parent / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def serve() -> None:
    """Serve until the process is ended; prints the address."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send(200, provider.take_bill())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = provider.answer(body)
            if answer is None:
                self._send(500, {"error": {"message": "overloaded"}})
            else:
                self._send(200, answer)

        def _send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 1_024

    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


@contextmanager
def provider_process() -> Iterator[str]:
    """A provider in a process of its own; its address."""
    command = [sys.executable, __file__, "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def take_bill(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url) as answer:
        return json.loads(answer.read())


# The edits

TRACKS = ("segmentation", "classification", "detection", "enhancement", "vqa")
Texts = dict[str, dict[str, Any]]
"""The rubric of each track, as YAML has it."""


@dataclass(frozen=True)
class Situation:
    """What decides the verdicts."""

    rubrics: Texts = field(default_factory=dict)
    model: str = "judge-a"
    temperature: float = 0.0
    samples: int = 1
    code_text: str | None = None
    """Of E1."""


def _edited(now: Situation, edit: Callable[[dict[str, list[dict[str, Any]]]], None]) -> Situation:
    """The criteria of all rubrics edited, by stage."""
    rubrics = json.loads(json.dumps(now.rubrics))
    for rubric in rubrics.values():
        stages = {name: stage.get("criteria", []) for name, stage in rubric["stages"].items()}
        edit(stages)
    return replace(now, rubrics=rubrics)


def _criterion(id: str, update: dict[str, Any]) -> Callable[[dict[str, list[Any]]], None]:
    """Updates the criterion of this id."""

    def edit(stages: dict[str, list[Any]]) -> None:
        for criterion in stages[id[:2]]:
            if criterion["id"] == id:
                criterion.update(update)

    return edit


def _with_preamble(now: Situation, preamble: str) -> Situation:
    rubrics = {track: rubric | {"preamble": preamble} for track, rubric in now.rubrics.items()}
    return replace(now, rubrics=rubrics)


def _split(stages: dict[str, list[Any]]) -> None:
    copy = {**stages["S2"][1], "id": "S2x", "text": "Was the other half done?"}
    stages["S2"][1]["text"] += " Look at the first half alone."
    stages["S2"].append(copy)


def _remove(stages: dict[str, list[Any]]) -> None:
    stages["S2"][:] = [item for item in stages["S2"] if item["id"] != "S2x"]


def _reweigh(stages: dict[str, list[Any]]) -> None:
    for criterion in stages["S2"]:
        criterion["weight"] = 2


def _without_credit(stages: dict[str, list[Any]]) -> None:
    for criterion in stages["S1"]:
        criterion.pop("credit", None)


_LEVELS = [{"value": value, "text": f"It was done to {value}."} for value in (0.0, 0.5, 1.0)]
_WORDING = {"text": "Does the plan say what is done to the inputs, and what result is written?"}
EDITS: list[tuple[str, Callable[[Situation], Situation]]] = [
    ("first judging", lambda now: now),
    ("wording of S1b", lambda now: _edited(now, _criterion("S1b", _WORDING))),
    ("levels of S2d", lambda now: _edited(now, _criterion("S2d", {"scale": _LEVELS}))),
    ("S2b split", lambda now: _edited(now, _split)),
    ("S2x removed", lambda now: _edited(now, _remove)),
    ("weights", lambda now: _edited(now, _reweigh)),
    ("no credit in S1", lambda now: _edited(now, _without_credit)),
    (
        "preamble",
        lambda now: replace(
            now,
            rubrics={name: text | {"preamble": "Be strict."} for name, text in now.rubrics.items()},
        ),
    ),
    ("temperature", lambda now: replace(now, temperature=0.4)),
    ("another judge", lambda now: replace(now, model="judge-b")),
    ("files of some runs", lambda now: now),
    ("text of E1", lambda now: replace(now, code_text="The plan leaves out what was asked.")),
    ("three samples", lambda now: replace(now, samples=3)),
]


def rubrics() -> Texts:
    folder = Path(__file__).parents[1] / "rubrics"
    return {
        track: yaml.safe_load((folder / f"{track}.yaml").read_text("utf-8")) for track in TRACKS
    }


def grow(files: list[Path]) -> None:
    """Runs that went on by a sentence."""
    for file in files:
        data = json.loads(file.read_text("utf-8"))
        messages = data["messages"] if isinstance(data, dict) else data
        messages.append({"role": "assistant", "content": "One more look at the outputs."})
        file.write_text(json.dumps(data), encoding="utf-8")


def set_code_text(text: str | None, folder: Path) -> None:
    """Edit the taxonomy as somebody who edits its file does."""
    from ambjudge.error_codes import taxonomy
    from ambjudge.judge.questions import items

    if text is not None:
        data = yaml.safe_load(taxonomy.TAXONOMIES_FILE.read_text("utf-8"))
        data["paper"]["codes"]["E1"]["description"] = text
        taxonomy.TAXONOMIES_FILE = folder / "taxonomies.yaml"
        taxonomy.TAXONOMIES_FILE.write_text(yaml.safe_dump(data), encoding="utf-8")
        taxonomy._read.cache_clear()
        items.diagnosis_items.cache_clear()


# The measurement


@dataclass(frozen=True)
class Row:
    """One edit: what was expected, and what it came to."""

    name: str
    calls: int
    low: float
    expected: float
    high: float
    requests: int
    """Beside failures and repairs."""
    cost_usd: float
    cards: int
    plan_s: float
    calls_s: float
    cards_s: float

    @property
    def error(self) -> float:
        """Of the expected cost, relative to the bill."""
        return self.expected / self.cost_usd - 1 if self.cost_usd else self.expected

    @property
    def is_met(self) -> bool:
        in_bounds = self.low - 1e-9 <= self.cost_usd <= self.high + 1e-9
        return abs(self.error) <= _WITHIN and in_bounds and self.calls == self.requests

    def line(self) -> str:
        return (
            f"{self.name:<19} {self.calls:>6,} {self.requests:>6,}  ${self.expected:8.3f}"
            f" (${self.low:.3f} to ${self.high:.3f})".ljust(68)
            + f" ${self.cost_usd:8.3f} {self.error:+7.1%}  {self.cards:>6,}"
            f"  {self.plan_s:6.1f} {self.calls_s:6.1f} {self.cards_s:6.1f}"
            f"  {'met' if self.is_met else 'MISSED'}"
        )


def measure(n_runs: int, concurrency: int, folder: Path, seed: int = 0) -> list[Row]:
    """All edits over so many runs; each row is printed when it is there."""
    from ambjudge.judge.store import open_store
    from ambjudge.trajectories.reading.layout import find_conversations
    from batch import copies

    files = [file for run in copies(folder / "runs", n_runs) for file in find_conversations(run)]
    _age(folder)
    random = Random(seed)
    now = Situation(rubrics=rubrics())
    rows: list[Row] = []
    with provider_process() as url, open_store(folder / "edits.db") as store:
        for name, edit in EDITS:
            now = edit(now)
            set_code_text(now.code_text, folder)
            if name == "files of some runs":
                grow(random.sample(files, max(1, n_runs // 40)))
                _age(folder)
            rows.append(_judge(name, now, files, store, url, concurrency, folder))
            print(rows[-1].line(), flush=True)
    return rows


def _age(folder: Path) -> None:
    """Let the files be old enough for their times to be trusted."""
    time.sleep(2.1)


def _judge(
    name: str,
    now: Situation,
    files: list[Path],
    store: Any,
    url: str,
    concurrency: int,
    folder: Path,
) -> Row:
    """Forecast, judge and renew; the first forecast's figures must stand in a second one."""
    from ambjudge.judge.judges.api.judge import ApiJudge
    from ambjudge.judge.judges.api.prices import Price
    from ambjudge.judge.judges.api.transport import Retry
    from ambjudge.judge.judges.panel import Samples
    from ambjudge.judge.rejudge.execute import execute_plan
    from ambjudge.judge.rejudge.staleness import plan_rejudge
    from ambjudge.judge.rejudge.update import outdated_runs, rescore, without_calls
    from ambjudge.judge.session import ScoreOptions, make_scorer

    plain, output, cached = PRICE
    judge: Any = ApiJudge(
        f"openai/{now.model}",
        url,
        temperature=now.temperature,
        images=False,
        price=Price(plain, output, "benchmark", "2026-01-01", cached=cached),
        retry=Retry(first_s=0.05),
    )
    if now.samples > 1:
        judge = Samples(judge, now.samples)
    options = ScoreOptions(rubric=_written(now.rubrics, folder), concurrency=concurrency)
    began = time.process_time()
    plan = plan_rejudge(store, files, judge, options.scope())
    planned = time.process_time()
    again = plan_rejudge(store, files, judge, options.scope())
    assert again.estimate == plan.estimate, "the same plan has other figures"
    take_bill(url)
    called = time.process_time()
    scorer = make_scorer(judge, without_calls(options), store)
    asyncio.run(execute_plan(plan, store, judge, scorer=scorer, signals=False))
    judged = time.process_time()
    bill = take_bill(url)
    outdated = outdated_runs(store, plan, judge, options)
    cards, errors = asyncio.run(rescore(store, outdated, judge, options, scorer))
    renewed = time.process_time()
    assert not errors, errors[:3]
    _check_cards(store, judge, scorer, files)
    estimate = plan.estimate
    return Row(
        name=name,
        calls=plan.calls,
        low=estimate.low.cost_usd or 0.0,
        expected=estimate.point.cost_usd or 0.0,
        high=estimate.high.cost_usd or 0.0,
        requests=int(bill["requests"] - bill["failed"] - bill["repairs"]),
        cost_usd=bill["cost_usd"],
        cards=len(cards),
        plan_s=planned - began,
        calls_s=judged - called,
        cards_s=renewed - judged,
    )


def _check_cards(store: Any, judge: Any, scorer: Any, files: list[Path]) -> None:
    """AssertionError if a stored scorecard is not the one of its run when that is read."""
    for file in files[:: max(1, len(files) // 20)]:
        stored = next(store.cards(file, judge=judge.name)).to_json()
        assert stored == asyncio.run(scorer.score(file)).to_json(), file


def _written(texts: Texts, folder: Path) -> list[Path]:
    """The rubrics as files."""
    files = []
    for track, rubric in texts.items():
        files.append(folder / f"{track}.yaml")
        content = yaml.safe_dump(json.loads(json.dumps(rubric)), sort_keys=False)
        files[-1].write_text(content, encoding="utf-8")
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--serve", action="store_true", help="be the provider")
    args = parser.parse_args()
    if args.serve:
        serve()
        return 0
    print(
        f"{'edit':<19} {'calls':>6} {'made':>6}  {'expected (least to most)':<33}"
        f" {'bill':>9} {'error':>7} {'cards':>7}  CPU s: plan, calls, cards"
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(args.runs, args.concurrency, Path(folder))
    missed = [row.name for row in rows if not row.is_met]
    print(f"{len(rows) - len(missed)} of {len(rows)} within {_WITHIN:.0%} and their bounds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
