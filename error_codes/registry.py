"""Detectors and their findings: a detector is a function of one `CodeContext`, listed by `@detector(...)`.

    @detector("near_empty", code="E3", stage="S4", independence="from_trace")
    def near_empty(ctx: CodeContext) -> Iterable[Finding]:
        ...

Adding one is adding this function and a table of cases to its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple

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
    """What its findings rest on where that proves them without reading: files, exit codes and tracebacks, the harness's
    words. What a text or a program means may at most hold such a finding back. None: it reads."""

    @property
    def doc(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


MODULES = ("files", "failures", "out_of_reach", "breaches", "handover", "values", "answers", "harness")
"""Where detectors live (`detectors/`); a module registers its own when it is imported."""

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

    def register(function: Function) -> Function:
        if name in _DETECTORS:
            raise ValueError(f"detector {name!r} is there already")
        _DETECTORS[name] = Detector(name, code, stage, independence, function, taxonomy, fact)
        return function

    return register


@cache
def detectors(taxonomy: Literal["paper", "harness"] = "paper") -> tuple[Detector, ...]:
    """All detectors of a taxonomy, in code order, then by name."""
    for module in MODULES:
        import_module(f"{__package__}.detectors.{module}")
    found = [d for d in _DETECTORS.values() if d.taxonomy == taxonomy]
    return tuple(sorted(found, key=lambda d: (d.code, d.name)))
