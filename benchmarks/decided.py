"""What facts decide of labelled runs, how often they are right, and what need not be paid for.

    python benchmarks/decided.py

Unit: one criterion of one run that no tier credits. Runs: every labelled run, recorded (gold
labels) and constructed (`make data`). Weight: of S1-S3, as their score counts it. Tokens: the least
that a model is sent and sends back for all its questions on a run, by the judge's own estimate
(nobody is called), with and without what facts decide; a reply is much of what is saved. The record
is sent with every question, so a stage that facts decide as a whole saves most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ambjudge.judge.base import Usage
from ambjudge.judge.engine import PreparedRun, prepare
from ambjudge.judge.facts.decided import decided_results
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.scoring.criteria import split_criteria
from labelled_runs import LabelledRun, constructed, load_labelled, recorded


@dataclass
class Sums:
    """What was counted over a set of runs."""

    runs: int = 0
    asked: int = 0
    """Criteria that the tier leaves to a judge."""
    proven: Counter[tuple[str, float]] = field(default_factory=Counter)
    """Criteria decided by a fact of their own, by kind and value."""
    zeroed: int = 0
    """Criteria decided because one that they require is proven not met."""
    wrong: list[str] = field(default_factory=list)
    """Proofs that differ from the label."""
    weight: float = 0.0
    """Sum over runs of the decided share of the weight of S1-S3."""
    all_calls: int = 0
    calls: int = 0
    all_usage: Usage = field(default_factory=Usage)
    usage: Usage = field(default_factory=Usage)


def weights(prepared: PreparedRun) -> Iterator[tuple[str, float]]:
    """Id of each criterion that the tier leaves to a judge, and its share of the weight of all
    that apply."""
    rubric, tier = prepared.rubric, prepared.run.tier
    total = sum(rubric.weights[stage] for stage in rubric.judged_stages)
    for stage in rubric.judged_stages:
        split = split_criteria(rubric.stages[stage], tier)
        inapplicable = {result.id for result in split.not_applicable}
        applicable = sum(c.weight for c in rubric.criteria(stage) if c.id not in inapplicable)
        for criterion in split.to_judge:
            share = criterion.weight / applicable
            yield criterion.id, share * rubric.weights[stage] / total


def count(runs: Iterable[LabelledRun]) -> Sums:
    judge = ApiJudge("openai/any", "http://127.0.0.1:9/v1")
    sums = Sums()
    for labelled in runs:
        prepared = prepare(load_labelled(labelled), public=labelled.public)
        everything = replace(prepared, questions=QuestionSet(ask_all=True))
        decided = decided_results(
            prepared.rubric, prepared.run.tier, prepared.rulings, prepared.ruling_facts
        )
        proven = prepared.proven()
        kind = (
            prepared.rubric.id if prepared.rubric.id in ("vqa", "report_generation") else "images"
        )
        sums.runs += 1
        for id, weight in weights(prepared):
            sums.asked += 1
            sums.weight += weight * (id in decided)
        for id, ruling in proven.items():
            sums.proven[f"{kind} {id}", ruling.value] += 1
            label = labelled.label["criteria"].get(id)
            if label != ruling.value:
                sums.wrong.append(f"{labelled.name} {id}: {ruling.value:g}, labelled {label}")
        sums.zeroed += len(decided.keys() - proven.keys())
        for request in prepared.requests(judge):
            sums.calls += 1
            sums.usage += judge.estimate(request).low
        for request in everything.requests(judge):
            sums.all_calls += 1
            sums.all_usage += judge.estimate(request).low
    return sums


def show(title: str, sums: Sums) -> None:
    proven = sums.proven.total()
    decided = proven + sums.zeroed
    print(
        f"{title}: {sums.runs} runs, {sums.asked} criteria; facts decide {decided}"
        f" ({decided / sums.asked:.1%}): {proven} by proof, {sums.zeroed} as they require one that"
        f" is not met; {sums.weight / sums.runs:.1%} of the weight of S1-S3"
    )
    print(f"  proofs that differ from the label: {len(sums.wrong)} of {proven}")
    for line in sums.wrong:
        print(f"    {line}")
    for (kind, value), number in sorted(sums.proven.items()):
        print(f"    {kind} {'met' if value else 'not met'}: {number}")
    for name, saved, whole in (
        ("calls", sums.all_calls - sums.calls, sums.all_calls),
        ("tokens in", *_saved(sums.usage.input_tokens, sums.all_usage.input_tokens)),
        ("tokens out", *_saved(sums.usage.output_tokens, sums.all_usage.output_tokens)),
    ):
        print(f"  {name} saved: {saved:,} of {whole:,} ({saved / whole:.1%})")


def _saved(part: int | None, whole: int | None) -> tuple[int, int]:
    assert part is not None
    assert whole is not None
    return whole - part, whole


def main() -> int:
    sets = {"recorded": count(recorded()), "constructed": count(constructed())}
    for title, sums in sets.items():
        show(title, sums)
    return 1 if any(sums.wrong for sums in sets.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
