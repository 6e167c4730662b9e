"""Tables of the effects of fired codes: on a score, and on each part of Overall.

`overlap_weighting` has the estimator. Effects are associational, since codes are tagged after the
outcome is known. What would show confounding stands in the same row: effects on stages that ended
before the code could act (placebo), and how strong an unobserved common cause would have to be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ..tables.score_names import limits_of
from .effect_diagnostics import ALARM, smallest_placebo_p
from .interval_estimates import (
    Estimate,
    Floats,
    KeyedEstimates,
    Population,
    adjust_p_values,
    minimum_detectable_effect,
    tidy,
)
from .overall_parts import PARTS, overall_parts, zero_task_loss
from .overlap_weighting import (
    MIN_CELLS,
    MIN_FIRED,
    FittedEffects,
    OverlapEffect,
    fit_code_effects,
    overlap_weighted_effect,
    robustness_value,
)
from .run_arrays import RunArrays, arrays_by_code, select_runs

EFFECT_KEYS: dict[str, Any] = {
    "code": pl.String,
    "outcome": pl.String,
    "status": pl.String,
    "fired": pl.Int64,
    "compared": pl.Int64,
    "read": pl.Int64,
    "runs": pl.Int64,
    "cells_varying": pl.Int64,
    "p_holm": pl.Float64,
    "placebo_p": pl.Float64,
    "robustness_value": pl.Float64,
    "mde80": pl.Float64,
    "missing_lo": pl.Float64,
    "missing_hi": pl.Float64,
    "loo_min": pl.Float64,
    "loo_max": pl.Float64,
    "loo_task": pl.String,
    "halo_note": pl.String,
}
POPULATIONS: tuple[Population, ...] = ("new", "same")
FEW_FIRINGS = "few firings"
"""The status of an effect that has an interval and no test."""
FEW_TASKS = 10
"""With fewer tasks, intervals for new tasks are rough."""


def code_effects(
    table: pl.DataFrame, outcome: str = "overall", *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """The overlap-weighted effect of each code on `outcome`, one row each for new and same tasks.

    The unit is that of the outcome (overall: points, 0-100). Disqualified runs are left out.

    `status`: ok; few firings (fewer than 50 with a repeat to compare with, or 20 cells: an interval
    but no test, and nothing is claimed); confounded (it moves stages that
    ended before it, so no effect may be claimed); refused (with the reason).
    `compared`: how many of the `fired` runs have a repeat of the same cell and other codes.
    `p_holm`: adjusted over the codes that are neither refused nor of few firings.
    `mde80`: the smallest effect that is detected with power .8.
    `placebo_p`: the smallest adjusted p of the code's placebo tests.
    `robustness_value`: of this estimate (Cinelli and Hazlett 2020).
    `missing_lo`, `missing_hi`: the effect if runs without the outcome had the values least and most
    favourable to it.
    `loo_min`, `loo_max`, `loo_task`: the range of the effect without one task, and the task whose
    removal moves it most.
    Raises ConfigError for an unknown outcome or source.
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table, keep_breach=False)
    placebo_p = smallest_placebo_p(table, source)
    bounds = _missing_outcome_bounds(table, outcome, source)
    blocks: dict[Population, KeyedEstimates] = {population: [] for population in POPULATIONS}
    for runs, codes in arrays_by_code(table, outcome, source=source, prepare=False):
        effects = fit_code_effects(runs)
        for code in codes:
            k = runs.code_names.index(code)
            for population in POPULATIONS:
                key, est = _effect_row(effects, k, population, placebo_p.get(code), notes)
                if est.value is not None:
                    key |= bounds.get(code, {})
                blocks[population].append((key, est))
    rows: KeyedEstimates = []
    for block in blocks.values():
        block.sort(key=lambda row: str(row[0]["code"]))
        family = [est.p if key["status"] in ("ok", "confounded") else None for key, est in block]
        adjusted = adjust_p_values(family, "holm")
        rows += [({**key, "p_holm": p}, est) for (key, est), p in zip(block, adjusted, strict=True)]
    return tidy(rows, EFFECT_KEYS)


