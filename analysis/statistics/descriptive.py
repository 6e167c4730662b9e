"""Descriptive tables with intervals clustered by task: stages, codes, tiers, cost, failures, use by
stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.measures import wilson
from ..tables.codes_read import CODES
from ..tables.frames import GROUP, PRESUMED, stage_columns
from ..tables.score_names import limits_of
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
from .jackknife import demean, estimates_by_population, group_ids, jackknife_of_sums, ratio_of_sums
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


def iterate_groups(
    table: pl.DataFrame, by: tuple[str, ...]
) -> Iterator[tuple[dict[str, str], Bools]]:
    """(all) first, then every combination of the `by` columns that occurs, with its rows."""
    yield dict.fromkeys(by, ALL), np.ones(table.height, dtype=bool)
    if not by or table.is_empty():
        return
    keys = table.select(by)
    for row in keys.unique().sort(by).iter_rows(named=True):
        mask = keys.select(
            pl.all_horizontal(pl.col(name) == value for name, value in row.items())
        ).to_series()
        yield row, mask.to_numpy()


@dataclass(frozen=True)
class RunAxes:
    """Numbers of agents, tasks and cells of runs."""

    agent: Ints
    task: Ints
    cell: Ints

    def of(self, runs: Bools) -> RunAxes:
        return RunAxes(self.agent[runs], self.task[runs], self.cell[runs])


def run_axes(table: pl.DataFrame) -> RunAxes:
    """The axes of a prepared table."""
    task, agent, tier = (
        factorize(s)[0]
        for s in (table.select(task_key()).to_series(), table["agent"], table["tier"])
    )
    return RunAxes(agent, task, group_ids(agent, task, tier)[0] if table.height else task)


def balance_weights(table: pl.DataFrame) -> Floats:
    """Weights of runs that make cells of a task, tasks of a track and tracks weigh the same within
    each agent, as on the leaderboard; they add up to the number of runs. In a balanced cohort with
    equal tracks all are 1."""
    task = ["agent", "track", "task"]
    cells = table.select(
        1.0
        / pl.len().over([*task, "tier"])
        / pl.col("tier").n_unique().over(task)
        / pl.col("task").n_unique().over(task[:2])
        / pl.col("track").n_unique().over(task[:1])
        * pl.len().over(task[:1])
    )
    return cells.to_series().to_numpy()


def column_means(
    table: pl.DataFrame,
    columns: dict[str, str],
    by: tuple[str, ...],
    *,
    key: str,
    label: str,
    prepare: bool = True,
) -> pl.DataFrame:
    """Means of columns (name in the table -> name shown under `key`) by group, over the runs that
    have them."""
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table)
    axes = run_axes(table)
    keys: dict[str, Any] = {**dict.fromkeys(by, pl.String), key: pl.String}
    rows: KeyedEstimates = []
    values = {name: table[name].cast(pl.Float64).to_numpy() for name in columns}
    for group, mask in iterate_groups(table, by):
        for name, shown in columns.items():
            use = mask & np.isfinite(values[name])
            n = int(use.sum())
            title, scale = label.format(name=shown), limits_of(name)
            if not n:
                rows.append(
                    (
                        {**group, key: shown},
                        Estimate(title, "new", None, reason=f"no run has {shown}"),
                    )
                )
                continue
            weight = balance_weights(table.filter(pl.Series(use)))
            j = jackknife_of_sums(
                np.column_stack([values[name][use] * weight, weight]),
                ratio_of_sums,
                axes.task[use],
                axes.cell[use],
            )
            rows += [
                ({**group, key: shown}, est)
                for est in estimates_by_population(
                    title,
                    j,
                    0,
                    n=n,
                    notes=tuple(notes),
                    limits=(
                        scale
                        if math.isfinite(scale[1])
                        else (0.0, SHARE_LIMITS[1] if name in SHARES else math.inf)
                    ),
                )
            ]
    return tidy(rows, keys)


def stage_profile(
    table: pl.DataFrame, by: tuple[str, ...] = ("agent",), *, prepare: bool = True
) -> pl.DataFrame:
    """Means over runs of the stages (`stage_columns`), agentic and task (0-1) and overall (0-100);
    unscored stages are left out, never 0.

    `presumed`: the mean share of criteria behind the number that nobody read (0-1); null for S4, S5
    and task.
    """
    shown = {name: name.removeprefix(GROUP) for name in (*stage_columns(table), *TOTALS)} | {
        "task_score": "task"
    }
    means = column_means(table, shown, by, key="stage", label="mean {name}", prepare=prepare)
    used = select_runs(table)[0] if prepare else table
    behind = dict(zip(("overall", "S1", "S2", "S3"), PRESUMED, strict=True)) | {
        "agentic": "presumed"
    }
    shares = [
        {**group, "stage": stage, "presumed": used.filter(mask)[name].mean()}
        for group, mask in iterate_groups(used, by)
        for stage, name in behind.items()
    ]
    schema = {**dict.fromkeys(by, pl.String), "stage": pl.String, "presumed": pl.Float64}
    return means.join(
        pl.DataFrame(shares, schema=schema), on=[*by, "stage"], how="left", maintain_order="left"
    )


def stage_use(
    table: pl.DataFrame, by: tuple[str, ...] = ("agent",), *, prepare: bool = True
) -> pl.DataFrame:
    """Means per run of turns, calls, failed calls and seconds in each stage (`what` is like `S3
    seconds`)."""
    kinds = ("turns", "calls", "failed_calls", "seconds")
    shown = {
        f"S{i}_{kind}": f"S{i} {kind.replace('_', ' ')}" for i in range(1, 6) for kind in kinds
    }
    return column_means(table, shown, by, key="what", label="mean {name} per run", prepare=prepare)


def failure_rates(
    table: pl.DataFrame, by: tuple[str, ...] = ("agent",), *, prepare: bool = True
) -> pl.DataFrame:
    """Share of failed runs (0-1) by the rule of their track, then each of the SHARES that is known
    of any run; runs of which one is unknown are left out of it."""
    marked = table.with_columns(failed().alias("failed"), **SHARES)
    shown = ["failed", *(name for name in SHARES if marked[name].count())]
    words = {name: name.replace("_", " ") for name in shown}
    found = column_means(
        marked, words, by, key="what", label="share of runs: {name}", prepare=prepare
    )
    return found.sort(pl.col("what").cast(pl.Enum(list(words.values()))), maintain_order=True)


def code_prevalence(
    table: pl.DataFrame, by: tuple[str, ...] = (), *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """For each code its rate per run and its share of fired codes (0-1), and the ratio of E2-E5 to
    E1.

    `read` of the group's `runs` were read for the code; rates and shares are of these. Shares need
    codes that were read together (see `design`); the ratio needs all five. A code fired in two
    stages of a run counts once. Shares are compositional: one falls when another rises, so read
    rates too. Ratio: jackknife on its logarithm; with fewer than 20 E1, exact (binomial given the
    total).
    """
    scored = table.with_columns(pl.lit(1.0).alias("_one"))
    each = build_arrays(
        scored,
        "_one",
        source=source,
        keep_breach=True,
        prepare=prepare,
        need_codes=False,
        explain=False,
    )
    joint = build_arrays(
        scored, "_one", source=source, keep_breach=True, prepare=prepare, explain=False
    )
    keys: dict[str, Any] = {
        **dict.fromkeys(by, pl.String),
        "code": pl.String,
        "measure": pl.String,
        "fired": pl.Int64,
        "read": pl.Int64,
        "runs": pl.Int64,
    }
    rows: KeyedEstimates = []
    fired_at_all = each.table.select(
        expression.fill_null(False).alias(code)
        for code, expression in code_columns(each.table, source).items()
    )
    joint_groups = {tuple(group.values()): mask for group, mask in iterate_groups(joint.table, by)}
    for group, mask in iterate_groups(each.table, by):
        runs = int(mask.sum())
        for k, code in enumerate(CODES):
            use = mask & each.codes_read[:, k]
            fired = int(each.codes[use, k].sum())
            key = {
                **group,
                "code": code,
                "measure": "rate per run",
                "fired": fired if use.any() else None,
            }
            key |= {"read": int(use.sum()), "runs": runs}
            seen = int(fired_at_all.filter(pl.Series(mask))[code].sum()) if runs else 0
            rows += [(key, est) for est in _rate(each, use, k, fired, runs, seen)]
        there = joint_groups.get(tuple(group.values()), np.zeros(joint.n, dtype=bool))
        rows += _shares(joint, there, runs, group)
        key = {
            **group,
            "code": "E2-E5 : E1",
            "measure": "ratio",
            "fired": int(joint.codes[there].sum()),
        }
        rows.append(
            ({**key, "read": int(there.sum()), "runs": runs}, _ratio_estimate(joint, there))
        )
    return tidy(rows, keys)


def _rate(d: RunArrays, use: Bools, k: int, fired: int, runs: int, seen: int) -> list[Estimate]:
    """The share of the read runs (`use`, of `runs`) that fired a code; without any, what its
    firings say."""
    label, n, notes = f"rate per run of {CODES[k]}", int(use.sum()), d.notes
    reason = "no runs" if not runs else reading_refusal(CODES[k], n, runs)
    if reason:
        if seen > fired:
            reason += (
                f"; it shows in {seen} of all, so its rate is {100 * seen / runs:.1f} % or more"
            )
        return [Estimate(label, "new", None, n=n, reason=reason, warnings=notes)]
    if n < runs:
        notes = (*notes, f"{CODES[k]}: read in {n} of {runs} runs; the rate is of these")
    j = jackknife_of_sums(
        np.column_stack([d.codes[use, k].astype(float), np.ones(n)]),
        ratio_of_sums,
        d.task[use],
        d.cell[use],
    )
    out = []
    for est in estimates_by_population(label, j, 0, n=n, notes=notes, limits=SHARE_LIMITS):
        if not est.se and est.population == "new":
            lo, hi = wilson(float(fired), n) or (None, None)
            est = Estimate(
                label,
                "new",
                est.value,
                None,
                lo,
                hi,
                n=n,
                n_clusters=est.n_clusters,
                method="Wilson interval: runs as independent",
                warnings=notes,
            )
        out.append(est)
    return out


def _shares(d: RunArrays, mask: Bools, runs: int, group: dict[str, str]) -> KeyedEstimates:
    n = int(mask.sum())
    fired = d.codes[mask].sum(0)
    rows: KeyedEstimates = []

    def shares(s: Floats) -> Floats:
        return np.asarray(s / s.sum(-1, keepdims=True))

    j = (
        jackknife_of_sums(d.codes[mask].astype(float), shares, d.task[mask], d.cell[mask])
        if n
        else None
    )
    for code in CODES:
        label = f"share of fired codes{d.among_codes()} of {code}"
        key: dict[str, Any] = {
            **group,
            "code": code,
            "measure": "share of fired codes",
            "read": n,
            "runs": runs,
        }
        if code not in d.code_names:
            reason = (
                f"{d.reading_count(code)}: it has no place in shares of {', '.join(d.code_names)}"
            )
            rows.append(({**key, "read": None}, Estimate(label, "new", None, n=0, reason=reason)))
            continue
        k = d.code_names.index(code)
        key["fired"] = int(fired[k])
        if j is None or not fired.sum():
            reason = (
                "no runs"
                if not runs
                else f"none of {runs} runs was read for codes"
                if not n
                else "no code fired"
            )
            rows.append((key, Estimate(label, "new", None, n=n, reason=reason, warnings=d.notes)))
            continue
        rows += [
            (key, est)
            for est in estimates_by_population(label, j, k, n=n, notes=d.notes, limits=SHARE_LIMITS)
        ]
    return rows


def _ratio_estimate(d: RunArrays, mask: Bools) -> Estimate:
    label, n = "engineering codes (E2-E5) per knowledge code (E1)", int(mask.sum())
    missing = [code for code in CODES if code not in d.code_names]
    if missing:
        return Estimate(
            label, "new", None, reason="; ".join(d.reading_count(code) for code in missing)
        )
    fired = d.codes[mask].sum(0)

    def log_ratio(s: Floats) -> Floats:
        return np.asarray(np.log(s[..., 1:5].sum(-1, keepdims=True) / s[..., :1]))

    rest, knowledge = int(fired[1:].sum()), int(fired[0])
    if knowledge + rest == 0:
        reason = (
            "no code fired"
            if n or not d.n_scored
            else f"none of {d.n_scored} runs was read for codes"
        )
        return Estimate(label, "new", None, n=n, reason=reason)
    if knowledge >= 20:
        j = jackknife_of_sums(d.codes[mask].astype(float), log_ratio, d.task[mask], d.cell[mask])
        est = t_estimate(
            label,
            "new",
            j.value[0],
            j.se_new[0],
            j.n_clusters - 1,
            n=n,
            n_clusters=j.n_clusters,
            method="jackknife over tasks of the log ratio (se on the log scale)",
            warnings=d.notes,
            test=False,
        )
        return back_transform(est, math.exp)
    from scipy import stats

    total = knowledge + rest
    low = float(stats.beta.ppf(0.025, knowledge, rest + 1)) if knowledge else 0.0
    high = float(stats.beta.ppf(0.975, knowledge + 1, rest)) if rest else 1.0
    return Estimate(
        label,
        "new",
        rest / knowledge if knowledge else None,
        None,
        finite_or_none((1 - high) / high),
        finite_or_none((1 - low) / low) if low > 0 else None,
        n=n,
        method="exact, binomial given the total; codes as independent",
        reason=(
            None
            if knowledge
            else f"E1 never fired among {total} codes: only the lower bound is known"
        ),
        warnings=d.notes,
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
)


def tier_contrast(
    table: pl.DataFrame,
    *,
    baseline: str = "standard",
    outcomes: tuple[str, ...] = TIER_OUTCOMES,
    prepare: bool = True,
) -> pl.DataFrame:
    """Change of each score from the baseline tier, in percent of the baseline, by agent; on tasks
    that have both tiers.

    Columns ending in `_free` use only criteria that no tier credits. `interaction` rows test
    whether agents differ in the change at all (F test on agent x task differences).
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table)
    axes = run_axes(table)
    tiers = [tier for tier in sorted(table["tier"].unique().to_list()) if tier != baseline]
    tier, agent = table["tier"].to_numpy(), table["agent"].to_numpy()
    keys: dict[str, Any] = {
        "tier": pl.String,
        "baseline": pl.String,
        "outcome": pl.String,
        "agent": pl.String,
        "mean": pl.Float64,
        "mean_baseline": pl.Float64,
    }
    rows: KeyedEstimates = []

    def change(s: Floats) -> Floats:
        return np.asarray(100 * (s[..., :1] / s[..., 1:2] / (s[..., 2:3] / s[..., 3:4]) - 1))

    agents = sorted(set(agent.tolist()))
    known = [*outcomes, *(name for name in table.columns if name.startswith(GROUP))]
    for other in tiers:
        for outcome in known:
            if outcome != known[0] and not table[outcome].count():
                continue  # nobody scored it: what the runs lack is said once, of the first
            y = table[outcome].cast(pl.Float64).to_numpy()
            for name in (ALL, *agents):
                use = (
                    np.isfinite(y)
                    & np.isin(tier, (other, baseline))
                    & ((agent == name) | (name == ALL))
                )
                in_both = set(axes.task[use & (tier == other)].tolist()) & set(
                    axes.task[use & (tier == baseline)].tolist()
                )
                use &= np.isin(axes.task, list(in_both))
                key: dict[str, Any] = {
                    "tier": other,
                    "baseline": baseline,
                    "outcome": outcome,
                    "agent": name,
                }
                label = f"change of {outcome} from {baseline} to {other}, %"
                a, b = (use & (tier == other))[use], (use & (tier == baseline))[use]
                v = y[use]
                if not in_both or v[b].sum() == 0:
                    reason = (
                        "no task has both tiers" if not in_both else f"the mean in {baseline} is 0"
                    )
                    rows.append((key, Estimate(label, "new", None, reason=reason)))
                    continue
                key |= {"mean": float(v[a].mean()), "mean_baseline": float(v[b].mean())}
                j = jackknife_of_sums(
                    np.column_stack([v * a, a, v * b, b]), change, axes.task[use], axes.cell[use]
                )
                rows += [
                    (key, est)
                    for est in estimates_by_population(
                        label,
                        j,
                        0,
                        n=len(v),
                        notes=tuple(notes),
                        test=True,
                        limits=(-100.0, math.inf),
                    )
                ]
            rows.append(_interaction(table, y, axes, other, baseline, outcome))
    return tidy(rows, keys)


