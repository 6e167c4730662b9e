"""The prompt files, their hash, and the one way to fill them.

A slot is `<<name>>`. `fill` replaces all slots in a single pass, so that text put into one slot is
never read as another slot, and no template language ever sees a transcript.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

NAMES = ("system", "record", "criteria", "diagnosis", "stages", "ask", "brief", "repair")
_SLOT = re.compile(r"<<([a-z_]+)>>")


@cache
def load(name: str) -> str:
    """The text of `<name>.txt`, without the newline at its end."""
    return files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


@cache
def prompt_sha256(names: tuple[str, ...] = NAMES) -> str:
    """Hash of these prompt files with their names; part of every verdict's key."""
    return hashlib.sha256(prompt_bytes(names)).hexdigest()


def prompt_bytes(names: tuple[str, ...] = NAMES) -> bytes:
    """What `prompt_sha256` is the hash of: each name and each text after a NUL."""
    return "".join(f"\0{name}\0{load(name)}" for name in names).encode()


def fill(name: str, slots: Mapping[str, str]) -> str:
    """The prompt `name` with its slots filled; KeyError for a slot that `slots` lacks."""
    return _SLOT.sub(lambda match: slots[match.group(1)], load(name))
