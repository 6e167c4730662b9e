"""Verdicts that observable facts of the run contradict.

What a proof decides (`decided`) may not be denied, in either direction. Beside that, a model or a
pilot that was judged to be there is contradicted where no execution even looks like one: what code
seems to do is no proof that something is there, but that none of it is seen speaks against it.

The verdict stands and the contradiction is shown beside it, unless evidence is taken strictly
(`strict_result`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...error_codes.models import Contradiction
from ...tracks import PLAN_ITEMS, TRACKS
from ...trajectories.models import Run, TrackName
from ...trajectories.turns.features import features
from ...trajectories.turns.turn_features import TurnFeatures
from ..card.fields import RULES
from ..card.stage_results import CriterionResult
from ..judges.rules import Ruling


@dataclass(frozen=True)
class Refutation:
    """What speaks against a claim, whether or not a verdict makes it."""

    fact: str
    turns: tuple[int, ...]


def refutations(run: Run) -> dict[str, Refutation]:
    """The claims (`tracks.PLAN_ITEMS`) that no verdict on this run may make."""
    turns = features(run)
    against = {"model": _against_model(turns), "pilot": _against_pilot(turns)}
    return {claim: refutation for claim, refutation in against.items() if refutation is not None}


def find_contradictions(
    track_name: TrackName | None,
    refuted: Mapping[str, Refutation],
    results: Mapping[str, Sequence[CriterionResult]],
    proven: Mapping[str, Ruling],
) -> tuple[Contradiction, ...]:
    """The judged criteria that a fact of the run contradicts, met or not met.

    `refuted`: claims that something speaks against; `proven`: what facts prove of criteria, by id.
    Credited, presumed and unscored criteria claim nothing, and those that facts decided are no
    claim of the judge's.
    """
    judged = {
        result.id: result.value
        for stage_results in results.values()
        for result in stage_results
        if result.status == "scored" and result.by is None and result.value is not None
    }
    denied = [id for id, ruling in proven.items() if judged.get(id, ruling.value) != ruling.value]
    track = TRACKS.find(track_name)
    items = PLAN_ITEMS if track is None else track.items
    contradictions = [_denial(id, proven[id]) for id in denied]
    for claim, refutation in refuted.items():
        criterion = items.get(claim)
        if criterion is not None and judged.get(criterion) and criterion not in proven:
            contradictions.append(
                Contradiction(criterion=criterion, fact=refutation.fact, turns=refutation.turns)
            )
    return tuple(contradictions)


def _denial(criterion: str, ruling: Ruling) -> Contradiction:
    """The fact that a verdict denies, in the words of the rule that proves it."""
    reason = ruling.rationale.rstrip(".")
    turns = {evidence.actual_turn for evidence in ruling.evidence} - {0}
    return Contradiction(
        criterion=criterion, fact=reason[:1].lower() + reason[1:], turns=tuple(sorted(turns))
    )


def strict_result(
    result: CriterionResult, contradicted: Collection[str], by_rules: bool
) -> CriterionResult:
    """The result under strict evidence.

    A verdict that a fact contradicts does not count, and neither does a criterion judged met of
    which no quote was found in the run: both are unscored. `by_rules`: the rules judge gave the
    verdict, which needs no quote; nor does one by facts. `contradicted` are ids of criteria.
    """
    if result.status != "scored" or result.value is None or result.by == "facts":
        return result
    from_rules = by_rules or any(vote.judge == RULES and vote.value for vote in result.votes)
    quote_found = any(evidence.check != "not_found" for evidence in result.evidence)
    if result.id in contradicted:
        reason = "a fact of the run speaks against it"
    elif result.value == 0 or from_rules or quote_found:
        return result
    else:
        reason = "no quoted words were found in the run"
    detail = f"{reason}; judged {result.value:g}, which strict evidence does not count"
    return result.model_copy(
        update={"value": None, "status": "unscored", "reason": "no_evidence", "detail": detail}
    )


def _against_model(turns: Sequence[TurnFeatures]) -> Refutation | None:
    """What speaks against a model that was used: nothing that ran looks like one."""
    if any(_ran(turn) and _applies_method(turn) for turn in turns):
        return None
    return Refutation(
        fact="no successful execution loads or applies a model or method",
        turns=tuple(turn.turn for turn in turns if _applies_method(turn)),
    )


def _against_pilot(turns: Sequence[TurnFeatures]) -> Refutation | None:
    """What speaks against a pilot: nothing was tried before the run over all cases."""
    batch_turn = _first_batch(turns)
    before = [turn for turn in turns if batch_turn is None or turn.turn < batch_turn]
    if any(_ran(turn) and (_applies_method(turn) or turn.inspects_values) for turn in before):
        return None
    place = "anywhere in the run"
    if batch_turn is not None:
        place = f"before the full run of turn {batch_turn}"
    return Refutation(
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
