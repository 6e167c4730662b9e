"""Scores by the number of fired codes (the cliff), and recovery from several codes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.measures import wilson
from ..tables.codes_read import CODES
from .interval_estimates import (
    MIN_DF,
    MIN_RUNS,
    SHARE_LIMITS,
    Bools,
    Estimate,
    Floats,
    KeyedEstimates,
    t_estimate,
    tidy,
)
from .jackknife import (
    CrossProducts,
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
"""Groups of runs by their number of fired codes."""
MIN_JACKKNIFE_RUNS = 30
"""With fewer runs a recovery rate has Wilson's interval."""


def cliff(
    table: pl.DataFrame, outcome: str = "overall", *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """Mean score by number of fired codes, and the drop in percent of the score without codes.

    `kind`: mean (outcome's units); drop_raw and drop_within_cell (%, against 0 codes; the latter
    compares repeats of the same agent, task and tier); step (points from one group to the next:
    cliff or slope); single_raw and single_within_cell (%, runs with exactly that one code).
    `share`: the group's share of runs. `codes`: the codes that are counted. These are all five if
    at least half of the runs that were read for any code were read for all; else as many as were
    read together in that share (`run_arrays.jointly_read`).
    """
    runs = build_arrays(table, outcome, source=source, prepare=prepare)
    n_codes = runs.codes.sum(1)
    in_group = np.column_stack([n_codes == 0, n_codes == 1, n_codes == 2, n_codes >= 3])
    in_group = in_group.astype(float)
    counts = in_group.sum(0).astype(int)
    rows = _CliffRows(runs)
    _add_means(rows, in_group, counts)
    _add_drops(rows, in_group, counts)
    _add_steps(rows, in_group, counts)
    _add_single_codes(rows, in_group, counts)
    keys: dict[str, Any] = {
        "kind": pl.String,
        "group": pl.String,
        "codes": pl.String,
        "runs": pl.Int64,
        "share": pl.Float64,
    }
    return tidy(rows.rows, keys)


@dataclass
class _CliffRows:
    """The rows of the cliff table as they are added."""

    runs: RunArrays
    rows: KeyedEstimates = field(default_factory=list)

    def add(
        self,
        kind: str,
        group: str,
        *,
        n_in_group: int | None,
        label: str,
        jackknifed: Jackknifed | None,
        index: int,
        reason: str | None,
    ) -> None:
        """Add statistic `index` of `jackknifed`, or a row with the `reason` if it is undefined."""
        runs = self.runs
        share = None
        if n_in_group is not None and runs.n:
            share = n_in_group / runs.n
        key = {
            "kind": kind,
            "group": group,
            "codes": ", ".join(runs.code_names),
            "runs": n_in_group,
            "share": share,
        }
        if runs.n_scored and not runs.n:
            reason = f"none of the {runs.n_scored} runs was read for codes"
        method = "jackknife over tasks"
        if kind.endswith("cell"):
            method += "; cell fixed effects"
        if jackknifed is None or reason:
            reason = reason or "the group never differs from others within a cell"
            est = Estimate(
                label,
                "new",
                None,
                n=runs.n,
                n_clusters=runs.n_tasks,
                method=method,
                reason=reason,
            )
            self.rows.append((key, est))
            return
        new, same = estimates_by_population(
            label,
            jackknifed,
            index,
            n=runs.n,
            notes=self._notes(),
            test=kind != "mean",
            limits=self._limits(kind),
        )
        self.rows.append((key, replace(new, method=method)))
        if jackknifed.df_same:
            self.rows.append((key, same))

    def _notes(self) -> tuple[str, ...]:
        circular = [
            f"{code} is derived from the score, so its part of the cliff is circular"
            for code in circular_codes(self.runs)
        ]
        return (*self.runs.notes, *circular)

    def _limits(self, kind: str) -> tuple[float, float]:
        if kind == "mean":
            return self.runs.limits
        if kind == "step":
            return self.runs.difference_limits
        # A score that cannot be negative drops by 100 % at most.
        return (-100.0 if self.runs.limits[0] >= 0 else -math.inf, math.inf)


def _group_statistic(
    rows: _CliffRows, in_group: Floats, statistic: Callable[[Floats, Floats], Floats]
) -> Jackknifed | None:
    """Jackknife a statistic of the four groups; None without runs.

    `statistic(totals, counts)` gets the sums of scores and the numbers of runs (each ... x 4).
    """
    runs = rows.runs
    if not runs.n:
        return None

    def statistic_of_sums(sums: Floats) -> Floats:
        return np.asarray(statistic(sums[..., :4], sums[..., 4:]))

    sums = np.column_stack([in_group * runs.y[:, None], in_group])
    return jackknife_of_sums(sums, statistic_of_sums, runs.task, runs.cell)


def _add_means(rows: _CliffRows, in_group: Floats, counts: Any) -> None:
    """Add the mean score of each group."""

    def means(total: Floats, count: Floats) -> Floats:
        return total / count

    jackknifed = _group_statistic(rows, in_group, means)
    for index, group in enumerate(GROUPS):
        n = int(counts[index])
        label = f"mean {rows.runs.outcome} of runs with {group} codes{rows.runs.among_codes()}"
        reason = None if n else "no run is in this group"
        rows.add(
            "mean",
            group,
            n_in_group=n,
            label=label,
            jackknifed=jackknifed,
            index=index,
            reason=reason,
        )


def _add_drops(rows: _CliffRows, in_group: Floats, counts: Any) -> None:
    """Add the drops with one code and with two or more against none, raw and within cells."""

    def drops(total: Floats, count: Floats) -> Floats:
        base = total[..., 0] / count[..., 0]
        one = total[..., 1] / count[..., 1]
        several = total[..., 2:].sum(-1) / count[..., 2:].sum(-1)
        return np.stack([100 * (one / base - 1), 100 * (several / base - 1)], -1)

    runs = rows.runs
    several = in_group[:, 2] + in_group[:, 3]
    raw = _group_statistic(rows, in_group, drops)
    within_cell = _drops_within_cells(runs, np.column_stack([in_group[:, 1], several]))
    sizes = {"1": int(counts[1]), "2+": int(several.sum())}
    for index, (group, n) in enumerate(sizes.items()):
        reason = _too_few_reason(int(counts[0]), n)
        label = f"drop of {runs.outcome} at {group} codes against none{runs.among_codes()}, %"
        for kind, jackknifed in (("drop_raw", raw), ("drop_within_cell", within_cell)):
            rows.add(
                kind,
                group,
                n_in_group=n,
                label=label,
                jackknifed=jackknifed,
                index=index,
                reason=reason,
            )


def _add_steps(rows: _CliffRows, in_group: Floats, counts: Any) -> None:
    """Add the differences of the means of neighbouring groups."""

    def steps(total: Floats, count: Floats) -> Floats:
        return np.diff(total / count, axis=-1)

    jackknifed = _group_statistic(rows, in_group, steps)
    for index in range(len(GROUPS) - 1):
        pair = f"{GROUPS[index]} to {GROUPS[index + 1]}"
        n_before, n_after = int(counts[index]), int(counts[index + 1])
        label = (
            f"step of mean {rows.runs.outcome} from {pair} codes{rows.runs.among_codes()}, points"
        )
        reason = _too_few_reason(n_before, n_after, pair)
        rows.add(
            "step",
            pair,
            n_in_group=n_after,
            label=label,
            jackknifed=jackknifed,
            index=index,
            reason=reason,
        )


def _add_single_codes(rows: _CliffRows, in_group: Floats, counts: Any) -> None:
    """Add the drops of runs with exactly one code, by code, raw and within cells."""

    def drop(sums: Floats) -> Floats:
        base = sums[..., 0:1] / sums[..., 1:2]
        single_mean = sums[..., 2:3] / sums[..., 3:4]
        return np.asarray(100 * (single_mean / base - 1))

    runs = rows.runs
    no_code, several = in_group[:, 0], in_group[:, 2] + in_group[:, 3]
    only_code = runs.codes & (in_group[:, [1]] > 0)
    within_cell = _drops_within_cells(runs, np.column_stack([only_code.astype(float), several]))
    for code in CODES:
        label = f"drop of {runs.outcome} with {code} alone against no code{runs.among_codes()}, %"
        if code not in runs.code_names:
            for kind in ("single_raw", "single_within_cell"):
                rows.add(
                    kind,
                    code,
                    n_in_group=None,
                    label=label,
                    jackknifed=None,
                    index=0,
                    reason=f"{runs.reading_count(code)}: not counted",
                )
            continue
        k = runs.code_names.index(code)
        single = only_code[:, k]
        n = int(single.sum())
        raw = None
        if runs.n:
            sums = np.column_stack([no_code * runs.y, no_code, single * runs.y, single])
            raw = jackknife_of_sums(sums, drop, runs.task, runs.cell)
        reason = _too_few_reason(int(counts[0]), n)
        # `raw` holds one statistic, `within_cell` one for each code.
        for kind, jackknifed, index in (
            ("single_raw", raw, 0),
            ("single_within_cell", within_cell, k),
        ):
            rows.add(
                kind,
                code,
                n_in_group=n,
                label=label,
                jackknifed=jackknifed,
                index=index,
                reason=reason,
            )


def _too_few_reason(n_first: int, n_second: int, groups: str = "0 to some") -> str | None:
    """The reason why two groups of these sizes cannot be compared; None if they can."""
    if min(n_first, n_second) >= MIN_RUNS:
        return None
    return (
        f"too few runs to compare {groups} codes: {n_first} and {n_second}; {MIN_RUNS} of each are"
        " needed"
    )


def _drops_within_cells(runs: RunArrays, dummies: Floats) -> Jackknifed | None:
    """Drops (%) of each dummy's group (n x k) against no code, within cells.

    With b the coefficients of OLS with cell effects: drop_j = 100 b_j / (mean of y - b · means of
    the dummies), the denominator being the mean score had no code fired. None if no dummy varies.
    """
    if runs.n == 0 or not dummies.any():
        return None
    n_clusters, k = runs.n_tasks, dummies.shape[1]
    products = cross_products(
        demean(dummies, runs.cell, runs.n_cells),
        demean(runs.y[:, None], runs.cell, runs.n_cells),
        runs.task,
        n_clusters,
    )
    columns = np.flatnonzero(independent_columns(products.xx.sum(0)))
    if not len(columns):
        return None
    full, deleted = delete_one_regression(
        CrossProducts(products.xx[:, columns][:, :, columns], products.xy[:, columns])
    )
    # Sums of y, of the dummies and of 1 by task.
    sums = group_sums(
        np.column_stack([runs.y, dummies[:, columns], np.ones(runs.n)]), runs.task, n_clusters
    )
    total = sums.sum(0)

    def percent(b: Floats, totals: Floats) -> Floats:
        means = totals / totals[..., -1:]
        no_code_mean = means[..., 0] - (b * means[..., 1:-1]).sum(-1)
        return np.asarray(100 * b / no_code_mean[..., None])

    value = np.full(k, np.nan)
    deleted_values = np.full((n_clusters, k), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        value[columns] = percent(full[:, 0], total)
        deleted_values[:, columns] = percent(deleted[:, :, 0], total - sums)
        se_new = np.sqrt(jackknife_variance(value, deleted_values))
    return Jackknifed(
        value=value,
        se_new=se_new,
        se_same=np.full(k, np.nan),
        deleted=deleted_values,
        n_clusters=n_clusters,
        df_same=0.0,
    )


def completion_arrays(
    table: pl.DataFrame, *, source: str = "any", prepare: bool = True
) -> RunArrays:
    """The runs whose completion is known, with their codes; y is completion (0 or 1)."""
    data = table.with_columns(pl.col("completed").cast(pl.Float64).alias("_completed"))
    return build_arrays(data, "_completed", source=source, keep_breach=True, prepare=prepare)


def recovery(table: pl.DataFrame, *, source: str = "any", prepare: bool = True) -> pl.DataFrame:
    """Share of runs with two or more codes that still reach a scored submission (0-1).

    One row for all agents and one for each. Runs whose completion is unknown are left out. Agents
    with more codes are seen on harder runs, so compare agents with care. `codes` are the codes that
    are counted, as in `cliff`.
    """
    runs = completion_arrays(table, source=source, prepare=prepare)
    n_codes = runs.codes.sum(1)
    groups = {"(all)": np.ones(runs.n, dtype=bool)}
    groups |= {agent: runs.agent == a for a, agent in enumerate(runs.agents)}
    label = f"P(scored submission | two or more codes{runs.among_codes()})"
    rows: KeyedEstimates = []
    for name, in_group in groups.items():
        several_codes = in_group & (n_codes >= 2)
        key = {
            "agent": name,
            "codes": ", ".join(runs.code_names),
            "runs": int(several_codes.sum()),
            "codes_per_run": float(n_codes[in_group].mean()) if in_group.any() else None,
        }
        if several_codes.any():
            est = _recovery_estimate(runs, several_codes, label)
        else:
            reason = f"no run has two codes{runs.among_codes()}"
            if runs.n < runs.n_scored:
                reason += f" ({runs.n} of {runs.n_scored} runs were read)"
            est = Estimate(label, "new", None, n=0, reason=reason, warnings=runs.notes)
        rows.append((key, est))
    keys: dict[str, Any] = {
        "agent": pl.String,
        "codes": pl.String,
        "runs": pl.Int64,
        "codes_per_run": pl.Float64,
    }
    return tidy(rows, keys)


def _recovery_estimate(runs: RunArrays, selected: Bools, label: str) -> Estimate:
    """The share of the `selected` runs (n) that completed, by jackknife over tasks or Wilson."""
    n, n_completed = int(selected.sum()), float(runs.y[selected].sum())
    share = jackknife_of_sums(
        np.column_stack([runs.y[selected], np.ones(n)]),
        ratio_of_sums,
        runs.task[selected],
        runs.cell[selected],
    )
    est = t_estimate(
        label,
        "new",
        share.value[0],
        share.se_new[0],
        share.n_clusters - 1,
        n=n,
        n_clusters=share.n_clusters,
        method="jackknife over tasks",
        warnings=runs.notes,
        test=False,
        limits=SHARE_LIMITS,
    )
    bounds = wilson(n_completed, n)
    has_too_few_tasks = share.n_clusters - 1 < MIN_DF
    if has_too_few_tasks or (est.se and n >= MIN_JACKKNIFE_RUNS) or not bounds:
        return est
    return Estimate(
        label,
        "new",
        n_completed / n,
        lo=bounds[0],
        hi=bounds[1],
        n=n,
        n_clusters=share.n_clusters,
        method="Wilson interval: runs as independent",
        warnings=(
            *runs.notes,
            "few runs or no variation between tasks: tasks are not accounted for",
        ),
    )
