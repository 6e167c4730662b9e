"""The numbers of the demo, wherever they are printed: commands, pages, files, Python, documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cohort_places import (
    PLACES,
    QUICK,
    Desk,
    Numbers,
    assert_same_numbers,
    leaderboard_text,
    site_board,
)

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/tutorial.md")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The demo, scored."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        (folder / "scratch").mkdir()
        desk = Desk(Path("runs"), folder / "scratch")
        desk.call("demo")
        patched.chdir(folder / "ambjudge-demo")
        desk.call("score", "runs", "--out", "cards.jsonl")
        yield desk


def test_the_same_numbers_stand_everywhere(desk: Desk) -> None:
    numbers = assert_same_numbers(desk)
    assert numbers.n_runs == 30
    assert set(numbers.agents or {}) == {"agent-ash", "agent-elm"}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_each_place_shows_numbers(desk: Desk, place) -> None:
    """Else a place that changed its form would agree with all others in silence."""
    numbers: Numbers = place(desk)
    assert len(numbers.runs or ()) == 30 or len(numbers.agents or ()) == 2


@pytest.mark.parametrize(
    "choice",
    [{"where": "agent=agent-elm"}, {"where": "code:E3 S3<0.5"}, {"judge": "replay:answers"}],
    ids=lambda choice: " ".join(choice.values()),
)
def test_a_part_has_the_same_numbers_everywhere(desk: Desk, choice: dict[str, str]) -> None:
    part = Desk(desk.runs, desk.scratch, **choice)
    assert_same_numbers(part, [*QUICK, leaderboard_text, site_board])
