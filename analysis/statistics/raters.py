"""Agreement of raters: judge and people, two annotators, two judges, or all of them at once.

Several coefficients stand side by side, as none is enough. All are computed from one contingency
table for each task, weighted by how runs were drawn for labelling; intervals come from deleting one
task at a time. A coefficient that is undefined (an empty margin, no disagreement possible) is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ...judge.trust.measures import cohen_kappa, wilson
from ..tables.codes_read import CODES, sampled
from ..tables.cohorts import Cohort
from ..tables.label_tables import CONVENIENCE, Labels, weighted
from .interval_estimates import MIN_DF, Bools, Floats, Ints, finite_or_none, t_quantile
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
"""Of two judges: the first is where AGREEMENT_SCHEMA has the human."""
TASK = "task_key"
FISHER_METHOD = "t on Fisher's z, jackknife over {clusters}"
SHARE_METHOD = "Wilson for the effective number of runs, jackknife over {clusters}"
"""How the intervals of a coefficient are made, the same for every item."""
MIN_DEFINED_SHARE = 0.9
"""The least share of deletions in which a coefficient must be defined for an interval."""
MIN_RARER = 5
"""The fewest runs with the rarer value for an interval of kappa or alpha."""


def raw_agreement(table: Floats) -> Floats:
    """Share of equal values; `table` holds counts (... x L x L), the first rater in rows."""
    return np.asarray(np.einsum("...ii->...", table) / table.sum((-1, -2)))


def gwet_ac1(table: Floats) -> Floats:
    """Gwet's AC1 (2008), which is stable at extreme prevalence; `table` (... x L x L).

    (p_o - p_e) / (1 - p_e), with chance agreement p_e = sum_l pi_l (1 - pi_l) / (L - 1) from the
    mean shares pi_l of the two raters.
    """
    n_levels = table.shape[-1]
    if n_levels < 2:
        return np.full(table.shape[:-2], np.nan)
    total = table.sum((-1, -2))
    mean_share = (table.sum(-1) + table.sum(-2)) / (2 * total[..., None])
    chance = (mean_share * (1 - mean_share)).sum(-1) / (n_levels - 1)
    return np.asarray((raw_agreement(table) - chance) / (1 - chance))


def krippendorff_alpha(coincidence: Floats, levels: Floats, metric: str = "ordinal") -> Floats:
    """Krippendorff's alpha of any number of raters, with gaps: 1 - D_observed / D_expected.

    `coincidence` (... x L x L) counts the pairs of values of a unit, each divided by the unit's
    number of values minus one. `levels` (L). `metric`: nominal, ordinal or interval.
    """
    margin = coincidence.sum(-1)
    n = margin.sum(-1)
    if metric == "ordinal":
        mid_rank = np.cumsum(margin, -1) - margin / 2
        distance = (mid_rank[..., :, None] - mid_rank[..., None, :]) ** 2
    elif metric == "interval":
        distance = np.broadcast_to((levels[:, None] - levels[None, :]) ** 2, coincidence.shape)
    else:
        distance = np.broadcast_to(1 - np.eye(len(levels)), coincidence.shape)
    observed = (coincidence * distance).sum((-1, -2))
    chance_pairs = margin[..., :, None] * margin[..., None, :]
    expected = (chance_pairs * distance).sum((-1, -2)) / (n - 1)
    defined = expected > 1e-12
    return np.asarray(np.where(defined, 1 - observed / np.where(defined, expected, 1.0), np.nan))


def linear_weights(levels: Floats) -> Floats:
    """Disagreement by the distance of ranks, 0 to 1 (L x L)."""
    n_levels = len(levels)
    rank = np.arange(n_levels)
    return np.asarray(np.abs(rank[:, None] - rank[None, :]) / max(n_levels - 1, 1))


def coefficients(table: Floats, levels: Floats, ordinal: bool) -> dict[str, Floats]:
    """Every coefficient of counts (... x L x L), human in rows; NaN where undefined."""
    coincidence = table + np.swapaxes(table, -1, -2)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "agreement": raw_agreement(table),
            "kappa": cohen_kappa(table),
            "ac1": gwet_ac1(table),
        }
        if ordinal:
            values["weighted_kappa"] = cohen_kappa(table, linear_weights(levels))
            values["alpha_ordinal"] = krippendorff_alpha(coincidence, levels)
        else:
            values["alpha_nominal"] = krippendorff_alpha(coincidence, levels, "nominal")
            values["sensitivity"] = table[..., 1, 1] / table[..., 1, :].sum(-1)
            values["specificity"] = table[..., 0, 0] / table[..., 0, :].sum(-1)
    return values


@dataclass(frozen=True)
class _RatedRuns:
    """Two raters' values of n runs."""

    human: Floats
    judge: Floats
    weight: Floats
    """What each run stands for; mean 1."""
    task: Ints
    n_tasks: int
    stratum: Ints
    n_strata: int
    clusters: str
    """What the tasks are, as a plural: `tasks`, or `runs` if each run stands for itself."""

    @property
    def n(self) -> int:
        return len(self.human)

    def tables(self, levels: Floats) -> Floats:
        """Weighted counts (strata x tasks x L x L), human in rows."""
        shape = (self.n_strata, self.n_tasks, len(levels), len(levels))
        counts = np.zeros(shape)
        row, column = np.searchsorted(levels, self.human), np.searchsorted(levels, self.judge)
        np.add.at(counts, (self.stratum, self.task, row, column), self.weight)
        return counts

    def denominator(self, coefficient: str) -> Bools:
        """The runs (n) that a coefficient is a share of."""
        if coefficient == "sensitivity":
            return np.asarray(self.human > 0)
        if coefficient == "specificity":
            return np.asarray(self.human == 0)
        return np.ones(self.n, dtype=bool)

    def effective_df(self, use: Bools) -> float:
        """Effective number of tasks of the runs `use`, less one: (sum m)^2 / sum m^2 - 1."""
        mass = np.bincount(self.task, self.weight * use)
        if not mass.any():
            return 0.0
        return float(mass.sum() ** 2 / (mass**2).sum()) - 1

    def too_few(self, use: Bools) -> str | None:
        """Why the tasks of the runs `use` are too few for an interval, or None."""
        if self.n_tasks <= MIN_DF:
            return too_few_clusters(self.n_tasks, self.clusters)
        n_tasks = int((np.bincount(self.task, use) > 0).sum())
        if n_tasks <= MIN_DF:
            subject = f"{n_tasks} of {self.n_tasks} {self.clusters} have such runs"
            return f"{subject}, and {MIN_DF + 1} are needed"
        effective = self.effective_df(use) + 1
        if round(effective) <= MIN_DF:
            subject = f"{n_tasks} {self.clusters} weigh as {effective:.1f} equal ones"
            return f"{subject}, and {MIN_DF + 1} are needed"
        return None


