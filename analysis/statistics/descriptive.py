"""Descriptive tables with intervals clustered by task: stages, failures, codes, tiers, cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.measures import wilson
from ..tables.codes_read import CODES
from ..tables.frames import GROUP, PRESUMED, WEIGHTS, stage_columns
from ..tables.score_names import limits_of
from .balanced_means import BalancedMeans
from .benchmark_ratings import SHARES
from .interval_estimates import (
    MIN_RUNS,
    SHARE_LIMITS,
    Bools,
    Estimate,
    Floats,
    Ints,
    KeyedEstimates,
    back_transform,
    finite_or_none,
    t_estimate,
    tidy,
    two_sided_p,
)
from .jackknife import (
    demean,
    estimates_by_population,
    group_ids,
    jackknife_of_sums,
    ratio_of_sums,
)
from .ranking import failed
from .run_arrays import (
    RunArrays,
    build_arrays,
    code_columns,
    factorize,
    reading_refusal,
    select_runs,
    task_key,
)

ALL = "(all)"
TOTALS = ("agentic", "task_score", "overall")
MIN_EXACT_RATIO = 20
"""Firings of E1 from which the ratio of codes has a jackknife interval; below, an exact one."""


def groups_with_rows(
    table: pl.DataFrame, by: tuple[str, ...]
) -> Iterator[tuple[dict[str, str], Bools]]:
    """First (all), then each combination of the `by` columns that occurs, with its rows (mask)."""
    yield dict.fromkeys(by, ALL), np.ones(table.height, dtype=bool)
    if not by or table.is_empty():
        return
    columns = table.select(by)
    for group in columns.unique().sort(by).iter_rows(named=True):
        conditions = [pl.col(name) == value for name, value in group.items()]
        yield group, columns.select(pl.all_horizontal(conditions)).to_series().to_numpy()


@dataclass(frozen=True)
class RunAxes:
    """The agent, task and cell of each run, as numbers (n each)."""

    agent: Ints
    task: Ints
    cell: Ints

    def subset(self, mask: Bools) -> RunAxes:
        return RunAxes(self.agent[mask], self.task[mask], self.cell[mask])


def run_axes(table: pl.DataFrame) -> RunAxes:
    """The axes of a table after `select_runs`."""
    task, _ = factorize(table.select(task_key()).to_series())
    agent, _ = factorize(table["agent"])
    tier, _ = factorize(table["tier"])
    cell = group_ids(agent, task, tier)[0] if table.height else task
    return RunAxes(agent, task, cell)


def column_means(
    table: pl.DataFrame,
    columns: Mapping[str, str],
    by: tuple[str, ...],
    *,
    key: str,
    label: str,
    prepare: bool = True,
) -> pl.DataFrame:
    """Balanced means of columns by group (`BalancedMeans`), each over the runs that have a value.

    `columns`: name in the table -> name in the column `key`. `label`: template of the estimand with
    {name}.
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table)
    means = {name: BalancedMeans(table, name) for name in columns}
    rows: KeyedEstimates = []
    for group, mask in groups_with_rows(table, by):
        for name, display_name in columns.items():
            estimand = label.format(name=display_name)
            row_key = {**group, key: display_name}
            if not (mask & means[name].has_value).any():
                reason = f"no run has {display_name}"
                rows.append((row_key, Estimate(estimand, "new", None, reason=reason)))
                continue
            estimates = means[name].estimates(
                mask, estimand, notes=tuple(notes), limits=_limits(name)
            )
            rows += [(row_key, est) for est in estimates]
    return tidy(rows, {**dict.fromkeys(by, pl.String), key: pl.String})


def _limits(name: str) -> tuple[float, float]:
    """The range of a column: of a score, of a share, else 0 to infinity."""
    limits = limits_of(name)
    if math.isfinite(limits[1]):
        return limits
    return SHARE_LIMITS if name in SHARES else (0.0, math.inf)


