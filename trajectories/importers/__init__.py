"""Runs recorded by other harnesses, converted to conversation.json; and exporters, the way back.

There is one module for each format, with a `read(path)` that yields a `Draft` for each run and an
`InputError` for what cannot be read, and with an `IMPORTER`. Packages add theirs through the door
`importers`; docs/extending.md shows how.

Start with `draft.Draft` and the short importer of docs/extending.md. `fields` reads untrusted JSON,
`files` finds runs in files, `recognise` tells formats apart, `saving` writes run folders.
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
"""Whether a file has the format, by its first kilobytes and its name (`recognise.has_keys` makes
one)."""


class Importer(NamedTuple):
    """How a format is read and recognised.

    `suffixes` are the endings of its files' names; without any, every conversation.json of a folder
    is read. Without `recognises`, the suffix alone decides.
    """

    read: Reader
    suffixes: tuple[str, ...]
    recognises: Recogniser | None = None


_MODULES = {
    "inspect": "inspect_log",
    "atif": "atif",
    "terminal-bench": "terminal_bench",
    "claude-code": "claude_code",
    "codex": "codex",
    "vera": "vera",
    "responses": "openai_responses",
    "openhands": "openhands",
    "swe-agent": "swe_agent",
    "mini-swe-agent": "mini_swe_agent",
    "otel": "otel_traces",
    "parquet": "parquet",
    "tau-bench": "tau_bench",
    "langchain": "langchain",
    "gemini-cli": "gemini_cli",
    "autogen": "autogen",
    "smolagents": "smolagents",
    "anthropic": "anthropic_messages",
    "openai": "openai_chat",
    "conversation": "conversation_json",
}
"""Formats with their modules, in the order in which a file is tried: those with marks of their own
before those that any chat could be."""


def _problem(name: str, loaded: Any) -> str:
    return "" if isinstance(loaded, Importer) else "it is not an Importer"


IMPORTERS: Door[Importer] = Door(
    "importers",
    "format",
    {name: f"{__name__}.{module}:IMPORTER" for name, module in _MODULES.items()},
    _problem,
)
