"""Which items of which runs are asked, where a command names some of them.

Everything else stands as it is. Items are chosen by name, or by what scorecards in force say: two
judges differ, or a judge is unsure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..card.choice import CardChoice, choose
from ..card.differences import differing, opinions
from ..card.scorecard import ScoreCard
from ..store import Store

ItemsByRun = Mapping[Path, Mapping[str, str]]
"""What criteria and codes were chosen for, by the absolute path of the run and their ids."""


@dataclass(frozen=True)
class ItemSelection:
    """The items that a plan asks."""

    names: frozenset[str] = frozenset()
    """Criteria, error codes, stages (all criteria of one) or questions; empty for all."""
    by_run: ItemsByRun | None = None
    """Items of each run; None for all."""
    again: bool = False
    """Ask for a further sample where a verdict stands."""

    def named(self, question: str, item: str) -> str | None:
        """The name that chooses this item of a question; None if none does."""
        for name in (item, question):
            if not self.names or name in self.names:
                return name
        return None

    def takes(self, path: Path, question: str, item: str) -> bool:
        """Whether an item of this run is asked."""
        if self.named(question, item) is None:
            return False
        return self.by_run is None or item in self.by_run.get(path, ())


def disputed_items(store: Store, files: Sequence[Path], first: str, second: str) -> ItemsByRun:
    """The items on which the scorecards in force of two judges differ, with both answers.

    InputError for a judge without scorecards.
    """
    others = dict(_cards_in_force(store, files, second))
    disputed = {}
    for path, card in _cards_in_force(store, files, first):
        if path in others:
            own, other = opinions(card), opinions(others[path])
            items = {item: f"{own[item]} / {other[item]}" for item in differing(own, other)}
            if items:
                disputed[path] = items
    return disputed


@dataclass(frozen=True)
class Unsure:
    """Items whose confidence is below a limit."""

    items: ItemsByRun
    without: int
    """Items of these runs that have no confidence."""


def unsure_items(store: Store, files: Sequence[Path], below: float, judge: str | None) -> Unsure:
    """The items that the scorecards in force state with a lower confidence.

    `judge`: whose scorecards; None for the judge in force.
    """
    items: dict[Path, dict[str, str]] = {}
    without = 0
    for path, card in _cards_in_force(store, files, judge):
        by_item = opinions(card)
        without += sum(opinion.confidence is None for opinion in by_item.values())
        unsure = {
            item: f"{opinion} ({opinion.confidence:.2f})"
            for item, opinion in by_item.items()
            if opinion.confidence is not None and opinion.confidence < below
        }
        if unsure:
            items[path] = unsure
    return Unsure(items, without)


def both(first: ItemsByRun | None, second: ItemsByRun | None) -> ItemsByRun | None:
    """The items that are in both; None stands for all."""
    if first is None or second is None:
        return second if first is None else first
    shared = {
        path: {item: text for item, text in first[path].items() if item in second[path]}
        for path in first.keys() & second.keys()
    }
    return {path: items for path, items in shared.items() if items}


def _cards_in_force(
    store: Store, files: Sequence[Path], judge: str | None
) -> Iterator[tuple[Path, ScoreCard]]:
    """The scorecard in force of each of these runs by a judge, by absolute path."""
    paths = {file.absolute() for file in files}
    heads = store.heads()
    numbers = choose([stored.head for stored in heads], CardChoice(judge)).numbers
    chosen = [heads[number] for number in numbers if heads[number].path in paths]
    chosen.sort(key=lambda stored: stored.seq)
    seqs = [stored.seq for stored in chosen]
    for stored, card in zip(chosen, store.cards_at(seqs), strict=True):
        yield stored.path, card
