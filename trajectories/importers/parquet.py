"""Parquet files of trajectories, as sets on the Hugging Face hub keep them: one conversation a row.

A row is read as OpenAI chat is: its messages stand in `messages`, `conversations`, `trajectory` ...
(a list, or JSON text), its other columns (`resolved`, `reward`, `exit_status`) become outcomes.
Keys that a file fills up with null, as all rows share one type, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.table_errors import table_errors
from . import Importer
from .draft import Draft
from .files import draft_or_error
from .openai_chat import TURNS, conversation_of

_MAX_BYTES = 512 * 1024 * 1024
_MAX_ROWS = 1_000_000
_BATCH = 64
"""Rows that are in memory as Python values at a time."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every row with messages; rows without come as errors."""
    import polars as pl

    broken = partial(table_errors, path, "is a broken Parquet file", "copy it again")
    with broken():
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(
                f"has more than the {_MAX_BYTES:,} bytes that are read", "split it", path
            )
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                raise InputError(
                    "is no Parquet file", "copy it again, or name another format", path
                )
        frame = pl.scan_parquet(path, glob=False)
        names = frame.collect_schema().names()
        if not set(TURNS) & set(names):
            shown = ", ".join(names[:12])[:200]
            raise InputError(
                f"has no column of messages (columns: {shown})",
                f"expected one of {', '.join(TURNS)}",
                path,
            )
        rows = int(frame.select(pl.len()).collect().item())
        if rows > _MAX_ROWS:
            raise InputError(
                f"has {rows:,} rows, more than the {_MAX_ROWS:,} that are read", "split it", path
            )
        batches = frame.collect_batches(chunk_size=_BATCH, maintain_order=True)
    at = 0
    while True:
        with broken():
            batch = next(batches, None)
            if batch is None:
                break
            if batch.estimated_size() > _MAX_BYTES:
                raise InputError(
                    f"rows {at} to {at + batch.height}: unpack to too many bytes", "split it", path
                )
            values = list(batch.iter_rows(named=True))
        for row in values:
            yield draft_or_error(_row, row, at, path)
            at += 1
    if at < rows:  # polars may give up without a word
        raise InputError(
            f"is a broken Parquet file: {at} of {rows} rows can be read", "copy it again", path
        )


def _row(row: dict[str, Any], at: int, path: Path) -> Draft:
    draft = conversation_of(_plain(row), f"{path.stem}-{at + 1}", path, f"row {at + 1}: ")
    draft.format = "parquet"
    return draft


def _plain(value: Any) -> Any:
    """As JSON would have it: no nulls in objects, no times, no bytes."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, str | bool | int | float) else None


IMPORTER = Importer(read, (".parquet",), lambda head, name: head.startswith(b"PAR1"))
