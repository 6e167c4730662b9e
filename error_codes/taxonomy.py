"""The taxonomies as data: `taxonomy("paper")`, `taxonomy("harness")`, `taxonomy("answers")`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from ..errors import InputError
from ..package_data import read_package_yaml
from ..trajectories.models import Frozen

TAXONOMIES_FILE = Path(__file__).with_name("taxonomies.yaml")


Line = Annotated[str, StringConstraints(min_length=1, max_length=220, pattern=r"^[^\r\n]+$")]
"""A sentence or two on one line, short enough that the guidance of all five codes fits a page."""


class Code(Frozen):
    """One code of a taxonomy, with the guidance by which a reader decides on it.

    The guidance (`counts`, `does_not`, `nearest`, `examples`) may be empty; then the description
    stands alone.
    """

    code: str
    name: str
    description: str
    category: str | None = None
    tracks: tuple[str, ...] = ()
    """Tracks that the code is limited to; empty: all."""
    counts: tuple[Line, ...] = ()
    """What makes it fire; each on its own is enough."""
    does_not: tuple[Line, ...] = ()
    """What looks like it and does not make it fire."""
    nearest: dict[str, Line] = Field(default_factory=dict)
    """Other code of the taxonomy -> what tells the two apart, and when both fire."""
    examples: dict[str, Line] = Field(default_factory=dict)
    """Track -> how the code shows there (paper, table 15 by track); tracks without a published one
    are left out."""


class Taxonomy(Frozen):
    name: str
    title: str
    source: str
    codes: tuple[Code, ...]
    categories: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nearest_are_others(self) -> Self:
        known = {entry.code for entry in self.codes}
        for entry in self.codes:
            if strange := sorted(set(entry.nearest) - (known - {entry.code})):
                raise ValueError(
                    f"{entry.code}: nearest names {', '.join(strange)}, no other code of"
                    f" {self.name}"
                )
        return self

    def __getitem__(self, code: str) -> Code:
        """The code of this name; KeyError when the taxonomy has none."""
        for entry in self.codes:
            if entry.code == code:
                return entry
        raise KeyError(code)


@cache
def _read() -> dict[str, Any]:
    data = read_package_yaml(TAXONOMIES_FILE)
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
        name=name,
        title=entry["title"],
        source=entry["source"],
        codes=codes,
        categories=entry.get("categories", {}),
    )
