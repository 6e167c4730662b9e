"""Every screen as text, compared with what it looked like when someone last looked; and the two
pictures of the README.

After a wanted change: `AMBJUDGE_UPDATE_SCREENS=1 pytest tests/tui/test_screens.py`, and look at the
difference.
"""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.tui.compare_screen import CompareScreen
from ambjudge.tui.label_screen import LabelScreen
from ambjudge.tui.run_screen import RunScreen

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "screens"
PRESUMED = ROOT / "tests" / "data" / "tui" / "presumed.jsonl"
"""The recorded runs scored without a model, as README shows it."""
TEXTS = Path(__file__).with_name("screens")
UPDATE = bool(os.environ.get("AMBJUDGE_UPDATE_SCREENS"))


@pytest.fixture
def still(opened: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The browser on the recorded runs by a relative path, so that no screen shows a machine's
    folders."""
    monkeypatch.chdir(ROOT / "tests" / "data" / "recorded")

    @asynccontextmanager
    async def begin(**options: Any) -> Any:
        async with opened(Path("runs"), **options) as found:
            yield found

    return begin


def same(name: str, text: str) -> None:
    """Compare with the text kept under this name."""
    file = TEXTS / f"{name}.txt"
    if UPDATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text + "\n")
    assert file.is_file(), f"{file} is missing: run with AMBJUDGE_UPDATE_SCREENS=1"
    assert text + "\n" == file.read_text()


def picture(app: Any, name: str, title: str) -> None:
    """Keep the screen as a picture, and compare its words with the one that is there."""
    svg = app.export_screenshot(title=title)
    file = PICTURES / f"{name}.svg"
    if UPDATE:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(svg)
    assert file.is_file(), f"{file} is missing: run with AMBJUDGE_UPDATE_SCREENS=1"
    assert words(svg) == words(file.read_text())


def words(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)


async def open_run(app: Any, pilot: Any, until: Any) -> None:
    await pilot.press("enter")
    await until(
        pilot,
        lambda: isinstance(app.screen, RunScreen) and app.screen.transcript.layout_.height > 0,
    )


@pytest.mark.parametrize("size", [(80, 24), (120, 30)], ids=["80x24", "120x30"])
async def test_runs(still: Any, text_of: Any, size: tuple[int, int]) -> None:
    async with still(size=size) as (app, pilot):
        await pilot.press("j", "space")
        await pilot.pause()
        same(f"runs-{size[0]}x{size[1]}", text_of(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_run(still: Any, until: Any, text_of: Any, size: tuple[int, int]) -> None:
    async with still(size=size, query="id:bccd-lite-04") as (app, pilot):
        await open_run(app, pilot, until)
        await pilot.press("d")
        await pilot.pause()
        same(f"run-{size[0]}x{size[1]}", text_of(app))


@pytest.mark.parametrize(("tab", "times"), [("plan", 1), ("files", 2), ("json", 3)])
async def test_tabs(still: Any, until: Any, text_of: Any, tab: str, times: int) -> None:
    async with still(size=(110, 30), query="id:kidney-lite-01") as (app, pilot):
        await open_run(app, pilot, until)
        await pilot.press(*["v"] * times)
        await pilot.pause()
        same(f"tab-{tab}", text_of(app))


async def test_label(still: Any, until: Any, text_of: Any) -> None:
    async with still(size=(110, 36), query="id:bccd-lite-04") as (app, pilot):
        await open_run(app, pilot, until)
        await pilot.press("a")
        await until(
            pilot, lambda: isinstance(app.screen, LabelScreen) and app.screen.transcript.turn == 1
        )
        await pilot.press("1", "2", "right_square_bracket", "minus", "e")
        await pilot.pause()
        same("label", text_of(app))


async def test_compare(still: Any, until: Any, text_of: Any) -> None:
    async with still(size=(110, 36)) as (app, pilot):
        await pilot.press("space", "space", "c")
        await until(
            pilot, lambda: isinstance(app.screen, CompareScreen) and len(app.screen.sides) == 2
        )
        await pilot.press("right_square_bracket", "e")
        await pilot.pause()
        same("compare", text_of(app))


@pytest.mark.parametrize(
    ("name", "keys"),
    [("help", "question_mark"), ("analysis", "A"), ("views", "v"), ("sort", "s"), ("judge", "R")],
)
async def test_dialogues(still: Any, until: Any, text_of: Any, name: str, keys: str) -> None:
    async with still(size=(100, 36), judge=lambda name: RulesJudge()) as (app, pilot):
        await pilot.press(keys)
        await until(pilot, lambda: app.screen is not app.runs_screen)
        await pilot.pause(0.2)
        same(name, text_of(app))


async def test_picture_of_the_runs(still: Any) -> None:
    async with still(cards=PRESUMED, size=(120, 28), theme="textual-dark") as (app, pilot):
        await pilot.press(*["j"] * 7)
        await pilot.pause()
        picture(app, "runs", "ambjudge browse runs/")


async def test_picture_of_a_run(still: Any, until: Any) -> None:
    async with still(
        cards=PRESUMED, size=(120, 38), query="id:crc-lite-01", theme="textual-dark"
    ) as (app, pilot):
        await open_run(app, pilot, until)
        while app.screen.panel.selected != "S3":
            await pilot.press("right_square_bracket")
        await pilot.press("e")
        await pilot.pause()
        picture(app, "run", "ambjudge browse runs/ · a criterion and its evidence")
