"""E3: two ways of getting the results disagree, as the run itself printed, and nobody found out which is right."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .context import CodeContext
from .registry import Finding, detector

_RATIO = r"(\d{1,5})\s{0,2}(?:of|/|out of)\s{0,2}(\d{1,5})\b"
_AGREE = re.compile(
    rf"\b(?:agree\w{{0,6}}|same (?:label|answer|class|result)s?|concordan\w{{1,3}})\b[^\d\n]{{0,40}}{_RATIO}",
    re.IGNORECASE,
)
_AGREE_AFTER = re.compile(rf"(?<![\d.]){_RATIO}\s{{1,3}}(?:\w{{1,12}} ){{0,2}}(?:agree|the same)\b", re.IGNORECASE)
_DISAGREE = re.compile(rf"\b(?:disagree\w{{0,6}}|conflict\w{{0,3}}|flipped)\b[^\d\n]{{0,40}}{_RATIO}", re.IGNORECASE)
_AGREEMENT = re.compile(r"\bagreement\b[^\d\n]{0,30}(0?\.\d{1,4}|\d{1,2}(?:\.\d{1,2})?\s?%)", re.IGNORECASE)
_ABOUT_FORM = re.compile(r"\b(?:shapes?|affines?|headers?|names?|ids?|files?|columns?|dtypes?|keys?)\b", re.IGNORECASE)
_SPOKEN_AGREEMENT = re.compile(
    r"\b(?:dis)?agree\w{0,6}|\bdiffer\w{0,5}|\bbaseline|\bconflict|\bweak(?:er)?\b|\bcross-check", re.I
)


@detector("disagreement_ignored", code="E3", stage="S5", independence="from_trace")
def disagreement_ignored(ctx: CodeContext) -> Iterable[Finding]:
    """A second method or pass, held against the final outputs, disagrees on many cases, and nobody said or did anything."""
    if ctx.run.track is None or not ctx.handed_over or ctx.run.track in ("enhancement", "synthesis"):
        return
    for turn in ctx.after_write:
        for line in ctx.lines(turn):
            share = None if _ABOUT_FORM.search(line) else disagreement(line)
            if share is None or share < 0.35 or ctx.stage(turn) not in ("S4", "S5"):
                continue
            later = any(t > turn for t in ctx.model_turns)
            if not later and not _SPOKEN_AGREEMENT.search(ctx.text_from(turn + 1)[-200_000:]):
                yield Finding(
                    tuple(sorted({turn, ctx.last})),
                    f"Two ways of getting the results disagree ({' '.join(line.split())[:80]}), and it was passed over.",
                    0.65,
                )
                return


def disagreement(line: str) -> float | None:
    """Share of at least six cases on which two methods disagree, as a line states it; None where it does not."""
    for pattern, turned in ((_AGREE, True), (_AGREE_AFTER, True), (_DISAGREE, False)):
        match = pattern.search(line)
        if match and 6 <= int(match[2]) >= int(match[1]):
            if turned and re.search(r"\bdisagree|\bnot\b", line, re.IGNORECASE):
                continue
            share = int(match[1]) / int(match[2])
            return 1 - share if turned else share
    match = _AGREEMENT.search(line)
    if match:
        number = float(match[1].rstrip("% "))
        return 1 - (number / 100 if match[1].endswith("%") else number)
    return None