def stage_profile(
    table: pl.DataFrame, by: tuple[str, ...] = ("agent",), *, prepare: bool = True
) -> pl.DataFrame:
    """Means over runs of the stages, agentic and Task (0-1) and Overall (0-100), by group.

    Unscored stages (`stage_columns`) are left out, never 0. `presumed`: the mean share of criteria
    behind the number that nobody read (0-1); null for S4, S5 and task.
    """
    columns = {name: name.removeprefix(GROUP) for name in (*stage_columns(table), *TOTALS)}
    columns["task_score"] = "task"
    means = column_means(table, columns, by, key="stage", label="mean {name}", prepare=prepare)
    runs = select_runs(table)[0] if prepare else table
    presumed_column = dict(zip(("overall", "S1", "S2", "S3"), PRESUMED, strict=True))
    presumed_column["agentic"] = "presumed"
    shares = [
        {**group, "stage": stage, "presumed": runs.filter(mask)[column].mean()}
        for group, mask in groups_with_rows(runs, by)
        for stage, column in presumed_column.items()
    ]
    schema = {**dict.fromkeys(by, pl.String), "stage": pl.String, "presumed": pl.Float64}
    presumed = pl.DataFrame(shares, schema=schema)
    return means.join(presumed, on=[*by, "stage"], how="left", maintain_order="left")


def stage_use(
    table: pl.DataFrame, by: tuple[str, ...] = ("agent",), *, prepare: bool = True
) -> pl.DataFrame:
    """Means per run of turns, calls, failed calls and seconds in each stage, by group.

    `what` names stage and kind, as in `S3 seconds`.
    """
    columns = {}
    for i in range(1, 6):
        for kind in ("turns", "calls", "failed_calls", "seconds"):
            columns[f"S{i}_{kind}"] = f"S{i} {kind.replace('_', ' ')}"
    label = "mean {name} per run"
    return column_means(table, columns, by, key="what", label=label, prepare=prepare)


def failure_rates(
    table: pl.DataFrame, by: tuple[str, ...] = ("agent",), *, prepare: bool = True
) -> pl.DataFrame:
    """Share of failed runs (0-1) by the rule of their track, then each of SHARES, by group.

    A share is of the runs for which it is known; one that is known for no run has no row.
    """
    marked = table.with_columns(failed().alias("failed"), **SHARES)
    names = ["failed", *(name for name in SHARES if marked[name].count())]
    columns = {name: name.replace("_", " ") for name in names}
    label = "share of runs: {name}"
    rates = column_means(marked, columns, by, key="what", label=label, prepare=prepare)
    order = pl.Enum(list(columns.values()))
    return rates.sort(pl.col("what").cast(order), maintain_order=True)


