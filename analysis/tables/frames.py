"""The run frame: its columns and types, read from and written to Parquet and CSV.

One row for each run; `cohorts` fills it.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

from ...atomic_files import atomic_write
from ...errors import InputError
from ...trajectories.models import STAGES
from ...trajectories.reading.json_bytes import MAX_COUNT
from ...trajectories.reading.table_errors import table_errors
from .codes_read import CODES, READ_SCHEMA, with_readings
from .spreadsheets import from_csv, to_csv

WEIGHTS = {"S1": 0.25, "S2": 0.15, "S3": 0.35, "S4": 0.15, "S5": 0.10}
"""Of the stages in the Agentic score (paper, stage weights)."""

PRESUMED = ("presumed", "S1_presumed", "S2_presumed", "S3_presumed")
"""Shares that are presumed because nobody judged them: of the weight of S1-S3, and of each stage's
criteria with a value. Null if there are none."""

_TEXT, _REAL, _WHOLE, _FLAG = pl.String, pl.Float64, pl.Int64, pl.Boolean
RUN_SCHEMA: dict[str, Any] = {
    "run_id": _TEXT,
    "path": _TEXT,
    "sha256": _TEXT,
    "agent": _TEXT,
    "model": _TEXT,
    "task": _TEXT,
    "track": _TEXT,
    "tier": _TEXT,
    "repeat": _WHOLE,
    "judge": _TEXT,
    "judge_members": _TEXT,
    "judge_served": _TEXT,
    "judge_temperature": _REAL,
    "judge_samples": _WHOLE,
    "judge_prompts": _TEXT,
    "first_verdict": _TEXT,
    "last_verdict": _TEXT,
    "rubric": _TEXT,
    "rubric_version": _TEXT,
    "rubric_sha256": _TEXT,
    "ambjudge": _TEXT,
    "like": _TEXT,
    "missing_policy": _TEXT,
    "breach_policy": _TEXT,
    "strict_evidence": _FLAG,
    **dict.fromkeys(STAGES, _REAL),
    **{f"{s}_method": _TEXT for s in STAGES},
    **{f"{s}_failure": _TEXT for s in STAGES},
    "agentic": _REAL,
    "agentic_lo": _REAL,
    "agentic_hi": _REAL,
    "task_score": _REAL,
    "task_from": _TEXT,
    "medal": _TEXT,
    "rating": _TEXT,
    "resolved": _FLAG,
    "progress": _REAL,
    "failure_kind": _TEXT,
    "pass_rate": _REAL,
    "shuffled": _REAL,
    "overall": _REAL,
    "overall_lo": _REAL,
    "overall_hi": _REAL,
    "read_share": _REAL,
    **dict.fromkeys(PRESUMED, _REAL),
    **READ_SCHEMA,
    "primary_failure": _TEXT,
    "completion": _REAL,
    "format_valid": _FLAG,
    "has_valid_results": _FLAG,
    "turns": _WHOLE,
    "calls": _WHOLE,
    "failed_calls": _WHOLE,
    "failed_steps": _WHOLE,
    "wall_time_s": _REAL,
    "input_tokens": _WHOLE,
    "output_tokens": _WHOLE,
    "cost_usd": _REAL,
    "submitted": _FLAG,
    "completed": _FLAG,
    "disqualified": _FLAG,
    "violations": _WHOLE,
    "ended": _TEXT,
    **{f"{s}_turns": _WHOLE for s in STAGES},
    **{f"{s}_calls": _WHOLE for s in STAGES},
    **{f"{s}_failed_calls": _WHOLE for s in STAGES},
    **{f"{s}_seconds": _REAL for s in STAGES},
    "quotes": _WHOLE,
    "quotes_found": _WHOLE,
    "contradictions": _WHOLE,
    "n_warnings": _WHOLE,
    "judge_calls": _WHOLE,
    "judge_input_tokens": _WHOLE,
    "judge_cached_tokens": _WHOLE,
    "judge_cache_write_tokens": _WHOLE,
    "judge_output_tokens": _WHOLE,
    "judge_cost_usd": _REAL,
}
OUTCOME = "outcome."
"""Before the names of columns that hold outcomes of another harness: numbers (yes 1, no 0) or
texts."""
GROUP = "group."
"""Before the names of columns that hold the scores (0-1) of groups of a rubric of one's own, which
are no S1-S5."""
FREE = ("S1_free", "S2_free", "S3_free")
"""Stage means over the criteria that no tier credits, comparable between tiers; criteria weigh the
same."""
FRAME_SCHEMA: dict[str, Any] = {**RUN_SCHEMA, **dict.fromkeys(FREE, _REAL)}

PARTS_SCHEMA: dict[str, Any] = {
    "run_id": pl.String,
    "judge": pl.String,
    "by": pl.String,
    "part": pl.String,
    "cases": pl.Int64,
    "value": pl.Float64,
}


def stage_columns(table: pl.DataFrame) -> list[str]:
    """Columns of stages, then of the groups of user rubrics.

    If there are groups, only stages that some run has a score of.
    """
    groups = [name for name in table.columns if name.startswith(GROUP)]
    return [*(s for s in STAGES if not groups or table[s].count()), *groups]


def conform(table: pl.DataFrame) -> pl.DataFrame:
    """A frame with the columns and types of FRAME_SCHEMA; missing ones are null, others stay.

    A frame without columns about what was read comes from an older version and is interpreted like
    its scorecards. InputError if `run_id` is missing or a column has values of another kind.
    """
    if "run_id" not in table.columns:
        raise InputError(
            "this table has no column run_id", "give a frame that ambjudge wrote, or scorecards"
        )
    columns = []
    for name, kind in FRAME_SCHEMA.items():
        if name in table.columns:
            columns.append(pl.col(name).cast(kind))
        else:
            columns.append(pl.lit(None, dtype=kind).alias(name))
    other_columns = [name for name in table.columns if name not in FRAME_SCHEMA]
    says_what_was_read = any(f"{code}_read" in table.columns for code in CODES)
    try:
        frame = table.select(*columns, *other_columns)
        return frame if says_what_was_read else with_readings(frame)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"a column holds values of another kind: {str(error).splitlines()[0]}",
            "export it again",
        ) from error


def with_total_tokens(table: pl.DataFrame) -> pl.DataFrame:
    """The frame with the tokens read and written in each run, null if one of the two is unknown."""
    total = pl.col("input_tokens") + pl.col("output_tokens")
    return table.with_columns(total.alias("total_tokens"))


def run_columns(table: pl.DataFrame) -> pl.DataFrame:
    """The columns of FRAME_SCHEMA, groups and outcomes; columns of this table alone are dropped."""
    named = [name for name in table.columns if name.startswith((OUTCOME, GROUP))]
    return table.select(*FRAME_SCHEMA, *named)


MAX_RUNS = 1_000_000
"""Rows of a Parquet table: a file of 20 kB can say that it has millions."""


def read_frame(path: Path) -> pl.DataFrame:
    """Read a frame from Parquet or CSV; NaN becomes null.

    InputError for numbers that are neither scores nor counts.
    """
    with table_errors(path, "not a readable table", "export it again"):
        if path.suffix == ".parquet":
            rows = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
            if rows > MAX_RUNS:
                raise InputError(
                    f"has {rows:,} rows, more than the {MAX_RUNS:,} that are read", "split it", path
                )
            table = pl.read_parquet(path, glob=False)
        else:
            table = from_csv(_csv(path))
    try:
        # As in JSON, NaN means unknown.
        frame = conform(table).with_columns(selectors.float().fill_nan(None))
    except InputError as error:
        raise InputError(error.message, error.hint, path) from error
    largest = frame.select(selectors.numeric().cast(pl.Float64).abs().max()).row(0, named=True)
    for name, value in largest.items():
        # The sums of squares of larger numbers would overflow.
        if value is not None and value > MAX_COUNT:
            raise InputError(
                f"column {name[:60]}: {value:g} is neither a score nor a count",
                "export it again",
                path,
            )
    return frame


def _csv(path: Path) -> pl.DataFrame:
    """A CSV file with its texts unchanged: a run called 007 or true is not a number."""
    names = pl.read_csv(path, n_rows=0).columns
    text_columns = {name: pl.String for name in names if RUN_SCHEMA.get(name) == _TEXT}
    return pl.read_csv(path, infer_schema_length=None, schema_overrides=text_columns)


def write_frame(table: pl.DataFrame, path: Path, *, below: Path | None = None) -> None:
    """Write a frame as Parquet or CSV (`to_csv`), by the suffix; InputError for another suffix.

    `below` as for `atomic_write`.
    """
    with atomic_write(path, below=below) as part:
        if path.suffix == ".parquet":
            # Writing bytes fails with an OSError; polars may raise any error.
            buffer = BytesIO()
            table.write_parquet(buffer)
            part.write_bytes(buffer.getbuffer())
        elif path.suffix == ".csv":
            part.write_text(to_csv(table), "utf-8", "backslashreplace", newline="")
        else:
            raise InputError("unknown kind of table", "use .parquet or .csv", path)
