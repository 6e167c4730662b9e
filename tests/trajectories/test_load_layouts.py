"""Runs as the branches of the public harness leave them (AutoMedBench/AutoMedBench): tests/data/layouts holds small ones,
written by the branches' own runners around a scripted agent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ambjudge.trajectories.load import load_run

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"


def test_executions_that_are_counted_as_turns_go_to_their_own_calls():
    """eval_vqa: the first reply has two calls and the third was cut off, so that `turn` is no reply's number."""
    run = load_run(LAYOUTS / "vqa")
    assert [[a.observation.stdout for a in t.actions] for t in run.turns] == [
        ["output of ls data\n", "output of pip list\n"], ["output of smoke\n"], [], ["output of answers\n"], [],
    ]  # fmt: skip
    assert [t.input_tokens for t in run.turns] == [100, 200, 300, 400, 500]
    assert [t.finish_reason for t in run.turns] == ["tool_calls", "tool_calls", "length", "tool_calls", "stop"]
    assert all(a.exec_time_s is not None for t in run.turns for a in t.actions)
    assert [t.time_s for t in run.turns] == sorted(t.time_s for t in run.turns)


def test_a_logged_result_that_is_not_the_call_s_is_never_shown(tmp_path):
    """The same command twice; the log lost the first line and its second result is much longer."""
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "run")
    log = tmp_path / "run/process/tool_calls.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[0]["result"]["stdout"] = "x" * 500
    lines[1]["result"]["stdout"] = f"long before\n{lines[1]['result']['stdout']}"
    log.write_text("\n".join(map(json.dumps, lines)))
    first, second = load_run(tmp_path / "run").turns[0].actions
    assert first.observation.stdout == "output of ls data\n"
    assert second.observation.stdout == "long before\noutput of pip list\n"
