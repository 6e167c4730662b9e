"""Agreement of two raters (judge and people, people, judges), coefficient beside coefficient, with
intervals from deleting tasks.

Everything is computed from one contingency table a task, weighted by how runs were drawn for
labelling. A coefficient that is undefined (an empty margin, no disagreement possible) is None.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.measures import cohen_kappa, wilson
from ..tables.codes_read import CODES, sampled
from ..tables.cohorts import Cohort
from ..tables.label_tables import CONVENIENCE, Labels, weighted
from .interval_estimates import Floats, finite_or_none, t_quantile
from .run_arrays import UNKNOWN

AGREEMENT_SCHEMA: dict[str, Any] = {
    "item": pl.String,
    "kind": pl.String,
    "coefficient": pl.String,
    "value": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "n": pl.Int64,
    "n_tasks": pl.Int64,
    "prevalence_human": pl.Float64,
    "prevalence_judge": pl.Float64,
    "method": pl.String,
    "reason": pl.String,
    "warnings": pl.List(pl.String),
}
PAIR_SCHEMA: dict[str, Any] = {"first": pl.String, "second": pl.String, **AGREEMENT_SCHEMA}
"""The first judge stands where AGREEMENT_SCHEMA has the human."""
TASK = "task_key"


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


def krippendorff_alpha(coincidence: Floats, levels: Floats, metric: str = "ordinal") -> Floats:
    """Krippendorff's alpha of any number of raters, with gaps, from the coincidence matrix (... x L
    x L): the pairs of values of a unit, each weighing one over its values minus one. `metric`
    nominal, ordinal or interval on `levels` (length L)."""
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
    return np.asarray(
        np.where(expected > 1e-12, 1 - observed / np.where(expected > 1e-12, expected, 1.0), np.nan)
    )


def linear_weights(levels: Floats) -> Floats:
    """Disagreement by rank distance, 0 to 1."""
    size = len(levels)
    rank = np.arange(size)
    return np.asarray(np.abs(rank[:, None] - rank[None, :]) / max(size - 1, 1))


def coefficients(table: Floats, levels: Floats, ordinal: bool) -> dict[str, Floats]:
    """Every coefficient of a table of counts (... x L x L), human in rows; NaN where undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out = {
            "agreement": raw_agreement(table),
            "kappa": cohen_kappa(table),
            "ac1": gwet_ac1(table),
        }
        if ordinal:
            out["weighted_kappa"] = cohen_kappa(table, linear_weights(levels))
            out["alpha_ordinal"] = krippendorff_alpha(table + np.swapaxes(table, -1, -2), levels)
        else:
            out["alpha_nominal"] = krippendorff_alpha(
                table + np.swapaxes(table, -1, -2), levels, "nominal"
            )
            out["sensitivity"] = table[..., 1, 1] / table[..., 1, :].sum(-1)
            out["specificity"] = table[..., 0, 0] / table[..., 0, :].sum(-1)
    return out


