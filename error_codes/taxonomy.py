"""The taxonomies as data: `taxonomy("paper")`, `taxonomy("harness")`, `taxonomy("answers")`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from ..errors import InputError
from ..trajectories.models import Frozen

TAXONOMIES_FILE = Path(__file__).with_name("taxonomies.yaml")


class Code(Frozen):
    """One code of a taxonomy. `tracks` limits it to some tracks; empty means all."""

    code: str
    name: str
    description: str
    category: str | None = None
    tracks: tuple[str, ...] = ()


class Taxonomy(Frozen):
    name: str
    title: str
    source: str
    codes: tuple[Code, ...]
    categories: dict[str, str] = Field(default_factory=dict)

    def __getitem__(self, code: str) -> Code:
        """The code of this name; KeyError when the taxonomy has none."""
        for entry in self.codes:
            if entry.code == code:
                return entry
        raise KeyError(code)


@cache
def _read() -> dict[str, Any]:
    import yaml

    data = yaml.safe_load(TAXONOMIES_FILE.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise InputError("holds no taxonomies", "reinstall the package", TAXONOMIES_FILE)
    return data


def taxonomy(name: str) -> Taxonomy:
    """A taxonomy by name; InputError when there is none of this name."""
    data = _read()
    if name not in data:
        raise InputError(f"no taxonomy {name!r}", f"choose one of {', '.join(data)}")
    entry = data[name]
    codes = tuple(Code(code=code, **fields) for code, fields in entry["codes"].items())
    return Taxonomy(
        name=name, title=entry["title"], source=entry["source"], codes=codes, categories=entry.get("categories", {})
    )
