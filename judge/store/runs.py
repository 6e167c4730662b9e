"""Runs in the store, and the two indexes that spare reading them again: file stamps and evidence
hashes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...trajectories.models import Run, Tier, TrackName
from ...trajectories.summary import run_info
from . import schema
from .connection import CHUNK, StorePart, clean_row, now


class StoredRun(NamedTuple):
    """One version of a run that the store has seen. `path` is absolute when the store knows its
    root."""

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
    """What was last seen at a run's path, and the run that it was."""

    stamp: str
    stamped_at: str
    run: StoredRun


class RunIndex(StorePart):
    """Every version of every run that was judged, and what its files looked like."""

    def add_run(self, run: Run, stamp: str | None = None) -> int:
        """Note this version of a run, and what its files look like now (`stamps.take`); returns its
        reference."""
        return self.add_runs([(self.describe(run), stamp)])[0]

    def add_runs(self, described: Sequence[tuple[Mapping[str, Any], str | None]]) -> list[int]:
        """The same for several, in one transaction, from what `describe` says of each; references
        in their order."""
        runs, refs = schema.runs, [0] * len(described)
        with self._write() as connection:
            for number in sorted(range(len(described)), key=lambda n: str(described[n][0]["path"])):
                row, stamp = described[number]
                same = (runs.c.path == row["path"]) & (
                    runs.c.content_sha256 == row["content_sha256"]
                )
                connection.execute(self._insert(runs).values(row).on_conflict_do_nothing())
                refs[number] = int(
                    connection.execute(sa.select(runs.c.ref).where(same)).scalar_one()
                )
                self._note_file(connection, row["path"], row["content_sha256"], stamp)
        return refs

    def describe(self, run: Run) -> dict[str, Any]:
        """What the store keeps of a run, without the run."""
        own = {
            "path": self.relative(run.path),
            "content_sha256": run.content_sha256,
            "created_at": now(),
        }
        return clean_row(run_info(run) | own)

    def stamped(self, paths: Iterable[Path]) -> dict[Path, FileStamp]:
        """What was last seen at each of these paths; paths never seen are left out."""
        files, runs = schema.files, schema.runs
        # In the order of StoredRun's fields, as this is read for every run of every plan.
        query = sa.select(
            files.c.stamp, files.c.stamped_at, *(runs.c[name] for name in StoredRun._fields)
        ).join_from(
            files,
            runs,
            sa.and_(runs.c.path == files.c.path, runs.c.content_sha256 == files.c.content_sha256),
        )
        by_name = {self.relative(path): path for path in paths}
        found = {}
        rows: Iterator[Any] = self._in_chunks(query, files.c.path, by_name)
        for row in rows:
            path = by_name[row[4]]
            found[path] = FileStamp(row[0], row[1], StoredRun(row[2], row[3], path, *row[5:15]))
        return found

    def evidence(
        self, contents: Iterable[str], contexts: Collection[str]
    ) -> dict[tuple[str, str], str]:
        """Known evidence hashes by (run content, packing context)."""
        table = schema.evidence
        query = sa.select(table.c.content_sha256, table.c.context, table.c.evidence_sha256).where(
            table.c.context.in_(list(contexts))
        )
        rows = self._in_chunks(query, table.c.content_sha256, contents)
        return {(row.content_sha256, row.context): row.evidence_sha256 for row in rows}

    def settled(self, contents: Iterable[str], questions: Collection[str]) -> set[tuple[str, str]]:
        """The (run content, question) pairs whose every criterion is known to have a verdict."""
        table = schema.settled
        query = sa.select(table.c.content_sha256, table.c.question).where(
            table.c.question.in_(list(questions))
        )
        rows: Iterator[Any] = self._in_chunks(query, table.c.content_sha256, contents)
        return {(row[0], row[1]) for row in rows}

    def settle(self, rows: Iterable[tuple[str, str, int]]) -> None:
        """Remember (run content, question, number of verdicts). Verdicts are never taken back, so
        this stays true."""
        if rows := list(rows):
            with self._write() as connection:
                self._settle(connection, rows)

    def add_evidence(self, rows: Iterable[tuple[str, str, str, str]]) -> None:
        """Remember (run content, packing context, question, evidence hash)."""
        rows = list(rows)
        if rows:
            with self._write() as connection:
                self._add_evidence(connection, rows)

    def iter_runs(self) -> Iterator[StoredRun]:
        """The version of every run that was last seen at its path, by path, read in pages."""
        files, runs = schema.files, schema.runs
        here = sa.and_(runs.c.path == files.c.path, runs.c.content_sha256 == files.c.content_sha256)
        query = sa.select(runs).join_from(files, runs, here)
        yield from map(self._stored_run, self._pages(query, runs.c.path, CHUNK))

    def runs_of(self, refs: Iterable[int]) -> dict[int, StoredRun]:
        """The versions of runs with these references, by reference."""
        table = schema.runs
        return {
            row.ref: self._stored_run(row)
            for row in self._in_chunks(sa.select(table), table.c.ref, refs)
        }

    def _note_file(
        self, connection: Connection, path: str, content: str, stamp: str | None
    ) -> None:
        """A missing stamp does not take away one that still stands for the same content."""
        files = schema.files
        new = {"content_sha256": content, "stamp": stamp or "", "stamped_at": now()}
        changed = files.c.content_sha256 != content if stamp is None else None
        statement = self._insert(files).values(path=path, **new)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["path"], set_=new, where=changed)
        )

    def _stored_run(self, row: sa.Row[Any]) -> StoredRun:
        return StoredRun(**{name: row._mapping[name] for name in StoredRun._fields})._replace(
            path=self.absolute(row.path)
        )
