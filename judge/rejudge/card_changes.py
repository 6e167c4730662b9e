"""What changed between the scorecards in force and earlier ones, from the store alone.

A store keeps every scorecard, each with the verdicts that it rests on, so that any two of a run can
be compared at any time (`score_change`). Nothing is asked or scored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from ...rubrics.model import Rubric
from ..card.choice import CardChoice, choose
from ..store import Store
from ..store.card_history import CardVersion, StoredCard
from ..store.scorecards import StoredHead
from .score_change import CardChange, CardSide, split_change

_PAGE = 100
"""Runs whose scorecards are in memory at a time."""


@dataclass(frozen=True)
class Earlier:
    """Which scorecards those in force are compared with; by default each with the one before it."""

    until: int | None = None
    """Those that were in force when the scorecard with this number was the newest."""
    choice: CardChoice | None = None
    """Those of another judge or rubric."""


class CardPair(NamedTuple):
    """A run's scorecard in force, and the one that it is compared with."""

    before: StoredCard | None
    """None: the run had no scorecard."""
    after: StoredCard
    change: CardChange | None
    """What changed; None if nothing did, or there is nothing to compare."""


def card_pairs(
    store: Store,
    below: Sequence[Path | None] = (None,),
    choice: CardChoice | None = None,
    earlier: Earlier | None = None,
) -> Iterator[CardPair]:
    """The scorecard in force of each run at or below these paths, with an earlier one of it.

    `choice`: of the scorecards in force. InputError if the judge or rubric that is asked for has
    none.
    """
    earlier = earlier or Earlier()
    after = {stored.path: stored.seq for stored in _in_force(_heads(store, below), choice)}
    candidates = _candidates(store, below, choice, earlier, after)
    yield from _Pairs(store).of(after, candidates)


def rubric_pairs(store: Store, old: Rubric, new: Rubric) -> Iterator[CardPair]:
    """The newest scorecards of the runs that one judge scored by both rubrics."""
    before = {(card.path, card.judge): card.seq for card in store.versions_by_rubric(old.sha256)}
    after: dict[Path, int] = {}
    candidates: dict[Path, Sequence[int]] = {}
    for version in store.versions_by_rubric(new.sha256):
        seq = before.get((version.path, version.judge))
        if seq is not None:
            after[version.path] = version.seq
            candidates[version.path] = (seq,)
    yield from _Pairs(store).of(after, candidates)


class _Pairs:
    """Reads scorecards and compares them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rubrics: dict[str, Rubric | None] = {}

    def of(
        self, after: Mapping[Path, int], candidates: Mapping[Path, Sequence[int]]
    ) -> Iterator[CardPair]:
        """Each of these scorecards with the first of its candidates that is another one.

        Without such a candidate it is compared with itself: nothing changed.
        """
        runs = iter(after.items())
        while page := dict(islice(runs, _PAGE)):
            yield from self._page(page, candidates)

    def _page(
        self, after: Mapping[Path, int], candidates: Mapping[Path, Sequence[int]]
    ) -> Iterator[CardPair]:
        cards = {stored.version.seq: stored for stored in self._store.stored_cards(after.values())}
        waiting = {path: list(candidates.get(path, ())) for path in after}
        found: dict[Path, CardPair] = {
            path: CardPair(None, cards[seq], None)
            for path, seq in after.items()
            if not waiting[path]
        }
        while unfinished := [path for path in after if path not in found]:
            seqs = {path: waiting[path].pop(0) for path in unfinished}
            earlier = {
                stored.version.seq: stored for stored in self._store.stored_cards(seqs.values())
            }
            for path, seq in seqs.items():
                pair = self._pair(earlier[seq], cards[after[path]])
                if pair.change is not None or not waiting[path]:
                    found[path] = pair
        yield from (found[path] for path in after)

    def _pair(self, before: StoredCard, after: StoredCard) -> CardPair:
        if before.version.seq == after.version.seq:
            return CardPair(before, after, None)
        sides = self._side(before), self._side(after)
        if sides[0] is None or sides[1] is None:
            return CardPair(before, after, None)
        change = split_change(sides[0], sides[1])
        return CardPair(before, after, change if change.is_change else None)

    def _side(self, stored: StoredCard) -> CardSide | None:
        """None if the store does not have the scorecard's rubric."""
        sha256 = stored.card.rubric.sha256
        if sha256 not in self._rubrics:
            self._rubrics[sha256] = self._store.rubric(sha256)
        rubric = self._rubrics[sha256]
        if rubric is None:
            return None
        return CardSide(stored.card, rubric, stored.content_sha256, stored.keys)


def _heads(
    store: Store, below: Sequence[Path | None], until: int | None = None
) -> list[StoredHead]:
    heads = {stored.seq: stored for path in below for stored in store.heads(path, until)}
    return [heads[seq] for seq in sorted(heads)]


def _in_force(heads: Sequence[StoredHead], choice: CardChoice | None) -> list[StoredHead]:
    return [heads[number] for number in choose([stored.head for stored in heads], choice).numbers]


def _candidates(
    store: Store,
    below: Sequence[Path | None],
    choice: CardChoice | None,
    earlier: Earlier,
    after: Mapping[Path, int],
) -> Mapping[Path, Sequence[int]]:
    """By run, the scorecards that the one in force may be compared with, the best first."""
    if earlier.choice is not None:
        heads = _in_force(_heads(store, below), earlier.choice)
        return {stored.path: (stored.seq,) for stored in heads}
    if earlier.until is not None:
        heads = _in_force_then(_heads(store, below, earlier.until), choice)
        return {stored.path: (stored.seq,) for stored in heads}
    versions = [version for path in below for version in store.card_versions(path)]
    numbers = _versions_before(versions, after)
    # A run with one scorecard is as it ever was.
    return {path: numbers.get(path) or (seq,) for path, seq in after.items()}


def _in_force_then(heads: Sequence[StoredHead], choice: CardChoice | None) -> list[StoredHead]:
    """The scorecards in force at a time; of runs without one by the judge and rubric of now, that
    of another."""
    in_force = {stored.path: stored for stored in _in_force(heads, None)}
    with suppress(InputError):
        in_force |= {stored.path: stored for stored in _in_force(heads, choice)}
    return list(in_force.values())


def _versions_before(
    versions: Iterable[CardVersion], after: Mapping[Path, int]
) -> dict[Path, list[int]]:
    """By run, the scorecards before its own, newest first: those of the same judge, else all."""
    of_run: dict[Path, list[CardVersion]] = defaultdict(list)
    judges: dict[Path, str] = {}
    for version in versions:
        if version.path not in after:
            continue
        if version.seq < after[version.path]:
            of_run[version.path].append(version)
        elif version.seq == after[version.path]:
            judges[version.path] = version.judge
    numbers: dict[Path, list[int]] = {}
    for path, earlier in of_run.items():
        same_judge = [version for version in earlier if version.judge == judges.get(path)]
        newest_first = sorted(same_judge or earlier, key=lambda version: -version.seq)
        numbers[path] = [version.seq for version in newest_first]
    return numbers