def agreement_of(
    human: Floats,
    judge: Floats,
    task: list[str],
    *,
    levels: Floats | None = None,
    weight: Floats | None = None,
    stratum: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Coefficients of two raters' values (equal length, no gaps) with 95 % intervals from deleting
    tasks in turn.

    Shares (agreement, sensitivity, specificity) have Wilson's interval for as many independent runs
    as their jackknife error is worth (Korn and Graubard 1998), the others t intervals on Fisher's
    z. `weight`: what each run stands for (default: itself), `stratum`: from which it was drawn.
    More than two levels give ordinal coefficients.
    """
    values = np.unique(np.concatenate([human, judge])) if levels is None else levels
    ordinal = bool(len(set(values.tolist()) - {0.0, 1.0}))
    if not ordinal:
        values = np.array([0.0, 1.0])
    size, n = len(values), len(human)
    if not n:
        return []
    w = np.ones(n) if weight is None else weight / weight.mean()
    names, cluster = np.unique(np.array(task), return_inverse=True)
    kinds, kind = np.unique(np.array(stratum or [""] * n), return_inverse=True)
    tables = np.zeros((len(kinds), len(names), size, size))
    np.add.at(
        tables, (kind, cluster, np.searchsorted(values, human), np.searchsorted(values, judge)), w
    )
    each = tables.sum(1, keepdims=True)
    whole = each.sum((0, 1))
    # A stratum stands for as many runs without a task: what is left of it is weighed up.
    left = (each - tables).sum((-1, -2), keepdims=True)
    grown = np.divide(
        each.sum((-1, -2), keepdims=True), left, out=np.zeros_like(left), where=left > 1e-9
    )
    point, deleted = (
        coefficients(whole, values, ordinal),
        coefficients(((each - tables) * grown).sum(0), values, ordinal),
    )
    rarer = min(int((human > 0).sum()), int((human == 0).sum()))
    out = []
    for name, value in point.items():
        defined, reason, warnings = finite_or_none(float(value)), None, []
        inside = {"sensitivity": human > 0, "specificity": human == 0}.get(
            name, np.ones(n, dtype=bool)
        )
        mass = np.bincount(cluster, w * inside)
        df = max(float(mass.sum() ** 2 / (mass**2).sum()) - 1, 1.0) if mass.any() else 1.0
        # A rare denominator may be missing without some task: that deletion says nothing.
        sample = deleted[name][np.isfinite(deleted[name])]
        lo = hi = None
        method = "jackknife over tasks, Fisher's z"
        if defined is None:
            reason = _undefined(name, whole)
        elif name in SHARES:
            lo, hi, method = _share_interval(defined, sample, w[inside], df, len(kinds) > 1)
        elif len(names) < 2:
            reason = "one task only"
        elif len(sample) < 0.9 * len(names):
            reason = "undefined without too many of the tasks"
        elif defined >= 1 - 1e-12:
            reason = (
                f"no disagreement among {n}: up to {min(1.0, 3 / n):.0%} may still be wrong, which"
                " no error shows"
            )
        elif (bounds := _z_interval(defined, sample, df)) is None:
            reason = "no variation between the tasks"
        else:
            lo, hi = bounds
        if not ordinal and name in ("kappa", "alpha_nominal") and rarer < 5 and defined is not None:
            warnings.append(f"{rarer} of the rarer value: read AC1, sensitivity, specificity")
            if lo is not None:
                lo = hi = None
                reason = f"{rarer} of the rarer value: too few for an interval"
        out.append(
            {
                "coefficient": name,
                "value": defined,
                "lo": lo,
                "hi": hi,
                "n": n,
                "n_tasks": len(names),
                "prevalence_human": float(np.average(human, weights=w)),
                "prevalence_judge": float(np.average(judge, weights=w)),
                "method": method,
                "reason": reason,
                "warnings": warnings,
            }
        )
    return out


SHARES = ("agreement", "sensitivity", "specificity")


def _share_interval(
    value: float, deleted: Floats, weight: Floats, df: float, stratified: bool
) -> tuple[float, float, str]:
    """Wilson's interval of a share for its effective number of runs, made smaller for few tasks
    (Korn and Graubard 1998)."""
    n = float(weight.sum() ** 2 / (weight**2).sum())
    g = len(deleted)
    method = "Wilson interval: runs as independent"
    if g > 1 and 0 < value < 1:
        squares = (deleted - value) ** 2
        variance = float((g - 1) / g * squares.sum())
        if stratified and variance > 0:
            df = min(df, max(1.0, 3 * float(squares.sum() ** 2 / (squares**2).sum()) - 2))
        known = value * (1 - value) / variance if variance > 0 else n
        # Strata by tag tell more than as many runs drawn at random; without them no sample does,
        # but by chance.
        most = math.inf if stratified else len(weight)
        n = min(most, known * (t_quantile(0.975, math.inf) / t_quantile(0.975, df)) ** 2)
        method = "Wilson interval for the effective number of runs, jackknife over tasks"
    lo, hi = wilson(value * n, n) or (0.0, 1.0)
    return lo, hi, method


def _z_interval(value: float, deleted: Floats, df: float) -> tuple[float, float] | None:
    """t interval on Fisher's z, which keeps the ends inside (-1, 1)."""
    z, each = math.atanh(max(value, -1 + 1e-9)), np.arctanh(np.clip(deleted, -1 + 1e-9, 1 - 1e-9))
    g = len(each)
    half = t_quantile(0.975, df) * math.sqrt((g - 1) / g * float(((each - z) ** 2).sum()))
    return (math.tanh(z - half), math.tanh(z + half)) if half > 0 else None


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
    cards: Cohort, labels: Labels, *, annotator: str | None = None, judge: str | None = None
) -> pl.DataFrame:
    """Judge against human labels for every criterion and code (AGREEMENT_SCHEMA, one row a
    coefficient).

    Runs are matched by id and weigh by how they were drawn for labelling; where labels do not say
    it, the numbers speak of the labelled runs alone, and say so. Only criteria that a judge scored
    count (credited and unscored ones say nothing about it), and only runs that were read for a
    code; a code that no run was read for has one row that says so. `annotator`: default `gold` if
    present, else the first by name. `judge`: default all scorecards.
    """
    mine = labels.of(annotator or labels.usual)
    runs = _judged_runs(cards)
    runs = runs if judge is None else runs.filter(pl.col("judge") == judge)
    said = (
        _scored(cards)
        .rename({"value": "value_second"})
        .join(runs.select("run_id", "judge", TASK), on=["run_id", "judge"])
    )
    codes = runs.select(
        "run_id",
        TASK,
        *(sampled(c).alias(f"{c}_second") for c in CODES),
        *(pl.col(c).alias(f"{c}_any") for c in CODES),
    )
    items, codes = (
        said.join(mine.criteria, on=["run_id", "criterion"]),
        codes.join(mine.codes, on="run_id"),
    )
    labelled = pl.concat([items.select("run_id"), codes.select("run_id")]).unique()
    weights, notes = weighted(labelled, mine.drawn)
    if labelled.height == runs["run_id"].n_unique():
        notes = tuple(note for note in notes if note != CONVENIENCE)
    rows = _by_item(items.join(weights, on="run_id"), codes.join(weights, on="run_id"), TASK, notes)
    return pl.DataFrame(rows, schema=AGREEMENT_SCHEMA)


