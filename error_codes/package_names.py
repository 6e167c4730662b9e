"""Names of packages that exist, and names that an index or a library denied, from
package_names.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..package_data import read_package_yaml

_DATA = read_package_yaml(Path(__file__).with_suffix(".yaml"))
GENERAL: frozenset[str] = frozenset(_DATA["general"])
"""Libraries of general use: their lack is met by another tool and takes no model away. `-` stands
as `_`."""
_SPECIAL = frozenset(name.replace("-", "_") for name in _DATA["special"])
_DENIALS = tuple(re.compile(entry["pattern"]) for entry in _DATA["denials"])
_MAX_LINE = 2_000


def general(package: str) -> bool:
    """Whether a package is a library of general use."""
    return package.lower().replace("-", "_") in GENERAL


def exists(name: str) -> bool:
    """Whether a name, in whatever case, is that of a package that is known to exist."""
    return general(name) or name.lower().replace("-", "_") in _SPECIAL


def denied(output: str) -> Iterator[str]:
    """Names, in lower case, of which a line of an output says that index, hub or library does not
    know them."""
    said = [pattern for pattern in _DENIALS if pattern.search(output)]
    for line in output.splitlines() if said else ():
        for pattern in said:
            yield from (name.strip(".").lower() for name in pattern.findall(line[:_MAX_LINE]))
