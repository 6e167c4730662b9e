"""Code effects corrected for a judge's errors, by human labels of some of the runs.

corrected = the overlap-weighted effect of all runs by the judge's tags and scores
            + what labels change, from two regressions on the labelled runs: one of people's scores
            on people's tags, one of the judge's scores on its own tags.

A judge without errors is not changed at all. What labels change is predict-then-debias (Kluger et
al. 2025) less the judge's own fit: the judge's tags of all runs take part of the sampling error
out. Both regressions have the means of tags and score of each run's cell as covariates (Mundlak
1978), so that they compare repeats, as the overlap-weighted effect does. Influences are summed by
task, and labels are weighted by how their runs were drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from ..tables.label_tables import CONVENIENCE
from .interval_estimates import (
    MIN_DF,
    Bools,
    Estimate,
    Floats,
    Ints,
    KeyedEstimates,
    t_estimate,
    tidy,
)
from .jackknife import group_sums
from .overlap_weighting import FittedEffects, fit_code_effects
from .run_arrays import RunArrays, build_arrays

MIN_POSITIVES, FEW_POSITIVES = 10, 30
"""Human positives of a code: below the first its effect is not corrected; below the second the
interval covers about .9, and a warning says that it is rough."""
KINDS = ("judge", "human", "corrected")
METHODS = {
    "judge": "same cell and other codes, weighted by overlap; jackknife over tasks",
    "human": "regression on the labelled runs with cell means; influence by task",
    "corrected": (
        "the judge's overlap-weighted effect plus what labels change (predict-then-debias with cell"
        " means); jackknife and influence by task"
    ),
}


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
class LabelFit:
    """What labels change in the effect of one code; errors are clustered by task."""

    correction: float
    """Points that labels add to the judge's effect."""
    se: float
    """The error that this adds to that of the judge's effect."""
    omega: float
    """The weight of the judge's tags of all runs, in [0, 1]."""
    human: float
    """The effect by the labels alone."""
    human_se: float


@dataclass(frozen=True)
class Verdicts:
    """The tags (n x K) and scores (n) of the judge, or of people on the labelled runs."""

    tags: Floats
    score: Floats


def label_fit(
    people: Verdicts, judge: Verdicts, k: int, runs: RunArrays, labelled: Bools, weight: Floats
) -> LabelFit:
    """What the labels of some runs change in the effect of code `k` by a judge's verdicts.

    With the coefficients h of people's scores on people's tags and j of the judge's scores on its
    tags, both over the labelled runs, and J of the judge's over all runs, predict-then-debias is
    h + omega (J - j), and the correction is that less J: (h - j) + (1 - omega) (j - J). omega in
    [0, 1] minimises its variance; if people and judge agree on every labelled run it is 1, and the
    correction is 0 without error.

    Like the overlap-weighted effect, the regressions compare repeats with the same other codes: by
    the `cell_covariates`, a dummy for each set of other codes, and weights by how many repeats of
    the cell have that set. `weight` (n): one over the probability of being labelled.
    """
    covariates = cell_covariates(runs)
    patterns = _other_codes(judge.tags, k)
    n_same = np.zeros((runs.n_cells, _PATTERNS))
    np.add.at(n_same, (runs.cell, patterns), 1)

    def fit(verdicts: Verdicts, use: Bools, sampling: Floats) -> tuple[float, Floats]:
        """The coefficient of the code over the runs `use`, and all runs' influence on it (n)."""
        pattern = _other_codes(verdicts.tags, k)
        dummies = (pattern[:, None] == np.arange(1, _PATTERNS)).astype(float)
        x = np.column_stack([verdicts.tags[:, k], dummies, covariates])[use]
        repeats = np.maximum(n_same[runs.cell, pattern], 1)
        overlap = (repeats - 1) / repeats * sampling
        coefficient, of_used = weighted_least_squares(x, verdicts.score[use], overlap[use], 1)
        influence = np.zeros(runs.n)
        influence[use] = of_used[:, 0]
        return float(coefficient[0]), influence

    everywhere = np.ones(runs.n, dtype=bool)
    all_fit, all_influence = fit(judge, everywhere, np.ones(runs.n))
    human_fit, human_influence = fit(people, labelled, weight)
    judge_fit, judge_influence = fit(judge, labelled, weight)
    difference = human_influence - judge_influence
    gap = judge_influence - all_influence
    square = float(gap @ gap)
    remainder = min(max(-float(difference @ gap) / square, 0.0), 1.0) if square > 0 else 0.0

    # Together with the judge's fit, as tasks in which the judge errs may be those with effects.
    corrected_influence = all_influence + difference + remainder * gap
    added = _clustered_variance(corrected_influence, runs) - _clustered_variance(
        all_influence, runs
    )
    return LabelFit(
        correction=human_fit - judge_fit + remainder * (judge_fit - all_fit),
        se=math.sqrt(max(added, 0.0)),
        omega=1 - remainder,
        human=human_fit,
        human_se=math.sqrt(_clustered_variance(human_influence, runs)),
    )


