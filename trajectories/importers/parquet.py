"""Parquet files of trajectories, as datasets on the Hugging Face hub: one conversation a row.

A row is read like OpenAI chat. Its messages are in `messages`, `conversations`, `trajectory` ... (a
list, or JSON text); its other columns (`resolved`, `reward`, `exit_status`) become outcomes. Keys
that a file fills with null, because all rows share one type, are left out. A row of a database of
Inspect Scout (`transcript_id`) has Inspect's messages and is read like a sample of its logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..reading.table_errors import table_errors
from . import Importer
from .draft import Draft
from .files import draft_or_error, source_name
from .inspect_log import transcript_draft
from .openai_chat import MESSAGE_KEYS, conversation_draft

if TYPE_CHECKING:
    import polars as pl

_MAX_BYTES = 512 * 1024 * 1024
_MAX_ROWS = 1_000_000
_BATCH_ROWS = 64
"""Rows that are in memory as Python values at a time."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every row with messages; a row without any is yielded as an error."""
    file_errors = partial(table_errors, path, "is a broken Parquet file", "copy it again")
    with file_errors():
        frame = _open(path)
        n_rows = _count_rows(frame, path)
        batches = frame.collect_batches(chunk_size=_BATCH_ROWS, maintain_order=True)
    row_index = 0
    while True:
        with file_errors():
            batch = next(batches, None)
            if batch is None:
                break
            if batch.estimated_size() > _MAX_BYTES:
                raise InputError(
                    f"rows {row_index} to {row_index + batch.height}: unpack to too many bytes",
                    "split it",
                    path,
                )
            rows = list(batch.iter_rows(named=True))
        for row in rows:
            yield draft_or_error(_draft, row, row_index, path)
            row_index += 1
    if row_index < n_rows:  # polars may stop without an error
        raise InputError(
            f"is a broken Parquet file: {row_index} of {n_rows} rows can be read",
            "copy it again",
            path,
        )


def _open(path: Path) -> pl.LazyFrame:
    """The file's table, before its rows are read."""
    import polars as pl

    if path.stat().st_size > _MAX_BYTES:
        raise InputError(f"has more than the {_MAX_BYTES:,} bytes that are read", "split it", path)
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise InputError("is not a Parquet file", "copy it again, or name another format", path)
    frame = pl.scan_parquet(path, glob=False)
    columns = frame.collect_schema().names()
    if not set(MESSAGE_KEYS) & set(columns):
        raise InputError(
            f"has no column of messages (columns: {', '.join(columns[:12])[:200]})",
            f"expected one of {', '.join(MESSAGE_KEYS)}",
            path,
        )
    return frame


def _count_rows(frame: pl.LazyFrame, path: Path) -> int:
    import polars as pl

    n_rows = int(frame.select(pl.len()).collect().item())
    if n_rows > _MAX_ROWS:
        raise InputError(
            f"has {n_rows:,} rows, more than the {_MAX_ROWS:,} that are read", "split it", path
        )
    return n_rows


def _draft(row: dict[str, Any], row_index: int, path: Path) -> Draft:
    number = row_index + 1
    columns, name, location = _as_json(row), f"{source_name(path)}-{number}", f"row {number}: "
    make_draft = transcript_draft if "transcript_id" in row else conversation_draft
    draft = make_draft(columns, name, path, location)
    draft.format = "parquet"
    return draft


def _as_json(value: Any) -> Any:
    """The value as JSON would have it: no nulls in objects, times as text, no bytes."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, str | bool | int | float) else None


def _recognises(head: bytes, name: str) -> bool:
    return head.startswith(b"PAR1")


IMPORTER = Importer(read, (".parquet",), _recognises)
