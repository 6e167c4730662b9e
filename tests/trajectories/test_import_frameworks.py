"""Readers of tau-bench, LangChain, Gemini CLI, AutoGen, smolagents, Scout: each case of its own.

The tables that all importers share are in the other tests of importers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ambjudge.cli import run as run_command
from ambjudge.errors import InputError
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.draft import Draft
from ambjudge.trajectories.importers.saving import save_run
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run

IMPORTS = Path(__file__).parents[1] / "data" / "imports"
BRIEF, COMMAND = "Segment the kidneys.", "ls"


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in value), "utf-8")
    else:
        path.write_text(json.dumps(value), "utf-8")
    return path


def _drafts(format: str, path: Path) -> list[Draft | InputError]:
    items: list[Draft | InputError] = []
    try:
        items += IMPORTERS.get(format).read(path)
    except InputError as error:
        items.append(error)
    return items


def _draft(format: str, path: Path) -> Draft:
    (draft,) = _drafts(format, path)
    assert isinstance(draft, Draft)
    return draft


def _run(format: str, value: Any, folder: Path, name: str = "a.json") -> Run:
    path = _write(folder / name, value)
    return load_run(save_run(_draft(format, path), folder / "run", path, force=True))


def _import(source: Path, out: Path) -> dict[str, Run]:
    assert run_command(["import", "auto", str(source), "--out", str(out)]) == 0
    runs = [load_run(path) for path in sorted(out.rglob("conversation.json"))]
    return {str(run.path.parent.parent.relative_to(out)): run for run in runs}


# tau-bench and tau2.


def test_trials_of_one_task_are_its_repeats(tmp_path: Path) -> None:
    (trial,) = json.loads(next((IMPORTS / "tau-bench").glob("*.json")).read_text("utf-8"))
    failed = {"task_id": 8, "trial": 0, "reward": 0.0, "info": {"error": "rate limit"}, "traj": []}
    path = _write(tmp_path / "a.json", [trial, {**trial, "trial": 2}, failed])
    first, second, error = _drafts("tau-bench", path)
    assert isinstance(first, Draft)
    assert isinstance(second, Draft)
    assert (first.task, first.repeat, second.task, second.repeat) == ("retail/7", 1, "retail/7", 2)
    assert "[2]: failed before the agent replied: rate limit" in str(error)


def test_a_conversation_that_its_user_ends_is_not_cut(tmp_path: Path) -> None:
    """Neither is one that the agent hands to a person."""
    (trial,) = json.loads(next((IMPORTS / "tau-bench").glob("*.json")).read_text("utf-8"))
    run = _run("tau-bench", [trial], tmp_path)
    assert (run.status.ended, run.turns[-1].replies) == ("stopped", ())
    name = "transfer_to_human_agents"
    call = {"id": "t", "function": {"name": name, "arguments": '{"summary": "Needs a person."}'}}
    trial["traj"][-2:] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t", "name": name, "content": "Transfer successful"},
    ]
    assert _run("tau-bench", [trial], tmp_path).status.ended == "stopped"


def test_what_the_simulated_user_did_is_not_the_agent_s(tmp_path: Path) -> None:
    path = IMPORTS / "tau2" / "2026-01-05_telecom_llm_agent_gpt-x.json"
    draft = _draft("tau-bench", path)
    run = load_run(save_run(draft, tmp_path / "run", path, force=True))
    assert [action.tool for turn in run.turns for action in turn.actions] == ["bash"]
    assert run.resources.cost_usd == 0.05
    assert "Hi! How can I help you today?" not in [turn.text for turn in run.turns]
    assert [list(record) for record in draft.origin["user_calls"]] == [["call"], ["result"]]


def test_a_folder_of_tau2_is_one_run_a_simulation(tmp_path: Path) -> None:
    runs = _import(IMPORTS / "tau2", tmp_path / "out")
    assert {name: (run.agent, run.task) for name, run in runs.items()} == {
        "5f0e-1": ("llm_agent", "telecom/kidneys"),
        "5f0e-2": ("llm_agent", "telecom/kidneys"),
    }


# LangChain.


def _ai(**fields: Any) -> dict[str, Any]:
    return {"type": "ai", "content": "", **fields}


def test_a_call_that_cannot_be_parsed_is_a_failed_one(tmp_path: Path) -> None:
    invalid = {"name": "bash", "args": '{"command": "l', "id": "c", "error": "broken JSON"}
    messages = [{"type": "human", "content": BRIEF}, _ai(invalid_tool_calls=[invalid])]
    run = _run("langchain", messages, tmp_path)
    (action,) = run.turns[0].actions
    assert action.observation is not None
    assert (action.tool, action.observation.text, action.failed) == ("bash", "broken JSON", True)


USAGES: dict[str, dict[str, Any]] = {
    "metadata": {"usage_metadata": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}},
    "the provider's": {
        "response_metadata": {"token_usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    },
    "JavaScript": {"response_metadata": {"tokenUsage": {"promptTokens": 9, "completionTokens": 2}}},
}


@pytest.mark.parametrize("name", USAGES)
def test_tokens_wherever_a_version_has_them(name: str, tmp_path: Path) -> None:
    messages = [{"type": "human", "content": BRIEF}, _ai(content="Done.", **USAGES[name])]
    run = _run("langchain", {"messages": messages}, tmp_path)
    assert (run.resources.input_tokens, run.resources.output_tokens) == (9, 2)


def test_calls_of_earlier_versions_are_the_provider_s(tmp_path: Path) -> None:
    function = {"name": "bash", "arguments": json.dumps({"command": COMMAND})}
    call = {"id": "c", "type": "function", "function": function}
    messages = [
        {"type": "human", "data": {"content": BRIEF}},
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": [call]}}},
    ]
    assert _run("langchain", messages, tmp_path).turns[0].code == COMMAND


def test_speakers_are_names_or_nodes_and_examples_are_no_turns(tmp_path: Path) -> None:
    messages = [
        {"type": "human", "content": "q", "example": True},
        _ai(content="An example.", example=True),
        _ai(content="You first.", name="supervisor"),
        _ai(content="Done.", name="coder"),
    ]
    run = _run("langchain", {"messages": messages}, tmp_path)
    assert [(turn.speaker, turn.text) for turn in run.turns] == [
        ("supervisor", "You first."),
        ("coder", "Done."),
    ]
    path = IMPORTS / "langchain" / "updates.jsonl"
    run = load_run(save_run(_draft("langchain", path), tmp_path / "updates", path, force=True))
    assert [turn.speaker for turn in run.turns] == ["planner", "writer"]


# Gemini CLI.

HEAD = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-05T10:00:00Z"}
ASKED = {"id": "u", "type": "user", "content": [{"text": BRIEF}]}


def _gemini(text: str, **fields: Any) -> dict[str, Any]:
    return {"id": text, "type": "gemini", "content": text, **fields}


def test_a_session_that_goes_on_in_a_newer_file_is_one_run(tmp_path: Path) -> None:
    _write(tmp_path / "chats" / "session-1.json", {**HEAD, "messages": [ASKED, _gemini("a")]})
    _write(tmp_path / "chats" / "session-1.jsonl", [HEAD, ASKED, _gemini("a"), _gemini("b")])
    runs = _import(tmp_path / "chats", tmp_path / "out")
    assert {name: len(run.turns) for name, run in runs.items()} == {"s": 2}


def test_a_sub_agent_s_session_is_a_part(tmp_path: Path) -> None:
    _write(tmp_path / "chats" / "session-1.jsonl", [HEAD, ASKED, _gemini("Done.")])
    part = {**HEAD, "sessionId": "helper", "kind": "subagent"}
    _write(tmp_path / "chats" / "s" / "helper.jsonl", [part, ASKED, _gemini("Helped.")])
    assert set(_import(tmp_path / "chats", tmp_path / "out")) == {"s", "s/parts/helper"}


def test_a_rewritten_history_brings_no_turns_and_takes_none(tmp_path: Path) -> None:
    summary = {"id": "x", "type": "user", "content": [{"text": "A summary."}]}
    rewritten = [summary, {**_gemini("y"), "content": "Got it."}, {**_gemini("a"), "content": "…"}]
    lines = [HEAD, ASKED, _gemini("a"), {"$set": {"messages": rewritten}}, {"$rewindTo": "a"}]
    run = _run("gemini-cli", [*lines, _gemini("b")], tmp_path, "a.jsonl")
    assert [turn.text for turn in run.turns] == ["a", "b"]


def test_a_result_that_the_history_repeats_counts_once(tmp_path: Path) -> None:
    answer = {"id": "c", "name": "run_shell_command", "response": {"output": "Exit Code: 128"}}
    result = [{"functionResponse": answer}]
    call = {"id": "c", "name": "run_shell_command", "args": {"command": COMMAND}}
    reply = _gemini("a", toolCalls=[{**call, "status": "success", "result": result}])
    reply["content"] = [{"text": "a"}, {"functionCall": call}]
    again = {"id": "r", "type": "user", "content": result}
    run = _run("gemini-cli", {**HEAD, "messages": [ASKED, reply, again]}, tmp_path)
    assert (run.resources.calls, run.resources.failed_calls) == (1, 1)
    observation = run.turns[0].actions[0].observation
    assert observation is not None
    assert observation.exit_code == 128


# AutoGen.


def _said(kind: str, source: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "source": source, "content": content, **fields}


def test_an_agent_that_asks_for_input_speaks_for_a_person(tmp_path: Path) -> None:
    messages = [
        _said("TextMessage", "user", BRIEF),
        _said("TextMessage", "coder", "Which side?"),
        _said("UserInputRequestedEvent", "proxy", "", request_id="r"),
        _said("TextMessage", "proxy", "Both."),
        _said("StructuredMessage[Answer]", "coder", {"done": True}),
    ]
    run = _run("autogen", {"messages": messages, "stop_reason": "x"}, tmp_path)
    assert [turn.speaker for turn in run.turns] == [None, None]
    assert "true" in run.turns[1].text.lower()
    assert "Both." in str(run.turns[0].replies)


def test_code_that_was_generated_is_a_call_with_its_exit_code(tmp_path: Path) -> None:
    block = {"code": COMMAND, "language": "bash"}
    messages = [
        _said("TextMessage", "user", BRIEF),
        _said("CodeGenerationEvent", "coder", "Now.", retry_attempt=0, code_blocks=[block]),
        {
            "type": "CodeExecutionEvent",
            "source": "coder",
            "retry_attempt": 0,
            "result": {"exit_code": 2, "output": "no"},
        },
    ]
    run = _run("autogen", messages, tmp_path, "a.jsonl")
    (action,) = run.turns[0].actions
    assert action.observation is not None
    assert (action.language, action.code, action.observation.exit_code) == ("bash", COMMAND, 2)


# smolagents.


def _step(number: int, **fields: Any) -> dict[str, Any]:
    return {"step_number": number, "model_output": "x", "tool_calls": [], **fields}


def test_steps_without_calls(tmp_path: Path) -> None:
    """A plan, a reply that cannot be parsed, and a step in which the model did not reply."""
    error = {"type": "AgentParsingError", "message": "no code"}
    refused = {"type": "AgentGenerationError", "message": "402"}
    message = {"role": "assistant", "content": "First look."}
    steps = [
        {"system_prompt": "Be careful."},
        {"task": BRIEF, "task_images": None},
        {"plan": "First look.", "model_output_message": message, "model_input_messages": []},
        _step(1, error=error),
        _step(2, model_output=None, error=refused),
    ]
    run = _run("smolagents", steps, tmp_path)
    assert [turn.text for turn in run.turns] == ["First look.", "x"]
    assert "no code" in str(run.turns[1].replies)
    assert run.outcomes["error.type"].value == "AgentGenerationError"


# VERA.


def _vera(folder: Path, *items: tuple[str, dict[str, Any]]) -> Run:
    """A rollout of one turn with these items, each with the method of its event."""
    events = [{"method": f"item/{state}", "payload": {"item": item}} for state, item in items]
    receipt = {"schema": "eva.codex-turn-receipt.v1", "status": "completed", "events": events}
    rollout = {"schema": "eva.automedbench-codex-track-rollout.v1", "track": "vqa", "run_id": "r"}
    _write(folder / "turns" / "01-planning" / "receipt.json", receipt)
    path = _write(folder / "rollout.json", rollout)
    return load_run(save_run(_draft("vera", path), folder / "run", path, force=True))


def _tool(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "mcpToolCall", "tool": "read", "arguments": {}, **fields}


MARKS: dict[str, tuple[dict[str, Any], str]] = {
    "status": ({"status": "failed"}, "failed"),
    "isError": ({"status": "completed", "result": {"isError": True, "content": []}}, "failed"),
    "error": ({"status": "completed", "error": {"message": "no"}}, "failed"),
    "declined": ({"status": "declined"}, "blocked"),
}


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_in_a_receipt_counts(name: str, tmp_path: Path) -> None:
    fields, kind = MARKS[name]
    run = _vera(tmp_path, ("completed", _tool("a", **fields)))
    observation = run.turns[0].actions[0].observation
    assert observation is not None
    assert (observation.kind, run.resources.failed_calls) == (kind, 1)


def test_calls_that_overlap_are_one_reply(tmp_path: Path) -> None:
    run = _vera(
        tmp_path,
        ("started", _tool("a")),
        ("started", _tool("b")),
        ("completed", _tool("b")),
        ("completed", _tool("a")),
        ("started", _tool("c")),
        ("completed", {"id": "m", "type": "agentMessage", "text": "Done."}),
    )
    assert [(turn.text, len(turn.actions)) for turn in run.turns] == [("", 2), ("Done.", 1)]
    assert (run.track, run.turns[1].actions[0].observation) == ("vqa", None)


# Inspect Scout.


def test_transcripts_of_scout_are_read_like_samples(tmp_path: Path) -> None:
    call = {"id": "c", "function": "bash", "arguments": {"command": COMMAND}, "type": "function"}
    thought = {"type": "reasoning", "reasoning": "Hm.", "signature": "s"}
    messages = [
        {"role": "system", "content": "Be careful."},
        {"role": "user", "content": BRIEF},
        {
            "id": "m",
            "role": "assistant",
            "content": [thought, {"type": "text", "text": "Now."}],
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": "c", "content": "", "error": {"type": "timeout"}},
    ]
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 150}
    output = {
        "choices": [{"message": {"id": "m"}, "stop_reason": "tool_calls"}],
        "usage": {**usage, "input_tokens_cache_read": 30},
    }
    event = {"event": "model", "timestamp": "2026-01-05T10:00:00+00:00", "output": output}
    row = {
        "transcript_id": "t1",
        "source_type": "eval_log",
        "task_set": "arith",
        "task_id": "7",
        "task_repeat": 2,
        "agent": "react",
        "model": "gpt-x",
        "score": '"C"',
        "success": True,
        "total_time": 12.5,
        "total_tokens": 150,
        "error": None,
        "limit": "messages",
        "messages": json.dumps(messages),
        "events": json.dumps([{**event, "completed": "2026-01-05T10:00:04+00:00"}]),
        "timelines": "[1]",
    }
    path = tmp_path / "transcripts.parquet"
    pl.DataFrame([row, {**row, "transcript_id": "t2", "messages": "[]"}]).write_parquet(path)
    draft, error = _drafts("parquet", path)
    assert isinstance(draft, Draft)
    assert "row 2: the transcript holds no messages" in str(error)
    run = load_run(save_run(draft, tmp_path / "run", path, force=True))
    (turn,) = run.turns
    assert (turn.reasoning, turn.text, turn.code, turn.time_s) == ("Hm.", "Now.", COMMAND, 4.0)
    assert (turn.input_tokens, turn.output_tokens) == (130, 20)
    assert turn.actions[0].observation is not None
    assert turn.actions[0].observation.kind == "timeout"
    assert (draft.name, run.agent, run.task, run.repeat) == ("t1", "react", "arith/7", 2)
    assert {name: outcome.value for name, outcome in run.outcomes.items()} == {
        "has_error": False,
        "has_limit": True,
        "score": 1.0,
        "success": True,
        "total_tokens": 150.0,
    }
    assert draft.lost["column timelines"] == 1


# What is refused.

REFUSED: dict[str, tuple[str, Any, str]] = {
    "a spoken simulation": (
        "tau-bench",
        {"task_id": "1", "termination_reason": "user_stop", "ticks": [{"tick_id": 0}]},
        "is a spoken simulation",
    ),
    "a role of no conversation": (
        "tau-bench",
        [{"task_id": 1, "traj": [{"role": "judge", "content": "x"}], "reward": 1}],
        "has the unknown role 'judge'",
    ),
    "an entry of another type": (
        "gemini-cli",
        {**HEAD, "messages": [ASKED, {"id": "x", "type": "qwen", "content": "x"}]},
        "messages[1] has the unknown type 'qwen'",
    ),
    "a step of another shape": (
        "smolagents",
        [{"task": BRIEF, "task_images": None}, {"thought": "x", "code": "y"}],
        "step 1 has an unknown shape: code, thought",
    ),
    "messages of no known type": (
        "langchain",
        {"messages": [{"type": "note", "content": "x"}]},
        "is not a conversation of LangChain",
    ),
    "a state without a thread": (
        "autogen",
        {"type": "TeamState", "agent_states": {"a": {"llm_context": {"messages": []}}}},
        "is not a conversation of AutoGen",
    ),
}


def test_telemetry_of_gemini_cli_names_the_session_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a row of indented objects, as its exporter writes them."""
    names = ("gemini_cli.user_prompt", "gemini_cli.tool_call")
    records = [
        json.dumps({"hrTime": [1, 2], "attributes": {"event.name": n}}, indent=2) for n in names
    ]
    path = tmp_path / "telemetry.json"
    path.write_text("\n".join(records) + "\n", "utf-8")
    assert run_command(["import", "auto", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "has no outputs of tools (give the session" in capsys.readouterr().err


@pytest.mark.parametrize("name", REFUSED)
def test_a_shape_that_is_unknown_is_named(name: str, tmp_path: Path) -> None:
    format, value, words = REFUSED[name]
    (error,) = _drafts(format, _write(tmp_path / "a.json", value))
    assert isinstance(error, InputError)
    assert words in str(error)
