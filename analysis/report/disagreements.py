"""The items on which two judges differ, each with what both say of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from ...judge.card.differences import Opinion, differing, opinions
from ...judge.card.scorecard import ScoreCard
from ..tables.cohorts import Cohort


class Disagreement(NamedTuple):
    """A criterion or code of a run on which two judges differ."""

    run: str
    item: str
    judges: tuple[str, str]
    opinions: tuple[Opinion, Opinion]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "run": self.run,
            "item": self.item,
            "opinions": [
                {
                    "judge": judge,
                    "state": opinion.state,
                    "value": opinion.value,
                    "why": opinion.why,
                    "quotes": [quote.model_dump() for quote in opinion.quotes],
                    "confidence": opinion.confidence,
                }
                for judge, opinion in zip(self.judges, self.opinions, strict=True)
            ],
        }


class OpinionReader:
    """Collects what scorecards say as a cohort is read, which has no quotes itself."""

    def __init__(self) -> None:
        self._opinions: list[dict[str, Opinion]] = []
        """By the number of the scorecard."""

    def add(self, item: Any) -> None:
        """Add a scorecard, in the order of reading; tables of runs are passed over."""
        if isinstance(item, ScoreCard):
            self._opinions.append(opinions(item))

    def disagreements(self, cohort: Cohort) -> Iterator[Disagreement]:
        """What each two judges of the cohort differ on, by pair, run and item."""
        by_judge: dict[str, dict[str, dict[str, Opinion]]] = {}
        for judge, run, number in _rows(cohort):
            if number < len(self._opinions):
                by_judge.setdefault(judge, {})[run] = self._opinions[number]
        for first, second in combinations(sorted(by_judge), 2):
            for run in sorted(by_judge[first].keys() & by_judge[second].keys()):
                pair = by_judge[first][run], by_judge[second][run]
                for item in differing(*pair):
                    yield Disagreement(run, item, (first, second), (pair[0][item], pair[1][item]))


def _rows(cohort: Cohort) -> Iterator[tuple[str, str, int]]:
    """(judge, run, number of the scorecard) of the scorecards that count, by all judges."""
    selection = cohort.selection
    if selection is None:
        return
    parts = [(cohort, selection.numbers), (cohort.other_judges, selection.other_judges)]
    for part, numbers in parts:
        if part is not None:
            rows = part.runs.select("judge", "run_id").iter_rows()
            for (judge, run), number in zip(rows, numbers, strict=True):
                yield str(judge), str(run), number
