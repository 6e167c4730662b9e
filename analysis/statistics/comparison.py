"""Two sides compared (agents, releases, judges or rubrics), and equivalence within a margin.

Sides that scored the same runs are paired run by run (by content), so that what makes a run hard or
lucky cancels; other sides are paired by task. Either way the estimator is the leaderboard's: tasks
weigh the same, and their variation within tracks gives the error. Equivalence is tested by two
one-sided t tests (Schuirmann 1987).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from ...errors import ConfigError, InputError
from ..tables.number_format import column_digits, interval, number, probability
from ..tables.score_names import limits_of, noun_of
from .agent_scores import (
    CellMeans,
    Contrast,
    agent_contrasts,
    agent_score,
    balance_notes,
    cell_means,
    contrast_estimates,
    new_tasks_error,
)
from .interval_estimates import (
    MIN_RUNS,
    Bools,
    Estimate,
    KeyedEstimates,
    Population,
    tidy,
    two_sided_p,
)
from .power_analysis import TARGET, difference_noise, format_power, plan_sizes
from .run_arrays import (
    READ_SCORES,
    build_arrays,
    check_outcome,
    excluded_for_reading,
    select_runs,
)
from .score_variance import variance_components

By = str
"""What the sides are: judge, rubric, release; else agent or another of `grouping.ROWS`."""
_VERSIONS = ("judge", "rubric", "release")
"""Sides that scored runs anew: they may share runs."""
PairedBy = Literal["run", "task"]
Verdict = Literal["different", "equivalent", "cannot say"]
RUN_KEY = ["sha256", "agent", "task", "track", "tier", "repeat"]
MIN_SHARED = 0.5
"""Releases are paired by run if at least this share of the smaller side's runs is on both sides."""
ALPHA = 0.05
POPULATIONS: tuple[Population, Population] = ("new", "same")
MAX_LISTED = 20
"""Names that an error lists."""


@dataclass(frozen=True)
class Side:
    """One of the two sides: its name, its runs after `select_runs`, and the notes on these."""

    name: str
    runs: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NeededTasks:
    """How many such tasks detect a difference of `size` with power TARGET."""

    size: float
    tasks: int


@dataclass(frozen=True)
class Comparison:
    """First side minus second side."""

    by: By
    paired_by: PairedBy
    outcome: str
    names: tuple[str, str]
    means: tuple[float | None, float | None]
    """Of the runs that were compared."""
    runs: tuple[int, int]
    """Runs of each side that were compared."""
    all_runs: tuple[int, int]
    """All runs of each side."""
    new: Estimate
    same: Estimate
    mde80: float | None
    """The smallest true difference that is detected with power .8, for new tasks."""
    margin: float | None
    needed: NeededTasks | None
    """If the tasks are too few for an interval for new tasks."""
    p_equivalent: float | None
    """p of the two one-sided tests, for new tasks."""
    verdict: Verdict

    @property
    def table(self) -> pl.DataFrame:
        """A row for new tasks and one for the same tasks."""
        key = {"first": self.names[0], "second": self.names[1]}
        rows: KeyedEstimates = [({**key, "mde80": self.mde80}, self.new), (key, self.same)]
        return tidy(rows, {"first": pl.String, "second": pl.String, "mde80": pl.Float64})


def make_side(name: str, table: pl.DataFrame) -> Side:
    """A set of scorecards as one side."""
    runs, notes = select_runs(table)
    return Side(name, runs, tuple(notes))