def agreement_of(
    human: Floats,
    judge: Floats,
    task: list[str],
    *,
    levels: Floats | None = None,
    weight: Floats | None = None,
    stratum: list[str] | None = None,
    clusters: str = "tasks",
) -> list[dict[str, Any]]:
    """Coefficients of two raters' values (n each, no gaps), with 95 % intervals by deleting tasks.

    Shares (agreement, sensitivity, specificity) have Wilson's interval for the number of
    independent runs that would have their jackknife error (Korn and Graubard 1998), the others t
    intervals on Fisher's z. `weight` (n): what each run stands for (default: itself), `stratum`
    (n): from which it was drawn. More than two levels give ordinal coefficients. `clusters`: what
    `task` (n) names, as a plural; of fewer than MIN_DF + 1 there is no interval.
    """
    n = len(human)
    if not n:
        return []
    if levels is None:
        levels = np.unique(np.concatenate([human, judge]))
    ordinal = bool(set(levels.tolist()) - {0.0, 1.0})
    if not ordinal:
        levels = np.array([0.0, 1.0])
    task_names, task_index = np.unique(np.array(task), return_inverse=True)
    strata, stratum_index = np.unique(np.array(stratum or [""] * n), return_inverse=True)
    rated = _RatedRuns(
        human=human,
        judge=judge,
        weight=np.ones(n) if weight is None else weight / weight.mean(),
        task=task_index,
        n_tasks=len(task_names),
        stratum=stratum_index,
        n_strata=len(strata),
        clusters=clusters,
    )
    tables = rated.tables(levels)
    table = tables.sum(1, keepdims=True).sum((0, 1))
    full = coefficients(table, levels, ordinal)
    deleted = coefficients(_delete_one_tables(tables), levels, ordinal)
    n_rarer = min(int((human > 0).sum()), int((human == 0).sum()))
    common = {
        "n": n,
        "n_tasks": rated.n_tasks,
        "prevalence_human": float(np.average(human, weights=rated.weight)),
        "prevalence_judge": float(np.average(judge, weights=rated.weight)),
    }
    rows = []
    for name, value in full.items():
        row = _coefficient_row(rated, table, name, float(value), deleted[name])
        if not ordinal and name in ("kappa", "alpha_nominal") and n_rarer < MIN_RARER:
            _warn_of_rare_value(row, n_rarer)
        rows.append({"coefficient": name, **common, **row})
    return rows


