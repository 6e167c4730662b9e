"""What a judge's errors do to means, leaderboards and code effects, corrected by human labels on some of the runs.

Means: difference estimator (judge's mean over all runs plus the labelled runs' mean difference). Code effects:
predict-then-debias (Kluger et al.), its variance from influence functions summed by task; multiple imputation and SIMEX
as options. Nothing is corrected from fewer than ten human positives of a code.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import polars as pl

from ..errors import ConfigError
from .codes_read import CODES
from .cohorts import Cohort
from .design import Design, design
from .estimate import Bools, Estimate, Floats, Population, Rows, estimate, t_quantile, tidy
from .frames import WEIGHTS
from .jackknife import codes_of, group_sums
from .label_tables import Labels
from .ranking import agent_score, grid, variance_new

MIN_POSITIVES = 10
POOL_BELOW, TUNE_FROM = 25, 50
"""Labels per group: below the first the correction is pooled over groups, from the second lambda is tuned."""


def judged_mean(
    judge: Floats, human: Floats, labelled: Bools, *, label: str = "mean", value_range: float = 1.0, tuned: bool = False
) -> Estimate:
    """Mean of the human values over these N runs from judge values of all and human values where `labelled`.

    mean(f) + mean_L(y - f), SE = sd_L(y - f) / sqrt(n) * sqrt(1 - n/N), t with n-1 degrees of freedom. With differences
    that are all equal the half-width is the rule of three's, 3/n of `value_range`. `tuned`: PPI++ with its lambda.
    """
    n, total = int(labelled.sum()), len(judge)
    method = "difference estimator: these runs"
    if n < 2:
        return Estimate(label, "same", None, n=total, method=method, reason=f"{n} labelled runs; two are needed")
    f, y = judge[labelled], human[labelled]
    lam = 1.0
    if tuned and f.var() > 0:
        lam = float(np.clip(np.cov(y, f)[0, 1] / ((1 + n / total) * np.var(judge, ddof=1)), 0, 1))
        method = f"PPI++ with lambda {lam:.2f}: these runs"
    gap = y - lam * f
    value = lam * float(judge.mean()) + float(gap.mean())
    correction = math.sqrt(max(0.0, 1 - n / total))
    se = float(gap.std(ddof=1)) / math.sqrt(n) * correction
    if se <= 1e-9 * value_range and n < total:
        half = 3 / n * value_range
        note = "the labels never differed from the judge: half-width by the rule of three"
        return Estimate(
            label, "same", value, half / t_quantile(0.975, n - 1), value - half, value + half, df=n - 1, n=total,
            method=method, warnings=(note,),
        )  # fmt: skip
    few = () if n >= POOL_BELOW else (f"{n} labels only: intervals this small cover less than they say",)
    return estimate(label, "same", value, se, n - 1, n=total, method=method, test=False, warnings=few)


def human_scores(cards: Cohort, labels: Labels, annotator: str) -> pl.DataFrame:
    """`run_id`, `human`: Overall with S1-S3 replaced by the means of an annotator's criteria (all weigh the same).

    Runs without all three stages labelled and scored, or without an Overall, are left out.
    """
    stage = pl.col("criterion").str.slice(0, 2)
    means = (
        labels.of(annotator)
        .criteria.group_by("run_id", stage.alias("stage"))
        .agg(pl.col("value").mean())
        .pivot("stage", index="run_id", values="value")
    )
    if not {"S1", "S2", "S3"} <= set(means.columns):
        return pl.DataFrame(schema={"run_id": pl.String, "human": pl.Float64})
    joined = cards.runs.filter(~pl.col("disqualified").fill_null(False)).join(
        means.select("run_id", *(pl.col(s).alias(f"{s}_human") for s in ("S1", "S2", "S3"))), on="run_id"
    )
    shift = pl.sum_horizontal(50 * WEIGHTS[s] * (pl.col(f"{s}_human") - pl.col(s)) for s in ("S1", "S2", "S3"))
    complete = pl.all_horizontal(
        pl.col(c).is_not_null() for c in [*WEIGHTS, "overall", "S1_human", "S2_human", "S3_human"]
    )
    return (
        joined.filter(complete)
        .select("run_id", human=pl.col("overall") + shift)
        .unique("run_id", keep="first", maintain_order=True)
    )


def corrected_leaderboard(
    table: pl.DataFrame, human: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True
) -> pl.DataFrame:
    """Agents' means corrected by human scores (`human`: run_id, human, on the outcome's scale).

    Rows by agent: `kind` judge (as scored) and corrected; the latter for these runs (SE of the judge's error) and for
    new tasks (SE_task and SE_judge together). Below 25 labels of an agent its correction is the pooled one.
    """
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = grid(d)
    known = d.table.select("run_id").join(human.unique("run_id"), on="run_id", how="left", maintain_order="left")[
        "human"
    ]
    y = known.cast(pl.Float64).to_numpy()
    labelled = np.isfinite(y)
    span = 100.0 if outcome == "overall" else 1.0
    keys: dict[str, Any] = {"agent": pl.String, "kind": pl.String, "labels": pl.Int64, "pooled": pl.Boolean}
    rows: Rows = []
    for a, name in enumerate(g.agents):
        score = agent_score(g, a, np.ones(len(g.tasks), dtype=bool))
        if score is None:
            continue
        variance, df, _ = variance_new(score.residual, score.track_of)
        mine = d.agent == a
        n = int((labelled & mine).sum())
        pooled = n < POOL_BELOW
        common: dict[str, Any] = {"n": score.n_runs, "n_clusters": int((score.track_of >= 0).sum()), "test": False}
        lonely = None if df else "one task a track"
        key: dict[str, Any] = {"agent": name, "kind": "judge", "labels": n, "pooled": False}
        rows.append((key, estimate(
            f"mean {outcome}", "new", score.value, math.sqrt(variance) if df else None, df, reason=lonely,
            method="tasks within tracks, t", warnings=d.notes, **common,
        )))  # fmt: skip
        key = {"agent": name, "kind": "corrected", "labels": n, "pooled": pooled}
        label = f"corrected mean {outcome}"
        everyone = np.ones(d.n, dtype=bool) if pooled else mine
        shift = judged_mean(
            d.y[everyone], y[everyone], labelled[everyone], value_range=span, tuned=not pooled and n >= TUNE_FROM
        )
        if shift.value is None or shift.se is None:
            populations: tuple[Population, ...] = ("same", "new")
            rows += [(key, Estimate(label, each, None, n=score.n_runs, reason=shift.reason)) for each in populations]
            continue
        moved = score.value + shift.value - float(d.y[everyone].mean())
        pool = (f"fewer than {POOL_BELOW} labels: correction pooled over agents",) if pooled else ()
        common["warnings"] = (*d.notes, *shift.warnings, *pool)
        free = int((labelled & everyone).sum()) - 1
        rows.append((key, estimate(label, "same", moved, shift.se, free, method=shift.method, **common)))
        both, method = math.sqrt(variance + shift.se**2) if df else None, f"{shift.method}; plus tasks within tracks"
        rows.append((key, estimate(label, "new", moved, both, df, method=method, reason=lonely, **common)))
    return tidy(rows, keys)


def additive_design(d: Design) -> Floats:
    """Intercept and dummies of agent, task and tier (first levels left out)."""
    columns = [np.ones((d.n, 1))]
    for axis, size in ((d.agent, len(d.agents)), (d.task, len(d.tasks)), (d.tier, len(d.tiers))):
        columns.append((axis[:, None] == np.arange(1, size)[None, :]).astype(float))
    return np.hstack(columns)


def weighted_fit(x: Floats, y: Floats, weight: Floats, k: int) -> tuple[Floats, Floats]:
    """Weighted least squares: the first k coefficients and each run's influence on them (rows sum to about 0)."""
    inverse = np.linalg.pinv(x.T @ (x * weight[:, None]), hermitian=True)
    theta = inverse @ (x.T @ (weight * y))
    free = len(y) - x.shape[1]
    # Residuals shrink with the number of dummies fitted: 300 labels carry some 36 of them (as in HC1 and CR1).
    grown = np.sqrt((len(y) - 1) / free) if free > 0 else 1.0
    residual = (y - x @ theta) * weight * grown
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
    """PTD with additive fixed effects: theta = theta_H(L) + Omega (theta_J(all) - theta_J(L)), Omega diagonal in [0, 1].

    `human` (n x K) is read where `labelled`; `probability` are inclusion probabilities of labelled runs (weights 1/p).
    Returns theta, se (task-clustered influence functions), omega, and the two fits `human_only` and `judge_only`, with se.
    """
    k = judge.shape[1]
    weight = np.ones(int(labelled.sum())) if probability is None else 1 / probability[labelled]
    ones = np.ones(len(y))
    all_theta, all_influence = weighted_fit(np.hstack([judge, fixed]), y, ones, k)
    l_judge, l_influence = weighted_fit(np.hstack([judge[labelled], fixed[labelled]]), y[labelled], weight, k)
    l_human, h_influence = weighted_fit(np.hstack([human[labelled], fixed[labelled]]), y[labelled], weight, k)
    ih, gap = np.zeros((len(y), k)), -all_influence
    ih[labelled] = h_influence
    gap[labelled] += l_influence
    norm = (gap**2).sum(0)
    omega = np.clip(np.where(norm > 0, (ih * gap).sum(0) / np.where(norm > 0, norm, 1.0), 0.0), 0.0, 1.0)
    cluster, n_clusters = codes_of(task)
    factor = n_clusters / (n_clusters - 1) if n_clusters > 1 else math.nan

    def se(influence: Floats) -> Floats:
        return np.asarray(np.sqrt(factor * (group_sums(influence, cluster, n_clusters) ** 2).sum(0)))

    return {
        "theta": l_human + omega * (all_theta - l_judge), "se": se(ih - omega * gap), "omega": omega,
        "human_only": l_human, "human_se": se(ih), "judge_only": all_theta, "judge_se": se(all_influence),
    }  # fmt: skip


def corrected_code_effects(
    table: pl.DataFrame,
    human: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    prepare: bool = True,
) -> pl.DataFrame:
    """Code effects (points, additive in agent, task, tier) corrected for wrong tags by human codes on some runs.

    `human`: run_id and E1..E5 (Boolean), optionally `probability` of having been chosen for labelling. Rows by code:
    `kind` judge (tags as they are), human (labelled runs only) and corrected. `mi` uses cell fixed effects; `simex`
    assumes that errors do not depend on the outcome and gives no interval: a sensitivity check only. Codes that the judge
    read too few runs for have no place in the model, and rows that say so.
    """
    d = design(table, outcome, source=source, prepare=prepare)
    labels = human.unique("run_id", keep="first").select(
        "run_id",
        *(pl.col(c).alias(f"{c}_h") for c in CODES),
        *(["probability"] if "probability" in human.columns else []),
    )
    joined = d.table.select("run_id").join(labels, on="run_id", how="left", maintain_order="left")
    names = d.code_names
    truth = joined.select(pl.col(f"{c}_h").cast(pl.Float64) for c in names).to_numpy().reshape(-1, len(names))
    labelled = np.isfinite(truth).all(1)
    positives = np.nan_to_num(truth[labelled]).sum(0).astype(int)
    keys: dict[str, Any] = {
        "code": pl.String, "kind": pl.String, "omega": pl.Float64, "human_positives": pl.Int64, "labels": pl.Int64,
    }  # fmt: skip
    rows: Rows = []
    m, n_tasks = int(labelled.sum()), len(d.tasks)
    judge, fixed = d.codes.astype(float), additive_design(d)
    enough = m > len(names) + 2 and n_tasks >= 2
    fit: dict[str, Floats] = {}
    if enough:
        probability = joined["probability"].cast(pl.Float64).to_numpy() if "probability" in joined.columns else None
        fit = predict_then_debias(np.nan_to_num(truth), judge, fixed, d.y, labelled, d.task, probability)
        if method == "mi":
            fit["theta"], fit["se"] = imputed_effects(d, truth, labelled, seed)
        elif method == "simex":
            fit["theta"], fit["se"] = simex_effects(d, truth, labelled, fixed, seed), np.full(len(names), np.nan)
    words = {
        "ptd": "predict-then-debias, influence by task",
        "mi": "multiple imputation with the outcome, cell fixed effects",
        "simex": "MC-SIMEX, quadratic (assumes errors that ignore the outcome)",
    }
    for code in CODES:
        k = names.index(code) if code in names else None
        for kind, value, se in (
            ("judge", "judge_only", "judge_se"),
            ("human", "human_only", "human_se"),
            ("corrected", "theta", "se"),
        ):
            label = f"effect of {code} on {outcome} ({kind})"
            if k is None:
                unread = Estimate(label, "new", None, n=d.n, n_clusters=n_tasks, reason=d.not_read(code))
                rows.append(({"code": code, "kind": kind, "labels": m}, unread))
                continue
            key: dict[str, Any] = {"code": code, "kind": kind, "human_positives": int(positives[k]), "labels": m}
            if kind == "corrected" and method == "ptd" and enough:
                key["omega"] = float(fit["omega"][k])
            how = words[method] if kind == "corrected" else "additive fixed effects, influence by task"
            reason = None
            if not enough:
                reason = f"{m} labelled runs in {n_tasks} tasks: too few for a correction"
            elif kind != "judge" and positives[k] < MIN_POSITIVES:
                reason = (
                    f"{positives[k]} human positives of {code}; {MIN_POSITIVES} are needed (label runs tagged {code})"
                )
            elif kind == "judge" and not d.codes[:, k].any():
                reason = f"{code} was never tagged"
            if reason:
                rows.append((key, Estimate(label, "new", None, n=d.n, n_clusters=n_tasks, method=how, reason=reason)))
                continue
            rows.append((key, estimate(
                label, "new", float(fit[value][k]), float(fit[se][k]), n_tasks - 1, n=d.n, n_clusters=n_tasks, method=how,
                reason="SIMEX gives no interval here" if kind == "corrected" and method == "simex" else None,
                warnings=(*d.notes, *(("additive fixed effects leave agent x task differences in",) if method == "ptd" else ())),
            )))  # fmt: skip
    return tidy(rows, keys)
