"""Which runs people should label: a stratified sample with known inclusion probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.human_labels import Labels, Sampling
from .run_arrays import code_columns, select_runs

SEED = 20260601
RARE_FIRST = ("E1", "E2", "E4", "E3", "E5")
UNREAD = "not read"
"""The stratum of runs without a fired code that were not read for all five: nobody knows that they
have none."""


def label_plan(
    table: pl.DataFrame,
    budget: int = 300,
    *,
    target: int = 40,
    already: Sequence[str] = (),
    seed: int = SEED,
    source: str = "any",
) -> pl.DataFrame:
    """Which runs to label within a budget: stratified by tags, rare codes first, with inclusion
    probabilities.

    A run belongs to the stratum of its rarest tag (order E1, E2, E4, E3, E5, not read, none). Each
    stratum gets up to `target` runs, the rest goes in proportion to size. Columns: order, run_id,
    agent, task, tier, stratum, stratum_size, probability (weigh a label by 1/probability). Runs in
    `already` are labelled and left out.
    """
    runs, _ = select_runs(table)
    runs = runs.filter(~pl.col("run_id").is_in(list(already)))
    columns = code_columns(runs, source)
    unread = pl.any_horizontal(columns[code].is_null() for code in RARE_FIRST)
    stratum = pl.when(unread).then(pl.lit(UNREAD)).otherwise(pl.lit("none"))
    for code in reversed(RARE_FIRST):
        stratum = pl.when(columns[code].fill_null(False)).then(pl.lit(code)).otherwise(stratum)
    runs = runs.with_columns(stratum=stratum)
    names = [*RARE_FIRST, UNREAD, "none"]
    sizes = {name: runs.filter(pl.col("stratum") == name).height for name in names}
    budget = max(0, min(budget, runs.height))
    wanted = {name: min(size, target) for name, size in sizes.items()}
    if sum(wanted.values()) > budget:
        scale = budget / sum(wanted.values())
        wanted = {name: math.floor(n * scale) for name, n in wanted.items()}
    left = budget - sum(wanted.values())
    while left > 0:
        room = {name: sizes[name] - wanted[name] for name in names if sizes[name] > wanted[name]}
        share = {
            name: min(room[name], max(1, math.floor(left * room[name] / sum(room.values()))))
            for name in room
        }
        for name in sorted(share, key=lambda s: -share[s]):
            give = min(share[name], left)
            wanted[name] += give
            left -= give
    rng = np.random.default_rng(seed)
    parts = []
    for name in names:
        group = runs.filter(pl.col("stratum") == name).sort("run_id")
        if wanted[name]:
            picked = np.sort(rng.choice(group.height, wanted[name], replace=False))
            parts.append(
                group[picked.tolist()].select(
                    "run_id",
                    "agent",
                    "task",
                    "tier",
                    "stratum",
                    pl.lit(sizes[name]).alias("stratum_size"),
                    pl.lit(wanted[name] / sizes[name]).alias("probability"),
                )
            )
    schema: dict[str, Any] = {
        "order": pl.UInt32,
        "run_id": pl.String,
        "agent": pl.String,
        "task": pl.String,
        "tier": pl.String,
        "stratum": pl.String,
        "stratum_size": pl.Int32,
        "probability": pl.Float64,
    }
    if not parts:
        return pl.DataFrame(schema=schema)
    plan = pl.concat(parts)
    # A random order, so that stopping early leaves a sample of each stratum.
    shuffled: pl.DataFrame = plan[rng.permutation(plan.height).tolist()].with_row_index(
        "order", offset=1
    )
    return shuffled.select(pl.col(name).cast(kind) for name, kind in schema.items())


def drawn_labels(plan: pl.DataFrame, annotator: str) -> list[Labels]:
    """A label plan as labels still to be made, in its order: each says how its run was drawn."""
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
