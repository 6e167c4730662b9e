"""Scorecards, human labels and events in the store."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError

from ...errors import StoreError
from ...rubrics.model import Rubric
from ..card.fields import Gist, Policy
from ..card.scorecard import CardLine, ScoreCard
from . import schema
from .connection import StorePart, clean_row, clean_text, now, to_json

_PAGE = 200
"""Scorecards in memory at a time."""


class Kept(NamedTuple):
    """A run's last scorecard by a judge, unread, with what its files were when last read, and what
    decided the card."""

    path: Path
    stamp: str
    content_sha256: str
    key: str | None
    rubric_sha256: str
    gist: str
    body: bytes


@dataclass(frozen=True)
class Concluded:
    """A scorecard to keep, the key of what decided it (None: an item still waits for its verdict),
    and what that settles (`Store.settle`)."""

    run_ref: int
    path: Path
    card: ScoreCard
    key: str | None = None
    settled: tuple[str, str, int] | None = None


class Archive(StorePart):
    """What was concluded, annotated and noted; the last of each kind is in force, older ones stay
    readable."""

    def add_card(self, run_ref: int, path: Path, card: ScoreCard) -> None:
        """Keep one scorecard (`add_cards`)."""
        self.add_cards([Concluded(run_ref, path, card)])

    def add_cards(self, concluded: Sequence[Concluded]) -> list[None]:
        """Keep scorecards, all in one transaction; of one that says the same as the last of its
        run, judge and rubric, only what it was decided by."""
        table = schema.cards
        rows = [self._card_row(each) for each in concluded]
        with self._write() as connection:
            for row in rows:
                same = sa.and_(
                    *(table.c[name] == row[name] for name in ("path", "judge", "rubric_id"))
                )
                query = (
                    sa.select(table.c.sha256, table.c.seq)
                    .where(same)
                    .order_by(table.c.seq.desc())
                    .limit(1)
                )
                last = connection.execute(query).first()
                if last is not None and last.sha256 == row["sha256"]:
                    connection.execute(
                        table.update().where(table.c.seq == last.seq).values(key=row["key"])
                    )
                else:
                    connection.execute(table.insert(), row)
            self._settle(
                connection, [each.settled for each in concluded if each.settled is not None]
            )
        return [None] * len(rows)

    def _card_row(self, concluded: Concluded) -> dict[str, Any]:
        card, text = concluded.card, clean_text(concluded.card.to_json()).encode()
        row = {
            "run_ref": concluded.run_ref,
            "path": self.relative(concluded.path),
            "judge": card.judge.name,
            "rubric_id": card.rubric.id,
            "rubric_sha256": card.rubric.sha256,
            "created_at": now(),
            "key": concluded.key,
            "gist": to_json(card.gist),
        }
        return {
            **clean_row(row),
            "sha256": hashlib.sha256(text).hexdigest(),
            "body": zlib.compress(text),
        }

    def kept(self, paths: Iterable[Path], judge: str) -> Iterator[Kept]:
        """The last scorecard of this judge on each of these runs, with what the run's files were
        when last read."""
        table, files, later = schema.cards, schema.files, schema.cards.alias()
        newer = sa.select(sa.func.max(later.c.seq)).where(
            later.c.path == files.c.path, later.c.judge == judge
        )
        columns = (
            files.c.path,
            files.c.stamp,
            files.c.content_sha256,
            table.c.key,
            table.c.rubric_sha256,
            table.c.gist,
            table.c.body,
        )
        query = sa.select(*columns).join_from(files, table, table.c.seq == newer.scalar_subquery())
        by_name = {self.relative(path): path for path in paths}
        rows: Iterator[Any] = self._in_chunks(query, files.c.path, by_name)
        for name, *rest in rows:
            yield Kept(by_name[name], *rest)

    def line(self, kept: Kept) -> CardLine:
        """Its scorecard."""
        try:
            return CardLine(zlib.decompress(kept.body).decode(), Gist(*json.loads(kept.gist)))
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

    def iter_cards(
        self, *, below: Path | None = None, versions: bool = False, chunk: int = _PAGE
    ) -> Iterator[ScoreCard]:
        """The scorecard in force of every (run, judge, rubric), of runs `below` a folder, read
        `chunk` at a time.

        `versions`: of every version of a rubric, the one in force last.
        """
        table, prefix = schema.cards, "" if below is None else self.prefix(below)
        query = _newest(
            table, "path", "judge", "rubric_id", *(["rubric_sha256"] if versions else [])
        )
        if prefix:
            query = query.where(sa.func.substr(table.c.path, 1, len(prefix)) == prefix)
        for row in self._pages(query, table.c.seq, chunk):
            yield self._card(row.body)

    def judges(self, below: Iterable[str | Path]) -> list[str]:
        """Names of the judges that have scorecards of runs at or below these paths."""
        starts = {
            self.relative(path) if path.is_file() else self.prefix(path)
            for path in map(Path, below)
        }
        query = sa.select(schema.cards.c.judge).distinct().order_by(schema.cards.c.judge)
        if "" not in starts:
            names = schema.cards.c.path
            query = query.where(
                sa.or_(*(sa.func.substr(names, 1, len(start)) == start for start in starts))
            )
        return [row.judge for row in self._read(query)]

    def judge_parameters(self, judge: str) -> dict[str, Any]:
        """Those of this judge's newest verdict; empty without one."""
        table = schema.verdicts
        newest = (
            sa.select(table.c.parameters)
            .where(table.c.judge == judge)
            .order_by(table.c.seq.desc())
            .limit(1)
        )
        return next((dict(json.loads(row.parameters)) for row in self._read(newest)), {})

    def iter_card_data(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """(path, plain values) of the scorecard in force of every (run, judge, rubric), the oldest
        first; not validated.

        For listings, which need a few of the values of very many cards.
        """
        table = schema.cards
        for row in self._pages(_newest(table, "path", "judge", "rubric_id"), table.c.seq, _PAGE):
            try:
                yield self.absolute(row.path), json.loads(zlib.decompress(row.body))
            except (zlib.error, ValueError):
                continue

    def card_heads(self, judge: str) -> dict[Path, tuple[str, str, Policy | None]]:
        """Path -> (rubric id, rubric hash, choices; None: cannot be read) of the newest scorecard
        by this judge."""
        table = schema.cards
        rows = self._pages(_newest(table, "path", where=table.c.judge == judge), table.c.seq, _PAGE)
        return {
            self.absolute(row.path): (row.rubric_id, row.rubric_sha256, _policy(row.body))
            for row in rows
        }

    def cards_of_rubric(self, sha256: str) -> Iterator[tuple[str, ScoreCard]]:
        """(path in the store, scorecard): the newest scorecard of every (run, judge) made with this
        very rubric."""
        table = schema.cards
        query = _newest(table, "path", "judge", where=table.c.rubric_sha256 == sha256)
        for row in self._pages(query, table.c.seq, _PAGE):
            yield row.path, self._card(row.body)

    def add_rubric(self, rubric: Rubric) -> None:
        """Keep a rubric, once."""
        row = {
            "sha256": rubric.sha256,
            "id": rubric.id,
            "version": rubric.version,
            "created_at": now(),
        }
        body = zlib.compress(rubric.model_dump_json().encode("utf-8", "backslashreplace"))
        with self._write() as connection:
            statement = self._insert(schema.rubrics).on_conflict_do_nothing(
                index_elements=["sha256"]
            )
            connection.execute(statement, [{**clean_row(row), "body": body}])

    def rubric(self, sha256: str) -> Rubric | None:
        """The rubric with this hash, if one was kept."""
        query = sa.select(schema.rubrics.c.body).where(schema.rubrics.c.sha256 == sha256)
        for row in self._read(query):
            return Rubric.model_validate_json(zlib.decompress(row.body))
        return None

    # Labels and events.

    def add_label(self, run: str, annotator: str, body: str) -> bool:
        """Keep one annotation (canonical JSON, `human_labels.dump_labels`); False when the last one
        says the same."""
        table = schema.labels
        row = clean_row({"run": run, "annotator": annotator, "body": body, "created_at": now()})
        same = (table.c.run == row["run"]) & (table.c.annotator == row["annotator"])
        with self._write() as connection:
            last = connection.execute(
                sa.select(table.c.body).where(same).order_by(table.c.seq.desc()).limit(1)
            ).scalar()
            if last == row["body"]:
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
        rows = self._read(query)
        yield from sorted((row.run, row.annotator, row.body) for row in rows)

    def add_event(self, kind: str, body: Mapping[str, Any], batch: str | None = None) -> None:
        """Note that something happened (batch_started, batch_finished, ...)."""
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
        why = " ".join(str(error).split())[:120]
        return StoreError(f"{self.where}: a scorecard cannot be read: {why}", "score its run again")


def _policy(body: bytes) -> Policy | None:
    """The rest is not parsed, as there may be very many cards; in a text of the card, the quotes
    would be escaped."""
    try:
        _, found, rest = zlib.decompress(body).partition(b'"policy":')
        return Policy.model_validate_json(rest[: rest.find(b"}") + 1]) if found else None
    except (zlib.error, ValidationError):
        return None


def _newest(
    table: sa.Table, *by: str, where: sa.ColumnElement[bool] | None = None
) -> sa.Select[Any]:
    """The last row of each group of rows that are alike in these columns; `where` says which rows
    count."""
    last = sa.select(sa.func.max(table.c.seq)).group_by(*(table.c[name] for name in by))
    return sa.select(table).where(table.c.seq.in_(last if where is None else last.where(where)))
