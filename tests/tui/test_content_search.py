"""Finding runs by what stands in them: exactly the runs whose turns hold the words, however the
files escape them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ambjudge.judge.session import ScoreOptions
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import iter_runs
from ambjudge.views.collection import Collection
from ambjudge.views.content_search import ContentSearch

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"


def found(path: Path, *words: str) -> list[set[str]]:
    collection = Collection(path, options=ScoreOptions)
    rows = [row for batch in collection.batches() for row in batch]
    contents = ContentSearch(collection)
    assert list(contents.search(rows, list(words))) == [row.number for row in rows]
    return [{rows[n].id for n in contents.holding(word)} for word in words]


@pytest.mark.parametrize(
    "words",
    ["Traceback", "np.load", "agents_outputs", 'print("', "\n", "}", "é", "no such words at all"],
)
def test_it_finds_what_reading_every_run_finds(words: str) -> None:
    def holds(run: Run) -> bool:
        return any(
            words.lower() in part.lower()
            for turn in run.turns
            for part in (turn.text, turn.reasoning, turn.code, turn.output, *turn.replies)
        )

    expected = {run.id for run in iter_runs(RECORDED) if isinstance(run, Run) and holds(run)}
    assert found(RECORDED, words) == [expected]


@pytest.mark.parametrize("ascii", [True, False], ids=["escaped", "utf-8"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_other_letters_and_encodings(tmp_path: Path, ascii: bool, encoding: str) -> None:
    messages = [
        {"role": "user", "content": "the brief names zebra"},
        {"role": "assistant", "content": 'Größe "ok"\tüber 3 Fälle'},
    ]
    (tmp_path / "conversation.json").write_bytes(
        json.dumps(messages, ensure_ascii=ascii).encode(encoding)
    )
    assert found(tmp_path, "GRÖßE", "fälle", 'größe "OK"', "\tüber", "zebra") == [
        {tmp_path.name}
    ] * 4 + [set()]


def test_broken_runs_hold_nothing(tmp_path: Path) -> None:
    for name, text in (("a", "{"), ("b", '[{"role": "assistant", "content": "needle"}]')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conversation.json").write_text(text + "needle" * (name == "a"))
    assert found(tmp_path, "needle") == [{"b"}]


async def test_the_table_shows_them_and_a_run_opens_at_the_words(
    opened: Any, until: Any, text_of: Any
) -> None:
    async with opened() as (app, pilot):
        screen = app.runs_screen
        await pilot.press("slash", *"text:nms")
        await until(
            pilot, lambda: [screen.rows[n].id for n in screen.table.order] == ["bccd-lite-01"]
        )
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.screen is not screen and app.screen.opened is not None)
        assert "nms" in text_of(app).lower()
