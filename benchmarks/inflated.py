"""Runs at the size of real ones, made from small recorded ones: noise before every output, idle
turns in between.

What the agent did, and its files, stay as they were. Turn i of the small run is turn 1 + (i - 1) *
(1 + EXTRA) of the large one. The same run gives the same bytes.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

NOISE = 4_000
"""Characters of noise before each output."""
EXTRA = 2
"""Idle turns after each turn but the last."""
_PACKAGES = (
    "numpy",
    "scipy",
    "torch",
    "nibabel",
    "monai",
    "pillow",
    "pandas",
    "requests",
    "einops",
    "timm",
    "sympy",
)

LOOKS = (
    "nvidia-smi; free -m; df -h",
    "ps aux | head -80",
    "pip list 2>/dev/null",
    "env | sort | head -60",
    "uname -a && nproc",
    "ls -la",
    "pwd; ls",
    "date; whoami; id",
    "cat /proc/meminfo | head -5",
    "python3 --version; pip freeze | grep -i torch",
    "lscpu | grep -E 'Model name|Thread'; echo; uptime",
    "df -h / 2>&1 | tail -1",
    "top -bn1 | head -20",
    "du -sh /tmp",
)
"""Commands that only ask the machine for its state."""


def turn_of(small: int) -> int:
    """The number that a turn of the small run has in the large one."""
    return 1 + (small - 1) * (1 + EXTRA)


def inflate(source: Path, target: Path, least: int = NOISE, extra: int = EXTRA) -> Path:
    """A copy of one run folder with `least` characters of noise before every output and `extra`
    idle turns in between."""
    shutil.copytree(source, target, symlinks=True)
    place = target / "process" / "conversation.json"
    data = json.loads(place.read_text("utf-8"))
    rng = random.Random(source.name)
    if isinstance(data, dict):
        data = {k: v for k, v in data.items() if k not in ("code_executions", "trace_events")}
        data["messages"] = _inflated(data["messages"], rng, least, extra)
    else:
        data = _inflated(data, rng, least, extra)
    place.write_text(json.dumps(data), "utf-8")
    for name in ("tool_calls.jsonl", "trace.jsonl"):  # their turn numbers no longer hold
        (target / "process" / name).unlink(missing_ok=True)
    return target


def _inflated(
    messages: list[dict[str, Any]], rng: random.Random, least: int, extra: int
) -> list[dict[str, Any]]:
    assistant = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    found: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        found.append(_noisy(message, rng, least))
        following = messages[place + 1]["role"] if place + 1 < len(messages) else ""
        if assistant and assistant[0] <= place < assistant[-1] and following == "assistant":
            for _ in range(extra):
                found += _idle(len(found), rng, least)
    return found


def _noisy(message: dict[str, Any], rng: random.Random, least: int) -> dict[str, Any]:
    if message["role"] != "tool":
        return message
    try:
        result = json.loads(message["content"])
    except (ValueError, TypeError):
        return message
    if not isinstance(result, dict) or "stdout" not in result:
        return message
    return {
        **message,
        "content": json.dumps({**result, "stdout": noise(rng, least) + (result["stdout"] or "")}),
    }


def _idle(number: int, rng: random.Random, least: int) -> list[dict[str, Any]]:
    """A turn that looks at the machine and does nothing for the task."""
    command = rng.choice(LOOKS)
    call = {"name": "execute_code", "arguments": json.dumps({"language": "bash", "code": command})}
    result = json.dumps({"exit_code": 0, "stdout": noise(rng, least), "stderr": ""})
    return [
        {
            "role": "assistant",
            "content": "A look at the machine.",
            "tool_calls": [{"id": f"idle{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"idle{number}", "content": result},
    ]


def noise(rng: random.Random, least: int = NOISE) -> str:
    """Lines of installers, loaders, loggers, libraries and bars, mixed at random."""
    lines: list[str] = []
    size = 0
    while size < least:
        lines.append(_line(rng))
        size += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def _line(rng: random.Random) -> str:
    package, n, total = rng.choice(_PACKAGES), rng.randint(1, 400), 400
    version = f"{rng.randint(0, 9)}.{rng.randint(0, 30)}.{rng.randint(0, 9)}"
    clock = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
    rate = f"{rng.random() * 80:.2f}"
    return rng.choice(
        (
            (
                f"Requirement already satisfied: {package}>={version} in"
                f" /opt/env/lib/python3.11/site-packages ({version})"
            ),
            f"Collecting {package}=={version}",
            f"  Downloading {package}-{version}-py3-none-any.whl ({rng.randint(10, 900)} kB)",
            (
                f"     {'━' * rng.randint(4, 40)} {rate}/90.0 MB {rate} MB/s eta"
                f" 0:00:{rng.randint(10, 59)}"
            ),
            (
                f"Get:{n} http://archive.example/debian stable/main amd64 lib{package} amd64"
                f" {version}-1 [{n} kB]"
            ),
            f"Unpacking lib{package} ({version}-1) ...",
            (
                f"Loading volumes: {n * 100 // total:3d}%|{'█' * (n // 40)}{' ' * (10 - n // 40)}|"
                f" {n}/{total} [{clock[3:]}<{clock[3:]}, {rate}it/s]"
            ),
            f"{n}/{total} [{'=' * (n // 40)}>{'.' * (10 - n // 40)}] - ETA: {n}s",
            f"Receiving objects: {n * 100 // total:3d}% ({n}/{total}), {rate} MiB | {rate} MiB/s",
            (
                f"2026-03-{rng.randint(1, 28):02d} {clock},{rng.randint(100, 999)} DEBUG"
                f" {package}.pool - connection {n} kept alive"
            ),
            (
                f"2026-03-{rng.randint(1, 28):02d}T{clock}Z INFO {package}.cache: entry {n} of"
                f" {rng.randint(1, 9999)} reused"
            ),
            (
                f"/opt/env/lib/python3.11/site-packages/{package}/core.py:{n}: DeprecationWarning:"
                f" `{package}.f{n}` is deprecated"
            ),
            (
                f"/opt/env/lib/python3.11/site-packages/{package}/io.py:{n}: UserWarning: no cache"
                f" for '{package}', building one"
            ),
        )
    )
