"""Runs as they grow: recorded ones cut after a turn, and a writer whose files may be torn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stored import RECORDED

RUNS = sorted((RECORDED / "runs").iterdir())
_LOGS = ("trace.jsonl", "tool_calls.jsonl")


class Growing:
    """A recorded run as its files stand after each turn: conversation and logs, but no report and
    no outputs, which come with the end."""

    def __init__(self, recorded: Path, folder: Path) -> None:
        self.recorded, self.folder = recorded, folder
        self._data = json.loads((recorded / "process" / "conversation.json").read_bytes())
        messages = self._data["messages"] if isinstance(self._data, dict) else self._data
        self._turns: list[list[Any]] = [[]]
        for message in messages:
            if message["role"] == "assistant":
                self._turns.append([])
            self._turns[-1].append(message)
        self.count = len(self._turns) - 1

    def files(self, turns: int) -> dict[str, bytes]:
        """Name -> content of the files in process/ after so many turns."""
        messages = [message for turn in self._turns[: turns + 1] for message in turn]
        data: Any = messages
        if isinstance(self._data, dict):
            data = {key: value for key, value in self._data.items() if not _is_record(value)}
            data["messages"] = messages
        files = {"conversation.json": json.dumps(data).encode()}
        for name in _LOGS:
            lines = self._log(name)
            kept = [line for line in lines if (json.loads(line).get("turn") or turns) <= turns]
            if kept and turns < self.count:
                kept = [line for line in kept if json.loads(line).get("type") != "run_end"]
            if lines:
                files[name] = b"".join(line + b"\n" for line in kept)
        return files

    def _log(self, name: str) -> list[bytes]:
        path = self.recorded / "process" / name
        return [line for line in path.read_bytes().splitlines() if line] if path.exists() else []

    def write(self, turns: int) -> Path:
        """Write the files of so many turns; the conversation."""
        process = self.folder / "process"
        process.mkdir(parents=True, exist_ok=True)
        for name, content in self.files(turns).items():
            (process / name).write_bytes(content)
        return process / "conversation.json"

    def tear(self, turns: int, shares: tuple[float, ...] = (0.0, 0.4, 0.97)) -> Iterator[None]:
        """Write the files of so many turns in pieces, as a reader may meet them in between: the
        conversation is written anew, logs are appended to."""
        process = self.folder / "process"
        process.mkdir(parents=True, exist_ok=True)
        for name, content in self.files(turns).items():
            for share in shares:
                (process / name).write_bytes(content[: int(share * len(content))])
                yield
            (process / name).write_bytes(content)
            yield

    def age(self, seconds: float) -> None:
        """Let all files look as if they were written so long ago."""
        for path in (self.folder / "process").iterdir():
            written = path.stat().st_mtime - seconds
            os.utime(path, (written, written))


def _is_record(value: Any) -> bool:
    """Whether this is a list of events of the whole run."""
    return isinstance(value, list)
