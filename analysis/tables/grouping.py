"""What a row of a board stands for, and which boards there are, by names as `--by` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        columns_of_rows(name, runs, also=tuple(BOARDS))
    if len(rows) > 1:
        raise ConfigError(
            f"--by {rows[0]} and --by {rows[1]} both say what a row stands for", "name one of them"
        )
    return rows[0] if rows else "agent", boards


def columns_of_rows(name: str, runs: pl.DataFrame, also: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that name a row: of ROWS, or a text field of the runs.

    ConfigError for an unknown name; `also`: names of other kinds that could have been given.
    """
    if name in ROWS:
        return ROWS[name]
    for column in (name, OUTCOME + name):
        if column in runs.columns and not runs.schema[column].is_float():
            return (column,)
    raise ConfigError(
        f"--by {name}: the runs have no such field",
        f"choose from {', '.join([*ROWS, *also])}, or a field of the runs such as judge",
    )


def check_rows(by: str, runs: pl.DataFrame) -> None:
    """ConfigError if a row cannot stand for this: it is a board, or the runs have no such field."""
    if by in BOARDS:
        raise ConfigError(
            f"{by!r} is a board, not what a row stands for",
            f"choose from {', '.join(ROWS)}, or a field of the runs; `leaderboard` has boards",
        )
    columns_of_rows(by, runs)


def row_names(runs: pl.DataFrame, by: str) -> pl.Series:
    """The name of what each run is counted for; agents may be unknown (null)."""
    columns = columns_of_rows(by, runs)
    if columns == ("agent",):
        return runs["agent"]
    names = [pl.col(column).cast(pl.String).fill_null(UNKNOWN) for column in columns]
    return runs.select(pl.concat_str(names, separator=" · ").alias(by)).to_series()


def with_row_names(runs: pl.DataFrame, by: str) -> pl.DataFrame:
    """The runs with what a row stands for in place of the agent."""
    return runs.with_columns(row_names(runs, by).alias("agent"))


@dataclass(frozen=True)
class RowKind:
    """What the rows of tables stand for, in words and as filters of runs."""

    by: str = "agent"
    columns: tuple[str, ...] = ("agent",)
    members: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """Name of a row -> its values of the columns; for agents that is the name."""

    @property
    def singular(self) -> str:
        """What one row is, as in "by agent"."""
        return self.by.replace("+", " and ")

    @property
    def plural(self) -> str:
        """What several rows are, as in "differences between agents"."""
        if len(self.columns) > 1:
            return f"pairs of {self.singular}"
        return f"{self.by}s" if self.by in ROWS else f"values of {self.by}"

    def fill(self, text: str) -> str:
        """A text with the words in place of {row} and {rows}."""
        return text.replace("{rows}", self.plural).replace("{row}", self.singular)

    def values(self, name: str) -> dict[str, str | None]:
        """The values of the columns that the runs of a row share."""
        return dict(zip(self.columns, self.members.get(name, (name,)), strict=True))


AGENTS = RowKind()


def row_kind(runs: pl.DataFrame, by: str) -> RowKind:
    """What the rows are if `by` names them; ConfigError for an unknown name."""
    columns = columns_of_rows(by, runs)
    if columns == ("agent",):
        return AGENTS
    named = runs.select(
        pl.col(column).cast(pl.String).alias(str(i)) for i, column in enumerate(columns)
    )
    named = named.with_columns(row_names(runs, by).alias("name")).unique("name")
    return RowKind(by, columns, {name: tuple(values) for *values, name in named.iter_rows()})


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
