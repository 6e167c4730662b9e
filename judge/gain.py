"""How much better than the heuristic judge a judge agrees with people, on runs that people have labelled.

Both judge every criterion that has a label; the gain is the difference of their shares of equal values, paired by
criterion. Its interval treats criteria as independent (they are not quite: items of one run move together), so it is
the narrow end of what is known.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..rubrics.model import Rubric
from ..trajectories.models import Run
from .base import Judge
from .engine import prepare
from .heuristic import HeuristicJudge
from .items import Wanted
from .labels import Labels


@dataclass(frozen=True)
class Gain:
    """Over `pairs` labelled criteria: how many values equal the label. An unscored verdict equals no label."""

    judge: str
    pairs: int
    equal: int
    heuristic_equal: int
    unscored: int
    only_judge: int
    """Criteria on which the judge is right and the heuristic judge is not; `only_heuristic` the other way round."""
    only_heuristic: int

    @property
    def gain(self) -> float | None:
        """Difference of the shares, in [-1, 1]; None without labels."""
        return (self.only_judge - self.only_heuristic) / self.pairs if self.pairs else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the gain: paired difference of proportions, normal approximation (McNemar's counts)."""
        if not self.pairs or self.gain is None:
            return None
        spread = self.only_judge + self.only_heuristic - self.pairs * self.gain**2
        half = 1.959964 * math.sqrt(max(0.0, spread)) / self.pairs
        return max(-1.0, self.gain - half), min(1.0, self.gain + half)


async def gain(judge: Judge, runs: Sequence[Run], labels: Mapping[str, Labels], rubric: Rubric | None = None) -> Gain:
    """Judge the labelled criteria of these runs with `judge` and with the heuristic judge. Runs without labels are skipped."""
    null = HeuristicJudge()
    pairs = equal = null_equal = unscored = only_judge = only_null = 0
    for run in runs:
        said = labels.get(run.id)
        if said is None:
            continue
        for request in prepare(run, rubric=rubric, wanted=Wanted(diagnosis=False)).requests(judge):
            ours, theirs = await asyncio.gather(judge.judge(request), null.judge(request))
            values = {result.id: result.value for result in theirs.results}
            for result in ours.results:
                label = said.criteria.get(result.id)
                if label is None:
                    continue
                right, null_right = result.value == label, values.get(result.id) == label
                pairs, equal, null_equal = pairs + 1, equal + right, null_equal + null_right
                unscored += result.value is None
                only_judge += right and not null_right
                only_null += null_right and not right
    return Gain(judge.name, pairs, equal, null_equal, unscored, only_judge, only_null)
