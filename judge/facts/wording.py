"""Short texts of which facts consist, safe and bounded whatever a run's files contain."""

from __future__ import annotations

from collections.abc import Iterable

from ...trajectories.record.facts import Fact, FactSource
from ...trajectories.record.strangers import Stranger


def plain_fact(kind: str, text: str, source: FactSource, turn: int | None = None) -> Fact:
    """A fact about at most one turn."""
    return Fact(kind=kind, text=text, source=source, turns=(turn,) if turn else ())


def yes_or_no(value: bool | None) -> str:
    if value is None:
        return "unknown"
    return "yes" if value else "no"


def short_name(text: str, limit: int = 60) -> str:
    """A name from a run's files on one line, in quotation marks unless it is a plain one."""
    return str(Stranger(text, limit))


def listed(parts: Iterable[str], room: int, separator: str = ", ") -> str:
    """As many parts as fit into `room` characters, at least one, and the number of the others."""
    fitting: list[str] = []
    omitted = 0
    for part in parts:
        room -= len(part) + len(separator)
        if room < 0 and fitting:
            omitted += 1
        else:
            fitting.append(part)
    more = f" and {omitted} more" if omitted else ""
    return separator.join(fitting) + more
