"""Detectors and their findings: a detector is a function of one `CodeContext`, listed by
`@detector(...)`.

    @detector("near_empty", code="E3", stage="S4", independence="from_trace")
    def near_empty(ctx: CodeContext) -> Iterable[Finding]:
        ...

Ours are added with a table of cases to their test; packages add modules of theirs behind the door
`detectors`.
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

Independence = Literal["from_trace", "from_files", "from_score"]
Code = Literal["E1", "E2", "E3", "E4", "E5", "E8"]
"""E8 in the harness taxonomy alone."""


class Finding(NamedTuple):
    """One thing that a detector saw. `turns` are 1-based and at least one; `why` is one sentence."""

    turns: tuple[int, ...]
    why: str
    confidence: float
    stage: Stage | None = None
    """Where another stage than the detector's usual one applies."""


Function = Callable[[CodeContext], Iterable[Finding]]


@dataclass(frozen=True)
class Detector:
    name: str
    code: Code
    stage: Stage
    """The stage it usually speaks for."""
    independence: Independence
    function: Function
    taxonomy: Literal["paper", "harness"] = "paper"
    fact: FactSource | None = None
    """What its findings rest on where that proves them without reading: files, exit codes and
    tracebacks, the harness's words. What a text or a program means may at most hold such a finding
    back. None: it reads."""

    @property
    def doc(self) -> str:
        """The first paragraph of the function's docstring, as one line."""
        summary = (self.function.__doc__ or "").strip().partition("\n\n")[0]
        return " ".join(summary.split())


_OURS = (
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
    "detectors", "module of detectors", {name: f"{__package__}.detectors.{name}" for name in _OURS}
)
"""Modules with detectors; each registers its own when it is imported."""

_DETECTORS: dict[str, Detector] = {}


def detector(
    name: str,
    *,
    code: Code,
    stage: Stage,
    independence: Independence,
    taxonomy: Literal["paper", "harness"] = "paper",
    fact: FactSource | None = None,
) -> Callable[[Function], Function]:
    """List a function as a detector; the function itself stays as it is. A name stands once."""
    if code not in get_args(Code):
        raise ValueError(f"unknown code {code!r}; known: {', '.join(get_args(Code))}")

    def register(function: Function) -> Function:
        if not is_ours(function.__module__):
            _import(ours=True)  # so that a name of ours is taken whoever is imported first
        if name in _DETECTORS:
            raise ValueError(f"detector {name!r} is there already")
        _DETECTORS[name] = Detector(name, code, stage, independence, function, taxonomy, fact)
        return function

    return register


@cache
def detectors(taxonomy: Literal["paper", "harness"] = "paper") -> tuple[Detector, ...]:
    """All detectors of a taxonomy, in code order, then by name."""
    _import(ours=True)
    _import(ours=False)
    found = [d for d in _DETECTORS.values() if d.taxonomy == taxonomy]
    return tuple(sorted(found, key=lambda d: (d.code, d.name)))


def packages() -> tuple[str, ...]:
    """The stamps of the packages that have detectors."""
    detectors()  # so that a module which cannot be imported leaves nothing behind
    return stamps(DETECTORS)


def _import(ours: bool) -> None:
    """Import our modules, or those of packages; one that cannot be imported leaves no detector
    behind."""
    for name, plugin in DETECTORS.entries.items():
        if bool(plugin.package) != ours:
            before = dict(_DETECTORS)
            if DETECTORS.find(name) is None:
                _DETECTORS.clear()
                _DETECTORS.update(before)
