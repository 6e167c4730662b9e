"""Where one annotator's labels are stored: files in the format of labels.md, and the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..judge.trust.human_labels import (
    Labels,
    export_labels,
    import_labels,
    stored_labels,
)
from ..judge.trust.label_sources import each_label

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.store import Store


class LabelStorage:
    """One annotator's labels of a collection. Nothing is written until a label is saved."""

    def __init__(self, annotator: str, folder: Path, store: Store | None = None) -> None:
        self.annotator, self.folder, self.store = annotator, folder, store

    def find(self, run_id: str) -> Labels | None:
        """This annotator's labels of a run, from the store, else from the files.

        InputError if the store's labels are broken.
        """
        for labels in chain(self._in_store(run_id), self._in_files()):
            if labels.run == run_id:
                return labels
        return None

    def all(self) -> dict[str, Labels]:
        """This annotator's labels by run.

        Files that hold no labels, and runs that were sampled but not labelled, are left out.
        """
        every = chain(self._in_files(), self._in_store())
        return {labels.run: labels for labels in every if labels.has_labels}

    def _in_store(self, run_id: str | None = None) -> Iterable[Labels]:
        return stored_labels(self.store, run_id, self.annotator) if self.store is not None else ()

    def _in_files(self) -> Iterator[Labels]:
        for entry in each_label(self.folder / self.annotator):
            if not isinstance(entry, InputError):
                yield entry.labels

    def save(self, labels: Labels) -> list[str]:
        """Store labels as a file and, where there is one, in the store; the places they went to.

        AmbjudgeError if that fails.
        """
        places = [str(path) for path in export_labels([labels], self.folder)]
        if self.store is not None:
            import_labels(self.store, labels)
            places.append(self.store.location)
        return places

    def plan(self, cards: list[ScoreCard], budget: int) -> list[Labels]:
        """Runs in the order in which to label them: rare codes first, labelled runs left out.

        Each says how it was sampled.
        """
        from ..analysis import frame
        from ..analysis.statistics.label_sampling import drawn_labels, label_plan

        if not cards:
            return []
        plan = label_plan(frame(cards), budget, already=sorted(self.all()))
        return drawn_labels(plan, self.annotator)
