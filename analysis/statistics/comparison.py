"""Two sides against each other: agents, releases, judges or rubrics, paired by run or by task;
equivalence within a margin.

Sides that scored the same runs are paired run by run (by content), so that what makes a run hard or
lucky cancels; otherwise by task. Either way the estimator is the leaderboard's: tasks weigh the
same, and their spread within tracks gives the error. Equivalence is two one-sided t tests
(Schuirmann 1987).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from ...errors import ConfigError, InputError
from ..tables.number_format import interval, number, probability
from ..tables.score_names import limits_of
from .agent_scores import (
    CellMeans,
    Contrast,
    agent_contrasts,
    agent_score,
    balance_notes,
    cell_means,
    contrast_estimates,
    variance_between_tasks,
)
from .interval_estimates import MIN_RUNS, Estimate, KeyedEstimates, Population, tidy, two_sided_p
from .run_arrays import READ_SCORES, build_arrays, check_outcome, excluded_for_reading, select_runs

By = Literal["agent", "judge", "rubric", "release"]
Joined = Literal["run", "task"]
Verdict = Literal["different", "equivalent", "cannot say"]
RUN_KEY = ["sha256", "agent", "task", "track", "tier", "repeat"]
SHARED = 0.5
"""Releases are paired by run when at least this share of the smaller side's runs is on both."""
ALPHA = 0.05
POPULATIONS: tuple[Population, Population] = ("new", "same")


@dataclass(frozen=True)
class Side:
    """One of the two: its name, its runs (prepared), and what preparing them left out."""

    name: str
    runs: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """First minus second. `table` has a row for new tasks and one for the same tasks."""

    by: By
    joined: Joined
    outcome: str
    names: tuple[str, str]
    means: tuple[float | None, float | None]
    """Of the runs that were compared."""
    runs: tuple[int, int]
    """Compared, of each side."""
    of: tuple[int, int]
    """All runs of each side."""
    new: Estimate
    same: Estimate
    mde80: float | None
    """The smallest true difference found with power .8, new tasks."""
    margin: float | None
    p_equivalent: float | None
    """Of the two one-sided tests, new tasks."""
    verdict: Verdict

    @property
    def table(self) -> pl.DataFrame:
        key = {"first": self.names[0], "second": self.names[1]}
        rows: KeyedEstimates = [({**key, "mde80": self.mde80}, self.new), (key, self.same)]
        return tidy(rows, {"first": pl.String, "second": pl.String, "mde80": pl.Float64})


def make_side(name: str, table: pl.DataFrame) -> Side:
    """A set of scorecards as one side."""
    runs, notes = select_runs(table)
    return Side(name, runs, tuple(notes))


def split_sides(table: pl.DataFrame, by: By, names: tuple[str, str]) -> tuple[Side, Side]:
    """Two agents, judges or rubrics (id, version, or `id version`) of one cohort. InputError for
    unknown names, ConfigError for releases, which are two sets of scorecards."""
    if by == "release":
        raise ConfigError(
            "releases are two sets of scorecards",
            "give two paths: ambjudge compare old.jsonl new.jsonl",
        )
    if names[0] == names[1]:
        raise InputError(f"{names[0]!r} stands on both sides", "name two")
    for name in names:
        if not table.select(_is(by, name).any()).item():
            there = ", ".join(sorted({str(value) for value in table[by].drop_nulls()})[:20])
            raise InputError(f"no runs of {by} {name!r}", f"there are {there or 'none'}")
    if by != "agent":
        first, second = (make_side(name, table.filter(_is(by, name))) for name in names)
        return first, second
    # Agents share a cohort, and with it what is left out of it.
    whole, notes = select_runs(table)
    first, second = (Side(name, whole.filter(_is(by, name)), tuple(notes)) for name in names)
    return first, second


def infer_kind(table: pl.DataFrame, names: tuple[str, str]) -> By:
    """What two names are: agents, else judges, else rubrics. InputError where they are none of
    these."""
    kinds: tuple[By, ...] = ("agent", "judge", "rubric")
    for by in kinds:
        if all(table.select(_is(by, name).any()).item() for name in names):
            return by
    there = ", ".join(sorted({str(name) for name in table["agent"].drop_nulls()})[:20])
    raise InputError(
        f"{names[0]!r} and {names[1]!r} are not two agents, judges or rubrics of these scorecards",
        f"agents: {there or 'none'}; or give two paths",
    )


def _is(by: By, name: str) -> pl.Expr:
    if by == "rubric":
        both = pl.concat_str("rubric", "rubric_version", separator=" ")
        return (
            (pl.col("rubric") == name) | (pl.col("rubric_version") == name) | (both == name)
        ).fill_null(False)
    return pl.col(by).eq_missing(pl.lit(name))


