"""What a judge is asked about a run: its items by question, the keys of their verdicts, and one
name for all of it.

A run is settled when every item of its questions has a verdict; the store remembers that
(`Store.settle`), so that planning need not look at the verdicts again. The same rubrics, tracks and
tiers come back for run after run: everything here is worked out once for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Tier, TrackName
from ..base import QuestionName
from ..store.reuse import maker
from .items import Wanted
from .verdict_keys import EvidenceContexts, JudgeIdentity, KeyMaker, canonical_json

_Kind = tuple[str, Tier | None, TrackName | None]


class Questions:
    """The questions of one judge with these abilities (`base.answers`)."""

    def __init__(
        self,
        who: JudgeIdentity,
        able: Collection[QuestionName],
        wanted: Wanted,
        public: Path | None = None,
    ) -> None:
        self.who, self._able, self._wanted, self._public = who, able, wanted, public
        self._asked: dict[_Kind, dict[QuestionName, tuple[Criterion, ...]]] = {}
        self._contexts = EvidenceContexts(who)
        self._names: dict[_Kind, str] = {}

    def key(self, item: Criterion) -> KeyMaker:
        """Makes the keys of an item's verdicts."""
        return maker(self.who, item)

    def items(
        self, rubric: Rubric, tier: Tier | None, track: TrackName | None
    ) -> Mapping[QuestionName, tuple[Criterion, ...]]:
        """The items that the judge is asked, by question; questions without any are left out."""
        kind = (rubric.sha256, tier, track)
        if kind not in self._asked:
            self._asked[kind] = self._wanted.items(self._able, rubric, tier, track)
        return self._asked[kind]

    def context(self, question: QuestionName, track: TrackName | None, tier: Tier | None) -> str:
        """How the evidence of a question is found."""
        return self._contexts.of(question, track, tier, self._public)

    def name(self, rubric: Rubric, tier: Tier | None, track: TrackName | None) -> str:
        """A hash of everything that is asked about such a run, and of how its evidence is found."""
        kind = (rubric.sha256, tier, track)
        if kind not in self._names:
            parts = [
                [
                    self.context(question, track, tier),
                    sorted(self.key(item).sha256("") for item in items),
                ]
                for question, items in self.items(rubric, tier, track).items()
            ]
            self._names[kind] = hashlib.sha256(
                canonical_json([self._wanted.stages, parts]).encode()
            ).hexdigest()
        return self._names[kind]