def _missing_outcome_bounds(
    table: pl.DataFrame, outcome: str, source: str
) -> dict[str, dict[str, float]]:
    """For each code the bounds of its effect over all values of missing outcomes (Manski 1990).

    The lower bound gives runs that fired the code the lowest value of the scale and the others the
    highest; the upper bound the reverse. Empty if no outcome is missing or the scale is unbounded.
    """
    has_outcome = pl.col(outcome).is_not_null() & pl.col(outcome).is_finite()
    if outcome not in table.columns or table.select(has_outcome.all()).item():
        return {}
    low, high = limits_of(outcome, table)
    if not math.isfinite(high):
        return {}
    filled = table.with_columns(
        pl.when(has_outcome).then(outcome).otherwise(low).alias(outcome), _has_outcome=has_outcome
    )
    bounds = {}
    for runs, codes in arrays_by_code(filled, outcome, source=source, prepare=False):
        missing = ~runs.table["_has_outcome"].to_numpy()
        for code in codes:
            k = runs.code_names.index(code)
            fired = runs.codes[:, k]
            worst = np.where(missing, np.where(fired, low, high), runs.y)
            best = np.where(missing, np.where(fired, high, low), runs.y)
            fit = None
            if runs.n:
                y = np.column_stack([worst, best])
                fit = overlap_weighted_effect(runs.codes, k, y, runs.cell, runs.task)
            if fit is not None:
                bounds[code] = {
                    "missing_lo": float(fit.value[0]),
                    "missing_hi": float(fit.value[1]),
                }
    return bounds


def _effect_row(
    effects: FittedEffects,
    k: int,
    population: Population,
    placebo_p: float | None,
    notes: list[str],
) -> tuple[dict[str, Any], Estimate]:
    runs, fit = effects.runs, effects.fits[k]
    code = runs.code_names[k]
    key = {**_effect_counts(runs, k, fit), "status": "refused"}
    label = (
        f"overlap-weighted effect of {code} on {runs.outcome}: same agent, task, tier and other"
        " codes"
    )
    est = effects.estimate(k, label, population=population)
    if fit is None or effects.refusal(k) is not None:
        return key, est

    warnings = [*notes, *runs.notes]
    key["status"] = "ok"
    key["placebo_p"] = placebo_p
    key["robustness_value"] = robustness_value(fit.iid_t, fit.iid_df)
    if est.se and est.df:
        key["mde80"] = minimum_detectable_effect(est.se, est.df)
    if fit.n_compared < MIN_FIRED or fit.n_cells < MIN_CELLS:
        key["status"] = FEW_FIRINGS
        warnings.append(
            f"few firings: {fit.n_compared} with a repeat to compare with, in {fit.n_cells} cells;"
            f" a test takes {MIN_FIRED} in {MIN_CELLS}, so nothing is claimed"
        )
    elif placebo_p is not None and placebo_p < ALARM:
        key["status"] = "confounded"
        warnings.append(
            "runs with this code, or with E3, E4 or E5, differ already in stages before it: no"
            " effect may be claimed"
        )
    if population == "new":
        key |= _leave_one_task_out(runs, fit)
        if est.lo is not None and len(fit.tasks) < FEW_TASKS:
            warnings.append(f"intervals from only {len(fit.tasks)} tasks are rough")
    if runs.outcome in ("overall", "agentic", "S1", "S2", "S3"):
        key["halo_note"] = (
            "scores and tags may come from the same judge: see the parts of the effect"
        )
    # What is not claimed is not tested: the p of a few firings would be read as a claim.
    is_tested = key["status"] != FEW_FIRINGS
    est = effects.estimate(k, label, population=population, warnings=warnings, test=is_tested)
    return key, est


