"""What a fired code goes with, in points of a score, and how the parts of the score share it
(`overlap` says how).

Associational: codes are tagged after the outcome. What would confound it stands in the row: effects
on stages that were over before the code could act (placebo), and how strong an unseen cause of both
would have to be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ..tables.score_names import limits_of
from .effect_diagnostics import ALARM, alarms
from .interval_estimates import (
    Estimate,
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
    fit_code_effects,
    overlap_weighted_effect,
    robustness_value,
)
from .run_arrays import arrays_by_code, select_runs

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


def code_effects(
    table: pl.DataFrame, outcome: str = "overall", *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """The overlap-weighted effect of each code on `outcome`, two rows a code (new tasks, same
    tasks).

    Units are those of the outcome (overall: points, 0-100). `status`: ok, uninformative (fewer than
    50 firings with a repeat to compare with, or 20 cells: read `mde80`, the smallest effect found
    with power .8), confounded (it moves stages that were over before it: no effect may be claimed),
    refused (with the reason). `compared` of the `fired` have a repeat of the same cell and other
    codes. p_holm adjusts over the codes that are neither refused nor uninformative; `placebo_p` is
    the smallest adjusted p of its placebos, `robustness_value` that of this number. `missing_lo`,
    `missing_hi`: the number if runs without the outcome had the values that suit it least and most.
    Disqualified runs are left out. Raises ConfigError for an unknown outcome or source.
    """
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table, keep_breach=False)
    moved = alarms(table, source)
    bounds = _bounds(table, outcome, source)
    blocks: dict[Population, KeyedEstimates] = {population: [] for population in POPULATIONS}
    for d, codes in arrays_by_code(table, outcome, source=source, prepare=False):
        found = fit_code_effects(d)
        for k in map(d.code_names.index, codes):
            code = d.code_names[k]
            for population in POPULATIONS:
                key, est = _effect_row(found, k, population, moved.get(code), notes)
                if est.value is not None:
                    key |= bounds.get(code, {})
                blocks[population].append((key, est))
    rows: KeyedEstimates = []
    for block in blocks.values():
        block.sort(key=lambda row: str(row[0]["code"]))
        family = adjust_p_values(
            [est.p if key["status"] in ("ok", "confounded") else None for key, est in block], "holm"
        )
        rows += [({**key, "p_holm": p}, est) for (key, est), p in zip(block, family, strict=True)]
    return tidy(rows, EFFECT_KEYS)


def _bounds(table: pl.DataFrame, outcome: str, source: str) -> dict[str, dict[str, float]]:
    """For each code its effect when runs without the outcome had the worst values for it and the
    best (Manski 1990)."""
    known = pl.col(outcome).is_not_null() & pl.col(outcome).is_finite()
    if outcome not in table.columns or table.select(known.all()).item():
        return {}
    low, high = limits_of(outcome, table)
    if not math.isfinite(high):
        return {}
    filled = table.with_columns(
        pl.when(known).then(outcome).otherwise(low).alias(outcome), _known=known
    )
    out = {}
    for d, codes in arrays_by_code(filled, outcome, source=source, prepare=False):
        missing = ~d.table["_known"].to_numpy()
        for code in codes:
            k = d.code_names.index(code)
            fired = d.codes[:, k]
            ends = [
                np.where(missing, np.where(fired == up, high, low), d.y) for up in (False, True)
            ]
            fit = (
                overlap_weighted_effect(d.codes, k, np.column_stack(ends), d.cell, d.task)
                if d.n
                else None
            )
            if fit is not None:
                out[code] = {"missing_lo": float(fit.value[0]), "missing_hi": float(fit.value[1])}
    return out


def _effect_row(
    found: FittedEffects, k: int, population: Population, moved: float | None, notes: list[str]
) -> tuple[dict[str, Any], Estimate]:
    d, fit = found.d, found.fits[k]
    name = d.code_names[k]
    key: dict[str, Any] = {
        "code": name,
        "outcome": d.outcome,
        "status": "refused",
        "fired": int(d.codes[:, k].sum()) if d.n else None,
        "compared": fit.compared if fit else 0 if d.n else None,
        "read": d.n,
        "runs": d.n_scored,
        "cells_varying": fit.cells if fit else 0 if d.n else None,
    }
    label = (
        f"overlap-weighted effect of {name} on {d.outcome}: same agent, task, tier and other codes"
    )
    if fit is None or found.why_not(k) is not None:
        return key, found.estimate(k, label, population=population)
    warnings = [*notes, *d.notes]
    est = found.estimate(k, label, population=population)
    if est.se and est.df:
        key["mde80"] = minimum_detectable_effect(est.se, est.df)
    key |= {
        "status": "ok",
        "placebo_p": moved,
        "robustness_value": robustness_value(fit.iid_t, fit.iid_df),
    }
    if fit.compared < MIN_FIRED or fit.cells < MIN_CELLS:
        key["status"] = "uninformative"
        found_at = (
            f"; the smallest effect found with power .8 is {key['mde80']:.1f}"
            if key.get("mde80")
            else ""
        )
        warnings.append(
            f"uninformative: {fit.compared} firings with a repeat to compare with, in {fit.cells}"
            f" cells{found_at}"
        )
    elif moved is not None and moved < ALARM:
        key["status"] = "confounded"
        warnings.append(
            "runs with this code, or with E3, E4 or E5, differ already in stages before it: no"
            " effect may be claimed"
        )
    if population == "new" and 2 <= len(fit.tasks) < 10:
        warnings.append(f"{len(fit.tasks)} tasks: intervals of so few are rough")
    if population == "new" and len(fit.tasks) > 1:
        deleted = fit.deleted[:, 0]
        key |= {"loo_min": float(np.nanmin(deleted)), "loo_max": float(np.nanmax(deleted))}
        key["loo_task"] = d.tasks[int(fit.tasks[np.nanargmax(np.abs(deleted - fit.value[0]))])]
    if d.outcome in ("overall", "agentic", "S1", "S2", "S3"):
        key["halo_note"] = "judge and tags may share a judge: see the parts"
    return key, found.estimate(k, label, population=population, warnings=warnings)


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
        "runs whose Task is 0: by the completeness gate, or because nothing could be scored: a"
        " rule, not how good a result is"
    ),
    QUALITY: "how good results above 0 are: what no judge and no rule decides",
    "other": "what stages and Task do not explain: gates, policies, foreign weights",
}


def decompose_effects(
    table: pl.DataFrame, *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """Each code's effect on Overall, split exactly into S1..S5, Task and other (points), new tasks.

    The estimator is linear in the outcome, so the parts add up to the total; the Task part is again
    the sum of what runs lose by a Task of 0 and of the rest. No mediation is claimed.
    """
    keys: dict[str, Any] = {
        "code": pl.String,
        "part": pl.String,
        "share": pl.Float64,
        "note": pl.String,
    }
    rows: KeyedEstimates = []
    for d, codes in arrays_by_code(table, "overall", source=source, prepare=prepare):
        parts = overall_parts(d.table)
        columns = {
            name: parts[:, [PARTS.index(p) for p in members]].sum(1)
            for name, members in PART_GROUPS.items()
        }
        if d.n:
            columns[GATE] = zero_task_loss(d)
            columns[QUALITY] = columns["task part"] - columns[GATE]
        found = fit_code_effects(d, np.column_stack(list(columns.values())))
        at_total = list(columns).index("total")
        for code in codes:
            k = d.code_names.index(code)
            fit = found.fits[k]
            total = (
                float(fit.value[at_total]) if fit is not None and found.why_not(k) is None else 0.0
            )
            for at, part in enumerate(columns):
                est = found.estimate(k, f"effect of {code} on the {part} of overall", at)
                share = est.value / total if est.value is not None and abs(total) > 1e-9 else None
                rows.append(
                    (
                        {"code": code, "part": part, "note": PART_NOTES.get(part), "share": share},
                        est,
                    )
                )
    return tidy(sorted(rows, key=lambda row: str(row[0]["code"])), keys)
