"""What checking delivered files yields: facts a case and a run at a time, in plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from ...error_codes.output_facts import Fact as Fact
from ...error_codes.output_facts import FactKind as FactKind


@dataclass(frozen=True)
class CaseCheck:
    """One expected case. `delivered`: its required files are there under their names; `valid`: they
    obey the format."""

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
    """Answers: how many have a label or text that can be read and is no placeholder, whatever else
    is wrong with them."""
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
