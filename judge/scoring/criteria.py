"""What the tier and the rubric's requirements decide about the criteria of a judged stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...rubrics.model import Criterion, StageRubric
from ...trajectories.models import Tier
from ..card.stage_results import CriterionResult


class Split(NamedTuple):
    """Criteria of a stage: those that need a verdict, and the results that the tier decides."""

    to_judge: tuple[Criterion, ...]
    credited: tuple[CriterionResult, ...]
    not_applicable: tuple[CriterionResult, ...]


def split_criteria(stage: StageRubric, tier: Tier | None) -> Split:
    """What the tier decides, and what is left for a judge (docs/rubrics.md).

    A criterion credited in the tier counts 1, even without the plan that it is about. A criterion
    limited to other tiers leaves the denominator. An unknown tier credits nothing and excludes
    nothing: every criterion is judged, which favours nobody.
    """
    to_judge: list[Criterion] = []
    credited: list[CriterionResult] = []
    not_applicable: list[CriterionResult] = []
    for item in stage.criteria:
        if tier is not None and item.tiers is not None and tier not in item.tiers:
            detail = f"applies to {', '.join(item.tiers)} only"
            not_applicable.append(
                CriterionResult(id=item.id, value=None, status="not_applicable", detail=detail)
            )
        elif tier is not None and tier in item.credit:
            rationale = f"credited in tier {tier}"
            credited.append(
                CriterionResult(id=item.id, value=1.0, status="credited", rationale=rationale)
            )
        else:
            to_judge.append(item)
    return Split(tuple(to_judge), tuple(credited), tuple(not_applicable))


def applies(results: Iterable[CriterionResult], criteria: Sequence[Criterion]) -> bool:
    """Whether a stage with these criteria applies: not if every one is found not to."""
    inapplicable = {result.id for result in results if result.status == "not_applicable"}
    return not criteria or any(criterion.id not in inapplicable for criterion in criteria)


def apply_requires(
    results: Sequence[CriterionResult], criteria: Sequence[Criterion]
) -> tuple[CriterionResult, ...]:
    """The results, with each criterion set to 0 whose required criterion is 0.

    Paper table 7: "0 without a plan". Chains are followed. The judged value stays readable in the
    rationale. Credited and inapplicable criteria are unchanged. An unscored or presumed criterion
    becomes a scored 0 too, as no verdict could change it. A requirement that is itself unscored or
    presumed changes no value here; `stage_score` lowers the worst case for it. ValueError for
    criteria that require each other.
    """
    requirements = _Requirements(results_by_id(results, criteria), criteria)
    return tuple(requirements.applied(result) for result in results)


class _Requirements:
    """Results of one stage, with requirements applied to them one after the other."""

    def __init__(
        self, results: Mapping[str, CriterionResult], criteria: Sequence[Criterion]
    ) -> None:
        self._results = results
        self._required = {item.id: item.requires for item in criteria}
        self._applied: dict[str, CriterionResult] = {}

    def applied(self, result: CriterionResult, dependents: tuple[str, ...] = ()) -> CriterionResult:
        """The result with its requirements applied; `dependents` led to it."""
        name = result.id
        if name in self._applied:
            return self._applied[name]
        if name in dependents:
            circle = " -> ".join((*dependents, name))
            raise ValueError(f"criteria require each other in a circle: {circle}")
        if result.status in ("scored", "presumed", "unscored"):
            for required in self._required[name]:
                if self._is_zero(required, (*dependents, name)):
                    result = _zeroed(result, required)
                    break
        self._applied[name] = result
        return result

    def _is_zero(self, name: str, dependents: tuple[str, ...]) -> bool:
        if name not in self._results:
            return False
        result = self.applied(self._results[name], dependents)
        return result.value == 0 and result.status in ("scored", "credited")


def _zeroed(result: CriterionResult, required: str) -> CriterionResult:
    if result.status == "scored" and result.value == 0:
        return result
    if result.value is None:
        before = f"unscored ({result.reason or 'no verdict'})"
    elif result.status == "presumed":
        before = f"presumed {result.value:g}"
    else:
        before = f"judged {result.value:g}"
    rationale = f"0 because {required} is 0; {before}"
    if result.rationale:
        rationale += f": {result.rationale}"
    return result.model_copy(
        update={
            "value": 0.0,
            "status": "scored",
            "by": None,
            "reason": None,
            "rationale": rationale,
            "detail": "",
        }
    )


def results_by_id(
    results: Sequence[CriterionResult], criteria: Sequence[Criterion]
) -> dict[str, CriterionResult]:
    """The results by criterion; ValueError for an unknown criterion or a second result for one."""
    ids = {item.id for item in criteria}
    by_id: dict[str, CriterionResult] = {}
    for result in results:
        if result.id not in ids:
            raise ValueError(f"result for {result.id}, which is not a criterion of the stage")
        if result.id in by_id:
            raise ValueError(f"two results for {result.id}")
        by_id[result.id] = result
    return by_id
