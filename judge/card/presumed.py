"""What a criterion that nobody read may be presumed to be: the commonest value of labelled runs
(presumed.yaml).

No verdict: a presumed value counts in the point score alone, the bounds go over the criterion's
whole scale, and it is never stored, voted with, cited or compared with labels. The table is bound
to the criteria by the hash of their text, so that an edited criterion stays unscored;
benchmarks/rules.py writes it from the labelled runs of this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...package_data import read_shipped
from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion
from .stage_results import CriterionResult

TABLE = Path(__file__).with_name("presumed.yaml")
MIN_RUNS = 5
"""Labelled runs from which on there is a commonest value."""
MIN_SHARE = 0.6
"""Share of them from which on it is clear."""


@dataclass(frozen=True)
class Presumption:
    """The commonest value of the labelled runs of which rules do not decide the criterion, its
    share, and their number."""

    value: float
    share: float
    n: int


@cache
def presumptions() -> dict[str, Presumption]:
    """By the hash of the criterion (`criterion_sha256`)."""
    rows = read_shipped(TABLE)
    return {
        row["sha256"]: Presumption(float(row["value"]), float(row["share"]), int(row["n"]))
        for row in rows
    }


def presumed(criterion: Criterion) -> Presumption | None:
    """What this criterion is presumed to be; None for an edited one, and where the labels show no
    clear value."""
    return presumptions().get(criterion_sha256(criterion))


def presume(result: CriterionResult, criterion: Criterion) -> CriterionResult:
    """A result that nobody read with its presumed value; every other result, a failure included, as
    it is."""
    if result.status != "unscored" or result.reason != "not_read":
        return result
    found = presumed(criterion)
    if found is None:
        return result
    why = (
        f"nobody read it: {found.value:g} on {found.share:.0%} of {found.n} labelled runs that"
        " rules do not decide"
    )
    return CriterionResult(id=result.id, value=found.value, status="presumed", detail=why)
