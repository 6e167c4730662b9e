"""Scorecards that a store has of runs about which nothing has changed: they are not made again, nor
parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...trajectories.reading.remote import RemotePath
from ..card.scorecard import CardLine
from ..questions.verdict_keys import CardKeys
from . import Store, stamps


class Unchanged:
    """Looks for the cards of one judge; in a store of ours alone, as what another store says is
    marked each time."""

    def __init__(self, store: Store, judge: str, keys: CardKeys, rubric_sha256: str | None) -> None:
        self._store, self._judge, self._keys, self._rubric = store, judge, keys, rubric_sha256
        self.apart = 0
        """Cards found of another rubric than the one that was given."""

    def among(self, paths: Sequence[Path]) -> Mapping[Path, CardLine]:
        """The cards of those of these runs whose files are as they were, decided by what is in
        force now."""
        found: dict[Path, CardLine] = {}
        for kept in self._store.kept(paths, self._judge) if self._store.own else ():
            path = kept.path
            if not kept.stamp or kept.key != self._keys.key(path, kept.content_sha256):
                continue
            if (
                kept.stamp == path.stamp
                if isinstance(path, RemotePath)
                else stamps.unchanged(path, kept.stamp)
            ):
                found[path] = self._store.line(kept)
                self.apart += self._rubric is not None and kept.rubric_sha256 != self._rubric
        return found
