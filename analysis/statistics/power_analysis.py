"""Planning: with what power a number of tasks, repeats and labels finds a difference of agents or
the effect of a code.

Both have a squared error of the form between / tasks + within / (tasks x repeats), whose parts come
from the cohort.
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
from ..tables.label_tables import Labels, weighted
from .corrected_effects import corrected_code_effects
from .corrected_means import MIN_LABELS, human_scores
from .effects import code_effects
from .interval_estimates import minimum_detectable_effect, t_quantile
from .raters import agreement
from .run_arrays import build_arrays, select_runs
from .score_variance import VarianceComponents

MOST = 100_000
"""Tasks, repeats or labels: more are no plan."""


@dataclass(frozen=True)
class ErrorComponents:
    """What a squared error is made of; None with the reason when unknown. Repeats are runs of an
    agent on a task in a tier."""

    between: float | None
    """Part that only more tasks reduce, times tasks."""
    within: float | None
    """Part that repeats reduce too, times tasks and repeats."""
    tasks: int
    """As the cohort has them; so `repeats` and `tiers`."""
    repeats: float
    tiers: int
    least_repeats: int = 1
    reason: str | None = None

    def se(self, tasks: int, repeats: float) -> float | None:
        """The standard error with so many, or None."""
        if self.between is None or self.within is None or tasks < 2:
            return None
        return math.sqrt(self.between / tasks + self.within / (tasks * repeats))


def difference_noise(parts: VarianceComponents, tiers: int | None = None) -> ErrorComponents:
    """Of the difference of two agents, paired by task: 2 s2_agent_task and 2 s2_repeat / tiers."""
    v = tiers or parts.n_tiers
    known = parts.repeat is not None and parts.agent_task is not None
    between, within = (2 * parts.agent_task, 2 * parts.repeat / v) if known else (None, None)  # type: ignore[operator]
    return ErrorComponents(between, within, parts.n_tasks, parts.n_rep, v, reason=parts.reason)


def effect_noise(
    table: pl.DataFrame, code: str, outcome: str = "overall", *, source: str = "any"
) -> ErrorComponents:
    """Of a code's effect: its error for the same tasks is taken to fall with repeats, the rest with
    tasks alone.

    Raises InputError with the reason where the cohort has no effect of this code.
    """
    found = code_effects(table, outcome, source=source).filter(pl.col("code") == code)
    new, same = (
        found.filter(pl.col("population") == each).row(0, named=True) for each in ("new", "same")
    )
    if new["se"] is None or not new["n_clusters"]:
        raise InputError(
            f"no effect of {code} to plan from: {new['reason']}",
            "give a cohort in which it was read and fired",
        )
    runs, _ = select_runs(table, keep_breach=False)
    cells = runs.select("agent", "task", "track", "tier").n_unique()
    tasks, repeats = new["n_clusters"], runs.height / cells
    within = min(same["se"] ** 2 if same["se"] is not None else 0.0, new["se"] ** 2)
    return ErrorComponents(
        (new["se"] ** 2 - within) * tasks,
        within * tasks * repeats,
        tasks,
        repeats,
        runs["tier"].n_unique(),
        least_repeats=2,
    )


def t_test_power(size: float, se: float, df: float, level: float = 0.05) -> float:
    """The probability that a two-sided t test at `level` finds a true `size` (noncentral t)."""
    from scipy import special

    if se <= 0 or abs(size) / se > 35:
        return 1.0
    bar, shift = t_quantile(1 - level / 2, df), abs(size) / se
    # Findings of the wrong sign: for a larger shift below 1e-8, where the function underflows to
    # NaN.
    wrong = float(special.nctdtr(df, shift, -bar)) if shift < 4 else 0.0
    return 1 - float(special.nctdtr(df, shift, bar)) + wrong


def power(
    noise: ErrorComponents,
    *,
    tasks: Sequence[int] = (12, 24, 48, 96),
    repeats: Sequence[int] = (5, 10, 20, 40),
    size: float | None = None,
) -> pl.DataFrame:
    """By design: the smallest true value found with power .8 at level .05 (new tasks), and the
    power for `size` if one is given.

    MDE = (t_.975 + t_.8) se with T-1 degrees of freedom; power by the noncentral t.
    """
    rows = []
    for t in tasks:
        for n in repeats:
            se = noise.se(t, n)
            rows.append(
                {
                    "tasks": t,
                    "repeats": n,
                    "tiers": noise.tiers,
                    "runs_per_agent": t * noise.tiers * n,
                    "mde80": None if se is None else minimum_detectable_effect(se, t - 1),
                    "power": None if se is None or size is None else t_test_power(size, se, t - 1),
                    "reason": None if se is not None else noise.reason or "needs two tasks",
                }
            )
    schema: dict[str, Any] = {
        **dict.fromkeys(("tasks", "repeats", "tiers", "runs_per_agent"), pl.Int64),
        "mde80": pl.Float64,
        "power": pl.Float64,
        "reason": pl.String,
    }
    table = pl.DataFrame(rows, schema=schema)
    return table.drop("power") if size is None else table


def smallest_sufficient(enough: Callable[[int], bool], start: int) -> int | None:
    """The smallest number from `start` to MOST that is enough, where more never hurt; None when not
    even MOST are."""
    if not enough(MOST):
        return None
    low, high = start, MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def label_spread(whole: Cohort, labels: Labels, outcome: str = "overall") -> tuple[float, int]:
    """The variance of a run's human score minus the judge's, by labels as drawn, and how many runs
    are labelled.

    InputError below MIN_LABELS.
    """
    human, _ = human_scores(whole, labels, labels.usual)
    d = build_arrays(whole.runs, outcome, keep_breach=True, need_codes=False)
    both = (
        pl.DataFrame({"run_id": d.table["run_id"], "judge": d.y})
        .join(human, on="run_id")
        .drop_nulls("human")
    )
    if both.height < MIN_LABELS:
        raise InputError(
            f"{both.height} labelled runs have {outcome}; {MIN_LABELS} are needed",
            "label more: ambjudge label next",
        )
    gap = (both["human"] - both["judge"]).to_numpy()
    weight = both["weight"].to_numpy()
    mean = float(np.average(gap, weights=weight))
    return (
        float(np.average((gap - mean) ** 2, weights=weight)) * both.height / (both.height - 1),
        both.height,
    )


@dataclass(frozen=True)
class LabelErrorComponents:
    """The squared error of a number that rests on labels: `fixed` + `per_label` / labels, from
    `labels` labelled runs."""

    what: str
    fixed: float
    per_label: float
    labels: int
    of: str = "labelled runs"

    def half_width(self, labels: int) -> float:
        """Of the 95 % interval with so many."""
        return t_quantile(0.975, labels - 1) * math.sqrt(self.fixed + self.per_label / labels)

    def labels_for(self, half_width: float) -> int | None:
        """The fewest labels whose interval is no wider; None: not even MOST."""
        return smallest_sufficient(lambda labels: self.half_width(labels) <= half_width, MIN_LABELS)


def mean_error(whole: Cohort, labels: Labels, outcome: str = "overall") -> LabelErrorComponents:
    """Of an agent's corrected mean over these very runs. InputError below MIN_LABELS labelled runs."""
    spread, n = label_spread(whole, labels, outcome)
    what = f"an agent's corrected mean {outcome.removeprefix('outcome.')} over these very runs"
    each = max(2, round(n / whole.runs["agent"].n_unique()))
    return LabelErrorComponents(what, 0.0, spread, each, "labelled runs of each agent")