def code_prevalence(
    table: pl.DataFrame, by: tuple[str, ...] = (), *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """For each code its rate per run and its share of fired codes (0-1), and E2-E5 over E1.

    `read` of the group's `runs` were read for the code; rates and shares are of these. Shares need
    codes that were read together (see `build_arrays`), the ratio needs all five. A code that fired
    in two stages of a run counts once. Shares are compositional: one falls when another rises, so
    read the rates too. Ratio: jackknife of its logarithm; with fewer than 20 E1, exact (binomial
    given the total).
    """
    counted = table.with_columns(pl.lit(1.0).alias("_one"))
    each = build_arrays(
        counted,
        "_one",
        source=source,
        keep_breach=True,
        prepare=prepare,
        need_codes=False,
        explain=False,
    )
    joint = build_arrays(
        counted, "_one", source=source, keep_breach=True, prepare=prepare, explain=False
    )
    fired_by_any_means = each.table.select(
        fired.fill_null(False).alias(code)
        for code, fired in code_columns(each.table, source).items()
    )
    joint_masks = {tuple(group.values()): mask for group, mask in groups_with_rows(joint.table, by)}
    no_runs = np.zeros(joint.n, dtype=bool)
    rows: KeyedEstimates = []
    for group, mask in groups_with_rows(each.table, by):
        n_runs = int(mask.sum())
        for k, code in enumerate(CODES):
            use = mask & each.codes_read[:, k]
            n_fired_in_all = 0
            if n_runs:
                n_fired_in_all = int(fired_by_any_means.filter(pl.Series(mask))[code].sum())
            key = {
                **group,
                "code": code,
                "measure": "rate per run",
                "fired": int(each.codes[use, k].sum()) if use.any() else None,
                "read": int(use.sum()),
                "runs": n_runs,
            }
            rows += [(key, est) for est in _rate_estimates(each, use, k, n_runs, n_fired_in_all)]
        joint_mask = joint_masks.get(tuple(group.values()), no_runs)
        rows += _share_rows(joint, joint_mask, n_runs, group)
        key = {
            **group,
            "code": "E2-E5 : E1",
            "measure": "ratio",
            "fired": int(joint.codes[joint_mask].sum()),
            "read": int(joint_mask.sum()),
            "runs": n_runs,
        }
        rows.append((key, _ratio_estimate(joint, joint_mask)))
    keys: dict[str, Any] = {
        **dict.fromkeys(by, pl.String),
        "code": pl.String,
        "measure": pl.String,
        "fired": pl.Int64,
        "read": pl.Int64,
        "runs": pl.Int64,
    }
    return tidy(rows, keys)


def _rate_estimates(
    runs: RunArrays, use: Bools, k: int, n_runs: int, n_fired_in_all: int
) -> list[Estimate]:
    """The share of the read runs (`use`, of `n_runs`) in which code `k` fired.

    If too few were read, a lower bound from the firings in all runs.
    """
    code, notes = CODES[k], runs.notes
    label, n = f"rate per run of {code}", int(use.sum())
    reason = reading_refusal(code, n, n_runs) if n_runs else "no runs"
    fired = runs.codes[use, k].astype(float)
    if reason:
        if n_fired_in_all > fired.sum():
            at_least = 100 * n_fired_in_all / n_runs
            reason += (
                f"; it fired in {n_fired_in_all} of all, so its rate is {at_least:.1f} % or more"
            )
        return [Estimate(label, "new", None, n=n, reason=reason, warnings=notes)]
    if n < n_runs:
        notes = (*notes, f"{code}: read in {n} of {n_runs} runs; the rate is of these")
    rate = jackknife_of_sums(
        np.column_stack([fired, np.ones(n)]), ratio_of_sums, runs.task[use], runs.cell[use]
    )
    new, same = estimates_by_population(label, rate, 0, n=n, notes=notes, limits=SHARE_LIMITS)
    if not new.se:
        lo, hi = wilson(float(fired.sum()), n) or (None, None)
        new = Estimate(
            label,
            "new",
            new.value,
            lo=lo,
            hi=hi,
            n=n,
            n_clusters=new.n_clusters,
            method="Wilson interval: runs as independent",
            warnings=notes,
        )
    return [new, same]


def _share_rows(runs: RunArrays, mask: Bools, n_runs: int, group: dict[str, str]) -> KeyedEstimates:
    """Each code's share of the fired codes in a group (`mask`) of the jointly read runs."""
    n = int(mask.sum())
    n_fired = runs.codes[mask].sum(0)

    def shares(s: Floats) -> Floats:
        return np.asarray(s / s.sum(-1, keepdims=True))

    reason = None
    if not n_fired.sum():
        reason = "no code fired"
    if not n:
        reason = f"none of {n_runs} runs was read for codes" if n_runs else "no runs"
    jackknifed = None
    if n:
        jackknifed = jackknife_of_sums(
            runs.codes[mask].astype(float), shares, runs.task[mask], runs.cell[mask]
        )
    rows: KeyedEstimates = []
    for code in CODES:
        label = f"share of fired codes{runs.among_codes()} of {code}"
        key: dict[str, Any] = {
            **group,
            "code": code,
            "measure": "share of fired codes",
            "read": n,
            "runs": n_runs,
        }
        if code not in runs.code_names:
            unread = (
                f"{runs.reading_count(code)}: it has no place in shares of"
                f" {', '.join(runs.code_names)}"
            )
            key["read"] = None
            rows.append((key, Estimate(label, "new", None, n=0, reason=unread)))
            continue
        k = runs.code_names.index(code)
        key["fired"] = int(n_fired[k])
        if jackknifed is None or reason:
            est = Estimate(label, "new", None, n=n, reason=reason, warnings=runs.notes)
            rows.append((key, est))
            continue
        estimates = estimates_by_population(
            label, jackknifed, k, n=n, notes=runs.notes, limits=SHARE_LIMITS
        )
        rows += [(key, est) for est in estimates]
    return rows


def _ratio_estimate(runs: RunArrays, mask: Bools) -> Estimate:
    """Firings of E2-E5 over firings of E1 in a group (`mask`) of the jointly read runs."""
    label, n = "engineering codes (E2-E5) per knowledge code (E1)", int(mask.sum())
    missing = [code for code in CODES if code not in runs.code_names]
    if missing:
        reason = "; ".join(runs.reading_count(code) for code in missing)
        return Estimate(label, "new", None, reason=reason)
    n_fired = runs.codes[mask].sum(0)
    n_knowledge, n_engineering = int(n_fired[0]), int(n_fired[1:].sum())
    if n_knowledge + n_engineering == 0:
        reason = "no code fired"
        if not n and runs.n_scored:
            reason = f"none of {runs.n_scored} runs was read for codes"
        return Estimate(label, "new", None, n=n, reason=reason)
    if n_knowledge < MIN_EXACT_RATIO:
        return _exact_ratio(label, n_engineering, n_knowledge, n, runs.notes)

    def log_ratio(s: Floats) -> Floats:
        return np.asarray(np.log(s[..., 1:5].sum(-1, keepdims=True) / s[..., :1]))

    jackknifed = jackknife_of_sums(
        runs.codes[mask].astype(float), log_ratio, runs.task[mask], runs.cell[mask]
    )
    est = t_estimate(
        label,
        "new",
        jackknifed.value[0],
        jackknifed.se_new[0],
        jackknifed.n_clusters - 1,
        n=n,
        n_clusters=jackknifed.n_clusters,
        method="jackknife over tasks of the log ratio (se on the log scale)",
        warnings=runs.notes,
        test=False,
    )
    return back_transform(est, math.exp)


def _exact_ratio(
    label: str, n_engineering: int, n_knowledge: int, n: int, notes: tuple[str, ...]
) -> Estimate:
    """The ratio with the interval of Clopper and Pearson for E1's share p of all codes: (1-p)/p."""
    from scipy import stats

    low, high = 0.0, 1.0
    if n_knowledge:
        low = float(stats.beta.ppf(0.025, n_knowledge, n_engineering + 1))
    if n_engineering:
        high = float(stats.beta.ppf(0.975, n_knowledge + 1, n_engineering))
    reason = None
    if not n_knowledge:
        reason = f"E1 never fired among {n_engineering} codes: only the lower bound is known"
    return Estimate(
        label,
        "new",
        n_engineering / n_knowledge if n_knowledge else None,
        lo=finite_or_none((1 - high) / high),
        hi=finite_or_none((1 - low) / low) if low > 0 else None,
        n=n,
        method="exact, binomial given the total; codes as independent",
        reason=reason,
        warnings=notes,
    )


TIER_OUTCOMES = (
    "overall",
    "agentic",
    "task_score",
    "S1",
    "S2",
    "S3",
    "S1_free",
    "S2_free",
    "S3_free",
    "agentic_free",
    "overall_free",
)


def _with_free_totals(table: pl.DataFrame) -> pl.DataFrame:
    """Add Agentic and Overall from the `_free` stages: a credited criterion moves neither.

    Null if a stage has no criterion that is free.
    """
    credit = pl.lit(0.0)
    for stage, weight in WEIGHTS.items():
        if f"{stage}_free" in table.columns:
            credit = credit + weight * (pl.col(stage) - pl.col(f"{stage}_free"))
    return table.with_columns(
        agentic_free=(pl.col("agentic") - credit).clip(0.0),
        overall_free=(pl.col("overall") - 50 * credit).clip(0.0),
    )


def tier_contrast(
    table: pl.DataFrame,
    *,
    baseline: str = "standard",
    outcomes: tuple[str, ...] = TIER_OUTCOMES,
    prepare: bool = True,
) -> pl.DataFrame:
    """Change of each score from the baseline tier in percent of the baseline, by agent.

    On tasks that have both tiers. Outcomes ending in `_free` use only criteria that no tier
    credits. The rows `interaction` test whether agents differ in the change at all (F test on agent
    x task differences).
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table)
    table = _with_free_totals(table)
    axes = run_axes(table)
    agent = table["agent"].to_numpy()
    masks = {ALL: np.ones(table.height, dtype=bool)}
    masks |= {name: agent == name for name in sorted(set(agent.tolist()))}
    all_outcomes = [*outcomes, *(name for name in table.columns if name.startswith(GROUP))]
    rows: KeyedEstimates = []
    for tier in sorted(table["tier"].unique().to_list()):
        if tier == baseline:
            continue
        for outcome in all_outcomes:
            # If no run has the outcome, there is one set of rows that says so: of the first one.
            if outcome != all_outcomes[0] and not table[outcome].count():
                continue
            y = table[outcome].cast(pl.Float64).to_numpy()
            key = {"tier": tier, "baseline": baseline, "outcome": outcome}
            for name, mask in masks.items():
                means, estimates = _tier_change(table, y, axes, mask, key, tuple(notes))
                rows += [({**key, "agent": name, **means}, est) for est in estimates]
            interaction = _tier_interaction(table, y, axes, tier, baseline, outcome)
            rows.append(({**key, "agent": "interaction"}, interaction))
    keys: dict[str, Any] = {
        "tier": pl.String,
        "baseline": pl.String,
        "outcome": pl.String,
        "agent": pl.String,
        "mean": pl.Float64,
        "mean_baseline": pl.Float64,
    }
    return tidy(rows, keys)


def _tier_change(
    table: pl.DataFrame,
    y: Floats,
    axes: RunAxes,
    mask: Bools,
    key: Mapping[str, str],
    notes: tuple[str, ...],
) -> tuple[dict[str, float], list[Estimate]]:
    """Both means, and the change 100 (mean / mean of baseline - 1), over the runs in `mask`."""
    tier, baseline, outcome = key["tier"], key["baseline"], key["outcome"]
    tiers = table["tier"].to_numpy()
    label = f"change of {outcome} from {baseline} to {tier}, %"
    use = mask & np.isfinite(y) & np.isin(tiers, (tier, baseline))
    tasks_of_tier = set(axes.task[use & (tiers == tier)].tolist())
    tasks_of_baseline = set(axes.task[use & (tiers == baseline)].tolist())
    common_tasks = list(tasks_of_tier & tasks_of_baseline)
    use &= np.isin(axes.task, common_tasks)
    values = y[use]
    in_tier, in_baseline = (tiers == tier)[use], (tiers == baseline)[use]
    if not common_tasks:
        return {}, [Estimate(label, "new", None, reason="no task has both tiers")]
    if values[in_baseline].sum() == 0:
        return {}, [Estimate(label, "new", None, reason=f"the mean in {baseline} is 0")]

    def change(s: Floats) -> Floats:
        mean, mean_baseline = s[..., :1] / s[..., 1:2], s[..., 2:3] / s[..., 3:4]
        return np.asarray(100 * (mean / mean_baseline - 1))

    jackknifed = jackknife_of_sums(
        np.column_stack([values * in_tier, in_tier, values * in_baseline, in_baseline]),
        change,
        axes.task[use],
        axes.cell[use],
    )
    means = {
        "mean": float(values[in_tier].mean()),
        "mean_baseline": float(values[in_baseline].mean()),
    }
    estimates = estimates_by_population(
        label, jackknifed, 0, n=len(values), notes=notes, test=True, limits=(-100.0, math.inf)
    )
    return means, estimates


def _tier_interaction(
    table: pl.DataFrame, y: Floats, axes: RunAxes, tier: str, baseline: str, outcome: str
) -> Estimate:
    """F test of an equal tier change in all agents, as randomised blocks (tasks) of differences.

    From the complete agent x task table of differences d: F = MS_agent / MS_residual with a - 1 and
    (a - 1)(t - 1) degrees of freedom.
    """
    label = f"F of agent differences in the change of {outcome}"
    cell_means = (
        table.select("agent", "tier", pl.Series("task", axes.task), pl.Series("y", y))
        .filter(pl.col("tier").is_in([tier, baseline]) & pl.col("y").is_finite())
        .group_by("agent", "task", "tier", maintain_order=True)
        .agg(pl.col("y").mean())
        .pivot("tier", index=["agent", "task"], values="y")
    )
    if not {tier, baseline} <= set(cell_means.columns):
        return Estimate(label, "new", None, reason="no task has both tiers")
    differences = (
        cell_means.select("agent", "task", difference=pl.col(tier) - pl.col(baseline))
        .drop_nulls()
        .pivot("agent", index="task", values="difference")
    )
    d = differences.drop("task").drop_nulls().to_numpy()  # tasks x agents
    t, a = d.shape
    if t < 2 or a < 2:
        return Estimate(label, "new", None, reason="needs two agents on two common tasks")
    df_agent, df_residual = a - 1, (a - 1) * (t - 1)
    residual = d - d.mean(0) - d.mean(1, keepdims=True) + d.mean()
    ms_agent = t * ((d.mean(0) - d.mean()) ** 2).sum() / df_agent
    ms_residual = (residual**2).sum() / df_residual
    if ms_residual <= 1e-12:
        return Estimate(label, "new", None, reason="no variation between tasks")
    from scipy import stats

    f = float(ms_agent / ms_residual)
    return Estimate(
        label,
        "new",
        f,
        p=float(stats.f.sf(f, df_agent, df_residual)),
        df=float(df_residual),
        n=int(cell_means.height),
        n_clusters=t,
        method="randomised blocks F test",
    )


COST_COLUMNS = ("cost_usd", "wall_time_s", "total_tokens", "turns")


def cost_score(
    table: pl.DataFrame,
    *,
    outcome: str = "overall",
    costs: tuple[str, ...] = COST_COLUMNS,
    prepare: bool = True,
) -> pl.DataFrame:
    """Correlation of cost with score, overall and by track.

    `kind`: runs (Pearson over runs, as published; confounds agents with runs), runs_log_cost,
    runs_spearman, agents (over agents' means, no interval), within_cell (repeats of the same agent,
    task and tier). Intervals: jackknife of atanh(r) over tasks.
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table)
    table = table.with_columns(total_tokens=pl.col("input_tokens") + pl.col("output_tokens"))
    axes = run_axes(table)
    y = table[outcome].cast(pl.Float64).to_numpy()
    rows: KeyedEstimates = []
    for group, mask in groups_with_rows(table, ("track",)):
        for cost in costs:
            x = table[cost].cast(pl.Float64).to_numpy()
            use = mask & np.isfinite(x) & np.isfinite(y)
            label = f"correlation of {cost} with {outcome}"
            correlations = _correlations(x[use], y[use], axes.subset(use), label, tuple(notes))
            for kind, est in correlations:
                rows.append(({"track": group["track"], "cost": cost, "kind": kind}, est))
    return tidy(rows, {"track": pl.String, "cost": pl.String, "kind": pl.String})


