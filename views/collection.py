"""What the browser shows: a folder of runs, a file of scorecards, or a store.

Runs are listed in batches from whatever scorecards there are, without reading trajectories. A run
is read when it is opened or scored.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import AmbjudgeError, InputError
from ..judge.card.choice import (
    CardChoice,
    CardHead,
    Selection,
    choose,
    head_of_values,
    identified,
    ids_of,
)
from ..judge.card.run_ids import names_of
from ..trajectories.reading.json_bytes import bounded_lines
from ..trajectories.reading.layout import run_around
from .run_rows import RunRow, row_of, waiting

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..judge.store.scorecards import StoredHead
    from ..rubrics.model import Rubric
    from ..trajectories.models import Run, Segmentation, TrackName

log = logging.getLogger(__name__)

BATCH = 500
"""Rows that are listed at a time."""
_NO_SCORECARD = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What `row_of` raises for values that are no scorecard."""


class _Source(NamedTuple):
    """Where the scorecard of a row is."""

    offset: int | None = None
    """Where it begins in the file of scorecards."""
    seq: int | None = None
    """Its number in the store."""


@dataclass(frozen=True)
class _Listed:
    """Scorecards that count."""

    rows: Iterable[tuple[_Source, RunRow]] = ()
    """Without a number."""
    paths_now: Mapping[int, Path] = field(default_factory=dict)
    """Where their runs are now, by the scorecard's number in the store."""
    left_out: Container[str] = ()
    """Paths of runs that are not listed."""

    def path_now(self, source: _Source) -> Path | None:
        """Where the run of a scorecard is now; None if it is gone."""
        return None if source.seq is None else self.paths_now.get(source.seq)


@dataclass(frozen=True)
class Opened:
    """A run as far as it could be read: `run` or `card` may be missing, and `notes` say why."""

    row: RunRow
    run: Run | None
    card: ScoreCard | None
    segmentation: Segmentation | None
    notes: tuple[str, ...] = ()


