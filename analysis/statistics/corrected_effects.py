"""Code effects corrected for wrong tags, by human codes on some of the runs.

Predict-then-debias (Kluger et al.): the effect by human tags on the labelled runs, plus what the
judge's tags on all runs add to those on the labelled runs. Its variance comes from influence
functions summed by task. Labels are weighted by how their runs were drawn. With fewer than ten
human positives of a code nothing is corrected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from ..tables.label_tables import CONVENIENCE
from .interval_estimates import Bools, Estimate, Floats, KeyedEstimates, t_estimate, tidy
from .jackknife import group_ids, group_sums
from .overlap_weighting import fit_code_effects
from .run_arrays import RunArrays, build_arrays

MIN_POSITIVES, FEW_POSITIVES = 10, 30
"""Human positives of a code: below the first its effect is not corrected; below the second the
interval covers about .9, and a warning says that it is rough."""
KINDS = ("judge", "human", "corrected")
ADDITIVE_NOTE = "additive in codes, agent, task and tier: compare the kinds with one another only"


def additive_dummies(runs: RunArrays) -> Floats:
    """Intercept and dummies of agent, task and tier without their first levels (n x columns)."""
    columns = [np.ones((runs.n, 1))]
    for name in ("agent", "task", "tier"):
        level, levels = runs.axis(name)
        columns.append((level[:, None] == np.arange(1, len(levels))[None, :]).astype(float))
    return np.hstack(columns)


def weighted_least_squares(x: Floats, y: Floats, weight: Floats, k: int) -> tuple[Floats, Floats]:
    """The first k coefficients (k) of WLS of y (n) on x (n x p), and each run's influence (n x k).

    theta = (X'WX)^-1 X'Wy. Influences add up to about 0.
    """
    inverse = np.linalg.pinv(x.T @ (x * weight[:, None]), hermitian=True)
    theta = inverse @ (x.T @ (weight * y))
    # The fit follows the runs that weigh most and the few of a rare code (300 labels carry 36
    # dummies), so their residuals are too small: HC3, residuals over 1 - leverage.
    leverage = weight * ((x @ inverse) * x).sum(1)
    residual = (y - x @ theta) * weight / np.maximum(1 - leverage, 1e-3)
    return theta[:k], (x * residual[:, None]) @ inverse[:, :k]


@dataclass(frozen=True)
class DebiasedFit:
    """Coefficients of K codes and their standard errors, clustered by task (K each)."""

    theta: Floats
    se: Floats
    omega: Floats
    """The weight of the judge's tags, in [0, 1]."""
    human_only: Floats
    """By human tags on the labelled runs."""
    human_se: Floats
    judge_only: Floats
    """By the judge's tags on all runs."""
    judge_se: Floats

    def coefficient(self, kind: str, k: int) -> tuple[float, float]:
        """Value and standard error of code `k` by judge, human or corrected."""
        value, se = self.theta, self.se
        if kind == "judge":
            value, se = self.judge_only, self.judge_se
        elif kind == "human":
            value, se = self.human_only, self.human_se
        return float(value[k]), float(se[k])


def predict_then_debias(
    human: Floats,
    judge: Floats,
    fixed: Floats,
    y: Floats,
    labelled: Bools,
    task: np.ndarray[Any, Any],
    probability: Floats | None = None,
) -> DebiasedFit:
    """Predict-then-debias with additive fixed effects.

    theta = theta_H(L) + Omega (theta_J(all) - theta_J(L)), with human tags H, judge tags J and the
    labelled runs L; Omega is diagonal, in [0, 1], and minimises the variance.

    `human` (n x K) is used where `labelled` (n), `judge` (n x K) everywhere, `fixed` (n x q) are
    dummies, `y` (n) the outcome. `probability` (n): inclusion probabilities of labelled runs.
    """
    k = judge.shape[1]
    weight = np.ones(int(labelled.sum()))
    if probability is not None:
        weight = 1 / probability[labelled]
    judge_all, influence_all = weighted_least_squares(
        np.hstack([judge, fixed]), y, np.ones(len(y)), k
    )
    fixed_labelled, y_labelled = fixed[labelled], y[labelled]
    judge_labelled, influence_judge = weighted_least_squares(
        np.hstack([judge[labelled], fixed_labelled]), y_labelled, weight, k
    )
    human_labelled, influence_human = weighted_least_squares(
        np.hstack([human[labelled], fixed_labelled]), y_labelled, weight, k
    )
    # Influences of all n runs on theta_H(L), and on theta_J(L) - theta_J(all).
    human_influence = np.zeros((len(y), k))
    human_influence[labelled] = influence_human
    gap_influence = -influence_all
    gap_influence[labelled] += influence_judge
    norm = (gap_influence**2).sum(0)
    slope = (human_influence * gap_influence).sum(0) / np.where(norm > 0, norm, 1.0)
    omega = np.clip(np.where(norm > 0, slope, 0.0), 0.0, 1.0)

    cluster, n_clusters = group_ids(task)
    factor = n_clusters / (n_clusters - 1) if n_clusters > 1 else math.nan

    def clustered_se(influence: Floats) -> Floats:
        sums = group_sums(influence, cluster, n_clusters)
        return np.asarray(np.sqrt(factor * (sums**2).sum(0)))

    return DebiasedFit(
        theta=human_labelled + omega * (judge_all - judge_labelled),
        se=clustered_se(human_influence - omega * gap_influence),
        omega=omega,
        human_only=human_labelled,
        human_se=clustered_se(human_influence),
        judge_only=judge_all,
        judge_se=clustered_se(influence_all),
    )


def corrected_code_effects(
    table: pl.DataFrame,
    human: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    notes: tuple[str, ...] = (),
    prepare: bool = True,
) -> pl.DataFrame:
    """Code effects (points, additive in agent, task, tier) corrected for wrong tags.

    `human`: run_id, E1..E5 (Boolean) and weight (1 / probability of being labelled); without
    weights the labels are a convenience sample, from which nothing is corrected. Rows by code:
    `kind` judge (tags as they are), human (labelled runs only) and corrected. What `code_effects`
    refuses is refused here. Codes are additive in this model, so that its numbers differ from those
    of `code_effects`: compare the kinds with one another only.
    """
    runs = build_arrays(table, outcome, source=source, prepare=prepare)
    has_design = "weight" in human.columns and CONVENIENCE not in notes
    tags, weight = _aligned_tags(runs, human, has_design)
    labelled = np.asarray(np.isfinite(tags).all(1))
    sampled = has_design or bool(labelled.all())
    positives = np.nan_to_num(tags[labelled]).sum(0).astype(int)
    n_labels = int(labelled.sum())
    fit = None
    if n_labels > len(runs.code_names) + 2 and runs.n_tasks >= 2:
        fit = predict_then_debias(
            np.nan_to_num(tags),
            runs.codes.astype(float),
            additive_dummies(runs),
            runs.y,
            labelled,
            runs.task,
            1 / weight,
        )
    effects = fit_code_effects(runs)
    rows: KeyedEstimates = []
    for code in CODES:
        for kind in KINDS:
            key: dict[str, Any] = {"code": code, "kind": kind, "labels": n_labels}
            label = f"effect of {code} on {outcome} ({kind})"
            common: dict[str, Any] = {"n": runs.n, "n_clusters": runs.n_tasks}
            if code not in runs.code_names:
                unread = runs.reading_count(code)
                rows.append((key, Estimate(label, "new", None, reason=unread, **common)))
                continue
            k = runs.code_names.index(code)
            key["human_positives"] = int(positives[k])
            if kind == "corrected" and fit is not None:
                key["omega"] = float(fit.omega[k])
            estimator = "predict-then-debias" if kind == "corrected" else "additive fixed effects"
            common["method"] = f"{estimator}, influence by task"
            reason = effects.refusal(k) or _no_correction_reason(
                runs,
                code,
                kind,
                n_labels,
                int(positives[k]),
                fitted=fit is not None,
                sampled=sampled,
            )
            if reason or fit is None:
                rows.append((key, Estimate(label, "new", None, reason=reason, **common)))
                continue
            warnings = [*runs.notes, *notes, ADDITIVE_NOTE]
            if kind != "judge" and positives[k] < FEW_POSITIVES:
                warnings.append(f"{positives[k]} human positives are few: the interval is rough")
            value, se = fit.coefficient(kind, k)
            est = t_estimate(
                label,
                "new",
                value,
                se,
                runs.n_tasks - 1,
                warnings=warnings,
                limits=runs.difference_limits,
                **common,
            )
            rows.append((key, est))
    keys: dict[str, Any] = {
        "code": pl.String,
        "kind": pl.String,
        "omega": pl.Float64,
        "human_positives": pl.Int64,
        "labels": pl.Int64,
    }
    return tidy(rows, keys)


def _aligned_tags(runs: RunArrays, human: pl.DataFrame, has_design: bool) -> tuple[Floats, Floats]:
    """Human tags (n x code_names, NaN: not labelled) and weights (n) of the runs."""
    weight = pl.col("weight") if has_design else pl.lit(1.0).alias("weight")
    labels = human.unique("run_id", keep="first").select(
        "run_id", *(pl.col(code).alias(f"{code}_human") for code in CODES), weight
    )
    aligned = runs.table.select("run_id").join(
        labels, on="run_id", how="left", maintain_order="left"
    )
    columns = [pl.col(f"{code}_human").cast(pl.Float64) for code in runs.code_names]
    tags = aligned.select(columns).to_numpy().reshape(-1, len(runs.code_names))
    return tags, aligned["weight"].cast(pl.Float64).to_numpy()


def _no_correction_reason(
    runs: RunArrays,
    code: str,
    kind: str,
    n_labels: int,
    n_positives: int,
    *,
    fitted: bool,
    sampled: bool,
) -> str | None:
    """Why the labels give no effect of this kind, or None."""
    if not fitted:
        return f"{n_labels} labelled runs in {runs.n_tasks} tasks: too few for a correction"
    if kind == "judge":
        return None
    if n_positives < MIN_POSITIVES:
        return (
            f"{n_positives} human positives of {code}; {MIN_POSITIVES} are needed (label runs"
            f" tagged {code})"
        )
    return None if sampled else CONVENIENCE
