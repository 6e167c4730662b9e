"""What we ship comes through the doors that packages use, and does what each door asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge import score
from ambjudge.analysis.report.report_tables import TABLES
from ambjudge.cli import run
from ambjudge.commands.registry import COMMANDS, commands
from ambjudge.judge.checks.track import checked_track
from ambjudge.judge.judges.panel import Panel
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.select import JUDGES, make_judge
from ambjudge.testing import (
    ScriptedJudge,
    check_command,
    check_exporter,
    check_importer,
    check_judge,
    check_table,
    check_track,
    tiny_run,
)
from ambjudge.tracks import BUILT_IN, TRACKS
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.exporters import EXPORTERS


@pytest.mark.parametrize("name", BUILT_IN)
def test_tracks(name: str) -> None:
    track = checked_track(name)
    assert track is TRACKS.get(name)
    check_track(track)


def test_a_run_of_a_track_that_is_not_installed_here(tmp_path: Path) -> None:
    run = tiny_run(tmp_path).model_copy(update={"track": "elsewhere"})
    card = score(run)
    assert card.rubric.id == "workflow"
    assert (card.run.track, card.stages["S4"].score) == ("elsewhere", None)
    assert any(
        line.startswith(
            "unknown track elsewhere: S4 and S5 stay unscored; known: report_generation, vqa,"
        )
        for line in card.warnings
    )


@pytest.mark.parametrize(
    "judge",
    [RulesJudge(), ScriptedJudge({"S1a": 1}), Panel([RulesJudge(), ScriptedJudge({"S1a": 0})])],
    ids=lambda judge: judge.name,
)
def test_judges(judge) -> None:
    check_judge(judge)


def test_judges_are_found_by_what_stands_before_the_colon() -> None:
    assert set(JUDGES.names) == {"rules", "heuristic", "local", "replay", "reported"}
    assert make_judge(["rules"]).name == make_judge().name
    assert make_judge(["ollama:tiny"]).name == "ollama:tiny"


@pytest.mark.parametrize("name", IMPORTERS.names)
def test_importers(name: str) -> None:
    check_importer(IMPORTERS.get(name))


@pytest.mark.parametrize("name", EXPORTERS.names)
def test_exporters_and_the_way_back(name: str, tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    sample = tmp_path / "sample.json"
    sample.write_text(json.dumps(check_exporter(EXPORTERS.get(name), run)))
    (back,) = check_importer(IMPORTERS.get(name), sample)
    assert [turn.text for turn in back.turns] == [turn.text for turn in run.turns]


def test_a_conversation_is_a_format_too(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    (same,) = check_importer(IMPORTERS.get("conversation"), run.path)
    assert [turn.code for turn in same.turns] == [turn.code for turn in run.turns]


@pytest.mark.parametrize("name", TABLES.names)
def test_tables(name: str) -> None:
    check_table(TABLES.get(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    check_command(commands().get(name))
    assert run([name, "-h"]) == 0, "the check leaves the command as the command line has it"
