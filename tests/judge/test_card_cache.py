"""Runs about which nothing has changed, and runs of which a hundred begin at once."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from ambjudge.errors import StoreError
from ambjudge.judge.base import Reply, Request
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.session import ScoreOptions, ScoreOutcome, run_session
from ambjudge.judge.store import Store, open_store
from ambjudge.rubrics.load import load_rubric
from ambjudge.testing import ScriptedJudge, tiny_run

RUBRIC = load_rubric("classification")


@dataclass(frozen=True)
class Noting(ScriptedJudge):
    """Notes what it is asked for, in the order of asking: (what, run)."""

    noted: list[tuple[str, str]] = field(default_factory=list)
    reading_s: float = 0.0
    """How long it takes to put one request's evidence together: a run of real size takes its time.
    """

    def evidence_sha256(self, request: Request) -> str:
        time.sleep(self.reading_s)
        self.noted.append(("evidence", request.run.path.parts[-3]))
        return super().evidence_sha256(request)

    async def judge(self, request: Request) -> Reply:
        self.noted.append(("judge", request.run.path.parts[-3]))
        return await super().judge(request)

    def asked(self) -> set[str]:
        """The runs that it judged something of since this was last asked."""
        runs = {run for event, run in self.noted if event == "judge"}
        self.noted.clear()
        return runs


def made(folder: Path, names: Sequence[str]) -> Path:
    """Tiny runs below the folder, whose files are an hour old."""
    for name in names:
        tiny_run(folder / name, track="classification", task=f"task-{name}")
    for subfolder, folders, files in os.walk(folder):
        for entry in (".", *folders, *files):
            os.utime(Path(subfolder) / entry, (1.7e9, 1.7e9))
    return folder


@pytest.fixture
def store(tmp_path: Path):
    with open_store(tmp_path / "s.db") as opened:
        yield opened


async def lines(
    runs: Path, judge: ScriptedJudge, store: Store, options: ScoreOptions | None = None
) -> list[str]:
    """The scorecards of all runs as they are handed on."""
    outcomes: list[ScoreOutcome] = []
    await run_session(
        [runs], judge, options or ScoreOptions(), outcomes.append, store=store, signals=False
    )
    return [outcome.scored.to_json() for outcome in outcomes if outcome.scored is not None]


async def test_nothing_changed_is_the_same_bytes_and_asks_nobody(tmp_path, store):
    runs, judge = made(tmp_path / "runs", "abc"), Noting()
    first = await lines(runs, judge, store)
    assert (len(first), judge.asked()) == (3, {"a", "b", "c"})
    assert await lines(runs, judge, store) == first
    assert not judge.noted, "nobody was asked, and no evidence was put together"


def _touch(runs: Path) -> None:
    tiny_run(runs / "b", track="classification", task="another")


OTHER = RUBRIC.model_copy(update={"sha256": "e" * 64, "version": "2"})


@pytest.mark.parametrize(
    ("change", "options", "judge", "anew", "asked"),
    [
        pytest.param(_touch, {}, {}, "b", "b", id="a file"),
        pytest.param(
            None,
            {"rubric": OTHER},
            {},
            "abc",
            "",
            id="the rubric, whose criteria have their verdicts",
        ),
        pytest.param(None, {"policy": Policy(missing="zero")}, {}, "abc", "", id="the policy"),
        pytest.param(None, {}, {"name": "another"}, "abc", "abc", id="the judge"),
        pytest.param(None, {}, {"script": {"S2b": 0.0}}, "abc", "abc", id="the judge's parameters"),
    ],
)
async def test_what_decides_a_card_makes_it_anew(
    tmp_path, store, change, options, judge, anew, asked
):
    runs, first = made(tmp_path / "runs", "abc"), Noting()
    before = await lines(runs, first, store)
    if change is not None:
        change(runs)
    second = replace(first, noted=[], **judge)
    after = await lines(runs, second, store, ScoreOptions(**options))
    noted_runs = {run for _, run in second.noted}
    assert (noted_runs, second.asked()) == (set(anew), set(asked))
    assert [
        name for name, old, new in zip("abc", before, after, strict=True) if old != new
    ] == list(anew)
    assert await lines(runs, first, store) == (before if change is None else after)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", b"no deflate"),
        ("body", zlib.compress(b"\xff\xfe")),
        ("gist", "[1"),
        ("gist", "{}"),
        ("gist", "[1]"),
        ("gist", "null"),
    ],
)
async def test_a_damaged_line_is_not_handed_on(tmp_path, store, column, value):
    runs, judge = made(tmp_path / "runs", "a"), Noting()
    await lines(runs, judge, store)
    database = sqlite3.connect(tmp_path / "s.db")
    with database:
        database.execute("drop trigger if exists cards_no_update")
        database.execute(f"update cards set {column} = ?", (value,))
    database.close()
    with pytest.raises(StoreError, match="a scorecard cannot be read"):
        await lines(runs, judge, store)


async def test_calls_begin_while_other_runs_are_still_read(tmp_path, store):
    runs, judge = made(tmp_path / "runs", [f"{n:02}" for n in range(20)]), Noting(reading_s=0.02)
    await lines(runs, judge, store, ScoreOptions(concurrency=20))
    first = next(number for number, (event, _) in enumerate(judge.noted) if event == "judge")
    asked_first = {run for event, run in judge.noted[:first] if event == "evidence"}
    assert len(asked_first) < 20
