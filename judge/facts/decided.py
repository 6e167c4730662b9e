"""Criteria that facts decide on a run: no judge is asked about them, and none may deny them.

A rule's ruling decides a criterion if it is a proof (`Ruling.proof`) and its row in
`judges/rules.yaml` lets it decide in this direction. A criterion that requires one that is proven
not met is decided with it, as no verdict could raise it.

Which rulings are proofs depends on the run alone, whichever rubric it is judged by. `ProvenValues`
are therefore what the store remembers of a run, so that planning need not read it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Tier
from ...trajectories.record.facts import Fact
from ..base import QuestionName, is_criteria
from ..card.stage_results import CriterionResult
from ..judges.rules import RULES_BY_NAME, RuleFacts, Ruling, bindings, bound_rule
from ..scoring.criteria import split_criteria

FACTS = "facts"
"""The name, among those of questions, under which the store remembers what facts prove of a run."""
ProvenValues = Mapping[str, float]
"""Name of a rule -> the value that it proves, 1 or 0."""
_NOTHING_PROVEN = "-"


def proven_rulings(facts: RuleFacts) -> dict[str, Ruling]:
    """The rulings on a run that are proofs and may decide a criterion, by the rule's name.

    That something is absent decides nothing while the run goes on.
    """
    rulings = {}
    is_running = facts.run.status.ended == "running"
    for name in _deciding_rules():
        ruling = RULES_BY_NAME[name](facts)
        if is_running and ruling is not None and ruling.value == 0.0:
            continue
        if ruling is not None and ruling.proof is not None and ruling.value in (0.0, 1.0):
            rulings[name] = ruling
    return rulings


@cache
def _deciding_rules() -> tuple[str, ...]:
    """Names of the rules that decide a criterion in some direction, in the order of the rules."""
    deciding = {bound.name for bound in bindings() if bound.decides}
    return tuple(name for name in RULES_BY_NAME if name in deciding)


def proven_values(rulings: Mapping[str, Ruling]) -> ProvenValues:
    return {name: ruling.value for name, ruling in rulings.items()}


def encode(values: ProvenValues) -> str:
    """One character for each rule that can decide: 1, 0, or `-`; at most 64 of them."""
    return "".join(
        f"{values[name]:.0f}" if name in values else _NOTHING_PROVEN for name in _deciding_rules()
    )


def decode(text: str) -> ProvenValues:
    """The values that `encode` wrote with the rules of this version."""
    pairs = zip(_deciding_rules(), text, strict=True)
    return {name: float(sign) for name, sign in pairs if sign != _NOTHING_PROVEN}


def may_decide(criterion: Criterion, value: float | None) -> bool:
    """Whether facts ever decide this criterion with this value."""
    bound = bound_rule(criterion)
    return bound is not None and value in bound.decides


def proofs(criteria: Iterable[Criterion], values: ProvenValues) -> dict[str, str]:
    """Id of each criterion that a rule proves -> the rule's name."""
    names = {}
    for criterion in criteria:
        bound = bound_rule(criterion)
        if bound is not None and values.get(bound.name) in bound.decides:
            names[criterion.id] = bound.name
    return names


def without_decided(
    items: Mapping[QuestionName, tuple[Criterion, ...]], values: ProvenValues
) -> dict[QuestionName, tuple[Criterion, ...]]:
    """The items of each question without criteria that facts decide.

    Questions that are left without items are left out.
    """
    undecided: dict[QuestionName, tuple[Criterion, ...]] = {}
    for question, of_question in items.items():
        if is_criteria(question):
            decided = {*proofs(of_question, values), *_zeroed(of_question, values)}
            of_question = tuple(item for item in of_question if item.id not in decided)
        if of_question:
            undecided[question] = of_question
    return undecided


def _zeroed(criteria: Sequence[Criterion], values: ProvenValues) -> dict[str, str]:
    """Id of each other criterion that is 0 because one that it requires is -> that one's id."""
    by_proof = proofs(criteria, values)
    zero = {id for id, rule in by_proof.items() if values[rule] == 0}
    causes: dict[str, str] = {}
    open_criteria = [criterion for criterion in criteria if criterion.id not in by_proof]
    # Chains are followed: each round adds those that require one of the round before.
    while added := {
        criterion.id: next(required for required in criterion.requires if required in zero)
        for criterion in open_criteria
        if criterion.id not in causes and not zero.isdisjoint(criterion.requires)
    }:
        causes |= added
        zero |= added.keys()
    return causes


def proven_criteria(
    rubric: Rubric, tier: Tier | None, rulings: Mapping[str, Ruling]
) -> dict[str, Ruling]:
    """What facts prove of criteria that the tier does not decide, by id, whoever is asked."""
    values = proven_values(rulings)
    proven = {}
    for stage in rubric.judged_stages:
        criteria = split_criteria(rubric.stages[stage], tier).to_judge
        for id, name in proofs(criteria, values).items():
            proven[id] = rulings[name]
    return proven


def decided_results(
    rubric: Rubric, tier: Tier | None, rulings: Mapping[str, Ruling], facts: Mapping[str, Fact]
) -> dict[str, CriterionResult]:
    """The results of all criteria that facts decide, by id.

    `facts`: the fact that each ruling states (`ruling_facts`).
    """
    values = proven_values(rulings)
    results: dict[str, CriterionResult] = {}
    for stage in rubric.judged_stages:
        criteria = split_criteria(rubric.stages[stage], tier).to_judge
        for id, name in proofs(criteria, values).items():
            ruling = rulings[name]
            results[id] = CriterionResult(
                id=id,
                value=ruling.value,
                status="scored",
                by="facts",
                rationale=f"{facts[name].id}: {facts[name].text}",
                evidence=ruling.evidence,
            )
        for id, required in _zeroed(criteria, values).items():
            rationale = f"0 because {required} is 0: {results[required].rationale}"
            results[id] = CriterionResult(
                id=id, value=0.0, status="scored", by="facts", rationale=rationale
            )
    return results


def ruling_facts(rulings: Mapping[str, Ruling], record_facts: Sequence[Fact]) -> dict[str, Fact]:
    """The fact that each ruling states, by the rule's name.

    One that the record states is that one; the others are numbered after the record's facts.
    """
    by_text = {fact.text: fact for fact in record_facts}
    number = len(record_facts)
    facts = {}
    for name, ruling in rulings.items():
        if ruling.rationale not in by_text:
            number += 1
            turns = {evidence.actual_turn for evidence in ruling.evidence} - {0}
            assert ruling.proof is not None
            by_text[ruling.rationale] = Fact(
                id=f"F{number}",
                kind=name,
                text=ruling.rationale,
                turns=tuple(sorted(turns)),
                source=ruling.proof,
            )
        facts[name] = by_text[ruling.rationale]
    return facts
