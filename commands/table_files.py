"""Tables and texts as files that are complete or not there."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_files import NewFile, atomic_write, file_behind
from ..errors import InputError
from ..sanitize import sanitize

if TYPE_CHECKING:
    import polars as pl


FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
ROW_GROUP = 20_000
"""Rows of a Parquet row group: polars has one in memory while it writes."""
_SQLITE_HEADER = b"SQLite format 3\0"


def format_of(out: Path | None) -> str:
    """The format that a file's suffix names; jsonl for stdout. InputError for another suffix."""
    if out is None:
        return "jsonl"
    name = FORMATS.get(out.suffix.lower())
    if name is None:
        raise InputError(
            "its suffix is not that of a known format",
            "use .jsonl, .csv or .parquet, or say --format",
            out,
        )
    return name


def texts_of(tables: Iterable[pl.DataFrame], kind: str) -> Iterator[str]:
    """The text of each part of a table, as csv (only the first with a header) or jsonl."""
    from ..analysis.tables.flat_tables import to_jsonl
    from ..analysis.tables.spreadsheets import to_csv

    for number, table in enumerate(tables):
        yield to_csv(table, header=number == 0) if kind == "csv" else to_jsonl(table)


def write_text(out: Path | None, texts: Iterable[str]) -> None:
    """Write texts to a file, or to stdout."""
    if out is None:
        for text in texts:
            _print(text)
        return
    with (
        atomic_write(out) as part,
        part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream,
    ):
        stream.writelines(texts)


def _print(text: str) -> None:
    """Write bytes unchanged into a pipe or file; a terminal is shown control characters, never sent
    them."""
    if sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(sanitize(text).encode(encoding, "replace").decode(encoding))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def write_parquet(out: Path, tables: Iterable[pl.DataFrame]) -> None:
    """Write the parts of a table as one Parquet file.

    Each part becomes a file of its own first, because polars writes a Parquet file only in one go;
    then all are streamed into one.
    """
    import polars as pl

    with atomic_write(out) as target, ExitStack() as stack:
        parts: list[Path] = []
        for table in tables:
            part = NewFile(target)
            stack.callback(part.drop)
            parts.append(part.part)
            with _polars_errors_named(out):
                table.write_parquet(part.part)
        with _polars_errors_named(out):
            pl.scan_parquet(parts, glob=False).sink_parquet(target, row_group_size=ROW_GROUP)


def target_of(out: Path, paths: tuple[str, ...]) -> Path:
    """The file to write, with links followed. InputError for a store, which is never replaced, for
    an input of the command, and for what is not a file."""
    try:
        target = file_behind(out)
        if target is None:
            raise InputError(
                "cannot be written: it is not a regular file", "choose another --out", out
            )
        if not target.exists():
            return target
        if any(Path(path).exists() and target.samefile(path) for path in paths):
            raise InputError("is an input of this command", "choose another --out", out)
        with target.open("rb") as stream:
            if stream.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER:
                raise InputError("is a store, which is never replaced", "choose another --out", out)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a possible file name"
        raise InputError(f"cannot be written: {reason}", "choose another --out", out) from error
    return target


@contextmanager
def _polars_errors_named(out: Path) -> Iterator[None]:
    """Turn an error of polars while it writes into one about the file."""
    from polars.exceptions import PolarsError

    try:
        yield
    except PolarsError as error:
        raise InputError(
            f"cannot be written: {str(error).splitlines()[0]}", "choose another --out", out
        ) from error
