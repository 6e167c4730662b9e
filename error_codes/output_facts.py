"""Facts on the delivered files as detectors take them: plain values, whoever opened the files.

The room above opens and checks them; `output_facts` takes over its result by shape, so that nothing is imported from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

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
    task_score: float | None = None
    answers: tuple[dict[str, object], ...] = ()
    """vqa: the answer files as read, one mapping each (`question_id`, `predicted_label`, ...), for answer-level codes."""
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
QUALITY: frozenset[str] = frozenset(
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
"""Kinds that speak of what is in a file, not of its form; they are signs of trouble (E3), not of a bad delivery (E5)."""


class _Fact(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def case(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def fatal(self) -> bool: ...


class _StageChecks(Protocol):
    @property
    def completion(self) -> float | None: ...
    @property
    def format_valid(self) -> bool | None: ...
    @property
    def placeholder_rate(self) -> float | None: ...
    @property
    def model_call_found(self) -> bool | None: ...
    @property
    def expected_cases(self) -> int | None: ...
    @property
    def source(self) -> Literal["files", "report", "trace"] | None: ...


class Check(Protocol):
    """The shape of a check of one run's outputs (`judge.checks.OutputCheck`)."""

    @property
    def s4_checks(self) -> _StageChecks: ...
    @property
    def facts(self) -> Sequence[_Fact]: ...
    @property
    def task(self) -> float | None: ...
    @property
    def measures(self) -> Mapping[str, Mapping[str, float]]: ...


def output_facts(check: Check, answers: Sequence[Mapping[str, Any]] = ()) -> OutputFacts:
    """The result of checking a run's outputs, as detectors take it. `answers`: the vqa answer files, where there are any."""
    stage = check.s4_checks
    return OutputFacts(
        source=stage.source, expected_cases=stage.expected_cases, completion=stage.completion,
        format_valid=stage.format_valid, placeholder_rate=stage.placeholder_rate,
        model_call_found=stage.model_call_found, task_score=check.task, answers=tuple(dict(a) for a in answers),
        measures={case: dict(values) for case, values in check.measures.items()},
        facts=tuple(OutputFact(kind=f.kind, text=f.text, case=f.case, file=f.file, fatal=f.fatal) for f in check.facts),
    )  # fmt: skip
