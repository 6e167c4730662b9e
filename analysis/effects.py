"""What a fired code goes with, in points of a score: runs against repeats of the same agent on the same task and tier.

Default: cell fixed effects with products of pairs of codes, standardised back to average marginal effects (AME), with a
jackknife over tasks that recomputes coefficients and mean code rates. Associational: codes are tagged after the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from .codes_read import CODES
from .design import PARTS, Design, designs, overall_parts, too_few_read
from .estimate import Bools, Estimate, Floats, Ints, Population, Rows, adjusted, detectable, estimate, tidy
from .jackknife import (
    cross_products,
    delete_one_regression,
    demean,
    group_sums,
    independent_columns,
    jackknife_variance,
)

MIN_FIRED, MIN_CELLS = 50, 20
"""Below either, an effect is printed but called uninformative."""
REFUSE_FIRED, REFUSE_CELLS = 10, 5
"""Below either, none is printed."""
MIN_JOINT = 10
"""Runs in which both codes of a pair fired, for their product to enter."""

EFFECT_KEYS: dict[str, Any] = {
    "code": pl.String, "outcome": pl.String, "status": pl.String, "fired": pl.Int64, "read": pl.Int64,
    "runs": pl.Int64, "cells_varying": pl.Int64,
    "p_holm": pl.Float64, "mde80": pl.Float64, "robustness_value": pl.Float64, "loo_min": pl.Float64,
    "loo_max": pl.Float64, "loo_task": pl.String, "halo_note": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Marginal:
    """AMEs of codes (K x m) with deletions of each cluster (G x K x m). Codes that cannot be estimated are NaN."""

    ame: Floats
    deleted: Floats
    identified: Bools
    pairs: tuple[tuple[int, int], ...]
    iid_t: Floats
    """Within-cell t of each code with iid errors, first outcome (for the robustness value)."""
    iid_df: int

    @property
    def n_clusters(self) -> int:
        return len(self.deleted)

    @property
    def se(self) -> Floats:
        return np.asarray(np.sqrt(jackknife_variance(self.ame, self.deleted)))


def marginal_effects(
    codes: Floats, y: Floats, cell: Ints, cluster: Ints, *, pairs: bool = True, min_joint: int = MIN_JOINT
) -> Marginal:
    """AMEs of codes (n x K, 0/1) on outcomes y (n x m) within cells, jackknifed over clusters (dense numbers).

    AME_k = b_k + sum_j g_kj mean(E_j) from y = a_cell + sum b_k E_k + sum g_ij E_i E_j; all of b, g and mean(E) are
    recomputed in each deletion. Products enter for pairs that fired together in at least `min_joint` runs.
    """
    n, k = codes.shape
    n_clusters = int(cluster.max(initial=-1)) + 1
    n_cells = int(cell.max(initial=-1)) + 1
    joint = codes.T @ codes
    chosen = [(i, j) for i in range(k) for j in range(i + 1, k) if pairs and joint[i, j] >= min_joint]
    x = np.column_stack([codes, *(codes[:, i] * codes[:, j] for i, j in chosen)]) if chosen else codes
    x, y = demean(x, cell, n_cells), demean(y, cell, n_cells)
    products = cross_products(x, y, cluster, n_clusters)
    kept = independent_columns(products.xx.sum(0))
    clusters_varying = (np.einsum("gii->gi", products.xx) > 1e-9).sum(0)
    if n_clusters > 1:
        kept &= clusters_varying >= 2
    kept[k:] &= np.array([kept[i] and kept[j] for i, j in chosen], dtype=bool)
    columns = np.flatnonzero(kept)
    reduced = type(products)(products.xx[:, columns][:, :, columns], products.xy[:, columns])
    full, deleted = delete_one_regression(reduced)
    place = {int(column): at for at, column in enumerate(columns)}
    rates = group_sums(np.column_stack([codes, np.ones(n)]), cluster, n_clusters)
    total = rates.sum(0)
    mean = total[:k] / max(total[k], 1)
    left = total - rates
    mean_deleted = left[:, :k] / np.maximum(left[:, k:], 1)
    m = y.shape[1]
    ame, ame_deleted = np.full((k, m), np.nan), np.full((n_clusters, k, m), np.nan)
    for code in range(k):
        if kept[code]:
            ame[code], ame_deleted[:, code] = full[place[code]], deleted[:, place[code]]
    for at, (i, j) in enumerate(chosen):
        if not kept[k + at]:
            continue
        g, g_deleted = full[place[k + at]], deleted[:, place[k + at]]
        for code, other in ((i, j), (j, i)):
            ame[code] += g * mean[other]
            ame_deleted[:, code] += g_deleted * mean_deleted[:, other, None]
    iid_t, df = _iid_t(x, y[:, 0], kept[:k], n - n_cells)
    return Marginal(
        ame, ame_deleted, kept[:k], tuple(pair for at, pair in enumerate(chosen) if kept[k + at]), iid_t, df
    )


def _iid_t(x: Floats, y: Floats, kept: Bools, free: int) -> tuple[Floats, int]:
    """t values of the additive within-cell regression under iid errors."""
    k = len(kept)
    out = np.full(k, np.nan)
    x = x[:, :k][:, kept]
    df = free - x.shape[1]
    if df < 1 or not x.shape[1]:
        return out, 0
    inverse = np.linalg.pinv(x.T @ x, hermitian=True)
    b = inverse @ (x.T @ y)
    residual = y - x @ b
    se = np.sqrt(np.maximum(np.diag(inverse) * (residual @ residual) / df, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        out[kept] = b / se
    return out, df


def robustness_value(t: float, df: int) -> float | None:
    """Cinelli and Hazlett's RV: the partial R2 that an unobserved cause would need with both code and score to erase it."""
    if df < 1 or not np.isfinite(t):
        return None
    f2 = t * t / df
    return float(0.5 * (np.sqrt(f2 * f2 + 4 * f2) - f2))


