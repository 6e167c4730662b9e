"""The tone of a run as a null model of E3: how much it asserts against how much it asks, and how
much it prints.

A defect that goes unnoticed is often one that was explained away; runs that noticed what was wrong
ask, compare and object. This reads nothing and proves nothing. Words and fitted weights stand in
tone.yaml.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

import yaml
from ambjudge.trajectories.models import Run, Turn

_DATA = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
ASSERTS = re.compile(rf"\b(?:{'|'.join(_DATA['asserts'])})\b", re.IGNORECASE)
QUESTIONS = re.compile(rf"\b(?:{'|'.join(_DATA['questions'])})\b|n't\b|\?", re.IGNORECASE)
WEIGHTS = tuple(_DATA["weights"].values())
"""Intercept, weight of the balance, weight of the printed amount."""
MAX_TEXT = 100_000
"""Characters read of a turn's text."""


class Manner(NamedTuple):
    """log((assertions + 5) / (questions + 5)), which keeps few words from saying much, and
    log(characters printed + 10)."""

    balance: float
    printed: float


def manner(run: Run) -> Manner:
    """The manner of a run: its turns' texts and what it handed in with its submission, against what
    it printed."""
    texts = [_words(turn) for turn in run.turns]
    asserts = sum(len(ASSERTS.findall(text)) for text in texts)
    questions = sum(len(QUESTIONS.findall(text)) for text in texts)
    return Manner(
        math.log((asserts + 5) / (questions + 5)),
        math.log(sum(len(turn.output) for turn in run.turns) + 10),
    )


def _words(turn: Turn) -> str:
    handed_in = (
        str(v)
        for action in turn.actions
        if action.kind == "submit"
        for v in (action.arguments or {}).values()
    )
    return "\n".join((turn.text, *handed_in))[:MAX_TEXT]
