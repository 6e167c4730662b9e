"""Tables as CSV that a spreadsheet shows and never executes, and such texts back as they were."""

from __future__ import annotations

import io

import polars as pl

FORMULA = r"^(?:['\s\p{C}]*[=+\-@＝＋－＠]|'*[\t\r\n])"
"""Texts that a spreadsheet may take for a formula: they begin with = + - @ (or their full-width
forms), be it after blanks, invisible characters or apostrophes, or with a tab or line break."""


def to_csv(table: pl.DataFrame, *, header: bool = True) -> str:
    """CSV as spreadsheets read it: comma, doubled quotes, UTF-8; null is an empty cell, an empty
    text is "".

    Run ids, quotes and reasons come from strangers, and a spreadsheet would execute a text like
    `=HYPERLINK(...)`: texts that match FORMULA get an apostrophe in front, which makes them text.
    `from_csv` takes it off again. Lists are joined by "; ".
    """
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    named = [
        name for name, kind in table.schema.items() if isinstance(kind, pl.Enum | pl.Categorical)
    ]
    joined = table.with_columns(
        *(pl.col(name).cast(pl.List(pl.String)).list.join("; ") for name in lists),
        *(pl.col(name).cast(pl.String) for name in named),
    )
    safe = joined.with_columns(
        pl.col(name).str.replace(f"({FORMULA})", "'$1") for name in _texts(joined)
    )
    buffer = io.StringIO()
    safe.write_csv(buffer, include_header=header)
    return buffer.getvalue()


def from_csv(table: pl.DataFrame) -> pl.DataFrame:
    """A table that was read from CSV, with the texts that `to_csv` was given: without the
    apostrophes that it put there."""
    return table.with_columns(
        pl.when(pl.col(name).str.starts_with("'") & pl.col(name).str.contains(FORMULA))
        .then(pl.col(name).str.slice(1))
        .otherwise(pl.col(name))
        .alias(name)
        for name in _texts(table)
    )


def _texts(table: pl.DataFrame) -> list[str]:
    return [name for name, kind in table.schema.items() if kind == pl.String]
