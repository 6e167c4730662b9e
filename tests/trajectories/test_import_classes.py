"""Whose a reply is, which shapes are read, and how formats are recognised, class by class."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import ambjudge
import polars as pl
import pytest
from ambjudge.cli import run as run_command
from ambjudge.trajectories.importers.recognise import recognise
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record.assembly import make_record
from ambjudge.trajectories.turns.segment import segment

DATA = Path(__file__).parents[1] / "data"
IMPORTS, CASES = DATA / "imports", DATA / "cases"


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(line) + "\n" for line in value)
    else:
        text = json.dumps(value)
    path.write_text(text, "utf-8")
    return path


def _import(source: Path, out: Path, format: str = "auto", code: int = 0) -> dict[str, Run]:
    """The imported runs by the paths of their folders."""
    assert run_command(["import", format, str(source), "--out", str(out)]) == code
    runs = [load_run(path) for path in sorted(out.rglob("conversation.json"))]
    return {str(run.path.parent.parent.relative_to(out)): run for run in runs}


# Whose a reply is.


def _claude(role: str, text: str, uuid: str, **fields: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}]}
    if role == "assistant":
        message |= {"id": f"m-{uuid}", "usage": {"input_tokens": 10, "output_tokens": 1}}
    return {"type": role, "uuid": uuid, "sessionId": "own", "message": message, **fields}


def test_what_a_session_copied_from_another_is_no_turn(tmp_path: Path) -> None:
    """A resumed session names the other one; a forked one says so at each entry."""
    for name, mark in (("resumed", {"sessionId": "other"}), ("forked", {"forkedFrom": {"a": 1}})):
        entries = [
            _claude("user", "Earlier.", "1", **mark),
            _claude("assistant", "Long ago.", "2", **mark),
            _claude("user", "Now.", "3"),
            _claude("assistant", "Done.", "4"),
        ]
        path = _write(tmp_path / name / "own.jsonl", entries)
        run = _import(path, tmp_path / f"{name}-out")["own"]
        assert [turn.text for turn in run.turns] == ["Done."]
        assert run.resources.input_tokens == 10
        assert "[earlier assistant]\nLong ago." in run.brief


def test_waiting_for_a_person_is_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """100 of 130 seconds pass until somebody answers; what the program writes is no answer."""
    times = {"1": 0, "2": 10, "3": 110, "4": 120, "5": 125, "6": 130}
    entries = [
        _claude("user", "Go.", "1"),
        _claude("assistant", "Which?", "2"),
        _claude("user", "That one.", "3"),
        _claude("assistant", "More.", "4"),
        _claude("user", "A reminder.", "5", isMeta=True),
        _claude("assistant", "Done.", "6"),
    ]
    for entry in entries:
        minutes, seconds = divmod(times[entry["uuid"]], 60)
        entry["timestamp"] = f"2026-05-01T10:{minutes:02}:{seconds:02}Z"
    run = _import(_write(tmp_path / "own.jsonl", entries), tmp_path / "out")["own"]
    assert run.resources.wall_time_s == 130
    trace = (tmp_path / "out" / "own" / "process" / "trace.jsonl").read_text("utf-8")
    assert json.loads(trace.splitlines()[-1])["active_time_s"] == 30
    assert "100 s of waiting for a message of the user in its wall time" in capsys.readouterr().err


def test_files_of_sub_agents_are_parts_of_their_session(tmp_path: Path) -> None:
    """Also where the sub-agent's file comes first; a search for runs finds the session alone."""
    main = [_claude("user", "Go.", "1"), _claude("assistant", "Done.", "2")]
    side = [{**_claude("assistant", "Helped.", "3"), "isSidechain": True, "agentId": "a1"}]
    for name in ("agent-a1.jsonl", "own/subagents/agent-a1.jsonl"):
        folder = tmp_path / name.replace("/", "-")
        _write(folder / "own.jsonl", main)
        _write(folder / name, side)
        runs = _import(folder, tmp_path / f"{name}-out")
        assert set(runs) == {"own", "own/parts/agent-a1"}
        assert runs["own/parts/agent-a1"].part_of == "own"
        assert [run.id for run in ambjudge.iter_runs(tmp_path / f"{name}-out")] == ["own"]