def split_sides(table: pl.DataFrame, by: By, names: tuple[str, str]) -> tuple[Side, Side]:
    """Two judges, rubrics (id, version, or `id version`), agents or other rows as sides.

    What a row is called stands in the column `agent` (`grouping.with_row_names`).

    InputError for unknown names; ConfigError for releases, which are two sets of scorecards.
    """
    if by == "release":
        raise ConfigError(
            "--by release compares two sets of scorecards",
            "give two paths: ambjudge compare old.jsonl new.jsonl",
        )
    if names[0] == names[1]:
        raise InputError(
            f"{names[0]!r} is on both sides of the comparison", "name two different ones"
        )
    for name in names:
        if not table.select(_has_name(by, name).any()).item():
            column = by if by in _VERSIONS else "agent"
            raise InputError(
                f"there are no runs of {by} {name!r}", f"choose from {_listed(table[column])}"
            )
    if by not in _VERSIONS:
        # Agents share a cohort, and with it what is left out of it.
        runs, notes = select_runs(table)
        first, second = (
            Side(name, runs.filter(_has_name(by, name)), tuple(notes)) for name in names
        )
    else:
        first, second = (make_side(name, table.filter(_has_name(by, name))) for name in names)
    return first, second


def infer_kind(table: pl.DataFrame, names: tuple[str, str]) -> By:
    """Whether two names are agents, else judges, else rubrics. InputError if they are none."""
    kinds: tuple[By, ...] = ("agent", "judge", "rubric")
    for by in kinds:
        if all(table.select(_has_name(by, name).any()).item() for name in names):
            return by
    raise InputError(
        f"{names[0]!r} and {names[1]!r} are not two agents, judges or rubrics of these scorecards",
        f"agents: {_listed(table['agent'])}; or give two paths",
    )


def _listed(names: pl.Series) -> str:
    distinct = sorted({str(name) for name in names.drop_nulls()})
    return ", ".join(distinct[:MAX_LISTED]) or "none"


def _has_name(by: By, name: str) -> pl.Expr:
    if by != "rubric":
        column = by if by in _VERSIONS else "agent"
        return pl.col(column).eq_missing(pl.lit(name))
    id_and_version = pl.concat_str("rubric", "rubric_version", separator=" ")
    matches = (
        (pl.col("rubric") == name) | (pl.col("rubric_version") == name) | (id_and_version == name)
    )
    return matches.fill_null(False)


def compare(
    first: Side,
    second: Side,
    *,
    by: By = "release",
    outcome: str = "overall",
    margin: float | None = None,
) -> Comparison:
    """Compare two sides on the runs (judges, rubrics, releases that share them) or tasks of both.

    `margin`: the largest difference, in units of the outcome, within which sides count as
    equivalent. Runs without a point score (`excluded_for_reading`) take no part. ConfigError for an
    unknown outcome or a margin outside its scale; InputError for judges or rubrics without a common
    run.
    """
    for side in (first, second):
        check_outcome(side.runs, outcome)
    if margin is not None:
        check_effect_size("margin", margin, outcome)
    cell = _cell_column(first, second, by)
    first_runs, second_runs = (
        side.runs.with_columns(cell.alias("_cell"), pl.col(outcome).cast(pl.Float64))
        for side in (first, second)
    )
    pairs = _run_pairs(first_runs, second_runs, outcome)
    paired_by = _pairing(by, pairs, min(first_runs.height, second_runs.height))
    if paired_by == "run":
        difference = _difference_by_run(pairs, outcome)
    else:
        difference = _difference_by_task(first_runs, second_runs, outcome)
    new, same, mde80 = _estimates(first, second, by, outcome, paired_by, difference)
    p_equivalent = tost(new, margin) if margin is not None else None
    return Comparison(
        by=by,
        paired_by=paired_by,
        outcome=outcome,
        names=(first.name, second.name),
        means=difference.means,
        runs=difference.runs,
        all_runs=(first_runs.height, second_runs.height),
        new=new,
        same=same,
        mde80=mde80,
        needed=_needed_tasks(first, second, outcome, margin) if _has_too_few_tasks(new) else None,
        margin=margin,
        p_equivalent=p_equivalent,
        verdict=decide(new, p_equivalent, min(difference.runs)),
    )


def check_effect_size(noun: str, size: float, outcome: str) -> None:
    """ConfigError if a margin or difference is not above 0 and below the width of the scale."""
    top = limits_of(outcome)[1]
    if 0 < size < top:
        return
    rule = f": {outcome} goes from 0 to {top:g}" if math.isfinite(top) else " must be above 0"
    raise ConfigError(f"{noun} {size:g}{rule}", f"for example {_example_size(outcome):g}")


