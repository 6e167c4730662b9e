"""`--by`: what a row stands for, and which boards there are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis.report.findings import findings
from ambjudge.analysis.report.report_tables import TABLES, all_tables
from ambjudge.analysis.report.results import Analysis
from ambjudge.analysis.statistics.ranking import boards_by, leaderboard
from ambjudge.analysis.tables.cohorts import cohort, frame
from ambjudge.analysis.tables.grouping import (
    ROWS,
    mixture_notes,
    row_kind,
    split_groupings,
    with_row_names,
)
from ambjudge.analysis.tables.score_names import OVERALL
from ambjudge.cli import run
from ambjudge.errors import ConfigError
from ambjudge.views.frame_rows import rows_of_frame
from ambjudge.views.run_filter import compile_query

CARDS = Path(__file__).parents[1] / "data" / "tui" / "cards.jsonl"


@pytest.fixture(scope="module")
def runs() -> pl.DataFrame:
    """The golden runs, two agents of which used two models."""
    table = frame(CARDS)
    number = pl.int_range(pl.len())
    return table.with_columns(
        agent=pl.format("agent-{}", number % 2), model=pl.format("model-{}", number % 3)
    )


@pytest.mark.parametrize("by", [*ROWS, "judge", "tier"])
def test_rows_are_named_by_their_columns(runs: pl.DataFrame, by: str) -> None:
    named = with_row_names(runs, by)
    columns = list(ROWS.get(by, (by,)))
    assert named["agent"].n_unique() == runs.select(columns).n_unique()
    assert named.drop("agent").equals(runs.drop("agent"))


def test_rows_that_mix_models_say_so(runs: pl.DataFrame) -> None:
    notes = mixture_notes(runs, "agent")
    assert notes[:2] == [
        "agent-0 mixes 3 models: model-0, model-1, model-2.",
        "agent-1 mixes 3 models: model-0, model-1, model-2.",
    ]
    assert mixture_notes(runs, "model")[0] == "model-0 mixes 2 agents: agent-0, agent-1."
    assert not any("mixes" in note for note in mixture_notes(runs, "agent+model"))


@pytest.mark.parametrize("kind", ["overall", "track", "tier", "task-tier"])
def test_a_board_is_that_of_its_runs_alone(runs: pl.DataFrame, kind: str) -> None:
    boards = boards_by(runs, "agentic", [kind])
    columns = kind.split("-")
    if kind != "overall":
        assert boards["name"].n_unique() == runs.select(columns).n_unique()
    for name in boards["name"].unique():
        of_board = runs
        if kind != "overall":
            label = pl.concat_str(
                [pl.col(c).fill_null("(unknown)") for c in columns], separator=" · "
            )
            of_board = runs.filter(label == name)
        alone = leaderboard(of_board, "agentic", scopes=("overall",))
        board = boards.filter(pl.col("name") == name)
        assert board["value"].to_list() == pytest.approx(alone["value"].to_list())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nonsense"], "no such field"),
        (["overall_lo"], "no such field"),
        (["agent", "model"], "both say what a row stands for"),
    ],
)
def test_impossible_groupings_are_refused(
    runs: pl.DataFrame, names: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        split_groupings(names, runs)


def test_a_task_in_one_tier_by_model(capsys: pytest.CaptureFixture[str]) -> None:
    """The central table of the benchmark's site."""
    where = "tier=lite track=vqa"
    command = ["leaderboard", str(CARDS), "--by", "model", "--by", "task-tier", "--where", where]
    assert run(["-q", *command, "--outcome", "agentic", "--json"]) == 0
    board = json.loads(capsys.readouterr().out)
    assert board["by"] == "model"
    assert {row["scope"] for row in board["rows"]} == {"task-tier"}
    assert all(row["name"].endswith(" · lite") for row in board["rows"])


def analyze_frame(runs: pl.DataFrame, by: str) -> Analysis:
    """The analysis of these runs without the tables that take longest."""
    slow = ("explained", "robustness", "effect_parts", "placebo", "circularity", "rank_stability")
    names = [name for name in TABLES.names if name not in slow]
    tables = all_tables(runs, only=names, by=by)
    return Analysis(replace(cohort([]), runs=runs), tables, by=by)


def test_tables_follow_the_rows_or_say_that_they_do_not(runs: pl.DataFrame) -> None:
    by = "agent+model"
    # All ran the same, so that means compare.
    runs = runs.with_columns(track=pl.lit("vqa"), task=pl.lit("vqa-task"), tier=pl.lit("lite"))
    kind, names = row_kind(runs, by), set(with_row_names(runs, by)["agent"])
    by_agent, results = analyze_frame(runs, "agent"), analyze_frame(runs, by)
    for name, table in results.tables.items():
        about = TABLES.find(name).about
        title, note = results.heading(name)
        assert ("does not follow the grouping" in note) == (about == "agents"), name
        if about == "rows":
            text = f"{title} {note}".replace(kind.plural, "").replace(kind.singular, "")
            assert "agent" not in text, name
        elif "group" not in table.columns and "without" not in table.columns:
            assert table.equals(by_agent[name]), name
        if about == "rows" and "agent" in table.columns:
            assert set(table["agent"]) - {"(all)", "interaction", None} <= names, name
            assert by in results[name].columns, name
    numbers = ("agent", "value", "lo", "hi", "rank", "runs")
    board = results.tables["leaderboard"].select(numbers)
    assert board.equals(leaderboard(with_row_names(runs, by)).select(numbers))
    assert set(results.tables["effects_by_agent"]["group"]) == names
    assert set(results.tables["leave_agent_out"]["without"]) == names
    (first,) = (f for f in findings(results.tables, OVERALL, kind) if "highest mean" in f.text)
    matches = compile_query(first.runs)
    is_named = [name in first.text for name in with_row_names(runs, by)["agent"]]
    assert any(is_named)
    assert [matches(row) for row in rows_of_frame(runs, 0)] == is_named


def test_the_report_and_the_json_follow_the_rows(tmp_path: Path, capsys) -> None:
    assert run(["analyze", str(CARDS), "--by", "model", "--table", "stages", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    models = set(frame(CARDS)["model"].fill_null("(unknown)"))
    assert printed["by"] == "model"
    assert {row["agent"] for row in printed["tables"]["stages"]["rows"]} == {"(all)", *models}
    assert printed["tables"]["stages"]["title"] == "Stage profile by model"
    assert run(["analyze", str(CARDS), "--by", "track"]) == 2
    assert "is a board" in capsys.readouterr().err
