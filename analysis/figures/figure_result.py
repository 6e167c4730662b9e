"""What a figure function returns: a drawing, or the reason why there is nothing to draw."""

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
"""Tables by name, as `analysis.all_tables` returns them; a figure that lacks its table says so."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A figure with a caption that says how to read it, and a description for those who cannot see
    it."""

    figure: Figure
    caption: str
    description: str


class Nothing(Exception):
    """Raised by a figure function: the data have nothing to draw. The message is the reason, for
    the reader."""


def tidy_rows(tables: Tables, name: str, **where: Any) -> list[Row]:
    """Rows of a table with the given values, in order. Nothing when the table is absent; [] when no
    row matches."""
    table = tables.get(name)
    if table is None:
        raise Nothing(f"the table {name} was not computed")
    if table.columns == ["reason"]:
        raise Nothing(str(table["reason"][0]))
    for column, value in where.items():
        if column not in table.columns:
            raise Nothing(f"the table {name} has no column {column}")
        table = table.filter(pl.col(column) == value)
    return table.to_dicts()


def with_value(rows: Iterable[Row]) -> list[Row]:
    """The rows whose value is known; Nothing, with the first reason given, when there is none."""
    rows = list(rows)
    known = [row for row in rows if row.get("value") is not None]
    if not known:
        reasons = [row["reason"] for row in rows if row.get("reason")]
        raise Nothing(reasons[0] if reasons else "no run has what this figure needs")
    return known


def both_populations(rows: Iterable[Row], *keys: str) -> list[tuple[Row, Row | None]]:
    """Each row for new tasks with its twin for the same tasks, matched on the key columns."""
    rows = list(rows)
    same = {tuple(row[key] for key in keys): row for row in rows if row["population"] == "same"}
    return [
        (row, same.get(tuple(row[key] for key in keys)))
        for row in rows
        if row["population"] != "same"
    ]


def counted(d: RunArrays) -> str:
    """For captions: which codes a number of codes is of, and in how many runs; nothing when all
    were read for all five."""
    if d.n == d.n_scored and not d.among_codes():
        return ""
    unread = [d.reading_count(code) for code in CODES if code not in d.code_names]
    text = f" Codes counted: {', '.join(d.code_names)}, read in {d.n} of {d.n_scored} runs."
    return text + (f" Not counted: {'; '.join(unread)}." if unread else "")
