"""Mean scores of S1-S3 of the runs with and without each code, as in the paper's error analysis.

A mean is over the runs that were read for the code, each of which counts once. `difference` is the
mean with the code minus the mean without it: an association, as codes are tagged after the scores,
and agents and tasks are not held equal (`effects.code_effects` does that).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ..tables.codes_read import CODES
from .interval_estimates import SHARE_LIMITS, Estimate, Floats, KeyedEstimates, tidy
from .jackknife import estimates_by_population, jackknife_of_sums
from .run_arrays import RunArrays, build_arrays, reading_refusal

JUDGED = ("S1", "S2", "S3")
GROUPS = ("with", "without", "difference")


def stages_by_code(
    table: pl.DataFrame, *, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """For each code and each of S1-S3 the mean (0-1) of the runs with and without the code.

    Columns: `code`, `stage`, `runs_with_code` (one of GROUPS), and those of estimates; `n` counts
    the runs of the group that have a score. Intervals: jackknife over tasks (new tasks), variation
    within cells (same tasks). Disqualified runs count with their 0.
    """
    runs = build_arrays(
        table.with_columns(pl.lit(1.0).alias("_one")),
        "_one",
        source=source,
        keep_breach=True,
        prepare=prepare,
        need_codes=False,
        explain=False,
    )
    scores = {stage: runs.table[stage].cast(pl.Float64).to_numpy() for stage in JUDGED}
    rows: KeyedEstimates = []
    for k, code in enumerate(CODES):
        for stage, score in scores.items():
            for group, estimates in _group_means(runs, k, stage, score).items():
                key = {"code": code, "stage": stage, "runs_with_code": group}
                rows += [(key, est) for est in estimates]
    return tidy(rows, {"code": pl.String, "stage": pl.String, "runs_with_code": pl.String})


def _group_means(runs: RunArrays, k: int, stage: str, score: Floats) -> dict[str, list[Estimate]]:
    """The estimates of each of GROUPS for code `k` and a stage's scores (n)."""
    code = CODES[k]
    read = runs.codes_read[:, k]
    use = read & np.isfinite(score)
    fired = runs.codes[:, k]
    labels = {
        "with": f"mean {stage} of runs with {code}",
        "without": f"mean {stage} of runs without {code}",
        "difference": f"difference of mean {stage} with and without {code}",
    }
    counts = {"with": int((use & fired).sum()), "without": int((use & ~fired).sum())}
    counts["difference"] = counts["with"] + counts["without"]
    refusal = reading_refusal(code, int(read.sum()), runs.n) if runs.n else "no runs"
    means = {}
    for group, label in labels.items():
        reason = refusal or _empty_group(group, counts, code, stage)
        if reason:
            means[group] = [Estimate(label, "new", None, n=counts[group], reason=reason)]
            continue
        means[group] = _estimates(runs, use, fired, score, group, label, counts[group])
    return means


def _empty_group(group: str, counts: dict[str, int], code: str, stage: str) -> str | None:
    """Why the mean of a group is not defined, or None."""
    for part in ("with", "without"):
        if group in (part, "difference") and not counts[part]:
            return f"no run {part} {code} has {stage}"
    return None


def _estimates(
    runs: RunArrays,
    use: np.ndarray,
    fired: np.ndarray,
    score: Floats,
    group: str,
    label: str,
    n: int,
) -> list[Estimate]:
    """The mean of a group, or the difference of both, for new tasks and for the same tasks."""
    if group != "difference":
        use = use & (fired if group == "with" else ~fired)
    with_code = fired[use].astype(float)
    y = score[use]
    sums = np.column_stack([y * with_code, with_code, y * (1 - with_code), 1 - with_code])

    def statistic(s: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            with_mean, without_mean = s[..., 0:1] / s[..., 1:2], s[..., 2:3] / s[..., 3:4]
        by_group = {"with": with_mean, "without": without_mean}
        return np.asarray(by_group.get(group, with_mean - without_mean))

    jackknifed = jackknife_of_sums(sums, statistic, runs.task[use], runs.cell[use])
    limits = (-1.0, 1.0) if group == "difference" else SHARE_LIMITS
    return estimates_by_population(label, jackknifed, 0, n=n, notes=runs.notes, limits=limits)
