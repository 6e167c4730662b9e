"""Facts: what files, exit codes, the harness and the trace prove about a run, one line each.

A fact is the one currency of proof. Checks of delivered files and detectors make facts; the record
shows them numbered F1..Fn, so that a reply can rest on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..models import Frozen

FactSource = Literal["file", "exit", "harness", "trace"]
"""file: a delivered file was opened or is absent; exit: an exit code or traceback; harness: its
report, flags and answers; trace: what else was recorded of the calls."""


class Fact(Frozen):
    """One thing that is known without reading. `text` is one line; `turns` are 1-based and may be
    empty."""

    id: str = ""
    """`F1`, `F2`, ... once numbered (`number_facts`); "" before."""
    kind: str
    text: str
    turns: tuple[int, ...] = ()
    source: FactSource
    case: str | None = None
    fatal: bool = False
    """By the track's rules it makes the output invalid."""


def number_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The same facts in their order, named F1..Fn."""
    return tuple(
        fact.model_copy(update={"id": f"F{number}"}) for number, fact in enumerate(facts, 1)
    )
