"""Runs recorded by other harnesses, read into drafts of conversation.json.

One module a format, each with `read(path)`, which yields a `Draft` a run and an `InputError` for what cannot be read, and
an `IMPORTER`. Packages add theirs behind the door `importers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...plugins import Door

if TYPE_CHECKING:
    from ...errors import InputError
    from .draft import Draft

Reader = Callable[[Path], "Iterator[Draft | InputError]"]


class Importer(NamedTuple):
    """How a format is read, and which files of a folder are taken for it; none: every conversation.json."""

    read: Reader
    suffixes: tuple[str, ...]


def _fits(name: str, loaded: Any) -> str:
    return "" if isinstance(loaded, Importer) else "it is no Importer"


IMPORTERS: Door[Importer] = Door(
    "importers",
    "format",
    {
        name: f"{__name__}.{module}:IMPORTER"
        for name, module in (
            ("openai", "openai_chat"),
            ("anthropic", "anthropic_messages"),
            ("inspect", "inspect_log"),
            ("swe-agent", "swe_agent"),
            ("openhands", "openhands"),
            ("claude-code", "claude_code"),
            ("conversation", "own"),
        )
    },
    _fits,
)
