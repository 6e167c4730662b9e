"""Judges against one another: how far two judges of the same runs agree, item by item."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import polars as pl

from .codes_read import CODES, sampled
from .design import UNKNOWN
from .frames import Cohort
from .raters import AGREEMENT_SCHEMA, agreement_of

PAIR_SCHEMA: dict[str, Any] = {"first": pl.String, "second": pl.String, **AGREEMENT_SCHEMA}
"""The first judge stands where AGREEMENT_SCHEMA has the human."""


def judge_pairs(cards: Cohort) -> pl.DataFrame:
    """Agreement of every pair of judges that scored the same runs (PAIR_SCHEMA, one row a coefficient).

    Runs are matched by id, criteria by rubric and name; only criteria that both judges scored count, and runs that both read
    for a code. `sensitivity` and
    `specificity` read the first judge as the truth.
    """
    task = pl.concat_str(pl.col("track").fill_null(UNKNOWN), pl.col("task").fill_null(UNKNOWN), separator="/")
    runs = cards.runs.unique(["run_id", "judge"], keep="last", maintain_order=True).with_columns(task_key=task)
    scored = cards.criteria.filter((pl.col("status").cast(pl.String) == "scored") & pl.col("value").is_not_null())
    scored = scored.with_columns(pl.col("criterion").cast(pl.String)).unique(
        ["run_id", "judge", "rubric", "criterion"], keep="last", maintain_order=True
    )
    judges = sorted(str(judge) for judge in runs["judge"].drop_nulls().unique())
    rows: list[dict[str, Any]] = []
    for first, second in combinations(judges, 2):
        a, b = (runs.filter(pl.col("judge") == judge) for judge in (first, second))
        names = a.select("run_id", "task_key")
        x, y = (scored.filter(pl.col("judge") == judge) for judge in (first, second))
        both = x.join(y, on=["run_id", "rubric", "criterion"], suffix="_second").join(names, on="run_id")
        for (item,), part in sorted(both.group_by("criterion"), key=lambda pair: str(pair[0][0])):
            tasks = part["task_key"].to_list()
            found = agreement_of(part["value"].to_numpy(), part["value_second"].to_numpy(), tasks)
            rows += [{"first": first, "second": second, "item": str(item), "kind": "criterion", **row} for row in found]
        read = [sampled(code) for code in CODES]
        codes = a.select("run_id", "task_key", *read).join(b.select("run_id", *read), on="run_id", suffix="_second")
        for code in CODES:
            part = codes.drop_nulls([code, f"{code}_second"])
            values = [part[name].cast(pl.Float64).to_numpy() for name in (code, f"{code}_second")]
            found = agreement_of(values[0], values[1], part["task_key"].to_list())
            rows += [{"first": first, "second": second, "item": code, "kind": "code", **row} for row in found]
    return pl.DataFrame(rows, schema=PAIR_SCHEMA)
