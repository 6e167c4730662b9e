"""Keys of whole questions: a judge's items by question, their keys, and one hash for all of them.

A run is settled when every item of its questions has a verdict. The store remembers that
(`Store.settle`) under the hash, so that planning need not look at the verdicts again. The same
rubrics, tracks and tiers come back for run after run, so everything here is computed once for each
of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Tier, TrackName
from ..base import QuestionName
from .items import QuestionSet
from .verdict_keys import EvidenceContexts, JudgeIdentity, KeyMaker, canonical_json, key_maker

_RunKind = tuple[str, Tier | None, TrackName | None]
"""What decides the items of a run: the hash of its rubric, tier and track."""


class QuestionKeys:
    """The items and keys of one judge that supports these questions (`base.extra_questions`)."""

    def __init__(
        self,
        judge: JudgeIdentity,
        supported: Collection[QuestionName],
        questions: QuestionSet,
        public: Path | None = None,
    ) -> None:
        self.judge, self._supported, self._public = judge, supported, public
        self._questions = questions
        self._items: dict[_RunKind, dict[QuestionName, tuple[Criterion, ...]]] = {}
        self._contexts = EvidenceContexts(judge)
        self._hashes: dict[_RunKind, str] = {}

    def key_maker(self, item: Criterion) -> KeyMaker:
        """Makes the keys of an item's verdicts."""
        return key_maker(self.judge, item)

    def items(
        self, rubric: Rubric, tier: Tier | None, track: TrackName | None
    ) -> Mapping[QuestionName, tuple[Criterion, ...]]:
        """The items that the judge is asked, by question; questions without items are left out."""
        kind = (rubric.sha256, tier, track)
        if kind not in self._items:
            self._items[kind] = self._questions.items(self._supported, rubric, tier, track)
        return self._items[kind]

    def context(self, question: QuestionName, track: TrackName | None, tier: Tier | None) -> str:
        """The context of a question's evidence (`EvidenceContexts`)."""
        return self._contexts.context(question, track, tier, self._public)

    def sha256(self, rubric: Rubric, tier: Tier | None, track: TrackName | None) -> str:
        """Hash of everything that is asked about such a run, and of its evidence contexts."""
        kind = (rubric.sha256, tier, track)
        if kind not in self._hashes:
            parts = []
            for question, items in self.items(rubric, tier, track).items():
                item_hashes = sorted(self.key_maker(item).sha256("") for item in items)
                parts.append([self.context(question, track, tier), item_hashes])
            settings: list[object] = [self._questions.stages]
            # A run may be settled without verdicts on what its facts decide.
            if self._questions.leaves_to_facts(self.judge.judge):
                settings.append("facts decide")
            text = canonical_json([*settings, parts])
            self._hashes[kind] = hashlib.sha256(text.encode()).hexdigest()
        return self._hashes[kind]
