"""Presumed values: what stands in a point score for a criterion that no judge read.

presumed.yaml has the most common value of each criterion on this project's labelled runs;
benchmarks/rules.py writes it. A presumed value is no verdict: it counts in the point score only,
the bounds still cover the criterion's whole scale, and it is never stored, voted with, cited or
compared with labels.

Values are bound to criteria of the shipped rubrics (`rubrics.bindings`), so an edited criterion of
a user's rubric stays unscored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...package_data import read_package_yaml
from ...rubrics.bindings import Binding, BindingKey, binding_key
from ...rubrics.model import Criterion
from .stage_results import CriterionResult

TABLE_FILE = Path(__file__).with_name("presumed.yaml")
MIN_RUNS = 5
"""With fewer labelled runs a criterion has no presumed value."""
MIN_SHARE = 0.6
"""A value is presumed only if at least this share of the labelled runs has it."""


@dataclass(frozen=True)
class Presumption:
    """The most common value of a criterion on the labelled runs in which rules do not decide it."""

    binding: Binding
    value: float
    share: float
    """Share of these runs that have the value, in [MIN_SHARE, 1]."""
    n: int
    """Number of these runs, at least MIN_RUNS."""


@cache
def presumptions() -> tuple[Presumption, ...]:
    """All presumed values that ship with ambjudge."""
    return tuple(
        Presumption(
            binding=Binding.from_row(row),
            value=float(row["value"]),
            share=float(row["share"]),
            n=int(row["n"]),
        )
        for row in read_package_yaml(TABLE_FILE)
    )


@cache
def _presumptions_by_key() -> dict[BindingKey, Presumption]:
    return {
        key: presumption
        for presumption in presumptions()
        for key in presumption.binding.bound_keys()
    }


def presumption_for(criterion: Criterion) -> Presumption | None:
    """The presumed value of a criterion; None if labels show no clear one or it was edited."""
    return _presumptions_by_key().get(binding_key(criterion))


def presume(result: CriterionResult, criterion: Criterion) -> CriterionResult:
    """Fill in the presumed value if no judge read the criterion.

    Every other result, failures included, is returned unchanged.
    """
    if result.status != "unscored" or result.reason != "not_read":
        return result
    presumption = presumption_for(criterion)
    if presumption is None:
        return result
    detail = (
        f"no judge read it; the value is {presumption.value:g} on {presumption.share:.0%} of"
        f" {presumption.n} labelled runs that rules do not decide"
    )
    return CriterionResult(id=result.id, value=presumption.value, status="presumed", detail=detail)
