"""E3 by tone, where nobody reads: how a run speaks of its work and how much it prints, weighed by labelled runs.

A defect that goes unnoticed is often one that was explained away; runs that noticed what was wrong ask, compare and object.
This names no defect and proves none: a likelihood, which a reading or any fact of its code replaces. The weights are those
of a logistic regression of E3 on two measures of 294 labelled runs (`benchmarks/unquestioned.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..context import CodeContext
from ..registry import Finding, detector

MAX_TEXT = 100_000
"""Characters read of a turn's text."""

ASSERTS = re.compile(
    r"\b(?:exactly|as expected|expect(?:s|ed)|confident(?:ly)?|validat(?:ed|es)|verif(?:ied|ies)|verification|consistent(?:ly)?"
    r"|every|everywhere|everything|all|both|complete(?:d|ly)?|perfect(?:ly)?|clean(?:ly)?|nothing|simply|anyway|pass(?:es|ed)?"
    r"|excellent|lovely|solid|textbook|good|great|as (?:required|planned|intended|it should)|sensible|stable|robust|reliabl[ey]"
    r"|success(?:ful|fully)?|clearly|obviously|of course|evidently|healthy"
    r"|no (?:problems?|issues?|errors?|violations?|need|reason))\b",
    re.IGNORECASE,
)
"""Words that state that something is as it should be."""
QUESTIONS = re.compile(
    r"\b(?:see|look(?:ed|s|ing)?|whether|why|if|unless|not|never|wrong|but|however|although|though|only|too|again|instead|rather"
    r"|before|against|actual(?:ly)?|real(?:ly)?|cut|try|tried|tests?|tested|compar\w{1,6}|decid\w{1,4}|settles?|prov(?:e|es|ed|en)"
    r"|could|would|might|may|maybe|perhaps|odd|strange|weird|suspicious|suspect\w{0,3}|surpris\w{1,5}|unsure|unclear|doubt\w{0,4}"
    r"|mistak\w{1,3}|mismatch\w{0,2}|inspect\w{0,4}|examin\w{1,4}|investigat\w{1,4}|guess\w{0,3}|trust\w{0,4}|hid(?:e|es|den)"
    r"|fooled|bug|problem|hmm|wait)\b|n't\b|\?",
    re.IGNORECASE,
)
"""Words that ask, object, compare or look."""

WEIGHTS = (7.213, 3.072, -0.856)
"""Intercept, weight of the balance, weight of the printed amount (`benchmarks/unquestioned.py`)."""
MIN_LIKELY = 0.8
"""Probability from which it fires: where no fact shows E3, it is then right in about five of six runs, below in three of four."""
MIN_SAID = 3
"""Assertions about results below which there is nothing to read."""


class Manner(NamedTuple):
    """How a run speaks: `balance` is log((assertions + 5) / (questions + 5)), which keeps few words from saying much; `printed` the
    log of the characters printed + 10.
    """

    balance: float
    printed: float
    asserts: int
    questions: int
    said: dict[int, list[str]]
    """Assertions by turn, in the turns after the first result."""


def manner(ctx: CodeContext) -> Manner:
    """The manner of a run: its turns' texts and what it handed in with its submission, against what it printed."""
    texts = {turn.index: _words(ctx, turn.index) for turn in ctx.run.turns}
    asserts = {turn: ASSERTS.findall(text) for turn, text in texts.items()}
    questions = sum(len(QUESTIONS.findall(text)) for text in texts.values())
    count = sum(map(len, asserts.values()))
    first = min((*ctx.model_turns[:1], *ctx.write_turns[:1]), default=ctx.last)
    return Manner(
        balance=math.log((count + 5) / (questions + 5)),
        printed=math.log(sum(len(turn.output) for turn in ctx.run.turns) + 10),
        asserts=count,
        questions=questions,
        said={turn: words for turn, words in asserts.items() if turn > first and words},
    )


def _words(ctx: CodeContext, index: int) -> str:
    turn = ctx.turn(index)
    handed_in = (
        str(v) for action in turn.actions if action.kind == "submit" for v in (action.arguments or {}).values()
    )
    return "\n".join((turn.text, *handed_in))[:MAX_TEXT]


def probability(found: Manner) -> float:
    """Share of labelled runs of this manner in which a visible defect went unnoticed, in (0, 1)."""
    start, balance, printed = WEIGHTS
    return 1 / (1 + math.exp(-(start + balance * found.balance + printed * found.printed)))


@detector("asserted_not_questioned", code="E3", stage="S5", independence="from_trace", likelihood=True)
def asserted_not_questioned(ctx: CodeContext) -> Iterable[Finding]:
    """Results are asserted and little is asked, as in labelled runs whose defects went unnoticed: a likelihood, no fact."""
    if not ctx.write_turns or not ctx.handed_over:
        return
    found = manner(ctx)
    if sum(map(len, found.said.values())) < MIN_SAID or probability(found) < MIN_LIKELY:
        return
    turns = sorted(found.said, key=lambda turn: (-len(found.said[turn]), turn))[:3]
    words = list(dict.fromkeys(word.lower() for turn in sorted(turns) for word in found.said[turn]))
    why = (
        f"Results are asserted ({', '.join(words[:5])}): {found.asserts} words of the run assert, {found.questions} ask or object; "
        f"{probability(found):.0%} of labelled runs that speak and print so had let a visible defect pass."
    )
    yield Finding(tuple(sorted(turns)), why, round(probability(found), 2))
