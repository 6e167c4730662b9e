"""Who ran, was read and was scored where: how far agents can be compared at all."""

from __future__ import annotations

import polars as pl

from .run_arrays import insufficiently_read, select_runs, task_key

MOST_NAMED = 3
"""Tasks without a run that are named."""


def who_ran(table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True) -> pl.DataFrame:
    """For each agent its runs, and on how many tasks and tiers it ran, was read and has a score.

    `of_cells`: the tasks and tiers on which any agent ran. `read`: runs of which enough criteria
    were judged for a score. `not_run`: the tasks that only others ran, the first few by name.
    """
    if prepare:
        table, _ = select_runs(table)
    has_score = pl.col(outcome).cast(pl.Float64).is_finite().fill_null(False)
    runs = table.with_columns(
        _task=task_key(), _read=~insufficiently_read(), _scored=has_score
    ).with_columns(_cell=pl.concat_str("_task", "tier", separator="/"))
    all_tasks = set(runs["_task"])
    rows = runs.group_by("agent").agg(
        runs=pl.len().cast(pl.Int64),
        cells=pl.col("_cell").n_unique().cast(pl.Int64),
        of_cells=pl.lit(runs["_cell"].n_unique(), dtype=pl.Int64),
        read=pl.col("_read").sum().cast(pl.Int64),
        scored=pl.col("_scored").sum().cast(pl.Int64),
        cells_scored=pl.col("_cell").filter("_scored").n_unique().cast(pl.Int64),
        tasks=pl.col("_task").unique(),
    )
    not_run = [_named(sorted(all_tasks - set(tasks))) for tasks in rows["tasks"]]
    return (
        rows.drop("tasks").with_columns(not_run=pl.Series(not_run, dtype=pl.String)).sort("agent")
    )


def _named(tasks: list[str]) -> str | None:
    """A few tasks by name, and how many more there are; None without any."""
    if not tasks:
        return None
    more = len(tasks) - MOST_NAMED
    names = ", ".join(tasks[:MOST_NAMED])
    return f"{names} and {more} more" if more > 0 else names
