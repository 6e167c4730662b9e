"""Success every time, first breaks, orders on some tasks, and reliability of many raters, held
against counts by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis import first_breaks, pass_k, rank_stability, reliability, simulate
from ambjudge.analysis.statistics.ranking import failed
from ambjudge.analysis.tables.cohorts import CODES_SCHEMA, CRITERIA_SCHEMA, Cohort
from ambjudge.analysis.tables.label_tables import (
    CODE_LABELS_SCHEMA,
    CRITERION_LABELS_SCHEMA,
    Labels,
)


@pytest.fixture(scope="module")
def table():
    return simulate(seed=1).frame()


def test_pass_k_is_the_share_of_all_draws_of_k_repeats(table) -> None:
    one = table.filter((pl.col("track") == "vqa") & (pl.col("agent") == "agent-2"))
    cells = one.with_columns(passed=~failed()).group_by("task", "tier").agg("passed")
    rows = {row["k"]: row for row in pass_k(one).to_dicts()}
    assert set(rows) == {1, 2, 3, 5, 10}
    for k in (1, 2, 3):
        draws = [list(combinations(passed, k)) for passed in cells["passed"].to_list()]
        every = np.mean([np.mean([all(draw) for draw in each]) for each in draws])
        some = np.mean([np.mean([any(draw) for draw in each]) for each in draws])
        assert (rows[k]["value"], rows[k]["pass_at_k"]) == pytest.approx((every, some))


def test_cells_with_too_few_repeats_are_left_out_and_said(table) -> None:
    task = table["task"][0]
    rows = pass_k(table.filter((pl.col("task") != task) | (pl.col("repeat") <= 2))).filter(
        pl.col("k") == 3
    )
    assert rows["n_clusters"].unique().to_list() == [23]
    assert "2 cells with fewer than 3 repeats are left out" in rows["warnings"][0]


def test_runs_break_at_their_first_stage_below_a_half() -> None:
    scores = [
        (0.2, 0.1, 1.0, 1.0, 1.0),  # breaks at S1, and no second time
        (1.0, 0.4, 1.0, 1.0, 1.0),
        (1.0, 1.0, None, 0.0, 0.0),  # leaves at S3: nobody knows
        (1.0, 0.5, 0.9, 1.0, 0.0),
    ]
    base = simulate(seed=1).frame().filter(pl.col("agent") == "agent-1").head(4)
    stages = pl.DataFrame(scores, schema=["S1", "S2", "S3", "S4", "S5"], orient="row")
    found = first_breaks(base.with_columns(stages.get_columns()), prepare=False)
    rows = found.filter((pl.col("agent") == "(all)") & (pl.col("population") == "new"))
    assert rows.select("stage", "at_risk", "broke").rows() == [
        ("S1", 4, 1),
        ("S2", 3, 1),
        ("S3", 1, 0),
        ("S4", 1, 0),
        ("S5", 1, 1),
    ]
    assert rows["value"].to_list() == pytest.approx([1 / 4, 1 / 3, 0, 0, 1])
    assert rows["unbroken"].to_list() == pytest.approx([3 / 4, 1 / 2, 1 / 2, 1 / 2, 0])


def test_an_order_with_wide_gaps_holds_on_every_subset(table) -> None:
    apart = table.with_columns(
        overall=pl.col("agent").str.slice(-1).cast(pl.Float64) * 10 + pl.col("overall") / 100
    )
    found = rank_stability(apart)
    assert found.select(pl.col("same_order", "kendall_tau") == 1).to_numpy().all()
    assert found["tasks"].to_list() == [23, 19, 10, 5]
    alike = rank_stability(simulate(seed=4, ability=(0.0,) * 6).frame())
    assert alike["same_order"].to_list()[-1] < 0.2
    assert alike["kendall_tau"].is_sorted(descending=True), "fewer tasks tell less"
    assert rank_stability(table.filter(pl.col("agent") == "agent-1"))["reason"][0] is not None


# Krippendorff 2011, "Computing Krippendorff's alpha-reliability": four observers, twelve units,
# seven gaps.
OBSERVERS = {
    "a": (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    "b": (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    "c": (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    "d": (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
}


def observed(names: str) -> pl.DataFrame:
    rows = [
        (f"run-{u}", name, "", "S1", "S1a", v, "scored", None, None)
        for name in names
        for u, v in enumerate(OBSERVERS[name])
        if v
    ]
    return pl.DataFrame(rows, schema=CRITERIA_SCHEMA, orient="row")


def test_alpha_of_four_raters_with_gaps_is_that_of_the_textbook() -> None:
    runs = pl.concat(
        [
            simulate(seed=1)
            .frame()
            .head(12)
            .with_columns(
                run_id=pl.format("run-{}", pl.int_range(12)),
                sha256=pl.lit(None, pl.String),
                task=pl.format("t{}", pl.int_range(12)),
                judge=pl.lit(j),
            )
            for j in "abcd"
        ]
    )
    codes = pl.DataFrame(schema=CODES_SCHEMA)
    row = reliability(Cohort(runs, observed("abcd"), codes)).row(0, named=True)
    assert (row["criterion"], row["raters"], row["runs"]) == (
        "S1a",
        4,
        11,
    ), "a unit that one observer saw says nothing"
    assert row["value"] == pytest.approx(0.815, abs=0.001)
    assert row["lo"] < row["value"] < row["hi"]
    people = observed("cd").select(
        "run_id", annotator="judge", criterion=pl.col("criterion").cast(pl.String), value="value"
    )
    labels = Labels(people.cast(CRITERION_LABELS_SCHEMA), pl.DataFrame(schema=CODE_LABELS_SCHEMA))
    mixed = reliability(Cohort(runs, observed("ab"), codes), labels).row(0, named=True)
    assert mixed == row, "annotators are raters as judges are"
    assert reliability(Cohort(runs, observed("a"), codes)).is_empty()
