"""What became of runs in the benchmark's own words: ratings, medals, why runs failed, scores of
parts (`judge.checks.grades`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

import polars as pl

from ...judge.card.fields import FailureKind, Medal, Rating
from .run_arrays import select_runs

if TYPE_CHECKING:
    from ..tables.cohorts import Cohort


def _failed_by(kind: str) -> pl.Expr:
    """Whether a run that has a rating failed in this way."""
    return pl.when(pl.col("rating").is_not_null()).then(
        pl.col("failure_kind").eq_missing(pl.lit(kind))
    )


SHARES: Mapping[str, pl.Expr] = {
    "resolved": pl.col("resolved"),
    "progress": pl.col("progress"),
    "valid": pl.col("has_valid_results"),
    "pass_rate": pl.col("pass_rate"),
    "breach": pl.col("disqualified"),
    **{kind: _failed_by(kind) for kind in get_args(FailureKind) if kind != "breach"},
}
"""What is averaged over the runs for which it is known, in [0, 1]."""


def ratings(table: pl.DataFrame) -> pl.DataFrame:
    """Runs by track and agent: how many have each rating and medal, the commonest rating and how
    often it is met, and the Task beside what the same outputs score against the references of other
    cases. Unknown is null."""
    runs = select_runs(table)[0]
    some = pl.col("rating").count() > 0
    count = [
        pl.when(pl.col(column).count() > 0)
        .then((pl.col(column) == value).sum().cast(pl.Int64))
        .alias(value)
        for column, values in (("rating", get_args(Rating)), ("medal", get_args(Medal)))
        for value in values
    ]
    usual = pl.col("rating").drop_nulls().sort().mode(maintain_order=True).first()
    return (
        runs.group_by("track", "agent")
        .agg(
            pl.len().cast(pl.Int64).alias("runs"),
            *count,
            pl.when(some).then(usual).alias("usual"),
            pl.when(some).then((pl.col("rating") == usual).mean()).alias("usual_share"),
            pl.col("task_score").mean(),
            pl.col("shuffled").mean(),
        )
        .sort("track", "agent")
    )


def part_scores(whole: Cohort) -> pl.DataFrame:
    """Means over runs by track, class, tissue or kind of question, and agent, where the reports
    split their metric."""
    runs = select_runs(whole.runs)[0].select("run_id", "judge", "track", "agent")
    return (
        whole.parts.join(runs, on=["run_id", "judge"], how="inner")
        .rename({"by": "split"})
        .group_by("track", "split", "part", "agent")
        .agg(
            runs=pl.col("run_id").n_unique().cast(pl.Int64),
            cases=pl.col("cases").mean(),
            score=pl.col("value").mean(),
        )
        .sort("track", "split", "part", "agent")
    )
