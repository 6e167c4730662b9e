"""Power: the tasks, repeats and labels that detect a difference of agents or an effect of a code.

Both have a squared standard error of the form between / tasks + within / (tasks · repeats), whose
parts are estimated from a cohort (`difference_noise`, `effect_noise`). Human labels add
fixed + per_label / labels (`mean_error`, `effect_error`, `agreement_error`). `plan_sizes` solves
for each number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ...errors import InputError
from ..tables.cohorts import Cohort
from ..tables.label_tables import Labels
from ..tables.score_names import noun_of
from .corrected_effects import corrected_code_effects
from .corrected_means import MIN_LABELS, human_scores, human_verdicts
from .effects import code_effects
from .interval_estimates import minimum_detectable_effect, t_quantile
from .raters import agreement
from .run_arrays import build_arrays, select_runs
from .score_variance import VarianceComponents

TARGET = 0.8
"""The power to plan for, unless another is asked for."""
MAX_NUMBER = 100_000
"""The largest number of tasks, repeats or labels that is considered."""


@dataclass(frozen=True)
class ErrorComponents:
    """The parts of a squared standard error; None with the reason if unknown.

    Repeats are runs of an agent on a task and tier. The field names are those of the JSON output.
    """

    between: float | None
    """The part that only more tasks reduce: se^2 = between / tasks + ..."""
    within: float | None
    """The part that repeats reduce too: ... + within / (tasks · repeats)."""
    tasks: int
    """Number of tasks of the cohort."""
    repeats: float
    """Mean number of repeats of a cell of the cohort."""
    tiers: int
    """Number of tiers of the cohort."""
    least_repeats: int = 1
    """The fewest repeats to plan with; the effect of a code needs two."""
    reason: str | None = None

    def se(self, tasks: int, repeats: float) -> float | None:
        """The standard error with these numbers of tasks and repeats; None if unknown."""
        if self.between is None or self.within is None or tasks < 2:
            return None
        return math.sqrt(self.between / tasks + self.within / (tasks * repeats))


def difference_noise(components: VarianceComponents, tiers: int | None = None) -> ErrorComponents:
    """The error of a difference of two agents, paired by task.

    between = 2 s2_agent_task, within = 2 s2_repeat / tiers.
    """
    n_tiers = tiers or components.n_tiers
    between = within = None
    if components.repeat is not None and components.agent_task is not None:
        between = 2 * components.agent_task
        within = 2 * components.repeat / n_tiers
    return ErrorComponents(
        between=between,
        within=within,
        tasks=components.n_tasks,
        repeats=components.n_rep,
        tiers=n_tiers,
        reason=components.reason,
    )


def effect_noise(
    table: pl.DataFrame, code: str, outcome: str = "overall", *, source: str = "any"
) -> ErrorComponents:
    """The error of a code's effect, split by what reduces it.

    The variance for the same tasks falls with repeats; the remaining variance only with tasks.
    InputError with the reason if the cohort has no effect of this code.
    """
    effects = code_effects(table, outcome, source=source).filter(pl.col("code") == code)
    new = effects.filter(pl.col("population") == "new").row(0, named=True)
    same = effects.filter(pl.col("population") == "same").row(0, named=True)
    if new["se"] is None or not new["n_clusters"]:
        raise InputError(
            f"no effect of {code} to plan from: {new['reason']}",
            "give a cohort in which runs were read for it and some fired it",
        )
    runs, _ = select_runs(table, keep_breach=False)
    n_cells = runs.select("agent", "task", "track", "tier").n_unique()
    n_tasks, repeats = new["n_clusters"], runs.height / n_cells
    variance_new = new["se"] ** 2
    variance_same = same["se"] ** 2 if same["se"] is not None else 0.0
    variance_same = min(variance_same, variance_new)
    return ErrorComponents(
        between=(variance_new - variance_same) * n_tasks,
        within=variance_same * n_tasks * repeats,
        tasks=n_tasks,
        repeats=repeats,
        tiers=runs["tier"].n_unique(),
        least_repeats=2,
    )


def t_test_power(size: float, se: float, df: float, level: float = 0.05) -> float:
    """The power of a two-sided t test at `level` for a true value of `size` (noncentral t).

    P(T > c) + P(T < -c) for T ~ t(df, size / se) and c = t_{1-level/2, df}.
    """
    from scipy import special

    if se <= 0 or abs(size) / se > 35:
        return 1.0
    critical, noncentrality = t_quantile(1 - level / 2, df), abs(size) / se
    # Significance with the wrong sign: below 1e-8 for a larger noncentrality, where the function
    # underflows to NaN.
    wrong_sign = 0.0
    if noncentrality < 4:
        wrong_sign = float(special.nctdtr(df, noncentrality, -critical))
    return 1 - float(special.nctdtr(df, noncentrality, critical)) + wrong_sign


def power(
    noise: ErrorComponents,
    *,
    tasks: Sequence[int] = (12, 24, 48, 96),
    repeats: Sequence[int] = (5, 10, 20, 40),
    size: float | None = None,
) -> pl.DataFrame:
    """For each number of tasks and repeats the MDE80 for new tasks, and the power for `size`.

    Without `size` there is no column `power`. MDE = (t_.975 + t_.8) se with tasks - 1 degrees of
    freedom; power by the noncentral t.
    """
    rows = []
    for n_tasks in tasks:
        for n_repeats in repeats:
            se = noise.se(n_tasks, n_repeats)
            row: dict[str, Any] = {
                "tasks": n_tasks,
                "repeats": n_repeats,
                "tiers": noise.tiers,
                "runs_per_agent": n_tasks * noise.tiers * n_repeats,
            }
            if se is None:
                row["reason"] = noise.reason or "needs two tasks"
            else:
                row["mde80"] = minimum_detectable_effect(se, n_tasks - 1)
                if size is not None:
                    row["power"] = t_test_power(size, se, n_tasks - 1)
            rows.append(row)
    schema: dict[str, Any] = {
        **dict.fromkeys(("tasks", "repeats", "tiers", "runs_per_agent"), pl.Int64),
        "mde80": pl.Float64,
        "power": pl.Float64,
        "reason": pl.String,
    }
    table = pl.DataFrame(rows, schema=schema)
    return table.drop("power") if size is None else table


def smallest_sufficient(is_enough: Callable[[int], bool], start: int) -> int | None:
    """The smallest number from `start` to MAX_NUMBER that is enough, by bisection.

    None if MAX_NUMBER is not enough. `is_enough` must be monotone.
    """
    if not is_enough(MAX_NUMBER):
        return None
    low, high = start, MAX_NUMBER
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def label_variance(cohort: Cohort, labels: Labels, outcome: str = "overall") -> tuple[float, int]:
    """The variance of human minus judge score of a run, and the number of labelled runs.

    Runs are weighted by how they were drawn for labelling. InputError for fewer than MIN_LABELS.
    """
    human, _ = human_scores(cohort, labels, labels.default_annotator)
    runs = build_arrays(cohort.runs, outcome, keep_breach=True, need_codes=False)
    judge = pl.DataFrame({"run_id": runs.table["run_id"], "judge": runs.y})
    labelled = judge.join(human, on="run_id").drop_nulls("human")
    n = labelled.height
    if n < MIN_LABELS:
        raise InputError(
            f"only {n} labelled runs have {outcome}; at least {MIN_LABELS} are needed",
            "label more runs: ambjudge label next",
        )
    difference = (labelled["human"] - labelled["judge"]).to_numpy()
    weight = labelled["weight"].to_numpy()
    mean = float(np.average(difference, weights=weight))
    variance = float(np.average((difference - mean) ** 2, weights=weight)) * n / (n - 1)
    return variance, n


@dataclass(frozen=True)
class LabelErrorComponents:
    """The squared standard error of an estimate from labels: fixed + per_label / labels.

    The field names are those of the JSON output.
    """

    what: str
    """The estimate, as a noun phrase."""
    fixed: float
    """The part that no label reduces."""
    per_label: float
    labels: int
    """Number of labels of the cohort."""
    of: str = "labelled runs"
    """What `labels` counts."""

    def half_width(self, labels: int) -> float:
        """The half-width of the 95 % interval with this number of labels."""
        return t_quantile(0.975, labels - 1) * math.sqrt(self.fixed + self.per_label / labels)

    def labels_for(self, half_width: float) -> int | None:
        """The fewest labels for at most this half-width; None if MAX_NUMBER are too few."""
        return smallest_sufficient(lambda labels: self.half_width(labels) <= half_width, MIN_LABELS)


def mean_error(cohort: Cohort, labels: Labels, outcome: str = "overall") -> LabelErrorComponents:
    """The label error of an agent's corrected mean over these very runs.

    InputError for fewer than MIN_LABELS labelled runs.
    """
    variance, n_labels = label_variance(cohort, labels, outcome)
    n_agents = cohort.runs["agent"].n_unique()
    name = noun_of(outcome)
    return LabelErrorComponents(
        what=f"an agent's corrected mean {name} over these very runs",
        fixed=0.0,
        per_label=variance,
        labels=max(2, round(n_labels / n_agents)),
        of="labelled runs of each agent",
    )


def effect_error(
    cohort: Cohort, labels: Labels, code: str, outcome: str = "overall"
) -> LabelErrorComponents:
    """The label error of a code's corrected effect.

    No label reduces the error of the fit to the judge's own tags of all runs. InputError with the
    reason if the labels allow no correction.
    """
    human, notes = human_verdicts(cohort, labels, labels.default_annotator, outcome)
    effects = corrected_code_effects(cohort.runs, human, outcome, notes=notes)
    rows = effects.filter(pl.col("code") == code).to_dicts()
    by_kind = {row["kind"]: row for row in rows}
    corrected = by_kind["corrected"]
    if corrected["se"] is None:
        raise InputError(
            f"no corrected effect of {code} to plan from: {corrected['reason']}",
            "label more runs: ambjudge label next",
        )
    fixed = by_kind["judge"]["se"] ** 2
    return LabelErrorComponents(
        what=f"the corrected effect of {code}",
        fixed=fixed,
        per_label=(corrected["se"] ** 2 - fixed) * corrected["labels"],
        labels=corrected["labels"],
    )


def agreement_error(cohort: Cohort, labels: Labels, item: str) -> LabelErrorComponents:
    """The label error of the raw agreement of judge and people on a criterion or code.

    It holds for labels that are drawn like the present ones. InputError if the agreement has no
    interval.
    """
    table = agreement(cohort, labels)
    rows = table.filter(
        (pl.col("item") == item) & (pl.col("coefficient") == "agreement")
    ).to_dicts()
    if not rows or rows[0]["lo"] is None:
        items = ", ".join(table["item"].unique().sort())
        raise InputError(
            f"no agreement on {item!r} to plan from", f"labelled items: {items or 'none'}"
        )
    row = rows[0]
    se = (row["hi"] - row["lo"]) / 2 / t_quantile(0.975, row["n"] - 1)
    return LabelErrorComponents(
        what=f"the agreement on {item}", fixed=0.0, per_label=se**2 * row["n"], labels=row["n"]
    )


@dataclass(frozen=True)
class PowerPlan:
    """The numbers that detect `size` with power `target`, each with the others as in the cohort.

    A number is None if not even MAX_NUMBER is enough. The field names are those of the JSON output.
    """

    noise: ErrorComponents
    size: float
    target: float
    power_now: float | None
    """With the tasks and repeats of the cohort."""
    tasks: int | None
    repeats: int | None
    labels: int | None = None
    labelled: str | None = None
    """What `labels` counts; None without labels."""


def plan_sizes(
    noise: ErrorComponents,
    size: float,
    *,
    target: float = TARGET,
    judged: LabelErrorComponents | None = None,
) -> PowerPlan:
    """Plan for a true difference or effect of `size`.

    `judged`: the label error of the judge's correction, if the means or the effect are corrected.
    InputError if the variances of the cohort are unknown.
    """
    if noise.se(max(noise.tasks, 2), 1) is None:
        raise InputError(
            f"the variances of this cohort are unknown: {noise.reason}",
            "give a cohort with repeats, two agents and two tasks",
        )
    # A difference of two agents has the label error of both means.
    is_difference = judged is not None and judged.of != LabelErrorComponents.of
    n_corrections = 2 if is_difference else 1

    def is_enough(tasks: int, repeats: float, labels: float = math.inf) -> bool:
        se = noise.se(tasks, repeats)
        if se is None:
            return False
        label_error = 0.0
        if judged is not None:
            label_error = n_corrections * judged.per_label / labels
        return t_test_power(size, math.hypot(se, math.sqrt(label_error)), tasks - 1) >= target

    tasks_now, repeats_now = noise.tasks, noise.repeats
    se_now = noise.se(tasks_now, repeats_now)
    power_now = None if se_now is None else t_test_power(size, se_now, tasks_now - 1)
    labels, labelled = None, None
    if judged is not None:
        labels = smallest_sufficient(lambda n: is_enough(tasks_now, repeats_now, n), 1)
        labelled = judged.of
    return PowerPlan(
        noise=noise,
        size=size,
        target=target,
        power_now=power_now,
        tasks=smallest_sufficient(lambda n: is_enough(n, repeats_now), 2),
        repeats=smallest_sufficient(lambda n: is_enough(tasks_now, n), noise.least_repeats),
        labels=labels,
        labelled=labelled,
    )


def format_power(power: float) -> str:
    """A power with two digits, as .80; >.99 for values that would be rounded to 1."""
    return ">.99" if power > 0.995 else f"{power:.2f}".lstrip("0")


def plan_sentences(plan: PowerPlan, subject: str, unit: str) -> list[str]:
    """The plan as sentences; `subject` is like “A difference of two agents in mean overall”."""
    noise = plan.noise
    target = f"{plan.target:.2g}".lstrip("0")
    power_now = "unknown" if plan.power_now is None else format_power(plan.power_now)
    now = (
        f"{subject} of {plan.size:g}{unit}: {noise.tasks} tasks with {noise.repeats:.3g} runs of an"
        f" agent on a task and tier, as now, detect it with power {power_now}"
    )
    if plan.power_now is not None and plan.power_now >= plan.target:
        sentences = [f"{now}; {plan.tasks} tasks would be enough for {target}."]
    elif plan.tasks is None:
        sentences = [f"{now}.", f"No number of tasks up to {MAX_NUMBER:,} reaches {target}."]
    else:
        alternative = "and no number of runs is enough with the tasks as now"
        if plan.repeats is not None:
            alternative = f"or {plan.repeats} runs instead of {noise.repeats:.3g}"
        sentences = [f"{now}.", f"Power {target} takes {plan.tasks} such tasks, {alternative}."]
    if plan.labelled:
        need = "no number of labels is enough with these tasks"
        if plan.labels:
            need = f"{plan.labels} {plan.labelled}"
        sentences.append(f"Corrected by labels, with the tasks and runs as now: {need}.")
    return sentences
