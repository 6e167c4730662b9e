"""New tasks vary in all that the same tasks vary in: no interval for them may be narrower."""

from __future__ import annotations

import polars as pl
import pytest
from ambjudge.analysis import all_tables, leaderboard, pairwise, rank_sets, simulate
from ambjudge.analysis.statistics.comparison import (
    compare,
    comparison_json,
    comparison_sentences,
    split_sides,
)
from ambjudge.analysis.statistics.interval_estimates import MIN_DF, subject_keys
from hypothesis import given, settings
from hypothesis import strategies as st

TOLERANCE = 1e-9


def narrower_for_new_tasks(table: pl.DataFrame) -> pl.DataFrame:
    """The subjects whose interval for new tasks is narrower than that for the same tasks."""
    keys = subject_keys(table)
    ends = [*keys, "lo", "hi"]
    new = table.filter(pl.col("population") == "new").select(ends)
    same = table.filter(pl.col("population") == "same").select(ends)
    both = new.join(same, on=keys, nulls_equal=True, suffix="_same").drop_nulls(["lo", "lo_same"])
    is_within = (pl.col("lo") <= pl.col("lo_same") + TOLERANCE) & (
        pl.col("hi") >= pl.col("hi_same") - TOLERANCE
    )
    return both.filter(~is_within)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    agents=st.integers(2, 8),
    tasks=st.integers(1, 14),
    tracks=st.integers(1, 7),
    repeats=st.integers(1, 4),
    share=st.floats(0.5, 1),
)
def test_agents_and_pairs(seed, agents, tasks, tracks, repeats, share) -> None:
    runs = simulate(seed=seed, n_agents=agents, n_tasks=tasks, n_tracks=tracks, n_rep=repeats)
    table = runs.frame().sample(fraction=share, seed=seed)
    for estimates in (leaderboard(table), pairwise(table)):
        assert narrower_for_new_tasks(estimates).is_empty()
        with_interval = estimates.filter(pl.col("lo").is_not_null())
        assert (with_interval["df"] >= MIN_DF).all()
        without = estimates.filter(pl.col("value").is_not_null() & pl.col("lo").is_null())
        assert without["reason"].null_count() == 0
        assert without["p"].null_count() == without.height


TABLES = ["stages", "failures", "codes", "cliff", "tiers", "cost", "code_effects", "first_breaks"]


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param({"n_tasks": 4, "n_tracks": 1, "n_rep": 4}, id="four tasks"),
        pytest.param({"n_tasks": 6, "n_tracks": 5, "n_rep": 3}, id="six tasks in five tracks"),
        pytest.param({"n_tasks": 12, "n_rep": 2}, id="two repeats"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_table_of_both_populations(sizes, seed) -> None:
    tables = all_tables(simulate(seed=seed, task_sd=0.1, **sizes).frame(), only=TABLES)
    compared = 0
    for name, table in tables.items():
        assert narrower_for_new_tasks(table).is_empty(), name
        compared += table.filter(pl.col("population") == "same")["lo"].count()
    assert compared > 20


def test_too_few_tasks_are_no_verdict() -> None:
    """By chance the tasks of the one track with two may agree to the hundredth of a point."""
    table = simulate(seed=7, n_agents=8, n_tasks=6, n_rep=3).frame()
    comparison = compare(*split_sides(table, "agent", ("agent-2", "agent-5")), by="agent")
    assert (comparison.verdict, comparison.new.lo, comparison.new.p) == ("cannot say", None, None)
    first, conclusion = comparison_sentences(comparison)
    assert "for the same tasks" in first
    assert conclusion.startswith(
        "Cannot say for new tasks (6 tasks of several tracks or of unequal weight are too few"
    )
    assert comparison.needed is not None
    assert f"takes about {comparison.needed.tasks} such tasks" in conclusion
    assert comparison_json(comparison)["needed_tasks"] == {
        "size": 5.0,
        "tasks": comparison.needed.tasks,
    }
    assert rank_sets(table)["rank_lo"].null_count() == 8
    assert pairwise(table).filter(pl.col("population") == "new")["p_holm"].null_count() == 28


def test_a_margin_is_the_difference_to_plan_for() -> None:
    table = simulate(seed=7, n_agents=2, n_tasks=3, n_tracks=1, n_rep=3).frame()
    sides = split_sides(table, "agent", ("agent-1", "agent-2"))
    wide, narrow = (compare(*sides, by="agent", margin=margin).needed for margin in (20, 4))
    assert wide is not None
    assert narrow is not None
    assert (wide.size, narrow.size) == (20, 4)
    assert wide.tasks < narrow.tasks
