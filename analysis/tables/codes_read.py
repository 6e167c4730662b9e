"""What is known of each error code of each run: present, absent, cannot tell, or not read.

`with_readings` alone interprets scorecards and frames that do not state it. A code that did not
fire is False only if somebody looked for it; otherwise it is null.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ...error_codes.paper_codes import BY_FACTS, BY_READING
from ...error_codes.paper_codes import CODES as CODES

CODE_SOURCES = ("judge", "detector", "fact", "score")
"""judge: a judge named it; detector: found in trace or files; fact: found by a detector whose
finding stands whatever a judge reads; score: derived from the score itself, which is circular."""
READINGS = ("present", "absent", "cannot_tell", "not_read", "withheld")

READ_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(CODES, pl.Boolean),
    **{f"{c}_{source}": pl.Boolean for c in CODES for source in CODE_SOURCES},
    **{f"{c}_read": pl.String for c in CODES},
    "diagnosed": pl.Boolean,
    "n_codes": pl.Int64,
    "code_pairs": pl.Int64,
}
"""Columns about codes of a run frame. E1..E5 and their sources are null where the code is not
known; `E1_read`.. are one of READINGS; `diagnosed`: a judge read the run for codes; `n_codes`
fired, and `code_pairs` fired with their stage, are null unless all five are known."""


def with_readings(table: pl.DataFrame) -> pl.DataFrame:
    """Fill the columns READ_SCHEMA.

    They follow from the fired codes (E1.., E1_judge.. True or False) and from what scorecards say
    of them (E1_read, or null). A fired code is present. A row that says nothing about any code
    comes from an older version: there the codes of BY_FACTS that did not fire are absent, the
    others not read; codes that are null in such a row stay unknown.
    """
    is_old = pl.all_horizontal(pl.col(f"{code}_read").is_null() for code in CODES)
    table = table.with_columns(_old=is_old)
    table = table.with_columns(_reading(code).alias(f"{code}_read") for code in CODES)
    table = table.with_columns(diagnosed=_was_diagnosed()).drop("_old")
    all_known = pl.all_horizontal(_is_known(code) for code in CODES)
    fired_count = pl.sum_horizontal(_is_present(code).cast(pl.Int64) for code in CODES)
    return table.with_columns(
        *(pl.when(_is_known(code)).then(_is_present(code)).alias(code) for code in CODES),
        *(_fired_by(code, source) for code in CODES for source in CODE_SOURCES),
        pl.when(all_known).then(fired_count).alias("n_codes"),
        pl.when(all_known).then(pl.col("code_pairs")).alias("code_pairs"),
    )


def _reading(code: str) -> pl.Expr:
    """What is known of a code, as one of READINGS."""
    stated = pl.col(f"{code}_read")
    decided_by_facts = pl.col("_old") & pl.lit(code in BY_FACTS) & pl.col(code).is_not_null()
    return (
        pl.when(pl.col(code).fill_null(False))
        .then(pl.lit("present"))
        .when(stated.is_not_null())
        .then(stated)
        .when(decided_by_facts)
        .then(pl.lit("absent"))
        .otherwise(pl.lit("not_read"))
    )


def _was_diagnosed() -> pl.Expr:
    """Whether a judge read the run for codes.

    Only a judge can say that a code which takes reading is absent, or that it cannot tell. Codes
    on scorecards of older versions are the fired ones: nothing says which runs were read in vain.
    """
    judged = [pl.col(f"{code}_read").is_in(["absent", "cannot_tell"]) for code in BY_READING]
    fired = [pl.col(f"{code}_judge").fill_null(False) for code in CODES]
    return ~pl.col("_old") & pl.any_horizontal(*judged, *fired)


def _is_known(code: str) -> pl.Expr:
    return pl.col(f"{code}_read").is_in(["present", "absent"])


def _is_present(code: str) -> pl.Expr:
    return pl.col(f"{code}_read") == "present"


def _fired_by(code: str, source: str) -> pl.Expr:
    """Whether a source fired a code: null if the code is unknown or the source did not look."""
    name = f"{code}_{source}"
    looked = pl.col("diagnosed") if source == "judge" else pl.lit(True)
    return (
        pl.when(pl.col(name).fill_null(False))
        .then(True)
        .when(_is_known(code) & looked)
        .then(False)
        .alias(name)
    )


def was_read(code: str) -> pl.Expr:
    """Whether a run was read for a code, whatever the result.

    A code that takes reading and fired by a fact alone, in a run that nobody read, is known, but
    the run is not part of a sample: where only firing makes a code known, every known run has it.
    """
    if code in BY_FACTS:
        return pl.lit(True)
    return pl.col("diagnosed").fill_null(True)


def sampled(code: str) -> pl.Expr:
    """E1..E5 of runs that were read for the code, else null; for rates, effects and agreement."""
    return pl.when(was_read(code)).then(pl.col(code)).alias(code)


def reading_counts(table: pl.DataFrame, by: tuple[str, ...] = ()) -> pl.DataFrame:
    """Count the runs of each reading, for each code and each group of the columns `by`.

    `read`: runs that were read for the code with a result; `fired_unread`: runs in which a fact
    shows the code although nobody read them for it.
    """
    parts = [
        table.group_by(*by, pl.lit(code).alias("code"), maintain_order=True).agg(
            runs=pl.len(),
            read=sampled(code).is_not_null().sum(),
            **{
                name: (pl.col(f"{code}_read").fill_null("not_read") == name).sum()
                for name in READINGS
            },
            fired_unread=(pl.col(code).fill_null(False) & ~was_read(code)).sum(),
        )
        for code in CODES
    ]
    counts = ("runs", "read", *READINGS, "fired_unread")
    schema = {
        **dict.fromkeys(by, pl.String),
        "code": pl.String,
        **dict.fromkeys(counts, pl.Int64),
    }
    typed = pl.concat(parts).select(pl.col(name).cast(kind) for name, kind in schema.items())
    return typed.sort(*by, "code")
