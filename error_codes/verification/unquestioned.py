"""E3 by reading: how a run speaks of its work and how much it prints, weighed by labelled runs.

A defect that goes unnoticed is often one that was explained away. No rule knows the explanations, but the way in which runs
speak tells the two kinds apart: runs that noticed what was wrong ask, compare and object; runs that did not, assert. The
weights are those of a logistic regression of E3 on two measures of 294 labelled runs; `benchmarks/unquestioned.py` fits
them again and shows what they are worth on sets of runs that they were not fitted on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..context import CodeContext
from ..manner import Manner, manner
from ..registry import Finding, detector

WEIGHTS = (7.213, 3.072, -0.856)
"""Intercept, weight of the balance, weight of the printed amount (`benchmarks/unquestioned.py`)."""
MIN_LIKELY = 0.6
"""Probability from which it fires: on the latest sets one in three was right between 0.5 and 0.6."""
MIN_SAID = 3
"""Assertions about results below which there is nothing to read."""


def probability(found: Manner) -> float:
    """Share of labelled runs of this manner in which a visible defect went unnoticed, in (0, 1)."""
    start, balance, printed = WEIGHTS
    return 1 / (1 + math.exp(-(start + balance * found.balance + printed * found.printed)))


@detector("asserted_not_questioned", code="E3", stage="S5", independence="from_trace", likelihood=True)
def asserted_not_questioned(ctx: CodeContext) -> Iterable[Finding]:
    """Results are asserted and little is asked, as in labelled runs whose defects went unnoticed: a likelihood, no fact."""
    if not ctx.write_turns or not ctx.handed_over:
        return
    found = manner(ctx)
    if sum(map(len, found.said.values())) < MIN_SAID or probability(found) < MIN_LIKELY:
        return
    turns = sorted(found.said, key=lambda turn: (-len(found.said[turn]), turn))[:3]
    words = list(dict.fromkeys(word.lower() for turn in sorted(turns) for word in found.said[turn]))
    why = (
        f"Results are asserted ({', '.join(words[:5])}): {found.asserts} words of the run assert, {found.questions} ask or object; "
        f"{probability(found):.0%} of labelled runs that speak and print so had let a visible defect pass."
    )
    yield Finding(tuple(sorted(turns)), why, round(probability(found), 2))