def _inspect(path: Path, *samples: dict[str, Any], task: str = "t") -> Path:
    log = {"eval": {"task": task, "model": "m", "run_id": "r"}, "samples": list(samples)}
    return _write(path, log)


def _sample(number: int, uuid: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    return {"id": number, "epoch": 1, "uuid": uuid, "messages": messages, **fields}


def test_a_sample_that_a_retry_holds_again_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _inspect(tmp_path / "logs" / "1.json", _sample(1, "u1"), _sample(2, "u2", error={"m": "x"}))
    _inspect(tmp_path / "logs" / "2.json", _sample(1, "u1"), _sample(2, "u3"))
    runs = _import(tmp_path / "logs", tmp_path / "out")
    assert set(runs) == {"t_1_epoch_1", "t_2_epoch_1", "t_2_epoch_1-2"}
    assert "1 held by another file already" in capsys.readouterr().err
    assert [run.outcomes["has_error"].value for run in runs.values()] == [False, True, False]


def test_examples_of_a_dataset_are_no_turns(tmp_path: Path) -> None:
    example = {"role": "assistant", "content": "An example.", "source": "input"}
    sample = _sample(1, "u")
    sample["messages"].insert(1, example)
    run = _import(_inspect(tmp_path / "log.json", sample), tmp_path / "out")["t_1_epoch_1"]
    assert [turn.text for turn in run.turns] == ["A"]


def test_who_spoke_stands_in_the_record(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "name": "Orchestrator", "content": "You first."},
        {"role": "assistant", "name": "Web\nSurfer]", "content": "Nothing there."},
    ]
    run = _import(_write(tmp_path / "a.json", {"messages": messages}), tmp_path / "out")["a"]
    assert [turn.speaker for turn in run.turns] == ["Orchestrator", "Web\nSurfer]"]
    text = make_record(run, segment(run)).text
    assert ", by Orchestrator]" in text
    assert ', by "Web␤Surfer)"]' in text


def _span(
    trace: str, span: str, parent: str, kind: str, start: int, **attributes: Any
) -> dict[str, Any]:
    return {
        "context": {"trace_id": trace, "span_id": span},
        "parent_id": parent or None,
        "span_kind": kind,
        "name": attributes.pop("name", span),
        "start_time": f"2026-05-01T10:00:{start:02}+00:00",
        "end_time": f"2026-05-01T10:00:{start + 1:02}+00:00",
        "attributes": attributes,
    }


def _call(span: str, parent: str, start: int, text: str, said: str) -> dict[str, Any]:
    attributes = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": text,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
    }
    return _span("t", span, parent, "LLM", start, **attributes)


AGENTS: dict[str, tuple[list[dict[str, Any]], dict[str, list[str]]]] = {
    "no agent": ([_call("1", "", 1, "q", "a")], {"t": ["a"]}),
    "one agent": (
        [_span("t", "A", "", "AGENT", 0), _call("1", "A", 1, "q", "a")],
        {"t": ["a"]},
    ),
    "an agent in itself is itself": (
        [
            _span("t", "A", "", "AGENT", 0, name="main"),
            _span("t", "B", "A", "AGENT", 0, name="main"),
            _call("1", "B", 1, "q", "a"),
            _call("2", "A", 3, "r", "b"),
        ],
        {"t": ["a", "b"]},
    ),
    "agents that hand over": (
        [
            _span("t", "W", "", "AGENT", 0, name="workflow"),
            _span("t", "A", "W", "AGENT", 0, name="first"),
            _span("t", "B", "W", "AGENT", 3, name="second"),
            _call("1", "A", 1, "q", "a"),
            _call("2", "B", 4, "r", "b"),
        ],
        {"t": ["first: a", "second: b"]},
    ),
    "an agent as a tool": (
        [
            _span("t", "A", "", "AGENT", 0, name="main"),
            _call("1", "A", 1, "q", "a"),
            _span("t", "T", "A", "TOOL", 2),
            _span("t", "B", "T", "AGENT", 2, name="helper"),
            _call("2", "B", 3, "r", "b"),
            _span("t", "C", "B", "AGENT", 4, name="third"),
            _call("3", "C", 5, "s", "c"),
        ],
        {"t": ["a"], "t/parts/t-B": ["b"], "t/parts/t-B/parts/t-C": ["c"]},
    ),
    "one call, traced twice": (
        [_call("1", "", 1, "q", "a"), _call("2", "1", 1, "q", "a")],
        {"t": ["a"]},
    ),
    "a span in a circle": ([_call("1", "1", 1, "q", "a")], {"t": ["a"]}),
}


