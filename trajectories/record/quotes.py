"""Checks whether the words that a judge quotes are in the turn that it cites.

`QuoteIndex(run).check(turn, quote)` answers with an `Evidence`: *verified* if the words are in the
cited turn, *moved* if they are in another one, *not_found* otherwise. Turn 0 stands for what
belongs to no turn: the delivered plan and the brief.

Only differences that come from copying a record are tolerated: white space, the escapes of JSON and
string literals, characters that `sanitize` replaces, and an ellipsis (or one of the record's own
marks) where the quote leaves something out. Letters, case and quotation marks must agree: a
paraphrase is not a quote.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Literal

from ...sanitize import sanitize
from ..models import Action, Frozen, Run, Turn
from ..quantities import Whole

PLAN_TURN = 0
"""The turn number that stands for the plan and the brief."""

_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([ntr])|([\"'/`])|)")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ELLIPSIS = re.compile(
    r" ?(?:\[ ?(?:\.{3,}|…) ?\]|\( ?(?:\.{3,}|…) ?\)|\[… [^\[\]…]{1,200} …\]|\.{3,}|…) ?"
)
"""For normalised text, in which white space is single spaces."""
_SYMBOL_RUN = re.compile(r"[^\w\s\x00-\x7f]{65,}")
"""A long run of characters that are neither letters nor spaces: bars and boxes, or piled-up
combining marks, whose canonical order takes time that grows with the square."""
_PART_END = "\0"
"""Separates the parts of a turn, so that no quote runs from one part into the next."""


class Evidence(Frozen):
    """A quote with the turn that it is cited from.

    `check` says whether the words are in that turn, in another one, or nowhere in the run.
    """

    turn: Whole
    """The turn as cited; 0 is the plan."""
    quote: str = ""
    """Words of the run, as cited."""
    check: Literal["verified", "moved", "not_found"]
    """Whether the words are in the cited turn."""
    found_turn: Whole | None = None
    """The turn that holds the words, if they are in another one."""

    @property
    def actual_turn(self) -> int:
        """The turn that holds the words, as far as is known."""
        return self.turn if self.found_turn is None else self.found_turn


def normalise(text: str) -> str:
    """The text in the form in which quotes are compared.

    Escapes are resolved, unsafe characters replaced as `sanitize` does, Unicode composed (NFC), and
    runs of white space made one space. Time is linear in the text, whatever it holds.
    """
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
        text = _SURROGATE_PAIR.sub(_join_surrogates, text)
    # A record breaks lines at carriage returns and shows other control characters as visible ones.
    text = " ".join(sanitize(text.replace("\r", "\n")).split())
    return text if text.isascii() else _compose(text)


def _unescape(match: re.Match[str]) -> str:
    code_point, white_space, character = match.groups()
    if code_point is not None:
        return chr(int(code_point, 16))
    if white_space is not None:
        return " "
    return character if character is not None else "\\"


def _join_surrogates(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16", "surrogatepass").decode("utf-16")


def _compose(text: str) -> str:
    """The text in NFC, but for long runs of symbols."""
    pieces, start = [], 0
    for run in _SYMBOL_RUN.finditer(text):
        pieces += [unicodedata.normalize("NFC", text[start : run.start()]), run.group()]
        start = run.end()
    pieces.append(unicodedata.normalize("NFC", text[start:]))
    return "".join(pieces)


def split_at_ellipses(normalised_quote: str) -> list[str]:
    """The parts of a quote around its ellipses; parts without a letter or digit are left out."""
    return [part for part in _ELLIPSIS.split(normalised_quote) if _has_word(part)]


def _has_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


class QuoteIndex:
    """The searchable text of one run; each turn is normalised when it is first needed."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._texts: dict[int, str] = {}

    def text(self, turn: int) -> str:
        """The normalised text of a turn (0: plan and brief); "" if the run has no such turn."""
        if not PLAN_TURN <= turn <= len(self._run.turns):
            return ""
        if turn not in self._texts:
            parts = [normalise(part) for part in self._parts(turn)]
            self._texts[turn] = _PART_END.join(part for part in parts if part)
        return self._texts[turn]

    def check(self, turn: int, quote: str) -> Evidence:
        """Evidence for a quote cited from a turn (0: the plan or the brief).

        For a quote that is elsewhere, `found_turn` is the nearest turn that holds it, the earlier
        of two equally near ones. A quote without a letter or digit proves nothing and is never
        found.
        """
        words = normalise(quote)
        if not _has_word(words):
            return Evidence(turn=turn, quote=quote, check="not_found")
        parts = split_at_ellipses(words)
        if _contains(self.text(turn), words, parts):
            return Evidence(turn=turn, quote=quote, check="verified")
        for other in self._nearest_turns(turn):
            if _contains(self.text(other), words, parts):
                return Evidence(turn=turn, quote=quote, check="moved", found_turn=other)
        return Evidence(turn=turn, quote=quote, check="not_found")

    def _nearest_turns(self, turn: int) -> list[int]:
        """The other turns, the nearest first; plan and brief last."""
        others = [other for other in range(1, len(self._run.turns) + 1) if other != turn]
        others.sort(key=lambda other: abs(other - turn))
        return others if turn == PLAN_TURN else [*others, PLAN_TURN]

    def _parts(self, turn: int) -> list[str]:
        if turn == PLAN_TURN:
            return [self._run.plan.text or "", self._run.brief]
        return _turn_parts(self._run.turns[turn - 1])


def check_quote(run: Run, turn: int, quote: str) -> Evidence:
    """`QuoteIndex.check` for a single quote; for several, make one index."""
    return QuoteIndex(run).check(turn, quote)


def _contains(text: str, words: str, parts: list[str]) -> bool:
    """Whether the text holds the words or, in this order, the parts around their ellipses."""
    if words in text:
        return True
    if not parts or parts == [words]:
        return False
    position = 0
    for part in parts:
        index = text.find(part, position)
        if index < 0:
            return False
        position = index + len(part)
    return True


def _turn_parts(turn: Turn) -> list[str]:
    """What a turn says, does and is answered, as separate texts in order."""
    parts = [turn.text, turn.reasoning]
    for action in turn.actions:
        parts += [action.tool, action.code, _other_arguments(action)]
        if action.observation is not None:
            parts.append(action.observation.text)
    return [*parts, *turn.replies]


def _other_arguments(action: Action) -> str:
    """The arguments that are not the action's code, as JSON; "" if there are none."""
    others: dict[str, Any] = {
        name: value
        for name, value in (action.arguments or {}).items()
        if not action.code or value != action.code
    }
    if not others:
        return ""
    try:
        return json.dumps(others, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
