"""Loading runs: shapes of conversations, side files, how a run ended, sources of numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ambjudge.errors import InputError
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import iter_runs, load_run
from conversations import round_trip

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"
RUNS = sorted(path for path in RECORDED.iterdir() if path.is_dir())


def call(code="print(1)", call_id="c1", name="execute_code"):
    arguments = json.dumps({"language": "python", "code": code} if name == "execute_code" else {})
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call_id, "function": {"name": name, "arguments": arguments}}],
    }


def answer(call_id="c1", **body):
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": json.dumps({"exit_code": 0, "stdout": "", "stderr": "", **body}),
    }


BLOCK = {"exit_code": -1, "stderr": "BLOCKED: SANDBOX VIOLATION: /data/private"}
USER = {"role": "user", "content": "Segment the kidneys."}
CLOSING = {"role": "assistant", "content": "All done."}
SUBMIT = [
    call(call_id="s", name="submit_results"),
    {"role": "tool", "tool_call_id": "s", "content": '{"complete": true}'},
]


def write(folder: Path, conversation, name="process/conversation.json", **files) -> Path:
    for path, value in {name: conversation, **files}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, list) and path.endswith(".jsonl"):
            target.write_text("\n".join(v if isinstance(v, str) else json.dumps(v) for v in value))
        else:
            target.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def load(folder, conversation, **kwargs) -> Run:
    run = load_run(write(folder, conversation, **kwargs))
    assert round_trip(run) == run
    return run


@pytest.mark.parametrize("folder", RUNS, ids=lambda p: p.name)
def test_recorded_runs(folder):
    run = load_run(folder)
    labels = json.loads((RECORDED.parent / "labels/gold" / f"{folder.name}.json").read_text())
    assert len(run.turns) == len(labels["stages"])
    assert run.id == folder.name
    assert run.track is not None
    assert run.tier is not None
    assert run.report is not None
    assert run.outputs.files
    assert run.warnings == ()
    assert round_trip(run) == run


def test_an_object_with_everything(tmp_path):
    head = {
        "agent": "a",
        "model": "m",
        "task": "kidney-seg-task",
        "tier": "lite",
        "system_prompt": "be good",
        "trace_events": [],
    }
    executions = [{"turn": 1, "language": "python", "exit_code": 0, "exec_time_s": 2.5}]
    run = load(
        tmp_path,
        {**head, "messages": [USER, call(), answer(), *SUBMIT], "code_executions": executions},
    )
    assert run.format == "object"
    assert run.agent == "a"
    assert run.model == "m"
    assert run.task == "kidney-seg-task"
    assert run.track == "segmentation"
    assert run.tier == "lite"
    assert run.brief == "be good\n\nSegment the kidneys."
    assert run.turns[0].actions[0].exec_time_s == 2.5
    assert (run.status.submitted, run.status.ended, run.status.completed) == (
        True,
        "submitted",
        True,
    )


SUMMARY = {
    "agent": "a",
    "model": "m",
    "task": "ldct-denoising-task",
    "tier": "standard",
    "repeat_idx": 3,
    "patient_ids": ["p1", 2, "p1"],
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "elapsed_s": 60,
    "violations": 0,
    "submitted": True,
    "aborted": False,
}


@pytest.mark.parametrize("name", ["conversation.json", "messages.json"])
def test_a_bare_list_with_a_summary(name, tmp_path):
    messages = [{"role": "system", "content": "sys"}, USER, call(), answer(), CLOSING]
    run = load(
        tmp_path, messages, name=f"process/{name}", **{"process/agent_summary.json": SUMMARY}
    )
    assert run.format == "list"
    assert run.agent == "a"
    assert run.track == "enhancement"
    assert run.tier == "standard"
    assert run.repeat == 3
    assert run.listed_cases == ("p1", "2")
    assert run.resources.input_tokens == 10
    assert run.resources.source["input_tokens"] == "summary"
    assert run.resources.wall_time_s == 60
    assert run.status.ended == "submitted"


@pytest.mark.parametrize(
    ("brief", "track", "tier"),
    [
        ("Track: detection. Tier: pro", "detection", "pro"),
        ("**Track:** Report generation\nTIER = Lite", "report_generation", "lite"),
        ("no words", None, None),
    ],
)
def test_identity_from_the_brief(brief, track, tier, tmp_path):
    run = load(tmp_path, [{"role": "user", "content": brief}, CLOSING])
    assert (run.track, run.tier) == (track, tier)


def breach(turn=2):
    return {"type": "isolation_breach", "turn": turn, "violation": "again"}


ENDINGS = {
    # name: (messages, files, ended, submitted, disqualified, number of violations)
    "submitted": ([call(), answer(), *SUBMIT], {}, "submitted", True, False, 0),
    "stopped": ([call(), answer(), CLOSING], {}, "stopped", False, False, 0),
    "killed in a call": ([call(), answer(), call(call_id="c2")], {}, "cut", False, False, 0),
    "out of turns": ([call(), answer()], {}, "cut", False, False, 0),
    "last reply truncated": (
        [call(), answer(), {**CLOSING, "finish_reason": "length"}],
        {},
        "cut",
        False,
        False,
        0,
    ),
    "no turns": ([], {}, "cut", False, False, 0),
    "submit seen in the trace": (
        [call(), answer()],
        {"process/trace.jsonl": [{"type": "submit", "turn": 1}]},
        "submitted",
        True,
        False,
        0,
    ),
    "submit said by the summary": (
        [call(), answer()],
        {"process/agent_summary.json": {"submitted": True}},
        "submitted",
        True,
        False,
        0,
    ),
    "one violation": ([call(), answer(**BLOCK), *SUBMIT], {}, "submitted", True, False, 1),
    "two violations": (
        [call(), answer(**BLOCK), call(call_id="c2"), answer("c2", **BLOCK)],
        {},
        "breach",
        False,
        True,
        2,
    ),
    "trace counts once": (
        [call(), answer(**BLOCK), CLOSING],
        {"process/trace.jsonl": [{"type": "violation_warning", "turn": 1, "violation": "v"}]},
        "stopped",
        False,
        False,
        1,
    ),
    "breach in the trace": (
        [call(), answer(), CLOSING],
        {"process/trace.jsonl": [{"type": "violation_warning", "turn": 1}, breach()]},
        "breach",
        False,
        True,
        2,
    ),
    "breach in the report": (
        [call(), answer(), *SUBMIT],
        {"detail_report.json": {"isolation_breach": {"breached": True, "turn": 2}}},
        "breach",
        False,
        True,
        0,
    ),
    "breach in the summary": (
        [call(), answer()],
        {"process/agent_summary.json": {"aborted": True, "violations": 2}},
        "breach",
        False,
        True,
        0,
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_endings(name, tmp_path):
    messages, files, ended, submitted, disqualified, violations = ENDINGS[name]
    run = load(tmp_path, {"messages": [USER, *messages]}, **files)
    status = run.status
    assert status.ended == ended
    assert status.submitted == submitted
    assert status.disqualified == disqualified
    assert len(status.violation_records) == violations
    assert (status.breach_turn is None) == (not disqualified or name == "breach in the summary")


def test_full_results_come_from_the_tool_log(tmp_path):
    full = {"exit_code": 1, "stdout": "x" * 5000, "stderr": ""}
    entry = {
        "tool": "execute_code",
        "arguments": {"language": "python", "code": "print(1)"},
        "result": full,
    }
    log = [{"turn": 1, **entry}, {"turn": 2, **entry}]
    run = load(
        tmp_path,
        [USER, call(), answer(exit_code=1, stdout="x" * 3000), call(call_id="c2")],
        **{"process/tool_log.jsonl": log},
    )
    assert [len(t.actions[0].observation.stdout) for t in run.turns] == [5000, 5000]


def test_resources_name_their_source(tmp_path):
    trace = [
        {"type": "api_call", "turn": 1, "ts": 4.0, "input_tokens": 7, "output_tokens": 2},
        {"type": "api_call", "turn": 2, "input_tokens": 8},
        {"type": "run_end", "wall_time_s": 9},
    ]
    report = {"runtime": {"wall_time_s": 10, "estimated_cost_usd": 0.5}}
    run = load(
        tmp_path,
        [USER, call(), answer(exit_code=1), call(call_id="c2")],
        **{"process/trace.jsonl": trace, "detail_report.json": report},
    )
    used = run.resources
    assert used.turns == 2
    assert used.calls == 2
    assert used.failed_calls == 1
    assert used.wall_time_s == 10
    assert used.input_tokens == 15
    assert used.output_tokens == 2
    assert used.cost_usd == 0.5
    assert {k: used.source[k] for k in ("wall_time_s", "input_tokens", "cost_usd", "turns")} == {
        "wall_time_s": "report",
        "input_tokens": "trace",
        "cost_usd": "report",
        "turns": "counted",
    }
    assert run.turns[0].time_s == 4.0


def test_broken_trace_lines_are_counted(tmp_path):
    run = load(
        tmp_path,
        [USER, CLOSING],
        **{"process/trace.jsonl": ["{", '{"type": "submit"}', "3", "", "[1]"]},
    )
    assert run.status.submitted
    (warning,) = run.warnings
    assert warning.startswith("trace.jsonl: 3 broken lines left out, the first: ")
    assert "line 1" in warning


@pytest.mark.parametrize(
    "name",
    [
        "process/agent_summary.json",
        "detail_report.json",
        "process/trace.jsonl",
        "process/tool_calls.jsonl",
    ],
)
@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[1, 2",
        "null",
        "3",
        '"x"',
        "[]",
        "[[[]]]",
        "\0",
        '{"turn": {}, "type": [], "task": [], "tier": {}, "violations": "x", "result": 3}',
    ],
)
def test_broken_side_files_never_break_a_run(name, content, tmp_path):
    load(
        tmp_path, {"messages": [USER, call(), answer()], "code_executions": "x"}, **{name: content}
    )


def test_content_hash_covers_the_side_files(tmp_path):
    write(
        tmp_path,
        [USER, CLOSING],
        **{
            "process/agent_summary.json": SUMMARY,
            "plan/plan.md": "a",
            "agents_outputs/c/a.txt": "1",
        },
    )
    hashes = {load_run(tmp_path).content_sha256}
    for path, text in (
        ("plan/plan.md", "b"),
        ("agents_outputs/c/a.txt", "12"),
        ("process/agent_summary.json", "{}"),
        ("agents_outputs/d/a.txt", "1"),
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
        hashes.add(load_run(tmp_path).content_sha256)
    assert len(hashes) == 5
    copy = tmp_path / "elsewhere"
    shutil.copytree(tmp_path, copy, ignore=shutil.ignore_patterns("elsewhere"))
    assert load_run(copy).content_sha256 in hashes


def test_one_bad_run_never_stops_the_others(tmp_path):
    write(tmp_path / "a", [USER, CLOSING])
    write(tmp_path / "b", "not json")
    write(tmp_path / "c", [USER, CLOSING])
    items = list(iter_runs(tmp_path))
    assert [type(r) for r in items] == [Run, InputError, Run]
    assert "b/process/conversation.json" in str(items[1])


def test_a_folder_of_runs_is_no_run(tmp_path):
    write(tmp_path / "a", [USER, CLOSING])
    write(tmp_path / "b", [USER, CLOSING])
    with pytest.raises(InputError, match="more than one run"):
        load_run(tmp_path)


def test_events_of_the_conversation_stand_in_for_a_lost_trace(tmp_path):
    events = [
        {"type": "violation_warning", "turn": 1},
        breach(),
        3,
        {"type": "api_call", "turn": 1, "input_tokens": 5},
    ]
    run = load(tmp_path, {"messages": [USER, call(), answer(), CLOSING], "trace_events": events})
    assert (run.status.ended, run.status.breach_turn, run.resources.input_tokens) == (
        "breach",
        2,
        5,
    )
    trace = {"process/trace.jsonl": [{"type": "api_call", "turn": 1, "input_tokens": 6}]}
    run = load(
        tmp_path, {"messages": [USER, call(), answer(), CLOSING], "trace_events": events}, **trace
    )
    assert (run.status.ended, run.resources.input_tokens) == ("stopped", 6)