def cells_varying(codes: Bools, cell: Ints) -> Ints:
    """For each code, in how many cells some runs fired it and others did not."""
    n_cells = int(cell.max(initial=-1)) + 1
    fired = group_sums(codes.astype(float), cell, n_cells)
    size = np.bincount(cell, minlength=n_cells)[:, None]
    return np.asarray(((fired > 0) & (fired < size)).sum(0), dtype=np.int64)


def refusals(d: Design, circular: Sequence[str] | None = None) -> tuple[str | None, ...]:
    """For each code of a design why its effect cannot be estimated, or None: the one gate for all tables of effects.

    `circular` codes are refused, by default those that are by their recorded source.
    """
    varying = cells_varying(d.codes, d.cell)
    circular = circular_codes(d) if circular is None else circular
    return tuple(_refusal(d, k, int(varying[k]), circular) for k in range(len(d.code_names)))


def _refusal(d: Design, k: int, varying: int, circular: Sequence[str]) -> str | None:
    fired = int(d.codes[:, k].sum())
    name = d.code_names[k]
    if d.n_scored == 0:
        return "no runs with this score"
    if unread := too_few_read(name, d.n_read[name], d.n_scored):
        return unread
    within = "" if d.n == d.n_scored else f" ({d.n} of {d.n_scored} runs read)"
    if d.n_cells == d.n:
        return "no repeats: every agent, task and tier has a single run to compare with"
    if fired == 0:
        return f"{name} never fired{within}"
    if fired == d.n:
        return f"{name} fired in every run{within}"
    if fired < REFUSE_FIRED:
        return f"too few firings: {fired} runs with {name}{within}, at least {REFUSE_FIRED} are needed"
    if varying < REFUSE_CELLS:
        return f"{name} varies within {varying} cells only, at least {REFUSE_CELLS} are needed"
    if name in circular:
        return f"circular: {name} is defined by the score it would explain (source: score); use source=independent"
    return None