def _delete_one_tables(tables: Floats) -> Floats:
    """Counts without each task (tasks x L x L) from counts (strata x tasks x L x L).

    A stratum stands for as many runs without the task as with it, so its other runs are weighted
    up.
    """
    stratum_tables = tables.sum(1, keepdims=True)
    stratum_total = stratum_tables.sum((-1, -2), keepdims=True)
    remaining = stratum_tables - tables
    remaining_total = remaining.sum((-1, -2), keepdims=True)
    factor = np.divide(
        stratum_total,
        remaining_total,
        out=np.zeros_like(remaining_total),
        where=remaining_total > 1e-9,
    )
    return np.asarray((remaining * factor).sum(0))


def _coefficient_row(
    rated: _RatedRuns, table: Floats, name: str, value: float, deleted: Floats
) -> dict[str, Any]:
    """Value, interval, method and reason of one coefficient; `deleted` (tasks)."""
    method = SHARE_METHOD if name in SHARES else FISHER_METHOD
    row: dict[str, Any] = {
        "value": finite_or_none(value),
        "lo": None,
        "hi": None,
        "method": method.format(clusters=rated.clusters),
        "reason": None,
        "warnings": [],
    }
    if row["value"] is None:
        row["reason"] = _undefined_reason(name, table)
        return row
    use = rated.denominator(name)
    row["reason"] = rated.too_few(use)
    if row["reason"]:
        return row
    df = max(rated.effective_df(use), 1.0)
    # Without some task the denominator may be empty; that deletion is uninformative.
    defined = deleted[np.isfinite(deleted)]
    if name in SHARES:
        row["lo"], row["hi"] = _share_interval(
            value, defined, rated.weight[use], df, stratified=rated.n_strata > 1
        )
        return row
    if len(defined) < MIN_DEFINED_SHARE * rated.n_tasks:
        row["reason"] = f"undefined without too many of the {rated.clusters}"
        return row
    if abs(value) >= 1 - 1e-12:
        at_most = min(1.0, 3 / rated.n)  # rule of three
        row["reason"] = (
            f"no {'disagreement' if value > 0 else 'agreement'} among {rated.n}: up to"
            f" {at_most:.0%} may still be otherwise, which no error shows"
        )
        return row
    bounds = _fisher_z_interval(value, defined, df)
    if bounds is None:
        row["reason"] = f"no variation between the {rated.clusters}"
    else:
        row["lo"], row["hi"] = bounds
    return row


def too_few_clusters(n: int, noun: str) -> str:
    """Why so many clusters (`noun`, a plural in s) give no interval."""
    count = f"{n} {noun.removesuffix('s')} is" if n == 1 else f"{n} {noun} are"
    return f"{count} too few for an interval, and {MIN_DF + 1} are needed"


