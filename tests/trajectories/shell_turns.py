"""Runs that write files and then start them from a shell."""

from __future__ import annotations

import json
from pathlib import Path

from ambjudge.trajectories.features import features
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.turn_features import TurnFeatures

LIST_CASES = "\n".join(f"case_{i:04d}" for i in range(1, 9))


def facts_of(folder: Path, shell: str, **files: str) -> TurnFeatures:
    """The facts of a turn that runs `shell` after files of these names were written."""
    codes = ["ls /data/public", *(f"cat > {name}.py <<'EOF'\n{text}EOF" for name, text in files.items()), shell]
    messages: list[dict] = [{"role": "user", "content": "Segment."}]
    for i, code in enumerate(codes):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "execute_code", "arguments": json.dumps({"language": "bash", "code": code})}}  # fmt: skip
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        result = {"exit_code": 0, "stdout": LIST_CASES if i == 0 else "", "stderr": ""}
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": json.dumps(result)})
    path = folder / "conversation.json"
    path.write_text(json.dumps({"task": "kidney-seg-task", "messages": messages}))
    return features(load_run(path))[-1]
