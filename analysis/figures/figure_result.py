"""What a figure function returns, and how it reads its tables.

A figure function takes the tables and returns a `FigureResult`, or raises `NothingToDraw` with the
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from ..tables.codes_read import CODES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..statistics.run_arrays import RunArrays

Tables = Mapping[str, pl.DataFrame]
"""Tables by name, as `analysis.all_tables` returns them."""
Row = dict[str, Any]


@dataclass(frozen=True)
class FigureResult:
    """A drawn figure with its texts."""

    figure: Figure
    caption: str
    """How to read the figure."""
    description: str
    """What the figure shows, for those who cannot see it."""


class NothingToDraw(Exception):
    """Raised by a figure function whose data are missing; the message gives the reader a reason."""


def tidy_rows(tables: Tables, name: str, **conditions: Any) -> list[Row]:
    """Rows of a table whose columns equal `conditions`, in order; [] if no row does.

    Raises NothingToDraw if the table is absent, could not be computed, or lacks a column.
    """
    table = tables.get(name)
    if table is None:
        raise NothingToDraw(f"the table {name} was not computed")
    if table.columns == ["reason"]:
        raise NothingToDraw(str(table["reason"][0]))
    for column, value in conditions.items():
        if column not in table.columns:
            raise NothingToDraw(f"the table {name} has no column {column}")
        table = table.filter(pl.col(column) == value)
    return table.to_dicts()


def rows_with_value(rows: Iterable[Row]) -> list[Row]:
    """The rows that have a value.

    Raises NothingToDraw, with the first reason that a row gives, if none has.
    """
    rows = list(rows)
    with_value = [row for row in rows if row.get("value") is not None]
    if not with_value:
        reasons = [row["reason"] for row in rows if row.get("reason")]
        raise NothingToDraw(reasons[0] if reasons else "no run has what this figure needs")
    return with_value


def pair_populations(rows: Iterable[Row], key: str) -> list[tuple[Row, Row | None]]:
    """Each row for new tasks with the row for the same tasks that has the same `key`, if any."""
    rows = list(rows)
    same_tasks = {row[key]: row for row in rows if row["population"] == "same"}
    return [(row, same_tasks.get(row[key])) for row in rows if row["population"] != "same"]


def counted_codes_note(runs: RunArrays) -> str:
    """A sentence for captions on which codes were counted, and in how many runs.

    Empty when all runs were read for all codes.
    """
    if runs.n == runs.n_scored and not runs.among_codes():
        return ""
    unread = [runs.reading_count(code) for code in CODES if code not in runs.code_names]
    note = (
        f" Codes counted: {', '.join(runs.code_names)}, read in {runs.n} of {runs.n_scored} runs."
    )
    if unread:
        note += f" Not counted: {'; '.join(unread)}."
    return note
