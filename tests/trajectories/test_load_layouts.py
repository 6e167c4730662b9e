"""Runs as the branches of the public harness (AutoMedBench/AutoMedBench) leave them.

tests/data/layouts holds small ones, written by the branches' own runners around a scripted agent.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis.report.html_report import render
from ambjudge.analysis.report.results import analyse
from ambjudge.cli import run as command
from ambjudge.errors import InputError
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.judge.checks.expected_cases import expected_cases
from ambjudge.judge.checks.vqa_answers import read_answers
from ambjudge.tracks import infer_track
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from conversations import round_trip

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"


def load(name: str) -> Run:
    run = load_run(LAYOUTS / name)
    assert round_trip(run) == run
    return run


def test_executions_that_are_counted_as_turns_go_to_their_own_calls():
    """eval_vqa: the first reply has two calls and the third was cut off.

    So `turn` is not the number of a reply.
    """
    run = load("vqa")
    assert [[a.observation.stdout for a in t.actions] for t in run.turns] == [
        ["output of ls data\n", "output of pip list\n"],
        ["output of smoke\n"],
        [],
        ["output of answers\n"],
        [],
    ]
    assert [t.input_tokens for t in run.turns] == [100, 200, 300, 400, 500]
    assert [t.finish_reason for t in run.turns] == [
        "tool_calls",
        "tool_calls",
        "length",
        "tool_calls",
        "stop",
    ]
    assert all(a.exec_time_s is not None for t in run.turns for a in t.actions)
    assert [t.time_s for t in run.turns] == sorted(t.time_s for t in run.turns)


def test_a_logged_result_that_is_not_the_calls_own_is_never_shown(tmp_path):
    """A line of another result in the log, and a line with more than the conversation kept."""
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "run")
    log = tmp_path / "run/process/tool_calls.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[0]["result"]["stdout"] = "x" * 500
    lines[1]["result"]["stdout"] = f"long before\n{lines[1]['result']['stdout']}"
    log.write_text("\n".join(map(json.dumps, lines)))
    first, second = load_run(tmp_path / "run").turns[0].actions
    assert first.observation.stdout == "output of ls data\n"
    assert second.observation.stdout == "long before\noutput of pip list\n"


def test_vqa_answers_report_and_questions():
    run = load("vqa")
    assert run.outputs.root.name == "outputs"
    assert {(f.case, f.name) for f in run.outputs.files} == {
        ("q1", "answer.json"),
        ("q2", "answer.json"),
        (None, "answer_postprocess.py"),
        (None, "s3_calibration.json"),
        (None, "smoke_forward.json"),
    }
    assert (
        run.report.path.name,
        run.report.task_score,
        run.report.medal,
        run.report.n_outputs,
    ) == (
        "report.json",
        0.6667,
        "good",
        2,
    )
    assert run.report.metrics["model_call_detected"] is False
    assert (run.resources.cost_usd, run.resources.source["cost_usd"]) == (0.0018, "report")
    assert (run.status.submitted, run.listed_cases) == (True, ("q1", "q2", "q3"))
    assert [a["question_id"] for a in read_answers(run)] == ["q1", "q2"]
    checked = check_outputs(run)
    assert (checked.s4_checks.completion, checked.s4_checks.source, checked.s5) == (
        pytest.approx(2 / 3),
        "files",
        1.0,
    )
    assert checked.task == 0.6667


def test_the_cost_of_a_lost_report_stands_in_the_summary(tmp_path):
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "run")
    (tmp_path / "run/report.json").unlink()
    summary = tmp_path / "run/outputs/run_summary.json"
    assert load_run(tmp_path / "run").resources.cost_usd == 0.0018
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "status": "failed"}))
    assert load_run(tmp_path / "run").resources.cost_usd is None


def test_vqa_without_an_answer_delivered_nothing(tmp_path):
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "run")
    for question in ("q1", "q2"):
        shutil.rmtree(tmp_path / "run/outputs" / question)
    run = load_run(tmp_path / "run")
    assert run.outputs.cases == ()
    assert (check_outputs(run).s4, check_outputs(run).s5) == (0.0, 0.0)


def test_enhancement_keeps_its_report_above_the_workspace():
    run = load("enhancement")
    assert (run.folder, run.repeat, run.report.task_score) == (LAYOUTS / "enhancement", 2, 0.76)
    assert run.report.task_score_from == "aggregate.clinical_score"
    assert run.brief.startswith("Denoise the CT slices")
    assert [t.input_tokens for t in run.turns] == [100, 200, 300, 400]  # the trace sums them up
    assert all(
        a.exec_time_s is not None for t in run.turns for a in t.actions if a.kind == "execute"
    )
    assert (run.resources.wall_time_s, run.resources.input_tokens) == (61.25, 1000)
    assert (run.status.ended, run.status.completed, run.outputs.cases) == (
        "submitted",
        True,
        ("p1", "p2"),
    )


def test_a_rejected_submission_is_none(tmp_path):
    shutil.copytree(LAYOUTS / "enhancement", tmp_path / "run", symlinks=True)
    process = tmp_path / "run/workspace/process"
    messages = json.loads((process / "conversation.json").read_text())
    last = next(
        i
        for i, m in enumerate(messages)
        if m["role"] == "tool" and m["content"].startswith("REJECTED")
    )
    (process / "conversation.json").write_text(json.dumps(messages[: last + 1]))
    log = (process / "tool_log.jsonl").read_text().splitlines()
    (process / "tool_log.jsonl").write_text("\n".join(log[:2]))
    (process / "agent_summary.json").unlink()
    (tmp_path / "run/detail_report.json").unlink()
    run = load_run(tmp_path / "run")
    assert (run.status.submitted, run.status.ended, run.submit_result) == (False, "cut", None)


def test_a_breach_that_only_the_report_tells_leaves_no_task_score():
    run = load("enhancement_breach")
    assert (run.status.ended, run.report.breached, run.report.task_score) == ("breach", True, 0.76)
    assert check_outputs(run).task == 0.0


def test_answers_to_submissions_of_every_branch_name_the_cases():
    run = load("detection")
    assert (run.status.submitted, run.status.completed) == (True, False)
    expected = expected_cases(run, (), None, False)
    assert (expected.cases, expected.count, expected.source) == (("p1", "p2"), 2, "submit")
    assert check_outputs(run).s4 == 0.0


def test_a_breach_without_a_conversation_is_a_disqualified_run_with_its_cost():
    """The agent exits before it writes conversation.json.

    Source: eval_seg, docker/agent/agent_loop.py:370.
    """
    run = load("segmentation")
    assert (run.format, run.path.name, run.task, run.brief) == (
        "trace",
        "trace.jsonl",
        "kidney-seg-task",
        "Segment the kidneys.\n",
    )
    assert [
        [(a.code, a.observation and a.observation.kind) for a in t.actions] for t in run.turns
    ] == [
        [("ls", "ok"), ("pip", "ok")],
        [("private", "blocked")],
        [("private 2", "blocked"), ("", None)],
    ]
    assert (run.status.disqualified, run.status.breach_turn, len(run.status.violation_records)) == (
        True,
        3,
        2,
    )
    assert (run.resources.input_tokens, run.resources.turns) == (600, 3)
    assert any("no conversation" in warning for warning in run.warnings)


def test_a_dropped_breach_is_counted(capsys, monkeypatch, tmp_path):
    """Cohort tables show it with its cost, and it scores zero."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMBJUDGE_STORE", "none")
    for name in ("segmentation", "segmentation_stopped"):
        shutil.copytree(LAYOUTS / name, tmp_path / "runs" / name)
    assert command(["leaderboard", "runs", "--by", "track", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["agent"], row["runs"], row["input_tokens"], row["failed"]) == (
        "agent-x",
        2,
        450.0,
        1.0,
    )
    assert (row["breach"], row["no_output"], row["resolved"]) == (0.5, 0.5, 0.0)
    analysis = analyse("runs", only=("cohort", "leaderboard", "ratings", "failures"))
    cohort = dict(analysis.tables["cohort"].rows())
    assert (cohort["runs analysed"], cohort["disqualified"]) == (
        "2",
        "1, which cost 0 s, 600 tokens in, 60 out",
    )
    shares = analysis.tables["failures"].filter(
        pl.col("agent") == "agent-x", pl.col("population") == "new"
    )
    assert {"failed": 1.0, "breach": 0.5, "timeout": 0.0}.items() <= dict(
        shares.select("what", "value").rows()
    ).items()
    assert "1, which cost 0 s, 600 tokens in" in render(analysis, [])
    assert command(["-q", "score", "runs/segmentation", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert [card["stages"][s]["score"] for s in ("S1", "S2", "S3", "S4", "S5")] == [0.0] * 5
    assert (card["task"], card["overall"]) == (0.0, 0.0)


def test_a_killed_enhancement_run_is_read_from_its_logs(tmp_path):
    shutil.copytree(LAYOUTS / "enhancement", tmp_path / "dead", symlinks=True)
    for name in ("conversation.json", "messages.json"):
        (tmp_path / "dead/workspace/process" / name).unlink()
    run = load_run(tmp_path / "dead")
    assert (run.id, run.format, run.folder) == ("dead", "trace", tmp_path / "dead")
    assert [a.code for t in run.turns for a in t.actions if a.kind == "execute"] == [
        "plan",
        "denoise",
    ]
    assert [a.observation.kind for t in run.turns for a in t.actions if a.kind == "execute"] == [
        "ok",
        "ok",
    ]


def test_a_killed_vqa_run_is_read_from_its_logs(tmp_path):
    shutil.copytree(LAYOUTS / "vqa", tmp_path / "run")
    codes = [[a.code for a in t.actions] for t in load("vqa").turns]
    (tmp_path / "run/process/conversation.json").unlink()
    run = load_run(tmp_path / "run")
    assert [[a.code for a in t.actions] for t in run.turns] == codes
    assert [t.input_tokens for t in run.turns] == [100, 200, 300, 400, 500]


def test_a_trace_without_a_reply_is_no_run(tmp_path):
    (tmp_path / "process").mkdir()
    (tmp_path / "process/trace.jsonl").write_text('{"type": "run_end"}\n3\n')
    with pytest.raises(InputError, match="no messages"):
        load_run(tmp_path)


TASKS = {
    "segmentation": (
        "kidney",
        "liver",
        "pancreas",
        "fetal_brain",
        "kidney-seg-task",
        "liver-seg-task",
        "pancreas-seg-task",
        "feta-seg-task",
    ),
    "detection": ("chest_abnormality", "vindr-cxr-det-task"),
    "vqa": ("medframeqa-task", "medxpertqa-mm-task", "pathvqa-task", "slake-task", "vqa-rad-task"),
    "report_generation": ("mimic-cxr-report-task",),
    "enhancement": ("ldct-denoising-task", "mri-sr-task"),
}


def test_tasks_of_the_harness_have_their_track():
    assert {
        track: tuple(t for t in tasks if infer_track((), t, {}) == track)
        for track, tasks in TASKS.items()
    } == TASKS


def ends(process: Path, *more: dict) -> Run:
    """The enhancement run as it is without its submission, with more messages."""
    messages = json.loads((process / "conversation.json").read_text())
    submits = next(
        i for i, m in enumerate(messages) if "submit_results" in json.dumps(m.get("tool_calls"))
    )
    (process / "conversation.json").write_text(json.dumps([*messages[:submits], *more]))
    for name in ("tool_log.jsonl", "trace.jsonl", "agent_summary.json"):
        (process / name).unlink()
    (process.parents[1] / "detail_report.json").unlink()
    return load_run(process.parents[1])


DONE, GO_ON = (
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Continue. Use a tool call."},
)
ENDINGS = {
    "a closing reply": ([DONE], "stopped"),
    "told to go on": ([DONE, GO_ON], "cut"),
    "an unanswered call": ([], "cut"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_stopped_is_not_cut(name, tmp_path):
    messages, ended = ENDINGS[name]
    shutil.copytree(LAYOUTS / "enhancement", tmp_path / "run", symlinks=True)
    assert ends(tmp_path / "run/workspace/process", *messages).status.ended == ended
