"""What a reader said of the codes, held against the facts: which codes fire, which readings stay
unproven, what is unread.

The rule, in order:

1. A finding that rests on a file, an exit code or the harness's own words stands whatever is read.
2. A reading *present* fires where its quote was found in the run and it names a turn; else it is
listed as unproven.
3. Where a reader proved a code or said that it is absent, findings of other detectors give way;
else they stand.
4. A code that did not fire is absent when a reader said so, and cannot be told when it could not
say or prove. Unread, it
   is absent where facts decide it (E2, E4, E5) and not read where that takes reading (E1, E3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..trajectories.models import Frozen, Run, Segmentation, Stage
from ..trajectories.record.quotes import Evidence
from .fired import Fired
from .paper_codes import BY_FACTS
from .taxonomy import taxonomy

State = Literal["present", "absent", "cannot_tell", "not_read"]

_USUAL: dict[str, Stage] = {"E1": "S1", "E2": "S2", "E3": "S3", "E4": "S4", "E5": "S5"}
"""The stage of a code whose quote stands in no turn."""


class Reading(Frozen):
    """What a reader said of one code. `confidence` in [0, 1] is its own; `turns` are 1-based and of
    the run."""

    code: str
    state: Literal["present", "absent", "cannot_tell"]
    turns: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    why: str = ""
    confidence: float = 0.5
    quote: Evidence | None = None

    @property
    def proven(self) -> bool:
        """Its words stand in the run, and it names a turn of it."""
        return bool(self.turns) and self.quote is not None and self.quote.check != "not_found"


class Conflict(Frozen):
    """What a fact and a reading disagree on, in one sentence, with the turns in question."""

    code: str
    turns: tuple[int, ...]
    what: str
    between: tuple[str, str]


@dataclass(frozen=True)
class Merged:
    """Findings that stand, codes that were read and fire, readings without proof, and the state of
    every code."""

    found: tuple[Fired, ...]
    read: tuple[Fired, ...]
    unproven: tuple[Fired, ...]
    states: Mapping[str, State]
    conflicts: tuple[Conflict, ...]


def merge(
    run: Run,
    segmentation: Segmentation,
    found: Sequence[Fired],
    readings: Sequence[Reading],
    reader: str = "judge",
    right: Mapping[str, float] | None = None,
) -> Merged:
    """Detectors' findings and one reader's readings made one.

    `right`: of each code, the share of this judge's readings that labels confirm; it stands as the
    confidence where it is known, else the reader's own word does.
    """
    by_code = {reading.code: reading for reading in readings}
    stand = tuple(
        f
        for f in dict.fromkeys(found)
        if f.fact or f.independence == "from_score" or not _settles(by_code.get(f.code))
    )
    fired: list[Fired] = []
    unproven: list[Fired] = []
    conflicts: list[Conflict] = []
    for reading in readings:
        facts = [f for f in stand if f.code == reading.code and f.fact]
        if reading.state == "present":
            shown = _shown(reading, segmentation, reader, right or {})
            (fired if reading.proven else unproven).append(shown)
        elif reading.state == "absent" and facts:
            what = (
                f"{reading.code} rests on a fact ({facts[0].why.rstrip('.')}), and the reader says"
                " that it is absent."
            )
            conflicts.append(
                Conflict(
                    code=reading.code,
                    turns=facts[0].turns,
                    what=what,
                    between=(facts[0].by, reader),
                )
            )
    known = {f.code for f in stand if f.independence != "from_score"} | {f.code for f in fired}
    states = {
        c.code: _state(c.code, known, by_code.get(c.code), run) for c in taxonomy("paper").codes
    }
    return Merged(stand, tuple(fired), tuple(unproven), states, tuple(conflicts))


def _settles(reading: Reading | None) -> bool:
    return reading is not None and (
        reading.state == "absent" or (reading.state == "present" and reading.proven)
    )


def _shown(
    reading: Reading, segmentation: Segmentation, reader: str, right: Mapping[str, float]
) -> Fired:
    quote, last = reading.quote, len(segmentation.turn_stages)
    place = 0 if quote is None else quote.actual_turn
    at = next((turn for turn in (place, *sorted(reading.turns)) if 1 <= turn <= last), 0)
    stage = segmentation.turn_stages[at - 1] if at else _USUAL.get(reading.code, "S5")
    return Fired(
        code=reading.code,
        taxonomy="paper",
        stage=stage,
        turns=reading.turns,
        why=" ".join(reading.why.split()),
        by=reader,
        confidence=right.get(reading.code, reading.confidence),
        independence="from_judge",
        facts=reading.facts,
        quote=reading.quote,
    )


def _state(code: str, known: set[str], reading: Reading | None, run: Run) -> State:
    if code in known:
        return "present"
    if reading is not None:
        return "absent" if reading.state == "absent" else "cannot_tell"
    return "absent" if code in BY_FACTS and run.turns else "not_read"
