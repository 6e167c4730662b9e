"""Scorecards, rubrics, human labels and events in the store."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...errors import InputError, StoreError
from ...rubrics.model import Rubric
from ...trajectories.models import TrackName
from ...trajectories.reading.json_bytes import read_bytes
from ...trajectories.reading.remote import RemotePath
from ..card.choice import ALL_JUDGES, CardChoice, CardHead, choose, identified, ids_of
from ..card.differences import unanswered
from ..card.fields import Gist
from ..card.run_ids import NamedRun
from ..card.scorecard import CardLine, ScoreCard
from ..questions.texts import Text
from . import schema, stamps
from .connection import (
    EvidenceRow,
    SettledRow,
    StorePart,
    chunks,
    clean_row,
    clean_text,
    now,
    starts_with,
    to_json,
)

_PAGE = 200
"""Scorecards in memory at a time."""
_RUBRICS_IN_FORCE = "rubrics_in_force"
"""Kind of the event that says which rubrics of the user judge the runs of their tracks."""
_RUN_COLUMNS = ("sha256", "agent", "task", "tier", "repeat", "track")
"""What a CardHead says of its run, beside its id and path."""


class LatestCard(NamedTuple):
    """A run's latest scorecard by a judge, not parsed, and the run's files when last read."""

    path: Path
    stamp: str
    """Of the run's files (`stamps`)."""
    content_sha256: str
    """Of the run."""
    key: str | None
    """Hash of everything that decided the card (`verdict_keys.CardKeys`)."""
    track: TrackName | None
    """Of the run, as its files say."""
    task: str | None
    gist: str
    body: bytes


class StoredHead(NamedTuple):
    """What a choice between scorecards looks at (`card.choice`), and where the scorecard is."""

    seq: int
    path: Path
    """Of the run's conversation."""
    head: CardHead
    bytes_now: str | None = None
    """The hash of the conversation that is at the path now; None if it is gone."""


class CardBasis(NamedTuple):
    """What a scorecard rests on beside its rubric, as the store keeps it."""

    key: str
    """Hash of everything that decided it."""
    body: bytes
    """A `basis.ScoreBasis` as JSON, zlib."""


@dataclass(frozen=True)
class NewCard:
    """A scorecard to store."""

    run_ref: int
    path: Path
    card: ScoreCard
    key: str | None = None
    """Hash of everything that decided it; None while an item has no verdict."""
    settled: SettledRow | None = None
    """The run is settled if every item has a verdict."""
    facts: EvidenceRow | None = None
    """What facts prove of the run (`facts.decided`)."""
    may_replace_whole: bool = False
    """Whether it may replace a scorecard that lacks no verdict, although it lacks some itself."""
    verdict_keys: tuple[str, ...] = ()
    """The verdicts that it rests on."""
    of_some_items: bool = False
    """Whether only some items were asked: then it is not stored if it lacks verdicts and is the
    judge's first, and it replaces none that has an answer that it lacks."""
    basis: CardBasis | None = None
    """What renews it under another rubric; None keeps what is stored."""