class Collection:
    """Runs and their scorecards under one path.

    Methods may be called from worker threads, each method from one thread at a time.
    """

    def __init__(
        self,
        path: Path,
        *,
        options: Callable[[], ScoreOptions],
        store: Callable[[], Store | None] = lambda: None,
        new_store: Callable[[], Store] | None = None,
        cards: Path | None = None,
        choice: CardChoice | None = None,
    ) -> None:
        """`path` is a folder, a conversation, or the file of `cards` or of the store.

        In the latter cases the scorecards say which runs there are. Options and store are made when
        they are first needed, as importing their modules takes longer than drawing; `new_store`
        makes a store where labels or verdicts are to be stored and there is none yet. `choice`:
        the judge and rubric whose scorecards count.
        """
        self.path, self.cards_file = path, cards
        self.choice = choice or CardChoice()
        self._make_options, self._open_store, self._new_store = options, store, new_store
        self.skipped = 0
        """Scorecards of the file that could not be read."""
        self._scored: dict[int, bytes] = {}
        """Compressed JSON of scorecards made here, by row number."""
        self._sources: dict[int, _Source] = {}
        """Where a row's scorecard is."""
        self.left_out = ""
        """Which scorecards count and which do not, if there are several of a run."""
        self.judge: str | None = None
        """The judge whose scorecards count; None before rows are listed, and without any."""

    @cached_property
    def options(self) -> ScoreOptions:
        """How runs are scored; by the rubrics in force in the store, if the user names no other."""
        from dataclasses import replace

        options = self._make_options()
        if self.store is None:
            return options
        from ..judge.rejudge.rubrics_in_force import rubrics_in_force

        return replace(options, rubric=rubrics_in_force(self.store, options.scope().rubrics))

    @cached_property
    def _own_rubrics(self) -> tuple[Rubric, ...]:
        from ..rubrics.load import load_rubrics

        return load_rubrics(self.options.rubric)

    def rubric_of(self, track: TrackName | None, task: str | None) -> Rubric:
        """The rubric that judges a run. RubricError if the user's rubric cannot be used."""
        from ..rubrics.load import rubric_for

        return rubric_for(track, task, self._own_rubrics)

    def rubric_of_card(self, card: ScoreCard) -> Rubric | None:
        """The rubric that a scorecard names: the user's, a built-in one, else the store's.

        None if it is none of these.
        """
        from ..rubrics.load import load_rubric

        for rubric in self._own_rubrics:
            if rubric.id == card.rubric.id:
                return rubric
        try:
            rubric = load_rubric(card.rubric.id)
        except AmbjudgeError:
            return None if self.store is None else self.store.rubric(card.rubric.sha256)
        return rubric if rubric.id == card.rubric.id else None

    @cached_property
    def store(self) -> Store | None:
        """The verdict store, if there is one. StoreError if it cannot be used."""
        return self._open_store()

    def store_to_write(self) -> Store | None:
        """The store, made now if there is none; None if the user wants none.

        StoreError if it cannot be made.
        """
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
        """All rows, BATCH at a time, numbered from 0. InputError if the path holds no runs."""
        is_conversation = self.path != self.cards_file and self.path.suffix == ".json"
        if self.path.is_dir() or is_conversation:
            rows = self._rows_of_folder()
        else:
            rows = self._rows_of_cards()
        while batch := list(islice(rows, BATCH)):
            yield batch

    def _rows_of_folder(self) -> Iterator[RunRow]:
        """A row for every conversation in the folder, scored where a scorecard names it.

        Copies of a run that has a scorecard are left out. Runs that are no longer there follow, as
        the scorecards that the store has of them count too.
        """
        from ..trajectories.reading.layout import run_id

        # A file of scorecards may come from another machine, so that paths in it say nothing here;
        # the store knows runs by their path.
        scored = {row.id: (source, row) for source, row in self._rows_of_file()}
        listed = _Listed()
        if self.store is not None:
            listed = self._rows_of_store(self.store, self.path)
        stored, others = {}, []
        for source, row in listed.rows:
            path = listed.path_now(source)
            if path is None:
                others.append((source, row))
            else:
                stored[str(path)] = (source, row)
        number = 0
        for path in self._conversations(has_scorecards=bool(scored or stored or others)):
            absolute, id = str(path.absolute()), run_id(path)
            if absolute in listed.left_out:
                continue
            match = stored.pop(absolute, None)
            if match is None:
                names = (absolute, *names_of(path))
                match = next((scored[name] for name in names if name in scored), None)
            if match is None:
                yield waiting(number, path, id)
            else:
                source, row = match
                yield self._numbered(number, source, row)._replace(path=str(path))
            number += 1
        for source, row in (*stored.values(), *others):
            yield self._numbered(number, source, row)
            number += 1

    def _conversations(self, *, has_scorecards: bool) -> Iterator[Path]:
        """The conversations below the path. InputError if it has neither runs nor scorecards."""
        from ..trajectories.reading.layout import find_conversations

        try:
            yield from find_conversations(self.path)
        except InputError:
            if not has_scorecards:
                raise

    def _rows_of_cards(self) -> Iterator[RunRow]:
        """A row for every scorecard that counts, then for every run of the store without one."""
        store = self.store if self.cards_file is None else None
        listed = _Listed(self._rows_of_file())
        if store is not None:
            listed = self._rows_of_store(store)
        count = 0
        scored_paths = set()
        for source, row in listed.rows:
            scored_paths.add(row.path)
            yield self._numbered(count, source, row)
            count += 1
        for run in store.iter_runs() if store is not None else ():
            if str(run.path) in scored_paths or str(run.path) in listed.left_out:
                continue
            yield waiting(count, run.path, run.id)._replace(
                agent=run.agent,
                model=run.model,
                task=run.task,
                track=run.track,
                tier=run.tier,
                repeat=run.repeat,
                turns=run.turns,
            )
            count += 1
        if not count:
            raise InputError(
                "holds no scorecards",
                "make some with: ambjudge score PATH --json --out FILE",
                self.path,
            )

    def _numbered(self, number: int, source: _Source, row: RunRow) -> RunRow:
        self._sources[number] = source
        return row._replace(number=number)

    def _rows_of_store(self, store: Store, below: Path | None = None) -> _Listed:
        """The store's scorecards that count.

        `below`: only of the run at this path, or of the runs below this folder.
        """
        heads = store.heads(below)
        selection = choose([stored.head for stored in heads], self.choice)
        self._note_selection(selection)
        stranger = None if below is None or heads else store.stranger(below)
        if stranger is not None:
            self.left_out = f"runs without a scorecard; {stranger}"
        in_force = [heads[number] for number in selection.numbers]
        rows = self._stored_rows(store, in_force)
        return _Listed(rows, *_places(heads, in_force))

    def _note_selection(self, selection: Selection) -> None:
        self.left_out = selection.sentence()
        self.judge = selection.judges[0] if selection.judges else None

    def _stored_rows(
        self, store: Store, in_force: Sequence[StoredHead]
    ) -> Iterator[tuple[_Source, RunRow]]:
        ids = {stored.seq: stored.head.run_id for stored in in_force}
        for seq, path, card in store.card_data_at(list(ids)):
            try:
                yield _Source(seq=seq), row_of(0, card, path)._replace(id=ids[seq] or "?")
            except _NO_SCORECARD:
                self.skipped += 1

    def _rows_of_file(self) -> list[tuple[_Source, RunRow]]:
        """The scorecards of the file that count as rows without a number.

        Lines that are no scorecard are counted in `skipped`.
        """
        rows: list[tuple[_Source, RunRow]] = []
        heads: list[CardHead] = []
        for offset, line in self._lines():
            try:
                card = json.loads(line)
                row, head = row_of(0, card), head_of_values(card)
            except (*_NO_SCORECARD, RecursionError):
                self.skipped += 1
                continue
            rows.append((_Source(offset=offset), row))
            heads.append(head)
        heads = identified(heads)
        selection = choose(heads, self.choice)
        self._note_selection(selection)
        ids = ids_of(heads)
        numbered = ((number, *rows[number]) for number in selection.numbers)
        return [(source, row._replace(id=ids[number])) for number, source, row in numbered]

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines of the file of scorecards that are not empty, and where each begins."""
        if self.cards_file is None:
            return
        try:
            with self.cards_file.open("rb") as file:
                for offset, line in bounded_lines(file):
                    if line.strip():
                        yield offset, line
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", "check the path", self.cards_file
            ) from None

    # One run.

    def card(self, row: RunRow) -> ScoreCard | None:
        """The scorecard behind a row; None if there is none.

        InputError or StoreError if it is broken.
        """
        from ..judge.card.verify import parse_card

        if row.number in self._scored:
            return parse_card(json.loads(zlib.decompress(self._scored[row.number])), row.id)
        source = self._sources.get(row.number)
        if source is None:
            return None
        if source.offset is not None and self.cards_file is not None:
            with self.cards_file.open("rb") as file:
                file.seek(source.offset)
                return parse_card(json.loads(file.readline()), f"{self.cards_file.name}: {row.id}")
        if source.seq is not None and self.store is not None:
            return next(self.store.cards_at([source.seq]), None)
        return None

    def cards_of(self, row: RunRow) -> list[ScoreCard]:
        """All scorecards of a run, one for each judge and rubric; the row's own comes first."""
        cards: dict[tuple[str, str, str], ScoreCard] = {}
        current = self.card(row)
        candidates = [] if current is None else [current]
        if self.store is not None:
            candidates += self.store.cards(Path(row.path))
        for card in candidates:
            cards.setdefault((card.judge.name, card.rubric.id, card.rubric.sha256), card)
        return list(cards.values())

    def conversation(self, row: RunRow) -> Path | None:
        """Where the run's conversation is; None if it is not there.

        A scorecard may name it relative to another folder than the present one.
        """
        from ..trajectories.reading.layout import resolve_run_path

        base = (self.cards_file or self.path).absolute().parent
        return resolve_run_path(Path(row.path), (base, *base.parents[:3]))

    def open(self, row: RunRow) -> Opened:
        """Read a run and its scorecard, without scoring; notes say what cannot be read."""
        from ..trajectories.reading.load import load_conversation

        notes: list[str] = []
        run, card = None, None
        try:
            card = self.card(row)
        except (AmbjudgeError, OSError, ValueError) as error:
            notes.append(f"scorecard: {error}")
        path = self.conversation(row)
        if path is None:
            notes.append(
                f"{row.path}: the conversation file is missing; only the scorecard is shown"
            )
        else:
            try:
                # Labels are of the run under the id that it has here.
                run = load_conversation(path).model_copy(update={"id": row.id})
            except AmbjudgeError as error:
                notes.append(str(error))
        if run is not None and card is not None and card.run.sha256 != run.sha256:
            notes.append("the scorecard was made from another version of this run; score it again")
        if card is None:
            notes += self._note_on_other_judges(row)
        segmentation = stages_of(run, card) if run is not None else None
        return Opened(row, run, card, segmentation, tuple(notes))

    def _note_on_other_judges(self, row: RunRow) -> Iterator[str]:
        """A sentence on the scorecards of a run that do not count, as their judge does not."""
        judges = [] if self.store is None else self.store.judges([row.path])
        if judges:
            yield (
                f"judge {self.judge} has not judged this run; its scorecards by other judges:"
                f" {', '.join(judges)} (--judged-by NAME)"
            )

    @property
    def lets_rules_score(self) -> bool:
        """Whether runs without a scorecard are scored by rules as they are listed.

        Beside those of a model such scores would count here and nowhere else.
        """
        # Models of scorecards are slow to import, and the first screen needs none.
        from ..judge.card.fields import RULES

        return self.judge in (None, RULES)

    def score(self, row: RunRow) -> RunRow:
        """Score a run by rules and remember its scorecard; the run's new row."""
        from ..judge.engine import make_scorecard
        from ..trajectories.reading.load import load_conversation

        path = self.conversation(row)
        if path is None:
            return row._replace(state="error", error="the conversation is not there")
        try:
            run = self.options.scope().apply(load_conversation(path))
            card = make_scorecard(
                run,
                rubric=self.rubric_of(run.track, run.task),
                policy=self.options.policy,
                public=self.options.public,
            )
        except AmbjudgeError as error:
            return row._replace(state="error", error=str(error))
        except Exception as error:
            # A fault of ours on one run must not stop the scoring of all the others.
            log.exception("scoring %s", path)
            message = f"internal error: {type(error).__name__}: {error}"
            return row._replace(state="error", error=message[:300])
        return self.remember(row, card)

    def remember(self, row: RunRow, card: ScoreCard) -> RunRow:
        """Hold a scorecard for a row in memory, compressed; the run's new row."""
        data = card.to_dict()
        self._scored[row.number] = zlib.compress(json.dumps(data, ensure_ascii=True).encode(), 1)
        return row_of(row.number, data, Path(row.path))


