"""How one annotator's labels and the scorecards agree: on one run, and over all labelled runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..error_codes.paper_codes import CODES
from ..judge.card.view_parts import bar, grade, value_text
from ..judge.trust.human_labels import Labels
from .run_rows import unknown_codes
from .styled_lines import StyledLine, line

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard


class Difference(NamedTuple):
    """A criterion that annotator and judge value differently."""

    criterion: str
    labelled: float
    judged: float


@dataclass(frozen=True)
class Agreement:
    """How labels and a scorecard agree on one run."""

    criteria: tuple[int, int]
    """Equal ones of those that both value."""
    stages: tuple[int, int]
    """Equal ones of the turns whose stage both name."""
    codes: tuple[frozenset[str], frozenset[str]]
    """Codes that only the labels have though the scorecard knows of them, and that only the
    scorecard has."""
    differences: tuple[Difference, ...]


def agree(labels: Labels, card: ScoreCard) -> Agreement:
    """Compare labels with a scorecard of the same run.

    Criteria that either side leaves out or unscored do not count.
    """
    judged = {
        result.id: result.judged for stage in card.stages.values() for result in stage.criteria
    }
    both = []
    for criterion, label in sorted(labels.criteria.items()):
        value = judged.get(criterion)
        if label is not None and value is not None:
            both.append(Difference(criterion, label, value))
    differences = tuple(pair for pair in both if pair.labelled != pair.judged)
    stage_pairs = [
        (stage, card.turn_stages[turn - 1])
        for turn, stage in labels.stages.items()
        if turn <= len(card.turn_stages)
    ]
    fired = {code.code for code in card.codes if code.taxonomy == "paper"}
    # A code that was not read is no disagreement.
    known = fired | set(CODES) - set(unknown_codes(card))
    labelled = set(labels.codes)
    return Agreement(
        criteria=(len(both) - len(differences), len(both)),
        stages=(sum(label == judge for label, judge in stage_pairs), len(stage_pairs)),
        codes=(frozenset(labelled & known - fired), frozenset(fired - labelled)),
        differences=differences,
    )


def run_agreement_lines(labels: Labels, card: ScoreCard) -> list[StyledLine]:
    """How the labels of a run and its judge agree."""
    agreement = agree(labels, card)
    equal_criteria, criteria = agreement.criteria
    equal_stages, stages = agreement.stages
    lines = [
        line((f"You and {card.judge.name}", "head")),
        line(f"criteria {equal_criteria} of {criteria} · stages {equal_stages} of {stages}"),
    ]
    for pair in agreement.differences:
        values = f"you {value_text(pair.labelled)}, judge {value_text(pair.judged)}"
        lines.append(line((f" {pair.criterion} ", "id"), values))
    for codes, side in zip(agreement.codes, ("you", "the judge"), strict=True):
        if codes:
            lines.append(line((f" {', '.join(sorted(codes))} ", "code"), f"only {side}"))
    return lines


_MAX_DIFFERENCES = 8


def agreement_lines(annotator: str, agreements: Sequence[Agreement]) -> list[StyledLine]:
    """How this annotator's labels and the scorecards agree over the runs labelled so far."""
    lines = [line((f"Labels of {annotator} against the scorecards", "head"))]
    if not agreements:
        return [*lines, line((" no labelled run among these yet (a on a run)", "dim"))]
    lines.append(_agreement_line("criteria", [item.criteria for item in agreements]))
    lines.append(_agreement_line("stages", [item.stages for item in agreements]))
    counts = Counter(pair.criterion for item in agreements for pair in item.differences)
    if counts:
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        text = ", ".join(f"{id} ({count})" for id, count in ranked[:_MAX_DIFFERENCES])
        lines.append(line((" differ most on ", "dim"), text, indent=4))
    note = f" {len(agreements)} runs labelled; kappa and intervals: ambjudge agreement"
    return [*lines, line((note, "dim"))]


def _agreement_line(label: str, counts: Sequence[tuple[int, int]]) -> StyledLine:
    """The share of equal items over several runs, as a bar; `counts` are (equal, all) of each."""
    equal = sum(count for count, _ in counts)
    total = sum(count for _, count in counts)
    share = equal / total if total else None
    return line((f" {label:<9}", "dim"), (bar(share, 24), grade(share)), f" {equal} of {total}")