def _effect_counts(runs: RunArrays, k: int, fit: OverlapEffect | None) -> dict[str, Any]:
    """Code, outcome and counts of a row; null counts if no run was read for the code."""
    n_compared = n_cells = n_fired = None
    if runs.n:
        n_fired, n_compared, n_cells = int(runs.codes[:, k].sum()), 0, 0
    if fit is not None:
        n_compared, n_cells = fit.n_compared, fit.n_cells
    return {
        "code": runs.code_names[k],
        "outcome": runs.outcome,
        "fired": n_fired,
        "compared": n_compared,
        "read": runs.n,
        "runs": runs.n_scored,
        "cells_varying": n_cells,
    }


def _leave_one_task_out(runs: RunArrays, fit: OverlapEffect) -> dict[str, Any]:
    """The range of the effect without one task, and the task whose removal moves it most."""
    if len(fit.tasks) < 2:
        return {}
    deleted = fit.deleted[:, 0]
    most_influential = int(np.nanargmax(np.abs(deleted - fit.value[0])))
    return {
        "loo_min": float(np.nanmin(deleted)),
        "loo_max": float(np.nanmax(deleted)),
        "loo_task": runs.tasks[int(fit.tasks[most_influential])],
    }


PART_GROUPS: dict[str, tuple[str, ...]] = {
    **{part: (part,) for part in PARTS},
    "judge part": ("S1", "S2", "S3"),
    "rule part": ("S4", "S5"),
    "task part": ("task",),
    "total": PARTS,
}
GATE, QUALITY = "task part: zeroed", "task part: quality"
PART_NOTES = {
    "judge part": "stages that a judge scored: tags and scores may share its errors",
    "rule part": "stages computed by rule: for E5 partly by definition",
    "task part": "the benchmark's own metric",
    GATE: (
        "runs whose Task is 0, by the completeness gate or because nothing could be scored: a rule,"
        " not the quality of a result"
    ),
    QUALITY: "how good results above 0 are, which neither a judge nor a rule decides",
    "other": "what stages and Task do not explain: gates, policies, other weights",
}


def decompose_effects(
    table: pl.DataFrame, *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """Each code's effect on Overall split exactly into S1..S5, Task and other (points), new tasks.

    The estimator is linear in the outcome, so the parts add up to the total. The Task part is split
    again into what runs lose by a Task of 0 and the quality of the other results. `share` is the
    part's share of the total. No mediation is claimed.
    """
    keys: dict[str, Any] = {
        "code": pl.String,
        "part": pl.String,
        "share": pl.Float64,
        "note": pl.String,
    }
    rows: KeyedEstimates = []
    for runs, codes in arrays_by_code(table, "overall", source=source, prepare=prepare):
        part_outcomes = _part_outcomes(runs)
        names = list(part_outcomes)
        effects = fit_code_effects(runs, np.column_stack(list(part_outcomes.values())))
        for code in codes:
            k = runs.code_names.index(code)
            fit = effects.fits[k]
            total = 0.0
            if fit is not None and effects.refusal(k) is None:
                total = float(fit.value[names.index("total")])
            for index, part in enumerate(names):
                est = effects.estimate(k, f"effect of {code} on the {part} of overall", index)
                share = None
                if est.value is not None and abs(total) > 1e-9:
                    share = est.value / total
                key = {"code": code, "part": part, "note": PART_NOTES.get(part), "share": share}
                rows.append((key, est))
    return tidy(sorted(rows, key=lambda row: str(row[0]["code"])), keys)


def _part_outcomes(runs: RunArrays) -> dict[str, Floats]:
    """For each part of the decomposition the points of each run (n)."""
    parts = overall_parts(runs.table)
    outcomes = {}
    for name, members in PART_GROUPS.items():
        columns = [PARTS.index(member) for member in members]
        outcomes[name] = parts[:, columns].sum(1)
    if runs.n:
        outcomes[GATE] = zero_task_loss(runs)
        outcomes[QUALITY] = outcomes["task part"] - outcomes[GATE]
    return outcomes
