"""Small tables that describe a cohort: what was read, where codes fire, what judging cost."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...rounding import fixed
from ..statistics.ranking import leaderboard
from ..statistics.run_arrays import select_runs
from ..statistics.score_variance import order_probability, variance_components
from ..tables.codes_read import reading_counts
from ..tables.cohorts import Cohort
from .glossary import titles_of_criteria

_LISTED_COLUMNS = (
    "agent",
    "task",
    "track",
    "tier",
    "judge",
    "rubric",
    "like",
    "missing_policy",
    "breach_policy",
)
_MAX_LISTED = 12
"""Values of a column that the summary names."""
_MAX_PROBLEMS = 50
"""Unreadable files that the summary names."""


def cohort_summary(cohort: Cohort) -> pl.DataFrame:
    """What the cohort holds and what was left out, as rows of `what` and `value`."""
    runs, notes = select_runs(cohort.runs)
    rows = [("scorecards", str(cohort.runs.height)), ("runs analysed", str(runs.height))]
    for column in _LISTED_COLUMNS:
        rows.append((column.replace("_", " "), _distinct_values(runs, column)))
    cells = runs.select("agent", "task", "tier").n_unique() if runs.height else 0
    rows.append(("cells (agent x task x tier)", str(cells)))
    rows.append((f"runs read for codes, of {runs.height}", _runs_read(runs)))
    presumed = _presumed_share(runs)
    if presumed is not None:
        rows.append(("criteria presumed", presumed))
    rows.append(("disqualified", _disqualified(runs)))
    if cohort.selection is not None and not cohort.selection.is_everything:
        rows.append(("left out", f"scorecards: {cohort.selection.left_out()}"))
    rows += [("left out", note) for note in notes]
    rows += [("not readable", problem) for problem in cohort.problems[:_MAX_PROBLEMS]]
    return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}, orient="row")


def _distinct_values(runs: pl.DataFrame, column: str) -> str:
    """How many values a column has, and the first of them by name."""
    values = [str(value) for value in runs[column].drop_nulls().unique().sort().to_list()]
    if not values:
        return "none"
    listed = ", ".join(values[:_MAX_LISTED])
    more = len(values) - _MAX_LISTED
    return f"{len(values)}: {listed}" + (f" and {more} more" if more > 0 else "")


def _runs_read(runs: pl.DataFrame) -> str:
    """By code, the number of runs that were read for it."""
    if runs.is_empty():
        return "none"
    return ", ".join(f"{row['code']} {row['read']}" for row in reading_counts(runs).to_dicts())


def _presumed_share(runs: pl.DataFrame) -> str | None:
    """The mean share of presumed criteria; None if there are none."""
    shares = [share for share in runs["presumed"].to_list() if share is not None]
    mean = sum(shares) / len(shares) if shares else 0.0
    if mean == 0:
        return None
    affected = sum(share > 0 for share in shares)
    percent = fixed(100 * mean, 1)
    return f"{percent} % of those with a value, in {affected} runs: nobody judged them (~)"


def _disqualified(runs: pl.DataFrame) -> str:
    """How many runs were disqualified, and what they cost as far as it is known."""
    disqualified = runs.filter(pl.col("disqualified"))
    amounts = (
        ("{:,.0f} s", "wall_time_s"),
        ("{:,} tokens in", "input_tokens"),
        ("{:,} out", "output_tokens"),
        ("${:,.2f}", "cost_usd"),
    )
    costs = [
        form.format(disqualified[column].sum())
        for form, column in amounts
        if disqualified[column].count()
    ]
    count = str(disqualified.height)
    return f"{count}, which cost {', '.join(costs)}" if costs else count


def codes_by_stage(cohort: Cohort) -> pl.DataFrame:
    """Firings of each code by stage and source."""
    keys = ("taxonomy", "code", "stage", "source", "independence")
    source = pl.col("by").str.split(":").list.first()
    return (
        cohort.codes.with_columns(pl.col("stage").cast(pl.String), source=source)
        .group_by(keys)
        .agg(firings=pl.len().cast(pl.Int64), runs=pl.col("run_id").n_unique().cast(pl.Int64))
        .sort(keys, descending=[True, False, False, False, False])
    )


_JUDGE_AMOUNTS = (
    "judge_calls",
    "judge_input_tokens",
    "judge_uncached_tokens",
    "judge_cached_tokens",
    "judge_cache_write_tokens",
    "judge_output_tokens",
    "judge_cost_usd",
)
_CACHE_AMOUNTS = tuple(name for name in _JUDGE_AMOUNTS if "cache" in name)


def judge_cost(runs: pl.DataFrame) -> pl.DataFrame:
    """Calls, tokens and dollars of each judge, summed over its scorecards.

    A sum is null if one of the scorecards does not state the amount.
    """
    cached = pl.col("judge_cached_tokens") + pl.col("judge_cache_write_tokens")
    amounts = runs.with_columns(judge_uncached_tokens=pl.col("judge_input_tokens") - cached)
    # A card that has more tokens cached than read states nothing usable about its caches.
    is_plausible = pl.col("judge_uncached_tokens") >= 0
    amounts = amounts.with_columns(
        pl.when(is_plausible).then(pl.col(name)).alias(name) for name in _CACHE_AMOUNTS
    )
    sums = {
        name.removeprefix("judge_"): (
            pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
        )
        for name in _JUDGE_AMOUNTS
    }
    table = (
        amounts.group_by("judge")
        .agg(
            runs=pl.len().cast(pl.Int64),
            **sums,
            split=pl.col("judge_cached_tokens").count().cast(pl.Int64),
            priced=pl.col("judge_cost_usd").count().cast(pl.Int64),
        )
        .sort("judge", nulls_last=True)
    )
    reasons = [_known_for_some("split", "caches"), _known_for_some("priced", "cost")]
    reason = pl.concat_str(reasons, separator="; ", ignore_nulls=True)
    return table.with_columns(reason=pl.when(reason != "").then(reason)).drop("split", "priced")


def _known_for_some(count: str, label: str) -> pl.Expr:
    """A sentence where fewer scorecards state an amount than there are; else null."""
    sentence = pl.format("{} known for {} of {} scorecards", pl.lit(label), count, "runs")
    return pl.when(pl.col(count) < pl.col("runs")).then(sentence)


def with_titles(items: pl.DataFrame, cohort: Cohort) -> pl.DataFrame:
    """A table of criteria and codes (`item`) with the titles of its criteria.

    A criterion to which the rubrics of the cohort give several titles has none.
    """
    by_id = titles_of_criteria(cohort.runs["rubric"].unique().to_list(), cohort.titles)
    titles = {id: titles[0] for id, titles in by_id.items() if len(titles) == 1}
    title = [titles.get(item) for item in items["item"]]
    return items.with_columns(pl.Series("title", title, dtype=pl.String))


def order_stability(runs: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """How often as many new tasks would show the same order of agents, were these means the truth.

    One row with the variance components that the answer rests on.
    """
    board = leaderboard(runs, outcome, scopes=("overall",))
    means = board.filter(pl.col("population") == "new")["value"].drop_nulls().to_list()
    components = variance_components(runs, outcome)
    probabilities = order_probability(means, components)
    reason = components.reason or None
    if reason is None and probabilities["same_order"] is None:
        reason = "needs two agents and two tasks"
    row = {
        "s2_repeat": components.repeat,
        "s2_agent_task": components.agent_task,
        "s2_task": components.task,
        "tasks": components.n_tasks,
        "repeats": components.n_rep,
        **probabilities,
        "reason": reason,
    }
    schema: dict[str, Any] = {
        "s2_repeat": pl.Float64,
        "s2_agent_task": pl.Float64,
        "s2_task": pl.Float64,
        "tasks": pl.Int64,
        "repeats": pl.Float64,
        "same_order": pl.Float64,
        "reason": pl.String,
    }
    return pl.DataFrame([row], schema=schema)