def _interaction(
    table: pl.DataFrame, y: Floats, axes: RunAxes, other: str, baseline: str, outcome: str
) -> tuple[dict[str, Any], Estimate]:
    """F test of equal tier change over agents, on the complete agent x task table of differences."""
    key: dict[str, Any] = {
        "tier": other,
        "baseline": baseline,
        "outcome": outcome,
        "agent": "interaction",
    }
    label = f"F of agent differences in the change of {outcome}"
    cells = (
        table.select("agent", "tier", pl.Series("task", axes.task), pl.Series("y", y))
        .filter(pl.col("tier").is_in([other, baseline]) & pl.col("y").is_finite())
        .group_by("agent", "task", "tier", maintain_order=True)
        .agg(pl.col("y").mean())
        .pivot("tier", index=["agent", "task"], values="y")
    )
    if not {other, baseline} <= set(cells.columns):
        return key, Estimate(label, "new", None, reason="no task has both tiers")
    gaps = (
        cells.select("agent", "task", gap=pl.col(other) - pl.col(baseline))
        .drop_nulls()
        .pivot("agent", index="task", values="gap")
    )
    block = gaps.drop("task").drop_nulls().to_numpy()
    t, a = block.shape
    if t < 2 or a < 2:
        return key, Estimate(label, "new", None, reason="needs two agents on two common tasks")
    mean = block.mean()
    between = t * ((block.mean(0) - mean) ** 2).sum() / (a - 1)
    rest = ((block - block.mean(0) - block.mean(1, keepdims=True) + mean) ** 2).sum() / (
        (a - 1) * (t - 1)
    )
    if rest <= 1e-12:
        return key, Estimate(label, "new", None, reason="no variation between tasks")
    from scipy import stats

    f = float(between / rest)
    p = float(stats.f.sf(f, a - 1, (a - 1) * (t - 1)))
    return key, Estimate(
        label,
        "new",
        f,
        p=p,
        df=float((a - 1) * (t - 1)),
        n=int(cells.height),
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

    `kind`: runs (Pearson over runs, as published; mixes agents with runs), runs_log_cost,
    runs_spearman, agents (over agents' means, no interval), within_cell (repeats of the same agent,
    task and tier). Jackknife of atanh(r) over tasks.
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table)
    table = table.with_columns(total_tokens=pl.col("input_tokens") + pl.col("output_tokens"))
    keys: dict[str, Any] = {"track": pl.String, "cost": pl.String, "kind": pl.String}
    rows: KeyedEstimates = []
    axes = run_axes(table)
    for group, mask in iterate_groups(table, ("track",)):
        for cost in costs:
            x, y = (
                table[cost].cast(pl.Float64).to_numpy(),
                table[outcome].cast(pl.Float64).to_numpy(),
            )
            use = mask & np.isfinite(x) & np.isfinite(y)
            label = f"correlation of {cost} with {outcome}"
            for kind, est in _correlations(x[use], y[use], axes.of(use), label, tuple(notes)):
                rows.append(({"track": group["track"], "cost": cost, "kind": kind}, est))
    return tidy(rows, keys)


