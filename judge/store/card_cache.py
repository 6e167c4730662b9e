"""Stored scorecards of runs for which nothing has changed: they are neither computed nor parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...rubrics.model import Rubric
from ...trajectories.reading.remote import RemotePath
from ..card.scorecard import CardLine
from ..questions.verdict_keys import CardKeys
from ..scope import Scope
from . import Store, stamps
from .scorecards import LatestCard


class CardCache:
    """The current scorecards of one judge in a store.

    Only a store that was made here is used: verdicts from another store are marked as such each
    time that they are read.
    """

    def __init__(self, store: Store, judge: str, keys: CardKeys, scope: Scope) -> None:
        self._store, self._judge, self._keys, self._scope = store, judge, keys, scope
        self.foreign_track_runs = 0
        """Runs judged by another rubric than the given one, as they are of another track."""

    def current_cards(self, paths: Sequence[Path]) -> Mapping[Path, CardLine]:
        """The cards of those of these runs that would be scored the same again.

        That is, their files and everything else that decides a card are unchanged.
        """
        current: dict[Path, CardLine] = {}
        # Which runs go on that the user says still do, only their files show.
        if not self._store.made_here or self._scope.running.stated:
            return current
        for card in self._store.latest_cards(paths, self._judge):
            if not self._is_current(card):
                continue
            current[card.path] = self._store.card_line(card)
            if self._scope.is_foreign(self._rubric_of(card)):
                self.foreign_track_runs += 1
        return current

    def _rubric_of(self, card: LatestCard) -> Rubric:
        """The rubric in force for a card's run."""
        return self._scope.rubric_of(card.track or self._scope.track, card.task)

    def _is_current(self, card: LatestCard) -> bool:
        path = card.path
        rubric_sha256 = self._rubric_of(card).sha256
        if not card.stamp or card.key != self._keys.key(path, card.content_sha256, rubric_sha256):
            return False
        if isinstance(path, RemotePath):
            return card.stamp == path.stamp
        return stamps.unchanged(path, card.stamp)
