"""What checking delivered files yields: facts a case and a run at a time, in plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


REMARKS: frozenset[FactKind] = frozenset({
    "affine", "constant", "identical", "unchanged", "unknown_class", "scattered", "class_absent", "repeated", "cut_off", "demand",
})  # fmt: skip
"""Kinds that no track's rules name: whatever they say, they make no output invalid."""


@dataclass(frozen=True)
class Fact:
    """One observation on delivered files. `forgiven`: by the track's rules it does not make the output invalid."""

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


@dataclass(frozen=True)
class CaseCheck:
    """One expected case. `delivered`: its required files are there under their names; `valid`: they obey the format."""

    case: str
    delivered: bool
    facts: tuple[Fact, ...] = ()

    @property
    def valid(self) -> bool:
        return self.delivered and not any(fact.fatal for fact in self.facts)


@dataclass(frozen=True)
class TrackCheck:
    """What one track's checker found: its cases, and facts on the submission as a whole."""

    cases: tuple[CaseCheck, ...] = ()
    facts: tuple[Fact, ...] = ()
    readable: int | None = None
    """Answers: how many have a label or text that can be read and is no placeholder, whatever else is wrong with them."""
    unsure: bool = False
    """The public inputs do not tell all that the format asks for."""

    @property
    def delivered(self) -> int:
        return sum(case.delivered for case in self.cases)

    @property
    def valid(self) -> int:
        return sum(case.valid for case in self.cases)

    def cases_with(self, kind: FactKind) -> int:
        """How many cases have a fact of this kind."""
        return sum(any(fact.kind == kind for fact in case.facts) for case in self.cases)
