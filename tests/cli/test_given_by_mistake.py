"""Files that a command is given by mistake are named for what they are."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from ambjudge import console
from ambjudge.cli import run

CARDS = Path(__file__).parents[1] / "data" / "tui" / "cards.jsonl"


@pytest.mark.parametrize("command", ["score", "codes", "segment"])
@pytest.mark.parametrize("count", [1, 3], ids=["one-card", "several"])
def test_scorecards_are_no_runs(
    command: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cards.jsonl"
    lines = CARDS.read_text("utf-8").splitlines()[:count]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert run([command, str(path)]) == 2
    err = capsys.readouterr().err
    assert "holds scorecards, not a run (analyze, leaderboard" in err
    assert "is not JSON" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["cards.jsonl"], "no store is made"


def test_a_warning_is_written_once_and_on_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = console.LogHandler()
    log = logging.Logger("test")
    log.addHandler(handler)
    progress = console.Progress("scored", 3)
    progress.live = True
    progress.busy("computing")
    for _ in range(2):
        log.warning("1 scorecard has the id of another run")
    log.warning("something else")
    *_, shown = capsys.readouterr().err.split("\x1b[2K")
    assert shown.splitlines() == ["1 scorecard has the id of another run", "something else"]
