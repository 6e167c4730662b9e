"""What the scores of a cohort rest on: who judged, how much was read, which quotes were found."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...judge.card.choice import judges_by_use
from ...judge.card.fields import REPORTED
from ...judge.card.read_share import ENOUGH
from ..statistics.run_arrays import insufficiently_read
from ..tables.cohorts import Cohort

BASIS_SCHEMA: dict[str, Any] = {
    "judge": pl.String,
    "runs": pl.Int64,
    "read_share": pl.Float64,
    "presumed_runs": pl.Int64,
    "unread_runs": pl.Int64,
    "quotes": pl.Int64,
    "quotes_found": pl.Int64,
    "contradictions": pl.Int64,
}


def basis(source: Cohort | pl.DataFrame) -> pl.DataFrame:
    """One row for each judge of a cohort or a run frame, first the one that is in force.

    `read_share`: mean over the judge's runs of the share of the weight of S1-S3 that was read, 0 to
    1. `presumed_runs`: runs whose point score rests on presumed criteria; `unread_runs`: runs that
    have only a range. `contradictions`: verdicts that facts contradict.
    """
    is_unread = insufficiently_read()
    is_read_in_part = (pl.col("read_share") < ENOUGH).fill_null(False)
    has_presumed = (pl.col("presumed") > 0).fill_null(False)
    if isinstance(source, Cohort):
        runs = source.all_judges.runs
        in_force = source.runs["judge"].unique(maintain_order=True).to_list()
    else:
        runs, in_force = source, []
    others = [name for name in judges_by_use(runs["judge"]) if name not in in_force]
    rows = runs.group_by("judge").agg(
        runs=pl.len().cast(pl.Int64),
        read_share=pl.col("read_share").mean(),
        presumed_runs=(~is_unread & is_read_in_part & has_presumed).sum().cast(pl.Int64),
        unread_runs=is_unread.sum().cast(pl.Int64),
        **{name: pl.col(name).sum() for name in ("quotes", "quotes_found", "contradictions")},
    )
    order = pl.DataFrame({"judge": [*in_force, *others]}, schema={"judge": pl.String})
    return order.join(rows, on="judge", how="left", nulls_equal=True, maintain_order="left").select(
        pl.col(name).cast(kind) for name, kind in BASIS_SCHEMA.items()
    )


def has_too_few_points(row: dict[str, Any]) -> bool:
    """Whether so many runs of a `basis` row lack a point score that nothing can be concluded."""
    return bool(row["unread_runs"] > (1 - ENOUGH) * row["runs"])


def sentences(row: dict[str, Any]) -> list[str]:
    """What a reader has to know before the numbers, from one row of `basis`."""
    runs = "1 run" if row["runs"] == 1 else f"{row['runs']:,} runs"
    judge = row["judge"] or "unknown"
    if judge == REPORTED:
        judge = "reported (the harness's own)"
    opening = f"Judge {judge}, {runs}"
    if row["read_share"] is not None:
        opening += f": {row['read_share']:.0%} of the weight of the judged criteria was read"
    text = [f"{opening}."]
    if row["presumed_runs"]:
        text.append(
            f"The scores of {row['presumed_runs']:,} of them rest on presumed criteria (~), which"
            " nobody judged; the range covers every possible verdict."
        )
    if row["unread_runs"]:
        consequence = "they get a range and no place on a board"
        if has_too_few_points(row):
            consequence = "they get a range, and are too many for a board or a finding"
        text.append(
            f"{row['unread_runs']:,} of them have too few judged criteria for a point score:"
            f" {consequence}."
        )
    if row["quotes"]:
        text.append(f"{row['quotes_found']:,} of {row['quotes']:,} quotes were found in the runs.")
    if row["contradictions"]:
        count = row["contradictions"]
        verdicts = "1 verdict" if count == 1 else f"{count:,} verdicts"
        text.append(f"Facts contradict {verdicts}.")
    return text
