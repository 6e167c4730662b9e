"""How much of S1-S3 was read, and whether a scorecard's totals may therefore be shown as one
number.

Read is what a judge scored, what rules or facts decided, what the tier credits, and what a breach
zeroed. A presumed value is not read, and neither is an unscored one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ...rubrics.model import Rubric
    from ...trajectories.models import Stage
    from .stage_results import StageResult

ENOUGH = 0.8
"""Share of the weight of S1-S3 below which nobody is shown a point, and of runs below which no
board is made of them."""
READ_STAGES: tuple[Stage, ...] = ("S1", "S2", "S3")

Standing = Literal["read", "presumed", "open"]
"""read: Agentic and Overall are points; presumed: points that rest on presumed criteria (~), shown
with their range; open: a judged stage is unscored or too little has a value at all, so that there
is a range and no point."""


class Shares(NamedTuple):
    """Of the weight of S1-S3, in [0, 1]; what is left has no value."""

    read: float
    presumed: float


def shares(stages: Mapping[str, StageResult], rubric: Rubric) -> Shares:
    """Of a run's stages; what does not apply has no weight. With nothing to read all is read."""
    weight = {"read": 0.0, "presumed": 0.0, "none": 0.0}
    for name in rubric.judged_stages:
        if name not in stages:
            continue
        heavy = {criterion.id: criterion.weight for criterion in rubric.stages[name].criteria}
        results = [
            r for r in stages[name].criteria if r.status != "not_applicable" and r.id in heavy
        ]
        whole = sum(heavy[r.id] for r in results)
        for result in results:
            kind = "read"
            if stages[name].method != "policy":
                kind = {"presumed": "presumed", "unscored": "none"}.get(result.status, "read")
            weight[kind] += rubric.weights[name] * heavy[result.id] / whole
    total = sum(weight.values())
    return (
        Shares(min(1.0, weight["read"] / total), min(1.0, weight["presumed"] / total))
        if total
        else Shares(1.0, 0.0)
    )


def standing(methods: Iterable[str], read: float, presumed: float) -> Standing:
    """From the methods of S1-S3 and the shares."""
    if "unscored" in methods or read + presumed < ENOUGH - 1e-9:
        return "open"
    return "presumed" if presumed and read < ENOUGH else "read"


def total_words(
    value: float | None,
    bounds: tuple[float, float],
    standing: Standing,
    mark: bool,
    digits: int,
    unknown: str = "–",
) -> str:
    """Agentic or Overall as people are shown it: a point, `~point [range]` where it rests on
    presumed criteria, or the range alone where too little was read. `mark`: some criteria are
    presumed. Without a value `unknown`, as there is no Task."""
    if value is None:
        return unknown
    low, high = (f"{bound:.{digits}f}" for bound in bounds)
    if standing == "open":
        return f"{low}–{high}" if low != high else low
    point = f"{'~' if mark else ''}{value:.{digits}f}"
    return f"{point} [{low}–{high}]" if standing == "presumed" and low != high else point
