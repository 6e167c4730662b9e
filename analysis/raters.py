"""Agreement of two raters, coefficient beside coefficient, with intervals that resample tasks.

Everything is computed from one contingency table a task, so that a thousand resamplings are one matrix product. A
coefficient that is undefined (an empty margin, no disagreement possible) is None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..judge.measures import cohen_kappa
from .codes_read import CODES, sampled
from .design import UNKNOWN
from .estimate import Floats, finite, wilson
from .frames import Cohort
from .label_tables import Labels

DRAWS, SEED = 1000, 20260601

AGREEMENT_SCHEMA: dict[str, Any] = {
    "item": pl.String, "kind": pl.String, "coefficient": pl.String, "value": pl.Float64, "lo": pl.Float64,
    "hi": pl.Float64, "n": pl.Int64, "n_tasks": pl.Int64, "prevalence_human": pl.Float64, "prevalence_judge": pl.Float64,
    "method": pl.String, "reason": pl.String, "warnings": pl.List(pl.String),
}  # fmt: skip


def raw_agreement(table: Floats) -> Floats:
    """Share of equal values; `table` holds counts (... x L x L), rows first rater."""
    return np.asarray(np.einsum("...ii->...", table) / table.sum((-1, -2)))


def gwet_ac1(table: Floats) -> Floats:
    """Gwet's AC1 (2008): chance agreement from mean category shares, stable at extreme prevalence."""
    size = table.shape[-1]
    if size < 2:
        return np.full(table.shape[:-2], np.nan)
    total = table.sum((-1, -2))
    share = (table.sum(-1) + table.sum(-2)) / (2 * total[..., None])
    chance = (share * (1 - share)).sum(-1) / (size - 1)
    return np.asarray((raw_agreement(table) - chance) / (1 - chance))


def krippendorff_alpha(table: Floats, levels: Floats, metric: str = "ordinal") -> Floats:
    """Krippendorff's alpha of two raters without gaps; `metric` nominal, ordinal or interval on `levels` (length L)."""
    coincidence = table + np.swapaxes(table, -1, -2)
    margin = coincidence.sum(-1)
    n = margin.sum(-1)
    if metric == "ordinal":
        cumulative = np.cumsum(margin, -1)
        middle = cumulative - margin / 2
        distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    elif metric == "interval":
        distance = np.broadcast_to((levels[:, None] - levels[None, :]) ** 2, coincidence.shape)
    else:
        distance = np.broadcast_to(1 - np.eye(len(levels)), coincidence.shape)
    observed = (coincidence * distance).sum((-1, -2))
    expected = (margin[..., :, None] * margin[..., None, :] * distance).sum((-1, -2)) / (n - 1)
    return np.asarray(np.where(expected > 1e-12, 1 - observed / np.where(expected > 1e-12, expected, 1.0), np.nan))


def linear_weights(levels: Floats) -> Floats:
    """Disagreement by rank distance, 0 to 1."""
    size = len(levels)
    rank = np.arange(size)
    return np.asarray(np.abs(rank[:, None] - rank[None, :]) / max(size - 1, 1))


