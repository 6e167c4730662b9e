"""Two sides against each other, held against the textbook's tests of the same numbers."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis import pairwise, simulate
from ambjudge.analysis.statistics.comparison import (
    compare,
    comparison_sentences,
    decide,
    infer_kind,
    make_side,
    split_sides,
    tost,
)
from ambjudge.analysis.statistics.interval_estimates import t_estimate
from ambjudge.errors import ConfigError, InputError
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired


@pytest.fixture(scope="module")
def table():
    return simulate(seed=1).frame().with_columns(sha256="run_id")


def task_means(table: pl.DataFrame, agent: str) -> np.ndarray:
    means = (
        table.filter(pl.col("agent") == agent)
        .group_by("task")
        .agg(pl.col("overall").mean())
        .sort("task")
    )
    return means["overall"].to_numpy()


@pytest.mark.parametrize("margin", [1.0, 5.0, 30.0])
def test_agents_of_a_track_agree_with_the_paired_t_test_and_its_equivalence_test(
    margin: float,
) -> None:
    # Tasks differ by more than repeats do, so that their variation alone makes the error.
    track = simulate(seed=1, n_tracks=1, n_tasks=6, cell_sd=2.0).frame()
    found = compare(*split_sides(track, "agent", ("agent-1", "agent-2")), by="agent", margin=margin)
    first, second = task_means(track, "agent-1"), task_means(track, "agent-2")
    t = stats.ttest_rel(first, second)
    assert found.paired_by == "task"
    assert found.new.value == pytest.approx((first - second).mean())
    assert found.new.p == pytest.approx(t.pvalue)
    assert found.p_equivalent == pytest.approx(ttost_paired(first, second, -margin, margin)[0])
    assert found.means == pytest.approx((first.mean(), second.mean()))


def test_agents_are_as_far_apart_as_the_table_of_pairs_says(table) -> None:
    pairs = {
        (row["agent"], row["other"], row["population"]): row for row in pairwise(table).to_dicts()
    }
    found = compare(*split_sides(table, "agent", ("agent-2", "agent-5")), by="agent")
    for est in (found.new, found.same):
        row = pairs["agent-2", "agent-5", est.population]
        assert (est.value, est.lo, est.hi) == pytest.approx(
            (row["value"], row["lo"], row["hi"]), rel=1e-3
        )


def test_judges_are_paired_by_run(table) -> None:
    """The second judge is 2 points milder with noise: by run this is found, whatever runs differ
    in."""
    one = table.filter(
        (pl.col("track") == "vqa") & (pl.col("agent") == "agent-1"), pl.col("repeat") == 1
    )
    one = one.unique("task", keep="first").sort("task")
    one = pl.concat([one] * 5).with_columns(
        task=pl.format("t{}", pl.int_range(pl.len())),
        sha256=pl.format("{}", pl.int_range(pl.len())),
        run_id=pl.format("{}", pl.int_range(pl.len())),
    )
    noise = np.random.default_rng(3).normal(2, 1, one.height)
    milder = one.with_columns(judge=pl.lit("mild"), overall=pl.col("overall") + noise)
    both = pl.concat(
        [one.with_columns(judge=pl.lit("strict")), milder.sample(fraction=1, shuffle=True, seed=1)]
    )
    assert infer_kind(both, ("mild", "strict")) == "judge"
    found = compare(*split_sides(both, "judge", ("mild", "strict")), by="judge", margin=4)
    t = stats.ttest_1samp(noise, 0)
    assert (found.paired_by, found.runs) == ("run", (one.height, one.height))
    assert (found.new.value, found.new.p) == pytest.approx((noise.mean(), t.pvalue))
    assert found.p_equivalent == pytest.approx(ttost_paired(noise, np.zeros(len(noise)), -4, 4)[0])
    assert found.same.lo is None, "one run a task: nothing says how repeats differ"
    assert found.verdict == "equivalent"
    assert "the difference is significant, but smaller than that" in comparison_sentences(found)[1]


def test_releases_are_paired_by_run_where_they_share_runs_and_by_task_else(table) -> None:
    later = table.with_columns(overall=pl.col("overall") + 1)
    again = simulate(seed=2).frame().with_columns(sha256=pl.format("other {}", "run_id"))
    for second, joined in ((later, "run"), (again, "task")):
        found = compare(make_side("old", table), make_side("new", second))
        assert found.paired_by == joined
        assert found.runs == (table.height, table.height)
        naive = table["overall"].mean() - second["overall"].mean()
        assert abs(found.new.value - naive) < 2, "tracks weigh the same, runs do not"


def test_what_was_not_read_has_no_point(table) -> None:
    unread = table.with_columns(read_share=0.2, presumed=0.0)
    found = compare(make_side("old", table), make_side("new", unread))
    assert (found.new.value, found.verdict) == (None, "cannot say")
    assert comparison_sentences(found) == [
        "Nothing can be said: new: its runs have too few judged criteria for a point score."
    ]
    assert any("too few judged criteria for a point score" in note for note in found.new.warnings)


CASES = [
    pytest.param(4.0, 1.0, 200, 5.0, "different", id="far from 0, not surely below 5"),
    pytest.param(0.5, 1.0, 200, 5.0, "equivalent", id="small and precise"),
    pytest.param(2.5, 1.0, 200, 5.0, "equivalent", id="found, and within"),
    pytest.param(1.0, 4.0, 200, 5.0, "cannot say", id="imprecise"),
    pytest.param(1.0, 4.0, 200, None, "cannot say", id="no margin"),
    pytest.param(9.0, 1.0, 9, 5.0, "cannot say", id="too few runs"),
    pytest.param(9.0, None, 200, 5.0, "cannot say", id="no error"),
]


@pytest.mark.parametrize(("value", "se", "runs", "margin", "expected"), CASES)
def test_verdicts(value, se, runs, margin, expected) -> None:
    est = t_estimate("x", "new", value, se, 30, n=runs)
    assert decide(est, tost(est, margin) if margin else None, runs) == expected


def test_what_cannot_be_compared_says_what_to_do(table) -> None:
    with pytest.raises(InputError, match="no runs of agent 'nobody'"):
        split_sides(table, "agent", ("agent-1", "nobody"))
    with pytest.raises(InputError, match="both sides"):
        split_sides(table, "agent", ("agent-1", "agent-1"))
    with pytest.raises(ConfigError, match="two sets"):
        split_sides(table, "release", ("agent-1", "agent-2"))
    one, two = split_sides(table, "agent", ("agent-1", "agent-2"))
    with pytest.raises(InputError, match="no run has a scorecard of both judges"):
        compare(one, two, by="judge")
    with pytest.raises(ConfigError, match="S1 goes from 0 to 1"):
        compare(one, two, by="agent", outcome="S1", margin=5)


def test_the_command(table, tmp_path, capsys) -> None:
    from ambjudge.cli import run

    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    table.write_parquet(old)
    table.with_columns(overall=pl.col("overall") * 0.9).write_parquet(new)
    assert run(["compare", str(old), str(new), "--margin", "20"]) == 0
    text = capsys.readouterr().out
    assert "old.parquet is" in text
    assert "higher than new.parquet in mean overall" in text
    assert "Equivalent within 20 points" in text
    assert run(["compare", "agent-1", "agent-3", str(old), "--json", "--outcome", "S2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["by"], found["paired_by"], found["margin"]) == ("agent", "task", None)
    assert [row["population"] for row in found["rows"]] == ["new", "same"]
    assert run(["compare", "agent-1", "agent-3"]) == 2
    assert "compare A B PATH" in capsys.readouterr().err
