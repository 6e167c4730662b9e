"""The delivered files of one run, indexed for the checks of its track.

A missing file is looked for under other names and in other places.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ...error_codes.output_facts import IssueKind, OutputIssue
from ...trajectories.models import OutputFile, Run
from ...trajectories.reading.layout import Fence
from ..scoring.scoring_rules import LIKE, Rules
from .case_checks import CaseCheck, TrackCheck
from .nifti import VolumeHead
from .public_inputs import PublicInputs
from .untrusted_files import Refused

UNDELIVERED_KINDS: tuple[IssueKind, ...] = ("missing", "misnamed", "misplaced", "link")
"""Kinds of issues about a required file that mean that it was not delivered."""
_MAX_STRAYS = 2000
_OTHER_MASKS = {"organ.nii.gz", "lesion.nii.gz", "dseg.nii.gz"}
"""Proper names of masks: a file called so is not a misnamed other mask."""

Inspect = Callable[["Submission", str, Path], list[OutputIssue]]
"""Issues about one delivered file of a case."""


@dataclass(frozen=True)
class Submission:
    """What a track's check works on.

    `root` fences the delivered files, `cases` are those to look at, and `public` are the public
    inputs if they were given.
    """

    run: Run
    root: Fence
    cases: tuple[str, ...]
    public: PublicInputs | None = None
    rules: Rules = LIKE["paper"]
    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    """Case -> quantity -> number, as measured by the checks: voxels per mask, levels of images,
    boxes."""

    @cached_property
    def by_case(self) -> dict[str | None, dict[str, OutputFile]]:
        """Case -> name -> file; files outside any case are under None."""
        files: dict[str | None, dict[str, OutputFile]] = {}
        for file in self.run.outputs.files:
            files.setdefault(file.case, {})[file.name] = file
        return files

    def file(self, case: str | None, name: str) -> Path | None:
        """The path of a delivered file; None if it was not delivered under this name."""
        file = self.by_case.get(case, {}).get(name)
        return None if file is None else file.path

    def reference_volume(self, case: str) -> VolumeHead | None:
        """The header of the input volume whose shape the case's output must have, if known."""
        return None if self.public is None else self.public.volume(case, self.run.brief)

    def measure(self, case: str, **values: float) -> None:
        """Record numbers measured in a case's file, for comparison across cases.

        Infinite and undefined ones are left out, as they cannot be compared.
        """
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        self.measures.setdefault(case, {}).update(finite)

    def per_case(
        self,
        required: tuple[str, ...],
        inspect: Inspect,
        optional: tuple[str, ...] = (),
        undelivered: tuple[IssueKind, ...] = UNDELIVERED_KINDS,
    ) -> TrackCheck:
        """Check that every case has its required files, and inspect these and the optional ones.

        Faults of an optional file do not make a case invalid. A case whose required file has an
        issue of a kind in `undelivered` counts as not delivered.
        """
        checks = []
        for case in self.cases:
            issues: list[OutputIssue] = []
            delivered = True
            for name in required:
                path = self.file(case, name)
                if path is None:
                    file_issues = [self.why_missing(case, name)]
                else:
                    file_issues = self._inspect(inspect, case, path)
                if any(issue.kind in undelivered for issue in file_issues):
                    delivered = False
                issues += file_issues
            for name in optional:
                path = self.file(case, name)
                if path is not None:
                    file_issues = self._inspect(inspect, case, path)
                    issues += [replace(issue, forgiven=True) for issue in file_issues]
            checks.append(CaseCheck(case, delivered, tuple(issues)))
        return TrackCheck(tuple(checks), self.extra_cases())

    def _inspect(self, inspect: Inspect, case: str, path: Path) -> list[OutputIssue]:
        """The issues about a file; a single one if it cannot be read."""
        try:
            return inspect(self, case, path)
        except Refused as refused:
            return [OutputIssue(refused.kind, f"{path.name} {refused.text}", case, path.name)]

    def extra_cases(self) -> tuple[OutputIssue, ...]:
        """Folders that are not expected cases; they change no score."""
        extra = {case for case in self.by_case if case is not None} - set(self.cases)
        return tuple(
            OutputIssue("extra", "is no expected case", case, None, forgiven=True)
            for case in sorted(extra)
        )

    def why_missing(self, case: str, name: str) -> OutputIssue:
        """The issue of a missing file: misnamed in its folder, misplaced elsewhere, or absent."""
        similar = self._similar_file(case, name)
        if similar is not None:
            return OutputIssue("misnamed", f"{similar} instead of {name}", case, similar)
        endings = (f"/{name}", _suffix(name))
        for stray in self._strays:
            place = f"{stray.case}/{stray.name}" if stray.case else stray.name
            if _names_case(place, case) and place.endswith(endings):
                return OutputIssue("misplaced", f"{place} instead of {case}/{name}", case, place)
        return OutputIssue("missing", f"{name} is missing", case, name)

    def _similar_file(self, case: str, name: str) -> str | None:
        """A file in the case's folder with the suffix of `name`, else one with the same stem."""
        names = [other for other in self.by_case.get(case, {}) if "/" not in other]
        for other in names:
            if _suffix(other) == _suffix(name) and other not in _OTHER_MASKS:
                return other
        for other in names:
            if other.split(".")[0] == name.split(".")[0]:
                return other
        return None

    @cached_property
    def _strays(self) -> list[OutputFile]:
        """Files outside the cases' folders or in subfolders: a missing file may be among them."""
        cases = set(self.cases)
        strays = [
            file for file in self.run.outputs.files if file.case not in cases or "/" in file.name
        ]
        return strays[:_MAX_STRAYS]


def _suffix(name: str) -> str:
    return ".nii.gz" if name.endswith(".nii.gz") else f".{name.rsplit('.', 1)[-1]}"


def _names_case(place: str, case: str) -> bool:
    """Whether a path contains the case's id as a word.

    It may be a folder, or the beginning or end of a file name (`case_lesion.nii.gz`).
    """
    start = place.find(case)
    while start != -1:
        before = place[start - 1 : start]
        after = place[start + len(case) : start + len(case) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        start = place.find(case, start + 1)
    return False


def identical(contents: dict[str, str], noun: str, least: int = 5) -> tuple[OutputIssue, ...]:
    """An issue if all of at least `least` cases have the same content: the model ignores its input.

    `contents` maps cases to their content, and `noun` says what that is.
    """
    if len(contents) >= least and len(set(contents.values())) == 1:
        return (OutputIssue("identical", f"all {len(contents)} cases have the same {noun}"),)
    return ()
