"""The numbers of the demo, wherever they are printed: commands, pages, files, Python, documents."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import ambjudge
import polars as pl
import pytest
from ambjudge.rounding import fixed
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
_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DECIMAL = re.compile(r"(?<![\w.,/-])[-−]?\d+\.\d+(?![\w.]|\.\d)|(?<![\w.])\.\d{2,3}\b")
_COUNTS = re.compile(r"\b\d+ of \d+ (?:quotes|cases|criteria)\b")


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
    for cells in (numbers.agents or {}).values():
        names = {name.partition(" x")[0] for name in cells}
        assert names >= {"n", "overall", "same lo", "same hi", "failed", "cost_usd", "S3", "turns"}


@pytest.mark.parametrize(
    "choice",
    [{"where": "agent=agent-elm"}, {"where": "code:E3 S3<0.5"}, {"judge": "replay:answers"}],
    ids=lambda choice: " ".join(choice.values()),
)
def test_a_part_has_the_same_numbers_everywhere(desk: Desk, choice: dict[str, str]) -> None:
    part = Desk(desk.runs, desk.scratch, **choice)
    assert_same_numbers(part, [*QUICK, leaderboard_text, site_board])


def test_a_difference_is_the_same_everywhere(desk: Desk) -> None:
    names = ("agent-ash", "agent-elm")
    said = json.loads(desk.call("compare", *names, "cards.jsonl", "--json")[0])
    result = ambjudge.compare(*names, "cards.jsonl")
    assert result.to_dict() == said
    text = " ".join(desk.call("compare", *names, "cards.jsonl")[0].split())
    assert " ".join(result.sentences) in text
    (row,) = result.table.filter(pl.col("population") == "same").to_dicts()
    shown = [fixed(row[name], 1) for name in ("value", "lo", "hi")]
    assert f"is {shown[0]} points higher than" in text
    assert "95 % interval [{}, {}] for the same tasks".format(*shown[1:]) in text
    pairs = ambjudge.analyze("cards.jsonl", only=["pairwise"])["pairwise"]
    (pair,) = pairs.filter(pl.col("population") == "same").to_dicts()
    assert [pair[name] for name in ("value", "lo", "hi")] == [
        row[name] for name in ("value", "lo", "hi")
    ]
    means = [cells["overall x1.0"] for cells in site_board(desk).agents.values()]
    assert [number for number in means if number not in text] == []


def block_lines(page: str) -> list[tuple[str, list[str]]]:
    """Each command that a page shows after `$`, with the lines of output below it."""
    shown: list[tuple[str, list[str]]] = []
    for block in _BLOCK.findall((ROOT / page).read_text("utf-8")):
        command: list[str] | None = None
        for line in block.splitlines():
            if line.startswith("$ ambjudge "):
                command = []
                shown.append((line.removeprefix("$ ambjudge "), command))
            elif line.startswith("$ "):
                command = None
            elif command is not None and line.strip():
                command.append(line)
    return shown


def output_of(desk: Desk, line: str) -> str:
    """What a command of a page prints, on stdout and stderr."""
    args = shlex.split(line)
    if args[0] in ("demo", "cd"):
        return ""
    return "\n".join(desk.call(*args, code=(0, 1)))


@pytest.fixture(scope="module")
def printed(desk: Desk) -> dict[str, str]:
    """What the commands of README and tutorial print, by command."""
    # What writes files and shows nothing would only take time.
    lines = [
        line
        for page in ("README.md", "docs/tutorial.md")
        for line, output in block_lines(page)
        if output or "--out" not in line
    ]
    return {line: output_of(desk, line) for line in dict.fromkeys(lines)}


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_pages_show_what_the_commands_print(page: str, printed: dict[str, str]) -> None:
    """Each line of output that a page shows; it may leave out columns."""
    for command, lines in block_lines(page):
        if not lines:
            continue
        rows = [line.split() for line in printed[command].splitlines()]
        for line in lines:
            assert any(is_in_order(line.split(), row) for row in rows), f"{command}: {line}"


def is_in_order(words: list[str], row: list[str]) -> bool:
    """Whether the row has all these words in this order."""
    cells = iter(row)
    return all(word in cells for word in words)


def test_prose_of_the_tutorial_has_the_numbers_of_the_commands(
    desk: Desk, printed: dict[str, str]
) -> None:
    """Every number with decimals and every count, wherever the tutorial mentions it."""
    text = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    prose = _BLOCK.sub("", text)
    everything = " ".join(" ".join(printed.values()).split())
    everything += output_of(desk, "score runs/")
    numbers = {*_DECIMAL.findall(prose), *_COUNTS.findall(prose)}
    assert len(numbers) > 8
    missing = sorted(number for number in numbers if number not in everything)
    assert not missing
