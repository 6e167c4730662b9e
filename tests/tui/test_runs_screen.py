"""The table of runs as a person uses it: filter, sort, mark, views, score, open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ambjudge.errors import InputError
from ambjudge.tui.dialogs import Choice, Reader
from ambjudge.tui.run_screen import RunScreen
from ambjudge.views import run_columns
from ambjudge.views.run_columns import RunColumn
from ambjudge.views.saved_views import BUILT_IN, View
from textual.widgets import Input


def shown(app: Any) -> list[str]:
    table = app.runs_screen.table
    return [table.rows[n].id for n in table.order]


async def test_typing_a_filter_shows_what_matches_marks_are_a_facet_and_the_analysis_counts_them(
    opened: Any, until: Any, text_of: Any
) -> None:
    async with opened() as (app, pilot):
        await pilot.press("slash", *"code:E3 S3<0.5")
        assert shown(app) == ["bccd-std-01", "vqa-lite-01"]
        assert "15 runs · 2 shown" in text_of(app)
        await pilot.press("enter", "j")
        assert app.runs_screen.table.current.id == "vqa-lite-01"
        app.runs_screen.query_one("#filter", Input).value = "code:E3 colour:red"
        await pilot.pause()
        assert "no facet colour:" in text_of(app), "a mistake is named, and the rows stay"
        assert shown(app) == ["bccd-std-01", "vqa-lite-01"]
        await pilot.press("escape")
        assert len(shown(app)) == 15

        await pilot.press("g", "space", "space")
        assert "2 marked" in text_of(app)
        await pilot.press("slash", *"marked", "enter")
        assert shown(app) == ["bccd-lite-01", "bccd-lite-04"]
        await pilot.press("asterisk")
        assert app.runs_screen.table.marked == set()

        app.runs_screen.query_one("#filter", Input).value = "code:E3"
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, Reader))
        assert "8 scored of 8 shown runs" in text_of(app)
        assert "not read, fired in 8" in text_of(app), (
            "nobody read these runs, so that no share can be told"
        )


async def test_sorting_by_keys_by_name_and_by_a_click(opened: Any, until: Any) -> None:
    async with opened() as (app, pilot):
        table = app.runs_screen.table
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Choice))
        names = [column.key for column in table.columns]
        await pilot.press(*["down"] * names.index("overall"), "enter")
        await until(pilot, lambda: app.screen is app.runs_screen)
        assert table.sorting[0] == "overall"
        overall = [table.rows[n].overall for n in table.order]
        assert overall == sorted(overall)
        await pilot.press("r")
        assert [table.rows[n].overall for n in table.order] == sorted(overall, reverse=True)
        await pilot.press("greater_than_sign")
        drawn = [column.key for column, _ in table._columns]
        assert table.sorting[0] == drawn[drawn.index("overall") + 1]
        await pilot.click("RunsTable", offset=(3, 0))
        assert table.sorting[0] == "run"
        assert shown(app) == sorted(shown(app))
        await pilot.press("g", "j", "j")
        here = table.current.id
        await pilot.press("greater_than_sign", "r")
        assert table.current.id == here, "the cursor stays on its run"


async def test_views_are_saved_and_used_again(opened: Any, tmp_path: Path, until: Any) -> None:
    async with opened() as (app, pilot):
        await pilot.press("slash", *"track:vqa", "enter", "ctrl+s")
        await until(pilot, lambda: app.screen is not app.runs_screen)
        await pilot.press(*"mine", "enter")
        await until(pilot, lambda: app.screen is app.runs_screen)
    assert "track:vqa" in (tmp_path / "views.json").read_text()
    async with opened() as (app, pilot):
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, Choice))
        await pilot.press("end", "enter")
        await until(pilot, lambda: app.screen is app.runs_screen)
        assert shown(app) == ["vqa-lite-01", "vqa-std-01", "vqa-std-02"]


async def test_a_new_column_in_front_changes_no_order_and_no_view(
    opened: Any, until: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "views.json").write_text('[{"name": "mine", "sort": "s3", "descending": true}]')
    rank = RunColumn("rank", "#", 3, lambda row: str(row.number), lambda row: row.number)
    orders = []
    for columns in (run_columns.COLUMNS, (rank, *run_columns.COLUMNS)):
        monkeypatch.setattr(run_columns, "COLUMNS", columns)
        orders_of_views = {}
        async with opened(size=(220, 40)) as (app, pilot):
            screen = app.runs_screen
            drawn = [column.key for column, _ in screen.table._columns]
            assert drawn == [c.key for c in run_columns.columns_of(screen.rows)]
            assert ("rank" in drawn) == (columns[0] is rank)
            for view in (*BUILT_IN, *screen.views.own()):
                screen.use_view(view)
                await pilot.pause()
                if view.sort is not None:
                    assert screen.table.sorting == (view.sort, view.descending)
                orders_of_views[view.name] = shown(app)
        orders.append(orders_of_views)
    assert orders[0] == orders[1]
    overall = {row.id: row.overall for row in screen.rows}
    worst_first = [overall[id] for id in orders[1]["Worst first"]]
    assert worst_first == sorted(worst_first)


async def test_views_of_an_earlier_form_are_named_and_never_overwritten(
    opened: Any, until: Any, text_of: Any, tmp_path: Path
) -> None:
    file = tmp_path / "views.json"
    file.write_text('[{"name": "mine", "query": "", "column": 11, "descending": false}]')
    async with opened() as (app, pilot):
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, Choice))
        await until(pilot, lambda: "holds no views" in text_of(app))
        with pytest.raises(InputError, match="holds no views that this version can read"):
            app.runs_screen.views.save(View("other"))
    assert '"column": 11' in file.read_text()


async def test_runs_without_a_scorecard_are_scored_behind_the_table(
    opened: Any, until: Any, text_of: Any
) -> None:
    async with opened(cards=None, score=True) as (app, pilot):
        await until(pilot, lambda: all(row.state == "scored" for row in app.runs_screen.rows), 60)
        assert all(row.agentic is not None for row in app.runs_screen.rows)
        assert "without scorecard" not in text_of(app)


async def test_nothing_is_scored_unasked(opened: Any, text_of: Any) -> None:
    async with opened(cards=None) as (app, pilot):
        await pilot.pause(0.3)
        assert {row.state for row in app.runs_screen.rows} == {"waiting"}
        assert "15 without scorecard" in text_of(app)


async def test_a_folder_without_runs_says_so(
    opened: Any, tmp_path: Path, until: Any, text_of: Any
) -> None:
    async with opened(tmp_path, cards=None, ready=False) as (app, pilot):
        await until(pilot, lambda: "no conversation.json" in text_of(app))


async def test_help_lists_the_keys_and_the_filter_language(
    opened: Any, until: Any, text_of: Any
) -> None:
    async with opened(size=(100, 60)) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Reader))
        text = text_of(app)
        for words in ("Filter", "Compare two", "Mark all shown, or none", "Command palette"):
            assert words in text
        await pilot.press("G")
        assert "quotes keep spaces together" in text_of(app)
        await pilot.press("escape")
        assert app.screen is app.runs_screen


async def test_enter_and_a_double_click_open_a_run(opened: Any, until: Any) -> None:
    async with opened() as (app, pilot):
        await pilot.press("enter")
        await until(
            pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.opened is not None
        )
        await pilot.press("escape")
        assert app.screen is app.runs_screen
        await pilot.click("RunsTable", offset=(5, 3), times=2)
        await until(
            pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.opened is not None
        )
        assert app.screen.row.id == "bccd-std-01"


async def test_themes(opened: Any, until: Any, text_of: Any) -> None:
    async with opened(theme="textual-light") as (app, pilot):
        await pilot.press("enter")
        await until(
            pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.opened is not None
        )
        for theme in (app.theme, "nord", "ansi-dark"):
            app.theme = theme
            await pilot.pause()
            assert "Scorecard" in text_of(app)
