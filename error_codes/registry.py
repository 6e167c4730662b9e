"""Detectors and their findings.

A detector is a function of one `CodeContext`, registered by `@detector(...)`:

    @detector("near_empty", code="E3", stage="S4", independence="from_trace")
    def near_empty(ctx: CodeContext) -> Iterable[Finding]:
        ...

A detector of ours comes with a table of cases in its test. Packages add modules of detectors
through the entry-point group `detectors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Literal, NamedTuple, get_args

from ..plugins import Door, is_ours, stamps
from ..trajectories.models import Stage
from ..trajectories.record.facts import FactSource
from .context import CodeContext
from .models import CodeTaxonomy, FiredCode

Independence = Literal["from_trace", "from_files", "from_score"]
Code = Literal["E1", "E2", "E3", "E4", "E5", "E8"]
"""E8 exists in the harness taxonomy alone."""


class Finding(NamedTuple):
    """One thing that a detector reports. `turns`: 1-based, at least one; `why`: one sentence."""

    turns: tuple[int, ...]
    why: str
    confidence: float
    stage: Stage | None = None
    """The stage, if it is not the detector's usual one."""


DetectorFunction = Callable[[CodeContext], Iterable[Finding]]


@dataclass(frozen=True)
class Detector:
    """A function that reports findings of one code, and what they rest on."""

    name: str
    code: Code
    stage: Stage
    """The usual stage of its findings."""
    independence: Independence
    function: DetectorFunction
    taxonomy: CodeTaxonomy = "paper"
    fact: FactSource | None = None
    """What proves its findings without reading: files, exit codes and tracebacks, or the harness's
    words. The meaning of a text or a program may at most hold such a finding back. None: the
    detector reads."""

    @property
    def by(self) -> str:
        """Its name as fired codes carry it."""
        return f"detector:{self.name}"

    @property
    def doc(self) -> str:
        """The first paragraph of the function's docstring, as one line."""
        summary = (self.function.__doc__ or "").strip().partition("\n\n")[0]
        return " ".join(summary.split())


_BUILT_IN = (
    "files",
    "failures",
    "out_of_reach",
    "breaches",
    "handover",
    "values",
    "answers",
    "harness",
)
DETECTORS: Door[ModuleType] = Door(
    "detectors",
    "module of detectors",
    {name: f"{__package__}.detectors.{name}" for name in _BUILT_IN},
)
"""Modules with detectors; each registers its own when it is imported."""

_DETECTORS: dict[str, Detector] = {}


def detector(
    name: str,
    *,
    code: Code,
    stage: Stage,
    independence: Independence,
    taxonomy: CodeTaxonomy = "paper",
    fact: FactSource | None = None,
) -> Callable[[DetectorFunction], DetectorFunction]:
    """Register a function as a detector and return it unchanged.

    ValueError for an unknown code, and for a name that another detector has.
    """
    if code not in get_args(Code):
        raise ValueError(f"unknown code {code!r}; known: {', '.join(get_args(Code))}")

    def register(function: DetectorFunction) -> DetectorFunction:
        if not is_ours(function.__module__):
            # So that our names are taken, whichever module is imported first.
            _import(built_in=True)
        if name in _DETECTORS:
            raise ValueError(f"there is already a detector named {name!r}")
        _DETECTORS[name] = Detector(name, code, stage, independence, function, taxonomy, fact)
        return function

    return register


@cache
def detectors(taxonomy: CodeTaxonomy = "paper") -> tuple[Detector, ...]:
    """All detectors of a taxonomy, by code, then by name."""
    _import(built_in=True)
    _import(built_in=False)
    matches = [each for each in _DETECTORS.values() if each.taxonomy == taxonomy]
    return tuple(sorted(matches, key=lambda each: (each.code, each.name)))


def fact_source(code: FiredCode) -> FactSource | None:
    """What proves the code without reading; None for readings, and for detectors that read."""
    detectors()  # imports all of them
    source = _DETECTORS.get(code.by.removeprefix("detector:"))
    return None if source is None else source.fact


def rests_on_fact(code: FiredCode) -> bool:
    """Whether the code is a finding that stands whatever a reader says."""
    return fact_source(code) is not None


def detector_packages() -> tuple[str, ...]:
    """The stamps of the packages that add detectors."""
    detectors()  # so that a module that cannot be imported leaves no stamp
    return stamps(DETECTORS)


def _import(built_in: bool) -> None:
    """Import our modules of detectors, or those of packages.

    A module that cannot be imported leaves no detector behind.
    """
    for name, plugin in DETECTORS.entries.items():
        if bool(plugin.package) == built_in:
            continue
        before = dict(_DETECTORS)
        if DETECTORS.find(name) is None:
            _DETECTORS.clear()
            _DETECTORS.update(before)