def _warn_of_rare_value(row: dict[str, Any], n_rarer: int) -> None:
    """Warn of a defined coefficient with few runs of the rarer value, and take its interval."""
    if row["value"] is None:
        return
    row["warnings"].append(
        f"{n_rarer} labels have the rarer value: read AC1, sensitivity, specificity"
    )
    if row["lo"] is not None:
        row["lo"] = row["hi"] = None
        row["reason"] = f"{n_rarer} of the rarer value: too few for an interval"


SHARES = ("agreement", "sensitivity", "specificity")


def _share_interval(
    value: float, deleted: Floats, weight: Floats, df: float, *, stratified: bool
) -> tuple[float, float]:
    """(lo, hi): Wilson's interval of a share for its effective number of runs.

    n* = value (1 - value) / jackknife variance, reduced for few tasks by (z_.975 / t_.975,df)^2
    (Korn and Graubard 1998). A share without variation (0 or 1) has no design effect that could be
    estimated: n* starts from (sum w)^2 / sum w^2 (Kish 1965). `deleted`: the share without each
    task, `weight`: of its runs.
    """
    n_effective = float(weight.sum() ** 2 / (weight**2).sum())
    n_tasks = len(deleted)
    squares = (deleted - value) ** 2
    variance = float((n_tasks - 1) / max(n_tasks, 1) * squares.sum())
    if variance > 0 and 0 < value < 1:
        if stratified:
            # A few misses that each stand for many runs leave few degrees of freedom.
            df_of_influences = 3 * float(squares.sum() ** 2 / (squares**2).sum()) - 2
            df = min(df, max(1.0, df_of_influences))
        n_effective = value * (1 - value) / variance
    n_effective *= (t_quantile(0.975, math.inf) / t_quantile(0.975, df)) ** 2
    if not stratified:
        # Strata by tag may inform more than as many runs drawn at random; without strata a sample
        # does so by chance only.
        n_effective = min(len(weight), n_effective)
    return wilson(value * n_effective, n_effective) or (0.0, 1.0)


def _fisher_z_interval(value: float, deleted: Floats, df: float) -> tuple[float, float] | None:
    """t interval on z = atanh(value), which keeps its ends in (-1, 1); None without variation and
    at either end of the scale.

    The error of z is that of the value over 1 - value^2 (delta method): a deletion that leaves no
    disagreement has an infinite z, and would make the interval (-1, 1).
    """
    if abs(value) >= 1 - 1e-12:
        return None  # at the end of the scale no error can be estimated
    z = math.atanh(value)
    n_tasks = len(deleted)
    variance = (n_tasks - 1) / n_tasks * float(((deleted - value) ** 2).sum())
    half_width = t_quantile(0.975, df) * math.sqrt(variance) / (1 - value**2)
    if half_width <= 0:
        return None
    return math.tanh(z - half_width), math.tanh(z + half_width)


def _undefined_reason(name: str, table: Floats) -> str:
    if name == "sensitivity":
        return "the human never said 1"
    if name == "specificity":
        return "the human never said 0"
    n_levels_used = (table.sum(0) + table.sum(1) > 0).sum()
    if n_levels_used < 2:
        return "both raters gave one value throughout: chance agreement is certain"
    return "undefined for these counts"


