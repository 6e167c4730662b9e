"""What the tests of the browser share: the recorded runs with frozen scorecards, an app on them,
and patience."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ambjudge.judge.session import ScoreOptions
from ambjudge.judge.store import open_store
from ambjudge.tui.app import Browser
from ambjudge.views.collection import Collection
from ambjudge.views.saved_views import Views
from textual.pilot import Pilot

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "recorded"
CARDS = DATA / "tui" / "cards.jsonl"
"""Scorecards of the recorded runs, frozen: what the browser shows must not depend on what judges
think today."""

Open = Callable[..., Any]


async def _until(pilot: Pilot[Any], holds: Callable[[], bool], seconds: float = 15) -> None:
    """Let the app work until something holds."""
    waited = 0.0
    while not holds():
        assert waited < seconds, "it never came to hold"
        await pilot.pause(0.02)
        waited += 0.02
    await pilot.pause()


def _text_of(app: Browser) -> str:
    """The screen as characters."""
    rows = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows)


@pytest.fixture
def until() -> Callable[..., Any]:
    """`await until(pilot, lambda: ...)`: let the app work until something holds."""
    return _until


@pytest.fixture
def text_of() -> Callable[[Browser], str]:
    """The screen of an app as characters."""
    return _text_of


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """`async with opened() as (app, pilot)`: the browser on the recorded runs; nothing is written
    but below tmp_path."""

    @asynccontextmanager
    async def begin(
        path: Path = RECORDED / "runs",
        *,
        cards: Path | None = CARDS,
        size: tuple[int, int] = (120, 36),
        store: bool = False,
        score: bool = False,
        ready: bool = True,
        **options: Any,
    ) -> AsyncIterator[tuple[Browser, Pilot[None]]]:
        collection = Collection(
            path,
            options=ScoreOptions,
            cards=cards,
            new_store=(lambda: open_store(tmp_path / "store.db")) if store else None,
        )
        app = Browser(
            collection,
            views=Views(tmp_path / "views.json"),
            score=score,
            annotator="tester",
            labels=tmp_path / "labels",
            **options,
        )
        try:
            async with app.run_test(size=size, notifications=True) as pilot:
                if ready:
                    await _until(pilot, lambda: app.runs_screen.listed)
                yield app, pilot
        finally:
            collection.close()

    return begin
