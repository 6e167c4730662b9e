"""Means and leaderboards corrected for a judge's errors, by human labels on some of the runs.

The difference estimator: the judge's mean over all runs plus the weighted mean difference of human
and judge over the labelled runs; with a tuned factor lambda it is prediction-powered inference
(PPI++, Angelopoulos, Duchi and Zrnic 2023). Labels are weighted by how their runs were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..tables.cohorts import Cohort
from ..tables.frames import WEIGHTS
from ..tables.label_tables import CONVENIENCE, Labels, weighted, weighted_code_labels
from .agent_scores import (
    AgentScore,
    CellMeans,
    NewTasksError,
    agent_contrasts,
    agent_score,
    cell_means,
    new_tasks_error,
)
from .balanced_means import balance_weights
from .interval_estimates import (
    MIN_DF,
    NO_LIMITS,
    Bools,
    Estimate,
    Floats,
    KeyedEstimates,
    Population,
    error_for_new_tasks,
    t_estimate,
    t_quantile,
    tidy,
)
from .ranking import possible_ranks
from .run_arrays import RunArrays, build_arrays

MIN_LABELS, FEW_LABELS, TUNE_FROM = 5, 25, 50
"""Labelled runs of a group. Below the first nothing is corrected. Below the second its variance is
that pooled over groups, or the mean of the pooled one and a larger own one. From the third on
lambda is tuned."""
POPULATIONS: tuple[Population, ...] = ("runs", "new")


@dataclass(frozen=True)
class Correction:
    """What human labels add to the judge's mean over a group of runs."""

    value: float
    variance: float
    df: float
    difference_variance: float
    """Weighted variance of human - lambda judge over the labelled runs."""
    n: int
    """Labelled runs."""
    lam: float
    """lambda, the factor of the judge's values (1: plain difference estimator)."""
    variance_factor: float
    """`variance` if `difference_variance` were 1 for every run."""


def estimate_correction(
    judge: Floats,
    human: Floats,
    weight: Floats,
    target: Floats | None = None,
    *,
    tuned: bool = False,
) -> Correction:
    """The correction of the judge's mean from labelled runs; all arrays are (N), `human` with NaN.

    correction = lambda mean(f) + mean_w(y - lambda f) - mean(f), with judge values f and human
    values y. `weight` w is 1 / probability of being labelled; `target` b is the weight of each run
    in the mean (default: equal).

    Variance of a Poisson sample: n / (n - 1) sum w (w - 1) b^2 d^2 / (sum w b)^2 with d the centred
    differences; with equal weights that of a simple random sample, s^2 / n (1 - n / N).
    `tuned`: lambda is the weighted regression of y on f, in [0, 1], which is the PPI++ choice for a
    mean over these runs.
    """
    labelled = np.isfinite(human)
    share = np.ones(len(judge)) if target is None else target
    f, y, w, b = judge[labelled], human[labelled], weight[labelled], share[labelled]
    n, total = int(labelled.sum()), float((w * b).sum())
    lam = _tuned_lambda(f, y, w * b) if tuned else 1.0

    difference = y - lam * f
    mean_difference = float((w * b * difference).sum() / total)
    judge_mean = float((share * judge).sum() / share.sum())
    squares = (difference - mean_difference) ** 2

    df = n - 1 - int(tuned)
    poisson = w * np.maximum(w - 1, 0) * b**2
    small_sample = n / max(df, 1)
    return Correction(
        value=mean_difference + (lam - 1) * judge_mean,
        variance=float((poisson * squares).sum()) / total**2 * small_sample,
        df=max(float(df), 1.0),
        difference_variance=float((w * b * squares).sum() / total),
        n=n,
        lam=lam,
        variance_factor=float(poisson.sum()) / total**2 * small_sample,
    )


def _tuned_lambda(judge: Floats, human: Floats, weight: Floats) -> float:
    """Slope of the weighted regression of human on judge values, in [0, 1]; 1 if undefined."""
    centred = judge - (weight * judge).sum() / float(weight.sum())
    square = float((weight * centred**2).sum())
    if square <= 0:
        return 1.0
    return float(np.clip((weight * centred * human).sum() / square, 0, 1))


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
    """Mean of the human values over these N runs (see `estimate_correction`), with a t interval.

    `judge` (N) is known for all runs, `human` (N) where `labelled` (N). `weight`: 1 / probability
    of being labelled (default: equal). If all differences are equal, the half-width is that of the
    rule of three, 3/n of `value_range`.
    """
    n, total = int(labelled.sum()), len(judge)
    if n <= MIN_DF:
        return Estimate(
            label,
            "runs",
            None,
            n=total,
            method="difference estimator: these runs",
            reason=f"{n} labelled runs; {MIN_DF + 1} are needed",
        )
    if weight is None:
        weight = np.full(total, total / n)
    human = np.where(labelled, human, np.nan)
    correction = estimate_correction(judge, human, weight, tuned=tuned)
    return _estimate_for_these_runs(
        label, float(judge.mean()), correction, total, value_range=value_range
    )


