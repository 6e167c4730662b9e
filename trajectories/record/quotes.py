"""Does a quote really stand where a reader says it does?

`QuoteIndex(run).check(turn, quote)` answers with an `Evidence`: *verified* when the words stand in
the cited turn, *moved* when they stand in another one, *not_found* otherwise. Turn 0 is what
belongs to no turn: the delivered plan and the brief. Tolerated are only differences that copying
from a record makes: runs of white space, the escapes of JSON and string literals, characters that
`sanitize` replaces, and an ellipsis (or one of the record's own marks) where a quote leaves
something out. Letters, case and quotation marks must agree: a paraphrase is not a quote.
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
"""The turn number that means the plan file and the brief instead of a turn."""

_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([ntr])|([\"'/`])|)")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ELLIPSIS = re.compile(
    r" ?(?:\[ ?(?:\.{3,}|…) ?\]|\( ?(?:\.{3,}|…) ?\)|\[… [^\[\]…]{1,200} …\]|\.{3,}|…) ?"
)  # after `normalise`, white space is single spaces
_MARKS = re.compile(r"[^\w\s\x00-\x7f]{65,}")
"""A long run of characters that are neither letters nor spaces: bars and boxes, or combining marks
piled up, whose canonical order takes time that grows with the square."""
_BREAK = "\0"
"""Stands between parts of a turn, so that no quote runs from one part into the next."""


class Evidence(Frozen):
    """A turn and the words a value rests on. `check`: the quote stands in that turn, in another
    one, or nowhere."""

    turn: Whole
    """As it was cited; 0 is the plan."""
    quote: str = ""
    """Words of the run, as they were cited."""
    check: Literal["verified", "moved", "not_found"]
    """Whether they stand there."""
    found_turn: Whole | None = None
    """Where the quote really stands, when it was moved."""

    @property
    def actual_turn(self) -> int:
        """The turn in which the words stand, as far as is known."""
        return self.turn if self.found_turn is None else self.found_turn


def normalise(text: str) -> str:
    """`text` with escapes resolved, made safe as `sanitize` does, Unicode composed (NFC) and each
    run of white space made one space. Linear in the text, whatever it holds."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
        text = _SURROGATES.sub(
            lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text
        )
    # A record breaks lines at carriage returns and shows every other control character as a visible
    # one.
    text = " ".join(sanitize(text.replace("\r", "\n")).split())
    return text if text.isascii() else _composed(text)


def _composed(text: str) -> str:
    pieces, start = [], 0
    for match in _MARKS.finditer(text):
        pieces += [unicodedata.normalize("NFC", text[start : match.start()]), match.group()]
        start = match.end()
    return "".join([*pieces, unicodedata.normalize("NFC", text[start:])])


def _unescape(match: re.Match[str]) -> str:
    point, blank, mark = match.groups()
    if point is not None:
        return chr(int(point, 16))
    if blank is not None:
        return " "
    return mark if mark is not None else "\\"


def split_at_ellipses(normal: str) -> list[str]:
    """What stands around the ellipses of a quote whose white space is single spaces; parts without
    a letter or digit are none."""
    return [part for part in _ELLIPSIS.split(normal) if any(char.isalnum() for char in part)]


class QuoteIndex:
    """The searchable text of one run; each turn is normalised at most once, when it is first asked
    for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._texts: dict[int, str] = {}

    def text(self, turn: int) -> str:
        """The normalised text of a turn (1-based; 0 is plan and brief); "" for a turn that the run
        does not have."""
        found = self._texts.get(turn)
        if found is None:
            if turn == PLAN_TURN:
                parts = [self._run.plan.text or "", self._run.brief]
            elif 1 <= turn <= len(self._run.turns):
                parts = _parts(self._run.turns[turn - 1])
            else:
                return ""
            found = self._texts[turn] = _BREAK.join(part for part in map(normalise, parts) if part)
        return found

    def check(self, turn: int, quote: str) -> Evidence:
        """Evidence for a quote cited from a turn (0: the plan or the brief).

        A quote that stands elsewhere names the nearest turn that holds it (the earlier of two
        equally near ones). A quote without a letter or digit proves nothing and is never found.
        """
        wanted = normalise(quote)
        if any(char.isalnum() for char in wanted):
            parts = split_at_ellipses(wanted)
            if _stands(self.text(turn), wanted, parts):
                return Evidence(turn=turn, quote=quote, check="verified")
            for other in sorted(
                range(len(self._run.turns) + 1), key=lambda n: (n == PLAN_TURN, abs(n - turn), n)
            ):
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
    rest: dict[str, Any] = {
        k: v for k, v in (action.arguments or {}).items() if v != action.code or not action.code
    }
    if not rest:
        return ""
    try:
        return json.dumps(rest, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
