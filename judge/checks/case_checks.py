"""Results of checking delivered files: issues by case and about the whole submission."""

from __future__ import annotations

from dataclasses import dataclass

from ...error_codes.output_facts import IssueKind, OutputIssue


@dataclass(frozen=True)
class CaseCheck:
    """The result for one expected case."""

    case: str
    delivered: bool
    """Whether the required files exist under their names."""
    issues: tuple[OutputIssue, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the required files exist and obey the format."""
        return self.delivered and not any(issue.fatal for issue in self.issues)


@dataclass(frozen=True)
class TrackCheck:
    """The result of one track's check: its cases, and issues about the submission as a whole."""

    cases: tuple[CaseCheck, ...] = ()
    issues: tuple[OutputIssue, ...] = ()
    readable: int | None = None
    """Answers: how many have a readable label or text and are not placeholders, whatever else is
    wrong with them. None: as many as are valid."""
    unsure: bool = False
    """Whether even the public inputs do not show everything that the format requires."""

    @property
    def delivered(self) -> int:
        """How many cases were delivered."""
        return sum(case.delivered for case in self.cases)

    @property
    def valid(self) -> int:
        """How many cases are valid."""
        return sum(case.valid for case in self.cases)

    def cases_with(self, kind: IssueKind) -> int:
        """How many cases have an issue of this kind."""
        return sum(any(issue.kind == kind for issue in case.issues) for case in self.cases)
