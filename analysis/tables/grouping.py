"""What a row of a board stands for, and which boards there are, by names as `--by` takes them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...errors import ConfigError
from .frames import OUTCOME

ROWS: dict[str, tuple[str, ...]] = {
    "agent": ("agent",),
    "model": ("model",),
    "agent+model": ("agent", "model"),
}
"""What a row may stand for beside a field of the runs, and the columns that name it."""
BOARDS: dict[str, tuple[str, ...]] = {
    "overall": (),
    "track": ("track",),
    "tier": ("tier",),
    "task": ("task",),
    "task-tier": ("task", "tier"),
}
"""Kinds of boards, and the columns that select the runs of each."""
UNKNOWN = "(unknown)"
_MAX_NAMED = 4
"""Models that a note names; the others are counted."""


def split_groupings(names: Sequence[str], runs: pl.DataFrame) -> tuple[str, tuple[str, ...]]:
    """What the rows stand for and which boards to show, by the values of `--by`.

    ConfigError for an unknown name, and for two that say what a row stands for.
    """
    boards = tuple(name for name in names if name in BOARDS)
    rows = [name for name in names if name not in BOARDS]
    for name in rows:
        columns_of_rows(name, runs)
    if len(rows) > 1:
        raise ConfigError(
            f"--by {rows[0]} and --by {rows[1]} both say what a row stands for", "name one of them"
        )
    return rows[0] if rows else "agent", boards


def columns_of_rows(name: str, runs: pl.DataFrame) -> tuple[str, ...]:
    """The columns that name a row: of ROWS, or a text field of the runs.

    ConfigError for an unknown name.
    """
    if name in ROWS:
        return ROWS[name]
    for column in (name, OUTCOME + name):
        if column in runs.columns and not runs.schema[column].is_float():
            return (column,)
    raise ConfigError(
        f"--by {name}: the runs have no such field",
        f"choose from {', '.join([*ROWS, *BOARDS])}, or a field of the runs such as judge",
    )


def with_row_names(runs: pl.DataFrame, by: str) -> pl.DataFrame:
    """The runs with what a row stands for in place of the agent."""
    columns = columns_of_rows(by, runs)
    if columns == ("agent",):
        return runs
    names = [pl.col(column).cast(pl.String).fill_null(UNKNOWN) for column in columns]
    return runs.with_columns(agent=pl.concat_str(names, separator=" · "))


def mixture_notes(runs: pl.DataFrame, by: str) -> list[str]:
    """Which rows mix agents or models, and which tiers the rows average over."""
    notes = []
    named = with_row_names(runs.with_columns(own_agent=pl.col("agent")), by)
    columns = columns_of_rows(by, runs)
    for noun, column in (("agent", "own_agent"), ("model", "model")):
        if noun in columns:
            continue
        members_of = named.group_by("agent").agg(pl.col(column).drop_nulls().unique().sort())
        for name, members in members_of.sort("agent").iter_rows():
            if len(members) > 1:
                notes.append(f"{name} mixes {len(members)} {noun}s: {_listed(members)}.")
    tiers = runs["tier"].drop_nulls().unique().sort().to_list()
    if len(tiers) > 1 and "tier" not in columns:
        notes.append(f"Rows average over the tiers {_listed(tiers)} unless a board is of one.")
    return notes


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_MAX_NAMED])
    more = len(names) - _MAX_NAMED
    return f"{listed} and {more} more" if more > 0 else listed
