"""What could be wrong with code effects: placebo stages, circular tags, single agents or tasks that
carry the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import Estimate, KeyedEstimates, adjust_p_values, t_estimate, tidy
from .jackknife import demean, group_ids
from .overlap_weighting import REFUSE_FIRED, circular_codes, effect_estimates, fit_code_effects
from .run_arrays import arrays_by_code, build_arrays, select_runs

UPSTREAM: dict[str, tuple[str, ...]] = {"E3": ("S1", "S2"), "E4": ("S1",), "E5": ("S1", "S2")}
"""Stages finished before the code can arise: its effect on them should be 0."""
OUTCOME_SHARE, OUTCOME_LEAK = 0.9, 0.02
EARLY = ("S1", "S2")
ALARM = 0.05
COHORT, EACH = 0.8, 0.2
"""How the level of the alarm is shared: the one test of the cohort, which sees confounding soonest,
and those of single codes."""


def placebo(table: pl.DataFrame, *, source: str = "any", prepare: bool = True) -> pl.DataFrame:
    """Effects of codes on stages before them (points of 100), and one test of all of them for the
    cohort as a whole.

    `p_holm`: so that chance alarms in one cohort of twenty (Holm over codes and stages, beside the
    cohort's with weights EACH and COHORT). A clear effect means that runs with the code differed
    before it: harder luck of the run, tags derived from outcomes, halo. No effect does not prove
    the contrary: halo from Task alone leaves S1 and S2 untouched.
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
        block: KeyedEstimates = []
        for d, codes in arrays_by_code(table, stage, source=source, prepare=False):
            found = fit_code_effects(d, 100 * d.y[:, None], circular=())
            for code in codes:
                if stage in UPSTREAM.get(code, ()):
                    label = f"placebo: effect of {code} on the earlier {stage}, points of 100"
                    est = found.estimate(d.code_names.index(code), label, limits=(-100.0, 100.0))
                    block.append(({"code": code, "stage": stage}, est))
        rows += sorted(block, key=lambda row: str(row[0]["code"]))
    for (key, _), p in zip(rows, adjust_p_values([est.p for _, est in rows], "holm"), strict=True):
        key["p_holm"] = None if p is None else min(p / EACH, 1.0)
    rows.append(_together(table, source))
    for each, found_ in rows:
        if (p := each["p_holm"]) is not None:
            each["verdict"] = "alarm: moves with an earlier stage" if p < ALARM else "no sign"
        elif found_.value is not None:
            each["verdict"] = "not testable"
    return tidy(rows, keys)


def _together(table: pl.DataFrame, source: str) -> tuple[dict[str, Any], Estimate]:
    """How the early stages move with the number of codes that cannot have arisen before them, among
    repeats of a cell with the same earlier codes. Without confounding runs are exchangeable there,
    so their spread is the error."""
    label = "placebo: S1 and S2 by each later code, points of 100"
    key: dict[str, Any] = {
        "code": " or ".join(UPSTREAM),
        "stage": " and ".join(EARLY),
        "p_holm": None,
    }
    d = build_arrays(table, EARLY[0], source=source, prepare=False)
    if not d.n:
        return key, Estimate(label, "new", None, reason="too few runs to compare")
    moved, whole, free, units = np.zeros((2, d.n)), 0.0, 0, np.zeros(d.n_cells, dtype=bool)
    for stage in EARLY:
        y = 100 * d.table[stage].cast(pl.Float64).to_numpy()
        later = [k for k, code in enumerate(d.code_names) if stage in UPSTREAM.get(code, ())]
        before = np.delete(d.codes, later, 1) @ (1 << np.arange(len(d.code_names) - len(later)))
        use = np.isfinite(y)
        group, n = group_ids(d.cell[use], before[use].astype(np.int64))
        size = np.bincount(group, minlength=n)[group]
        centred = demean(np.column_stack([d.codes[np.ix_(use, later)].sum(1), y[use]]), group, n)
        count, part = centred[:, 0], centred.prod(1)
        # Centred values of n runs have (n - 1) / n of their spread.
        moved[:, use] += part, part * np.sqrt(size / np.maximum(size - 1, 1))
        whole += float(count @ count)
        varied = np.abs(count) > 1e-9
        free += int(varied.sum()) - len(np.unique(group[varied]))
        units[d.cell[use][varied]] = True
    if free < REFUSE_FIRED or whole <= 0:
        return key, Estimate(label, "new", None, n=d.n, reason="too few runs to compare")
    est = t_estimate(
        label,
        "new",
        moved[0].sum() / whole,
        float(np.sqrt(moved[1] @ moved[1])) / whole,
        free,
        n=d.n,
        n_clusters=int(units.sum()),
        limits=(-100.0, 100.0),
        method="same cell and earlier codes; runs as exchangeable",
        warnings=d.notes,
    )
    return {**key, "p_holm": None if est.p is None else min(est.p / COHORT, 1.0)}, est


def alarms(table: pl.DataFrame, source: str) -> dict[str, float]:
    """For each code the smallest adjusted p of its placebos on a prepared table, and of the one for
    the whole cohort."""
    found = placebo(table, source=source, prepare=False).drop_nulls("p_holm")
    of = {
        code: found.filter(pl.col("code").is_in([code, " or ".join(UPSTREAM)]))["p_holm"]
        for code in CODES
    }
    return {code: float(p.min()) for code, p in of.items() if p.len()}  # type: ignore[arg-type]


def circularity(
    table: pl.DataFrame, *, threshold: float = 0.3, prepare: bool = True
) -> pl.DataFrame:
    """Which codes are defined by the score, by their recorded source and by how they follow Task.

    `p_low_given_code` = P(Task < threshold | code), `p_code_given_high` = P(code | Task >=
    threshold, valid format); near 1 and near 0 together mean that the code restates the outcome.
    `verdict`: defined by outcome (recorded source), looks defined by outcome (pattern), or no sign.
    """
    d = build_arrays(table, "task_score", prepare=prepare, need_codes=False, explain=False)
    recorded = circular_codes(d)
    valid = d.table["format_valid"].fill_null(True).to_numpy()
    low = d.y < threshold
    rows = []
    for k, code in enumerate(CODES):
        read = d.codes_read[:, k]
        fired = d.codes[:, k] & read
        n, high = int(fired.sum()), int((~low & valid & read).sum())
        after = float(low[fired].mean()) if n else None
        before = float(fired[~low & valid & read].mean()) if high else None
        alike = (
            after is not None
            and before is not None
            and n >= 10
            and after >= OUTCOME_SHARE
            and before <= OUTCOME_LEAK
        )
        verdict = "no sign"
        if code in recorded:
            verdict = "defined by outcome"
        elif d.n_from_score[code]:
            verdict = (
                f"{d.n_from_score[code]} of {d.n_tagged[code]} firings read off the score: split out of"
                " effects"
            )
        elif code == "E5":
            verdict = (
                "not testable"
                if n == 0
                else "coupled by rule: E5 is about the files that S4, S5 and Task need"
            )
        elif alike:
            verdict = "looks defined by outcome"
        elif n == 0:
            verdict = "not testable"
        reason = None if high else "no run with Task above the threshold"
        if n == 0:
            reason = f"{code} never fired" if read.all() else d.reading_count(code)
            reason += ", and fired in none of these" if 0 < read.sum() < d.n else ""
        rows.append(
            {
                "code": code,
                "fired": n if read.any() else None,
                "read": int(read.sum()),
                "runs": d.n,
                "from_score": d.n_from_score[code],
                "threshold": threshold,
                "p_low_given_code": after,
                "p_code_given_high": before,
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


def leave_one_out(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    axis: str = "agent",
    source: str = "any",
    prepare: bool = True,
) -> pl.DataFrame:
    """Each code's effect without one agent (or `axis` task, track, tier) after the other; rows
    where it cannot be had say why."""
    d = build_arrays(table, outcome, source=source, prepare=prepare, need_codes=False)
    keys: dict[str, Any] = {
        "axis": pl.String,
        "without": pl.String,
        "code": pl.String,
        "shift": pl.Float64,
    }
    rows: KeyedEstimates = []
    label = f"effect of {{code}} on {outcome}"
    full = effect_estimates(d.table, outcome, source, label)
    numbers, names = d.axis(axis)
    for at, name in enumerate(names):
        part = d.table.filter(pl.Series(numbers != at))
        for k, est in enumerate(effect_estimates(part, outcome, source, label)):
            whole = full[k].value
            shift = est.value - whole if est.value is not None and whole is not None else None
            rows.append(({"axis": axis, "without": name, "code": CODES[k], "shift": shift}, est))
    return tidy(rows, keys)
