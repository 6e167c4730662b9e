"""Tables and texts as files, written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_files import NewFile, file_behind, whole
from ..errors import InputError
from ..sanitize import sanitize

if TYPE_CHECKING:
    import polars as pl


FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
ROW_GROUP = 20_000
"""Rows of a Parquet row group: polars holds one while writing."""
_SQLITE = b"SQLite format 3\0"


def format_of(out: Path | None) -> str:
    if out is None:
        return "jsonl"
    found = FORMATS.get(out.suffix.lower())
    if found is None:
        raise InputError(
            "its suffix names no format", "use .jsonl, .csv or .parquet, or say --format", out
        )
    return found


def texts_of(tables: Iterable[pl.DataFrame], kind: str) -> Iterator[str]:
    from ..analysis.tables.flat_tables import to_jsonl
    from ..analysis.tables.spreadsheets import to_csv

    for number, table in enumerate(tables):
        yield to_csv(table, header=number == 0) if kind == "csv" else to_jsonl(table)


def write_text(out: Path | None, texts: Iterable[str]) -> None:
    if out is None:
        for text in texts:
            _print(text)
        return
    with (
        whole(out) as new,
        new.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream,
    ):
        stream.writelines(texts)


def _print(text: str) -> None:
    """Bytes as they are into a pipe or file; on a terminal control characters are shown, never
    sent."""
    if sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(sanitize(text).encode(encoding, "replace").decode(encoding))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def write_parquet(out: Path, tables: Iterable[pl.DataFrame]) -> None:
    """Batches become files of their own, then one file, streamed: polars writes a Parquet file only
    in one go."""
    import polars as pl

    with whole(out) as new, ExitStack() as stack:
        parts: list[Path] = []
        for table in tables:
            part = NewFile(new)
            stack.callback(part.drop)
            parts.append(part.part)
            with _writing(out):
                table.write_parquet(part.part)
        with _writing(out):
            pl.scan_parquet(parts, glob=False).sink_parquet(new, row_group_size=ROW_GROUP)


def target_of(out: Path, paths: tuple[str, ...]) -> Path:
    """The file to write, links followed. As elsewhere an older one is replaced, but never a store
    or what is being read."""
    try:
        if (real := file_behind(out)) is None:
            raise InputError("cannot be written: not a regular file", "choose another --out", out)
        if not real.exists():
            return real
        if any(Path(path).exists() and real.samefile(path) for path in paths):
            raise InputError("is what is being read", "choose another --out", out)
        with real.open("rb") as stream:
            if stream.read(len(_SQLITE)) == _SQLITE:
                raise InputError("is a store, which is never replaced", "choose another --out", out)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a possible file name"
        raise InputError(f"cannot be written: {reason}", "choose another --out", out) from error
    return real


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """What goes wrong while polars writes, as an error about that file."""
    from polars.exceptions import PolarsError

    try:
        yield
    except PolarsError as error:
        raise InputError(
            f"cannot be written: {str(error).splitlines()[0]}", "choose another --out", out
        ) from error
