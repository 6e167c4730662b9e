"""Real files, mutated, through everything that reads what others wrote: nothing but an
AmbjudgeError may come out.

    python benchmarks/fuzz.py [--count 20000] [--seed 0] [--targets reply settings ...]

Each input is made from the seed, the target and its number alone, so that a line of the output is
enough to make it again (`--seed S --targets T --only N`). A worker process takes the inputs; one
that takes more than `CPU_S` of CPU, or the first after which the process holds more than `MEMORY`,
is a finding. So is one that ends the worker; a new one goes on behind it. Exit 1 where anything was
found.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_commands
import fuzz_imports
from ambjudge.errors import AmbjudgeError
from fuzz_inputs import DATA, MOST, ROOT, RUNS, Place, Target, mutated

CPU_S = 5
MEMORY = 1 << 30
_ADDRESSES = 4 << 30
"""Address space of a worker: what asks for more gets a MemoryError before the machine suffers."""


def _conversation(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.judge.engine import make_scorecard
    from ambjudge.trajectories.reading.load import load_run

    place.put("run/process/conversation.json", data)
    run = load_run(place.run)
    if rng.random() < 0.02:
        make_scorecard(run).model_dump_json(by_alias=True)
    run.model_dump_json()


def _side(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.trajectories.reading.load import load_run

    names = (
        "process/trace.jsonl",
        "process/tool_calls.jsonl",
        "detail_report.json",
        "agent_summary.json",
        "report.json",
    )
    name = rng.choice(names)
    place.put("run/process/conversation.json", seeds("conversation")[0])
    path = place.put(f"run/{name}", data)
    try:
        load_run(place.run).model_dump_json()
    finally:
        path.unlink()


@cache
def _criteria() -> Any:
    from ambjudge.rubrics.load import load_rubric

    return load_rubric("segmentation").stages["S1"].criteria


def _reply(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.judge.questions.replies import parse_reply

    parsed = parse_reply(data.decode("utf-8", "surrogateescape"), "S1", _criteria(), 8)
    assert parsed.entries.keys() | parsed.problems.keys() == {
        criterion.id for criterion in _criteria()
    }


def _rubric(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.rubrics.load import load_rubric, validate_file

    path = place.put("rubric.yaml", data)
    validate_file(path)
    load_rubric(path)


def _labels(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.judge.trust.human_labels import read_labels

    read_labels(place.put("labels.json", data))


def _scorecard(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.judge.card.verify import parse_card, rubric_of, verify
    from ambjudge.trajectories.reading.json_bytes import decode, parse_json

    path = place.put("card.json", data)
    card = parse_card(parse_json(decode(data, path), path), "card")
    verify(card, rubric_of(card))


def _settings(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.config import load

    load(str(place.put(rng.choice(("ambjudge.toml", "pyproject.toml")), data)))


def _sanitiser(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.sanitize import escape_json, mask, replaced, sanitize, sanitize_line

    text = data.decode("utf-8", rng.choice(("replace", "surrogateescape")))
    safe, line = sanitize(text), sanitize_line(text)
    assert len(safe) == len(line) == len(text)
    assert sanitize(safe) == safe
    assert replaced(safe) == 0
    assert len(line.splitlines()) <= 1
    safe.encode()
    as_json = json.dumps(text, ensure_ascii=False)
    assert json.loads(escape_json(as_json)) == text
    mask(text)


@cache
def _delivered(run: Path) -> Any:
    from ambjudge.trajectories.reading.load import load_run

    return load_run(run)


def _output(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.judge.checks.check_outputs import check_outputs

    theirs = rng.choice(_output_files())
    run = place.folder / theirs.relative_to(RUNS).parts[0]
    if not run.exists():
        shutil.copytree(RUNS / run.name, run)
    original, path = theirs.read_bytes(), place.folder / theirs.relative_to(RUNS)
    if rng.random() < 0.7:  # else the data of some other file
        packed = theirs.suffix == ".gz" and rng.random() < 0.7
        data = mutated(gzip.decompress(original) if packed else original, rng, seeds("output"))
        data = gzip.compress(data, 1) if packed else data
    path.write_bytes(data)
    try:
        public = RUNS.parent / "public" if rng.random() < 0.5 else None
        check_outputs(_delivered(run), public=public)
    finally:
        path.write_bytes(original)


@cache
def _output_files() -> list[Path]:
    return sorted(path for path in RUNS.glob("*/outputs/**/*") if path.is_file())


def _answer(place: Place, data: bytes, rng: random.Random) -> None:
    """A line of a provider batch's output, whose body is read as a live answer's is."""
    from ambjudge.judge.provider_batch.batch_files import Answers

    with Answers() as answers:
        file = answers.new_file()
        file.write(data)
        answers.index(file)
        for name in answers.ids():
            answers.get(name, "not there")


TARGETS: dict[str, Target] = {
    "conversation": _conversation,
    "side": _side,
    "reply": _reply,
    "rubric": _rubric,
    "labels": _labels,
    "scorecard": _scorecard,
    "settings": _settings,
    "sanitiser": _sanitiser,
    "output": _output,
    "answer": _answer,
    **fuzz_imports.TARGETS,
    **fuzz_commands.TARGETS,
}


@cache
def seeds(target: str) -> list[bytes]:
    """The real files that a target's inputs are made from."""
    for others in (fuzz_imports, fuzz_commands):
        if target in others.TARGETS:
            return others.seeds(target)
    runs = sorted(RUNS.iterdir())
    if target in ("conversation", "sanitiser"):
        return [
            _short(path.read_bytes()) for run in runs for path in run.rglob("conversation.json")
        ]
    if target == "side":
        names = ("*.jsonl", "detail_report.json", "report.json", "agent_summary.json")
        found = [
            path
            for name in names
            for folder in (*runs, DATA / "layouts")
            for path in sorted(folder.rglob(name))
        ]
        return [path.read_bytes()[:MOST] for path in found]
    if target == "reply":
        entry = {
            c.id: {"turn": 1, "quote": "x", "reason": "y", "value": c.values[0]}
            for c in _criteria()
        }
        kept = sorted((DATA / "readings").rglob("S1.json"))[:10]
        return [
            json.dumps(entry).encode(),
            *(json.loads(path.read_text("utf-8"))["reply"].encode() for path in kept),
        ]
    if target == "rubric":
        return [path.read_bytes() for path in sorted((ROOT / "rubrics").glob("*.yaml"))]
    if target == "labels":
        return [
            path.read_bytes() for path in sorted((DATA / "recorded" / "labels").rglob("*.json"))
        ]
    if target == "scorecard":
        return [path.read_bytes()[:MOST] for path in sorted((DATA / "golden").rglob("*.json"))]
    if target == "output":
        return [path.read_bytes()[:MOST] for path in _output_files()]
    if target == "answer":
        said = {"role": "assistant", "content": "{}", "refusal": None, "tool_calls": []}
        tokens = {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 3},
        }
        body = {
            "id": "a",
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
            "usage": tokens,
        }
        lines = [{"custom_id": "a", "error": None, "response": {"status_code": 200, "body": body}}]
        lines += [
            {
                "custom_id": "b",
                "response": None,
                "error": {"code": "content_filter", "message": "no"},
            }
        ]
        return [
            "\n".join(map(json.dumps, some)).encode()
            for some in (lines, lines[:1], lines[1:], [*lines, lines[0]])
        ]
    return [
        b'judge = ["rules"]\nconcurrency = 8\nprice = "1,2"\nstore = "x.db"\nmissing = "zero"\n',
        (
            b'[tool.ambjudge]\nmax_cost = 1.5\npublic = "p"\npictures = true\ntier = "lite"\nrubric'
            b' = "r.yaml"\n'
        ),
    ]