def agreement(
    cards: Cohort, labels: Labels, *, annotator: str | None = None, judge: str | None = None
) -> pl.DataFrame:
    """Judge against human labels by criterion and code (AGREEMENT_SCHEMA, one row a coefficient).

    Runs are matched by id and weighted by how they were drawn for labelling; if labels do not say
    so, the numbers describe the labelled runs alone, and a warning says so. Only criteria that a
    judge scored count (credited and unscored ones do not speak of it), and only runs that were read
    for a code; a code for which no run was read has one row with the reason.
    `annotator`: default `gold` if present, else the first by name. `judge`: default the one in
    force (`card.choice`).
    """
    own_labels = labels.by_annotator(annotator or labels.default_annotator)
    if judge is not None:
        cards = cards.all_judges
    runs = _judged_runs(cards)
    if judge is not None:
        runs = runs.filter(pl.col("judge") == judge)
    judged_criteria = (
        _scored(cards)
        .rename({"value": "value_second"})
        .join(runs.select("run_id", "judge", TASK), on=["run_id", "judge"])
    )
    judged_codes = runs.select(
        "run_id",
        TASK,
        *(sampled(code).alias(f"{code}_second") for code in CODES),
        *(pl.col(code).alias(f"{code}_any") for code in CODES),
    )
    criteria = judged_criteria.join(own_labels.criteria, on=["run_id", "criterion"])
    codes = judged_codes.join(own_labels.codes, on="run_id")
    labelled = pl.concat([criteria.select("run_id"), codes.select("run_id")]).unique()
    weights, notes = weighted(labelled, own_labels.sampling)
    if labelled.height == runs["run_id"].n_unique():
        notes = tuple(note for note in notes if note != CONVENIENCE)
    rows = _rows_by_item(
        criteria.join(weights, on="run_id"),
        codes.join(weights, on="run_id"),
        cluster=TASK,
        notes=notes,
    )
    return pl.DataFrame(rows, schema=AGREEMENT_SCHEMA)


def rater_agreement(first: Labels, second: Labels) -> pl.DataFrame:
    """Two annotators against each other (AGREEMENT_SCHEMA), on the runs that both labelled.

    Intervals come from deleting one run at a time.
    """
    criteria = first.criteria.join(second.criteria, on=["run_id", "criterion"], suffix="_second")
    codes = first.codes.join(second.codes, on="run_id", suffix="_second")
    return pl.DataFrame(_rows_by_item(criteria, codes, cluster="run_id"), schema=AGREEMENT_SCHEMA)


def judge_pairs(cards: Cohort) -> pl.DataFrame:
    """Agreement of each pair of judges that scored the same runs (PAIR_SCHEMA).

    Runs are matched by their bytes, else by id, criteria by rubric and name; only criteria that
    both judges scored count, and runs that both read for a code. `sensitivity` and `specificity`
    take the first judge as the truth.
    """
    cards = _matched_by_content(cards.all_judges)
    runs = _judged_runs(cards)
    item = ["run_id", "rubric", "criterion"]
    scored = _scored(cards).unique(["judge", *item], keep="last", maintain_order=True)
    judges = sorted(str(judge) for judge in runs["judge"].drop_nulls().unique())
    rows: list[dict[str, Any]] = []
    for first, second in combinations(judges, 2):
        first_runs, second_runs = (
            runs.filter(pl.col("judge") == judge).select("run_id", TASK, *map(sampled, CODES))
            for judge in (first, second)
        )
        first_scored, second_scored = (
            scored.filter(pl.col("judge") == judge) for judge in (first, second)
        )
        criteria = first_scored.join(second_scored, on=item, suffix="_second").join(
            first_runs.select("run_id", TASK), on="run_id"
        )
        codes = first_runs.join(second_runs.drop(TASK), on="run_id", suffix="_second")
        for row in _rows_by_item(criteria, codes, cluster=TASK):
            rows.append({"first": first, "second": second, **row})
    return pl.DataFrame(rows, schema=PAIR_SCHEMA)


def runs_by_judge(cards: Cohort) -> dict[str, set[str]]:
    """The runs of each judge, by the ids under which `judge_pairs` matches them."""
    runs = _judged_runs(_matched_by_content(cards.all_judges))
    return {name: set(part["run_id"]) for name, part in _parts_by_name(runs, "judge").items()}


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
MAX_LEVELS = 50
"""A criterion with more distinct values is no scale of levels."""


