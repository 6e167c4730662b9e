"""Labelling by single keys; what is labelled here is what `agreement` reads."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ambjudge.cli import app as command_line
from ambjudge.judge.store import open_store
from ambjudge.judge.trust.human_labels import Labels, export_labels, read_labels, stored_labels
from ambjudge.tui.dialogs import Confirm, Prompt, Reader
from ambjudge.tui.label_screen import LabelScreen
from ambjudge.tui.run_screen import RunScreen
from click.testing import CliRunner

DATA = Path(__file__).parents[1] / "data"
NAME = "bccd-lite-04"


@pytest.fixture
def labelling(opened: Any, until: Any) -> Any:
    """`async with labelling() as (app, pilot, screen)`: the label screen of one run, NAME unless
    another is named."""

    @asynccontextmanager
    async def begin(name: str = NAME, **options: Any) -> Any:
        async with opened(query=f"id:{name}", store=True, **options) as (app, pilot):
            await pilot.press("enter")
            await until(
                pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.opened is not None
            )
            await pilot.press("a")
            await until(
                pilot,
                lambda: isinstance(app.screen, LabelScreen) and app.screen.transcript.turn == 1,
            )
            yield app, pilot, app.screen

    return begin


async def test_labels_made_by_keys_reach_files_store_and_agreement(
    labelling: Any, until: Any, text_of: Any, tmp_path: Path
) -> None:
    gold = read_labels(DATA / "recorded" / "labels" / "gold" / f"{NAME}.json")
    async with labelling(size=(120, 60)) as (app, pilot, screen):
        assert "hidden" not in text_of(app)
        assert "58.7" not in text_of(app)
        for turn in sorted(gold.stages):
            await pilot.press(gold.stages[turn][1])
        assert screen.draft.now.stages == gold.stages
        for id, value in sorted(gold.criteria.items()):
            await pilot.press("right_square_bracket")
            assert screen.panel.selected == id
            if screen.draft.now.criteria.get(id) != value:
                await pilot.press("plus" if value == 1 else "minus")
            if value == 0.5:
                await pilot.press("plus")
        await pilot.press("e", "x", "3")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press(*"unseen", "enter")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("ctrl+s")
        await pilot.pause()
        text = text_of(app)
        assert "criteria 12 of 12" in text
        assert "stages 9 of 9" in text or "stages" in text
    file = tmp_path / "labels" / "tester" / f"{NAME}.json"
    labels = read_labels(file)
    assert labels.criteria == gold.criteria
    assert labels.codes["E3"].why == "unseen"
    with open_store(tmp_path / "store.db") as store:
        assert next(stored_labels(store, NAME, "tester")) == labels
    cards = DATA / "tui" / "cards.jsonl"
    arguments = [
        "agreement",
        str(cards),
        "--labels",
        str(tmp_path / "labels"),
        "--annotator",
        "tester",
        "--json",
    ]
    result = CliRunner().invoke(command_line, arguments, standalone_mode=False, obj=None)
    assert result.exception is None, result.output
    rows = json.loads(result.stdout)["rows"]
    assert any(row.get("criterion") == "S1a" or "S1a" in json.dumps(row) for row in rows)


async def test_labels_are_taken_up_where_they_were_left(labelling: Any, tmp_path: Path) -> None:
    async with labelling() as (_, pilot, _screen):
        await pilot.press("1", "1", "ctrl+s")
    async with labelling() as (_, pilot, screen):
        assert screen.draft.now.stages == {1: "S1", 2: "S1"}
        await pilot.press("2")
        assert screen.draft.now.stages[1] == "S2"


async def test_undo_and_leaving_with_unsaved_labels(
    labelling: Any, until: Any, tmp_path: Path
) -> None:
    async with labelling() as (app, pilot, screen):
        await pilot.press("1", "2", "u")
        assert screen.draft.now.stages == {1: "S1"}
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape")
        assert app.screen is screen
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
    assert not (tmp_path / "labels").exists()


async def test_values_stages_search_and_verdicts_on_demand(
    labelling: Any, until: Any, text_of: Any
) -> None:
    async with labelling(size=(120, 60)) as (app, pilot, screen):
        await pilot.press("plus")
        assert "Choose a criterion first" in text_of(app)
        await pilot.press("left_square_bracket")
        assert screen.panel.selected == "S3"
        await pilot.press("minus", "plus")
        assert screen.draft.now.criteria["S3"] == 0.5
        await pilot.press("full_stop")
        assert "S3 always applies" in text_of(app)
        await pilot.press("l", "e")
        assert screen.draft.now.evidence["S3"] == (2,)
        assert "★2" in text_of(app)

        await pilot.press("0", "2", "i", "i")
        assert screen.draft.now.stages == {1: "S2", 2: "S2", 3: "S2"}
        await pilot.press("slash", *"numpy", "enter")
        assert screen.transcript.hits[1] == 9
        assert "You and" not in text_of(app)
        await pilot.press("r")
        assert "You and heuristic" in text_of(app), "verdicts are hidden until asked for"
        await pilot.press("r")
        assert "You and" not in text_of(app)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Reader))
        assert "Cite this turn" in text_of(app)


async def test_notes_only_looked_at_stay_as_they_were(
    labelling: Any, until: Any, tmp_path: Path
) -> None:
    notes = "from \u202eelsewhere"
    export_labels([Labels(run=NAME, annotator="tester", notes=notes)], tmp_path / "labels")
    async with labelling() as (app, pilot, screen):
        for keys, expected in (([], notes), (["end", "x"], "from ⇄elsewherex")):
            await pilot.press("m")
            await until(pilot, lambda: isinstance(app.screen, Prompt))
            await pilot.press(*keys, "enter")
            await until(pilot, lambda: app.screen is screen)
            assert screen.draft.now.notes == expected


async def test_the_plan_leads_to_the_next_run(labelling: Any, until: Any) -> None:
    async with labelling() as (app, pilot, screen):
        await pilot.press("1", "greater_than_sign")
        await until(
            pilot, lambda: isinstance(app.screen, LabelScreen) and app.screen is not screen, 30
        )
        assert app.screen.run.id != NAME
