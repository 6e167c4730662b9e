"""One run as one row of the table: plain tuples, so that ten thousand of them are sorted and
filtered at once."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..error_codes.paper_codes import BY_READING, CODES
from ..judge.card.read_share import READ_STAGES, standing
from ..trajectories.stages import STAGES

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard

State = Literal["waiting", "scored", "error"]


class RunRow(NamedTuple):
    """What the table knows of a run. Scores of stages, agentic and task are in [0, 1], overall in
    [0, 100]."""

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
    """As overall is: None where too little was read for a point."""
    task_score: float | None = None
    overall: float | None = None
    codes: tuple[str, ...] = ()
    """Codes that fired."""
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
    unknown: tuple[str, ...] = ()
    """Codes that did not fire and of which nobody knows: not read, or the reader could not tell."""
    read: bool = False
    """A judge read the run for codes."""
    presumed: int = 0
    """Criteria that nobody read, whose presumed values stand in the scores."""
    outcomes: Mapping[str, bool | float | str] = MappingProxyType({})
    """By name in lower case, what another harness found out."""
    span: tuple[float, float] | None = None
    """The range of Overall, where it is no point, or one on presumed criteria."""


def waiting(number: int, path: Path, id: str) -> RunRow:
    """A run that nobody has scored yet."""
    return RunRow(number, id, str(path), "waiting")


def row_of(number: int, card: Mapping[str, Any], path: Path | None = None) -> RunRow:
    """The row of a scorecard given as plain values (`ambjudge.scorecard/1`), read without
    validating all of it.

    KeyError, TypeError, ValueError, AttributeError when the values are no scorecard.
    """
    run, status = card["run"], card["status"]
    stages = card["stages"]
    criteria = [c for stage in stages.values() for c in stage["criteria"]]
    codes = tuple(dict.fromkeys(str(code["code"]) for code in card["codes"]))
    states = card["codes_read"]
    tagged = any(str(code["by"]).startswith("judge:") for code in card["codes"])
    read = tagged or any(states.get(code) in ("absent", "cannot_tell") for code in BY_READING)
    methods = [
        stage["method"]
        for name, stage in stages.items()
        if stage["criteria"] or name in READ_STAGES
    ]
    kind = standing(methods, float(card["read_share"]), float(card["presumed_share"]))
    bounds = card["overall_bounds"]
    span = (
        (float(bounds[0]), float(bounds[1]))
        if kind != "read" and card["overall"] is not None
        else None
    )
    point = kind != "open"
    return RunRow(
        number,
        _text(run["id"]) or "?",
        str(path) if path is not None else str(run["path"]),
        "scored",
        _text(run["agent"]),
        _text(run["model"]),
        _text(run["task"]),
        _text(run["track"]),
        _text(run["tier"]),
        _whole(run["repeat"]),
        _whole(run["turns"]),
        tuple(_number(stages[name]["score"]) if name in stages else None for name in STAGES),
        _number(card["agentic"]) if point else None,
        _number(card["task"]),
        _number(card["overall"]) if point else None,
        codes,
        _text(card["primary_failure"]),
        _text(status["ended"]),
        bool(status["disqualified"]),
        _whole(card["resources"]["failed_calls"]),
        len(card["contradictions"]),
        sum(c["status"] == "unscored" for c in criteria)
        + sum(stage["score"] is None for stage in stages.values()),
        sum(e["check"] != "verified" for c in criteria for e in c["evidence"]),
        _text(card["judge"]["name"]),
        f"{card['rubric']['id']} {card['rubric']['version']}",
        _number(card["resources"]["cost_usd"]),
        unknown=_unknown(states, codes),
        read=read,
        presumed=sum(c["status"] == "presumed" for c in criteria),
        span=span,
        outcomes={
            str(name).lower(): told["value"] for name, told in (card.get("outcomes") or {}).items()
        },
    )


def unknown_codes(card: ScoreCard) -> tuple[str, ...]:
    """Codes of a scorecard that did not fire and of which nobody knows."""
    return _unknown(card.codes_read, {code.code for code in card.codes})


def _unknown(states: Mapping[str, str], fired: Container[str]) -> tuple[str, ...]:
    return tuple(c for c in CODES if states.get(c) not in ("present", "absent") and c not in fired)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
