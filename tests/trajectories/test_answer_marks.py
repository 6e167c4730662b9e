"""How a call went, by its source's own mark: in every format, in the rules, and back again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ambjudge
import polars as pl
import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.trace_facts import trace_facts
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.draft import Draft
from ambjudge.trajectories.importers.exporters import EXPORTERS
from ambjudge.trajectories.importers.saving import save_run
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.answer_marks import kind_of_error, stated_kind
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment

BRIEF = "Segment the kidneys."
COMMAND = "cat > plan.md <<'EOF'\n# Plan\nModel: MedSAM\nEOF"
REASON = "nothing was executed"
ARGUMENTS = json.dumps({"command": COMMAND})
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": ARGUMENTS}}


def _openai(**marks: Any) -> Any:
    return {
        "messages": [
            {"role": "user", "content": BRIEF},
            {"role": "assistant", "content": "Now.", "tool_calls": [CHAT_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": REASON, **marks},
        ]
    }


def _anthropic_messages(**marks: Any) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": COMMAND}}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": REASON, **marks}
    return [
        {"role": "user", "content": BRIEF},
        {"role": "assistant", "content": [{"type": "text", "text": "Now."}, call]},
        {"role": "user", "content": [answer]},
    ]


def _anthropic(**marks: Any) -> Any:
    return {"messages": _anthropic_messages(**marks)}


def _server_tool(**content: Any) -> Any:
    call = {"type": "server_tool_use", "id": "c1", "name": "bash", "input": {"command": COMMAND}}
    answer = {"type": "bash_code_execution_tool_result", "tool_use_id": "c1", "content": content}
    reply = {"role": "assistant", "content": [call, answer]}
    return {"system": "s", "messages": [{"role": "user", "content": BRIEF}, reply]}


def _claude_code(beside: Any = None, **marks: Any) -> Any:
    lines = []
    for position, message in enumerate(_anthropic_messages(**marks)):
        head = {"type": message["role"], "uuid": f"u{position}", "sessionId": "s"}
        lines.append({**head, "message": message})
    lines[-1]["toolUseResult"] = beside
    return lines


def _inspect(**error: Any) -> Any:
    call = {"id": "c1", "function": "bash", "arguments": {"command": COMMAND}, "type": "function"}
    messages = [
        {"role": "user", "content": BRIEF},
        {"role": "assistant", "content": "Now.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "", "error": error},
    ]
    sample = {"id": 1, "epoch": 1, "messages": messages}
    return {"eval": {"task": "t", "run_id": "r", "model": "m"}, "samples": [sample]}


def _openhands_0(**observation: Any) -> Any:
    action = {"action": "run", "args": {"command": COMMAND}, "source": "agent", "id": 1}
    answer = {"observation": "run", "content": REASON, "source": "agent", "cause": 1, "id": 2}
    return [
        {"action": "message", "args": {"content": BRIEF}, "source": "user", "id": 0},
        action,
        {**answer, **observation},
    ]


def _openhands_1(**answer: Any) -> Any:
    message = {"role": "user", "content": [{"type": "text", "text": BRIEF}]}
    call = {"id": "c1", "name": "terminal", "arguments": ARGUMENTS}
    action = {"kind": "TerminalAction", "command": COMMAND}
    return [
        {"source": "user", "llm_message": message},
        {
            "source": "agent",
            "action": action,
            "tool_name": "terminal",
            "tool_call_id": "c1",
            "tool_call": call,
        },
        {"source": "environment", "tool_call_id": "c1", "tool_name": "terminal", **answer},
    ]


def _observed(**observation: Any) -> Any:
    return _openhands_1(observation={"content": REASON, **observation})


def _rollout(output: Any, *events: dict[str, Any], **marks: Any) -> Any:
    def line(kind: str, payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-05T10:00:00Z", "type": kind, "payload": payload}

    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": BRIEF}]}
    call = {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": ARGUMENTS}
    answer = {"type": "function_call_output", "call_id": "c1", "output": output, **marks}
    return [
        line("session_meta", {"id": "s"}),
        line("response_item", user),
        line("response_item", call),
        *(line("event_msg", {"call_id": "c1", **event}) for event in events),
        line("response_item", answer),
    ]


def _codex_exec(**marks: Any) -> Any:
    item = {"id": "c1", "type": "command_execution", "command": COMMAND, "exit_code": None}
    item |= {"aggregated_output": REASON, **marks}
    return [{"type": "thread.started", "thread_id": "t"}, {"type": "item.completed", "item": item}]


def _responses(*items: dict[str, Any]) -> Any:
    return [{"role": "user", "content": BRIEF, "type": "message"}, *items]


def _function_output(**marks: Any) -> Any:
    call = {"type": "function_call", "name": "bash", "call_id": "c1", "arguments": ARGUMENTS}
    return _responses(call, {"type": "function_call_output", "call_id": "c1", **marks})


def _server_item(**marks: Any) -> Any:
    call = {"type": "mcp_call", "id": "c1", "name": "bash", "arguments": ARGUMENTS}
    return _responses({**call, **marks})


def _otlp_value(value: Any) -> Any:
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def _otlp_span(start: int, attributes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    pairs = [{"key": key, "value": _otlp_value(item)} for key, item in attributes.items()]
    times = {"startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str((start + 1) * 10**9)}
    return {"traceId": "t", "spanId": str(start), "attributes": pairs, **times, **fields}


def _otel(status: dict[str, Any], error_type: str = "", **part: Any) -> Any:
    brief = {"role": "user", "parts": [{"type": "text", "content": BRIEF}]}
    call = {"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": COMMAND}}
    reply = {"role": "assistant", "parts": [call]}
    answer_part = {"type": "tool_call_response", "id": "c1", "response": REASON, **part}
    history = [brief, reply, {"role": "tool", "parts": [answer_part]}]
    last = {"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1"}
    if error_type:
        tool["error.type"] = error_type
    names = ("gen_ai.input.messages", "gen_ai.output.messages")
    chat = {"gen_ai.operation.name": "chat"}
    spans = [
        _otlp_span(1, {**chat, names[0]: [brief], names[1]: [reply]}),
        _otlp_span(2, tool, status=status),
        _otlp_span(3, {**chat, names[0]: history, names[1]: [last]}),
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _atif(**marks: Any) -> Any:
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": COMMAND}}
    answer = {"source_call_id": "c1", "content": REASON}
    step = {"source": "agent", "message": "Now.", "tool_calls": [call], **marks}
    step["observation"] = {"results": [{**answer, **marks.get("result", {})}]}
    return {"schema_version": "ATIF-v1.6", "steps": [{"source": "user", "message": BRIEF}, step]}


def _mini_swe_agent(**extra: Any) -> Any:
    messages = [
        {"role": "user", "content": BRIEF},
        {"role": "assistant", "content": "Now.", "extra": {"actions": [{"command": COMMAND}]}},
        {"role": "user", "content": REASON, "extra": extra},
    ]
    return {"info": {"mini_version": "2", "exit_status": "x"}, "messages": messages}


def _tau_bench(**answer: Any) -> Any:
    messages = _openai()["messages"]
    messages[-1] |= answer
    return [{"task_id": 1, "trial": 0, "reward": 0.0, "info": {}, "traj": messages}]


def _tau2(**answer: Any) -> Any:
    call = {"id": "c1", "name": "bash", "arguments": {"command": COMMAND}, "requestor": "assistant"}
    messages = [
        {"role": "user", "content": BRIEF},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "id": "c1", "requestor": "assistant", "content": REASON, **answer},
    ]
    return {"task_id": "1", "termination_reason": "max_steps", "messages": messages}


def _langchain(**marks: Any) -> Any:
    call = {"name": "bash", "args": {"command": COMMAND}, "id": "c1", "type": "tool_call"}
    return [
        {"type": "human", "content": BRIEF},
        {"type": "ai", "content": "", "tool_calls": [call]},
        {"type": "tool", "content": REASON, "tool_call_id": "c1", **marks},
    ]


def _gemini_cli(status: str, response: dict[str, Any]) -> Any:
    result = {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": response}}
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": COMMAND}}
    return {
        "sessionId": "s",
        "projectHash": "p",
        "messages": [
            {"id": "1", "type": "user", "content": BRIEF},
            {
                "id": "2",
                "type": "gemini",
                "content": "",
                "toolCalls": [{**call, "status": status, "result": [result]}],
            },
        ],
    }


def _gemini_history(response: dict[str, Any]) -> Any:
    call = {"name": "run_shell_command", "args": {"command": COMMAND}}
    answer = {"name": "run_shell_command", "response": response}
    return [
        {"role": "user", "parts": [{"text": BRIEF}]},
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": answer}]},
    ]


def _gemini_stream(status: str, **answer: Any) -> Any:
    call = {"tool_name": "run_shell_command", "parameters": {"command": COMMAND}}
    return [
        {"type": "init", "session_id": "s", "model": "m", "timestamp": "2026-01-05T10:00:00Z"},
        {"type": "message", "role": "user", "content": BRIEF},
        {"type": "tool_use", "tool_id": "c1", **call},
        {"type": "tool_result", "tool_id": "c1", "status": status, **answer},
    ]


def _autogen(**marks: Any) -> Any:
    call = {"id": "c1", "name": "bash", "arguments": ARGUMENTS}
    answer = {"call_id": "c1", "name": "bash", "content": REASON, **marks}
    return {
        "stop_reason": None,
        "messages": [
            {"type": "TextMessage", "source": "user", "content": BRIEF},
            {"type": "ToolCallRequestEvent", "source": "a", "content": [call]},
            {"type": "ToolCallExecutionEvent", "source": "a", "content": [answer]},
        ],
    }


def _smolagents(**step: Any) -> Any:
    function = {"name": "bash", "arguments": {"command": COMMAND}}
    call = {"id": "c1", "type": "function", "function": function}
    action = {"step_number": 1, "model_output": "Now.", "tool_calls": [call], "observations": None}
    return [{"task": BRIEF, "task_images": None}, {**action, **step}]


ANSWERS: list[tuple[str, str, str, Any, str]] = [
    # format, the mark, file name, content, kind
    ("openai", "status", "a.json", _openai(status="error"), "failed"),
    ("openai", "is_error", "a.json", _openai(is_error=True), "failed"),
    ("openai", "success", "a.json", _openai(status="success"), "ok"),
    ("parquet", "status", "a.parquet", _openai(status="error"), "failed"),
    ("conversation", "is_error", "conversation.json", _openai(is_error=True), "failed"),
    ("anthropic", "is_error", "a.json", _anthropic(is_error=True), "failed"),
    ("anthropic", "no error", "a.json", _anthropic(is_error=False), "ok"),
    (
        "anthropic",
        "server tool",
        "a.json",
        _server_tool(type="x_tool_result_error", error_code="unavailable"),
        "failed",
    ),
    (
        "anthropic",
        "server tool's time",
        "a.json",
        _server_tool(type="x_tool_result_error", error_code="execution_time_exceeded"),
        "timeout",
    ),
    ("claude-code", "is_error", "a.jsonl", _claude_code(is_error=True), "failed"),
    (
        "claude-code",
        "refused",
        "a.jsonl",
        _claude_code("User rejected tool use", is_error=True),
        "blocked",
    ),
    ("claude-code", "interrupted", "a.jsonl", _claude_code({"interrupted": True}), "cancelled"),
    ("inspect", "error", "a.json", _inspect(type="file_not_found", message=REASON), "failed"),
    ("inspect", "permission", "a.json", _inspect(type="permission", message=REASON), "failed"),
    ("inspect", "timeout", "a.json", _inspect(type="timeout", message=REASON), "timeout"),
    ("inspect", "approval", "a.json", _inspect(type="approval", message=REASON), "blocked"),
    ("openhands", "0 error", "a.json", _openhands_0(observation="error"), "failed"),
    ("openhands", "0 success", "a.json", _openhands_0(success=False), "failed"),
    ("openhands", "0 refused", "a.json", _openhands_0(observation="user_rejected"), "blocked"),
    ("openhands", "1 is_error", "a.json", _observed(is_error=True), "failed"),
    ("openhands", "1 error", "a.json", _openhands_1(error=REASON), "failed"),
    ("openhands", "1 refused", "a.json", _openhands_1(rejection_reason=REASON), "blocked"),
    ("openhands", "1 timeout", "a.json", _observed(timeout=True, exit_code=-1), "timeout"),
    (
        "codex",
        "success",
        "rollout.jsonl",
        _rollout({"content": REASON, "success": False}),
        "failed",
    ),
    (
        "codex",
        "patch",
        "rollout.jsonl",
        _rollout(REASON, {"type": "patch_apply_end", "success": False}),
        "failed",
    ),
    (
        "codex",
        "server",
        "rollout.jsonl",
        _rollout(REASON, {"type": "mcp_tool_call_end", "result": {"Ok": {"isError": True}}}),
        "failed",
    ),
    ("codex", "declined", "rollout.jsonl", _rollout(REASON, status="declined"), "blocked"),
    ("codex", "exec failed", "events.jsonl", _codex_exec(status="failed"), "failed"),
    ("codex", "exec declined", "events.jsonl", _codex_exec(status="declined"), "blocked"),
    ("responses", "error", "a.json", _server_item(error=REASON), "failed"),
    ("responses", "status", "a.json", _server_item(status="failed"), "failed"),
    ("responses", "incomplete", "a.json", _function_output(status="incomplete"), "cancelled"),
    (
        "responses",
        "shell",
        "a.json",
        _function_output(output=[{"stdout": "", "stderr": REASON, "outcome": {"type": "timeout"}}]),
        "timeout",
    ),
    ("otel", "span", "a.json", _otel({"code": 2}), "failed"),
    ("otel", "span's error", "a.json", _otel({"code": 2}, error_type="timeout"), "timeout"),
    ("otel", "part", "a.json", _otel({}, is_error=True), "failed"),
    ("atif", "result", "a.json", _atif(result={"extra": {"is_error": True}}), "failed"),
    ("atif", "step", "a.json", _atif(extra={"tool_result_is_error": True}), "failed"),
    ("mini-swe-agent", "exception", "a.traj.json", _mini_swe_agent(exception_info="no"), "failed"),
    (
        "mini-swe-agent",
        "timeout",
        "a.traj.json",
        _mini_swe_agent(returncode=-1, exception_type="TimeoutExpired"),
        "timeout",
    ),
    ("tau-bench", "text", "a.json", _tau_bench(content=f"Error: {REASON}"), "failed"),
    ("tau-bench", "error", "a.json", _tau2(error=True), "failed"),
    ("tau-bench", "no error", "a.json", _tau2(error=False), "ok"),
    ("langchain", "status", "a.json", _langchain(status="error"), "failed"),
    ("langchain", "success", "a.json", _langchain(status="success"), "ok"),
    ("gemini-cli", "status", "a.json", _gemini_cli("error", {"error": REASON}), "failed"),
    ("gemini-cli", "cancelled", "a.json", _gemini_cli("cancelled", {"error": REASON}), "cancelled"),
    ("gemini-cli", "success", "a.json", _gemini_cli("success", {"output": REASON}), "ok"),
    ("gemini-cli", "response", "a.json", _gemini_history({"error": REASON}), "failed"),
    (
        "gemini-cli",
        "stream",
        "a.jsonl",
        _gemini_stream("error", error={"type": "x", "message": REASON}),
        "failed",
    ),
    ("autogen", "is_error", "a.json", _autogen(is_error=True), "failed"),
    ("autogen", "no error", "a.json", _autogen(is_error=False), "ok"),
    (
        "smolagents",
        "error",
        "a.json",
        _smolagents(error={"type": "AgentToolExecutionError", "message": REASON}),
        "failed",
    ),
]
SEVERAL_FILES = {"vera"}
"""Formats whose marks stand in files beside; `test_import_frameworks` has them."""
WITHOUT_MARKS = {"swe-agent", "terminal-bench"}
"""Formats that only have what the terminal showed."""
CASES = [pytest.param(*answer, id=f"{answer[0]}: {answer[1]}") for answer in ANSWERS]


def test_every_format_is_in_the_table() -> None:
    in_table = {answer[0] for answer in ANSWERS}
    assert in_table | WITHOUT_MARKS | SEVERAL_FILES == set(IMPORTERS.names)


def _written(path: Path, value: Any) -> Path:
    if path.suffix == ".parquet":
        pl.DataFrame([value]).write_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in value), "utf-8")
    else:
        path.write_text(json.dumps(value), "utf-8")
    return path


def _draft(format: str, path: Path) -> Draft:
    (draft,) = IMPORTERS.get(format).read(path)
    assert isinstance(draft, Draft)
    return draft


def _run(format: str, file: str, content: Any, folder: Path) -> Run:
    path = _written(folder / file, content)
    return load_run(save_run(_draft(format, path), folder / "run", path, force=True))


@pytest.mark.parametrize(("format", "mark", "file", "content", "kind"), CASES)
def test_the_mark_counts_and_no_rule_calls_it_a_success(
    format: str, mark: str, file: str, content: Any, kind: str, tmp_path: Path
) -> None:
    run = _run(format, file, content, tmp_path)
    observation = run.turns[0].actions[0].observation
    assert observation is not None
    assert (observation.exit_code, observation.kind) == (None, kind)
    is_failure = kind != "ok"
    assert run.resources.failed_calls == is_failure
    assert run.status.violations == 0
    card = ambjudge.score(run, track="segmentation", tier="lite")
    values = {criterion.id: criterion.value for criterion in card.stages["S1"].criteria}
    assert values["S1a"] == (0 if is_failure else 1)
    facts = " ".join(fact.text for fact in trace_facts(code_context(run, segment(run))))
    assert (f"turn 1: {kind}" in facts) is is_failure


@pytest.mark.parametrize("exporter", EXPORTERS.names)
@pytest.mark.parametrize(
    ("format", "mark", "file", "content", "kind"),
    [case for case in CASES if case.values[4] != "ok"],
)
def test_the_mark_survives_an_export(
    exporter: str, format: str, mark: str, file: str, content: Any, kind: str, tmp_path: Path
) -> None:
    draft = _draft(format, _written(tmp_path / file, content))
    back = _run(exporter, "back.json", EXPORTERS.get(exporter)(draft), tmp_path)
    observation = back.turns[0].actions[0].observation
    assert observation is not None
    assert observation.kind == kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({}, None),
        ({"is_error": False}, "ok"),
        ({"is_error": False, "status": "failed"}, "failed"),
        ({"is_error": True, "status": "timed out"}, "timeout"),
        ({"isError": True}, "failed"),
        ({"status": "completed"}, None),
        ({"status": 500}, None),
        ({"error": None}, None),
        ({"error": {}}, None),
        ({"error": "ok"}, "failed"),
        ({"error": {"type": "timeout"}, "is_error": True}, "timeout"),
        ({"error": {"type": "success"}}, "failed"),
        ({"error": ["no"]}, "failed"),
        ({"is_error": "yes"}, None),
    ],
)
def test_marks_of_an_answer(answer: dict[str, Any], kind: str | None) -> None:
    assert stated_kind(answer) == kind


def test_an_error_of_any_name_is_a_failure() -> None:
    assert kind_of_error({"type": "no_such_word"}) == "failed"


def test_messages_with_marks_need_no_import(tmp_path: Path) -> None:
    for value, kind in ((_openai(status="error"), "failed"), (_anthropic(is_error=True), "failed")):
        path = _written(tmp_path / "conversation.json", value)
        observation = load_run(path).turns[0].actions[0].observation
        assert observation is not None
        assert observation.kind == kind


def test_an_exit_code_says_more_than_a_mark(tmp_path: Path) -> None:
    body = json.dumps({"exit_code": 0, "stdout": "x", "stderr": "", "is_error": True})
    path = _written(tmp_path / "conversation.json", _openai(content=body))
    observation = load_run(path).turns[0].actions[0].observation
    assert observation is not None
    assert (observation.exit_code, observation.kind) == (0, "ok")
