"""Code effects: equal to statsmodels, right on planted truth, refusing what the data cannot say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis import (
    circularity,
    cliff,
    code_effects,
    decompose_effects,
    effects_by,
    explained_variance,
    leaderboard,
    placebo,
    robustness,
    simulate,
)
from ambjudge.analysis.simulated.simulation import truth
from ambjudge.analysis.statistics.alternative_models import wild_p
from ambjudge.analysis.statistics.interval_estimates import error_for_new_tasks
from ambjudge.analysis.statistics.jackknife import (
    cr3,
    cross_products,
    delete_one_regression,
    demean,
    group_ids,
    jackknife_of_sums,
)
from ambjudge.analysis.statistics.overlap_weighting import overlap_weighted_effect
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def sim():
    return simulate(seed=1)


@pytest.fixture(scope="module")
def table(sim):
    return sim.frame()


def within(sim):
    cell, n = group_ids(sim.agent, sim.task, sim.tier)
    return (
        demean(sim.codes.astype(float), cell, n),
        demean(sim.true.overall[:, None], cell, n)[:, 0],
        cell,
    )


def test_cr3_equals_statsmodels(sim):
    sm = pytest.importorskip("statsmodels.api")
    x, y, _ = within(sim)
    b, v = cr3(x, y, sim.task)
    other = sm.OLS(y, x).fit(cov_type="cluster-crv3", cov_kwds={"groups": sim.task}, use_t=True)
    np.testing.assert_allclose(b, other.params, rtol=1e-9)
    np.testing.assert_allclose(v, other.cov_params(), rtol=1e-8, atol=1e-12)


def test_deletions_are_the_fits_without_each_task(sim):
    x, y, _ = within(sim)
    _, deleted = delete_one_regression(cross_products(x, y[:, None], sim.task, 24))
    for task in (0, 7, 23):
        keep = sim.task != task
        np.testing.assert_allclose(
            deleted[task, :, 0], np.linalg.lstsq(x[keep], y[keep], rcond=None)[0], rtol=1e-8
        )


def test_overlap_by_hand():
    """One cell a task: the difference within each pattern of the other code, weighed by n p (1 -
    p)."""
    codes = np.array([[1, 0], [0, 0], [0, 0], [1, 1], [0, 1], [1, 0], [0, 0], [0, 1]], dtype=bool)
    y = np.array([0.0, 10, 20, 5, 6, 30, 32, 1])[:, None]
    cell = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    fit = overlap_weighted_effect(codes, 0, y, cell, cell)
    # Strata: (cell 0, other off) -15 weighs 2/3; (cell 0, other on) -1 weighs 1/2; (cell 1, other
    # off) -2 weighs 1/2.
    assert fit.value[0] == pytest.approx((-15 * 2 / 3 - 1 / 2 - 2 / 2) / (2 / 3 + 1 / 2 + 1 / 2))
    assert fit.deleted[0, 0] == pytest.approx(-2)
    assert (fit.n_compared, fit.n_cells) == (3, 2)
    both = np.column_stack([codes[:, 0], codes[:, 0]])
    assert overlap_weighted_effect(both, 0, y, cell, cell) is None, (
        "nothing to compare where another code always fires with it"
    )


def test_two_names_for_one_code_are_said_to_be_one(table):
    twin = table.with_columns(E5=pl.col("E3"), E5_judge=pl.col("E3_judge"))
    rows = code_effects(twin).filter(pl.col("code").is_in(["E3", "E5"]))
    assert rows["value"].null_count() == rows.height
    assert rows["reason"].str.contains("always fire together").all()


def test_tags_read_off_the_score_are_split_out_at_any_share(table):
    low = pl.col("overall").rank() <= 300
    mixed = table.with_columns(E3=pl.col("E3") | low, E3_score=low)
    plain, split = (
        code_effects(each).filter(pl.col("code") == "E3").row(0, named=True)
        for each in (table, mixed)
    )
    assert split["value"] == pytest.approx(plain["value"])
    assert any("derived from the score" in note for note in split["warnings"])


def test_missing_scores_bound_the_effect(table):
    crashed = table.with_columns(overall=pl.when(pl.col("completed")).then(pl.col("overall")))
    row = code_effects(crashed).filter(pl.col("code") == "E5").row(0, named=True)
    whole = code_effects(table).filter(pl.col("code") == "E5").row(0, named=True)
    assert row["missing_lo"] < whole["value"] < row["missing_hi"]
    assert whole["missing_lo"] is None


def test_planted_effects_are_inside_the_intervals(table):
    both = code_effects(table)
    found = both.filter(pl.col("population") == "new")
    widest = dict(both.group_by("code").agg(pl.col("se").max()).iter_rows())
    for code, target in truth(n_tasks=200).items():
        row = found.filter(pl.col("code") == code).row(0, named=True)
        assert abs(row["value"] - target["overlap"]) < 4 * widest[code]
    by_code = dict(zip(found["code"], found["status"], strict=True))
    assert by_code == {"E1": "few firings", "E2": "ok", "E3": "ok", "E4": "ok", "E5": "ok"}
    few = found.filter(pl.col("code") == "E1").row(0, named=True)
    assert few["warnings"][0].startswith("few firings: ")
    assert (few["p"], few["p_holm"]) == (None, None), "a status that denies a test stands beside it"
    assert found.filter(pl.col("code") == "E1")["p_holm"].item() is None


def test_parts_add_up_exactly(table):
    parts = decompose_effects(table)
    for code in ("E3", "E5"):
        values = dict(parts.filter(pl.col("code") == code).select("part", "value").iter_rows())
        total = (
            code_effects(table)
            .filter((pl.col("code") == code) & (pl.col("population") == "new"))["value"]
            .item()
        )
        assert sum(
            values[p] for p in ("S1", "S2", "S3", "S4", "S5", "task", "other")
        ) == pytest.approx(total, abs=1e-9)
        assert values["judge part"] + values["rule part"] + values["task part"] == pytest.approx(
            total, abs=1e-6
        )
    assert values["task part: zeroed"] + values["task part: quality"] == pytest.approx(
        values["task part"]
    )
    assert abs(values["task part: quality"]) < 2 < -values["task part: zeroed"], (
        "E5 costs Task by rule"
    )
    # Incomplete deliverables cost S4 and S5 by rule alone: about 8 points.
    rule = parts.filter((pl.col("code") == "E5") & (pl.col("part") == "rule part"))["value"].item()
    assert -9.5 < rule < -7


def test_other_models_surround_the_default(table):
    found = robustness(table, models=("cell_ols", "additive_ols", "logit", "permutation", "wild"))
    e3 = dict(
        found.filter((pl.col("code") == "E3") & pl.col("target").is_in(["AME", "regression"]))
        .select("model", "value")
        .iter_rows()
    )
    assert all(-33 < value < -21 for value in e3.values())
    wild = found.filter(pl.col("model") == "wild")
    assert wild["reason"].str.contains("15 tasks").all()


def test_wild_bootstrap_finds_what_is_there():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((400, 2))
    task = np.arange(400) // 50
    y = 0.8 * x[:, 0] + rng.standard_normal(400)
    assert wild_p(x, y, task, 0, 999, 1)[0] < 0.05
    assert wild_p(x, y, task, 1, 999, 1)[0] > 0.05
    assert wild_p(np.zeros((400, 2)), y, task, 1, 99, 1) == (None, None)


def test_circular_tags_are_refused_and_named():
    table = simulate(
        "null", seed=2, circ_thr=0.3, tag_error=True, sens=(0,) * 5, spec=(1 - 1e-12,) * 5
    ).frame()
    row = code_effects(table).filter(pl.col("code") == "E3").row(0, named=True)
    assert row["value"] is None
    assert "circular" in row["reason"]
    verdict = circularity(table).filter(pl.col("code") == "E3")["verdict"].item()
    assert verdict == "defined by outcome"
    # Without the recorded source, the pattern alone gives it away.
    unmarked = table.with_columns(pl.lit(False).alias("E3_score"), pl.col("E3").alias("E3_judge"))
    assert (
        circularity(unmarked).filter(pl.col("code") == "E3")["verdict"].item()
        == "looks defined by outcome"
    )


def test_placebo_is_quiet_without_and_loud_with_confounding():
    quiet = placebo(simulate(seed=5).frame())
    assert not quiet["verdict"].str.contains("alarm").any()
    loud = placebo(simulate(seed=5, conf=1.5).frame())
    assert loud["verdict"].str.contains("alarm").any()
    said = code_effects(simulate(seed=5, conf=1.5).frame())
    assert set(said.filter(pl.col("code") != "E1")["status"]) == {"confounded"}


REFUSED = {
    "too few": (
        simulate(n_tasks=4, n_rep=3, seed=1)
        .frame()
        .with_columns(pl.col("run_id").is_in(["run-000001", "run-000009"]).alias("E1")),
        "E1",
        "too few firings",
    ),
    "never": (
        simulate(n_tasks=4, n_rep=3, seed=1).frame().with_columns(pl.lit(False).alias("E1")),
        "E1",
        "never fired",
    ),
    "always": (
        simulate(n_tasks=4, n_rep=3, seed=1).frame().with_columns(pl.lit(True).alias("E1")),
        "E1",
        "every run",
    ),
    "no repeats": (simulate(n_tasks=30, n_rep=1, seed=1).frame(), "E3", "no repeats"),
    "one task": (simulate(n_tasks=1, n_tracks=1, n_rep=40, seed=1).frame(), "E3", "one task"),
}


@pytest.mark.parametrize(("runs", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals_say_why(runs, code, words):
    row = (
        code_effects(runs)
        .filter((pl.col("code") == code) & (pl.col("population") == "new"))
        .row(0, named=True)
    )
    assert row["lo"] is None
    assert words in row["reason"]


def test_the_one_task_case_still_speaks_of_these_tasks():
    runs = simulate(n_tasks=1, n_tracks=1, n_rep=60, seed=1).frame()
    row = (
        code_effects(runs)
        .filter((pl.col("code") == "E3") & (pl.col("population") == "same"))
        .row(0, named=True)
    )
    assert row["lo"] < row["value"] < row["hi"] < 0


def test_cliff_shows_the_published_shape(table):
    found = cliff(table)
    drop = dict(
        found.filter((pl.col("group") == "1") & (pl.col("population") == "new"))
        .select("kind", "value")
        .iter_rows()
    )
    assert -52 < drop["drop_raw"] < -40
    assert abs(drop["drop_within_cell"]) < abs(drop["drop_raw"])
    zero = found.filter(
        (pl.col("kind") == "mean") & (pl.col("group") == "0") & (pl.col("population") == "new")
    )["value"].item()
    clean = table.filter(pl.col("n_codes") == 0)["overall"].mean()
    assert zero == pytest.approx(clean)


def test_effects_by_agent_shrink_towards_the_middle(table):
    found = effects_by(table).filter(pl.col("code") == "E3")
    spread, shrunk = found["value"].std(), found["shrunk"].std()
    assert shrunk < spread
    assert found["p_bh"].max() < 0.05


def test_codes_explain_much_on_unseen_tasks(table):
    found = dict(explained_variance(table).select("model", "value").iter_rows())
    assert 0.4 < found["linear"] < 0.9
    none = explained_variance(
        table.with_columns(pl.lit(False).alias(c) for c in ("E1", "E2", "E3", "E4", "E5"))
    )
    assert none["value"].null_count() == 2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.floats(-50, 50)), min_size=1, max_size=60
    )
)
def test_jackknife_of_a_mean_equals_its_definition(rows):
    task, cell = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    y = np.array([r[2] for r in rows])
    found = jackknife_of_sums(
        np.column_stack([y, np.ones(len(y))]),
        lambda s: s[..., :1] / s[..., 1:],
        task,
        cell + 4 * task,
    )
    assert found.value[0] == pytest.approx(y.mean(), abs=1e-9)
    names = np.unique(task)
    if len(names) > 1:
        deleted = np.array([y[task != t].mean() for t in names])
        expected = np.sqrt((len(names) - 1) / len(names) * ((deleted - y.mean()) ** 2).sum())
        floor = error_for_new_tasks(expected, len(names) - 1, found.se_same[0], found.df_same)
        assert found.se_new[0] == pytest.approx(floor, abs=1e-8)
    else:
        assert np.isnan(found.se_new[0])


@pytest.mark.parametrize(
    ("column", "values", "low", "high"),
    [
        ("outcome.solved", pl.col("repeat") > 1, 0, 1),
        ("group.style", 1 - 0.01 * pl.col("E3").cast(pl.Float64) * pl.col("repeat"), 0, 1),
        ("outcome.delta", pl.when("E3").then(-90.0 * pl.col("repeat")).otherwise(1.0), None, None),
    ],
)
def test_intervals_stay_on_the_scale_that_is_known(column, values, low, high):
    """Yes and no, and groups of a rubric, end at 0 and 1; of what nobody knows the scale of,
    nothing is cut."""
    table = (
        simulate(n_tasks=3, n_tracks=1, n_rep=3, seed=4)
        .frame()
        .with_columns(values.cast(pl.Float64).alias(column))
    )
    board = leaderboard(table, column).drop_nulls("lo")
    if low is None:
        assert board["lo"].min() < -100
        assert board["hi"].max() > 1
    else:
        assert board["lo"].min() >= low
        assert board["hi"].max() == high, "cut: the t interval would go on"


def test_tasks_that_carry_the_effect_leave_few_degrees_of_freedom():
    """Of ten tasks one has most to compare: what differs between tasks enters with the square of
    that."""
    rng = np.random.default_rng(3)
    task = np.repeat(np.arange(10), [400, *[24] * 9])
    fired = rng.random(len(task)) < 0.5
    effect = rng.standard_normal(10)[task] * fired
    noisy = overlap_weighted_effect(
        fired[:, None], 0, (effect + 20 * rng.standard_normal(len(task)))[:, None], task, task
    )
    differing = overlap_weighted_effect(
        fired[:, None], 0, (effect + 0.01 * rng.standard_normal(len(task)))[:, None], task, task
    )
    alike = overlap_weighted_effect(
        fired[:240, None],
        0,
        rng.standard_normal((240, 1)),
        task[:240] * 0 + np.arange(240) % 10,
        np.arange(240) % 10,
    )
    assert differing.df_new[0] < 0.2
    assert noisy.df_new[0] > differing.df_new[0]
    assert 8 < alike.df_new[0] <= 9
