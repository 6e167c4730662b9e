"""What a judge's errors do to means, leaderboards and code effects, corrected by human labels on
some of the runs.

Means: difference estimator (judge's mean over all runs plus the labelled runs' mean difference).
Code effects: predict-then-debias (Kluger et al.), its variance from influence functions summed by
task. Labels weigh by how their runs were drawn. Nothing is corrected from fewer than ten human
positives of a code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from ..tables.cohorts import Cohort
from ..tables.frames import WEIGHTS
from ..tables.label_tables import CONVENIENCE, Labels, weighted
from .agent_scores import (
    ONE_TASK_PER_TRACK,
    CellMeans,
    agent_contrasts,
    agent_score,
    cell_means,
    variance_between_tasks,
)
from .descriptive import balance_weights
from .interval_estimates import (
    Bools,
    Estimate,
    Floats,
    KeyedEstimates,
    Population,
    t_estimate,
    t_quantile,
    tidy,
)
from .jackknife import group_ids, group_sums
from .overlap_weighting import fit_code_effects
from .ranking import possible_ranks
from .run_arrays import RunArrays, build_arrays

MIN_POSITIVES, FEW_POSITIVES = 10, 30
"""Human positives of a code: below the first its effect is not corrected; below the second the
interval covers some .9, and says so."""
MIN_LABELS, FEW, TUNE_FROM = 5, 25, 50
"""Labels of a group: below the first nothing is corrected; below the second its differences are
taken to spread as those of all groups do, and where they spread more, as the mean of both; from the
third lambda is tuned."""


@dataclass(frozen=True)
class Correction:
    """Mean of human values minus mean of judge values over a group of runs, from those that are
    labelled."""

    value: float
    variance: float
    df: float
    spread: float
    """Weighted variance of the differences."""
    n: int
    lam: float
    leverage: float
    """What a variance of the differences of 1 makes for `variance`."""


def estimate_correction(
    judge: Floats,
    human: Floats,
    weight: Floats,
    target: Floats | None = None,
    *,
    tuned: bool = False,
) -> Correction:
    """The difference estimator over N runs with `human` NaN where not labelled: lam mean(f) +
    mean_w(y - lam f) - mean(f).

    `weight` is one over the probability of being labelled, `target` what each run weighs in the
    mean (default: the same). Variance of a Poisson sample, sum w (w - 1) d^2 / (sum w)^2 times n /
    (n - 1): with equal weights that of a simple random sample, s^2/n (1 - n/N). `tuned`: lambda is
    the weighted regression of y on f, which is PPI++'s for a mean over these runs.
    """
    mine = np.isfinite(human)
    share = np.ones(len(judge)) if target is None else target
    f, y, w, b = judge[mine], human[mine], weight[mine], share[mine]
    n, total = int(mine.sum()), float((w * b).sum())
    lam = 1.0
    if tuned:
        centred = f - (w * b * f).sum() / total
        square = float((w * b * centred**2).sum())
        lam = float(np.clip((w * b * centred * y).sum() / square, 0, 1)) if square > 0 else 1.0
    gap = y - lam * f
    mean = float((w * b * gap).sum() / total)
    value = mean + (lam - 1) * float((share * judge).sum() / share.sum())
    free = n - 1 - tuned
    squares = (gap - mean) ** 2
    parts = w * np.maximum(w - 1, 0) * b**2
    leverage = float(parts.sum()) / total**2 * n / max(free, 1)
    spread = float((w * b * squares).sum() / total)
    return Correction(
        value,
        float((parts * squares).sum()) / total**2 * n / max(free, 1),
        max(float(free), 1.0),
        spread,
        n,
        lam,
        leverage,
    )


def judged_mean(
    judge: Floats,
    human: Floats,
    labelled: Bools,
    *,
    label: str = "mean",
    value_range: float = 1.0,
    tuned: bool = False,
    weight: Floats | None = None,
) -> Estimate:
    """Mean of the human values over these N runs from judge values of all and human values where
    `labelled` (see `judge_gap`).

    t interval. With differences that are all equal the half-width is the rule of three's, 3/n of
    `value_range`. `weight`: one over the probability of being labelled (default: equal).
    """
    n, total = int(labelled.sum()), len(judge)
    if n < 2:
        why = f"{n} labelled runs; two are needed"
        return Estimate(
            label, "same", None, n=total, method="difference estimator: these runs", reason=why
        )
    w = np.full(total, total / n) if weight is None else weight
    gap = estimate_correction(judge, np.where(labelled, human, np.nan), w, tuned=tuned)
    return _these_runs(
        label, float(judge.mean()), gap, total, value_range, (-math.inf, math.inf), ()
    )


def _these_runs(
    label: str,
    judged: float,
    gap: Correction,
    total: int,
    span: float,
    limits: tuple[float, float],
    notes: tuple[str, ...],
) -> Estimate:
    value, se = judged + gap.value, math.sqrt(gap.variance)
    method = "difference estimator" if gap.lam == 1 else f"PPI++ with lambda {gap.lam:.2f}"
    if gap.spread <= (1e-9 * span) ** 2 and gap.n < total:
        se = 3 / gap.n * span / t_quantile(0.975, gap.df)
        notes = (
            *notes,
            "the labels never differed from the judge: half-width by the rule of three",
        )
    method += ": these very runs"
    return t_estimate(
        label,
        "same",
        value,
        se,
        gap.df,
        n=total,
        method=method,
        test=False,
        warnings=notes,
        limits=limits,
    )


def human_scores(
    cards: Cohort, labels: Labels, annotator: str
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """(`run_id`, `human`, `weight`; notes): Overall with the judge's errors on S1-S3 taken out as
    an annotator sees them.

    A stage moves by the mean of (human - judge) over criteria that both decided, times the share of
    its criteria that the judge decided: credited ones are rules, and what nobody labelled is taken
    to be as wrong as the rest of its stage. A judge that never errs is not moved. Runs without an
    Overall, or with a judged stage that is not labelled, are left out.
    """
    mine = labels.of(annotator)
    stage = pl.col("criterion").str.slice(0, 2)
    decided = (
        pl.col("status").cast(pl.String).is_in(["scored", "presumed"])
        & pl.col("value").is_not_null()
    )
    judged = cards.criteria.with_columns(
        pl.col("criterion").cast(pl.String), pl.col("run_id").cast(pl.String)
    )
    judged = judged.filter(pl.col("value").is_not_null() & stage.is_in(["S1", "S2", "S3"]))
    gaps = (
        judged.with_columns(stage=stage, decided=decided)
        .join(
            mine.criteria.select("run_id", "criterion", human="value"),
            on=["run_id", "criterion"],
            how="left",
        )
        .with_columns(gap=pl.when("decided").then(pl.col("human") - pl.col("value")))
        .group_by("run_id", "stage", maintain_order=True)
        .agg(gap=pl.col("gap").mean(), share=pl.col("decided").mean())
        .with_columns(
            shift=pl.when(pl.col("share") > 0).then(pl.col("gap") * pl.col("share")).otherwise(0.0)
        )
        .with_columns(
            shift=50
            * pl.col("stage").replace_strict(WEIGHTS, return_dtype=pl.Float64)
            * pl.col("shift")
        )
    )
    shifts = gaps.group_by("run_id").agg(
        shift=pl.when(pl.col("shift").null_count() == 0).then(pl.col("shift").sum()),
        stages=pl.len(),
    )
    runs = cards.runs.filter(
        ~pl.col("disqualified").fill_null(False) & pl.col("overall").is_not_null()
    )
    found = (
        runs.unique("run_id", keep="first", maintain_order=True)
        .join(
            shifts.filter(pl.col("stages") == 3).drop_nulls("shift"),
            on="run_id",
            maintain_order="left",
        )
        .select("run_id", human=pl.col("overall") + pl.col("shift"))
    )
    out, notes = weighted(found, mine.drawn)
    return out.select("run_id", "human", "weight"), notes


def corrected_leaderboard(
    table: pl.DataFrame,
    human: pl.DataFrame,
    outcome: str = "overall",
    *,
    notes: tuple[str, ...] = (),
    prepare: bool = True,
) -> pl.DataFrame:
    """Agents' means corrected by human scores (`human`: run_id, human on the outcome's scale,
    weight: one over the probability of being labelled, without which the labels are a convenience
    sample).

    Rows by agent: `kind` judge (as scored) and corrected; the latter for these very runs (the
    judge's error alone) and for new tasks (both). Every agent is corrected by its own labels:
    judges may favour one. Below 25 of them their spread is taken to be that of all agents'
    differences, or the mean of both where it is larger, below 5 nothing is corrected. A convenience
    sample gets no interval.
    """
    d = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = cell_means(d)
    chosen = human.unique("run_id").select(
        "run_id",
        "human",
        pl.col("weight") if "weight" in human.columns else pl.lit(1.0).alias("weight"),
    )
    known = d.table.select("run_id").join(chosen, on="run_id", how="left", maintain_order="left")
    y, weight = (known[name].cast(pl.Float64).to_numpy() for name in ("human", "weight"))
    labelled = np.isfinite(y)
    drawn = ("weight" in human.columns and CONVENIENCE not in notes) or bool(labelled.all())
    notes = (
        *d.notes,
        *(() if drawn else (CONVENIENCE,)),
        *(note for note in notes if note != CONVENIENCE),
    )
    span = d.difference_limits[1] if math.isfinite(d.difference_limits[1]) else 1.0
    target = balance_weights(d.table)
    keys: dict[str, Any] = {
        "agent": pl.String,
        "kind": pl.String,
        "labels": pl.Int64,
        "rank_lo": pl.Int64,
        "rank_hi": pl.Int64,
    }
    of = [d.agent == a for a in range(len(g.agents))]
    gaps = [
        (
            estimate_correction(
                d.y[mine],
                y[mine],
                weight[mine],
                target[mine],
                tuned=int((labelled & mine).sum()) >= TUNE_FROM,
            )
            if (labelled & mine).sum() >= MIN_LABELS
            else None
        )
        for mine in of
    ]
    pooled, free = _pooled_spread(gaps)
    gaps = [
        (
            replace(gap, variance=max(shared, (shared + gap.variance) / 2), df=free)
            if gap is not None and gap.n < FEW and (shared := pooled * gap.leverage)
            else gap
        )
        for gap in gaps
    ]
    ranks = _corrected_ranks(g, gaps) if drawn else None
    rows: KeyedEstimates = []
    for a, name in enumerate(g.agents):
        score, gap = agent_score(g, a, np.ones(len(g.tasks), dtype=bool)), gaps[a]
        if score is None:
            continue
        variance, df, borrowed = variance_between_tasks(score.residual, score.track_of)
        n = int((labelled & of[a]).sum())
        common: dict[str, Any] = {"n": score.n_runs, "test": False, "limits": d.limits}
        lonely = None if df else ONE_TASK_PER_TRACK
        tasks = int((score.track_of >= 0).sum())
        key: dict[str, Any] = {"agent": name, "kind": "judge", "labels": n}
        rows.append(
            (
                key,
                t_estimate(
                    f"mean {outcome}",
                    "new",
                    score.value,
                    math.sqrt(variance) if df else None,
                    df,
                    reason=lonely,
                    method="tasks within tracks, t",
                    warnings=d.notes,
                    n_clusters=tasks,
                    **common,
                ),
            )
        )
        key = {"agent": name, "kind": "corrected", "labels": n}
        if ranks:
            key |= {"rank_lo": ranks[a][0], "rank_hi": ranks[a][1]}
        label = f"corrected mean {outcome}"
        if gap is None:
            reason = f"{n} labelled runs of {name}; {MIN_LABELS} are needed"
            rows += [
                (key, Estimate(label, each, None, n=score.n_runs, reason=reason))
                for each in POPULATIONS
            ]
            continue
        warnings = notes
        if n < FEW:
            warnings = (
                *notes,
                f"{n} labels only: they are taken to spread as those of all agents do at least",
            )
        if not drawn:
            value, why = score.value + gap.value, "convenience sample: no interval"
            rows += [
                (key, Estimate(label, each, value, n=score.n_runs, reason=why, warnings=warnings))
                for each in POPULATIONS
            ]
            continue
        these = _these_runs(label, score.value, gap, score.n_runs, span, d.limits, warnings)
        rows.append((key, these))
        if these.value is None or these.se is None:
            continue
        whole = variance + these.se**2
        both = whole**2 / (variance**2 / df + these.se**4 / gap.df) if df else None
        rows.append(
            (
                key,
                t_estimate(
                    label,
                    "new",
                    these.value,
                    math.sqrt(whole) if df else None,
                    both,
                    method=f"{these.method.split(':')[0]}; plus tasks within tracks",
                    reason=lonely,
                    warnings=(*these.warnings, *([borrowed] if borrowed and df else [])),
                    n_clusters=tasks,
                    **common,
                ),
            )
        )
    return tidy(rows, keys)


POPULATIONS: tuple[Population, ...] = ("same", "new")


def _corrected_ranks(
    g: CellMeans, gaps: Sequence[Correction | None]
) -> list[tuple[int, int]] | None:
    """The ranks that corrected differences leave possible for new tasks: each has the error of the
    pair and of both corrections; None where an agent has no correction or a pair cannot be
    compared."""
    pairs, n, moved = agent_contrasts(g), len(g.agents), []
    if n < 2 or len(pairs) < n * (n - 1) // 2:
        return None
    for pair in pairs:
        first, second = gaps[pair.a], gaps[pair.b]
        if first is None or second is None or pair.df < 1:
            return None
        parts = ((pair.se**2, pair.df), (first.variance, first.df), (second.variance, second.df))
        whole = sum(variance for variance, _ in parts)
        free = whole**2 / sum(variance**2 / df for variance, df in parts) if whole > 0 else pair.df
        moved.append(
            replace(
                pair, value=pair.value + first.value - second.value, se=math.sqrt(whole), df=free
            )
        )
    return possible_ranks(moved, n)


def _pooled_spread(gaps: Sequence[Correction | None]) -> tuple[float, float]:
    """The variance of differences within groups, over all of them, and its degrees of freedom."""
    known = [gap for gap in gaps if gap is not None]
    return sum(gap.spread * gap.n for gap in known) / max(sum(gap.n for gap in known), 1), sum(
        gap.df for gap in known
    )


def additive_dummies(d: RunArrays) -> Floats:
    """Intercept and dummies of agent, task and tier (first levels left out)."""
    columns = [np.ones((d.n, 1))]
    for axis, size in ((d.agent, len(d.agents)), (d.task, len(d.tasks)), (d.tier, len(d.tiers))):
        columns.append((axis[:, None] == np.arange(1, size)[None, :]).astype(float))
    return np.hstack(columns)


def weighted_least_squares(x: Floats, y: Floats, weight: Floats, k: int) -> tuple[Floats, Floats]:
    """Weighted least squares: the first k coefficients and each run's influence on them (rows sum
    to about 0)."""
    inverse = np.linalg.pinv(x.T @ (x * weight[:, None]), hermitian=True)
    theta = inverse @ (x.T @ (weight * y))
    # A fit draws near the runs that weigh most and the rare code's few (300 labels carry 36
    # dummies): HC3, residuals over 1 - leverage.
    leverage = weight * ((x @ inverse) * x).sum(1)
    residual = (y - x @ theta) * weight / np.maximum(1 - leverage, 1e-3)
    return theta[:k], (x * residual[:, None]) @ inverse[:, :k]


def predict_then_debias(
    human: Floats,
    judge: Floats,
    fixed: Floats,
    y: Floats,
    labelled: Bools,
    task: np.ndarray[Any, Any],
    probability: Floats | None = None,
) -> dict[str, Floats]:
    """PTD with additive fixed effects: theta = theta_H(L) + Omega (theta_J(all) - theta_J(L)),
    Omega diagonal in [0, 1].

    `human` (n x K) is read where `labelled`; `probability` are inclusion probabilities of labelled
    runs (weights 1/p). Returns theta, se (task-clustered influence functions), omega, and the two
    fits `human_only` and `judge_only`, with se.
    """
    k = judge.shape[1]
    weight = np.ones(int(labelled.sum())) if probability is None else 1 / probability[labelled]
    ones = np.ones(len(y))
    all_theta, all_influence = weighted_least_squares(np.hstack([judge, fixed]), y, ones, k)
    l_judge, l_influence = weighted_least_squares(
        np.hstack([judge[labelled], fixed[labelled]]), y[labelled], weight, k
    )
    l_human, h_influence = weighted_least_squares(
        np.hstack([human[labelled], fixed[labelled]]), y[labelled], weight, k
    )
    ih, gap = np.zeros((len(y), k)), -all_influence
    ih[labelled] = h_influence
    gap[labelled] += l_influence
    norm = (gap**2).sum(0)
    omega = np.clip(
        np.where(norm > 0, (ih * gap).sum(0) / np.where(norm > 0, norm, 1.0), 0.0), 0.0, 1.0
    )
    cluster, n_clusters = group_ids(task)
    factor = n_clusters / (n_clusters - 1) if n_clusters > 1 else math.nan

    def se(influence: Floats) -> Floats:
        return np.asarray(
            np.sqrt(factor * (group_sums(influence, cluster, n_clusters) ** 2).sum(0))
        )

    return {
        "theta": l_human + omega * (all_theta - l_judge),
        "se": se(ih - omega * gap),
        "omega": omega,
        "human_only": l_human,
        "human_se": se(ih),
        "judge_only": all_theta,
        "judge_se": se(all_influence),
    }


def corrected_code_effects(
    table: pl.DataFrame,
    human: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    notes: tuple[str, ...] = (),
    prepare: bool = True,
) -> pl.DataFrame:
    """Code effects (points, additive in agent, task, tier) corrected for wrong tags by human codes
    on some runs.

    `human`: run_id and E1..E5 (Boolean), and `weight`, one over the probability of being labelled,
    without which the labels are a convenience sample and nothing is corrected. Rows by code: `kind`
    judge (tags as they are), human (labelled runs only) and corrected. What `code_effects` refuses
    is refused here. The model's codes are additive, so its numbers are not those of `code_effects`:
    hold the kinds against one another.
    """
    d = build_arrays(table, outcome, source=source, prepare=prepare)
    drawn = "weight" in human.columns and CONVENIENCE not in notes
    labels = human.unique("run_id", keep="first").select(
        "run_id",
        *(pl.col(c).alias(f"{c}_h") for c in CODES),
        pl.col("weight") if drawn else pl.lit(1.0).alias("weight"),
    )
    joined = d.table.select("run_id").join(labels, on="run_id", how="left", maintain_order="left")
    names = d.code_names
    truth = (
        joined.select(pl.col(f"{c}_h").cast(pl.Float64) for c in names)
        .to_numpy()
        .reshape(-1, len(names))
    )
    labelled = np.isfinite(truth).all(1)
    drawn = drawn or bool(labelled.all())
    notes = (
        *d.notes,
        *notes,
        "additive in codes, agent, task and tier: hold the kinds against one another",
    )
    positives = np.nan_to_num(truth[labelled]).sum(0).astype(int)
    keys: dict[str, Any] = {
        "code": pl.String,
        "kind": pl.String,
        "omega": pl.Float64,
        "human_positives": pl.Int64,
        "labels": pl.Int64,
    }
    rows: KeyedEstimates = []
    m, n_tasks = int(labelled.sum()), len(d.tasks)
    enough = m > len(names) + 2 and n_tasks >= 2
    fit: dict[str, Floats] = {}
    if enough:
        probability = 1 / joined["weight"].cast(pl.Float64).to_numpy()
        fit = predict_then_debias(
            np.nan_to_num(truth),
            d.codes.astype(float),
            additive_dummies(d),
            d.y,
            labelled,
            d.task,
            probability,
        )
    refused = fit_code_effects(d)
    for code in CODES:
        k = names.index(code) if code in names else None
        for kind, value, se in (
            ("judge", "judge_only", "judge_se"),
            ("human", "human_only", "human_se"),
            ("corrected", "theta", "se"),
        ):
            label = f"effect of {code} on {outcome} ({kind})"
            if k is None:
                unread = Estimate(
                    label, "new", None, n=d.n, n_clusters=n_tasks, reason=d.reading_count(code)
                )
                rows.append(({"code": code, "kind": kind, "labels": m}, unread))
                continue
            key: dict[str, Any] = {
                "code": code,
                "kind": kind,
                "human_positives": int(positives[k]),
                "labels": m,
            }
            if kind == "corrected" and enough:
                key["omega"] = float(fit["omega"][k])
            how = "predict-then-debias" if kind == "corrected" else "additive fixed effects"
            reason = refused.refusal(k)
            if reason is None and not enough:
                reason = f"{m} labelled runs in {n_tasks} tasks: too few for a correction"
            elif reason is None and kind != "judge" and positives[k] < MIN_POSITIVES:
                reason = (
                    f"{positives[k]} human positives of {code}; {MIN_POSITIVES} are needed (label"
                    f" runs tagged {code})"
                )
            elif reason is None and kind != "judge" and not drawn:
                reason = CONVENIENCE
            how += ", influence by task"
            if reason:
                rows.append(
                    (
                        key,
                        Estimate(
                            label, "new", None, n=d.n, n_clusters=n_tasks, method=how, reason=reason
                        ),
                    )
                )
                continue
            few = (
                (f"{positives[k]} human positives: the interval is rough",)
                if kind != "judge" and positives[k] < FEW_POSITIVES
                else ()
            )
            rows.append(
                (
                    key,
                    t_estimate(
                        label,
                        "new",
                        float(fit[value][k]),
                        float(fit[se][k]),
                        n_tasks - 1,
                        n=d.n,
                        n_clusters=n_tasks,
                        method=how,
                        warnings=(*notes, *few),
                        limits=d.difference_limits,
                    ),
                )
            )
    return tidy(rows, keys)
