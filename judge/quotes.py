"""Does a quote really stand where a judge says it does?

`QuoteIndex(run).check(turn, quote)` answers with an `Evidence`: *verified* when the words stand in the cited turn,
*moved* when they stand in another one, *not_found* otherwise. Tolerated are only differences that copying makes:
runs of white space, the escapes of JSON and string literals, and an ellipsis where a quote leaves something out.
Letters, case and quotation marks must agree: a paraphrase is not a quote.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from ..trajectories.models import Action, Run, Turn
from .scorecard import Evidence

PLAN_TURN = 0
"""The turn number that means the plan file instead of a turn."""

_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([ntr])|([\"'/`])|)")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.{3,}|…)\s*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…)\s*")
_BREAK = "\0"
"""Stands between parts of a turn, so that no quote runs from one part into the next."""


def normalise(text: str) -> str:
    """`text` with escapes resolved, Unicode composed (NFC) and each run of white space made one space."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
        text = _SURROGATES.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if _BREAK in text:
        text = text.replace(_BREAK, " ")
    return " ".join(text.split())


def _unescape(match: re.Match[str]) -> str:
    point, blank, mark = match.groups()
    if point is not None:
        return chr(int(point, 16))
    if blank is not None:
        return " "
    return mark if mark is not None else "\\"


class QuoteIndex:
    """The searchable text of one run; each turn is normalised at most once, when it is first asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._texts: dict[int, str] = {}

    def text(self, turn: int) -> str:
        """The normalised text of a turn (1-based; 0 is the plan); "" for a turn that the run does not have."""
        found = self._texts.get(turn)
        if found is None:
            if turn == PLAN_TURN:
                found = normalise(self._run.plan.text or "")
            elif 1 <= turn <= len(self._run.turns):
                parts = (normalise(part) for part in _parts(self._run.turns[turn - 1]))
                found = _BREAK.join(part for part in parts if part)
            else:
                return ""
            self._texts[turn] = found
        return found

    def check(self, turn: int, quote: str) -> Evidence:
        """Evidence for a quote cited from a turn (0: the plan).

        A quote that stands elsewhere names the nearest turn that holds it (the earlier of two equally near ones).
        A quote without a letter or digit proves nothing and is never found.
        """
        wanted = normalise(quote)
        if any(char.isalnum() for char in wanted):
            parts = [part for part in _ELLIPSIS.split(wanted) if any(char.isalnum() for char in part)]
            if _stands(self.text(turn), wanted, parts):
                return Evidence(turn=turn, quote=quote, check="verified")
            for other in sorted(range(len(self._run.turns) + 1), key=lambda n: (n == PLAN_TURN, abs(n - turn), n)):
                if other != turn and _stands(self.text(other), wanted, parts):
                    return Evidence(turn=turn, quote=quote, check="moved", found_turn=other)
        return Evidence(turn=turn, quote=quote, check="not_found")


def check_quote(run: Run, turn: int, quote: str) -> Evidence:
    """`QuoteIndex.check` for a single quote; make one index when there are several."""
    return QuoteIndex(run).check(turn, quote)


def _stands(text: str, wanted: str, parts: list[str]) -> bool:
    if wanted in text:
        return True
    if not parts or (len(parts) == 1 and parts[0] == wanted):
        return False
    position = 0
    for part in parts:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True


def _parts(turn: Turn) -> list[str]:
    """What a turn says, does and gets back, as separate texts in their order."""
    parts = [turn.text, turn.reasoning]
    for action in turn.actions:
        parts += [action.tool, action.code, _arguments(action)]
        if action.observation is not None:
            parts.append(action.observation.text)
    return [*parts, *turn.replies]


def _arguments(action: Action) -> str:
    """The arguments that `code` does not already hold, as JSON."""
    rest: dict[str, Any] = {k: v for k, v in (action.arguments or {}).items() if v != action.code or not action.code}
    if not rest:
        return ""
    try:
        return json.dumps(rest, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
