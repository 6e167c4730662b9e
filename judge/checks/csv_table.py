"""Parse untrusted CSV text into a header and rows."""

from __future__ import annotations

import csv
import io

from .untrusted_files import Refused

_MAX_ROWS = 200_000


def parse_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows, without blank ones. Refused if the text is not CSV.

    A byte-order mark and any line ending are accepted.
    """
    stream = io.StringIO(text.removeprefix("\ufeff"), newline="")
    rows: list[list[str]] = []
    try:
        for row in csv.reader(stream, strict=True):
            if any(cell.strip() for cell in row):
                rows.append(row)
            if len(rows) > _MAX_ROWS:
                raise Refused("unreadable", f"has more than {_MAX_ROWS:,} rows")
    except csv.Error as error:
        raise Refused("unreadable", f"is not CSV: {error}") from None
    if not rows:
        raise Refused("empty", "is empty")
    return rows[0], rows[1:]
