"""How one annotator's labels and the scorecards agree: on one run, and over the runs labelled so
far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..error_codes.paper_codes import CODES
from ..judge.card.view_parts import bar, grade
from ..judge.trust.human_labels import Labels
from .run_rows import unknown_codes
from .styled_lines import StyledLine, line

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard


@dataclass(frozen=True)
class Agreement:
    """How labels and a scorecard agree on one run: equal items of those that both have, and where
    they differ."""

    criteria: tuple[int, int]
    stages: tuple[int, int]
    codes: tuple[frozenset[str], frozenset[str]]
    """Codes that only the labels have though the scorecard knows of them, and that only the
    scorecard has."""
    differences: tuple[tuple[str, float, float], ...]
    """(criterion, labelled, judged)."""


def agree(labels: Labels, card: ScoreCard) -> Agreement:
    """Compare labels with a scorecard of the same run. Criteria that either leaves out or unscored
    do not count."""
    judged = {c.id: c.judged for stage in card.stages.values() for c in stage.criteria}
    both = [
        (id, mine, theirs)
        for id, mine in sorted(labels.criteria.items())
        if mine is not None and (theirs := judged.get(id)) is not None
    ]
    differing = tuple(pair for pair in both if pair[1] != pair[2])
    turns = [
        (stage, card.turn_stages[turn - 1])
        for turn, stage in labels.stages.items()
        if turn <= len(card.turn_stages)
    ]
    fired = {code.code for code in card.codes if code.taxonomy == "paper"}
    told = fired | set(CODES) - set(unknown_codes(card))  # what was not read differs from nothing
    mine_only, theirs_only = (
        frozenset(set(labels.codes) & told - fired),
        frozenset(fired - set(labels.codes)),
    )
    return Agreement(
        (len(both) - len(differing), len(both)),
        (sum(a == b for a, b in turns), len(turns)),
        (mine_only, theirs_only),
        differing,
    )


def run_agreement_lines(labels: Labels, card: ScoreCard) -> list[StyledLine]:
    """How the labels of a run and the judge agree."""
    found = agree(labels, card)
    lines = [
        line((f"You and {card.judge.name}", "head")),
        line(
            f"criteria {found.criteria[0]} of {found.criteria[1]} · stages {found.stages[0]} of"
            f" {found.stages[1]}"
        ),
    ]
    lines += [
        line((f" {id} ", "id"), f"you {mine:g}, judge {theirs:g}")
        for id, mine, theirs in found.differences
    ]
    for codes, whom in zip(found.codes, ("you", "the judge"), strict=True):
        if codes:
            lines.append(line((f" {', '.join(sorted(codes))} ", "code"), f"only {whom}"))
    return lines


def agreement_lines(annotator: str, found: Sequence[Agreement]) -> list[StyledLine]:
    """How this annotator's labels and the scorecards agree so far."""
    lines = [line((f"Labels of {annotator} against the scorecards", "head"))]
    if not found:
        return [*lines, line((" no labelled run among these yet (a on a run)", "dim"))]
    for what, pairs in (
        ("criteria", [a.criteria for a in found]),
        ("stages", [a.stages for a in found]),
    ):
        same, all_ = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
        share = same / all_ if all_ else None
        lines.append(
            line((f" {what:<9}", "dim"), (bar(share, 24), grade(share)), f" {same} of {all_}")
        )
    worst = Counter(id for item in found for id, _, _ in item.differences)
    if worst:
        ranked = sorted(worst.items(), key=lambda pair: (-pair[1], pair[0]))[:8]
        lines.append(
            line(
                (" differ most on ", "dim"), ", ".join(f"{id} ({n})" for id, n in ranked), indent=4
            )
        )
    lines.append(
        line((f" {len(found)} runs labelled; kappa and intervals: ambjudge agreement", "dim"))
    )
    return lines