@dataclass(frozen=True)
class Fitted:
    """The effects of a design's codes on some outcomes, or why they cannot be had."""

    d: Design
    refused: tuple[str | None, ...]
    fit: Marginal | None
    method: str

    def why_not(self, k: int) -> str | None:
        """Why code `k` has no effect, or None."""
        if self.refused[k] is None and (self.fit is None or not self.fit.identified[k]):
            return f"{self.d.code_names[k]} varies in one task only, or never apart from other codes"
        return self.refused[k]

    def estimate(self, k: int, label: str, at: int = 0, population: Population = "new", **more: Any) -> Estimate:
        """The effect of code `k` on outcome `at`; `more` as `estimate` takes it."""
        d, fit, why = self.d, self.fit, self.why_not(k)
        if why is not None or fit is None:
            return Estimate(label, population, None, n=d.n, n_clusters=d.n_tasks, method=self.method, reason=why)
        common: dict[str, Any] = {
            "n": d.n,
            "n_clusters": fit.n_clusters,
            "method": self.method,
            "warnings": d.notes,
            **more,
        }
        return estimate(label, population, fit.ame[k, at], fit.se[k, at], fit.n_clusters - 1, **common)


def fitted(
    d: Design,
    y: Floats | None = None,
    *,
    pairs: bool = True,
    circular: Sequence[str] | None = None,
    population: Population = "new",
) -> Fitted:
    """Effects within cells on `y` (n x m; default the design's outcome), jackknifed over tasks or, for the same tasks, cells."""
    refused = refusals(d, circular)
    cluster, over = (d.task, "tasks") if population == "new" else (d.cell, "cells")
    fit = None
    if not all(refused):
        outcomes = d.y[:, None] if y is None else y
        fit = marginal_effects(d.codes.astype(float), outcomes, d.cell, cluster, pairs=pairs)
    return Fitted(d, refused, fit, f"cell fixed effects{' + pairs' if pairs else ''}, jackknife over {over}")


def code_effects(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    pairs: bool = True,
    source: str = "any",
    prepare: bool = True,
) -> pl.DataFrame:
    """Average marginal effect of each code on `outcome`, two rows a code (new tasks, same tasks).

    Units are those of the outcome (overall: points, 0-100). `status`: ok, uninformative (fewer than 50 firings or 20
    varying cells: read `mde80`, the smallest effect found with power .8), refused (with the reason). p_holm adjusts over
    the codes with status ok. `read` of the `runs` are used: read for the code and those beside it (see `designs`). Disqualified
    runs are left out. Raises ConfigError for an unknown outcome or source.
    """
    populations: tuple[Population, ...] = ("new", "same")
    blocks: dict[Population, Rows] = {population: [] for population in populations}
    for d, codes in designs(table, outcome, source=source, prepare=prepare):
        varying = cells_varying(d.codes, d.cell)
        fits = {population: fitted(d, pairs=pairs, population=population) for population in populations}
        new, same = fits["new"].fit, fits["same"].fit
        for population, found in fits.items():
            for k in map(d.code_names.index, codes):
                narrow = bool(population == "new" and new and same and new.se[k, 0] < 0.8 * same.se[k, 0])
                blocks[population].append(_effect_row(found, k, population, int(varying[k]), narrow))
    rows: Rows = []
    for block in blocks.values():
        block.sort(key=lambda row: str(row[0]["code"]))
        family = adjusted([est.p if key["status"] == "ok" else None for key, est in block], "holm")
        rows += [({**key, "p_holm": p}, est) for (key, est), p in zip(block, family, strict=True)]
    return tidy(rows, EFFECT_KEYS)


def circular_codes(d: Design) -> list[str]:
    """Codes most of whose firings rest on the score alone, by their recorded source."""
    out = []
    for k, code in enumerate(d.code_names):
        columns = {f"{code}_score", f"{code}_judge", f"{code}_detector"}
        if not columns <= set(d.table.columns) or not d.codes[:, k].any():
            continue
        score = d.table[f"{code}_score"].fill_null(False).to_numpy()
        other = (d.table[f"{code}_judge"].fill_null(False) | d.table[f"{code}_detector"].fill_null(False)).to_numpy()
        if (score & ~other & d.codes[:, k]).sum() > 0.5 * d.codes[:, k].sum():
            out.append(code)
    return out


def average_effects(table: pl.DataFrame, outcome: str, source: str, label: str) -> list[Estimate]:
    """The AME of each of E1..E5 on the runs of a prepared table; `label` is a template with {code}."""
    estimates: dict[str, Estimate] = {}
    for d, codes in designs(table, outcome, source=source, prepare=False):
        found = fitted(d)
        estimates |= {code: found.estimate(d.code_names.index(code), label.format(code=code)) for code in codes}
    return [estimates[code] for code in CODES]