def _correlations(
    x: Floats, y: Floats, axes: RunAxes, label: str, notes: tuple[str, ...]
) -> Iterator[tuple[str, Estimate]]:
    from scipy import stats

    n = len(x)
    cells, n_cells = group_ids(axes.cell) if n else (axes.cell, 0)
    positive = x > 0
    views: list[tuple[str, Floats, Floats, Bools]] = [
        ("runs", x, y, np.ones(n, dtype=bool)),
        ("runs_log_cost", np.log(np.where(positive, x, 1.0)), y, positive),
    ]
    if n:
        views.append(
            ("runs_spearman", stats.rankdata(x), stats.rankdata(y), np.ones(n, dtype=bool))
        )
        both_ = demean(np.column_stack([x, y]), cells, n_cells)
        repeated = np.bincount(cells)[cells] > 1
        views.append(("within_cell", both_[:, 0], both_[:, 1], repeated))
    for kind, a, b, use in views:
        yield kind, _correlation(a[use], b[use], axes.task[use], axes.cell[use], label, notes)
    if n:
        size = np.bincount(axes.agent).astype(float)
        there = size > 0
        ma, mb = (
            np.bincount(axes.agent, x)[there] / size[there],
            np.bincount(axes.agent, y)[there] / size[there],
        )
        defined = len(ma) > 2 and ma.std() > 0 and mb.std() > 0
        yield (
            "agents",
            Estimate(
                label,
                None,
                float(np.corrcoef(ma, mb)[0, 1]) if defined else None,
                n=n,
                n_clusters=len(ma),
                method="over agents' means",
                reason=(
                    "too few agents for an interval"
                    if defined
                    else "needs three agents that differ"
                ),
                warnings=notes,
            ),
        )


