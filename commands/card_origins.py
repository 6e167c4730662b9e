"""What stores say of scorecards: when each was made, and on which verdicts it rests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .cohort_input import place_of

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.store import Store
    from ..judge.store.card_history import OriginsByItem
    from ..judge.store.verdicts import StoredVerdict

_PAGE = 200


class Origin(NamedTuple):
    """Of one scorecard; None of one that is in no store."""

    scored_at: str | None
    """ISO 8601, UTC."""
    verdicts: OriginsByItem | None


class CardOrigins:
    """Looks up scorecards in the stores of some paths, by their text."""

    def __init__(
        self, obj: dict[str, Any], paths: Sequence[str], flag: str | None, stack: ExitStack
    ) -> None:
        from ..judge.store import open_store

        places = (place_of(obj, path, flag).store for path in paths)
        stores = list(dict.fromkeys(str(place) for place in places if place is not None))
        opened = [stack.enter_context(open_store(store, create=False)) for store in stores]
        self._stores = [(store, store.card_index()) for store in opened]

    def each(self, cards: Iterable[ScoreCard]) -> Iterator[tuple[ScoreCard, Origin]]:
        """Each scorecard with its origin."""
        waiting = iter(cards)
        while page := list(islice(waiting, _PAGE)):
            yield from zip(page, self._of_page([sha256_of(card) for card in page]), strict=True)

    def scored_at(self, sha256: str) -> str | None:
        """When the scorecard with this text was made."""
        for _, index in self._stores:
            if sha256 in index:
                return index[sha256][1]
        return None

    def _of_page(self, hashes: Sequence[str]) -> list[Origin]:
        origins = dict.fromkeys(hashes, Origin(None, None))
        for store, index in self._stores:
            numbers = {sha256: index[sha256] for sha256 in hashes if sha256 in index}
            verdicts = store.origins_of([seq for seq, _ in numbers.values()])
            for sha256, (seq, made_at) in numbers.items():
                origins[sha256] = Origin(made_at, verdicts.get(seq))
        return [origins[sha256] for sha256 in hashes]


class VerdictsInForce:
    """Which verdicts the newest scorecards of each run and judge rest on."""

    def __init__(self, store: Store, below: Path | None) -> None:
        from ..judge.card.choice import ALL_JUDGES, CardChoice

        in_force = store.in_force(below, CardChoice(judge=ALL_JUDGES))
        newest = {stored.seq for stored in in_force}
        origins = store.origins_of(sorted(newest))
        votes = (votes for of_card in origins.values() for votes in of_card.values())
        self._keys = {vote.key for of_item in votes for vote in of_item}
        self._is_complete = newest == origins.keys()

    def says(self, verdict: StoredVerdict) -> bool | None:
        """Whether the verdict is in force; None if some scorecard does not say what it rests on."""
        if verdict.key.sha256 in self._keys:
            return True
        return False if self._is_complete else None


def sha256_of(card: ScoreCard) -> str:
    """The hash by which a store knows a scorecard."""
    from ..judge.store.scorecards import card_bytes
    from ..trajectories.reading.layout import run_id

    if card.run.path is not None:
        # The store keeps the folder's name as the id, whatever other runs have that name.
        run = card.run.model_copy(update={"id": run_id(Path(card.run.path))})
        card = card.model_copy(update={"run": run})
    return hashlib.sha256(card_bytes(card)).hexdigest()
