"""The delivered files of one run, indexed for the checkers, and where a missing file went instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ...trajectories.models import OutputFile, Run
from ...trajectories.reading.layout import Fence
from ..card.scoring_rules import LIKE, Rules
from .case_checks import CaseCheck, Fact, FactKind, TrackCheck
from .public_inputs import PublicInputs
from .untrusted_files import Refused

NOT_THERE: tuple[FactKind, ...] = ("missing", "misnamed", "misplaced", "link")
_MAX_STRAYS = 2000

Inspect = Callable[["Submission", str, Path], list[Fact]]
"""Facts about one delivered file of a case."""


@dataclass(frozen=True)
class Submission:
    """What a track's checker works on: the delivered files, which must lie below `root`, the cases
    to look at, and the public inputs if given."""

    run: Run
    root: Fence
    cases: tuple[str, ...]
    public: PublicInputs | None = None
    rules: Rules = LIKE["paper"]
    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    """Case -> quantity -> number, as the checkers measured them on the way: voxels per mask, levels
    of images, boxes."""

    @cached_property
    def by_case(self) -> dict[str | None, dict[str, OutputFile]]:
        index: dict[str | None, dict[str, OutputFile]] = {}
        for file in self.run.outputs.files:
            index.setdefault(file.case, {})[file.name] = file
        return index

    def file(self, case: str | None, name: str) -> Path | None:
        found = self.by_case.get(case, {}).get(name)
        return None if found is None else found.path

    def measure(self, case: str, **values: float) -> None:
        """Keep what a file of a case holds, in numbers that can be compared across cases; an
        infinite one cannot."""
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        self.measures.setdefault(case, {}).update(finite)

    @cached_property
    def _strays(self) -> list[OutputFile]:
        """Files that are no case's plainly named file: what a missing file may have become."""
        known = set(self.cases)
        return [f for f in self.run.outputs.files if f.case not in known or "/" in f.name][
            :_MAX_STRAYS
        ]

    def why_missing(self, case: str, name: str) -> Fact:
        """The fact behind a missing file: misnamed beside it, misplaced somewhere else, or plainly
        not there."""
        suffix = _suffix(name)
        beside = [
            f
            for f in self.by_case.get(case, {})
            if "/" not in f and _suffix(f) == suffix and f not in _OTHER_NAMES
        ]
        beside = beside or [
            f
            for f in self.by_case.get(case, {})
            if "/" not in f and f.split(".")[0] == name.split(".")[0]
        ]
        if beside:
            return Fact("misnamed", f"{beside[0]} instead of {name}", case, beside[0])
        for stray in self._strays:
            place = f"{stray.case}/{stray.name}" if stray.case else stray.name
            if _speaks_of(place, case) and place.endswith((f"/{name}", suffix)):
                return Fact("misplaced", f"{place} instead of {case}/{name}", case, place)
        return Fact("missing", f"{name} is missing", case, name)

    def per_case(
        self,
        required: tuple[str, ...],
        inspect: Inspect,
        optional: tuple[str, ...] = (),
        not_there: tuple[FactKind, ...] = NOT_THERE,
    ) -> TrackCheck:
        """Every case has its required files, and perhaps optional ones; all that are there are
        inspected.

        What is wrong with an optional file makes no case invalid. A case with a fact `not_there`
        was not delivered.
        """
        checks = []
        for case in self.cases:
            facts: list[Fact] = []
            delivered = True
            for name in (*required, *optional):
                path = self.file(case, name)
                if path is not None:
                    found = self._inspected(inspect, case, path)
                    if name in optional:
                        found = [replace(fact, forgiven=True) for fact in found]
                elif name in required:
                    found = [self.why_missing(case, name)]
                else:
                    continue
                facts.extend(found)
                if name in required and any(fact.kind in not_there for fact in found):
                    delivered = False
            checks.append(CaseCheck(case, delivered, tuple(facts)))
        return TrackCheck(tuple(checks), self.extra_cases())

    def _inspected(self, inspect: Inspect, case: str, path: Path) -> list[Fact]:
        try:
            return inspect(self, case, path)
        except Refused as refused:
            return [Fact(refused.kind, f"{path.name} {refused.text}", case, path.name)]

    def extra_cases(self) -> tuple[Fact, ...]:
        """Folders that are no expected case; they change no score."""
        known = set(self.cases)
        return tuple(
            Fact("extra", "is no expected case", case, None, forgiven=True)
            for case in sorted(c for c in self.by_case if c is not None and c not in known)
        )


_OTHER_NAMES = {"organ.nii.gz", "lesion.nii.gz", "dseg.nii.gz"}


def _suffix(name: str) -> str:
    return ".nii.gz" if name.endswith(".nii.gz") else f".{name.rsplit('.', 1)[-1]}"


def _speaks_of(place: str, case: str) -> bool:
    """Whether a path names the case: as a folder, or as a file name's beginning or end
    (`case_lesion.nii.gz`)."""
    start = place.find(case)
    while start != -1:
        before, after = place[start - 1 : start], place[start + len(case) : start + len(case) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        start = place.find(case, start + 1)
    return False


def identical(contents: dict[str, str], what: str, least: int = 5) -> tuple[Fact, ...]:
    """A fact when every one of at least `least` cases has the same content: a model that looks at
    nothing."""
    if len(contents) >= least and len(set(contents.values())) == 1:
        return (Fact("identical", f"all {len(contents)} cases have the same {what}"),)
    return ()