def _correlation(
    x: Floats, y: Floats, task: Ints, cell: Ints, label: str, notes: tuple[str, ...]
) -> Estimate:
    n = len(x)
    if n < MIN_RUNS or np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = f"needs {MIN_RUNS} runs that differ in both"
        return Estimate(label, "new", None, n=n, reason=reason, warnings=notes)
    a, b = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()

    def z(s: Floats) -> Floats:
        m = s[..., :5] / s[..., 5:]
        top = m[..., 4] - m[..., 0] * m[..., 1]
        r = top / np.sqrt((m[..., 2] - m[..., 0] ** 2) * (m[..., 3] - m[..., 1] ** 2))
        return np.asarray(np.arctanh(np.clip(r, -1, 1)))[..., None]

    j = jackknife_of_sums(np.column_stack([a, b, a * a, b * b, a * b, np.ones(n)]), z, task, cell)
    est = t_estimate(
        label,
        "new",
        j.value[0],
        j.se_new[0],
        j.n_clusters - 1,
        n=n,
        n_clusters=j.n_clusters,
        method="jackknife over tasks of atanh r (se on that scale)",
        warnings=notes,
        reason="one task only" if j.n_clusters < 2 else None,
    )
    if est.value is None:
        return Estimate(
            label,
            "new",
            float(np.clip((a * b).mean(), -1, 1)),
            n=n,
            reason="the runs lie on a line",
        )
    p = two_sided_p(est.value / est.se, est.df) if est.se and est.df else None
    return replace(back_transform(est, math.tanh), p=p)