class Archive(StorePart):
    """Scorecards, rubrics, labels and events.

    The last of each kind is in force; older ones remain readable.
    """

    # Scorecards.

    def add_card(self, run_ref: int, path: Path, card: ScoreCard) -> None:
        """Store one scorecard (`add_cards`), whatever it lacks."""
        self.add_cards([NewCard(run_ref, path, card, may_replace_whole=True)])

    def add_cards(self, cards: Sequence[NewCard]) -> list[bool]:
        """Store scorecards, all in one transaction; whether each is now in force.

        If a card equals the last one of its run and judge and rests on the same verdicts, only that
        one's key is updated. A card that lacks a verdict does not replace one that has them all,
        unless it is told to.
        """
        rows = [self._card_row(card) for card in cards]
        settled = [card.settled for card in cards if card.settled is not None]
        facts = {card.facts for card in cards if card.facts is not None}
        with self._write() as connection:
            are_in_force = [
                self._insert_card(connection, row, card)
                for row, card in zip(rows, cards, strict=True)
            ]
            self._insert_settled(connection, settled)
            self._insert_evidence(connection, sorted(facts))
            self._set_bases(connection, cards)
        return are_in_force

    def _set_bases(self, connection: Connection, cards: Sequence[NewCard]) -> None:
        table = schema.card_bases
        for card in cards:
            if card.basis is None:
                continue
            place = {"path": self.relative(card.path), "judge": card.card.judge.name}
            values = card.basis._asdict()
            statement = self._insert(table).values(**place, **values)
            connection.execute(
                statement.on_conflict_do_update(index_elements=list(place), set_=values)
            )

    def bases(self, paths: Iterable[Path], judge: str) -> dict[Path, CardBasis]:
        """What this judge's scorecards of these runs rest on, as far as it is stored."""
        table = schema.card_bases
        query = sa.select(table.c.path, table.c.key, table.c.body).where(table.c.judge == judge)
        by_name = {self.relative(path): path for path in paths}
        rows: Iterator[Any] = self._in_chunks(query, table.c.path, by_name)
        return {by_name[name]: CardBasis(key, body) for name, key, body in rows}

    def _insert_card(self, connection: Connection, row: Mapping[str, Any], card: NewCard) -> bool:
        table = schema.cards
        verdicts = _verdict_numbers(connection, card.verdict_keys)
        query = (
            sa.select(table.c.sha256, table.c.seq, table.c.key)
            .where(table.c.path == row["path"], table.c.judge == row["judge"])
            .order_by(table.c.seq.desc())
            .limit(1)
        )
        last = connection.execute(query).first()
        is_partial = card.of_some_items and row["key"] is None
        if last is None and is_partial and not card.may_replace_whole:
            # It would count as this judge's opinion of the run, beside whole ones by others.
            return False
        is_equal = last is not None and last.sha256 == row["sha256"]
        if last is not None and is_equal:
            update = table.update().where(table.c.seq == last.seq).values(key=row["key"])
            connection.execute(update)
            earlier = _verdicts_of_card(connection, last.seq)
            if not earlier:
                _insert_card_verdicts(connection, last.seq, verdicts)
            if not earlier or earlier == verdicts:
                return True
        elif last is not None and not card.may_replace_whole:
            is_poorer = _lacks_more(row["key"], last.key)
            if card.of_some_items and not is_poorer:
                body = connection.execute(
                    sa.select(table.c.body).where(table.c.seq == last.seq)
                ).scalar_one()
                is_poorer = bool(unanswered(card.card) - unanswered(self._card(body)))
            if is_poorer:
                return False
        inserted = connection.execute(table.insert(), row).inserted_primary_key
        assert inserted is not None
        _insert_card_verdicts(connection, inserted[0], verdicts)
        return True

    def _card_row(self, new: NewCard) -> dict[str, Any]:
        card = new.card
        text = card_bytes(card)
        row = {
            "run_ref": new.run_ref,
            "path": self.relative(new.path),
            "judge": card.judge.name,
            "rubric_id": card.rubric.id,
            "rubric_sha256": card.rubric.sha256,
            "created_at": now(),
            "key": new.key,
            "gist": to_json(card.gist),
        }
        return {
            **clean_row(row),
            "sha256": hashlib.sha256(text).hexdigest(),
            "body": zlib.compress(text),
        }

    def latest_cards(self, paths: Iterable[Path], judge: str) -> Iterator[LatestCard]:
        """This judge's latest scorecard of each of these runs, not parsed."""
        cards, files, runs = schema.cards, schema.files, schema.runs
        other_cards = cards.alias()
        # One index look-up a run: grouping all cards would read those of every run.
        latest = sa.select(sa.func.max(other_cards.c.seq)).where(
            other_cards.c.path == files.c.path, other_cards.c.judge == judge
        )
        columns = (
            files.c.path,
            files.c.stamp,
            files.c.content_sha256,
            cards.c.key,
            runs.c.track,
            runs.c.task,
            cards.c.gist,
            cards.c.body,
        )
        query = (
            sa.select(*columns)
            .join_from(files, cards, cards.c.seq == latest.scalar_subquery())
            .join(
                runs,
                sa.and_(
                    runs.c.path == files.c.path, runs.c.content_sha256 == files.c.content_sha256
                ),
            )
        )
        by_name = {self.relative(path): path for path in paths}
        rows: Iterator[Any] = self._in_chunks(query, files.c.path, by_name)
        for name, *fields in rows:
            yield LatestCard(by_name[name], *fields)

    def latest_keys(self, paths: Iterable[Path], judge: str) -> dict[Path, str | None]:
        """The key of this judge's latest scorecard of each of these runs that has one."""
        cards = schema.cards
        newest = sa.select(sa.func.max(cards.c.seq)).where(cards.c.judge == judge)
        query = sa.select(cards.c.path, cards.c.key).where(
            cards.c.seq.in_(newest.group_by(cards.c.path))
        )
        by_name = {self.relative(path): path for path in paths}
        rows: Iterator[Any] = self._in_chunks(query, cards.c.path, by_name)
        return {by_name[name]: key for name, key in rows}

    def card_line(self, card: LatestCard) -> CardLine:
        """The scorecard as a line of JSON, not parsed."""
        try:
            text = zlib.decompress(card.body).decode()
            return CardLine(text, Gist(*json.loads(card.gist)))
        except (zlib.error, ValueError, TypeError) as error:
            raise self._unreadable(error) from error

    def cards(self, path: Path, *, judge: str | None = None) -> Iterator[ScoreCard]:
        """Scorecards of the run at a path, newest first."""
        table = schema.cards
        query = (
            sa.select(table.c.body)
            .where(table.c.path == self.relative(path))
            .order_by(table.c.seq.desc())
        )
        if judge is not None:
            query = query.where(table.c.judge == judge)
        for row in self._read(query):
            yield self._card(row.body)

    def heads(self, below: Path | None = None, until: int | None = None) -> list[StoredHead]:
        """The newest scorecard of every (run, judge, version of a rubric), not read, oldest first.

        `below`: of the run at this path, or of the runs below this folder. `until`: as it was when
        the scorecard with this number was the newest. Each with the identity of its run, which
        depends on what is on the disk, not on which judge has read that.
        """
        cards, runs, rubrics = schema.cards, schema.runs, schema.rubrics
        newest = sa.select(sa.func.max(cards.c.seq)).group_by(
            cards.c.path, cards.c.judge, cards.c.rubric_id, cards.c.rubric_sha256
        )
        if below is not None:
            newest = newest.where(self.at_or_below(cards.c.path, below))
        if until is not None:
            newest = newest.where(cards.c.seq <= until)
        query = (
            sa.select(
                cards.c.seq,
                runs.c.id,
                cards.c.path,
                *(runs.c[name] for name in _RUN_COLUMNS),
                cards.c.judge,
                cards.c.rubric_id,
                rubrics.c.version,
                cards.c.rubric_sha256,
            )
            .join_from(cards, runs, cards.c.run_ref == runs.c.ref)
            .outerjoin(rubrics, cards.c.rubric_sha256 == rubrics.c.sha256)
            .where(cards.c.seq.in_(newest))
            .order_by(cards.c.seq)
        )
        numbered = []
        for row in self._read(query):
            seq, run_id, name, *fields = tuple(row)
            path = self.absolute(name)
            numbered.append((seq, path, CardHead(run_id, str(path), *fields)))
        # What was on the disk at an earlier time is not known.
        bytes_now: dict[str, str | None] = {}
        if until is None:
            bytes_now = self._bytes_now({path for _, path, _ in numbered}, below)
        heads = identified([head for _, _, head in numbered], bytes_now)
        ids = ids_of(heads, self._with_shared_ids({head.path for head in heads}))
        return [
            StoredHead(seq, path, head._replace(run_id=run_id), bytes_now.get(str(path)))
            for (seq, path, _), head, run_id in zip(numbered, heads, ids, strict=True)
        ]

    def _with_shared_ids(self, but: set[str | None]) -> list[NamedRun]:
        """The runs whose id another run of the store has too, except those at some paths."""
        files, runs = schema.files, schema.runs
        is_version = sa.and_(
            runs.c.path == files.c.path, runs.c.content_sha256 == files.c.content_sha256
        )
        shared = (
            sa.select(runs.c.id)
            .join_from(files, runs, is_version)
            .group_by(runs.c.id)
            .having(sa.func.count() > 1)
        )
        query = (
            sa.select(runs.c.id, runs.c.path, runs.c.sha256)
            .join_from(files, runs, is_version)
            .where(runs.c.id.in_(shared))
            .order_by(runs.c.ref)
        )
        named = (
            NamedRun(row.id, str(self.absolute(row.path)), row.sha256) for row in self._read(query)
        )
        return [run for run in named if run.path not in but]

    def _bytes_now(self, paths: Iterable[Path], below: Path | None) -> dict[str, str | None]:
        """By path, the hash of the conversation there now; None if it is gone.

        Addresses are left out. A file is read only if it has changed since it was judged.
        """
        files, runs = schema.files, schema.runs
        query = sa.select(files.c.path, files.c.stamp, runs.c.sha256).join_from(
            files,
            runs,
            sa.and_(runs.c.path == files.c.path, runs.c.content_sha256 == files.c.content_sha256),
        )
        if below is not None:
            query = query.where(self.at_or_below(files.c.path, below))
        last_seen = {row.path: (row.stamp, row.sha256) for row in self._read(query)}
        bytes_now: dict[str, str | None] = {}
        for path in paths:
            if isinstance(path, RemotePath):
                continue
            stamp, sha256 = last_seen.get(self.relative(path), ("", None))
            if not stamps.conversation_unchanged(path, stamp):
                sha256 = _sha256_of(path)
            bytes_now[str(path)] = sha256
        return bytes_now

    def cards_at(self, seqs: Sequence[int], *, chunk: int = _PAGE) -> Iterator[ScoreCard]:
        """The scorecards with these numbers (`StoredHead.seq`), read `chunk` at a time."""
        for _, _, body in self._bodies(seqs, chunk):
            yield self._card(body)

    def card_data_at(self, seqs: Sequence[int]) -> Iterator[tuple[int, Path, dict[str, Any]]]:
        """(number, path, plain values) of the scorecards with these numbers.

        Values are not validated, and unreadable cards are left out. This is for listings, which
        need a few of the values of very many cards.
        """
        for seq, name, body in self._bodies(seqs, _PAGE):
            try:
                yield seq, self.absolute(name), json.loads(zlib.decompress(body))
            except (zlib.error, ValueError):
                continue

    def _bodies(self, seqs: Sequence[int], chunk: int) -> Iterator[tuple[int, str, bytes]]:
        table = schema.cards
        query = sa.select(table.c.seq, table.c.path, table.c.body).order_by(table.c.seq)
        for part in chunks(seqs, chunk):
            for row in self._read(query.where(table.c.seq.in_(part))):
                yield row.seq, row.path, row.body

    def iter_cards(
        self,
        *,
        below: Path | None = None,
        choice: CardChoice | None = None,
        chunk: int = _PAGE,
    ) -> Iterator[ScoreCard]:
        """The scorecards that count (`card.choice.choose`), of each judge unless `choice` names
        one.

        `below`: see `heads`.
        """
        in_force = self.in_force(below, choice or CardChoice(judge=ALL_JUDGES))
        yield from self.cards_at([stored.seq for stored in in_force], chunk=chunk)

    def in_force(
        self, below: Path | None = None, choice: CardChoice | None = None
    ) -> list[StoredHead]:
        """The heads of the scorecards that count (`card.choice.choose`), one a run, oldest first.

        `below`: see `heads`.
        """
        heads = self.heads(below)
        selection = choose([stored.head for stored in heads], choice)
        return [heads[number] for number in selection.numbers]

    def judge_in_force(self) -> str | None:
        """The judge whose scorecards count unless another one is named; None without any."""
        table = schema.cards
        names = [row.judge for row in self._read(sa.select(table.c.judge).distinct())]
        if len(names) == 1:
            return str(names[0])
        judges = choose([stored.head for stored in self.heads()]).judges
        return judges[0] if judges else None

    def judges(self, paths: Iterable[str | Path]) -> list[str]:
        """Names of the judges that have scorecards of runs at or below these paths."""
        table = schema.cards
        query = sa.select(table.c.judge).distinct().order_by(table.c.judge)
        query = query.where(sa.or_(*(self.at_or_below(table.c.path, Path(p)) for p in paths)))
        return [row.judge for row in self._read(query)]

    def judge_parameters(self, judge: str) -> dict[str, Any]:
        """The parameters with which this judge made its newest scorecard; empty without a verdict.

        Those of a panel are its members', with their names as `members`.
        """
        table = schema.cards
        newest_card = (
            sa.select(table.c.body)
            .where(table.c.judge == judge)
            .order_by(table.c.seq.desc())
            .limit(1)
        )
        info = None
        for row in self._read(newest_card):
            info = self._card(row.body).judge
        if info is None:
            return self._newest_parameters(judge)
        # Verdicts are votes of single judges, each with its parameters.
        parameters: dict[str, Any] = {}
        for voting in reversed(info.members or (judge,)):
            parameters |= self._newest_parameters(voting)
        if parameters and info.members:
            parameters["members"] = info.members
        common = {"samples": info.samples, "temperature": info.temperature}
        return parameters | {name: value for name, value in common.items() if value is not None}

    def _newest_parameters(self, judge: str) -> dict[str, Any]:
        """The parameters in this judge's newest verdict."""
        table = schema.verdicts
        newest = (
            sa.select(table.c.parameters)
            .where(table.c.judge == judge)
            .order_by(table.c.seq.desc())
            .limit(1)
        )
        for row in self._read(newest):
            return dict(json.loads(row.parameters))
        return {}

    def cards_of_rubric(self, sha256: str) -> Iterator[tuple[str, ScoreCard]]:
        """(stored path, scorecard): the newest of every (run, judge) made with this very rubric."""
        table = schema.cards
        query = _newest(table, "path", "judge", condition=table.c.rubric_sha256 == sha256)
        for row in self._pages(query, table.c.seq, _PAGE):
            yield row.path, self._card(row.body)

    # Rubrics.

    def add_rubric(self, rubric: Rubric) -> None:
        """Store a rubric, once."""
        row = {
            "sha256": rubric.sha256,
            "id": rubric.id,
            "version": rubric.version,
            "created_at": now(),
        }
        body = zlib.compress(rubric.model_dump_json().encode("utf-8", "backslashreplace"))
        statement = self._insert(schema.rubrics).on_conflict_do_nothing(index_elements=["sha256"])
        with self._write() as connection:
            connection.execute(statement, [{**clean_row(row), "body": body}])

    def rubric(self, sha256: str) -> Rubric | None:
        """The rubric with this hash; None if the store does not have it."""
        query = sa.select(schema.rubrics.c.body).where(schema.rubrics.c.sha256 == sha256)
        for row in self._read(query):
            return Rubric.model_validate_json(zlib.decompress(row.body))
        return None

    def add_texts(self, texts: Iterable[Text]) -> None:
        """Store the texts behind hashes, each once."""
        rows = [
            {
                "sha256": text.sha256,
                "kind": text.kind,
                "name": text.name,
                "body": zlib.compress(text.body),
                "created_at": now(),
            }
            for text in texts
        ]
        if not rows:
            return
        statement = self._insert(schema.texts).on_conflict_do_nothing(index_elements=["sha256"])
        with self._write() as connection:
            connection.execute(statement, sorted(rows, key=lambda row: str(row["sha256"])))

    def texts(self, beginning: str = "") -> list[Text]:
        """The texts whose hash begins like this, in the order in which they were stored."""
        table = schema.texts
        query = sa.select(table).where(starts_with(table.c.sha256, beginning))
        rows = self._read(query.order_by(table.c.created_at, table.c.sha256))
        return [Text(row.kind, row.name, zlib.decompress(row.body)) for row in rows]

    def rubrics(self, beginning: str = "") -> list[Rubric]:
        """The rubrics whose hash begins like this, in the order in which they were stored."""
        table = schema.rubrics
        query = sa.select(table.c.body).where(starts_with(table.c.sha256, beginning))
        rows = self._read(query.order_by(table.c.created_at, table.c.sha256))
        return [Rubric.model_validate_json(zlib.decompress(row.body)) for row in rows]

    def rubric_texts(self, id: str, version: str) -> set[str]:
        """The hashes of all rubrics of this id and version that scorecards were made with."""
        table = schema.rubrics
        query = sa.select(table.c.sha256).where(table.c.id == id, table.c.version == version)
        return {row.sha256 for row in self._read(query)}

    def set_rubrics_in_force(self, rubrics: Sequence[Rubric]) -> None:
        """Note that these rubrics judge the runs of their tracks from now on."""
        for rubric in rubrics:
            self.add_rubric(rubric)
        in_force = {rubric.sha256: rubric.id for rubric in rubrics}
        if in_force != self._hashes_in_force():
            self.add_event(_RUBRICS_IN_FORCE, {"rubrics": in_force})

    def rubrics_in_force(self) -> tuple[Rubric, ...]:
        """The rubrics that were last set in force; none: those of the package."""
        rubrics = (self.rubric(sha256) for sha256 in self._hashes_in_force())
        return tuple(rubric for rubric in rubrics if rubric is not None)

    def _hashes_in_force(self) -> dict[str, str]:
        """The ids of the rubrics in force, by their hashes."""
        table = schema.events
        query = (
            sa.select(table.c.body)
            .where(table.c.kind == _RUBRICS_IN_FORCE)
            .order_by(table.c.seq.desc())
            .limit(1)
        )
        for row in self._read(query):
            return dict(json.loads(row.body)["rubrics"])
        return {}

    # Labels and events.

    def add_label(self, run: str, annotator: str, body: str) -> bool:
        """Store one annotation (canonical JSON, `human_labels.dump_labels`).

        False if it equals the last one of this annotator on this run.
        """
        table = schema.labels
        row = clean_row({"run": run, "annotator": annotator, "body": body, "created_at": now()})
        query = (
            sa.select(table.c.body)
            .where(table.c.run == row["run"], table.c.annotator == row["annotator"])
            .order_by(table.c.seq.desc())
            .limit(1)
        )
        with self._write() as connection:
            if connection.execute(query).scalar() == row["body"]:
                return False
            connection.execute(table.insert().values(row))
        return True

    def labels(
        self, run: str | None = None, annotator: str | None = None
    ) -> Iterator[tuple[str, str, str]]:
        """(run, annotator, body) of every annotation in force, by run and annotator."""
        table = schema.labels
        query = _newest(table, "run", "annotator")
        if run is not None:
            query = query.where(table.c.run == run)
        if annotator is not None:
            query = query.where(table.c.annotator == annotator)
        yield from sorted((row.run, row.annotator, row.body) for row in self._read(query))

    def add_event(self, kind: str, body: Mapping[str, Any], batch: str | None = None) -> None:
        """Store an event (batch_started, batch_finished, ...)."""
        row = {"kind": kind, "batch": batch, "body": to_json(body), "created_at": now()}
        with self._write() as connection:
            connection.execute(schema.events.insert().values(clean_row(row)))

    def events(
        self, kind: str | None = None, batch: str | None = None
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(time, kind, body) of events, oldest first."""
        table = schema.events
        query = sa.select(table).order_by(table.c.seq)
        if kind is not None:
            query = query.where(table.c.kind == kind)
        if batch is not None:
            query = query.where(table.c.batch == batch)
        for row in self._read(query):
            yield row.created_at, row.kind, json.loads(row.body)

    def _card(self, body: bytes) -> ScoreCard:
        try:
            return ScoreCard.model_validate_json(zlib.decompress(body))
        except (zlib.error, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> StoreError:
        reason = " ".join(str(error).split())[:120]
        return StoreError(
            f"{self.location}: a scorecard cannot be read: {reason}", "score its run again"
        )


def card_bytes(card: ScoreCard) -> bytes:
    """A scorecard as the store keeps it."""
    return clean_text(card.to_json()).encode()


def _lacks_more(key: str | None, earlier_key: str | None) -> bool:
    """Whether a scorecard lacks a verdict, and so has no key, and the earlier one lacks none."""
    return key is None and earlier_key is not None


def _verdict_numbers(connection: Connection, keys: Sequence[str]) -> set[int]:
    """The numbers of the verdicts with these keys; keys without a verdict are left out."""
    if not keys:
        return set()
    table = schema.verdicts
    query = sa.select(table.c.seq).where(table.c.key.in_(keys))
    return set(connection.execute(query).scalars())


def _verdicts_of_card(connection: Connection, card: int) -> set[int]:
    table = schema.card_verdicts
    return set(connection.execute(sa.select(table.c.verdict).where(table.c.card == card)).scalars())


def _insert_card_verdicts(connection: Connection, card: int, verdicts: Iterable[int]) -> None:
    rows = [{"card": card, "verdict": verdict} for verdict in sorted(verdicts)]
    if rows:
        connection.execute(schema.card_verdicts.insert(), rows)


def _newest(
    table: sa.Table, *group: str, condition: sa.ColumnElement[bool] | None = None
) -> sa.Select[Any]:
    """The last row of each group: rows that are equal in these columns and meet `condition`."""
    last = sa.select(sa.func.max(table.c.seq)).group_by(*(table.c[name] for name in group))
    if condition is not None:
        last = last.where(condition)
    return sa.select(table).where(table.c.seq.in_(last))


def _sha256_of(path: Path) -> str | None:
    """The hash of a conversation (`Run.sha256`); None if it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except InputError:
        return None
