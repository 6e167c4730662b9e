"""Reads scorecards from files, folders, stores and objects, and scores runs that have none.

A folder of runs stands for its scorecards in the store that belongs to it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import polars as pl
from pydantic import ValidationError

from ...console import counted
from ...errors import AmbjudgeError, InputError, unexpected
from ...judge.card.choice import (
    ALL_JUDGES,
    CardChoice,
    CardHead,
    Selection,
    choose,
    head_of,
    identified,
    ids_of,
)
from ...judge.card.scorecard import ScoreCard
from ...trajectories.reading.json_bytes import (
    MAX_CARDS,
    TooManyError,
    bounded_lines,
    has_too_many_values,
    read_bytes,
)
from ...trajectories.reading.layout import CONVERSATION_NAMES, TRACE_NAMES, find_conversations
from ...trajectories.reading.remote import find_files, is_address, staged
from .frames import conform, read_frame, run_columns

if TYPE_CHECKING:
    from ...judge.base import Judge
    from ...judge.session import ScoreOptions
    from ...judge.store import Store
    from ...judge.store.runs import Stranger
    from ...judge.store.scorecards import StoredHead

_FRAME_SUFFIXES = (".parquet", ".csv")
_MAX_BROKEN_LINES = 10_000
"""A file with more broken lines holds no scorecards, and a message for each would take memory."""
_NAMED_BROKEN_LINES = 10
"""Broken lines of such a file that stay among the problems."""
_CARD_SUFFIXES = (".jsonl", ".json", ".ndjson")


@dataclass(frozen=True)
class FolderState:
    """How the runs of a folder compare with its store."""

    folder: Path
    store: str
    """Where the store is."""
    unscored: int = 0
    """Runs without a scorecard in the store."""
    gone: int = 0
    """Scorecards of runs that are no longer there."""
    changed: int = 0
    """Runs whose conversation has changed since their scorecard was made."""
    stranger: Stranger | None = None
    """What to say if the store has none of the runs, but others."""

    def notes(self) -> Iterator[str]:
        """Sentences on runs and scorecards that do not fit each other."""
        if self.stranger is not None:
            yield f"{self.stranger}; so these runs are scored by rules"
        if self.unscored:
            yield (
                f"left out {counted(self.unscored, 'run')} below {self.folder} without a scorecard"
                f" in the store; to score: ambjudge score {self.folder}"
            )
        if self.changed:
            verb = "has" if self.changed == 1 else "have"
            yield (
                f"{counted(self.changed, 'run')} {verb} changed since the scorecard was made; to"
                f" score again: ambjudge score {self.folder}"
            )
        if self.gone:
            yield (
                f"{counted(self.gone, 'scorecard')} of runs that are no longer below {self.folder}"
            )


def store_of_folder(folder: Path) -> str | Path | None:
    """The store that belongs to a folder of runs; None if there is none yet."""
    from ...judge.session import default_store

    return default_store(folder)


@dataclass
class CardReading:
    """How scorecards are read, and what was noticed on the way."""

    options: ScoreOptions | None = None
    """How runs without a store are scored; None for the defaults."""
    store_of: Callable[[Path], str | Path | None] = store_of_folder
    """The store that belongs to a folder of runs, existing or not; None to use none."""
    n_scored: int = 0
    """Runs that were scored on the way."""
    judges: set[str] = field(default_factory=set)
    """Names of the judges that scored them."""
    folders: list[FolderState] = field(default_factory=list)
    spool: CardSpool | None = None
    """Keeps the scorecards of runs that were scored, for a source that is read twice."""

    def judge_of(self, folder: Path) -> Judge:
        """Who scores the runs at or below a path."""
        from ...judge.select import default_judges, make_judge

        names: tuple[str, ...] = ()
        if self.options is not None:
            names = default_judges(self.options.policy, _conversations(folder))
        judge = make_judge(names)
        self.judges.add(judge.name)
        return judge


class CardFilter(Protocol):
    """Lets some of the scorecards through (`--where`)."""

    def accepts(self, card: ScoreCard) -> bool:
        """Whether it lets this scorecard through."""

    def accepted_rows(self, frame: pl.DataFrame) -> list[bool]:
        """Whether it lets each row of a run frame through."""


class HeadedCard(NamedTuple):
    """A scorecard with what the rule of `card.choice` looks at."""

    head: CardHead
    """From a store with the identity of the run, which the scorecard does not know."""
    card: ScoreCard


class CardSpool:
    """Scorecards in a temporary file, by the path at or below which their runs are."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115
        self._places: dict[Path, list[tuple[int, int]]] = {}
        """Offset and length of each scorecard."""

    def add(self, root: Path, card: ScoreCard) -> None:
        """Keep a scorecard."""
        data = zlib.compress(card.to_json().encode("utf-8", "surrogatepass"), 1)
        offset = self._file.seek(0, SEEK_END)
        self._file.write(data)
        self._places.setdefault(root, []).append((offset, len(data)))

    def cards(self, root: Path) -> Iterator[ScoreCard] | None:
        """The scorecards of the runs at or below a path; None if none were kept."""
        places = self._places.get(root)
        return None if places is None else self._read(places)

    def _read(self, places: list[tuple[int, int]]) -> Iterator[ScoreCard]:
        for offset, length in places:
            self._file.seek(offset)
            yield ScoreCard.model_validate_json(zlib.decompress(self._file.read(length)))


