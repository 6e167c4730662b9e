"""Runs of several agents: who spoke, and what another agent did within a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.cli import run as run_command
from ambjudge.judge.store import open_store
from ambjudge.trajectories.reading.load import load_run
from ambjudge.views.run_columns import columns_of
from ambjudge.views.run_rows import row_of
from ambjudge.views.transcript_layout import blocks_of
from ambjudge.web.site import Site

IMPORTS = Path(__file__).parents[1] / "data" / "imports"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A trial with a sub-agent, and a talk of two agents; the sub-agent is scored, too."""
    folder = tmp_path_factory.mktemp("several") / "runs"
    sources = [str(IMPORTS / name) for name in ("harbor-steps/kidney__s1", "autogen/result.json")]
    run_command(["-q", "import", "auto", *sources, "--out", str(folder)])
    assert run_command(["-q", "score", str(folder)]) == 0
    assert run_command(["-q", "score", str(folder / "kidney__s1" / "parts")]) == 0
    return folder


def test_a_part_is_shown_with_its_run_and_counts_as_none(
    runs: Path, tmp_path: Path, capsys
) -> None:
    capsys.readouterr()
    assert run_command(["export", str(runs)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["run_id"] for row in rows] == ["kidney__s1", "result"]
    # By itself it is what was asked for.
    assert run_command(["export", str(runs / "kidney__s1" / "parts")]) == 0
    assert [json.loads(line)["run_id"] for line in capsys.readouterr().out.splitlines()] == [
        "kidney__s1-agent-a1"
    ]
    main, part = (
        load_run(runs / "kidney__s1"),
        load_run(runs / "kidney__s1/parts/kidney__s1-agent-a1"),
    )
    assert (main.parts, main.part_of) == (("kidney__s1-agent-a1",), None)
    assert (part.parts, part.part_of) == ((), "kidney__s1")
    with open_store(runs / ".ambjudge" / "ambjudge.db") as store:
        cards = list(store.iter_cards())
    listed = [row_of(number, card.model_dump()) for number, card in enumerate(cards)]
    assert {row.id: row.parts for row in listed} == {"kidney__s1": 1, "result": None}
    assert "parts" in [column.key for column in columns_of(listed)]
    assert "parts" not in [
        column.key for column in columns_of([row for row in listed if not row.parts])
    ]
    site = Site(tmp_path / "site")
    for card in cards:
        site.add(card)
    pages = {path.name[:6]: path.read_text("utf-8") for path in (tmp_path / "site/pages").iterdir()}
    assert sorted(pages) == ["kidney", "result"]
    assert "Parts of other agents (1)" in pages["kidney"]
    assert "Parts of other agents" not in pages["result"]
    assert '<span class="speaker">critic</span>' in pages["result"]


def test_the_heading_of_a_turn_says_who_spoke(runs: Path, capsys) -> None:
    headings = [
        line
        for block in blocks_of(load_run(runs / "result"))
        if block.kind == "turn"
        for line in block.lines
    ]
    assert headings == ["Turn 1 · coder", "Turn 2 · critic"]
    assert run_command(["segment", str(runs / "result"), "--why"]) == 0
    text = capsys.readouterr().out
    assert "coder: python run.py" in text
    assert "critic: Done." in text
    assert run_command(["segment", str(runs / "result"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["speakers"] == ["coder", "critic"]