def effect_error(
    whole: Cohort, labels: Labels, code: str, outcome: str = "overall"
) -> LabelErrorComponents:
    """Of a code's corrected effect: the judge's own fit to all runs has the error that no label
    takes away.

    InputError with the reason where these labels correct nothing.
    """
    mine = labels.of(labels.usual)
    there = mine.codes.drop("annotator").join(
        whole.runs.select("run_id").unique(), on="run_id", how="semi"
    )
    human, notes = weighted(there.unique("run_id", keep="first"), mine.drawn)
    found = corrected_code_effects(whole.runs, human, outcome, notes=notes).filter(
        pl.col("code") == code
    )
    by_kind = {row["kind"]: row for row in found.to_dicts()}
    now = by_kind["corrected"]
    if now["se"] is None:
        raise InputError(
            f"no corrected effect of {code} to plan from: {now['reason']}",
            "label more: ambjudge label next",
        )
    fixed = min(by_kind["judge"]["se"], now["se"]) ** 2
    return LabelErrorComponents(
        f"the corrected effect of {code}",
        fixed,
        (now["se"] ** 2 - fixed) * now["labels"],
        now["labels"],
    )


def agreement_error(whole: Cohort, labels: Labels, item: str) -> LabelErrorComponents:
    """Of the raw agreement of judge and people on a criterion or code, labels drawn as these were.
    InputError without an interval."""
    rows = agreement(whole, labels).filter(
        (pl.col("item") == item) & (pl.col("coefficient") == "agreement")
    )
    row = next(iter(rows.to_dicts()), None)
    if row is None or row["lo"] is None:
        items = ", ".join(agreement(whole, labels)["item"].unique().sort())
        raise InputError(
            f"no agreement on {item!r} to plan from", f"labelled are {items or 'none'}"
        )
    se = (row["hi"] - row["lo"]) / 2 / t_quantile(0.975, row["n"] - 1)
    return LabelErrorComponents(f"the agreement on {item}", 0.0, se**2 * row["n"], row["n"])


