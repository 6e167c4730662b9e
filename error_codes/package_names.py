"""Names of packages that exist, and names that an index or library denied (package_names.yaml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..package_data import read_package_yaml

_DATA = read_package_yaml(Path(__file__).with_suffix(".yaml"))
GENERAL: frozenset[str] = frozenset(_DATA["general"])
"""Libraries of general use, with `_` for `-`. Another tool can replace a missing one, so its
absence takes no model away."""
_SPECIAL = frozenset(name.replace("-", "_") for name in _DATA["special"])
_DENIALS = tuple(re.compile(entry["pattern"]) for entry in _DATA["denials"])
_MAX_LINE = 2_000
"""Characters of a line that are searched."""


def is_general(package: str) -> bool:
    """Whether a package is a library of general use."""
    return package.lower().replace("-", "_") in GENERAL


def is_known(name: str) -> bool:
    """Whether a package of this name, in any case, is known to exist."""
    return is_general(name) or name.lower().replace("-", "_") in _SPECIAL


def denied_names(output: str) -> Iterator[str]:
    """Names, in lower case, that an index, hub or library says it does not know."""
    patterns = [pattern for pattern in _DENIALS if pattern.search(output)]
    if not patterns:
        return
    for line in output.splitlines():
        for pattern in patterns:
            for name in pattern.findall(line[:_MAX_LINE]):
                yield name.strip(".").lower()