@pytest.mark.parametrize("name", AGENTS)
def test_agents_of_a_trace(name: str, tmp_path: Path) -> None:
    spans, expected = AGENTS[name]
    runs = _import(_write(tmp_path / "spans.jsonl", spans), tmp_path / "out", "otel")
    texts = {}
    for folder, run in runs.items():
        names = [f"{turn.speaker}: " if turn.speaker else "" for turn in run.turns]
        texts[folder] = [a + turn.text for a, turn in zip(names, run.turns, strict=True)]
    assert texts == expected


def test_a_reply_that_only_the_next_input_shows_is_that_call_s(tmp_path: Path) -> None:
    first, second = _call("1", "", 1, "q", "a"), _call("2", "", 3, "q", "b")
    for key in ("llm.output_messages.0.message.role", "llm.output_messages.0.message.content"):
        del first["attributes"][key]
    second["attributes"] |= {
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.content": "a",
    }
    run = _import(_write(tmp_path / "s.jsonl", [first, second]), tmp_path / "out", "otel")["t"]
    assert [(turn.text, turn.time_s) for turn in run.turns] == [("a", 1.0), ("b", 3.0)]


# Shapes.


def test_a_folder_of_events_of_the_first_openhands_is_one_run(tmp_path: Path) -> None:
    """Its files are numbered without leading zeros, and the model stands in no event."""
    folder = tmp_path / "sessions" / "abc"
    _write(folder / "metadata.json", {"title": "t", "llm_model": "gpt-x"})
    action = {"source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}}
    answer = {"source": "agent", "observation": "run", "content": "a.txt", "cause": 9}
    events = {
        8: {"source": "user", "action": "message", "args": {"content": "q"}},
        9: action,
        10: {**answer, "extras": {"metadata": {"exit_code": 0}}},
    }
    for number, event in events.items():
        _write(folder / "events" / f"{number}.json", {"id": number, **event})
    for source in (tmp_path / "sessions", folder, folder / "events"):
        runs = _import(source, tmp_path / f"{source.name}-out")
        run = runs["abc"]
        assert list(runs) == ["abc"]
        assert (run.brief, run.turns[0].text, run.turns[0].code) == ("q", "I look.", "ls")
        assert run.turns[0].output == "a.txt"
        assert run.model == "gpt-x"


def test_inspect_s_calls_are_read_wherever_they_stand(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": "bash", "arguments": {"command": "ls"}}
    error = {"type": "timeout", "message": "no"}
    messages = [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "", "error": error},
    ]
    columns = {
        "transcript_id": "tr1",
        "task_set": "arith",
        "task_id": "7",
        "task_repeat": 2,
        "messages": json.dumps(messages),
        "success": True,
    }
    pl.DataFrame([columns]).write_parquet(tmp_path / "scout.parquet")
    sources = {
        "tr1": tmp_path / "scout.parquet",
        "bare": _write(tmp_path / "bare.json", messages),
    }
    for name, path in sources.items():
        run = _import(path, tmp_path / f"{name}-out")[name]
        (action,) = run.turns[0].actions
        assert (action.code, action.language) == ("ls", "bash")
        assert action.observation is not None
        assert action.observation.kind == "timeout"
    run = load_run(tmp_path / "tr1-out" / "tr1")
    assert (run.task, run.repeat, run.outcomes["success"].value) == ("arith/7", 2, True)


_CALL = {"name": "bash", "args": {"command": "ls"}, "id": "c1", "type": "tool_call"}
LANGCHAIN = [
    {"type": "human", "content": "q"},
    {"type": "ai", "content": "", "tool_calls": [_CALL]},
    {"type": "tool", "content": "no", "tool_call_id": "c1", "status": "error"},
    {"type": "ai", "content": "done", "usage_metadata": {"input_tokens": 9, "output_tokens": 2}},
]
TAU: dict[str, Any] = {
    "task_id": 3,
    "trial": 1,
    "reward": 1.0,
    "traj": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [_CALL]},
        {"role": "tool", "id": "c1", "content": "no", "error": True},
        {"role": "assistant", "content": "done"},
    ],
}
TAU2 = {
    "info": {
        "agent_info": {"implementation": "llm_agent", "llm": "gpt-x"},
        "environment_info": {"domain_name": "airline"},
    },
    "simulations": [
        {
            "id": "s1",
            "task_id": "3",
            "trial": 1,
            "termination_reason": "user_stop",
            "agent_cost": 0.5,
            "duration": 60.0,
            "reward_info": {"reward": 0.0},
            "messages": TAU["traj"],
        }
    ],
}
_AS_DUMPS = [
    {"lc": 1, "type": "constructor", "id": ["m", f"{name}Message"], "kwargs": message}
    for name, message in zip(("Human", "AI", "Tool", "AI"), LANGCHAIN, strict=True)
]
CHATS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LangChain": ({"messages": LANGCHAIN}, {"id": "a"}),
    "LangChain's dumps": ({"messages": _AS_DUMPS}, {"id": "a"}),
    "tau-bench": ([TAU], {"id": "a-task-3-trial-1", "task": "3", "repeat": 1}),
    "tau2": (
        TAU2,
        {"id": "s1", "task": "airline/3", "repeat": 1, "agent": "llm_agent", "model": "gpt-x"},
    ),
}