@dataclass(frozen=True)
class PowerPlan:
    """What finds `size` with the power wanted: each number by itself, the others as the cohort has
    them; None: not even MOST."""

    noise: ErrorComponents
    size: float
    target: float
    power_now: float | None
    tasks: int | None
    repeats: int | None
    labels: int | None = None
    labelled: str | None = None
    """What is counted, where labels were asked for."""


def plan_sizes(
    noise: ErrorComponents,
    size: float,
    *,
    target: float = 0.8,
    judged: LabelErrorComponents | None = None,
) -> PowerPlan:
    """Plans for a true value of `size`. `judged`: labels are to correct the judge's error, of both
    means or of the effect.

    Raises InputError where the cohort does not tell its variances.
    """
    if noise.se(max(noise.tasks, 2), 1) is None:
        raise InputError(
            f"nothing to plan from: {noise.reason}",
            "give a cohort with repeats, two agents and two tasks",
        )

    means = 2 if judged is not None and judged.of != LabelErrorComponents.of else 1

    def enough(tasks: int, repeats: float, labels: float = math.inf) -> bool:
        se = noise.se(tasks, repeats)
        extra = means * judged.per_label / labels if judged is not None else 0.0
        return (
            se is not None
            and t_test_power(size, math.hypot(se, math.sqrt(extra)), tasks - 1) >= target
        )

    t, n = noise.tasks, noise.repeats
    now = noise.se(t, n)
    return PowerPlan(
        noise,
        size,
        target,
        None if now is None else t_test_power(size, now, t - 1),
        smallest_sufficient(lambda tasks: enough(tasks, n), 2),
        smallest_sufficient(lambda repeats: enough(t, repeats), noise.least_repeats),
        smallest_sufficient(lambda labels: enough(t, n, labels), 1) if judged is not None else None,
        judged.of if judged is not None else None,
    )


def format_power(power: float) -> str:
    """A power with two digits, never 1."""
    return ">.99" if power > 0.995 else f"{power:.2f}".lstrip("0")


def plan_sentences(found: PowerPlan, what: str, unit: str) -> list[str]:
    """The plan in words; `what` is planned for, as in “a difference of two agents in mean overall”."""
    t, n = found.noise.tasks, found.noise.repeats
    now = f"{t} tasks with {n:.3g} runs of an agent on a task and tier"
    chance = "unknown" if found.power_now is None else format_power(found.power_now)
    target = f"{found.target:.2g}".lstrip("0")
    out = [f"{what} of {found.size:g}{unit}: {now}, as now, find it with power {chance}."]
    if found.power_now is not None and found.power_now >= found.target:
        out[0] = out[0][:-1] + f"; {found.tasks} tasks would do for {target}."
    elif found.tasks is None:
        out.append(f"No number of tasks up to {MOST:,} reaches {target}.")
    else:
        more = (
            f"or {found.repeats} runs instead of {n:.3g}"
            if found.repeats is not None
            else "and no number of runs is enough with the tasks as now"
        )
        out.append(f"Power {target} takes {found.tasks} such tasks, {more}.")
    if found.labelled:
        need = (
            f"{found.labels} {found.labelled}"
            if found.labels
            else "no number of labels is enough with these tasks"
        )
        out.append(f"Corrected by labels, with the tasks and runs as now: {need}.")
    return out
