"""Tables as CSV whose texts a spreadsheet never executes, and such texts read back unchanged."""

from __future__ import annotations

import io

import polars as pl

FORMULA = r"^(?:['\s\p{C}]*[=+\-@＝＋－＠]|'*[\t\r\n])"
"""Texts that a spreadsheet may take for a formula: they begin with = + - @ (or their full-width
forms), be it after blanks, invisible characters or apostrophes, or with a tab or line break."""


def to_csv(table: pl.DataFrame, *, header: bool = True) -> str:
    """CSV as spreadsheets read it: commas, doubled quotes, UTF-8; null is an empty cell.

    An empty text is "". Run ids, quotes and reasons come from strangers, and a spreadsheet would
    execute a text like `=HYPERLINK(...)`: texts that match FORMULA get an apostrophe in front,
    which makes them text. `from_csv` takes it off again. Lists are joined by "; ".
    """
    texts = table
    for name, kind in table.schema.items():
        if isinstance(kind, pl.List):
            joined = pl.col(name).cast(pl.List(pl.String)).list.join("; ")
            texts = texts.with_columns(joined)
        elif isinstance(kind, pl.Enum | pl.Categorical):
            texts = texts.with_columns(pl.col(name).cast(pl.String))
    safe = texts.with_columns(
        pl.col(name).str.replace(f"({FORMULA})", "'$1") for name in _text_columns(texts)
    )
    buffer = io.StringIO()
    safe.write_csv(buffer, include_header=header)
    return buffer.getvalue()


def from_csv(table: pl.DataFrame) -> pl.DataFrame:
    """A table read from CSV, without the apostrophes that `to_csv` put in front of texts."""
    return table.with_columns(
        pl.when(pl.col(name).str.starts_with("'") & pl.col(name).str.contains(FORMULA))
        .then(pl.col(name).str.slice(1))
        .otherwise(pl.col(name))
        .alias(name)
        for name in _text_columns(table)
    )


def _text_columns(table: pl.DataFrame) -> list[str]:
    return [name for name, kind in table.schema.items() if kind == pl.String]
