"""A run as a person reads it: stages, failures, codes, evidence, search, folds, tabs, the next
run."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ambjudge.tui.dialogs import Reader
from ambjudge.tui.run_screen import RunScreen


@pytest.fixture
def reading(opened: Any, until: Any) -> Any:
    """`async with reading("kidney-lite-01") as (app, pilot, screen)`."""

    @asynccontextmanager
    async def begin(name: str, **options: Any) -> Any:
        async with opened(query=f"id:{name}", **options) as (app, pilot):
            await pilot.press("enter")
            await until(
                pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.opened is not None
            )
            await until(pilot, lambda: app.screen.transcript.layout_.height > 0)
            yield app, pilot, app.screen

    return begin


async def test_a_run_opens_with_its_scorecard_and_is_searched_and_copied(
    reading: Any, text_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading("kidney-lite-02") as (app, pilot, screen):
        assert "Turn 1 · S1" in text_of(app)
        assert "Overall 38.9" in text_of(app)
        assert screen.transcript.turn == 1
        await pilot.press("l", "y")
        assert app.clipboard == "kidney-lite-02#2"

        await pilot.press("g", "slash", *"import", "enter")
        here, hits = screen.transcript.hits
        assert here == 1
        assert hits > 3
        assert f"hit 1 of {hits}" in text_of(app)
        await pilot.press("N")
        assert screen.transcript.hits[0] == hits
        await pilot.press("n")
        assert screen.transcript.hits[0] == 1
        await pilot.press("slash", *"no such words", "enter")
        assert screen.transcript.hits == (0, 0)
        await pilot.press("slash", "escape")
        assert screen.transcript.has_focus

        assert "import" in screen.transcript.turn_text(1) + screen.transcript.turn_text(2)
        monkeypatch.setenv("EDITOR", " ")
        # Headless terminals cannot be handed over: a message, no crash.
        await pilot.press("ctrl+e")
        assert app.screen is screen
        screen.notify("[red]\x1b[2J[/red] [/Users/foo]", markup=True)
        await pilot.pause()
        assert "[red]␛[2J[/red] [/Users/foo]" in text_of(app), (
            "a message is sanitised and never markup"
        )
        await pilot.press("tab")
        assert screen.focused is screen.panel


async def test_turns_stages_failures_codes_and_the_mouse(reading: Any) -> None:
    async with reading("bccd-lite-04") as (_app, pilot, screen):
        run, card = screen.opened.run, screen.opened.card
        await pilot.press("l")
        assert screen.transcript.turn == 2
        await pilot.press("h")
        assert screen.transcript.turn == 1
        await pilot.press("dollar_sign")
        assert screen.transcript.turn == len(run.turns)
        await pilot.press("0")
        assert screen.transcript.turn == 1
        await pilot.press("4")
        assert card.turn_stages[screen.transcript.turn - 1] == "S4"
        failed = [turn.index for turn in run.turns if turn.failed]
        await pilot.press("0", "f")
        assert screen.transcript.turn == failed[0]
        await pilot.press("f")
        assert screen.transcript.turn == failed[1]
        await pilot.press("F")
        assert screen.transcript.turn == failed[0]
        await pilot.press("d")
        first = min(turn for code in card.codes for turn in code.turns)
        assert screen.transcript.turn == first
        assert screen.transcript.evidence_turns
        await pilot.press("backspace")
        assert screen.transcript.turn == failed[0]
        await pilot.press("0")
        await pilot.mouse_down("#transcript", offset=(4, 1))
        await pilot.hover("#transcript", offset=(16, 1))
        await pilot.mouse_up("#transcript", offset=(16, 1))
        await pilot.pause()
        assert screen.get_selected_text().startswith("Let me look")


async def test_criteria_lead_to_their_highlighted_words_and_back(
    reading: Any, text_of: Any
) -> None:
    async with reading("crc-lite-02") as (app, pilot, screen):
        start = screen.transcript.top
        criterion = screen.opened.card.stages["S1"].criteria[0]
        await pilot.press("right_square_bracket")
        assert screen.panel.target.id == criterion.id
        await pilot.press("e")
        item = criterion.evidence[0]
        layout = screen.transcript.layout_
        (block, line), spans = next(iter(screen.transcript.quoted.items()))
        assert layout.blocks[block].turn == item.turn
        assert layout.blocks[block].lines[line][spans[0].start : spans[0].end] in item.quote
        assert (
            screen.transcript.top
            <= layout.find(block, line)
            < screen.transcript.top + screen.transcript.size.height
        )
        assert "▸" in text_of(app)
        await pilot.press("backspace")
        assert screen.transcript.top == start

        while len(screen.panel.target.turns) < 2:
            await pilot.press("right_square_bracket")
        total = len(screen.panel.target.turns)
        places = []
        for _ in range(total + 1):
            await pilot.press("e")
            places.append(text_of(app).split("evidence ")[-1].split("\n")[0].strip())
        assert (places[0], places[-1]) == (f"1 of {total}", f"1 of {total}"), "evidence goes round"
        await pilot.press("E")
        assert f"evidence {total} of {total}" in text_of(app)

        screen.panel.focus()
        await pilot.press("g", "k", "enter")
        assert screen.transcript.evidence_turns
        place = (
            next(y for y, row in enumerate(text_of(app).split("\n")) if "↳ turn" in row)
            - screen.panel.region.y
        )
        before = screen.transcript.top
        screen.transcript.go(0)
        await pilot.click("#panel", offset=(8, place))
        assert screen.transcript.top == before


@pytest.fixture
def long_run(tmp_path: Path) -> Path:
    """One turn with an output of 300 lines."""
    call = {
        "id": "c",
        "type": "function",
        "function": {
            "name": "execute_code",
            "arguments": '{"language": "python", "code": "run()"}',
        },
    }
    output = json.dumps(
        {"exit_code": 0, "stdout": "\n".join(f"case {n} done" for n in range(300)), "stderr": ""}
    )
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "all cases", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": output},
    ]
    (tmp_path / "runs" / "long").mkdir(parents=True)
    (tmp_path / "runs" / "long" / "conversation.json").write_text(
        json.dumps({"messages": messages})
    )
    return tmp_path / "runs"


async def test_folds_kinds_and_a_hit_behind_a_fold(
    opened: Any, long_run: Path, until: Any, text_of: Any
) -> None:
    async with opened(long_run, cards=None) as (app, pilot):
        await pilot.press("enter")
        await until(
            pilot,
            lambda: isinstance(app.screen, RunScreen) and app.screen.transcript.layout_.height > 0,
        )
        layout = app.screen.transcript.layout_
        height = layout.height
        for key in ("z", "Z"):
            await pilot.press(key)
            assert layout.height == height + 268 - 1
            await pilot.press(key)
            assert layout.height == height
        row = next(y for y, text in enumerate(text_of(app).split("\n")) if "lines folded" in text)
        await pilot.click("#transcript", offset=(8, row - app.screen.transcript.region.y))
        assert layout.height == height + 268 - 1
        await pilot.press("Z", "t")
        assert all(b.hidden for b in layout.blocks if b.kind in ("output", "error"))
        await pilot.press("t", "t")
        assert layout.height == height

        assert "268 lines folded" in text_of(app)
        await pilot.press("slash", *"case 123 ", "enter")
        assert "case 123 done" in text_of(app), "a hit behind a fold opens it"
        assert app.screen.transcript.hits == (1, 1)
        assert not any(block.closed for block in layout.blocks)


async def test_resizing_keeps_the_place_and_the_minimap_leaves_it(reading: Any) -> None:
    async with reading("ldct-lite-01") as (_app, pilot, screen):
        await pilot.press("l", "l", "l")
        turn = screen.transcript.turn
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert screen.transcript.turn == turn
        await pilot.resize_terminal(160, 50)
        await pilot.pause()
        assert screen.transcript.turn == turn
        before = screen.transcript.top
        await pilot.click("#minimap", offset=(0, 40))
        assert screen.transcript.top > before


async def test_tabs_and_the_panel(reading: Any, text_of: Any) -> None:
    async with reading("kidney-lite-01") as (app, pilot, screen):
        await pilot.press("v")
        assert "plan.md from the file" in text_of(app)
        await pilot.press("v")
        assert "Delivered:" in text_of(app)
        await pilot.press("v")
        assert '"schema"' in text_of(app)
        await pilot.click("#tabs", offset=(3, 0))
        assert "S1a" in text_of(app)
        width = screen.transcript.size.width
        await pilot.press("s")
        assert screen.transcript.size.width > width


async def test_next_and_previous_run_of_the_filter(opened: Any, until: Any) -> None:
    async with opened(query="track:vqa") as (app, pilot):
        await pilot.press("enter")
        await until(
            pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.opened is not None
        )
        for key, name in (
            ("L", "vqa-std-01"),
            ("L", "vqa-std-02"),
            ("L", "vqa-std-02"),
            ("H", "vqa-std-01"),
        ):
            await pilot.press(key)
            await until(pilot, lambda name=name: app.screen.opened.row.id == name)
        await pilot.press("escape")
        assert app.runs_screen.table.current.id == "vqa-std-01"


async def test_a_run_without_a_card_is_scored_when_it_is_opened(
    reading: Any, until: Any, text_of: Any
) -> None:
    async with reading("crc-lite-01", cards=None) as (app, pilot, screen):
        await until(pilot, lambda: screen.opened.card is not None, 30)
        assert "S1a" in text_of(app)
        assert app.runs_screen.rows[screen.row.number].state == "scored"


async def test_no_character_of_a_line_is_lost_on_screen(reading: Any, text_of: Any) -> None:
    async with reading("bccd-lite-04", size=(80, 24)) as (app, _pilot, screen):
        width = screen.transcript.region.width
        rows = [row[screen.transcript.region.x :][:width] for row in text_of(app).split("\n")]
        code = screen.opened.run.turns[0].actions[0].code.split("\n")[0]
        assert code.replace(" ", "") in "".join(row[4 : width - 1] for row in rows).replace(" ", "")


async def test_hidden_characters_are_counted_and_spelled_out(
    opened: Any, tmp_path: Path, until: Any, text_of: Any
) -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "pass\rfail \u202eevil \x1b[2J"},
        {"role": "assistant", "content": "clean"},
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "conversation.json").write_text(json.dumps({"messages": messages}))
    async with opened(tmp_path, cards=None) as (app, pilot):
        await pilot.press("enter")
        await until(
            pilot,
            lambda: isinstance(app.screen, RunScreen) and app.screen.transcript.layout_.height > 0,
        )
        text = text_of(app)
        assert "3 hidden characters shown" in text
        assert "pass␍fail ⇄evil ␛[2J" in text
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Reader))
        assert "pass\\rfail \\u202eevil \\x1b[2J" in text_of(app)


async def test_help_explains_signs(reading: Any, until: Any, text_of: Any) -> None:
    async with reading("kidney-lite-02", size=(100, 90)) as (app, pilot, _screen):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Reader))
        text = text_of(app)
        for words in ("Next failure", "Next criterion", "Fold or unfold everything", "not met"):
            assert words in text