def _example_size(outcome: str) -> float:
    """A difference that may matter: a twentieth of the scale."""
    return min(limits_of(outcome)[1], 100) / 20


def _has_too_few_tasks(new: Estimate) -> bool:
    has_value = new.value is not None
    return has_value and new.lo is None and new.df is None


def _needed_tasks(
    first: Side, second: Side, outcome: str, margin: float | None
) -> NeededTasks | None:
    """The tasks for a difference of the margin, or of a twentieth of the scale; None if unknown."""
    size = margin
    if size is None and math.isfinite(limits_of(outcome)[1]):
        size = _example_size(outcome)
    sides = [
        side.runs.with_columns(agent=pl.lit(name))
        for side, name in ((first, "first"), (second, "second"))
    ]
    runs = pl.concat(sides, how="diagonal_relaxed")
    noise = difference_noise(variance_components(runs, outcome, prepare=False))
    if size is None or noise.reason is not None:
        return None
    tasks = plan_sizes(noise, size).tasks
    return None if tasks is None else NeededTasks(size, tasks)


def tost(est: Estimate, margin: float) -> float | None:
    """p of two one-sided t tests that the true value is in (-margin, margin); None if undefined.

    The larger of the two p values, that of t = (margin - |value|) / se.
    """
    if est.value is None or not est.se or not est.df:
        return None
    t = (margin - abs(est.value)) / est.se
    one_sided = two_sided_p(t, est.df) / 2
    return one_sided if t > 0 else 1 - one_sided


def decide(est: Estimate, p_equivalent: float | None, n_runs: int) -> Verdict:
    """Equivalent if the test of the margin is significant, else different if the difference is.

    Otherwise neither: a difference that is not significant is no evidence of equality. Nothing is
    claimed if a side has fewer than MIN_RUNS runs.
    """
    if n_runs < MIN_RUNS:
        return "cannot say"
    if p_equivalent is not None and p_equivalent < ALPHA:
        return "equivalent"
    if est.p is not None and est.p < ALPHA:
        return "different"
    return "cannot say"