def read_cards(
    source: Any,
    frames: list[pl.DataFrame],
    problems: list[str],
    reading: CardReading,
    choice: CardChoice | None = None,
) -> Iterator[HeadedCard]:
    """Yield the scorecards of a source.

    Run frames in the source are added to `frames`, and a message for each item that cannot be read
    to `problems`. Of a store only scorecards that may count are read: by any judge, unless `choice`
    names one.
    """
    if isinstance(source, pl.DataFrame):
        frames.append(run_columns(conform(source)))
    elif isinstance(source, ScoreCard):
        yield HeadedCard(head_of(source), source)
    elif isinstance(source, Mapping):
        yield from _headed(_validated(source, "scorecard", problems))
    elif isinstance(source, str | Path):
        if is_store(source):
            from ...judge.store import open_store

            with open_store(source, create=False) as store:
                yield from _from_store(store, store.heads(), choice)
        elif is_address(source):
            yield from _from_address(str(source), frames, problems, reading, choice)
        else:
            yield from _from_path(Path(source), frames, problems, reading, choice)
    # An open Store, recognised without an import of its heavy module.
    elif hasattr(source, "iter_cards"):
        yield from _from_store(source, source.heads(), choice)
    elif isinstance(source, Iterable):
        for item in source:
            yield from read_cards(item, frames, problems, reading, choice)
    else:
        raise InputError(
            f"cannot read scorecards from {type(source).__name__}", "give a path or scorecards"
        )


def _headed(cards: Iterable[ScoreCard]) -> Iterator[HeadedCard]:
    for card in cards:
        yield HeadedCard(head_of(card), card)


def is_store(source: str | Path) -> bool:
    """Whether a path or URL names a verdict store: a .db file or a PostgreSQL address."""
    return ("://" in str(source) and not is_address(source)) or Path(source).suffix == ".db"


def _from_store(
    store: Store, heads: Sequence[StoredHead], choice: CardChoice | None
) -> Iterator[HeadedCard]:
    """The newest scorecards of every judge, or of the one that `choice` names, among these.

    Which judge and rubric count is decided when the scorecards of all sources are known; only
    versions that cannot count are left out here.
    """
    choice = choice or CardChoice()
    if choice.rubrics:
        # A rubric that this store lacks may be in another source.
        choice = replace(choice, rubrics=(), versions=True)
    if choice.judge not in {stored.head.judge for stored in heads}:
        choice = replace(choice, judge=ALL_JUDGES)
    numbers = choose([stored.head for stored in heads], choice).numbers
    cards = store.cards_at([heads[number].seq for number in numbers])
    for number, card in zip(numbers, cards, strict=True):
        head = heads[number].head
        yield HeadedCard(head, _renamed(card, head.run_id))


def _renamed(card: ScoreCard, run_id: str | None) -> ScoreCard:
    """The scorecard with the id that its run has among all."""
    if run_id is None or card.run.id == run_id:
        return card
    return card.model_copy(update={"run": card.run.model_copy(update={"id": run_id})})


def _from_folder_store(
    path: Path, reading: CardReading, choice: CardChoice | None
) -> Iterator[HeadedCard]:
    """The scorecards of the runs at or below a path in the store that belongs to it, if any."""
    from ...judge.session import is_store_there
    from ...judge.store import open_store

    place = reading.store_of(path)
    if not is_store_there(place):
        return
    with open_store(place, create=False) as store:
        heads = store.heads(path)
        scored_paths = {stored.path for stored in heads}
        existing = _conversations(path)
        if not scored_paths:
            stranger = store.stranger(path, next(iter(existing), None))
            if stranger is not None:
                reading.folders.append(FolderState(path, store.location, stranger=stranger))
            return
        state = FolderState(
            folder=path,
            store=store.location,
            unscored=len(existing - scored_paths),
            gone=sum(not scored.is_file() for scored in scored_paths - existing),
            changed=_count_changed(heads, choice),
        )
        reading.folders.append(state)
        yield from _from_store(store, heads, choice)


