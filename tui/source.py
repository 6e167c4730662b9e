"""What the browser shows: a folder of runs, a file of scorecards, or a store; listed without reading trajectories.

Listing gives rows in batches, from whatever scorecards there are. A run is read when it is opened or scored.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AmbjudgeError, InputError
from .rows import RunRow, row_of, waiting

if TYPE_CHECKING:
    from ..judge.scorecard import ScoreCard
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..rubrics.model import Rubric
    from ..trajectories.models import Run, Segmentation, TrackName

log = logging.getLogger(__name__)

BATCH = 500
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading a row from values that are no scorecard raises."""


@dataclass(frozen=True)
class Opened:
    """A run as far as it could be read: `run` or `card` may be missing, and `notes` say why."""

    row: RunRow
    run: Run | None
    card: ScoreCard | None
    segmentation: Segmentation | None
    notes: tuple[str, ...] = ()


class Collection:
    """Runs and their scorecards under one path. Methods may be called from worker threads, one at a time each."""

    def __init__(
        self,
        path: Path,
        *,
        options: Callable[[], ScoreOptions],
        store: Callable[[], Store | None] = lambda: None,
        new_store: Callable[[], Store] | None = None,
        cards: Path | None = None,
    ) -> None:
        """`path` is a folder or a conversation; neither a store nor `cards` need be there.

        With only `cards` (`path` is that file) or only a store (`path` is its file), they say which runs there are.
        Options and store are made when they are first needed, as importing their modules takes longer than drawing;
        `new_store` makes one where labels or verdicts are to be kept and there is none yet.
        """
        self.path, self.cards_file = path, cards
        self._make_options, self._open_store, self._new_store = options, store, new_store
        self.skipped = 0
        """Scorecards of the file that could not be read."""
        self._scored: dict[int, bytes] = {}
        self._offsets: dict[int, int] = {}

    @cached_property
    def options(self) -> ScoreOptions:
        """How runs are scored."""
        return self._make_options()

    @cached_property
    def _given_rubric(self) -> Rubric | None:
        from ..rubrics.load import load_rubric

        return load_rubric(self.options.rubric) if self.options.rubric else None

    def rubric_of(self, track: TrackName | None, task: str | None) -> Rubric:
        """The rubric that judges a run. RubricError when the one that was named cannot be used."""
        from ..rubrics.load import rubric_for

        return rubric_for(track, task, self._given_rubric)

    @cached_property
    def store(self) -> Store | None:
        """The verdict store, if there is one. StoreError when it cannot be used."""
        return self._open_store()

    def store_to_write(self) -> Store | None:
        """The store, made now where there is none; None where none is wanted. StoreError when it cannot be made."""
        if self.store is None and self._new_store is not None:
            self.__dict__["store"] = self._new_store()
        return self.store

    def close(self) -> None:
        """Close the store, if it was ever opened."""
        store = self.__dict__.get("store")
        if store is not None:
            store.close()

    @property
    def name(self) -> str:
        """For headings."""
        return self.path.name or str(self.path)

    def batches(self) -> Iterator[list[RunRow]]:
        """All rows, some hundred at a time, numbered from 0. InputError when the path holds nothing to show."""
        rows = self._from_folder() if self.path.is_dir() or self._is_conversation() else self._from_cards()
        batch: list[RunRow] = []
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _is_conversation(self) -> bool:
        return self.path != self.cards_file and self.path.suffix == ".json"

    def _from_folder(self) -> Iterator[RunRow]:
        from ..trajectories.layout import find_conversations, run_id

        known: dict[str, tuple[int | None, dict[str, Any]]] = {}
        if self.store is not None:
            known = {str(path): (None, card) for path, card in self.store.iter_card_data()}
        by_id: dict[str, tuple[int | None, dict[str, Any]]] = {}
        if self.cards_file is not None:
            for position, values in self._lines(self.cards_file):
                by_id[str(values["run"]["id"])] = position, values
        for number, path in enumerate(find_conversations(self.path)):
            id = run_id(path)
            found = known.get(str(path.absolute())) or by_id.get(id)
            if found is None:
                yield waiting(number, path, id)
                continue
            offset, card = found
            if offset is not None:
                self._offsets[number] = offset
            try:
                yield row_of(number, card, path)
            except _BROKEN:
                yield waiting(number, path, id)

    def _from_cards(self) -> Iterator[RunRow]:
        number = 0
        if self.cards_file is not None:
            for offset, card in self._lines(self.cards_file):
                try:
                    row = row_of(number, card)
                except _BROKEN:
                    self.skipped += 1
                    continue
                self._offsets[number] = offset
                yield row
                number += 1
        elif self.store is not None:
            seen = set()
            for path, card in self.store.iter_card_data():
                try:
                    row = row_of(number, card, path)
                except _BROKEN:
                    self.skipped += 1
                    continue
                seen.add(str(path))
                yield row
                number += 1
            for run in self.store.iter_runs():
                if str(run.path) not in seen:
                    yield waiting(number, run.path, run.id)._replace(
                        agent=run.agent, model=run.model, task=run.task, track=run.track, tier=run.tier,
                        repeat=run.repeat, turns=run.turns,
                    )  # fmt: skip
                    number += 1
        if not number:
            raise InputError("holds no scorecards", "make some with: ambjudge score PATH --json --out FILE", self.path)

    def _lines(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """(offset, values) of every line of a file that is a JSON object with a run; the others are counted."""
        offset = 0
        try:
            with path.open("rb") as file:
                for line in file:
                    try:
                        value = json.loads(line)
                        if line.strip() and value["run"]["id"]:
                            yield offset, value
                    except (*_BROKEN, RecursionError):
                        self.skipped += bool(line.strip())
                    offset += len(line)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", "check the path", path) from None

    # One run.

    def card(self, row: RunRow) -> ScoreCard | None:
        """The scorecard behind a row; None when there is none. InputError or StoreError when it is broken."""
        from ..judge.verify import parse_card

        if row.number in self._scored:
            return parse_card(json.loads(zlib.decompress(self._scored[row.number])), row.id)
        if row.number in self._offsets and self.cards_file is not None:
            with self.cards_file.open("rb") as file:
                file.seek(self._offsets[row.number])
                return parse_card(json.loads(file.readline()), f"{self.cards_file.name}: {row.id}")
        if self.store is not None and row.state == "scored":
            return next(self.store.cards(Path(row.path), judge=row.judge), None)
        return None

    def cards_of(self, row: RunRow) -> list[ScoreCard]:
        """Every scorecard in force of a run, one a judge and rubric, the newest first."""
        own = self.card(row)
        found = [own] if own is not None else []
        seen = {(c.judge.name, c.rubric.id, c.rubric.sha256) for c in found}
        for card in self.store.cards(Path(row.path)) if self.store is not None else ():
            key = (card.judge.name, card.rubric.id, card.rubric.sha256)
            if key not in seen:
                seen.add(key)
                found.append(card)
        return found

    def conversation(self, row: RunRow) -> Path | None:
        """Where the run's conversation is; scorecards may name it from another folder than the present one."""
        given = Path(row.path)
        places = [given]
        if not given.is_absolute():
            base = (self.cards_file or self.path).absolute().parent
            places += [folder / given for folder in (base, *base.parents[:3])]
        return next((place for place in places if place.is_file()), None)

    def open(self, row: RunRow) -> Opened:
        """Read a run and its scorecard; what cannot be read is missing and noted. Scores nothing."""
        from ..trajectories.load import load_conversation
        from ..trajectories.models import Segmentation
        from ..trajectories.segment import segment

        notes: list[str] = []
        run, card = None, None
        try:
            card = self.card(row)
        except (AmbjudgeError, OSError, ValueError) as error:
            notes.append(f"scorecard: {error}")
        where = self.conversation(row)
        if where is None:
            notes.append(f"{row.path}: the conversation is not there; only the scorecard is shown")
        else:
            try:
                run = load_conversation(where)
            except AmbjudgeError as error:
                notes.append(str(error))
        segmentation = None
        if run is not None:
            if card is not None and card.run.sha256 != run.sha256:
                notes.append("the scorecard was made from another version of this run; score it again")
            if card is not None and len(card.turn_stages) == len(run.turns):
                segmentation = Segmentation(turn_stages=card.turn_stages, segments=card.segments)
            else:
                segmentation = segment(run)
        return Opened(row, run, card, segmentation, tuple(notes))

    def score(self, row: RunRow) -> RunRow:
        """Score a run by the heuristic judge and remember its card; the row that now stands for it."""
        from ..judge.engine import score
        from ..trajectories.load import load_conversation

        where = self.conversation(row)
        if where is None:
            return row._replace(state="error", error="the conversation is not there")
        try:
            run = load_conversation(where)
            named = {"track": run.track or self.options.track, "tier": run.tier or self.options.tier}
            card = score(
                run.model_copy(update=named), rubric=self.rubric_of(run.track or self.options.track, run.task), policy=self.options.policy,
                public=self.options.public,
            )  # fmt: skip
        except AmbjudgeError as error:
            return row._replace(state="error", error=str(error))
        except Exception as error:  # A fault of ours on one run must not end the reading of all the others.
            log.exception("scoring %s", where)
            return row._replace(state="error", error=f"internal error: {type(error).__name__}: {error}"[:300])
        return self.keep(row, card)

    def keep(self, row: RunRow, card: ScoreCard) -> RunRow:
        """Remember a card for a row, compressed; the row that now stands for it."""
        data = card.to_dict()
        self._scored[row.number] = zlib.compress(json.dumps(data, ensure_ascii=True).encode(), 1)
        return row_of(row.number, data, Path(row.path))
