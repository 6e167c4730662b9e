"""One run as one row of the table: plain tuples, so that ten thousand of them are sorted and filtered at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..trajectories.stages import STAGES

State = Literal["waiting", "scored", "error"]


class RunRow(NamedTuple):
    """What the table knows of a run. Scores of stages, agentic and task are in [0, 1], overall in [0, 100]."""

    number: int
    """Place in the collection, from 0; stays the same when the run is scored."""
    id: str
    path: str
    """Of the conversation file, as far as is known."""
    state: State
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    track: str | None = None
    tier: str | None = None
    repeat: int | None = None
    turns: int | None = None
    stages: tuple[float | None, ...] = (None,) * 5
    agentic: float | None = None
    task_score: float | None = None
    overall: float | None = None
    codes: tuple[str, ...] = ()
    primary: str | None = None
    ended: str | None = None
    disqualified: bool = False
    failed_calls: int | None = None
    contradictions: int = 0
    unscored: int = 0
    """Criteria of S1-S3 and stages without a score."""
    unverified: int = 0
    """Quotes that were not found in the turn they are cited from."""
    judge: str | None = None
    rubric: str | None = None
    cost: float | None = None
    """US dollars that the run itself cost."""
    error: str = ""
    """Why the run cannot be read or scored."""


def waiting(number: int, path: Path, id: str) -> RunRow:
    """A run that nobody has scored yet."""
    return RunRow(number, id, str(path), "waiting")


def row_of(number: int, card: Mapping[str, Any], path: Path | None = None) -> RunRow:
    """The row of a scorecard given as plain values (`ambjudge.scorecard/1`), read without validating all of it.

    KeyError, TypeError, ValueError, AttributeError when the values are no scorecard.
    """
    run, status = card["run"], card["status"]
    stages = card["stages"]
    criteria = [c for name in STAGES for c in stages[name]["criteria"]]
    return RunRow(
        number, _text(run["id"]) or "?", str(path) if path is not None else str(run["path"]), "scored",
        _text(run["agent"]), _text(run["model"]), _text(run["task"]), _text(run["track"]), _text(run["tier"]),
        _whole(run["repeat"]), _whole(run["turns"]),
        tuple(_number(stages[name]["score"]) for name in STAGES),
        _number(card["agentic"]), _number(card["task"]), _number(card["overall"]),
        tuple(dict.fromkeys(str(code["code"]) for code in card["codes"])),
        _text(card["primary_failure"]), _text(status["ended"]), bool(status["disqualified"]),
        _whole(card["resources"]["failed_calls"]), len(card["contradictions"]),
        sum(c["status"] == "unscored" for c in criteria) + sum(stages[name]["score"] is None for name in STAGES),
        sum(e["check"] != "verified" for c in criteria for e in c["evidence"]),
        _text(card["judge"]["name"]), f"{card['rubric']['id']} {card['rubric']['version']}",
        _number(card["resources"]["cost_usd"]),
    )  # fmt: skip


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
