"""tasks as a user runs it: demands listed, briefs read once over HTTP, and files that count."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from tiny_runs import say, write_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"


@pytest.fixture
def runs(tmp_path: Path, judge_server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs of one task without a file, one of them with another agent, and one published task."""
    monkeypatch.setenv("AMBJUDGE_API_BASE", judge_server.url)
    monkeypatch.setenv("AMBJUDGE_JUDGE", "m")
    judge_server.script = ["good"]
    for name in ("crc-lite-01", "crc-lite-02", "kidney-lite-01"):
        shutil.copytree(RECORDED / name, tmp_path / "runs" / name)
    (tmp_path / "public").mkdir()
    return tmp_path / "runs"


def test_published_tasks_are_listed(out, tmp_path: Path) -> None:
    code, text, _ = out("tasks", "list", "--json")
    tasks = {row["task"]: row["demands"] for row in json.loads(text)}
    assert code == 0
    assert tasks["feta-seg-task"]["labels"] == list(range(8))
    assert "feta-seg-task" in out("tasks", "list")[1]


def test_a_brief_is_read_once_and_counts_when_scoring(out, runs, judge_server) -> None:
    code, text, told = out("tasks", "read", "runs", "--public", "public")
    assert (code, judge_server.count) == (0, 1), "one task of two is published, two runs share one"
    assert "1 of 1 briefs were read" in told
    file = next(Path("public").glob("*/task.yaml"))
    written = file.read_text()
    assert yaml.safe_load(written)["axes"] == 2
    assert "axes: 2  # " in written, "the words of the brief stand beside the demand"
    assert out("tasks", "read", "runs", "--public", "public")[0] == 0
    assert judge_server.count == 1, "a brief that was read is not asked about again"
    listed = json.loads(out("tasks", "list", "--public", "public", "--json")[1])
    assert {row["source"] for row in listed} == {"ambjudge", str(file)}

    conversation = Path("runs/crc-lite-01/process/conversation.json")
    changed = json.loads(conversation.read_text())
    changed["system_prompt"] = changed.get("system_prompt", "") + " In two axes."
    shutil.rmtree("runs/crc-lite-02")
    conversation.write_text(json.dumps(changed))
    assert out("tasks", "read", "runs", "--public", "public")[0] == 0
    assert judge_server.count == 2, "another brief of the task is read anew"

    file.write_text("case_files: [tissue.npz]\n")
    code, text, _ = out(
        "score", "runs/crc-lite-01", "--judge", "rules", "--public", "public", "--json"
    )
    assert "the brief asks for tissue.npz" in " ".join(json.loads(text)["warnings"])
    assert out("tasks", "read", "runs", "--public", "public")[0] == 0
    assert judge_server.count == 2, "a file that was written by hand stays"


def test_what_the_brief_does_not_say_is_not_taken(out, runs, judge_server) -> None:
    judge_server.script = ["false_quote"]
    code, _, told = out("tasks", "read", "runs", "--public", "public")
    assert code == 0
    assert "rejected: axes 2: its quote is not in the brief" in told
    assert "axes" not in yaml.safe_load(next(Path("public").glob("*/task.yaml")).read_text())


@pytest.mark.parametrize(
    ("arguments", "script", "code", "message"),
    [
        pytest.param(("--public", "public"), "refusal", 3, "refused", id="refused"),
        pytest.param(("--public", "public", "--judge", "rules"), "good", 3, "rules", id="rules"),
        pytest.param((), "good", 2, "--public DIR", id="no folder"),
    ],
)
def test_failures_are_one_line_and_no_file(
    out, runs, judge_server, arguments, script, code, message
) -> None:
    judge_server.script = [script]
    ended, _, told = out("tasks", "read", "runs", *arguments)
    assert (ended, list(Path("public").glob("*/task.yaml"))) == (code, [])
    assert message in told


def test_a_broken_file_ends_the_command_with_its_name(out, tmp_path: Path) -> None:
    write_run(tmp_path / "run", [say("Done.")], task="cells-task")
    (tmp_path / "public" / "cells-task").mkdir(parents=True)
    (tmp_path / "public" / "cells-task" / "task.yaml").write_text("dtype: float31")
    code, _, told = out("score", "run", "--public", "public")
    assert code == 2
    assert "public/cells-task/task.yaml: dtype:" in told.replace(str(tmp_path) + "/", "")