_PATTERNS = 2 ** (len(CODES) - 1)
"""The number of sets of other codes."""


def _other_codes(tags: Floats, k: int) -> Ints:
    """The number of each run's set of codes other than `k` (n)."""
    others = np.delete(tags, k, axis=1)
    return np.asarray(others @ (1 << np.arange(others.shape[1])), dtype=np.int64)


def _clustered_variance(influence: Floats, runs: RunArrays) -> float:
    """The variance of a statistic from the influence of each run (n), summed by task."""
    sums = np.bincount(runs.task, influence)
    return float(runs.n_tasks / (runs.n_tasks - 1) * (sums**2).sum())


def cell_covariates(runs: RunArrays) -> Floats:
    """Dummies of agent, task and tier, and the means of tags and score of each run's cell.

    The means are those of the judge over all runs of the cell, labelled or not (n x columns).
    """
    verdicts = np.column_stack([runs.codes.astype(float), runs.y])
    size = np.bincount(runs.cell, minlength=runs.n_cells)
    means = group_sums(verdicts, runs.cell, runs.n_cells) / size[:, None]
    return np.hstack([additive_dummies(runs), means[runs.cell]])


@dataclass(frozen=True)
class _PeopleVerdicts:
    """People's tags and scores, aligned with the runs (n)."""

    tags: Floats
    """n x code_names; NaN for runs that are not labelled."""
    score: Floats
    """The judge's score where people gave none."""
    weight: Floats
    """One over the probability of being labelled."""
    labelled: Bools
    scored: Bools
    """Labelled runs with a score by people."""


def corrected_code_effects(
    table: pl.DataFrame,
    human: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    notes: tuple[str, ...] = (),
    prepare: bool = True,
) -> pl.DataFrame:
    """Code effects for new tasks (unit of the outcome) corrected for wrong tags and scores.

    `human`: run_id, E1..E5 (Boolean), weight (1 / probability of being labelled) and `human`,
    people's score where labels give one (`human_scores`); without weights the labels are a
    convenience sample, from which nothing is corrected. Rows by code: `kind` judge (the effect of
    `code_effects`), corrected, and human (the regression on the labelled runs alone, which weighs
    runs differently). `correction`: the points that labels add. What `code_effects` refuses is
    refused here.
    """
    runs = build_arrays(table, outcome, source=source, prepare=prepare)
    has_design = "weight" in human.columns and CONVENIENCE not in notes
    people = _aligned_verdicts(runs, human, has_design)
    sampled = has_design or bool(people.labelled.all())
    positives = np.nan_to_num(people.tags[people.labelled]).sum(0).astype(int)
    n_labels = int(people.labelled.sum())
    fits: list[LabelFit] = []
    if n_labels > len(runs.code_names) + 2 and runs.n_tasks >= 2:
        by_people = Verdicts(np.nan_to_num(people.tags), people.score)
        by_judge = Verdicts(runs.codes.astype(float), runs.y)
        fits = [
            label_fit(by_people, by_judge, k, runs, people.labelled, people.weight)
            for k in range(len(runs.code_names))
        ]
    notes = (*notes, *_unscored_note(people))
    effects = fit_code_effects(runs)
    rows: KeyedEstimates = []
    for code in CODES:
        for kind in KINDS:
            key: dict[str, Any] = {"code": code, "kind": kind, "labels": n_labels}
            label = f"effect of {code} on {outcome} ({kind})"
            if code not in runs.code_names:
                unread = runs.reading_count(code)
                counts: dict[str, Any] = {"n": runs.n, "n_clusters": runs.n_tasks}
                rows.append((key, Estimate(label, "new", None, reason=unread, **counts)))
                continue
            k = runs.code_names.index(code)
            key["human_positives"] = int(positives[k])
            reason = effects.refusal(k) or _no_correction_reason(
                runs,
                code,
                kind,
                n_labels,
                int(positives[k]),
                fitted=bool(fits),
                sampled=sampled,
            )
            warnings = [*runs.notes, *notes]
            if kind != "judge" and positives[k] < FEW_POSITIVES:
                warnings.append(f"{positives[k]} human positives are few: the interval is rough")
            fit = fits[k] if fits else None
            if kind == "corrected" and fit is not None and reason is None:
                key["omega"], key["correction"] = fit.omega, fit.correction
            rows.append((key, _effect_estimate(effects, fit, k, kind, label, reason, warnings)))
    keys: dict[str, Any] = {
        "code": pl.String,
        "kind": pl.String,
        "correction": pl.Float64,
        "omega": pl.Float64,
        "human_positives": pl.Int64,
        "labels": pl.Int64,
    }
    return tidy(rows, keys)


