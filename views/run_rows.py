"""Rows of the run table: a plain tuple for each run, so that ten thousand sort and filter fast."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..error_codes.paper_codes import BY_READING, CODES
from ..judge.card.read_share import READ_STAGES, Standing, standing
from ..trajectories.reading.layout import parts_of, run_folder
from ..trajectories.stages import STAGES

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard

State = Literal["waiting", "scored", "error"]
_COMPLETE_WITHOUT_SCORE = ("reported", "not_applicable", "withheld")
"""Methods of stages that lack no verdict though they have no score."""


class RunRow(NamedTuple):
    """One run of the table.

    Scores of stages, agentic and task are in [0, 1], overall is in [0, 100]. The site writes the
    fields to JSON under these names.
    """

    number: int
    """Place in the collection, from 0; stays the same when the run is scored."""
    id: str
    path: str
    """The conversation file, or its path as the scorecard states it."""
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
    """None where too few criteria were judged for a point score."""
    task_score: float | None = None
    overall: float | None = None
    """None like `agentic`, or where Task is unknown."""
    codes: tuple[str, ...] = ()
    """Codes that fired."""
    primary: str | None = None
    """Stage and code of the primary failure."""
    ended: str | None = None
    disqualified: bool = False
    failed_calls: int | None = None
    failed_steps: int | None = None
    """Steps that failed, overcome or not; one step may fail several times."""
    contradictions: int = 0
    unscored: int = 0
    """Criteria without a verdict, and stages without a score."""
    unverified: int = 0
    """Quotes that were not found in the turn they are cited from."""
    judge: str | None = None
    rubric: str | None = None
    cost: float | None = None
    """Cost of the run itself in US dollars."""
    error: str = ""
    """Why the run cannot be read or scored."""
    unknown: tuple[str, ...] = ()
    """Codes that did not fire, though neither a judge nor the facts rule them out."""
    read: bool = False
    """Whether a judge read the run for codes."""
    presumed: int = 0
    """Number of criteria whose presumed values are part of the scores."""
    outcomes: Mapping[str, bool | float | str] = MappingProxyType({})
    """Outcomes that another harness reported, by name in lower case."""
    groups: Mapping[str, float] = MappingProxyType({})
    """Scores (0-1) of the groups of criteria of a rubric of one's own, which are no S1-S5."""
    span: tuple[float, float] | None = None
    """Bounds of Overall if it is only a range, or a point that rests on presumed criteria."""
    parts: int | None = None
    """Parts of other agents, such as sub-agents, in the run's folder; None without any."""


def waiting(number: int, path: Path, id: str) -> RunRow:
    """The row of a run without a scorecard."""
    return RunRow(number=number, id=id, path=str(path), state="waiting", parts=count_parts(path))


def count_parts(conversation: Path) -> int | None:
    """The number of parts of other agents in the folder of a run; None without any."""
    return len(parts_of(run_folder(conversation))) or None


def row_of(number: int, card: Mapping[str, Any], path: Path | None = None) -> RunRow:
    """The row of a scorecard given as plain values (`ambjudge.scorecard/1`).

    The values are not validated, so that ten thousand scorecards are listed in seconds. KeyError,
    TypeError, ValueError or AttributeError if they do not form a scorecard.
    """
    run, status, resources = card["run"], card["status"], card["resources"]
    stages = card["stages"]
    criteria = [criterion for stage in stages.values() for criterion in stage["criteria"]]
    codes = tuple(dict.fromkeys(str(code["code"]) for code in card["codes"]))
    card_standing = _standing(card)
    is_point = card_standing != "open"
    overall_range = None
    if card_standing != "read" and card["overall"] is not None:
        low, high = card["overall_bounds"]
        overall_range = (float(low), float(high))
    unscored_stages = sum(
        stage["score"] is None and stage["method"] not in _COMPLETE_WITHOUT_SCORE
        for stage in stages.values()
    )
    outcomes = card.get("outcomes") or {}
    return RunRow(
        number=number,
        id=_text(run["id"]) or "?",
        path=str(path) if path is not None else str(run["path"]),
        state="scored",
        agent=_text(run["agent"]),
        model=_text(run["model"]),
        task=_text(run["task"]),
        track=_text(run["track"]),
        tier=_text(run["tier"]),
        repeat=_integer(run["repeat"]),
        turns=_integer(run["turns"]),
        stages=tuple(_number(stages[name]["score"]) if name in stages else None for name in STAGES),
        agentic=_number(card["agentic"]) if is_point else None,
        task_score=_number(card["task"]),
        overall=_number(card["overall"]) if is_point else None,
        codes=codes,
        primary=_text(card["primary_failure"]),
        ended=_text(status["ended"]),
        disqualified=bool(status["disqualified"]),
        failed_calls=_integer(resources["failed_calls"]),
        failed_steps=len(card["episodes"]),
        contradictions=len(card["contradictions"]),
        unscored=_count_unscored(stages.values()) + unscored_stages,
        unverified=_count_unverified(criteria),
        judge=_text(card["judge"]["name"]),
        rubric=f"{card['rubric']['id']} {card['rubric']['version']}",
        cost=_number(resources["cost_usd"]),
        unknown=_unknown_codes(card["codes_read"], codes),
        read=_was_read_for_codes(card),
        presumed=_count_status(criteria, "presumed"),
        outcomes={str(name).lower(): outcome["value"] for name, outcome in outcomes.items()},
        groups={
            str(name): float(stage["score"])
            for name, stage in stages.items()
            if name not in STAGES and stage["score"] is not None
        },
        span=overall_range,
        parts=count_parts(path or Path(str(run["path"]))),
    )


def _standing(card: Mapping[str, Any]) -> Standing:
    """Whether the totals are points, points on presumed criteria, or only ranges."""
    methods = [
        stage["method"]
        for name, stage in card["stages"].items()
        if stage["criteria"] or name in READ_STAGES
    ]
    return standing(methods, float(card["read_share"]), float(card["presumed_share"]))


def _was_read_for_codes(card: Mapping[str, Any]) -> bool:
    """Whether a judge read the run for codes."""
    states = card["codes_read"]
    if any(states.get(code) in ("absent", "cannot_tell") for code in BY_READING):
        return True
    return any(str(code["by"]).startswith("judge:") for code in card["codes"])


def _count_status(criteria: Sequence[Mapping[str, Any]], status: str) -> int:
    """The number of criteria with this status."""
    return sum(criterion["status"] == status for criterion in criteria)


def _count_unscored(stages: Iterable[Mapping[str, Any]]) -> int:
    """The number of criteria without a verdict, but for those that a running run may still meet and
    those of stages that a report states as a whole."""
    return sum(
        criterion["status"] == "unscored" and criterion.get("reason") != "running"
        for stage in stages
        if stage["method"] != "reported"
        for criterion in stage["criteria"]
    )


def _count_unverified(criteria: Sequence[Mapping[str, Any]]) -> int:
    """The number of quotes that were not found in the turn they are cited from."""
    return sum(
        evidence["check"] != "verified"
        for criterion in criteria
        for evidence in criterion["evidence"]
    )


def unknown_codes(card: ScoreCard) -> tuple[str, ...]:
    """Codes of a scorecard that did not fire, though neither a judge nor facts rule them out."""
    return _unknown_codes(card.codes_read, {code.code for code in card.codes})


def _unknown_codes(states: Mapping[str, str], fired: Container[str]) -> tuple[str, ...]:
    """`states` holds the reading of each code: present, absent, cannot_tell or not_read."""
    return tuple(
        code
        for code in CODES
        if states.get(code) not in ("present", "absent") and code not in fired
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
