"""Which orientations, sizes and spacings of inputs a run was shown: whether a change of the grid did anything at all."""

from __future__ import annotations

import re

from ..context import CodeContext

MAX_CODE = 100_000
MAX_LINES = 2_000
_ORIENTATION = re.compile(r"(?<![A-Za-z])\(?\s?'?([RL])'?,?\s?'?([AP])'?,?\s?'?([IS])'?(?![A-Za-z+])")
_ASKS_ORIENTATION = re.compile(r"axcodes|orient|direction|affine", re.I)
_PROSE = re.compile(r"(?:\b[a-z]{3,}\b[\s,;.]{1,3}){4}")
_SIZE = re.compile(
    r"\((\d{2,4}), (\d{2,4})(?:, \d{1,4}){0,2}\)|(?<![\d.])(\d{2,4}) ?[x×] ?(\d{2,4})(?: ?[x×] ?\d{1,4})?(?![\d.])"
)
_ZOOMS = re.compile(r"\((?:np\.float\d\d\()?(\d{1,2}\.\d{1,4})\)?, (?:np\.float\d\d\()?\d{1,2}\.\d{1,4}")
_ASKS_SIZE = re.compile(r"\bsize\b|shape|identify|\bfile\b|Size\b|zooms|[Ss]pacing|fslinfo|exiftool|width|\.py\b")
_VARY = re.compile(r"\b(?:sizes? (?:vary|differ)|(?:different|various|varying|several) (?:image )?sizes?)\b", re.I)


def differ(ctx: CodeContext, kind: str, target: tuple[int, ...], oblong: bool = False) -> bool:
    """Whether inputs were shown for which such a change does something."""
    if kind == "orient":
        return len(orientations(ctx)) > 1
    sizes, zooms = _measures(ctx)
    if oblong:
        return any(a != b for a, b in sizes)
    if kind == "spacing":
        return len(zooms) > 1 or len(sizes) > 1
    return (
        len(sizes) > 1
        or any(target and not set(s) <= set(target) for s in sizes)
        or _VARY.search(ctx.run.brief) is not None
    )


def orientations(ctx: CodeContext) -> frozenset[str]:
    """Axis codes that headers showed, one a line; a card's sentence is no header."""
    found: set[str] = set()
    for turn in ctx.run.turns:
        if not _ASKS_ORIENTATION.search(turn.code[:MAX_CODE]):
            continue
        for raw in turn.output.splitlines()[:MAX_LINES]:
            line = raw[:600]
            codes = {"".join(m) for m in _ORIENTATION.findall(line)}
            if (len(codes) == 1 and not _PROSE.search(line)) or "Counter" in line or line.lstrip()[:1] == "{":
                found |= codes
    return frozenset(found)


def _measures(ctx: CodeContext) -> tuple[frozenset[tuple[int, int]], frozenset[str]]:
    """Sizes and spacings of inputs: of lines alike that a look at three or more of them printed, or as the brief says."""
    sizes: set[tuple[int, int]] = set()
    zooms: set[str] = set()
    for line in ctx.run.brief[:MAX_CODE].splitlines():
        if re.search(r"INPUT|/data/public", line):
            sizes |= {_pair(m) for m in _SIZE.finditer(line[:2_000])}
    for turn in ctx.run.turns:
        if not _ASKS_SIZE.search(turn.code[:MAX_CODE]):
            continue
        groups: dict[str, list[str]] = {}
        for raw in turn.output.splitlines()[:MAX_LINES]:
            line = raw[:400]
            groups.setdefault(re.sub(r"\d+(?:\.\d+)?|[A-Za-z_.-]+", "#", line), []).append(line)
        for lines in groups.values():
            first = [m for m in (_SIZE.search(line) for line in lines) if m is not None]
            if len(first) >= 3:
                sizes |= {_pair(m) for m in first}
            each = [m[1] for m in (_ZOOMS.search(line) for line in lines) if m is not None]
            if len(each) >= 3:
                zooms |= set(each)
    return frozenset(sizes), frozenset(zooms)


def _pair(match: re.Match[str]) -> tuple[int, int]:
    a, b = (g for g in match.groups() if g)
    return int(a), int(b)