def rater_agreement(first: Labels, second: Labels) -> pl.DataFrame:
    """Two annotators against each other, item by item (AGREEMENT_SCHEMA), on the runs that both
    labelled; runs stand for tasks."""
    criteria = first.criteria.join(second.criteria, on=["run_id", "criterion"], suffix="_second")
    codes = first.codes.join(second.codes, on="run_id", suffix="_second")
    return pl.DataFrame(_by_item(criteria, codes, "run_id"), schema=AGREEMENT_SCHEMA)


def judge_pairs(cards: Cohort) -> pl.DataFrame:
    """Agreement of every pair of judges that scored the same runs (PAIR_SCHEMA, one row a
    coefficient).

    Runs are matched by their bytes, else by id, criteria by rubric and name; only criteria that
    both judges scored count, and runs that both read for a code. `sensitivity` and `specificity`
    read the first judge as the truth.
    """
    cards = _by_content(cards)
    runs = _judged_runs(cards)
    item = ["run_id", "rubric", "criterion"]
    scored = _scored(cards).unique(["judge", *item], keep="last", maintain_order=True)
    rows: list[dict[str, Any]] = []
    for first, second in combinations(
        sorted(str(judge) for judge in runs["judge"].drop_nulls().unique()), 2
    ):
        a, b = (
            runs.filter(pl.col("judge") == judge).select("run_id", TASK, *map(sampled, CODES))
            for judge in (first, second)
        )
        x, y = (scored.filter(pl.col("judge") == judge) for judge in (first, second))
        criteria = x.join(y, on=item, suffix="_second").join(a.select("run_id", TASK), on="run_id")
        codes = a.join(b.drop(TASK), on="run_id", suffix="_second")
        rows += [
            {"first": first, "second": second, **row} for row in _by_item(criteria, codes, TASK)
        ]
    return pl.DataFrame(rows, schema=PAIR_SCHEMA)


RELIABILITY: dict[str, Any] = {
    "criterion": pl.String,
    "raters": pl.Int64,
    "runs": pl.Int64,
    "n_tasks": pl.Int64,
    "value": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "method": pl.String,
    "reason": pl.String,
}
MOST_LEVELS = 50
"""Distinct values of a criterion: with more it is no scale of levels."""


def reliability(cards: Cohort, labels: Labels | None = None) -> pl.DataFrame:
    """Krippendorff's alpha of each criterion over all who scored it, judges and annotators, on runs
    that two or more scored.

    Ordinal, or nominal for yes and no; the interval is a t interval on Fisher's z from deleting
    tasks. Presumed, credited and unscored criteria are gaps. Runs are matched by their bytes, else
    by id; annotators as raters of their own.
    """
    said = _scored(cards).select("run_id", rater="judge", criterion="criterion", value="value")
    if labels is not None:
        people = labels.criteria.select(
            "run_id",
            pl.concat_str(pl.lit("human "), "annotator").alias("rater"),
            "criterion",
            "value",
        )
        said = pl.concat([said, people])
    same = _by_content(replace(cards, criteria=said))
    tasks = _judged_runs(same).unique("run_id").select("run_id", TASK)
    scored = same.criteria.unique(
        ["run_id", "rater", "criterion"], keep="last", maintain_order=True
    ).join(tasks, on="run_id")
    scored = scored.filter(pl.len().over("run_id", "criterion") > 1)
    parts = sorted(scored.group_by("criterion"), key=lambda part: str(part[0][0]))
    return pl.DataFrame(
        [{"criterion": str(name), **_alpha(part)} for (name,), part in parts], schema=RELIABILITY
    )