def _correlations(
    x: Floats, y: Floats, axes: RunAxes, label: str, notes: tuple[str, ...]
) -> Iterator[tuple[str, Estimate]]:
    """(kind, correlation) of costs x and scores y (n each)."""
    from scipy import stats

    n = len(x)
    everything = np.ones(n, dtype=bool)
    positive = x > 0
    log_x = np.log(np.where(positive, x, 1.0))
    variants: list[tuple[str, Floats, Floats, Bools]] = [
        ("runs", x, y, everything),
        ("runs_log_cost", log_x, y, positive),
    ]
    if n:
        cells, n_cells = group_ids(axes.cell)
        centred = demean(np.column_stack([x, y]), cells, n_cells)
        repeated = np.bincount(cells)[cells] > 1
        variants += [
            ("runs_spearman", stats.rankdata(x), stats.rankdata(y), everything),
            ("within_cell", centred[:, 0], centred[:, 1], repeated),
        ]
    for kind, a, b, use in variants:
        yield kind, _correlation(a[use], b[use], axes.task[use], axes.cell[use], label, notes)
    if n:
        yield "agents", _correlation_of_agents(x, y, axes.agent, label, notes)


def _correlation_of_agents(
    x: Floats, y: Floats, agent: Ints, label: str, notes: tuple[str, ...]
) -> Estimate:
    """The correlation of agents' means, without an interval."""
    size = np.bincount(agent).astype(float)
    has_runs = size > 0
    x_mean = np.bincount(agent, x)[has_runs] / size[has_runs]
    y_mean = np.bincount(agent, y)[has_runs] / size[has_runs]
    value, reason = None, "needs three agents that differ"
    if len(x_mean) > 2 and x_mean.std() > 0 and y_mean.std() > 0:
        value = float(np.corrcoef(x_mean, y_mean)[0, 1])
        reason = "too few agents for an interval"
    return Estimate(
        label,
        None,
        value,
        n=len(x),
        n_clusters=len(x_mean),
        method="over agents' means",
        reason=reason,
        warnings=notes,
    )


