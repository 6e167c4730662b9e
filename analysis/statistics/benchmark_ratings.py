"""The benchmark's own results: ratings, medals, kinds of failure, and scores of parts.

`judge.checks.grades` reads them from the runs' reports or derives them from the published limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

import polars as pl

from ...judge.card.fields import FailureKind, Medal, Rating
from .run_arrays import select_runs

if TYPE_CHECKING:
    from ..tables.cohorts import Cohort


def _has_failure(kind: str) -> pl.Expr:
    """Whether a run failed in this way; null without a rating."""
    is_kind = pl.col("failure_kind").eq_missing(pl.lit(kind))
    return pl.when(pl.col("rating").is_not_null()).then(is_kind)


SHARES: Mapping[str, pl.Expr] = {
    "resolved": pl.col("resolved"),
    "progress": pl.col("progress"),
    "valid": pl.col("has_valid_results"),
    "pass_rate": pl.col("pass_rate"),
    "breach": pl.col("disqualified"),
    **{kind: _has_failure(kind) for kind in get_args(FailureKind) if kind != "breach"},
}
"""Values in [0, 1] that are averaged over the runs for which they are known."""


def ratings(table: pl.DataFrame) -> pl.DataFrame:
    """Counts of ratings and medals, by track and agent; what is unknown is null.

    `usual` is the most frequent rating and `usual_share` its share. `task_score` and `shuffled`:
    mean Task, and mean Task of the same outputs against the references of other cases.
    """
    runs = select_runs(table)[0]
    has_ratings = pl.col("rating").count() > 0
    counts = [_count(column="rating", value=rating) for rating in get_args(Rating)]
    counts += [_count(column="medal", value=medal) for medal in get_args(Medal)]
    usual = pl.col("rating").drop_nulls().sort().mode(maintain_order=True).first()
    return (
        runs.group_by("track", "agent")
        .agg(
            pl.len().cast(pl.Int64).alias("runs"),
            *counts,
            pl.when(has_ratings).then(usual).alias("usual"),
            pl.when(has_ratings).then((pl.col("rating") == usual).mean()).alias("usual_share"),
            pl.col("task_score").mean(),
            pl.col("shuffled").mean(),
        )
        .sort("track", "agent")
    )


def _count(*, column: str, value: str) -> pl.Expr:
    """How many runs of a group have a value; null if the column is null in all of them."""
    n = (pl.col(column) == value).sum().cast(pl.Int64)
    return pl.when(pl.col(column).count() > 0).then(n).alias(value)


def part_scores(cohort: Cohort) -> pl.DataFrame:
    """Means over runs by track, part (class, tissue or kind of question) and agent.

    Of the runs whose reports split their metric.
    """
    runs = select_runs(cohort.runs)[0].select("run_id", "judge", "track", "agent")
    return (
        cohort.parts.join(runs, on=["run_id", "judge"], how="inner")
        .rename({"by": "split"})
        .group_by("track", "split", "part", "agent")
        .agg(
            runs=pl.col("run_id").n_unique().cast(pl.Int64),
            cases=pl.col("cases").mean(),
            score=pl.col("value").mean(),
        )
        .sort("track", "split", "part", "agent")
    )