def _effect_row(
    found: Fitted, k: int, population: Population, varying: int, narrow: bool
) -> tuple[dict[str, Any], Estimate]:
    d, fit = found.d, found.fit
    name, fired = d.code_names[k], int(d.codes[:, k].sum())
    key: dict[str, Any] = {
        "code": name, "outcome": d.outcome, "status": "refused", "fired": fired if d.n else None, "read": d.n,
        "runs": d.n_scored, "cells_varying": varying if d.n else None,
    }  # fmt: skip
    label = f"AME of {name} on {d.outcome}, within agent x task x tier"
    if fit is None or found.why_not(k) is not None:
        return key, found.estimate(k, label, population=population)
    warnings = list(d.notes)
    informative = fired >= MIN_FIRED and varying >= MIN_CELLS
    key["status"] = "ok" if informative else "uninformative"
    value, se, df = float(fit.ame[k, 0]), float(fit.se[k, 0]), fit.n_clusters - 1
    if 2 <= fit.n_clusters < 10:
        warnings.append(
            f"{fit.n_clusters} {'tasks' if population == 'new' else 'cells'}: intervals of so few are rough"
        )
    if df >= 1 and np.isfinite(se):
        key["mde80"] = detectable(se, df)
    if not informative:
        unseen = f"; effects below {key['mde80']:.1f} go unseen" if key.get("mde80") else ""
        warnings.append(f"uninformative: {fired} firings, {varying} varying cells{unseen}")
    if narrow:
        warnings.append("tasks happen to spread less than repeats alone would: read the wider interval for these tasks")
    key["robustness_value"] = robustness_value(float(fit.iid_t[k]), fit.iid_df)
    if df >= 1 and population == "new":
        deleted = fit.deleted[:, k, 0]
        key |= {"loo_min": float(deleted.min()), "loo_max": float(deleted.max())}
        key["loo_task"] = d.tasks[int(np.abs(deleted - value).argmax())]
    if d.outcome in ("overall", "agentic", "S1", "S2", "S3"):
        key["halo_note"] = "judge and tags may share a judge: see the parts"
    reason = None if df >= 1 else "one task only: nothing says how the effect varies between tasks"
    return key, found.estimate(k, label, population=population, reason=reason, warnings=warnings)


PART_GROUPS: dict[str, tuple[str, ...]] = {
    **{part: (part,) for part in PARTS},
    "judge part": ("S1", "S2", "S3"),
    "rule part": ("S4", "S5"),
    "task part": ("task",),
    "total": PARTS,
}
PART_NOTES = {
    "judge part": "stages that a judge scored: tags and scores may share its errors",
    "rule part": "stages computed by rule: for E5 partly by definition",
    "task part": "the benchmark's own metric: the only external evidence",
    "other": "what stages and Task do not explain: gates, policies, foreign weights",
}


def decompose_effects(
    table: pl.DataFrame, *, pairs: bool = True, source: str = "any", prepare: bool = True
) -> pl.DataFrame:
    """Each code's effect on Overall, split exactly into S1..S5, Task and other (points), new tasks.

    OLS is linear in the outcome, so the parts add up to the total. No mediation is claimed.
    """
    keys: dict[str, Any] = {"code": pl.String, "part": pl.String, "share": pl.Float64, "note": pl.String}
    rows: Rows = []
    for d, codes in designs(table, "overall", source=source, prepare=prepare):
        parts = overall_parts(d.table)
        y = np.column_stack([parts[:, [PARTS.index(p) for p in members]].sum(1) for members in PART_GROUPS.values()])
        found = fitted(d, y, pairs=pairs)
        for code in codes:
            k = d.code_names.index(code)
            total = float(found.fit.ame[k, -1]) if found.fit is not None and found.why_not(k) is None else 0.0
            for at, part in enumerate(PART_GROUPS):
                est = found.estimate(k, f"AME of {code} on the {part} of overall", at)
                share = est.value / total if est.value is not None and abs(total) > 1e-9 else None
                rows.append(({"code": code, "part": part, "note": PART_NOTES.get(part), "share": share}, est))
    return tidy(sorted(rows, key=lambda row: str(row[0]["code"])), keys)
