"""How much of S1-S3 was read, and whether totals may therefore be shown as one number.

Read is what a judge scored, what rules or facts decided, what the tier credits, what a report
states of a whole stage, and what a breach zeroed. Presumed and unscored criteria are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...rounding import fixed

if TYPE_CHECKING:
    from ...rubrics.model import Rubric, StageRubric
    from ...trajectories.models import Stage
    from .stage_results import StageResult

ENOUGH = 0.8
"""Share of the weight of S1-S3 from which a point score is shown, and share of the runs from which
a leaderboard is made of them."""
READ_STAGES: tuple[Stage, ...] = ("S1", "S2", "S3")

Standing = Literal["read", "presumed", "open"]
"""read: Agentic and Overall are points. presumed: they are points that rest on presumed criteria
(~), shown with their range. open: a judged stage is unscored, or too little has a value at all;
only a range is shown."""


class Shares(NamedTuple):
    """Shares of the weight of S1-S3, in [0, 1]; what remains has no value."""

    read: float
    presumed: float


def shares(stages: Mapping[str, StageResult], rubric: Rubric) -> Shares:
    """The shares of a run's stages.

    Inapplicable criteria have no weight. With nothing to read, everything is read.
    """
    weights = {"read": 0.0, "presumed": 0.0, "unscored": 0.0}
    for name in rubric.judged_stages:
        if name in stages:
            for kind, weight in _weights(stages[name], rubric.stages[name], rubric.weights[name]):
                weights[kind] += weight
    total = sum(weights.values())
    if not total:
        return Shares(1.0, 0.0)
    return Shares(min(1.0, weights["read"] / total), min(1.0, weights["presumed"] / total))


def _weights(
    stage: StageResult, rubric: StageRubric, stage_weight: float
) -> Iterator[tuple[str, float]]:
    """How each applicable criterion of a stage counts, and its part of the stage's weight."""
    weight = {criterion.id: criterion.weight for criterion in rubric.criteria}
    results = [
        result
        for result in stage.criteria
        if result.status != "not_applicable" and result.id in weight
    ]
    total = sum(weight[result.id] for result in results)
    for result in results:
        kind = "read"
        if stage.method not in ("policy", "reported") and result.status in ("presumed", "unscored"):
            kind = result.status
        yield kind, stage_weight * weight[result.id] / total


def standing(methods: Sequence[str], read: float, presumed: float) -> Standing:
    """The standing that follows from the methods of S1-S3 and the shares."""
    if not {"unscored", "withheld"}.isdisjoint(methods) or read + presumed < ENOUGH - 1e-9:
        return "open"
    return "presumed" if presumed and read < ENOUGH else "read"


def format_total(
    value: float | None,
    bounds: tuple[float, float],
    standing: Standing,
    mark: bool,
    digits: int,
    unknown: str = "–",
) -> str:
    """Agentic or Overall as people are shown it.

    A point; `~point [range]` if it rests on presumed criteria; the range alone if too little was
    read. `mark`: some criteria are presumed. `unknown`: shown without a value, as there is no Task.
    """
    if value is None:
        return unknown
    low, high = (fixed(bound, digits) for bound in bounds)
    if standing == "open":
        return low if low == high else f"{low}–{high}"
    point = f"{'~' if mark else ''}{fixed(value, digits)}"
    if standing == "presumed" and low != high:
        return f"{point} [{low}–{high}]"
    return point