def compare(
    first: Side,
    second: Side,
    *,
    by: By = "release",
    outcome: str = "overall",
    margin: float | None = None,
) -> Comparison:
    """Compares two sides on the runs (judges, rubrics, releases that share them) or tasks that both
    have.

    `margin`, in units of the outcome: within it sides count as equivalent. Runs without a point
    (`design.pointless`) take no part. Raises ConfigError for an unknown outcome or a margin outside
    its scale, InputError for judges or rubrics without a common run.
    """
    for one in (first, second):
        check_outcome(one.runs, outcome)
    if margin is not None:
        check_effect_size("margin", margin, outcome)
    cell = _cell(first, second, by)
    a, b = (
        one.runs.with_columns(cell.alias("_cell"), pl.col(outcome).cast(pl.Float64))
        for one in (first, second)
    )
    pairs = _pairs(a, b, outcome)
    joined = _joined(by, pairs, min(a.height, b.height))
    found, g, means, counts = (
        _by_run(pairs, outcome) if joined == "run" else _by_task(a, b, outcome)
    )
    notes = first.notes if first.notes == second.notes else _named(first, second)
    if found is None:
        label, reason = f"difference in mean {outcome}", _nothing(first, second, outcome, joined)
        new, same = (
            Estimate(label, kind, None, reason=reason, warnings=notes) for kind in POPULATIONS
        )
        mde80 = None
    else:
        (new, mde80), (same, _) = contrast_estimates(
            found, g, outcome, (*notes, *(balance_notes(g) if by == "agent" else ()))
        )
        if joined == "run":
            new, same = (replace(est, method=f"run minus run; {est.method}") for est in (new, same))
    p = tost(new, margin) if margin is not None else None
    return Comparison(
        by,
        joined,
        outcome,
        (first.name, second.name),
        means,
        counts,
        (a.height, b.height),
        new,
        same,
        mde80,
        margin,
        p,
        decide(new, p, min(counts)),
    )


def check_effect_size(what: str, size: float, outcome: str) -> None:
    """ConfigError for a margin or difference that is not positive or as wide as the outcome's
    scale."""
    top = limits_of(outcome)[1]
    if not 0 < size < top:
        scale = f": {outcome} goes from 0 to {top:g}" if math.isfinite(top) else " must be above 0"
        raise ConfigError(f"{what} {size:g}{scale}", f"for example {min(top, 100) / 20:g}")


def tost(est: Estimate, margin: float) -> float | None:
    """p of two one-sided t tests that the true value lies within plus or minus the margin; None
    without an error."""
    if est.value is None or not est.se or not est.df:
        return None
    t = (margin - abs(est.value)) / est.se
    half = two_sided_p(t, est.df) / 2
    return half if t > 0 else 1 - half


def decide(est: Estimate, p_equivalent: float | None, runs: int) -> Verdict:
    """Equivalent where the margin's test says so, else different where a difference is found, else
    neither: not finding a difference is no evidence of none. Below MIN_RUNS runs a side nothing is
    said."""
    if runs >= MIN_RUNS and p_equivalent is not None and p_equivalent < ALPHA:
        return "equivalent"
    return "different" if runs >= MIN_RUNS and est.p is not None and est.p < ALPHA else "cannot say"


