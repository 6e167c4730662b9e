"""Leaderboards, paired differences, rank sets and planning."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis import (
    label_plan,
    leaderboard,
    pairwise,
    power,
    rank_sets,
    simulate,
    tier_contrast,
    variance_components,
    who_ran,
    wide,
)
from ambjudge.analysis.report.findings import findings
from ambjudge.analysis.statistics.board import Selection, board_cell, board_runs
from ambjudge.analysis.statistics.power_analysis import difference_noise
from ambjudge.analysis.statistics.score_variance import VarianceComponents, order_probability
from scipy import stats


@pytest.fixture(scope="module")
def table():
    return simulate(seed=1).frame()


def board(table, scope="overall"):
    return leaderboard(table, scopes=(scope,)).filter(pl.col("population") == "new")


def test_overall_is_the_mean_of_track_means(table):
    expected = (
        table.group_by("agent", "track")
        .agg(pl.col("overall").mean())
        .group_by("agent")
        .agg(pl.col("overall").mean())
    )
    both = board(table).join(expected, on="agent")
    np.testing.assert_allclose(both["value"], both["overall"], rtol=1e-12)
    assert board(table)["rank"].to_list() == list(range(1, 7))


def test_what_nobody_read_decides_no_rank(table):
    """Half of the first three agents' weight is presumed: the first is clear of all others, the
    next two's ranges meet."""
    first, second, third, *rest = board(table)["agent"]
    width = pl.col("agent").replace_strict({first: 0.1, second: 60.0, third: 60.0}, default=0.0)
    presumed = pl.when(width > 0).then(0.5).otherwise(0.0)
    half = table.with_columns(
        read_share=1 - presumed,
        presumed=presumed,
        overall_hi=pl.col("overall"),
        overall_lo=pl.col("overall") - width,
    )
    rows = {row["agent"]: row for row in board(half).iter_rows(named=True)}
    assert rows[first]["rank"] == 1
    lowest = rows[third]["range_lo"]
    for agent in (second, third, *(a for a in rest if rows[a]["range_hi"] >= lowest)):
        assert (rows[agent]["rank"], rows[agent]["rank_lo"]) == (None, None)
        assert any("unjudged criteria decide" in note for note in rows[agent]["warnings"])
    read = half.with_columns(read_share=1.0)
    assert board(read)["rank"].to_list() == list(range(1, 7)), (
        "ranges of what was read turn nothing"
    )


def test_balanced_task_error_by_the_textbook(table):
    """Equal cells: variance = sum over tracks of s2 of task means / n_tasks / K^2."""
    one = table.filter(pl.col("agent") == "agent-2")
    means = one.group_by("track", "task").agg(pl.col("overall").mean())
    by_track = means.group_by("track").agg(v=pl.col("overall").var() / pl.len())
    expected = np.sqrt(by_track["v"].sum()) / by_track.height
    row = board(table).filter(pl.col("agent") == "agent-2").row(0, named=True)
    assert row["se"] == pytest.approx(expected)
    assert row["df"] == pytest.approx(((4 / 5 + 1 / 4) ** 2) / (4 / 25 / 4 + 1 / 16 / 3)), (
        "Satterthwaite: one track has 4 tasks"
    )


def test_both_intervals_stand_side_by_side(table):
    shown = wide(leaderboard(table, scopes=("overall",)))
    assert shown.height == 6
    assert (shown["hi"] - shown["lo"] > shown["same_hi"] - shown["same_lo"]).all()


def test_pairs_are_paired():
    # Tasks differ by more than repeats do, so that their variation alone makes the error.
    one_track = simulate(seed=1, n_tracks=1, n_tasks=6, cell_sd=2.0).frame()
    row = pairwise(one_track).filter(pl.col("population") == "new").row(0, named=True)
    means = (
        one_track.group_by("agent", "task")
        .agg(pl.col("overall").mean())
        .pivot("agent", index="task", values="overall")
    )
    test = stats.ttest_rel(means[row["agent"]].to_numpy(), means[row["other"]].to_numpy())
    assert row["p"] == pytest.approx(test.pvalue)
    assert row["value"] / row["se"] == pytest.approx(test.statistic)


def test_rank_sets_hold_the_observed_rank(table):
    sets = rank_sets(table)
    rank = dict(board(table).select("agent", "rank").iter_rows())
    for row in sets.iter_rows(named=True):
        assert row["rank_lo"] <= rank[row["agent"]] <= row["rank_hi"]
    assert "p_first" not in sets.columns, "a share of resamples is no probability of being first"


def test_equal_agents_cannot_be_ranked():
    same = simulate(seed=4, ability=(0.0,) * 6).frame()
    assert rank_sets(same)["rank_hi"].min() == 6


def test_tasks_weigh_the_same_however_often_they_were_repeated(table):
    hard = (
        table.group_by("task")
        .agg(pl.col("overall").mean())
        .sort("overall")["task"]
        .head(12)
        .to_list()
    )
    fewer = (pl.col("agent") == "agent-3") & pl.col("task").is_in(hard) & (pl.col("repeat") > 3)
    means = [
        dict(board(each).select("agent", "value").iter_rows())
        for each in (table, table.filter(~fewer))
    ]
    assert abs(means[0]["agent-3"] - means[1]["agent-3"]) < 2.5
    assert any("3 to 12 runs a cell" in note for note in board(table.filter(~fewer))["warnings"][0])


