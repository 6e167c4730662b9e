"""Findings and a reader's readings merged: which codes fire, which stay unproven, which are unread.

The rules, in order:

1. A finding that rests on a file, an exit code or the harness's own words stands whatever is read.
2. A reading *present* fires if its quote was found in the run and it names a turn; else it is
   listed as unproven.
3. Findings of other detectors stand unless a reader proved the code or called it absent.
4. A code that did not fire is absent if a reader said so, and cannot be told if the reader could
   not say or prove it. Unread, it is absent where facts decide it (E2, E4, E5) and not read where
   it takes reading (E1, E3).
5. Of a run that still goes on, E5 (what was delivered) is withheld, and so is every other code that
   did not fire: it may still come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..trajectories.models import Frozen, Run, Segmentation, Stage
from ..trajectories.record.quotes import Evidence
from .models import CodeReading, Contradiction, FiredCode
from .paper_codes import BY_FACTS, OF_DELIVERY
from .registry import rests_on_fact
from .taxonomy import taxonomy

_USUAL_STAGE: dict[str, Stage] = {"E1": "S1", "E2": "S2", "E3": "S3", "E4": "S4", "E5": "S5"}
"""The stage of a code whose quote belongs to no turn."""


class Reading(Frozen):
    """A reader's verdict on one code, with the reader's confidence in [0, 1] and 1-based turns."""

    code: str
    state: Literal["present", "absent", "cannot_tell"]
    turns: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    why: str = ""
    confidence: float = 0.5
    quote: Evidence | None = None

    @property
    def proven(self) -> bool:
        """Whether its quote was found in the run and it names a turn."""
        return bool(self.turns) and self.quote is not None and self.quote.check != "not_found"

    @property
    def settles(self) -> bool:
        """Whether findings that rest on no fact give way to it."""
        return self.state == "absent" or (self.state == "present" and self.proven)


@dataclass(frozen=True)
class Merged:
    """The outcome of merging findings and readings."""

    findings: tuple[FiredCode, ...]
    """Findings that stand."""
    proven: tuple[FiredCode, ...]
    """Readings that fire."""
    unproven: tuple[FiredCode, ...]
    """Readings *present* without proof."""
    states: Mapping[str, CodeReading]
    """The state of every code of the paper's taxonomy."""
    contradictions: tuple[Contradiction, ...]
    """Readings *absent* of codes that rest on a fact."""


def merge(
    run: Run,
    segmentation: Segmentation,
    findings: Sequence[FiredCode],
    readings: Sequence[Reading],
    reader: str = "judge",
    precision: Mapping[str, float] | None = None,
) -> Merged:
    """Merge the detectors' findings with one reader's readings.

    `precision`: by code, the share of this reader's readings that labels confirm; it replaces the
    reader's own confidence where it is known.
    """
    if run.status.ended == "running":
        readings = [reading for reading in readings if reading.code != OF_DELIVERY]
    by_code = {reading.code: reading for reading in readings}
    standing = tuple(
        finding
        for finding in dict.fromkeys(findings)
        if _stands(finding, by_code.get(finding.code))
    )
    proven: list[FiredCode] = []
    unproven: list[FiredCode] = []
    contradictions: list[Contradiction] = []
    for reading in readings:
        if reading.state == "present":
            code = _fired_code(reading, segmentation, reader, precision or {})
            (proven if reading.proven else unproven).append(code)
        elif reading.state == "absent":
            contradictions += _contradictions(reading, standing, reader)
    # A code that was read off the score says nothing about the run itself.
    present = {finding.code for finding in standing if finding.independence != "from_score"}
    present |= {code.code for code in proven}
    states = {
        code.code: _state(code.code, present, by_code.get(code.code), run)
        for code in taxonomy("paper").codes
    }
    return Merged(standing, tuple(proven), tuple(unproven), states, tuple(contradictions))


def _stands(finding: FiredCode, reading: Reading | None) -> bool:
    if rests_on_fact(finding) or finding.independence == "from_score":
        return True
    return reading is None or not reading.settles


def _contradictions(
    reading: Reading, findings: Sequence[FiredCode], reader: str
) -> list[Contradiction]:
    """At most one: the first finding of the code that rests on a fact."""
    for finding in findings:
        if finding.code == reading.code and rests_on_fact(finding):
            text = (
                f"{reading.code} rests on a fact ({finding.why.rstrip('.')}), and the reader says"
                f" that it is absent. ({finding.by}, {reader})"
            )
            return [Contradiction(criterion=reading.code, fact=text, turns=finding.turns)]
    return []


def _fired_code(
    reading: Reading, segmentation: Segmentation, reader: str, precision: Mapping[str, float]
) -> FiredCode:
    return FiredCode(
        code=reading.code,
        taxonomy="paper",
        stage=_stage(reading, segmentation),
        turns=reading.turns,
        why=" ".join(reading.why.split()),
        by=reader,
        confidence=precision.get(reading.code, reading.confidence),
        independence="from_judge",
        facts=reading.facts,
        quote=reading.quote,
    )


def _stage(reading: Reading, segmentation: Segmentation) -> Stage:
    """The stage of the quote's turn, else of the first turn that the reading names."""
    quote_turn = 0 if reading.quote is None else reading.quote.actual_turn
    for turn in (quote_turn, *sorted(reading.turns)):
        stage = segmentation.stage_of(turn)
        if stage is not None:
            return stage
    return _USUAL_STAGE.get(reading.code, "S5")


def _state(code: str, present: set[str], reading: Reading | None, run: Run) -> CodeReading:
    if code in present:
        return "present"
    if run.status.ended == "running":
        return "withheld"
    if reading is not None:
        return "absent" if reading.state == "absent" else "cannot_tell"
    return "absent" if code in BY_FACTS and run.turns else "not_read"
