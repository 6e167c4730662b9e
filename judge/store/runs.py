"""Runs in the store, and the indexes that save reading them again: stamps and evidence hashes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...trajectories.models import Run, Tier, TrackName
from ...trajectories.reading.layout import run_folder
from ...trajectories.reading.remote import is_address
from ...trajectories.summary import run_info
from . import schema
from .connection import CHUNK, EvidenceRow, SettledRow, StorePart, clean_row, now


class StoredRun(NamedTuple):
    """One version of a run. `path` is absolute if the store knows its root."""

    ref: int
    id: str
    path: Path
    sha256: str
    content_sha256: str
    agent: str | None
    model: str | None
    task: str | None
    track: TrackName | None
    tier: Tier | None
    repeat: int | None
    turns: int
    format: str


class FileStamp(NamedTuple):
    """The state of the files at a run's path when last read, and the run that they were."""

    stamp: str
    stamped_at: str
    run: StoredRun


class Stranger(NamedTuple):
    """A path with runs that a store does not know, though it has others."""

    store: str
    path: Path
    runs: int
    """That the store has."""
    namesake: str | None
    """A stored run in a folder of the same name, in another place."""
    common: str
    """The folder below which the store's runs are."""

    def __str__(self) -> str:
        if self.namesake is not None:
            nearest = f"the nearest is {self.namesake}"
        else:
            nearest = f"they are below {self.common}"
        runs = f"{self.runs:,} runs" if self.runs != 1 else "1 run"
        return f"the store {self.store} has {runs}, none of them at {self.path}: {nearest}"


