"""Columns follow what the runs have: the same choice in the terminal, the browser and the site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ambjudge.commands.render import row, rows
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import make_scorecard
from ambjudge.views.outcome_columns import MOST, outcome_columns
from ambjudge.views.run_columns import columns_of, fit_columns
from ambjudge.views.run_rows import RunRow, row_of
from ambjudge.web.site import Site
from tool_turns import run_of, shell

DATA = Path(__file__).parents[1] / "data" / "tui"


def medical() -> list[ScoreCard]:
    lines = (DATA / "cards.jsonl").read_text("utf-8").splitlines()
    return [ScoreCard.model_validate_json(line) for line in lines[:3]]


def foreign(folder: Path, **outcomes: Any) -> list[ScoreCard]:
    """Scorecards of two runs without a track."""
    values = {name: {"value": value} for name, value in outcomes.items()}
    head = {"agent": "coder", "model": "m-1", "task": "fix", "outcomes": values}
    return [
        make_scorecard(run_of(folder / str(n), shell("pytest", "", 1), "Done.", **head))
        for n in range(2)
    ]


def terminal(cards: list[ScoreCard], capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    rows([row(card) for card in cards])
    return re.split(r" {2,}|\n", capsys.readouterr().out.splitlines()[0])


def browser(cards: list[ScoreCard]) -> list[str]:
    listed = [row_of(n, card.to_dict()) for n, card in enumerate(cards)]
    return [column.key for column in columns_of(listed)]


def test_runs_without_a_track_have_outcomes_and_no_columns_of_the_benchmark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = foreign(tmp_path, resolved=False, reward=0.25)
    heads = terminal(cards, capsys)
    assert {"resolved", "reward", "Model", "Failed steps", "Turns"} <= set(heads)
    assert not {"S1", "S4", "S5", "Agentic", "Task", "Overall", "Tier", "Cost"} & set(heads)
    keys = browser(cards)
    assert {"outcome.resolved", "outcome.reward", "model", "failedsteps"} <= set(keys)
    assert not {"s1", "s4", "s5", "agentic", "taskscore", "overall", "tier", "cost"} & set(keys)


def test_runs_of_the_benchmark_have_no_empty_columns_either(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cards = medical()
    assert {"S1", "S5", "Agentic", "Task", "Overall", "Tier"} <= set(terminal(cards, capsys))
    assert {"s1", "s5", "agentic", "taskscore", "overall"} <= set(browser(cards))
    assert not any("outcome" in key for key in browser(cards))


def test_a_mixed_folder_has_the_columns_of_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = [*medical(), *foreign(tmp_path, resolved=True)]
    assert {"resolved", "S1", "Overall"} <= set(terminal(cards, capsys))
    assert {"outcome.resolved", "s1", "overall"} <= set(browser(cards))


def test_the_site_gets_the_same_outcomes_and_groups(tmp_path: Path) -> None:
    cards = foreign(tmp_path / "runs", reward=0.125, resolved=True)
    stage = cards[0].stages["S2"].model_copy(update={"score": 0.75})
    cards[0] = cards[0].model_copy(update={"stages": {**cards[0].stages, "style": stage}})
    site = Site(tmp_path / "site")
    for card in cards:
        site.add(card)
    site.finish()
    text = (tmp_path / "site" / "runs.js").read_text("utf-8")
    outcomes = json.loads(text[text.index("outcomes: [") + 10 : text.rindex("}")])
    assert [(each["name"], each["digits"]) for each in outcomes] == [
        ("reward", 3),
        ("resolved", 0),
    ]
    assert "group.style" in browser(cards)
    assert '{"style":0.75}' in text


COLUMNS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]] = {
    "one-number-of-decimals": (
        [{"reward": 1}, {"reward": 0.25}, {"reward": 0.5}],
        [("reward", ["1.00", "0.25", "0.50"])],
    ),
    "yes-and-no": ([{"ok": True}, {"ok": False}, {}], [("ok", ["yes", "no", "–"])]),
    "whole-numbers": ([{"n": 3}, {"n": 12}], [("n", ["3", "12"])]),
    "three-decimals-at-most": ([{"x": 1 / 3}], [("x", ["0.333"])]),
    "commonest-first": (
        [{"b": 1, "a.b": 1}, {"a.b": 1}, {"a.b": 2, "c": 1}],
        [("a.b", ["1", "1", "2"]), ("b", ["1", "–", "–"]), ("c", ["–", "–", "1"])],
    ),
    "plain-names-before-dotted": ([{"x.y": 1, "z": 2}], [("z", ["2"]), ("x.y", ["1"])]),
    "one-text-everywhere": ([{"mode": "unset"}, {"mode": "unset"}], []),
    "long-texts": ([{"summary": "x" * 60}], []),
    "texts": ([{"end": "done"}, {"end": "cut"}], [("end", ["done", "cut"])]),
}


@pytest.mark.parametrize(("outcomes", "columns"), COLUMNS.values(), ids=COLUMNS)
def test_outcomes_worth_a_column(
    outcomes: list[dict[str, Any]], columns: list[tuple[str, list[str]]]
) -> None:
    chosen = outcome_columns(outcomes)
    assert [
        (column.name, [column.text(each.get(column.name)) for each in outcomes])
        for column in chosen
    ] == columns


def test_many_outcomes_leave_room_for_the_rest() -> None:
    outcomes = {f"test_{n}": True for n in range(60)}
    listed = [RunRow(0, "a", "", "scored", outcomes=outcomes, agent="x", task="t", turns=3)]
    columns = columns_of(listed)
    assert sum(column.key.startswith("outcome.") for column in columns) == MOST
    for width in (80, 100, 140):
        drawn = fit_columns(width, columns)
        assert sum(size + 1 for _, size in drawn) + 1 <= width
        keys = [column.key for column, _ in drawn]
        assert {"run", "outcome.test_0", "codes"} <= set(keys)
