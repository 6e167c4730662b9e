"""How a run speaks of its work: words that state that things are as they should be, against words that ask, object or look."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from .context import CodeContext

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

MUCH_ASKED = 0.8
"""Assertions a question, five added to both, below which a run asks rather than asserts."""


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

    @property
    def asks(self) -> bool:
        """Whether the run asks clearly more than it asserts: signs in what it printed were hardly let pass unseen."""
        return self.balance < math.log(MUCH_ASKED)


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
