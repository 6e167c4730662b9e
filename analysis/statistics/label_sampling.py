"""Which runs people should label: a stratified sample with known inclusion probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.human_labels import Labels, Sampling
from .run_arrays import code_columns, select_runs

SEED = 20260601
RARE_FIRST = ("E1", "E2", "E4", "E3", "E5")
UNREAD = "not read"
"""The stratum of runs that have no fired code but were not read for all five: some may have one."""
NO_CODE = "none"
STRATA = (*RARE_FIRST, UNREAD, NO_CODE)

LABEL_PLAN_SCHEMA: dict[str, Any] = {
    "order": pl.UInt32,
    "run_id": pl.String,
    "agent": pl.String,
    "task": pl.String,
    "tier": pl.String,
    "stratum": pl.String,
    "stratum_size": pl.Int32,
    "probability": pl.Float64,
}


def label_plan(
    table: pl.DataFrame,
    budget: int = 300,
    *,
    target: int = 40,
    already: Sequence[str] = (),
    seed: int = SEED,
    source: str = "any",
) -> pl.DataFrame:
    """A stratified random sample of runs to label, in a random order (LABEL_PLAN_SCHEMA).

    A run belongs to the stratum of its rarest code (STRATA, in this order). Each stratum gets up to
    `target` runs, the remaining budget is divided in proportion to size. `probability` is the
    inclusion probability: weight a label by 1 / probability. Runs in `already` are labelled and
    left out.
    """
    runs, _ = select_runs(table)
    runs = runs.filter(~pl.col("run_id").is_in(list(already)))
    runs = runs.with_columns(stratum=_stratum(runs, source))
    sizes = {name: runs.filter(pl.col("stratum") == name).height for name in STRATA}
    allocation = _allocate(sizes, max(0, min(budget, runs.height)), target)
    rng = np.random.default_rng(seed)
    parts = []
    for name in STRATA:
        n_drawn = allocation[name]
        if not n_drawn:
            continue
        stratum = runs.filter(pl.col("stratum") == name).sort("run_id")
        indices = np.sort(rng.choice(stratum.height, n_drawn, replace=False))
        part = stratum[indices.tolist()].select(
            "run_id",
            "agent",
            "task",
            "tier",
            "stratum",
            pl.lit(sizes[name]).alias("stratum_size"),
            pl.lit(n_drawn / sizes[name]).alias("probability"),
        )
        parts.append(part)
    if not parts:
        return pl.DataFrame(schema=LABEL_PLAN_SCHEMA)
    plan = pl.concat(parts)
    # In a random order, so that whoever stops early leaves a sample of each stratum.
    shuffled: pl.DataFrame = plan[rng.permutation(plan.height).tolist()]
    shuffled = shuffled.with_row_index("order", offset=1)
    return shuffled.select(pl.col(name).cast(kind) for name, kind in LABEL_PLAN_SCHEMA.items())


def _stratum(runs: pl.DataFrame, source: str) -> pl.Expr:
    """The rarest fired code of each run, else UNREAD or NO_CODE."""
    fired = code_columns(runs, source)
    any_unread = pl.any_horizontal(fired[code].is_null() for code in RARE_FIRST)
    stratum = pl.when(any_unread).then(pl.lit(UNREAD)).otherwise(pl.lit(NO_CODE))
    for code in reversed(RARE_FIRST):
        stratum = pl.when(fired[code].fill_null(False)).then(pl.lit(code)).otherwise(stratum)
    return stratum


def _allocate(sizes: Mapping[str, int], budget: int, target: int) -> dict[str, int]:
    """Runs to draw from each stratum: up to `target` each, then in proportion to what remains."""
    allocation = {name: min(size, target) for name, size in sizes.items()}
    total = sum(allocation.values())
    if total > budget:
        scale = budget / total
        allocation = {name: math.floor(n * scale) for name, n in allocation.items()}
    remaining = budget - sum(allocation.values())
    while remaining > 0:
        room = {
            name: size - allocation[name] for name, size in sizes.items() if size > allocation[name]
        }
        total_room = sum(room.values())
        shares = {
            name: min(n, max(1, math.floor(remaining * n / total_room))) for name, n in room.items()
        }
        for name in sorted(shares, key=lambda name: -shares[name]):
            n_more = min(shares[name], remaining)
            allocation[name] += n_more
            remaining -= n_more
    return allocation


def drawn_labels(plan: pl.DataFrame, annotator: str) -> list[Labels]:
    """Empty labels for the runs of a label plan, in its order; each says how its run was drawn."""
    return [
        Labels(
            run=row["run_id"],
            annotator=annotator,
            drawn=Sampling(
                probability=row["probability"], stratum=row["stratum"], size=row["stratum_size"]
            ),
        )
        for row in plan.iter_rows(named=True)
    ]
