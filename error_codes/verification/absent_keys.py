"""E3: the code asks each input's record for a key that no record has, and takes the default, while a like-named key holds the value."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..registry import Finding, detector

MAX_TEXT = 200_000
_ASKED = re.compile(r"(?<!environ)\.get\(\s{0,4}['\"]([A-Za-z]\w{3,40})['\"]\s{0,4}[,)]")
_KEY = re.compile(r"['\"]([A-Za-z]\w{3,40})['\"]\s{0,4}:")


@detector("absent_key_asked", code="E3", stage="S3", independence="from_trace")
def absent_key_asked(ctx: CodeContext) -> Iterable[Finding]:
    """A key that no printed record has is asked for with a default, while the records have one of a longer or shorter name."""
    final = ctx.final_write
    if final is None:
        return
    turns = ctx.run.turns[:final]
    looks = [turn for turn in turns if not ctx.feature(turn.index).forward_pass]
    shown = {key: turn.index for turn in reversed(looks) for key in _KEY.findall(turn.output[:MAX_TEXT])}
    if not shown:
        return
    code = "\n".join(turn.code[:MAX_TEXT] for turn in turns)
    printed = "\n".join((ctx.run.brief[:MAX_TEXT], *(turn.output[:MAX_TEXT] for turn in turns)))
    named = {text for pair in re.findall(r"'(\w{4,41})'|\"(\w{4,41})\"", code) for text in pair if text}
    for asked in dict.fromkeys(_ASKED.findall(code)):
        like = next((key for key in shown if key not in named and key != asked and _shortened(key, asked)), None)
        told = re.search(rf"\b{asked}\b", printed) or re.search(
            rf"['\"]{asked}['\"]\s{{0,4}}(?::|\]\s{{0,4}}=[^=])", code
        )
        if like is not None and not told:
            at = next(turn.index for turn in turns if f"'{asked}'" in turn.code or f'"{asked}"' in turn.code)
            why = f"The code asks the inputs' records for {asked}, which none has, and goes on with a default; the records say {like}."
            yield Finding(tuple(sorted({shown[like], at})), why, 0.8)


def _shortened(one: str, other: str) -> bool:
    """Whether one name begins the other: photometric, photometric_interpretation."""
    one, other = one.lower(), other.lower()
    return one.startswith(f"{other}_") or other.startswith(f"{one}_")
