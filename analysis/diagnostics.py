"""What could be wrong with code effects: placebo stages, circular tags, single agents or tasks that carry the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from .codes_read import CODES
from .design import design, designs, prepared
from .estimate import Estimate, Rows, adjusted, estimate, tidy
from .overlap import REFUSE_FIRED, average_effects, circular_codes, fitted, overlap

UPSTREAM: dict[str, tuple[str, ...]] = {"E3": ("S1", "S2"), "E4": ("S1",), "E5": ("S1", "S2")}
"""Stages finished before the code can arise: its effect on them should be 0."""
OUTCOME_SHARE, OUTCOME_LEAK = 0.9, 0.02


LATE, EARLY = ("E3", "E5"), ("S1", "S2")
"""Codes that arise after both stages: taken together, the one test that sees confounding of the run soonest."""
ALARM = 0.05


def placebo(table: pl.DataFrame, *, source: str = "any", prepare: bool = True) -> pl.DataFrame:
    """Effects of codes on stages before them (points of 100); Holm over codes and stages, and one test of E3 or E5 together on
    the mean of S1 and S2, for the cohort as a whole.

    A clear effect means that runs with the code differed before it: harder luck of the run, tags derived from outcomes, halo
    (or chance, in up to one cohort in ten: two tests at .05). No effect does not prove the contrary: halo from Task alone leaves S1
    and S2 untouched.
    """
    if prepare:
        table, _ = prepared(table, keep_breach=False)
    keys: dict[str, Any] = {"code": pl.String, "stage": pl.String, "p_holm": pl.Float64, "verdict": pl.String}
    rows: Rows = []
    for stage in EARLY:
        block: Rows = []
        for d, codes in designs(table, stage, source=source, prepare=False):
            found = fitted(d, 100 * d.y[:, None], circular=())
            for code in codes:
                if stage in UPSTREAM.get(code, ()):
                    label = f"placebo: effect of {code} on the earlier {stage}, points of 100"
                    est = found.estimate(d.code_names.index(code), label, limits=(-100.0, 100.0))
                    block.append(({"code": code, "stage": stage}, est))
        rows += sorted(block, key=lambda row: str(row[0]["code"]))
    for (key, _), p in zip(rows, adjusted([est.p for _, est in rows], "holm"), strict=True):
        key["p_holm"] = p
    key, est = _together(table, source)
    for each, found_ in [*rows, (key, est)]:
        if (p := each["p_holm"]) is not None:
            each["verdict"] = "alarm: moves with an earlier stage" if p < ALARM else "no sign"
        elif found_.value is not None:
            each["verdict"] = "not testable"
    return tidy([*rows, (key, est)], keys)


def _together(table: pl.DataFrame, source: str) -> tuple[dict[str, Any], Estimate]:
    both = table.with_columns(_early=50 * (pl.col(EARLY[0]) + pl.col(EARLY[1])))
    d = design(both, "_early", source=source, prepare=False)
    label = "placebo: effect of E3 or E5 on the mean of S1 and S2, points of 100"
    key: dict[str, Any] = {"code": " or ".join(LATE), "stage": " and ".join(EARLY), "p_holm": None}
    late = [d.code_names.index(code) for code in LATE if code in d.code_names]
    codes = np.column_stack([np.delete(d.codes, late, 1), d.codes[:, late].any(1)])
    fit = overlap(codes, codes.shape[1] - 1, d.y[:, None], d.cell, d.task) if late and d.n else None
    if fit is None or fit.compared < REFUSE_FIRED:
        return key, Estimate(label, "new", None, n=d.n, reason="too few runs to compare")
    est = estimate(
        label, "new", fit.value[0], fit.se_new[0], fit.df_new, n=d.n, n_clusters=len(fit.tasks), limits=(-100.0, 100.0),
        method="same cell and other codes, weighed by overlap; jackknife over tasks", warnings=d.notes,
    )  # fmt: skip
    return {**key, "p_holm": est.p}, est


def alarms(table: pl.DataFrame, source: str) -> dict[str, float]:
    """For each code the smallest adjusted p of its placebos on a prepared table, and of the one for the whole cohort."""
    found = placebo(table, source=source, prepare=False).drop_nulls("p_holm")
    of = {code: found.filter(pl.col("code").is_in([code, " or ".join(LATE)]))["p_holm"] for code in CODES}
    return {code: float(p.min()) for code, p in of.items() if p.len()}  # type: ignore[arg-type]


def circularity(table: pl.DataFrame, *, threshold: float = 0.3, prepare: bool = True) -> pl.DataFrame:
    """Which codes are defined by the score, by their recorded source and by how they follow Task.

    `p_low_given_code` = P(Task < threshold | code), `p_code_given_high` = P(code | Task >= threshold, valid format);
    near 1 and near 0 together mean that the code restates the outcome. `verdict`: defined by outcome (recorded source),
    looks defined by outcome (pattern), or no sign.
    """
    d = design(table, "task_score", prepare=prepare, need_codes=False, explain=False)
    recorded = circular_codes(d)
    valid = d.table["format_valid"].fill_null(True).to_numpy()
    low = d.y < threshold
    rows = []
    for k, code in enumerate(CODES):
        read = d.read[:, k]
        fired = d.codes[:, k] & read
        n, high = int(fired.sum()), int((~low & valid & read).sum())
        after = float(low[fired].mean()) if n else None
        before = float(fired[~low & valid & read].mean()) if high else None
        alike = (
            after is not None and before is not None and n >= 10 and after >= OUTCOME_SHARE and before <= OUTCOME_LEAK
        )
        verdict = "no sign"
        if code in recorded:
            verdict = "defined by outcome"
        elif d.from_score[code]:
            verdict = f"{d.from_score[code]} of {d.tagged[code]} firings read off the score: split out of effects"
        elif code == "E5":
            verdict = "not testable" if n == 0 else "coupled by rule: E5 is about the files that S4, S5 and Task need"
        elif alike:
            verdict = "looks defined by outcome"
        elif n == 0:
            verdict = "not testable"
        reason = None if high else "no run with Task above the threshold"
        if n == 0:
            reason = f"{code} never fired" if read.all() else d.not_read(code)
            reason += ", and fired in none of these" if 0 < read.sum() < d.n else ""
        rows.append({
            "code": code, "fired": n if read.any() else None, "read": int(read.sum()), "runs": d.n, "from_score": d.from_score[code], "threshold": threshold, "p_low_given_code": after,
            "p_code_given_high": before, "verdict": verdict,
            "reason": reason,
        })  # fmt: skip
    schema: dict[str, Any] = {
        "code": pl.String, "fired": pl.Int64, "read": pl.Int64, "runs": pl.Int64, "from_score": pl.Int64, "threshold": pl.Float64,
        "p_low_given_code": pl.Float64, "p_code_given_high": pl.Float64, "verdict": pl.String, "reason": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def leave_one_out(
    table: pl.DataFrame, outcome: str = "overall", *, axis: str = "agent", source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """Each code's effect without one agent (or `axis` task, track, tier) after the other; rows where it cannot be had say why."""
    d = design(table, outcome, source=source, prepare=prepare, need_codes=False)
    keys: dict[str, Any] = {"axis": pl.String, "without": pl.String, "code": pl.String, "shift": pl.Float64}
    rows: Rows = []
    label = f"effect of {{code}} on {outcome}"
    full = average_effects(d.table, outcome, source, label)
    numbers, names = d.axis(axis)
    for at, name in enumerate(names):
        part = d.table.filter(pl.Series(numbers != at))
        for k, est in enumerate(average_effects(part, outcome, source, label)):
            whole = full[k].value
            shift = est.value - whole if est.value is not None and whole is not None else None
            rows.append(({"axis": axis, "without": name, "code": CODES[k], "shift": shift}, est))
    return tidy(rows, keys)
