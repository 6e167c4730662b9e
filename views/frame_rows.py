"""Rows of the run table from run frames.

A frame holds scores and no transcript, so its runs have no page of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ..analysis.statistics.run_arrays import insufficiently_read
from ..analysis.tables.frames import GROUP, OUTCOME
from ..error_codes.paper_codes import BY_READING, CODES
from ..trajectories.stages import STAGES
from .run_rows import RunRow, count_parts


def rows_of_frame(table: pl.DataFrame, first: int) -> Iterator[RunRow]:
    """Yield a row for each run of a frame, numbered from `first`."""
    outcome_columns = [name for name in table.columns if name.startswith(OUTCOME)]
    group_columns = [name for name in table.columns if name.startswith(GROUP)]
    rows = table.with_columns(_too_few_judged=insufficiently_read()).iter_rows(named=True)
    for number, row in enumerate(rows, first):
        yield _row(number, row, outcome_columns, group_columns)


def _row(
    number: int, row: dict[str, Any], outcome_columns: list[str], group_columns: list[str]
) -> RunRow:
    readings = {code: row.get(f"{code}_read") for code in CODES}
    is_point = not row["_too_few_judged"]
    # A range is shown for a score that is no point, or that rests on presumed criteria.
    low, high = row["overall_lo"], row["overall_hi"]
    has_range = low is not None and high is not None and (not is_point or row["presumed"])
    rubric = " ".join(text for text in (row["rubric"], row["rubric_version"]) if text)
    return RunRow(
        number=number,
        id=row["run_id"] or "?",
        path=row["path"] or "",
        state="scored",
        agent=row["agent"],
        model=row["model"],
        task=row["task"],
        track=row["track"],
        tier=row["tier"],
        repeat=row["repeat"],
        turns=row["turns"],
        stages=tuple(row[stage] for stage in STAGES),
        agentic=row["agentic"] if is_point else None,
        task_score=row["task_score"],
        overall=row["overall"] if is_point else None,
        codes=tuple(code for code in CODES if row[code]),
        primary=row["primary_failure"],
        ended=row["ended"],
        disqualified=bool(row["disqualified"]),
        failed_calls=row["failed_calls"],
        failed_steps=row["failed_steps"],
        parts=count_parts(Path(row["path"])) if row["path"] else None,
        contradictions=row["contradictions"] or 0,
        unscored=sum(row[f"{stage}_method"] == "unscored" for stage in STAGES),
        unverified=(row["quotes"] or 0) - (row["quotes_found"] or 0),
        judge=row["judge"],
        rubric=rubric or None,
        cost=row["cost_usd"],
        unknown=tuple(
            code for code in CODES if not row[code] and readings[code] not in (None, "absent")
        ),
        read=any(readings[code] in ("absent", "cannot_tell") for code in BY_READING),
        presumed=int((row["presumed"] or 0) > 0),
        span=(low, high) if has_range else None,
        groups={
            name.removeprefix(GROUP): row[name] for name in group_columns if row[name] is not None
        },
        outcomes={
            name.removeprefix(OUTCOME).lower(): row[name]
            for name in outcome_columns
            if row[name] is not None
        },
    )
