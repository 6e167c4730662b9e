"""Where labels are kept: files in the format of labels.md, and the verdict store; and which run to
label next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..judge.trust.human_labels import (
    Labels,
    export_labels,
    import_labels,
    read_labels,
    stored_labels,
)

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.store import Store


class LabelBook:
    """One annotator's labels of a collection. Nothing is made on disk before the first label is
    saved."""

    def __init__(self, annotator: str, folder: Path, store: Store | None = None) -> None:
        self.annotator, self.folder, self.store = annotator, folder, store

    def find(self, run_id: str) -> Labels | None:
        """This annotator's labels of a run, from the store, else from the files. InputError when
        they are broken."""
        return next(
            (
                labels
                for labels in chain(self._stored(run_id), self._files())
                if labels.run == run_id
            ),
            None,
        )

    def all(self) -> dict[str, Labels]:
        """This annotator's labels by run; files that are no labels, and runs that are drawn but not
        begun, are left out."""
        return {
            labels.run: labels for labels in chain(self._files(), self._stored()) if labels.begun
        }

    def _stored(self, run_id: str | None = None) -> Iterable[Labels]:
        return stored_labels(self.store, run_id, self.annotator) if self.store is not None else ()

    def _files(self) -> Iterator[Labels]:
        for path in sorted((self.folder / self.annotator).glob("*.json")):
            with suppress(InputError):
                yield read_labels(path)

    def save(self, labels: Labels) -> list[str]:
        """Keep labels as a file and, where there is one, in the store; says where. AmbjudgeError
        when that fails."""
        places = [str(path) for path in export_labels([labels], self.folder)]
        if self.store is not None:
            import_labels(self.store, labels)
            places.append(self.store.location)
        return places

    def plan(self, cards: list[ScoreCard], budget: int) -> list[Labels]:
        """Runs in the order in which to label them: rare codes first, labelled ones left out; each
        says how it was drawn."""
        from ..analysis import frame
        from ..analysis.statistics.label_sampling import drawn_labels, label_plan

        if not cards:
            return []
        return drawn_labels(
            label_plan(frame(cards), budget, already=sorted(self.all())), self.annotator
        )