def reliability(cards: Cohort, labels: Labels | None = None) -> pl.DataFrame:
    """Krippendorff's alpha of each criterion over all judges and annotators that scored it.

    Of runs that two or more of them scored. Ordinal, or nominal for yes and no; a t interval on
    Fisher's z by deleting tasks. Presumed, credited and unscored criteria are gaps. Runs are
    matched by their bytes, else by id; each annotator is a rater.
    """
    cards = cards.all_judges
    ratings = _scored(cards).select("run_id", rater="judge", criterion="criterion", value="value")
    if labels is not None:
        human_ratings = labels.criteria.select(
            "run_id",
            pl.concat_str(pl.lit("human "), "annotator").alias("rater"),
            "criterion",
            "value",
        )
        ratings = pl.concat([ratings, human_ratings])
    matched = _matched_by_content(replace(cards, criteria=ratings))
    tasks = _judged_runs(matched).unique("run_id").select("run_id", TASK)
    ratings = matched.criteria.unique(
        ["run_id", "rater", "criterion"], keep="last", maintain_order=True
    ).join(tasks, on="run_id", maintain_order="left")
    ratings = ratings.filter(pl.len().over("run_id", "criterion") > 1)
    rows = [
        {"criterion": criterion, **_alpha_row(part)}
        for criterion, part in _parts_by_name(ratings, "criterion").items()
    ]
    return pl.DataFrame(rows, schema=RELIABILITY)


def _parts_by_name(table: pl.DataFrame, column: str) -> dict[str, pl.DataFrame]:
    """The rows of each value of a column, in the order of the values."""
    parts = {str(name): part for (name,), part in table.group_by(column)}
    return dict(sorted(parts.items()))


def _alpha_row(ratings: pl.DataFrame) -> dict[str, Any]:
    """Alpha of one criterion's ratings (run_id, rater, value, TASK), two or more a run."""
    levels, level = np.unique(ratings["value"].to_numpy(), return_inverse=True)
    runs, run = np.unique(ratings["run_id"].to_numpy(), return_inverse=True)
    task_names, task = np.unique(ratings[TASK].to_numpy(), return_inverse=True)
    n_tasks = len(task_names)
    row: dict[str, Any] = {
        "raters": ratings["rater"].n_unique(),
        "runs": len(runs),
        "n_tasks": n_tasks,
    }
    if len(levels) > MAX_LEVELS:
        return {**row, "reason": f"more than {MAX_LEVELS} distinct values: no levels"}
    task_of_run = np.zeros(len(runs), dtype=np.int64)
    task_of_run[run] = task
    coincidence = np.zeros((n_tasks, len(levels), len(levels)))
    np.add.at(coincidence, task_of_run, _coincidence_by_run(run, level, len(runs), len(levels)))
    metric = "nominal" if set(levels.tolist()) <= {0.0, 1.0} else "ordinal"
    total = coincidence.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = finite_or_none(float(krippendorff_alpha(total, levels, metric)))
        deleted = krippendorff_alpha(total - coincidence, levels, metric)
    row |= {"value": value, "method": f"{metric}, {FISHER_METHOD.format(clusters='tasks')}"}
    if value is None:
        return {**row, "reason": "one value throughout: chance agreement is certain"}
    defined = deleted[np.isfinite(deleted)]
    if n_tasks <= MIN_DF:
        return {**row, "reason": too_few_clusters(n_tasks, "tasks")}
    if len(defined) < MIN_DEFINED_SHARE * n_tasks:
        return {**row, "reason": "undefined without too many of the tasks"}
    bounds = None
    if value < 1 - 1e-12:
        bounds = _fisher_z_interval(value, defined, len(defined) - 1)
    if bounds is None:
        return {**row, "reason": "no variation between the tasks"}
    return {**row, "lo": bounds[0], "hi": bounds[1]}


def _coincidence_by_run(run: Ints, level: Ints, n_runs: int, n_levels: int) -> Floats:
    """Pairs of different ratings of each run by level, over ratings - 1 (runs x L x L)."""
    counts = np.zeros((n_runs, n_levels))
    np.add.at(counts, (run, level), 1.0)
    all_pairs = counts[:, :, None] * counts[:, None, :]
    self_pairs = counts[:, :, None] * np.eye(n_levels)
    return np.asarray((all_pairs - self_pairs) / (counts.sum(1) - 1)[:, None, None])


