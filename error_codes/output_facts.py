"""Facts on the delivered files, one case or the whole submission at a time: plain values, whoever
opened the files.

`judge.checks` makes them, detectors take them (`judge.facts.tagging.output_facts` hands them in).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from ..trajectories.models import Frozen

FactKind = Literal[
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
REMARKS: frozenset[FactKind] = frozenset(
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
"""Kinds that no track's rules name: whatever they say, they make no output invalid."""


@dataclass(frozen=True)
class Fact:
    """One observation on delivered files. `forgiven`: by the track's rules it does not make the
    output invalid."""

    kind: FactKind
    text: str
    case: str | None = None
    file: str | None = None
    forgiven: bool = False

    @property
    def fatal(self) -> bool:
        """Whether it makes the output invalid."""
        return not self.forgiven and self.kind not in REMARKS

    def __str__(self) -> str:
        where = self.case or self.file
        return f"{where}: {self.text}" if where else self.text


class OutputFacts(Frozen):
    """What is known of the deliverables. Shares in [0, 1]; None where nobody could tell."""

    source: Literal["files", "report", "trace"] | None = None
    expected_cases: int | None = None
    completion: float | None = None
    format_valid: bool | None = None
    placeholder_rate: float | None = None
    model_call_found: bool | None = None
    real_but_broken: bool = False
    """Answers: a model answered everything, and next to nothing is right."""
    task_score: float | None = None
    facts: tuple[Fact, ...] = ()
    measures: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Case -> quantity -> number, measured in the delivered files: a table of the outputs whether
    or not the run printed one."""

    def of(self, *kinds: str) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.kind in kinds)

    @property
    def missing(self) -> tuple[Fact, ...]:
        """Required files that are absent, misnamed or misplaced."""
        return self.of("missing", "misnamed", "misplaced")

    @property
    def hollow(self) -> tuple[Fact, ...]:
        """Empty files of what is always there: anatomy, reports. A lesion or a finding may be
        absent by nature."""
        return tuple(fact for fact in self.of("empty") if fact.file not in ABSENT_BY_NATURE)

    @property
    def defects(self) -> tuple[Fact, ...]:
        """Everything that makes the deliverables wrong: missing, misnamed, malformed. Not
        placeholders, not quality."""
        return tuple(
            f for f in self.facts if f.fatal and (f.kind == "empty" or f.kind not in QUALITY)
        )


ABSENT_BY_NATURE = frozenset({"lesion.nii.gz", "prediction.json"})
"""Files that may rightly be empty; whether they may on this task takes reading the brief."""
QUALITY = frozenset(
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
"""Kinds that speak of what is in a file, not of its form; they are signs of trouble (E3), not of a
bad delivery (E5)."""
