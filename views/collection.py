"""What the browser shows: a folder of runs, a file of scorecards, or a store; listed without
reading trajectories.

Listing gives rows in batches, from whatever scorecards there are. A run is read when it is opened
or scored.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AmbjudgeError, InputError
from ..trajectories.reading.json_bytes import bounded_lines
from .run_rows import RunRow, row_of, waiting

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
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
    """Runs and their scorecards under one path. Methods may be called from worker threads, one at a
    time each."""

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

        With only `cards` (`path` is that file) or only a store (`path` is its file), they say which
        runs there are. Options and store are made when they are first needed, as importing their
        modules takes longer than drawing; `new_store` makes one where labels or verdicts are to be
        kept and there is none yet.
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

    def rubric_of_card(self, card: ScoreCard) -> Rubric | None:
        """The rubric that a scorecard names, as far as it is at hand: the given one, a built-in
        one, else the store's."""
        from ..rubrics.load import load_rubric

        try:
            given = self._given_rubric
            rubric = (
                given
                if given is not None and given.id == card.rubric.id
                else load_rubric(card.rubric.id)
            )
        except AmbjudgeError:
            return None if self.store is None else self.store.rubric(card.rubric.sha256)
        return rubric if rubric.id == card.rubric.id else None

    @cached_property
    def store(self) -> Store | None:
        """The verdict store, if there is one. StoreError when it cannot be used."""
        return self._open_store()

    def store_to_write(self) -> Store | None:
        """The store, made now where there is none; None where none is wanted. StoreError when it
        cannot be made."""
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
        """All rows, some hundred at a time, numbered from 0. InputError when the path holds nothing
        to show."""
        conversation = self.path != self.cards_file and self.path.suffix == ".json"
        rows = self._from_folder() if self.path.is_dir() or conversation else self._from_cards()
        while batch := list(islice(rows, BATCH)):
            yield batch

    def _from_folder(self) -> Iterator[RunRow]:
        from ..trajectories.reading.layout import find_conversations, run_id

        known = {row.id: (offset, row) for offset, row in self._of_file()}
        if self.store is not None:
            known |= {row.path: (offset, row) for offset, row in self._of_store(self.store)}
        for number, path in enumerate(find_conversations(self.path)):
            id = run_id(path)
            found = known.get(str(path.absolute())) or known.get(id)
            yield (
                self._numbered(number, *found)._replace(path=str(path))
                if found
                else waiting(number, path, id)
            )

    def _from_cards(self) -> Iterator[RunRow]:
        store = self.store if self.cards_file is None else None
        number, seen = -1, set()
        for number, (offset, row) in enumerate(
            self._of_store(store) if store is not None else self._of_file()
        ):
            seen.add(row.path)
            yield self._numbered(number, offset, row)
        for run in store.iter_runs() if store is not None else ():
            if str(run.path) not in seen:
                number += 1
                yield waiting(number, run.path, run.id)._replace(
                    agent=run.agent,
                    model=run.model,
                    task=run.task,
                    track=run.track,
                    tier=run.tier,
                    repeat=run.repeat,
                    turns=run.turns,
                )
        if number < 0:
            raise InputError(
                "holds no scorecards",
                "make some with: ambjudge score PATH --json --out FILE",
                self.path,
            )

    def _numbered(self, number: int, offset: int | None, row: RunRow) -> RunRow:
        if offset is not None:
            self._offsets[number] = offset
        return row._replace(number=number)

    def _of_store(self, store: Store) -> Iterator[tuple[int | None, RunRow]]:
        """The store's scorecards as rows without numbers."""
        for path, card in store.iter_card_data():
            try:
                yield None, row_of(0, card, path)
            except _BROKEN:
                self.skipped += 1

    def _of_file(self) -> Iterator[tuple[int | None, RunRow]]:
        """Each line of the file of scorecards as a row without number, and where it begins; broken
        ones are counted."""
        if self.cards_file is None:
            return
        try:
            with self.cards_file.open("rb") as file:
                for offset, line in bounded_lines(file):
                    if line.strip():
                        try:
                            yield offset, row_of(0, json.loads(line))
                        except (*_BROKEN, RecursionError):
                            self.skipped += 1
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", "check the path", self.cards_file
            ) from None

    # One run.

    def card(self, row: RunRow) -> ScoreCard | None:
        """The scorecard behind a row; None when there is none. InputError or StoreError when it is
        broken."""
        from ..judge.card.verify import parse_card

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
        """Where the run's conversation is; scorecards may name it from another folder than the
        present one."""
        from ..trajectories.reading.layout import resolve_run_path

        base = (self.cards_file or self.path).absolute().parent
        return resolve_run_path(Path(row.path), (base, *base.parents[:3]))

    def open(self, row: RunRow) -> Opened:
        """Read a run and its scorecard; what cannot be read is missing and noted. Scores nothing."""
        from ..trajectories.reading.load import load_conversation

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
        if run is not None and card is not None and card.run.sha256 != run.sha256:
            notes.append("the scorecard was made from another version of this run; score it again")
        return Opened(row, run, card, None if run is None else stages_of(run, card), tuple(notes))

    def score(self, row: RunRow) -> RunRow:
        """Score a run by the rules judge and remember its card; the row that now stands for it."""
        from ..judge.engine import make_scorecard
        from ..trajectories.reading.load import load_conversation

        where = self.conversation(row)
        if where is None:
            return row._replace(state="error", error="the conversation is not there")
        try:
            run = load_conversation(where)
            named = {
                "track": run.track or self.options.track,
                "tier": run.tier or self.options.tier,
            }
            card = make_scorecard(
                run.model_copy(update=named),
                rubric=self.rubric_of(run.track or self.options.track, run.task),
                policy=self.options.policy,
                public=self.options.public,
            )
        except AmbjudgeError as error:
            return row._replace(state="error", error=str(error))
        # A fault of ours on one run must not end the reading of all the others.
        except Exception as error:
            log.exception("scoring %s", where)
            return row._replace(
                state="error", error=f"internal error: {type(error).__name__}: {error}"[:300]
            )
        return self.keep(row, card)

    def keep(self, row: RunRow, card: ScoreCard) -> RunRow:
        """Remember a card for a row, compressed; the row that now stands for it."""
        data = card.to_dict()
        self._scored[row.number] = zlib.compress(json.dumps(data, ensure_ascii=True).encode(), 1)
        return row_of(row.number, data, Path(row.path))


def stages_of(run: Run, card: ScoreCard | None) -> Segmentation:
    """The stages of a run's turns: the scorecard's where it has one for each, else by rules."""
    from ..trajectories.models import Segmentation
    from ..trajectories.turns.segment import segment

    if card is not None and len(card.turn_stages) == len(run.turns):
        return Segmentation(turn_stages=card.turn_stages, segments=card.segments)
    return segment(run)