class RunIndex(StorePart):
    """Every version of every run that was judged, and the state of its files."""

    def add_run(self, run: Run, stamp: str | None = None) -> int:
        """Add this version of a run, with the stamp of its files (`stamps.take`).

        Returns its reference; that of the existing row if the store has this version already.
        """
        return self.add_runs([(self.describe(run), stamp)])[0]

    def add_runs(self, rows: Sequence[tuple[Mapping[str, Any], str | None]]) -> list[int]:
        """Add several runs (rows of `describe`) with their stamps, in one transaction.

        Returns their references in the same order.
        """
        table = schema.runs
        references = [0] * len(rows)
        # In the order of paths: two processes that add the same runs must not wait for each other.
        order = sorted(range(len(rows)), key=lambda index: str(rows[index][0]["path"]))
        with self._write() as connection:
            for index in order:
                row, stamp = rows[index]
                path, content_sha256 = row["path"], row["content_sha256"]
                connection.execute(self._insert(table).values(row).on_conflict_do_nothing())
                query = sa.select(table.c.ref).where(
                    table.c.path == path, table.c.content_sha256 == content_sha256
                )
                references[index] = int(connection.execute(query).scalar_one())
                self._set_stamp(connection, path, content_sha256, stamp)
        return references

    def describe(self, run: Run) -> dict[str, Any]:
        """The row that the store keeps of a run."""
        store_fields = {
            "path": self.relative(run.path),
            "content_sha256": run.content_sha256,
            "created_at": now(),
        }
        return clean_row(run_info(run) | store_fields)

    def stamped(self, paths: Iterable[Path]) -> dict[Path, FileStamp]:
        """The stamps of the runs at these paths; paths that the store never saw are left out."""
        files, runs = schema.files, schema.runs
        # Rows are read by position instead of by name, as this is done for every run of every plan:
        # two columns of the stamp, then those of StoredRun in the order of its fields.
        query = sa.select(
            files.c.stamp, files.c.stamped_at, *(runs.c[name] for name in StoredRun._fields)
        ).join_from(files, runs, _same_version(files, runs))
        by_name = {self.relative(path): path for path in paths}
        rows: Iterator[Any] = self._in_chunks(query, files.c.path, by_name)
        stamps = {}
        for stamp, stamped_at, ref, run_id, name, *fields in rows:
            path = by_name[name]
            stamps[path] = FileStamp(stamp, stamped_at, StoredRun(ref, run_id, path, *fields))
        return stamps

    def evidence(
        self, contents: Iterable[str], contexts: Collection[str]
    ) -> dict[tuple[str, str], str]:
        """Stored evidence hashes by (run content, evidence context)."""
        table = schema.evidence
        query = sa.select(table.c.content_sha256, table.c.context, table.c.evidence_sha256).where(
            table.c.context.in_(list(contexts))
        )
        rows = self._in_chunks(query, table.c.content_sha256, contents)
        return {(row.content_sha256, row.context): row.evidence_sha256 for row in rows}

    def evidence_tokens(
        self, contents: Iterable[str], contexts: Collection[str]
    ) -> dict[tuple[str, str], int]:
        """Estimated tokens of what a judge is shown, by (run content, evidence context)."""
        table = schema.evidence
        query = sa.select(table.c.content_sha256, table.c.context, table.c.tokens).where(
            table.c.context.in_(list(contexts)), table.c.tokens.is_not(None)
        )
        rows = self._in_chunks(query, table.c.content_sha256, contents)
        return {(row.content_sha256, row.context): row.tokens for row in rows}

    def add_evidence(self, rows: Iterable[EvidenceRow]) -> None:
        """Store evidence hashes."""
        rows = list(rows)
        if rows:
            with self._write() as connection:
                self._insert_evidence(connection, rows)

    def settled(
        self, contents: Iterable[str], questions: Collection[str]
    ) -> dict[tuple[str, str], int]:
        """The (run content, question hash) pairs whose every item is known to have a verdict.

        Each with the number of its verdicts.
        """
        table = schema.settled
        query = sa.select(table.c.content_sha256, table.c.question, table.c.verdicts).where(
            table.c.question.in_(list(questions))
        )
        rows: Iterator[Any] = self._in_chunks(query, table.c.content_sha256, contents)
        return {(content, question): verdicts for content, question, verdicts in rows}

    def settle(self, rows: Iterable[SettledRow]) -> None:
        """Note that runs are settled. Verdicts are never deleted, so this remains true."""
        rows = list(rows)
        if rows:
            with self._write() as connection:
                self._insert_settled(connection, rows)

    def iter_runs(self) -> Iterator[StoredRun]:
        """The version of every run that was last seen at its path, by path, read in pages."""
        files, runs = schema.files, schema.runs
        query = sa.select(runs).join_from(files, runs, _same_version(files, runs))
        yield from map(self._stored_run, self._pages(query, runs.c.path, CHUNK))

    def stranger(self, path: Path, example: Path | None = None) -> Stranger | None:
        """What to say of a path if the store has scorecards, but none at or below it; else None.

        `example` is the conversation of a run there.
        """
        column = schema.cards.c.path
        distinct = sa.func.count(sa.distinct(column))
        columns: tuple[Any, ...] = (distinct, sa.func.min(column), sa.func.max(column))
        query = sa.select(*columns)
        count, first, last = tuple(self._read(query)[0])
        here = sa.select(column).where(self.at_or_below(column, path)).limit(1)
        if not count or self._read(here):
            return None
        namesake = None if example is None else self._namesake(example)
        ends = (str(self.absolute(first)), str(self.absolute(last)))
        common = os.path.commonpath(ends) if _have_common_path(ends) else ends[0]
        return Stranger(self.location, path, int(count), namesake, common)

    def _namesake(self, file: Path) -> str | None:
        """The stored path of a run in a folder of the same name elsewhere; None without one."""
        folder = run_folder(file).absolute()
        ending = "/" + file.absolute().relative_to(folder.parent).as_posix()
        column = schema.cards.c.path
        query = sa.select(column).where(column.endswith(ending, autoescape=True)).limit(1)
        for row in self._read(query):
            return str(self.absolute(row.path))
        return None

    def runs_of(self, references: Iterable[int]) -> dict[int, StoredRun]:
        """The versions of runs with these references, by reference."""
        table = schema.runs
        rows = self._in_chunks(sa.select(table), table.c.ref, references)
        return {row.ref: self._stored_run(row) for row in rows}

    def _set_stamp(
        self, connection: Connection, path: str, content_sha256: str, stamp: str | None
    ) -> None:
        """Note the run that is at a path now, with its stamp.

        Without a stamp, the one that is stored stays if it stands for the same content.
        """
        files = schema.files
        values = {"content_sha256": content_sha256, "stamp": stamp or "", "stamped_at": now()}
        condition = files.c.content_sha256 != content_sha256 if stamp is None else None
        statement = self._insert(files).values(path=path, **values)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["path"], set_=values, where=condition)
        )

    def _stored_run(self, row: sa.Row[Any]) -> StoredRun:
        fields = {name: row._mapping[name] for name in StoredRun._fields}
        return StoredRun(**(fields | {"path": self.absolute(row.path)}))


def _have_common_path(paths: Sequence[str]) -> bool:
    """Whether all are paths of this machine, not addresses."""
    return not any(is_address(path) for path in paths)


def _same_version(files: sa.Table, runs: sa.Table) -> sa.ColumnElement[bool]:
    """Joins the files at a path to the version of the run that they are."""
    return sa.and_(runs.c.path == files.c.path, runs.c.content_sha256 == files.c.content_sha256)
