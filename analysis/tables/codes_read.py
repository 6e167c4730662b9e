"""What is known of each error code of each run: present, absent, cannot tell, or not read.

`with_readings` is the one place where scorecards and frames that do not say it are interpreted. A
code that did not fire is False only where somebody could have seen it; everything else is null.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ...error_codes.paper_codes import BY_FACTS, BY_READING
from ...error_codes.paper_codes import CODES as CODES

CODE_SOURCES = ("judge", "detector", "fact", "score")
"""judge: a judge's tag; detector: read from trace or files; fact: of those, what stands whatever is
read; score: read off the score itself (circular)."""
READINGS = ("present", "absent", "cannot_tell", "not_read")

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
    """Fills READ_SCHEMA from fired codes (E1.., E1_judge.. True or False) and what cards say of
    them (E1_read, or null).

    A fired code is present. A row that says nothing of any code is of an older version: there the
    codes of BY_FACTS that did not fire are absent, the others not read. E1 to E5 that are null in
    such a row stay unknown.
    """
    table = table.with_columns(_old=pl.all_horizontal(pl.col(f"{c}_read").is_null() for c in CODES))
    old = pl.col("_old")
    fired = {c: pl.col(c).fill_null(False) for c in CODES}
    out = table.with_columns(
        pl.when(fired[c])
        .then(pl.lit("present"))
        .when(pl.col(f"{c}_read").is_not_null())
        .then(pl.col(f"{c}_read"))
        .when(old & pl.lit(c in BY_FACTS) & pl.col(c).is_not_null())
        .then(pl.lit("absent"))
        .otherwise(pl.lit("not_read"))
        .alias(f"{c}_read")
        for c in CODES
    )
    # Only a reader can say that a code which takes reading is absent, or that one cannot tell. Tags
    # on cards of older versions
    # are the ones that fired: nothing says which runs were read in vain.
    said = [pl.col(f"{c}_read").is_in(["absent", "cannot_tell"]) for c in BY_READING]
    tagged = [pl.col(f"{c}_judge").fill_null(False) for c in CODES]
    out = out.with_columns(diagnosed=~old & pl.any_horizontal(*said, *tagged)).drop("_old")
    known = {c: pl.col(f"{c}_read").is_in(["present", "absent"]) for c in CODES}
    looked = {
        source: pl.col("diagnosed") if source == "judge" else pl.lit(True)
        for source in CODE_SOURCES
    }
    every = pl.all_horizontal(known.values())
    return out.with_columns(
        *(pl.when(known[c]).then(pl.col(f"{c}_read") == "present").alias(c) for c in CODES),
        *(
            pl.when(pl.col(f"{c}_{source}").fill_null(False))
            .then(True)
            .when(known[c] & looked[source])
            .then(False)
            .alias(f"{c}_{source}")
            for c in CODES
            for source in CODE_SOURCES
        ),
        pl.when(every)
        .then(pl.sum_horizontal((pl.col(f"{c}_read") == "present").cast(pl.Int64) for c in CODES))
        .alias("n_codes"),
        pl.when(every).then(pl.col("code_pairs")).alias("code_pairs"),
    )


def was_read(code: str) -> pl.Expr:
    """Whether a run belongs to those that were read for a code, whatever was found.

    A code that takes reading and fired by a fact alone, in a run that nobody read, is known and yet
    no part of a sample: where only what fires is known, every known run has it.
    """
    return pl.lit(True) if code in BY_FACTS else pl.col("diagnosed").fill_null(True)


def sampled(code: str) -> pl.Expr:
    """E1..E5 where the run was read for the code, else null: what rates, effects and agreement are
    made of."""
    return pl.when(was_read(code)).then(pl.col(code)).alias(code)


def reading_counts(table: pl.DataFrame, by: tuple[str, ...] = ()) -> pl.DataFrame:
    """For each code (and group of `by`) how many runs are present, absent, cannot_tell and
    not_read.

    `read` counts the runs that were read for the code and told, `fired_unread` those where a fact
    shows a code that nobody read the run for.
    """
    keys: dict[str, Any] = {**dict.fromkeys(by, pl.String), "code": pl.String}
    counts = ("runs", "read", *READINGS, "fired_unread")
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
    schema = {**keys, **dict.fromkeys(counts, pl.Int64)}
    return (
        pl.concat(parts)
        .select(pl.col(name).cast(kind) for name, kind in schema.items())
        .sort(*by, "code")
    )
