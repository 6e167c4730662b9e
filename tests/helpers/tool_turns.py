"""Runs of agents with tools of any name: calls with their arguments, and what came back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run


def call(tool: str, answer: str | None = "ok", /, **arguments: Any) -> dict[str, Any]:
    """One call with its answer; None: nobody answered."""
    return {"tool": tool, "arguments": arguments, "answer": answer}


def shell(command: str, output: str = "", exit_code: int | None = 0) -> dict[str, Any]:
    """A shell command with its output."""
    answer = json.dumps({"exit_code": exit_code, "stdout": output, "stderr": ""})
    return call("bash", answer, command=command)


def run_of(folder: Path, *turns: Any, **head: Any) -> Run:
    """The run of these turns, without a track: texts are messages, dictionaries are calls."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix the bug."}]
    for number, turn in enumerate(turns):
        if isinstance(turn, str):
            messages.append({"role": "assistant", "content": turn})
            continue
        function = {"name": turn["tool"], "arguments": json.dumps(turn["arguments"])}
        tool_call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [tool_call]})
        if turn["answer"] is not None:
            answer = {"role": "tool", "tool_call_id": f"c{number}", "content": turn["answer"]}
            messages.append(answer)
    path = folder / "process" / "conversation.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"messages": messages, **head}), "utf-8")
    return load_run(folder)