def _alpha(part: pl.DataFrame) -> dict[str, Any]:
    """Alpha of one criterion's values (run_id, rater, value, TASK), two or more a run."""
    levels, level = np.unique(part["value"].to_numpy(), return_inverse=True)
    runs, unit = np.unique(part["run_id"].to_numpy(), return_inverse=True)
    names, task = np.unique(part[TASK].to_numpy(), return_inverse=True)
    row: dict[str, Any] = {
        "raters": part["rater"].n_unique(),
        "runs": len(runs),
        "n_tasks": len(names),
    }
    if len(levels) > MOST_LEVELS:
        return {**row, "reason": f"more than {MOST_LEVELS} distinct values: no levels"}
    counts = np.zeros((len(runs), len(levels)))
    np.add.at(counts, (unit, level), 1.0)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(levels))
    of_task = np.zeros(len(runs), dtype=np.int64)
    of_task[unit] = task
    tables = np.zeros((len(names), len(levels), len(levels)))
    np.add.at(tables, of_task, pairs / (counts.sum(1) - 1)[:, None, None])
    metric = "nominal" if set(levels.tolist()) <= {0.0, 1.0} else "ordinal"
    whole = tables.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = finite_or_none(float(krippendorff_alpha(whole, levels, metric)))
        deleted = krippendorff_alpha(whole - tables, levels, metric)
    row |= {"value": value, "method": f"{metric}, jackknife over tasks, Fisher's z"}
    if value is None:
        return {**row, "reason": "one value throughout: chance agreement is certain"}
    known = deleted[np.isfinite(deleted)]
    if len(names) < 2 or len(known) < 0.9 * len(names):
        return {
            **row,
            "reason": (
                "one task only" if len(names) < 2 else "undefined without too many of the tasks"
            ),
        }
    bounds = _z_interval(value, known, len(known) - 1) if value < 1 - 1e-12 else None
    return (
        {**row, "reason": "no variation between the tasks"}
        if bounds is None
        else {**row, "lo": bounds[0], "hi": bounds[1]}
    )


def _by_content(cards: Cohort) -> Cohort:
    """The cohort with one id for all scorecards of the same bytes, wherever the run lay and
    whatever its folder was called."""
    known = cards.runs.filter(pl.col("sha256").fill_null("") != "").select("run_id", "sha256")
    same = (
        known.with_columns(one=pl.col("run_id").first().over("sha256"))
        .unique("run_id")
        .select("run_id", "one")
    )

    def renamed(table: pl.DataFrame) -> pl.DataFrame:
        named = table.join(same, on="run_id", how="left", maintain_order="left")
        return named.with_columns(run_id=pl.coalesce("one", "run_id")).drop("one")

    return replace(cards, runs=renamed(cards.runs), criteria=renamed(cards.criteria))


def _judged_runs(cards: Cohort) -> pl.DataFrame:
    """One row a run and judge, with the key of its task (TASK)."""
    known = (pl.col(name).fill_null(UNKNOWN) for name in ("track", "task"))
    runs = cards.runs.unique(["run_id", "judge"], keep="last", maintain_order=True)
    return runs.with_columns(pl.concat_str(*known, separator="/").alias(TASK))


def _scored(cards: Cohort) -> pl.DataFrame:
    """The criteria that a judge scored itself."""
    scored = (pl.col("status").cast(pl.String) == "scored") & pl.col("value").is_not_null()
    return cards.criteria.filter(scored).with_columns(pl.col("criterion").cast(pl.String))


def _by_item(
    criteria: pl.DataFrame, codes: pl.DataFrame, cluster: str, notes: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Rows for each criterion (`value` beside `value_second`) and code (`E1` beside `E1_second`);
    `cluster` is deleted in turn, `weight` counts where there is such a column."""
    pairs = [
        (str(item), "criterion", part, "value")
        for (item,), part in sorted(
            criteria.group_by("criterion"), key=lambda pair: str(pair[0][0])
        )
    ]
    pairs += [(code, "code", codes.drop_nulls([code, f"{code}_second"]), code) for code in CODES]
    rows: list[dict[str, Any]] = []
    for item, kind, part, column in pairs:
        first, second = (
            part[name].cast(pl.Float64).to_numpy() for name in (column, f"{column}_second")
        )
        weight = part["weight"].to_numpy() if "weight" in part.columns else None
        stratum = part["stratum"].fill_null("").to_list() if "stratum" in part.columns else None
        found = agreement_of(first, second, part[cluster].to_list(), weight=weight, stratum=stratum)
        if not found and f"{item}_any" in codes.columns:
            found = _unread(item, codes.drop_nulls(item))
        rows += [
            {"item": item, "kind": kind, **row, "warnings": [*notes, *row.get("warnings", ())]}
            for row in found
        ]
    return rows


def _unread(code: str, known: pl.DataFrame) -> list[dict[str, Any]]:
    """The row of a code that none of the labelled runs was read for: what fired by facts is no
    sample of anything."""
    if known.is_empty():
        return []
    fired = known.filter(pl.col(f"{code}_any").fill_null(False))
    reason = f"{code} was read in none of {known.height} labelled runs"
    if fired.height:
        reason += (
            f"; facts show it in {fired.height}, and the human in {int(fired[code].sum())} of these"
        )
    return [{"coefficient": "agreement", "n": 0, "reason": reason}]
