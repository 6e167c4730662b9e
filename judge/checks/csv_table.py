"""CSV text of strangers to a header and rows."""

from __future__ import annotations

import csv
import io

from .untrusted_files import Refused

_MAX_ROWS = 200_000


def parse_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """(header, rows without blank ones); a byte-order mark and any line ending are read. Refused
    when it is no CSV."""
    try:
        reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
        rows = []
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
            if len(rows) > _MAX_ROWS:
                raise Refused("unreadable", f"has more than {_MAX_ROWS:,} rows")
    except csv.Error as error:
        raise Refused("unreadable", f"is not CSV: {error}") from None
    if not rows:
        raise Refused("empty", "is empty")
    return rows[0], rows[1:]
