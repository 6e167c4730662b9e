"""Small runs of executed actions and their answers, for what the heuristic judge reads in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Run


@dataclass(frozen=True)
class Do:
    """One executed action and its answer."""

    code: str
    out: str = ""
    exit: int = 0
    language: str = "python"
    err: str = ""


def sh(code: str, out: str = "", exit: int = 0, err: str = "") -> Do:
    return Do(code, out, exit, "bash", err)


def module(name: str, text: str) -> Do:
    return sh(f"cat > /workspace/{name} <<'EOF'\n{text}EOF\n")


def plan(text: str) -> Do:
    return sh(f"mkdir -p /workspace/plan\ncat > /workspace/plan/plan.md <<'EOF'\n{text}\nEOF\n")


def make_run(folder: Path, kind: str, steps: list[Do], says: str = "Next.", last: str | None = None) -> Run:
    """A run of a track, written as a conversation file and read again; `last` closes it in words."""
    messages: list[dict] = [{"role": "user", "content": "Begin."}]
    for number, step in enumerate(steps):
        call = {"name": "execute_code", "arguments": json.dumps({"language": step.language, "code": step.code})}
        answer = {"exit_code": step.exit, "stdout": step.out, "stderr": step.err}
        messages += [
            {"role": "assistant", "content": says, "tool_calls": [{"id": str(number), "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": str(number), "content": json.dumps(answer)},
        ]  # fmt: skip
    if last is not None:
        messages.append({"role": "assistant", "content": last})
    track = kind.removesuffix("-multiclass")
    head = {"agent": "a", "task": f"{kind}-task", "track": track, "tier": "pro", "messages": messages}
    path = folder / "conversation.json"
    path.write_text(json.dumps(head), encoding="utf-8")
    return load_run(path)
