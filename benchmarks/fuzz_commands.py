"""Targets of `fuzz.py`: what a user types or lays beside runs: filters, saved views, sets of
scorecards, names of outcomes, parts of a collection."""

from __future__ import annotations

import io
import json
import random
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from ambjudge.errors import AmbjudgeError
from fuzz_inputs import DATA, RUNS, Place, Target, mutated

_CARDS = DATA / "tui" / "cards.jsonl"
_FILTERS = [
    b'code:E3 S3<0.5 -tier:lite "two words" text:monai outcome.tests.a>=1 marked unread:any',
    (
        b"agent:gpt track:vqa model:none -code:none -unread:E1 overall>=60 stage=0 taskscore<=1e-3"
        b" scored"
    ),
    b'id:"odd run" outcome.resolved:yes "waiting" turns>3_0 cost<inf codes=nan -',
]


def _filter(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.views.run_filter import compile_query, words_sought

    text = data.decode("utf-8", rng.choice(("replace", "surrogateescape")))
    words_sought(text)
    try:
        predicate = compile_query(text, {1})
    except AmbjudgeError as error:
        if len(str(error)) > 400:
            raise ValueError("an error without end") from error
        raise
    assert {predicate(row) for row in _rows()} <= {True, False}


@cache
def _rows() -> list[Any]:
    from ambjudge.judge.session import ScoreOptions
    from ambjudge.views.collection import Collection

    return [
        row
        for batch in Collection(_CARDS, options=ScoreOptions, cards=_CARDS).batches()
        for row in batch
    ]


def _views(place: Place, data: bytes, rng: random.Random) -> None:
    from ambjudge.views.run_filter import compile_query
    from ambjudge.views.saved_views import View, Views

    views = Views(place.put("views.json", data))
    views.save(View(data[:40].decode("utf-8", "replace")))
    for view in views.own():
        try:
            compile_query(view.query)
        except AmbjudgeError as error:
            if len(str(error).splitlines()) != 1:
                raise ValueError("an error of several lines") from error


def _listed(place: Place, data: bytes, rng: random.Random) -> None:
    """Scorecards as the browser lists and opens them."""
    from ambjudge.judge.session import ScoreOptions
    from ambjudge.views.collection import Collection
    from ambjudge.views.run_filter import compile_query

    cards = place.put("cards.jsonl", data)
    collection = Collection(cards, options=ScoreOptions, cards=cards)
    predicate = compile_query(
        "code:E3 S3<0.5 -tier:lite kidney -code:none outcome.a>1 -outcome.b:c stage>0 turns>1"
    )
    for row in (row for batch in collection.batches() for row in batch):
        assert predicate(row) in (True, False)
        collection.open(replace_path(row, place.folder))


def replace_path(row: Any, folder: Path) -> Any:
    """The row with a run that is not there: what a scorecard names is no input of this target."""
    return row._replace(path=str(folder / "nowhere"))


def _command(place: Place, *args: str) -> None:
    """A command line; what it says must be lines, and no internal error."""
    from ambjudge.cli import run

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([*args])
    said = err.getvalue()
    if (
        code not in (0, 1, 2)
        or "internal error" in said
        or "Traceback" in said
        or "Warning" in said
    ):
        raise AssertionError(f"{args[0]}: exit code {code}: {said[-600:]}")


_STRANGE: dict[str, list[Any]] = {
    "String": [None, "", "\x1b[31m\u202e", "=1+1", "a" * 300, "x", "kidney-seg-task"],
    "Float64": [None, 0.0, 1.0, 0.5, 100.0, -1.0, 1e-300, 1e300, float("nan"), float("inf")],
    "Int64": [None, 0, 1, 2, -1, 2**53, 2**63 - 1],
    "Boolean": [None, True, False],
}


def _cohort(place: Place, data: bytes, rng: random.Random) -> None:
    """A cohort with strange columns, compared, planned from, ranked, analysed."""
    import polars as pl

    copies = [
        _runs().with_columns(
            agent=pl.lit(agent),
            repeat=pl.lit(repeat, pl.Int64),
            run_id=pl.col("run_id") + f"-{agent}-{repeat}",
            overall=pl.Series(
                [rng.choice((0.0, 50.0, rng.random() * 100)) for _ in range(_runs().height)]
            ),
        )
        for agent in rng.sample(["a", "b", "c", "d"], rng.randint(1, 3))
        for repeat in range(rng.randint(1, 3))
    ]
    table = pl.concat(copies).sample(fraction=rng.choice((1.0, 0.6)), seed=rng.randrange(1 << 30))
    for name in rng.sample(table.columns, rng.choice((0, 2, 12))):
        some = rng.sample(_STRANGE[str(table.schema[name])], rng.choice((1, 2, 3)))
        values = [rng.choice(some) if rng.random() < 0.7 else old for old in table[name]]
        table = table.with_columns(pl.Series(name, values, table.schema[name]))
    table.write_parquet(place.folder / "cohort.parquet")
    path, outcome = (
        str(place.folder / "cohort.parquet"),
        rng.choice(("overall", "agentic", "task_score", "S2", "S5")),
    )
    as_json = rng.choice(((), ("--json",)))
    match rng.randrange(6):
        case 0 | 1:
            _command(
                place,
                "compare",
                "a",
                "b",
                path,
                "--by",
                "agent",
                "--outcome",
                outcome,
                "--margin",
                "5",
                *as_json,
            )
        case 2:
            _command(place, "power", path, "--difference", "5", "--outcome", outcome, *as_json)
        case 3:
            _command(place, "power", path, "--code", "E3", "--effect", "8", *as_json)
        case 4:
            _command(place, "leaderboard", path, "--outcome", outcome, *as_json)
        case _:
            _command(place, "analyze", path, *as_json)


@cache
def _runs() -> Any:
    from ambjudge.analysis import frame

    return frame(_CARDS)


def _outcome(place: Place, data: bytes, rng: random.Random) -> None:
    name = data[: rng.choice((3, 20, 200))].decode("utf-8", "replace").replace("\0", "0")
    cards = [json.loads(line) for line in _CARDS.read_text("utf-8").splitlines()[:4]]
    for number, card in enumerate(cards):
        value: Any = rng.choice((True, number, number / 3, "x", 1e300))
        card["outcomes"] = {rng.choice((name, "resolved")): {"value": value, "source": "x"}}
    path = place.put("cards.jsonl", "\n".join(map(json.dumps, cards)).encode())
    _command(place, "leaderboard", str(path), f"--outcome={name}", *rng.choice(((), ("--json",))))


def _labels(place: Place, data: bytes, rng: random.Random) -> None:
    """Labels as `label import` takes them, and as an agreement is measured on them."""
    path = str(place.put(f"labels/a.{rng.choice(('json', 'jsonl', 'yaml'))}", data))
    if rng.random() < 0.5:
        _command(place, "label", "import", path, "--store", str(place.folder / "labels.db"))
    else:
        _command(
            place, "agreement", str(_CARDS), "--labels", str(place.folder / "labels"), "--json"
        )


def _part(place: Place, data: bytes, rng: random.Random) -> None:
    """A part of a collection and its key, which somebody has laid into the folder of parts."""
    run, out = RUNS / "crc-lite-02", place.folder / "parts"
    _command(place, "score", str(run), "--shard", "1/1", "--out", str(out), "--store", "none", "-q")
    key = out / "part-00001-of-00001.key"
    note = key.read_bytes()
    key.write_bytes(mutated(note, rng, [note, data]))
    if rng.random() < 0.3:
        key.with_suffix(".jsonl").write_bytes(data)
    _command(place, "score", str(run), "--shard", "1/1", "--out", str(out), "--store", "none", "-q")


def _table(place: Place, data: bytes, rng: random.Random) -> None:
    """Tables of runs and of answers, as the analysis reads them."""
    from ambjudge.analysis.tables.answer_tables import read_answers
    from ambjudge.analysis.tables.frames import read_frame

    path = place.put(
        "table.parquet" if data.startswith(b"PAR1") or rng.random() < 0.2 else "table.csv", data
    )
    if rng.random() < 0.7:
        read_frame(path)
    else:
        list(read_answers(path))


@cache
def _tables() -> list[bytes]:
    """Of the runs of some scorecards and of one answer, in both forms."""
    import polars as pl
    from ambjudge.analysis import frame
    from ambjudge.analysis.tables.frames import write_frame

    answer = {
        "run_id": "a",
        "sha256": "b",
        "question": "c",
        "kind": "boolean",
        "judge": "j",
        "status": "scored",
        "answer": "true",
    }
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for table in (frame(_CARDS).head(3), pl.DataFrame([answer])):
            for suffix in ("csv", "parquet"):
                write_frame(table, Path(folder, f"t.{suffix}"))
                found.append(Path(folder, f"t.{suffix}").read_bytes())
    return found


TARGETS: dict[str, Target] = {
    "filter": _filter,
    "views": _views,
    "listed": _listed,
    "cohort": _cohort,
    "outcome": _outcome,
    "label files": _labels,
    "part": _part,
    "table": _table,
}


@cache
def seeds(target: str) -> list[bytes]:
    """What a target's inputs are made from."""
    if target in ("filter", "outcome"):
        return _FILTERS
    if target == "views":
        view = {"name": "mine", "query": _FILTERS[0].decode(), "column": 3, "descending": True}
        return [json.dumps([view, {**view, "name": "other", "sort": None}]).encode()]
    if target == "table":
        return _tables()
    if target == "label files":
        return [
            path.read_bytes() for path in sorted((DATA / "recorded" / "labels").rglob("*.json"))
        ]
    return [b"\n".join(_CARDS.read_bytes().splitlines()[at : at + 2]) for at in range(0, 12, 2)]
