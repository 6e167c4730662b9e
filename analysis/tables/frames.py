"""The run frame: one row a run, its columns and types, read from and written to Parquet and CSV
(`cohorts` fills it)."""

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
"""What is presumed, as nobody read it: of the weight of S1-S3, and by stage of its criteria with a
value. Null without any."""

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
    "rubric": _TEXT,
    "rubric_version": _TEXT,
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
    """Those of S1-S5 that some run has a score of (all, where no run has any group of its own),
    then the groups of rubrics of one's own."""
    groups = [name for name in table.columns if name.startswith(GROUP)]
    return [*(s for s in STAGES if not groups or table[s].count()), *groups]


def conform(table: pl.DataFrame) -> pl.DataFrame:
    """The frame with the columns and types of a run frame (FRAME_SCHEMA): missing ones null, others
    (human codes, say) kept.

    A frame that says nothing of what was read is of an older version and interpreted as such cards
    are. Raises InputError when `run_id` is absent or a column has values of another kind.
    """
    if "run_id" not in table.columns:
        raise InputError(
            "this table has no column run_id", "give a frame that ambjudge wrote, or scorecards"
        )
    try:
        out = table.select(
            *(
                (
                    pl.col(name).cast(kind)
                    if name in table.columns
                    else pl.lit(None, dtype=kind).alias(name)
                )
                for name, kind in FRAME_SCHEMA.items()
            ),
            *(name for name in table.columns if name not in FRAME_SCHEMA),
        )
        return out if any(f"{c}_read" in table.columns for c in CODES) else with_readings(out)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"a column holds values of another kind: {str(error).splitlines()[0]}",
            "export it again",
        ) from error


def run_columns(table: pl.DataFrame) -> pl.DataFrame:
    """A run frame without the columns that only this table has: those of FRAME_SCHEMA, groups and
    outcomes of the runs."""
    return table.select(
        *FRAME_SCHEMA, *(name for name in table.columns if name.startswith((OUTCOME, GROUP)))
    )


MAX_RUNS = 1_000_000
"""Rows of a Parquet table: a file of 20 kB can say that it has millions."""


def read_frame(path: Path) -> pl.DataFrame:
    """A frame from Parquet or CSV; NaN is null. InputError for numbers that are neither scores nor
    counts."""
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
        # as in JSON: not known
        found = conform(table).with_columns(selectors.float().fill_nan(None))
    except InputError as error:
        raise InputError(error.message, error.hint, path) from error
    largest = found.select(selectors.numeric().cast(pl.Float64).abs().max()).row(0, named=True)
    for name, value in largest.items():
        # sums of squares of what is no score would overflow
        if value is not None and value > MAX_COUNT:
            raise InputError(
                f"column {name[:60]}: {value:g} is neither a score nor a count",
                "export it again",
                path,
            )
    return found


def _csv(path: Path) -> pl.DataFrame:
    """A CSV file, texts as they stand: a run called 007 or true is no number."""
    texts = {name: pl.String for name, kind in RUN_SCHEMA.items() if kind == _TEXT}
    names = pl.read_csv(path, n_rows=0).columns
    return pl.read_csv(
        path, infer_schema_length=None, schema_overrides={n: texts[n] for n in names if n in texts}
    )


def write_frame(table: pl.DataFrame, path: Path) -> None:
    """The frame as Parquet or CSV, by the suffix; CSV as `to_csv` says. Raises InputError on
    another suffix."""
    with atomic_write(path) as part:
        if path.suffix == ".parquet":
            # what goes wrong with a file is then an OSError, with polars it may be any error
            held = BytesIO()
            table.write_parquet(held)
            part.write_bytes(held.getbuffer())
        elif path.suffix == ".csv":
            part.write_text(to_csv(table), "utf-8", "backslashreplace", newline="")
        else:
            raise InputError("unknown kind of table", "use .parquet or .csv", path)
