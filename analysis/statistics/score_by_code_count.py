"""How scores fall with the number of fired codes (the cliff), and how often runs recover from
several codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.measures import wilson
from ..tables.codes_read import CODES
from .interval_estimates import MIN_RUNS, Estimate, Floats, KeyedEstimates, t_estimate, tidy
from .jackknife import (
    Jackknifed,
    cross_products,
    delete_one_regression,
    demean,
    estimates_by_population,
    group_sums,
    independent_columns,
    jackknife_of_sums,
    jackknife_variance,
    ratio_of_sums,
)
from .overlap_weighting import circular_codes
from .run_arrays import RunArrays, build_arrays

GROUPS = ("0", "1", "2", "3+")


def _adjusted(d: RunArrays, dummies: Floats) -> Jackknifed | None:
    """Drops (%) of each dummy's group against no code, within cells: b_j / (mean of y had none
    fired)."""
    if d.n == 0 or not dummies.any():
        return None
    n_clusters = len(d.tasks)
    products = cross_products(
        demean(dummies, d.cell, d.n_cells),
        demean(d.y[:, None], d.cell, d.n_cells),
        d.task,
        n_clusters,
    )
    kept = independent_columns(products.xx.sum(0))
    if not kept.any():
        return None
    columns = np.flatnonzero(kept)
    full, deleted = delete_one_regression(
        type(products)(products.xx[:, columns][:, :, columns], products.xy[:, columns])
    )
    sums = group_sums(np.column_stack([d.y, dummies[:, columns], np.ones(d.n)]), d.task, n_clusters)

    def percent(b: Floats, total: Floats) -> Floats:
        mean = total / total[..., -1:]
        base = mean[..., 0] - (b * mean[..., 1:-1]).sum(-1)
        return np.asarray(100 * b / base[..., None])

    with np.errstate(divide="ignore", invalid="ignore"):
        k = dummies.shape[1]
        value, left = np.full(k, np.nan), np.full((n_clusters, k), np.nan)
        value[columns] = percent(full[:, 0], sums.sum(0))
        left[:, columns] = percent(deleted[:, :, 0], sums.sum(0) - sums)
        se = np.sqrt(jackknife_variance(value, left))
    return Jackknifed(value, se, np.full(k, np.nan), left, n_clusters, 0.0)


def cliff(
    table: pl.DataFrame, outcome: str = "overall", *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """Mean score by number of fired codes, and the drop in percent of the score without codes.

    `kind`: mean (outcome's units), drop_raw and drop_within_cell (%, against 0 codes; the latter
    compares repeats of the same agent, task and tier), step (points from one group to the next:
    cliff or slope), single_raw and single_within_cell (%, runs with exactly that one code). `share`
    is the group's share of runs. `codes` are those that were counted: all five on the runs that
    were read for all, where these are at least half of the runs read for any; else those that were.
    """
    d = build_arrays(table, outcome, source=source, prepare=prepare)
    fired = d.codes.sum(1)
    groups = np.column_stack([fired == 0, fired == 1, fired == 2, fired >= 3]).astype(float)
    several = (fired >= 2).astype(float)
    single = d.codes & (fired == 1)[:, None]
    keys: dict[str, Any] = {
        "kind": pl.String,
        "group": pl.String,
        "codes": pl.String,
        "runs": pl.Int64,
        "share": pl.Float64,
    }
    counted, among = ", ".join(d.code_names), d.among_codes()
    unread = None if d.n or not d.n_scored else f"no run was read for codes ({d.n_scored} runs)"
    rows: KeyedEstimates = []
    circular = circular_codes(d)
    notes = (
        *d.notes,
        *(f"{code} is read off the score: its part of the cliff is circular" for code in circular),
    )

    def add(
        kind: str,
        group: str,
        runs: int | None,
        label: str,
        j: Jackknifed | None,
        at: int,
        missing: str | None,
    ) -> None:
        key = {
            "kind": kind,
            "group": group,
            "codes": counted,
            "runs": runs,
            "share": _share(runs, d.n),
        }
        missing = unread or missing
        method = "jackknife over tasks" + ("; cell fixed effects" if kind.endswith("cell") else "")
        if j is None or missing:
            reason = missing or "the group never differs from others within a cell"
            none = Estimate(
                label, "new", None, n=d.n, n_clusters=d.n_tasks, method=method, reason=reason
            )
            rows.append((key, none))
            return
        limits = {"mean": d.limits, "step": d.difference_limits}.get(
            kind, (-100.0 if d.limits[0] >= 0 else -np.inf, np.inf)
        )
        new, same = estimates_by_population(
            label, j, at, n=d.n, notes=notes, test=kind != "mean", limits=limits
        )
        rows.append((key, replace(new, method=method)))
        if j.df_same:
            rows.append((key, same))

    counts = groups.sum(0).astype(int)

    def means(s: Floats) -> Floats:
        return np.asarray(s[..., :4] / s[..., 4:8])

    def drops(s: Floats) -> Floats:
        base = s[..., 0] / s[..., 4]
        one, more = s[..., 1] / s[..., 5], s[..., 2:4].sum(-1) / s[..., 6:8].sum(-1)
        return np.stack([100 * (one / base - 1), 100 * (more / base - 1)], -1)

    def steps(s: Floats) -> Floats:
        return np.asarray(np.diff(means(s), axis=-1))

    x = np.column_stack([groups * d.y[:, None], groups])
    mean, drop, step = (
        (jackknife_of_sums(x, f, d.task, d.cell) if d.n else None) for f in (means, drops, steps)
    )
    enough = [None if c else "no such runs" for c in counts]
    for at, group in enumerate(GROUPS):
        add(
            "mean",
            group,
            int(counts[at]),
            f"mean {outcome} of runs with {group} codes{among}",
            mean,
            at,
            enough[at],
        )
    more = int(several.sum())
    adjusted = _adjusted(d, np.column_stack([groups[:, 1], several]))
    for at, (group, runs) in enumerate((("1", int(counts[1])), ("2+", more))):
        missing = _too_few(int(counts[0]), runs)
        label = f"drop of {outcome} at {group} codes against none{among}, %"
        add("drop_raw", group, runs, label, drop, at, missing)
        add("drop_within_cell", group, runs, label, adjusted, at, missing)
    for at in range(3):
        pair = f"{GROUPS[at]} to {GROUPS[at + 1]}"
        label = f"step of mean {outcome} from {GROUPS[at]} to {GROUPS[at + 1]} codes{among}, points"
        add(
            "step",
            pair,
            int(counts[at + 1]),
            label,
            step,
            at,
            _too_few(int(counts[at]), int(counts[at + 1]), pair),
        )
    alone = single.sum(0)
    dummies = np.column_stack([single.astype(float), several])
    within = _adjusted(d, dummies)
    for code in CODES:
        label = f"drop of {outcome} with {code} alone against no code{among}, %"
        if code not in d.code_names:
            for kind in ("single_raw", "single_within_cell"):
                add(kind, code, None, label, None, 0, f"{d.reading_count(code)}: not counted")
            continue
        k = d.code_names.index(code)
        missing = _too_few(int(counts[0]), int(alone[k]))

        def one(s: Floats) -> Floats:
            return np.asarray(100 * (s[..., 2:3] / s[..., 3:4] / (s[..., 0:1] / s[..., 1:2]) - 1))

        columns = np.column_stack(
            [groups[:, 0] * d.y, groups[:, 0], single[:, k] * d.y, single[:, k]]
        )
        raw = jackknife_of_sums(columns, one, d.task, d.cell) if d.n else None
        add("single_raw", code, int(alone[k]), label, raw, 0, missing)
        add("single_within_cell", code, int(alone[k]), label, within, k, missing)
    return tidy(rows, keys)


def _share(runs: int | None, n: int) -> float | None:
    return runs / n if n and runs is not None else None


def _too_few(clean: int, fired: int, groups: str = "0 to some") -> str | None:
    if min(clean, fired) >= MIN_RUNS:
        return None
    return (
        f"too few runs to compare {groups} codes: {clean} and {fired}; {MIN_RUNS} of each are"
        " needed"
    )


def completion_arrays(
    table: pl.DataFrame, *, source: str = "any", prepare: bool = True
) -> RunArrays:
    """The runs that recovery speaks of, with the codes that were counted; the outcome is completion
    (0 or 1)."""
    known = table.with_columns(pl.col("completed").cast(pl.Float64).alias("_completed"))
    return build_arrays(known, "_completed", source=source, keep_breach=True, prepare=prepare)


def recovery(table: pl.DataFrame, *, source: str = "any", prepare: bool = True) -> pl.DataFrame:
    """Share of runs with two or more codes that still reach a scored submission (0-1), all agents
    and each one.

    Runs whose completion is unknown are left out. Agents with more codes are seen on harder runs:
    read with care. `codes` are those that were counted, as in `cliff`.
    """
    d = completion_arrays(table, source=source, prepare=prepare)
    fired = d.codes.sum(1)
    keys: dict[str, Any] = {
        "agent": pl.String,
        "codes": pl.String,
        "runs": pl.Int64,
        "codes_per_run": pl.Float64,
    }
    rows: KeyedEstimates = []
    label = f"P(scored submission | two or more codes{d.among_codes()})"

    for name, rows_of in [
        ("(all)", np.ones(d.n, dtype=bool)),
        *((a, d.agent == i) for i, a in enumerate(d.agents)),
    ]:
        hit = rows_of & (fired >= 2)
        runs, success = int(hit.sum()), float(d.y[hit].sum())
        each = float(fired[rows_of].mean()) if rows_of.any() else None
        key = {"agent": name, "codes": ", ".join(d.code_names), "runs": runs, "codes_per_run": each}
        if not runs:
            reason = f"no run has two codes{d.among_codes()}"
            if d.n < d.n_scored:
                reason += f" ({d.n} of {d.n_scored} runs were read)"
            rows.append((key, Estimate(label, "new", None, n=0, reason=reason, warnings=d.notes)))
            continue
        x = np.column_stack([d.y[hit], np.ones(runs)])
        j = jackknife_of_sums(x, ratio_of_sums, d.task[hit], d.cell[hit])
        est = t_estimate(
            label,
            "new",
            j.value[0],
            j.se_new[0],
            j.n_clusters - 1,
            n=runs,
            n_clusters=j.n_clusters,
            method="jackknife over tasks",
            warnings=d.notes,
            test=False,
            limits=(0.0, 1.0),
        )
        bounds = wilson(success, runs)
        if (est.se is None or est.se == 0 or runs < 30) and bounds:
            est = Estimate(
                label,
                "new",
                success / runs,
                None,
                *bounds,
                n=runs,
                n_clusters=j.n_clusters,
                method="Wilson interval: runs as independent",
                reason=None,
                warnings=(
                    *d.notes,
                    "few runs or no spread between tasks: tasks are not accounted for",
                ),
            )
        rows.append((key, est))
    return tidy(rows, keys)
