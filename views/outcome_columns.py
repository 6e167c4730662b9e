"""Columns for outcomes of other harnesses: which are worth one, and how their values are written.

A harness may record sixty outcomes of a run. Those that most runs have come first, plain names
before names with dots; a text that is the same in every run, or long, is left to the run's page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..console import fit
from ..judge.card.view_parts import outcome_text
from ..rounding import fixed

Value = bool | float | str
MOST = 6
"""Outcomes that tables have columns for."""
_LONGEST_TEXT = 24
_MOST_DIGITS = 3
_LEAST_SHARE = 4
"""An outcome of fewer than a quarter as many runs as the commonest one belongs to few tasks."""
_LONGEST_TITLE = 14


@dataclass(frozen=True)
class OutcomeColumn:
    """An outcome's column: numbers have so many decimals in every row."""

    name: str
    """In lower case, as rows have it."""
    digits: int = 0
    is_text: bool = False
    width: int = 4
    """Characters of its longest value."""

    @property
    def title(self) -> str:
        """The name; of a long one what stands after its last dot."""
        if len(self.name) <= _LONGEST_TITLE:
            return self.name
        return fit(self.name.rpartition(".")[2], _LONGEST_TITLE)

    def text(self, value: Value | None) -> str:
        """A value in words: yes, no, figures, or the text itself."""
        return outcome_text(value, self.digits)


def outcome_order(value: Value | None) -> tuple[bool, float, str] | None:
    """What an outcome sorts by, numbers and flags before texts; None without a value."""
    if value is None:
        return None
    if isinstance(value, str):
        return True, 0.0, value.casefold()
    return False, float(value), ""


@dataclass
class _Seen:
    runs: int = 0
    digits: int = 0
    longest_text: int = 0
    texts: set[str] = field(default_factory=set)
    is_text: bool = True


class OutcomeTally:
    """Counts the outcomes of runs as they come; the columns are those of all runs counted."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def add(self, outcomes: Mapping[str, Value]) -> None:
        """Count one run's outcomes, by name in lower case."""
        for name, value in outcomes.items():
            seen = self._seen.setdefault(name, _Seen())
            seen.runs += 1
            if isinstance(value, str):
                seen.longest_text = max(seen.longest_text, len(value))
                if len(seen.texts) < 2:
                    seen.texts.add(value)
            else:
                seen.is_text = False
                seen.digits = max(seen.digits, _decimals(value))

    def columns(self) -> tuple[OutcomeColumn, ...]:
        """At most `MOST` columns, the most worth first."""
        most_runs = max((seen.runs for seen in self._seen.values()), default=0)
        worth = [
            (-seen.runs, name.count("."), place, name, seen)
            for place, (name, seen) in enumerate(self._seen.items())
            if seen.runs * _LEAST_SHARE >= most_runs
            and seen.longest_text <= _LONGEST_TEXT
            and not _says_nothing(seen)
        ]
        worth.sort(key=lambda entry: entry[:3])
        return tuple(
            OutcomeColumn(name, seen.digits, seen.is_text, max(4, seen.longest_text))
            for *_, name, seen in worth[:MOST]
        )


def outcome_columns(outcomes: Iterable[Mapping[str, Value]]) -> tuple[OutcomeColumn, ...]:
    """The columns of some runs' outcomes."""
    tally = OutcomeTally()
    for each in outcomes:
        tally.add(each)
    return tally.columns()


def _says_nothing(seen: _Seen) -> bool:
    """Whether it is one text in every one of several runs."""
    return seen.is_text and seen.runs > 1 and len(seen.texts) == 1


def _decimals(value: bool | float) -> int:
    if isinstance(value, bool):
        return 0
    digits = fixed(value, _MOST_DIGITS).rstrip("0")
    return len(digits.partition(".")[2])
