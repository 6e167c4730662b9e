"""What the scores of a cohort rest on: whose they are, how much of the runs was read, how many
quotes were found."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...judge.card.read_share import ENOUGH
from ..statistics.run_arrays import insufficiently_read, judges_by_use

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


def basis(table: pl.DataFrame) -> pl.DataFrame:
    """One row a judge of a run frame, the one whose scorecards are analysed first.

    `read_share`: mean over its runs of the share of the weight of S1-S3 that was read (0-1).
    `presumed_runs` have a point that rests on presumed criteria, `unread_runs` only a range.
    `contradictions`: verdicts that facts contradict.
    """
    thin = (
        ~insufficiently_read()
        & (pl.col("read_share") < ENOUGH).fill_null(False)
        & (pl.col("presumed") > 0).fill_null(False)
    )
    rows = table.group_by("judge").agg(
        runs=pl.len().cast(pl.Int64),
        read_share=pl.col("read_share").mean(),
        presumed_runs=thin.sum().cast(pl.Int64),
        unread_runs=insufficiently_read().sum().cast(pl.Int64),
        **{name: pl.col(name).sum() for name in ("quotes", "quotes_found", "contradictions")},
    )
    order = pl.DataFrame({"judge": judges_by_use(table)}, schema={"judge": pl.String})
    return order.join(rows, on="judge", how="left", nulls_equal=True, maintain_order="left").select(
        pl.col(name).cast(kind) for name, kind in BASIS_SCHEMA.items()
    )


def too_little(row: dict[str, Any]) -> bool:
    """Whether so many runs of a `basis` row have no point that no board and no finding can be made
    of the scores."""
    return bool(row["unread_runs"] > (1 - ENOUGH) * row["runs"])


def sentences(row: dict[str, Any]) -> list[str]:
    """What a reader has to know before the numbers, of one row of `basis`."""
    share = (
        ""
        if row["read_share"] is None
        else f": {row['read_share']:.0%} of the weight of the judged criteria was read"
    )
    out = [
        f"Judge {row['judge'] or 'unknown'}, {row['runs']:,}"
        f" run{'' if row['runs'] == 1 else 's'}{share}."
    ]
    if n := row["presumed_runs"]:
        out.append(
            f"The scores of {n:,} of them rest on presumed criteria (~), which nobody read: the"
            " range holds whatever a reader would say."
        )
    if n := row["unread_runs"]:
        tail = ", too many for a board or a finding" if too_little(row) else " and no place"
        out.append(f"{n:,} of them lack judged stages: they have a range and no point{tail}.")
    if row["quotes"]:
        out.append(f"{row['quotes_found']:,} of {row['quotes']:,} quotes were found in the runs.")
    if n := row["contradictions"]:
        out.append(f"Facts contradict {n:,} verdict{'' if n == 1 else 's'}.")
    return out
