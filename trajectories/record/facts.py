"""Facts: what files, exit codes, the harness and the trace prove about a run, one line each.

A fact is the one currency of proof. Checks of delivered files and detectors make facts; the record
shows them numbered F1..Fn, so that a reply can refer to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..models import Frozen
from ..quantities import Whole

FactSource = Literal["file", "exit", "harness", "trace"]
"""file: a delivered file was opened or is absent; exit: an exit code or traceback; harness: its
report, flags and answers; trace: what else was recorded of the calls."""


class FactInfo(Frozen):
    """A fact that a code names.

    It is what files, exit codes, the harness or the trace showed when the run was judged.
    """

    id: str
    """`F1`, `F2`, as the judge was shown them; facts that only decided criteria follow."""
    source: FactSource
    """What showed it."""
    text: str
    """One line."""
    turns: tuple[Whole, ...] = ()
    """1-based; empty for a file."""


class Fact(FactInfo):
    """One thing that is known without a judge: what a scorecard keeps of it, and its kind."""

    id: str = ""
    """`F1`, `F2`, ... after `number_facts`; "" before."""
    kind: str
    case: str | None = None
    fatal: bool = False
    """Whether the fact makes the output invalid by the track's rules."""


def number_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The same facts in the same order, with the ids F1..Fn."""
    return tuple(
        fact.model_copy(update={"id": f"F{number}"}) for number, fact in enumerate(facts, 1)
    )
