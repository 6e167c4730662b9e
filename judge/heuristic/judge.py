"""The heuristic judge: deterministic verdicts on S1-S3 from observable evidence, without any model.

It is the default judge, and the null model against which every other judge reports its gain. Each verdict names turns
and exact quotes; a criterion that no rule knows stays unscored, it is never a made-up 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ...rubrics.model import Criterion
from ...trajectories.models import Run
from ..base import Reply, Request
from ..scorecard import CriterionResult
from .placeholders import count_placeholders
from .rules import rules_for
from .view import Finding, View

VERSION = "7"
"""Part of every verdict's key: raise it when a rule changes, so that stored verdicts of the old rules go stale."""


class HeuristicJudge:
    """Judges by rules. Pure: the same run, segmentation and rubric give the same reply. It never raises for a run."""

    name = "heuristic"
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None

    def __init__(self) -> None:
        self._last: View | None = None

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {"version": VERSION}

    def evidence_sha256(self, request: Request) -> str:
        """Of what the rules can read: everything that the run was read from, and the placeholder tally of its answers."""
        run = request.run
        parts = [VERSION, run.content_sha256, run.track or "", run.tier or "", request.question]
        if request.question == "S3" and request.rubric.track == "vqa":
            counted = count_placeholders(run)
            parts.append(f"{counted.placeholders}/{counted.answers}")
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    async def judge(self, request: Request) -> Reply:
        """Verdicts for the requested criteria, in their order."""
        view = self._view(request.run)
        rules = rules_for(request.rubric)
        results = []
        for criterion in request.criteria:
            rule = rules.get(criterion.id)
            if rule is None:
                results.append(_without_rule(criterion))
            else:
                results.append(_result(criterion, rule(view)))
        return Reply(results=tuple(results))

    def _view(self, run: Run) -> View:
        """The facts of the run, kept from stage to stage: S1-S3 of one run are judged one after the other."""
        last = self._last
        if last is None or last.run is not run:
            last = self._last = View(run)
        return last


def _without_rule(criterion: Criterion) -> CriterionResult:
    return CriterionResult(
        id=criterion.id, value=None, status="unscored", reason="no_evidence",
        detail=f"the heuristic judge has no rule for {criterion.id} of this rubric",
    )  # fmt: skip


def _result(criterion: Criterion, finding: Finding) -> CriterionResult:
    if not finding.applies or finding.value is None:
        if criterion.conditional is not None:
            return CriterionResult(id=criterion.id, value=None, status="not_applicable", detail=finding.rationale)
        return CriterionResult(
            id=criterion.id, value=None, status="unscored", reason="no_evidence", detail=finding.rationale
        )
    return CriterionResult(
        id=criterion.id, value=_on_scale(finding.value, criterion), status="scored", rationale=finding.rationale,
        evidence=finding.evidence,
    )  # fmt: skip


def _on_scale(value: float, criterion: Criterion) -> float:
    """The highest level of the criterion's own scale that is not above the value that was found."""
    return max((level for level in criterion.values if level <= value + 1e-9), default=min(criterion.values))
