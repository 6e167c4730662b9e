"""Every table on every kind of cohort: numbers finite, gaps explained; the published pattern on the
paper preset."""

from __future__ import annotations

import polars as pl
import pytest
from ambjudge.analysis import (
    TABLES,
    all_tables,
    code_prevalence,
    cohort,
    cost_score,
    recovery,
    simulate,
    stage_profile,
)
from ambjudge.analysis.simulated.simulated_cards import simulated_scorecards
from ambjudge.analysis.simulated.simulation import settings_of
from ambjudge.analysis.statistics.interval_estimates import ESTIMATE_SCHEMA, adjust_p_values
from ambjudge.analysis.tables.codes_read import CODES
from ambjudge.analysis.tables.label_tables import read_labels
from ambjudge.errors import ConfigError
from hypothesis import given, settings
from hypothesis import strategies as st

SCORES = ("agentic", "task_score", "S1", "S2", "S3", "S4", "S5")
BASE = simulate(seed=3, n_tasks=4, n_rep=3).frame()
DEGENERATE = {
    "no runs": BASE.head(0),
    "one run": BASE.head(1),
    "two runs": BASE.head(2),
    "one agent": BASE.filter(pl.col("agent") == "agent-1"),
    "one task": BASE.filter(pl.col("task") == BASE["task"][0]),
    "one tier": BASE.filter(pl.col("tier") == "lite"),
    "no repeats": BASE.filter(pl.col("repeat") == 1),
    "no codes": BASE.with_columns(pl.lit(False).alias(c) for c in CODES),
    "every code": BASE.with_columns(pl.lit(True).alias(c) for c in CODES),
    "unknown codes": BASE.with_columns(pl.lit(None, dtype=pl.Boolean).alias(c) for c in CODES),
    "only ids": BASE.select("run_id"),
    "no scores": BASE.with_columns(
        pl.lit(None, dtype=pl.Float64).alias(c) for c in ("overall", *SCORES)
    ),
    "constant scores": BASE.with_columns(
        *(pl.lit(0.5).alias(c) for c in SCORES), pl.lit(50.0).alias("overall")
    ),
    "zero scores": BASE.with_columns(pl.lit(0.0).alias(c) for c in ("overall", *SCORES)),
    "duplicates": pl.concat([BASE, BASE]),
    "free runs": BASE.with_columns(cost_usd=pl.lit(0.0)),
    "all disqualified": BASE.with_columns(
        pl.lit(True).alias("disqualified"), pl.lit(0.0).alias("overall")
    ),
}


def explained(table: pl.DataFrame) -> bool:
    """Every missing value or interval has a reason, every number is finite."""
    for name, kind in table.schema.items():
        if kind.is_float():
            assert table[name].drop_nulls().is_finite().all(), name
    if "reason" in table.columns and "value" in table.columns:
        gaps = table.filter(pl.col("value").is_null() & pl.col("reason").is_null())
        assert gaps.is_empty(), gaps
    return True


QUICK = {"no runs", "one run", "one task", "free runs", "duplicates", "zero scores"}
"""What differs most; `make test-slow` has them all."""


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(r, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, r in DEGENERATE.items()
    ],
)
def test_degenerate_cohorts_give_tables_with_reasons(runs):
    tables = all_tables(runs, labels=read_labels([]))
    assert list(tables) == [name for name in TABLES.names if TABLES.get(name).needs != "texts"]
    assert all(explained(table) for table in tables.values())


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.floats(0, 1)
)
@pytest.mark.slow
def test_small_random_cohorts(seed, agents, tasks, repeats, kept):
    runs = simulate(seed=seed, n_agents=agents, n_tasks=tasks, n_rep=repeats).frame()
    runs = runs.sample(fraction=kept, seed=seed)
    assert all(
        explained(table)
        for table in all_tables(
            runs, only=[n for n in TABLES.names if n not in ("explained", "robustness")]
        ).values()
    )