def test_a_track_with_one_task_excludes_no_rank_by_itself():
    same = simulate(seed=11, ability=(0.0,) * 6, n_tracks=1, n_tasks=8, n_rep=2).frame()
    dealt = same.with_columns(
        track=pl.col("task").replace_strict(
            {t: f"track-{max(0, i - 3)}" for i, t in enumerate(same["task"].unique().sort())}
        )
    )
    assert rank_sets(dealt)["rank_hi"].min() == 6


def test_one_task_has_no_interval_for_new_tasks(table):
    rows = leaderboard(table.filter(pl.col("task") == table["task"][0]), scopes=("overall",))
    assert (
        rows.filter(pl.col("population") == "new")["reason"]
        .str.contains("variation between tasks is unknown")
        .all()
    )
    assert rows.filter(pl.col("population") == "same")["lo"].null_count() == 0


def test_a_track_with_one_task_borrows_its_spread(table):
    few = table.filter((pl.col("track") != "vqa") | (pl.col("task") == "vqa-01-task"))
    row = board(few).row(0, named=True)
    assert row["se"] > 0
    assert any("is taken from the other tracks" in note for note in row["warnings"])


@pytest.mark.parametrize(
    ("tracks_of_agents", "counts"),
    [
        pytest.param((2, 4, 4), {"agent-1": 2, "agent-2": 4, "agent-3": 4}, id="fewer than most"),
        pytest.param((-2, 2, 2), {"agent-1": 2, "agent-2": 2, "agent-3": 2}, id="as many, others"),
    ],
)
def test_agents_on_other_tracks_have_no_rank(tracks_of_agents, counts):
    """Tracks are counted over all agents: 2 and 2 of 4 are not comparable if they differ."""
    runs = simulate(seed=1, n_agents=3, n_tasks=10, n_rep=2).frame()
    tracks = sorted(runs["track"].unique())
    parts = []
    for i, n in enumerate(tracks_of_agents, 1):
        own = tracks[:n] if n > 0 else tracks[n:]
        parts.append(runs.filter((pl.col("agent") == f"agent-{i}") & pl.col("track").is_in(own)))
    table = pl.concat(parts)
    total = table["track"].n_unique()
    rows = board(table)
    assert rows["rank"].null_count() == 3
    for row in rows.iter_rows(named=True):
        note = f"has scores on only {counts[row['agent']]} of the {total} tracks"
        assert any(note in text for text in row["warnings"]) == (counts[row["agent"]] < total)


def test_missing_runs_count_both_ways(table):
    crashed = table.with_columns(
        overall=pl.when(pl.col("repeat") == 1).then(None).otherwise(pl.col("overall"))
    )
    row = board(crashed).row(0, named=True)
    assert row["value_missing_zero"] < row["value"]
    assert any("without overall" in note for note in row["warnings"])


def test_duplicates_and_second_judges_do_not_count_twice(table):
    other = table.head(50).with_columns(judge=pl.lit("another"))
    doubled = board(pl.concat([table, table, other]))
    plain = board(table)
    assert doubled["value"].to_list() == plain["value"].to_list()
    assert any("3,456 outdated" in note for note in doubled["warnings"][0])


def test_tier_contrast_without_credited_items(table):
    found = tier_contrast(table, outcomes=("S1", "S1_free")).filter(
        (pl.col("agent") == "(all)") & (pl.col("population") == "new")
    )
    change = dict(found.select("outcome", "value").iter_rows())
    assert change["S1"] > 20 > change["S1_free"], "most of the S1 gap is credit"


def test_mde_formula():
    parts = VarianceComponents(
        repeat=574.0, agent_task=30.0, task=102.0, n_tasks=24, n_rep=12, n_tiers=2
    )
    found = {
        (row["tasks"], row["repeats"]): row["mde80"]
        for row in power(difference_noise(parts), tasks=(24, 48), repeats=(5, 20)).iter_rows(
            named=True
        )
    }
    assert found[(24, 5)] == pytest.approx(8.0, abs=0.15)
    assert found[(48, 20)] == pytest.approx(3.9, abs=0.15)
    assert found[(48, 5)] < found[(24, 20)], "twice the tasks beat four times the repeats"


def test_components_are_recovered(table):
    found = variance_components(table)
    cells = table.group_by("agent", "task", "tier").agg(v=pl.col("overall").var())
    assert found.repeat == pytest.approx(cells["v"].mean())
    assert 0 < found.agent_task < 100
    chance = order_probability([66.5, 61.6, 59.0, 55.3, 51.6, 51.2], found)
    assert 0.1 < chance["same_order"] < 0.7


