"""Logs of other harnesses on disk: their format, the run that they become, and its outcomes."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ambjudge.analysis.tables.frames import read_frame
from ambjudge.cli import run as run_command
from ambjudge.errors import InputError
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.draft import Draft
from ambjudge.trajectories.importers.recognise import HEAD, recognise, shape
from ambjudge.trajectories.importers.saving import save_run
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.external_outcomes import MAX_OUTCOMES
from ambjudge.trajectories.reading.load import load_run

IMPORTS = Path(__file__).parents[1] / "data" / "imports"
CODE, OUT, BRIEF = "python run.py --all", "dice 0.81\n12 cases\n", "Segment the kidneys."
TAU = "tool-calling-gpt-x-0.0_range_0-1_user-gpt-y-llm_0105100000"
AUTOGEN: dict[str, Any] = {
    "model": None,
    "reasoning": "Now all cases.",
    "times": [5.0, 19.0],
    "tokens": (130, 20),
    "totals": (260, 40, None, 19.0),
}
STOP_REASON = {"stop_reason": "Text 'Done.' mentioned"}
TRIAL = "terminal-bench/kidney/kidney.1-of-1.run-a"


def imported(path: Path, out: Path) -> Run:
    format = recognise(path)
    assert format is not None
    (draft,) = IMPORTERS.get(format).read(path)
    assert isinstance(draft, Draft)
    return load_run(save_run(draft, out, path, force=True))


UNKNOWN: dict[str, Any] = {
    "agent": None,
    "model": "gpt-x",
    "task": None,
    "tier": None,
    "repeat": None,
    "exit_code": None,
    "reasoning": "",
    "ended": "stopped",
    "outcomes": {},
    "seconds": None,
    "times": [None, None],
    "tokens": (None, None),
    "totals": (None, None, None, None),
}
# What each file says besides the text of its run. `seconds`: of the first execution; `times`: of
# the turns, since the start; `tokens`: input and output of the first turn; `totals`: of the run,
# with dollars and seconds.
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai.json": ("openai", "openai", {}),
    "anthropic.json": (
        "anthropic",
        "anthropic",
        {"model": "claude-x", "reasoning": "All at once?"},
    ),
    "inspect.json": (
        "inspect",
        "kidney-seg-task_1_epoch_2",
        {
            "agent": "react",
            "model": "openai/gpt-x",
            "task": "kidney-seg-task/1",
            "tier": "lite",
            "repeat": 2,
            "ended": "cut",
            "reasoning": "All at once?",
            "outcomes": {
                "has_error": False,
                "has_limit": False,
                "match": 1.0,
                "metadata.tier": "lite",
            },
            "seconds": 3.5,
            "times": [15.0, 26.0],
            "tokens": (130, 20),
            "totals": (260, 40, None, 27.5),
        },
    ),
    "swe-agent.traj": (
        "swe-agent",
        "swe-agent",
        {
            "agent": "swe-agent",
            "task": "kidney-seg-task",
            "ended": "submitted",
            "outcomes": {"exit_status": "submitted"},
            "seconds": 1.25,
            "totals": (900, 80, 0.5, None),
        },
    ),
    "openhands.json": (
        "openhands",
        "openhands",
        {
            "agent": "CodeActAgent",
            "exit_code": 0,
            "ended": "submitted",
            "times": [9.0, 19.0],
            "tokens": (130, 20),
            "totals": (260, 40, None, 19.0),
        },
    ),
    "claude-code.jsonl": (
        "claude-code",
        "claude-code",
        {
            "agent": "claude-code",
            "model": "claude-x",
            "reasoning": "All at once?",
            "times": [10.0, 20.0],
            "tokens": (130, 20),
            "totals": (260, 25, None, 20.0),
        },
    ),
    "harbor/kidney__a1b2c3/agent/trajectory.json": (
        "atif",
        "kidney__a1b2c3",
        {
            "agent": "terminus-2",
            "model": "openai/gpt-x",
            "task": "kidney",
            "reasoning": "All at once?",
            "outcomes": {"reward": 1.0, "dice": 0.81},
            "times": [5.0, 9.0],
            "tokens": (520, 80),
            "totals": (1220, 100, 0.00078, 9.0),
        },
    ),
    "codex/rollout-2026-01-05T10-00-00-0199.jsonl": (
        "codex",
        "0199-aa",
        {
            "agent": "codex",
            "model": "gpt-x-codex",
            "exit_code": 1,
            "reasoning": "All at once?",
            "seconds": 2.5,
            "times": [5.0, 9.0, 11.0],
            "totals": (900, 120, None, 11.0),
        },
    ),
    "responses.json": (
        "responses",
        "resp_1",
        {
            "reasoning": "All at once?",
            "outcomes": {"passed": "yes"},
            # Its usage is that of the last of two replies.
            "totals": (None, None, None, None),
        },
    ),
    "mini-swe-agent/kidney.traj.json": (
        "mini-swe-agent",
        "kidney",
        {
            "agent": "mini-swe-agent",
            "model": "openai/gpt-x",
            "exit_code": 1,
            "ended": "submitted",
            "outcomes": {"exit_status": "Submitted"},
            "times": [0.0, 9.0],
            "tokens": (100, 20),
            # One of two replies states its tokens; the cost is that of both.
            "totals": (None, None, 0.05, 9.0),
        },
    ),
    "otel/traces.json": (
        "otel",
        "5b8efff798038103d269b633813fc60c",
        {
            "agent": "kidney-agent",
            "outcomes": {"correct": 0.75},
            "seconds": 4.0,
            "times": [5.0, 12.0],
            "tokens": (100, 20),
            "totals": (250, 30, None, 12.0),
        },
    ),
    "otel/langfuse.json": (
        "otel",
        "trace-1",
        {
            "outcomes": {"correct": 0.75},
            "times": [4.0, 11.0],
            "tokens": (100, 20),
            "totals": (250, 30, None, 11.0),
        },
    ),
    "otel/phoenix.jsonl": (
        "otel",
        "t-1",
        {"times": [4.0, 11.0], "tokens": (100, 20), "totals": (250, 30, None, 11.0)},
    ),
    f"tau-bench/{TAU}.json": (
        "tau-bench",
        f"{TAU}-task-7-trial-1",
        {
            "agent": "tool-calling",
            "task": "retail/7",
            "repeat": 1,
            "outcomes": {
                "reward": 1.0,
                "source": "user",
                "user_cost": 0.002,
                "reward_info.reward": 1.0,
                "reward_info.info.r_actions": 1.0,
                "reward_info.info.gt_data_hash": "0f3a",
            },
        },
    ),
    "tau2/2026-01-05_telecom_llm_agent_gpt-x.json": (
        "tau-bench",
        "5f0e-1",
        {
            "agent": "llm_agent",
            "task": "telecom/kidneys",
            "repeat": 1,
            "reasoning": "All at once?",
            "outcomes": {
                "reward": 0.0,
                "reward_breakdown.DB": 0.0,
                "termination_reason": "user_stop",
                "user_cost": 0.01,
            },
            "times": [5.0, 11.0, 18.0],
            "tokens": (130, 20),
            "totals": (390, 60, 0.05, 20.5),
        },
    ),
    "tau2/simulations/5f0e-2.json": (
        "tau-bench",
        "5f0e-2",
        {
            "agent": "llm_agent",
            "task": "telecom/kidneys",
            "repeat": 0,
            "reasoning": "All at once?",
            "outcomes": {"termination_reason": "user_stop", "user_cost": 0.01},
            "times": [5.0, 11.0, 18.0],
            "tokens": (130, 20),
            "totals": (390, 60, 0.05, 20.5),
        },
    ),
    "langchain/state.json": (
        "langchain",
        "state",
        {
            "reasoning": "All at once?",
            "outcomes": {"remaining_steps": 22.0},
            "tokens": (130, 20),
            "totals": (260, 40, None, None),
        },
    ),
    "langchain/history.json": (
        "langchain",
        "thread-1",
        {
            "reasoning": "All at once?",
            "tokens": (130, 20),
            "totals": (260, 40, None, None),
        },
    ),
    "gemini-cli/session-2026-01-05T10-00-b1d2c3e4.jsonl": (
        "gemini-cli",
        "b1d2c3e4-0001",
        {
            "agent": "gemini-cli",
            "model": "gemini-x",
            "exit_code": 1,
            "reasoning": "Planning\nAll at once?",
            "times": [5.0, 19.0],
            "tokens": (130, 20),
            "totals": (260, 40, None, 19.0),
        },
    ),
    "gemini-cli/checkpoint-kidney.json": (
        "gemini-cli",
        "checkpoint-kidney",
        {"agent": "gemini-cli", "model": None, "reasoning": "All at once?"},
    ),
    "autogen/result.json": ("autogen", "result", AUTOGEN | {"outcomes": STOP_REASON}),
    "autogen/stream.jsonl": ("autogen", "stream", AUTOGEN | {"outcomes": STOP_REASON}),
    "autogen/team-state.json": ("autogen", "team-state", AUTOGEN),
    "vera/run/track-rollouts/segmentation/rollout.json": (
        "vera",
        "5a0c-segmentation",
        {
            "agent": "codex",
            "model": "qwen-x",
            "task": "segmentation",
            "exit_code": 0,
            "outcomes": {
                "status.01-planning": "completed",
                "status.02-setup": "interrupted",
                "completed_requested_turns": False,
                "error.phase": "02-setup",
                "error.error": "turn_not_completed",
            },
            "seconds": 3.5,
            "times": [None, None, None, None],
        },
    ),
    "smolagents/result.json": (
        "smolagents",
        "result",
        {
            "agent": "smolagents",
            "model": None,
            "ended": "submitted",
            "outcomes": {"state": "success"},
            "times": [9.0, 12.0, 20.0],
            "tokens": (130, 20),
            "totals": (390, 60, None, 20.0),
        },
    ),
    f"{TRIAL}/results.json": (
        "terminal-bench",
        "kidney.1-of-1.run-a",
        {
            "model": None,
            "task": "kidney",
            "totals": (250, 30, None, 11.0),
            "outcomes": {
                "is_resolved": True,
                "failure_mode": "unset",
                "tests.test_dice": "passed",
                "tests.test_files": "failed",
            },
        },
    ),
}


@pytest.mark.parametrize("place", RUNS)
def test_a_log_is_recognised_and_becomes_a_run_that_says_what_it_says(
    place: str, tmp_path: Path
) -> None:
    format, name, expected = RUNS[place]
    assert recognise(IMPORTS / place) == format
    run = imported(IMPORTS / place, tmp_path / name)
    first, used = run.turns[0], run.resources
    (action, *_), observation = first.actions, first.actions[0].observation
    assert observation is not None
    assert {
        "agent": run.agent,
        "model": run.model,
        "task": run.task,
        "tier": run.tier,
        "repeat": run.repeat,
        "exit_code": observation.exit_code,
        "reasoning": first.reasoning,
        "ended": run.status.ended,
        "outcomes": {name: outcome.value for name, outcome in run.outcomes.items()},
        "seconds": action.exec_time_s,
        "times": [turn.time_s for turn in run.turns],
        "tokens": (first.input_tokens, first.output_tokens),
        "totals": (used.input_tokens, used.output_tokens, used.cost_usd, used.wall_time_s),
    } == UNKNOWN | expected
    assert (run.id, run.imported, run.warnings) == (name, format, ())
    assert BRIEF in run.brief
    assert ("Be careful." in run.brief) == (format != "claude-code")
    assert (action.kind, action.language, first.code.strip()) == ("execute", "bash", CODE)
    assert OUT.strip() in first.output
    assert "Done." in run.turns[-1].text
    assert all(outcome.source.startswith(format) for outcome in run.outcomes.values())


def test_the_events_of_codex_exec_become_a_run(tmp_path: Path) -> None:
    path = IMPORTS / "codex-exec" / "exec-0199.jsonl"
    assert recognise(path) == "codex"
    (draft,) = IMPORTERS.get("codex").read(path)
    assert draft.lost == {"prompt, which this stream does not hold": 1}
    assert draft.totals == {"input_tokens": 1220.0, "output_tokens": 120.0}
    run = imported(path, tmp_path / "0199-bb")
    assert run.id == "0199-bb"
    actions = [action for turn in run.turns for action in turn.actions]
    assert [action.tool for action in actions] == [
        "shell",
        "apply_patch",
        "update_plan",
        "docs.find",
        "web_search",
        "shell",
    ]
    assert (actions[0].kind, actions[0].language, actions[0].code) == ("execute", "bash", CODE)
    assert run.turns[0].text == "Now all cases."
    assert (actions[0].observation.exit_code, actions[0].observation.stdout) == (1, OUT)
    assert actions[1].path == "out/plan.md"
    assert actions[3].observation.stdout == "one page"
    assert actions[5].observation is None, "it never ended"
    assert (
        run.turns[-2].text == "Done. Dice is 0.93." or run.turns[-1].text == "Done. Dice is 0.93."
    )


def test_a_trajectory_of_raw_replies_that_goes_on_in_another_file_is_one_run(
    tmp_path: Path, capsys
) -> None:
    folder = IMPORTS / "harbor-raw" / "kidney__raw1" / "agent"
    draft, part = IMPORTERS.get("atif").read(folder / "trajectory.json")
    assert isinstance(draft, Draft)
    assert isinstance(part, Draft)
    assert part.part_of == draft.name
    run = load_run(save_run(draft, tmp_path / "run", folder / "trajectory.json", force=True))
    assert [turn.code for turn in run.turns] == [
        f"cd work\n{CODE}\n",
        "ls out\nwc -l out/log\n",
        "",
    ]
    assert [len(turn.actions) for turn in run.turns] == [1, 1, 0]
    assert OUT.strip() in run.turns[0].output
    assert "12 log" in run.turns[1].output
    for part in ("trajectory.cont-1.json", "trajectory.summarization-1-summary.json"):
        assert list(IMPORTERS.get("atif").read(folder / part)) == []
        assert (
            run_command(["import", "atif", str(folder / part), "--out", str(tmp_path / "none")])
            == 2
        )
        assert "it continues one that begins in another file" in capsys.readouterr().err


def test_a_trial_with_steps_is_one_run_however_its_folder_is_kept(tmp_path: Path, capsys) -> None:
    """Resumed steps repeat the session; agents keep logs of their own; users may be simulated."""
    jobs = tmp_path / "jobs"
    shutil.copytree(IMPORTS / "harbor-steps", jobs)
    trial = jobs / "kidney__s1"
    trajectory = json.loads((trial / "steps/check/agent/trajectory.json").read_text())
    user = {**trajectory, "session_id": "5e55", "steps": trajectory["steps"][:2]}
    (trial / "user-agent").mkdir()
    (trial / "user-agent" / "trajectory.json").write_text(json.dumps(user))

    def imported(out: str) -> list[str]:
        assert run_command(["import", "auto", str(jobs), "--out", str(tmp_path / out)]) == 1
        message = capsys.readouterr().err
        assert "trial 'kidney__s2' left no transcript (AgentSetupTimeoutError)" in message
        assert "1 run imported" in message
        run = load_run(tmp_path / out / "kidney__s1")
        assert (run.task, run.agent) == ("kidney", "claude-code")
        assert {name: outcome.value for name, outcome in run.outcomes.items()} == {
            "reward": 0.5,
            "steps.write.reward": 1.0,
            "steps.check.reward": 0.0,
            "steps.check.exception_type": "AgentTimeoutError",
        }
        return [turn.text for turn in run.turns]

    replies = ["I let another agent look first.", "Now I write it.", "All 12 are empty."]
    assert imported("plain") == replies
    run = load_run(tmp_path / "plain" / "kidney__s1")
    assert run.turns[1].actions[0].observation.exit_code == 2
    assert (run.resources.input_tokens, run.resources.output_tokens) == (370, 37)
    parts = tmp_path / "plain" / "kidney__s1" / "parts"
    texts = [load_run(part).turns[0].text for part in sorted(parts.iterdir())]
    assert texts == ["There are 12 cases.", "I let another agent look first."]
    for file in list(jobs.rglob("*.json*")):
        with gzip.open(f"{file}.gz", "wb") as packed:
            packed.write(file.read_bytes())
        file.unlink()
    assert imported("packed") == replies
    # Without trajectories the agent's own log is the run, with the trial's results.
    for file in jobs.rglob("trajectory.json.gz"):
        file.unlink()
    assert imported("own-log") == replies[:1]


def test_every_format_that_has_a_mark_is_told_from_a_head_that_is_cut_anywhere() -> None:
    trajectory = (IMPORTS / "harbor/kidney__a1b2c3/agent/trajectory.json").read_bytes()
    for end in range(0, len(trajectory), 7):
        assert shape(trajectory[:end]) <= shape(trajectory)
    assert {
        "schema_version=ATIF-v1.5",
        "steps.tool_calls.function_name",
        "agent.name=terminus-2",
    } <= shape(trajectory)
    for odd in (
        b"",
        b"\xff\xfe" * 100,
        b"[" * HEAD,
        b'"' * 99,
        b'{"a' + b"\\" * 99,
        b"plain words, no JSON",
    ):
        assert len(shape(odd)) <= 1


def row(number: int, **more: Any) -> dict[str, Any]:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": CODE})},
    }
    messages = [
        {"role": "user", "content": BRIEF, "tool_calls": None, "tool_call_id": None},
        {"role": "assistant", "content": None, "tool_calls": [call], "tool_call_id": None},
        {"role": "tool", "content": OUT, "tool_calls": None, "tool_call_id": "c"},
    ]
    return {
        "instance_id": f"task-{number}",
        "model": "gpt-x",
        "resolved": number % 2 == 0,
        "messages": messages,
        **more,
    }


def test_rows_of_a_parquet_set_are_runs(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    rows = [row(1), row(2, messages=None), row(3)]
    pl.DataFrame(rows).write_parquet(path)
    assert recognise(path) == "parquet"
    first, broken, third = IMPORTERS.get("parquet").read(path)
    assert isinstance(first, Draft)
    assert isinstance(third, Draft)
    assert isinstance(broken, InputError)
    assert "train.parquet: row 2: is not a chat conversation" in str(broken)
    run = load_run(save_run(first, tmp_path / "run", path, force=True))
    assert (run.turns[0].code, run.turns[0].output, run.task, run.model) == (
        CODE,
        OUT,
        "task-1",
        "gpt-x",
    )
    assert run.outcomes["resolved"].value is False


SETS = [
    pytest.param(
        {"conversations": [{"from": "human", "value": BRIEF}, {"from": "gpt", "value": "Done."}]},
        id="ShareGPT",
    ),
    pytest.param(
        {
            "messages": json.dumps(
                [{"role": "user", "content": BRIEF}, {"role": "assistant", "content": "Done."}]
            )
        },
        id="JSON text",
    ),
    pytest.param(
        {
            "trajectory": [
                {"role": "system", "text": None, "system_prompt": BRIEF},
                {"role": "ai", "text": "Done.", "system_prompt": None},
            ]
        },
        id="role and text",
    ),
]


@pytest.mark.parametrize("value", SETS)
def test_messages_under_other_names(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    pl.DataFrame([value]).write_parquet(path)
    (draft,) = IMPORTERS.get("parquet").read(path)
    assert isinstance(draft, Draft)
    run = load_run(save_run(draft, tmp_path / "run", path, force=True))
    assert (run.brief, run.turns[0].text) == (BRIEF, "Done.")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"PAR1" + b"\x15" * 500, "is a broken Parquet file", id="no footer"),
        pytest.param(b"PAR1PAR1", "is a broken Parquet file", id="nothing inside"),
        pytest.param(b"text", "is not a Parquet file", id="text"),
    ],
)
def test_broken_parquet_files_are_errors(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        list(IMPORTERS.get("parquet").read(path))


def test_parquet_files_with_bytes_changed_never_crash_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame([row(n) for n in range(3)]).write_parquet(path)
    data = path.read_bytes()
    for size in range(4, len(data), len(data) // 60):
        path.write_bytes(data[:size] + b"\xff\x00\x7f" + data[size + 3 :])
        try:
            items = list(IMPORTERS.get("parquet").read(path))
        except InputError:
            continue
        assert all(isinstance(item, Draft | InputError) for item in items)


def test_a_table_without_messages_names_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1], "b": [2]}).write_parquet(path)
    with pytest.raises(InputError, match=r"no column of messages \(columns: a, b\)"):
        list(IMPORTERS.get("parquet").read(path))


def test_outcomes_are_bounded_and_what_is_none_is_named(tmp_path: Path) -> None:
    draft = Draft("a", "openai")
    draft.add_outcomes(
        {
            "score": {"f1": 0.5, "per_case": [1, 2]},
            "log": "x" * 5000,
            "none": None,
            "deep": {"a": {"b": {"c": 1}}},
        },
        "",
    )
    assert {name: outcome.value for name, outcome in draft.outcomes.items()} == {"score.f1": 0.5}
    assert set(draft.lost) == {"field score.per_case", "field log", "field deep.a.b"}
    draft.add_outcomes({str(n): n for n in range(500)}, "tests")
    assert len(draft.outcomes) == MAX_OUTCOMES
    assert sum(draft.lost.values()) == 3 + 500 - (MAX_OUTCOMES - 1)


def test_spans_without_contents_say_so(tmp_path: Path) -> None:
    data = json.loads((IMPORTS / "otel/traces.json").read_text("utf-8"))
    for span in data["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["attributes"] = [pair for pair in span["attributes"] if "messages" not in pair["key"]]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    (error,) = IMPORTERS.get("otel").read(path)
    assert "capture of contents" in str(error)


def test_the_episodes_of_a_trial_that_logs_none_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes((IMPORTS / TRIAL / "results.json").read_bytes())
    with pytest.raises(InputError, match="holds no episodes"):
        list(IMPORTERS.get("terminal-bench").read(path))
    assert list(IMPORTERS.get("terminal-bench").read(IMPORTS / "terminal-bench/results.json")) == []


def test_a_log_leads_to_no_file_outside_of_its_folder(tmp_path: Path) -> None:
    """Neither by a link nor by a name that it says."""
    secret = tmp_path / "secret"
    shutil.copytree(IMPORTS / TRIAL / "agent-logs", secret / "agent-logs")
    (secret / "agent-logs" / "episode-0" / "prompt.txt").write_text("a secret", "utf-8")
    shutil.copytree(IMPORTS / TRIAL, tmp_path / "bench" / "trial")
    results = tmp_path / "bench" / "trial" / "results.json"
    results_data = json.loads(results.read_text("utf-8"))
    prompt = results.with_name("agent-logs") / "episode-0" / "prompt.txt"
    prompt.unlink()
    prompt.symlink_to(secret / "agent-logs" / "episode-0" / "prompt.txt")
    (draft,) = IMPORTERS.get("terminal-bench").read(results)
    assert (isinstance(draft, Draft), "a secret" in str(draft)) == (True, False)
    all_results = tmp_path / "bench" / "results.json"
    all_results.write_text(
        json.dumps({"results": [{**results_data, "task_id": "..", "trial_name": "secret"}]}),
        "utf-8",
    )
    assert "a secret" not in str(list(IMPORTERS.get("terminal-bench").read(all_results)))
    all_results.write_text(
        json.dumps({"results": [{**results_data, "trial_name": "x" * 5_000}]}), "utf-8"
    )
    assert "holds no episodes" in str(list(IMPORTERS.get("terminal-bench").read(all_results)))

    shutil.copytree(IMPORTS / "harbor-raw", tmp_path / "raw")
    trajectory = tmp_path / "raw" / "kidney__raw1" / "agent" / "trajectory.json"
    steps = json.loads(trajectory.read_text("utf-8"))
    (secret / "other.json").write_text(
        json.dumps({"steps": [{"source": "user", "message": "a secret"}]}), "utf-8"
    )
    trajectory.with_name("link.json").symlink_to(secret / "other.json")
    for name in (
        "/",
        ".",
        "..",
        "a\0b",
        "link.json",
        f"{secret}/other.json",
        "../../../secret/other.json",
    ):
        trajectory.write_text(json.dumps({**steps, "continued_trajectory_ref": name}), "utf-8")
        draft = next(IMPORTERS.get("atif").read(trajectory))
        assert (draft.lost["continuations"], "a secret" in str(draft)) == (1, False), name


def test_a_parquet_file_on_which_polars_gives_up_is_broken(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One bit is enough for polars to panic, or to read nothing without a word."""
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]
    ).write_parquet(path)
    data = path.read_bytes()
    assert len(list(IMPORTERS.get("parquet").read(path))) == 1
    for index in (12, 14):
        path.write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
        with pytest.raises(InputError, match="is a broken Parquet file"):
            list(IMPORTERS.get("parquet").read(path))
        with pytest.raises(InputError, match="not a readable table"):
            read_frame(path)
    assert capfd.readouterr().err == ""
    for value in (1e300, float("inf")):
        pl.DataFrame({"run_id": ["a"], "overall": [value]}).write_parquet(path)
        with pytest.raises(InputError, match=r"column overall: .* is neither a score nor a count"):
            read_frame(path)
    pl.DataFrame({"run_id": ["a"], "overall": [float("nan")]}).write_parquet(path)
    assert read_frame(path)["overall"].to_list() == [None]


def test_answers_without_ids_find_their_calls_in_time_linear_in_both(
    tmp_path: Path, no_runaway
) -> None:
    calls = [{"function": {"name": "bash", "arguments": "{}"}}] * 8_000
    path = tmp_path / "chat.json"
    path.write_text(
        json.dumps(
            [
                {"role": "assistant", "tool_calls": calls},
                *[{"role": "tool", "content": "ok"}] * 8_000,
            ]
        )
    )
    with no_runaway():
        (draft,) = IMPORTERS.get("openai").read(path)
    assert len(draft.messages) == 8_001
