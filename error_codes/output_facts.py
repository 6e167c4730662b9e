"""What is known about the delivered files, as plain values: issues, rates, measures.

`judge.checks` opens the files and makes these; detectors and scorecards take them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from ..trajectories.models import Frozen
from ..trajectories.quantities import Unit, Whole

IssueKind = Literal[
    "missing",  # the required file is not there
    "misnamed",  # another name stands in its place
    "misplaced",  # the right file lies somewhere else
    "link",  # a link that leaves the run; not followed
    "unreadable",  # not the format that its name promises, cut, too large, or refused
    "encoding",  # not UTF-8
    "schema",  # a field, key or column is missing or has the wrong type
    "header",  # wrong CSV header
    "dtype",
    "shape",
    "affine",
    "values",  # a number, label or option outside the allowed set
    "not_finite",
    "constant",
    "empty",  # nothing in it: no box, no voxel, no row, no words
    "box_reversed",
    "box_outside",
    "unknown_class",
    "length",
    "placeholder",
    "skipped",  # honestly left unanswered
    "identical",  # the same output for every case
    "unchanged",  # the output is the input
    "scattered",  # a mask in pieces where the other cases' masks are one
    "class_absent",  # a label or class that the brief asks for is in no output at all
    "repeated",  # one and the same text for most cases
    "cut_off",  # most texts end in the middle of a sentence
    "duplicate",
    "extra",  # a case that nobody asked for
    "demand",  # the brief asks for it in so many words, the track's format does not
]
REMARKS: frozenset[IssueKind] = frozenset(
    {
        "affine",
        "constant",
        "identical",
        "unchanged",
        "unknown_class",
        "scattered",
        "class_absent",
        "repeated",
        "cut_off",
        "demand",
    }
)
"""Kinds that no track's rules name: they never make an output invalid."""


@dataclass(frozen=True)
class OutputIssue:
    """One observation about delivered files.

    `forgiven`: by the track's rules it does not make the output invalid.
    """

    kind: IssueKind
    text: str
    case: str | None = None
    file: str | None = None
    forgiven: bool = False

    @property
    def fatal(self) -> bool:
        """Whether it makes the output invalid."""
        return not self.forgiven and self.kind not in REMARKS

    def __str__(self) -> str:
        place = self.case or self.file
        return f"{place}: {self.text}" if place else self.text


class StageChecks(Frozen):
    """Facts behind S4 and S5. `source`: opened output files, else the report, else the trace."""

    completion: Unit | None = None
    """Share of the expected cases that have a result."""
    format_valid: bool | None = None
    """Whether every delivered file has the format that the track asks for."""
    has_valid_results: bool | None = None
    """Whether any result counts."""
    parse_rate: Unit | None = None
    """Answers: share of the expected questions with an answer that can be read; replaces
    format_valid in S4."""
    placeholder_rate: Unit | None = None
    """Answers: share of placeholders, which say nothing about their case."""
    model_call_found: bool | None = None
    """Whether the trace shows that a model was run."""
    expected_cases: Whole | None = None
    """Number of cases that the run had to do."""
    complete_cases: Whole | None = None
    """Number of these that have a result."""
    cases_from: Literal["public", "agent_summary", "report", "submit", "trace"] | None = None
    """The source of the number of cases."""
    source: Literal["files", "report", "trace"] | None = None
    """The source of the rest: the delivered files, else the report, else the trace."""
    caps: tuple[str, ...] = ()
    """Guards that lowered the score, in words."""
    problems: tuple[str, ...] = ()
    """`case: problem`, at most a few dozen; the last line counts the others."""


class OutputFacts(StageChecks):
    """What is known about the deliverables: what a scorecard keeps, and what detectors look at."""

    real_but_broken: bool = False
    """Answers: a model answered everything, and next to nothing is right."""
    task_score: float | None = None
    issues: tuple[OutputIssue, ...] = ()
    """About the run as a whole, then about each case, in order."""
    measures: Mapping[str, Mapping[str, float]] = Field(default_factory=dict)
    """Case -> quantity -> number, measured in the delivered files; empty without files.

    Masks: `organ`, `lesion` or `label_<n>` in ml. Images: `mean`, `std`, `min`, `max` of the stored
    values. Boxes: their number as `boxes`, and the medians of their `score` in [0, 1], `width` and
    `height` in pixels.
    """

    def of(self, *kinds: str) -> tuple[OutputIssue, ...]:
        """The issues of these kinds."""
        return tuple(issue for issue in self.issues if issue.kind in kinds)

    @property
    def missing(self) -> tuple[OutputIssue, ...]:
        """Required files that are absent, misnamed or misplaced."""
        return self.of(*MISSING)

    @property
    def hollow(self) -> tuple[OutputIssue, ...]:
        """Empty files of what every case has: anatomy, reports.

        A lesion or a finding may be absent by nature.
        """
        return tuple(issue for issue in self.of("empty") if issue.file not in ABSENT_BY_NATURE)

    @property
    def defects(self) -> tuple[OutputIssue, ...]:
        """Everything that makes the deliverables wrong: missing, misnamed, malformed.

        Neither placeholders nor quality.
        """
        return tuple(
            issue
            for issue in self.issues
            if issue.fatal and (issue.kind == "empty" or issue.kind not in QUALITY)
        )


ABSENT_BY_NATURE = frozenset({"lesion.nii.gz", "prediction.json"})
"""Files that may rightly be empty; whether they may on this task takes reading the brief."""
MISSING: tuple[IssueKind, ...] = ("missing", "misnamed", "misplaced")
"""Kinds of issues of a required file that is not in its place under its name."""
QUALITY: frozenset[IssueKind] = frozenset(
    {
        "placeholder",
        "skipped",
        "constant",
        "empty",
        "identical",
        "unchanged",
        "extra",
        "scattered",
        "class_absent",
        "repeated",
        "cut_off",
    }
)
"""Kinds about the contents of a file, not its form: signs of trouble (E3), not of a bad delivery
(E5)."""
