"""Detector findings and judge tags made one list. The rule, in order:

1. Union: every code that a detector or the judge names is kept, each with its own source (`by`), turns and reason.
2. A detector's fact is never changed by a judge: neither its code, nor turns, nor reason.
3. Agreement (same code, from both) keeps both entries and is no conflict.
4. A judge's tag alone stays, with at most `JUDGE_ALONE` confidence: nothing in the run has confirmed it.
5. Conflict: the judge says that nothing fired, or leaves out a code that detectors are sure of, or gives the same turns to
   another code. Conflicts are listed beside the codes, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..trajectories.models import Frozen
from .fired import Fired

JUDGE_ALONE = 0.6
"""Upper limit on the confidence of a code that only a judge named."""
SURE = 0.8
"""A detector's code from this confidence on should have been seen by a judge."""


class Conflict(Frozen):
    """What two sources disagree on, in one sentence, with the turns in question."""

    code: str
    turns: tuple[int, ...]
    what: str
    between: tuple[str, str]


def merge(detector_codes: Sequence[Fired], judge_codes: Sequence[Fired]) -> tuple[Fired, ...]:
    """The union of both, detectors first within a code; judge-only codes keep at most 0.6 confidence."""
    known = {code.code for code in detector_codes if code.independence != "from_score"}
    kept = [
        code if code.code in known else code.model_copy(update={"confidence": min(code.confidence, JUDGE_ALONE)})
        for code in judge_codes
    ]
    every = [*dict.fromkeys(detector_codes), *dict.fromkeys(kept)]
    return tuple(sorted(every, key=lambda c: (c.code, c.by.startswith("judge:"))))


def conflicts(
    detector_codes: Sequence[Fired], judge_codes: Sequence[Fired], *, judged: bool = True
) -> tuple[Conflict, ...]:
    """Where detectors and judge disagree; `judged=False` when no judge was asked (then silence says nothing)."""
    found: list[Conflict] = []
    named = {code.code for code in judge_codes}
    judge = next((code.by for code in judge_codes), "judge")
    if judged:
        for code in detector_codes:
            if code.confidence >= SURE and code.independence != "from_score" and code.code not in named:
                what = f"{code.code} rests on a fact, and the judge does not name it."
                found.append(Conflict(code=code.code, turns=code.turns, what=what, between=(code.by, judge)))
    for tag in judge_codes:
        for code in detector_codes:
            if (
                tag.code != code.code
                and tag.stage == code.stage
                and set(tag.turns) == set(code.turns)
                and code.code not in named
            ):
                what = f"The judge calls these turns {tag.code}, a detector {code.code}."
                found.append(Conflict(code=code.code, turns=code.turns, what=what, between=(code.by, tag.by)))
    return tuple(found)