def _count_changed(heads: Sequence[StoredHead], choice: CardChoice | None) -> int:
    """Runs whose conversation is not the one that their scorecard was made from.

    Among them are copies that have become runs of their own, and new runs at the path of another
    one. Of several scorecards of a run, the one in force is meant.
    """
    try:
        selection = choose([stored.head for stored in heads], choice)
    except InputError:
        # The judge or rubric that is asked for is in another source.
        return 0
    scored = {stored.path: stored for stored in heads}
    scored |= {stored.path: stored for stored in heads if stored.head.judge in selection.judges}
    scored |= {heads[number].path: heads[number] for number in selection.numbers}
    return sum(stored.bytes_now not in (None, stored.head.sha256) for stored in scored.values())


def _from_address(
    address: str,
    frames: list[pl.DataFrame],
    problems: list[str],
    reading: CardReading,
    choice: CardChoice | None,
) -> Iterator[HeadedCard]:
    """Scorecards and frames of the file at an address, or of the files directly below it."""
    files = find_files(address, _FRAME_SUFFIXES + _CARD_SUFFIXES)
    if not files:
        raise InputError(
            "holds no scorecards", "score the runs first, with --out at this address", address
        )
    for file in files:
        n_before = len(problems)
        try:
            with staged(file) as local_file:
                yield from _from_path(local_file, frames, problems, reading, choice)
                # Problems name the address, not the temporary copy that was read.
                problems[n_before:] = [
                    text.replace(str(local_file), str(file)) for text in problems[n_before:]
                ]
        except InputError as error:
            problems.append(str(error))


def _from_path(
    path: Path,
    frames: list[pl.DataFrame],
    problems: list[str],
    reading: CardReading,
    choice: CardChoice | None,
) -> Iterator[HeadedCard]:
    if not path.exists():
        raise InputError(
            "no such file or folder", "give scorecards, a frame or a folder of runs", path
        )
    if path.is_file() and path.suffix in _FRAME_SUFFIXES:
        frames.append(run_columns(read_frame(path)))
        return
    if path.is_file() and path.name not in CONVERSATION_NAMES + TRACE_NAMES:
        yield from _headed(_from_json(path, problems))
        return
    has_stored = False
    for card in _from_folder_store(path, reading, choice):
        has_stored = True
        yield card
    if has_stored:
        return
    if _conversations(path):
        yield from _headed(_score_runs(path, problems, reading))
        return
    files = sorted(
        p for p in path.iterdir() if p.suffix in _FRAME_SUFFIXES + _CARD_SUFFIXES and p.is_file()
    )
    if not files:
        raise InputError(
            "holds neither scorecards nor runs",
            "score the runs first, or name their folder",
            path,
        )
    for file in files:
        try:
            yield from _from_path(file, frames, problems, reading, choice)
        except InputError as error:
            problems.append(str(error))


def _conversations(path: Path) -> set[Path]:
    """The conversation files at or below a path; none if it holds no runs."""
    try:
        return {conversation.absolute() for conversation in find_conversations(path)}
    except InputError:
        return set()


def _from_json(path: Path, problems: list[str]) -> Iterator[ScoreCard]:
    """Cards of a JSON Lines file, or of a .json file with one card or a list of cards."""
    try:
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
            stream.seek(0)
            if path.suffix == ".json" or start.startswith(b"["):
                items = _items_of_document(path)
                if items is not None:
                    for index, item in enumerate(items, 1):
                        yield from _validated(item, f"{path}: card {index}", problems)
                    return
            yield from _from_lines(stream, path, problems)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", "check its permissions", path
        ) from error


