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
"""A sentence or two on one line, short enough that the guidance for all five codes fits a page."""


class Code(Frozen):
    """One code of a taxonomy, with guidance for a reader.

    The guidance (`counts`, `does_not`, `nearest`, `examples`) may be empty; then only the
    description says what the code means.
    """

    code: str
    name: str
    description: str
    category: str | None = None
    tracks: tuple[str, ...] = ()
    """Tracks that the code is limited to; empty: all tracks."""
    counts: tuple[Line, ...] = ()
    """What makes it fire; each line suffices."""
    does_not: tuple[Line, ...] = ()
    """What looks like it but does not make it fire."""
    nearest: dict[str, Line] = Field(default_factory=dict)
    """Other code of the taxonomy -> how the two differ, and when both fire."""
    examples: dict[str, Line] = Field(default_factory=dict)
    """Track -> an example (paper, table 15 by track), for tracks with a published one."""


class Taxonomy(Frozen):
    name: str
    title: str
    source: str
    codes: tuple[Code, ...]
    categories: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nearest_are_others(self) -> Self:
        codes = {entry.code for entry in self.codes}
        for entry in self.codes:
            others = codes - {entry.code}
            unknown = sorted(set(entry.nearest) - others)
            if unknown:
                raise ValueError(
                    f"{entry.code}: nearest names {', '.join(unknown)}, no other code of"
                    f" {self.name}"
                )
        return self

    def __getitem__(self, code: str) -> Code:
        """The code of this name; KeyError if the taxonomy has none."""
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
    """A taxonomy by name; InputError if there is none of this name."""
    data = _read()
    if name not in data:
        raise InputError(f"unknown taxonomy {name!r}", f"choose one of {', '.join(data)}")
    entry = data[name]
    codes = tuple(Code(code=code, **fields) for code, fields in entry["codes"].items())
    return Taxonomy(
        name=name,
        title=entry["title"],
        source=entry["source"],
        codes=codes,
        categories=entry.get("categories", {}),
    )