def _effect_estimate(
    effects: FittedEffects,
    fit: LabelFit | None,
    k: int,
    kind: str,
    label: str,
    reason: str | None,
    warnings: list[str],
) -> Estimate:
    """The effect of code `k` by judge, human or corrected, or the reason why there is none."""
    runs = effects.runs
    common: dict[str, Any] = {"n": runs.n, "n_clusters": runs.n_tasks, "warnings": warnings}
    judge = effects.estimate(k, label, warnings=warnings)
    if reason is not None or fit is None:
        common["warnings"] = ()
        return Estimate(label, "new", None, reason=reason, method=METHODS[kind], **common)
    if kind == "judge":
        return judge
    common |= {"method": METHODS[kind], "limits": runs.difference_limits}
    label_df = runs.n_tasks - 1
    if kind == "human":
        return t_estimate(label, "new", fit.human, fit.human_se, label_df, **common)
    if judge.value is None or judge.se is None or judge.df is None:
        corrected = None if judge.value is None else judge.value + fit.correction
        return t_estimate(label, "new", corrected, None, None, reason=judge.reason, **common)
    variance, added = judge.se**2, fit.se**2
    df = (variance + added) ** 2 / (variance**2 / judge.df + added**2 / label_df)
    return t_estimate(
        label,
        "new",
        judge.value + fit.correction,
        math.sqrt(variance + added),
        df,
        min_df=min(MIN_DF, judge.df),
        **common,
    )


def _unscored_note(people: _PeopleVerdicts) -> tuple[str, ...]:
    """A note if the judge's score stands in for people's on some labelled runs."""
    n_labels, n_scored = int(people.labelled.sum()), int(people.scored.sum())
    if n_scored == n_labels:
        return ()
    if not n_scored:
        return ("labels correct the codes, not the score: no labelled run has people's score",)
    return (
        f"{n_labels - n_scored} of {n_labels} labelled runs have no score by people: the judge's"
        " counts there",
    )


def _aligned_verdicts(runs: RunArrays, human: pl.DataFrame, has_design: bool) -> _PeopleVerdicts:
    """Tags, scores and weights by people for the runs."""
    weight = pl.col("weight") if has_design else pl.lit(1.0).alias("weight")
    score = pl.col("human") if "human" in human.columns else pl.lit(None).alias("human")
    labels = human.unique("run_id", keep="first").select(
        "run_id", *(pl.col(code).alias(f"{code}_human") for code in CODES), weight, score
    )
    aligned = runs.table.select("run_id").join(
        labels, on="run_id", how="left", maintain_order="left"
    )
    columns = [pl.col(f"{code}_human").cast(pl.Float64) for code in runs.code_names]
    tags = aligned.select(columns).to_numpy().reshape(-1, len(runs.code_names))
    scores = aligned["human"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    labelled = np.asarray(np.isfinite(tags).all(1))
    scored = labelled & np.isfinite(scores)
    return _PeopleVerdicts(
        tags=tags,
        score=np.where(scored, scores, runs.y),
        weight=aligned["weight"].cast(pl.Float64).fill_null(1.0).to_numpy(),
        labelled=labelled,
        scored=scored,
    )


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