def _run_pairs(first: pl.DataFrame, second: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """The runs that are on both sides, with the second side's outcome as `_second`."""
    other = second.drop_nulls("sha256").select(*RUN_KEY, _second=outcome)
    runs = first.drop_nulls("sha256")
    return runs.join(other, on=RUN_KEY, nulls_equal=True, maintain_order="left")


def _pairing(by: By, pairs: pl.DataFrame, n_smaller: int) -> PairedBy:
    if by in ("judge", "rubric"):
        if pairs.is_empty():
            raise InputError(
                f"no run has a scorecard of both {by}s",
                "score the same runs with both, or compare with --by release",
            )
        return "run"
    if by == "release" and pairs.height >= max(1.0, MIN_SHARED * n_smaller):
        return "run"
    return "task"


def _cell_column(first: Side, second: Side, by: By) -> pl.Expr:
    """What is compared within a task: the tier, and the agent if agents are on both sides."""
    common_agents = set(first.runs["agent"]) & set(second.runs["agent"])
    if by not in _VERSIONS or not common_agents:
        return pl.col("tier")
    return pl.concat_str("agent", "tier", separator="/")


@dataclass(frozen=True)
class _Difference:
    """First minus second; `contrast` is None if nothing can be compared."""

    contrast: Contrast | None
    cells: CellMeans
    means: tuple[float | None, float | None] = (None, None)
    runs: tuple[int, int] = (0, 0)


def _difference_by_run(pairs: pl.DataFrame, outcome: str) -> _Difference:
    """The mean of the differences of runs, with their variation between tasks and repeats."""
    both_scored = pl.col(outcome).is_finite() & pl.col("_second").is_finite()
    pairs = pairs.filter(both_scored).with_columns(agent=pl.lit("first"), tier="_cell")
    cells = _cells_of(pairs, pl.col(outcome) - pl.col("_second"), outcome)
    all_tasks = np.ones(len(cells.tasks), dtype=bool)
    score = agent_score(cells, 0, all_tasks) if cells.agents else None
    if score is None:
        return _Difference(None, cells)
    contrast = Contrast(
        a=0,
        b=1,
        value=score.value,
        new=new_tasks_error(score.residual, score.track_of, score.variance_same, cells.repeat_df),
        se_same=math.sqrt(score.variance_same),
        n=score.n_runs,
        n_tasks=len(cells.tasks),
    )
    means = (
        _mean(_cells_of(pairs, pl.col(outcome), outcome), 0, all_tasks),
        _mean(_cells_of(pairs, pl.col("_second"), outcome), 0, all_tasks),
    )
    return _Difference(contrast, cells, means, (score.n_runs, score.n_runs))


def _cells_of(table: pl.DataFrame, values: pl.Expr, outcome: str) -> CellMeans:
    """Cell means of `values` as the outcome."""
    data = table.with_columns(values.alias(outcome))
    runs = build_arrays(data, outcome, keep_breach=True, prepare=False, need_codes=False)
    return cell_means(runs)


def _mean(cells: CellMeans, agent: int, use: Bools) -> float | None:
    score = agent_score(cells, agent, use)
    return score.value if score else None


def _difference_by_task(first: pl.DataFrame, second: pl.DataFrame, outcome: str) -> _Difference:
    """The paired difference of the leaderboard, on the cells that both sides have."""
    sides = [
        first.with_columns(agent=pl.lit("first"), tier="_cell"),
        second.with_columns(agent=pl.lit("second"), tier="_cell"),
    ]
    cells = _cells_of(pl.concat(sides, how="diagonal_relaxed"), pl.col(outcome), outcome)
    contrasts = agent_contrasts(cells)
    if not contrasts:
        return _Difference(None, cells)
    common = np.asarray((cells.count > 0).all(0))
    n_first, n_second = (int(cells.count[side][common].sum()) for side in (0, 1))
    means = (_mean(cells, 0, common), _mean(cells, 1, common))
    return _Difference(contrasts[0], cells, means, (n_first, n_second))


def _estimates(
    first: Side, second: Side, by: By, outcome: str, paired_by: PairedBy, difference: _Difference
) -> tuple[Estimate, Estimate, float | None]:
    """The difference for new tasks and for the same tasks, and its MDE80 for new tasks."""
    notes = first.notes
    if first.notes != second.notes:
        notes = tuple(f"{side.name}: {note}" for side in (first, second) for note in side.notes)
    if difference.contrast is None:
        label = f"difference in mean {outcome}"
        reason = _no_difference_reason(first, second, outcome, paired_by)
        new, same = (
            Estimate(label, population, None, reason=reason, warnings=notes)
            for population in POPULATIONS
        )
        return new, same, None
    if by not in _VERSIONS:
        notes = (*notes, *balance_notes(difference.cells))
    (new, mde80), (same, _) = contrast_estimates(
        difference.contrast, difference.cells, outcome, notes
    )
    if paired_by == "run":
        new, same = (replace(est, method=f"run minus run; {est.method}") for est in (new, same))
    return new, same, mde80


def _no_difference_reason(first: Side, second: Side, outcome: str, paired_by: PairedBy) -> str:
    for side in (first, second):
        if side.runs[outcome].count():
            continue
        if outcome in READ_SCORES and side.runs.select(excluded_for_reading().any()).item():
            return f"{side.name}: its runs have too few judged criteria for a point score"
        return f"{side.name}: its runs have no {outcome}"
    return f"no {paired_by} has {outcome} on both sides"


def comparison_sentences(comparison: Comparison) -> list[str]:
    """The result in words: direction, interval, p and counts; then what may be concluded."""
    first, second = comparison.names
    new = comparison.new
    if new.value is None:
        return [f"Nothing can be said: {new.reason}."]
    outcome = noun_of(comparison.outcome)
    unit = " points" if comparison.outcome == "overall" else ""
    counts = _counts(comparison)
    if new.value == 0 and not new.se:
        return [f"{first} and {second} have the same {outcome} throughout ({counts})."]
    direction = "higher" if new.value > 0 else "lower"
    est, tasks = (new, "new") if new.lo is not None else (comparison.same, "the same")
    digits = column_digits([new.value, est.lo, est.hi])
    difference = (
        f"{first} is {number(abs(new.value), digits)}{unit} {direction} than {second} in mean"
        f" {outcome}"
    )
    conclusion = _conclusion(comparison, unit)
    if est.lo is None or est.p is None:
        return [f"{difference} ({counts}).", conclusion]
    p = probability(est.p)
    p_clause = f"p {p}" if p.startswith("<") else f"p = {p}"
    span = f"95 % interval {interval(est.lo, est.hi, digits)} for {tasks} tasks"
    return [f"{difference} ({span}, {p_clause}; {counts}).", conclusion]


def _counts(comparison: Comparison) -> str:
    """For example “24 tasks, 40 runs each, paired by task”."""
    n_tasks = comparison.new.n_clusters
    tasks = "1 task" if n_tasks == 1 else f"{n_tasks} tasks"
    n_first, n_second = comparison.runs
    runs = f"{n_first} runs each" if n_first == n_second else f"{n_first} and {n_second} runs"
    return f"{tasks}, {runs}, paired by {comparison.paired_by}"


def _conclusion(comparison: Comparison, unit: str) -> str:
    """What may be concluded, as a sentence."""
    new = comparison.new
    margin = f"{comparison.margin:g}{unit}" if comparison.margin is not None else ""
    tests = f"two one-sided tests, p {probability(comparison.p_equivalent)}"
    if comparison.verdict == "equivalent":
        significant = new.p is not None and new.p < ALPHA
        addition = "; the difference is significant, but smaller than that" if significant else ""
        return f"Equivalent within {margin} ({tests}){addition}."
    not_shown = ""
    if comparison.p_equivalent is not None:
        not_shown = f"; not shown to be within {margin} ({tests})"
    if comparison.verdict == "different":
        return f"Different{not_shown}."
    if min(comparison.runs) < MIN_RUNS:
        return f"Cannot say: a side has fewer than {MIN_RUNS} runs."
    if new.lo is None:
        return f"Cannot say for new tasks ({new.reason}).{_needed(comparison, unit)}"
    detectable = ""
    if comparison.mde80:
        detectable = (
            f"; these runs detect a difference of {number(comparison.mde80)}{unit} with power .8"
        )
    return f"Cannot say whether they differ{not_shown}{detectable}."


def _needed(comparison: Comparison, unit: str) -> str:
    """How many tasks would do, as a sentence after another."""
    if comparison.needed is None:
        return ""
    size, tasks = comparison.needed.size, comparison.needed.tasks
    return (
        f" To detect a difference of {size:g}{unit} with power {format_power(TARGET)} takes about"
        f" {tasks:,} such tasks (ambjudge power)."
    )


def comparison_json(comparison: Comparison) -> dict[str, object]:
    """The comparison as plain values (ambjudge.compare/1)."""
    from ..tables.flat_tables import json_rows

    sides = [
        {
            "name": comparison.names[i],
            "mean": comparison.means[i],
            "runs": comparison.runs[i],
            "of": comparison.all_runs[i],
        }
        for i in (0, 1)
    ]
    return {
        "schema": "ambjudge.compare/1",
        "by": comparison.by,
        "paired_by": comparison.paired_by,
        "outcome": comparison.outcome,
        "sides": sides,
        "rows": json_rows(comparison.table),
        "needed_tasks": asdict(comparison.needed) if comparison.needed else None,
        "margin": comparison.margin,
        "p_equivalent": comparison.p_equivalent,
        "verdict": comparison.verdict,
        "sentences": comparison_sentences(comparison),
    }