@pytest.mark.parametrize(
    "truth",
    [
        pytest.param((0.0,) * 6, id="equal agents"),
        pytest.param((15.0, 10.0, 8.0, 4.0, 0.5, 0.0), id="agents that differ"),
        pytest.param((1.0, 0.0, -5.0, -9.0), id="two close"),
    ],
)
def test_the_same_order_is_not_promised_more_often_than_it_comes(truth):
    """Agents whose means have an error of 3: what is printed, and what a second set shows."""
    parts = VarianceComponents(
        repeat=0.0, agent_task=9.0 * 24, task=0.0, n_tasks=24, n_rep=1, n_tiers=1
    )
    rng = np.random.default_rng(8)
    promised, kept = [], []
    for _ in range(300):
        first, second = (np.array(truth) + 3 * rng.standard_normal(len(truth)) for _ in range(2))
        promised.append(order_probability(list(first), parts, draws=400)["same_order"])
        kept.append((first.argsort() == second.argsort()).all())
    assert np.mean(promised) < np.mean(kept) + 0.13


def test_label_plan_oversamples_rare_codes_within_budget(table):
    plan = label_plan(table, 300)
    assert plan.height == 300
    assert plan["run_id"].n_unique() == 300
    share = plan.filter(pl.col("stratum") == "E2").height / 300
    assert share > 1.8 * table["E2"].mean()
    sizes = plan.unique("stratum")["stratum_size"].sum()
    assert sizes == table.height
    weight = (1 / plan["probability"]).sum()
    assert weight == pytest.approx(table.height)
    assert plan.equals(label_plan(table, 300)), "seeded"
    rest = label_plan(table, 50, already=plan["run_id"].to_list())
    assert not set(rest["run_id"]) & set(plan["run_id"])


@pytest.mark.parametrize("budget", [0, 3, 10**9], ids=["nothing", "tiny", "everything"])
def test_label_plan_at_the_edges(table, budget):
    small = table.head(40)
    assert label_plan(small, budget).height == min(budget, 40)


def test_wide_keeps_the_same_task_interval_where_numbers_beside_it_differ() -> None:
    from ambjudge.analysis import code_effects, simulate

    effects = code_effects(simulate("paper", seed=3).frame())
    shown = wide(effects)
    estimated = shown.filter(shown["lo"].is_not_null())
    assert estimated.height > 0
    assert estimated["same_lo"].null_count() < estimated.height


SKIPPED = [
    pytest.param({"agent-1": 8}, id="one skips the hard tasks"),
    pytest.param({"agent-1": 8, "agent-2": 2}, id="two skip some"),
    pytest.param({f"agent-{i + 1}": i + 1 for i in range(3)}, id="all skip some"),
]


@pytest.mark.parametrize("skipped", SKIPPED)
def test_an_agent_that_skipped_hard_tasks_is_not_ranked(skipped):
    frame = simulate(n_agents=3, ability=(0.0,) * 3, n_tracks=1, n_tasks=12, n_rep=3).frame()
    hard = frame.group_by("task").agg(pl.col("overall").mean()).sort("overall")["task"].to_list()
    if len(skipped) == 3:
        hard = hard[::2] + hard[1::2]
    runs = frame
    for number, (agent, count) in enumerate(skipped.items()):
        tasks = hard[number : number + count]
        runs = runs.filter(~((pl.col("agent") == agent) & pl.col("task").is_in(tasks)))
    board = leaderboard(runs, scopes=("overall",)).filter(pl.col("population") == "new")
    rows = {row["agent"]: row for row in board.to_dicts()}
    truth = leaderboard(frame, scopes=("overall",)).filter(pl.col("population") == "new")
    for agent, mean in truth.select("agent", "value").iter_rows():
        row = rows[agent]
        assert (row["rank"] is None) == (agent in skipped)
        assert row["of_cells"] == 24
        assert row["cells"] == 24 - 2 * skipped.get(agent, 0)
        assert row["value_missing_zero"] <= mean <= row["value_missing_best"]
        assert any("ran other tasks" in text for text in row["warnings"]) == (agent in skipped)
    ranks = [row["rank"] for row in rows.values()]
    assert ranks[: 3 - len(skipped)] == list(range(1, 4 - len(skipped)))
    first = findings({"leaderboard": board})[0].text
    assert not first.startswith(tuple(skipped))
    common = set.intersection(*(set(part["task"]) for _, part in runs.group_by("agent")))
    on_common = (
        runs.filter(pl.col("task").is_in(common))
        .group_by("agent", "task")
        .agg(pl.col("overall").mean())
    )
    for agent, mean in on_common.group_by("agent").agg(pl.col("overall").mean()).iter_rows():
        assert rows[agent]["value_common"] == pytest.approx(mean)
    where = {row["agent"]: row for row in who_ran(runs).to_dicts()}
    assert {agent: row["cells"] for agent, row in where.items()} == {
        agent: row["cells"] for agent, row in rows.items()
    }
    assert {agent for agent, row in where.items() if row["not_run"]} == set(skipped)
    on_site = board_cell(board_runs(runs), Selection()).rows["agent"]
    assert [row.label for row in on_site] == list(rows)
    assert {row.label for row in on_site if not row.ran_all} == set(skipped)
    for row in on_site:
        assert row.estimates["overall"][0].warnings == tuple(rows[row.label]["warnings"])