def _items_of_document(path: Path) -> list[Any] | None:
    """The items of a file that is one JSON document; None if it is not, as with JSON Lines."""
    text = read_bytes(path, MAX_CARDS)
    if has_too_many_values(text.decode("utf-8", "replace")):
        raise InputError(str(TooManyError()), "give JSON Lines, one scorecard a line", path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if data is None:
        return None
    return data if isinstance(data, list) else [data]


def _from_lines(stream: BinaryIO, path: Path, problems: list[str]) -> Iterator[ScoreCard]:
    """Cards of a JSON Lines file; InputError if more than `_MAX_BROKEN_LINES` are broken."""
    n_before = len(problems)
    for number, (_, line) in enumerate(bounded_lines(stream), 1):
        if line.strip():
            yield from _validated(line, f"{path}:{number}", problems)
        if len(problems) - n_before > _MAX_BROKEN_LINES:
            del problems[n_before + _NAMED_BROKEN_LINES :]
            raise InputError(
                f"more than {_MAX_BROKEN_LINES:,} lines are not scorecards",
                f"the first: {problems[n_before]}",
                path,
            )


def _validated(item: Any, location: str, problems: list[str]) -> Iterator[ScoreCard]:
    """Yield the scorecard that an item holds, or add a problem that names its location."""
    if isinstance(item, ScoreCard):
        yield item
        return
    try:
        yield ScoreCard.model_validate_json(item if isinstance(item, bytes) else json.dumps(item))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problems.append(
            f"{location}: {field or 'line'}: {first['msg']} (not a scorecard; score the run again)"
        )
    except (TypeError, ValueError, RecursionError):
        problems.append(f"{location}: is not JSON (score the run again)")


def _score_runs(root: Path, problems: list[str], reading: CardReading) -> Iterator[ScoreCard]:
    """Score the runs at or below a path; add a problem for each that cannot be read."""
    from ...judge.engine import make_scorecard
    from ...rubrics.load import load_rubrics, rubric_for
    from ...trajectories.reading.load import iter_runs

    spooled = None if reading.spool is None else reading.spool.cards(root)
    if spooled is not None:
        yield from spooled
        return
    options = reading.options
    judge = reading.judge_of(root)
    rubrics = () if options is None else load_rubrics(options.rubric)
    for run in iter_runs(root):
        if isinstance(run, InputError):
            problems.append(str(run))
            continue
        try:
            if options is None:
                card = make_scorecard(run, judge)
            else:
                run = options.scope().apply(run)
                card = make_scorecard(
                    run,
                    judge,
                    rubric=rubric_for(run.track, run.task, rubrics),
                    policy=options.policy,
                    public=options.public,
                )
        except AmbjudgeError as error:
            problems.append(str(error))
            continue
        except Exception as error:
            problems.append(str(unexpected(error, run.path)))
            continue
        reading.n_scored += 1
        if reading.spool is not None:
            reading.spool.add(root, card)
        yield card


def iter_cards_and_frames(
    source: Any,
    problems: list[str],
    reading: CardReading | None = None,
    choice: CardChoice | None = None,
) -> Iterator[HeadedCard | pl.DataFrame]:
    """Yield the scorecards of a source one at a time, then its frames.

    Some may be of one run; `cohorts.CardTables` says which of them count. A message for each item
    that cannot be read is added to `problems`.
    """
    frames: list[pl.DataFrame] = []
    yield from read_cards(source, frames, problems, reading or CardReading(), choice)
    yield from frames


def each_chosen_card(
    paths: Sequence[str],
    problems: list[str],
    reading: CardReading,
    choice: CardChoice | None = None,
    run_filter: CardFilter | None = None,
    on_selection: Callable[[Selection], None] = lambda selection: None,
) -> Iterator[ScoreCard]:
    """Yield the scorecards that count, one at a time, so that any number takes little memory.

    The paths are read twice, as only the second time it is known which scorecards count.
    `on_selection` is told. InputError for a run frame, which has no scorecards, and for
    scorecards that change meanwhile.
    """
    reading.spool = CardSpool()
    heads: list[CardHead] = []
    accepted: set[int] = set()
    for item in iter_cards_and_frames(paths, problems, reading, choice):
        if isinstance(item, pl.DataFrame):
            raise InputError("a table of runs has no scorecards", "give the scorecards")
        if run_filter is None or run_filter.accepts(item.card):
            accepted.add(len(heads))
        heads.append(item.head)
    selection = choose(heads, choice, accepted)
    on_selection(selection)
    numbers = frozenset(selection.numbers)
    ids = ids_of(identified(heads))
    again = replace(reading, folders=[])
    for number, (head, card) in enumerate(read_cards(paths, [], [], again, choice)):
        if number >= len(heads) or head != heads[number]:
            raise InputError("scorecards changed while they were read", "run the command again")
        if number in numbers:
            yield _renamed(card, ids[number])