def test_full_cohort_has_every_table_and_finite_numbers():
    sim = simulate(seed=1, n_tasks=10, n_rep=6)
    tables = all_tables(cohort(simulated_scorecards(sim)))
    assert [name for name in TABLES.names if not TABLES.get(name).needs] == list(tables)
    assert all(explained(table) for table in tables.values())
    assert set(ESTIMATE_SCHEMA) <= set(tables["code_effects"].columns)
    assert tables["code_stages"]["firings"].sum() == int(sim.codes.sum())
    assert tables["stage_use"].filter(pl.col("what") == "S3 turns")["value"].null_count() == 0


def test_published_pattern_on_the_paper_preset():
    runs = simulate(seed=11).frame()
    profile = dict(
        stage_profile(runs)
        .filter((pl.col("agent") == "(all)") & (pl.col("population") == "new"))
        .select("stage", "value")
        .iter_rows()
    )
    stages = {name: profile[name] for name in ("S1", "S2", "S3", "S4", "S5")}
    assert min(stages, key=stages.get) == "S3"
    assert max(stages, key=stages.get) == "S2"
    shares = code_prevalence(runs).filter(
        (pl.col("measure") == "share of fired codes") & (pl.col("population") == "new")
    )
    for code, published in (("E3", 0.377), ("E5", 0.381), ("E1", 0.009)):
        row = shares.filter(pl.col("code") == code).row(0, named=True)
        assert abs(row["value"] - published) < 3 * row["se"] + 0.01
    ratio = code_prevalence(runs).filter(pl.col("measure") == "ratio").row(0, named=True)
    assert ratio["lo"] < 110 < ratio["hi"]
    assert 0.3 < recovery(runs)["value"][0] < 0.55


def test_a_ratio_without_knowledge_codes_keeps_its_bound():
    row = (
        code_prevalence(BASE.with_columns(pl.lit(False).alias("E1")))
        .filter(pl.col("measure") == "ratio")
        .row(0, named=True)
    )
    assert row["value"] is None
    assert row["hi"] is None
    assert row["lo"] > 5


def test_rates_and_scores_stay_on_their_scale():
    runs = BASE.head(15)
    assert code_prevalence(runs).filter(pl.col("measure") != "ratio")["lo"].drop_nulls().min() >= 0
    profile = stage_profile(runs).filter(pl.col("stage") != "overall")
    assert profile["hi"].drop_nulls().max() <= 1


def test_correlations_by_hand():
    runs = simulate(seed=2, n_tasks=6, n_rep=4).frame()
    found = cost_score(runs, costs=("cost_usd",)).filter(pl.col("track") == "(all)")
    by_kind = dict(found.select("kind", "value").iter_rows())
    assert by_kind["runs"] == pytest.approx(runs.select(pl.corr("cost_usd", "overall")).item())
    assert by_kind["runs_spearman"] == pytest.approx(
        runs.select(pl.corr("cost_usd", "overall", method="spearman")).item()
    )
    cell = ["agent", "track", "task", "tier"]
    gaps = runs.select(pl.col(c) - pl.col(c).mean().over(cell) for c in ("cost_usd", "overall"))
    assert by_kind["within_cell"] == pytest.approx(
        gaps.select(pl.corr("cost_usd", "overall")).item()
    )


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError):
        all_tables(BASE, only=["nonsense"])
    with pytest.raises(ConfigError):
        settings_of("nonsense")
    with pytest.raises(ConfigError):
        settings_of("paper", n_tasks=0)
    with pytest.raises(ConfigError):
        simulate("paper", nonsense=1)


def test_adjusted_p_values_leave_missing_ones_out():
    assert adjust_p_values([None, 0.02, None, 0.03], "holm") == pytest.approx(
        [None, 0.04, None, 0.04]
    )
    assert adjust_p_values([0.02, None, 0.03], "fdr_bh") == pytest.approx([0.03, None, 0.03])
    assert adjust_p_values([None], "holm") == [None]
