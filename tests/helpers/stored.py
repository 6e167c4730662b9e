"""What tests of the store put into it, in their own process and in others."""

from __future__ import annotations

from pathlib import Path

from ambjudge.judge.base import Usage
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.questions.verdict_keys import VerdictKey
from ambjudge.judge.store import Store
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUBRIC = load_rubric("segmentation")


def recorded_run() -> Run:
    return load_run(RECORDED / "runs" / "kidney-lite-02")


def key(number: int, *, criterion: str = "S1a", evidence: str = "e") -> VerdictKey:
    return VerdictKey(
        criterion_id=criterion,
        criterion_sha256="c" * 64,
        evidence_sha256=evidence,
        judge="tester",
        prompt_sha256=None,
        parameters="{}",
        sample=0,
        sha256=f"{number:064x}",
    )


def scored(value: float = 1.0, id: str = "S1a", **more) -> CriterionResult:
    return CriterionResult(id=id, value=value, status="scored", **more)


def spent(store: Store) -> Usage:
    """What all calls of a store have used."""
    with store._engine.connect() as connection:
        calls = [row[0] for row in connection.exec_driver_sql("select id from calls")]
    return sum((call.usage for call in store.calls_of(calls).values()), Usage())


def sound(store: Store) -> None:
    """AssertionError when SQLite finds a fault in its file."""
    if store._engine.dialect.name == "sqlite":
        with store._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall() == []
