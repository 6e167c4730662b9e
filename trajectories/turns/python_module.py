"""What a Python module of a run uses, by function: facts, loops over cases, commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ALL = 1_000_000
"""The size of a loop over everything that a folder or an index holds."""
Size = int | str
"""How many cases: a number, ALL, or the name of the option that says it."""


@dataclass
class Loop:
    """A loop over cases: its size, and what it does by itself and by the functions that it names."""

    size: Size
    facts: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass
class Piece:
    """What one function, or the code around all functions, uses."""

    facts: dict[str, str] = field(default_factory=dict)
    """Fact -> the line on which it was first seen."""
    names: set[str] = field(default_factory=set)
    """Every name and attribute in it: the functions that it may enter."""
    loops: list[Loop] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    """Command lines that it starts."""
    weights: set[str] = field(default_factory=set)


@dataclass
class Module:
    """Parsed source, by function. Functions of one name are one; `__main__` is what stands under
    its guard."""

    body: Piece
    main: Piece
    functions: dict[str, list[Piece]]
    classes: frozenset[str]
    imports: frozenset[str]
    """Stems of the modules that it imports."""
    places: frozenset[str]
    """Names that stand for places of outputs."""
    defaults: Mapping[str, Size | None]
    """Options of its command line by name, with their defaults."""
    sizes: Mapping[str, Size]
    padded: bool
    """Whether numbers become names of cases."""


def largest(sizes: Iterable[Size]) -> Size:
    """The largest size, one that an option says before a number."""
    found = set(sizes)
    options = [size for size in found if isinstance(size, str)]
    return (
        min(options)
        if options
        else max((size for size in found if isinstance(size, int)), default=1)
    )


def smaller(whole: Size, limit: Size | None) -> Size:
    """What a limit leaves of a whole; of a single thing, or without a limit, all."""
    if whole == 1 or limit is None:
        return whole
    return min(whole, limit) if isinstance(whole, int) and isinstance(limit, int) else limit
