"""E3: the code asks each input's record for a key that no record has, and takes the default, while a like-named key holds the value."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..registry import Finding, detector

MAX_TEXT = 200_000
_ASKED = re.compile(r"(?<!environ)\.get\(\s{0,4}['\"]([A-Za-z]\w{3,40})['\"]\s{0,4}[,)]")
_KEY = re.compile(r"['\"]([A-Za-z]\w{3,40})['\"]\s{0,4}:")
_SET = re.compile(r"['\"]([A-Za-z]\w{3,40})['\"]\s{0,4}(?::|\]\s{0,4}=[^=])")
_LITERAL = re.compile(r"'(\w{4,41})'|\"(\w{4,41})\"")
_WORD = re.compile(r"\w{4,}")


@detector("absent_key_asked", code="E3", stage="S3", independence="from_trace")
def absent_key_asked(ctx: CodeContext) -> Iterable[Finding]:
    """A key that no printed record has is asked for with a default, while the records have one of a longer or shorter name."""
    turns = ctx.run.turns[: ctx.final_write] if ctx.final_write is not None else ()
    asked = {key: turn.index for turn in reversed(turns) for key in _ASKED.findall(turn.code[:MAX_TEXT])}
    looks = [turn for turn in turns if not ctx.feature(turn.index).forward_pass] if asked else ()
    shown = {key: turn.index for turn in reversed(looks) for key in _KEY.findall(turn.output[:MAX_TEXT])}
    if not shown:
        return
    codes = [turn.code[:MAX_TEXT] for turn in turns]
    named = {text for code in codes for pair in _LITERAL.findall(code) for text in pair}
    known = {key for code in codes for key in _SET.findall(code)}
    known.update(*(_WORD.findall(text[:MAX_TEXT]) for text in (ctx.run.brief, *(turn.output for turn in turns))))
    unread = {key.lower(): key for key in shown if key not in named}
    longer = {beginning: key for key in unread.values() for beginning in _beginnings(key)}
    for name, turn in asked.items() if unread else ():
        shorter = (unread[beginning] for beginning in _beginnings(name) if beginning in unread)
        like = None if name in known else longer.get(name.lower()) or next(shorter, None)
        if like is not None:
            why = f"The code asks the inputs' records for {name}, which none has, and goes on with a default; the records say {like}."
            yield Finding(tuple(sorted({shown[like], turn})), why, 0.8)


def _beginnings(name: str) -> list[str]:
    """What a name begins with, up to each "_": photometric of photometric_interpretation."""
    parts = name.lower().split("_")
    return ["_".join(parts[:i]) for i in range(1, len(parts))]
