"""Runs that tests write down turn by turn: what was executed and what came back, read by the real
loader."""

from __future__ import annotations

import json
from pathlib import Path

from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run

SUBMIT = ("submit", "", "")


def round_trip(run: Run) -> Run:
    """The run written as JSON and read again; `output_format` is not part of the JSON."""
    again = Run.model_validate_json(run.model_dump_json())
    return again.model_copy(update={"output_format": run.output_format})


def bash(code: str, out: str = "", exit_code: int = 0) -> tuple:
    return ("bash", code, out, exit_code)


def python(code: str, out: str = "", exit_code: int = 0) -> tuple:
    return ("python", code, out, exit_code)


def messages_of(turns, text: str = "") -> list[dict]:
    """The messages of (language, code, output[, exit code]) turns, each with `text`; a string is a
    plain message. An output that is a dictionary is the whole answer; one that is None was never
    given."""
    messages = []
    for number, turn in enumerate(turns):
        if isinstance(turn, str):
            messages.append({"role": "assistant", "content": turn})
            continue
        language, code, output, *exit_code = turn
        name, arguments = "execute_code", {"language": language, "code": code}
        if language == "submit":
            name, arguments = "submit_results", {}
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        messages.append({"role": "assistant", "content": text, "tool_calls": [call]})
        answer = {"exit_code": exit_code[0] if exit_code else 0, "stdout": output, "stderr": ""}
        if output is not None:
            content = json.dumps(output if isinstance(output, dict) else answer)
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": content})
    return messages


def converse(
    folder: Path,
    *turns,
    brief: str = "Begin.",
    text: str = "",
    outputs=None,
    report=None,
    summary=None,
    **head,
) -> Run:
    """The run of these turns. `outputs`: path below agents_outputs/ -> text or bytes. `report`:
    detail_report.json. `summary`: agent_summary.json. `head`: task, track, tier and whatever else
    stands beside the messages."""
    messages = [{"role": "user", "content": brief}, *messages_of(turns, text)]
    files = {"process/conversation.json": json.dumps({"messages": messages, **head})}
    if report is not None:
        files["detail_report.json"] = json.dumps(report)
    if summary is not None:
        files["process/agent_summary.json"] = json.dumps(summary)
    files |= {
        f"outputs/agents_outputs/{name}": content for name, content in (outputs or {}).items()
    }
    for name, content in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_run(folder)