def _estimate_for_these_runs(
    label: str,
    judge_mean: float,
    correction: Correction,
    n_runs: int,
    *,
    value_range: float,
    limits: tuple[float, float] = NO_LIMITS,
    notes: tuple[str, ...] = (),
) -> Estimate:
    se = math.sqrt(correction.variance)
    method = "difference estimator"
    if correction.lam != 1:
        method = f"PPI++ with lambda {correction.lam:.2f}"
    all_equal = correction.difference_variance <= (1e-9 * value_range) ** 2
    if all_equal and correction.n < n_runs:
        se = 3 / correction.n * value_range / t_quantile(0.975, correction.df)
        notes = (
            *notes,
            "the labels never differed from the judge: half-width by the rule of three",
        )
    return t_estimate(
        label,
        "runs",
        judge_mean + correction.value,
        se,
        correction.df,
        n=n_runs,
        method=f"{method}: these very runs",
        test=False,
        warnings=notes,
        limits=limits,
    )


def human_scores(
    cards: Cohort, labels: Labels, annotator: str
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Overall without the judge's errors on S1-S3, by an annotator's labels; and notes.

    Columns: `run_id`, `human` (Overall, 0-100), `weight` (1 / probability of being labelled).

    A stage moves by the mean of human - judge over criteria that both decided, times the share of
    its criteria that the judge decided: credited criteria are rules, and unlabelled ones are taken
    to be as wrong as the others of their stage. A judge without errors is not moved. Runs without
    an Overall, or with a judged stage that is not labelled, are left out.
    """
    own_labels = labels.by_annotator(annotator)
    runs = cards.runs.filter(
        ~pl.col("disqualified").fill_null(False) & pl.col("overall").is_not_null()
    )
    shifts = _overall_shifts(cards, own_labels)
    corrected = (
        runs.unique("run_id", keep="first", maintain_order=True)
        .join(shifts, on="run_id", maintain_order="left")
        .select("run_id", human=pl.col("overall") + pl.col("shift"))
    )
    scores, notes = weighted(corrected, own_labels.sampling)
    return scores.select("run_id", "human", "weight"), notes


def _overall_shifts(cards: Cohort, labels: Labels) -> pl.DataFrame:
    """`run_id` and `shift`, the points by which labels move Overall, if S1-S3 are all labelled."""
    decided = (
        pl.col("status").cast(pl.String).is_in(["scored", "presumed"])
        & pl.col("value").is_not_null()
    )
    judged = cards.criteria.with_columns(
        pl.col("criterion").cast(pl.String),
        pl.col("run_id").cast(pl.String),
        stage=pl.col("criterion").cast(pl.String).str.slice(0, 2),
        decided=decided,
    ).filter(pl.col("value").is_not_null() & pl.col("stage").is_in(["S1", "S2", "S3"]))
    human = labels.criteria.select("run_id", "criterion", human="value")
    by_stage = (
        judged.join(human, on=["run_id", "criterion"], how="left")
        .with_columns(difference=pl.when("decided").then(pl.col("human") - pl.col("value")))
        .group_by("run_id", "stage", maintain_order=True)
        .agg(difference=pl.col("difference").mean(), decided_share=pl.col("decided").mean())
    )
    stage_shift = (
        pl.when(pl.col("decided_share") > 0)
        .then(pl.col("difference") * pl.col("decided_share"))
        .otherwise(0.0)
    )
    stage_weight = pl.col("stage").replace_strict(WEIGHTS, return_dtype=pl.Float64)
    return (
        by_stage.with_columns(points=50 * stage_weight * stage_shift)
        .group_by("run_id")
        .agg(
            shift=pl.when(pl.col("points").null_count() == 0).then(pl.col("points").sum()),
            stages=pl.len(),
        )
        .filter(pl.col("stages") == 3)
        .drop_nulls("shift")
    )


def human_verdicts(
    cards: Cohort, labels: Labels, annotator: str, outcome: str = "overall"
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """An annotator's codes and, for Overall, scores, by run; and notes.

    Columns: `run_id`, E1..E5, `weight` (1 / probability of being labelled) and `human`, null where
    the labels of a run give no score (`human_scores`) or the outcome is not Overall.
    """
    codes, notes = weighted_code_labels(labels.by_annotator(annotator), cards.runs)
    if outcome != "overall":
        return codes.with_columns(human=pl.lit(None, dtype=pl.Float64)), notes
    scores, _ = human_scores(cards, labels, annotator)
    scores = scores.select("run_id", "human").unique("run_id", keep="first")
    return codes.join(scores, on="run_id", how="left", maintain_order="left"), notes


def corrected_leaderboard(
    table: pl.DataFrame,
    human: pl.DataFrame,
    outcome: str = "overall",
    *,
    notes: tuple[str, ...] = (),
    prepare: bool = True,
) -> pl.DataFrame:
    """Agents' means corrected by human scores.

    `human`: run_id, human (on the outcome's scale) and weight (1 / probability of being labelled);
    without weights the labels are a convenience sample, which has no interval.

    Rows by agent: `kind` judge (as scored) and corrected, the latter for these very runs (the
    judge's error alone) and for new tasks (both errors). Every agent is corrected by its own
    labels, as a judge may favour one. Below 25 labels the variance of the agent's differences is at
    least the mean of its own and that of all agents; below 5 nothing is corrected.
    """
    runs = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    cells = cell_means(runs)
    human_values, weight = _aligned_labels(runs, human)
    labelled = np.isfinite(human_values)
    has_design = "weight" in human.columns and CONVENIENCE not in notes
    sampled = has_design or bool(labelled.all())
    notes = tuple(note for note in notes if note != CONVENIENCE)
    if not sampled:
        notes = (CONVENIENCE, *notes)
    corrections = _corrections_by_agent(runs, human_values, weight)
    ranks = _corrected_ranks(cells, corrections) if sampled else None

    all_tasks = np.ones(len(cells.tasks), dtype=bool)
    rows: KeyedEstimates = []
    for a, agent in enumerate(cells.agents):
        score = agent_score(cells, a, all_tasks)
        if score is None:
            continue
        n_labels = int((labelled & (runs.agent == a)).sum())
        key: dict[str, Any] = {"agent": agent, "labels": n_labels}
        error = new_tasks_error(
            score.residual, score.track_of, score.variance_same, cells.repeat_df
        )
        rows.append(({**key, "kind": "judge"}, _judge_estimate(runs, score, error)))
        key["kind"] = "corrected"
        if ranks:
            key["rank_lo"], key["rank_hi"] = ranks[a]
        estimates = _corrected_estimates(
            runs,
            agent,
            score,
            error,
            corrections[a],
            n_labels,
            sampled=sampled,
            notes=(*runs.notes, *notes),
        )
        rows += [(key, est) for est in estimates]
    keys: dict[str, Any] = {
        "agent": pl.String,
        "kind": pl.String,
        "labels": pl.Int64,
        "rank_lo": pl.Int64,
        "rank_hi": pl.Int64,
    }
    return tidy(rows, keys)


def _aligned_labels(runs: RunArrays, human: pl.DataFrame) -> tuple[Floats, Floats]:
    """The human score (NaN: not labelled) and the weight of each run (n each)."""
    weight = pl.col("weight") if "weight" in human.columns else pl.lit(1.0).alias("weight")
    scores = human.unique("run_id").select("run_id", "human", weight)
    aligned = runs.table.select("run_id").join(
        scores, on="run_id", how="left", maintain_order="left"
    )
    return (
        aligned["human"].cast(pl.Float64).to_numpy(),
        aligned["weight"].cast(pl.Float64).to_numpy(),
    )


def _corrections_by_agent(
    runs: RunArrays, human: Floats, weight: Floats
) -> list[Correction | None]:
    """For each agent its correction; None below MIN_LABELS. Few labels share their variance."""
    target = balance_weights(runs.table)
    corrections: list[Correction | None] = []
    for a in range(len(runs.agents)):
        own = runs.agent == a
        n_labels = int(np.isfinite(human[own]).sum())
        correction = None
        if n_labels >= MIN_LABELS:
            correction = estimate_correction(
                runs.y[own],
                human[own],
                weight[own],
                target[own],
                tuned=n_labels >= TUNE_FROM,
            )
        corrections.append(correction)
    pooled_variance, pooled_df = _pooled_variance(corrections)
    return [
        _with_pooled_variance(correction, pooled_variance, pooled_df) for correction in corrections
    ]


def _pooled_variance(corrections: Sequence[Correction | None]) -> tuple[float, float]:
    """The variance of differences within groups, pooled over all of them, and its df."""
    present = [correction for correction in corrections if correction is not None]
    n = sum(correction.n for correction in present)
    total = sum(correction.difference_variance * correction.n for correction in present)
    return total / max(n, 1), sum(correction.df for correction in present)


def _with_pooled_variance(
    correction: Correction | None, pooled_variance: float, pooled_df: float
) -> Correction | None:
    """The correction; with few labels, with at least the pooled variance (see FEW_LABELS)."""
    if correction is None or correction.n >= FEW_LABELS:
        return correction
    pooled = pooled_variance * correction.variance_factor
    if not pooled:
        return correction
    variance = max(pooled, (pooled + correction.variance) / 2)
    return replace(correction, variance=variance, df=pooled_df)


def _judge_estimate(runs: RunArrays, score: AgentScore, error: NewTasksError) -> Estimate:
    """The agent's mean for new tasks, as the judge scored it."""
    return t_estimate(
        f"mean {runs.outcome}",
        "new",
        score.value,
        error.se,
        error.df,
        n=score.n_runs,
        n_clusters=int((score.track_of >= 0).sum()),
        test=False,
        limits=runs.limits,
        reason=error.reason,
        method="tasks within tracks, t",
        warnings=runs.notes,
    )


def _corrected_estimates(
    runs: RunArrays,
    agent: str,
    score: AgentScore,
    error: NewTasksError,
    correction: Correction | None,
    n_labels: int,
    *,
    sampled: bool,
    notes: tuple[str, ...],
) -> list[Estimate]:
    """The corrected mean of an agent for these very runs and for new tasks."""
    label = f"corrected mean {runs.outcome}"
    if correction is None:
        reason = f"{n_labels} labelled runs of {agent}; {MIN_LABELS} are needed"
        return [
            Estimate(label, population, None, n=score.n_runs, reason=reason)
            for population in POPULATIONS
        ]
    if n_labels < FEW_LABELS:
        notes = (
            *notes,
            f"{n_labels} labels only: their variance is taken to be at least that of all agents",
        )
    if not sampled:
        value, reason = score.value + correction.value, "convenience sample: no interval"
        return [
            Estimate(label, population, value, n=score.n_runs, reason=reason, warnings=notes)
            for population in POPULATIONS
        ]
    highest_difference = runs.difference_limits[1]
    these_runs = _estimate_for_these_runs(
        label,
        score.value,
        correction,
        score.n_runs,
        value_range=highest_difference if math.isfinite(highest_difference) else 1.0,
        limits=runs.limits,
        notes=notes,
    )
    if these_runs.value is None or these_runs.se is None:
        return [these_runs]
    return [these_runs, _for_new_tasks(runs, score, error, correction, these_runs)]


def _for_new_tasks(
    runs: RunArrays,
    score: AgentScore,
    error: NewTasksError,
    correction: Correction,
    these_runs: Estimate,
) -> Estimate:
    """The corrected mean with the judge's error and that of new tasks; df by Satterthwaite.

    V = V_tasks + V_labels, df = V^2 / (V_tasks^2 / df_tasks + V_labels^2 / df_labels).
    """
    label_variance = (these_runs.se or 0.0) ** 2
    total_se, total_df = None, error.df
    if error.se is not None:
        variance = error.se**2
        total = variance + label_variance
        if total:
            total_df = total**2 / (variance**2 / error.df + label_variance**2 / correction.df)
        total_se = error_for_new_tasks(
            math.sqrt(total), total_df, math.sqrt(label_variance), correction.df
        )
    warnings = these_runs.warnings
    if error.warning:
        warnings = (*warnings, error.warning)
    return t_estimate(
        these_runs.estimand,
        "new",
        these_runs.value,
        total_se,
        total_df,
        n=score.n_runs,
        n_clusters=int((score.track_of >= 0).sum()),
        test=False,
        limits=runs.limits,
        method=f"{these_runs.method.split(':')[0]}; plus tasks within tracks",
        reason=error.reason,
        warnings=warnings,
    )


def _corrected_ranks(
    cells: CellMeans, corrections: Sequence[Correction | None]
) -> list[tuple[int, int]] | None:
    """The ranks possible for new tasks, from corrected differences of all pairs of agents.

    Each difference has the errors of the pair and of both corrections (df by Satterthwaite). None
    if an agent has no correction or a pair cannot be compared.
    """
    n_agents = len(cells.agents)
    contrasts = agent_contrasts(cells)
    if n_agents < 2 or len(contrasts) < n_agents * (n_agents - 1) // 2:
        return None
    corrected = []
    for contrast in contrasts:
        first, second = corrections[contrast.a], corrections[contrast.b]
        if first is None or second is None or contrast.new.se is None:
            return None
        parts = (
            (contrast.new.se**2, contrast.new.df),
            (first.variance, first.df),
            (second.variance, second.df),
        )
        variance = sum(part for part, _ in parts)
        df = contrast.new.df
        if variance > 0:
            df = variance**2 / sum(part**2 / part_df for part, part_df in parts)
        value = contrast.value + first.value - second.value
        error = replace(contrast.new, se=math.sqrt(variance), df=df)
        corrected.append(replace(contrast, value=value, new=error))
    return possible_ranks(corrected, n_agents)