def _short(data: bytes) -> bytes:
    """A conversation with as many messages as fit."""
    value = json.loads(data)
    messages = value["messages"] if isinstance(value, dict) else value
    while len(messages) > 3 and len(json.dumps(value)) > MOST:
        del messages[3:5]
    return json.dumps(value).encode()


def made(seed: int, target: str, number: int) -> tuple[bytes, random.Random]:
    """Input `number` of a target, and the randomness that its reading goes on with."""
    rng = random.Random(f"{seed}/{target}/{number}")
    files = seeds(target)
    return mutated(rng.choice(files), rng, files), rng


class TooSlowError(Exception):
    """An input took more CPU than `CPU_S`."""


def _stop(*_: object) -> None:
    raise TooSlowError(f"more than {CPU_S} s of CPU")


def work(seed: int, target: str, first: int, last: int, at: Any, found: Any) -> None:
    """Inputs `first` to `last` - 1; findings go into the queue."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    signal.signal(signal.SIGPROF, _stop)
    os.environ["AMBJUDGE_PLUGINS"] = ""
    warnings.simplefilter("error", RuntimeWarning)  # numpy's, which a user would see
    with tempfile.TemporaryDirectory() as folder:
        place, full = Place(Path(folder)), False
        with suppress(Exception):  # imports are nobody's input
            TARGETS[target](place, seeds(target)[0], random.Random(0))
        for number in range(first, last):
            with at.get_lock():
                at[0] = number
            data, rng = made(seed, target, number)
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, CPU_S)
            try:
                TARGETS[target](place, data, rng)
            except AmbjudgeError as error:
                if "\n" in str(error) or "internal error" in str(error):
                    found.put((number, f"an error of several lines, or internal: {error!r}"[:400]))
            except BaseException as error:
                last_lines = "".join(traceback.format_exception(error)[-3:])
                found.put(
                    (number, f"{type(error).__name__}: {error}"[:300] + "\n" + last_lines[-700:])
                )
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            with at.get_lock():
                at[1] = max(at[1], int(1e6 * (time.process_time() - started)))
                at[2] = max(at[2], peak := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
            if peak > MEMORY and not full:
                full = True
                found.put((number, f"{peak >> 20:,} MB of memory"))


def fuzz(seed: int, target: str, first: int, last: int) -> int:
    """How many findings the inputs of a target brought; each is printed, then a line of figures."""
    context = multiprocessing.get_context("fork")
    inputs, found, count = last - first, context.Queue(), 0
    at = context.Array("q", [first, 0, 0])  # number, most microseconds of CPU, most bytes of memory
    while first < last:
        worker = context.Process(target=work, args=(seed, target, first, last, at, found))
        worker.start()
        while worker.is_alive() or not found.empty():
            worker.join(0.2)
            while not found.empty():
                number, what = found.get()
                count += 1
                print(f"--seed {seed} --targets {target} --only {number}: {what}", flush=True)
        first = last
        if worker.exitcode:
            count += 1
            print(
                f"--seed {seed} --targets {target} --only {at[0]}: the worker died"
                f" ({worker.exitcode})",
                flush=True,
            )
            first = at[0] + 1
    slowest, largest = (
        f"{at[1] / 1e6:.2f} s (target {CPU_S})",
        f"{at[2] / 1e6:.0f} MB (target {MEMORY / 1e6:.0f})",
    )
    print(
        f"{target:14} {inputs:9,} inputs, {count} findings (target 0), slowest {slowest}, largest"
        f" {largest}",
        flush=True,
    )
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--count", type=int, default=20_000, help="inputs in all, shared by the targets"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this input of one target")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    args = parser.parse_args()
    findings, started = 0, time.monotonic()
    each = args.count // len(args.targets)
    for target in args.targets:
        first, last = (0, each) if args.only is None else (args.only, args.only + 1)
        findings += fuzz(args.seed, target, first, last)
    many = (1 if args.only is not None else each) * len(args.targets)
    print(
        f"{many:,} inputs, seed {args.seed}, {findings} findings,"
        f" {time.monotonic() - started:.0f} s"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