def _places(
    heads: Sequence[StoredHead], in_force: Sequence[StoredHead]
) -> tuple[dict[int, Path], set[str]]:
    """Where the runs of scorecards are now, by their numbers, and the paths that are left out:
    those of copies of a run that is listed at another path, and of parts of runs."""
    run_at = {
        stored.path: stored.head.identity
        for stored in heads
        if stored.head.identity is not None and stored.bytes_now == stored.head.identity[0]
    }
    path_of = {identity: path for path, identity in reversed(run_at.items())}
    paths_now = {}
    for stored in in_force:
        identity = stored.head.identity
        is_here = run_at.get(stored.path) == identity
        path = stored.path if is_here else None
        if path is None and identity is not None:
            path = path_of.get(identity)
        if path is not None:
            paths_now[stored.seq] = path
    listed_paths = set(paths_now.values())
    listed = {stored.head.identity for stored in in_force}
    left_out = set()
    for path, identity in run_at.items():
        if path in listed_paths:
            continue
        # Of a run that the judge in force has not judged, one path is listed, too.
        if identity in listed or run_around(path) is not None:
            left_out.add(str(path))
        listed.add(identity)
    return paths_now, left_out


def stages_of(run: Run, card: ScoreCard | None) -> Segmentation:
    """The stages of a run's turns: the scorecard's where it has one for each, else by rules."""
    from ..trajectories.models import Segmentation
    from ..trajectories.turns.segment import segment

    if card is not None and len(card.turn_stages) == len(run.turns):
        return Segmentation(turn_stages=card.turn_stages, segments=card.segments)
    return segment(run)
