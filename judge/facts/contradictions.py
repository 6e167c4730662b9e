"""Verdicts that observable facts of the run contradict.

The verdict stands and the contradiction is shown beside it, unless evidence is taken strictly
(`strict_result`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ...error_codes.models import Contradiction
from ...tracks import PLAN_ITEMS, TRACKS
from ...trajectories.models import Run
from ...trajectories.turns.features import features
from ...trajectories.turns.turn_features import TurnFeatures
from ..card.fields import RULES
from ..card.stage_results import CriterionResult


def find_contradictions(
    run: Run, results: Mapping[str, Sequence[CriterionResult]]
) -> tuple[Contradiction, ...]:
    """The judged criteria that a fact of the run contradicts.

    Only criteria that were judged met can be contradicted: credited and unscored ones claim
    nothing.
    """
    met = {
        result.id
        for stage_results in results.values()
        for result in stage_results
        if result.status == "scored" and result.value is not None and result.value > 0
    }
    track = TRACKS.find(run.track)
    items = PLAN_ITEMS if track is None else track.items
    claims = {claim: criterion for claim, criterion in items.items() if criterion in met}
    turns = features(run)
    return (
        *_plan_contradictions(run, turns, claims),
        *_environment_contradictions(turns, claims),
        *_model_contradictions(turns, claims),
        *_pilot_contradictions(turns, claims),
    )


def strict_result(
    result: CriterionResult, contradicted: Collection[str], by_rules: bool
) -> CriterionResult:
    """The result under strict evidence.

    A criterion judged met counts only if one of its quotes was found in the run and no fact
    contradicts it; otherwise it is unscored. `by_rules`: the rules judge gave the verdict, which is
    a fact with or without a quote. `contradicted` are ids of criteria.
    """
    if result.status != "scored" or not result.value:
        return result
    from_rules = by_rules or any(vote.judge == RULES and vote.value for vote in result.votes)
    quote_found = any(evidence.check != "not_found" for evidence in result.evidence)
    if result.id in contradicted:
        reason = "a fact of the run speaks against it"
    elif from_rules or quote_found:
        return result
    else:
        reason = "no quoted words were found in the run"
    detail = f"{reason}; judged {result.value:g}, which strict evidence does not count"
    return result.model_copy(
        update={"value": None, "status": "unscored", "reason": "no_evidence", "detail": detail}
    )


def _plan_contradictions(
    run: Run, turns: Sequence[TurnFeatures], claims: Mapping[str, str]
) -> Iterator[Contradiction]:
    if "plan" in claims and not run.plan.exists:
        yield Contradiction(
            criterion=claims["plan"],
            fact="no plan.md came with the run and no execution that wrote one succeeded",
            turns=tuple(turn.turn for turn in turns if turn.writes_plan),
        )
    if "picture" in claims and not run.plan.image_exists:
        yield Contradiction(
            criterion=claims["picture"],
            fact="no plan.png came with the run and no execution wrote one",
        )


def _environment_contradictions(
    turns: Sequence[TurnFeatures], claims: Mapping[str, str]
) -> Iterator[Contradiction]:
    if "environment" in claims and turns and not any(map(_ran, turns)):
        yield Contradiction(
            criterion=claims["environment"],
            fact="no execution of the run succeeded",
            turns=tuple(turn.turn for turn in turns if turn.failed),
        )


def _model_contradictions(
    turns: Sequence[TurnFeatures], claims: Mapping[str, str]
) -> Iterator[Contradiction]:
    if "model" in claims and not any(_ran(turn) and _applies_method(turn) for turn in turns):
        yield Contradiction(
            criterion=claims["model"],
            fact="no successful execution loads or applies a model or method",
            turns=tuple(turn.turn for turn in turns if _applies_method(turn)),
        )


def _pilot_contradictions(
    turns: Sequence[TurnFeatures], claims: Mapping[str, str]
) -> Iterator[Contradiction]:
    """A pilot is contradicted if nothing was tried before the run over all cases."""
    if "pilot" not in claims:
        return
    batch_turn = _first_batch(turns)
    before = [turn for turn in turns if batch_turn is None or turn.turn < batch_turn]
    if any(_ran(turn) and (_applies_method(turn) or turn.inspects_values) for turn in before):
        return
    place = "anywhere in the run"
    if batch_turn is not None:
        place = f"before the full run of turn {batch_turn}"
    yield Contradiction(
        criterion=claims["pilot"],
        fact=f"no successful execution of the model or method {place}",
        turns=() if batch_turn is None else (batch_turn,),
    )


def _first_batch(turns: Sequence[TurnFeatures]) -> int | None:
    """The first turn that works on all cases; None if there is none."""
    for turn in turns:
        if turn.cases_scope == "all" and (turn.writes_outputs or turn.forward_pass):
            return turn.turn
    return None


def _applies_method(turn: TurnFeatures) -> bool:
    return turn.loads_model or turn.forward_pass or turn.writes_outputs


def _ran(turn: TurnFeatures) -> bool:
    """Whether a turn executed something that succeeded."""
    return turn.executed and not (turn.failed or turn.blocked or turn.timed_out or turn.unanswered)