def coefficients(table: Floats, levels: Floats, ordinal: bool) -> dict[str, Floats]:
    """Every coefficient of a table of counts (... x L x L), human in rows; NaN where undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out = {"agreement": raw_agreement(table), "kappa": cohen_kappa(table), "ac1": gwet_ac1(table)}
        if ordinal:
            out["weighted_kappa"] = cohen_kappa(table, linear_weights(levels))
            out["alpha_ordinal"] = krippendorff_alpha(table, levels)
        else:
            out["alpha_nominal"] = krippendorff_alpha(table, levels, "nominal")
            out["sensitivity"] = table[..., 1, 1] / table[..., 1, :].sum(-1)
            out["specificity"] = table[..., 0, 0] / table[..., 0, :].sum(-1)
    return out


def agreement_of(
    human: Floats, judge: Floats, task: list[str], *, draws: int = DRAWS, seed: int = SEED, levels: Floats | None = None
) -> list[dict[str, Any]]:
    """Coefficients of two raters' values (equal length, no gaps) with 95 % intervals from resampling tasks.

    Binary values give sensitivity and specificity with Wilson intervals; more than two levels give ordinal coefficients.
    """
    values = np.unique(np.concatenate([human, judge])) if levels is None else levels
    ordinal = bool(len(set(values.tolist()) - {0.0, 1.0}))
    if not ordinal:
        values = np.array([0.0, 1.0])
    size = len(values)
    names = sorted(set(task))
    where = {name: i for i, name in enumerate(names)}
    tables = np.zeros((len(names), size, size))
    for name, a, b in zip(task, np.searchsorted(values, human), np.searchsorted(values, judge), strict=True):
        tables[where[name], a, b] += 1
    whole = tables.sum(0)
    n = int(whole.sum())
    if not n:
        return []
    point = coefficients(whole, values, ordinal)
    bounds: dict[str, tuple[float, float]] = {}
    if len(names) > 1:
        weights = np.random.default_rng(seed).multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
        drawn = coefficients((weights @ tables.reshape(len(names), -1)).reshape(draws, size, size), values, ordinal)
        for name, sample in drawn.items():
            sample = sample[np.isfinite(sample)]
            if len(sample) >= 0.9 * draws:
                bounds[name] = (float(np.quantile(sample, 0.025)), float(np.quantile(sample, 0.975)))
    positives = int((human > 0).sum()), int((human == 0).sum())
    out = []
    for name, value in point.items():
        method, reason, warnings = "bootstrap over tasks", None, []
        lo, hi = bounds.get(name, (None, None))
        if name in ("sensitivity", "specificity"):
            row = 1 if name == "sensitivity" else 0
            interval = wilson(float(whole[row, row]), float(whole[row].sum()))
            lo, hi = interval or (None, None)
            method = "Wilson interval: runs as independent"
        elif lo == hi:
            # Every resampling repeats the same counts: the data cannot show the spread, which is not certainty.
            lo, hi = wilson(float(np.trace(whole)), n) or (None, None) if name == "agreement" else (None, None)
            if name == "agreement":
                method = "Wilson interval: runs as independent"
        defined = finite(float(value))
        if defined is None:
            reason = _undefined(name, whole)
            lo = hi = None
        elif lo is None:
            reason = "one task only" if len(names) < 2 else "undefined in too many resamplings"
            if len(names) > 1 and float(np.trace(whole)) == n:
                reason = f"no disagreement among {n}: up to {min(1.0, 3 / n):.0%} may still be wrong, resampling cannot show it"
        if not ordinal and name in ("kappa", "alpha_nominal") and min(positives) < 5:
            warnings.append(
                f"{min(positives)} of the rarer value: its interval is too narrow; read AC1, sensitivity, specificity"
            )
        out.append({
            "coefficient": name, "value": defined, "lo": lo, "hi": hi, "n": n, "n_tasks": len(names),
            "prevalence_human": float((human * 1.0).mean()), "prevalence_judge": float((judge * 1.0).mean()),
            "method": method, "reason": reason, "warnings": warnings,
        })  # fmt: skip
    return out


def _undefined(name: str, table: Floats) -> str:
    if name == "sensitivity":
        return "the human never said 1"
    if name == "specificity":
        return "the human never said 0"
    used = (table.sum(0) + table.sum(1) > 0).sum()
    return (
        "both raters gave one value throughout: chance agreement is certain"
        if used < 2
        else "undefined for these counts"
    )


def agreement(
    cards: Cohort, labels: Labels, *, annotator: str | None = None, judge: str | None = None, draws: int = DRAWS
) -> pl.DataFrame:
    """Judge against human labels for every criterion and code (AGREEMENT_SCHEMA, one row a coefficient).

    Runs are matched by id. Only criteria that a judge scored count (credited and unscored ones say nothing about it), and only
    runs that were read for a code; a code that no run was read for has one row that says so.
    `annotator`: default `gold` if present, else the first by name. `judge`: default all scorecards.
    """
    names = labels.annotators
    chosen = annotator or ("gold" if "gold" in names else names[0] if names else "")
    mine = labels.of(chosen)
    runs = cards.runs if judge is None else cards.runs.filter(pl.col("judge") == judge)
    task = runs.select(
        "run_id",
        "judge",
        pl.concat_str(pl.col("track").fill_null(UNKNOWN), pl.col("task").fill_null(UNKNOWN), separator="/").alias(
            "task_key"
        ),
    ).unique(["run_id", "judge"])
    verdicts = (
        cards.criteria.filter((pl.col("status").cast(pl.String) == "scored") & pl.col("value").is_not_null())
        .with_columns(pl.col("criterion").cast(pl.String))
        .join(task, on=["run_id", "judge"])
        .join(mine.criteria.rename({"value": "human"}), on=["run_id", "criterion"])
    )
    rows: list[dict[str, Any]] = []
    for (item,), part in sorted(verdicts.group_by("criterion"), key=lambda pair: str(pair[0][0])):
        found = agreement_of(
            part["human"].to_numpy(), part["value"].to_numpy(), part["task_key"].to_list(), draws=draws
        )
        rows += [{"item": str(item), "kind": "criterion", **row} for row in found]
    both = (
        runs.unique(["run_id", "judge"])
        .select(
            "run_id",
            "judge",
            *(sampled(code) for code in CODES),
            *(pl.col(code).alias(f"{code}_any") for code in CODES),
        )
        .join(task, on=["run_id", "judge"])
        .join(mine.codes, on="run_id", suffix="_label")
    )
    for code in CODES:
        known = both.filter(pl.col(f"{code}_label").is_not_null())
        part = known.filter(pl.col(code).is_not_null())
        human, said = part[f"{code}_label"].cast(pl.Float64).to_numpy(), part[code].cast(pl.Float64).to_numpy()
        found = agreement_of(human, said, part["task_key"].to_list(), draws=draws)
        rows += [{"item": code, "kind": "code", **row} for row in found or _unread(code, known)]
    return pl.DataFrame(rows, schema=AGREEMENT_SCHEMA)


def _unread(code: str, known: pl.DataFrame) -> list[dict[str, Any]]:
    """The row of a code that none of the labelled runs was read for: what fired by facts is no sample of anything."""
    if known.is_empty():
        return []
    fired = known.filter(pl.col(f"{code}_any").fill_null(False))
    reason = f"{code} was read in none of {known.height} labelled runs"
    if fired.height:
        reason += f"; facts show it in {fired.height}, and the human in {int(fired[f'{code}_label'].sum())} of these"
    return [{"item": code, "kind": "code", "coefficient": "agreement", "n": 0, "reason": reason}]


def judge_labels(cards: Cohort, judge: str) -> Labels:
    """A judge's scored criteria and codes in the shape of labels, so that `rater_agreement` compares two judges.

    Codes are null where the run was not read for them.
    """
    mine = pl.col("judge") == judge
    scored = cards.criteria.filter(
        mine & (pl.col("status").cast(pl.String) == "scored") & pl.col("value").is_not_null()
    )
    runs = cards.runs.filter(mine).unique("run_id", keep="last", maintain_order=True)
    return Labels(
        scored.unique(["run_id", "criterion"], keep="last", maintain_order=True).select(
            "run_id", pl.col("judge").alias("annotator"), pl.col("criterion").cast(pl.String), "value"
        ),
        runs.select("run_id", pl.col("judge").alias("annotator"), *(sampled(code) for code in CODES)),
    )


def rater_agreement(first: Labels, second: Labels, *, draws: int = DRAWS) -> pl.DataFrame:
    """Two annotators against each other, item by item (AGREEMENT_SCHEMA); runs stand for tasks in the resampling."""
    rows: list[dict[str, Any]] = []
    criteria = first.criteria.join(second.criteria, on=["run_id", "criterion"], suffix="_second")
    for (item,), part in sorted(criteria.group_by("criterion"), key=lambda pair: str(pair[0][0])):
        found = agreement_of(
            part["value"].to_numpy(), part["value_second"].to_numpy(), part["run_id"].to_list(), draws=draws
        )
        rows += [{"item": str(item), "kind": "criterion", **row} for row in found]
    codes = first.codes.join(second.codes, on="run_id", suffix="_second")
    for code in CODES:
        part = codes.drop_nulls([code, f"{code}_second"])
        a, b = part[code].cast(pl.Float64).to_numpy(), part[f"{code}_second"].cast(pl.Float64).to_numpy()
        rows += [
            {"item": code, "kind": "code", **row} for row in agreement_of(a, b, part["run_id"].to_list(), draws=draws)
        ]
    return pl.DataFrame(rows, schema=AGREEMENT_SCHEMA)