def _pairs(a: pl.DataFrame, b: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """Runs on both sides, with the second side's outcome as `_second`."""
    other = b.drop_nulls("sha256").select(*RUN_KEY, _second=outcome)
    return a.drop_nulls("sha256").join(other, on=RUN_KEY, nulls_equal=True, maintain_order="left")


def _joined(by: By, pairs: pl.DataFrame, smaller: int) -> Joined:
    if by in ("judge", "rubric") and pairs.is_empty():
        raise InputError(
            f"no run has a scorecard of both {by}s",
            "score the same runs with both, or compare with --by release",
        )
    if by in ("judge", "rubric") or (
        by == "release" and pairs.height >= max(1.0, SHARED * smaller)
    ):
        return "run"
    return "task"


def _cell(first: Side, second: Side, by: By) -> pl.Expr:
    """Within a task, what is held against what: the tier, and the agent where agents stand on both
    sides."""
    common = set(first.runs["agent"]) & set(second.runs["agent"])
    return (
        pl.col("tier")
        if by == "agent" or not common
        else pl.concat_str("agent", "tier", separator="/")
    )


def _named(first: Side, second: Side) -> tuple[str, ...]:
    return tuple(f"{one.name}: {note}" for one in (first, second) for note in one.notes)


Means = tuple[float | None, float | None]
Found = tuple[Contrast | None, CellMeans, Means, tuple[int, int]]


def _by_run(pairs: pl.DataFrame, outcome: str) -> Found:
    """Differences run by run as an outcome of their own: its mean, its spread between tasks and
    between repeats."""
    both = pairs.filter(pl.col(outcome).is_finite() & pl.col("_second").is_finite())
    both = both.with_columns(agent=pl.lit("first"), tier="_cell")

    def gridded(values: pl.Expr) -> CellMeans:
        data = both.with_columns(values.alias(outcome))
        return cell_means(
            build_arrays(data, outcome, keep_breach=True, prepare=False, need_codes=False)
        )

    g = gridded(pl.col(outcome) - pl.col("_second"))
    everything = np.ones(len(g.tasks), dtype=bool)
    score = agent_score(g, 0, everything) if g.agents else None
    if score is None:
        return None, g, (None, None), (0, 0)
    variance, df, warning = variance_between_tasks(score.residual, score.track_of)
    found = Contrast(
        0,
        1,
        score.value,
        math.sqrt(variance) if df else math.nan,
        math.sqrt(score.variance_same),
        df,
        score.n_runs,
        len(g.tasks),
        warning if df else None,
    )
    means = [agent_score(gridded(pl.col(name)), 0, everything) for name in (outcome, "_second")]
    first, second = (mean.value if mean else None for mean in means)
    return found, g, (first, second), (score.n_runs, score.n_runs)


def _by_task(a: pl.DataFrame, b: pl.DataFrame, outcome: str) -> Found:
    """The paired difference of the leaderboard, on the cells that both sides have."""
    data = [
        one.with_columns(agent=pl.lit(name), tier="_cell")
        for one, name in ((a, "first"), (b, "second"))
    ]
    table = pl.concat(data, how="diagonal_relaxed")
    g = cell_means(build_arrays(table, outcome, keep_breach=True, prepare=False, need_codes=False))
    found = next(iter(agent_contrasts(g)), None)
    if found is None:
        return None, g, (None, None), (0, 0)
    common = np.asarray((g.count > 0).all(0))
    scores = [agent_score(g, k, common) for k in (0, 1)]
    first, second = (score.value if score else None for score in scores)
    counts = [score.n_runs if score else 0 for score in scores]
    return found, g, (first, second), (counts[0], counts[1])


def _nothing(first: Side, second: Side, outcome: str, joined: Joined) -> str:
    """Why there is no difference at all."""
    for one in (first, second):
        if not one.runs[outcome].count():
            unread = outcome in READ_SCORES and one.runs.select(excluded_for_reading().any()).item()
            why = (
                "too little of its runs was read for a point"
                if unread
                else f"its runs have no {outcome}"
            )
            return f"{one.name}: {why}"
    return f"no {joined} has {outcome} on both sides"


def comparison_sentences(found: Comparison) -> list[str]:
    """The result in words: direction, interval, p and counts; then what may be concluded."""
    a, b = found.names
    est = found.new if found.new.lo is not None else found.same
    if found.new.value is None:
        return [f"Nothing can be said: {found.new.reason}."]
    word = found.outcome.removeprefix("outcome.")
    size, unit = number(abs(found.new.value)), " points" if found.outcome == "overall" else ""
    higher = "higher" if found.new.value > 0 else "lower"
    runs = (
        f"{found.runs[0]} runs each"
        if found.runs[0] == found.runs[1]
        else f"{found.runs[0]} and {found.runs[1]} runs"
    )
    tasks = f"{found.new.n_clusters} task{'' if found.new.n_clusters == 1 else 's'}"
    counts = f"{tasks}, {runs}, paired by {found.joined}"
    if found.new.value == 0 and not found.new.se:
        return [f"{a} and {b} have the same {word} throughout ({counts})."]
    told = f"{a} is {size}{unit} {higher} than {b} in mean {word}"
    if est.lo is None or est.p is None:
        return [f"{told} ({counts}).", _may_say(found, unit)]
    span = (
        f"95 % interval {interval(est.lo, est.hi)} for {'new' if est is found.new else 'the same'}"
        " tasks"
    )
    p = probability(est.p)
    return [
        f"{told} ({span}, p {p if p.startswith('<') else '= ' + p}; {counts}).",
        _may_say(found, unit),
    ]


def _may_say(found: Comparison, unit: str) -> str:
    within = f"{found.margin:g}{unit}" if found.margin is not None else ""
    test = f"two one-sided tests, p {probability(found.p_equivalent)}"
    if found.verdict == "equivalent":
        beside = (
            "; the difference is found, and smaller than that" if (found.new.p or 1) < ALPHA else ""
        )
        return f"Equivalent within {within} ({test}){beside}."
    not_shown = (
        f"; not shown to be within {within} ({test})" if found.p_equivalent is not None else ""
    )
    if found.verdict == "different":
        return f"Different{not_shown}."
    if min(found.runs) < MIN_RUNS:
        return f"Cannot say: fewer than {MIN_RUNS} runs a side."
    if found.new.lo is None:
        return f"Cannot say for new tasks: {found.new.reason}."
    least = (
        f"; these runs find a difference of {number(found.mde80)}{unit} with power .8"
        if found.mde80
        else ""
    )
    return f"Cannot say whether they differ{not_shown}{least}."


def comparison_json(found: Comparison) -> dict[str, object]:
    """As plain values (ambjudge.compare/1)."""
    from ..report.results import rows

    one = [
        {"name": name, "mean": mean, "runs": runs, "of": of}
        for name, mean, runs, of in zip(found.names, found.means, found.runs, found.of, strict=True)
    ]
    return {
        "schema": "ambjudge.compare/1",
        "by": found.by,
        "paired_by": found.joined,
        "outcome": found.outcome,
        "sides": one,
        "rows": rows(found.table),
        "margin": found.margin,
        "p_equivalent": found.p_equivalent,
        "verdict": found.verdict,
        "sentences": comparison_sentences(found),
    }