@pytest.mark.parametrize("name", CHATS)
def test_chats_of_other_tools(name: str, tmp_path: Path) -> None:
    value, expected = CHATS[name]
    (run,) = _import(_write(tmp_path / "a.json", value), tmp_path / "out").values()
    assert {key: getattr(run, key) for key in expected} == expected
    assert [turn.text for turn in run.turns] == ["", "done"]
    (action,) = run.turns[0].actions
    assert (action.code, action.failed) == ("ls", True)
    if name == "tau2":
        assert (run.resources.cost_usd, run.resources.wall_time_s) == (0.5, 60.0)


def test_outputs_that_are_blocks_keep_their_text(tmp_path: Path) -> None:
    items = [
        {"type": "function_call", "name": "bash", "call_id": "c", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [
                {"type": "input_text", "text": "a.txt"},
                {"type": "input_text", "text": "b"},
            ],
        },
    ]
    run = _import(_write(tmp_path / "items.json", items), tmp_path / "out", "responses")["items"]
    observation = run.turns[0].actions[0].observation
    assert observation is not None
    assert (observation.text, observation.kind) == ("a.txt\nb", "unknown")


UNREADABLE: dict[str, tuple[str, Any, str]] = {
    "calls of an unknown shape": (
        "openai",
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": [{"tool": "bash"}]}]},
        "none of its 1 calls can be read",
    ),
    "turns of an unknown shape": (
        "openai",
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "body": "x"}]},
        "none of its 1 turns holds text or a call",
    ),
    "events of an unknown shape": (
        "openhands",
        [{"source": "agent", "kind": "Mystery", "payload": 1}],
        "holds no OpenHands events",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unknown_shape_is_no_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    format, value, words = UNREADABLE[name]
    _import(_write(tmp_path / "a.json", value), tmp_path / "out", format, code=2)
    assert words in capsys.readouterr().err


def test_the_first_events_of_openhands_keep_their_commands(tmp_path: Path) -> None:
    """Their arguments, exit codes and thoughts stood beside the names; pairs were one item."""
    action = {"action": "run", "command": "ls", "thought": "I look."}
    answer = {"observation": "run", "content": "a.txt", "exit_code": 2}
    for name, history in (
        ("pairs", [[action, answer]]),
        ("objects", [{"action": action, "observation": answer}]),
    ):
        line = {"instance_id": name, "history": history}
        run = _import(_write(tmp_path / f"{name}.jsonl", [line]), tmp_path / name, "openhands")[
            name
        ]
        assert (run.turns[0].text, run.turns[0].code) == ("I look.", "ls")
        observation = run.turns[0].actions[0].observation
        assert observation is not None
        assert (observation.exit_code, observation.text) == (2, "a.txt")


def test_an_agent_without_tools_has_neither_set_up_nor_trial(tmp_path: Path) -> None:
    card_of: dict[str, Any] = {}
    for name, tools in (("none", []), ("unused", [{"name": "bash"}])):
        event = {"event": "model", "tools": tools, "output": {"choices": []}}
        path = _inspect(tmp_path / f"{name}.json", _sample(1, name, events=[event]), task=name)
        run = _import(path, tmp_path / f"{name}-out")[f"{name}_1_epoch_1"]
        card_of[name] = ambjudge.score(run, track="segmentation", tier="lite")
    for stage in ("S2", "S3"):
        assert card_of["none"].stages[stage].score is None
        results = card_of["none"].stages[stage].criteria
        assert {result.status for result in results} == {"not_applicable"}
        assert card_of["unused"].stages[stage].score == 0


# Recognition.


@pytest.mark.parametrize(
    "place",
    [
        "imports/anthropic.json",
        "imports/claude-code.jsonl",
        "imports/codex/rollout-2026-01-05T10-00-00-0199.jsonl",
        "imports/inspect.json",
        "imports/mini-swe-agent/kidney.traj.json",
        "imports/openai.json",
        "imports/openhands.json",
        "imports/otel/traces.json",
        "imports/responses.json",
        "imports/swe-agent.traj",
        "imports/autogen/result.json",
        "imports/autogen/stream.jsonl",
        "imports/gemini-cli/session-2026-01-05T10-00-b1d2c3e4.jsonl",
        "imports/gemini-cli/stream.jsonl",
        "imports/langchain/history.json",
        "imports/langchain/updates.jsonl",
        "imports/smolagents/result.json",
        "imports/tau2/2026-01-05_telecom_llm_agent_gpt-x.json",
    ],
)
def test_a_format_is_recognised_packed_and_behind_a_banner(place: str, tmp_path: Path) -> None:
    path = DATA / place
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert recognise(packed) == recognise(path)
    plain_runs = _import(path, tmp_path / "plain")
    packed_runs = _import(packed, tmp_path / "packed")
    assert list(packed_runs) == list(plain_runs)
    for name, run in plain_runs.items():
        assert run.turns == packed_runs[name].turns
    if path.suffix == ".jsonl":
        banner = tmp_path / path.name
        banner.write_text("[notice] a newer version\n" + path.read_text("utf-8"), "utf-8")
        assert recognise(banner) == recognise(path)


def test_folders_are_read_packed_as_they_are_plain(tmp_path: Path) -> None:
    """Files that are read for another one are found by their names, compressed or not."""
    folders = "codex gemini-cli harbor-raw tau2 terminal-bench vera".split()
    for folder in [*(DATA / "imports" / name for name in folders), DATA / "cases/codex-fork"]:
        source = tmp_path / folder.name / "source"
        shutil.copytree(folder, source)
        plain_runs = _import(source, source.parent / "plain")
        for file in [path for path in source.rglob("*") if path.is_file()]:
            file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
        packed_runs = _import(source, source.parent / "packed")
        assert list(packed_runs) == list(plain_runs)
        for name, run in plain_runs.items():
            assert run.turns == packed_runs[name].turns
            assert run.resources == packed_runs[name].resources


def test_auto_uses_the_format_that_a_reader_names(tmp_path: Path) -> None:
    """The first 64 kB of this file are like any chat; its tool blocks come later."""
    filler = [{"role": "user", "content": "q " * 20_000}, {"role": "assistant", "content": "a"}]
    late = json.loads((IMPORTS / "anthropic.json").read_text("utf-8"))["messages"]
    path = _write(tmp_path / "late.json", {"messages": [*filler * 2, *late]})
    assert recognise(path) == "openai"
    run = _import(path, tmp_path / "out")["late"]
    assert run.imported == "anthropic"
    assert sum(len(turn.actions) for turn in run.turns) == 1
