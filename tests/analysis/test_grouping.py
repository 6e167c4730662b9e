"""`--by`: what a row stands for, and which boards there are."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis.statistics.ranking import boards_by, leaderboard
from ambjudge.analysis.tables.cohorts import frame
from ambjudge.analysis.tables.grouping import (
    ROWS,
    mixture_notes,
    split_groupings,
    with_row_names,
)
from ambjudge.cli import run
from ambjudge.errors import ConfigError

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
