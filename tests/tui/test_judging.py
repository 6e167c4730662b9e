"""Judging and comparing from inside: cost first, then progress; two runs, and two scorecards of
one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.store import open_store
from ambjudge.rubrics.load import load_rubric
from ambjudge.tui.compare_screen import CompareScreen
from ambjudge.tui.dialogs import Confirm, Prompt

DATA = Path(__file__).parents[1] / "data"
RUNS = DATA / "recorded" / "runs"


async def test_judging_shows_its_cost_first_and_keeps_the_verdicts(
    opened: Any, until: Any, text_of: Any, tmp_path: Path
) -> None:
    for name in ("crc-lite-01", "crc-lite-02"):
        shutil.copytree(RUNS / name, tmp_path / "runs" / name)
    options = {"cards": None, "store": True, "judge": lambda name: RulesJudge()}
    async with opened(tmp_path / "runs", **options) as (app, pilot):
        await pilot.press("asterisk", "R")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        text = text_of(app)
        assert "2 runs by rules" in text
        assert "cost $0.0000" in text
        await pilot.press("y")
        await until(pilot, lambda: all(row.state == "scored" for row in app.runs_screen.rows), 30)
    with open_store(tmp_path / "store.db") as store:
        assert len(list(store.iter_cards())) == 2
        assert len(list(store.iter_verdicts())) > 10


async def test_saying_no_judges_nothing(opened: Any, until: Any, tmp_path: Path) -> None:
    async with opened(cards=None, store=True, judge=lambda name: RulesJudge()) as (app, pilot):
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        await pilot.pause(0.2)
        assert app.screen is app.runs_screen
        assert {row.state for row in app.runs_screen.rows} == {"waiting"}


async def test_judging_needs_a_store(opened: Any, until: Any, text_of: Any) -> None:
    async with opened(judge=lambda name: RulesJudge()) as (app, pilot):
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("enter")
        await until(pilot, lambda: "needs a store" in text_of(app))


async def test_two_marked_runs_side_by_side(opened: Any, until: Any, text_of: Any) -> None:
    async with opened() as (app, pilot):
        await pilot.press("space", "space", "c")
        await until(
            pilot, lambda: isinstance(app.screen, CompareScreen) and len(app.screen.sides) == 2
        )
        text = text_of(app)
        assert "100.0 → 58.7 -41.3" in text
        assert "≠ S1a ✓ → ✗" in text
        screen = app.screen
        await pilot.press("right_square_bracket", "e")
        first = load_rubric("detection").criteria()[0].id
        assert screen.pane.selected == first
        assert screen.views[0].quoted
        await pilot.press("v")
        assert any(
            line.target is not None and line.target.id == "S2a" for line in screen.pane.lines
        )
        await pilot.press("4")
        card = screen.sides[0].card
        assert card.turn_stages[screen.views[0].turn - 1] == "S4"
        await pilot.press("escape")
        assert app.screen is app.runs_screen


async def test_two_scorecards_of_one_run(
    opened: Any, until: Any, text_of: Any, tmp_path: Path
) -> None:
    line = next(
        text
        for text in (DATA / "tui" / "cards.jsonl").read_text().splitlines()
        if '"crc-lite-01"' in text
    )
    value = json.loads(line)
    value["judge"]["name"] = "another judge"
    changed = next(c for c in value["stages"]["S2"]["criteria"] if c["value"] == 1)
    changed["value"] = 0
    shutil.copytree(RUNS / "crc-lite-01", tmp_path / "runs" / "crc-lite-01")
    from ambjudge.trajectories.reading.load import load_run

    run = load_run(tmp_path / "runs" / "crc-lite-01")
    async with opened(tmp_path / "runs", store=True) as (app, pilot):
        store = app.collection.store_to_write()
        store.add_card(store.add_run(run), run.path, ScoreCard.model_validate(value))
        await pilot.press("c")
        await until(
            pilot, lambda: isinstance(app.screen, CompareScreen) and len(app.screen.sides) == 2
        )
        assert "another judge" in text_of(app)
        assert f"≠ {changed['id']} ✗ → ✓" in text_of(app)


async def test_one_scorecard_is_nothing_to_compare(opened: Any, text_of: Any) -> None:
    async with opened() as (app, pilot):
        await pilot.press("c")
        await pilot.pause()
        assert "Only one scorecard" in text_of(app)
