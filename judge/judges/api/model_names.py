"""Whether the model that answered is the one that was asked, by their names alone.

Providers name the version of the model that they were asked for: `gpt-4o` is answered by
`gpt-4o-2024-08-06`, `claude-sonnet-latest` by `claude-sonnet-20250929`, a file by its path.
"""

from __future__ import annotations

import re

_ALIAS = re.compile(r"[-:@](?:latest|preview|exp|free)$")
_VERSION = re.compile(r"(?:[-@:.](?:latest|preview|exp|free|v?\d{3,}[\d-]*|v\d[\d.:]*))*")
"""What may follow a model's name to say which version of it answered."""


def is_same_model(requested: str, served: str) -> bool:
    """Whether `served` may be a version or another spelling of the requested model."""
    asked, answered = _plain(requested), _plain(served)
    if len(asked) > len(answered):
        asked, answered = answered, asked
    rest = answered.removeprefix(asked)
    return len(rest) + len(asked) == len(answered) and bool(_VERSION.fullmatch(rest))


def _plain(name: str) -> str:
    """The name without provider, folder, alias and spelling."""
    last = name.lower().rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    return _ALIAS.sub("", re.sub(r"[^a-z0-9.:@-]", "-", last))
