"""Runs recorded by other harnesses, read into drafts of conversation.json.

One module a format, each with `read(path)`, which yields a `Draft` a run and an `InputError` for
what cannot be read, and an `IMPORTER`. Packages add theirs behind the door `importers`.
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
Recogniser = Callable[[bytes, str], bool]
"""Whether a file is of the format, told from its first kilobytes and its name (`recognise.holding`
makes one)."""


class Importer(NamedTuple):
    """How a format is read, and which files of a folder are taken for it; none: every
    conversation.json.

    Without `recognises` the end of the name decides alone.
    """

    read: Reader
    suffixes: tuple[str, ...]
    recognises: Recogniser | None = None


def _fits(name: str, loaded: Any) -> str:
    return "" if isinstance(loaded, Importer) else "it is no Importer"


# In the order in which a file is recognised: what is told by a mark of its own before what any chat
# could be.
IMPORTERS: Door[Importer] = Door(
    "importers",
    "format",
    {
        name: f"{__name__}.{module}:IMPORTER"
        for name, module in (
            ("inspect", "inspect_log"),
            ("atif", "atif"),
            ("terminal-bench", "terminal_bench"),
            ("claude-code", "claude_code"),
            ("codex", "codex"),
            ("responses", "openai_responses"),
            ("openhands", "openhands"),
            ("swe-agent", "swe_agent"),
            ("mini-swe-agent", "mini_swe_agent"),
            ("otel", "otel_spans"),
            ("parquet", "parquet"),
            ("anthropic", "anthropic_messages"),
            ("openai", "openai_chat"),
            ("conversation", "conversation_json"),
        )
    },
    _fits,
)
