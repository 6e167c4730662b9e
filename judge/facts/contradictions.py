"""Verdicts that observable facts speak against: the verdict stands and the contradiction is shown
beside it, unless evidence is taken strictly (`proven`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ...error_codes.models import Contradiction
from ...tracks import PLAN_ITEMS, TRACKS
from ...trajectories.models import Run, Segmentation
from ...trajectories.turns.features import features
from ...trajectories.turns.turn_features import TurnFeatures
from ..card.fields import RULES
from ..card.stage_results import CriterionResult
from ..checks.check_outputs import OutputCheck


def find_contradictions(
    run: Run,
    segmentation: Segmentation,
    results: Mapping[str, Sequence[CriterionResult]],
    check: OutputCheck | None = None,
) -> tuple[Contradiction, ...]:
    """One line for each judged item that a fact of the run denies; credited and unscored items
    claim nothing."""
    facts = features(run)
    met = {
        r.id: r
        for stage in results.values()
        for r in stage
        if r.status == "scored" and r.value is not None and r.value > 0
    }
    track = TRACKS.find(run.track)
    items = PLAN_ITEMS if track is None else track.items
    claimed = {what: name for what, name in items.items() if name in met}
    return tuple(
        found
        for rule in (_plan, _environment, _model, _pilot)
        for found in rule(run, facts, claimed)
    )


def proven(
    result: CriterionResult, contradicted: Collection[str], by_rules: bool
) -> CriterionResult:
    """The result under strict evidence: met without words that were found in the run, or against a
    fact, is unscored.

    `by_rules`: the rules judge gave it. What rules say of a criterion is a fact, with or without
    words.
    """
    if result.status != "scored" or not result.value:
        return result
    by_rules = by_rules or any(vote.judge == RULES and vote.value for vote in result.votes)
    if result.id in contradicted:
        why = "a fact of the run speaks against it"
    elif by_rules or any(evidence.check != "not_found" for evidence in result.evidence):
        return result
    else:
        why = "no quoted words were found in the run"
    said = f"{why}; judged {result.value:g}, which strict evidence does not count"
    update = {"value": None, "status": "unscored", "reason": "no_evidence", "detail": said}
    return result.model_copy(update=update)


def _plan(
    run: Run, facts: Sequence[TurnFeatures], claimed: Mapping[str, str]
) -> Iterator[Contradiction]:
    tried = tuple(f.turn for f in facts if f.writes_plan)
    if "plan" in claimed and not run.plan.exists:
        fact = "no plan.md came with the run and no execution that wrote one succeeded"
        yield Contradiction(criterion=claimed["plan"], fact=fact, turns=tried)
    if "picture" in claimed and not run.plan.image_exists:
        yield Contradiction(
            criterion=claimed["picture"],
            fact="no plan.png came with the run and no execution wrote one",
        )


def _environment(
    run: Run, facts: Sequence[TurnFeatures], claimed: Mapping[str, str]
) -> Iterator[Contradiction]:
    if "environment" in claimed and facts and not any(_ran(f) for f in facts):
        turns = tuple(f.turn for f in facts if f.failed)
        yield Contradiction(
            criterion=claimed["environment"], fact="no execution of the run succeeded", turns=turns
        )


def _model(
    run: Run, facts: Sequence[TurnFeatures], claimed: Mapping[str, str]
) -> Iterator[Contradiction]:
    if "model" in claimed and not any(_ran(f) and _applies(f) for f in facts):
        fact = "no successful execution loads or applies a model or method"
        yield Contradiction(
            criterion=claimed["model"], fact=fact, turns=tuple(f.turn for f in facts if _applies(f))
        )


def _pilot(
    run: Run, facts: Sequence[TurnFeatures], claimed: Mapping[str, str]
) -> Iterator[Contradiction]:
    if "pilot" not in claimed:
        return
    batch = next(
        (f.turn for f in facts if f.cases_scope == "all" and (f.writes_outputs or f.forward_pass)),
        None,
    )
    before = [f for f in facts if batch is None or f.turn < batch]
    if not any(_ran(f) and (_applies(f) or f.inspects_values) for f in before):
        where = "anywhere in the run" if batch is None else f"before the full run of turn {batch}"
        fact = f"no successful execution of the model or method {where}"
        yield Contradiction(
            criterion=claimed["pilot"], fact=fact, turns=() if batch is None else (batch,)
        )


def _applies(f: TurnFeatures) -> bool:
    return f.loads_model or f.forward_pass or f.classical_method or f.writes_outputs


def _ran(f: TurnFeatures) -> bool:
    return f.executed and not (f.failed or f.blocked or f.timed_out or f.unanswered)