def _correlation(
    x: Floats, y: Floats, task: Ints, cell: Ints, label: str, notes: tuple[str, ...]
) -> Estimate:
    """Pearson's r with a jackknife interval on z = atanh(r)."""
    n = len(x)
    if n < MIN_RUNS or np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = f"needs {MIN_RUNS} runs that differ in both"
        return Estimate(label, "new", None, n=n, reason=reason, warnings=notes)
    a, b = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()

    def fisher_z(s: Floats) -> Floats:
        mean_a, mean_b, mean_aa, mean_bb, mean_ab = np.moveaxis(s[..., :5] / s[..., 5:], -1, 0)
        covariance = mean_ab - mean_a * mean_b
        r = covariance / np.sqrt((mean_aa - mean_a**2) * (mean_bb - mean_b**2))
        return np.asarray(np.arctanh(np.clip(r, -1, 1)))[..., None]

    moments = np.column_stack([a, b, a * a, b * b, a * b, np.ones(n)])
    jackknifed = jackknife_of_sums(moments, fisher_z, task, cell)
    est = t_estimate(
        label,
        "new",
        jackknifed.value[0],
        jackknifed.se_new[0],
        jackknifed.n_clusters - 1,
        n=n,
        n_clusters=jackknifed.n_clusters,
        method="jackknife over tasks of atanh r (se on that scale)",
        warnings=notes,
    )
    if est.value is None:
        r = float(np.clip((a * b).mean(), -1, 1))
        return Estimate(label, "new", r, n=n, reason="the runs lie on a line")
    p = two_sided_p(est.value / est.se, est.df) if est.se and est.df else None
    return replace(back_transform(est, math.tanh), p=p)
