"""Keys of whole questions: a judge's items by question, their keys, and one hash for all of them.

A run is settled when every item of its questions has a verdict. The store remembers that
(`Store.settle`) under the hash, so that planning need not look at the verdicts again. The same
rubrics, tracks and tiers come back for run after run, so everything here is computed once for each
of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Tier, TrackName
from ..base import Judge, QuestionName, extra_questions
from ..facts.decided import FACTS
from ..judges.panel import answers, voters
from .items import QuestionSet
from .verdict_keys import (
    EvidenceContexts,
    JudgeIdentity,
    KeyMaker,
    canonical_json,
    identity,
    key_maker,
)

_RunKind = tuple[str, Tier | None, TrackName | None]
"""What decides the items of a run: the hash of its rubric, tier and track."""


class QuestionKeys:
    """The items of one voter that supports these questions (`base.extra_questions`), and the keys
    of its votes."""

    def __init__(
        self,
        judge: JudgeIdentity,
        supported: Collection[QuestionName],
        questions: QuestionSet,
        public: Path | None = None,
        *,
        sample: int = 0,
        leaves_to_facts: bool | None = None,
    ) -> None:
        """`sample`: the voter's number. `leaves_to_facts`: whether the judge that it votes in is
        not asked what facts decide; None: as if it was asked alone."""
        self.judge, self._supported, self._public = judge, supported, public
        self._questions, self._sample = questions, sample
        if leaves_to_facts is None:
            leaves_to_facts = questions.leaves_to_facts(judge.judge)
        self._leaves_to_facts = leaves_to_facts
        self._items: dict[_RunKind, dict[QuestionName, tuple[Criterion, ...]]] = {}
        self._contexts = EvidenceContexts(judge)
        self._hashes: dict[_RunKind, str] = {}

    def key_maker(self, item: Criterion) -> KeyMaker:
        """Makes the keys of an item's verdicts."""
        return key_maker(self.judge, item, self._sample)

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
            if self._leaves_to_facts:
                settings.append("facts decide")
            text = canonical_json([*settings, parts])
            self._hashes[kind] = hashlib.sha256(text.encode()).hexdigest()
        return self._hashes[kind]


class VoteKeys:
    """The keys of all votes behind the verdicts of a judge, by voter (`panel.voters`)."""

    def __init__(self, judge: Judge, questions: QuestionSet, public: Path | None = None) -> None:
        self.voters = voters(judge)
        self._by_voter = [
            QuestionKeys(
                identity(voter.judge),
                extra_questions(voter.judge),
                questions,
                public,
                sample=voter.sample,
                leaves_to_facts=questions.leaves_to_facts(judge.name),
            )
            for voter in self.voters
        ]

    def __getitem__(self, voter: int) -> QuestionKeys:
        """The keys of one voter, by its index."""
        return self._by_voter[voter]

    def voters_on(self, question: QuestionName) -> list[int]:
        """The indexes of the voters that answer a question."""
        return [index for index, voter in enumerate(self.voters) if answers(voter.judge, question)]

    def votes(
        self, items: Mapping[QuestionName, Sequence[Criterion]]
    ) -> Iterator[tuple[int, QuestionName]]:
        """Every vote on these items: the voter's index and the question; a voter's in a row."""
        for index, voter in enumerate(self.voters):
            for question in items:
                if answers(voter.judge, question):
                    yield index, question

    def number_of_votes(self, items: Mapping[QuestionName, Sequence[Criterion]]) -> int:
        """How many verdicts these items take."""
        return sum(len(items[question]) for _, question in self.votes(items))

    def items(
        self, rubric: Rubric, tier: Tier | None, track: TrackName | None
    ) -> Mapping[QuestionName, tuple[Criterion, ...]]:
        """The items that any voter is asked, by question."""
        items: dict[QuestionName, tuple[Criterion, ...]] = {}
        for keys in self._by_voter:
            items |= keys.items(rubric, tier, track)
        return items

    def facts_context(self, track: TrackName | None, tier: Tier | None) -> str:
        """The context under which the store knows what facts prove of such a run."""
        return self._by_voter[0].context(FACTS, track, tier)

    def sha256(self, rubric: Rubric, tier: Tier | None, track: TrackName | None) -> str:
        """Hash of everything that is asked about such a run, of every voter."""
        hashes = [keys.sha256(rubric, tier, track) for keys in self._by_voter]
        if len(hashes) == 1:
            return hashes[0]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
