"""Runs recorded by other harnesses, read into drafts of conversation.json.

One module a format, each with `read(path)`, which yields a `Draft` a run and an `InputError` for what cannot be read.
To add a format, add its module here and a section to docs/importing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...errors import InputError
    from .draft import Draft

Reader = Callable[[Path], "Iterator[Draft | InputError]"]


class Format(NamedTuple):
    """Where a format is read, and which files of a folder are taken for it."""

    module: str
    suffixes: tuple[str, ...]
    about: str

    def reader(self) -> Reader:
        """The format's `read`, its module imported now."""
        read: Reader = import_module(f".{self.module}", __name__).read
        return read


FORMATS: dict[str, Format] = {
    "openai": Format("openai_chat", (".json", ".jsonl"), "chat messages, JSON or one conversation a line"),
    "anthropic": Format("anthropic_messages", (".json", ".jsonl"), "Messages API transcripts"),
    "inspect": Format("inspect_log", (".json", ".eval"), "Inspect AI logs, one run a sample"),
    "swe-agent": Format("swe_agent", (".traj",), "SWE-agent trajectories"),
    "openhands": Format("openhands", (".json", ".jsonl"), "OpenHands event lists"),
    "claude-code": Format("claude_code", (".jsonl",), "Claude Code sessions"),
    # Found by its place in a run folder, not by its suffix.
    "conversation": Format("own", (), "conversation.json itself, on its way to another format"),
}