def _matched_by_content(cards: Cohort) -> Cohort:
    """The cohort with one run id for all scorecards of the same bytes, whatever their folders."""
    hashed = cards.runs.filter(pl.col("sha256").fill_null("") != "").select("run_id", "sha256")
    canonical = (
        hashed.with_columns(canonical_id=pl.col("run_id").first().over("sha256"))
        .unique("run_id")
        .select("run_id", "canonical_id")
    )

    def rename(table: pl.DataFrame) -> pl.DataFrame:
        named = table.join(canonical, on="run_id", how="left", maintain_order="left")
        run_id = pl.coalesce("canonical_id", "run_id")
        return named.with_columns(run_id=run_id).drop("canonical_id")

    return replace(cards, runs=rename(cards.runs), criteria=rename(cards.criteria))


def _judged_runs(cards: Cohort) -> pl.DataFrame:
    """One row for each run and judge, with the key of its task (TASK)."""
    names = (pl.col(name).fill_null(UNKNOWN) for name in ("track", "task"))
    runs = cards.runs.unique(["run_id", "judge"], keep="last", maintain_order=True)
    return runs.with_columns(pl.concat_str(*names, separator="/").alias(TASK))


def _scored(cards: Cohort) -> pl.DataFrame:
    """The criteria that a judge scored itself; facts, which decided the others, are no rater."""
    scored = (pl.col("status").cast(pl.String) == "scored") & pl.col("value").is_not_null()
    scored &= pl.col("by").is_null()
    return cards.criteria.filter(scored).with_columns(pl.col("criterion").cast(pl.String))


def _rows_by_item(
    criteria: pl.DataFrame, codes: pl.DataFrame, *, cluster: str, notes: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Rows of each criterion and code.

    `criteria` has `value` and `value_second`, `codes` has `E1` and `E1_second`, and so on.
    `cluster` is the column that is deleted value by value; `weight` and `stratum` are used if they
    are there.
    """
    # Joins leave rows in any order, and sums of floats depend on it in the last digit.
    criteria, codes = criteria.sort("run_id"), codes.sort("run_id")
    rows: list[dict[str, Any]] = []
    for criterion, part in _parts_by_name(criteria, "criterion").items():
        coefficient_rows = _agreement_of_columns(part, "value", cluster)
        rows += _with_item(criterion, "criterion", coefficient_rows, notes)
    for code in CODES:
        part = codes.drop_nulls([code, f"{code}_second"])
        coefficient_rows = _agreement_of_columns(part, code, cluster)
        if not coefficient_rows and f"{code}_any" in codes.columns:
            coefficient_rows = _unread_code_rows(code, codes.drop_nulls(code))
        rows += _with_item(code, "code", coefficient_rows, notes)
    return rows


def _with_item(
    item: str, kind: str, rows: list[dict[str, Any]], notes: tuple[str, ...]
) -> list[dict[str, Any]]:
    return [
        {"item": item, "kind": kind, **row, "warnings": [*notes, *row.get("warnings", ())]}
        for row in rows
    ]


def _agreement_of_columns(table: pl.DataFrame, column: str, cluster: str) -> list[dict[str, Any]]:
    """`agreement_of` a column and its `_second`."""
    design: Mapping[str, Any] = {}
    if "weight" in table.columns:
        design = {"weight": table["weight"].to_numpy()}
    if "stratum" in table.columns:
        design = {**design, "stratum": table["stratum"].fill_null("").to_list()}
    if cluster != TASK:
        design = {**design, "clusters": "runs"}
    return agreement_of(
        table[column].cast(pl.Float64).to_numpy(),
        table[f"{column}_second"].cast(pl.Float64).to_numpy(),
        table[cluster].to_list(),
        **design,
    )


def _unread_code_rows(code: str, labelled: pl.DataFrame) -> list[dict[str, Any]]:
    """The row of a code for which no labelled run was read: firings by facts are no sample."""
    if labelled.is_empty():
        return []
    fired = labelled.filter(pl.col(f"{code}_any").fill_null(False))
    reason = f"{code} was read in none of {labelled.height} labelled runs"
    if fired.height:
        n_agreed = int(fired[code].sum())
        reason += f"; facts show it in {fired.height}, and the human in {n_agreed} of these"
    return [{"coefficient": "agreement", "n": 0, "reason": reason}]
