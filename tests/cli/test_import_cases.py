"""Situations in which imports went wrong, each with what has to come out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ambjudge
import pytest
import yaml
from ambjudge.cli import run as run_command
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run

CASES = Path(__file__).parents[1] / "data" / "cases"
EXPECTED: dict[str, Any] = yaml.safe_load((CASES / "expected.yaml").read_text("utf-8"))
STATISTICS = "inspect-sample-is-unit"


def _imported(case: str, out: Path) -> dict[str, Run]:
    """The runs below a folder by id."""
    runs = [load_run(path) for path in sorted(out.rglob("conversation.json"))]
    return {run.path.parent.parent.name: run for run in runs}


def _values_of(run: Run) -> dict[str, Any]:
    """Everything that a case may expect of a run."""
    card = ambjudge.score(run, track="segmentation", tier="lite")
    actions = [action for turn in run.turns for action in turn.actions]
    observations = [action.observation for action in actions]
    criteria = [item for stage in card.stages.values() for item in stage.criteria]
    return {
        **card.resources.model_dump(),
        "part_of": run.part_of,
        "model": run.model,
        "brief": run.brief,
        "ended": run.status.ended,
        "texts": [turn.text for turn in run.turns],
        "tools": [action.tool for action in actions],
        "arguments": [action.arguments for action in actions],
        "outputs": [observation.text for observation in observations if observation],
        "exit_codes": [observation.exit_code for observation in observations if observation],
        "kinds": [observation.kind for observation in observations if observation],
        "turn_tokens": [[turn.input_tokens, turn.output_tokens] for turn in run.turns],
        "outcomes": {name: outcome.value for name, outcome in run.outcomes.items()},
        "criteria": {item.id: item.value for item in criteria},
    }


def test_every_case_is_run() -> None:
    folders = {path.name for path in CASES.iterdir() if path.is_dir()}
    assert folders == set(EXPECTED) | {STATISTICS}


@pytest.mark.parametrize("case", EXPECTED)
def test_a_case_shows_what_is_expected(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = EXPECTED[case]
    command = ["import", expected["format"], str(CASES / case), "--out", str(tmp_path)]
    assert run_command(command) == expected.get("exit", 0)
    messages = capsys.readouterr().err
    for words in expected.get("words", ()):
        assert words in " ".join(messages.split())
    runs = _imported(case, tmp_path)
    assert set(runs) == set(expected["runs"])
    for name, values in expected["runs"].items():
        actual = _values_of(runs[name])
        for key, value in {"part_of": None, **values}.items():
            if isinstance(value, dict):
                assert {item: actual[key].get(item) for item in value} == value, (name, key)
            else:
                assert actual[key] == value, (name, key)
        is_part = values.get("part_of") is not None
        assert ("parts" in runs[name].path.relative_to(tmp_path).parts) is is_part


def test_samples_are_the_units_of_an_inspect_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Epochs are repeats of a sample: 30 tasks a side, and two agents are paired by sample."""
    out, cards = tmp_path / "runs", tmp_path / "cards.jsonl"
    assert (
        run_command(
            ["import", "inspect", str(CASES / STATISTICS), "--out", str(out), "--task-score", "acc"]
        )
        == 0
    )
    capsys.readouterr()
    scored = ["score", str(out), "--track", "segmentation", "--tier", "lite", "--json"]
    assert run_command(scored) in (0, 1)
    cards.write_text(capsys.readouterr().out, "utf-8")
    assert len({json.loads(line)["run"]["task"] for line in cards.read_text().splitlines()}) == 30
    compared = ["compare", "basic_agent_a", "basic_agent_b", str(cards), "--outcome", "acc"]
    assert run_command(compared) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "30 tasks, 60 runs each, paired by task" in text
    # The difference and its standard error of .062, times the t quantile of 29 degrees of freedom.
    assert "[−0.326, −0.074]" in text
