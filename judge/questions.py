"""What a judge is asked about a run: its criteria by stage, the keys of their verdicts, and one name for all of it.

A run is settled when every criterion of its question has a verdict; the store remembers that (`Store.settle`), so that
planning need not look at the verdicts again. The same rubrics, tracks and tiers come back for run after run: everything
here is worked out once for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ..rubrics.model import Criterion, Rubric
from ..trajectories.models import Stage, Tier, Track
from .base import JUDGED
from .keys import JudgeIdentity, KeyMaker, canonical_json, evidence_context
from .reuse import makers
from .scoring import split_criteria


class Questions:
    """The questions of one judge."""

    def __init__(self, who: JudgeIdentity) -> None:
        self.who = who
        self._keys: dict[str, dict[str, KeyMaker]] = {}
        self._contexts: dict[tuple[str, Stage, Track | None, Tier | None], str] = {}
        self._asked: dict[tuple[str, Tier | None], dict[Stage, tuple[Criterion, ...]]] = {}
        self._names: dict[tuple[str, Track | None, Tier | None], str] = {}

    def keys(self, rubric: Rubric) -> Mapping[str, KeyMaker]:
        """Key makers by criterion."""
        if rubric.sha256 not in self._keys:
            self._keys[rubric.sha256] = makers(self.who, rubric)
        return self._keys[rubric.sha256]

    def stages(self, rubric: Rubric, tier: Tier | None) -> Mapping[Stage, tuple[Criterion, ...]]:
        """The criteria that a judge is asked, by stage; stages without any are left out."""
        key = (rubric.sha256, tier)
        if key not in self._asked:
            split = {
                stage: split_criteria(rubric.stages[stage], tier).to_judge for stage in JUDGED if stage in rubric.stages
            }
            self._asked[key] = {stage: criteria for stage, criteria in split.items() if criteria}
        return self._asked[key]

    def count(self, rubric: Rubric, tier: Tier | None) -> int:
        """How many criteria are asked."""
        return sum(map(len, self.stages(rubric, tier).values()))

    def context(self, rubric: Rubric, stage: Stage, track: Track | None, tier: Tier | None) -> str:
        """How the evidence of a stage is found."""
        key = (rubric.sha256, stage, track, tier)
        if key not in self._contexts:
            self._contexts[key] = evidence_context(self.who, rubric, stage, track, tier)
        return self._contexts[key]

    def name(self, rubric: Rubric, track: Track | None, tier: Tier | None) -> str:
        """A hash of everything that is asked about such a run, and of how its evidence is found."""
        key = (rubric.sha256, track, tier)
        if key not in self._names:
            keys = self.keys(rubric)
            parts = [
                [self.context(rubric, stage, track, tier), sorted(keys[c.id].sha256("") for c in criteria)]
                for stage, criteria in self.stages(rubric, tier).items()
            ]
            self._names[key] = hashlib.sha256(canonical_json(parts).encode()).hexdigest()
        return self._names[key]
