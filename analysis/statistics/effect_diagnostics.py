"""What could be wrong with code effects: placebo stages, circular tags, a single agent or task.

`placebo` tests effects on stages that ended before the code could act, `circularity` finds codes
that restate the score, `leave_one_out` shows effects that depend on one agent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import Estimate, Floats, KeyedEstimates, adjust_p_values, t_estimate, tidy
from .jackknife import demean, group_ids
from .overlap_weighting import REFUSE_FIRED, circular_codes, effect_estimates, fit_code_effects
from .run_arrays import RunArrays, arrays_by_code, build_arrays, select_runs

UPSTREAM: dict[str, tuple[str, ...]] = {"E3": ("S1", "S2"), "E4": ("S1",), "E5": ("S1", "S2")}
"""Stages that have ended before the code can arise; its effect on them should be 0."""
EARLY = ("S1", "S2")
ALL_LATER_CODES = " or ".join(UPSTREAM)
"""The `code` of the joint test in the placebo table."""
ALARM = 0.05
JOINT_TEST_SHARE, SINGLE_TESTS_SHARE = 0.8, 0.2
"""How the level of the alarm is divided: the joint test of the cohort, which is the most sensitive
to confounding, and the tests of single codes."""
OUTCOME_SHARE, OUTCOME_LEAK = 0.9, 0.02
"""A code looks circular if P(low Task | code) is at least the first and P(code | high Task) at most
the second."""
POINT_LIMITS = (-100.0, 100.0)


def placebo(table: pl.DataFrame, *, source: str = "any", prepare: bool = True) -> pl.DataFrame:
    """Effects of codes on stages before them (points of 100), and one joint test for the cohort.

    `p_holm` is adjusted so that one cohort in twenty raises an alarm by chance (Holm over codes and
    stages with weight SINGLE_TESTS_SHARE, and the joint test with weight JOINT_TEST_SHARE). A clear
    effect means that runs with the code differed before it: a run with less luck, tags derived from
    outcomes, or halo. No effect does not prove the absence of confounding: halo from Task alone
    leaves S1 and S2 unchanged.
    """
    if prepare:
        table, _ = select_runs(table, keep_breach=False)
    keys: dict[str, Any] = {
        "code": pl.String,
        "stage": pl.String,
        "p_holm": pl.Float64,
        "verdict": pl.String,
    }
    rows: KeyedEstimates = []
    for stage in EARLY:
        rows += _placebo_rows(table, stage, source)
    adjusted = adjust_p_values([est.p for _, est in rows], "holm")
    for (key, _), p in zip(rows, adjusted, strict=True):
        key["p_holm"] = None if p is None else min(p / SINGLE_TESTS_SHARE, 1.0)
    rows.append(_joint_placebo_test(table, source))
    for key, est in rows:
        p = key["p_holm"]
        if p is not None and p < ALARM:
            key["verdict"] = "alarm: moves with an earlier stage"
        elif p is not None:
            key["verdict"] = "no sign"
        elif est.value is not None:
            key["verdict"] = "not testable"
    return tidy(rows, keys)


def _placebo_rows(table: pl.DataFrame, stage: str, source: str) -> KeyedEstimates:
    """The effect on an early stage of each code that arises after it."""
    rows: KeyedEstimates = []
    for runs, codes in arrays_by_code(table, stage, source=source, prepare=False):
        effects = fit_code_effects(runs, 100 * runs.y[:, None], circular=())
        for code in codes:
            if stage not in UPSTREAM.get(code, ()):
                continue
            k = runs.code_names.index(code)
            label = f"placebo: effect of {code} on the earlier {stage}, points of 100"
            est = effects.estimate(k, label, limits=POINT_LIMITS)
            rows.append(({"code": code, "stage": stage}, est))
    return sorted(rows, key=lambda row: str(row[0]["code"]))


def _joint_placebo_test(table: pl.DataFrame, source: str) -> tuple[dict[str, Any], Estimate]:
    """The slope of the early stages on the number of codes that arise after them.

    Compared are repeats of a cell with the same earlier codes. Without confounding these runs are
    exchangeable, so that their variation is the error. With c~ and y~ the count of later codes and
    the stage, centred by group: slope = sum c~ y~ / sum c~^2 over both stages.
    """
    label = "placebo: S1 and S2 by each later code, points of 100"
    key: dict[str, Any] = {"code": ALL_LATER_CODES, "stage": " and ".join(EARLY), "p_holm": None}
    runs = build_arrays(table, EARLY[0], source=source, prepare=False)
    too_few = Estimate(label, "new", None, n=runs.n, reason="too few runs to compare")
    if not runs.n:
        return key, too_few
    products = np.zeros(runs.n)
    scaled_products = np.zeros(runs.n)
    square, df = 0.0, 0
    compared_cells = np.zeros(runs.n_cells, dtype=bool)
    for stage in EARLY:
        y = 100 * runs.table[stage].cast(pl.Float64).to_numpy()
        use = np.isfinite(y)
        later_codes, group, n_groups = _later_codes_by_group(runs, stage, use)
        centred = demean(np.column_stack([later_codes, y[use]]), group, n_groups)
        count, product = centred[:, 0], centred.prod(1)
        # Values of n runs centred at their mean have (n - 1) / n of their variance.
        size = np.bincount(group, minlength=n_groups)[group]
        products[use] += product
        scaled_products[use] += product * np.sqrt(size / np.maximum(size - 1, 1))
        square += float(count @ count)
        varies = np.abs(count) > 1e-9
        df += int(varies.sum()) - len(np.unique(group[varies]))
        compared_cells[runs.cell[use][varies]] = True
    if df < REFUSE_FIRED or square <= 0:
        return key, too_few
    est = t_estimate(
        label,
        "new",
        products.sum() / square,
        float(np.sqrt(scaled_products @ scaled_products)) / square,
        df,
        n=runs.n,
        n_clusters=int(compared_cells.sum()),
        limits=POINT_LIMITS,
        method="same cell and earlier codes; runs as exchangeable",
        warnings=runs.notes,
    )
    if est.p is not None:
        key["p_holm"] = min(est.p / JOINT_TEST_SHARE, 1.0)
    return key, est


def _later_codes_by_group(runs: RunArrays, stage: str, use: np.ndarray[Any, Any]) -> Any:
    """Of the runs in `use`: the number of codes after `stage`; cell x earlier codes as groups."""
    later = [k for k, code in enumerate(runs.code_names) if stage in UPSTREAM.get(code, ())]
    earlier_codes = np.delete(runs.codes, later, 1)
    pattern = earlier_codes @ (1 << np.arange(earlier_codes.shape[1]))
    group, n_groups = group_ids(runs.cell[use], pattern[use].astype(np.int64))
    later_codes: Floats = runs.codes[use][:, later].sum(1).astype(float)
    return later_codes, group, n_groups


def smallest_placebo_p(table: pl.DataFrame, source: str) -> dict[str, float]:
    """For each code the smallest adjusted p of its placebo tests and of the joint test.

    `table` is one after `select_runs`.
    """
    tests = placebo(table, source=source, prepare=False).drop_nulls("p_holm")
    smallest = {}
    for code in CODES:
        p_values = tests.filter(pl.col("code").is_in([code, ALL_LATER_CODES]))["p_holm"].to_list()
        if p_values:
            smallest[code] = float(min(p_values))
    return smallest


def circularity(
    table: pl.DataFrame, *, threshold: float = 0.3, prepare: bool = True
) -> pl.DataFrame:
    """Which codes are defined by the score, by their recorded source and by how they follow Task.

    `p_low_given_code` = P(Task < threshold | code), `p_code_given_high` = P(code | Task >=
    threshold, valid format); near 1 and near 0 together mean that the code restates the outcome.
    `verdict`: defined by outcome (recorded source), looks defined by outcome (pattern), or no sign.
    """
    runs = build_arrays(table, "task_score", prepare=prepare, need_codes=False, explain=False)
    recorded = circular_codes(runs)
    valid = runs.table["format_valid"].fill_null(True).to_numpy()
    low = runs.y < threshold
    rows = []
    for k, code in enumerate(CODES):
        read = runs.codes_read[:, k]
        fired = runs.codes[:, k] & read
        high_and_read = ~low & valid & read
        n_fired, n_high = int(fired.sum()), int(high_and_read.sum())
        p_low = float(low[fired].mean()) if n_fired else None
        p_code = float(fired[high_and_read].mean()) if n_high else None
        looks_circular = (
            p_low is not None
            and p_code is not None
            and n_fired >= 10
            and p_low >= OUTCOME_SHARE
            and p_code <= OUTCOME_LEAK
        )
        if code in recorded:
            verdict = "defined by outcome"
        else:
            verdict = _circularity_verdict(runs, code, n_fired, looks_circular)
        reason = None if n_high else "no run with Task above the threshold"
        if n_fired == 0:
            reason = f"{code} never fired" if read.all() else runs.reading_count(code)
            if 0 < read.sum() < runs.n:
                reason += ", and fired in none of these"
        rows.append(
            {
                "code": code,
                "fired": n_fired if read.any() else None,
                "read": int(read.sum()),
                "runs": runs.n,
                "from_score": runs.n_from_score[code],
                "threshold": threshold,
                "p_low_given_code": p_low,
                "p_code_given_high": p_code,
                "verdict": verdict,
                "reason": reason,
            }
        )
    schema: dict[str, Any] = {
        "code": pl.String,
        "fired": pl.Int64,
        "read": pl.Int64,
        "runs": pl.Int64,
        "from_score": pl.Int64,
        "threshold": pl.Float64,
        "p_low_given_code": pl.Float64,
        "p_code_given_high": pl.Float64,
        "verdict": pl.String,
        "reason": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def _circularity_verdict(runs: RunArrays, code: str, n_fired: int, looks_circular: bool) -> str:
    """The verdict on a code whose recorded source is not mostly the score."""
    n_from_score = runs.n_from_score[code]
    if n_from_score:
        return (
            f"{n_from_score} of {runs.n_tagged[code]} firings were derived from the score: split"
            " out of effects"
        )
    if n_fired == 0:
        return "not testable"
    if code == "E5":
        return "coupled by rule: E5 is about the files that S4, S5 and Task need"
    return "looks defined by outcome" if looks_circular else "no sign"


def leave_one_out(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    axis: str = "agent",
    source: str = "any",
    prepare: bool = True,
) -> pl.DataFrame:
    """Each code's effect without each agent in turn (or `axis` task, track, tier).

    `shift` is the difference from the effect in all runs. A row without an effect has its reason.
    """
    runs = build_arrays(table, outcome, source=source, prepare=prepare, need_codes=False)
    keys: dict[str, Any] = {
        "axis": pl.String,
        "without": pl.String,
        "code": pl.String,
        "shift": pl.Float64,
    }
    rows: KeyedEstimates = []
    label = f"effect of {{code}} on {outcome}"
    full = effect_estimates(runs.table, outcome, source, label)
    level_of_run, levels = runs.axis(axis)
    for index, level in enumerate(levels):
        remaining = runs.table.filter(pl.Series(level_of_run != index))
        estimates = effect_estimates(remaining, outcome, source, label)
        for code, est, full_est in zip(CODES, estimates, full, strict=True):
            shift = None
            if est.value is not None and full_est.value is not None:
                shift = est.value - full_est.value
            rows.append(({"axis": axis, "without": level, "code": code, "shift": shift}, est))
    return tidy(rows, keys)
