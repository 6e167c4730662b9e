"""Facts on the delivered files as detectors take them: plain values, whoever opened the files.

The room above opens and checks them (`judge.tagging.output_facts` hands its result in).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..trajectories.models import Frozen


class OutputFact(Frozen):
    """One observation on the delivered files, e.g. kind "missing", "misnamed", "header", "shape", "identical"."""

    kind: str
    text: str
    case: str | None = None
    file: str | None = None
    fatal: bool = True
    """By the track's rules this makes the output invalid."""

    def __str__(self) -> str:
        return f"{self.case}: {self.text}" if self.case else self.text


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
    facts: tuple[OutputFact, ...] = ()
    measures: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Case -> quantity -> number, measured in the delivered files: a table of the outputs whether or not the run printed one."""

    def of(self, *kinds: str) -> tuple[OutputFact, ...]:
        return tuple(fact for fact in self.facts if fact.kind in kinds)

    @property
    def missing(self) -> tuple[OutputFact, ...]:
        """Required files that are absent, misnamed or misplaced."""
        return self.of("missing", "misnamed", "misplaced")

    @property
    def hollow(self) -> tuple[OutputFact, ...]:
        """Empty files of what is always there: anatomy, reports. A lesion or a finding may be absent by nature."""
        return tuple(fact for fact in self.of("empty") if fact.file not in ABSENT_BY_NATURE)

    @property
    def defects(self) -> tuple[OutputFact, ...]:
        """Everything that makes the deliverables wrong: missing, misnamed, malformed. Not placeholders, not quality."""
        return tuple(f for f in self.facts if f.fatal and (f.kind == "empty" or f.kind not in QUALITY))


ABSENT_BY_NATURE = frozenset({"lesion.nii.gz", "prediction.json"})
"""Files that may rightly be empty; whether they may on this task takes reading the brief."""
QUALITY = frozenset({
    "placeholder", "skipped", "constant", "empty", "identical", "unchanged", "extra", "scattered", "class_absent", "repeated", "cut_off",
})  # fmt: skip
"""Kinds that speak of what is in a file, not of its form; they are signs of trouble (E3), not of a bad delivery (E5)."""
